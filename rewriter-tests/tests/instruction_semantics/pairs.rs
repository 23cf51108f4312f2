//! Instructions that are two operations (VOPD): both take their sources before either writes its result.

use wavetap::isa::{HalfOperation, Inst, Modifier, RegFile, Role, Target, Variant};

use super::choose::Wishes;
use super::definition::Definition;
use super::lane::{self, Lane, T};
use super::number::Env;
use super::random::{Bits, Random};
use super::state::{Loose, Place, State};
use super::{dots, float, integer, ordered};

/// What a half does, by the name that it has alone.
fn of(half: &str) -> Option<Lane> {
    let dot = Lane {
        dst: T::U32,
        src: &[T::U32; 3],
        f: |_, s| dots::sum("v_dot2acc_f32_f16", s).unwrap_or(0),
        loose: None,
        carry: None,
    };
    match half {
        "v_dot2acc_f32_f16" => return Some(dot),
        "v_dot2acc_f32_bf16" => return Some(Lane { f: |_, s| dots::sum("v_dot2acc_f32_bf16", s).unwrap_or(0), ..dot }),
        _ => {}
    }
    if half == "v_bitop2_b32" {
        // Its table is not a source: see `results`.
        return Some(Lane { f: |_, _| 0, ..dot });
    }
    integer::definition(half).or_else(|| float::definition(half)).or_else(|| ordered::definition(half))
}

fn alone(name: &str) -> String {
    name.replacen("_dual_", "_", 1)
}

/// The result of each lane of one of the two operations.
fn results(half: &HalfOperation<'_>, inst: &Inst, state: &State, second: bool) -> Option<(Lane, usize, [u64; 64])> {
    let name = half.alone();
    let (lane, env) = (of(&name)?, Env::of(inst, state));
    let role = |role: Role| match (role, second) {
        (Role::Src0, true) => Role::Src0Y,
        (Role::Src1, true) => Role::Src1Y,
        (Role::Src2, true) => Role::Src2Y,
        (Role::Vdst, true) => Role::VdstY,
        (role, _) => role,
    };
    if name.contains("dot2acc") && half.operands().any(dots::is_other) {
        return None;
    }
    let operand = |wanted: Role| half.operands().find(|operand| operand.role == role(wanted)).copied();
    // A literal is either operation's.
    let literal = half.operands().chain(inst.operands.iter()).find(|operand| operand.role == Role::Imm).copied();
    let third = operand(Role::Src2).or_else(|| operand(Role::Vdst));
    let order = if name.starts_with("v_fmamk") {
        [operand(Role::Src0), literal, operand(Role::Src1)]
    } else if name.starts_with("v_fmaak") {
        [operand(Role::Src0), operand(Role::Src1), literal]
    } else {
        [operand(Role::Src0), operand(Role::Src1), third]
    };
    let mut sources = Vec::new();
    for (at, &ty) in lane.src.iter().enumerate() {
        // The condition of a selection without a third operand is VCC.
        if ty == T::Mask && operand(Role::Src2).is_none() {
            let vcc = state.mask(106);
            sources.push(std::array::from_fn(|lane| vcc >> lane & 1));
            continue;
        }
        // The signs of the second operation's sources begin at bit 4.
        let negated = inst.modifiers.neg >> (at + if second { 4 } else { 0 }) & 1 != 0;
        let sign = match ty {
            T::F32 | T::B32 if negated => 1 << 31,
            T::F64 if negated => 1 << 63,
            _ if negated => return None,
            _ => 0,
        };
        sources.push(lane::read(state, &order[at]?, ty)?.map(|value| env.flush_in(ty, value ^ sign)));
    }
    let to = operand(Role::Vdst)?.reg()?.first.into();
    if name == "v_bitop2_b32" {
        // Of the table of three operands the entries without the third.
        let entry = |n: usize, bit: u32| 4 * (sources[0][n] >> bit & 1) + 2 * (sources[1][n] >> bit & 1);
        let value =
            |n: usize| (0..32).fold(0, |all, bit| all | u64::from(inst.modifiers.bitop3 >> entry(n, bit) & 1) << bit);
        return Some((lane, to, std::array::from_fn(value)));
    }
    let values = std::array::from_fn(|n| {
        let s: Vec<u64> = sources.iter().map(|source: &[u64; 64]| source[n]).collect();
        env.finish(lane.dst, (lane.f)(&env, &s))
    });
    Some((lane, to, values))
}

