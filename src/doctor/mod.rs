//! What this machine has for programs to run on, what does not work, and why.
//!
//! [`System`] is where is looked: this machine, or a folder with a tree of files like this machine's. Each file here
//! has the checks of one subject.

mod compiler;
mod environment;
mod files;
mod frameworks;
mod gpu;
mod rocm;
mod self_test;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use wavetap_report::doctor::{Check, Diagnosis};

use crate::run::Libraries;

/// Where is looked.
#[derive(Debug, Clone)]
pub struct System {
    /// Has `/sys`, `/dev`, `/opt` and the like.
    root: PathBuf,
    variables: BTreeMap<String, OsString>,
    libraries: Libraries,
}

impl System {
    /// This machine, with the variables of this process.
    #[must_use]
    pub fn new() -> System {
        let name = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value));
        System {
            root: PathBuf::from("/"),
            variables: std::env::vars_os().filter_map(name).collect(),
            libraries: Libraries::default(),
        }
    }

    /// The same with the files below a folder in place of this machine's. What the devices in it permit follows from
    /// their modes, and the user is that of its `proc/self/status`.
    #[must_use]
    pub fn at(self, root: impl Into<PathBuf>) -> System {
        System { root: root.into(), ..self }
    }

    fn is_this_machine(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Where a path of the system is.
    fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The text of a file, without blanks around it; none if it cannot be read.
    fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// Names in a folder, in their order; none if it cannot be read.
    fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().filter_map(Result::ok);
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// A variable that is set and not empty.
    fn variable(&self, name: &str) -> Option<String> {
        let value = self.variables.get(name).filter(|value| !value.is_empty())?;
        Some(value.to_string_lossy().into_owned())
    }

    /// The folders in a variable with a search path.
    fn folders(&self, name: &str) -> Vec<PathBuf> {
        let value = self.variables.get(name).cloned().unwrap_or_default();
        std::env::split_paths(&value).filter(|path| path.is_absolute()).collect()
    }
}

impl Default for System {
    fn default() -> System {
        System::new()
    }
}

/// Looks at everything; runs the self-test if it is to.
#[must_use]
pub fn examine(system: &System, self_test: bool) -> Diagnosis {
    let gpus = gpu::gpus(system);
    let mut checks: Vec<Check> = files::checks(system, !gpus.is_empty());
    checks.extend(gpu::checks(system, &gpus));
    checks.extend(rocm::checks(system, !gpus.is_empty()));
    checks.extend(environment::checks(system));
    checks.extend(compiler::checks(system));
    checks.extend(frameworks::checks(system));
    if self_test {
        checks.push(self_test::check(system));
    }
    Diagnosis::new(env!("CARGO_PKG_VERSION"), !gpus.is_empty(), checks)
}
