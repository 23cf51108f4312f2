//! A sample on one target in one counter mode: the original and the instrumented run must look alike from outside, and
//! the counts must be those of the emulator's trace and those worked out by hand.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use tempfile::TempDir;
use wavetap::profile::file::Profile;
use wavetap::profile::probes::blocks::{self, BlockCounts};
use wavetap::profile::probes::branches;

use crate::case::Case;
use crate::command::{self, Finished};
use crate::{Failure, counts, place};

/// Seeds of the strict mode that every sample runs with, and with `--full`.
const SEEDS: std::ops::Range<u64> = 0..3;
const FULL_SEEDS: std::ops::Range<u64> = 0..20;

/// Both probes.
const BOTH: &str = "branches,blocks";

/// One sample, target and counter mode.
#[derive(Debug, Clone)]
pub struct SampleTest {
    /// The sample's name.
    pub sample: String,
    /// `gfx90a`.
    pub target: String,
    /// `lds` or `global`.
    pub mode: String,
}

/// What the original did: the same for both counter modes, so it runs once.
#[derive(Debug)]
struct Original {
    finished: Finished,
    trace: Profile,
}

type Once<T> = Arc<OnceLock<Result<Arc<T>, Failure>>>;
/// Values by key.
type Made<K, T> = OnceLock<Mutex<HashMap<K, Once<T>>>>;

