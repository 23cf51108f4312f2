//! Our decoder against a listing.

use std::collections::{BTreeMap, BTreeSet};

use wavetap_nvidia::container::{Cubin, Function};
use wavetap_nvidia::isa::{Action, Inst, Register};

use super::listing::{Line, Name, Section};

/// What was compared, and what differs.
#[derive(Debug, Default)]
pub struct Tally {
    pub instructions: u64,
    pub branches: u64,
    /// By reason: what the listing does not say.
    pub not_compared: BTreeMap<&'static str, u64>,
    /// By kind of difference, how many and one of them.
    pub differences: BTreeMap<String, (u64, String)>,
    /// By message: kernels that are refused.
    pub refused: BTreeMap<String, u64>,
}

impl Tally {
    fn differs(
        &mut self,
        inst: &Inst,
        line: &Line,
        what: &str,
        ours: &dyn std::fmt::Debug,
        theirs: &dyn std::fmt::Debug,
    ) {
        let entry = self.differences.entry(format!("{} {what}", inst.name())).or_default();
        let (lower, upper) = inst.word().halves();
        entry.0 += 1;
        entry.1 = format!(
            "{:#x}: {} | {inst} | ours {ours:?} theirs {theirs:?} | {lower:#018x} {upper:#018x}",
            inst.address, line.text
        );
    }
}

/// Registers as the listing names them.
pub fn names(registers: impl Iterator<Item = Register>) -> BTreeSet<Name> {
    registers
        .flat_map(|register| {
            let first = u16::from(register.first);
            (first..first + u16::from(register.count)).map(move |number| (register.file.prefix(), number))
        })
        .collect()
}

/// The registers of an instruction.
pub fn roles(tally: &mut Tally, inst: &Inst, line: &Line) {
    tally.instructions += 1;
    if inst.action() == Action::Call {
        // The listing has what the callee does there.
        *tally.not_compared.entry("registers of CALL").or_default() += 1;
        return;
    }
    let (mut writes, mut reads) = (names(inst.writes()), names(inst.reads()));
    // The listing leaves out the predicates of a mask, but its text has the mask.
    let mask: fn(&Name) -> bool = |name| name.0 == "P";
    let said = match inst.name() {
        "R2P" => Some((extracted(&mut writes, mask), "predicates that R2P writes: mask of the text")),
        "P2R" => Some((extracted(&mut reads, mask), "predicates that P2R reads: mask of the text")),
        _ => None,
    };
    if let Some((ours, reason)) = said {
        *tally.not_compared.entry(reason).or_default() += 1;
        reads.extend(inst.guard.map(|(register, _)| (register.file.prefix(), u16::from(register.first))));
        let theirs = line.text.rsplit(", ").next().unwrap_or_default();
        let value =
            i64::from_str_radix(theirs.trim_start_matches('-').trim_start_matches("0x"), 16).unwrap_or_default();
        let theirs = if theirs.starts_with('-') { -value } else { value };
        let theirs: BTreeSet<Name> =
            (0..7_u32).filter(|bit| theirs >> bit & 1 == 1).map(|bit| ("P", bit as u16)).collect();
        if ours.difference(&reads).ne(theirs.difference(&reads)) {
            tally.differs(inst, line, "mask", &ours, &theirs);
        }
    }
    if writes != line.writes {
        tally.differs(inst, line, "writes", &writes, &line.writes);
    }
    if reads != line.reads {
        tally.differs(inst, line, "reads", &reads, &line.reads);
    }
}

fn extracted(names: &mut BTreeSet<Name>, which: fn(&Name) -> bool) -> BTreeSet<Name> {
    let (found, rest) = std::mem::take(names).into_iter().partition(which);
    *names = rest;
    found
}

/// Where an instruction branches to.
fn targets(tally: &mut Tally, function: &Function<'_>, inst: &Inst, line: &Line, listed: &Section) {
    let theirs: BTreeSet<u64> =
        line.labels.iter().map(|label| listed.labels.get(label).copied().unwrap_or(u64::MAX)).collect();
    let ours: BTreeSet<u64> = match inst.action() {
        _ if theirs.is_empty() => return,
        Action::Branch => [inst.target()].into(),
        Action::Indirect => function.indirect_targets(inst.address).unwrap_or_default().iter().copied().collect(),
        _ => return,
    };
    tally.branches += 1;
    if ours != theirs {
        tally.differs(inst, line, "targets", &ours, &theirs);
    }
}

/// All functions of a cubin.
pub fn cubin(tally: &mut Tally, cubin: &Cubin, listing: &BTreeMap<String, Section>) {
    for function in cubin.functions() {
        let instructions = match function.instructions() {
            Ok(instructions) => instructions,
            Err(error) => {
                *tally.refused.entry(error.to_string()).or_default() += 1;
                continue;
            }
        };
        let Some(listed) = listing.get(function.section()) else {
            *tally.not_compared.entry("functions that the listing does not have").or_default() += 1;
            continue;
        };
        for inst in &instructions {
            let Some(line) = listed.lines.get(&inst.address) else {
                *tally.not_compared.entry("instructions that the listing does not have").or_default() += 1;
                continue;
            };
            roles(tally, inst, line);
            targets(tally, &function, inst, line, listed);
        }
    }
}
