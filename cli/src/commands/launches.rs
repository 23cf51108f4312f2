//! `wavetap profile --probe none`: what an application launches, with nothing rewritten and nothing counted.

use std::process::ExitCode;

use wavetap::error::{Error, Result, ResultExt};
use wavetap::pipeline;
use wavetap::report::text;
use wavetap::run::{App, Collect, RunOptions};
use wavetap::stderr_line;
use wavetap::{ExplainOptions, Program};

use super::run::launch_code;
use crate::args::{LookArgs, ProfileArgs};
use crate::{launch, map_file, output, triton};

/// Exit code: it ran, and something that was asked for is missing.
const REFUSED: i32 = 1;

/// Runs the application as it is.
pub fn run(args: &ProfileArgs, look: LookArgs, mut options: RunOptions, app: App) -> Result<ExitCode> {
    if args.backend.per_wave {
        return Err(Error::unsupported("--per-wave: with --probe none no wave counts anything"));
    }
    options.collect = Collect::LAUNCHES;
    options.timing = args.timing.wanted().then(|| launch::timing(&args.timing));
    let contents = map_file::open(app.path())?;
    let program = Program::new(app, contents);
    if program.has_own_code() {
        let target = pipeline::Selection { targets: args.select.target.clone(), ..pipeline::Selection::default() };
        pipeline::check_selection(program.bytes(), &target).within(|| program.path().display().to_string())?;
    }
    let ended = program.run_observed(&options, &launch::Terminal)?;
    launch::say_findings(&ended);
    launch::say(&ended, &args.output);
    let Some(mut profile) = ended.trace()? else {
        if ended.exit_code() == 0 {
            let why = ended.platform().nothing_collected();
            let path = program.path().display();
            return Err(Error::unsupported(format!("{path}: {why}: there is nothing to report")));
        }
        return Ok(launch_code(ended.exit_code()));
    };
    let written = match &args.output {
        Some(path) => ended.write_trace(path, args.report.force).map(drop),
        None => Ok(()),
    };
    let selection = args.select.selection();
    let selected = launch::check_selected(&selection, &program, &ended, &profile);
    profile.kernels.retain(|kernel| selection.has_kernel(&kernel.name));
    profile.regions.retain(|kernel| selection.has_kernel(&kernel.name));
    let explained =
        ExplainOptions::new().board(args.view.board.board).time(ended.time()).builds(triton::builds(&profile));
    // Of code that is loaded at run time only the launches are known.
    let report = ended.explain(&profile, &explained)?;
    let details = args.view.details.into();
    output::emit(&args.report, look, &report, |report, style| text::render_part(report, details, style))?;
    written?;
    selected?;
    let misfit = args.view.board.misfit(profile.kernels.iter().map(|kernel| kernel.target.as_str()));
    misfit.iter().for_each(|misfit| stderr_line!("wavetap: {misfit}"));
    let lacks = misfit.is_some() || ended.lacks_something() || ended.has_findings();
    Ok(launch_code(if ended.exit_code() == 0 && lacks { REFUSED } else { ended.exit_code() }))
}
