//! Answers, line by line, what LLVM makes of instruction bytes; or compiles; or says which LLVM it is.
//!
//! `llvm-oracle compile PROCESSOR LEVEL MODULE -o OBJECT` makes an object file of a module in LLVM's language, which
//! has the passes of the level (`O0` to `O3`) before it. Where LLVM cannot, it says so on standard error, and the exit
//! code is not 0: LLVM may also end this process with a signal. `llvm-oracle version` writes `MAJOR.MINOR.PATCH`.
//!
//! Without arguments: questions about instructions. Input: `TARGET[,+FEATURE…] HEXBYTES [PC]` (`-` for no bytes; PC in
//! hexadecimal). First line of output: `ready`. Then, for each line of input, `SIZE<TAB>TEXT`, or `-` when LLVM (or
//! this program) rejects the line, or `!` when LLVM dies on it.
//!
//! LLVM is asked in a copy of this process. A copy answers as many lines as there are; where it dies, the next one goes
//! on. LLVM dies of processors that it does not know in this process already.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::ExitCode;

use llvm_oracle::{Compilation, Disassembler, OracleError, compile, compiler_version, in_copy};

/// Input that is taken at a time, at most.
const INPUT_BYTES: usize = 1 << 16;

/// What clang gives LLVM for HIP: functions that no other module can call need not be kept once they are inlined.
const OPTIONS: &[&str] = &["-amdgpu-internalize-symbols"];

const USAGE: &str = "usage: llvm-oracle   (reads lines \"TARGET[,+FEATURE…] HEXBYTES [PC]\" from standard input)
       llvm-oracle compile PROCESSOR O0|O1|O2|O3 MODULE -o OBJECT
       llvm-oracle version";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        [] => run(),
        ["version"] => compiler_version().map(|(major, minor, patch)| println!("{major}.{minor}.{patch}")),
        ["compile", processor, level @ ("O0" | "O1" | "O2" | "O3"), module, "-o", object] => {
            compile(Compilation { processor, level: level.as_bytes()[1] - b'0', module, object, options: OPTIONS })
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("llvm-oracle: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The disassemblers that were asked for, and those that there are not.
type Open = HashMap<String, Option<Disassembler>>;

fn run() -> Result<(), OracleError> {
    // Opened before `ready`, so that a missing library is told from a crash.
    let mut open = Open::from([("gfx900".to_owned(), Some(Disassembler::new("gfx900")?))]);
    let broken = |e: std::io::Error| OracleError(e.to_string());
    let mut input = BufReader::with_capacity(INPUT_BYTES, std::io::stdin());
    // Not the buffered `Stdout`: an answer must be out before LLVM can die on the next question.
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready").map_err(broken)?;
    loop {
        let lines = lines_at_hand(&mut input).map_err(broken)?;
        if lines.is_empty() {
            return Ok(());
        }
        let mut rest = &lines[..];
        while let Some(first) = rest.first() {
            let known = rest.iter().take_while(|line| open.contains_key(target(line))).count();
            if known == 0 {
                open.insert(target(first).to_owned(), Disassembler::new(target(first)).ok());
                continue;
            }
            let mut answers = in_copy(|out| answer_all(&mut open, &rest[..known], out)).map_err(broken)?;
            let mut answered = answers.iter().filter(|byte| **byte == b'\n').count();
            if answered < known {
                answers.extend(b"!\n");
                answered += 1;
            }
            out.write_all(&answers).and_then(|()| out.flush()).map_err(broken)?;
            rest = &rest[answered..];
        }
    }
}

/// Waits for a line and takes those that have come with it. None: the input is at its end.
fn lines_at_hand(input: &mut BufReader<impl std::io::Read>) -> std::io::Result<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(lines);
        }
        lines.push(line);
        if !input.buffer().contains(&b'\n') {
            return Ok(lines);
        }
    }
}

/// The processor and features that a line asks for.
fn target(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

fn answer_all(open: &mut Open, lines: &[String], out: &mut impl Write) {
    for line in lines {
        let answer = answer(open, line).unwrap_or_else(|| "-".to_owned()) + "\n";
        // At once: LLVM may die on the next line.
        if out.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(open: &mut Open, line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let (target, hex) = (words.next()?, words.next()?);
    let pc = u64::from_str_radix(words.next().unwrap_or("0"), 16).ok()?;
    if !hex.len().is_multiple_of(2) || !hex.is_ascii() {
        return None;
    }
    let bytes: Option<Vec<u8>> =
        (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).ok()).collect();
    let (size, text) = open.get_mut(target)?.as_mut()?.disassemble(&bytes?, pc)?;
    Some(format!("{size}\t{text}"))
}
