//! Faults that are put into real compiled kernels, one at a time: strict mode must stop each, and name what is wrong
//! and where.
//!
//! A fault is an edit of the compiler's own assembly text of a test kernel: a wait, a barrier or an initialisation that
//! is taken out, a count or an index that is changed, instructions put before the end of which one that keeps them
//! apart is left out. The kernel as it was, and with the instructions and what keeps them apart, must pass on several
//! seeds with the right output; the edited one must stop on each seed with the fault that `faults.rs` names. The list
//! is printed as a table with `--nocapture`.

mod dependences;
mod faults;
mod moved;
mod replays;
mod selected;
mod textures;

use std::collections::BTreeSet;

use rewriter_tests::Failure;
use rewriter_tests::kernels::build::{self, Variant};
use rewriter_tests::kernels::compare::Rule;
use rewriter_tests::kernels::launch;
use wavetap::emulator::Options;
use wavetap::isa::Target;

use faults::{Edit, FAULTS, Fault};

/// Fewer would not be what the test is for.
const LEAST: usize = 40;
const SEEDS: std::ops::Range<u64> = 0..4;
/// The text in which an expected message has a number that depends on the compiler's addresses.
const ANY: char = '*';

fn main() {
    let mut wrong = Vec::new();
    println!("{:8} {:22} {:45} found", "target", "kernel", "fault");
    let wanted = std::env::args().nth(1).filter(|argument| !argument.starts_with('-'));
    let chosen: Vec<&Fault> = FAULTS
        .iter()
        .chain(dependences::FAULTS)
        .chain(textures::FAULTS)
        .chain(moved::FAULTS)
        .chain(selected::FAULTS)
        .filter(|fault| wanted.as_ref().is_none_or(|part| fault.to_string().contains(part.as_str())))
        .collect();
    let mut passed = BTreeSet::new();
    for fault in &chosen {
        match try_fault(fault, &mut passed) {
            Ok(found) => println!("{fault} {found}"),
            Err(failure) => {
                println!("{fault} FAILED: {failure}");
                wrong.push(fault);
            }
        }
    }
    println!("{} faults, {} not caught as expected", chosen.len(), wrong.len());
    if wanted.is_none() {
        let (missed, all) = replays::check().expect("waits for translations");
        println!("{all} waits for translations taken out, {missed} of them missed");
    }
    let targets: BTreeSet<&str> = FAULTS.iter().map(|fault| fault.target).collect();
    assert!(FAULTS.len() >= LEAST && targets.len() >= 6, "{} faults on {} targets", FAULTS.len(), targets.len());
    assert!(wrong.is_empty());
}

/// Runs the kernel as it was and with the fault; gives the message.
fn try_fault(fault: &Fault, passed: &mut BTreeSet<String>) -> Result<String, Failure> {
    let target =
        Target::by_name(fault.target).and_then(|target| target.with_wave_size(fault.lanes)).ok_or("no such target")?;
    let variant = Variant { target, level: "O2", version: 5 };
    let text = build::assembly(fault.source, variant)?;
    let (good, bad) = edited(&text, fault)?;
    let reference = build::reference(target.wave_size())?;
    let test = reference.tests.iter().find(|test| test.name == fault.kernel).ok_or("no such kernel")?;
    let buffers = reference.buffers(test)?;
    let rule = Rule::parse(&test.compare)?;
    let options = |seed| Options { seed, fuel: 3_000_000, ..Options::default() };
    if passed.insert(good.clone()) {
        let object = build::assembled(&good, variant)?;
        for seed in SEEDS {
            let (found, _) = launch::run(&object, target, test, &buffers, &options(seed))
                .map_err(|error| format!("without fault: {error}"))?;
            rule.check(&found, &buffers.expected)?;
        }
    }
    let object = build::assembled(&bad, variant)?;
    let mut message = String::new();
    for seed in SEEDS {
        message = match launch::run(&object, target, test, &buffers, &options(seed)) {
            Ok(_) => return Err(format!("seed {seed}: not caught")),
            Err(found) => found,
        };
        for part in fault.expected {
            let mut at = 0;
            for piece in part.split(ANY) {
                at += message[at..].find(piece).ok_or_else(|| format!("seed {seed}: no \"{part}\" in: {message}"))?
                    + piece.len();
            }
        }
    }
    Ok(message)
}

/// The text of the kernel without and with the fault.
fn edited(text: &str, fault: &Fault) -> Result<(String, String), Failure> {
    let start = text.find(&format!("\n{}:", fault.kernel)).ok_or("the text has no such kernel")?;
    let end = start + text[start..].find("\n.Lfunc_end").ok_or("the kernel has no end")?;
    let (before, code, after) = (&text[..start], &text[start..end], &text[end..]);
    let lines: Vec<&str> = code.lines().collect();
    let find = |part: &str, nth: usize| {
        let mut found = lines.iter().enumerate().filter(|(_, line)| line.contains(part)).map(|(at, _)| at);
        found.nth(nth).ok_or_else(|| format!("{part} is not in the kernel {} times", nth + 1))
    };
    let with = |at: usize, new: &[String]| {
        let mut all: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        all.splice(at..=at, new.iter().cloned());
        all.join("\n")
    };
    let whole = |code: String| format!("{before}{code}{after}");
    let (good, bad) = match fault.edit {
        Edit::Drop(part, nth) => (code.to_owned(), with(find(part, nth)?, &[])),
        Edit::Change(part, nth, from, to) => {
            let at = find(part, nth)?;
            if !lines[at].contains(from) {
                return Err(format!("no {from} in {}", lines[at]));
            }
            (code.to_owned(), with(at, &[lines[at].replacen(from, to, 1)]))
        }
        Edit::Insert(new) => {
            let end = find("s_endpgm", 0)?;
            // What gives the registers back stays after.
            let at = if lines[end - 1].contains("DEALLOC_VGPRS") { end - 2 } else { end };
            let instructions = |fixed: bool| {
                let kept = new.iter().filter(|line| fixed || !line.starts_with("fix: "));
                kept.map(|line| format!("\t{}", line.trim_start_matches("fix: ")))
                    .chain([lines[at].to_owned()])
                    .collect::<Vec<_>>()
            };
            (with(at, &instructions(true)), with(at, &instructions(false)))
        }
    };
    Ok((whole(good), whole(bad)))
}
