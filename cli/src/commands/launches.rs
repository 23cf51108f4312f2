//! `wavetap profile --probe none`: what an application launches, with nothing rewritten and nothing counted.

use std::process::ExitCode;

use wavetap::error::{Error, Result, ResultExt};
use wavetap::pipeline;
use wavetap::report::summary::SummaryInputs;
use wavetap::report::{Report, text};

use super::run::launch_code;
use crate::args::{ColorChoice, ProfileArgs};
use crate::{launch, map_file, output, triton};

/// Exit code: it ran, and something that was asked for is missing.
const REFUSED: i32 = 1;

/// Runs the application as it is.
pub fn run(args: &ProfileArgs, colour: ColorChoice, platform: launch::Platform, app: &launch::App) -> Result<ExitCode> {
    if args.backend.per_wave {
        return Err(Error::unsupported("--per-wave: with --probe none no wave counts anything"));
    }
    let timing = args.timing.wanted();
    let run = launch::Run {
        platform,
        app,
        executable: None,
        backend: &args.backend,
        target: args.select.target.first().map(String::as_str),
        counters: false,
        trace: false,
        launches: true,
        timing: timing.then_some(launch::Modelled { latencies: &args.timing.latency, samples: false, interval: None }),
        at_load: None,
        stdout: None,
    };
    let ended = run.execute()?;
    ended.say();
    ended.say_unranked(&args.output);
    let Some(mut profile) = ended.trace()? else {
        if ended.code == 0 {
            let why = platform.nothing_collected();
            return Err(Error::unsupported(format!("{}: {why}: there is nothing to report", app.path.display())));
        }
        return Ok(launch_code(ended.code));
    };
    let written = match &args.output {
        Some(path) => ended.write_trace(path, args.report.force).map(drop),
        None => Ok(()),
    };
    let selection = args.select.selection();
    profile.kernels.retain(|kernel| selection.has_kernel(&kernel.name));
    let mut report = Report::new(&profile, launch::info(&args.backend, platform, &ended));
    report.time = ended.time();
    let original = map_file::open(&app.path)?;
    // Of code that is loaded at run time only the launches are known.
    let code = if launch::has_no_code_of_its_own(&original) {
        Vec::new()
    } else {
        pipeline::explain(&mut report, &profile, &original).within(|| app.path.display().to_string())?
    };
    report.set_builds(&triton::builds(&profile));
    report.summarise(&SummaryInputs { profile: &profile, board: args.view.board.board, code: &code });
    let details = args.view.details.into();
    output::emit(&args.report, colour, &report, |report, style| text::render_part(report, details, style))?;
    written?;
    let misfit = args.view.board.misfit(profile.kernels.iter().map(|kernel| kernel.target.as_str()));
    misfit.iter().for_each(|misfit| eprintln!("wavetap: {misfit}"));
    let lacks = misfit.is_some() || ended.lacks_something() || ended.found;
    Ok(launch_code(if ended.code == 0 && lacks { REFUSED } else { ended.code }))
}
