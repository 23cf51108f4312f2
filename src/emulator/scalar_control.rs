//! Scalar instructions that are not arithmetic: branches, waits, hardware registers, register indexing, time.

use crate::isa::{Role, Value, scalar};

use super::core::{Core, GPR_IDX_EN, Status, Step, stop, undefined};
use super::fault::FaultKind;
use super::op::{Meaning, Op, Semantics};
use super::scalar::{operand32, operand64, result};

fn jump(core: &mut Core, op: &Op) {
    core.wave.pc = op.target;
    core.wave.jumped = true;
}

macro_rules! branch_if {
    ($condition:expr) => {
        (
            |core: &mut Core, op: &Op| -> Step {
                const C: fn(&Core) -> bool = $condition;
                if C(core) {
                    jump(core, op);
                }
                Ok(())
            },
            Semantics::Own,
        )
    };
}

/// What `s_getreg` and `s_setreg` address: id, offset, size.
fn hardware_register(op: &Op) -> (usize, u32, u32) {
    let bits = match op.inst.operand(Role::Hwreg).map(|operand| operand.value) {
        Some(Value::Imm(bits)) => bits as u32,
        _ => op.any_imm() as u32,
    };
    ((bits & 0x3f) as usize, bits >> 6 & 0x1f, (bits >> 11 & 0x1f) + 1)
}

/// Hardware register ids (AMDGPU assembler, `hwreg`).
mod hwreg {
    pub(super) const MODE: usize = 1;
    pub(super) const STATUS: usize = 2;
    pub(super) const TRAPSTS: usize = 3;
    pub(super) const HW_ID: usize = 4;
    pub(super) const GPR_ALLOC: usize = 5;
    pub(super) const LDS_ALLOC: usize = 6;
    pub(super) const IB_STS: usize = 7;
    pub(super) const SH_MEM_BASES: usize = 15;
    pub(super) const XCC_ID: usize = 20;
    /// From gfx10 to gfx11.
    pub(super) const FLAT_SCR_LO: usize = 20;
    pub(super) const FLAT_SCR_HI: usize = 21;
}

fn get_register(core: &mut Core, op: &Op) -> Step {
    let (id, offset, size) = hardware_register(op);
    if core.launch.strict {
        core.wave.hazards.check_setreg(id)?;
    }
    let wave = &core.wave;
    let value = match id {
        hwreg::MODE => wave.mode,
        hwreg::STATUS => u32::from(wave.scc) | u32::from(wave.exec() == 0) << 9 | u32::from(wave.mask(scalar::VCC) == 0) << 10 | 1 << 16,
        hwreg::TRAPSTS => wave.trapsts,
        // Wave, SIMD and compute unit as if workgroups were dealt out in turn.
        hwreg::HW_ID => wave.index & 0xf | (wave.index & 3) << 4 | ((wave.group as u32) & 0xf) << 8,
        hwreg::GPR_ALLOC => (wave.vgpr.len() as u32 / 4) << 8,
        hwreg::LDS_ALLOC => core.launch.lds_size.div_ceil(512) << 12,
        hwreg::FLAT_SCR_LO if core.launch.flat_scratch_hidden => wave.flat_scratch as u32,
        hwreg::FLAT_SCR_HI if core.launch.flat_scratch_hidden => (wave.flat_scratch >> 32) as u32,
        hwreg::IB_STS | hwreg::XCC_ID => 0,
        // Bits 63:48 of the private and shared apertures.
        hwreg::SH_MEM_BASES => super::core::PRIVATE_APERTURE >> 16 | super::core::SHARED_APERTURE >> 16 << 16,
        id => return undefined(format!("s_getreg of hardware register {id}")),
    };
    let field = (u64::from(value) >> offset) & ((1_u64 << size) - 1);
    core.set_scalar(op, result(op)?, field as u32)
}

fn set_register(core: &mut Core, op: &Op, value: u32) -> Step {
    let (id, offset, size) = hardware_register(op);
    if core.launch.strict {
        core.wave.hazards.check_setreg(id)?;
        core.wave.hazards.note_setreg(id);
    }
    let mask = (((1_u64 << size) - 1) << offset) as u32;
    let merge = |old: u32| old & !mask | (value << offset) & mask;
    match id {
        hwreg::MODE => {
            let mode = merge(core.wave.mode);
            core.wave.set_mode(mode);
        }
        hwreg::TRAPSTS => core.wave.trapsts = merge(core.wave.trapsts),
        hwreg::FLAT_SCR_LO if core.launch.flat_scratch_hidden => {
            let low = merge(core.wave.flat_scratch as u32);
            core.wave.flat_scratch = core.wave.flat_scratch >> 32 << 32 | u64::from(low);
        }
        hwreg::FLAT_SCR_HI if core.launch.flat_scratch_hidden => {
            let high = merge((core.wave.flat_scratch >> 32) as u32);
            core.wave.flat_scratch = core.wave.flat_scratch & 0xffff_ffff | u64::from(high) << 32;
        }
        id => return undefined(format!("s_setreg of hardware register {id}")),
    }
    Ok(())
}

