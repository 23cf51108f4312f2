//! Instructions that change registers and memory only, without the scheduler between them.

use crate::fault::stop::ExecResult;
use crate::state::core::Core;
use crate::state::op::Op;
use crate::state::wave::Status;

/// Runs straight-line instructions one after the other; returns how many were done, and why not all were.
#[inline]
pub(super) fn run_straight_line(core: &mut Core, block: &[Op]) -> (usize, ExecResult) {
    core.wave.jumped = false;
    for (done, op) in block.iter().enumerate() {
        if let Err(stop) = (op.run)(core, op) {
            return (done, Err(stop));
        }
        core.note_overrun(op);
        debug_assert!(
            core.wave.status == Status::Running && !core.wave.jumped,
            "{} is not straight-line",
            op.inst.variant.name
        );
    }
    if let Some(last) = block.last() {
        debug_assert_eq!(core.wave.pc, block[0].pc, "an instruction that branches is not straight-line");
        core.wave.pc = last.next;
    }
    (block.len(), Ok(()))
}
