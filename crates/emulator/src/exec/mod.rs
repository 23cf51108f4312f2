//! What instructions do: a handler for each operation, by unit.

pub(crate) mod matrix;
pub(crate) mod memory;
pub(crate) mod missing;
pub(crate) mod pair;
pub(crate) mod prepare;
pub(crate) mod scalar;
pub(crate) mod vector;

use wavetap_amdgpu::{Coding, Encoding, Implicit, Inst, Opcode, Role, Target, Variant};

use crate::exec::matrix::{mfma, mfma_scaled, smfmac, swmmac, wmma, wmma_scaled};
use crate::exec::memory::{async_copy, gws, image, lds, smem, tensor, transposing, typed, vmem, wave_transposing};
use crate::exec::scalar::{control, fork};
use crate::exec::vector::{
    bf16, compare, convert, dot, float_ops, int_ops, lane_access, movement, packed, scaled, scaled_pack,
};
use crate::state::op::Meaning;

/// What an instruction means, by its operation.
pub(crate) fn meaning(target: Target, inst: &Inst) -> Option<Meaning> {
    use Encoding as E;
    let opcode = carrying(inst);
    match inst.variant.encoding {
        E::Sop1 | E::Sop2 | E::Sopk | E::Sopc | E::Sopp => fork::meaning(opcode).or_else(|| scalar::meaning(opcode)),
        E::Smem => control::meaning(opcode).or_else(|| smem::meaning(opcode, inst)),
        E::Ds => wave_transposing::meaning(opcode)
            .or_else(|| transposing::meaning(opcode, inst))
            .or_else(|| gws::meaning(opcode))
            .or_else(|| lds::meaning(opcode, inst)),
        E::Flat | E::Global | E::Scratch | E::Mubuf => control::meaning(opcode)
            .or_else(|| typed::meaning(opcode))
            .or_else(|| async_copy::meaning(opcode))
            .or_else(|| wave_transposing::meaning(opcode))
            .or_else(|| transposing::meaning(opcode, inst))
            .or_else(|| vmem::meaning(opcode, inst)),
        E::Mtbuf => typed::meaning(opcode),
        E::Mimg | E::Vimage | E::Vsample => image::meaning(opcode, inst.variant.flags),
        E::Tensor => tensor::meaning(opcode),
        E::Exp | E::Vintrp | E::Vinterp | E::Ldsdir => None,
        E::Vop3p | E::Vop3pDpp | E::Vop3pDpp8 => packed::meaning(opcode)
            .or_else(|| bf16::meaning(opcode))
            .or_else(|| dot::meaning(opcode))
            .or_else(|| mfma::meaning(opcode))
            .or_else(|| mfma_scaled::meaning(opcode))
            .or_else(|| smfmac::meaning(opcode))
            .or_else(|| wmma::meaning(opcode))
            .or_else(|| wmma_scaled::meaning(opcode))
            .or_else(|| swmmac::meaning(opcode))
            .or_else(|| lane_access::meaning(target, opcode)),
        _ if opcode == Opcode::V_SAT_PK_U8_I16 && gives_half(inst.variant) => Some(int_ops::saturated_bytes_in_half()),
        _ => compare::meaning(opcode)
            .or_else(|| lane_access::meaning(target, opcode))
            .or_else(|| movement::meaning(opcode))
            .or_else(|| packed::meaning(opcode))
            .or_else(|| dot::meaning(opcode))
            .or_else(|| int_ops::meaning(opcode))
            .or_else(|| float_ops::meaning(opcode))
            .or_else(|| convert::meaning(target, opcode))
            .or_else(|| bf16::meaning(opcode))
            .or_else(|| scaled_pack::meaning(opcode))
            .or_else(|| scaled::meaning(opcode))
            .or_else(|| control::meaning(opcode)),
    }
}

/// Whether the result is half of a register, which the instruction names.
pub(crate) fn gives_half(variant: &Variant) -> bool {
    let half = |coding| matches!(coding, Coding::VectorHalf | Coding::VectorLow128);
    variant.operands.iter().any(|spec| spec.role == Role::Vdst && half(spec.kind.coding))
}

/// The operation; on gfx8 that of an addition that gives a carry does not say so.
pub(crate) fn carrying(inst: &Inst) -> Opcode {
    let variant = inst.variant;
    let carries =
        variant.implicit_writes.contains(Implicit::VCC) || variant.operands.iter().any(|spec| spec.role == Role::Sdst);
    match variant.opcode {
        Opcode::V_ADD_U32 if carries => Opcode::V_ADD_CO_U32,
        Opcode::V_SUB_U32 if carries => Opcode::V_SUB_CO_U32,
        Opcode::V_SUBREV_U32 if carries => Opcode::V_SUBREV_CO_U32,
        opcode => opcode,
    }
}
