//! A file for what waits to be written, so that it does not wait in memory.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use wavetap_base::error::{Error, Result, ResultExt};

/// What an error with the file is about.
const WHERE: &str = "the file for what waits to be written";

/// A file that no one else reads or writes: one without a name, on a file system with as much room as the output needs.
#[derive(Debug)]
pub struct Scratch {
    file: File,
    end: AtomicU64,
}

impl Scratch {
    /// In this file, which is open for reading and writing.
    #[must_use]
    pub fn new(file: File) -> Scratch {
        Scratch { file, end: AtomicU64::new(0) }
    }

    /// Writes the bytes; returns where they are.
    pub(super) fn store(&self, bytes: &[u8]) -> Result<u64> {
        let offset = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_all_at(bytes, offset).map_err(Error::from).within(|| WHERE.into())?;
        Ok(offset)
    }

    /// Reads what was written there.
    pub(super) fn load(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(bytes, offset).map_err(Error::from).within(|| WHERE.into())
    }
}
