//! Running an application for the command: its arguments as the library's options, what is said on stderr.

use std::path::Path;
use std::process::{Child, Command};

use wavetap::error::{Error, Kind, Result, ResultExt};
use wavetap::pipeline::check_runs_on;
use wavetap::profile::file::Profile;
use wavetap::run::{
    App, BackendChoice, Finished, Observer, OutputName, Platform, RunOptions, Stack, TimingOptions, is_script,
};
use wavetap::stderr_line;
use wavetap::{Program, Selection};

use crate::args::{self, AppArgs, BackendArgs, BoardArgs, StackChoice, TimingArgs};
use crate::{map_file, signals};

/// The application that is named.
pub fn find(args: &AppArgs) -> Result<App> {
    let name = args.command.first().ok_or_else(|| Error::new(Kind::Io, "no application was named"))?;
    App::find(name)
}

/// Passes signals on to the application, and says on stderr what a person has to know.
pub struct Terminal;

impl Observer for Terminal {
    fn start(&self, command: &mut Command) -> std::io::Result<Child> {
        signals::start(command)
    }

    fn ended(&self) {
        signals::ended();
    }

    fn warn(&self, warning: &str) {
        stderr_line!("wavetap: {warning}");
    }
}

/// What runs the kernels, and the application's arguments. Says so on stderr where it is a GPU that was not asked for.
pub fn platform(
    backend: args::BackendChoice,
    stack: Option<StackChoice>,
    app: &AppArgs,
) -> Result<(Platform, RunOptions)> {
    let mut options = RunOptions::new().args(app.command.iter().skip(1));
    options.backend = match backend {
        args::BackendChoice::Auto => BackendChoice::Auto,
        args::BackendChoice::Gpu => BackendChoice::Gpu,
        args::BackendChoice::Emulator => BackendChoice::Emulator,
    };
    options.stack = stack.map(|stack| match stack {
        StackChoice::Hip => Stack::Hip,
        StackChoice::Rocm => Stack::Rocm,
    });
    let mut platform = options.platform()?;
    if platform == Platform::EmulatorHip
        && stack.is_none()
        && let Some(library) = find(app).ok().and_then(|app| app.library_of_rocm())
    {
        options.stack = Some(Stack::Rocm);
        platform = options.platform()?;
        stderr_line!("wavetap: the application is linked with {library}, not with HIP: running it with --stack rocm");
    }
    if let Some(remark) = platform.remark(options.backend) {
        stderr_line!("wavetap: {remark}");
        // That it is said once.
        options.backend = BackendChoice::Gpu;
    }
    Ok((platform, options))
}

/// What the flags say of runs, and what runs the kernels.
pub fn options(args: &BackendArgs, app: &AppArgs, target: Option<&str>) -> Result<(Platform, RunOptions)> {
    let (platform, mut options) = self::platform(args.backend, args.stack, app)?;
    options.target = target.map(str::to_owned);
    options.gpus = args.gpus;
    options.strict = args.strict;
    options.strict_continue = args.strict_continue;
    options.suppressions.clone_from(&args.suppressions);
    options.seed = args.seed;
    options.fuel = args.fuel;
    options.threads = args.threads;
    options.per_wave = args.per_wave;
    options.records = args.records;
    options.workgroups = args.workgroups;
    options.dispatches = args.dispatches;
    options.regions.clone_from(&args.region);
    options.selected_regions = args.selected_regions;
    options.graph_nodes = args.graph_nodes;
    options.memory_limit = args.memory_limit.map(|mebibytes| mebibytes << 20);
    Ok((platform, options))
}

/// Refuses a target for which the application's file has no code, where it has code for others.
pub fn check_target(app: &App, target: Option<&str>, board: &BoardArgs) -> Result<()> {
    let Some(target) = target else { return Ok(()) };
    let program = Program::new(app.clone(), map_file::open(app.path())?);
    if !program.has_own_code() {
        return Ok(());
    }
    let by_board = board.board.map(|board| format!("--board {}: ", board.name)).unwrap_or_default();
    check_runs_on(program.bytes(), target).within(|| format!("{by_board}{}", program.path().display()))
}

/// Refuses patterns of kernels that match none of the application's own and none that a run to its end dispatched.
pub fn check_selected(selection: &Selection, program: &Program, ended: &Finished, profile: &Profile) -> Result<()> {
    if selection.kernels.is_empty() || ended.exit_code() != 0 {
        return Ok(());
    }
    // What cannot be read has no names that could be meant.
    let own = if program.has_own_code() { program.kernels().unwrap_or_default() } else { Vec::new() };
    let dispatched = profile.kernels.iter().map(|kernel| kernel.name.as_str());
    let names: Vec<&str> = own
        .iter()
        .map(|kernel| kernel.name.as_str())
        .chain(dispatched)
        .chain(profile.uncounted.iter().map(|kernel| kernel.name.as_str()))
        .chain(profile.refused.iter().map(|kernel| kernel.name.as_str()))
        .collect();
    selection.check_kernels(&names).within(|| program.path().display().to_string())
}

/// The model of time as the flags have it.
pub fn timing(args: &TimingArgs) -> TimingOptions {
    let mut options = TimingOptions::with_latencies(&args.latency);
    options.workgroups = args.timed_workgroups.unwrap_or_default();
    options
}

/// Says on stderr what strict mode went on after.
pub fn say_findings(finished: &Finished) {
    finished.findings().iter().for_each(|line| stderr_line!("wavetap: {line}"));
}

/// Says on stderr what a person would not expect of a run, and which of its outputs have no rank.
pub fn say<'n>(finished: &Finished, outputs: impl IntoIterator<Item = &'n OutputName>) {
    // What was said before a run that fails may be why.
    let before = finished.warnings().iter().filter(|_| finished.exit_code() != 0).cloned();
    let remarks = finished.remarks().into_iter().chain(finished.unranked(outputs)).chain(before);
    remarks.for_each(|remark| stderr_line!("wavetap: {remark}"));
}

/// The profile of counts, and that of recorded accesses if it is another one.
pub fn counted_and_recorded(profiles: &[Profile]) -> Result<(Option<&Profile>, Option<&Profile>)> {
    let (recorded, counted): (Vec<&Profile>, Vec<&Profile>) =
        profiles.iter().partition(|profile| !profile.accesses.is_empty());
    match (&recorded[..], &counted[..]) {
        ([], []) => Ok((None, None)),
        ([one], []) | ([], [one]) => Ok((Some(one), None)),
        ([recorded], [counted]) => Ok((Some(counted), Some(recorded))),
        _ => Err(Error::unsupported(format!(
            "--counters: {} with recorded accesses and {} without, at most one of each is taken (`wavetap merge` adds \
                profiles)",
            recorded.len(),
            counted.len()
        ))),
    }
}

/// The error of rewriting an application that may be something that starts another one.
pub fn explain(path: &Path, data: &[u8], error: Error) -> Error {
    let path = path.display();
    let message = if is_script(data) {
        format!(
            "{path}: a script, and only programs and libraries have code to be rewritten: `wavetap profile` counts \
                what it starts and what that loads"
        )
    } else if error.kind() == Kind::Unsupported {
        format!("{error}; if it loads code (as an interpreter does), `wavetap profile` counts that")
    } else {
        return error;
    };
    Error::new(error.kind(), message)
}
