//! VOP3P: two halves at once, and the mixed-precision multiply-adds.

use wavetap_amdgpu::{Opcode, Role, Value};

use super::{clamped, fast, float_ops, moved};
use crate::fault::stop::{ExecResult, undefined};
use crate::float::small_float::round_bf16;
use crate::float::{self, Env, Round, from_bf16, from_f16, to_f32};
use crate::lanes::{LANES, Lane, active, operation};
use crate::op::semantics::{Semantics, Source, Ty};
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};

fn h(x: u64) -> u16 {
    x as u16
}
fn ih(x: u64) -> i16 {
    x as u16 as i16
}
fn hf(x: u64) -> f64 {
    from_f16(x as u16)
}
fn wh(e: &Env, value: f64) -> u64 {
    u64::from(float::half_by_mode(e, value))
}

/// Runs [`Semantics::Packed`].
fn run_packed(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Packed { f, float, short } = op.semantics else { return undefined("meaning") };
    let modifiers = op.inst.modifiers;
    let mut all = [[0; LANES]; 3];
    for (at, role) in [Role::Src0, Role::Src1, Role::Src2].into_iter().enumerate() {
        let constant = op.source(role, if float { Ty::F16 } else { Ty::B32 });
        let from = match constant {
            Source::Const(_) => constant,
            Source::None if at == 2 && short => op.src[2],
            _ => op.source(role, Ty::B32),
        };
        if from != Source::None {
            all[at] = core.lanes(op, from, Ty::B32, at as u8)?;
        }
    }
    let mut env = core.wave.env;
    env.clamp = modifiers.clamp;
    let mask = moved(core, op, &mut all[0])?;
    let mut values = [0; LANES];
    for lane in active(mask) {
        let mut result = 0;
        for half in 0..2 {
            let mut s = [0; 4];
            for (at, source) in all.iter().enumerate() {
                let select = if short {
                    u8::from(half == 1)
                } else if half == 0 {
                    modifiers.op_sel >> at & 1
                } else {
                    modifiers.op_sel_hi >> at & 1
                };
                let mut value = source[lane] >> (16 * select) & 0xffff;
                let negate = if half == 0 { modifiers.neg } else { modifiers.neg_hi };
                if negate >> at & 1 != 0 {
                    value ^= 0x8000;
                }
                if float && env.flush_in64 {
                    value = u64::from(float::flush16(value as u16));
                }
                s[at] = value;
            }
            let mut value = f.lane(&env, &s) & 0xffff;
            if float {
                if env.flush_out64 {
                    value = u64::from(float::flush16(value as u16));
                }
                if env.clamp {
                    value = wh(&env, clamped(&env, hf(value)));
                }
            }
            result |= value << (16 * half);
        }
        values[lane] = result;
    }
    let Some(dst) = op.dst else { return undefined("no destination") };
    core.set_lanes(op, dst.first, false, &values, mask)
}

/// Runs [`Semantics::Packed32`]: two single-precision operations on register pairs.
fn run_packed32(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Packed32 { f } = op.semantics else { return undefined("meaning") };
    if fast::run_packed32(core, op, f)? {
        return Ok(());
    }
    let modifiers = op.inst.modifiers;
    let mut all = [[0; LANES]; 3];
    for (at, role) in [Role::Src0, Role::Src1, Role::Src2].into_iter().enumerate() {
        match op.source(role, Ty::B32) {
            Source::None => {}
            // A constant is the same in both halves.
            Source::Const(bits) => all[at] = [bits << 32 | bits; LANES],
            from => all[at] = core.lanes(op, from, Ty::B64, at as u8)?,
        }
    }
    let mut env = core.wave.env;
    env.clamp = modifiers.clamp;
    let mask = core.wave.exec();
    let mut values = [0; LANES];
    for lane in active(mask) {
        for half in 0..2 {
            let mut s = [0; 4];
            for (at, source) in all.iter().enumerate() {
                let select = if half == 0 { modifiers.op_sel >> at & 1 } else { modifiers.op_sel_hi >> at & 1 };
                let mut value = source[lane] >> (32 * select) & 0xffff_ffff;
                let negate = if half == 0 { modifiers.neg } else { modifiers.neg_hi };
                if negate >> at & 1 != 0 {
                    value ^= 0x8000_0000;
                }
                if env.flush_in32 {
                    value = u64::from(float::flush32(value as u32));
                }
                s[at] = value;
            }
            let mut value = f.lane(&env, &s) as u32;
            if env.flush_out32 {
                value = float::flush32(value);
            }
            if env.clamp {
                value = (clamped(&env, f64::from(f32::from_bits(value))) as f32).to_bits();
            }
            values[lane] |= u64::from(value) << (32 * half);
        }
    }
    let Some(dst) = op.dst else { return undefined("no destination") };
    core.set_lanes(op, dst.first, true, &values, mask)
}

