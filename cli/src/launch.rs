//! Running the application: as itself, with the libraries that have the emulator run its kernels, or that count on a
//! GPU.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use tempfile::TempDir;
use wavetap::collect::config::{self, Collected, RunConfig};
use wavetap::elf::constants::{DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB};
use wavetap::elf::{Elf, string_at};
use wavetap::emulator::LatencyOverride;
use wavetap::error::{Error, Kind, Result};
use wavetap::offload_bundle::has_no_device_code;
use wavetap::pipeline::Options;
use wavetap::profile::file::{Backend, Profile};
use wavetap::profile::journal;
use wavetap::report::RunInfo;

use crate::args::{AppArgs, BackendArgs, BackendChoice, StackChoice};
use crate::collected::Ended;
use crate::findings;
use crate::{files, hip_version, signals, stand_in, targets};

/// How a script begins.
const SCRIPT: &[u8] = b"#!";
/// The kernel driver's device: there is an AMD GPU where it exists.
const GPU_DEVICE: &str = "/dev/kfd";
/// A process that was ended by signal n has exit code 128 + n, as in a shell.
const SIGNAL_BASE: i32 = 128;

/// An application and its arguments.
#[derive(Debug)]
pub struct App {
    /// The file.
    pub path: PathBuf,
    name: OsString,
    arguments: Vec<OsString>,
}

impl App {
    /// Finds the application as a shell does: a name without a slash along `PATH`.
    pub fn find(args: &AppArgs) -> Result<App> {
        let (name, arguments) =
            args.command.split_first().ok_or_else(|| Error::new(Kind::Io, "no application was named"))?;
        let path = resolve(name)?;
        Ok(App { path, name: name.clone(), arguments: arguments.to_vec() })
    }
}

fn resolve(name: &OsStr) -> Result<PathBuf> {
    let runs = |path: &Path| path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    let direct = PathBuf::from(name);
    if direct.components().count() > 1 || direct.is_absolute() || name.as_encoded_bytes().contains(&b'/') {
        return match direct.metadata() {
            Err(error) => Err(files::io(&direct, "cannot run", &error)),
            Ok(_) if runs(&direct) => Ok(direct),
            Ok(_) => Err(Error::new(Kind::Io, format!("{}: is not an executable file", direct.display()))),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|candidate| runs(candidate));
    found.ok_or_else(|| {
        let hint = if runs(&direct) {
            format!(" (a file of this name is in this folder: write ./{})", direct.display())
        } else {
            String::new()
        };
        Error::new(Kind::Io, format!("{}: no such command on the PATH{hint}", direct.display()))
    })
}

impl BackendArgs {
    /// Whether the strict mode is on.
    pub fn is_strict(&self) -> bool {
        self.strict || self.strict_continue || self.suppressions.is_some()
    }
}

/// What runs the kernels, under which libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// The emulator, under its own HIP runtime.
    EmulatorHip,
    /// The emulator, under the real ROCm libraries.
    EmulatorRocm,
    /// The GPU.
    Gpu,
}

impl Platform {
    /// What runs the kernels.
    pub fn backend(self) -> Backend {
        match self {
            Platform::EmulatorHip | Platform::EmulatorRocm => Backend::Emulator,
            Platform::Gpu => Backend::Gpu,
        }
    }

    /// Whether the HSA tool counts: code is rewritten when it is loaded, and never before.
    pub fn has_tool(self) -> bool {
        self != Platform::EmulatorHip
    }

    /// The error of asking for what it does not have.
    pub fn lacks(self, what: &str) -> Error {
        let (place, instead) = match self {
            Platform::Gpu => ("on a GPU", "--backend emulator"),
            Platform::EmulatorRocm => ("with --stack rocm", "--stack hip"),
            Platform::EmulatorHip => ("with --stack hip", "--stack rocm"),
        };
        Error::unsupported(format!("{what}: not available {place}; use {instead}"))
    }

    /// Why there is nothing where no process has left anything.
    pub fn nothing_collected(self) -> &'static str {
        match self {
            Platform::EmulatorHip => "the application never used the HIP runtime",
            Platform::EmulatorRocm | Platform::Gpu => {
                "the HSA tool was loaded into no process: the application did not initialise ROCm's HSA runtime, or \
                    that loads no tools"
            }
        }
    }
}

/// Decides what runs the kernels. Says so on stderr where it is a GPU that was not asked for.
pub fn choose(args: &BackendArgs) -> Result<Platform> {
    let (platform, remark) = decide(args.backend, args.stack, Path::new(GPU_DEVICE).exists())?;
    if let Some(remark) = remark {
        eprintln!("wavetap: {remark}");
    }
    Ok(platform)
}

