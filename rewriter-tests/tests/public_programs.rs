//! Programs from public repositories that check their own results: `public-programs.yaml` names them, with repository
//! and commit. None of their code is here and nothing here builds it: whoever wants this test builds them as their own
//! documents say, for a processor that the emulator knows, and names the folder with the repositories in it:
//!
//! `WAVETAP_PROGRAMS=FOLDER cargo test --release -p rewriter-tests --test public_programs`
//!
//! A program is looked for at `FOLDER/NAME-OF-REPOSITORY/folder/executable`. Without the variable, or where an
//! executable is not there, its test is reported as ignored, and that is said. Each program
//!
//! - runs on the emulator and must say that its results are right;
//! - runs with kernels that do nothing and must not say so: else its check is empty, and it proves nothing;
//! - is rewritten, run and reported by `wavetap profile`: results still right, nothing refused, some dispatch counted,
//!   and the summary says nothing that a table of the report contradicts.
//!
//! With `WAVETAP_PROGRAMS_STACK=rocm` each program runs on AMD's own libraries, which must be able to run its code
//! objects (Debian 12's take those of version 4), with the emulator below them in place of the kernel driver. It must
//! say that its results are right, as it is and while the HSA tool counts, and its counts must be those that it has on
//! the emulator's own HIP runtime.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Failed, Trial};
use rewriter_tests::command::{self, Finished};
use rewriter_tests::contradictions::contradictions;
use rewriter_tests::{Failure, hip5, place};
use serde::Deserialize;
use wavetap::profile::file::{KernelTotals, Profile};

/// Where the repositories are.
const FOLDER: &str = "WAVETAP_PROGRAMS";

/// Chooses what programs run on: `rocm`, or the emulator's own HIP runtime.
const STACK: &str = "WAVETAP_PROGRAMS_STACK";

/// Fewer would not be the variety that the table is for.
const LEAST_PROGRAMS: usize = 25;

/// One repository of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Repository {
    /// Owner and name.
    repository: String,
    /// What was tried.
    commit: String,
    /// Words by which its programs say that their results are right.
    right: Vec<String>,
    /// Words by which they say that they are wrong.
    wrong: Vec<String>,
    programs: Vec<Program>,
}

/// One program.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    name: String,
    folder: PathBuf,
    executable: String,
    /// What it computes, for a reader of the table.
    kind: String,
    /// Separated by spaces.
    arguments: String,
    /// Why its counts differ from run to run, if they do: waves that wait for others, or compete.
    #[serde(default)]
    varies: Option<String>,
}

fn main() -> ExitCode {
    rewriter_tests::run_trials(trials())
}

fn trials() -> Result<Vec<Trial>, Failure> {
    let real = match std::env::var(STACK).as_deref() {
        Err(_) | Ok("hip") => false,
        Ok("rocm") => true,
        Ok(other) => return Err(format!("{STACK}={other}: hip or rocm was expected")),
    };
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    if folder.is_none() {
        eprintln!("public_programs: {FOLDER} is not set, so no program is run");
    }
    let mut trials =
        vec![Trial::test("the table names enough programs, each once", || table_is_sound().map_err(Failed::from))];
    for repository in table()? {
        let name = repository.repository.rsplit('/').next().unwrap_or_default();
        let checkout = folder.as_ref().map(|folder| folder.join(name));
        for program in repository.programs {
            let place = checkout.as_ref().map(|checkout| checkout.join(&program.folder));
            let executable = place.as_ref().map(|place| place.join(&program.executable)).filter(|file| file.is_file());
            let (right, wrong) = (repository.right.clone(), repository.wrong.clone());
            let trial = format!("{name} {}", program.name);
            if folder.is_some() && executable.is_none() {
                eprintln!("public_programs: {trial}: not built, so it is not run");
            }
            let ignored = executable.is_none();
            let run = move || {
                let executable = executable.ok_or("it is not built")?;
                let case = Case { program, executable, right, wrong };
                if real { case.run_on_rocm() } else { case.run() }.map_err(Failed::from)
            };
            trials.push(Trial::test(trial, run).with_ignored_flag(ignored));
        }
    }
    Ok(trials)
}

fn table() -> Result<Vec<Repository>, Failure> {
    let file = place::root().join("rewriter-tests/public-programs.yaml");
    let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    serde_yaml::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))
}

fn table_is_sound() -> Result<(), Failure> {
    let mut names = Vec::new();
    for repository in table()? {
        if repository.commit.len() != 40 || !repository.commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(format!("{}: {} is not a whole commit", repository.repository, repository.commit));
        }
        for program in repository.programs {
            if program.kind.is_empty() || program.folder.is_absolute() {
                return Err(format!("{}: a kind and a folder inside the repository are expected", program.name));
            }
            names.push((repository.repository.clone(), program.name));
        }
    }
    let count = names.len();
    names.sort();
    names.dedup();
    if names.len() != count {
        return Err("a program is named twice".into());
    }
    if count < LEAST_PROGRAMS { Err(format!("{count} programs, at least {LEAST_PROGRAMS} expected")) } else { Ok(()) }
}

/// A program that is there.
struct Case {
    program: Program,
    executable: PathBuf,
    right: Vec<String>,
    wrong: Vec<String>,
}

