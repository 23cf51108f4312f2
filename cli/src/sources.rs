//! The text of source lines.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

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
        let bytes = candidates(file, self.folders).find_map(|path| read(&path)).unwrap_or_default();
        // A terminal must not be told what to do by a source file.
        let clean = |line: &str| line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        String::from_utf8_lossy(&bytes).lines().map(clean).collect()
    }
}

/// Where a source file may be: where the debug information says, or below one of these folders.
fn candidates(file: &str, folders: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let below = Path::new(file.trim_start_matches('/'));
    std::iter::once(PathBuf::from(file)).chain(folders.iter().map(move |folder| folder.join(below)))
}

/// The path of a source file, where the debug information says or below one of these folders, without `.` and `..` in
/// it; of one that is nowhere, the path in the debug information.
pub fn place(file: &str, folders: &[PathBuf]) -> String {
    let found = candidates(file, folders).find(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(file));
    without_dots(&found).to_string_lossy().into_owned()
}

/// A path without `.`, and without `..` after the name of a folder.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        let last = plain.components().next_back();
        match (component, last) {
            (Component::CurDir, _) | (Component::ParentDir, Some(Component::RootDir)) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                plain.pop();
            }
            _ => plain.push(component),
        }
    }
    plain
}

/// A regular file: debug information may name anything.
pub fn read(path: &Path) -> Option<Vec<u8>> {
    let facts = fs::metadata(path).ok().filter(|facts| facts.is_file() && facts.len() <= LARGEST);
    facts.and_then(|_| fs::read(path).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_file_has_one_path() {
        let of = |path: &str| without_dots(Path::new(path)).to_string_lossy().into_owned();
        for (path, plain) in [
            ("./k.hip", "k.hip"),
            ("/p/./src/../k.hip", "/p/k.hip"),
            ("/../k.hip", "/k.hip"),
            ("../../k.hip", "../../k.hip"),
            ("a/../../k.hip", "../k.hip"),
            ("/p//k.hip", "/p/k.hip"),
        ] {
            assert_eq!(of(path), plain, "{path}");
        }
    }

    #[test]
    fn a_source_file_is_looked_for_below_folders() {
        let folder = tempfile::tempdir().expect("a folder");
        let inside = folder.path().join("src");
        fs::create_dir(&inside).expect("a folder");
        fs::write(inside.join("k.hip"), "").expect("a file");
        let folders = [folder.path().to_owned(), inside.clone()];
        assert_eq!(place("./k.hip", &folders), inside.join("k.hip").to_string_lossy());
        assert_eq!(place("/src/k.hip", &folders), inside.join("k.hip").to_string_lossy());
        assert_eq!(place("./other.hip", &folders), "other.hip");
    }
}
