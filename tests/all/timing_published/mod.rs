//! The timing model beside measurements of hardware that others have published: each number of `published.yaml` by a
//! small kernel whose modelled time depends on what was measured. `docs/results/timing.md` is the result.
//!
//! The published numbers are of this test alone: the model's are in `isa-tables`, and nothing reads both. Where the two
//! are further apart than [`NEAR`], the entry has to say why; that is printed in the page.

mod kernels;
mod page;

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Deserialize;

use self::kernels::{Measurement, Run};
use crate::timed::{Kernel, assemble, assembler_is_there};
use wavetap::emulator::{ModelledTime, Timing};
use wavetap::isa::Target;

const PUBLISHED: &str = include_str!("published.yaml");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/results/timing.md");

/// How far apart a modelled and a published number may be, as a ratio, without an explanation.
const NEAR: f64 = 1.3;

/// What was published.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    /// By the letter that entries name.
    sources: BTreeMap<String, String>,
    /// What is compared with nothing, and why.
    not_compared: Vec<String>,
    topics: Vec<Topic>,
}

/// Numbers of one unit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topic {
    title: String,
    unit: String,
    about: Option<String>,
    rows: Vec<Row>,
}

/// What was measured, on several boards.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    what: String,
    kernel: Measurement,
    boards: Vec<Entry>,
}

/// One number.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    target: String,
    board: String,
    published: Number,
    source: String,
    /// Why the model's number is another one.
    explained: Option<String>,
    /// Instead of the row's.
    kernel: Option<Measurement>,
}

impl Entry {
    fn target(&self) -> Target {
        Target::by_name(&self.target).unwrap_or_else(|| panic!("{}: no target", self.target))
    }
}

/// Exact, or a range.
#[derive(Deserialize, Clone, Copy)]
#[serde(untagged)]
enum Number {
    Exact(f64),
    Range([f64; 2]),
}

impl Number {
    /// How many times as large a modelled number is; 1 in the range.
    fn ratio(self, modelled: f64) -> f64 {
        let (low, high) = match self {
            Number::Exact(number) => (number, number),
            Number::Range([low, high]) => (low, high),
        };
        if modelled < low { modelled / low } else { (modelled / high).max(1.0) }
    }
}

/// A number and the model's.
struct Compared<'p> {
    topic: &'p Topic,
    row: &'p Row,
    entry: &'p Entry,
    modelled: f64,
}

impl Compared<'_> {
    fn ratio(&self) -> f64 {
        self.entry.published.ratio(self.modelled)
    }

    fn near(&self) -> bool {
        // What the page shows counts.
        let shown = (self.ratio() * 100.0).round() / 100.0;
        (1.0 / NEAR..=NEAR).contains(&shown)
    }
}

/// Runs all kernels, those of a target assembled together.
fn compare(published: &Published) -> Vec<Compared<'_>> {
    let entries: Vec<_> = published
        .topics
        .iter()
        .flat_map(|topic| topic.rows.iter().map(move |row| (topic, row)))
        .flat_map(|(topic, row)| row.boards.iter().map(move |entry| (topic, row, entry)))
        .collect();
    let runs: Vec<Vec<Run>> = entries
        .iter()
        .map(|(_, row, entry)| entry.kernel.as_ref().unwrap_or(&row.kernel).runs(entry.target()))
        .collect();
    let mut together: BTreeMap<(&str, u32), Vec<(&Kernel, String)>> = BTreeMap::new();
    for (n, runs) in runs.iter().enumerate() {
        for (m, run) in runs.iter().enumerate() {
            let of = together.entry((run.kernel.target, run.kernel.lanes)).or_default();
            of.push((&run.kernel, format!("k{n}_{m}")));
        }
    }
    let images: BTreeMap<(&str, u32), Vec<u8>> =
        together.par_iter().map(|(of, kernels)| (*of, assemble(kernels))).collect();
    let modelled: Vec<f64> = entries
        .par_iter()
        .zip(&runs)
        .enumerate()
        .map(|(n, ((_, row, entry), runs))| {
            let times: Vec<ModelledTime> = runs
                .iter()
                .enumerate()
                .map(|(m, run)| {
                    let image = &images[&(run.kernel.target, run.kernel.lanes)];
                    let (name, memory) = (format!("k{n}_{m}"), (&run.memory[..], run.bytes));
                    let (stats, _) = run.kernel.run_in(image, &name, memory, run.size, Some(Timing::default()));
                    *stats.time.expect("timing was on")
                })
                .collect();
            entry.kernel.as_ref().unwrap_or(&row.kernel).result(entry.target(), &times)
        })
        .collect();
    entries
        .into_iter()
        .zip(modelled)
        .map(|((topic, row, entry), modelled)| Compared { topic, row, entry, modelled })
        .collect()
}

#[test]
fn modelled_numbers_are_near_published_ones_or_explained() {
    if !assembler_is_there() {
        return;
    }
    let published: Published = serde_yaml::from_str(PUBLISHED).expect("published.yaml");
    let compared = compare(&published);
    let mut wrong = Vec::new();
    for each in &compared {
        let Entry { target, source, explained, .. } = each.entry;
        let name = format!("{}, {}: {:.2} times what {source} says", each.row.what, target, each.ratio());
        for letter in source.split(' ') {
            if !published.sources.contains_key(letter) {
                wrong.push(format!("{name}: no such source"));
            }
        }
        match (each.near(), explained) {
            (false, None) => wrong.push(format!("{name} ({:.1}), without an explanation", each.modelled)),
            (true, Some(_)) => wrong.push(format!("{name}, which needs no explanation")),
            _ => {}
        }
    }
    let made = page::page(&published, &compared);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(PAGE, &made).expect("written");
    }
    let found = std::fs::read_to_string(PAGE).unwrap_or_default();
    if found != made {
        wrong.push("docs/results/timing.md is not what the model says; BLESS=1 writes it anew".into());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
