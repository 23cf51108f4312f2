//! Fillings of a target's rows beside what an LLVM makes of them.
//!
//! Where they differ, a reason of the table must hold, and it must be the whole reason: without its cause (one field of
//! the word, one part of the text) both sides must agree. So no reason hides another difference of the same word.

use std::collections::BTreeMap;

use llvm_oracle::{Answer, Oracle, Query};
use rewriter_tests::fillings::{ATTEMPTS, Random, filling};
use rewriter_tests::full;
use wavetap::isa::{self, Target, Variant};

use crate::reason::{Case, Codes, How, Reason};

/// Fillings of a row in the long run.
const FULL_FILLINGS: usize = 16;
/// The seed when no other is asked for.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// Most examples that a failure shows.
const SHOWN: usize = 60;
/// Most causes that one word has.
const CAUSES: usize = 8;

/// An LLVM and what is known of it.
pub struct Llvm {
    pub name: &'static str,
    pub oracle: Oracle,
    /// The processor and features that it is asked for.
    pub processor: String,
    pub reasons: Vec<&'static Reason>,
    /// Fillings of a row when nothing else is asked for.
    pub quick_fillings: usize,
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn fillings(quick: usize) -> usize {
    number("WAVETAP_ISA_FILLINGS").map_or(if full() { FULL_FILLINGS } else { quick }, |count| count as usize)
}

/// A word and what was found out about it.
pub struct Trial {
    variant: &'static Variant,
    original: Vec<u8>,
    /// Without the causes that have reasons.
    bytes: Vec<u8>,
    reasons: Vec<&'static str>,
}

impl Trial {
    pub fn new(variant: &'static Variant, bytes: Vec<u8>) -> Self {
        Trial { variant, original: bytes.clone(), bytes, reasons: Vec::new() }
    }
}

/// Asks `llvm` about fillings of every row of `target`, of which those that we decode must encode to their own bytes.
pub fn check_fillings(target: Target, llvm: &mut Llvm) {
    check(target, llvm, trials(target, fillings(llvm.quick_fillings)));
}

/// Asks `llvm` about words.
pub fn check(target: Target, llvm: &mut Llvm, mut pending: Vec<Trial>) {
    let codes = Codes::of(target);
    let count = pending.len();
    let (mut same, mut different, mut excused) = (0, Vec::new(), BTreeMap::<&str, usize>::new());
    let mut round = 0;
    while !pending.is_empty() {
        let queries: Vec<Query<'_>> =
            pending.iter().map(|one| Query { target: &llvm.processor, bytes: &one.bytes, pc: 0 }).collect();
        let answers = llvm.oracle.ask_all(&queries);
        let mut next = Vec::new();
        for (mut one, answer) in pending.into_iter().zip(answers) {
            let case = Case::new(target, codes, one.variant, &one.bytes, valid(answer));
            let verdict = judge(&case, &llvm.reasons);
            match verdict {
                Verdict::Same => same += usize::from(round == 0),
                Verdict::Excused(reasons) => one.reasons.extend(reasons),
                Verdict::Without(reason, bytes) if round < CAUSES => {
                    one.reasons.push(reason);
                    one.bytes = bytes;
                    next.push(one);
                    continue;
                }
                Verdict::Without(..) | Verdict::Different => {
                    let changed = if one.bytes == one.original {
                        String::new()
                    } else {
                        format!(" (without {:?}: {})", one.reasons, hex(&one.bytes))
                    };
                    different.push(format!(
                        "{} {}{changed}\n    ours {:?}\n    LLVM {:?}",
                        one.variant.mnemonic,
                        hex(&one.original),
                        case.ours,
                        case.theirs
                    ));
                }
            }
            for reason in one.reasons {
                *excused.entry(reason).or_default() += 1;
            }
        }
        pending = next;
        round += 1;
    }
    if let Some(folder) = std::env::var_os("WAVETAP_ISA_REPORT") {
        let file =
            std::path::Path::new(&folder).join(format!("{}-{}-{}.txt", llvm.name, target.name(), target.wave_size()));
        std::fs::write(file, different.join("\n")).expect("the report is written");
    }
    println!("{} {} beside {}: {same} of {count} words are the same", target.name(), target.wave_size(), llvm.name);
    for (reason, count) in excused {
        println!("    {count:6} differ on purpose: {reason}");
    }
    assert!(
        different.is_empty(),
        "{}: {} differ from {}:\n{}",
        target.name(),
        different.len(),
        llvm.name,
        different.iter().step_by(different.len().div_ceil(SHOWN)).cloned().collect::<Vec<_>>().join("\n")
    );
}

fn trials(target: Target, fillings: usize) -> Vec<Trial> {
    let mut random = Random::new(number("WAVETAP_ISA_SEED").map_or(SEED, |seed| seed.wrapping_mul(SEED) | 1));
    let (mut trials, mut unreachable) = (Vec::new(), Vec::new());
    for variant in isa::variants(target) {
        let mut legal = 0;
        for _ in 0..ATTEMPTS {
            let bytes = filling(&mut random, variant);
            if let Ok(inst) = isa::decode(target, &bytes) {
                let again = isa::encode(target, &inst)
                    .unwrap_or_else(|error| panic!("{} {}: {error}", variant.mnemonic, hex(&bytes)));
                assert_eq!(
                    hex(&again),
                    hex(&bytes[..usize::from(inst.size)]),
                    "{} {}",
                    target.name(),
                    variant.mnemonic
                );
                legal += usize::from(inst.variant == variant);
            }
            trials.push(Trial::new(variant, bytes));
            if legal >= fillings {
                break;
            }
        }
        if legal < fillings {
            unreachable.push(variant.mnemonic);
        }
    }
    assert!(unreachable.is_empty(), "{}: too few fillings decode to {unreachable:?}", target.name());
    trials
}

/// What LLVM takes for an instruction. `/*` marks what it writes but calls invalid itself.
fn valid(answer: Answer) -> Option<(usize, String)> {
    answer.instruction().filter(|(_, text)| !text.contains("/*"))
}

enum Verdict {
    Same,
    /// The texts differ in the parts that the reasons name.
    Excused(Vec<&'static str>),
    /// The word without the cause that the reason names must be the same.
    Without(&'static str, Vec<u8>),
    Different,
}

fn judge(case: &Case<'_>, reasons: &[&'static Reason]) -> Verdict {
    if case.ours == case.theirs {
        return Verdict::Same;
    }
    if let (Some((our_size, ours)), Some((their_size, theirs))) = (&case.ours, &case.theirs)
        && our_size == their_size
    {
        let (mut ours, mut text, mut used) = (ours.clone(), theirs.clone(), Vec::new());
        for reason in reasons {
            if let How::Without(part) = reason.how {
                let plain = (part(case, &ours), part(case, &text));
                if plain != (ours.clone(), text.clone()) {
                    (ours, text) = plain;
                    used.push(reason.what);
                }
            }
        }
        if ours == text {
            return Verdict::Excused(used);
        }
        for reason in reasons {
            if let How::Text(as_ours) = reason.how
                && let Some(changed) = as_ours(case, &text)
                && changed != text
            {
                text = changed;
                used.push(reason.what);
                if text == ours {
                    return Verdict::Excused(used);
                }
            }
        }
    }
    for reason in reasons {
        let repaired = match reason.how {
            How::Lacks(lacks) if case.sizes_differ() && lacks(case) => return Verdict::Excused(vec![reason.what]),
            How::Text(_) | How::Without(_) => None,
            How::WeRefuseOperand(holds) if case.ours.is_none() => case.without_operand(holds),
            How::WeRefuse(repair) if case.ours.is_none() => repair(case),
            How::LlvmRefuses(repair) if case.theirs.is_none() => repair(case),
            How::Either(repair) => repair(case),
            _ => None,
        };
        if let Some(bytes) = repaired.filter(|bytes| bytes != case.bytes) {
            return Verdict::Without(reason.what, bytes);
        }
    }
    Verdict::Different
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
