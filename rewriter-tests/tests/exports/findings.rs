//! All findings of a run as SARIF and as remarks of LLVM: against the report and the recorded accesses of the same
//! profile, which other code writes, and against counts that were worked out by hand from the source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rewriter_tests::finding_forms::{remarkutil, sarif_faults};
use serde_json::Value;

use super::{sample, wavetap};

/// The rules of what is found in recorded accesses, by their names in `wavetap.memory/1`.
const RECORDED: [(&str, &str); 12] = [
    ("hot", "recorded-hot"),
    ("hot_random", "recorded-hot-random"),
    ("small_slices", "recorded-small-slices"),
    ("strided", "recorded-strided"),
    ("misaligned", "recorded-misaligned"),
    ("halo", "recorded-halo"),
    ("uncoalesced", "recorded-uncoalesced"),
    ("lds_thread_private", "recorded-lds-private"),
    ("lds_wave_local", "recorded-lds-wave-local"),
    ("bank_conflict", "recorded-bank-conflict"),
    ("few_lanes", "recorded-few-lanes"),
    ("uniform_load", "recorded-uniform-load"),
];

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn all(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Profiles a program; gives the file.
fn profile(program: &str, probes: &str, file: &str, folder: &Path) {
    let arguments = ["profile", "--probe", probes, "--target", "gfx90a", "--force", "-o", file, "--report"];
    wavetap(&[&arguments[..], &["/dev/null", "--", program]].concat(), folder);
}

/// Results of a log by kernel (mangled), rule and line; 0 where there is none.
type Found<'v> = BTreeMap<(&'v str, &'v str, u64), Vec<&'v Value>>;

fn found(log: &Value) -> Found<'_> {
    let mut found = Found::new();
    for result in all(&log["runs"][0]["results"]) {
        let location = &result["locations"][0];
        let kernel = text(&location["logicalLocations"][0]["decoratedName"]);
        let line = location["physicalLocation"]["region"]["startLine"].as_u64().unwrap_or(0);
        found.entry((kernel, text(&result["ruleId"]), line)).or_default().push(result);
    }
    found
}

/// The same findings in both forms: of SARIF the results, of remarks the documents but for those of kernels.
fn agree(log: &Value, remarks: &str) {
    assert_eq!(sarif_faults(log), Vec::<String>::new());
    let results = all(&log["runs"][0]["results"]);
    let notes = all(&log["runs"][0]["invocations"][0]["toolExecutionNotifications"]);
    let of_kernels: BTreeSet<String> = notes.iter().map(|note| note["locations"].to_string()).collect();
    let count = remarkutil(remarks, &["count", "--parser=yaml", "--group-by=function"]).expect("LLVM reads them").out();
    let counted = |line: &str| line.rsplit(',').next().and_then(|count| count.parse::<usize>().ok());
    let documents: usize = count.lines().filter_map(counted).sum();
    assert_eq!(documents, results.len() + of_kernels.len(), "{count}");
    let fingerprints: BTreeSet<String> =
        results.iter().map(|result| result["partialFingerprints"].to_string()).collect();
    assert_eq!(fingerprints.len(), results.len(), "fingerprints differ");
}