/// What runs the kernels on a machine with or without an AMD GPU, and what has to be said of it.
fn decide(choice: BackendChoice, stack: Option<StackChoice>, gpu: bool) -> Result<(Platform, Option<&'static str>)> {
    /// The emulator is what all is tested with.
    const USED: &str = "running on this machine's GPU, on which this version was not tested (--backend emulator: the \
                        built-in emulator)";
    let emulated = match stack {
        None | Some(StackChoice::Hip) => Platform::EmulatorHip,
        Some(StackChoice::Rocm) => Platform::EmulatorRocm,
    };
    match (choice, stack) {
        (BackendChoice::Auto, None) if gpu => Ok((Platform::Gpu, Some(USED))),
        (BackendChoice::Auto | BackendChoice::Emulator, _) => Ok((emulated, None)),
        (BackendChoice::Gpu, Some(_)) => {
            Err(Error::unsupported("--stack chooses libraries for the emulator; --backend gpu has the machine's own"))
        }
        (BackendChoice::Gpu, None) if gpu => Ok((Platform::Gpu, None)),
        (BackendChoice::Gpu, None) => {
            let message = format!("there is no AMD GPU here (no {GPU_DEVICE}): use --backend emulator");
            Err(Error::unsupported(message))
        }
    }
}

/// What the emulator is to model of time.
#[derive(Debug, Clone, Copy)]
pub struct Modelled<'a> {
    /// Other latencies.
    pub latencies: &'a [LatencyOverride],
    /// Whether stall samples are taken.
    pub samples: bool,
    /// Modelled cycles between samples.
    pub interval: Option<u32>,
}

/// How code that an application loads is made to count, by the stand-in: what is not in the executable itself, or is
/// and was not rewritten.
#[derive(Debug, Clone, Copy)]
pub struct AtLoad<'a> {
    /// As the executable is rewritten.
    pub options: &'a Options,
    /// The folder where the originals of such code are kept, for the report.
    pub originals: &'a Path,
}

impl AtLoad<'_> {
    /// The same for the configuration of the run.
    fn config(&self) -> config::AtLoad {
        let Options { probes, counters, placement, selection, max_occupancy_loss, single_waves, .. } = self.options;
        config::AtLoad {
            probes: probes.iter().map(|probe| probe.name().to_owned()).collect(),
            single_waves: *single_waves,
            counters: counters.name().to_owned(),
            placement: Some(placement.name().to_owned()),
            kernels: selection.kernels.clone(),
            max_occupancy_loss: *max_occupancy_loss,
            originals: Some(self.originals.to_owned()),
        }
    }
}

/// One run of an application.
#[derive(Debug)]
pub struct Run<'a> {
    /// What runs its kernels.
    pub platform: Platform,
    /// The application.
    pub app: &'a App,
    /// Executed instead of the application's own file.
    pub executable: Option<&'a Path>,
    /// The emulator's options.
    pub backend: &'a BackendArgs,
    /// Which target's code.
    pub target: Option<&'a str>,
    /// Whether what instrumented kernels count is collected.
    pub counters: bool,
    /// Whether the emulator's trace is.
    pub trace: bool,
    /// Whether what is launched is, of kernels that do not count.
    pub launches: bool,
    /// What is modelled of time.
    pub timing: Option<Modelled<'a>>,
    /// How code that it loads is made to count, if it is.
    pub at_load: Option<AtLoad<'a>>,
    /// Where stdout goes; inherited if none. The application's stdin is then empty.
    pub stdout: Option<File>,
}

