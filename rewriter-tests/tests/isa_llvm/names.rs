//! Every number of the operands and modifiers that are written with names: hardware registers, messages, dependences,
//! export targets, formats, lane permutations, cache policies and so on, in a row for each way to write them.

use std::collections::BTreeSet;

use rewriter_tests::full;
use wavetap::isa::{self, Bits, Modifier, Role, Target, Variant};

use crate::compare::Trial;
use crate::reason::{Codes, Field};

/// In the quick run, of fields with more numbers than this only some are tried.
const FEW: u64 = 1 << 10;
/// Every so many of those, then.
const STEP: usize = 61;

const ROLES: [Role; 10] = [
    Role::Hwreg,
    Role::Message,
    Role::WaitCount,
    Role::DepCtr,
    Role::Delay,
    Role::Version,
    Role::WaitEvent,
    Role::ExportTarget,
    Role::Format,
    Role::Simm16,
];
const MODIFIERS: [Modifier; 23] = [
    Modifier::DppCtrl,
    Modifier::DstSel,
    Modifier::DstUnused,
    Modifier::Src0Sel,
    Modifier::Src1Sel,
    Modifier::Omod,
    Modifier::Cbsz,
    Modifier::Abid,
    Modifier::Blgp,
    Modifier::Bitop3,
    Modifier::ByteSel,
    Modifier::ScaleSel,
    Modifier::IndexKey,
    Modifier::MatrixAFmt,
    Modifier::MatrixBFmt,
    Modifier::MatrixAScale,
    Modifier::MatrixBScale,
    Modifier::MatrixAScaleFmt,
    Modifier::MatrixBScaleFmt,
    Modifier::WaitExp,
    Modifier::WaitVdst,
    Modifier::WaitVsrc,
    Modifier::OpSel,
];
/// They are written together, and some names depend on two of them.
const CACHE: [Modifier; 8] = [
    Modifier::Glc,
    Modifier::Slc,
    Modifier::Dlc,
    Modifier::Scc,
    Modifier::Th,
    Modifier::Scope,
    Modifier::Nv,
    Modifier::ScaleOffset,
];

/// Words with every number of every such field, all else being registers with the number 0.
pub fn trials(target: Target) -> Vec<Trial> {
    let codes = Codes::of(target);
    let (mut seen, mut trials) = (BTreeSet::new(), Vec::new());
    for variant in isa::variants(target) {
        // Rows of one encoding with the same fields of the same kinds write them in the same way.
        let wide = variant.operands.iter().any(|spec| spec.dwords == 2);
        let alike = format!(
            "{:?} {:?} {:?} {wide} {:?}",
            variant.encoding,
            variant.flags,
            variant.printed,
            std::ptr::from_ref(variant.layout)
        );
        let base = base(target, codes, variant);
        let mut add = |what: String, mask: u128| {
            let free = mask & !variant.mask;
            if free != 0 && seen.insert(what) {
                let numbers = 1_u64 << free.count_ones();
                let step = if full() || numbers <= FEW { 1 } else { STEP };
                trials.extend(
                    (0..numbers)
                        .step_by(step)
                        .map(|number| Trial::new(variant, bytes(variant, base & !free | spread(number, free)))),
                );
            }
        };
        for spec in variant.operands.iter().filter(|spec| ROLES.contains(&spec.role)) {
            add(
                format!("{:?} {:?} {:?} {}", spec.role, spec.kind.form, variant.encoding, named(variant)),
                spec.bits.mask(),
            );
        }
        let fields = &variant.layout.modifiers;
        for (modifier, bits) in fields.iter().filter(|(modifier, _)| MODIFIERS.contains(modifier)) {
            add(format!("{modifier:?} {alike}"), bits.mask());
        }
        let cache = fields
            .iter()
            .filter(|(modifier, _)| CACHE.contains(modifier))
            .fold(0, |all, (_, bits): &(_, Bits)| all | bits.mask());
        add(format!("cache {alike}"), cache);
        if variant.name == "ds_swizzle_b32" {
            add(
                "swizzle".to_owned(),
                fields
                    .iter()
                    .filter(|(modifier, _)| *modifier == Modifier::Offset)
                    .fold(0, |all, (_, bits)| all | bits.mask()),
            );
        }
    }
    trials
}

/// The name, where it is the operation that gives a number its meaning.
fn named(variant: &Variant) -> &'static str {
    if variant.operands.iter().any(|spec| spec.role == Role::Simm16) { variant.name } else { "" }
}

/// The row's word with a register, or what else is usual, in each operand.
fn base(target: Target, codes: Codes, variant: &'static Variant) -> u128 {
    let mut word = variant.matches;
    for spec in variant.operands {
        let usual = Field { target, codes, variant, spec, number: 0 }.usual();
        word |= spec.bits.put(usual).unwrap_or(0) & !variant.mask;
    }
    word
}

/// The bits of a number in the places that the mask has, the lowest in the lowest.
fn spread(mut number: u64, mut mask: u128) -> u128 {
    let mut word = 0;
    while mask != 0 {
        let lowest = mask & mask.wrapping_neg();
        if number & 1 != 0 {
            word |= lowest;
        }
        (number, mask) = (number >> 1, mask & !lowest);
    }
    word
}

/// The word's bytes with room for a literal.
fn bytes(variant: &Variant, word: u128) -> Vec<u8> {
    let mut bytes = word.to_le_bytes()[..usize::from(variant.layout.bytes)].to_vec();
    bytes.extend([0; 8]);
    bytes
}
