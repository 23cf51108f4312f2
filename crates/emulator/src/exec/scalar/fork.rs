//! Forks of divergent control flow, which no compiler emits any more (CDNA3 and CDNA4 ISA guides, `S_CBRANCH_G_FORK`,
//! `S_CBRANCH_I_FORK`, `S_CBRANCH_JOIN`).
//!
//! Lanes part by a mask. The side with fewer of them goes on; that of the others waits on a stack in scalar
//! registers, an entry of which is a mask and an address. Its depth is in MODE. Where the sides meet, a join goes to
//! the one that waits, until the stack is as deep as it was.

use wavetap_amdgpu::{Opcode, Role, scalar};

use super::{operand32, operand64};
use crate::fault::stop::{ExecResult, undefined};
use crate::op::semantics::Semantics;
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};

/// MODE's `CSP`.
const DEPTH_SHIFT: u32 = 29;
const DEEPEST: u32 = 7;
/// Scalar registers of an entry.
const ENTRY: u32 = 4;

fn depth(core: &Core) -> u32 {
    core.wave.mode >> DEPTH_SHIFT
}

fn set_depth(core: &mut Core, depth: u32) {
    let mode = core.wave.mode & !(DEEPEST << DEPTH_SHIFT) | depth << DEPTH_SHIFT;
    core.wave.set_mode(mode);
}

fn go_to(core: &mut Core, address: u64) {
    core.wave.pc = address;
    core.wave.jumped = true;
}

fn fork(core: &mut Core, op: &Op, target: u64) -> ExecResult {
    let mask = operand64(core, op, Role::Src0)?;
    let exec = core.scalar64(op, scalar::EXEC)?;
    let (passing, failing) = (exec & mask, exec & !mask);
    if passing == exec {
        go_to(core, target);
        return Ok(());
    }
    if failing == exec {
        return Ok(());
    }
    let (depth, next) = (depth(core), op.next);
    if depth == DEEPEST {
        return undefined("a fork within seven others");
    }
    let passes_wait = failing.count_ones() < passing.count_ones();
    let (stays, waits, address) = if passes_wait { (failing, passing, target) } else { (passing, failing, next) };
    let first = (ENTRY * depth) as u16;
    core.set_scalar64(op, first, waits)?;
    core.set_scalar64(op, first + 2, address)?;
    if core.launch.strict {
        (first..first + ENTRY as u16).for_each(|code| core.wave.checks.init_shadow.set_scalar(code, 0));
    }
    set_depth(core, depth + 1);
    core.set_scalar64(op, scalar::EXEC, stays)?;
    if !passes_wait {
        go_to(core, target);
    }
    Ok(())
}

fn join(core: &mut Core, op: &Op) -> ExecResult {
    let (saved, depth) = (operand32(core, op, Role::Src0)?, depth(core));
    if depth == saved {
        return Ok(());
    }
    if depth == 0 {
        return undefined("a join without a fork");
    }
    let first = (ENTRY * (depth - 1)) as u16;
    let (exec, address) = (core.scalar64(op, first)?, core.scalar64(op, first + 2)?);
    set_depth(core, depth - 1);
    core.set_scalar64(op, scalar::EXEC, exec)?;
    go_to(core, address);
    Ok(())
}

/// The meaning of such an instruction.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::S_CBRANCH_G_FORK => (
            |core, op| {
                let target = operand64(core, op, Role::Src1)?;
                fork(core, op, target)
            },
            Semantics::Own,
        ),
        Opcode::S_CBRANCH_I_FORK => (|core, op| fork(core, op, op.target), Semantics::Own),
        Opcode::S_CBRANCH_JOIN => (join, Semantics::Own),
        _ => return None,
    })
}
