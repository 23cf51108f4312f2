//! The text of source lines.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Larger files are no source.
const LARGEST: u64 = 16 << 20;

/// Source files, each read once.
pub struct Sources<'a> {
    folders: &'a [PathBuf],
    lines: RefCell<HashMap<String, Vec<String>>>,
}

impl<'a> Sources<'a> {
    /// Files where the debug information says, or below one of these folders.
    pub fn below(folders: &'a [PathBuf]) -> Sources<'a> {
        Sources { folders, lines: RefCell::default() }
    }

    /// The text of a line, from 1; none if its file is nowhere.
    pub fn line(&self, file: &str, line: u32) -> Option<String> {
        let mut files = self.lines.borrow_mut();
        let lines = files.entry(file.to_owned()).or_insert_with(|| self.read(file));
        lines.get((line as usize).checked_sub(1)?).cloned()
    }

    /// The lines of a file, none if it is nowhere.
    fn read(&self, file: &str) -> Vec<String> {
        let below = Path::new(file.trim_start_matches('/'));
        let candidates =
            std::iter::once(PathBuf::from(file)).chain(self.folders.iter().map(|folder| folder.join(below)));
        let bytes = candidates.into_iter().find_map(|path| read(&path)).unwrap_or_default();
        // A terminal must not be told what to do by a source file.
        let clean = |line: &str| line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        String::from_utf8_lossy(&bytes).lines().map(clean).collect()
    }
}

/// A regular file: debug information may name anything.
pub fn read(path: &Path) -> Option<Vec<u8>> {
    let facts = fs::metadata(path).ok().filter(|facts| facts.is_file() && facts.len() <= LARGEST);
    facts.and_then(|_| fs::read(path).ok())
}
