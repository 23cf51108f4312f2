//! What checks dependences of vector registers between VALU and memory (`HW_REG_WAVE_SCHED_MODE`, gfx12).
//!
//! Two bits of a hardware register let a wave run without some of the hardware's checks: code then waits by itself
//! (`s_wait_alu`) before vector memory, LDS and exports use what vector instructions write, and before a register is
//! overwritten that those have yet to read. Generators of matrix products switch that on for their main loops. A wave
//! starts with all checks (LLVM, SIInsertWaitcnts, "expert scheduling mode 2").
//!
//! Forward over the control-flow graph. Functions start with all checks, too: who calls one without them is not
//! followed.

use super::vgpr_msb;
use crate::kernel::{Body, Instructions};
use crate::solver::{Analysis, Lattice, solve};
use wavetap_amdgpu::{Inst, OpcodeFlags};
use wavetap_base::entity::InstId;

/// What checks these dependences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// The hardware.
    Hardware,
    /// Code.
    Software,
    /// It depends on the path or on a value, or the mode is one of which nothing is known.
    Unknown,
}

/// Paths that differ are unknown.
impl Lattice for Scheduling {
    fn join(&mut self, other: &Scheduling) -> bool {
        let changed = *self != *other && *self != Scheduling::Unknown;
        if changed {
            *self = Scheduling::Unknown;
        }
        changed
    }
}

/// The mode before each instruction.
struct Modes<'a>(&'a Body);

impl Analysis for Modes<'_> {
    type Node = InstId;
    type State = Scheduling;

    fn transfer(&mut self, id: InstId, state: &mut Scheduling) {
        *state = after(self.0, id, *state);
    }

    fn join(&mut self, _: InstId, state: &mut Scheduling, incoming: &Scheduling) -> bool {
        state.join(incoming)
    }
}

/// The bits of the register that are followed: DEP_MODE.
const BITS: std::ops::Range<u32> = 0..2;
/// DEP_MODE of a wave that starts: the hardware checks all dependences.
pub const ALL_CHECKS: u32 = 0;
/// DEP_MODE without the checks that expert scheduling replaces.
pub const FEWER_CHECKS: u32 = 2;

/// Whether an instruction sets the mode; to what.
fn set_by(body: &Body, inst: &Inst) -> Option<Scheduling> {
    let number = inst.sets_hwreg()?;
    if body.target().scheduling_mode_hwreg()? != number {
        return None;
    }
    let bits = inst.hardware_register().map(|(_, bits)| bits);
    Some(match (bits, vgpr_msb::literal(inst)) {
        (Some(BITS), Some(ALL_CHECKS)) => Scheduling::Hardware,
        (Some(BITS), Some(FEWER_CHECKS)) => Scheduling::Software,
        _ => Scheduling::Unknown,
    })
}

/// The state after an instruction.
pub(super) fn after(body: &Body, id: InstId, before: Scheduling) -> Scheduling {
    set_by(body, body.inst(id)).unwrap_or(before)
}

/// The state before each instruction of a body; empty if nothing sets it.
pub(super) fn states(body: &Body) -> Vec<Scheduling> {
    let sets = body.opcode_flags().contains(OpcodeFlags::HARDWARE_REGISTER)
        && body.insts().iter().any(|inst| set_by(body, inst).is_some());
    if !sets {
        return Vec::new();
    }
    let before = solve(&Instructions::of(body), &mut Modes(body), [(body.entry(), Scheduling::Hardware)]);
    before.into_iter().map(|state| state.unwrap_or(Scheduling::Unknown)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::assembly::{Listing, Op, branch_scc1, end, op};
    use crate::kernel::{BodyKind, Image};
    use wavetap_amdgpu::Target;

    /// Sets bits of the hardware register.
    fn set(first: i64, count: i64, value: u32) -> Op {
        op("s_setreg_imm32_b32").literal(value).imm(26 | first << 6 | (count - 1) << 11)
    }

    fn states_of(target: &str, listing: Listing) -> Vec<Scheduling> {
        let target = Target::by_name(target).expect("a target");
        let body = listing.try_body_for(target, &Image::new(), BodyKind::Kernel, 0).expect("a body");
        body.ids().map(|id| body.scheduling_before(id)).collect()
    }

    #[test]
    fn it_lasts_until_it_is_set_again() {
        use Scheduling::{Hardware, Software, Unknown};
        let listing =
            Listing::at(0).push(op("s_nop")).push(set(0, 2, 2)).push(op("s_nop")).push(set(0, 2, 0)).push(end());
        assert_eq!(states_of("gfx1200", listing), [Hardware, Hardware, Software, Software, Hardware]);
        // Another mode, other bits, a target whose mode is not known.
        for (first, count, value) in [(0, 2, 1), (0, 2, 3), (0, 1, 0), (1, 1, 1), (0, 32, 2)] {
            let listing = Listing::at(0).push(set(first, count, value)).push(end());
            assert_eq!(states_of("gfx1200", listing), [Hardware, Unknown], "{first} {count} {value}");
        }
        for (target, after) in [("gfx1250", Software), ("gfx1251", Software), ("gfx1100", Hardware)] {
            let listing = Listing::at(0).push(set(0, 2, 2)).push(end());
            assert_eq!(states_of(target, listing), [Hardware, after], "{target}");
        }
    }

    #[test]
    fn paths_must_agree() {
        use Scheduling::{Hardware, Unknown};
        let listing = Listing::at(0)
            .push(branch_scc1("there"))
            .push(set(0, 2, 2))
            .label("there")
            .push(op("s_nop"))
            .push(set(0, 2, 0))
            .push(end());
        assert_eq!(states_of("gfx1201", listing), [Hardware, Hardware, Unknown, Unknown, Hardware]);
    }
}
