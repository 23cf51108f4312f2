//! Running the application: as itself, with the stand-in HIP runtime in front where the emulator runs its kernels.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use tempfile::TempDir;
use wavetap::elf::constants::{DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB};
use wavetap::elf::{Elf, string_at};
use wavetap::emulator::LatencyOverride;
use wavetap::error::{Error, Kind, Result};
use wavetap::profile::file::{Backend, Profile};
use wavetap::profile::time::TimeProfile;
use wavetap::report::RunInfo;

use crate::args::{AppArgs, BackendArgs, BackendChoice};
use crate::findings;
use crate::{files, stand_in};

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
        let (name, arguments) = args.command.split_first().ok_or_else(|| Error::new(Kind::Io, "no application was named"))?;
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
        let hint =
            if runs(&direct) { format!(" (a file of this name is in this folder: write ./{})", direct.display()) } else { String::new() };
        Error::new(Kind::Io, format!("{}: no such command on the PATH{hint}", direct.display()))
    })
}

impl BackendArgs {
    /// Whether the strict mode is on.
    pub fn is_strict(&self) -> bool {
        self.strict || self.strict_continue || self.suppressions.is_some()
    }
}

/// Decides what runs the kernels.
pub fn choose(choice: BackendChoice) -> Result<Backend> {
    let gpu = Path::new(GPU_DEVICE).exists();
    match choice {
        BackendChoice::Emulator => Ok(Backend::Emulator),
        BackendChoice::Auto if !gpu => Ok(Backend::Emulator),
        BackendChoice::Auto | BackendChoice::Gpu => {
            let found = if gpu { "there is a GPU" } else { "there is no GPU here (no /dev/kfd)" };
            let message = format!(
                "{found}, and collecting counts from one needs the HSA tool, which this version does not have yet: use --backend emulator"
            );
            Err(Error::unsupported(message))
        }
    }
}

/// What the emulator is to model of time, and where that goes.
#[derive(Debug, Clone, Copy)]
pub struct Modelled<'a> {
    /// The time file.
    pub time: &'a Path,
    /// Other latencies.
    pub latencies: &'a [LatencyOverride],
    /// The file of samples.
    pub samples: Option<&'a Path>,
    /// Modelled cycles between samples.
    pub interval: Option<u32>,
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
    /// Where the collected counts go.
    pub profile: Option<&'a Path>,
    /// Where the emulator's trace goes.
    pub trace: Option<&'a Path>,
    /// What is modelled of time.
    pub timing: Option<Modelled<'a>>,
    /// Where stdout goes; inherited if none. The application's stdin is then empty.
    pub stdout: Option<File>,
}

