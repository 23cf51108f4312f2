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
//! - is rewritten, run and reported by `wavetap profile`: results still right, nothing refused, some dispatch counted.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Failed, Trial};
use rewriter_tests::command::{self, Finished};
use rewriter_tests::{Failure, place};
use serde::Deserialize;

/// Where the repositories are.
const FOLDER: &str = "WAVETAP_PROGRAMS";

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
}

fn main() -> ExitCode {
    rewriter_tests::run_trials(trials())
}

fn trials() -> Result<Vec<Trial>, Failure> {
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
                Case { program, executable, right, wrong }.run().map_err(Failed::from)
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
        let counted = self.wavetap(&["profile", "--format", "json", "--force", "--report", file], &[])?;
        if !self.is_right(&counted) {
            return Err(counted.failure("the rewritten program does not say that its results are right"));
        }
        self.has_counts(report.path()).map_err(|what| counted.failure(&what))
    }

    fn wavetap(&self, command: &[&str], environment: &[(&str, OsString)]) -> Result<Finished, Failure> {
        let mut arguments: Vec<OsString> = command.iter().map(OsString::from).collect();
        arguments.extend(["--backend", "emulator", "--"].map(OsString::from));
        arguments.push(self.executable.clone().into());
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
