//! Instructions that move values between lanes, scalars and the AGPRs, and the few with odd operands.

use wavetap_amdgpu::{Opcode, Operand, Reg, RegFile, Role, Target, Value};

use super::int_ops::lane;
use super::{convert, float_ops, lanes_of, moved, run_uniform};
use crate::exec::vector;
use crate::fault::stop::{ExecResult, undefined};
use crate::lanes::{active, operation};
use crate::op::semantics::{High, Semantics, Source, Ty};
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};

fn vector_source(op: &Op) -> Option<Reg> {
    op.inst.operand(Role::Src0).and_then(Operand::reg).filter(|reg| reg.file != RegFile::Scalar)
}

/// The lane a scalar or constant selects.
fn lane_select(core: &mut Core, op: &Op) -> ExecResult<usize> {
    let select = match op.source(Role::Src1, Ty::B32) {
        Source::Scalar(code) => {
            if core.launch.strict && code < 128 {
                core.passed(core.wave.hazards.check_lane_select(code))?;
            }
            core.scalar(op, code)?
        }
        Source::Const(bits) => bits as u32,
        _ => return undefined("a lane select that is neither scalar nor constant"),
    };
    Ok(select as usize & (core.launch.lanes - 1))
}

fn write_scalar(core: &mut Core, op: &Op, value: u32) -> ExecResult {
    match op.dst {
        Some(Reg { file: RegFile::Scalar, first, .. }) => core.set_scalar(op, first, value),
        _ => undefined("a lane read without scalar destination"),
    }
}

fn read_lane(core: &mut Core, op: &Op, at: usize) -> ExecResult {
    if core.launch.strict {
        core.passed(core.wave.hazards.check_lane_access(core.launch, vector_source(op).map(|reg| reg.first)))?;
    }
    let values = lanes_of(core, op, 0, Ty::B32)?;
    write_scalar(core, op, values[at] as u32)
}

fn readlane(core: &mut Core, op: &Op) -> ExecResult {
    let at = lane_select(core, op)?;
    read_lane(core, op, at)
}

fn readfirstlane(core: &mut Core, op: &Op) -> ExecResult {
    let exec = core.wave.exec();
    // With no lane active, lane 0 is read.
    read_lane(core, op, if exec == 0 { 0 } else { exec.trailing_zeros() as usize })
}

fn writelane(core: &mut Core, op: &Op) -> ExecResult {
    if core.launch.strict {
        core.passed(core.wave.hazards.check_lane_access(core.launch, None))?;
    }
    let at = lane_select(core, op)?;
    let value = match op.source(Role::Src0, Ty::B32) {
        Source::Scalar(code) => core.scalar(op, code)?,
        Source::Const(bits) => bits as u32,
        _ => return undefined("v_writelane of a vector register"),
    };
    let Some(Reg { file: RegFile::Vector, first, .. }) = op.dst else {
        return undefined("v_writelane without destination");
    };
    core.writing(op, RegFile::Vector, first, 1)?;
    core.wave.vgpr[usize::from(first)][at] = value;
    Ok(())
}

fn swap(core: &mut Core, op: &Op) -> ExecResult {
    let (Some(a), Some(b)) = (op.dst, vector_source(op)) else { return undefined("v_swap without registers") };
    for reg in [a, b] {
        core.reading(op, RegFile::Vector, reg.first, 1)?;
        core.writing(op, RegFile::Vector, reg.first, 1)?;
    }
    let (a, b) = (usize::from(a.first), usize::from(b.first));
    for lane in active(core.wave.exec()) {
        let (x, y) = (core.wave.vgpr[a][lane], core.wave.vgpr[b][lane]);
        core.wave.vgpr[a][lane] = y;
        core.wave.vgpr[b][lane] = x;
    }
    Ok(())
}

/// Counts the bits of a mask below the lane's own, in one half of the wave.
fn mask_count(core: &mut Core, op: &Op, high: bool) -> ExecResult {
    let mask = lanes_of(core, op, 0, Ty::B32)?;
    let base = lanes_of(core, op, 1, Ty::B32)?;
    let values = std::array::from_fn(|lane| {
        let below = (1_u64 << lane) - 1;
        let below = if high { below >> 32 } else { below & 0xffff_ffff };
        u64::from((base[lane] as u32).wrapping_add((mask[lane] & below).count_ones()))
    });
    let Some(dst) = op.dst else { return undefined("v_mbcnt without destination") };
    core.set_lanes(op, dst.first, false, &values, core.wave.exec())
}

