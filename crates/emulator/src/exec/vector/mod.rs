//! The slow path of vector ALU instructions: gather sources lane by lane (DPP, SDWA, modifiers), compute, scatter
//! results.

pub(crate) mod bf16;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod dot;
pub(crate) mod fast;
pub(crate) mod float_ops;
pub(crate) mod int_ops;
pub(crate) mod lane_access;
pub(crate) mod minmax;
pub(crate) mod movement;
pub(crate) mod packed;
pub(crate) mod scaled;
pub(crate) mod scaled_pack;
mod simple;

use wavetap_amdgpu::{Dpp, Half, Modifiers, Reg, RegFile, Role, Sdwa, scalar};

use crate::fault::stop::{ExecResult, undefined};
use crate::float::{self, Env};
use crate::lanes::{LANES, Lanes, active};
use crate::op::semantics::{High, Semantics, Ty};
use crate::state::core::Core;
use crate::state::op::Op;

/// Moves the first source between lanes as DPP says; returns the lanes whose destination may be written.
pub(crate) fn moved(core: &Core, op: &Op, values: &mut Lanes) -> ExecResult<u64> {
    let (modifiers, exec) = (&op.inst.modifiers, core.wave.exec());
    if let Some(dpp) = modifiers.dpp {
        return permute(values, &dpp, exec);
    }
    if let Some(select) = modifiers.dpp8 {
        permute_eight(values, select, modifiers.dpp8_fi == FETCH_INACTIVE, exec);
    }
    Ok(exec)
}

/// Fills in the sources of every lane; returns the lanes whose destination may be written.
fn gather(core: &mut Core, op: &Op, types: &[Ty; 4], sources: &mut [Lanes; 4]) -> ExecResult<u64> {
    let modifiers = &op.inst.modifiers;
    let mut mask = core.wave.exec();
    for (at, &ty) in types.iter().enumerate() {
        if ty == Ty::None {
            continue;
        }
        sources[at] = core.lanes(op, op.src[at], ty, at as u8)?;
        if at == 0 {
            mask = moved(core, op, &mut sources[0])?;
        }
        if let Some(half) = op.halves[at] {
            if half == Half::High {
                sources[at].iter_mut().for_each(|value| *value >>= 16);
            }
        } else if let Some(sdwa) = modifiers.sdwa {
            select(&mut sources[at], &sdwa, at);
        } else if modifiers.op_sel >> at & 1 != 0 && matches!(ty, Ty::B16 | Ty::F16) {
            sources[at].iter_mut().for_each(|value| *value >>= 16);
        }
        modify(&mut sources[at], ty, modifiers, at, &core.wave.env);
    }
    Ok(mask)
}

/// Narrow types, absolute value, negation, denormal inputs.
fn modify(values: &mut Lanes, ty: Ty, modifiers: &Modifiers, at: usize, env: &Env) {
    let (absolute, negate) = (modifiers.abs >> at & 1 != 0, modifiers.neg >> at & 1 != 0);
    let sign: u64 = match ty {
        Ty::B16 | Ty::F16 => {
            values.iter_mut().for_each(|value| *value &= 0xffff);
            1 << 15
        }
        Ty::B32 | Ty::F32 => 1 << 31,
        Ty::B64 | Ty::F64 => 1 << 63,
        Ty::None | Ty::Mask => return,
    };
    if absolute {
        values.iter_mut().for_each(|value| *value &= !sign);
    }
    if negate {
        values.iter_mut().for_each(|value| *value ^= sign);
    }
    match ty {
        Ty::F32 if env.flush_in32 => {
            values.iter_mut().for_each(|value| *value = u64::from(float::flush32(*value as u32)))
        }
        Ty::F64 if env.flush_in64 => values.iter_mut().for_each(|value| *value = float::flush64(*value)),
        Ty::F16 if env.flush_in64 => {
            values.iter_mut().for_each(|value| *value = u64::from(float::flush16(*value as u16)))
        }
        _ => {}
    }
}

