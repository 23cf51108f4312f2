//! What is wrong with memory accesses, as SARIF and as LLVM's remarks. SARIF is held against rules of its
//! specification, written down here; remarks are read by LLVM's own tool. What is to be found follows from the source
//! (`hip-samples/memory`).

use std::collections::BTreeSet;
use std::fs;

use rewriter_tests::command::{self, Finished};
use rewriter_tests::place;
use serde_json::Value;
use wavetap::pipeline::{self, MemoryInputs, Selection};
use wavetap::report::memory::{MemoryReport, remarks, sarif};

const FILE: &str = "hip-samples/memory/bin/accesses";

/// Kernel, workgroup, and what is wrong in it on gfx90a: rule, level, line.
type Expected = (&'static str, [u32; 3], &'static [(&'static str, &'static str, u64)]);

const EXPECTED: &[Expected] = &[
    // x is the row: 32 rows are read at one column, and written at one column.
    ("gemm_rows", [32, 32, 1], &[("strided-access", "error", 17), ("rows-apart", "error", 19)]),
    ("gemm_columns", [32, 32, 1], &[]),
    ("structure_of_arrays", [256, 1, 1], &[]),
    // 4 of 32 bytes.
    ("array_of_structures", [256, 1, 1], &[("strided-access", "error", 59)]),
    // A column of 32 words a row is one bank; of 33 words it is all of them.
    ("column_of_tile<32>", [32, 8, 1], &[("lds-bank-conflict", "error", 83)]),
    ("column_of_tile<33>", [32, 8, 1], &[]),
];

fn report(kernel: &str, workgroup: Option<[u32; 3]>) -> MemoryReport {
    let program = fs::read(place::root().join(FILE)).expect("the program is there");
    let kernels = if kernel.is_empty() { Vec::new() } else { vec![kernel.to_owned()] };
    let selection = Selection { kernels, targets: vec!["gfx90a".to_owned()] };
    pipeline::memory(&program, &selection, MemoryInputs { workgroup, ..MemoryInputs::default() })
        .expect("it can be read")
}

fn as_sarif(report: &MemoryReport) -> Value {
    serde_json::to_value(sarif(report, FILE)).expect("JSON")
}

fn results(log: &Value) -> &[Value] {
    log["runs"][0]["results"].as_array().map(Vec::as_slice).expect("results")
}

fn fingerprints(report: &MemoryReport) -> Vec<String> {
    results(&as_sarif(report)).iter().map(|result| result["partialFingerprints"].to_string()).collect()
}

#[test]
fn what_is_wrong_is_found_at_its_line() {
    for (kernel, workgroup, expected) in EXPECTED {
        let log = as_sarif(&report(kernel, Some(*workgroup)));
        let found: BTreeSet<(String, String, u64)> = results(&log)
            .iter()
            .map(|result| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let line = &result["locations"][0]["physicalLocation"]["region"]["startLine"];
                (text(&result["ruleId"]), text(&result["level"]), line.as_u64().unwrap_or(0))
            })
            .collect();
        let expected: BTreeSet<(String, String, u64)> =
            expected.iter().map(|(rule, level, line)| ((*rule).to_owned(), (*level).to_owned(), *line)).collect();
        assert_eq!(found, expected, "{kernel}");
    }
}

/// Rules of SARIF 2.1.0, by section, for the objects that are written.
fn faults(log: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut rule = |holds: bool, section: &str| {
        if !holds {
            faults.push(section.to_owned());
        }
    };
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    rule(log["version"] == "2.1.0", "3.13.2: the version");
    rule(log["$schema"].as_str().is_some_and(|uri| uri.starts_with("https://")), "3.13.3: an absolute URI");
    for run in log["runs"].as_array().into_iter().flatten() {
        let driver = &run["tool"]["driver"];
        rule(is_text(&driver["name"]), "3.19.8: the name of the tool");
        let rules = driver["rules"].as_array().cloned().unwrap_or_default();
        let ids: BTreeSet<&str> = rules.iter().filter_map(|rule| rule["id"].as_str()).collect();
        rule(ids.len() == rules.len(), "3.49.3: ids are there and differ");
        for described in &rules {
            for text in ["shortDescription", "fullDescription"] {
                rule(is_text(&described[text]["text"]), "3.12.3: a multiformat message has a text");
            }
            rule(!is_text(&described["name"]) || described["name"] != described["id"], "3.49.7: a name that differs");
        }
        for invocation in run["invocations"].as_array().into_iter().flatten() {
            rule(invocation["executionSuccessful"].is_boolean(), "3.20.14: whether it was successful");
            for notification in invocation["toolExecutionNotifications"].as_array().into_iter().flatten() {
                rule(is_text(&notification["message"]["text"]), "3.58.5: a notification has a message");
            }
        }
        for result in run["results"].as_array().into_iter().flatten() {
            let index = result["ruleIndex"].as_u64().and_then(|index| usize::try_from(index).ok());
            let described = index.and_then(|index| rules.get(index));
            rule(described.is_some_and(|rule| rule["id"] == result["ruleId"]), "3.27.6: the index of the rule");
            let level = result["level"].as_str().unwrap_or_default();
            rule(["none", "note", "warning", "error"].contains(&level), "3.27.10: a level");
            rule(is_text(&result["message"]["text"]), "3.27.11: a message");
            let text = result["message"]["text"].as_str().unwrap_or_default();
            rule(!text.replace("{{", "").replace("}}", "").contains(['{', '}']), "3.11.5: braces are doubled");
            rule(!text.contains("]("), "3.11.6: no links");
            rule(result["rank"].as_f64().is_none_or(|rank| (0.0..=100.0).contains(&rank)), "3.27.25: a rank");
            let prints = result["partialFingerprints"].as_object();
            rule(prints.is_some_and(|prints| prints.values().all(is_text)), "3.27.17: fingerprints are strings");
            let locations = result["locations"].as_array().cloned().unwrap_or_default();
            rule(locations.len() == 1, "3.27.12: one location");
            for location in &locations {
                let physical = &location["physicalLocation"];
                let uri = physical["artifactLocation"]["uri"].as_str().unwrap_or_default();
                let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/%:".contains(c);
                rule(!uri.is_empty() && uri.chars().all(plain), "3.4.3: a URI reference");
                rule(!uri.starts_with('/'), "3.4.3: no absolute path without a scheme");
                let line = physical["region"]["startLine"].as_u64();
                let address = physical["address"]["absoluteAddress"].as_u64();
                rule(line.is_some_and(|line| line > 0) != address.is_some(), "3.30.5, 3.32.6: a line or an address");
                let logical = &location["logicalLocations"][0];
                rule(is_text(&logical["fullyQualifiedName"]), "3.33.5: the name of the kernel");
                rule(logical["kind"] == "function", "3.33.7: a kind");
            }
        }
    }
    faults
}

