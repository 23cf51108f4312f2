//! Conversions of gfx950 to halves and to small floats by chance: up if the part that does not fit and random bits
//! make a whole.

use rustc_apfloat::Round;
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use wavetap::isa::{Inst, Modifier, Role, Target};

use super::choose::Wishes;
use super::definition::Definition;
use super::lane::{self, T};
use super::number::{Env, convert};
use super::random::Random;
use super::small::{Kind, Small, bits_at, fill, set_bits_at, vector};
use super::state::State;

/// As the smallest of the steps that a fraction is counted in, what random bits count in units of.
fn goes_up(part: f64, fraction: u32, chance: u64) -> bool {
    let steps = 2_f64.powi(23 - fraction as i32);
    part * steps + (chance >> (9 + fraction)) as f64 >= steps
}

/// The code of a number; beyond the largest one as without chance.
fn code(format: Small, value: f64, chance: u64) -> u64 {
    let (x, beyond) = (value.abs(), f64::INFINITY.copysign(value));
    if x >= format.magnitude(format.largest() + 1) {
        return format.encode(beyond);
    }
    let below = (0..=format.largest()).rev().find(|&code| format.magnitude(code) <= x).unwrap_or(0);
    let (low, high) = (format.magnitude(below), format.magnitude(below + 1));
    let code = below + u64::from(goes_up((x - low) / (high - low), format.fraction, chance));
    if code > format.largest() {
        format.encode(beyond)
    } else {
        code | if value.is_sign_negative() { format.sign() } else { 0 }
    }
}

/// How many numbers, of what kind, and the format of the result.
struct Scaled {
    count: usize,
    from: Kind,
    to: Small,
}

fn scaled(name: &str) -> Option<Scaled> {
    let rest = name.strip_prefix("v_cvt_scalef32_sr_")?;
    let (count, types) = [("pk32_", 32), ("pk_", 2)]
        .iter()
        .find_map(|(begin, count)| Some((*count, rest.strip_prefix(begin)?)))
        .unwrap_or((1, rest));
    let (to, from) = types.split_once('_')?;
    let Kind::Small(to) = Kind::of(to)? else { return None };
    Some(Scaled { count, from: Kind::of(from)?, to })
}

fn convert_scaled(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let Scaled { count, from, to } = scaled(inst.name())?;
    let chance = lane::read(state, inst.operand(Role::Src1)?, T::U32)?;
    let scale = lane::read(state, inst.operand(Role::Src2)?, T::U32)?;
    let (source, result) = (vector(inst, Role::Src0)?, vector(inst, Role::Vdst)?);
    let before = state.clone();
    let at = if count < 32 { 8 * usize::from(inst.modifiers.op_sel >> 2 & 3) } else { 0 };
    for lane in (0..before.lanes).filter(|lane| before.is_active(*lane)) {
        for n in 0..count {
            let value = from.decode(bits_at(&before, source, lane, n * from.bits(), from.bits()));
            let value = value / 2_f64.powi((scale[lane] >> 23 & 0xff) as i32 - 127);
            // Which random bits the second and later ones take is told in two ways: here they are exact.
            if n > 0 && to.decode(to.encode(value)) != value {
                return None;
            }
            set_bits_at(
                state,
                result,
                lane,
                at + n * to.bits as usize,
                to.bits as usize,
                code(to, value, chance[lane]),
            );
        }
    }
    Some(())
}

