//! Accesses of memory that is not mapped: they end a program, unless inserted code drops them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{program, wavetap};

/// Of the sample: lanes of its 256 work-items that load and store where nothing is.
const LANES: [(&str, u64); 2] = [("out-of-bounds-load", 86), ("out-of-bounds-store", 52)];

#[test]
fn a_program_goes_on_after_accesses_that_are_dropped_and_every_place_is_found() {
    let program = program(".wild");
    let check = |options: &[&str]| {
        let command =
            ["check", "--stack", "rocm", "--instrument", "--tools", "memory", "--target", "gfx90a", "--format", "json"];
        wavetap(&[&command[..], options].concat(), &program, &[])
    };
    let finished = check(&[]);
    assert!(!finished.out().contains("PASS"), "without --drop the first of them ends it: {}", finished.out());
    let finished = check(&["--drop"]);
    let out = finished.out();
    let (said, json) = out.split_once('\n').expect("what the program prints, and the report");
    assert_eq!(said, "PASS", "{out}{}", finished.err());
    let report: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {out}"));
    let findings = report["findings"].as_array().expect("findings");
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for finding in findings {
        *counts.entry(finding["class"].as_str().expect("a class")).or_default() +=
            finding["count"].as_u64().expect("a count");
    }
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), LANES, "{report:#}");
    assert_eq!(finished.code, 1, "{}", finished.err());
}