#[test]
fn summaries_and_branches_are_exported() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut findings = 0;
    let mut divergent = 0;
    for name in ["bin/nested_loops", "bin/histogram", "bin/early_exit", "bin/two_kernels", "nine/bin/hotspot"] {
        let program = sample(name);
        let program = program.to_str().expect("a path");
        profile(program, "branches,blocks", "counts", folder.path());
        let report = ["report", "counts", "--binary", program, "--format", "json"];
        let report = json(&wavetap(&report, folder.path()));
        let export = |form| wavetap(&["export", form, program, "--counters", "counts"], folder.path());
        let log = json(&export("sarif"));
        agree(&log, &export("remarks"));
        let found = found(&log);
        // What the summary shows is a part of it.
        for kernel in all(&report["summary"]["kernels"]) {
            for finding in all(&kernel["findings"]) {
                let rule = text(&finding["kind"]).replace('_', "-");
                let line = finding["source"]["line"].as_u64().unwrap_or(0);
                let results = found.get(&(text(&kernel["name"]), rule.as_str(), line));
                let says_it = |result: &&&Value| text(&result["message"]["text"]).contains(text(&finding["text"]));
                assert_eq!(results.into_iter().flatten().filter(says_it).count(), 1, "{name}: {finding}");
                findings += 1;
            }
        }
        // Every branch whose lanes disagreed is said, and no other one.
        let mut lines: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for kernel in all(&report["kernels"]) {
            for branch in all(&kernel["branches"]).iter().filter(|branch| branch["divergences"].as_u64() > Some(0)) {
                let (kernel, line) = (text(&kernel["name"]), branch["source"]["line"].as_u64().unwrap_or(0));
                lines.entry(kernel).or_default().insert(line);
                let at = |rule| found.get(&(kernel, rule, line)).into_iter().flatten();
                let is_it = |result: &&&Value| result["properties"]["address"] == branch["address"];
                let own = at("divergent-branch").find(is_it);
                assert!(own.is_some() || at("divergence").next().is_some(), "{name}: {branch}");
                if let Some(own) = own {
                    for (ours, theirs) in [
                        ("executions", "executions"),
                        ("divergences", "divergences"),
                        ("lanesBefore", "lanes_before"),
                        ("lanesAfter", "lanes_after"),
                    ] {
                        assert_eq!(own["properties"][ours], branch[theirs], "{name}: {branch}");
                    }
                    assert_eq!(own["level"], "note");
                }
                divergent += 1;
            }
        }
        for (kernel, rule, line) in found.keys().filter(|(_, rule, _)| rule.starts_with("diverge")) {
            assert!(lines.get(kernel).is_some_and(|lines| lines.contains(line)), "{name}: {kernel}, {rule}, {line}");
        }
    }
    assert!(findings > 5 && divergent > 10, "{findings} findings, {divergent} branches");
}

/// `hip-samples/expected/nested_loops.yaml` has the arithmetic: at line 22 lanes disagree in 152 - 40 of 152
/// executions, at line 26 in 28 - 16 of 28. Line 23 is uniform.
#[test]
fn branches_are_those_of_the_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = sample("bin/nested_loops");
    let program = program.to_str().expect("a path");
    profile(program, "branches", "counts", folder.path());
    let log = json(&wavetap(&["export", "sarif", program, "--counters", "counts"], folder.path()));
    let lines: BTreeSet<u64> =
        found(&log).keys().filter(|(_, rule, _)| rule.starts_with("diverge")).map(|(.., line)| *line).collect();
    assert_eq!(lines, BTreeSet::from([22, 26]));
    let remarks = wavetap(&["export", "remarks", program, "--counters", "counts"], folder.path());
    // The other of the two is what the summary says: in words.
    let counted = |argument: &str| {
        let arguments = ["count", "--parser=yaml", "--count-by=arg", argument, "--group-by=function"];
        remarkutil(&remarks, &arguments).expect("LLVM reads them").out()
    };
    let divergences = counted("--rargs=Divergences");
    assert!(divergences.lines().any(|line| line.ends_with(",12")), "{divergences}");
    let message = found(&log);
    let message = &message[&("_Z12nested_loopsPKiS0_PjPi", "divergent-branch", 26)][0]["message"]["text"];
    assert!(text(message).contains("12 of 28 executions"), "{message}");
}