/// SDWA source selection: 0-3 bytes, 4-5 words, 6 everything.
fn select(values: &mut Lanes, sdwa: &Sdwa, at: usize) {
    let (select, extend) = match at {
        0 => (sdwa.src0_sel, sdwa.src0_sext),
        1 => (sdwa.src1_sel, sdwa.src1_sext),
        _ => return,
    };
    for value in values {
        let bits = *value as u32;
        *value = u64::from(match select {
            0..=3 => {
                let byte = (bits >> (8 * u32::from(select))) as u8;
                if extend { byte as i8 as u32 } else { u32::from(byte) }
            }
            4 | 5 => {
                let word = (bits >> (16 * (u32::from(select) - 4))) as u16;
                if extend { word as i16 as u32 } else { u32::from(word) }
            }
            _ => bits,
        });
    }
}

/// DPP: moves the first source between lanes; returns the lanes that are written.
fn permute(values: &mut Lanes, dpp: &Dpp, exec: u64) -> ExecResult<u64> {
    let original = *values;
    let ctrl = dpp.ctrl;
    let shift = i32::from(ctrl & 0xf);
    let mut mask = 0;
    for (lane, value) in values.iter_mut().enumerate() {
        let n = lane as i32;
        let row = n & !15;
        let within = n & 15;
        let from = match ctrl {
            0x000..=0x0ff => Some((n & !3) + i32::from(ctrl >> (2 * (n & 3)) & 3)),
            0x101..=0x10f => Some(n + shift).filter(|_| within + shift < 16),
            0x111..=0x11f => Some(n - shift).filter(|_| within >= shift),
            0x121..=0x12f => Some(row + ((within + 16 - shift) & 15)),
            0x130 => Some(n + 1).filter(|_| n < 63),
            0x134 => Some((n + 1) & 63),
            0x138 => Some(n - 1).filter(|_| n > 0),
            0x13c => Some((n + 63) & 63),
            0x140 => Some(row + 15 - within),
            0x141 => Some((n & !7) + 7 - (n & 7)),
            0x142 => Some((n & 0x30) - 1).filter(|_| n > 15),
            0x143 => Some((n & 0x20) - 1).filter(|_| n > 31),
            0x150..=0x15f => Some(row + shift),
            0x160..=0x16f => Some(row + (within ^ shift)),
            _ => return undefined(format!("dpp_ctrl {ctrl:#x}")),
        };
        let from = from.filter(|&from| dpp.fetch_inactive || exec >> from & 1 != 0);
        let enabled = dpp.row_mask >> (lane >> 4) & 1 != 0 && dpp.bank_mask >> (lane >> 2 & 3) & 1 != 0;
        // The broadcasts leave the first row(s) as they are whatever bound_ctrl says.
        match from {
            Some(from) => *value = original[from as usize],
            None => *value = 0,
        }
        if enabled && (from.is_some() || dpp.bound_ctrl) {
            mask |= 1 << lane;
        }
    }
    Ok(mask & exec)
}

/// The low bits of a DPP8 source code that say that inactive lanes are read, too.
const FETCH_INACTIVE: u8 = 2;

/// DPP8: any lane of eight from any other; 0 from inactive ones.
fn permute_eight(values: &mut Lanes, select: u32, fetch_inactive: bool, exec: u64) {
    let original = *values;
    for (lane, value) in values.iter_mut().enumerate() {
        let from = lane & !7 | (select >> (3 * (lane & 7)) & 7) as usize;
        *value = if fetch_inactive || exec >> from & 1 != 0 { original[from] } else { 0 };
    }
}

/// Output modifiers and denormal outputs of a float result.
pub(crate) fn finish(ty: Ty, env: &Env, modifiers: &Modifiers, bits: u64) -> u64 {
    match ty {
        Ty::F32 => {
            let flush = |bits: u32| if env.flush_out32 { float::flush32(bits) } else { bits };
            let bits = flush(bits as u32);
            match modified(env, modifiers, env.flush_out32, || f64::from(f32::from_bits(bits))) {
                Some(value) => u64::from(flush(float::to_f32(value, env.round32).to_bits())),
                None => u64::from(bits),
            }
        }
        Ty::F64 => {
            let flush = |bits: u64| if env.flush_out64 { float::flush64(bits) } else { bits };
            let bits = flush(bits);
            modified(env, modifiers, env.flush_out64, || f64::from_bits(bits))
                .map_or(bits, |value| flush(value.to_bits()))
        }
        Ty::F16 => {
            let flush = |bits: u16| if env.flush_out64 { float::flush16(bits) } else { bits };
            let bits = flush(bits as u16);
            match modified(env, modifiers, env.flush_out64, || float::from_f16(bits)) {
                Some(value) => u64::from(flush(float::to_f16(value, env.round64))),
                None => u64::from(bits),
            }
        }
        _ => bits,
    }
}

