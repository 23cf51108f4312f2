//! Findings of the strict mode that the program goes on after: each place is told once.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use wavetap::emulator::{Fault, Finding, Passes, Suppressions};
use wavetap::stderr_line;

/// Which findings a program goes on after, and where they are told.
#[derive(Debug, Clone, Default)]
pub(crate) struct FindingSettings {
    /// After any.
    pub(crate) go_on: bool,
    /// Whether it goes on after accesses out of bounds, which then do not happen.
    pub(crate) accesses: bool,
    pub(crate) suppressed: Suppressions,
    /// A line for each place is added to this file; without one, standard error has it.
    pub(crate) file: Option<PathBuf>,
}

impl FindingSettings {
    /// Those of a kernel, by its symbol.
    pub(crate) fn of_kernel(&self, kernel: &str) -> Passes {
        let demangled = wavetap::code_object::demangle(kernel);
        Passes {
            all: self.go_on,
            accesses: self.accesses,
            suppressed: self.suppressed.of_kernel(&[kernel, &demangled]),
        }
    }
}

/// How often a place was found, and how often that has been told.
#[derive(Debug, Default)]
struct Place {
    text: String,
    found: u64,
    told: u64,
}

/// What has been found, by kernel, kind and address.
#[derive(Debug, Default)]
pub(crate) struct Findings(BTreeMap<(String, &'static str, u64), Place>);

impl Findings {
    /// Notes what a kernel's dispatch has gone on after. A place is told when it is new, and again when it has been
    /// found twice as often. `text` is how a person is told of a fault.
    pub(crate) fn add(
        &mut self,
        settings: &FindingSettings,
        kernel: &str,
        found: Vec<Finding>,
        text: impl Fn(&Fault) -> String,
    ) {
        for Finding { fault, kind, count, suppressed, .. } in found {
            if suppressed {
                continue;
            }
            let place = self.0.entry((kernel.to_owned(), kind.name(), fault.address)).or_default();
            if place.found == 0 {
                place.text = text(&fault);
            }
            place.found += count;
            if place.found >= 2 * place.told {
                tell(settings, kernel, kind.name(), place);
            }
        }
    }

    /// Tells what has not been told.
    pub(crate) fn finish(&mut self, settings: &FindingSettings) {
        for ((kernel, kind, _), place) in &mut self.0 {
            if place.told < place.found {
                tell(settings, kernel, kind, place);
            }
        }
    }
}

/// Adds a line to the file: how many more there are, of which kind, in which kernel, and what it is.
fn tell(settings: &FindingSettings, kernel: &str, kind: &str, place: &mut Place) {
    let more = place.found - place.told;
    let is_new = place.told == 0;
    place.told = place.found;
    let kernel = wavetap::code_object::demangle(kernel);
    let Some(path) = &settings.file else {
        if is_new {
            stderr_line!("wavetap: kernel {kernel}: {kind}: {}", place.text);
        }
        return;
    };
    let line =
        format!("{more}\t{kind}\t{}\t{}\n", kernel.replace(['\t', '\n'], " "), place.text.replace(['\t', '\n'], " "));
    let written =
        OpenOptions::new().create(true).append(true).open(path).and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        stderr_line!("wavetap: cannot write {}: {error}; kernel {kernel}: {kind}: {}", path.display(), place.text);
    }
}