impl Run<'_> {
    /// Runs it to its end.
    pub fn execute(self) -> Result<Ended> {
        let folder = scratch()?;
        let journals = scratch()?;
        let file = self.executable.unwrap_or(&self.app.path);
        let mut command = Command::new(file);
        command.arg0(&self.app.name).args(&self.app.arguments);
        self.check()?;
        match self.platform {
            Platform::EmulatorHip => self.put_hip_before(&mut command, folder.path())?,
            Platform::EmulatorRocm => {
                self.warn_of_version();
                put_driver_before(&mut command, folder.path())?;
            }
            Platform::Gpu => {}
        }
        if self.platform.has_tool() && (self.counters || self.launches) {
            add_tool(&mut command)?;
        }
        let findings = folder.path().join("findings");
        let suppressions = findings::suppressions(self.backend.suppressions.as_deref())?;
        let config = folder.path().join("run.json");
        let contents = self.config(journals.path(), &findings, suppressions.as_deref()).to_json()?;
        std::fs::write(&config, contents).map_err(|error| files::io(&config, "cannot write", &error))?;
        // A variable of the caller must not reach the run unasked.
        for name in RunConfig::VARIABLES {
            command.env_remove(name);
        }
        command.env(config::VARIABLE, &config);
        if let Some(stdout) = self.stdout {
            command.stdout(stdout).stdin(Stdio::null());
        }
        let status = signals::run(&mut command).map_err(|error| files::io(&self.app.path, "cannot run", &error))?;
        let status = status.map_err(|error| files::io(&self.app.path, "cannot wait for it", &error))?;
        let found = findings::report(&findings)?;
        let mut ended = Ended::read(journals, exit_code(status), status.signal())?;
        ended.found = found;
        Ok(ended)
    }

    /// Has the application load the emulator's HIP runtime.
    fn put_hip_before(&self, command: &mut Command, folder: &Path) -> Result<()> {
        let stand_in = stand_in::HIP_RUNTIME.find()?;
        stand_in::make_folder(folder, &stand_in)?;
        let search = Search::of(&self.app.path);
        command.env("LD_LIBRARY_PATH", stand_in::search_path("LD_LIBRARY_PATH", folder, &search.folders)?);
        if search.before_environment {
            command.env("LD_PRELOAD", stand_in::search_path("LD_PRELOAD", &stand_in, &[])?);
        }
        Ok(())
    }

    /// Says of code that the installed HIP does not load why its launches will fail.
    fn warn_of_version(&self) {
        let present = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&present).chain(Search::of(&self.app.path).folders).collect();
        let data = files::read(&self.app.path).unwrap_or_default();
        if let Some(warning) = hip_version::warning(&data, &folders) {
            eprintln!("wavetap: {warning}");
        }
    }

    /// Refuses what the platform does not have.
    fn check(&self) -> Result<()> {
        let BackendArgs { strict_continue, suppressions, per_wave, fuel, threads, gpus, .. } = self.backend;
        let no_emulator = self.platform == Platform::Gpu;
        let refused = [
            ("the emulator's trace", self.trace, Platform::has_tool(self.platform)),
            ("--timing and --samples", self.timing.is_some(), Platform::has_tool(self.platform)),
            ("--per-wave", *per_wave, Platform::has_tool(self.platform)),
            ("--strict-continue", *strict_continue, Platform::has_tool(self.platform)),
            ("--suppressions", suppressions.is_some(), Platform::has_tool(self.platform)),
            ("--gpus", gpus.is_some(), self.platform != Platform::EmulatorRocm),
            ("--strict", self.backend.is_strict(), no_emulator),
            ("--fuel", fuel.is_some(), no_emulator),
            ("--threads", threads.is_some(), no_emulator),
            ("--target", self.target.is_some(), no_emulator),
        ];
        let Some((what, ..)) = refused.iter().find(|(_, wanted, lacks)| *wanted && *lacks) else { return Ok(()) };
        Err(self.platform.lacks(what))
    }

    /// The GPU that is asked for. The HIP runtime of the emulator chooses by itself where none is; a driver has to know
    /// before anything is loaded.
    fn device(&self) -> Option<String> {
        match (self.target, self.platform) {
            (Some(target), _) => Some(target.to_owned()),
            (None, Platform::EmulatorHip | Platform::Gpu) => None,
            // What cannot be read here cannot be run, either.
            (None, Platform::EmulatorRocm) => {
                Some(targets::for_program(&files::read(&self.app.path).unwrap_or_default()))
            }
        }
    }

    /// What the stand-in is to do.
    fn config(&self, journals: &Path, findings: &Path, suppressions: Option<&Path>) -> RunConfig {
        let BackendArgs {
            strict_continue,
            seed,
            fuel,
            threads,
            records,
            per_wave,
            gpus,
            workgroups,
            dispatches,
            memory_limit,
            ..
        } = self.backend;
        let timing = self.timing.as_ref();
        let collect = Collected {
            counters: self.counters,
            trace: self.trace,
            launches: self.launches,
            time: timing.is_some(),
            samples: timing.is_some_and(|timing| timing.samples),
        };
        RunConfig {
            target: self.device(),
            gpus: *gpus,
            emulated_driver: self.platform == Platform::EmulatorRocm,
            journal: (collect != Collected::default()).then(|| journals.to_owned()),
            collect,
            at_load: self.at_load.map(|at_load| at_load.config()),
            strict: self.backend.is_strict(),
            strict_continue: *strict_continue,
            suppressions: suppressions.map(Path::to_owned),
            findings: Some(findings.to_owned()),
            seed: *seed,
            fuel: *fuel,
            threads: threads.unwrap_or_default() as usize,
            records: *records,
            per_wave: *per_wave,
            workgroups: workgroups.map(|sample| sample.to_string()),
            dispatches: *dispatches,
            memory_limit: memory_limit.map(|mebibytes| mebibytes << 20),
            latencies: timing
                .map_or_else(Vec::new, |timing| timing.latencies.iter().map(ToString::to_string).collect()),
            sample_interval: timing.and_then(|timing| timing.interval),
            ..RunConfig::default()
        }
    }
}

