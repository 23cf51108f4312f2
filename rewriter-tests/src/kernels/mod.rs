//! Test kernels that are written once and run on the CPU and in the emulator.
//!
//! The sources are in `rewriter-tests/kernels`: `shim/kernel.h` says how a kernel is written. The program that runs
//! them on the CPU writes what each kernel reads, what its output starts with and what it must end with; nothing of the
//! emulator is in it.
//!
//! - [`build`]: compiling for the CPU and for GPUs;
//! - `newer`: compiling for GPUs that the compiler does not know;
//! - [`launch`]: one kernel on the emulator;
//! - [`compare`]: whether an output is what it must be.

pub mod build;
pub mod compare;
pub mod launch;
mod newer;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::Failure;

/// A kernel and its launch.
#[derive(Debug, Clone, Deserialize)]
pub struct Test {
    /// Its name in the source.
    pub name: String,
    /// The source's file name.
    pub file: String,
    /// Work-items in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a workgroup.
    pub group: [u16; 3],
    /// Bytes of LDS that the launch adds.
    pub dynamic: u32,
    /// How the output is compared: see [`compare::Rule`].
    pub compare: String,
    /// The targets that have what it uses; empty for all.
    pub on: String,
    /// The argument after input, output and count, passed by value.
    pub extra: Vec<u8>,
}

impl Test {
    /// Whether code for this target has it.
    #[must_use]
    pub fn runs_on(&self, target: &str) -> bool {
        let matches =
            |pattern: &str| pattern.strip_suffix('*').map_or(pattern == target, |start| target.starts_with(start));
        self.on.is_empty() || self.on.split_whitespace().any(matches)
    }
}

/// What the CPU made of all kernels with waves of one size.
#[derive(Debug, Clone)]
pub struct Reference {
    folder: PathBuf,
    /// All kernels.
    pub tests: Vec<Test>,
}

/// The buffers of one kernel.
#[derive(Debug, Clone)]
pub struct Buffers {
    /// What it reads.
    pub input: Vec<u8>,
    /// What its output starts with.
    pub start: Vec<u8>,
    /// What the CPU made of it.
    pub expected: Vec<u8>,
}

impl Reference {
    /// What was written into a folder.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(folder: &Path) -> Result<Self, Failure> {
        let file = folder.join("tests.json");
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let tests = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(Reference { folder: folder.to_path_buf(), tests })
    }

    /// The buffers of a kernel.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn buffers(&self, test: &Test) -> Result<Buffers, Failure> {
        let read = |what: &str| {
            let file = self.folder.join(format!("{}.{what}", test.name));
            fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))
        };
        Ok(Buffers { input: read("in")?, start: read("start")?, expected: read("expected")? })
    }
}
