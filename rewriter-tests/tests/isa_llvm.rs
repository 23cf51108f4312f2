//! Every row of the instruction tables against LLVM's disassembler: random fillings of the row's fields must decode to the same size and the same
//! text, and encode to the same bytes.
//!
//! A few legal fillings of each row are tried, 16 of each with `--full`, and `WAVETAP_ISA_FILLINGS` of each where that is set. What differs
//! on purpose is in `reasoned_difference`, each with its reason.

use std::collections::BTreeMap;

use llvm_oracle::{Answer, Oracle, Query};
use rewriter_tests::full;
use wavetap::isa::{self, Accepts, Coding, Modifier, Target, Variant};

/// Fillings of a row when nothing else is asked for.
const QUICK_FILLINGS: usize = 2;
/// Fillings of a row in the long run.
const FULL_FILLINGS: usize = 16;
/// Most examples that a failure shows.
const SHOWN: usize = 60;
/// Questions that are asked at a time.
const PORTION: usize = 128;
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
    let asked = std::env::var("WAVETAP_ISA_FILLINGS").ok().and_then(|count| count.parse().ok());
    asked.unwrap_or(if full() { FULL_FILLINGS } else { QUICK_FILLINGS })
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
            let vector = (256 + (random.below(256) & if kind.even { !1 } else { !0 })) | (any & 512);
            let accepts = |what: Accepts| kind.accepts.intersects(what);
            let choices: Vec<u64> = [
                (accepts(Accepts::SCALAR), scalar),
                (accepts(Accepts::INLINE), constant),
                (accepts(Accepts::VECTOR | Accepts::ACCUM), vector),
                // LLVM dies on some of the illegal ones, which takes a while each time.
                (random.below(16) == 0, any),
            ]
            .into_iter()
            .filter_map(|(chosen, number)| chosen.then_some(number))
            .collect();
            let chosen = random.below(choices.len().max(1) as u64) as usize;
            choices.get(chosen).copied().unwrap_or(any) & ((1 << width) - 1)
        }
        Coding::Vector | Coding::Accum if kind.even => any & !1,
        Coding::VectorAcc => any & (if kind.even { !1 } else { !0 }) & (if random.below(2) == 0 { 0xff } else { 0x2ff }),
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
    for (modifier, bits) in &variant.layout.modifiers {
        // Few numbers of these mean something, and LLVM dies on the others.
        let number = match modifier {
            Modifier::DstSel | Modifier::Src0Sel | Modifier::Src1Sel => random.below(7),
            Modifier::DstUnused => random.below(3),
            Modifier::DppCtrl => {
                [random.below(256), 0x101 + random.below(15), 0x111 + random.below(15), 0x140 + random.below(20)][random.below(4) as usize]
            }
            _ => continue,
        };
        if random.below(16) != 0 && bits.mask() & variant.mask == 0 {
            word = word & !bits.mask() | bits.put(number).unwrap_or(0);
        }
    }
    for operand in 0..variant.operands.len() {
        let bits = variant.operands[operand].bits;
        if let Some(placed) = bits.put(likely_number(random, variant, operand) & !((1 << lowest(&bits)) - 1)) {
            word = word & !bits.mask() | placed & !variant.mask | variant.matches & bits.mask();
        }
    }
    let mut bytes = word.to_le_bytes()[..usize::from(variant.layout.bytes)].to_vec();
    bytes.extend(literal(random).to_le_bytes());
    bytes
}

/// A literal: any, or one that has the value of an inline constant of some type, which is printed in its own way.
fn literal(random: &mut Random) -> u32 {
    const SPECIAL: [u32; 8] = [0x3f80_0000, 0x3c00, 0x3e22_f983, 0x3ff0_0000, 0x3fc4_5f30, 0xbf80, 0xc000_0000, 0x4400];
    match random.below(6) {
        0 => random.below(70) as u32,
        1 => (random.below(20) as u32).wrapping_neg(),
        2 => SPECIAL[random.below(8) as usize],
        3 => random.next() as u32 & 0xffff,
        _ => random.next() as u32,
    }
}

/// The lowest value bit that a field has.
fn lowest(bits: &isa::Bits) -> u8 {
    bits.runs().iter().map(|run| run.shift).min().unwrap_or(0)
}

