//! Functions that end the wave instead of returning.
//!
//! Reachability from the entry over the body's own edges, not a fixed point: the search stops at the first instruction
//! that ends the wave, and does not continue after `s_trap 2`, after which the wave never runs again. Callees are not
//! searched here.

use super::{Body, Flow};
use wavetap_amdgpu::{Opcode, Role, Value};

/// `s_trap 2` stops the wave for good and puts the queue into an error state (AMDGPUUsage, "Trap Handler ABI").
const TRAP_ABORT: i64 = 2;

/// An instruction of a function that ends the wave, if control can reach one. It does not go on after an abort.
#[must_use]
pub fn end_of_wave(body: &Body) -> Option<u64> {
    let mut seen = vec![false; body.len()];
    let mut work = vec![body.entry()];
    // Reachability: the search ends at the first end of the wave.
    while let Some(inst) = work.pop() {
        if std::mem::replace(&mut seen[inst.index()], true) {
            continue;
        }
        if body.flow(inst) == Flow::End {
            return Some(body.address(inst));
        }
        let number = body.inst(inst).operand(Role::Simm16).map(|operand| operand.value);
        if body.inst(inst).opcode() != Opcode::S_TRAP || number != Some(Value::Imm(TRAP_ABORT)) {
            work.extend(body.successors(inst));
        }
    }
    None
}
