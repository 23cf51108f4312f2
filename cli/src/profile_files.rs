//! Profiles that are named one by one, by a folder that has them, or in a list.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use wavetap::error::{Error, Kind, Result, ResultExt};
use wavetap::profile::journal;

use crate::files;

/// What a profile has at its beginning.
const SCHEMA: &[u8] = b"\"wavetap.profile/";
/// Where that is at the latest.
const BEGINNING: u64 = 4096;
/// So many files that are no profiles are named.
const NAMED: usize = 3;

/// Where profiles are.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// Profiles and folders.
    pub paths: &'a [PathBuf],
    /// A file with further paths, `-` for stdin.
    pub list: Option<&'a Path>,
    /// Whether paths in the list end with a zero byte.
    pub null: bool,
}

/// Files in folders that are no profiles.
#[derive(Debug, Default)]
pub struct LeftOut {
    count: u64,
    first: Vec<PathBuf>,
}

impl LeftOut {
    fn add(&mut self, path: PathBuf) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(path);
        }
    }

    /// How many and which; none if there are none.
    pub fn in_words(&self) -> Option<String> {
        let names: Vec<String> = self.first.iter().map(|path| path.display().to_string()).collect();
        let more = self.count.saturating_sub(names.len() as u64);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let files = if self.count == 1 { "file is no profile and is" } else { "files are no profiles and are" };
        (self.count > 0).then(|| format!("{} {files} left out: {}{more}", self.count, names.join(", ")))
    }
}

/// Calls `add` with the path of each profile, and gives the files in folders that are none.
///
/// # Errors
/// Io if a file or folder cannot be read, malformed if the list has no end at a zero byte; those of `add`.
pub fn each(inputs: &Inputs<'_>, mut add: impl FnMut(&Path) -> Result<()>) -> Result<LeftOut> {
    let mut left_out = LeftOut::default();
    for path in inputs.paths {
        add_path(path, &mut add, &mut left_out)?;
    }
    let Some(list) = inputs.list else { return Ok(left_out) };
    let mut lines: Box<dyn BufRead> = if files::is_stdin(list) {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(list).map_err(|error| files::io(list, "cannot read", &error))?))
    };
    let end = if inputs.null { 0 } else { b'\n' };
    let mut line = Vec::new();
    loop {
        line.clear();
        let failed = |error| Error::new(Kind::Io, format!("{}: cannot read: {error}", files::name(list)));
        if lines.read_until(end, &mut line).map_err(failed)? == 0 {
            return Ok(left_out);
        }
        line.pop_if(|last| *last == end);
        if !line.is_empty() {
            let path = PathBuf::from(OsString::from_vec(line.clone()));
            add_path(&path, &mut add, &mut left_out).within(|| files::name(list))?;
        }
    }
}

/// A profile, or those in a folder. A file that was named is added whatever it is.
fn add_path(path: &Path, add: &mut impl FnMut(&Path) -> Result<()>, left_out: &mut LeftOut) -> Result<()> {
    if !path.is_dir() {
        return add(path);
    }
    let failed = |error: &io::Error| files::io(path, "cannot read", error);
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| failed(&error))? {
        entries.push(entry.map_err(|error| failed(&error))?.path());
    }
    // So that of several mistakes the same one is found on every file system.
    entries.sort_unstable();
    for entry in entries {
        let link = entry.is_symlink();
        if entry.is_dir() {
            // A link may lead back to a folder that it is in.
            if link { left_out.add(entry) } else { add_path(&entry, add, left_out)? }
        } else if is_profile(&entry)? {
            add(&entry)?;
        } else {
            left_out.add(entry);
        }
    }
    Ok(())
}

/// Whether a file begins as a profile, or the journal of a run that was killed, does. What is no file on a disk is not
/// one.
fn is_profile(path: &Path) -> Result<bool> {
    if !path.is_file() {
        return Ok(false);
    }
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning));
    read.map_err(|error| files::io(path, "cannot read", &error))?;
    let is_json = beginning.trim_ascii_start().starts_with(b"{");
    let has_schema = beginning.windows(SCHEMA.len()).any(|window| window == SCHEMA);
    Ok(journal::is_journal(&beginning) || is_json && has_schema)
}
