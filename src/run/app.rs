//! The application: found as a shell finds it, and where it makes the loader look for libraries.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use wavetap_base::error::{Error, Kind, Result};
use wavetap_object::elf::constants::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB};
use wavetap_object::elf::{Elf, string_at};
use wavetap_object::offload_bundle::has_no_device_code;

use super::mistaken;
use crate::files;

/// How a script begins.
const SCRIPT: &[u8] = b"#!";

/// HIP's runtime.
const HIP_LIBRARY: &str = "libamdhip64";

/// Runtimes of ROCm besides HIP's: the emulator has none of them.
const ROCM_LIBRARIES: [&str; 3] = ["libhsa-runtime64", "libOpenCL", "libomptarget"];

/// An application that can be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    path: PathBuf,
    name: OsString,
}

impl App {
    /// Finds the application as a shell does: a name without a slash along `PATH`. It gets the name as its `argv[0]`.
    ///
    /// # Errors
    /// Io if there is no executable file of that name.
    pub fn find(name: impl AsRef<OsStr>) -> Result<App> {
        let name = name.as_ref();
        Ok(App { path: resolve(name)?, name: name.to_owned() })
    }

    /// The file at a path, whatever it is; a name without a slash is one in the current folder.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> App {
        let path = path.into();
        // Without a slash the system would look along `PATH`.
        let path = if path.components().count() == 1 && path.is_relative() { Path::new(".").join(path) } else { path };
        App { name: path.clone().into(), path }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The library for which the application needs AMD's own ROCm libraries ([`Stack::Rocm`](super::Stack::Rocm)): it
    /// is linked with one of HSA, OpenCL or OpenMP, and not with HIP. What it loads later is not known.
    #[must_use]
    pub fn library_of_rocm(&self) -> Option<String> {
        let bytes = files::read(&self.path).ok()?;
        let needed = needed(&bytes).unwrap_or_default();
        let is = |name: &str, library: &str| name.strip_prefix(library).is_some_and(|rest| rest.starts_with(".so"));
        if needed.iter().any(|name| is(name, HIP_LIBRARY)) {
            return None;
        }
        needed.into_iter().find(|name| ROCM_LIBRARIES.iter().any(|library| is(name, library)))
    }

    /// Its `argv[0]`.
    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }

    /// The name of its file.
    pub(crate) fn file_name(&self) -> &OsStr {
        self.path.file_name().unwrap_or("app".as_ref())
    }
}

fn resolve(name: &OsStr) -> Result<PathBuf> {
    let runs = |path: &Path| path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    let direct = PathBuf::from(name);
    if direct.components().count() > 1 || direct.is_absolute() || name.as_encoded_bytes().contains(&b'/') {
        return match direct.metadata() {
            Err(error) => Err(files::io(&direct, "cannot run", &error)),
            Ok(_) if runs(&direct) => Ok(direct),
            Ok(_) => Err(mistaken::not_executable(&direct)),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|candidate| runs(candidate));
    found.ok_or_else(|| {
        let hint = if runs(&direct) {
            format!(" (a file of this name is in this folder: write ./{})", direct.display())
        } else if direct.exists() {
            format!("; {}", mistaken::not_executable(&direct))
        } else {
            String::new()
        };
        Error::new(Kind::Io, format!("{}: no such command on the PATH{hint}", direct.display()))
    })
}

/// Whether a file is a script, which starts something else.
#[must_use]
pub fn is_script(data: &[u8]) -> bool {
    data.starts_with(SCRIPT)
}

/// Whether a file starts or loads what has device code, and has none itself: a script, an interpreter.
#[must_use]
pub fn has_no_code_of_its_own(data: &[u8]) -> bool {
    is_script(data) || has_no_device_code(data)
}

/// The libraries that an ELF file is linked with.
fn needed(bytes: &[u8]) -> Result<Vec<String>> {
    let elf = Elf::parse(bytes)?;
    let (Some(table), Some(size)) = (elf.dynamic_value(DT_STRTAB)?, elf.dynamic_value(DT_STRSZ)?) else {
        return Ok(Vec::new());
    };
    let names = elf.bytes_at(table, size)?;
    let entries = elf.dynamic()?.into_iter().filter(|entry| entry.tag == DT_NEEDED);
    entries.map(|entry| string_at(names, entry.value).map(str::to_owned)).collect()
}

/// Where an executable makes the loader look for libraries.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// Its folders. They are given to the loader explicitly: `$ORIGIN` means the folder of the original, not of a
    /// rewritten copy.
    pub(super) folders: Vec<PathBuf>,
    /// Whether they come before `LD_LIBRARY_PATH` (`DT_RPATH`), so that a real HIP runtime there would be found first.
    pub(super) before_environment: bool,
}

impl Search {
    pub(super) fn of(path: &Path) -> Search {
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
    fn applications_are_found_as_a_shell_finds_them() {
        assert!(resolve("sh".as_ref()).unwrap().is_absolute());
        assert_eq!(resolve("/bin/sh".as_ref()).unwrap(), Path::new("/bin/sh"));
        for missing in ["no-such-command-anywhere", "./no-such-file", "/", "/etc/passwd"] {
            assert!(resolve(missing.as_ref()).unwrap_err().to_string().starts_with(missing), "{missing}");
        }
    }

    #[test]
    fn libraries_are_read() {
        let executable = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(needed(&executable).unwrap().iter().any(|name| name == "libc.so.6"));
        assert_eq!(App::at("/bin/sh").library_of_rocm(), None);
    }

    #[test]
    fn this_executable_has_no_search_path_before_the_environments() {
        let executable = std::env::current_exe().unwrap();
        let search = Search::of(&executable);
        assert!(!search.before_environment);
        assert!(Search::of(Path::new("/etc/passwd")).folders.is_empty(), "a file that is no ELF file has none");
    }
}
