//! Sites of a probe that this program does not have: every command that reads a profile shows them, by their schema.

use std::fs;
use std::path::Path;

use rewriter_tests::command;
use serde_json::{Value, json};

use super::{rows, sample, wavetap};

/// Adds a kind to a profile with blocks of `spmv`, and two sites of it to its first kernel.
fn with_unknown(counted: &str, visits: [u64; 2], shortest: u64) -> String {
    let mut profile: Value = serde_json::from_str(counted).expect("JSON");
    profile["kinds"].as_array_mut().expect("kinds").push(json!({
        "probe": "tiles",
        "name": "load",
        "fields": [
            { "name": "visits", "unit": "executions", "merge": "sum" },
            { "name": "longest", "unit": "cycles", "merge": "max" },
            { "name": "shortest", "unit": "cycles", "merge": "min" },
        ],
    }));
    let first = profile["kernels"][0]["sites"][0]["address"].clone();
    let site = |address: &Value, line: u32, visits: u64, longest: u64, shortest: u64| {
        json!({
            "address": address,
            "instruction": "tile_load v1",
            "source": { "file": "spmv.hip", "line": line },
            "probe": "tiles",
            "kind": "load",
            "counts": { "visits": visits, "longest": longest, "shortest": shortest },
        })
    };
    let sites = profile["kernels"][0]["sites"].as_array_mut().expect("sites");
    sites.push(site(&first, 3, visits[0], 70, u64::MAX));
    sites.push(site(&json!("0xfffff0"), 4, visits[1], 50, shortest));
    serde_json::to_string(&profile).expect("JSON")
}

/// The blanks of a text squeezed.
fn squeezed(text: &str) -> String {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

/// The value of a field of a site or of all sites in a report.
fn total<'v>(report: &'v Value, field: &str) -> &'v Value {
    &report["kernels"][0]["site_tables"][0]["totals"][field]
}

#[test]
fn sites_of_an_unknown_probe_are_in_every_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder: &Path = folder.path();
    let program = sample("bin/spmv");
    let program = program.to_str().expect("a path");
    let profile =
        ["profile", "--probe", "blocks", "--target", "gfx90a", "-o", "counted", "--report", "/dev/null", "--"];
    wavetap(&[&profile[..], &[program]].concat(), folder);
    let counted = fs::read_to_string(folder.join("counted")).expect("a profile");
    fs::write(folder.join("old"), with_unknown(&counted, [5, 9], 30)).expect("written");
    fs::write(folder.join("new"), with_unknown(&counted, [5, 12], 20)).expect("written");

    // What is known is as before.
    let before = wavetap(&["report", "counted"], folder);
    let text = wavetap(&["report", "old"], folder);
    assert!(text.starts_with(before.trim_end()), "{before}\n{text}");
    let text = squeezed(&text);
    assert!(text.contains("probe tiles, kind load\naddress instruction source visits (executions) longest (cycles)"));
    assert!(text.contains("0xfffff0 tile_load v1 spmv.hip:4 9 50 30\n"), "{text}");
    assert!(text.contains("tile_load v1 spmv.hip:3 5 70 none\nall 14 70 30\n"), "{text}");

    let report = |file: &str| -> Value {
        serde_json::from_str(&wavetap(&["report", file, "--format", "json"], folder)).expect("JSON")
    };
    let old = report("old");
    assert_eq!(old["kernels"][0]["site_tables"].as_array().map(Vec::len), Some(1));
    assert_eq!([total(&old, "visits"), total(&old, "longest"), total(&old, "shortest")], [14, 70, 30]);

    wavetap(&["report", "old", "--html", "page.html"], folder);
    let page = fs::read_to_string(folder.join("page.html")).expect("a page");
    assert!(page.contains("probe tiles, kind load") && page.contains("tile_load v1"), "no table");

    let metrics = rows(&wavetap(&["export", "csv", program, "--counters", "old"], folder));
    let metric = |name: &str| metrics.iter().find(|row| row["metric"] == name).map(|row| row["value"].as_str());
    assert_eq!([metric("tiles/load/visits"), metric("tiles/load/shortest")], [Some("14"), Some("30")]);
    let sites = rows(&wavetap(&["export", "sites", "--counters", "old"], folder));
    let unknown: Vec<[&str; 4]> = sites
        .iter()
        .filter(|row| row["probe"] == "tiles")
        .map(|row| ["line", "field", "unit", "value"].map(|column| row[column].as_str()))
        .collect();
    let expected = [
        ["3", "visits", "executions", "5"],
        ["3", "longest", "cycles", "70"],
        ["3", "shortest", "cycles", ""],
        ["4", "visits", "executions", "9"],
        ["4", "longest", "cycles", "50"],
        ["4", "shortest", "cycles", "30"],
    ];
    assert_eq!(unknown, expected);
    assert!(sites.iter().any(|row| row["probe"] == "blocks" && row["field"] == "lanes"), "known probes, too");

    wavetap(&["merge", "old", "new", "-o", "both"], folder);
    let both = report("both");
    assert_eq!([total(&both, "visits"), total(&both, "longest"), total(&both, "shortest")], [31, 70, 20]);

    let diff = squeezed(&wavetap(&["diff", "--wide", "old", "new"], folder));
    for expected in ["tiles/load/visits 14 17 +3\n", "tiles/load/shortest 30 20 -10\n", "visits 9 → 12"] {
        assert!(diff.contains(expected), "{expected}\n{diff}");
    }
    wavetap(&["diff", "old", "new", "--fail-if", "tiles/load/visits>+3"], folder);
    let condition = ["diff", "old", "new", "--fail-if", "tiles/load/visits>+2"];
    let ended = command::run(&command::wavetap().expect("the command is built"), &condition, &[], folder);
    let ended = ended.expect("it ends");
    assert!(ended.out().to_string().contains("condition holds: tiles/load/visits>+2"), "{}", ended.out());
    ended.exited(1).expect("a condition that holds");
}