impl Case {
    fn run(&self) -> Result<(), Failure> {
        let plain = self.wavetap(&["run"], &[])?;
        if !self.is_right(&plain) {
            return Err(plain.failure("the program does not say that its results are right"));
        }
        let idle = self.wavetap(&["run"], &[("WAVETAP_SKIP_KERNELS", "1".into())])?;
        if self.is_right(&idle) {
            return Err(idle.failure("the program is content although its kernels did nothing"));
        }
        let report = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
        let file = report.path().to_str().ok_or("a temporary file with a strange name")?;
        let probes = ["--probe", "branches,blocks", "--timing"];
        let output = ["--format", "json", "--force", "--report", file];
        let counted = self.wavetap(&[&["profile"], &probes[..], &output[..]].concat(), &[])?;
        if !self.is_right(&counted) {
            return Err(counted.failure("the rewritten program does not say that its results are right"));
        }
        self.has_counts(report.path()).map_err(|what| counted.failure(&what))?;
        let json = fs::read(report.path()).map_err(|e| format!("{file}: {e}"))?;
        let (wrong, _) = contradictions(&serde_json::from_slice(&json).map_err(|e| format!("{file}: {e}"))?);
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    /// The same on AMD's own libraries; counts are compared with those of the emulator's own runtime.
    fn run_on_rocm(&self) -> Result<(), Failure> {
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let executable = folder.path().join(self.executable.file_name().ok_or("an executable has a name")?);
        fs::copy(&self.executable, &executable).map_err(|e| format!("{}: {e}", self.executable.display()))?;
        hip5::make_fit(&executable)?;
        let run = |command: &[&str]| self.wavetap_on(&executable, command, &[]);
        let plain = run(&["run", "--stack", "rocm"])?;
        if !self.is_right(&plain) {
            return Err(plain.failure("the program does not say that its results are right"));
        }
        let file = |name: &str| folder.path().join(name).display().to_string();
        let report = file("report");
        let counted = |stack: &str| {
            let profile = file(stack);
            let output = ["--format", "json", "--force", "--report", &report, "-o", &profile];
            let finished = run(&[&["profile", "--stack", stack], &output[..]].concat())?;
            if !self.is_right(&finished) {
                return Err(finished.failure("the program that counts does not say that its results are right"));
            }
            self.has_counts(Path::new(&report)).map_err(|what| finished.failure(&what))?;
            let json = fs::read(&profile).map_err(|e| format!("{profile}: {e}"))?;
            let mut profile = Profile::from_json(&json).map_err(|e| e.to_string())?;
            for kernel in &mut profile.kernels {
                // Only the emulator's own runtime has it.
                kernel.work = None;
                if self.program.varies.is_some() {
                    kernel.sites.clear();
                }
            }
            profile.kernels.sort_by(|a, b| (&a.object, &a.name).cmp(&(&b.object, &b.name)));
            Ok(profile)
        };
        let (real, own) = (counted("rocm")?, counted("hip")?);
        if real == own { Ok(()) } else { Err(difference(&real, &own)) }
    }

    fn wavetap(&self, command: &[&str], environment: &[(&str, OsString)]) -> Result<Finished, Failure> {
        self.wavetap_on(&self.executable, command, environment)
    }

    /// Runs a command on the program, or on a copy of it.
    fn wavetap_on(
        &self,
        executable: &Path,
        command: &[&str],
        environment: &[(&str, OsString)],
    ) -> Result<Finished, Failure> {
        let mut arguments: Vec<OsString> = command.iter().map(OsString::from).collect();
        arguments.extend(["--backend", "emulator", "--"].map(OsString::from));
        arguments.push(executable.into());
        arguments.extend(self.program.arguments.split_whitespace().map(OsString::from));
        // Programs read their data by paths from the folder that they are in.
        let folder = self.executable.parent().ok_or("an executable is in a folder")?;
        command::run(&command::wavetap()?, &arguments, environment, folder)
    }

    fn is_right(&self, finished: &Finished) -> bool {
        let text = finished.out() + &finished.err();
        let has = |words: &[String]| words.iter().any(|word| text.contains(word.as_str()));
        finished.code == 0 && has(&self.right) && !has(&self.wrong)
    }

    /// Whether the report has counts of some dispatch and nothing was refused.
    fn has_counts(&self, report: &Path) -> Result<(), Failure> {
        let text = fs::read_to_string(report).map_err(|e| e.to_string())?;
        let report: serde_json::Value = serde_json::from_str(&text).map_err(|e| e.to_string())?;
        let refused = report["refused"].as_array().ok_or("the report does not say what was refused")?;
        if !refused.is_empty() {
            return Err(format!("refused: {refused:?}"));
        }
        let kernels = report["kernels"].as_array().ok_or("the report has no list of kernels")?;
        if kernels.iter().any(|kernel| kernel["dispatches"].as_u64() > Some(0)) {
            Ok(())
        } else {
            Err("no dispatch was counted".into())
        }
    }
}

/// Where two profiles differ first.
fn difference(real: &Profile, own: &Profile) -> Failure {
    for (one, other) in real.kernels.iter().zip(&own.kernels) {
        if let Some((site, as_own)) = one.sites.iter().zip(&other.sites).find(|(one, other)| one != other) {
            return format!("{}: on ROCm {site:?}, on the emulator's own runtime {as_own:?}", one.name);
        }
        if one != other {
            let [one, other] = [one, other].map(|kernel| KernelTotals { sites: Vec::new(), ..kernel.clone() });
            return format!("on ROCm {one:?}, on the emulator's own runtime {other:?}");
        }
    }
    let names = |profile: &Profile| -> Vec<_> { profile.kernels.iter().map(|kernel| kernel.name.clone()).collect() };
    format!("{:?}, {:?}: the profiles differ elsewhere than in counts", names(real), names(own))
}