/// Makes a value once for each key, whichever test comes first; the others wait for it.
fn once<K: std::hash::Hash + Eq, T>(
    all: &Mutex<HashMap<K, Once<T>>>,
    key: K,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<Arc<T>, Failure> {
    let cell = all.lock().expect("no test panics with the lock held").entry(key).or_default().clone();
    cell.get_or_init(|| make().map(Arc::new)).clone()
}

/// The tests that a sample's case file asks for: `SAMPLE: name`, `TARGETS: …`, `COUNTERS: …`.
///
/// # Errors
/// If a line is missing or one is there that has no meaning here.
pub fn tests_of(case: &Case) -> Result<Vec<SampleTest>, Failure> {
    if let Some(odd) = case.lines.iter().find(|l| !["SAMPLE", "TARGETS", "COUNTERS"].contains(&l.name.as_str())) {
        return Err(format!("{}:{}: {} has no meaning beside SAMPLE", case.path.display(), odd.number, odd.name));
    }
    let words = |name: &str| -> Result<Vec<String>, Failure> {
        let value = case.value(name).ok_or_else(|| format!("{}: no line {name}", case.path.display()))?;
        Ok(value.split_whitespace().map(str::to_owned).collect())
    };
    let mut tests = Vec::new();
    for sample in words("SAMPLE")? {
        for target in words("TARGETS")? {
            for mode in words("COUNTERS")? {
                tests.push(SampleTest { sample: sample.clone(), target: target.clone(), mode });
            }
        }
    }
    Ok(tests)
}

impl SampleTest {
    /// Runs original and instrumented executable on every seed and compares.
    ///
    /// # Errors
    /// What differed, with the commands to repeat it.
    pub fn run(&self) -> Result<(), Failure> {
        let seeds = if crate::full() { FULL_SEEDS } else { SEEDS };
        for seed in seeds.clone() {
            let placement = self.placement(seed);
            let rewritten = self.rewritten_with("branches", placement)?;
            self.compare(&rewritten.path().join(&self.sample), seed)
                .map_err(|e| format!("--placement {placement}, seed {seed}: {e}"))?;
        }
        for seed in seeds.take(if crate::full() { usize::MAX } else { 1 }) {
            // Not that of the branches alone, and another for the next target.
            let placement = self.placement(seed + 1 + self.target.len() as u64);
            let rewritten = self.rewritten_with(BOTH, placement)?;
            self.compare_blocks(&rewritten.path().join(&self.sample), seed)
                .map_err(|e| format!("--probe {BOTH} --placement {placement}, seed {seed}: {e}"))?;
        }
        Ok(())
    }

    /// Which counters are kept in the run of that number: one way and the other. Not all counters find registers.
    fn placement(&self, number: u64) -> &'static str {
        if self.mode == "register" || number.is_multiple_of(2) { "minimal" } else { "all" }
    }

    /// Both probes: the branches as in the original, the blocks as the emulator sees them in this run.
    fn compare_blocks(&self, rewritten: &Path, seed: u64) -> Result<(), Failure> {
        let original = self.original(seed)?;
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let (file, traced) = (folder.path().join("counted.profile"), folder.path().join("trace.profile"));
        let outputs = ["-o".into(), file.clone().into(), "--trace".into(), traced.clone().into()];
        let counted = self.run_once(rewritten, seed, &outputs)?.exited(original.finished.code)?;
        if counted.stdout != original.finished.stdout {
            return Err(counted.failure("the instrumented run wrote something else than the original"));
        }
        let (mut profile, mut trace) = (counts::read_profile(&file)?, counts::read_profile(&traced)?);
        let wrong = |what: &str, e: Failure| counted.failure(&format!("{what}: {e}"));
        if !profile
            .kernels
            .iter()
            .flat_map(|kernel| &kernel.sites)
            .any(|site| site.counts.kind().probe == blocks::PROBE)
        {
            return Err(counted.failure("no blocks were counted"));
        }
        // The epilogue is between what counts a last block and its `s_endpgm`, and leaves EXEC as it needs it.
        for site in [&mut profile, &mut trace]
            .into_iter()
            .flat_map(|profile| &mut profile.kernels)
            .flat_map(|kernel| &mut kernel.sites)
        {
            if let Some(counts) = BlockCounts::of(&site.counts).filter(|_| site.instruction == "s_endpgm") {
                site.counts = BlockCounts { lanes: 0, ..counts }.into();
            }
        }
        counts::same_as_trace(&profile, &trace).map_err(|e| wrong("the counts are not those of the trace", e))?;
        let mut branches = profile.clone();
        branches
            .kernels
            .iter_mut()
            .for_each(|kernel| kernel.sites.retain(|site| site.counts.kind().probe == branches::PROBE));
        counts::same_as_trace(&branches, &original.trace)
            .map_err(|e| wrong("the branches are not those of the original", e))
    }

    fn compare(&self, rewritten: &Path, seed: u64) -> Result<(), Failure> {
        let original = self.original(seed)?;
        counts::as_expected(&original.trace, &self.sample).map_err(|e| {
            original.finished.failure(&format!("the emulator's trace is not what was worked out by hand: {e}"))
        })?;
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let file = folder.path().join("counted.profile");
        let counted =
            self.run_once(rewritten, seed, &["-o".into(), file.clone().into()])?.exited(original.finished.code)?;
        if counted.stdout != original.finished.stdout {
            return Err(format!(
                "{}\n{}",
                counted.failure("the instrumented run wrote something else"),
                original.finished.failure("than the original")
            ));
        }
        let profile = counts::read_profile(&file)?;
        let wrong = |what: &str, e: Failure| counted.failure(&format!("{what}: {e}"));
        counts::same_as_trace(&profile, &original.trace)
            .map_err(|e| wrong("the counts are not those of the trace", e))?;
        counts::as_expected(&profile, &self.sample).map_err(|e| wrong("the counts are not those worked out by hand", e))
    }

    /// Runs `wavetap run` in strict mode.
    fn run_once(&self, executable: &Path, seed: u64, more: &[OsString]) -> Result<Finished, Failure> {
        let mut args: Vec<OsString> =
            ["run", "--backend", "emulator", "--strict", "--seed"].map(OsString::from).to_vec();
        args.extend([seed.to_string().into(), "--target".into(), OsString::from(&self.target)]);
        args.extend_from_slice(more);
        args.extend(["--".into(), executable.into()]);
        command::run(&command::wavetap()?, &args, &[], place::root())
    }

    fn original(&self, seed: u64) -> Result<Arc<Original>, Failure> {
        static ALL: Made<(String, String, u64), Original> = OnceLock::new();
        once(ALL.get_or_init(Mutex::default), (self.sample.clone(), self.target.clone(), seed), || {
            let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
            let file = folder.path().join("trace.profile");
            let finished = self
                .run_once(&place::samples().join(&self.sample), seed, &["--trace".into(), file.clone().into()])?
                .exited(0)?;
            if !finished.out().lines().any(|l| l == "PASS") {
                return Err(finished.failure("the original does not print PASS"));
            }
            Ok(Original { finished, trace: counts::read_profile(&file)? })
        })
    }

    /// The rewritten executable (all targets at once), in a folder of its own.
    fn rewritten_with(&self, probes: &'static str, placement: &'static str) -> Result<Arc<TempDir>, Failure> {
        static ALL: Made<(String, String, &str, &str), TempDir> = OnceLock::new();
        once(ALL.get_or_init(Mutex::default), (self.sample.clone(), self.mode.clone(), probes, placement), || {
            let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
            let (input, output): (PathBuf, PathBuf) =
                (place::samples().join(&self.sample), folder.path().join(&self.sample));
            let args: [OsString; 10] = [
                "rewrite".into(),
                input.clone().into(),
                "-o".into(),
                output.clone().into(),
                "--counters".into(),
                OsString::from(&self.mode),
                "--probe".into(),
                probes.into(),
                "--placement".into(),
                placement.into(),
            ];
            command::run(&command::wavetap()?, &args, &[], place::root())?.exited(0)?;
            crate::accept::rewritten(&input, &output)?;
            Ok(folder)
        })
    }
}
