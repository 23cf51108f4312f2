//! Dot products of two pairs of floats, with numbers so small that every order and every rounding of the sums gives the
//! same.

use rustc_apfloat::Round;
use rustc_apfloat::ieee::{BFloat, Half, Single};
use wavetap::isa::{Inst, Modifier, Operand, RegFile, Role, Target};

use super::choose::Wishes;
use super::definition::Definition;
use super::lane::{self, T};
use super::number::{Env, convert, f32};
use super::random::Random;
use super::state::State;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Half,
    Brain,
    Single,
}

/// The kinds of the result and of the products.
fn kinds(name: &str) -> Option<(Kind, Kind)> {
    Some(match name {
        "v_dot2_f16_f16" => (Kind::Half, Kind::Half),
        "v_dot2_bf16_bf16" => (Kind::Brain, Kind::Brain),
        "v_dot2_f32_bf16" | "v_dot2c_f32_bf16" | "v_dot2acc_f32_bf16" => (Kind::Single, Kind::Brain),
        "v_dot2acc_f32_f16" => (Kind::Single, Kind::Half),
        _ => return None,
    })
}

fn value(kind: Kind, bits: u64) -> f64 {
    match kind {
        Kind::Half => super::state::half((bits & 0xffff) as u32),
        Kind::Brain => core::primitive::f32::from_bits((bits as u32) << 16).into(),
        Kind::Single => core::primitive::f32::from_bits(bits as u32).into(),
    }
}

fn code(kind: Kind, value: i64) -> u64 {
    let single = f32::from_signed(value, Round::NearestTiesToEven);
    match kind {
        Kind::Half => convert::<Single, Half>(single, Round::NearestTiesToEven),
        Kind::Brain => convert::<Single, BFloat>(single, Round::NearestTiesToEven),
        Kind::Single => single,
    }
}

/// The sum of the two products and the accumulator, as the result has it.
pub fn sum(name: &str, s: &[u64]) -> Option<u64> {
    let (result, factor) = kinds(name)?;
    let product = |shift: u32| value(factor, s[0] >> shift) * value(factor, s[1] >> shift);
    Some(code(result, (product(0) + product(16) + value(result, s[2])) as i64))
}

/// Whether a source is a register that holds no small numbers.
pub fn is_other(operand: &Operand) -> bool {
    operand.reg().is_some_and(|reg| reg.file == RegFile::Scalar && !(16..100).contains(&reg.first))
}

fn execute(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    if inst.operands.iter().any(is_other) {
        return None;
    }
    let env = Env::of(inst, state);
    let (result, _) = kinds(inst.name())?;
    let third = if result == Kind::Single { T::B32 } else { T::B16 };
    // All of the factors' registers; the signs and halves are not chosen.
    let (sources, written) = lane::gather(inst, state, target, &env, &[T::U32, T::U32, third])?;
    for lane in (0..state.lanes).filter(|lane| written >> lane & 1 != 0) {
        let value = sum(inst.name(), &[sources[0][lane], sources[1][lane], sources[2][lane]])?;
        lane::put(inst, state, target, lane, if result == Kind::Single { T::U32 } else { T::U16 }, value)?;
    }
    Some(())
}

/// Small whole numbers, in both halves of the factors.
pub fn small_numbers(inst: &Inst, state: &mut State, random: &mut Random) {
    let Some((result, factor)) = kinds(inst.name()) else { return };
    for role in [Role::Vdst, Role::Src2, Role::Src0, Role::Src1] {
        let Some(reg) = inst.operand(role).and_then(Operand::reg) else { continue };
        let kind = if matches!(role, Role::Src0 | Role::Src1) { factor } else { result };
        let mut next = || {
            let mut one = || code(kind, random.below(17) as i64 - 8);
            if kind == Kind::Single { one() as u32 } else { (one() | one() << 16) as u32 }
        };
        let at = usize::from(reg.first);
        match reg.file {
            RegFile::Vector => state.vgpr[at] = std::array::from_fn(|_| next()),
            RegFile::Scalar if (16..100).contains(&at) => state.sgpr[at] = next(),
            _ => {}
        }
    }
}

/// The definition of such an operation.
pub fn definition(name: &str) -> Option<Definition> {
    kinds(name)?;
    let modifier: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::OpSelHi => Some(7),
        // Of the ones with a short result, the half of the accumulator and of the destination.
        Modifier::OpSel => Some(random.pick(&[0, 4, 8, 12])),
        Modifier::Clamp | Modifier::Omod => Some(0),
        _ => None,
    };
    let short: fn(&mut Random, Modifier) -> Option<u64> = |_, modifier| match modifier {
        Modifier::OpSelHi => Some(7),
        _ => None,
    };
    let wishes = Wishes { plain: true, apart: true, no_inline: true, no_literals: true, ..Wishes::default() };
    let modifier = if kinds(name)?.0 == Kind::Single { short } else { modifier };
    Some(Definition { wishes, prepare: Some(small_numbers), modifier: Some(modifier), ..Definition::whole(execute) })
}
