//! Answers, line by line, what LLVM makes of instruction bytes.
//!
//! Input: `TARGET[,+FEATURE…] HEXBYTES [PC]` (`-` for no bytes; PC in hexadecimal). First line of output: `ready`. Then, for
//! each line of input, `SIZE<TAB>TEXT`, or `-` when LLVM (or this program) rejects the line. Each answer is written before
//! the next question is read, so that a reader knows on which one LLVM died.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::process::ExitCode;

use llvm_oracle::{Disassembler, OracleError};

fn main() -> ExitCode {
    if std::env::args().len() > 1 {
        eprintln!("usage: llvm-oracle   (reads lines \"TARGET[,+FEATURE…] HEXBYTES [PC]\" from standard input)");
        return ExitCode::from(2);
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("llvm-oracle: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), OracleError> {
    // Opened before `ready`, so that a missing library is told from a crash.
    let mut open = HashMap::from([("gfx900".to_owned(), Disassembler::new("gfx900")?)]);
    let broken = |e: std::io::Error| OracleError(e.to_string());
    // Not the buffered `Stdout`: an answer must be out before LLVM can die on the next question.
    let mut out = std::io::stdout().lock();
    writeln!(out, "ready").map_err(broken)?;
    for line in std::io::stdin().lock().lines() {
        let answer = answer(&mut open, &line.map_err(broken)?).unwrap_or_else(|| "-".to_owned());
        writeln!(out, "{answer}").map_err(broken)?;
    }
    Ok(())
}

fn answer(open: &mut HashMap<String, Disassembler>, line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let (target, hex) = (words.next()?, words.next()?);
    let pc = u64::from_str_radix(words.next().unwrap_or("0"), 16).ok()?;
    if !hex.len().is_multiple_of(2) || !hex.is_ascii() {
        return None;
    }
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).ok()).collect();
    if !open.contains_key(target) {
        open.insert(target.to_owned(), Disassembler::new(target).ok()?);
    }
    let (size, text) = open.get_mut(target)?.disassemble(&bytes?, pc)?;
    Some(format!("{size}\t{text}"))
}
