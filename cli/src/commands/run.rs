//! `wavetap run`: an application on the emulator or a GPU, its counts collected.

use std::path::PathBuf;
use std::process::ExitCode;

use wavetap::Program;
use wavetap::emulator::TimedWorkgroups;
use wavetap::error::{Error, Result};
use wavetap::report;
use wavetap::run::{App, Collect, Finished, Launch, OutputName, Platform};
use wavetap::stderr_line;

use crate::args::{BackendArgs, LookArgs, RunArgs};
use crate::{files, launch, map_file, output};

/// Exit code where the application's is 0: not all that was asked for was collected.
pub const LACKING: i32 = 1;

/// Runs it; the exit code is the application's.
pub fn run(args: &RunArgs, look: LookArgs) -> Result<ExitCode> {
    let target = args.board.target(args.target.as_deref())?;
    let (platform, mut options) = launch::options(&args.backend, &args.app, target.as_deref())?;
    options.board = args.board.board;
    output::check(&args.report)?;
    let app = launch::find(&args.app)?;
    launch::check_target(&app, target.as_deref(), &args.board)?;
    let outputs = [&args.output, &args.trace, &args.samples];
    for name in outputs.into_iter().flatten() {
        let expected = name.expected();
        files::may_write(&expected, args.report.force)?;
        files::not_the_same(app.path(), &expected)?;
    }
    let expected: Vec<PathBuf> = outputs.into_iter().flatten().map(OutputName::expected).collect();
    files::distinct(expected.iter().chain(&args.report.report))?;
    let timed = args.timing.wanted() || args.samples.is_some() || args.timing_waves;
    options.collect = Collect::NOTHING;
    options.collect.counters = args.output.is_some();
    options.collect.trace = args.trace.is_some();
    options.collect.fidelity = args.fidelity;
    if timed {
        let mut timing = launch::timing(&args.timing);
        timing.samples = args.samples.is_some();
        timing.sample_interval = args.sample_interval;
        timing.waves = args.timing_waves;
        options.timing = Some(timing);
    }
    check_collected(args)?;
    if args.output.is_some() && platform == Platform::EmulatorHip {
        say_if_not_rewritten(&app)?;
    }
    let ended = Launch { app: &app, executable: None, options: &options, at_load: None }.execute(&launch::Terminal)?;
    launch::say_findings(&ended);
    launch::say(&ended, outputs.into_iter().flatten());
    // What can be written is, whatever cannot.
    let written = write_profile(args, platform, &ended);
    let outputs = [write_others(args, &ended), say_time(args, &ended, timed, look), say_fidelity(args, &ended, look)];
    let lacks_waves = written?;
    outputs.into_iter().collect::<Result<Vec<()>>>()?;
    let lacks = lacks_waves || ended.lacks_something() || ended.has_findings();
    let code = if ended.exit_code() == 0 && lacks { LACKING } else { ended.exit_code() };
    Ok(launch_code(code))
}

/// Refuses options of what is collected where nothing is.
fn check_collected(args: &RunArgs) -> Result<()> {
    const WHY: &str = "without -o nothing that kernels count is collected";
    if args.output.is_some() {
        return match args.timing.timed_workgroups {
            None | Some(TimedWorkgroups::All) => Ok(()),
            Some(part) => Err(Error::unsupported(format!(
                "--timed-workgroups {part} with -o: where not all workgroups are modelled, what kernels measure by the \
                    clock is wrong: run it twice"
            ))),
        };
    }
    let collects = args.trace.is_some() || args.samples.is_some() || args.timing_waves || args.fidelity;
    if collects || args.timing.wanted() {
        return check_nothing_counted(&args.backend, WHY);
    }
    check_nothing_collected(&args.backend, WHY)
}

/// Refuses options of what is collected, for this reason.
pub(super) fn check_nothing_collected(backend: &BackendArgs, why: &str) -> Result<()> {
    let BackendArgs { dispatches, region, selected_regions, graph_nodes, .. } = backend;
    let options = [
        ("--dispatches", dispatches.is_some()),
        ("--region", !region.is_empty()),
        ("--selected-regions", *selected_regions),
        ("--graph-nodes", *graph_nodes),
    ];
    refuse(&options, why)?;
    check_nothing_counted(backend, why)
}

