//! No kernel is above its roof: the modelled time of every kernel of the samples is at least the least time of each
//! resource, whatever bounds it. The timing model and the roofs have their numbers from different tables
//! (`machine.yaml`, `boards.yaml`), the model runs the kernel, and the roofline only adds up what blocks executed.

use std::path::{Path, PathBuf};

use rewriter_tests::command::{self, Finished};
use rewriter_tests::{Failure, full, place};
use serde_json::Value;

const LARGE: &str = "hip-samples/nine/bin";

/// Programs in these folders run on these targets.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("hip-samples/bin", &["gfx90a", "gfx906", "gfx942"]),
    ("hip-samples/memory/bin", &["gfx90a", "gfx942", "gfx1030", "gfx1100"]),
    (LARGE, &["gfx90a", "gfx906", "gfx1030"]),
];

fn wavetap(folder: &Path, arguments: &[&str]) -> Result<Finished, Failure> {
    command::run(&command::wavetap()?, arguments, &[], folder)?.exited(0)
}

/// The roofline of a program with its modelled time.
fn roofline(folder: &Path, program: &Path, target: &str) -> Result<Value, Failure> {
    let program = program.display().to_string();
    let counted = ["profile", "--probe", "blocks", "--target", target, "--force", "-o", "counts", "--", &program];
    wavetap(folder, &counted)?;
    let timed =
        ["run", "--timing", "--target", target, "--force", "--format", "json", "--report", "time", "--", &program];
    wavetap(folder, &timed)?;
    let joined = ["roofline", &program, "--counters", "counts", "--time", "time", "--target", target];
    let finished = wavetap(folder, &[&joined[..], &["--format", "json"]].concat())?;
    serde_json::from_slice(&finished.stdout).map_err(|e| e.to_string())
}

/// Compares each least time of each kernel; how many there were.
fn compare(report: &Value, wrong: &mut Vec<String>) -> usize {
    let kernels = report["kernels"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut compared = 0;
    for kernel in kernels {
        let name = &kernel["demangled"];
        let Some(modelled) = kernel["modelled_microseconds"].as_f64() else {
            wrong.push(format!("{name} has no modelled time: {}", kernel["time_not_used"]));
            continue;
        };
        for time in kernel["times"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let least = time["microseconds"].as_f64().unwrap_or(f64::INFINITY);
            compared += 1;
            if least > modelled {
                wrong.push(format!("{name}: {} needs {least} µs, modelled are {modelled}", time["resource"]));
            }
        }
        // What is read of memory passes L2, and what is read of L2 passes L1.
        let bytes = |level: &str| {
            let levels = kernel["levels"].as_array()?;
            levels.iter().find(|each| each["level"] == level)?["bytes"].as_u64()
        };
        // Stores do not look L1 up.
        let (l1, l2, stored) = (bytes("l1").unwrap_or(0), bytes("l2").unwrap_or(0), bytes("l2_stored").unwrap_or(0));
        if l2 > l1 + stored {
            wrong.push(format!("{name}: {l2} bytes of L2 for {l1} bytes of L1 and {stored} bytes of stores"));
        }
    }
    compared
}

fn programs(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place::root().join(folder)).expect("prebuilt programs");
    let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    all.sort();
    all
}

fn all(folder: &str) {
    let targets = PROGRAMS.iter().find(|(name, _)| *name == folder).map(|(_, targets)| *targets).expect("targets");
    let targets = if folder == LARGE && !full() { &targets[..1] } else { targets };
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for program in programs(folder) {
        for target in targets {
            match roofline(scratch.path(), &program, target) {
                Ok(report) => {
                    let before = wrong.len();
                    compared += compare(&report, &mut wrong);
                    wrong[before..]
                        .iter_mut()
                        .for_each(|what| *what = format!("{} {target}: {what}", program.display()));
                }
                Err(failure) => wrong.push(format!("{} {target}: {failure}", program.display())),
            }
        }
    }
    println!("{folder}: {compared} least times compared with modelled times");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 60, "only {compared} times were compared");
}

#[test]
fn samples_take_at_least_their_least_time() {
    all("hip-samples/bin");
}

#[test]
fn memory_programs_take_at_least_their_least_time() {
    all("hip-samples/memory/bin");
}

/// Those of the benchmark `nine`: thousands of waves, so that one target is enough unless all is tested.
#[test]
fn larger_programs_take_at_least_their_least_time() {
    all(LARGE);
}

#[test]
fn measured_roofs_stand_beside_the_peaks() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = place::root().join("hip-samples/bin/vectoradd").display().to_string();
    let counted = ["profile", "--probe", "blocks", "--target", "gfx90a", "-o", "counts", "--", &program];
    wavetap(folder.path(), &counted).expect("it runs");
    std::fs::write(folder.path().join("roofline.csv"), "device,HBMBw,LDSBw,FP32Flops\n0,1389,17700,20960\n").unwrap();
    let joined = ["roofline", &program, "--counters", "counts", "--roofline", "roofline.csv", "--format", "json"];
    let finished = wavetap(folder.path(), &joined).expect("a roofline");
    let report: Value = serde_json::from_slice(&finished.stdout).expect("JSON");
    let roofs = report["boards"][0]["roofs"].as_array().expect("roofs");
    let memory = roofs.iter().find(|roof| roof["resource"] == "memory").expect("memory");
    assert_eq!((&memory["measured"], &memory["peak"]), (&1389.0.into(), &1638.0.into()));
    std::fs::write(folder.path().join("roofline.csv"), "device,HBMBw,FP32Flops\n0,fast,20960\n").unwrap();
    let binary = command::wavetap().expect("the command is built");
    let wrong = command::run(&binary, &joined, &[], folder.path()).and_then(|finished| finished.exited(2));
    let wrong = wrong.expect("exit code 2").err();
    assert!(wrong.contains("\"fast\" is no rate") && wrong.contains("roofline.csv"), "{wrong}");
}
