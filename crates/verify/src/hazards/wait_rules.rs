//! The rules about wait states, but for those around matrix instructions.

use super::classes::{is_dpp, is_salu, is_valu, is_vector_memory, swaps_rows, wide_data, writes_part};
use super::instruction_facts::Facts;
use super::wait_rule::{Pair, WaitRule, all, if_met};
use wavetap_amdgpu::{Flags, Inst, Memory, Opcode, OpcodeFlags, Reg, RegFile, Role, WaitStates, scalar};
use wavetap_analysis::dataflow::RegSet;

#[rustfmt::skip] // A line for each rule.
pub(super) static RULES: [WaitRule; 19] = {
    use Facts as F;
    [
        WaitRule::new("a scalar register written by a vector instruction is read by a memory instruction",
            all([F::VALU, F::WRITES_SGPR]), all([F::VECTOR_MEMORY, F::READS_SGPR]), 5, sgpr_to_memory),
        WaitRule::new("VCC written by a vector instruction is read by v_div_fmas",
            all([F::VALU, F::WRITES_VCC]), F::DIV_FMAS, 4, vcc_to_div_fmas),
        WaitRule::new("a scalar register written by a vector instruction selects a lane",
            all([F::VALU, F::WRITES_SGPR]), F::SELECTS_LANE, 4, lane_select),
        WaitRule::new("a vector register is written that DPP reads",
            F::WRITES_VECTOR, all([F::DPP, F::READS_VECTOR]), 2, vgpr_to_dpp),
        WaitRule::new("a vector instruction writes EXEC before DPP",
            all([F::VALU, F::WRITES_EXEC]), F::DPP, 5, exec_to_dpp),
        WaitRule::new("M0 is written that a message reads",
            all([F::SALU, F::WRITES_M0]), F::MESSAGE, 1, m0_to_message),
        WaitRule::new("M0 is written that an indexed access reads",
            all([F::SALU, F::WRITES_M0, F::INDEXED_BY_M0]), F::INDEXES, 1, m0_to_index),
        WaitRule::new("data of a wide store is overwritten",
            F::WIDE_STORE, all([F::VALU, F::WRITES_VECTOR]), 2, wide_store),
        WaitRule::new("a result of a transcendental is read",
            all([F::STRICT, F::TRANS, F::WRITES_VECTOR]), all([F::VALU, F::READS_VECTOR]), 1, trans_to_valu),
        WaitRule::new("part of a register is written that is used at once",
            all([F::STRICT, F::VALU, F::PARTIAL, F::WRITES_VECTOR]), F::VALU, 1, partial_to_valu),
        WaitRule::new("a scalar register written by a vector instruction is read by a vector instruction",
            all([F::STRICT, F::VALU, F::WRITES_SGPR]), all([F::VALU, F::READS_SGPR]), 2, sgpr_to_valu),
        WaitRule::new("EXEC is written by a vector instruction before a lane access",
            all([F::STRICT, F::VALU, F::WRITES_EXEC]), F::LANE, 4, exec_to_lane),
        WaitRule::new("a vector register is written that a lane access reads",
            all([F::STRICT, F::VALU, F::WRITES_VECTOR]), all([F::LANE, F::READS_VECTOR]), 1, vgpr_to_lane),
        WaitRule::new("a vector instruction writes VCC or EXEC, whose zero flag is read as data",
            F::VALU, all([F::VALU, F::NAMES_ZERO_FLAG]), 5, zero_flag),
        WaitRule::new("a hardware register is written and accessed again",
            F::HARDWARE_REGISTER, F::HARDWARE_REGISTER, 2, hardware_register),
        WaitRule::new("a vector instruction writes EXEC, which a vector instruction reads as data",
            all([F::STRICT, F::VALU, F::WRITES_EXEC]), all([F::VALU, F::NAMES_EXEC]), 2, exec_to_data),
        WaitRule::new("a vector register is written whose rows are swapped",
            all([F::GFX950, F::VALU, F::WRITES_VECTOR]), all([F::SWAPS_ROWS, F::READS_VECTOR]), 2, vgpr_to_swap),
        WaitRule::new("a vector instruction writes EXEC before rows are swapped",
            all([F::GFX950, F::VALU, F::WRITES_EXEC]), F::SWAPS_ROWS, 4, exec_to_swap),
        WaitRule::new("TRAPSTS is written before a return from the trap handler",
            F::HARDWARE_REGISTER, F::TRAP_RETURN, 1, trap_status),
    ]
};

/// `sN` and VCC: what a vector instruction may write as a mask or value.
fn written_sgprs(inst: &Inst) -> RegSet {
    inst.writes().filter(|reg| reg.file == RegFile::Scalar && reg.first < scalar::VCC + 2).collect()
}

fn sgpr_to_memory(p: &Pair<'_>) -> Option<u32> {
    if_met(
        is_valu(p.producer) && is_vector_memory(p.consumer) && written_sgprs(p.producer).intersects(&p.consumer.reads),
        5,
    )
}

fn vcc_to_div_fmas(p: &Pair<'_>) -> Option<u32> {
    if_met(is_valu(p.producer) && p.consumer.is_any(OpcodeFlags::DIV_FMAS) && p.producer.writes.overlaps(Reg::VCC), 4)
}

fn lane_select(p: &Pair<'_>) -> Option<u32> {
    let lane = matches!(p.consumer.opcode(), Opcode::V_READLANE_B32 | Opcode::V_WRITELANE_B32)
        .then(|| p.consumer.operand(Role::Src1))
        .flatten();
    let select = lane.and_then(|operand| operand.reg());
    if_met(is_valu(p.producer) && select.is_some_and(|reg| written_sgprs(p.producer).overlaps(reg)), 4)
}