/// `v_pk_mov_b32`: the low result from the first source, the high one from the second.
fn pack_move(core: &mut Core, op: &Op) -> ExecResult {
    let modifiers = op.inst.modifiers;
    let mut all = [[0; LANES]; 2];
    for (at, role) in [Role::Src0, Role::Src1].into_iter().enumerate() {
        match op.source(role, Ty::B32) {
            Source::Const(bits) => all[at] = [bits << 32 | bits; LANES],
            from => all[at] = core.lanes(op, from, Ty::B64, at as u8)?,
        }
    }
    let select = |at: u8| 32 * u32::from(modifiers.op_sel >> at & 1);
    let values =
        std::array::from_fn(|lane| (all[0][lane] >> select(0) & 0xffff_ffff) | (all[1][lane] >> select(1)) << 32);
    let Some(dst) = op.dst else { return undefined("no destination") };
    let mask = core.wave.exec();
    core.set_lanes(op, dst.first, true, &values, mask)
}

/// The result of a mixed multiply-add.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mixed {
    Single,
    Low,
    High,
}

/// The kind of the short numbers of a mixed multiply-add.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Short {
    Half,
    Brain,
}

/// Each source is single precision, or half of a register in the short format where `op_sel_hi` says so.
fn mixed(core: &mut Core, op: &Op, result: Mixed, fused: bool, short: Short) -> ExecResult {
    let modifiers = op.inst.modifiers;
    if short == Short::Brain {
        let env = core.wave.env;
        // As for pairs of bfloat16; and a denormal of it is one of single precision, so that of those, too, it is not
        // clear which are flushed.
        let flushes = env.flush_in64 || env.flush_out64 || env.flush_in32 || env.flush_out32;
        if flushes || env.round64 != Round::Nearest || (modifiers.clamp && result != Mixed::Single) {
            return undefined(
                "bfloat16 with clamping, or under a MODE that flushes or rounds otherwise than to nearest",
            );
        }
    }
    let mut all = [[0.0_f64; LANES]; 3];
    let mut mask = 0;
    for (at, role) in [Role::Src0, Role::Src1, Role::Src2].into_iter().enumerate() {
        let half = modifiers.op_sel_hi >> at & 1 != 0;
        let from = match op.source(role, if half { Ty::F16 } else { Ty::F32 }) {
            Source::Const(bits) => match op.inst.operand(role).map(|operand| operand.value) {
                // An inline float is one of the short format.
                Some(Value::InlineFloat(_)) if half && short == Short::Brain => match op.source(role, Ty::F32) {
                    Source::Const(single) => Source::Const(single >> 16),
                    other => other,
                },
                _ => Source::Const(bits),
            },
            _ => op.source(role, Ty::B32),
        };
        let mut raw = core.lanes(op, from, Ty::B32, at as u8)?;
        if at == 0 {
            mask = moved(core, op, &mut raw)?;
        }
        for lane in 0..LANES {
            let mut value = if half {
                let bits = (raw[lane] >> (16 * u32::from(modifiers.op_sel >> at & 1))) as u16;
                if short == Short::Brain { from_bf16(bits) } else { from_f16(bits) }
            } else {
                let bits = raw[lane] as u32;
                f64::from(f32::from_bits(if core.wave.env.flush_in32 || !fused { float::flush32(bits) } else { bits }))
            };
            // `neg_hi` is the absolute value here.
            if modifiers.neg_hi >> at & 1 != 0 {
                value = value.abs();
            }
            if modifiers.neg >> at & 1 != 0 {
                value = -value;
            }
            all[at][lane] = value;
        }
    }
    let env = core.wave.env;
    let Some(dst) = op.dst else { return undefined("no destination") };
    core.writing(op, wavetap_amdgpu::RegFile::Vector, dst.first, 1)?;
    for lane in active(mask) {
        let (a, b, c) = (all[0][lane], all[1][lane], all[2][lane]);
        let clamp = |value: f64| if modifiers.clamp { clamped(&env, value) } else { value };
        // Of the direction only the sign of an exact zero depends. The product of two single-precision numbers is
        // exact.
        let round = if result == Mixed::Single { env.round32 } else { env.round64 };
        let exact = if fused {
            float::sum_odd(a * b, c, round)
        } else {
            float::sum_odd(f64::from(f32::from_bits(float::flush32(to_f32(a * b, env.round32).to_bits()))), c, round)
        };
        let narrow = |exact: f64| match short {
            Short::Half => u32::from(float::half_by_mode(&env, clamp(exact))),
            Short::Brain => u32::from(round_bf16(exact, Round::Nearest)),
        };
        let cell = &mut core.wave.vgpr[usize::from(dst.first)][lane];
        *cell = match result {
            Mixed::Single => {
                let bits = (clamp(f64::from(to_f32(exact, env.round32))) as f32).to_bits();
                if env.flush_out32 || !fused { float::flush32(bits) } else { bits }
            }
            Mixed::Low => *cell & 0xffff_0000 | narrow(exact),
            Mixed::High => *cell & 0xffff | narrow(exact) << 16,
        };
    }
    Ok(())
}

