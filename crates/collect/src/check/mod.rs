//! Findings of `wavetap check` as a process writes them: each place once, and how often it was found.

pub mod places;

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wavetap_profile::check::{Finding, Line, Tool};

use crate::stderr_line;

/// Places that a process writes: what has more is one mistake over and over.
const MOST_PLACES: usize = 10_000;

/// What is checked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckConfig {
    /// What is looked for.
    pub tools: Vec<Tool>,
    /// The folder where each process writes what it finds, as `PID.findings`.
    pub folder: PathBuf,
    /// The order of workgroups and waves, where it is not left to the seed; 0 is the usual one.
    pub schedule: Option<u64>,
    /// What is written of the memory that kernels leave, if anything is.
    pub outputs: Option<Outputs>,
}

/// What is written of the memory that kernels leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outputs {
    /// A digest for each launch.
    Digests,
    /// And the memory itself, after one launch.
    Pages {
        /// Its number.
        launch: u64,
    },
    /// And a finding that says which instruction of a launch has written a byte.
    Byte {
        /// Its number.
        launch: u64,
        /// Of the byte.
        address: u64,
    },
}

/// A place that was found, and what was written of it.
#[derive(Debug, Default)]
struct Place {
    number: u64,
    found: u64,
    written: u64,
}

/// Writes findings.
#[derive(Debug)]
pub struct Recorder {
    tools: Vec<Tool>,
    path: PathBuf,
    file: Option<File>,
    /// By what is the same of all findings of a place, as text.
    places: HashMap<String, Place>,
    overflowed: bool,
    launched: bool,
}

impl Recorder {
    /// For this process.
    #[must_use]
    pub fn new(config: &CheckConfig) -> Recorder {
        Recorder {
            tools: config.tools.clone(),
            path: path(&config.folder),
            file: None,
            places: HashMap::new(),
            overflowed: false,
            launched: false,
        }
    }

    /// Whether this is looked for.
    #[must_use]
    pub fn wants(&self, tool: Tool) -> bool {
        self.tools.contains(&tool)
    }

    /// Says that this process is checked, whatever is found.
    pub fn begin(&mut self) {
        if let Err(error) = self.open() {
            stderr_line!("wavetap: cannot write {}: {error}: nothing is checked", self.path.display());
        }
    }

    fn open(&mut self) -> std::io::Result<&mut File> {
        if self.file.is_none() {
            let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
            file.write_all(b"\"begin\"\n")?;
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| std::io::Error::other("it is not open"))
    }

    /// A child that was forked has a file of its own.
    pub fn forked(&mut self, config: &CheckConfig) {
        *self = Recorder::new(config);
    }

    /// Notes a finding, if its tool is wanted. It is written when its place is new, and again when it has been found
    /// twice as often. `complete` adds what takes long to find out, for a new place.
    pub fn add(&mut self, mut finding: Finding, complete: impl FnOnce(&mut Finding)) {
        if !self.wants(finding.tool) {
            return;
        }
        let key = format!("{:?}", finding.place());
        if let Some(place) = self.places.get_mut(&key) {
            place.found += finding.count;
            if place.found >= 2 * place.written {
                let line = again(place);
                self.write(&line);
            }
            return;
        }
        if self.places.len() >= MOST_PLACES {
            if !self.overflowed {
                self.overflowed = true;
                self.not_checked(format!("more than {MOST_PLACES} places of one process: the others are not listed"));
            }
            return;
        }
        complete(&mut finding);
        let (number, count) = (self.places.len() as u64, finding.count);
        self.places.insert(key, Place { number, found: count, written: count });
        self.write(&Line::Found(Box::new(finding)));
    }

    /// Writes what a launch has left in memory.
    pub fn output(&mut self, line: &Line) {
        self.write(line);
    }

    /// Whether a kernel was launched.
    #[must_use]
    pub fn has_launched(&self) -> bool {
        self.launched
    }

    /// Says that a kernel is launched: without one, no code of the GPU was checked.
    pub fn launched(&mut self) {
        if !std::mem::replace(&mut self.launched, true) {
            self.write(&Line::Launched);
        }
    }

    /// Says what cannot be looked at.
    pub fn not_checked(&mut self, what: String) {
        self.write(&Line::NotChecked(what));
    }

    /// Writes how often places were found that is not written yet.
    pub fn finish(&mut self) {
        let lines: Vec<Line> =
            self.places.values_mut().filter(|place| place.written < place.found).map(again).collect();
        lines.iter().for_each(|line| self.write(line));
    }

    fn write(&mut self, line: &Line) {
        let written = serde_json::to_vec(line).map_err(std::io::Error::other).and_then(|mut bytes| {
            bytes.push(b'\n');
            self.open()?.write_all(&bytes)
        });
        if let Err(error) = written {
            stderr_line!("wavetap: cannot write {}: {error}: a finding is missing: {line:?}", self.path.display());
        }
    }
}

fn again(place: &mut Place) -> Line {
    let count = place.found - place.written;
    place.written = place.found;
    Line::Again { place: place.number, count }
}

fn path(folder: &Path) -> PathBuf {
    folder.join(format!("{}.findings", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::check::{Class, HostCall};

    #[test]
    fn a_place_is_written_once_and_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = CheckConfig { tools: vec![Tool::Api], folder: folder.path().to_owned(), ..CheckConfig::default() };
        let mut recorder = Recorder::new(&config);
        let finding = |function: &str| {
            let mut finding = Finding::new(Class::Leak, "8 bytes");
            finding.call = Some(HostCall { function: function.to_owned(), stack: Vec::new() });
            finding
        };
        recorder.add(Finding::new(Class::LdsRace, "not looked for"), |_| ());
        for n in 0..5 {
            recorder.add(finding("hipMalloc"), |new| new.message = format!("first {n}"));
        }
        recorder.add(finding("hipHostMalloc"), |_| ());
        recorder.finish();
        let text = std::fs::read_to_string(path(folder.path())).expect("a file");
        let lines: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let [Line::Begin, Line::Found(first), Line::Again { place: 0, count: 1 }, rest @ ..] = &lines[..] else {
            panic!("{text}")
        };
        assert_eq!((first.count, first.message.as_str()), (1, "first 0"));
        let again: u64 =
            rest.iter().map(|line| if let Line::Again { place: 0, count } = line { *count } else { 0 }).sum();
        assert_eq!(again, 3, "{text}");
        assert_eq!(rest.iter().filter(|line| matches!(line, Line::Found(_))).count(), 1);
    }
}