/// A result with output modifier and clamp, if the instruction has them. The modifier is ignored where denormal results
/// are kept and in IEEE mode (AMD ISA guides, output modifiers).
fn modified(env: &Env, modifiers: &Modifiers, flushes: bool, value: impl Fn() -> f64) -> Option<f64> {
    let scales = modifiers.omod != 0 && flushes && !env.ieee;
    if !scales && !env.clamp {
        return None;
    }
    let mut value = value();
    if scales {
        // Negative zero becomes zero.
        value = value * scale(modifiers.omod) + 0.0;
    }
    Some(if env.clamp { clamped(env, value) } else { value })
}

/// A result between 0 and 1; NaN as MODE says.
pub(crate) fn clamped(env: &Env, value: f64) -> f64 {
    if value.is_nan() && env.dx10_clamp { 0.0 } else { clamp(value) }
}

fn scale(omod: u8) -> f64 {
    match omod {
        1 => 2.0,
        2 => 4.0,
        _ => 0.5,
    }
}

fn clamp(value: f64) -> f64 {
    // Negative zero becomes zero.
    if value.is_nan() {
        value
    } else if value > 0.0 {
        value.min(1.0)
    } else {
        0.0
    }
}

/// Writes results of a type, through SDWA or `op_sel` if the instruction has them.
pub(crate) fn scatter(core: &mut Core, op: &Op, ty: Ty, high: High, values: &mut Lanes, mask: u64) -> ExecResult {
    let Some(Reg { file, first, .. }) = op.dst else { return undefined("no destination") };
    let modifiers = &op.inst.modifiers;
    if file == RegFile::Scalar {
        return undefined("scalar destination of a lane result");
    }
    let narrow = matches!(ty, Ty::B16 | Ty::F16);
    // Those that keep it on gfx9 clear it on gfx8 (GCNSubtarget::zeroesHigh16BitsOfDest).
    let target = core.launch.target;
    let keeps = (high == High::Keep && target.generation() > 8) || target.keeps_high_half();
    // Two dwords have no part of a register to go to.
    if file == RegFile::Vector && ty.dwords() == 1 && (modifiers.sdwa.is_some() || narrow) {
        let at = usize::from(core.indexed(first, 3));
        let old = core.wave.vgpr.get(at).map_or([0; LANES], |register| register.0);
        for lane in active(mask) {
            let (old, new) = (old[lane], values[lane] as u32);
            let upper = match op.dst_half {
                Half::Whole => modifiers.op_sel & 8 != 0,
                half => half == Half::High,
            };
            values[lane] = u64::from(match modifiers.sdwa {
                Some(sdwa) => insert(old, new, &sdwa),
                None if upper => old & 0xffff | new << 16,
                None if keeps => old & 0xffff_0000 | new & 0xffff,
                None => new & 0xffff,
            });
        }
    }
    let wide = ty.dwords() == 2;
    if file == RegFile::Accum {
        core.writing(op, RegFile::Accum, first, u16::from(ty.dwords()))?;
        for lane in active(mask) {
            core.wave.agpr[usize::from(first)][lane] = values[lane] as u32;
            if wide {
                core.wave.agpr[usize::from(first) + 1][lane] = (values[lane] >> 32) as u32;
            }
        }
        return Ok(());
    }
    core.set_lanes(op, first, wide, values, mask)
}

/// SDWA destination selection.
fn insert(old: u32, new: u32, sdwa: &Sdwa) -> u32 {
    let (shift, width) = match sdwa.dst_sel {
        sel @ 0..=3 => (8 * u32::from(sel), 8),
        sel @ 4..=5 => (16 * (u32::from(sel) - 4), 16),
        _ => return new,
    };
    let field = ((1_u32 << width) - 1) << shift;
    let placed = (new << shift) & field;
    match sdwa.dst_unused {
        2 => old & !field | placed,
        1 => {
            // Bits above get the sign, bits below zero.
            let negative = new >> (width - 1) & 1 != 0;
            let above = !(field | ((1_u64 << shift) - 1) as u32);
            placed | if negative { above } else { 0 }
        }
        _ => placed,
    }
}

