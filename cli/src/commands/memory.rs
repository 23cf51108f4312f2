//! `wavetap memory`: how the lanes of each wave access memory.

use std::process::ExitCode;

use wavetap::error::{Error, Result, ResultExt};
use wavetap::pipeline::{self, MemoryInputs};
use wavetap::profile::file::Profile;
use wavetap::report::findings::{remarks, sarif};
use wavetap::report::memory::{KernelMemory, MappedWorkgroups, MemoryReport, Severity, finding_log, render};
use wavetap::stderr_line;

use crate::args::{FindingsFormat, LookArgs, MemoryArgs};
use crate::{files, launch, map_file, output};

/// Exit code: something that was asked for could not be read, or is as bad as `--fail-on` says.
const REFUSED: u8 = 1;

/// Analyses the file.
pub fn run(args: &MemoryArgs, look: LookArgs) -> Result<ExitCode> {
    output::check(&args.output)?;
    let data = map_file::open(&args.file)?;
    pipeline::check_selection(&data, &args.select.selection()).within(|| args.file.display().to_string())?;
    let profiles = args.counters.iter().map(|path| args.region.read(path)).collect::<Result<Vec<Profile>>>()?;
    let (profile, recorded) = launch::counted_and_recorded(&profiles)?;
    let has_maps = matches!(args.output.format, FindingsFormat::Json | FindingsFormat::Yaml);
    if args.all_workgroups && !has_maps {
        return Err(Error::unsupported("--all-workgroups: only --format json and yaml have heat maps"));
    }
    let mapped = if args.all_workgroups { MappedWorkgroups::All } else { MappedWorkgroups::First };
    let inputs = MemoryInputs { profile, recorded, workgroup: args.workgroup, mapped, ..MemoryInputs::default() };
    let report =
        pipeline::memory(&data, &args.select.selection(), inputs).within(|| args.file.display().to_string())?;
    let log = || finding_log(&report, &args.file.to_string_lossy(), files::current_folder());
    let out = match args.output.format {
        FindingsFormat::Text => {
            let style = output::style(&args.output, look);
            style.fit(render(&report, style))
        }
        FindingsFormat::Json => output::json(&report)?,
        FindingsFormat::Yaml => output::yaml(&report)?,
        FindingsFormat::Sarif => output::json(&sarif(&log()))?,
        FindingsFormat::Remarks => remarks(&log()),
    };
    output::write(&args.output, &out)?;
    for part in &report.unread {
        stderr_line!("wavetap: not readable: {}", part.replace(['\n', '\r'], " "));
    }
    let failed = args.fail_on.is_some_and(|least| fails(&report, least.into()));
    Ok(if report.unread.is_empty() && !failed { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}

/// Whether something is as bad as this, or nothing was looked at; and says so.
fn fails(report: &MemoryReport, least: Severity) -> bool {
    if report.kernels.is_empty() {
        stderr_line!("wavetap: no kernel selected: --fail-on has nothing to judge");
        return true;
    }
    let count = report.findings().iter().filter(|finding| finding.severity >= least).count();
    let what = format!("{least:?}").to_lowercase();
    match count {
        0 => {}
        1 => stderr_line!("wavetap: 1 access is of severity {what} or worse"),
        _ => stderr_line!("wavetap: {count} accesses are of severity {what} or worse"),
    }
    let leaves_out =
        |kernel: &&KernelMemory| kernel.calls_unknown || kernel.called.iter().any(|function| function.accesses > 0);
    match report.kernels.iter().filter(leaves_out).count() {
        0 => {}
        1 => stderr_line!("wavetap: 1 kernel calls functions, whose accesses are not judged"),
        callers => stderr_line!("wavetap: {callers} kernels call functions, whose accesses are not judged"),
    }
    count > 0
}
