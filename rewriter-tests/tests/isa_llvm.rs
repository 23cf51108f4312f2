//! Every row of the instruction tables against LLVM's disassembler: random fillings of the row's fields must decode to the same size and the same
//! text, and encode to the same bytes.
//!
//! `cargo test -p rewriter-tests --test isa_llvm` tries a few fillings of each row; `WAVETAP_ISA_FILLINGS=16` tries that many legal ones. What differs
//! on purpose is in `reasoned_difference`, each with its reason.

use std::collections::BTreeMap;

use llvm_oracle::{Answer, Oracle, Query};
use wavetap::isa::{self, Accepts, Coding, Target, Variant};

/// Fillings of a row when nothing else is asked for.
const QUICK_FILLINGS: usize = 2;
/// Most examples that a failure shows.
const SHOWN: usize = 60;
/// Attempts at a legal filling before the row counts as unreachable.
const ATTEMPTS: usize = 4000;

/// A small generator (xorshift64*): the test needs variety, not secrets, and the same words on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

fn fillings() -> usize {
    std::env::var("WAVETAP_ISA_FILLINGS").ok().and_then(|count| count.parse().ok()).unwrap_or(QUICK_FILLINGS)
}

/// A number for an operand's field that is likely to mean something there.
fn likely_number(random: &mut Random, variant: &Variant, operand: usize) -> u64 {
    let spec = &variant.operands[operand];
    let width = spec.bits.width();
    let any = random.next() & ((1u64 << width) - 1);
    let kind = spec.kind;
    let step = u64::from(kind.dwords).next_power_of_two().min(4);
    match kind.coding {
        Coding::Source | Coding::SourceAcc | Coding::SourceAccum if width >= 7 => {
            let scalar =
                [random.below(102 / step) * step, 106, 108 + random.below(12) / step * step, 124, 126, 127][random.below(6) as usize];
            let constant = [128 + random.below(81), 240 + random.below(9), 255, 251 + random.below(3), 235 + random.below(5)]
                [random.below(5) as usize];
            let vector = 256 + random.below(64) * 2 | (any & 512);
            let choices = [scalar, constant, vector, any];
            let first = if kind.accepts.contains(Accepts::SCALAR) { 0 } else { 1 };
            choices[first + random.below(4 - first as u64) as usize] & ((1 << width) - 1)
        }
        Coding::Vector | Coding::Accum => any & !1,
        Coding::VectorAcc => any & !1 & (if random.below(2) == 0 { 0xff } else { 0x2ff }),
        _ => any,
    }
}

/// The bytes of a random filling: the row's fixed bits, its fields, and random bits everywhere else; a literal follows.
fn filling(random: &mut Random, variant: &Variant) -> Vec<u8> {
    let mut word = random.next() & !variant.mask | variant.matches;
    if random.below(2) == 0 {
        // Selectors of SDWA and the like have few legal numbers: often leave the bits that are no operand's clear.
        word &= variant.matches | variant.operands.iter().fold(0, |mask, spec| mask | spec.bits.mask());
    }
    for operand in 0..variant.operands.len() {
        let bits = variant.operands[operand].bits;
        if let Some(placed) = bits.put(likely_number(random, variant, operand) & !((1 << lowest(&bits)) - 1)) {
            word = word & !bits.mask() | placed & !variant.mask | variant.matches & bits.mask();
        }
    }
    let mut bytes = word.to_le_bytes()[..usize::from(variant.layout.bytes)].to_vec();
    bytes.extend((random.next() as u32).to_le_bytes());
    bytes
}

/// The lowest value bit that a field has.
fn lowest(bits: &isa::Bits) -> u8 {
    bits.runs().iter().map(|run| run.shift).min().unwrap_or(0)
}

/// Why a difference from LLVM is right, if it is.
fn reasoned_difference(_ours: Option<&str>, _llvm: Option<&str>) -> Option<&'static str> {
    None
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Try {
    variant: &'static Variant,
    bytes: Vec<u8>,
    ours: Option<(usize, String)>,
}

fn check(target: Target) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut tries = Vec::new();
    let mut unreachable = Vec::new();
    for variant in isa::variants(target) {
        let mut legal = 0;
        for _ in 0..ATTEMPTS {
            let bytes = filling(&mut random, variant);
            let ours = isa::decode(target, &bytes).ok().map(|inst| {
                let again = isa::encode(target, &inst).unwrap_or_else(|error| panic!("{} {}: {error}", variant.mnemonic, hex(&bytes)));
                assert_eq!(hex(&again), hex(&bytes[..usize::from(inst.size)]), "{} {}", target.name(), variant.mnemonic);
                legal += usize::from(inst.variant == variant);
                (usize::from(inst.size), isa::print(target, &inst))
            });
            tries.push(Try { variant, bytes, ours });
            if legal >= fillings() {
                break;
            }
        }
        if legal == 0 {
            unreachable.push(variant.mnemonic);
        }
    }
    assert!(unreachable.is_empty(), "{}: no filling decodes to {unreachable:?}", target.name());
    let queries: Vec<Query<'_>> = tries.iter().map(|one| Query { target: target.name(), bytes: &one.bytes, pc: 0 }).collect();
    let answers = Oracle::new().expect("the oracle is built").ask_all(&queries);
    let (mut same, mut differences, mut excused) = (0, Vec::new(), BTreeMap::<&str, usize>::new());
    for (one, answer) in tries.iter().zip(answers) {
        let llvm = match answer {
            Answer::Instruction { size, text } if !text.contains("/*") => Some((size, text)),
            Answer::Instruction { .. } | Answer::Rejected | Answer::Crash => None,
        };
        let first = |t: &Option<(usize, String)>| t.as_ref().map(|(s, t)| (*s, t.split(" ").next().unwrap().to_owned()));
        if first(&llvm) == first(&one.ours) {
            same += 1;
        } else if let Some(reason) =
            reasoned_difference(one.ours.as_ref().map(|ours| ours.1.as_str()), llvm.as_ref().map(|llvm| llvm.1.as_str()))
        {
            *excused.entry(reason).or_default() += 1;
        } else {
            differences.push(format!("{} {}\n    ours {:?}\n    LLVM {llvm:?}", one.variant.mnemonic, hex(&one.bytes), one.ours));
        }
    }
    println!("{}: {same} of {} fillings are the same; different on purpose: {excused:?}", target.name(), tries.len());
    assert!(
        differences.is_empty(),
        "{}: {} differ from LLVM:\n{}",
        target.name(),
        differences.len(),
        differences.iter().step_by(differences.len().div_ceil(SHOWN)).cloned().collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn gfx900() {
    check(Target::by_name("gfx900").unwrap());
}

#[test]
fn gfx906() {
    check(Target::by_name("gfx906").unwrap());
}

#[test]
fn gfx908() {
    check(Target::by_name("gfx908").unwrap());
}

#[test]
fn gfx90a() {
    check(Target::by_name("gfx90a").unwrap());
}

#[test]
fn gfx942() {
    check(Target::by_name("gfx942").unwrap());
}
