//! The measured rows, and running the program of each.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use md5::{Digest, Md5};
use rewriter_tests::{Failure, command, hip, place};
use serde::{Deserialize, Serialize};

use crate::Compared;
use crate::programs::{self, PROGRAMS};

/// Where the times were measured.
pub const BOARD: &str = "mi300a";
const TARGET: &str = "gfx942";
/// `timeout` says that it ended what it ran.
const ENDED: i32 = 124;

/// What others measured, in microseconds.
#[derive(Debug, Clone)]
pub struct Measured {
    pub program: String,
    pub arguments: String,
    pub iterations: u32,
    pub average: f64,
    pub least: f64,
    pub most: f64,
    pub copied_bytes: u64,
    /// MGPUSim's simulated time.
    pub mgpusim: Option<f64>,
}

impl Measured {
    /// The product of its sizes: what takes longer to model has more.
    fn size(&self) -> u64 {
        self.arguments.split_whitespace().filter_map(|word| word.parse::<u64>().ok()).product()
    }
}

/// A row of the file.
#[derive(Deserialize)]
struct Line {
    program: String,
    arguments: String,
    iterations: u32,
    average_ms: f64,
    least_ms: f64,
    most_ms: f64,
    copied_bytes: Option<u64>,
    mgpusim_ms: Option<f64>,
}

pub fn measured() -> Result<Vec<Measured>, Failure> {
    let file = place::root().join("rewriter-tests/hardware-times.csv");
    let failed = |e: csv::Error| format!("{}: {e}", file.display());
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_path(&file).map_err(failed)?;
    let lines: Result<Vec<Line>, csv::Error> = reader.deserialize().collect();
    Ok(lines
        .map_err(failed)?
        .into_iter()
        .map(|line| Measured {
            program: line.program,
            arguments: line.arguments,
            iterations: line.iterations,
            average: line.average_ms * 1e3,
            least: line.least_ms * 1e3,
            most: line.most_ms * 1e3,
            copied_bytes: line.copied_bytes.unwrap_or(0),
            mgpusim: line.mgpusim_ms.map(|ms| ms * 1e3),
        })
        .collect())
}

/// What the model gave.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Modelled {
    /// Launches of one call, and the cycles of all of them.
    Run {
        launches: u64,
        cycles: u64,
        /// Where only a part of the workgroups was modelled, how far the time may be off, in thousandths.
        #[serde(default)]
        extrapolated: Option<u32>,
    },
    /// It was not done in time, or a smaller size of its program was not.
    Limit,
    /// Why it could not be run.
    Refused(String),
}

/// A row that has been run, in the file of those.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// Of the emulator and the program.
    digest: String,
    program: String,
    arguments: String,
    /// The limit.
    seconds: u64,
    modelled: Modelled,
}

/// Runs rows.
pub struct Runner {
    wavetap: PathBuf,
    folder: PathBuf,
    seconds: u64,
    digests: BTreeMap<&'static str, String>,
    kept: Vec<Kept>,
}

