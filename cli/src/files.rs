//! Files that are named on the command line.

use std::path::Path;

pub use wavetap::files::{Pending, distinct, io, may_write, not_the_same, read, read_stdin, remove_old, write};

/// The path that means stdin.
const STDIN: &str = "-";

/// Whether a path means stdin.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == STDIN
}

/// The folder that names of source files are given relative to, if there is one.
pub fn current_folder() -> Option<String> {
    std::env::current_dir().ok().and_then(|folder| folder.into_os_string().into_string().ok())
}

/// What an input is called in messages.
pub fn name(path: &Path) -> String {
    if path.as_os_str() == STDIN { "stdin".to_owned() } else { path.display().to_string() }
}
