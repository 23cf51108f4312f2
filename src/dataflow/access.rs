//! What one instruction reads and writes, as sets, with what the operands alone do not tell.

use super::regset::RegSet;
use crate::entity::InstId;
use crate::isa::{Flags, Inst, Memory, Reg, Traits};
use crate::kernel::Body;

/// The registers an instruction accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accesses {
    /// Everything it may read.
    pub reads: RegSet,
    /// Everything it may write.
    pub writes: RegSet,
    /// What it certainly overwrites as a whole: a subset of `writes`, scalar registers only.
    pub kills: RegSet,
    /// What it overwrites in every lane that is active: as `kills`, with the vector registers. What survives of a register is among `reads`.
    pub lane_kills: RegSet,
}

impl Accesses {
    /// The accesses of an instruction by itself. Calls and jumps say nothing here of what they lead to.
    ///
    /// `indexed` says that the body changes register indices at run time ([`Accesses::indexed`]).
    #[must_use]
    pub fn of(inst: &Inst, indexed: bool) -> Accesses {
        Self::with(inst, inst.reads().collect(), inst.writes().collect(), indexed)
    }

    /// [`Accesses::of`] an instruction where it is: with the vector registers that it means there ([`Body::reads`]).
    #[must_use]
    pub fn at(body: &Body, id: InstId, indexed: bool) -> Accesses {
        Self::with(body.inst(id), body.reads(id).collect(), body.writes(id).collect(), indexed)
    }

    fn with(inst: &Inst, reads: RegSet, writes: RegSet, indexed: bool) -> Accesses {
        let mut accesses = Accesses { reads, writes, kills: RegSet::EMPTY, lane_kills: writes.vectors() };
        accesses.kills = if conditional(inst) { RegSet::EMPTY } else { writes.difference(writes.vectors()) };
        // MODE is written in parts (`s_setreg_b32` of some of its bits, `s_set_gpr_idx_on` of one).
        accesses.kills.remove(Reg::scalar(crate::isa::scalar::MODE, 1));
        if conditional(inst) {
            accesses.reads = accesses.reads.union(accesses.writes);
        }
        if inst.variant.flags.intersects(Flags::D16 | Flags::MFMA) || inst.modifiers.sdwa.is_some() || inst.modifiers.dpp.is_some() {
            // Parts of the destination survive. (No vector write kills; this keeps the *reads* complete.)
            accesses.reads = accesses.reads.union(accesses.writes.vectors());
        }
        let traits = inst.variant.traits;
        if traits.contains(Traits::SCALAR_RELATIVE) {
            // The register is the named one plus M0.
            accesses.reads = accesses.reads.union(scalars());
            if traits.contains(Traits::SCALAR_RELATIVE_WRITE) {
                accesses.writes = accesses.writes.union(scalars());
                accesses.kills = RegSet::EMPTY;
            }
        }
        if traits.intersects(Traits::VECTOR_RELATIVE | Traits::SWAP_RELATIVE) || (indexed && inst.variant.flags.contains(Flags::VALU)) {
            accesses.reads = accesses.reads.union(all_vectors());
            accesses.writes = accesses.writes.union(all_vectors());
            accesses.lane_kills = RegSet::EMPTY;
        }
        if inst.variant.branch == crate::isa::Branch::Trap {
            // The trap handler may look at anything.
            accesses.reads = RegSet::ALL;
        }
        if inst.variant.memory == Memory::Message {
            accesses.reads.insert(Reg::M0);
        }
        if traits.contains(Traits::WRITE_LANE) {
            // One lane only.
            accesses.lane_kills = RegSet::EMPTY;
        }
        accesses.lane_kills = accesses.lane_kills.union(accesses.kills);
        accesses
    }

    /// Whether a body switches on VGPR indexing (`s_set_gpr_idx_on`), which lets any vector instruction access any vector register.
    #[must_use]
    pub fn indexed(body: &Body) -> bool {
        body.traits().contains(Traits::INDEX_MODE)
    }
}

/// Whether the instruction may leave its scalar destination as it was.
fn conditional(inst: &Inst) -> bool {
    inst.variant.traits.contains(Traits::CONDITIONAL)
}

fn all_vectors() -> RegSet {
    RegSet::ALL.vectors()
}

/// `s0..` to VCC: what an indexed scalar access can reach.
fn scalars() -> RegSet {
    (0..crate::isa::scalar::VCC + 2).map(|code| Reg::scalar(code, 1)).collect()
}
