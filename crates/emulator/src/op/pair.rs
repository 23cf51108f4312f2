//! The operations of an instruction that is two (VOPD), each as it is alone.

use wavetap_amdgpu::{Encoding, HalfOperation, Inst, Opcode, Target, Variant, variants};

/// The rows of both operations of a pair where they are alone, if it is one.
pub(crate) fn rows(target: Target, inst: &Inst) -> Option<[&'static Variant; 2]> {
    let [first, second] = inst.halves()?;
    Some([row(target, &first)?, row(target, &second)?])
}

/// The row of an operation where it is alone, for its meaning: forms differ in nothing that matters here.
pub(crate) fn row(target: Target, half: &HalfOperation<'_>) -> Option<&'static Variant> {
    alone_rows(target)
        .find(|variant| Some(variant.opcode) == alone(half.opcode()))
        .or_else(|| row_elsewhere(half.opcode()))
}

/// Dot products that are in pairs only on some targets, and with a row of their own, by this or another name, on
/// others.
pub(crate) fn row_elsewhere(half: Opcode) -> Option<&'static Variant> {
    let opcode = match half {
        Opcode::V_DUAL_DOT2ACC_F32_F16 => Opcode::V_DOT2ACC_F32_F16,
        Opcode::V_DUAL_DOT2ACC_F32_BF16 => Opcode::V_DOT2C_F32_BF16,
        _ => return None,
    };
    Target::all().flat_map(alone_rows).find(|variant| variant.opcode == opcode && variant.encoding == Encoding::Vop2)
}

/// The operation alone. `v_dual_bitop2_b32` is in pairs only: it is `v_bitop3_b32` whose third source is 0 (LLVM,
/// GCNVOPDUtils).
pub(crate) fn alone(half: Opcode) -> Option<Opcode> {
    if half == Opcode::V_DUAL_BITOP2_B32 { Some(Opcode::V_BITOP3_B32) } else { half.alone() }
}

pub(crate) fn alone_rows(target: Target) -> impl Iterator<Item = &'static Variant> {
    variants(target).filter(|variant| {
        matches!(variant.encoding, Encoding::Vop1 | Encoding::Vop2 | Encoding::Vop3 | Encoding::Vop3p)
    })
}
