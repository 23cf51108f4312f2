//! What is wrong with memory accesses, as SARIF and as LLVM's remarks. SARIF is held against rules of its
//! specification; remarks are read by LLVM's own tool. What is to be found follows from the source
//! (`hip-samples/memory`).

use std::collections::BTreeSet;
use std::fs;

use rewriter_tests::finding_forms::{remarkutil, sarif_faults};
use rewriter_tests::place;
use serde_json::Value;
use wavetap::pipeline::{self, MemoryInputs, Selection};
use wavetap::report::findings::{remarks, sarif};
use wavetap::report::memory::{MemoryReport, finding_log};

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

/// What is wrong with a log, in which every result has a line or an address.
fn faults(log: &Value) -> Vec<String> {
    let placed = |result: &Value| {
        let physical = &result["locations"][0]["physicalLocation"];
        physical["region"].is_object() || physical["address"].is_object()
    };
    let without = results(log).iter().filter(|result| !placed(result)).map(|result| format!("no place: {result}"));
    sarif_faults(log).into_iter().chain(without).collect()
}

fn as_sarif(report: &MemoryReport) -> Value {
    serde_json::to_value(sarif(&finding_log(report, FILE, None))).expect("JSON")
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

#[test]
fn llvm_reads_the_remarks() {
    let mut report = report("", None);
    // Names that have to be quoted.
    report.kernels[0].name = "it's: {a} #1".to_owned();
    let text = remarks(&finding_log(&report, FILE, None));
    let results = as_sarif(&report);
    let documents = self::results(&results).len() + report.kernels.len();
    // Every document, by the kernel that it is of.
    let count = remarkutil(&text, &["count", "--parser=yaml", "--group-by=function"]).expect("they are read").out();
    let counted = |line: &str| line.rsplit(',').next().and_then(|count| count.parse::<usize>().ok());
    assert_eq!(count.lines().filter_map(counted).sum::<usize>(), documents, "{count}");
    assert!(count.contains("it''s: {a} #1"), "LLVM shows quotes as they are written: {count}");
    // And into LLVM's binary form.
    let bits = remarkutil(&text, &["yaml2bitstream", "-o", "-"]).expect("they are read");
    assert!(bits.stdout.starts_with(b"RMRK"), "{:?}", bits.stdout.get(..8));
    // An argument that is no text is counted.
    let lines = remarkutil(&text, &["count", "--parser=yaml", "--count-by=arg", "--rargs=Cost", "--group-by=function"])
        .expect("they are read");
    assert!(lines.out().lines().any(|line| line == "_Z19array_of_structuresPK8ParticlePf,32"), "{}", lines.out());
}
