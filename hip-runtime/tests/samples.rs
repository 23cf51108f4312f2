//! The prebuilt samples, unmodified, on every target that they have code for: their output, and the emulator's counts against those
//! worked out from their sources.

mod stand_in;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use stand_in::{StandIn, root};
use wavetap::profile::file::{Counts, KernelTotals, Profile, SiteTotals};

const TARGETS: [&str; 3] = ["gfx90a", "gfx906", "gfx942"];

/// Seeds of strict mode that are tried; with `WAVETAP_FULL_TESTS=1` as many as a release needs.
fn seeds() -> u64 {
    if std::env::var("WAVETAP_FULL_TESTS").is_ok_and(|value| value == "1") { 20 } else { 2 }
}

/// A file of `hip-samples/expected`.
#[derive(Deserialize)]
struct Expectations {
    schema: String,
    kernels: BTreeMap<String, Kernel>,
}

#[derive(Deserialize)]
struct Kernel {
    dispatches: u64,
    waves: u64,
    #[serde(default = "yes")]
    complete: bool,
    vector: Vec<Vector>,
    #[serde(default)]
    scalar: Vec<Scalar>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
struct Vector {
    file: Option<String>,
    line: u32,
    text: Option<String>,
    by: Option<String>,
    executions: u64,
    agreements: u64,
    lanes_before: u64,
    lanes_after: [u64; 2],
}

#[derive(Debug, Deserialize)]
struct Scalar {
    file: Option<String>,
    line: u32,
    text: Option<String>,
    executions: u64,
    taken: [u64; 2],
}

fn samples() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join("hip-samples/bin"))
        .expect("the samples")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 13);
    names
}

fn expectations(name: &str) -> Expectations {
    let text = fs::read_to_string(root().join(format!("hip-samples/expected/{name}.yaml"))).expect("expectations of every sample");
    let expected: Expectations = serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(expected.schema, "wavetap.sample-expectations/1");
    expected
}

fn at(site: &SiteTotals, file: &str, line: u32) -> bool {
    site.source.as_ref().is_some_and(|source| source.line == line && Path::new(&source.file).ends_with(file))
}

/// Compares a kernel's counts with the expected ones; gives what differs.
fn differences(name: &str, kernel: &KernelTotals, expected: &Kernel) -> Vec<String> {
    let mut wrong = Vec::new();
    if (kernel.dispatches, kernel.waves) != (expected.dispatches, expected.waves) {
        wrong.push(format!("{} dispatches of {} waves", kernel.dispatches, kernel.waves));
    }
    let own = format!("{name}.hip");
    let reached = |site: &&SiteTotals| matches!(site.counts, Counts::Exec(counts) if counts.executions + counts.empty != 0);
    let mut left: Vec<&SiteTotals> = kernel.branches.iter().filter(reached).collect();
    // Masks that are formed in two instructions last: they must not take the place of a site.
    let (moved, formed): (Vec<&Vector>, Vec<&Vector>) = expected.vector.iter().partition(|site| site.by.as_deref() == Some("mov"));
    for site in formed.iter().chain(&moved) {
        let file = site.file.as_deref().unwrap_or(&own);
        let same = |found: &&SiteTotals| {
            matches!(found.counts, Counts::Exec(counts)
                if (counts.executions, counts.agreements, counts.lanes_before) == (site.executions, site.agreements, site.lanes_before)
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
        let same = |found: &SiteTotals| matches!(found.counts, Counts::Scalar(counts) if counts.executions == site.executions && site.taken.contains(&counts.taken));
        if !kernel.branches.iter().any(|found| at(found, file, site.line) && same(found)) {
            wrong.push(format!("not found: {site:?}"));
        }
    }
    wrong
}

#[test]
fn counts_are_those_of_the_source() {
    let stand_in = StandIn::new();
    let trace = stand_in.file("trace");
    let trace_path = trace.to_str().expect("a plain path");
    let mut complaints = Vec::new();
    for name in samples() {
        let expected = expectations(&name);
        let program = root().join("hip-samples/bin").join(&name);
        for target in TARGETS {
            stand_in.passes(&program, &[("WAVETAP_TARGET", target), ("WAVETAP_TRACE", trace_path)]);
            let profile = Profile::from_json(&fs::read(&trace).expect("a trace")).expect("a profile");
            assert!(profile.complete, "{name}");
            for (kernel_name, kernel) in &expected.kernels {
                let found = profile.kernels.iter().find(|found| found.demangled.starts_with(&format!("{kernel_name}(")));
                let found = found.unwrap_or_else(|| panic!("{name}: {kernel_name} was not dispatched"));
                complaints
                    .extend(differences(&name, found, kernel).into_iter().map(|text| format!("{name} {target} {kernel_name}: {text}")));
            }
            assert_eq!(profile.kernels.len(), expected.kernels.len(), "{name}: kernels without expectations");
        }
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn output_does_not_depend_on_the_seed() {
    let stand_in = StandIn::new();
    for name in samples() {
        let program = root().join("hip-samples/bin").join(&name);
        for target in TARGETS {
            let plain = stand_in.passes(&program, &[("WAVETAP_TARGET", target)]);
            for seed in 0..seeds() {
                let variables = [("WAVETAP_TARGET", target), ("WAVETAP_STRICT", "1"), ("WAVETAP_SEED", &seed.to_string())];
                assert_eq!(stand_in.passes(&program, &variables), plain, "{name} {target} seed {seed}");
            }
        }
    }
}

#[test]
fn expectations_quote_their_source_lines() {
    for name in samples() {
        let source = fs::read_to_string(root().join(format!("hip-samples/src/{name}.hip"))).expect("the source");
        let lines: Vec<&str> = source.lines().collect();
        for kernel in expectations(&name).kernels.values() {
            let vector = kernel.vector.iter().map(|site| (site.line, site.text.as_ref(), site.file.is_none()));
            let scalar = kernel.scalar.iter().map(|site| (site.line, site.text.as_ref(), site.file.is_none()));
            for (line, text, own) in vector.chain(scalar) {
                assert_eq!(text.is_some(), own, "{name}:{line}");
                if let Some(text) = text {
                    assert!(lines[line as usize - 1].contains(text.as_str()), "{name}:{line} is not {text:?}");
                }
            }
            assert!(kernel.vector.iter().all(|site| site.lanes_after[0] + site.lanes_after[1] == site.lanes_before), "{name}");
            assert!(kernel.scalar.iter().all(|site| site.taken[0] + site.taken[1] == site.executions), "{name}");
        }
    }
}

/// What the command line of `hip-samples/variants.sh` builds: other containers, other versions, other kinds of host file.
#[test]
fn variants_run() {
    let stand_in = StandIn::new();
    let folder = stand_in.file("variants");
    let built = std::process::Command::new(root().join("hip-samples/variants.sh")).arg(&folder).output().expect("the script starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    for name in ["no-pie", "compressed", "two-bundles", "rdc", "features", "v4", "v5", "v6"] {
        stand_in.passes(&folder.join(name), &[("WAVETAP_STRICT", "1")]);
    }
}
