//! A program that is made better step by step: what the summary says first of each step, and what `diff` shows between
//! them, against `hip-samples/steps/expected.yaml`, which was written before.

use std::path::Path;

use rewriter_tests::command::{self, Finished};
use rewriter_tests::{Failure, place};
use serde::Deserialize;
use serde_json::Value;
use wavetap::code_object::{CodeObject, digest};
use wavetap::offload_bundle::Input;
use wavetap::pipeline;
use wavetap::profile::file::{Backend, KernelTotals, Origin, Profile};
use wavetap::report::{Report, RunInfo};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectations {
    schema: String,
    steps: Vec<Step>,
    diffs: Vec<Difference>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    program: String,
    dispatches: u64,
    waves: u64,
    first: Option<First>,
    line: Option<String>,
    #[serde(default)]
    never: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct First {
    kind: String,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    old: String,
    new: String,
    #[serde(default)]
    fewer: Vec<String>,
    #[serde(default)]
    same: Vec<String>,
}

fn wavetap(folder: &Path, arguments: &[&str]) -> Result<Finished, Failure> {
    command::run(&command::wavetap()?, arguments, &[], folder)?.exited(0)
}

fn json(folder: &Path, name: &str) -> Result<Value, Failure> {
    let text = std::fs::read(folder.join(name)).map_err(|e| format!("{name}: {e}"))?;
    serde_json::from_slice(&text).map_err(|e| format!("{name}: {e}"))
}

fn steps() -> std::path::PathBuf {
    place::root().join("hip-samples/steps")
}

impl Step {
    fn check(&self, folder: &Path) -> Result<(), Failure> {
        let program = steps().join("bin").join(&self.program).display().to_string();
        let (profile, report) = (format!("{}.profile", self.program), format!("{}.json", self.program));
        let arguments =
            ["profile", "--target", "gfx90a", "-o", &profile, "--format", "json", "--report", &report, "--", &program];
        wavetap(folder, &arguments)?;
        let text =
            wavetap(folder, &["report", "--wide", &profile, "--binary", &program, "--details", "summary"])?.out();
        if text.lines().count() > 12 {
            return Err(format!("more than a dozen lines:\n{text}"));
        }
        let report = json(folder, &report)?;
        let kernel = &report["kernels"][0];
        if (&kernel["dispatches"], &kernel["waves"]) != (&self.dispatches.into(), &self.waves.into()) {
            return Err(format!("{} dispatches and {} waves", kernel["dispatches"], kernel["waves"]));
        }
        let findings = report["summary"]["kernels"][0]["findings"].as_array().ok_or("no findings")?;
        let is = |finding: &Value, kind: &str| finding["kind"].as_str() == Some(kind);
        if let Some(first) = &self.first {
            let found = findings.first().ok_or("nothing was found")?;
            if !is(found, &first.kind) || !found["text"].as_str().is_some_and(|text| text.contains(&first.text)) {
                return Err(format!("the first finding is {found}"));
            }
            if !text.contains(&first.text) {
                return Err(format!("the text lacks {:?}:\n{text}", first.text));
            }
            self.line_of(found)?;
        }
        match findings.iter().find(|finding| self.never.iter().any(|kind| is(finding, kind))) {
            Some(finding) => Err(format!("found: {finding}")),
            None => Ok(()),
        }
    }

    /// Whether a finding names the expected source line.
    fn line_of(&self, finding: &Value) -> Result<(), Failure> {
        let Some(expected) = &self.line else { return Ok(()) };
        let number = finding["source"]["line"].as_u64().ok_or("the finding has no line")?;
        let source =
            std::fs::read_to_string(steps().join(format!("{}.hip", self.program))).map_err(|e| e.to_string())?;
        let line = source.lines().nth(number as usize - 1).unwrap_or_default();
        if line.contains(expected) { Ok(()) } else { Err(format!("line {number} is {line:?}")) }
    }
}

impl Difference {
    fn check(&self, folder: &Path) -> Result<(), Failure> {
        let (old, new) = (format!("{}.profile", self.old), format!("{}.profile", self.new));
        let finished = wavetap(folder, &["diff", &old, &new, "--format", "json"])?;
        let diff: Value = serde_json::from_slice(&finished.stdout).map_err(|e| e.to_string())?;
        let [kernel] = diff["kernels"].as_array().map(Vec::as_slice).unwrap_or_default() else {
            return Err(finished.failure("one kernel was expected"));
        };
        for (names, ordering) in [(&self.fewer, std::cmp::Ordering::Less), (&self.same, std::cmp::Ordering::Equal)] {
            for name in names {
                let of = |side: &str| kernel[side][name].as_u64().ok_or(format!("{side} has no {name}"));
                let (old, new) = (of("old")?, of("new")?);
                if new.cmp(&old) != ordering {
                    return Err(format!("{} to {}: {name}: {old}, then {new}", self.old, self.new));
                }
            }
        }
        Ok(())
    }
}

#[test]
fn the_first_lines_name_what_the_next_step_mends() {
    let text = std::fs::read_to_string(steps().join("expected.yaml")).expect("the expectations are there");
    let expected: Expectations = serde_yaml::from_str(&text).expect("they can be read");
    assert_eq!(expected.schema, "wavetap.step-expectations/1");
    assert!(expected.steps.len() >= 3 && expected.diffs.len() >= 2, "{expected:?}");
    let folder = tempfile::tempdir().expect("a folder");
    for step in &expected.steps {
        step.check(folder.path()).unwrap_or_else(|failure| panic!("{}: {failure}", step.program));
    }
    for diff in &expected.diffs {
        diff.check(folder.path()).unwrap_or_else(|failure| panic!("{} to {}: {failure}", diff.old, diff.new));
    }
}

/// Launches alone are the same as with counters, and nothing is counted.
#[test]
fn launches_alone_need_no_rewriting() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = steps().join("bin/product_launches").display().to_string();
    let arguments = ["profile", "--probe", "none", "--target", "gfx90a", "-o", "alone.profile", "--format", "json"];
    let mut arguments = arguments.to_vec();
    arguments.extend(["--report", "alone.json", "--board", "mi250x", "--", &program, "256"]);
    wavetap(folder.path(), &arguments).expect("it runs");
    let report = json(folder.path(), "alone.json").expect("a report");
    assert_eq!(report["origin"], "launches");
    assert_eq!(report["kernels"][0]["branches"], serde_json::json!([]));
    let table = &report["launch_table"];
    let row = &table["rows"][0];
    assert_eq!((&row["dispatches"], &row["waves"], &row["idle_lanes"]), (&256.into(), &4.into(), &0.into()));
    assert_eq!((&table["boards"][0]["compute_units"], &table["boards"][0]["chosen"]), (&110.into(), &true.into()));
    // Three matrices of 256 KiB to the device, one back; then launches in a row.
    let total = |operation: &str| {
        let totals = table["host"]["totals"].as_array().expect("totals");
        totals
            .iter()
            .find(|step| step["operation"] == operation)
            .map(|step| (step["count"].clone(), step["bytes"].clone()))
    };
    assert_eq!(total("host_to_device"), Some((3.into(), (3 * 256 * 1024).into())));
    assert_eq!(total("device_to_host"), Some((1.into(), (256 * 1024).into())));
    let order = table["host"]["order"].as_array().expect("an order");
    let operations: Vec<&str> = order.iter().filter_map(|step| step["operation"].as_str()).collect();
    assert_eq!(operations, ["host_to_device", "launch", "device_to_host"]);
    assert_eq!(order[1]["count"], 256);
    // The profile can be reported again, and a board of another target has no kernels here.
    let again = wavetap(folder.path(), &["report", "--wide", "alone.profile", "--details", "launches"])
        .expect("a report")
        .out();
    assert!(again.contains("many tiny launches") && again.contains("host to device × 3 (786,432 bytes)"), "{again}");
    let binary = command::wavetap().expect("the command is built");
    let wrong = command::run(&binary, &["report", "alone.profile", "--board", "mi300x"], &[], folder.path());
    let wrong = wrong.and_then(|finished| finished.exited(2)).expect("exit code 2").err();
    assert!(wrong.contains("mi300x: it is a gfx942"), "{wrong}");
}