/// Refuses options of what kernels count, for this reason.
fn check_nothing_counted(backend: &BackendArgs, why: &str) -> Result<()> {
    let BackendArgs { per_wave, records, workgroups, memory_limit, .. } = backend;
    let options = [
        ("--per-wave", *per_wave),
        ("--records", records.is_some()),
        ("--workgroups", workgroups.is_some()),
        ("--memory-limit", memory_limit.is_some()),
    ];
    refuse(&options, why)
}

fn refuse(options: &[(&str, bool)], why: &str) -> Result<()> {
    match options.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(Error::unsupported(format!("{name}: {why}"))),
        None => Ok(()),
    }
}

/// Says what to do with an application whose kernels count nothing, before it runs, which may take long.
fn say_if_not_rewritten(app: &App) -> Result<()> {
    let program = Program::new(app.clone(), map_file::open(app.path())?);
    if program.has_own_code() && !program.is_rewritten() {
        let name = program.path().display();
        stderr_line!(
            "wavetap: note: {name} was not rewritten, so its kernels count nothing: use `wavetap profile`, or run what \
                `wavetap rewrite {name} -o OUT` writes"
        );
    }
    Ok(())
}

/// Removes what an output would have replaced, where its name is known: an old file must not pass for what this run has
/// written.
fn remove_old(name: &OutputName) -> Result<()> {
    name.of_all().map_or(Ok(()), |path| files::remove_old(&path))
}

/// Writes the profile; tells whether it lacks what was asked for: all counts, or counters of single waves.
fn write_profile(args: &RunArgs, platform: Platform, ended: &Finished) -> Result<bool> {
    let Some(path) = &args.output else { return Ok(false) };
    let written = ended.write_counters(path, args.report.force)?;
    let lacks_waves = args.backend.per_wave && written.as_ref().is_some_and(output::say_shared);
    match written {
        None => {
            remove_old(path)?;
            let why = if ended.lacks_something() {
                "what was counted could not be kept"
            } else {
                platform.nothing_collected()
            };
            stderr_line!("wavetap: no profile was written: {why}");
        }
        Some(profile) if profile.uncounted.iter().any(|uncounted| uncounted.why.is_gap()) => {
            output::say_missing(&profile.uncounted)
        }
        Some(profile) if profile.kernels.is_empty() => {
            let what = match ended.signal() {
                Some(_) => "no dispatch of any instrumented kernel had ended",
                None => "no instrumented kernel ran (`wavetap rewrite` writes an executable that counts)",
            };
            stderr_line!("wavetap: the profile is empty: {what}");
            return Ok(true);
        }
        Some(profile) if profile.processes > 1 => {
            stderr_line!("wavetap: the profile is the sum of {} processes", profile.processes)
        }
        Some(_) => {}
    }
    Ok(lacks_waves)
}

fn write_others(args: &RunArgs, ended: &Finished) -> Result<()> {
    if let Some(path) = &args.trace
        && ended.write_trace(path, args.report.force)?.is_none()
    {
        remove_old(path)?;
    }
    if let Some(path) = &args.samples
        && !ended.write_samples(path, args.report.force)?
    {
        remove_old(path)?;
    }
    Ok(())
}

fn say_time(args: &RunArgs, ended: &Finished, timed: bool, look: LookArgs) -> Result<()> {
    if !timed {
        return Ok(());
    }
    let Some(time) = ended.time() else {
        stderr_line!("wavetap: no time was modelled: the application never used the HIP runtime");
        return Ok(());
    };
    if args.output.is_none() && time.kernels.iter().any(|kernel| kernel.modelled_added_cycles > 0) {
        stderr_line!(
            "wavetap: the application was rewritten, and without -o it counts nothing: the time is that of its kernels \
                with counting off"
        );
    }
    output::emit(&args.report, look, &time, report::time::render)
}

fn say_fidelity(args: &RunArgs, ended: &Finished, look: LookArgs) -> Result<()> {
    if !args.fidelity {
        return Ok(());
    }
    let Some(fidelity) = ended.fidelity() else {
        stderr_line!("wavetap: nothing can be said of how exact it was: the application never used the HIP runtime");
        return Ok(());
    };
    output::emit(&args.report, look, &fidelity, report::fidelity::render)
}

/// The application's exit code as ours.
pub fn launch_code(code: i32) -> ExitCode {
    // An exit code is the low eight bits, and 128 + a signal number fits.
    ExitCode::from((code & 0xff) as u8)
}