/// Has the application's ROCm use the emulated kernel driver.
fn put_driver_before(command: &mut Command, folder: &Path) -> Result<()> {
    command.env("LD_PRELOAD", stand_in::search_path("LD_PRELOAD", &stand_in::KERNEL_DRIVER.find()?, &[])?);
    // What the driver writes goes with the folder, however the application ends.
    command.env("WAVETAP_TOPOLOGY", folder);
    Ok(())
}

/// Has the application's ROCm load the HSA tool, before other tools.
fn add_tool(command: &mut Command) -> Result<()> {
    /// Tools that the runtime loads, separated by spaces.
    const TOOLS: &str = "HSA_TOOLS_LIB";
    /// Where profilers register themselves, the runtime loads no tools; with the last of these variables it does.
    const PROFILERS: [&str; 2] = ["ROCP_TOOL_LIBRARIES", "ROCPROFILER_REGISTER_LIBRARY"];
    const BOTH: &str = "HSA_TOOLS_ROCPROFILER_V1_TOOLS";
    let tool = stand_in::HSA_TOOL.find()?;
    let mut tools = quoted(&tool)?;
    if let Some(others) = std::env::var_os(TOOLS).filter(|others| !others.is_empty()) {
        tools.push(" ");
        tools.push(others);
    }
    command.env(TOOLS, tools);
    // A tool that cannot be loaded is mentioned.
    command.env("HSA_TOOLS_REPORT_LOAD_FAILURE", "1");
    if let Some(profiler) = PROFILERS.iter().find(|name| std::env::var_os(name).is_some()) {
        eprintln!("wavetap: {profiler} is set: {BOTH}=1 has the runtime load the HSA tool, too");
        command.env(BOTH, "1");
    }
    Ok(())
}

/// A path in a list of tools: with spaces it stands between quotation marks.
fn quoted(path: &Path) -> Result<OsString> {
    let text = path.as_os_str().to_string_lossy();
    if text.contains(['"', '\\']) {
        let message = "has a quotation mark or a backslash in its path: the HSA runtime finds no tool there";
        return Err(Error::new(Kind::Io, format!("{}: {message}", path.display())));
    }
    if !text.contains(' ') {
        return Ok(path.as_os_str().to_owned());
    }
    Ok(format!("\"{text}\"").into())
}

/// A folder for what lives as long as a run.
pub fn scratch() -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix("wavetap-")
        .tempdir()
        .inspect(|folder| signals::remove_at_end(folder.path()))
        .map_err(|error| Error::new(Kind::Io, format!("cannot make a temporary folder: {error}")))
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

/// Reads a profile, or the journal that a process has left whose counts nothing has added up.
pub fn read_profile(path: &Path) -> Result<Profile> {
    use wavetap::error::ResultExt;
    let data = files::read(path)?;
    journal::read_profile(&data).within(|| path.display().to_string())
}

/// What a report says about a run.
pub fn info(backend: &BackendArgs, platform: Platform, ended: &Ended) -> RunInfo {
    let is_emulated = platform.backend() == Backend::Emulator;
    RunInfo {
        strict: is_emulated.then_some(backend.is_strict()),
        seed: is_emulated.then_some(backend.seed),
        exit_code: Some(ended.code),
        signal: ended.signal_name(),
    }
}

/// Whether a file starts or loads what has device code, and has none itself: a script, an interpreter.
pub fn has_no_code_of_its_own(data: &[u8]) -> bool {
    data.starts_with(SCRIPT) || has_no_device_code(data)
}

/// The error of rewriting an application that may be something that starts another one.
pub fn explain(app: &App, data: &[u8], error: Error) -> Error {
    let path = app.path.display();
    let message = if data.starts_with(SCRIPT) {
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

fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| SIGNAL_BASE + signal)).unwrap_or(SIGNAL_BASE)
}

