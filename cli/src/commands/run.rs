//! `wavetap run`: an application on the emulator, its counts collected.

use std::process::ExitCode;

use wavetap::error::Result;
use wavetap::report;

use crate::args::{ColorChoice, RunArgs};
use crate::{files, launch, output};

/// Runs it; the exit code is the application's.
pub fn run(args: &RunArgs, colour: ColorChoice) -> Result<ExitCode> {
    launch::choose(args.backend.backend)?;
    output::check(&args.report)?;
    let app = launch::App::find(&args.app)?;
    let outputs = [&args.output, &args.trace, &args.samples];
    for path in outputs.into_iter().flatten() {
        files::may_write(path, args.report.force)?;
        files::not_the_same(&app.path, path)?;
    }
    let [profile, trace, samples] = outputs.map(|path| path.as_deref().map(launch::absolute).transpose());
    let (profile, trace, samples) = (profile?, trace?, samples?);
    // The stand-in replaces the file whenever there is more to keep, so a killed run leaves what had been collected; an old file must not pass for it.
    for path in [&profile, &trace, &samples].into_iter().flatten() {
        if path.exists() {
            std::fs::remove_file(path).map_err(|error| files::io(path, "cannot replace", &error))?;
        }
    }
    let timed = args.timing.wanted() || samples.is_some();
    let folder = if timed { Some(launch::scratch()?) } else { None };
    let time = folder.as_ref().map(|folder| folder.path().join("time.json"));
    let run = launch::Run {
        app: &app,
        executable: None,
        backend: &args.backend,
        target: args.target.as_deref(),
        profile: profile.as_deref(),
        trace: trace.as_deref(),
        timing: time.as_deref().map(|time| launch::Modelled {
            time,
            latencies: &args.timing.latency,
            samples: samples.as_deref(),
            interval: args.sample_interval,
        }),
        stdout: None,
    };
    let code = run.execute()?;
    if let Some(path) = &profile {
        match launch::collected(path)? {
            None => eprintln!("wavetap: no profile was written: the application never used the HIP runtime"),
            Some(profile) if profile.uncounted.iter().any(|uncounted| uncounted.why.is_gap()) => output::say_missing(&profile.uncounted),
            Some(profile) if profile.kernels.is_empty() => {
                eprintln!("wavetap: the profile is empty: no instrumented kernel ran (`wavetap rewrite` makes an executable that counts)");
            }
            Some(_) => {}
        }
    }
    if let Some(path) = &time {
        match launch::modelled(path)? {
            None => eprintln!("wavetap: no time was modelled: the application never used the HIP runtime"),
            Some(time) => output::emit(&args.report, colour, &time, report::time::render)?,
        }
    }
    Ok(launch_code(code))
}

/// The application's exit code as ours.
pub fn launch_code(code: i32) -> ExitCode {
    // An exit code is the low eight bits, and 128 + a signal number fits.
    ExitCode::from((code & 0xff) as u8)
}
