//! `wavetap run`: an application on the emulator, its counts collected.

use std::process::ExitCode;

use wavetap::error::Result;

use crate::args::RunArgs;
use crate::{files, launch};

/// Runs it; the exit code is the application's.
pub fn run(args: &RunArgs) -> Result<ExitCode> {
    launch::choose(args.backend.backend)?;
    let app = launch::App::find(&args.app)?;
    let outputs = [&args.output, &args.trace];
    for path in outputs.into_iter().flatten() {
        files::may_write(path, args.force)?;
        files::not_the_same(&app.path, path)?;
    }
    let [profile, trace] = outputs.map(|path| path.as_deref().map(launch::absolute).transpose());
    let (profile, trace) = (profile?, trace?);
    // The stand-in replaces the file whenever there is more to keep, so a killed run leaves what had been collected; an old file must not pass for it.
    for path in [&profile, &trace].into_iter().flatten() {
        if path.exists() {
            std::fs::remove_file(path).map_err(|error| files::io(path, "cannot replace", &error))?;
        }
    }
    let run = launch::Run {
        app: &app,
        executable: None,
        backend: &args.backend,
        target: args.target.as_deref(),
        profile: profile.as_deref(),
        trace: trace.as_deref(),
        stdout: None,
    };
    let code = run.execute()?;
    if let Some(path) = &profile {
        match launch::collected(path)? {
            None => eprintln!("wavetap: no profile was written: the application never used the HIP runtime"),
            Some(profile) if profile.kernels.is_empty() => {
                eprintln!("wavetap: the profile is empty: no instrumented kernel ran (`wavetap rewrite` makes an executable that counts)");
            }
            Some(_) => {}
        }
    }
    Ok(launch_code(code))
}

/// The application's exit code as ours.
pub fn launch_code(code: i32) -> ExitCode {
    // An exit code is the low eight bits, and 128 + a signal number fits.
    ExitCode::from((code & 0xff) as u8)
}