/// Four masked sums of absolute differences with 32-bit accumulation: a 128-bit result.
fn mqsad_u32(core: &mut Core, op: &Op) -> ExecResult {
    let a = lanes_of(core, op, 0, Ty::B64)?;
    let b = lanes_of(core, op, 1, Ty::B32)?;
    let Some(Value::Reg(c)) = op.inst.operand(Role::Src2).map(|operand| operand.value) else {
        return undefined("v_mqsad_u32_u8 without accumulator");
    };
    let Some(dst) = op.dst else { return undefined("v_mqsad_u32_u8 without destination") };
    core.reading(op, c.file, c.first, 4)?;
    core.writing(op, RegFile::Vector, dst.first, 4)?;
    for lane in active(core.wave.exec()) {
        for n in 0..4_u16 {
            let old = core.file(c.file)[usize::from(c.first + n)][lane];
            let sum = (0..4)
                .filter(|k| b[lane] >> (8 * k) & 0xff != 0)
                .map(|k| u32::from((((a[lane] >> (8 * n)) >> (8 * k)) as u8).abs_diff((b[lane] >> (8 * k)) as u8)))
                .sum::<u32>();
            core.wave.vgpr[usize::from(dst.first + n)][lane] = old.wrapping_add(sum);
        }
    }
    Ok(())
}

/// Converts with stochastic rounding into one byte of the destination.
fn stochastic(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Lane { f, .. } = op.semantics else { return undefined("conversion") };
    let mut a = lanes_of(core, op, 0, Ty::F32)?;
    let mask = moved(core, op, &mut a)?;
    for value in &mut a {
        *value &= !(u64::from(op.inst.modifiers.abs & 1) << 31);
        *value ^= u64::from(op.inst.modifiers.neg & 1) << 31;
    }
    let b = lanes_of(core, op, 1, Ty::B32)?;
    let Some(dst) = op.dst else { return undefined("conversion without destination") };
    // The byte has a field of its own from gfx12 on.
    let shift = 8 * u32::from(op.inst.modifiers.op_sel >> 2 & 3 | op.inst.modifiers.byte_sel);
    let env = vector::environment(core, op);
    core.writing(op, RegFile::Vector, dst.first, 1)?;
    for lane in active(mask) {
        let byte = f.lane(&env, &[a[lane], b[lane], 0, 0]) as u32;
        let cell = &mut core.wave.vgpr[usize::from(dst.first)][lane];
        *cell = *cell & !(0xff << shift) | byte << shift;
    }
    Ok(())
}

/// Runs `v_div_fmas`: in strict mode VCC must have been written long enough before.
pub(super) fn div_fmas(core: &mut Core, op: &Op) -> ExecResult {
    if core.launch.strict {
        core.passed(core.wave.hazards.check_div_fmas())?;
    }
    vector::run_lane(core, op)
}

/// What a transcendental operation on scalars computes, as that of vectors.
fn on_scalars(opcode: Opcode) -> Option<Opcode> {
    Some(match opcode {
        Opcode::V_S_EXP_F16 => Opcode::V_EXP_F16,
        Opcode::V_S_EXP_F32 => Opcode::V_EXP_F32,
        Opcode::V_S_LOG_F16 => Opcode::V_LOG_F16,
        Opcode::V_S_LOG_F32 => Opcode::V_LOG_F32,
        Opcode::V_S_RCP_F16 => Opcode::V_RCP_F16,
        Opcode::V_S_RCP_F32 => Opcode::V_RCP_F32,
        Opcode::V_S_RSQ_F16 => Opcode::V_RSQ_F16,
        Opcode::V_S_RSQ_F32 => Opcode::V_RSQ_F32,
        Opcode::V_S_SQRT_F16 => Opcode::V_SQRT_F16,
        Opcode::V_S_SQRT_F32 => Opcode::V_SQRT_F32,
        _ => return None,
    })
}

/// The meaning of an instruction of this kind.
pub(crate) fn meaning(target: Target, opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::V_READLANE_B32 => (readlane, Semantics::Own),
        Opcode::V_READFIRSTLANE_B32 => (readfirstlane, Semantics::Own),
        Opcode::V_WRITELANE_B32 => (writelane, Semantics::Own),
        Opcode::V_SWAP_B32 => (swap, Semantics::Own),
        Opcode::V_MBCNT_LO_U32_B32 => (|core, op| mask_count(core, op, false), Semantics::Own),
        Opcode::V_MBCNT_HI_U32_B32 => (|core, op| mask_count(core, op, true), Semantics::Own),
        Opcode::V_MQSAD_U32_U8 => (mqsad_u32, Semantics::Own),
        Opcode::V_CVT_SR_FP8_F32 | Opcode::V_CVT_SR_BF8_F32 => {
            let none = [Ty::None; 4];
            (
                stochastic,
                Semantics::Lane {
                    f: operation(convert::stochastic(target, opcode)?),
                    dst: Ty::B32,
                    src: none,
                    high: High::Keep,
                },
            )
        }
        Opcode::V_ACCVGPR_READ_B32 | Opcode::V_ACCVGPR_WRITE_B32 => {
            lane(|_, s| s[0], Ty::B32, [Ty::B32, Ty::None, Ty::None, Ty::None], High::Zero)
        }
        // The transcendental ones on scalars.
        _ if on_scalars(opcode).is_some() => {
            let (_, semantics) = float_ops::meaning(on_scalars(opcode)?)?;
            (run_uniform, semantics)
        }
        Opcode::V_DIV_FMAS_F32 | Opcode::V_DIV_FMAS_F64 => {
            let (_, semantics) = float_ops::meaning(opcode)?;
            (div_fmas, semantics)
        }
        _ => return None,
    })
}
