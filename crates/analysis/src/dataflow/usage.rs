//! Which registers code touches at all.
//!
//! No fixed point: the sets are unions over instructions, regardless of control flow. They are over-approximations,
//! because inserted code may keep values in every register that is *not* in them. Where a call has an unknown target,
//! the union covers all functions and also the executable words that no body covers. These are decoded from every
//! multiple of four bytes: a word that is data, or the second half of an instruction, can only add registers.

use super::regset::RegSet;
use crate::cfg::{BodyId, Program};
use crate::kernel::{Body, BodyKind, Image};
use wavetap_amdgpu::{Inst, OpcodeFlags};

/// The registers that some code names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsedRegisters {
    /// Every register that is read or written, implicit ones included.
    pub named: RegSet,
    /// Whether registers are also chosen at run time (`v_movrel*`, `s_movrel*`, `s_set_gpr_idx_on`): then any register
    /// inside the allocation may be used, and only registers after the allocation are unused.
    pub indexed: bool,
}

impl UsedRegisters {
    /// Either's registers.
    #[must_use]
    pub fn union(self, other: UsedRegisters) -> UsedRegisters {
        UsedRegisters { named: self.named.union(other.named), indexed: self.indexed || other.indexed }
    }

    /// Of an instruction that may be reached with any state.
    fn of(inst: &Inst) -> UsedRegisters {
        let indexed = inst.variant.opcode_flags.intersects(OpcodeFlags::CHOOSES_REGISTERS | OpcodeFlags::SET_VGPR_MSB);
        UsedRegisters { named: inst.reads().chain(inst.writes()).collect(), indexed }
    }

    /// The registers that one body names. Its callees are not looked at.
    #[must_use]
    pub fn of_body(body: &Body) -> UsedRegisters {
        let indexed = body.opcode_flags().intersects(OpcodeFlags::CHOOSES_REGISTERS);
        let mut named = RegSet::EMPTY;
        for id in body.ids() {
            body.reads(id).for_each(|reg| named.insert(reg));
            body.writes(id).for_each(|reg| named.insert(reg));
        }
        UsedRegisters { named, indexed }
    }
}

/// The registers that any code of the object may touch: all bodies', and those of [`callable_registers`] where some
/// call has an unknown target or some body could not be decoded.
#[must_use]
pub fn used_registers(program: &Program, image: &Image<'_>) -> UsedRegisters {
    let used = program.bodies().iter().map(UsedRegisters::of_body).fold(UsedRegisters::default(), UsedRegisters::union);
    if program.has_unknown_calls() || !program.undecodable().is_empty() {
        return used.union(callable_registers(program, image));
    }
    used
}

/// The registers that a body and everything it may call can touch. `callable` is asked for those of code at the end of
/// an unknown pointer ([`callable_registers`]), if there is such a call.
#[must_use]
pub fn reachable_registers(program: &Program, id: BodyId, callable: impl FnOnce() -> UsedRegisters) -> UsedRegisters {
    let callees = program.callees(id);
    let bodies = callees.bodies.iter().map(|callee| program.body(*callee)).chain([program.body(id)]);
    let known = bodies.map(UsedRegisters::of_body).fold(UsedRegisters::default(), UsedRegisters::union);
    if callees.unknown { known.union(callable()) } else { known }
}

/// The registers that code at the end of an unknown pointer may touch: every function's, and those of whatever
/// executable words no body covers, taken as instructions in every phase, which can only add registers. Kernels are not
/// called.
#[must_use]
pub fn callable_registers(program: &Program, image: &Image<'_>) -> UsedRegisters {
    let functions = program.bodies().iter().filter(|body| body.kind() == BodyKind::Function);
    let mut used = functions.map(UsedRegisters::of_body).fold(UsedRegisters::default(), UsedRegisters::union);
    let decoded =
        program.bodies().iter().flat_map(|body| body.ids().map(|id| (body.address(id), body.end_address(id))));
    let mut covered: Vec<(u64, u64)> = decoded.collect();
    covered.sort_unstable();
    let mut inst = Inst::blank();
    for (start, bytes) in image.code() {
        let mut next = covered.partition_point(|(_, end)| *end <= start);
        for offset in (0..bytes.len()).step_by(4) {
            let address = start + offset as u64;
            while covered.get(next).is_some_and(|(_, end)| *end <= address) {
                next += 1;
            }
            let inside = covered.get(next).is_some_and(|(first, _)| *first <= address);
            if !inside && wavetap_amdgpu::decode_into(&mut inst, program.target(), &bytes[offset..]).is_ok() {
                used = used.union(UsedRegisters::of(&inst));
            }
        }
    }
    used
}
