//! Running an application: as itself, with the libraries that have the emulator run its kernels, or that count on a
//! GPU.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use wavetap_base::error::{Error, Kind, Result};
use wavetap_collect::config::{self, RunConfig};
use wavetap_report::RunInfo;

use super::app::{App, Search};
use super::finished::{Finished, signal_name};
use super::options::{AtLoad, RunFiles, RunOptions, Stdout};
use super::platform::Platform;
use super::{check, default_target, findings, hip_version, libraries};
use crate::files;

/// A process that was ended by signal n has exit code 128 + n, as in a shell.
const SIGNAL_BASE: i32 = 128;

/// Whether the memory pools of HIP 7.2 reserve addresses.
const POOLS_RESERVE: &str = "DEBUG_HIP_MEM_POOL_VMHEAP";

/// What a caller may do while an application runs. The default does nothing: a signal that ends this process does not
/// reach the application, unless a terminal sends it to both.
pub trait Observer {
    /// Starts the application. A caller that passes signals on remembers it.
    ///
    /// # Errors
    /// If it cannot be started.
    fn start(&self, command: &mut Command) -> std::io::Result<Child> {
        command.spawn()
    }

    /// The application has ended.
    fn ended(&self) {}

    /// What a person has to know before the application runs. It is also in [`Finished::warnings`].
    fn warn(&self, warning: &str) {
        let _ = warning;
    }
}

/// An [`Observer`] that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}

/// One run of an application.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The application.
    pub app: &'a App,
    /// Executed instead of the application's own file, where that was rewritten.
    pub executable: Option<&'a Path>,
    /// How.
    pub options: &'a RunOptions,
    /// How code that it loads is made to count, if it is.
    pub at_load: Option<AtLoad<'a>>,
}

