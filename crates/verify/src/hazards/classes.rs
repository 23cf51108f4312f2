//! Classes of instructions that several hazards are about.

use smallvec::SmallVec;

use wavetap_amdgpu::{Flags, Inst, Memory, Opcode, OpcodeFlags, Reg, Role};
use wavetap_analysis::cfg::Cfg;
use wavetap_base::entity::InstId;

/// Executes on the vector ALU.
pub(crate) fn is_valu(inst: &Inst) -> bool {
    inst.variant.flags.contains(Flags::VALU)
}

/// Executes on the scalar ALU.
pub(crate) fn is_salu(inst: &Inst) -> bool {
    inst.variant.flags.contains(Flags::SALU)
}

/// Accesses memory by lanes.
pub(crate) fn is_vector_memory(inst: &Inst) -> bool {
    matches!(inst.variant.memory, Memory::Global | Memory::Flat | Memory::Scratch | Memory::Buffer | Memory::Image)
}

/// Accesses LDS or GDS.
pub(crate) fn is_lds(inst: &Inst) -> bool {
    matches!(inst.variant.memory, Memory::Lds | Memory::Gds)
}

/// Reads a source across lanes (DPP).
pub(crate) fn is_dpp(inst: &Inst) -> bool {
    inst.modifiers.dpp.is_some()
}

/// Swaps rows of lanes.
pub(crate) fn swaps_rows(inst: &Inst) -> bool {
    matches!(inst.opcode(), Opcode::V_PERMLANE16_SWAP_B32 | Opcode::V_PERMLANE32_SWAP_B32)
}

/// The registers whose contents a store takes late.
pub(crate) fn wide_data(inst: &Inst) -> Option<Reg> {
    if !is_vector_memory(inst) || !inst.variant.flags.intersects(Flags::STORE | Flags::ATOMIC) {
        return None;
    }
    // A buffer instruction whose offset is in a register takes longer anyway.
    let late = inst.operand(Role::Soffset).is_some_and(|offset| offset.reg().is_some());
    let data = inst.operand(Role::Vdata).or_else(|| inst.operand(Role::Data0)).and_then(|operand| operand.reg());
    data.filter(|data| data.dwords > 2 && !late)
}

/// Whether an instruction writes a part of a register.
pub(crate) fn writes_part(inst: &Inst) -> bool {
    /// SDWA selector of the whole register.
    const DWORD: u8 = 6;
    inst.modifiers.sdwa.is_some_and(|sdwa| sdwa.dst_sel != DWORD)
        || inst.modifiers.op_sel & 8 != 0
        || (inst.modifiers.op_sel != 0 && inst.is_any(OpcodeFlags::CVT_BYTES))
}

/// Whether rules about matrix instructions and dot products concern an instruction.
pub(crate) fn concerns_matrices(inst: &Inst) -> bool {
    is_matrix(inst) || inst.variant.opcode_flags.intersects(OpcodeFlags::DOT | OpcodeFlags::ACCUM_MOVE)
}

/// Whether an instruction multiplies matrices.
pub(crate) fn is_matrix(inst: &Inst) -> bool {
    inst.variant.flags.contains(Flags::MFMA) && !inst.variant.opcode_flags.contains(OpcodeFlags::ACCUM_MOVE)
}

/// The instructions that may be executed directly before one.
pub(crate) fn predecessors(cfg: &Cfg, id: InstId) -> SmallVec<[InstId; 2]> {
    let block = cfg.block(cfg.block_of(id));
    if block.first == id {
        block.predecessors.iter().map(|edge| cfg.block(edge.block).last).collect()
    } else {
        SmallVec::from_slice(&[InstId(id.0 - 1)])
    }
}
