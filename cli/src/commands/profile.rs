//! `wavetap profile`: rewrite, run and report in one go.

use std::path::Path;
use std::process::ExitCode;

use wavetap::error::{Result, ResultExt};
use wavetap::pipeline::{self, Inspected, Options, waits};
use wavetap::profile::file::{Backend, Origin, Profile};
use wavetap::profile::time::TimeProfile;
use wavetap::report::{Report, text};

use super::run::launch_code;
use crate::args::{ColorChoice, ProfileArgs};
use crate::{files, launch, map_file, output, progress};

/// Exit code: it ran, and something that was asked for was refused.
const REFUSED: i32 = 1;

/// Profiles the application; the exit code is its own unless something was refused.
pub fn run(args: &ProfileArgs, colour: ColorChoice) -> Result<ExitCode> {
    launch::choose(args.backend.backend)?;
    output::check(&args.report)?;
    let app = launch::App::find(&args.app)?;
    if let Some(path) = &args.output {
        files::may_write(path, args.report.force)?;
        files::not_the_same(&app.path, path)?;
    }
    files::distinct([&args.output, &args.report.report].into_iter().flatten())?;
    let original = map_file::open(&app.path)?;
    let folder = launch::scratch()?;
    let executable = folder.path().join(app.path.file_name().unwrap_or("app".as_ref()));
    let options = args.instrument.options(&args.select);
    let selected = rewrite_to(&original, &app.path, &executable, &options).map_err(|error| launch::explain(&app, &original, error))?;
    if let Some(nothing) = nothing_selected(&original, &options, selected) {
        eprintln!("wavetap: {}: {nothing}", app.path.display());
        return Ok(launch_code(REFUSED));
    }

    let run = launch::Run {
        app: &app,
        executable: Some(&executable),
        backend: &args.backend,
        target: args.select.target.first().map(String::as_str),
        counters: true,
        trace: false,
        timing: None,
        stdout: None,
    };
    let ended = run.execute()?;
    ended.say();
    let written = match &args.output {
        Some(path) => ended.write_counters(path, args.report.force).map(drop),
        None => Ok(()),
    };
    let profile = ended.counters()?.unwrap_or_else(|| {
        // It used no kernel, and nothing is missing.
        Profile { complete: ended.signal.is_none() && !ended.lacks_something(), ..Profile::new(Origin::Counters, Backend::Emulator) }
    });
    let mut report = Report::new(&profile, launch::info(&args.backend, &ended));
    waits::explain(&mut report, &profile, &original).within(|| app.path.display().to_string())?;
    if args.timing.wanted() {
        report.time = modelled(args, &app)?;
    }
    output::emit(&args.report, colour, &report, text::render)?;
    output::say_refused(&report.refused);
    written?;
    let lacks = report.has_gaps() || ended.lacks_something();
    Ok(launch_code(if ended.code == 0 && lacks { REFUSED } else { ended.code }))
}

/// Models the time of the application as it is: counting takes time that the original does not.
fn modelled(args: &ProfileArgs, app: &launch::App) -> Result<Option<TimeProfile>> {
    let nowhere =
        std::fs::File::options().write(true).open("/dev/null").map_err(|error| files::io(Path::new("/dev/null"), "cannot open", &error))?;
    let run = launch::Run {
        app,
        executable: None,
        backend: &args.backend,
        target: args.select.target.first().map(String::as_str),
        counters: false,
        trace: false,
        timing: Some(launch::Modelled { latencies: &args.timing.latency, samples: false, interval: None }),
        stdout: Some(nowhere),
    };
    Ok(run.execute()?.time())
}

/// Says why nothing was selected, if something should have been.
pub fn nothing_selected(original: &[u8], options: &Options, selected: usize) -> Option<String> {
    let selection = &options.selection;
    if selected > 0 || (selection.kernels.is_empty() && selection.targets.is_empty()) {
        return None;
    }
    let inspected = Inspected { selection: selection.clone(), ..Inspected::default() };
    let said = pipeline::inspect(original, &inspected, None).err().map(|error| error.to_string());
    Some(said.unwrap_or_else(|| "nothing that --kernel and --target select is there to be counted".to_owned()))
}

/// Writes the rewritten application, executable as the original is. How many kernels were selected.
pub fn rewrite_to(original: &[u8], path: &Path, output: &Path, options: &Options) -> Result<usize> {
    let mut pending = files::Pending::new(output, false)?;
    let kept = progress::rewrite(original, path, options, &mut pending, |map| map.kernels.len() + map.refused.len())?;
    let permissions = std::fs::metadata(path).map_err(|error| files::io(path, "cannot read", &error))?.permissions();
    pending.finish(Some(permissions))?;
    Ok(kept.into_iter().sum())
}
