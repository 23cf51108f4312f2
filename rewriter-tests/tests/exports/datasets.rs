//! `wavetap export parquet`: the queries of the guide, in the engines that it names, give what `merge` and `diff` say
//! of the same profiles.
//!
//! The engines are where `rewriter-tests/engines.sh` puts them: DuckDB always, Polars and Spark with
//! `WAVETAP_FULL_TESTS=1`. `WAVETAP_ENGINES` is the interpreter that has them; without it, and without the script
//! having run, the test says that it was skipped.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rewriter_tests::command;
use rewriter_tests::place::root;
use serde_json::{Value, json};
use wavetap::Profile;
use wavetap::profile::probes::branches;

use super::{sample, wavetap};

/// Programs of our own with branches that diverge.
const PROGRAMS: [&str; 3] = ["bin/divergence", "bin/nested_loops", "bin/spmv"];
const RANKS: u32 = 8;
const NIGHTS: [&str; 2] = ["night-1", "night-2"];

/// How often a rank runs its program in a night: that is what makes them unequal.
fn runs(night: &str, rank: u32) -> u32 {
    if night == NIGHTS[0] { 1 } else { 1 + rank / 3 }
}

/// The blocks of a language in the guide, in their order.
fn blocks(language: &str) -> Vec<String> {
    let guide = fs::read_to_string(root().join("docs/guide/datasets.md")).expect("the guide");
    let mut blocks = guide.split("\n```").skip(1).step_by(2);
    let mut found = Vec::new();
    for block in &mut blocks {
        if let Some(text) = block.strip_prefix(language) {
            found.push(text.to_owned());
        }
    }
    found
}

/// The interpreter that has the engines.
pub fn engines() -> Option<PathBuf> {
    let python = std::env::var_os("WAVETAP_ENGINES").map(PathBuf::from);
    python.or_else(|| Some(root().join("target/engines/bin/python")).filter(|python| python.exists()))
}

/// What an engine answers to the queries.
fn ask(python: &Path, setup: &str, queries: &[String], folder: &Path) -> Vec<Vec<Value>> {
    let script = root().join("rewriter-tests/tests/exports/engines.py");
    let mut child = Command::new(python)
        .arg(script)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the interpreter starts");
    let asked = json!({ "setup": setup, "queries": queries }).to_string();
    child.stdin.take().expect("a pipe").write_all(asked.as_bytes()).expect("it reads");
    let ended = child.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "{setup}\n{}", String::from_utf8_lossy(&ended.stderr));
    serde_json::from_slice(&ended.stdout).expect("JSON")
}

/// A profile for each rank of a night; gives their names.
fn night(night: &str, folder: &Path) -> Vec<String> {
    let tool = command::wavetap().expect("the command is built");
    let mut names = Vec::new();
    for rank in 0..RANKS {
        let program = sample(PROGRAMS[rank as usize % PROGRAMS.len()]);
        let program = program.to_str().expect("a path");
        // Ranks of one night have their own rank each, whatever they run.
        for time in 0..runs(night, rank) {
            let name = format!("{night}.{rank}.{time}.profile");
            let arguments = ["profile", "-o", &name, "--report", "report", "--force", "--", program];
            let variables = [("OMPI_COMM_WORLD_RANK", rank.to_string().into())];
            command::run(&tool, &arguments, &variables, folder).expect("it ends").exited(0).expect("it is counted");
            names.push(name);
        }
    }
    names
}

/// Source lines with what was counted in a profile: executions and divergences.
fn lines(profile: &Profile) -> BTreeMap<(String, u64), (u64, u64)> {
    let mut lines: BTreeMap<(String, u64), (u64, u64)> = BTreeMap::new();
    let sites = profile.kernels.iter().flat_map(|kernel| &kernel.sites);
    for site in sites.filter(|site| **site.counts.kind() == **branches::EXEC) {
        let source = site.source.as_ref().expect("the samples have line tables");
        let (executions, agreements) = (site.counts.value("executions"), site.counts.value("agreements"));
        let (executions, agreements) = (executions.expect("a field"), agreements.expect("a field"));
        let sum = lines.entry((source.file.clone(), u64::from(source.line))).or_default();
        *sum = (sum.0 + executions, sum.1 + executions - agreements);
    }
    lines
}

