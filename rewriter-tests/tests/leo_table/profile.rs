//! Profiles the programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use md5::{Digest, Md5};
use rewriter_tests::{Failure, command, place};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wavetap::isa::host_times::NEXT_LAUNCH_NS;

use crate::table::{Row, folder};

/// All probes that can be combined.
const PROBES: &str = "branches,blocks,values";
/// Where the paper's times were measured, and its shader clock in megahertz (AMD's data sheet).
const BOARD: &str = "mi300a";
const MEGAHERTZ: f64 = 2100.0;
/// Each version is launched so often; the last call counts.
const CALLS: usize = 2;

/// What the summary says of the kernel with the largest share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    pub kernel: String,
    /// The limit that bounds it, and the first line.
    pub bound: String,
    pub bound_text: String,
    /// Of the first finding.
    pub kind: Option<String>,
    pub place: Option<String>,
    /// The source lines that it names.
    pub lines: Vec<String>,
    /// Of all findings.
    pub texts: Vec<String>,
}

/// A call of one version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    pub launches: u64,
    pub cycles: u64,
}

impl Call {
    /// Microseconds, with what a launch after another one costs.
    pub fn time(&self) -> f64 {
        self.cycles as f64 / MEGAHERTZ + self.launches as f64 * NEXT_LAUNCH_NS as f64 / 1e3
    }
}

/// What was found of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profiled {
    pub found: Found,
    pub as_is: Call,
    pub fixed: Option<Call>,
}

impl Profiled {
    /// How many times as fast the change makes it.
    pub fn speedup(&self) -> Option<f64> {
        Some(self.as_is.time() / self.fixed.as_ref()?.time())
    }

    /// All of it, for people who judge it.
    pub fn text(&self) -> String {
        let Found { kernel, bound, bound_text, kind, place, lines, texts } = &self.found;
        let speedup = self.speedup().map_or(String::new(), |speedup| format!("; {speedup:.2} times as fast"));
        format!("{kernel}: {bound}: {bound_text}; {kind:?} at {place:?}, {lines:?}: {texts:#?}{speedup}")
    }
}

/// A row that has been profiled, in its file.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// Of the command, the emulator and the program.
    digest: String,
    profiled: Profiled,
}

pub struct Runner {
    wavetap: PathBuf,
    folder: PathBuf,
}

impl Runner {
    /// Compiles the programs of some rows.
    pub fn new(rows: &[&Row]) -> Result<Runner, Failure> {
        let folder = place::build_folder().join("leo-table");
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut build = Command::new(place::root().join("hip-samples/build.sh"));
        build.args(["--leo", "-o"]).arg(&folder).args(rows.iter().map(|row| &row.program));
        let out = build.output().map_err(|e| format!("{build:?}: {e}"))?;
        if !out.status.success() {
            return Err(format!("{build:?}:\n{}", String::from_utf8_lossy(&out.stderr)));
        }
        Ok(Runner { wavetap: command::wavetap()?, folder })
    }

    /// Profiles rows on two threads.
    pub fn run(&self, rows: &[&Row], with_fixed: bool) -> Result<Vec<Profiled>, Failure> {
        let (next, all) = (AtomicUsize::new(0), Mutex::new(vec![None; rows.len()]));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some((at, row)) =
                        Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, rows.get(at)?)))
                    {
                        let profiled = self.row(row, with_fixed).map_err(|failure| format!("{}: {failure}", row.row));
                        eprintln!("leo_table: {} is profiled", row.row);
                        all.lock().expect("no panic")[at] = Some(profiled);
                    }
                });
            }
        });
        all.into_inner().expect("no panic").into_iter().map(|each| each.ok_or("not profiled")?).collect()
    }

    fn row(&self, row: &Row, with_fixed: bool) -> Result<Profiled, Failure> {
        let (program, file) = (self.folder.join(&row.program), self.folder.join(format!("{}.json", row.program)));
        let digest = digest(&[&self.wavetap, &place::hip_runtime(), &program])?;
        let kept = fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str::<Kept>(&text).ok());
        if let Some(kept) = kept.filter(|kept| kept.digest == digest && (kept.profiled.fixed.is_some() || !with_fixed))
        {
            return Ok(kept.profiled);
        }
        let (report, _) = self.profile(&program, "as_is")?;
        let fixed = if with_fixed { Some(call(&self.profile(&program, "fixed")?.0)?) } else { None };
        let profiled = Profiled { found: found(&report)?, as_is: call(&report)?, fixed };
        let kept = Kept { digest, profiled: profiled.clone() };
        let text = serde_json::to_string(&kept).map_err(|e| e.to_string())?;
        fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(profiled)
    }

    /// The report of one version, and what the program printed.
    fn profile(&self, program: &Path, version: &str) -> Result<(Value, String), Failure> {
        let scratch = tempfile::tempdir().map_err(|e| e.to_string())?;
        let program = program.display().to_string();
        let before = ["profile", "--board", BOARD, "--probe", PROBES, "--timing", "--timed-workgroups", "auto"];
        let after = ["--format", "json", "--report", "report.json", "--", &program, version];
        let finished = command::run(&self.wavetap, &[&before[..], &after[..]].concat(), &[], scratch.path())?;
        let out = finished.exited(0)?.out();
        if !out.lines().any(|line| line == "PASS") {
            return Err(format!("{program} {version}: {out}"));
        }
        let text = fs::read(scratch.path().join("report.json")).map_err(|e| format!("report: {e}"))?;
        Ok((serde_json::from_slice(&text).map_err(|e| format!("report: {e}"))?, out))
    }
}

