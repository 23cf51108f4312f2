//! Scalar instructions that are not arithmetic: branches, waits, hardware registers, register indexing, time.

use wavetap_amdgpu::{Opcode, RegFile, Role, Value, VgprMsb, scalar};

use super::{operand32, operand64, result};
use crate::address::aperture::{PRIVATE_APERTURE, SHARED_APERTURE};
use crate::fault::FaultKind;
use crate::fault::stop::{ExecResult, stop, undefined};
use crate::op::semantics::{Semantics, Source, Ty};
use crate::op::sources::scalar_of;
use crate::shadow::expert_scheduling::SOFTWARE;
use crate::shadow::in_flight::OperationKind;
use crate::state::core::Core;
use crate::state::fp_mode::{GPR_IDX_EN, VSKIP};
use crate::state::op::{Meaning, Op};
use crate::state::wave::Status;
use crate::strict;

fn jump(core: &mut Core, op: &Op) {
    core.wave.pc = op.target;
    core.wave.jumped = true;
}

macro_rules! branch_if {
    ($condition:expr) => {
        (
            |core: &mut Core, op: &Op| -> ExecResult {
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
    let (number, bits) = op.inst.hardware_register().unwrap_or_default();
    (number.into(), bits.start, bits.len() as u32)
}

/// Bits of the shader clock before gfx12 (RDNA3 ISA guide, "SHADER_CYCLES").
const SHADER_CYCLES_BITS: u32 = 20;

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
    /// Since gfx10.
    pub(super) const HW_ID1: usize = 23;
    pub(super) use crate::op::clocks::{SHADER_CYCLES, SHADER_CYCLES_HI};
    /// Bits 9:6: how a workgroup is in a cluster.
    pub(super) const IB_STS2: usize = 28;
}

fn get_register(core: &mut Core, op: &Op) -> ExecResult {
    let (id, offset, size) = hardware_register(op);
    if core.launch.strict {
        core.passed(core.wave.hazards.check_setreg(id))?;
    }
    let wave = &core.wave;
    let value = match id {
        hwreg::MODE => wave.mode,
        hwreg::STATUS => {
            u32::from(wave.scc)
                | u32::from(wave.exec() == 0) << 9
                | u32::from(wave.mask(scalar::VCC) == 0) << 10
                | 1 << 16
        }
        hwreg::TRAPSTS => wave.trapsts,
        // Wave, SIMD and compute unit as if workgroups were dealt out in turn.
        hwreg::HW_ID => wave.index & 0xf | (wave.index & 3) << 4 | ((wave.group as u32) & 0xf) << 8,
        hwreg::HW_ID1 if core.launch.target.generation() >= 10 => {
            wave.index & 0x1f | (wave.index & 3) << 8 | ((wave.group as u32) & 0xf) << 10
        }
        hwreg::GPR_ALLOC => (wave.vgpr.len() as u32 / 4) << 8,
        hwreg::LDS_ALLOC => core.launch.lds_size.div_ceil(512) << 12,
        hwreg::FLAT_SCR_LO if core.launch.flat_scratch_hidden => wave.flat_scratch as u32,
        hwreg::FLAT_SCR_HI if core.launch.flat_scratch_hidden => (wave.flat_scratch >> 32) as u32,
        // There are no clusters.
        hwreg::IB_STS | hwreg::XCC_ID | hwreg::IB_STS2 => 0,
        // Bits 63:48 of the private and shared apertures.
        hwreg::SH_MEM_BASES => PRIVATE_APERTURE >> 16 | SHARED_APERTURE >> 16 << 16,
        id if is_scheduling_mode(core, id) => wave.scheduling,
        hwreg::SHADER_CYCLES | hwreg::SHADER_CYCLES_HI if core.launch.target.generation() >= 12 => {
            (*core.clock >> (32 * (id - hwreg::SHADER_CYCLES))) as u32
        }
        hwreg::SHADER_CYCLES if core.launch.target.hardware_register(id as u8).is_some() => {
            *core.clock as u32 & ((1 << SHADER_CYCLES_BITS) - 1)
        }
        id => return undefined(format!("s_getreg of hardware register {id}")),
    };
    let field = (u64::from(value) >> offset) & ((1_u64 << size) - 1);
    core.set_scalar(op, result(op)?, field as u32)
}

fn set_register(core: &mut Core, op: &Op, value: u32) -> ExecResult {
    let (id, offset, size) = hardware_register(op);
    if core.launch.strict {
        core.passed(core.wave.hazards.check_setreg(id))?;
        core.wave.hazards.note_setreg(id);
    }
    let mask = (((1_u64 << size) - 1) << offset) as u32;
    let merge = |old: u32| old & !mask | (value << offset) & mask;
    match id {
        hwreg::MODE => {
            let mode = merge(core.wave.mode);
            core.wave.set_mode(mode);
            if core.launch.target.has_vgpr_msb() {
                core.wave.set_vgpr_msb(VgprMsb::of_mode(mode));
            }
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
        id if is_scheduling_mode(core, id) => match merge(core.wave.scheduling) {
            mode @ (0 | SOFTWARE) => core.wave.scheduling = mode,
            mode => return undefined(format!("scheduling mode {mode}")),
        },
        id => return undefined(format!("s_setreg of hardware register {id}")),
    }
    Ok(())
}

/// Whether a hardware register is the one of which bits 1:0 take checks away from the hardware.
fn is_scheduling_mode(core: &Core, id: usize) -> bool {
    core.launch.target.scheduling_mode_hwreg().map(usize::from) == Some(id)
}

fn wait(core: &mut Core, op: &Op) -> ExecResult {
    if core.launch.strict {
        for (counter, allowed) in op.waits.iter() {
            core.wait_for(counter, u32::from(allowed))?;
        }
    }
    Ok(())
}

/// The wave has come to the barrier; it need not wait there yet. Only the workgroup's own barrier is known.
fn signal_barrier(core: &mut Core, op: &Op) -> ExecResult {
    whole_workgroup(op)?;
    core.wave.signalled = core.barrier.phase;
    strict::comes_to_barrier(core)?;
    strict::signals(core);
    core.barrier.arrived += 1;
    core.barrier.settle();
    Ok(())
}

/// Whether the barrier is valid in bit 0, members from bit 4, signals from bit 16 (RDNA4 ISA guide,
/// "S_GET_BARRIER_STATE").
fn barrier_state(core: &mut Core, op: &Op) -> ExecResult {
    match op.source(Role::Src0, Ty::B32) {
        Source::Const(number) if number as i32 == -1 => {}
        _ => return undefined("a barrier that is not the workgroup's"),
    }
    let state = 1 | (core.barrier.members & 0x7f) << 4 | (core.barrier.arrived & 0x7f) << 16;
    let dst = result(op)?;
    core.set_scalar(op, dst, state)?;
    if core.launch.strict {
        core.wave.in_flight.issue(op, OperationKind::Smem, &[(RegFile::Scalar, dst, 1)]);
    }
    Ok(())
}

/// Waits until all waves have come to the barrier since this one signalled.
fn wait_at_barrier(core: &mut Core, op: &Op) -> ExecResult {
    whole_workgroup(op)?;
    if core.barrier.phase == core.wave.signalled {
        core.wave.status = Status::AtSplitBarrier;
    } else {
        core.barrier.checks.races.pass(core.wave.signalled, core.wave.index);
        if let (Some(races), Some(group)) = (&mut core.races, core.barrier.checks.group) {
            races.order.pass(group, core.wave.index, core.wave.signalled);
        }
    }
    Ok(())
}

fn whole_workgroup(op: &Op) -> ExecResult {
    match op.inst.operands.first().map(|operand| operand.value) {
        Some(Value::InlineInt(-1) | Value::Imm(-1 | 0xffff)) => Ok(()),
        _ => undefined("a barrier that is not the workgroup's"),
    }
}

fn call(core: &mut Core, op: &Op, target: u64) -> ExecResult {
    core.set_scalar64(op, result(op)?, op.next)?;
    jump_far(core, target);
    Ok(())
}

/// To another function, or back from one.
fn jump_far(core: &mut Core, target: u64) {
    core.wave.pc = target;
}

fn end(core: &mut Core, _: &Op) -> ExecResult {
    core.wave.status = Status::Ended;
    Ok(())
}

/// Caches are written back or emptied, which is the order of memory that programs need: threads of the host that run
/// other workgroups must keep it.
fn caches(_: &mut Core, _: &Op) -> ExecResult {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    Ok(())
}

fn nothing(_: &mut Core, _: &Op) -> ExecResult {
    Ok(())
}

/// `llvm.debugtrap`: does nothing where no debugger is attached (AMDGPUUsage, "Trap Handler ABI").
const DEBUG_TRAP: u8 = 3;

fn trap(_: &mut Core, op: &Op) -> ExecResult {
    match op.any_imm() as u8 {
        DEBUG_TRAP => Ok(()),
        id => stop(FaultKind::Trap { id }),
    }
}

fn message(core: &mut Core, _: &Op) -> ExecResult {
    if core.launch.strict { core.passed(core.wave.hazards.check_m0()) } else { Ok(()) }
}

/// `s_round_mode` and `s_denorm_mode`: four bits of MODE.
fn set_mode_bits(core: &mut Core, op: &Op, shift: u32) -> ExecResult {
    let bits = op.any_imm() as u32 & 0xf;
    let mode = core.wave.mode & !(0xf << shift) | bits << shift;
    core.wave.set_mode(mode);
    Ok(())
}

/// Messages that answer (AMDGPUUsage, "s_sendmsg_rtn").
mod returning {
    pub(super) use crate::op::clocks::GET_REALTIME;
    pub(super) const GET_TMA: i64 = 130;
    pub(super) const GET_TBA: i64 = 133;
}

fn answered_message(core: &mut Core, op: &Op, wide: bool) -> ExecResult {
    let value = match op.any_imm() & 0xff {
        // There is no trap handler.
        returning::GET_TMA | returning::GET_TBA => 0,
        returning::GET_REALTIME => core.constant_clock(),
        id => return undefined(format!("s_sendmsg_rtn of message {id}")),
    };
    let dst = result(op)?;
    if wide {
        core.set_scalar64(op, dst, value)?
    } else {
        core.set_scalar(op, dst, value as u32)?
    }
    if core.launch.strict {
        core.wave.in_flight.issue(op, OperationKind::Message, &[(RegFile::Scalar, dst, if wide { 2 } else { 1 })]);
    }
    Ok(())
}

/// The halves of a wave run one after the other through a loop; a scalar has the EXEC of the other half (RDNA ISA
/// guides, "S_SUBVECTOR_LOOP_BEGIN").
fn subvector_begin(core: &mut Core, op: &Op) -> ExecResult {
    let low = core.scalar(op, scalar::EXEC)?;
    let high = core.scalar(op, scalar::EXEC + 1)?;
    let saved_at = only_register(op)?;
    match (low, high) {
        (0, 0) => {
            jump(core, op);
            return Ok(());
        }
        (0, _) => core.set_scalar(op, saved_at, 0)?,
        _ => {
            core.set_scalar(op, saved_at, high)?;
            core.set_scalar(op, scalar::EXEC + 1, 0)?;
        }
    }
    // The tables have the register as one that is read, which is what the end of the loop does.
    core.wave.checks.init_shadow.define(saved_at, 1);
    Ok(())
}

/// The register of an instruction that names one, whatever it does with it.
fn only_register(op: &Op) -> ExecResult<u16> {
    match op.inst.operands.iter().find_map(|operand| operand.reg()) {
        Some(reg) => Ok(reg.first),
        None => undefined("a scalar instruction without register"),
    }
}

/// See [`subvector_begin`].
fn subvector_end(core: &mut Core, op: &Op) -> ExecResult {
    let saved_at = only_register(op)?;
    let saved = core.scalar(op, saved_at)?;
    if core.scalar(op, scalar::EXEC + 1)? != 0 {
        return core.set_scalar(op, scalar::EXEC, saved);
    }
    if saved != 0 {
        let low = core.scalar(op, scalar::EXEC)?;
        core.set_scalar(op, scalar::EXEC + 1, saved)?;
        core.set_scalar(op, saved_at, low)?;
        core.set_scalar(op, scalar::EXEC, 0)?;
        jump(core, op);
    }
    Ok(())
}

/// `s_movrelsd_2_b32`: M0 has an offset for either register.
fn move_relative_both(core: &mut Core, op: &Op) -> ExecResult {
    let m0 = core.scalar(op, scalar::M0)?;
    let Some(from) = scalar_of(&op.inst, Role::Src0) else { return undefined("s_movrelsd without a register") };
    let value = core.scalar(op, from + (m0 & 0x3ff) as u16)?;
    core.set_scalar(op, result(op)? + (m0 >> 16 & 0x3ff) as u16, value)
}

/// The immediate that `s_set_gpr_idx_on` has instead of its second source: its raw field.
fn raw_source1(op: &Op) -> u32 {
    match op.inst.operands.last().map(|operand| operand.value) {
        Some(Value::Imm(value)) => value as u32,
        Some(Value::InlineInt(value)) => value as u32 & 0xf,
        _ => 0,
    }
}

fn move_relative(core: &mut Core, op: &Op, wide: bool, destination: bool) -> ExecResult {
    if core.launch.strict {
        core.passed(core.wave.hazards.check_m0())?;
    }
    let m0 = core.scalar(op, scalar::M0)? as u16;
    let base = |role: Role| scalar_of(&op.inst, role);
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

fn branch_vcc(core: &mut Core, op: &Op, zero: bool) -> ExecResult {
    if core.launch.strict {
        core.passed(core.wave.hazards.check_vccz())?;
        let dwords = core.launch.lanes as u16 / 32;
        core.reading(op, wavetap_amdgpu::RegFile::Scalar, scalar::VCC, dwords)?;
    }
    if (core.wave.mask(scalar::VCC) == 0) == zero {
        jump(core, op);
    }
    Ok(())
}

/// The meaning of a scalar control instruction.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::S_BRANCH => branch_if!(|_| true),
        Opcode::S_CBRANCH_SCC0 => branch_if!(|c| !c.wave.scc),
        Opcode::S_CBRANCH_SCC1 => branch_if!(|c| c.wave.scc),
        Opcode::S_CBRANCH_VCCZ => (|core, op| branch_vcc(core, op, true), Semantics::Own),
        Opcode::S_CBRANCH_VCCNZ => (|core, op| branch_vcc(core, op, false), Semantics::Own),
        Opcode::S_CBRANCH_EXECZ => branch_if!(|c| c.wave.exec() == 0),
        Opcode::S_CBRANCH_EXECNZ => branch_if!(|c| c.wave.exec() != 0),
        // No debugger is attached.
        Opcode::S_CBRANCH_CDBGSYS
        | Opcode::S_CBRANCH_CDBGUSER
        | Opcode::S_CBRANCH_CDBGSYS_OR_USER
        | Opcode::S_CBRANCH_CDBGSYS_AND_USER => {
            branch_if!(|_| false)
        }
        Opcode::S_GETPC_B64 | Opcode::S_GET_PC_I64 => {
            (|core, op| core.set_scalar64(op, result(op)?, op.next), Semantics::Own)
        }
        Opcode::S_SETPC_B64 | Opcode::S_SET_PC_I64 => (
            |core, op| {
                let target = operand64(core, op, Role::Src0)?;
                jump_far(core, target);
                Ok(())
            },
            Semantics::Own,
        ),
        Opcode::S_SWAPPC_B64 | Opcode::S_SWAP_PC_I64 => (
            |core, op| {
                let target = operand64(core, op, Role::Src0)?;
                call(core, op, target)
            },
            Semantics::Own,
        ),
        Opcode::S_ADD_PC_I64 => (
            |core, op| {
                core.wave.pc = op.next.wrapping_add(operand64(core, op, Role::Src0)?);
                core.wave.jumped = true;
                Ok(())
            },
            Semantics::Own,
        ),
        Opcode::S_CALL_B64 | Opcode::S_CALL_I64 => (|core, op| call(core, op, op.target), Semantics::Own),
        Opcode::S_ENDPGM | Opcode::S_ENDPGM_SAVED | Opcode::S_ENDPGM_ORDERED_PS_DONE => (end, Semantics::Own),
        Opcode::S_BARRIER => (
            |core, _| {
                strict::comes_to_barrier(core)?;
                core.wave.status = Status::AtBarrier;
                Ok(())
            },
            Semantics::Own,
        ),
        Opcode::S_WAITCNT
        | Opcode::S_WAITCNT_VSCNT
        | Opcode::S_WAITCNT_VMCNT
        | Opcode::S_WAITCNT_EXPCNT
        | Opcode::S_WAITCNT_LGKMCNT
        | Opcode::S_WAIT_LOADCNT
        | Opcode::S_WAIT_STORECNT
        | Opcode::S_WAIT_SAMPLECNT
        | Opcode::S_WAIT_BVHCNT
        | Opcode::S_WAIT_EXPCNT
        | Opcode::S_WAIT_DSCNT
        | Opcode::S_WAIT_KMCNT
        | Opcode::S_WAIT_LOADCNT_DSCNT
        | Opcode::S_WAIT_STORECNT_DSCNT
        | Opcode::S_WAIT_XCNT
        | Opcode::S_WAIT_ASYNCCNT
        | Opcode::S_WAIT_TENSORCNT
        | Opcode::S_WAIT_IDLE => (wait, Semantics::Own),
        Opcode::S_BARRIER_SIGNAL_ISFIRST => (
            |core, op| {
                let first = core.barrier.arrived == 0;
                signal_barrier(core, op)?;
                core.wave.scc = first;
                Ok(())
            },
            Semantics::Own,
        ),
        Opcode::S_GET_BARRIER_STATE => (barrier_state, Semantics::Own),
        Opcode::S_BARRIER_SIGNAL => (signal_barrier, Semantics::Own),
        Opcode::S_BARRIER_WAIT => (wait_at_barrier, Semantics::Own),
        Opcode::S_SLEEP | Opcode::S_SETHALT | Opcode::S_WAKEUP | Opcode::S_SLEEP_VAR | Opcode::S_MONITOR_SLEEP => (
            |core, op| {
                core.wave.status = Status::Yielding;
                *core.clock += op.sleeps;
                Ok(())
            },
            Semantics::Own,
        ),
        Opcode::S_DCACHE_INV
        | Opcode::S_DCACHE_INV_VOL
        | Opcode::S_DCACHE_WB
        | Opcode::S_DCACHE_WB_VOL
        | Opcode::BUFFER_WBINVL1
        | Opcode::BUFFER_WBINVL1_VOL
        | Opcode::BUFFER_WBL2
        | Opcode::BUFFER_INV
        | Opcode::BUFFER_INVL2
        | Opcode::S_GL1_INV
        | Opcode::BUFFER_GL0_INV
        | Opcode::BUFFER_GL1_INV
        | Opcode::GLOBAL_INV
        | Opcode::GLOBAL_WB
        | Opcode::GLOBAL_WBINV => (caches, Semantics::Own),
        // With newer ones for scheduling, clauses, prefetching and markers.
        Opcode::S_NOP
        | Opcode::S_SETPRIO
        | Opcode::S_ICACHE_INV
        | Opcode::S_INCPERFLEVEL
        | Opcode::S_DECPERFLEVEL
        | Opcode::V_NOP
        | Opcode::V_CLREXCP
        | Opcode::S_SETKILL
        | Opcode::S_ATC_PROBE
        | Opcode::S_ATC_PROBE_BUFFER
        | Opcode::S_INST_PREFETCH
        | Opcode::S_SET_INST_PREFETCH_DISTANCE
        | Opcode::S_CLAUSE
        | Opcode::S_DELAY_ALU
        | Opcode::S_WAITCNT_DEPCTR
        | Opcode::S_WAIT_ALU
        | Opcode::S_WAIT_EVENT
        | Opcode::S_VERSION
        | Opcode::S_CODE_END
        | Opcode::S_TTRACEDATA_IMM
        | Opcode::S_PREFETCH_INST
        | Opcode::S_PREFETCH_INST_PC_REL
        | Opcode::S_PREFETCH_DATA
        | Opcode::S_PREFETCH_DATA_PC_REL
        | Opcode::S_BUFFER_PREFETCH_DATA
        | Opcode::FLAT_PREFETCH_B8
        | Opcode::GLOBAL_PREFETCH_B8
        | Opcode::S_SETPRIO_INC_WG
        | Opcode::V_PIPEFLUSH => (nothing, Semantics::Own),
        // Rounding is MODE 3:0, denormals 7:4.
        Opcode::S_ROUND_MODE => (|core, op| set_mode_bits(core, op, 0), Semantics::Own),
        Opcode::S_DENORM_MODE => (|core, op| set_mode_bits(core, op, 4), Semantics::Own),
        Opcode::S_SUBVECTOR_LOOP_BEGIN => (subvector_begin, Semantics::Own),
        Opcode::S_SUBVECTOR_LOOP_END => (subvector_end, Semantics::Own),
        Opcode::S_SENDMSG_RTN_B32 => (|core, op| answered_message(core, op, false), Semantics::Own),
        Opcode::S_SENDMSG_RTN_B64 => (|core, op| answered_message(core, op, true), Semantics::Own),
        Opcode::S_GET_SHADER_CYCLES_U64 => (
            |core, op| {
                let now = *core.clock;
                core.set_scalar64(op, result(op)?, now)
            },
            Semantics::Own,
        ),
        Opcode::S_MOVRELSD_2_B32 => (move_relative_both, Semantics::Own),
        Opcode::S_SENDMSG | Opcode::S_SENDMSGHALT | Opcode::S_TTRACEDATA => (message, Semantics::Own),
        Opcode::S_TRAP => (trap, Semantics::Own),
        Opcode::S_GETREG_B32 => (get_register, Semantics::Own),
        Opcode::S_SETREG_B32 => (
            |core, op| {
                let value = match scalar_of(&op.inst, Role::Sdst)
                    .or_else(|| op.inst.operands.iter().find_map(|operand| operand.reg()).map(|reg| reg.first))
                {
                    Some(code) => core.scalar(op, code)?,
                    None => return undefined("s_setreg without a register"),
                };
                set_register(core, op, value)
            },
            Semantics::Own,
        ),
        Opcode::S_SETREG_IMM32_B32 => (
            |core, op| {
                let literal = op.inst.operands.iter().find_map(|operand| match operand.value {
                    Value::Literal(bits) => Some(bits),
                    _ => None,
                });
                let value = match literal {
                    Some(bits) => bits,
                    None => op.imm(Role::Imm) as u32,
                };
                set_register(core, op, value)?;
                // These bits of the literal go into MODE whatever part of it is written (LLVM,
                // AMDGPULowerVGPREncoding).
                if hardware_register(op).0 == hwreg::MODE && core.launch.target.has_vgpr_msb() {
                    core.wave.set_vgpr_msb(VgprMsb::of_mode(value));
                    core.wave.after_mode_write = Some(op.next);
                }
                Ok(())
            },
            Semantics::Own,
        ),
        Opcode::S_SET_VGPR_MSB => (
            |core, op| {
                // Directly after that instruction the hardware drops it (LLVM, AMDGPULowerVGPREncoding).
                if core.wave.after_mode_write.take() != Some(op.pc) {
                    core.wave.set_vgpr_msb(VgprMsb(op.any_imm() as u8));
                } else if core.launch.strict {
                    let rule = "s_set_vgpr_msb directly after an s_setreg_imm32_b32 of MODE is dropped";
                    return stop(FaultKind::Hazard { rule, required: 0, found: 0, resource: "mode".into() });
                }
                Ok(())
            },
            Semantics::Own,
        ),
        Opcode::S_SETVSKIP => (
            |core, op| {
                let index = operand32(core, op, Role::Src1)? & 31;
                if core.launch.strict {
                    crate::strict::undefined::require_defined_bit(core, op, Role::Src0, index)?;
                }
                let on = operand32(core, op, Role::Src0)? >> index & 1 != 0;
                core.wave.set_mode(core.wave.mode & !VSKIP | if on { VSKIP } else { 0 });
                Ok(())
            },
            Semantics::Own,
        ),
        Opcode::S_SET_GPR_IDX_ON => (
            |core, op| {
                let index = operand32(core, op, Role::Src0)?;
                let m0 = core.wave.sgpr[usize::from(scalar::M0)];
                core.set_scalar(op, scalar::M0, m0 & !0xf0ff | index & 0xff | (raw_source1(op) & 0xf) << 12)?;
                core.wave.set_mode(core.wave.mode | GPR_IDX_EN);
                Ok(())
            },
            Semantics::Own,
        ),
        Opcode::S_SET_GPR_IDX_OFF => (
            |core, _| {
                core.wave.set_mode(core.wave.mode & !GPR_IDX_EN);
                Ok(())
            },
            Semantics::Own,
        ),
        Opcode::S_SET_GPR_IDX_MODE => (
            |core, op| {
                let m0 = core.wave.sgpr[usize::from(scalar::M0)];
                core.set_scalar(op, scalar::M0, m0 & !0xf000 | (op.any_imm() as u32 & 0xf) << 12)
            },
            Semantics::Own,
        ),
        Opcode::S_SET_GPR_IDX_IDX => (
            |core, op| {
                let index = operand32(core, op, Role::Src0)?;
                let m0 = core.wave.sgpr[usize::from(scalar::M0)];
                core.set_scalar(op, scalar::M0, m0 & !0xff | index & 0xff)
            },
            Semantics::Own,
        ),
        Opcode::S_MOVRELS_B32 => (|core, op| move_relative(core, op, false, false), Semantics::Own),
        Opcode::S_MOVRELS_B64 => (|core, op| move_relative(core, op, true, false), Semantics::Own),
        Opcode::S_MOVRELD_B32 => (|core, op| move_relative(core, op, false, true), Semantics::Own),
        Opcode::S_MOVRELD_B64 => (|core, op| move_relative(core, op, true, true), Semantics::Own),
        _ => return None,
    })
}
