//! Dot products: sources of several small numbers each, halves chosen and negated one by one.
//!
//! The sums of floats are rounded after each product in the order of the manuals' expressions, where the accumulator
//! comes first.

use wavetap_amdgpu::{Encoding, Half, Opcode, Role};

use super::{environment, finish, moved, scatter};
use crate::fault::stop::{ExecResult, undefined};
use crate::float::small_float::{Format, decode, round_bf16};
use crate::float::{self, Env, Round, fma_odd, from_bf16, from_f16, to_bf16, to_f16, to_f32};
use crate::lanes::{LANES, active, operation};
use crate::op::semantics::{High, LaneFn, Semantics, Source, Ty};
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};

/// The signed or unsigned number of `BITS` bits at a place.
fn field<const BITS: u32>(x: u64, n: u32, signed: bool) -> i64 {
    let raw = (x >> (n * BITS)) & ((1 << BITS) - 1);
    if signed { ((raw << (64 - BITS)) as i64) >> (64 - BITS) } else { raw as i64 }
}

fn sum<const BITS: u32>(s: &[u64; 4], signed: [bool; 2]) -> i64 {
    (0..32 / BITS).map(|n| field::<BITS>(s[0], n, signed[0]) * field::<BITS>(s[1], n, signed[1])).sum()
}

fn signed<const BITS: u32>(e: &Env, s: &[u64; 4]) -> u64 {
    accumulate(e, s, sum::<BITS>(s, [true; 2]))
}

fn accumulate(e: &Env, s: &[u64; 4], products: i64) -> u64 {
    let total = i64::from(s[2] as u32 as i32) + products;
    let total = if e.clamp { total.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) } else { total };
    u64::from(total as u32)
}

fn unsigned<const BITS: u32>(e: &Env, s: &[u64; 4]) -> u64 {
    let total = i64::from(s[2] as u32) + sum::<BITS>(s, [false; 2]);
    u64::from(if e.clamp { total.min(i64::from(u32::MAX)) as u32 } else { total as u32 })
}

/// The signedness of each source is in its negation bit, which `Env::part` has here.
fn either<const BITS: u32>(e: &Env, s: &[u64; 4]) -> u64 {
    accumulate(e, s, sum::<BITS>(s, [e.part & 1 != 0, e.part & 2 != 0]))
}

fn half(x: u64) -> f64 {
    from_f16(x as u16)
}

fn brain(x: u64) -> f64 {
    from_bf16(x as u16)
}

fn single(x: u64) -> f64 {
    f32::from_bits(x as u32).into()
}

/// Products of the two halves, added one after the other.
fn pairs(s: &[u64; 4], value: fn(u64) -> f64, start: f64, round: impl Fn(f64) -> f64) -> f64 {
    (0..2).fold(start, |sum, n| round(fma_odd(value(s[0] >> (16 * n)), value(s[1] >> (16 * n)), sum)))
}

fn to_single(e: &Env, s: &[u64; 4], value: fn(u64) -> f64) -> u64 {
    let sum = pairs(s, value, single(s[2]), |exact| to_f32(exact, e.round32).into());
    u64::from((sum as f32).to_bits())
}

fn bytes(s: &[u64; 4], a: Format, b: Format) -> u64 {
    let product = |n: u32| (decode(a, (s[0] >> (8 * n)) as u8), decode(b, (s[1] >> (8 * n)) as u8));
    let sum = (0..4).map(product).fold(single(s[2]), |sum, (x, y)| to_f32(fma_odd(x, y, sum), Round::Nearest).into());
    u64::from((sum as f32).to_bits())
}

fn run(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Lane { f, dst, src, .. } = op.semantics else { return undefined("meaning") };
    let modifiers = &op.inst.modifiers;
    let packed = matches!(op.inst.variant.encoding, Encoding::Vop3p | Encoding::Vop3pDpp | Encoding::Vop3pDpp8);
    let floats = src[0] == Ty::F16;
    let mut s = [[0; LANES]; 3];
    let mut mask = 0;
    for (at, role) in [Role::Src0, Role::Src1].into_iter().enumerate() {
        let constant = op.source(role, src[at]);
        // Of registers all of it; a 16-bit constant is in the lower half.
        let from = if matches!(constant, Source::Const(_)) { constant } else { op.source(role, Ty::B32) };
        s[at] = core.lanes(op, from, Ty::B32, at as u8)?;
        if at == 0 {
            mask = moved(core, op, &mut s[0])?;
        }
        if !floats {
            continue;
        }
        let low = modifiers.neg >> at & 1;
        let high = if packed { modifiers.neg_hi >> at & 1 } else { low };
        for value in &mut s[at] {
            if packed {
                *value = chosen(*value, at, modifiers.op_sel, modifiers.op_sel_hi);
            }
            if !packed && modifiers.abs >> at & 1 != 0 {
                *value &= 0x7fff_7fff;
            }
            *value ^= u64::from(low) << 15 | u64::from(high) << 31;
        }
    }
    s[2] = core.lanes(op, op.src[2], dst, 2)?;
    let mut env = environment(core, op);
    // The signs of integers, where operations have a choice.
    env.part = modifiers.neg;
    if dst != Ty::B32 {
        accumulator(op, &env, dst, &mut s[2]);
    }
    let mut values = [0; LANES];
    for lane in active(mask) {
        values[lane] = finish(dst, &env, modifiers, f.lane(&env, &[s[0][lane], s[1][lane], s[2][lane], 0]));
    }
    scatter(core, op, dst, High::Keep, &mut values, mask)
}

