//! Running the application: as itself, with the stand-in HIP runtime in front where the emulator runs its kernels.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::siginfo::Cause;
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
use crate::{files, stand_in, targets};

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

/// Decides what runs the kernels. Says so on stderr where the emulator does although there is an AMD GPU.
pub fn choose(choice: BackendChoice) -> Result<Backend> {
    let (backend, remark) = decide(choice, Path::new(GPU_DEVICE).exists())?;
    if let Some(remark) = remark {
        eprintln!("wavetap: {remark}");
    }
    Ok(backend)
}

/// What runs the kernels on a machine with or without an AMD GPU, and what a person who expects something else has to
/// be told.
fn decide(choice: BackendChoice, gpu: bool) -> Result<(Backend, Option<&'static str>)> {
    /// With `auto` a GPU is not used, and nobody should take the emulator's run for one of the GPU.
    const NOT_USED: &str = "this machine has an AMD GPU, and counts cannot be collected from one yet: \
                            running on the built-in emulator (--backend emulator says nothing)";
    match choice {
        BackendChoice::Emulator => Ok((Backend::Emulator, None)),
        BackendChoice::Auto => Ok((Backend::Emulator, gpu.then_some(NOT_USED))),
        BackendChoice::Gpu => {
            let found = if gpu { "there is a GPU" } else { "there is no GPU here (no /dev/kfd)" };
            let message = format!(
                "{found}, and collecting counts from one needs the HSA tool, which this version does not have yet: use \
                    --backend emulator"
            );
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

/// One run of an application on the emulator.
#[derive(Debug)]
pub struct Run<'a> {
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
        match self.backend.stack {
            StackChoice::Hip => self.put_hip_before(&mut command, folder.path())?,
            StackChoice::Rocm => self.put_driver_before(&mut command, folder.path())?,
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
        let child = command.spawn().map_err(|error| files::io(&self.app.path, "cannot run", &error))?;
        let status = wait(child).map_err(|error| files::io(&self.app.path, "cannot wait for it", &error))?;
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

    /// Has the application's ROCm use the emulated kernel driver.
    fn put_driver_before(&self, command: &mut Command, folder: &Path) -> Result<()> {
        if self.counters || self.trace || self.timing.is_some() || self.at_load.is_some() {
            return Err(Error::unsupported(
                "--stack rocm runs applications and collects nothing yet: counts need the HSA tool, which this version \
                    does not have. Use --stack hip",
            ));
        }
        if self.backend.strict_continue || self.backend.suppressions.is_some() {
            return Err(Error::unsupported("--stack rocm has no --strict-continue and no --suppressions"));
        }
        command.env("LD_PRELOAD", stand_in::search_path("LD_PRELOAD", &stand_in::KERNEL_DRIVER.find()?, &[])?);
        // What the driver writes goes with the folder, however the application ends.
        command.env("WAVETAP_TOPOLOGY", folder);
        Ok(())
    }

    /// The GPU that is asked for. The HIP runtime of the emulator chooses by itself where none is; a driver has to know
    /// before anything is loaded.
    fn device(&self) -> Option<String> {
        match (self.target, self.backend.stack) {
            (Some(target), _) => Some(target.to_owned()),
            (None, StackChoice::Hip) => None,
            // What cannot be read here cannot be run, either.
            (None, StackChoice::Rocm) => Some(targets::for_program(&files::read(&self.app.path).unwrap_or_default())),
        }
    }

    /// What the stand-in is to do.
    fn config(&self, journals: &Path, findings: &Path, suppressions: Option<&Path>) -> RunConfig {
        let BackendArgs { strict_continue, seed, fuel, threads, records, per_wave, .. } = self.backend;
        let timing = self.timing.as_ref();
        let collect = Collected {
            counters: self.counters,
            trace: self.trace,
            time: timing.is_some(),
            samples: timing.is_some_and(|timing| timing.samples),
        };
        RunConfig {
            target: self.device(),
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
            latencies: timing
                .map_or_else(Vec::new, |timing| timing.latencies.iter().map(ToString::to_string).collect()),
            sample_interval: timing.and_then(|timing| timing.interval),
            ..RunConfig::default()
        }
    }
}

/// A folder for what lives as long as a run.
pub fn scratch() -> Result<TempDir> {
    tempfile::Builder::new()
        .prefix("wavetap-")
        .tempdir()
        .map_err(|error| Error::new(Kind::Io, format!("cannot make a temporary folder: {error}")))
}

/// Reads a profile, or the journal that a process has left whose counts nothing has added up.
pub fn read_profile(path: &Path) -> Result<Profile> {
    use wavetap::error::ResultExt;
    let data = files::read(path)?;
    journal::read_profile(&data).within(|| path.display().to_string())
}

/// What a report says about a run.
pub fn info(backend: &BackendArgs, ended: &Ended) -> RunInfo {
    RunInfo {
        strict: Some(backend.is_strict()),
        seed: Some(backend.seed),
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

/// Waits for the end of `child`. Ctrl-C ends the application and not us: there is a report to write; what only we are
/// sent is passed on.
fn wait(mut child: Child) -> std::io::Result<ExitStatus> {
    let mut signals = SignalsInfo::<WithOrigin>::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
    let handle = signals.handle();
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    let passing = std::thread::spawn(move || {
        for origin in signals.forever() {
            let passed_on = match origin.signal {
                SIGTERM => Signal::TERM,
                SIGHUP => Signal::HUP,
                // The terminal has sent these to the application, too.
                _ if matches!(origin.cause, Cause::Kernel) => continue,
                SIGINT => Signal::INT,
                _ => Signal::QUIT,
            };
            if let Ok(process) = &process {
                // It may have ended in between.
                let _ = pidfd_send_signal(process, passed_on);
            }
        }
    });
    let status = child.wait();
    handle.close();
    // The thread does nothing that panics.
    let _ = passing.join();
    status
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
    fn without_a_choice_kernels_run_on_the_emulator_and_a_gpu_is_mentioned() {
        for gpu in [false, true] {
            let (backend, remark) = decide(BackendChoice::Auto, gpu).unwrap();
            assert_eq!((backend, remark.is_some()), (Backend::Emulator, gpu));
            assert_eq!(decide(BackendChoice::Emulator, gpu).unwrap(), (Backend::Emulator, None));
            let error = decide(BackendChoice::Gpu, gpu).unwrap_err().to_string();
            assert!(error.contains("--backend emulator") && error.contains("no GPU here") != gpu, "{error}");
        }
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
