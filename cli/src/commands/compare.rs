//! `wavetap compare`: the ways of counting side by side.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use wavetap::error::{Error, Result, ResultExt};
use wavetap::pipeline::{self, Options, probe};
use wavetap::profile::file::{Backend, Origin, Profile};
use wavetap::profile::time::TimeProfile;
use wavetap::report::compare::{Compare, Run};
use wavetap::run::{Collect, Stdout};
use wavetap::stderr_line;
use wavetap::{Program, RewrittenProgram};

use crate::args::{CompareArgs, CounterChoice, LookArgs};
use crate::{differences, files, launch, map_file, output, progress};

/// Exit code: the modes do not agree, something was refused, or there was nothing to compare.
const DIFFERENT: u8 = 1;

/// One run that is to be.
struct ModeRun {
    mode: String,
    /// What is run in place of the program as it is.
    rewritten: Option<RewrittenProgram>,
}

/// One run that has ended.
struct Ended {
    mode: String,
    code: i32,
    output: PathBuf,
    profile: Option<Profile>,
    trace: Option<Profile>,
    time: Option<TimeProfile>,
}

/// Runs the application once as it is and once for each mode.
pub fn run(args: &CompareArgs, look: LookArgs) -> Result<ExitCode> {
    let mut args = args.clone();
    args.board.select(&mut args.select)?;
    let args = &args;
    let target = args.select.target.first().map(String::as_str);
    let (platform, mut run_options) = launch::options(&args.backend, &args.app, target)?;
    run_options.board = args.board.board;
    let backend = platform.backend();
    output::check(&args.report)?;
    let app = launch::find(&args.app)?;
    let contents = map_file::open(app.path())?;
    let program = Program::new(app, contents);
    if program.has_own_code() {
        let place = || program.path().display().to_string();
        pipeline::check_selection(program.bytes(), &args.select.selection()).within(place)?;
    }
    let folder = wavetap::files::temporary_folder()?;

    // All rewrites first: what cannot be rewritten need not be run.
    let mut runs = vec![ModeRun { mode: "original".to_owned(), rewritten: None }];
    for mode in &args.modes {
        let name = mode_name(*mode);
        if runs.iter().any(|run| run.mode == name) {
            return Err(Error::unsupported(format!("--modes: {name} is named twice")));
        }
        let options = Options {
            probes: vec![probe::BRANCHES],
            counters: (*mode).into(),
            placement: args.placement.into(),
            selection: args.select.selection(),
            ..Options::default()
        };
        let rewritten =
            if platform.has_tool() { program.rewrite_at_load(&options) } else { rewrite(&program, &options)? };
        runs.push(ModeRun { mode: name, rewritten: Some(rewritten) });
    }

    run_options.timing = args.timing.wanted().then(|| launch::timing(&args.timing));
    let (mut ended, mut lacks_something, mut found) = (Vec::new(), false, false);
    for ModeRun { mode, rewritten } in runs {
        let written = folder.path().join(format!("{mode}.stdout"));
        run_options.stdout = Stdout::File(written.clone());
        run_options.collect = if rewritten.is_some() { Collect::COUNTERS } else { Collect::NOTHING };
        run_options.collect.trace = !platform.has_tool();
        let is_original = rewritten.is_none();
        let run = match &rewritten {
            Some(rewritten) => rewritten.run_observed(&run_options, &launch::Terminal)?,
            None => program.run_observed(&run_options, &launch::Terminal)?,
        };
        launch::say_findings(&run);
        launch::say(&run, None);
        if is_original {
            output::stdout(&files::read(&written)?)?;
        }
        // A run that went on after findings has said so.
        found |= run.has_findings();
        lacks_something |= run.lacks_something();
        let (profile, trace, time) = (run.counters()?, run.trace()?, run.time());
        if platform.has_tool() && !is_original && profile.is_none() {
            stderr_line!("wavetap: {mode}: {}", platform.nothing_collected());
        }
        ended.push(Ended { mode, code: run.exit_code(), output: written, profile, trace, time });
    }
    let compare = put_together(backend, &ended)?;
    output::emit(&args.report, look, &compare, |compare, style| compare.render(style))?;
    output::say_refused(&compare.refused, &args.report);
    Ok(if compare.problems.is_empty() && !lacks_something && !found {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(DIFFERENT)
    })
}

/// The program with counters. One without device code of its own is refused.
fn rewrite(program: &Program, options: &Options) -> Result<RewrittenProgram> {
    let explained = |error| launch::explain(program.path(), program.bytes(), error);
    if !program.has_own_code() {
        pipeline::rewrite(program.bytes(), options)
            .within(|| program.path().display().to_string())
            .map_err(explained)?;
    }
    // Code that is loaded is not compared.
    progress::rewrite_program(program, options).map(RewrittenProgram::only_file).map_err(explained)
}

fn put_together(backend: Backend, ended: &[Ended]) -> Result<Compare> {
    let (original, modes) = ended.split_first().ok_or_else(|| Error::internal("nothing was run"))?;
    let nothing = Profile::new(Origin::Counters, backend);
    let outputs =
        modes.iter().map(|run| differences::between(&original.output, &run.output)).collect::<Result<Vec<_>>>()?;
    let runs: Vec<Run<'_>> = modes
        .iter()
        .zip(&outputs)
        .map(|(run, output)| Run {
            mode: &run.mode,
            profile: run.profile.as_ref().unwrap_or(&nothing),
            trace: run.trace.as_ref(),
            output,
            exit_code: run.code,
        })
        .collect();
    let mut compare = Compare::new(backend, original.trace.as_ref(), original.code, &runs);
    if let Some(time) = &original.time {
        let times: Vec<_> = modes.iter().filter_map(|run| Some((run.mode.as_str(), run.time.as_ref()?))).collect();
        compare.add_time(time, &times);
    }
    Ok(compare)
}

fn mode_name(mode: CounterChoice) -> String {
    mode.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