/// Half, sign and denormals of the third source.
fn accumulator(op: &Op, env: &Env, ty: Ty, values: &mut [u64; LANES]) {
    let modifiers = &op.inst.modifiers;
    let high = match op.halves[2] {
        Some(half) => half == Half::High,
        None => ty != Ty::F32 && modifiers.op_sel >> 2 & 1 != 0,
    };
    let sign = if ty == Ty::F32 { 1 << 31 } else { 1 << 15 };
    // VOP3P has no absolute value.
    let (absolute, negate) = (modifiers.abs >> 2 & 1 != 0, modifiers.neg >> 2 & 1 != 0);
    for value in values {
        if high {
            *value >>= 16;
        }
        if absolute {
            *value &= !sign;
        }
        if negate {
            *value ^= sign;
        }
        if ty == Ty::F32 && env.flush_in32 {
            *value = float::flush32(*value as u32).into();
        }
    }
}

/// The halves that `op_sel` and `op_sel_hi` choose.
fn chosen(value: u64, at: usize, low: u8, high: u8) -> u64 {
    let half = |select: u8| value >> (16 * u32::from(select >> at & 1)) & 0xffff;
    half(low) | half(high) << 16
}

fn meaning_of(f: LaneFn, dst: Ty, halves: bool) -> Meaning {
    let source = if halves { Ty::F16 } else { Ty::B32 };
    (run, Semantics::Lane { f: operation(f), dst, src: [source, source, dst, Ty::None], high: High::Keep })
}

/// The meaning of a dot product.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    let integer = |f: LaneFn| meaning_of(f, Ty::B32, false);
    Some(match opcode {
        Opcode::V_DOT2_I32_I16 | Opcode::V_DOT2C_I32_I16 => integer(signed::<16>),
        Opcode::V_DOT2_U32_U16 => integer(unsigned::<16>),
        Opcode::V_DOT4_I32_I8 | Opcode::V_DOT4C_I32_I8 => integer(signed::<8>),
        Opcode::V_DOT4_U32_U8 => integer(unsigned::<8>),
        Opcode::V_DOT8_I32_I4 | Opcode::V_DOT8C_I32_I4 => integer(signed::<4>),
        Opcode::V_DOT8_U32_U4 => integer(unsigned::<4>),
        Opcode::V_DOT4_I32_IU8 => integer(either::<8>),
        Opcode::V_DOT8_I32_IU4 => integer(either::<4>),
        Opcode::V_DOT2_F32_F16 | Opcode::V_DOT2C_F32_F16 | Opcode::V_DOT2ACC_F32_F16 => {
            meaning_of(|e, s| to_single(e, s, half), Ty::F32, true)
        }
        Opcode::V_DOT2_F32_BF16 | Opcode::V_DOT2C_F32_BF16 => meaning_of(|e, s| to_single(e, s, brain), Ty::F32, true),
        Opcode::V_DOT2_F16_F16 => meaning_of(
            |e, s| to_f16(pairs(s, half, half(s[2]), |exact| from_f16(to_f16(exact, e.round64))), e.round64).into(),
            Ty::F16,
            true,
        ),
        Opcode::V_DOT2_BF16_BF16 => meaning_of(
            |_, s| {
                to_bf16(pairs(s, brain, brain(s[2]), |exact| from_bf16(round_bf16(exact, Round::Nearest))) as f32)
                    .into()
            },
            Ty::B16,
            true,
        ),
        Opcode::V_DOT4_F32_FP8_FP8 => meaning_of(|_, s| bytes(s, Format::E4M3, Format::E4M3), Ty::F32, false),
        Opcode::V_DOT4_F32_FP8_BF8 => meaning_of(|_, s| bytes(s, Format::E4M3, Format::E5M2), Ty::F32, false),
        Opcode::V_DOT4_F32_BF8_FP8 => meaning_of(|_, s| bytes(s, Format::E5M2, Format::E4M3), Ty::F32, false),
        Opcode::V_DOT4_F32_BF8_BF8 => meaning_of(|_, s| bytes(s, Format::E5M2, Format::E5M2), Ty::F32, false),
        _ => return None,
    })
}
