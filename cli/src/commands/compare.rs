//! `wavetap compare`: the ways of counting side by side.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use wavetap::error::{Error, Result};
use wavetap::pipeline::{Options, ProbeKind};
use wavetap::profile::file::{Backend, Origin, Profile};
use wavetap::profile::time::TimeProfile;
use wavetap::report::compare::{Compare, Run};

use super::profile::{nothing_selected, rewrite_to};
use crate::args::{ColorChoice, CompareArgs, CounterChoice};
use crate::{differences, files, launch, map_file, output};

/// Exit code: the modes do not agree, something was refused, or there was nothing to compare.
const DIFFERENT: u8 = 1;

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
    let backend = launch::choose(args.backend.backend)?;
    output::check(&args.report)?;
    let app = launch::App::find(&args.app)?;
    let original = map_file::open(&app.path)?;
    let folder = launch::scratch()?;
    let target = args.select.target.first().map(String::as_str);

    // All rewrites first: what cannot be rewritten need not be run.
    let mut rewritten: Vec<(String, Option<PathBuf>)> = vec![("original".to_owned(), None)];
    for mode in &args.modes {
        let name = mode_name(*mode);
        let place = folder.path().join(&name);
        std::fs::create_dir(&place)
            .map_err(|error| files::io(&place, "is a mode named twice? cannot make the folder", &error))?;
        let executable = place.join(app.path.file_name().unwrap_or("app".as_ref()));
        let options = Options {
            probes: vec![ProbeKind::Branches],
            counters: (*mode).into(),
            placement: args.placement.into(),
            selection: args.select.selection(),
            ..Options::default()
        };
        let selected = rewrite_to(&original, &app.path, &executable, &options)
            .map_err(|error| launch::explain(&app, &original, error))?;
        if let Some(nothing) = nothing_selected(&original, &options, selected) {
            eprintln!("wavetap: {}: {nothing}", app.path.display());
            return Ok(ExitCode::from(DIFFERENT));
        }
        rewritten.push((name, Some(executable)));
    }

    let modelled = launch::Modelled { latencies: &args.timing.latency, samples: false, interval: None };
    let (mut ended, mut lacks_something, mut found) = (Vec::new(), false, false);
    for (mode, executable) in rewritten {
        let written = folder.path().join(format!("{mode}.stdout"));
        let stdout = File::create(&written).map_err(|error| files::io(&written, "cannot write", &error))?;
        let run = launch::Run {
            app: &app,
            executable: executable.as_deref(),
            backend: &args.backend,
            target,
            counters: executable.is_some(),
            trace: true,
            timing: args.timing.wanted().then_some(modelled),
            at_load: None,
            stdout: Some(stdout),
        };
        let run = run.execute()?;
        run.say();
        if executable.is_none() {
            output::stdout(&files::read(&written)?)?;
        }
        // A run that went on after findings has said so.
        found |= run.found;
        lacks_something |= run.lacks_something();
        let (profile, trace, time) = (run.counters()?, run.trace()?, run.time());
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