impl Launch<'_> {
    /// Runs it to its end.
    ///
    /// # Errors
    /// Unsupported if the platform does not have what is wanted; Io if the application or a library that it is run with
    /// cannot be found or started, or what it collected cannot be read. That the application fails is no error.
    pub fn execute(self, observer: &dyn Observer) -> Result<Finished> {
        let options = self.options;
        let platform = options.platform()?;
        let mut warnings = Vec::new();
        let mut warn = |warning: String| {
            observer.warn(&warning);
            warnings.push(warning);
        };
        if let Some(remark) = platform.remark(options.backend) {
            warn(remark.to_owned());
        }
        let folder = files::temporary_folder()?;
        let journals = files::temporary_folder()?;
        let file = self.executable.unwrap_or(self.app.path());
        let mut command = Command::new(file);
        command.arg0(self.app.name()).args(&options.arguments);
        command.envs(options.environment.iter().map(|(name, value)| (name, value)));
        options.refuse_lacking(platform)?;
        match platform {
            Platform::EmulatorHip => self.put_hip_before(&mut command, folder.path())?,
            Platform::EmulatorRocm => {
                self.version_warning().into_iter().for_each(&mut warn);
                self.put_driver_before(&mut command, folder.path())?;
            }
            Platform::Gpu => self.version_warning().into_iter().for_each(&mut warn),
        }
        let collects = options.collect.counters || options.collect.launches || options.capture.is_some();
        if platform.has_tool() && collects {
            self.add_tool(&mut command)?.into_iter().for_each(&mut warn);
            self.add_ranges(&mut command, folder.path(), platform)?;
        }
        let findings = folder.path().join("findings");
        let suppressions = findings::suppressions(options.suppressions.as_deref())?;
        let config = folder.path().join("run.json");
        let run_files =
            RunFiles { journals: journals.path(), findings: &findings, suppressions: suppressions.as_deref() };
        let at_load = self.at_load.map(|at_load| at_load.config());
        let contents = options.config(platform, self.device(platform), at_load, run_files).to_json()?;
        std::fs::write(&config, contents).map_err(|error| files::io(&config, "cannot write", &error))?;
        // A variable of the caller must not reach the run unasked.
        for name in RunConfig::VARIABLES {
            command.env_remove(name);
        }
        command.env(config::VARIABLE, &config);
        match &options.stdout {
            Stdout::Inherited => {}
            Stdout::Discarded => drop(command.stdout(Stdio::null()).stdin(Stdio::null())),
            Stdout::File(path) => {
                let file = File::create(path).map_err(|error| files::io(path, "cannot write", &error))?;
                command.stdout(file).stdin(Stdio::null());
            }
        }
        let mut child =
            observer.start(&mut command).map_err(|error| files::io(self.app.path(), "cannot run", &error))?;
        let status = child.wait();
        observer.ended();
        let status = status.map_err(|error| files::io(self.app.path(), "cannot wait for it", &error))?;
        let found = findings::read(&findings)?;
        let checked = options.check.is_some().then(|| check::read(journals.path())).transpose()?;
        let info = RunInfo {
            strict: platform.is_emulated().then_some(options.is_strict()),
            seed: platform.is_emulated().then_some(options.seed),
            exit_code: Some(exit_code(status)),
            signal: status.signal().map(signal_name),
            ..RunInfo::default()
        };
        let mut finished = Finished::read(journals, platform, options.collect, info)?;
        finished.set_findings(found);
        finished.set_checked(checked);
        finished.set_warnings(warnings);
        Ok(finished)
    }

    /// Has the application load the emulator's HIP runtime.
    fn put_hip_before(&self, command: &mut Command, folder: &Path) -> Result<()> {
        let stand_in = libraries::HIP_RUNTIME.find(&self.options.libraries)?;
        libraries::make_folder(folder, &stand_in)?;
        let search = Search::of(self.app.path());
        command.env("LD_LIBRARY_PATH", self.search_path("LD_LIBRARY_PATH", folder, &search.folders)?);
        if search.before_environment {
            command.env("LD_PRELOAD", self.search_path("LD_PRELOAD", &stand_in, &[])?);
        }
        Ok(())
    }

    fn search_path(&self, name: &str, first: &Path, last: &[PathBuf]) -> Result<OsString> {
        libraries::search_path(name, self.options.variable(name), first, last)
    }

    /// Says of code that the installed HIP does not load why its launches will fail.
    fn version_warning(&self) -> Option<String> {
        let present = self.options.variable("LD_LIBRARY_PATH").unwrap_or_default();
        let folders: Vec<PathBuf> =
            std::env::split_paths(&present).chain(Search::of(self.app.path()).folders).collect();
        let data = files::read(self.app.path()).unwrap_or_default();
        hip_version::warning(&data, &folders)
    }

    /// The GPU that is wanted. The HIP runtime of the emulator chooses by itself where none is; a driver has to know
    /// before anything is loaded.
    fn device(&self, platform: Platform) -> Option<String> {
        match (&self.options.target, platform) {
            (Some(target), _) => Some(target.clone()),
            (None, Platform::EmulatorHip | Platform::Gpu) => None,
            // What cannot be read here cannot be run, either.
            (None, Platform::EmulatorRocm) => {
                Some(default_target::for_program(&files::read(self.app.path()).unwrap_or_default()))
            }
        }
    }

    /// Has the application's ROCm use the emulated kernel driver.
    fn put_driver_before(&self, command: &mut Command, folder: &Path) -> Result<()> {
        let driver = libraries::KERNEL_DRIVER.find(&self.options.libraries)?;
        command.env("LD_PRELOAD", self.search_path("LD_PRELOAD", &driver, &[])?);
        // What the driver writes goes with the folder, however the application ends.
        command.env("WAVETAP_TOPOLOGY", folder);
        // HIP 7.2 reserves addresses for its memory pools without asking whether the driver can, and `hipMallocAsync`
        // fails if it cannot. With 0 the pools use ordinary memory, as in older versions.
        if self.options.variable(POOLS_RESERVE).is_none() {
            command.env(POOLS_RESERVE, "0");
        }
        Ok(())
    }

    /// Has the application mark its ranges in a library of ours, before others: under the names of ROCm's, and where
    /// those of the application's own folders would come first.
    fn add_ranges(&self, command: &mut Command, folder: &Path, platform: Platform) -> Result<()> {
        let ranges = libraries::RANGES.find(&self.options.libraries)?;
        libraries::make_folder_of_ranges(folder, &ranges)?;
        command.env("LD_LIBRARY_PATH", self.search_path("LD_LIBRARY_PATH", folder, &[])?);
        let mut preloaded = self.search_path("LD_PRELOAD", &ranges, &[])?;
        if platform == Platform::EmulatorRocm {
            let driver = libraries::KERNEL_DRIVER.find(&self.options.libraries)?;
            preloaded = libraries::search_path("LD_PRELOAD", Some(preloaded), &driver, &[])?;
        }
        command.env("LD_PRELOAD", preloaded);
        Ok(())
    }

    /// Has the application's ROCm load the HSA tool, before other tools. What has to be said of it.
    fn add_tool(&self, command: &mut Command) -> Result<Option<String>> {
        /// Tools that the runtime loads, separated by spaces.
        const TOOLS: &str = "HSA_TOOLS_LIB";
        /// Where profilers register themselves, the runtime loads no tools; with the last of these variables it does.
        const PROFILERS: [&str; 2] = ["ROCP_TOOL_LIBRARIES", "ROCPROFILER_REGISTER_LIBRARY"];
        const BOTH: &str = "HSA_TOOLS_ROCPROFILER_V1_TOOLS";
        let tool = libraries::HSA_TOOL.find(&self.options.libraries)?;
        let mut tools = quoted(&tool)?;
        if let Some(others) = self.options.variable(TOOLS).filter(|others| !others.is_empty()) {
            tools.push(" ");
            tools.push(others);
        }
        command.env(TOOLS, tools);
        // A tool that cannot be loaded is mentioned.
        command.env("HSA_TOOLS_REPORT_LOAD_FAILURE", "1");
        let profiler = PROFILERS.iter().find(|name| self.options.variable(name).is_some());
        Ok(profiler.map(|profiler| {
            command.env(BOTH, "1");
            format!("{profiler} is set: {BOTH}=1 has the runtime load the HSA tool, too")
        }))
    }
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

fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| SIGNAL_BASE + signal)).unwrap_or(SIGNAL_BASE)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
