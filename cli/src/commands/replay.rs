//! `wavetap replay`: a captured dispatch once more.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use wavetap::Program;
use wavetap::capture::outcome::Outcome;
use wavetap::capture::{CaptureFile, Header};
use wavetap::code_object::CodeObject;
use wavetap::error::{Error, Result, ResultExt};
use wavetap::pipeline;
use wavetap::profile::time::TimeProfile;
use wavetap::report::replay::{self, ReplayReport};
use wavetap::run::{App, Collect, Launch};
use wavetap::stderr_line;

use super::profile;
use super::run::{check_nothing_collected, launch_code};
use crate::args::{AppArgs, BackendChoice, LookArgs, ReplayArgs, ReplayHereArgs, StackChoice};
use crate::{files, launch, map_file, output, runtime};

/// Exit codes: the memory differs; what was given is no capture, or cannot be run.
const DIFFERENT: u8 = 1;
const BAD_INPUT: u8 = 2;

/// Runs the dispatch; exit code 1 if it leaves other memory than the captured one.
pub fn run(args: &ReplayArgs, look: LookArgs) -> Result<ExitCode> {
    let elsewhere = args.backend.backend == BackendChoice::Gpu || args.backend.stack == Some(StackChoice::Rocm);
    if elsewhere || args.backend.gpus.is_some() {
        return Err(Error::unsupported("a capture is replayed on the built-in emulator with its own HIP runtime"));
    }
    output::check(&args.report)?;
    if let Some(name) = &args.trace {
        files::may_write(&name.expected(), args.report.force)?;
        files::not_the_same(&args.capture, &name.expected())?;
    }
    let limit = args.max_memory << 20;
    let mut file = CaptureFile::open(&args.capture, limit)?;
    let header = file.header().clone();
    let folder = wavetap::files::temporary_folder()?;
    let code = args.code.as_deref().map(|code| other_code(code, args, &header, folder.path())).transpose()?;
    let target = match &code {
        Some((_, target)) => target.clone(),
        None => device_of(&file.code().within(|| args.capture.display().to_string())?)?,
    };
    let outcome = folder.path().join("outcome");
    let exe = std::env::current_exe().map_err(|error| files::io(Path::new("/proc/self/exe"), "cannot find", &error))?;
    let mut application: Vec<OsString> = vec![exe.into(), "replay-here".into(), args.capture.clone().into()];
    application.extend([outcome.clone().into(), limit.to_string().into()]);
    application.extend(code.iter().map(|(path, _)| OsString::from(path)));
    let (code, time) = if args.probe.is_empty() {
        alone(args, application, &target)?
    } else {
        let profiled = args.profile(application, &header.kernel, &target);
        (profile::run(&profiled, look)?, None)
    };
    let found = std::fs::read(&outcome).ok().map(|json| serde_json::from_slice::<Outcome>(&json));
    let Some(outcome) = found.transpose().map_err(|error| Error::internal(error.to_string()))? else {
        // What is wrong was said by the process that ran it.
        return Ok(if code == ExitCode::SUCCESS { ExitCode::from(BAD_INPUT) } else { code });
    };
    let same = outcome.same;
    if args.probe.is_empty() {
        let report = ReplayReport { outcome, time };
        output::emit(&args.report, look, &report, replay::render)?;
    } else {
        replay::compared(&outcome).iter().for_each(|line| stderr_line!("wavetap: {line}"));
    }
    Ok(if same || code != ExitCode::SUCCESS { code } else { ExitCode::from(DIFFERENT) })
}

/// Runs it uninstrumented; the exit code, and what was modelled of time.
fn alone(args: &ReplayArgs, application: Vec<OsString>, target: &str) -> Result<(ExitCode, Option<TimeProfile>)> {
    check_nothing_collected(&args.backend, "without --probe nothing that kernels count is collected")?;
    let application = AppArgs { command: application };
    let (_, mut options) = launch::options(&args.backend, &application, Some(target))?;
    args.view.board.target(Some(target))?;
    options.board = args.view.board.board;
    options.collect = Collect::NOTHING;
    options.collect.trace = args.trace.is_some();
    options.timing = args.timing.wanted().then(|| launch::timing(&args.timing));
    let app: App = launch::find(&application)?;
    let ended = Launch { app: &app, executable: None, options: &options, at_load: None }.execute(&launch::Terminal)?;
    launch::say_findings(&ended);
    launch::say(&ended, &args.trace);
    if let Some(path) = &args.trace {
        ended.write_trace(path, args.report.force)?;
    }
    let code = if ended.exit_code() == 0 && ended.has_findings() { 1 } else { ended.exit_code() };
    Ok((launch_code(code), ended.time()))
}

/// The code object of another file that has the kernel, in a file of its own, and its target.
fn other_code(path: &Path, args: &ReplayArgs, header: &Header, folder: &Path) -> Result<(PathBuf, String)> {
    let contents = map_file::open(path)?;
    let program = Program::new(App::at(path), contents);
    let target = args.target.clone().unwrap_or_else(|| processor(&header.target).to_owned());
    let selection = pipeline::Selection { targets: vec![target.clone()], ..pipeline::Selection::default() };
    let mut found: Option<(Vec<u8>, String)> = None;
    program.each_object(&selection, |object| {
        let code = &object.code;
        if found.is_none() && code.kernels().iter().any(|kernel| kernel.name == header.kernel) {
            found = Some((code.data().to_vec(), device_of(code.data())?));
        }
        Ok(())
    })?;
    let (bytes, target) = found.ok_or_else(|| {
        Error::unsupported(format!("{}: no code for {target} has the kernel {}", path.display(), header.demangled))
    })?;
    let to = folder.join("code.co");
    std::fs::write(&to, bytes).map_err(|error| files::io(&to, "cannot write", &error))?;
    Ok((to, target))
}

/// The processor of a target id.
fn processor(target: &str) -> &str {
    target.split(':').next().unwrap_or(target)
}

/// The target id of the GPU that code runs on.
fn device_of(code: &[u8]) -> Result<String> {
    Ok(CodeObject::parse(code)?.target_id())
}

/// Replays in this process.
pub fn here(args: &ReplayHereArgs) -> Result<ExitCode> {
    let ReplayHereArgs { capture, outcome, memory_limit, code } = args;
    runtime::replay(capture, code.as_deref(), *memory_limit, outcome).map(ExitCode::from)
}
