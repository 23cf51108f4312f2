//! Which registers code touches at all.

use super::regset::RegSet;
use crate::cfg::Program;
use crate::isa::{self, Inst};
use crate::kernel::{Body, Image, SET_VGPR_MSB};

/// The registers that some code names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsedRegisters {
    /// Every register that is read or written, implicit ones included.
    pub named: RegSet,
    /// Whether registers are also chosen at run time (`v_movrel*`, `s_movrel*`, `s_set_gpr_idx_on`): then any register inside the allocation may
    /// be used, and only registers behind the allocation are unused.
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
        let indexed = chooses_registers(inst) || inst.name() == SET_VGPR_MSB;
        UsedRegisters { named: inst.reads().chain(inst.writes()).collect(), indexed }
    }

    /// The registers that one body names. Its callees are not looked at.
    #[must_use]
    pub fn of_body(body: &Body) -> UsedRegisters {
        let indexed = body.insts().iter().any(chooses_registers);
        let named = body.ids().flat_map(|id| body.reads(id).chain(body.writes(id))).collect();
        UsedRegisters { named, indexed }
    }
}

/// Whether the instruction makes registers depend on values.
fn chooses_registers(inst: &Inst) -> bool {
    inst.name().contains("_movrel") || inst.name().starts_with("v_swaprel") || inst.name().starts_with("s_set_gpr_idx")
}

/// The registers that any code of the object may touch.
///
/// Every decoded body counts. Where calls have unknown targets or a body could not be decoded, so that there may be code that no body covers, every
/// word of the executable ranges is decoded as well, whatever it is: that can only add registers.
#[must_use]
pub fn used_registers(program: &Program, image: &Image<'_>) -> UsedRegisters {
    let mut used = program.bodies().iter().map(UsedRegisters::of_body).fold(UsedRegisters::default(), UsedRegisters::union);
    if program.has_unknown_calls() || !program.undecodable().is_empty() {
        for (_, bytes) in image.code() {
            // Every dword is tried as a start: code behind data is in no known phase.
            let mut inst = Inst::blank();
            for start in (0..bytes.len()).step_by(4) {
                if isa::decode_into(&mut inst, program.target(), &bytes[start..]).is_ok() {
                    used = used.union(UsedRegisters::of(&inst));
                }
            }
        }
    }
    used
}
