//! The `wavetap` command and other programs as child processes, with a time limit.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::place;

/// A command that takes longer than this has hung.
const TIME_LIMIT: Duration = Duration::from_secs(900);

/// What a finished program left.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The command line, for messages.
    pub line: String,
    /// The exit code, or 128 + n after signal n.
    pub code: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// Standard output as text.
    #[must_use]
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    #[must_use]
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// A failure that shows what the program wrote.
    #[must_use]
    pub fn failure(&self, what: &str) -> Failure {
        format!(
            "{what}\n$ {}\nexit code {}\n--- stdout\n{}\n--- stderr\n{}",
            self.line,
            self.code,
            shortened(&self.out()),
            shortened(&self.err())
        )
    }

    /// The same program, which must have ended with `code`, without panic.
    ///
    /// # Errors
    /// If it did not.
    pub fn exited(self, code: i32) -> Result<Finished, Failure> {
        // An application's own exit code is passed through, so a panic of the command (101) must be told from it by its
        // words.
        if self.err().contains("panicked at") {
            return Err(self.failure("the program panicked"));
        }
        if self.code != code {
            return Err(self.failure(&format!("exit code {code} was expected")));
        }
        Ok(self)
    }
}

fn shortened(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= 60 {
        text.to_owned()
    } else {
        format!("{}\n… {} more lines", lines[..60].join("\n"), lines.len() - 60)
    }
}

/// The `wavetap` binary, built in the same profile as this test if it is not up to date.
///
/// # Errors
/// If cargo cannot build it.
pub fn wavetap() -> Result<PathBuf, Failure> {
    static BUILT: OnceLock<Result<PathBuf, Failure>> = OnceLock::new();
    BUILT.get_or_init(|| build(&["--package", "wavetap-cli", "--bin", "wavetap"], "wavetap")).clone()
}

/// An example of the library, built as [`wavetap()`] is.
///
/// # Errors
/// If cargo cannot build it.
pub fn example(name: &str) -> Result<PathBuf, Failure> {
    static BUILT: OnceLock<Result<PathBuf, Failure>> = OnceLock::new();
    // All of them: the command, too, so that the libraries are there that it runs programs with.
    let command = ["--package", "wavetap-cli", "--bin", "wavetap", "--package", "wavetap", "--examples"];
    let folder = BUILT.get_or_init(|| build(&command, "examples")).clone()?;
    let binary = folder.join(name);
    if binary.is_file() { Ok(binary) } else { Err(format!("{} was not built", binary.display())) }
}

/// The program of another package of the workspace, built as [`wavetap()`] is.
///
/// # Errors
/// If cargo cannot build it.
pub fn package(name: &str) -> Result<PathBuf, Failure> {
    wavetap()?;
    build(&["--package", name, "--bin", name, "--package", "wavetap-cli", "--bin", "wavetap"], name)
}

/// Has cargo build these targets; the file or folder of this name in its folder.
fn build(targets: &[&str], result: &str) -> Result<PathBuf, Failure> {
    let folder = place::build_folder();
    let profile = match folder.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => "dev",
        Some(other) => other,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // With a test of this package, so that its dependences ask for the same features as when cargo built the tests:
    // with others the library and all that is made with it would be built once more, beside the one that is there.
    let out = Command::new(cargo)
        .args(["build", "--quiet", "--offline", "--profile", profile])
        .args(targets)
        .args(["--package", "rewriter-tests", "--test", "tidy"])
        .current_dir(place::root())
        .output()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    if !out.status.success() {
        return Err(format!("cargo cannot build {result}:\n{}", String::from_utf8_lossy(&out.stderr)));
    }
    let place = folder.join(result);
    if place.exists() { Ok(place) } else { Err(format!("{} was not built", place.display())) }
}

/// Runs `program` to its end. `environment` is added to this process's own, of which the variables that steer `wavetap`
/// are taken away, the width of a terminal among them.
///
/// # Errors
/// If it cannot be started or takes longer than a quarter of an hour.
pub fn run<A: AsRef<OsStr>>(
    program: &Path,
    args: &[A],
    environment: &[(&str, OsString)],
    folder: &Path,
) -> Result<Finished, Failure> {
    let text = |s: &OsStr| s.to_string_lossy().into_owned();
    let mut line: Vec<String> = environment.iter().map(|(k, v)| format!("{k}={}", text(v))).collect();
    line.push(text(program.as_os_str()));
    line.extend(args.iter().map(|a| text(a.as_ref())));
    let line = line.join(" ");
    let log = tempfile::tempdir().map_err(|e| e.to_string())?;
    // Into files, not pipes: nothing has to read along while the time limit is watched.
    let (out, err) = (log.path().join("out"), log.path().join("err"));
    let create = |p: &Path| File::create(p).map_err(|e| e.to_string());
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("WAVETAP_")) {
        command.env_remove(name);
    }
    let mut child = command
        .env_remove("COLUMNS")
        .args(args)
        .envs(environment.iter().map(|(k, v)| (k, v)))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(create(&out)?)
        .stderr(create(&err)?)
        .spawn()
        .map_err(|e| format!("{line}: {e}"))?;
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            break status;
        }
        if started.elapsed() > TIME_LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{line}: still running after {} s", TIME_LIMIT.as_secs()));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    };
    let read = |p: &Path| fs::read(p).map_err(|e| e.to_string());
    Ok(Finished { line, code: exit_code(status), stdout: read(&out)?, stderr: read(&err)? })
}

fn exit_code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