fn vgpr_to_dpp(p: &Pair<'_>) -> Option<u32> {
    if_met(is_dpp(p.consumer) && p.producer.writes.shares_vectors(&p.consumer.reads), 2)
}

fn exec_to_dpp(p: &Pair<'_>) -> Option<u32> {
    if_met(is_valu(p.producer) && is_dpp(p.consumer) && p.producer.writes.overlaps(Reg::EXEC), 5)
}

fn m0_to_message(p: &Pair<'_>) -> Option<u32> {
    let messages = p.consumer.variant.memory == Memory::Message
        || p.consumer.modifiers.gds
        || p.consumer.opcode() == Opcode::S_TTRACEDATA;
    if_met(is_salu(p.producer) && p.producer.writes.overlaps(Reg::M0) && messages, 1)
}

fn m0_to_index(p: &Pair<'_>) -> Option<u32> {
    if !p.indexed_by_m0 || !is_salu(p.producer) || !p.producer.writes.overlaps(Reg::M0) {
        return None;
    }
    const INDEXES: OpcodeFlags = OpcodeFlags::SCALAR_RELATIVE.union(OpcodeFlags::INTERP).union(OpcodeFlags::ADDTID);
    if_met(p.consumer.is_any(INDEXES) || p.consumer.modifiers.lds, 1)
}

fn wide_store(p: &Pair<'_>) -> Option<u32> {
    let overwritten = || wide_data(p.producer).is_some_and(|data| p.consumer.writes.overlaps(data));
    if_met(is_valu(p.consumer) && overwritten(), if p.strict() { 2 } else { 1 })
}

fn trans_to_valu(p: &Pair<'_>) -> Option<u32> {
    let trans = |inst: &Inst| inst.variant.flags.contains(Flags::TRANS);
    let reads_result = || p.producer.writes.shares_vectors(&p.consumer.reads);
    if_met(p.strict() && trans(p.producer) && is_valu(p.consumer) && !trans(p.consumer) && reads_result(), 1)
}

fn partial_to_valu(p: &Pair<'_>) -> Option<u32> {
    let writes = &p.producer.writes;
    let uses = || writes.shares_vectors(&p.consumer.reads) || writes.shares_vectors(&p.consumer.writes);
    if_met(p.strict() && is_valu(p.producer) && is_valu(p.consumer) && writes_part(p.producer) && uses(), 1)
}

fn sgpr_to_valu(p: &Pair<'_>) -> Option<u32> {
    if_met(
        p.strict()
            && is_valu(p.producer)
            && is_valu(p.consumer)
            && written_sgprs(p.producer).intersects(&p.consumer.reads),
        2,
    )
}

fn exec_to_lane(p: &Pair<'_>) -> Option<u32> {
    let lane =
        matches!(p.consumer.opcode(), Opcode::V_READLANE_B32 | Opcode::V_WRITELANE_B32 | Opcode::V_READFIRSTLANE_B32);
    if_met(p.strict() && is_valu(p.producer) && lane && p.producer.writes.overlaps(Reg::EXEC), 4)
}

fn vgpr_to_lane(p: &Pair<'_>) -> Option<u32> {
    let lane = matches!(p.consumer.opcode(), Opcode::V_READLANE_B32 | Opcode::V_READFIRSTLANE_B32);
    if_met(p.strict() && is_valu(p.producer) && lane && p.producer.writes.shares_vectors(&p.consumer.reads), 1)
}

fn zero_flag(p: &Pair<'_>) -> Option<u32> {
    if !is_valu(p.producer) || !is_valu(p.consumer) {
        return None;
    }
    let named =
        |code| p.consumer.operands.iter().filter_map(|operand| operand.reg()).any(|reg| reg == Reg::scalar(code, 1));
    let written = &p.producer.writes;
    let stale =
        (named(scalar::VCCZ) && written.overlaps(Reg::VCC)) || (named(scalar::EXECZ) && written.overlaps(Reg::EXEC));
    if_met(stale, 5)
}

/// The number of the hardware register that an instruction accesses.
fn hardware(inst: &Inst) -> Option<u8> {
    inst.hardware_register().map(|(number, _)| number)
}

fn hardware_register(p: &Pair<'_>) -> Option<u32> {
    let again = || hardware(p.consumer).is_some() && hardware(p.producer) == hardware(p.consumer);
    if_met(p.producer.is_any(OpcodeFlags::SETREG) && again(), 2)
}

fn trap_status(p: &Pair<'_>) -> Option<u32> {
    /// `HW_REG_TRAPSTS`.
    const TRAPSTS: u8 = 3;
    if_met(
        p.producer.is_any(OpcodeFlags::SETREG)
            && hardware(p.producer) == Some(TRAPSTS)
            && p.consumer.is_any(OpcodeFlags::TRAP_RETURN),
        1,
    )
}

fn exec_to_data(p: &Pair<'_>) -> Option<u32> {
    let data = || p.consumer.operands.iter().filter_map(|operand| operand.reg()).any(|reg| reg.overlaps(Reg::EXEC));
    if_met(
        p.strict() && is_valu(p.producer) && is_valu(p.consumer) && p.producer.writes.overlaps(Reg::EXEC) && data(),
        2,
    )
}

fn vgpr_to_swap(p: &Pair<'_>) -> Option<u32> {
    let reads = || p.producer.writes.shares_vectors(&p.consumer.reads);
    if_met(p.states == WaitStates::Gfx950 && is_valu(p.producer) && swaps_rows(p.consumer) && reads(), 2)
}

fn exec_to_swap(p: &Pair<'_>) -> Option<u32> {
    let exec = || p.producer.writes.overlaps(Reg::EXEC);
    if_met(p.states == WaitStates::Gfx950 && is_valu(p.producer) && swaps_rows(p.consumer) && exec(), 4)
}