#[test]
fn recorded_findings_are_exported() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = sample("memory/bin/patterns");
    let program = program.to_str().expect("a path");
    profile(program, "memory", "records", folder.path());
    profile(program, "blocks", "counts", folder.path());
    let both = ["--counters", "records", "--counters", "counts"];
    let memory = ["memory", program, "--target", "gfx90a", "--format", "json"];
    let memory = json(&wavetap(&[&memory[..], &both].concat(), folder.path()));
    let export = |form| wavetap(&[&["export", form, program][..], &both].concat(), folder.path());
    let (log, remarks) = (json(&export("sarif")), export("remarks"));
    agree(&log, &remarks);
    let mut expected: BTreeMap<(String, String), usize> = BTreeMap::new();
    for kernel in all(&memory["kernels"]) {
        for finding in all(&kernel["recorded"]["findings"]) {
            let rule = RECORDED.iter().find(|(kind, _)| *kind == text(&finding["kind"])).expect("a rule").1;
            *expected.entry((text(&kernel["name"]).to_owned(), rule.to_owned())).or_default() += 1;
        }
    }
    let mut exported: BTreeMap<(String, String), usize> = BTreeMap::new();
    for ((kernel, rule, _), results) in found(&log).iter().filter(|((_, rule, _), _)| rule.starts_with("recorded-")) {
        *exported.entry(((*kernel).to_owned(), (*rule).to_owned())).or_default() += results.len();
    }
    assert_eq!(exported, expected);
    assert!(exported.len() > 15, "{exported:?}");
    // From the source: each work-item has its own part of LDS in the one, and none in the other.
    let has = |kernel: &str, rule: &str| exported.keys().any(|(name, of)| name.contains(kernel) && of == rule);
    assert!(has("10ttm_in_lds", "recorded-lds-private") && !has("16ttm_in_registers", "recorded-lds-private"));
}

/// With modelled time kernels have shares of it, and waits are of the model's stalls.
#[test]
fn modelled_time_weighs_findings() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = sample("bin/two_kernels");
    let program = program.to_str().expect("a path");
    profile(program, "branches,blocks", "counts", folder.path());
    let (_, time) = super::time(program, "gfx90a", folder.path());
    let export = ["export", "sarif", program, "--counters", "counts", "--time", "time"];
    let log = json(&wavetap(&export, folder.path()));
    assert_eq!(sarif_faults(&log), Vec::<String>::new());
    let all_cycles: u64 = time.kernels.iter().map(|kernel| kernel.modelled_cycles).sum();
    let notes = all(&log["runs"][0]["invocations"][0]["toolExecutionNotifications"]);
    assert_eq!(notes.len(), time.kernels.len());
    for kernel in &time.kernels {
        let is_it = |note: &&Value| note["locations"][0]["logicalLocations"][0]["decoratedName"] == kernel.name;
        let note = notes.iter().find(is_it).expect("the kernel is said");
        let share = 100.0 * kernel.modelled_cycles as f64 / all_cycles as f64;
        let expected = format!("{share:.1} % of all modelled cycles: ");
        assert!(text(&note["message"]["text"]).contains(&expected), "{note}, {expected}");
    }
    // Ranks are the kernel's share times the weight.
    for result in all(&log["runs"][0]["results"]).iter().filter(|result| result["rank"].is_number()) {
        let number = |value: &Value| value.as_f64().expect("a number");
        let properties = &result["properties"];
        let product = 100.0 * number(&properties["kernelShare"]) * number(&properties["weight"]);
        assert!((number(&result["rank"]) - product).abs() < 1e-6, "{result}");
    }
}

/// A program's own kernels only, of one of them, and with file names that are relative where they can be.
#[test]
fn what_is_selected_is_exported() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(sample("bin/two_kernels"), folder.path().join("two_kernels")).expect("a copy");
    let program = folder.path().join("two_kernels");
    let program = program.to_str().expect("a path");
    profile(program, "branches", "counts", folder.path());
    let kernels = |arguments: &[&str]| -> BTreeSet<String> {
        let export = ["export", "sarif", program, "--counters", "counts"];
        let log = json(&wavetap(&[&export[..], arguments].concat(), folder.path()));
        assert_eq!(log["runs"][0]["artifacts"][0]["location"]["uri"], "two_kernels");
        let notes = all(&log["runs"][0]["invocations"][0]["toolExecutionNotifications"]);
        let name = |note: &Value| text(&note["locations"][0]["logicalLocations"][0]["decoratedName"]).to_owned();
        notes.iter().map(name).collect()
    };
    assert_eq!(kernels(&[]).len(), 3);
    assert_eq!(kernels(&["--target", "gfx90a", "--kernel", "checker"]), BTreeSet::from(["_Z7checkerPjjj".to_owned()]));
}