impl Runner {
    /// Compiles the programs that are newer than their executables.
    pub fn new(checkout: PathBuf, seconds: u64) -> Result<Runner, Failure> {
        let wavetap = command::wavetap()?;
        let folder = place::build_folder().join("hardware-times");
        let bitcode = folder.join("bitcode");
        hip::device_libraries(&bitcode)?;
        let emulator = digest(&[place::hip_runtime()])?;
        let mut digests = BTreeMap::new();
        for program in PROGRAMS {
            let executable = folder.join(program.name);
            let source = checkout.join("gpu_perf_scripts").join(program.name).with_extension("cpp");
            let age = |file: &Path| fs::metadata(file).and_then(|data| data.modified()).ok();
            if age(&executable).is_none_or(|made| age(&source).is_none_or(|written| written > made)) {
                eprintln!("hardware_times: compiling {}", program.name);
                hip::compile((&source, &executable), &bitcode, &[TARGET], &[])?;
            }
            digests.insert(program.name, format!("{emulator} {}", digest(&[executable])?));
        }
        let text = fs::read_to_string(folder.join("rows.jsonl")).unwrap_or_default();
        // What was being written when a run was killed is not whole.
        let kept = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Runner { wavetap, folder, seconds, digests, kept })
    }

    /// Runs rows on two threads, each program's by their sizes.
    pub fn run(&self, mut rows: Vec<Measured>) -> Result<Vec<Compared>, Failure> {
        let order = |name: &str| PROGRAMS.iter().position(|program| program.name == name);
        rows.sort_by_key(|row| (order(&row.program), row.size()));
        let file = fs::OpenOptions::new().create(true).append(true).open(self.folder.join("rows.jsonl"));
        let file = Mutex::new(file.map_err(|e| e.to_string())?);
        let (next, done, failed) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()), Mutex::new(None));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some((at, row)) =
                        Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, rows.get(at)?)))
                    {
                        let before = |done: &BTreeMap<usize, Modelled>| {
                            done.iter().any(|(&other, modelled)| {
                                other < at && rows[other].program == row.program && matches!(modelled, Modelled::Limit)
                            })
                        };
                        let limited = before(&done.lock().expect("no panic"));
                        let modelled = match self.kept(row) {
                            Some(modelled) => Ok(modelled),
                            None if limited => Ok(Modelled::Limit),
                            None => self.row(row, &file),
                        };
                        match modelled {
                            Ok(modelled) => {
                                eprintln!(
                                    "hardware_times: {} of {}: {} {}: {modelled:?}",
                                    at + 1,
                                    rows.len(),
                                    row.program,
                                    row.arguments
                                );
                                done.lock().expect("no panic").insert(at, modelled);
                            }
                            Err(failure) => *failed.lock().expect("no panic") = Some(failure),
                        }
                    }
                });
            }
        });
        if let Some(failure) = failed.into_inner().expect("no panic") {
            return Err(failure);
        }
        let mut done = done.into_inner().expect("no panic");
        let all = rows.into_iter().enumerate();
        Ok(all.filter_map(|(at, measured)| Some(Compared { modelled: done.remove(&at)?, measured })).collect())
    }

    /// What an earlier run gave.
    fn kept(&self, row: &Measured) -> Option<Modelled> {
        let digest = &self.digests[row.program.as_str()];
        // What was not done in less time may be done in more.
        let same = |kept: &&Kept| {
            (&kept.digest, &kept.program, &kept.arguments) == (digest, &row.program, &row.arguments)
                && (kept.seconds >= self.seconds || !matches!(kept.modelled, Modelled::Limit))
        };
        self.kept.iter().rfind(same).map(|kept| kept.modelled.clone())
    }

    fn row(&self, row: &Measured, file: &Mutex<fs::File>) -> Result<Modelled, Failure> {
        // One call is not measured, one is.
        let words: Vec<&str> = row.arguments.split_whitespace().chain(["--iterations", "1"]).collect();
        let executable = self.folder.join(&row.program);
        let modelled =
            model(&self.wavetap, &executable, &words, &row.program, (["--board", BOARD], "auto"), self.seconds)?;
        let (program, arguments) = (row.program.clone(), row.arguments.clone());
        let (digest, seconds) = (self.digests[row.program.as_str()].clone(), self.seconds);
        let kept = Kept { digest, program, arguments, seconds, modelled: modelled.clone() };
        let line = serde_json::to_string(&kept).map_err(|e| e.to_string())?;
        writeln!(file.lock().expect("no panic"), "{line}").map_err(|e| e.to_string())?;
        Ok(modelled)
    }
}

/// Runs a program that makes two calls, of which the second counts.
pub fn model(
    wavetap: &Path,
    executable: &Path,
    arguments: &[&str],
    name: &str,
    (device, workgroups): ([&str; 2], &str),
    seconds: u64,
) -> Result<Modelled, Failure> {
    let report = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    let mut run = Command::new("timeout");
    run.arg(seconds.to_string()).arg(wavetap);
    run.args(["run", "--timed-workgroups", workgroups])
        .args(device)
        .args(["--force", "--format", "json", "--report"])
        .arg(report.path());
    run.arg("--").arg(executable).args(arguments).stdin(Stdio::null());
    let out = run.output().map_err(|e| format!("timeout: {e}"))?;
    if out.status.code() == Some(ENDED) {
        return Ok(Modelled::Limit);
    }
    if !out.status.success() {
        let text = String::from_utf8_lossy(&out.stderr);
        let line = text.lines().find(|line| line.starts_with("wavetap")).or(text.lines().next());
        return Ok(Modelled::Refused(line.unwrap_or("no reason").to_owned()));
    }
    let text = fs::read_to_string(report.path()).map_err(|e| e.to_string())?;
    let report: Report = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let before = programs::of(name).map_or(&[][..], |program| program.before);
    let is_before = |kernel: &Kernel| before.iter().any(|name| kernel.demangled.contains(name));
    let kernels = report.kernels.iter().filter(|kernel| !is_before(kernel));
    let mut all: Vec<&Dispatch> = kernels.flat_map(|kernel| &kernel.dispatches).collect();
    all.sort_by_key(|dispatch| dispatch.dispatch);
    if all.is_empty() || !all.len().is_multiple_of(2) {
        return Err(format!("{name} {}: {} launches in two calls", arguments.join(" "), all.len()));
    }
    let second = &all[all.len() / 2..];
    let cycles = second.iter().map(|dispatch| dispatch.modelled_cycles).sum();
    let errors = second.iter().filter_map(|dispatch| dispatch.extrapolated.as_ref()).map(|part| part.error_permille);
    Ok(Modelled::Run { launches: second.len() as u64, cycles, extrapolated: errors.max() })
}

#[derive(Deserialize)]
struct Report {
    kernels: Vec<Kernel>,
}

#[derive(Deserialize)]
struct Kernel {
    demangled: String,
    dispatches: Vec<Dispatch>,
}

#[derive(Deserialize)]
struct Dispatch {
    dispatch: u64,
    modelled_cycles: u64,
    extrapolated: Option<Extrapolated>,
}

#[derive(Deserialize)]
struct Extrapolated {
    error_permille: u32,
}

fn digest(files: &[PathBuf]) -> Result<String, Failure> {
    let mut digest = Md5::new();
    for file in files {
        digest.update(fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?);
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