fn wait(core: &mut Core, op: &Op) -> Step {
    if core.launch.strict {
        for (counter, allowed) in op.waits.iter() {
            core.wait_for(counter, u32::from(allowed))?;
        }
    }
    Ok(())
}

/// The wave has come to the barrier; it need not wait there yet. Only the workgroup's own barrier is known.
fn signal_barrier(core: &mut Core, op: &Op) -> Step {
    whole_workgroup(op)?;
    core.wave.signalled = core.barrier.phase;
    core.barrier.arrived += 1;
    core.barrier.settle();
    Ok(())
}

/// Waits until all waves have come to the barrier since this one signalled.
fn wait_at_barrier(core: &mut Core, op: &Op) -> Step {
    whole_workgroup(op)?;
    if core.barrier.phase == core.wave.signalled {
        core.wave.status = Status::AtSplitBarrier;
    }
    Ok(())
}

fn whole_workgroup(op: &Op) -> Step {
    match op.inst.operands.first().map(|operand| operand.value) {
        Some(Value::InlineInt(-1) | Value::Imm(-1 | 0xffff)) => Ok(()),
        _ => undefined("a barrier that is not the workgroup's"),
    }
}

fn call(core: &mut Core, op: &Op, target: u64) -> Step {
    core.set_scalar64(op, result(op)?, op.next)?;
    core.wave.pc = target;
    Ok(())
}

fn end(core: &mut Core, _: &Op) -> Step {
    core.wave.status = Status::Ended;
    Ok(())
}

fn nothing(_: &mut Core, _: &Op) -> Step {
    Ok(())
}

fn message(core: &mut Core, _: &Op) -> Step {
    if core.launch.strict { core.wave.hazards.check_m0() } else { Ok(()) }
}

/// The immediate that `s_set_gpr_idx_on` has instead of its second source: its raw field.
fn raw_source1(op: &Op) -> u32 {
    match op.inst.operands.last().map(|operand| operand.value) {
        Some(Value::Imm(value)) => value as u32,
        Some(Value::InlineInt(value)) => value as u32 & 0xf,
        _ => 0,
    }
}

fn move_relative(core: &mut Core, op: &Op, wide: bool, destination: bool) -> Step {
    if core.launch.strict {
        core.wave.hazards.check_m0()?;
    }
    let m0 = core.scalar(op, scalar::M0)? as u16;
    let base = |role: Role| Op::scalar_of(&op.inst, role);
    let dst = result(op)?;
    if destination {
        let to = dst.saturating_add(m0);
        if wide {
            let value = operand64(core, op, Role::Src0)?;
            core.set_scalar64(op, to, value)
        } else {
            let value = operand32(core, op, Role::Src0)?;
            core.set_scalar(op, to, value)
        }
    } else {
        let Some(from) = base(Role::Src0) else { return undefined("s_movrels without a register") };
        let from = from.saturating_add(m0);
        if wide {
            let value = core.scalar64(op, from)?;
            core.set_scalar64(op, dst, value)
        } else {
            let value = core.scalar(op, from)?;
            core.set_scalar(op, dst, value)
        }
    }
}

fn branch_vcc(core: &mut Core, op: &Op, zero: bool) -> Step {
    if core.launch.strict {
        core.wave.hazards.check_vccz()?;
        let dwords = core.launch.lanes as u16 / 32;
        core.reading(op, crate::isa::RegFile::Scalar, scalar::VCC, dwords)?;
    }
    if (core.wave.mask(scalar::VCC) == 0) == zero {
        jump(core, op);
    }
    Ok(())
}