/// The board that is named is what is modelled, and its processor's code runs.
#[test]
fn a_board_is_modelled_with_its_compute_units() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = steps().join("bin/product_launches").display().to_string();
    for (board, units) in [(&[][..], 104), (&["--board", "mi250x"], 110)] {
        let mut arguments = vec!["run", "--timing", "--format", "json", "--report", "time.json", "--force"];
        arguments.extend(if board.is_empty() { &["--target", "gfx90a"][..] } else { board });
        arguments.extend(["--", &program, "64"]);
        wavetap(folder.path(), &arguments).expect("it runs");
        let time = json(folder.path(), "time.json").expect("a report");
        assert_eq!(time.get("board"), board.get(1).map(|name| serde_json::json!(name)).as_ref());
        let kernel = &time["kernels"][0];
        assert_eq!(kernel["target"], "gfx90a");
        let resources = kernel["resources"].as_array().expect("resources");
        let available = resources.iter().find(|each| each["resource"] == "compute_unit").expect("compute units");
        let cycles = kernel["modelled_cycles"].as_u64().expect("cycles");
        assert_eq!(available["modelled_available"], units * cycles, "{board:?}");
    }
    let binary = command::wavetap().expect("the command is built");
    for wrong in [&["--board", "mi250x", "--target", "gfx942"][..], &["--board", "rx9070"]] {
        let finished = command::run(&binary, &[&["run"], wrong, &["--", &program, "64"]].concat(), &[], folder.path());
        let refused = finished.and_then(|finished| finished.exited(2)).expect("exit code 2").err();
        assert!(refused.contains("gfx90a") || refused.contains("gfx1201"), "{refused}");
    }
}