fn half(f: impl Lane, float: bool) -> Meaning {
    (run_packed, Semantics::Packed { f: operation(f), float, short: false })
}

fn saturate(e: &Env, value: i32) -> u64 {
    if e.clamp { u64::from(value.clamp(-0x8000, 0x7fff) as u16) } else { u64::from(value as u16) }
}

fn saturate_unsigned(e: &Env, value: i64) -> u64 {
    if e.clamp { value.clamp(0, 0xffff) as u64 } else { u64::from(value as u16) }
}

/// What an operation does to both halves, as that of single ones.
fn of_halves(opcode: Opcode) -> Option<Opcode> {
    Some(match opcode {
        Opcode::V_PK_MIN_F16 => Opcode::V_MIN_F16,
        Opcode::V_PK_MAX_F16 => Opcode::V_MAX_F16,
        Opcode::V_PK_MIN_NUM_F16 => Opcode::V_MIN_NUM_F16,
        Opcode::V_PK_MAX_NUM_F16 => Opcode::V_MAX_NUM_F16,
        Opcode::V_PK_MINIMUM_F16 => Opcode::V_MINIMUM_F16,
        Opcode::V_PK_MAXIMUM_F16 => Opcode::V_MAXIMUM_F16,
        Opcode::V_PK_MIN3_NUM_F16 => Opcode::V_MIN3_NUM_F16,
        Opcode::V_PK_MAX3_NUM_F16 => Opcode::V_MAX3_NUM_F16,
        Opcode::V_PK_MINIMUM3_F16 => Opcode::V_MINIMUM3_F16,
        Opcode::V_PK_MAXIMUM3_F16 => Opcode::V_MAXIMUM3_F16,
        _ => return None,
    })
}