/// What a summary says of the kernel with the largest share.
fn found(report: &Value) -> Result<Found, Failure> {
    let kernel = &report["summary"]["kernels"][0];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let bound = &kernel["bound"]["first"];
    let findings = kernel["findings"].as_array().ok_or("no findings")?;
    let first = findings.first().unwrap_or(&Value::Null);
    let file = first["source"]["file"].as_str().and_then(|file| file.rsplit('/').next());
    let place = file.zip(first["source"]["line"].as_u64()).map(|(file, line)| format!("{file}:{line}"));
    Ok(Found {
        kernel: text(&kernel["title"]).ok_or("no kernel")?,
        bound: text(&bound["limit"]).ok_or("no bound")?,
        bound_text: text(&bound["text"]).ok_or("no bound")?,
        kind: text(&first["kind"]),
        lines: lines(place.as_deref(), first["text"].as_str().unwrap_or_default())?,
        place,
        texts: findings.iter().filter_map(|finding| text(&finding["text"])).collect(),
    })
}

/// The source lines of a finding: that of its place, and those that its text names as `(FILE:LINE, LINE, …)`.
fn lines(place: Option<&str>, text: &str) -> Result<Vec<String>, Failure> {
    let more = text.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(inside, _)| inside);
    let (mut file, mut found) = (String::new(), Vec::new());
    for word in place.into_iter().chain(more.split(", ")) {
        let number = match word.rsplit_once(':') {
            Some((name, number)) => {
                name.clone_into(&mut file);
                number
            }
            None => word,
        };
        let source = folder().join(&file);
        if let (Ok(number), true) = (number.parse::<usize>(), source.is_file()) {
            let text = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
            let line = number.checked_sub(1).and_then(|at| text.lines().nth(at));
            let line = line.ok_or_else(|| format!("{file} has no line {number}"))?.trim().to_owned();
            if !found.contains(&line) {
                found.push(line);
            }
        }
    }
    Ok(found)
}

/// The last of the calls.
fn call(report: &Value) -> Result<Call, Failure> {
    let kernels = report["time"]["kernels"].as_array().ok_or("no modelled time")?;
    let mut dispatches: Vec<(u64, u64)> = kernels
        .iter()
        .flat_map(|kernel| kernel["dispatches"].as_array().into_iter().flatten())
        .filter_map(|each| Some((each["dispatch"].as_u64()?, each["modelled_cycles"].as_u64()?)))
        .collect();
    dispatches.sort_unstable();
    if dispatches.is_empty() || !dispatches.len().is_multiple_of(CALLS) {
        return Err(format!("{} launches in {CALLS} calls", dispatches.len()));
    }
    let launches = dispatches.len() / CALLS;
    let cycles = dispatches[dispatches.len() - launches..].iter().map(|(_, cycles)| cycles).sum();
    Ok(Call { launches: launches as u64, cycles })
}

fn digest(files: &[&Path]) -> Result<String, Failure> {
    let mut digest = Md5::new();
    for file in files {
        digest.update(fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?);
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
