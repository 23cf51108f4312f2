//! The child process that asks LLVM, and its restarts.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use crate::{LIBRARY_VARIABLE, OracleError};

/// One question: bytes that sit at `pc`.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Processor and features: `gfx90a`, `gfx1200,+real-true16`.
    pub target: &'a str,
    /// The instruction's bytes; more may follow.
    pub bytes: &'a [u8],
    /// The address of the first byte.
    pub pc: u64,
}

/// What LLVM says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// An instruction of `size` bytes, printed.
    Instruction {
        /// Bytes that the instruction takes.
        size: usize,
        /// LLVM's text with single spaces.
        text: String,
    },
    /// LLVM rejects the bytes.
    Rejected,
    /// LLVM died on the bytes.
    Crash,
}

impl Answer {
    /// Size and text of an instruction; `None` when rejected or crashed.
    pub fn instruction(self) -> Option<(usize, String)> {
        match self {
            Answer::Instruction { size, text } => Some((size, text)),
            Answer::Rejected | Answer::Crash => None,
        }
    }
}

/// A running `llvm-oracle`, restarted when LLVM dies of a target.
pub struct Oracle {
    program: PathBuf,
    /// The LLVM to ask, where it is not the Rust toolchain's.
    library: Option<PathBuf>,
    running: Option<Running>,
}

struct Running {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Oracle {
    /// Builds the `llvm-oracle` binary when it is not up to date and gets ready to start it.
    pub fn new() -> Result<Self, OracleError> {
        Ok(Self { program: program()?, library: None, running: None })
    }

    /// The same, but for another LLVM: a `libLLVM` of any version that has the AMDGPU target.
    pub fn of_library(library: impl Into<PathBuf>) -> Result<Self, OracleError> {
        let mut oracle = Self::new()?;
        oracle.library = Some(library.into());
        Ok(oracle)
    }

    /// Another program that takes the same questions and answers in the same way: what follows the size is its text.
    #[must_use]
    pub fn of(program: PathBuf) -> Self {
        Self { program, library: None, running: None }
    }

    /// Asks about the instruction at the start of `bytes` at address 0. `None`: rejected, or LLVM died on it.
    ///
    /// # Panics
    /// When the child cannot be started: a test without its oracle proves nothing.
    pub fn disassemble(&mut self, target: &str, bytes: &[u8]) -> Option<(usize, String)> {
        self.ask(Query { target, bytes, pc: 0 }).instruction()
    }

    /// Asks one question. Panics as [`Oracle::disassemble`].
    pub fn ask(&mut self, query: Query<'_>) -> Answer {
        self.ask_all(&[query]).remove(0)
    }

    /// Asks many questions at once, which is far quicker than one by one. Answers come in the order of the questions.
    /// Panics as [`Oracle::disassemble`].
    pub fn ask_all(&mut self, queries: &[Query<'_>]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(queries.len());
        while answers.len() < queries.len() {
            let rest = &queries[answers.len()..];
            let mut running =
                self.running.take().unwrap_or_else(|| Running::start(&self.program, self.library.as_deref()));
            if running.ask_all(rest, &mut answers) {
                self.running = Some(running);
            } else {
                // The child answers line by line, so the first question without an answer is the one it died on.
                answers.push(Answer::Crash);
                running.reap();
            }
        }
        answers
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.reap();
        }
    }
}

impl Running {
    fn start(program: &Path, library: Option<&Path>) -> Self {
        let mut child = Command::new(program)
            .envs(library.map(|library| (LIBRARY_VARIABLE, library)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {}: {e}", program.display()));
        let stdin = child.stdin.take().expect("piped above");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped above"));
        let mut ready = String::new();
        // A child that cannot open LLVM must not look like one that died on the first question.
        let read = stdout.read_line(&mut ready);
        assert!(
            read.is_ok() && ready == "ready\n",
            "llvm-oracle did not start: {read:?} {ready:?} (run it by hand to see why)"
        );
        Self { child, stdin, stdout }
    }

    /// Sends all questions and collects answers; false when the child died before the last answer.
    fn ask_all(&mut self, queries: &[Query<'_>], answers: &mut Vec<Answer>) -> bool {
        let wanted = answers.len() + queries.len();
        let (stdin, stdout) = (&mut self.stdin, &mut self.stdout);
        // A thread writes while this one reads, so that neither pipe can fill up and stop both sides.
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for chunk in queries.chunks(1024) {
                    let text: String = chunk.iter().map(line).collect();
                    // A dead child is noticed by the reader.
                    if stdin.write_all(text.as_bytes()).and_then(|()| stdin.flush()).is_err() {
                        return;
                    }
                }
            });
            let mut buffer = String::new();
            while answers.len() < wanted {
                buffer.clear();
                match stdout.read_line(&mut buffer) {
                    Ok(n) if n > 0 && buffer.ends_with('\n') => answers.push(parse(buffer.trim_end_matches('\n'))),
                    _ => return false,
                }
            }
            true
        })
    }

    fn reap(mut self) {
        drop(self.stdin);
        drop(self.stdout);
        // Either it has died or it ends at the end of its input; the status says nothing new.
        let _ = self.child.wait();
    }
}

fn line(query: &Query<'_>) -> String {
    let hex: String = query.bytes.iter().take(crate::MAX_INSTRUCTION_BYTES).map(|b| format!("{b:02x}")).collect();
    format!("{} {} {:x}\n", query.target, if hex.is_empty() { "-" } else { &hex }, query.pc)
}

fn parse(line: &str) -> Answer {
    match line {
        "-" => return Answer::Rejected,
        "!" => return Answer::Crash,
        _ => {}
    }
    let parsed = line.split_once('\t').and_then(|(size, text)| Some((size.parse().ok()?, text)));
    let (size, text) = parsed.unwrap_or_else(|| panic!("llvm-oracle answered {line:?}"));
    Answer::Instruction { size, text: text.to_owned() }
}

/// The `llvm-oracle` binary, built when it is not up to date.
pub fn program() -> Result<PathBuf, OracleError> {
    static PROGRAM: OnceLock<Result<PathBuf, OracleError>> = OnceLock::new();
    PROGRAM.get_or_init(build_program).clone()
}

/// Asks cargo for the binary: a test of another package has no `CARGO_BIN_EXE_…` for it.
fn build_program() -> Result<PathBuf, OracleError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let out = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--offline",
            "--bin",
            "llvm-oracle",
            "--message-format=json",
            "--manifest-path",
            manifest,
        ])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| OracleError(format!("cannot run cargo to build llvm-oracle: {e}")))?;
    let text = String::from_utf8_lossy(&out.stdout);
    let path = text
        .lines()
        .filter_map(|l| l.split_once("\"executable\":\""))
        .find_map(|(_, rest)| rest.split_once('"'))
        .map(|(p, _)| p);
    path.map(PathBuf::from).ok_or_else(|| OracleError(format!("cargo did not build llvm-oracle ({})", out.status)))
}