fn execute(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let [first, second] = inst.halves()?;
    // Two results in one register: no assembler lets them (LLVM, `getInvalidCompOperandIndex`).
    let written = |half: &HalfOperation<'_>| {
        half.writes().next().map(|reg| usize::from(reg.first)..usize::from(reg.first) + usize::from(reg.dwords))
    };
    let (one, other) = (written(&first)?, written(&second)?);
    if one.start < other.end && other.start < one.end {
        return None;
    }
    let both = [results(&first, inst, state, false)?, results(&second, inst, state, true)?];
    for (lane, to, values) in both {
        for n in (0..state.lanes).filter(|n| state.exec() >> n & 1 != 0).collect::<Vec<_>>() {
            state.vgpr[to][n] = values[n] as u32;
            if lane.dst.wide() {
                state.vgpr[to + 1][n] = (values[n] >> 32) as u32;
            }
        }
        match lane.dst {
            T::F32 => state.loose.push((Place::Vector(to), Loose::Nan32)),
            T::F64 => state.loose.push((Place::Vector(to), Loose::Nan64)),
            _ => {}
        }
    }
    Some(())
}

/// Small whole numbers for a dot product, in what either operation may take.
fn small_numbers(_: &Inst, state: &mut State, random: &mut Random) {
    let mut half = || (random.pick(&[0, 1]) << 15 | random.pick(&[0, 0x3c00, 0x4000, 0x4200, 0x4400])) as u32;
    for row in &mut state.vgpr {
        *row = std::array::from_fn(|_| half() | half() << 16);
    }
    for register in 16..100 {
        state.sgpr[register] = half() | half() << 16;
    }
}

/// The accumulator of a dot product must be a small whole number as well, which no pair of halves is.
fn with_accumulators(inst: &Inst, state: &mut State, random: &mut Random) {
    small_numbers(inst, state, random);
    let Some(halves) = inst.halves() else { return };
    for half in halves.iter().filter(|half| half.alone().starts_with("v_dot2acc")) {
        let Some(reg) = half.writes().next() else { continue };
        if half.alone() == "v_dot2acc_f32_bf16" {
            // The same numbers in the other format: what is above a half of single precision.
            let mut short =
                || (random.pick(&[0.0_f32, 1.0, 2.0, 3.0, 4.0]) * random.pick(&[1.0, -1.0])).to_bits() >> 16;
            let mut word = || short() | short() << 16;
            for source in half.reads().filter(|source| (source.file, source.first) != (reg.file, reg.first)) {
                let at = usize::from(source.first);
                match source.file {
                    RegFile::Vector => state.vgpr[at] = std::array::from_fn(|_| word()),
                    _ if (16..100).contains(&at) => state.sgpr[at] = word(),
                    _ => {}
                }
            }
        }
        state.vgpr[usize::from(reg.first)] = std::array::from_fn(|_| (random.below(64) as f32 - 32.0).to_bits());
    }
}

/// The definition of a pair.
pub fn definition(variant: &Variant) -> Option<Definition> {
    variant.halves.as_ref()?;
    if !variant.mnemonic.split("::").all(|name| of(&alone(name.trim())).is_some()) {
        return None;
    }
    let dot = variant.mnemonic.contains("dot2acc");
    let wishes = Wishes { no_inline: dot, no_literals: dot, apart: dot, ..Wishes::default() };
    let modifier: fn(&mut Random, Modifier) -> Option<u64> =
        |random, modifier| (modifier == Modifier::Bitop3).then(|| random.below(256));
    let types: &'static [Bits] = if variant.mnemonic.contains("_f64") {
        &[Bits::Double, Bits::Double, Bits::Double]
    } else {
        &[Bits::Single, Bits::Single, Bits::Single]
    };
    let prepare: Option<fn(&Inst, &mut State, &mut Random)> = if dot { Some(with_accumulators) } else { None };
    Some(Definition { types, wishes, prepare, modifier: Some(modifier), ..Definition::whole(execute) })
}
