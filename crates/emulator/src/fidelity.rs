//! How exact the emulator is: a class for each instruction.
//!
//! What is in no rule here is as AMD's manuals say, which the second definitions of `instruction_semantics` check; a
//! test compares their tolerances with these rules. Bounds of errors are those of the manuals: RDNA3 ISA guide and its
//! like, notes of `V_RCP_F32` ("1ULP accuracy"), `V_RCP_F16` ("0.51ULP"), `V_RCP_F64` ("(2**29)ULP") and their
//! neighbours; `V_SIN_F32` has none. `docs/reference/fidelity.md` is the page.

use wavetap_amdgpu::{AtomicOp, Inst, MatrixInfo, NumberFormat, Opcode, Target, Variant, VectorInfo, VectorOp};
use wavetap_profile::fidelity::{Choice, Exactness};

use crate::exec;
use crate::exec::memory::typed;
use crate::op::transpose::Layout;
use crate::op::{clocks, pair, wave_transpose};

/// The bound of single precision, and of half precision: 0.51 is at most one step from the true value, rounded.
const SINGLE: u64 = 1;
/// The bound of double precision.
const DOUBLE: u64 = 1 << 29;

/// Hardware registers that say where a wave runs.
const PLACES: [&str; 4] = ["HW_REG_HW_ID", "HW_REG_HW_ID1", "HW_REG_HW_ID2", "HW_REG_XCC_ID"];

/// How exact the emulator is for an instruction of a target: of a pair of operations, for the less exact one.
///
/// ```
/// use wavetap_amdgpu::{Target, decode};
/// use wavetap_emulator::exactness;
/// use wavetap_profile::fidelity::Exactness;
///
/// let target = Target::by_name("gfx90a").unwrap();
/// let class = |word: u32| exactness(target, &decode(target, &word.to_le_bytes()).unwrap());
/// assert_eq!(class(0x7e02_4502), Exactness::WithinUlps { ulps: 1 }); // v_rcp_f32_e32 v1, v2
/// assert_eq!(class(0x0202_0702), Exactness::Documented); // v_add_f32_e32 v1, v2, v3
/// ```
#[must_use]
pub fn exactness(target: Target, inst: &Inst) -> Exactness {
    match pair::rows(target, inst) {
        Some(halves) => {
            halves.into_iter().map(|half| of_operation(target, half)).max().unwrap_or(Exactness::Documented)
        }
        None if inst.variant.halves.is_some() => Exactness::Unsupported,
        None if is_clock(inst) => Exactness::Choice { choice: Choice::Clocks },
        None if is_place(target, inst) => Exactness::Choice { choice: Choice::Placement },
        None if exec::meaning(target, inst).is_none() => Exactness::Unsupported,
        None => of_operation(target, inst.variant),
    }
}

/// The same of an operation alone: what it is for all operands.
fn of_operation(target: Target, variant: &'static Variant) -> Exactness {
    let opcode = variant.opcode;
    let choice = matrix(target, opcode)
        .or_else(|| opcode.atomic().filter(|atomic| is_sum(atomic.operation)).map(|_| Choice::AtomicSums))
        .or_else(|| is_stochastic(opcode).then_some(Choice::StochasticRounding))
        .or_else(|| transposes(opcode).then_some(Choice::TransposingLoads))
        .or_else(|| opcode.sample().map(|_| Choice::TextureFilter))
        .or_else(|| reads_fractions(opcode).then_some(Choice::Fractions));
    match (choice, opcode.vector()) {
        (Some(choice), _) => Exactness::Choice { choice },
        (None, Some(vector)) => of_vector(target, opcode, vector),
        (None, None) => Exactness::Documented,
    }
}

fn of_vector(target: Target, opcode: Opcode, vector: VectorInfo) -> Exactness {
    let VectorInfo { operation, format, .. } = vector;
    match operation {
        VectorOp::Trans if has_no_bound(opcode) => Exactness::Choice { choice: Choice::Accuracy },
        VectorOp::Trans => match format {
            NumberFormat::F64 => Exactness::WithinUlps { ulps: DOUBLE },
            NumberFormat::Bf16 => Exactness::Choice { choice: Choice::Accuracy },
            _ => Exactness::WithinUlps { ulps: SINGLE },
        },
        VectorOp::Dot if is_half(format) && target.flushes_half_products() => {
            Exactness::Choice { choice: Choice::ProductDenormals }
        }
        VectorOp::Dot if is_float(format) => Exactness::Choice { choice: Choice::DotSums },
        _ => Exactness::Documented,
    }
}

/// Functions without a bound in manuals.
fn has_no_bound(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::V_SIN_F32
            | Opcode::V_COS_F32
            | Opcode::V_SIN_F16
            | Opcode::V_COS_F16
            | Opcode::V_TANH_F32
            | Opcode::V_TANH_F16
            | Opcode::V_RCP_IFLAG_F32
            | Opcode::V_EXP_LEGACY_F32
            | Opcode::V_LOG_LEGACY_F32
    )
}

fn matrix(target: Target, opcode: Opcode) -> Option<Choice> {
    let MatrixInfo { a, b, .. } = opcode.matrix()?;
    match a {
        NumberFormat::Xf32 => Some(Choice::MatrixXf32),
        half if is_half(half) && target.flushes_half_products() => Some(Choice::ProductDenormals),
        _ if is_float(a) || is_float(b) => Some(Choice::MatrixSums),
        _ => None,
    }
}

