//! `wavetap compare`: the ways of counting side by side.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use wavetap::error::{Error, Result};
use wavetap::pipeline::{Options, Probe};
use wavetap::profile::file::{Backend, Origin, Profile};
use wavetap::report::compare::{Compare, Run};

use super::profile::rewrite_to;
use crate::args::{ColorChoice, CompareArgs, CounterChoice};
use crate::{files, launch, map_file, output};

/// Exit code: the modes do not agree, or something was refused.
const DIFFERENT: u8 = 1;

/// Output is compared in pieces of this size: it may be larger than memory.
const PIECE: usize = 1 << 16;

/// One run that has ended.
struct Ended {
    mode: String,
    code: i32,
    output: PathBuf,
    profile: Option<Profile>,
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
        std::fs::create_dir(&place).map_err(|error| files::io(&place, "is a mode named twice? cannot make the folder", &error))?;
        let executable = place.join(app.path.file_name().unwrap_or("app".as_ref()));
        let options =
            Options { probes: vec![Probe::Branches], counters: (*mode).into(), selection: args.select.selection(), ..Options::default() };
        rewrite_to(&original, &app.path, &executable, &options)?;
        rewritten.push((name, Some(executable)));
    }

    let mut ended = Vec::new();
    for (mode, executable) in rewritten {
        let profile = folder.path().join(format!("{mode}.profile"));
        let written = folder.path().join(format!("{mode}.stdout"));
        let stdout = File::create(&written).map_err(|error| files::io(&written, "cannot write", &error))?;
        let run = launch::Run {
            app: &app,
            executable: executable.as_deref(),
            backend: &args.backend,
            target,
            profile: executable.is_some().then_some(&profile),
            trace: executable.is_none().then_some(&profile),
            timing: None,
            stdout: Some(stdout),
        };
        let code = run.execute()?;
        if executable.is_none() {
            output::stdout(&files::read(&written)?)?;
        }
        ended.push(Ended { mode, code, output: written, profile: launch::collected(&profile)? });
    }
    let compare = put_together(backend, &ended)?;
    output::emit(&args.report, colour, &compare, |compare, style| compare.render(style))?;
    output::say_refused(&compare.refused);
    // A run that went on after findings has said so.
    let found = args.backend.strict_continue && ended.iter().any(|run| run.code != 0);
    let good = compare.same_counts && compare.same_exit && compare.refused.is_empty() && !found;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
}

fn put_together(backend: Backend, ended: &[Ended]) -> Result<Compare> {
    let (original, modes) = ended.split_first().ok_or_else(|| Error::internal("nothing was run"))?;
    let nothing = Profile::new(Origin::Counters, backend);
    let runs = modes
        .iter()
        .map(|run| {
            Ok(Run {
                mode: &run.mode,
                profile: run.profile.as_ref().unwrap_or(&nothing),
                same_output: same_bytes(&original.output, &run.output)?,
                same_exit: original.code == run.code,
            })
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Compare::new(backend, original.profile.as_ref(), &runs))
}

fn mode_name(mode: CounterChoice) -> String {
    mode.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

fn same_bytes(a: &Path, b: &Path) -> Result<bool> {
    let open = |path: &Path| File::open(path).map_err(|error| files::io(path, "cannot read", &error));
    let (mut a, mut b) = (open(a)?, open(b)?);
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    loop {
        of_a.clear();
        of_b.clear();
        a.by_ref().take(PIECE as u64).read_to_end(&mut of_a)?;
        b.by_ref().take(PIECE as u64).read_to_end(&mut of_b)?;
        if of_a != of_b {
            return Ok(false);
        }
        if of_a.is_empty() {
            return Ok(true);
        }
    }
}
