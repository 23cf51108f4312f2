//! The samples and the counts that their sources say, which `hip-samples/README.md` describes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use wavetap::profile::file::{KernelTotals, SiteTotals};
use wavetap::profile::probes::branches::BranchCounts;

use crate::stand_in::root;

/// The targets that the prebuilt samples have code for.
pub const TARGETS: [&str; 3] = ["gfx90a", "gfx906", "gfx942"];

/// Seeds of strict mode that are tried; with `WAVETAP_FULL_TESTS=1` as many as a release needs.
pub fn seeds() -> u64 {
    if std::env::var("WAVETAP_FULL_TESTS").is_ok_and(|value| value == "1") { 20 } else { 2 }
}

/// A file of `hip-samples/expected`.
#[derive(Deserialize)]
pub struct Expectations {
    schema: String,
    pub kernels: BTreeMap<String, Kernel>,
}

#[derive(Deserialize)]
pub struct Kernel {
    pub dispatches: u64,
    pub waves: u64,
    #[serde(default = "yes")]
    pub complete: bool,
    pub vector: Vec<Vector>,
    #[serde(default)]
    pub scalar: Vec<Scalar>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
pub struct Vector {
    /// The device function it is in, if not the kernel itself.
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: u32,
    pub text: Option<String>,
    pub by: Option<String>,
    pub executions: u64,
    pub agreements: u64,
    pub lanes_before: u64,
    pub lanes_after: [u64; 2],
}

#[derive(Debug, Deserialize)]
pub struct Scalar {
    pub file: Option<String>,
    pub line: u32,
    pub text: Option<String>,
    pub executions: u64,
    pub taken: [u64; 2],
}

pub fn samples() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join("hip-samples/bin"))
        .expect("the samples")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 14);
    names
}

pub fn expectations(name: &str) -> Expectations {
    let text = fs::read_to_string(root().join(format!("hip-samples/expected/{name}.yaml")))
        .expect("expectations of every sample");
    let expected: Expectations = serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(expected.schema, "wavetap.sample-expectations/1");
    expected
}

pub fn at(site: &SiteTotals, file: &str, line: u32) -> bool {
    site.source.as_ref().is_some_and(|source| source.line == line && Path::new(&source.file).ends_with(file))
}

/// Which sites are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those of the kernel and the functions that it calls.
    All,
    /// Those of the kernel's own code: functions run as they were compiled, uncounted.
    Kernel,
}

/// Compares a kernel's counts with the expected ones; gives what differs.
pub fn differences(name: &str, kernel: &KernelTotals, expected: &Kernel, scope: Scope) -> Vec<String> {
    let mut wrong = Vec::new();
    if (kernel.dispatches, kernel.waves) != (expected.dispatches, expected.waves) {
        wrong.push(format!("{} dispatches of {} waves", kernel.dispatches, kernel.waves));
    }
    let own = format!("{name}.hip");
    let reached = |site: &&SiteTotals| {
        matches!(BranchCounts::of(&site.counts), Some(BranchCounts::Exec(counts))
        if counts.executions + counts.empty != 0)
    };
    let mut left: Vec<&SiteTotals> = kernel.sites.iter().filter(reached).collect();
    // Masks that are formed in two instructions last: they must not take the place of a site.
    let (moved, formed): (Vec<&Vector>, Vec<&Vector>) = expected
        .vector
        .iter()
        .filter(|site| scope == Scope::All || site.function.is_none())
        .partition(|site| site.by.as_deref() == Some("mov"));
    for site in formed.iter().chain(&moved) {
        let file = site.file.as_deref().unwrap_or(&own);
        let same = |found: &&SiteTotals| {
            matches!(BranchCounts::of(&found.counts), Some(BranchCounts::Exec(counts))
                if (counts.executions, counts.agreements, counts.lanes_before) == (site.executions, site.agreements,
                    site.lanes_before)
                    && site.lanes_after.contains(&counts.lanes_after)
                    && counts.empty == 0)
        };
        match left.iter().position(|found| at(found, file, site.line) && same(found)) {
            Some(found) => drop(left.remove(found)),
            // Two instructions form these masks, and only one that does so alone is a site.
            None if site.by.as_deref() == Some("mov") => {}
            None => wrong.push(format!("not found: {site:?}")),
        }
    }
    if expected.complete {
        wrong.extend(left.iter().map(|site| format!("not expected: {site:?}")));
    }
    for site in &expected.scalar {
        let file = site.file.as_deref().unwrap_or(&own);
        let same = |found: &SiteTotals| {
            matches!(BranchCounts::of(&found.counts), Some(BranchCounts::Scalar(counts))
                if counts.executions == site.executions && site.taken.contains(&counts.taken))
        };
        if !kernel.sites.iter().any(|found| at(found, file, site.line) && same(found)) {
            wrong.push(format!("not found: {site:?}"));
        }
    }
    wrong
}