#[test]
fn sarif_keeps_the_rules_of_its_specification() {
    let mut report = report("", None);
    assert_eq!(faults(&as_sarif(&report)), Vec::<String>::new());
    // The rules find what is against them.
    let mut log = as_sarif(&report);
    log["runs"][0]["results"][0]["ruleIndex"] = 6.into();
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"] = Value::Null;
    assert_eq!(faults(&log).len(), 2, "{:?}", faults(&log));
    // Without source lines, with names that mean something to the format, with counts, and with a part unread.
    report.unread.push("kernel {0}".to_owned());
    for (n, access) in report.kernels.iter_mut().flat_map(|kernel| &mut kernel.accesses).enumerate() {
        access.source = None;
        access.array = Some("a[1](2){0}".to_owned());
        (access.executions, access.excess) = (Some(n as u64), access.cost().map(|(cost, ideal)| cost - ideal));
    }
    let log = as_sarif(&report);
    assert_eq!(faults(&log), Vec::<String>::new());
    let shares: Vec<f64> = results(&log).iter().map(|result| result["rank"].as_f64().unwrap_or(0.0)).collect();
    assert!(shares.is_sorted_by(|a, b| a + 1e-3 >= *b) && shares[0] > 5.0, "{shares:?}");
    for (result, share) in results(&log).iter().zip(shares).filter(|(_, share)| *share < 5.0) {
        assert_eq!(result["level"], "note", "{share} %");
    }
}

#[test]
fn fingerprints_differ_and_outlast_a_build() {
    let mut report = report("", None);
    let before = fingerprints(&report);
    assert_eq!(before.iter().collect::<BTreeSet<_>>().len(), before.len(), "they differ");
    for access in report.kernels.iter_mut().flat_map(|kernel| &mut kernel.accesses) {
        access.address += 0x1000;
        access.instruction = access.instruction.replace('v', "v1");
    }
    assert_eq!(fingerprints(&report), before, "registers and addresses are others");
    for access in report.kernels.iter_mut().flat_map(|kernel| &mut kernel.accesses) {
        access.source =
            access.source.take().map(|source| wavetap::profile::map::Source { line: source.line + 1, ..source });
    }
    assert!(fingerprints(&report).iter().all(|print| !before.contains(print)), "lines are others");
}

/// What LLVM's tool makes of some remarks.
fn remarkutil(remarks: &str, arguments: &[&str]) -> Finished {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("remarks.yaml");
    fs::write(&file, remarks).expect("a file can be written");
    let file = file.display().to_string();
    let arguments: Vec<&str> = arguments.iter().copied().chain([file.as_str()]).collect();
    let run = command::run("llvm-remarkutil-19".as_ref(), &arguments, &[], folder.path());
    run.and_then(|finished| finished.exited(0)).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn llvm_reads_the_remarks() {
    let mut report = report("", None);
    // Names that have to be quoted.
    report.kernels[0].name = "it's: {a} #1".to_owned();
    let text = remarks(&report);
    let results = as_sarif(&report);
    let documents = self::results(&results).len() + report.kernels.len();
    // Every document, by the kernel that it is of.
    let count = remarkutil(&text, &["count", "--parser=yaml", "--group-by=function"]).out();
    let counted = |line: &str| line.rsplit(',').next().and_then(|count| count.parse::<usize>().ok());
    assert_eq!(count.lines().filter_map(counted).sum::<usize>(), documents, "{count}");
    assert!(count.contains("it''s: {a} #1"), "LLVM shows quotes as they are written: {count}");
    // And into LLVM's binary form.
    let bits = remarkutil(&text, &["yaml2bitstream", "-o", "-"]);
    assert!(bits.stdout.starts_with(b"RMRK"), "{:?}", bits.stdout.get(..8));
    // An argument that is no text is counted.
    let lines = remarkutil(&text, &["count", "--parser=yaml", "--count-by=arg", "--rargs=Cost", "--group-by=function"]);
    assert!(lines.out().lines().any(|line| line == "_Z19array_of_structuresPK8ParticlePf,32"), "{}", lines.out());
}