fn is_half(format: NumberFormat) -> bool {
    matches!(format, NumberFormat::F16 | NumberFormat::Bf16)
}

fn is_float(format: NumberFormat) -> bool {
    use NumberFormat as N;
    !matches!(format, N::I8 | N::Iu8 | N::Iu4 | N::I16 | N::U16 | N::I32 | N::U32 | N::I64 | N::U64)
}

fn is_sum(operation: AtomicOp) -> bool {
    matches!(operation, AtomicOp::Fadd | AtomicOp::PkAddF16 | AtomicOp::PkAddBf16)
}

fn is_stochastic(opcode: Opcode) -> bool {
    let alone = matches!(
        opcode,
        Opcode::V_CVT_SR_BF16_F32
            | Opcode::V_CVT_SR_BF8_F16
            | Opcode::V_CVT_SR_BF8_F32
            | Opcode::V_CVT_SR_F16_F32
            | Opcode::V_CVT_SR_FP8_F16
            | Opcode::V_CVT_SR_FP8_F32
            | Opcode::V_CVT_SR_PK_BF16_F32
            | Opcode::V_CVT_SR_PK_F16_F32
    );
    alone || opcode.scale().is_some_and(|scale| scale.stochastic)
}

fn transposes(opcode: Opcode) -> bool {
    Layout::of(opcode).is_some() || wave_transpose::bits_of(opcode).is_some()
}

/// Loads whose numbers have the format of a descriptor or of the instruction.
fn reads_fractions(opcode: Opcode) -> bool {
    let buffer = typed::shape(opcode).is_some_and(|(loads, _)| loads);
    buffer || matches!(opcode, Opcode::IMAGE_LOAD | Opcode::IMAGE_LOAD_MIP)
}

fn is_clock(inst: &Inst) -> bool {
    clocks::reads_clock(inst, clocks::immediate(inst).unwrap_or(0))
}

fn is_place(target: Target, inst: &Inst) -> bool {
    inst.opcode() == Opcode::S_GETREG_B32
        && inst
            .hardware_register()
            .and_then(|(id, _)| target.hardware_register(id))
            .is_some_and(|name| PLACES.contains(&name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use wavetap_amdgpu::decode;

    use super::*;

    #[test]
    fn what_is_missing_is_not_supported_and_nothing_else_is() {
        for target in Target::all().filter(|target| target.emulated()) {
            let missing: BTreeSet<&str> = crate::missing(target).into_iter().map(|(name, _)| name).collect();
            let mut found = BTreeSet::new();
            for target in [32, 64].into_iter().filter_map(|lanes| target.with_wave_size(lanes)) {
                for variant in wavetap_amdgpu::variants(target).filter(|variant| variant.halves.is_none()) {
                    let inst = Inst { variant, wave_size: target.wave_size() as u8, ..Inst::blank() };
                    if exactness(target, &inst) == Exactness::Unsupported {
                        found.insert(variant.name);
                    }
                }
            }
            assert!(found.is_subset(&missing), "{}: {:?}", target.name(), found.difference(&missing));
            let others = missing.difference(&found).filter(|name| !name.starts_with("v_dual_"));
            assert_eq!(others.count(), 0, "{}: {:?}", target.name(), missing.difference(&found));
        }
    }

    #[test]
    fn a_class_depends_on_operands_and_target() {
        let class = |target: &str, bytes: &[u8]| {
            let target = Target::by_name(target).unwrap();
            exactness(target, &decode(target, bytes).unwrap())
        };
        let choice = |choice| Exactness::Choice { choice };
        // s_getreg_b32 s0, hwreg(HW_REG_HW_ID), hwreg(HW_REG_XCC_ID), hwreg(HW_REG_MODE)
        assert_eq!(class("gfx90a", &[0x04, 0xf8, 0x80, 0xb8]), choice(Choice::Placement));
        assert_eq!(class("gfx942", &[0x14, 0xf8, 0x80, 0xb8]), choice(Choice::Placement));
        assert_eq!(class("gfx90a", &[0x01, 0xf8, 0x80, 0xb8]), Exactness::Documented);
        // s_memtime s[0:1]
        assert_eq!(class("gfx90a", &[0x00, 0x00, 0x90, 0xc0, 0, 0, 0, 0]), choice(Choice::Clocks));
        // v_mfma_f32_16x16x16f16 a[0:3], v[0:1], v[2:3], a[0:3]
        let product = [0x00, 0x80, 0xcd, 0xd3, 0x00, 0x05, 0x02, 0x04];
        assert_eq!(class("gfx90a", &product), choice(Choice::ProductDenormals));
        assert_eq!(class("gfx942", &product), choice(Choice::MatrixSums));
        // v_sin_f32_e32 v1, v2; v_rcp_f64_e32 v[2:3], v[4:5]
        assert_eq!(class("gfx90a", &0x7e02_5302_u32.to_le_bytes()), choice(Choice::Accuracy));
        assert_eq!(class("gfx90a", &0x7e04_4b04_u32.to_le_bytes()), Exactness::WithinUlps { ulps: 1 << 29 });
        // v_dual_dot2acc_f32_f16 v0, v1, v2 :: v_dual_mov_b32 v3, v4: what the less exact half is.
        assert_eq!(class("gfx1100", &[0x01, 0x05, 0x10, 0xcb, 0x04, 0x01, 0x02, 0x00]), choice(Choice::DotSums));
    }
}