/// The meaning of a scalar control instruction.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    Some(match name {
        "s_branch" => branch_if!(|_| true),
        "s_cbranch_scc0" => branch_if!(|c| !c.wave.scc),
        "s_cbranch_scc1" => branch_if!(|c| c.wave.scc),
        "s_cbranch_vccz" => (|core, op| branch_vcc(core, op, true), Semantics::Own),
        "s_cbranch_vccnz" => (|core, op| branch_vcc(core, op, false), Semantics::Own),
        "s_cbranch_execz" => branch_if!(|c| c.wave.exec() == 0),
        "s_cbranch_execnz" => branch_if!(|c| c.wave.exec() != 0),
        // No debugger is attached.
        "s_cbranch_cdbgsys" | "s_cbranch_cdbguser" | "s_cbranch_cdbgsys_or_user" | "s_cbranch_cdbgsys_and_user" => branch_if!(|_| false),
        "s_getpc_b64" => (|core, op| core.set_scalar64(op, result(op)?, op.next), Semantics::Own),
        "s_setpc_b64" => (
            |core, op| {
                core.wave.pc = operand64(core, op, Role::Src0)?;
                Ok(())
            },
            Semantics::Own,
        ),
        "s_swappc_b64" => (
            |core, op| {
                let target = operand64(core, op, Role::Src0)?;
                call(core, op, target)
            },
            Semantics::Own,
        ),
        "s_call_b64" => (|core, op| call(core, op, op.target), Semantics::Own),
        "s_endpgm" | "s_endpgm_saved" | "s_endpgm_ordered_ps_done" => (end, Semantics::Own),
        "s_barrier" => (
            |core, _| {
                core.wave.status = Status::AtBarrier;
                Ok(())
            },
            Semantics::Own,
        ),
        "s_waitcnt"
        | "s_waitcnt_vscnt"
        | "s_waitcnt_vmcnt"
        | "s_waitcnt_expcnt"
        | "s_waitcnt_lgkmcnt"
        | "s_wait_loadcnt"
        | "s_wait_storecnt"
        | "s_wait_samplecnt"
        | "s_wait_bvhcnt"
        | "s_wait_expcnt"
        | "s_wait_dscnt"
        | "s_wait_kmcnt"
        | "s_wait_loadcnt_dscnt"
        | "s_wait_storecnt_dscnt"
        | "s_wait_xcnt"
        | "s_wait_asynccnt"
        | "s_wait_tensorcnt"
        | "s_wait_idle" => (wait, Semantics::Own),
        "s_barrier_signal" => (signal_barrier, Semantics::Own),
        "s_barrier_wait" => (wait_at_barrier, Semantics::Own),
        "s_sleep" | "s_sethalt" | "s_wakeup" => (
            |core, _| {
                core.wave.status = Status::Yielding;
                Ok(())
            },
            Semantics::Own,
        ),
        "s_nop" | "s_setprio" | "s_icache_inv" | "s_incperflevel" | "s_decperflevel" | "v_nop" | "v_clrexcp" | "s_dcache_inv"
        | "s_dcache_inv_vol" | "s_dcache_wb" | "s_dcache_wb_vol" | "buffer_wbinvl1" | "buffer_wbinvl1_vol" | "buffer_wbl2"
        | "buffer_inv" | "buffer_invl2" | "s_setkill" => (nothing, Semantics::Own),
        "s_sendmsg" | "s_sendmsghalt" | "s_ttracedata" => (message, Semantics::Own),
        "s_trap" => (|_, op| stop(FaultKind::Trap { id: op.any_imm() as u8 }), Semantics::Own),
        "s_getreg_b32" => (get_register, Semantics::Own),
        "s_setreg_b32" => (
            |core, op| {
                let value = match Op::scalar_of(&op.inst, Role::Sdst)
                    .or_else(|| op.inst.operands.iter().find_map(|operand| operand.reg()).map(|reg| reg.first))
                {
                    Some(code) => core.scalar(op, code)?,
                    None => return undefined("s_setreg without a register"),
                };
                set_register(core, op, value)
            },
            Semantics::Own,
        ),
        "s_setreg_imm32_b32" => (
            |core, op| {
                let literal = op.inst.operands.iter().find_map(|operand| match operand.value {
                    Value::Literal(bits) => Some(bits),
                    _ => None,
                });
                let value = match literal {
                    Some(bits) => bits,
                    None => op.imm(Role::Imm) as u32,
                };
                set_register(core, op, value)
            },
            Semantics::Own,
        ),
        "s_set_gpr_idx_on" => (
            |core, op| {
                let index = operand32(core, op, Role::Src0)?;
                let m0 = core.wave.sgpr[usize::from(scalar::M0)];
                core.set_scalar(op, scalar::M0, m0 & !0xf0ff | index & 0xff | (raw_source1(op) & 0xf) << 12)?;
                core.wave.set_mode(core.wave.mode | GPR_IDX_EN);
                Ok(())
            },
            Semantics::Own,
        ),
        "s_set_gpr_idx_off" => (
            |core, _| {
                core.wave.set_mode(core.wave.mode & !GPR_IDX_EN);
                Ok(())
            },
            Semantics::Own,
        ),
        "s_set_gpr_idx_mode" => (
            |core, op| {
                let m0 = core.wave.sgpr[usize::from(scalar::M0)];
                core.set_scalar(op, scalar::M0, m0 & !0xf000 | (op.any_imm() as u32 & 0xf) << 12)
            },
            Semantics::Own,
        ),
        "s_set_gpr_idx_idx" => (
            |core, op| {
                let index = operand32(core, op, Role::Src0)?;
                let m0 = core.wave.sgpr[usize::from(scalar::M0)];
                core.set_scalar(op, scalar::M0, m0 & !0xff | index & 0xff)
            },
            Semantics::Own,
        ),
        "s_movrels_b32" => (|core, op| move_relative(core, op, false, false), Semantics::Own),
        "s_movrels_b64" => (|core, op| move_relative(core, op, true, false), Semantics::Own),
        "s_movreld_b32" => (|core, op| move_relative(core, op, false, true), Semantics::Own),
        "s_movreld_b64" => (|core, op| move_relative(core, op, true, true), Semantics::Own),
        _ => return None,
    })
}
