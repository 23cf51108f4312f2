//! Scalar instructions that save EXEC and make a new one.

use wavetap_amdgpu::{Opcode, Role, scalar};

use super::{operand32, operand64, result};
use crate::fault::stop::ExecResult;
use crate::op::semantics::Semantics;
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};

/// `saveexec`: the old EXEC is the result, of 64 bits or the lower 32.
macro_rules! save {
    (64, $f:expr) => {
        (
            |core: &mut Core, op: &Op| -> ExecResult {
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
            |core: &mut Core, op: &Op| -> ExecResult {
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
            |core: &mut Core, op: &Op| -> ExecResult {
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
            |core: &mut Core, op: &Op| -> ExecResult {
                const F: fn(u32, u32) -> u32 = $f;
                let a = operand32(core, op, Role::Src0)?;
                let new = F(a, core.scalar(op, scalar::EXEC)?);
                set32(core, op, new, new)
            },
            Semantics::Own,
        )
    };
}

fn set64(core: &mut Core, op: &Op, value: u64, exec: u64) -> ExecResult {
    core.set_scalar64(op, result(op)?, value)?;
    core.set_scalar64(op, scalar::EXEC, exec)?;
    core.wave.scc = exec != 0;
    Ok(())
}

fn set32(core: &mut Core, op: &Op, value: u32, exec: u32) -> ExecResult {
    core.set_scalar(op, result(op)?, value)?;
    core.set_scalar(op, scalar::EXEC, exec)?;
    core.wave.scc = exec != 0;
    Ok(())
}

/// The meaning of a scalar instruction that makes a new EXEC.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::S_AND_SAVEEXEC_B64 => save!(64, |a, e| a & e),
        Opcode::S_AND_SAVEEXEC_B32 => save!(32, |a, e| a & e),
        Opcode::S_OR_SAVEEXEC_B64 => save!(64, |a, e| a | e),
        Opcode::S_OR_SAVEEXEC_B32 => save!(32, |a, e| a | e),
        Opcode::S_XOR_SAVEEXEC_B64 => save!(64, |a, e| a ^ e),
        Opcode::S_XOR_SAVEEXEC_B32 => save!(32, |a, e| a ^ e),
        Opcode::S_NAND_SAVEEXEC_B64 => save!(64, |a, e| !(a & e)),
        Opcode::S_NAND_SAVEEXEC_B32 => save!(32, |a, e| !(a & e)),
        Opcode::S_NOR_SAVEEXEC_B64 => save!(64, |a, e| !(a | e)),
        Opcode::S_NOR_SAVEEXEC_B32 => save!(32, |a, e| !(a | e)),
        Opcode::S_XNOR_SAVEEXEC_B64 => save!(64, |a, e| !(a ^ e)),
        Opcode::S_XNOR_SAVEEXEC_B32 => save!(32, |a, e| !(a ^ e)),
        // What is complemented: the first the source, the second EXEC.
        Opcode::S_ANDN1_SAVEEXEC_B64 | Opcode::S_AND_NOT0_SAVEEXEC_B64 => save!(64, |a, e| !a & e),
        Opcode::S_ANDN1_SAVEEXEC_B32 | Opcode::S_AND_NOT0_SAVEEXEC_B32 => save!(32, |a, e| !a & e),
        Opcode::S_ANDN2_SAVEEXEC_B64 | Opcode::S_AND_NOT1_SAVEEXEC_B64 => save!(64, |a, e| a & !e),
        Opcode::S_ANDN2_SAVEEXEC_B32 | Opcode::S_AND_NOT1_SAVEEXEC_B32 => save!(32, |a, e| a & !e),
        Opcode::S_ORN1_SAVEEXEC_B64 | Opcode::S_OR_NOT0_SAVEEXEC_B64 => save!(64, |a, e| !a | e),
        Opcode::S_ORN1_SAVEEXEC_B32 | Opcode::S_OR_NOT0_SAVEEXEC_B32 => save!(32, |a, e| !a | e),
        Opcode::S_ORN2_SAVEEXEC_B64 | Opcode::S_OR_NOT1_SAVEEXEC_B64 => save!(64, |a, e| a | !e),
        Opcode::S_ORN2_SAVEEXEC_B32 | Opcode::S_OR_NOT1_SAVEEXEC_B32 => save!(32, |a, e| a | !e),
        Opcode::S_ANDN1_WREXEC_B64 | Opcode::S_AND_NOT0_WREXEC_B64 => write!(64, |a, e| !a & e),
        Opcode::S_ANDN1_WREXEC_B32 | Opcode::S_AND_NOT0_WREXEC_B32 => write!(32, |a, e| !a & e),
        Opcode::S_ANDN2_WREXEC_B64 | Opcode::S_AND_NOT1_WREXEC_B64 => write!(64, |a, e| a & !e),
        Opcode::S_ANDN2_WREXEC_B32 | Opcode::S_AND_NOT1_WREXEC_B32 => write!(32, |a, e| a & !e),
        _ => return None,
    })
}
