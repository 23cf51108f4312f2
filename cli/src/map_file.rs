//! An input file in memory without a copy of it.

use std::fs::{self, File};
use std::path::Path;

use memmap2::Mmap;
use wavetap::error::Result;
use wavetap::files::Contents;
use wavetap::run::mistaken;

use crate::files;

/// The contents of the file `path`, or of stdin for `-`.
pub fn open_or_stdin(path: &Path) -> Result<Contents> {
    if files::is_stdin(path) { files::read_stdin().map(Contents::new) } else { open(path) }
}

/// The contents of the file `path`.
pub fn open(path: &Path) -> Result<Contents> {
    let metadata = fs::metadata(path).map_err(|error| files::io(path, "cannot read", &error))?;
    if !metadata.is_file() || metadata.len() == 0 {
        return files::read(path).map(Contents::new);
    }
    let file = File::open(path).map_err(|error| files::io(path, "cannot read", &error))?;
    // SAFETY: the mapping is private and read-only, and nothing here writes to an input. Linkers and package managers
    // put a new file in the place of an old one, which does not change what is mapped. Whoever writes into the very
    // file while it is rewritten gets what they would get from reading it at that time, some old and some new bytes,
    // all of which are checked when they are used; whoever shortens it, the signal SIGBUS.
    #[allow(unsafe_code)]
    let map = unsafe { Mmap::map(&file) };
    let contents = map.map(Contents::new).map_err(|error| files::io(path, "cannot be mapped", &error))?;
    mistaken::check(path, &contents)?;
    Ok(contents)
}