/// What the code of a sample's kernels says, by name.
fn code_of(sample: &str) -> Vec<wavetap::report::launches::CodeOfKernel> {
    let data = std::fs::read(place::samples().join(sample)).expect("a sample");
    let input = Input::parse(&data).expect("it has code");
    let mut profile = Profile::new(Origin::Launches, Backend::Emulator);
    for found in input.code_objects() {
        let code = CodeObject::parse(found.bytes).expect("a code object");
        profile.kernels.extend(code.kernels().iter().map(|kernel| KernelTotals {
            name: kernel.name.clone(),
            object: digest(found.bytes),
            ..KernelTotals::default()
        }));
    }
    let mut report = Report::new(&profile, RunInfo::default());
    pipeline::explain(&mut report, &profile, &data).expect("it can be decoded")
}

/// `if (i < n) out[i] = …` is a guard; a condition after which all lanes go on is none.
#[test]
fn guards_and_barriers_are_seen_in_code() {
    for (sample, guarded, barriers) in
        [("vectoradd", true, false), ("divergence", false, false), ("lds_reduce", false, true)]
    {
        let code = code_of(sample);
        assert!(code.len() >= 3, "a kernel for each of three targets: {code:?}");
        for kernel in code {
            assert_eq!((kernel.guard.is_some(), kernel.barriers), (guarded, barriers), "{sample}: {kernel:?}");
        }
    }
}

/// Each wave of 832 workgroups of 256 divides 32 times, with one reciprocal; all that it executed is in the trace.
#[test]
fn fidelity_of_what_was_executed() -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|e| format!("no folder: {e}"))?;
    let app = place::root().join("hip-samples/summary/bin/bounds");
    let app = app.to_str().ok_or("a path that is no text")?;
    let options = ["run", "--fidelity", "--trace", "trace", "--format", "json", "--report", "fidelity.json"];
    let arguments: Vec<&str> = options.into_iter().chain(["--target", "gfx90a", "--", app, "divide"]).collect();
    wavetap(folder.path(), &arguments)?;
    let found = json(folder.path(), "fidelity.json")?;
    let kernels = found["kernels"].as_array().ok_or("no kernels")?;
    let [kernel] = &kernels[..] else { return Err(format!("one kernel expected: {found}")) };
    let trace = json(folder.path(), "trace")?;
    assert_eq!(kernel["executed"], trace["kernels"][0]["work"]["instructions"]);
    let others = kernel["instructions"].as_array().ok_or("no instructions")?;
    let number = |value: &Value| value.as_u64().ok_or_else(|| format!("no number: {value}"));
    let sum = others.iter().map(|each| number(&each["executions"])).sum::<Result<u64, String>>()?;
    assert_eq!(number(&kernel["documented"])? + sum, number(&kernel["executed"])?);
    assert_eq!(sum, 832 * 256 / 64 * 32, "{kernel}");
    for each in others {
        assert!(each["instruction"].as_str().is_some_and(|text| text.starts_with("v_rcp_f32")), "{each}");
        assert_eq!((each["exactness"].as_str(), number(&each["ulps"])?), (Some("within-ulps"), 1), "{each}");
    }
    // What is refused is said before anything runs.
    let both = ["run", "--fidelity", "--timing", "--", app];
    let timed = command::run(&command::wavetap()?, &both, &[], folder.path())?.exited(2)?;
    assert!(String::from_utf8_lossy(&timed.stderr).contains("--timing"));
    Ok(())
}