/// Where an executable makes the loader look for libraries.
#[derive(Debug, Default)]
struct Search {
    /// Its folders. They are given to the loader explicitly: `$ORIGIN` means the folder of the original, not of a
    /// rewritten copy.
    folders: Vec<PathBuf>,
    /// Whether they come before `LD_LIBRARY_PATH` (`DT_RPATH`), so that a real HIP runtime there would be found first.
    before_environment: bool,
}

impl Search {
    fn of(path: &Path) -> Search {
        let bytes = files::read(path).unwrap_or_default();
        // What is no ELF file (a script) has no such folders.
        Self::read(path, &bytes).unwrap_or_default()
    }

    fn read(path: &Path, bytes: &[u8]) -> Result<Search> {
        let elf = Elf::parse(bytes)?;
        let (run_path, rpath) = (elf.dynamic_value(DT_RUNPATH)?, elf.dynamic_value(DT_RPATH)?);
        let (Some(place), Some(table), Some(size)) =
            (run_path.or(rpath), elf.dynamic_value(DT_STRTAB)?, elf.dynamic_value(DT_STRSZ)?)
        else {
            return Ok(Search::default());
        };
        let text = string_at(elf.bytes_at(table, size)?, place)?;
        let origin = path
            .canonicalize()
            .ok()
            .and_then(|path| Some(path.parent()?.to_string_lossy().into_owned()))
            .unwrap_or_default();
        let folders = text
            .split(':')
            .filter(|f| !f.is_empty())
            .map(|f| f.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin).into())
            .collect();
        Ok(Search { folders, before_environment: run_path.is_none() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_run_on_the_gpu_where_there_is_one_and_nothing_else_was_asked_for() {
        let decide =
            |choice, stack, gpu| decide(choice, stack, gpu).map(|(platform, remark)| (platform, remark.is_some()));
        for gpu in [false, true] {
            let without = if gpu { (Platform::Gpu, true) } else { (Platform::EmulatorHip, false) };
            assert_eq!(decide(BackendChoice::Auto, None, gpu).unwrap(), without);
            assert_eq!(decide(BackendChoice::Emulator, None, gpu).unwrap(), (Platform::EmulatorHip, false));
            for choice in [BackendChoice::Auto, BackendChoice::Emulator] {
                let rocm = decide(choice, Some(StackChoice::Rocm), gpu).unwrap();
                assert_eq!(rocm, (Platform::EmulatorRocm, false));
                let hip = decide(choice, Some(StackChoice::Hip), gpu).unwrap();
                assert_eq!(hip, (Platform::EmulatorHip, false));
            }
            let error = decide(BackendChoice::Gpu, Some(StackChoice::Rocm), gpu).unwrap_err();
            assert!(error.to_string().contains("--stack"), "{error}");
        }
        assert_eq!(decide(BackendChoice::Gpu, None, true).unwrap(), (Platform::Gpu, false));
        let error = decide(BackendChoice::Gpu, None, false).unwrap_err().to_string();
        assert!(error.contains("--backend emulator") && error.contains("/dev/kfd"), "{error}");
    }

    #[test]
    fn a_tool_with_a_space_in_its_path_is_one() {
        let of = |path| quoted(Path::new(path)).map(|path| path.into_string().unwrap());
        assert_eq!(of("/lib/tool.so").unwrap(), "/lib/tool.so");
        assert_eq!(of("/my lib/tool.so").unwrap(), "\"/my lib/tool.so\"");
        assert!(of("/a\"b/tool.so").unwrap_err().to_string().contains("quotation mark"));
    }

    #[test]
    fn exit_codes_are_a_shells() {
        assert_eq!(exit_code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(exit_code(ExitStatus::from_raw(11)), 139, "ended by signal 11");
    }

    #[test]
    fn applications_are_found_as_a_shell_finds_them() {
        assert!(resolve("sh".as_ref()).unwrap().is_absolute());
        assert_eq!(resolve("/bin/sh".as_ref()).unwrap(), Path::new("/bin/sh"));
        for missing in ["no-such-command-anywhere", "./no-such-file", "/", "/etc/passwd"] {
            assert!(resolve(missing.as_ref()).unwrap_err().to_string().starts_with(missing), "{missing}");
        }
    }

    #[test]
    fn this_executable_has_no_search_path_before_the_environments() {
        let executable = std::env::current_exe().unwrap();
        let search = Search::of(&executable);
        assert!(!search.before_environment);
        assert!(Search::of(Path::new("/etc/passwd")).folders.is_empty(), "a file that is no ELF file has none");
    }
}