/// The meaning of a VOP3P instruction other than matrix and dot products.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::V_PK_ADD_F16 => half(|e, s| wh(e, float::sum_odd(hf(s[0]), hf(s[1]), e.round64)), true),
        Opcode::V_PK_MUL_F16 => half(|e, s| wh(e, hf(s[0]) * hf(s[1])), true),
        Opcode::V_PK_FMA_F16 => half(|e, s| float_ops::fma16(e, s[0], s[1], s[2]), true),
        Opcode::V_PK_FMAC_F16 => (
            run_packed,
            Semantics::Packed {
                f: operation(|e: &Env, s: &[u64; 4]| float_ops::fma16(e, s[0], s[1], s[2])),
                float: true,
                short: true,
            },
        ),
        _ if of_halves(opcode).is_some() => {
            let f = float_ops::lane_fn(of_halves(opcode)?)?;
            (run_packed, Semantics::Packed { f, float: true, short: false })
        }
        Opcode::V_PK_ADD_I16 => half(|e, s| saturate(e, i32::from(ih(s[0])) + i32::from(ih(s[1]))), false),
        Opcode::V_PK_SUB_I16 => half(|e, s| saturate(e, i32::from(ih(s[0])) - i32::from(ih(s[1]))), false),
        Opcode::V_PK_MAD_I16 => {
            half(|e, s| saturate(e, i32::from(ih(s[0])) * i32::from(ih(s[1])) + i32::from(ih(s[2]))), false)
        }
        Opcode::V_PK_ADD_U16 => half(|e, s| saturate_unsigned(e, i64::from(h(s[0])) + i64::from(h(s[1]))), false),
        Opcode::V_PK_SUB_U16 => half(|e, s| saturate_unsigned(e, i64::from(h(s[0])) - i64::from(h(s[1]))), false),
        Opcode::V_PK_MAD_U16 => {
            half(|e, s| saturate_unsigned(e, i64::from(h(s[0])) * i64::from(h(s[1])) + i64::from(h(s[2]))), false)
        }
        Opcode::V_PK_MUL_LO_U16 => half(|_, s| u64::from(h(s[0]).wrapping_mul(h(s[1]))), false),
        Opcode::V_PK_LSHLREV_B16 => half(|_, s| u64::from(h(s[1]) << (s[0] & 15)), false),
        Opcode::V_PK_LSHRREV_B16 => half(|_, s| u64::from(h(s[1]) >> (s[0] & 15)), false),
        Opcode::V_PK_ASHRREV_I16 => half(|_, s| u64::from((ih(s[1]) >> (s[0] & 15)) as u16), false),
        Opcode::V_PK_MAX_I16 => half(|_, s| u64::from(ih(s[0]).max(ih(s[1])) as u16), false),
        Opcode::V_PK_MIN_I16 => half(|_, s| u64::from(ih(s[0]).min(ih(s[1])) as u16), false),
        Opcode::V_PK_MAX_U16 => half(|_, s| s[0].max(s[1]), false),
        Opcode::V_PK_MIN_U16 => half(|_, s| s[0].min(s[1]), false),
        Opcode::V_PK_ADD_MAX_I16 => {
            half(|_, s| u64::from(ih(s[0]).saturating_add(ih(s[1])).max(ih(s[2])) as u16), false)
        }
        Opcode::V_PK_ADD_MIN_I16 => {
            half(|_, s| u64::from(ih(s[0]).saturating_add(ih(s[1])).min(ih(s[2])) as u16), false)
        }
        Opcode::V_PK_ADD_MAX_U16 => half(|_, s| u64::from(h(s[0]).saturating_add(h(s[1])).max(h(s[2]))), false),
        Opcode::V_PK_ADD_MIN_U16 => half(|_, s| u64::from(h(s[0]).saturating_add(h(s[1])).min(h(s[2]))), false),
        Opcode::V_PK_MAX3_I16 => half(|_, s| u64::from(ih(s[0]).max(ih(s[1])).max(ih(s[2])) as u16), false),
        Opcode::V_PK_MIN3_I16 => half(|_, s| u64::from(ih(s[0]).min(ih(s[1])).min(ih(s[2])) as u16), false),
        Opcode::V_PK_MAX3_U16 => half(|_, s| s[0].max(s[1]).max(s[2]), false),
        Opcode::V_PK_MIN3_U16 => half(|_, s| s[0].min(s[1]).min(s[2]), false),
        Opcode::V_PK_ADD_F32 => {
            (run_packed32, Semantics::Packed32 { f: operation(|e, s| float_ops::add32(e, s[0], s[1])) })
        }
        Opcode::V_PK_MUL_F32 => {
            (run_packed32, Semantics::Packed32 { f: operation(|e, s| float_ops::mul32(e, s[0], s[1])) })
        }
        Opcode::V_PK_FMA_F32 => {
            (run_packed32, Semantics::Packed32 { f: operation(|e, s| float_ops::fma32(e, s[0], s[1], s[2])) })
        }
        Opcode::V_PK_MOV_B32 => (pack_move, Semantics::Own),
        Opcode::V_MAD_MIX_F32 => (|core, op| mixed(core, op, Mixed::Single, false, Short::Half), Semantics::Own),
        Opcode::V_MAD_MIXLO_F16 => (|core, op| mixed(core, op, Mixed::Low, false, Short::Half), Semantics::Own),
        Opcode::V_MAD_MIXHI_F16 => (|core, op| mixed(core, op, Mixed::High, false, Short::Half), Semantics::Own),
        Opcode::V_FMA_MIX_F32 => (|core, op| mixed(core, op, Mixed::Single, true, Short::Half), Semantics::Own),
        Opcode::V_FMA_MIXLO_F16 => (|core, op| mixed(core, op, Mixed::Low, true, Short::Half), Semantics::Own),
        Opcode::V_FMA_MIXHI_F16 => (|core, op| mixed(core, op, Mixed::High, true, Short::Half), Semantics::Own),
        Opcode::V_FMA_MIX_F32_BF16 => (|core, op| mixed(core, op, Mixed::Single, true, Short::Brain), Semantics::Own),
        Opcode::V_FMA_MIXLO_BF16 => (|core, op| mixed(core, op, Mixed::Low, true, Short::Brain), Semantics::Own),
        Opcode::V_FMA_MIXHI_BF16 => (|core, op| mixed(core, op, Mixed::High, true, Short::Brain), Semantics::Own),
        _ => return None,
    })
}
