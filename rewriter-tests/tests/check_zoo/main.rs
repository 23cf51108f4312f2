//! Programs with one mistake each, after public reports, and the same programs without it: what `wavetap check` says of
//! them against `hip-samples/check/expected.yaml`, which was written before any tool had run on them. All that is
//! expected must be found at its source line, and nothing else; of the programs without mistake nothing.
//!
//! Quick: some programs, others each day, with one seed, and one of them on AMD's runtime over the emulated driver, by
//! the emulator and by inserted code. Full: all, with five seeds. `WAVETAP_CHECK_ONLY=gemm_rows,last_block` checks only
//! these programs, on all targets. Needs clang 19.

mod build;
mod expectations;
mod findings;
mod unwritten;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Failed, Trial};
use rewriter_tests::{Failure, command, day, full};
use serde_json::Value;

use expectations::Program;

const ONLY: &str = "WAVETAP_CHECK_ONLY";
/// Programs of a quick run, each on one target.
const QUICK: usize = 4;
const SEEDS: u64 = 5;

/// One program on one target.
struct Subject {
    program: Program,
    target: String,
    how: How,
    seeds: Vec<u64>,
    /// Where it was compiled to.
    file: PathBuf,
    wavetap: PathBuf,
}

/// What runs and checks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Emulator,
    /// All tools, on AMD's runtime.
    Rocm,
    /// The tool `memory` by inserted code, on AMD's runtime, as on a GPU.
    Probe,
}

fn main() -> ExitCode {
    rewriter_tests::run_trials(trials())
}

fn trials() -> Result<Vec<Trial>, Failure> {
    let programs = expectations::programs()?;
    let examples = programs.clone();
    let mut trials = vec![
        Trial::test("the file has all programs", || expectations::checked().map_err(Failed::from)),
        Trial::test("copies of what nothing has written", || unwritten::check().map_err(Failed::from)),
        Trial::test("reports that differ are told apart", move || findings::checked(&examples).map_err(Failed::from)),
    ];
    for subject in subjects(&programs)? {
        let subject = Arc::new(subject);
        let stack = match subject.how {
            How::Emulator => "",
            How::Rocm => ", on AMD's runtime",
            How::Probe => ", on AMD's runtime by inserted code",
        };
        let name = format!("{} on {}{stack}", subject.program.program, subject.target);
        for mended in [false, true] {
            let (subject, version) = (Arc::clone(&subject), version(mended));
            let trial = move || subject.check(mended).map_err(Failed::from);
            trials.push(Trial::test(format!("{name}, {version}"), trial));
        }
    }
    Ok(trials)
}

fn version(mended: bool) -> &'static str {
    if mended { "mended" } else { "buggy" }
}

/// What is checked in this run.
fn subjects(programs: &[Program]) -> Result<Vec<Subject>, Failure> {
    let only = std::env::var(ONLY).ok();
    let first = usize::try_from(day()).map_err(|e| e.to_string())? * QUICK;
    let chosen: Vec<&Program> = match &only {
        Some(only) => programs.iter().filter(|each| only.split(',').any(|name| name == each.program)).collect(),
        None if full() => programs.iter().collect(),
        None => (0..QUICK).map(|n| &programs[(first + n) % programs.len()]).collect(),
    };
    let seeds: Vec<u64> = if full() { (0..SEEDS).collect() } else { vec![day() % SEEDS] };
    let wavetap = command::wavetap()?;
    let folder = build::built(&chosen)?;
    let subject = |program: &Program, target: &str, how: How, folder: &Path| Subject {
        program: program.clone(),
        target: target.to_owned(),
        how,
        seeds: seeds.clone(),
        file: folder.join(&program.program),
        wavetap: wavetap.clone(),
    };
    let mut subjects = Vec::new();
    for (at, program) in chosen.iter().enumerate() {
        let targets = program.targets();
        let all = full() || only.is_some();
        let some = if all { targets } else { vec![targets[(first / QUICK + at) % targets.len()]] };
        subjects.extend(some.iter().map(|target| subject(program, target, How::Emulator, &folder)));
    }
    let all = || if only.is_some() { chosen.clone() } else { programs.iter().collect() };
    for how in [How::Rocm, How::Probe] {
        let is = |each: &&Program| match how {
            How::Probe => each.probe,
            _ => each.rocm.is_none() && each.targets().contains(&"gfx90a"),
        };
        let mut fit: Vec<&Program> = all().into_iter().filter(is).collect();
        if !full() && only.is_none() {
            fit = vec![fit[first / QUICK % fit.len()]];
        }
        let folder = build::built_for_rocm(&fit)?;
        subjects.extend(fit.iter().map(|program| subject(program, "gfx90a", how, &folder)));
    }
    Ok(subjects)
}

impl Subject {
    /// Runs a version with `wavetap check` and compares what it finds.
    fn check(&self, mended: bool) -> Result<(), Failure> {
        for seed in &self.seeds {
            let scratch = tempfile::tempdir().map_err(|e| e.to_string())?;
            let (seed, file) = (seed.to_string(), self.file.display().to_string());
            let mut line = vec!["check", "--format", "json", "--report", "report.json", "--target", &self.target];
            line.extend(["--seed", &seed]);
            let [schedules, fuel] = [self.program.schedules, self.program.fuel].map(|it| it.map(|it| it.to_string()));
            line.extend(schedules.iter().flat_map(|count| ["--schedules", count]));
            line.extend(fuel.iter().flat_map(|count| ["--fuel", count]));
            line.extend(if self.how == How::Emulator { ["--stack", "hip"] } else { ["--stack", "rocm"] });
            line.extend(if self.how == How::Probe { &["--tools", "memory", "--instrument"][..] } else { &[] });
            line.extend(["--", &file, version(mended)]);
            let finished = command::run(&self.wavetap, &line, &[], scratch.path())?;
            let text = std::fs::read(scratch.path().join("report.json"));
            let text = text.map_err(|e| finished.failure(&format!("no report: {e}")))?;
            let report: Value = serde_json::from_slice(&text).map_err(|e| finished.failure(&format!("report: {e}")))?;
            if report["schema"].as_str().is_none_or(|schema| !schema.starts_with("wavetap.check/")) {
                return Err(finished.failure("the report is of another schema"));
            }
            let wrong = findings::differences(&self.program, mended, &self.target, &report)?;
            if !wrong.is_empty() {
                return Err(finished.failure(&wrong.join("\n")));
            }
            if !findings::is_code(finished.code, &report) {
                return Err(finished.failure("the exit code is not that of the findings"));
            }
            if mended && !finished.out().lines().any(|line| line == "PASS") {
                return Err(finished.failure("the results are wrong"));
            }
        }
        Ok(())
    }
}