/// Why a difference from LLVM is right, if it is. LLVM's disassembler takes a good deal that no assembler makes and no processor promises to
/// understand; the tables refuse it. `/*` marks what LLVM itself calls invalid.
fn reasoned_difference(target: Target, one: &Try, llvm: Option<(usize, &str)>) -> Option<&'static str> {
    let (size, text) = llvm?;
    let has = |what: &str| text.contains(what);
    let variant = one.variant;
    if one.ours.is_some() {
        // LLVM has no form of gather with three registers of data, and prints those of two.
        return (variant.name.starts_with("image_gather4") && has(" tfe") && has(" d16")).then_some("data of a gather with tfe and d16");
    }
    let beyond = |prefix: &str, end: u32| last_registers(text, prefix).any(|last| last >= end);
    let some_operand_is_no_source = variant.operands.iter().any(|spec| !spec.kind.accepts.contains(Accepts::READ_ONLY));
    let takes_no_literal = variant.operands.iter().all(|spec| !spec.kind.accepts.contains(Accepts::LITERAL));
    let reasons = [
        (has("scalar reg isn't aligned"), "scalar registers that start at an odd place (LLVM prints others than are encoded)"),
        (has("null"), "the null register, which gfx10 brought"),
        (has("src_flat_scratch_base"), "a source that gfx12.5 brought"),
        (takes_no_literal && size > usize::from(variant.layout.bytes), "a literal in a form that takes none"),
        (beyond("s[", 102), "scalar registers that run into FLAT_SCRATCH"),
        (beyond("v[", 256) || beyond("a[", 256), "vector registers that run out of the file"),
        (has("src_") && some_operand_is_no_source, "a read-only code where a register is needed"),
        (mask_in_vector(variant, text), "vector registers as a lane mask"),
        (variant.name.starts_with("image_atomic"), "channel masks that an image atomic does not have"),
        (variant.encoding == isa::Encoding::Mimg && one.bytes[5] & 1 != 0 && target.aligned_vgprs(), "image data from an odd register on"),
        (variant.encoding == isa::Encoding::Mimg && one.bytes[5] > 250, "image data that runs out of the file"),
        (
            variant.name.starts_with("ds_gws") && text.contains(" a") && !target.unified_accum(),
            "accumulation registers that LDS cannot reach",
        ),
        (
            variant.encoding == isa::Encoding::Ds && one.bytes[2] & 1 != 0 && !target.has_gds(),
            "global data share on a target that has none",
        ),
        (variant.encoding == isa::Encoding::Flat && has(" offset:"), "a flat offset of more than 12 bits"),
    ];
    reasons.iter().find(|(holds, _)| *holds).map(|(_, reason)| *reason)
}

/// The last register of every run with this prefix in a text: 7 of `s[4:7]`.
fn last_registers<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = u32> + 'a {
    text.split(prefix).skip(1).filter_map(|rest| rest.split_once(']')?.0.split_once(':')?.1.parse().ok())
}

/// Whether an operation on lane masks has vector registers as its last operand.
fn mask_in_vector(variant: &Variant, text: &str) -> bool {
    let masked = ["v_cndmask_b32", "v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32"].contains(&variant.name);
    masked && text.rsplit(", ").next().is_some_and(|last| last.starts_with("v["))
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
        if legal < fillings() {
            unreachable.push(variant.mnemonic);
        }
    }
    assert!(unreachable.is_empty(), "{}: too few fillings decode to {unreachable:?}", target.name());
    let queries: Vec<Query<'_>> = tries.iter().map(|one| Query { target: target.name(), bytes: &one.bytes, pc: 0 }).collect();
    // In small portions, because after a word that LLVM dies on the rest of its portion is asked again.
    let mut oracle = Oracle::new().expect("the oracle is built");
    let answers: Vec<Answer> = queries.chunks(PORTION).flat_map(|portion| oracle.ask_all(portion)).collect();
    let (mut same, mut differences, mut excused) = (0, Vec::new(), BTreeMap::<&str, usize>::new());
    for (one, answer) in tries.iter().zip(answers) {
        let llvm = match answer {
            Answer::Instruction { size, text } if !text.contains("/*") => Some((size, text)),
            Answer::Instruction { .. } | Answer::Rejected | Answer::Crash => None,
        };
        if llvm == one.ours {
            same += 1;
        } else if let Some(reason) = reasoned_difference(target, one, llvm.as_ref().map(|llvm| (llvm.0, llvm.1.as_str()))) {
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