impl Run<'_> {
    /// Runs it to its end and gives its exit code, 128 + n after signal n; 1 instead of 0 if the strict mode went on after findings.
    pub fn execute(self) -> Result<i32> {
        let folder = scratch()?;
        let stand_in = stand_in::find()?;
        stand_in::make_folder(folder.path(), &stand_in)?;
        let file = self.executable.unwrap_or(&self.app.path);
        let mut command = Command::new(file);
        command.arg0(&self.app.name).args(&self.app.arguments);
        let search = Search::of(&self.app.path);
        command.env("LD_LIBRARY_PATH", stand_in::search_path("LD_LIBRARY_PATH", folder.path(), &search.folders)?);
        if search.before_environment {
            command.env("LD_PRELOAD", stand_in::search_path("LD_PRELOAD", &stand_in, &[])?);
        }
        let findings = folder.path().join("findings");
        self.set_contract(&mut command, &findings, findings::suppressions(self.backend.suppressions.as_deref())?.as_deref());
        if let Some(stdout) = self.stdout {
            command.stdout(stdout).stdin(Stdio::null());
        }
        let child = command.spawn().map_err(|error| files::io(&self.app.path, "cannot run", &error))?;
        let code = wait(child).map_err(|error| files::io(&self.app.path, "cannot wait for it", &error))?;
        findings::report(&findings, code)
    }

    /// The variables that the stand-in reads.
    fn set_contract(&self, command: &mut Command, findings: &Path, suppressions: Option<&Path>) {
        let BackendArgs { strict_continue, seed, fuel, threads, records, per_wave, .. } = self.backend;
        let flag = |on: bool| on.then(|| OsString::from("1"));
        let number = |value: Option<u64>| value.map(|value| OsString::from(value.to_string()));
        let timing = self.timing.as_ref();
        let latencies = timing.map(|timing| timing.latencies.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
        let values = [
            ("WAVETAP_TIMING", timing.map(|timing| timing.time.as_os_str().to_owned())),
            ("WAVETAP_LATENCY", latencies.map(OsString::from)),
            ("WAVETAP_SAMPLES", timing.and_then(|timing| timing.samples).map(|path| path.as_os_str().to_owned())),
            ("WAVETAP_SAMPLE_INTERVAL", number(timing.and_then(|timing| timing.interval).map(u64::from))),
            ("WAVETAP_PROFILE", self.profile.map(|path| path.as_os_str().to_owned())),
            ("WAVETAP_TRACE", self.trace.map(|path| path.as_os_str().to_owned())),
            ("WAVETAP_STRICT", flag(self.backend.is_strict())),
            ("WAVETAP_STRICT_CONTINUE", flag(*strict_continue)),
            ("WAVETAP_SUPPRESSIONS", suppressions.map(|path| path.as_os_str().to_owned())),
            ("WAVETAP_FINDINGS", Some(findings.as_os_str().to_owned())),
            ("WAVETAP_SEED", number(Some(*seed))),
            ("WAVETAP_FUEL", number(*fuel)),
            ("WAVETAP_THREADS", number(threads.map(u64::from))),
            ("WAVETAP_RECORDS", number(records.map(u64::from))),
            ("WAVETAP_PER_WAVE", flag(*per_wave)),
            ("WAVETAP_TARGET", self.target.map(OsString::from)),
        ];
        for (name, value) in values {
            match value {
                Some(value) => command.env(name, value),
                // A variable of the caller must not reach the run unasked.
                None => command.env_remove(name),
            };
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

/// An absolute path for a file that another process, maybe in another folder, is to write.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| files::io(path, "cannot make it absolute", &error))
}

/// Reads a profile that a run has left.
pub fn read_profile(path: &Path) -> Result<Profile> {
    use wavetap::error::ResultExt;
    Profile::from_json(&files::read(path)?).within(|| path.display().to_string())
}

/// Reads the profile of a run that has ended. A program that dispatched nothing may leave none.
pub fn collected(path: &Path) -> Result<Option<Profile>> {
    if path.exists() { read_profile(path).map(Some) } else { Ok(None) }
}

/// Reads the modelled time of a run that has ended. A program that never used the runtime leaves none.
pub fn modelled(path: &Path) -> Result<Option<TimeProfile>> {
    use wavetap::error::ResultExt;
    if !path.exists() {
        return Ok(None);
    }
    TimeProfile::from_json(&files::read(path)?).within(|| path.display().to_string()).map(Some)
}

/// What a report says about a run.
pub fn info(backend: &BackendArgs, exit_code: i32) -> RunInfo {
    RunInfo { strict: Some(backend.is_strict()), seed: Some(backend.seed), exit_code: Some(exit_code) }
}

/// Waits for the end of `child`. Ctrl-C ends the application and not us: there is a report to write; what only we are sent is passed on.
fn wait(mut child: Child) -> std::io::Result<i32> {
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
    let handle = signals.handle();
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    let passing = std::thread::spawn(move || {
        for signal in signals.forever() {
            let passed_on = match signal {
                SIGTERM => Signal::TERM,
                SIGHUP => Signal::HUP,
                // The terminal has sent these to the application, too.
                _ => continue,
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
    status.map(exit_code)
}

fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| SIGNAL_BASE + signal)).unwrap_or(SIGNAL_BASE)
}

/// Where an executable makes the loader look for libraries.
#[derive(Debug, Default)]
struct Search {
    /// Its folders. They are given to the loader explicitly: `$ORIGIN` means the folder of the original, not of a rewritten copy.
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
        let (Some(place), Some(table), Some(size)) = (run_path.or(rpath), elf.dynamic_value(DT_STRTAB)?, elf.dynamic_value(DT_STRSZ)?)
        else {
            return Ok(Search::default());
        };
        let text = string_at(elf.bytes_at(table, size)?, place)?;
        let origin = path.canonicalize().ok().and_then(|path| Some(path.parent()?.to_string_lossy().into_owned())).unwrap_or_default();
        let folders =
            text.split(':').filter(|f| !f.is_empty()).map(|f| f.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin).into()).collect();
        Ok(Search { folders, before_environment: run_path.is_none() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