fn read(name: &str, folder: &Path) -> Profile {
    Profile::from_json(&fs::read(folder.join(name)).expect("a file")).expect("a profile")
}

#[test]
fn engines_say_what_merge_and_diff_say() {
    let Some(python) = engines() else {
        println!("skipped: no engines; rewriter-tests/engines.sh fetches them");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut merged = Vec::new();
    for one in NIGHTS {
        let names = night(one, folder);
        let name = format!("{one}.merged");
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        wavetap(&[&["merge", "-o", &name][..], &names].concat(), folder);
        merged.push(name);
        // A folder with the profiles of the night, and one that is none.
        let profiles = folder.join(one);
        fs::create_dir(&profiles).expect("a folder");
        fs::write(profiles.join("notes.txt"), "not a profile").expect("a file");
        for name in &names {
            fs::copy(folder.join(name), profiles.join(name)).expect("a copy");
        }
        for (dataset, partition) in [("nights", "rank"), ("few/nights", "run")] {
            fs::create_dir_all(folder.join("few")).expect("a folder");
            let export = ["export", "parquet", "--run", one, "--partition", partition, "-o", dataset];
            wavetap(&[&export[..], &["--counters", one]].concat(), folder);
        }
    }
    let shares = shares(folder);
    let (queries, setups) = (blocks("sql"), blocks("python"));
    assert_eq!((queries.len(), setups.len()), (4, 3), "the guide has these");
    let is_full = std::env::var_os("WAVETAP_FULL_TESTS").is_some();
    for setup in &setups[..if is_full { 3 } else { 1 }] {
        for dataset in [folder.to_path_buf(), folder.join("few")] {
            let answers = ask(&python, setup, &queries, &dataset);
            divergent_lines(&answers[0], &read(&merged[1], folder));
            imbalance(&answers[1], &shares);
            regressions(&answers[2], &merged, folder);
            assert!(answers[3].is_empty(), "all is counted: {:?}", answers[3]);
        }
    }
}

/// The most divergent lines are those of the merged profile.
fn divergent_lines(answer: &[Value], merged: &Profile) {
    let lines = lines(merged);
    let mut expected: Vec<(u64, &str, u64, u64)> = lines
        .iter()
        .map(|((file, line), (executions, divergences))| (*divergences, file.as_str(), *line, *executions))
        .collect();
    expected.sort_by_key(|(divergences, file, line, _)| (std::cmp::Reverse(*divergences), *file, *line));
    expected.truncate(20);
    let number = |row: &Value, name: &str| row[name].as_f64().expect("a number") as u64;
    let found: Vec<(u64, &str, u64, u64)> = answer
        .iter()
        .map(|row| {
            let file = row["file"].as_str().expect("a file");
            (number(row, "divergences"), file, number(row, "line"), number(row, "executions"))
        })
        .collect();
    assert!(found.len() > 4 && found[0].0 > 0, "{found:?}");
    assert_eq!(found, expected);
}

/// How ranks share the waves of kernels in the second night, as the report of their sum says it.
fn shares(folder: &Path) -> Value {
    let profiles: Vec<String> = (0..RANKS)
        .flat_map(|rank| (0..runs(NIGHTS[1], rank)).map(move |time| format!("{}.{rank}.{time}.profile", NIGHTS[1])))
        .collect();
    let profiles: Vec<&str> = profiles.iter().map(String::as_str).collect();
    wavetap(&[&["merge", "--by", "rank", "-o", "shared"][..], &profiles].concat(), folder);
    let report = wavetap(&["report", "--format", "json", "shared"], folder);
    serde_json::from_str::<Value>(&report).expect("JSON")["imbalance"][0].clone()
}

/// The imbalance of kernels is that of the report.
fn imbalance(answer: &[Value], shares: &Value) {
    let kernels = shares["kernels"].as_array().expect("kernels");
    assert_eq!((answer.len(), shares["count"].as_u64()), (kernels.len(), Some(u64::from(RANKS))));
    let mut last = f64::INFINITY;
    for row in answer {
        let kernel = kernels.iter().find(|kernel| kernel["name"] == row["kernel"]).expect("its kernel");
        let totals = kernel["totals"].as_array().expect("totals");
        let waves = totals.iter().find(|total| total["what"] == "waves").expect("its waves");
        for (column, of) in [("least", "min"), ("mean", "mean"), ("most", "max"), ("imbalance", "imbalance")] {
            let (found, expected) = (row[column].as_f64().expect("a number"), waves[of].as_f64().expect("a number"));
            assert!((found - expected).abs() < 1e-9, "{row}: {waves}");
        }
        assert_eq!(row["ranks"].as_f64(), Some(f64::from(RANKS)), "{row}");
        let found = row["imbalance"].as_f64().expect("a number");
        assert!(found <= last, "the worst first");
        last = found;
    }
    assert!(answer[0]["imbalance"].as_f64().expect("a number") > 1.2, "ranks do different work: {}", answer[0]);
}

/// Kernels that diverge more often are those of which `diff` says so.
fn regressions(answer: &[Value], merged: &[String], folder: &Path) {
    let said = wavetap(&["diff", "--format", "json", &merged[0], &merged[1]], folder);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    let count = |kernel: &Value, of: &str| kernel[of]["divergences"].as_u64().expect("a count");
    let mut expected: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for kernel in said["kernels"].as_array().expect("kernels") {
        let (before, now) = (count(kernel, "old"), count(kernel, "new"));
        if now > before {
            expected.insert(kernel["demangled"].as_str().expect("a name"), (before, now));
        }
    }
    let number = |row: &Value, name: &str| row[name].as_f64().expect("a number") as u64;
    let found: BTreeMap<&str, (u64, u64)> = answer
        .iter()
        .map(|row| (row["demangled"].as_str().expect("a name"), (number(row, "before"), number(row, "now"))))
        .collect();
    assert_eq!(found, expected);
    assert!(found.len() > 1, "{found:?}");
}

/// Findings and accesses are there where the program is given, and nothing is added twice.
#[test]
fn a_dataset_is_added_to_and_never_silently_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let program = sample("memory/bin/patterns");
    let program = program.to_str().expect("a path");
    let profile = ["profile", "--target", "gfx90a", "--probe", "memory", "-o", "records", "--report", "report"];
    wavetap(&[&profile[..], &["--", program]].concat(), folder);
    let export = ["export", "parquet", program, "--counters", "records", "-o", "set"];
    wavetap(&export, folder);
    let has = |table: &str| folder.join("set").join(table).join("run=run").is_dir();
    for table in ["runs", "kernels", "launches", "not_counted", "findings", "accesses", "memory_access"] {
        assert!(has(table), "{table}");
    }
    let tool = command::wavetap().expect("the command is built");
    let refused = |arguments: &[&str], expected: &str| {
        let ended = command::run(&tool, arguments, &[], folder).expect("it ends");
        let said = ended.err();
        assert!(said.contains(expected), "{arguments:?}: {said}");
        ended.exited(2).expect("bad usage");
    };
    refused(&export, "the profile is there already");
    wavetap(&[&export[..], &["--force"]].concat(), folder);
    refused(&[&export[..], &["--partition", "run"]].concat(), "a dataset of the other partition");
    refused(&[&export[..], &["--run", "../up"]].concat(), "is no name of a run");
    refused(&[&export[..5], &["-o", "."]].concat(), "is neither empty nor a dataset");
    refused(&[&export[..5]].concat(), "--output <FOLDER>");
    // A profile that cannot be read leaves no half of a dataset.
    fs::write(folder.join("broken"), "{").expect("a file");
    let both = ["export", "parquet", "--counters", "records", "--counters", "broken", "-o", "new"];
    refused(&both, "not a profile");
    assert_eq!(fs::read_dir(folder.join("new")).expect("a folder").count(), 0);
    wavetap(&[&both[..4], &both[6..]].concat(), folder);
    fs::write(folder.join("set/_wavetap.json"), r#"{"schema":"wavetap.dataset/9"}"#).expect("a file");
    refused(&export, "expected \"wavetap.dataset/1\"");
}
