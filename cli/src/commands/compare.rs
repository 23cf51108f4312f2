//! `wavetap compare`: the ways of counting side by side.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use wavetap::error::{Error, Result};
use wavetap::pipeline::{Options, probe};
use wavetap::profile::file::{Backend, Origin, Profile};
use wavetap::profile::time::TimeProfile;
use wavetap::report::compare::{Compare, Run};

use super::profile::{nothing_selected, rewrite_to};
use crate::args::{ColorChoice, CompareArgs, CounterChoice};
use crate::{differences, files, launch, map_file, output};

/// Exit code: the modes do not agree, something was refused, or there was nothing to compare.
const DIFFERENT: u8 = 1;

/// One run that is to be.
struct ModeRun {
    mode: String,
    /// Executed instead of the application's own file.
    executable: Option<PathBuf>,
    /// How code is rewritten when it is loaded, and where originals are kept.
    at_load: Option<(Options, PathBuf)>,
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
pub fn run(args: &CompareArgs, colour: ColorChoice) -> Result<ExitCode> {
    let platform = launch::choose(&args.backend)?;
    let backend = platform.backend();
    output::check(&args.report)?;
    let app = launch::App::find(&args.app)?;
    let original = map_file::open(&app.path)?;
    let folder = launch::scratch()?;
    let target = args.select.target.first().map(String::as_str);

    // All rewrites first: what cannot be rewritten need not be run.
    let mut runs = vec![ModeRun { mode: "original".to_owned(), executable: None, at_load: None }];
    for mode in &args.modes {
        let name = mode_name(*mode);
        let place = folder.path().join(&name);
        std::fs::create_dir(&place)
            .map_err(|error| files::io(&place, "is a mode named twice? cannot make the folder", &error))?;
        let options = Options {
            probes: vec![probe::BRANCHES],
            counters: (*mode).into(),
            placement: args.placement.into(),
            selection: args.select.selection(),
            ..Options::default()
        };
        if platform.has_tool() {
            runs.push(ModeRun { mode: name, executable: None, at_load: Some((options, place)) });
            continue;
        }
        let executable = place.join(app.path.file_name().unwrap_or("app".as_ref()));
        let selected = rewrite_to(&original, &app.path, &executable, &options)
            .map_err(|error| launch::explain(&app, &original, error))?;
        if let Some(nothing) = nothing_selected(&original, &options, selected) {
            eprintln!("wavetap: {}: {nothing}", app.path.display());
            return Ok(ExitCode::from(DIFFERENT));
        }
        runs.push(ModeRun { mode: name, executable: Some(executable), at_load: None });
    }

    let modelled = launch::Modelled { latencies: &args.timing.latency, samples: false, interval: None };
    let (mut ended, mut lacks_something, mut found) = (Vec::new(), false, false);
    for ModeRun { mode, executable, at_load } in runs {
        let written = folder.path().join(format!("{mode}.stdout"));
        let stdout = File::create(&written).map_err(|error| files::io(&written, "cannot write", &error))?;
        let is_original = executable.is_none() && at_load.is_none();
        let at_load = at_load.as_ref().map(|(options, originals)| launch::AtLoad { options, originals });
        let run = launch::Run {
            platform,
            app: &app,
            executable: executable.as_deref(),
            backend: &args.backend,
            target,
            counters: !is_original,
            trace: !platform.has_tool(),
            launches: false,
            timing: args.timing.wanted().then_some(modelled),
            at_load,
            stdout: Some(stdout),
        };
        let run = run.execute()?;
        run.say();
        if is_original {
            output::stdout(&files::read(&written)?)?;
        }
        // A run that went on after findings has said so.
        found |= run.found;
        lacks_something |= run.lacks_something();
        let (profile, trace, time) = (run.counters()?, run.trace()?, run.time());
        if platform.has_tool() && !is_original && profile.is_none() {
            eprintln!("wavetap: {mode}: {}", platform.nothing_collected());
        }
        ended.push(Ended { mode, code: run.code, output: written, profile, trace, time });
    }
    let compare = put_together(backend, &ended)?;
    output::emit(&args.report, colour, &compare, |compare, style| compare.render(style))?;
    output::say_refused(&compare.refused, &args.report);
    Ok(if compare.problems.is_empty() && !lacks_something && !found {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(DIFFERENT)
    })
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