pub(crate) fn environment(core: &Core, op: &Op) -> Env {
    let modifiers = &op.inst.modifiers;
    Env { clamp: modifiers.clamp, table: modifiers.bitop3, part: modifiers.byte_sel, ..core.wave.env }
}

/// Runs [`Semantics::Lane`].
pub(crate) fn run_lane(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Lane { f, dst, src, high } = op.semantics else { return undefined("meaning") };
    let mut s = [[0; LANES]; 4];
    let mask = gather(core, op, &src, &mut s)?;
    let env = environment(core, op);
    let modifiers = &op.inst.modifiers;
    let mut values = [0; LANES];
    for lane in active(mask) {
        values[lane] = finish(dst, &env, modifiers, f.lane(&env, &[s[0][lane], s[1][lane], s[2][lane], s[3][lane]]));
    }
    scatter(core, op, dst, high, &mut values, mask)
}

/// Runs [`Semantics::Lane`] with scalar sources and a scalar destination, whatever lanes are active.
pub(crate) fn run_uniform(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Lane { f, dst, src, .. } = op.semantics else { return undefined("meaning") };
    let Some(Reg { file: RegFile::Scalar, first, .. }) = op.dst else { return undefined("no scalar destination") };
    let mut s = [[0; LANES]; 4];
    gather(core, op, &src, &mut s)?;
    let env = environment(core, op);
    let value = finish(dst, &env, &op.inst.modifiers, f.lane(&env, &[s[0][0], s[1][0], s[2][0], s[3][0]]));
    core.set_scalar(op, first, value as u32)
}

/// Runs [`Semantics::LaneBit`]: the bit of inactive lanes is zero.
pub(crate) fn run_lane_bit(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::LaneBit { f, dst, src } = op.semantics else { return undefined("meaning") };
    let mut s = [[0; LANES]; 4];
    let mask = gather(core, op, &src, &mut s)?;
    let env = environment(core, op);
    let mut values = [0; LANES];
    let mut bits = 0_u64;
    for lane in active(mask) {
        let (value, bit) = f.lane(&env, &[s[0][lane], s[1][lane], s[2][lane], s[3][lane]]);
        values[lane] = finish(dst, &env, &op.inst.modifiers, value);
        bits |= u64::from(bit) << lane;
    }
    scatter(core, op, dst, High::Zero, &mut values, mask)?;
    core.set_mask(op, op.sdst, bits)
}

/// Runs [`Semantics::Test`].
pub(crate) fn run_test(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Test { f, src, exec } = op.semantics else { return undefined("meaning") };
    let mut s = [[0; LANES]; 4];
    let mask = gather(core, op, &[src[0], src[1], Ty::None, Ty::None], &mut s)?;
    let env = environment(core, op);
    let mut bits = 0_u64;
    for lane in active(mask) {
        bits |= u64::from(f.lane(&env, s[0][lane], s[1][lane])) << lane;
    }
    set_test(core, op, bits, exec)
}

/// Writes the result of a comparison; `exec` says that it is one that also writes EXEC.
pub(crate) fn set_test(core: &mut Core, op: &Op, bits: u64, exec: bool) -> ExecResult {
    // The first written operand or VCC; from gfx10 on those that write EXEC write nothing else.
    let dst = match op.dst {
        Some(Reg { file: RegFile::Scalar, first, .. }) if first != scalar::EXEC => first,
        _ => op.sdst,
    };
    if !exec || core.launch.target.generation() < 10 {
        core.set_mask(op, dst, bits)?;
    }
    if exec {
        core.set_mask(op, scalar::EXEC, bits)?;
    }
    Ok(())
}

/// A source of a handler that is not a shared one: `at` is its position.
pub(crate) fn lanes_of(core: &mut Core, op: &Op, at: usize, ty: Ty) -> ExecResult<Lanes> {
    let role = [Role::Src0, Role::Src1, Role::Src2][at];
    let from = if op.inst.operand(role).is_some() { op.source(role, ty) } else { op.src[at] };
    core.lanes(op, from, ty, at as u8)
}
