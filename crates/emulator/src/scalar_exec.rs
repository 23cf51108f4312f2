//! Scalar instructions that save EXEC and make a new one.

use wavetap_amdgpu::{Role, scalar};

use super::core::{Core, Step};
use super::op::{Meaning, Op, Semantics};
use super::scalar::{operand32, operand64, result};

/// `saveexec`: the old EXEC is the result, of 64 bits or the lower 32.
macro_rules! save {
    (64, $f:expr) => {
        (
            |core: &mut Core, op: &Op| -> Step {
                const F: fn(u64, u64) -> u64 = $f;
                let a = operand64(core, op, Role::Src0)?;
                let old = core.scalar64(op, scalar::EXEC)?;
                set64(core, op, old, F(a, old))
            },
            Semantics::Own,
        )
    };
    (32, $f:expr) => {
        (
            |core: &mut Core, op: &Op| -> Step {
                const F: fn(u32, u32) -> u32 = $f;
                let a = operand32(core, op, Role::Src0)?;
                let old = core.scalar(op, scalar::EXEC)?;
                set32(core, op, old, F(a, old))
            },
            Semantics::Own,
        )
    };
}

/// `wrexec`: the new EXEC is the result too.
macro_rules! write {
    (64, $f:expr) => {
        (
            |core: &mut Core, op: &Op| -> Step {
                const F: fn(u64, u64) -> u64 = $f;
                let a = operand64(core, op, Role::Src0)?;
                let new = F(a, core.scalar64(op, scalar::EXEC)?);
                set64(core, op, new, new)
            },
            Semantics::Own,
        )
    };
    (32, $f:expr) => {
        (
            |core: &mut Core, op: &Op| -> Step {
                const F: fn(u32, u32) -> u32 = $f;
                let a = operand32(core, op, Role::Src0)?;
                let new = F(a, core.scalar(op, scalar::EXEC)?);
                set32(core, op, new, new)
            },
            Semantics::Own,
        )
    };
}

fn set64(core: &mut Core, op: &Op, value: u64, exec: u64) -> Step {
    core.set_scalar64(op, result(op)?, value)?;
    core.set_scalar64(op, scalar::EXEC, exec)?;
    core.wave.scc = exec != 0;
    Ok(())
}

fn set32(core: &mut Core, op: &Op, value: u32, exec: u32) -> Step {
    core.set_scalar(op, result(op)?, value)?;
    core.set_scalar(op, scalar::EXEC, exec)?;
    core.wave.scc = exec != 0;
    Ok(())
}

/// The meaning of a scalar instruction that makes a new EXEC.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    Some(match name {
        "s_and_saveexec_b64" => save!(64, |a, e| a & e),
        "s_and_saveexec_b32" => save!(32, |a, e| a & e),
        "s_or_saveexec_b64" => save!(64, |a, e| a | e),
        "s_or_saveexec_b32" => save!(32, |a, e| a | e),
        "s_xor_saveexec_b64" => save!(64, |a, e| a ^ e),
        "s_xor_saveexec_b32" => save!(32, |a, e| a ^ e),
        "s_nand_saveexec_b64" => save!(64, |a, e| !(a & e)),
        "s_nand_saveexec_b32" => save!(32, |a, e| !(a & e)),
        "s_nor_saveexec_b64" => save!(64, |a, e| !(a | e)),
        "s_nor_saveexec_b32" => save!(32, |a, e| !(a | e)),
        "s_xnor_saveexec_b64" => save!(64, |a, e| !(a ^ e)),
        "s_xnor_saveexec_b32" => save!(32, |a, e| !(a ^ e)),
        // What is complemented: the first the source, the second EXEC.
        "s_andn1_saveexec_b64" | "s_and_not0_saveexec_b64" => save!(64, |a, e| !a & e),
        "s_andn1_saveexec_b32" | "s_and_not0_saveexec_b32" => save!(32, |a, e| !a & e),
        "s_andn2_saveexec_b64" | "s_and_not1_saveexec_b64" => save!(64, |a, e| a & !e),
        "s_andn2_saveexec_b32" | "s_and_not1_saveexec_b32" => save!(32, |a, e| a & !e),
        "s_orn1_saveexec_b64" | "s_or_not0_saveexec_b64" => save!(64, |a, e| !a | e),
        "s_orn1_saveexec_b32" | "s_or_not0_saveexec_b32" => save!(32, |a, e| !a | e),
        "s_orn2_saveexec_b64" | "s_or_not1_saveexec_b64" => save!(64, |a, e| a | !e),
        "s_orn2_saveexec_b32" | "s_or_not1_saveexec_b32" => save!(32, |a, e| a | !e),
        "s_andn1_wrexec_b64" | "s_and_not0_wrexec_b64" => write!(64, |a, e| !a & e),
        "s_andn1_wrexec_b32" | "s_and_not0_wrexec_b32" => write!(32, |a, e| !a & e),
        "s_andn2_wrexec_b64" | "s_and_not1_wrexec_b64" => write!(64, |a, e| a & !e),
        "s_andn2_wrexec_b32" | "s_and_not1_wrexec_b32" => write!(32, |a, e| a & !e),
        _ => return None,
    })
}
