//! `wavetap export`: what was measured, in the forms of other tools.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use wavetap::error::{Error, Result, ResultExt};
use wavetap::explain::coverage::{Coverage, CoverageUnit};
use wavetap::pipeline::{self, CoverageInputs, RunInputs};
use wavetap::profile::file::{KernelTotals, Profile};
use wavetap::profile::time::{KernelTime, TimeProfile};
use wavetap::report::export::{folded, lcov, records, sites, tables, trace, viewer};
use wavetap::report::findings::{remarks, sarif};
use wavetap::report::memory::MappedWorkgroups;
use wavetap::stderr_line;

use super::{parquet, report};
use crate::args::{CountUnit, ExportArgs, ExportForm};
use crate::{files, folder, launch, map_file, output, sources};

/// Exit code: something could not be read.
const REFUSED: u8 = 1;

/// Writes it.
pub fn run(args: &ExportArgs) -> Result<ExitCode> {
    if args.all_workgroups && args.form != ExportForm::HeatMap {
        return Err(Error::unsupported("--all-workgroups is of the form heat-map"));
    }
    if (args.run.is_some() || args.partition.is_some()) && args.form != ExportForm::Parquet {
        return Err(Error::unsupported("--run and --partition are of the form parquet"));
    }
    let of_coverage = args.test_name.is_some() || args.count.is_some() || !args.source_path.is_empty();
    if of_coverage && args.form != ExportForm::Lcov {
        return Err(Error::unsupported("--test-name, --count and --source-path are of the form lcov"));
    }
    match args.form {
        ExportForm::Viewer => return of_waves(args),
        ExportForm::Parquet => return parquet::run(args),
        _ => {}
    }
    if let Some(path) = &args.output {
        files::may_write(path, args.force)?;
    }
    args.region.check_time(args.time.as_deref())?;
    let mut unread = Vec::new();
    let mut uncovered = Vec::new();
    let text = match (&args.file, &args.counters[..], &args.time) {
        (Some(file), [_, ..], _) if args.form.is_of_findings() => of_findings(args, file, &mut unread)?,
        (Some(file), [counters], None) if args.form == ExportForm::Lcov => {
            let coverage = coverage(args, file, counters)?;
            (unread, uncovered) = (coverage.unread.clone(), coverage.missing.clone());
            lcov::lcov(&coverage, args.test_name.as_deref().unwrap_or_default())?
        }
        (Some(file), [counters], None) => of_counters(args, file, counters, &mut unread)?,
        (None, [counters], None) if args.form == ExportForm::Sites => of_sites(args, &args.region.read(counters)?)?,
        (None, [], Some(time)) => of_time(args.form, time)?,
        _ => return Err(Error::unsupported(args.form.needs())),
    };
    match &args.output {
        Some(path) => files::write(path, text.as_bytes(), args.force, None)?,
        None => output::stdout(text.as_bytes())?,
    }
    for part in &unread {
        stderr_line!("wavetap: not readable: {}", part.replace(['\n', '\r'], " "));
    }
    for part in &uncovered {
        stderr_line!("wavetap: not known: {}", part.replace(['\n', '\r'], " "));
    }
    Ok(if unread.is_empty() && uncovered.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}

/// A folder for AMD's viewer.
fn of_waves(args: &ExportArgs) -> Result<ExitCode> {
    let (None, [], Some(time), Some(target)) = (&args.file, &args.counters[..], &args.time, &args.output) else {
        return Err(Error::unsupported(args.form.needs()));
    };
    args.region.check_time(Some(time))?;
    folder::may_write(target, args.force, viewer::is_of_folder)?;
    let profile = TimeProfile::from_json(&files::read(time)?).within(|| time.display().to_string())?;
    let selection = args.select.selection();
    let names: Vec<&str> = profile.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    selection.check_kernels(&names).within(|| time.display().to_string())?;
    let is_selected = |kernel: &KernelTime| selection.has_kernel(&kernel.name) && selection.has_target(&kernel.target);
    let written = viewer::folder(&profile, is_selected, |path| sources::read(Path::new(path)))
        .within(|| time.display().to_string())?;
    folder::write(target, &written, args.force, viewer::is_of_folder)?;
    Ok(ExitCode::SUCCESS)
}

/// What modelled time has a form for.
fn of_time(form: ExportForm, path: &Path) -> Result<String> {
    let read = || TimeProfile::from_json(&files::read(path)?).within(|| path.display().to_string());
    match form {
        ExportForm::Trace => output::json(&trace::chrome_trace(&read()?)),
        ExportForm::Folded => Ok(folded::of_time(&read()?)),
        _ => Err(Error::unsupported(form.needs())),
    }
}

/// What counts, or recorded accesses, have a form for.
fn of_counters(args: &ExportArgs, file: &Path, counters: &Path, unread: &mut Vec<String>) -> Result<String> {
    let data = map_file::open(file)?;
    let profile = args.region.read(counters)?;
    let selection = args.select.selection();
    let place = || file.display().to_string();
    pipeline::check_selection(&data, &selection).within(place)?;
    match args.form {
        ExportForm::Folded | ExportForm::Csv => {
            let mix = pipeline::mix(&data, &selection, &profile).within(place)?;
            unread.clone_from(&mix.unread);
            if args.form == ExportForm::Csv { tables::tables(&mix, &profile) } else { Ok(folded::of_mix(&mix)) }
        }
        ExportForm::Accesses => records::accesses(&pipeline::recorded(&data, &selection, &profile).within(place)?),
        ExportForm::HeatMap => {
            let mapped = if args.all_workgroups { MappedWorkgroups::All } else { MappedWorkgroups::First };
            Ok(records::heat_maps(&pipeline::recorded(&data, &selection, &profile).within(place)?, mapped))
        }
        _ => Err(Error::unsupported(args.form.needs())),
    }
}

/// Which lines, branches and functions were executed.
fn coverage(args: &ExportArgs, file: &Path, counters: &Path) -> Result<Coverage> {
    let data = map_file::open(file)?;
    let profile = args.region.read(counters)?;
    let selection = args.select.selection();
    let unit = match args.count {
        Some(CountUnit::Lanes) => CoverageUnit::Lanes,
        Some(CountUnit::Waves) | None => CoverageUnit::Waves,
    };
    let name = |file: &str| sources::place(file, &args.source_path);
    let inputs = CoverageInputs { profile: &profile, unit, file: &name };
    pipeline::check_selection(&data, &selection)
        .and_then(|()| pipeline::coverage(&data, &selection, &inputs))
        .within(|| file.display().to_string())
}

/// The sites of the selected kernels.
fn of_sites(args: &ExportArgs, profile: &Profile) -> Result<String> {
    let selection = args.select.selection();
    let names: Vec<&str> = profile.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    selection.check_kernels(&names).within(|| "the profile".to_owned())?;
    let ran: BTreeSet<&str> = profile.kernels.iter().map(|kernel| kernel.target.as_str()).collect();
    if !ran.is_empty() && !ran.iter().any(|target| selection.has_target(target)) {
        let ran: Vec<&str> = ran.into_iter().collect();
        return Err(Error::malformed(format!("--target: the profile has no kernel of it, only of {}", ran.join(", "))));
    }
    let is_selected =
        |kernel: &&KernelTotals| selection.has_kernel(&kernel.name) && selection.has_target(&kernel.target);
    sites::sites(profile.kernels.iter().filter(is_selected))
}

/// All that was found.
fn of_findings(args: &ExportArgs, file: &Path, unread: &mut Vec<String>) -> Result<String> {
    let data = map_file::open(file)?;
    pipeline::check_selection(&data, &args.select.selection()).within(|| file.display().to_string())?;
    let profiles = args.counters.iter().map(|path| args.region.read(path)).collect::<Result<Vec<Profile>>>()?;
    let (profile, recorded) = launch::counted_and_recorded(&profiles)?;
    let profile = profile.ok_or_else(|| Error::unsupported(args.form.needs()))?;
    let time = args.time.as_deref().map(|path| report::time_of(path, profile)).transpose()?;
    let (name, base) = (file.to_string_lossy(), files::current_folder());
    let inputs = RunInputs { profile, recorded, time: time.as_ref(), board: None, file: &name, base: base.as_deref() };
    let log = pipeline::findings(&data, &args.select.selection(), inputs).within(|| file.display().to_string())?;
    unread.clone_from(&log.unread);
    if args.form == ExportForm::Sarif { output::json(&sarif(&log)) } else { Ok(remarks(&log)) }
}