/// One scale for all. A number alone is anything near the format's range, a half what becomes a normal number; of
/// several each is exact.
fn prepare_scaled(inst: &Inst, state: &mut State, random: &mut Random) {
    let Some(Scaled { count, from, to }) = scaled(inst.name()) else { return };
    let exponent = random.below(15) as i32 - 7;
    state.sgpr[124] = ((exponent + 127) as u32) << 23;
    fill(state, inst.operand(Role::Src2), || ((exponent + 127) as u32) << 23);
    let (smallest, largest) = (1 - to.bias, to.magnitude(to.largest()).log2() as i32);
    let mut one = |kind: Kind| {
        let sign = if random.one_in(2) { -1.0 } else { 1.0 };
        let value = if count > 1 {
            to.magnitude(random.below(to.largest() + 1))
        } else {
            let (low, high) = match kind {
                Kind::Half => ((-14 - exponent).max(smallest), (15 - exponent).min(largest)),
                Kind::Brain => (smallest, largest + 1),
                _ => (smallest - 6, largest + 1),
            };
            let fraction = random.below(1 << 23) as f64 * 0.5_f64.powi(23);
            2_f64.powi(low + random.below((high - low + 1) as u64) as i32)
                * (1.0 + if random.one_in(4) { 0.0 } else { fraction })
        };
        let bits = (sign * value * 2_f64.powi(exponent)).to_bits();
        match kind {
            Kind::Half => convert::<Double, Half>(bits, Round::TowardZero) as u32,
            Kind::Brain => convert::<Double, BFloat>(bits, Round::TowardZero) as u32,
            _ => convert::<Double, Single>(bits, Round::TowardZero) as u32,
        }
    };
    match from {
        Kind::Single => fill(state, inst.operand(Role::Src0), || one(from)),
        _ => fill(state, inst.operand(Role::Src0), || one(from) | one(from) << 16),
    }
}

/// `v_cvt_sr_f16_f32`, `v_cvt_sr_bf16_f32`.
fn halves(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let brain = inst.name().contains("bf16");
    let fraction = if brain { 7 } else { 10 };
    let (sources, written) = lane::gather(inst, state, target, &Env::of(inst, state), &[T::F32, T::U32])?;
    let first = vector(inst, Role::Vdst)?;
    for lane in (0..state.lanes).filter(|lane| written >> lane & 1 != 0) {
        let value = Kind::Single.decode(sources[0][lane]);
        let unit = 2_f64.powi(value.abs().log2().floor() as i32 - fraction);
        let whole = (value.abs() / unit).floor();
        let up = goes_up(value.abs() / unit - whole, fraction as u32, sources[1][lane]);
        let bits = ((whole + f64::from(u8::from(up))) * unit).copysign(value).to_bits();
        let code = if brain {
            convert::<Double, BFloat>(bits, Round::NearestTiesToEven)
        } else {
            convert::<Double, Half>(bits, Round::NearestTiesToEven)
        };
        set_bits_at(state, first, lane, 16 * usize::from(inst.modifiers.op_sel >> 3), 16, code);
    }
    Some(())
}

/// Numbers whose result is a normal one.
fn prepare_halves(inst: &Inst, state: &mut State, random: &mut Random) {
    let (low, count) = if inst.name().contains("bf16") { (1, 253) } else { (113, 29) };
    fill(state, inst.operand(Role::Src0), || {
        (random.below(2) << 31
            | (low + random.below(count)) << 23
            | random.below(1 << 23) & if random.one_in(4) { 0 } else { !0 }) as u32
    });
}

/// The definition of such a conversion.
pub fn definition(name: &str) -> Option<Definition> {
    let quarters: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Clamp | Modifier::Omod | Modifier::Neg | Modifier::Abs => Some(0),
        Modifier::OpSel => Some(4 * random.below(4)),
        _ => None,
    };
    let upper: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Clamp | Modifier::Omod => Some(0),
        Modifier::OpSel => Some(8 * random.below(2)),
        _ => None,
    };
    let wishes =
        Wishes { no_inline: true, no_literals: true, no_float_constants: true, apart: true, ..Wishes::default() };
    match name {
        "v_cvt_sr_f16_f32" | "v_cvt_sr_bf16_f32" => Some(Definition {
            wishes,
            modifier: Some(upper),
            prepare: Some(prepare_halves),
            ..Definition::whole(halves)
        }),
        _ => {
            scaled(name)?;
            Some(Definition {
                wishes,
                modifier: Some(quarters),
                prepare: Some(prepare_scaled),
                ..Definition::whole(convert_scaled)
            })
        }
    }
}
