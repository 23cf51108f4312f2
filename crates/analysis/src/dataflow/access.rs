//! What one instruction reads and writes, as sets, with what the operands alone do not tell.
//!
//! The transfer functions of all register analyses are made of these sets, in two directions: `reads` and `writes` are
//! never too small, `kills` is never too large. Everything that makes an access depend on run time therefore enlarges
//! the first two and shrinks the third: registers chosen by M0 or the index mode, instructions that may be skipped,
//! writes of a part (`d16`, SDWA, DPP, MODE), conditional writes. A value that survives a partial write counts as read,
//! so that an analysis that treats the write as a whole one still sees the old value used.

use super::indexing::{Indexed, Indexing};
use super::regset::RegSet;
use crate::kernel::Body;
use wavetap_amdgpu::{Branch, Flags, Inst, Memory, OpcodeFlags, Reg, RegFile, scalar};
use wavetap_base::entity::InstId;

/// The registers an instruction accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accesses {
    /// Everything it may read.
    pub reads: RegSet,
    /// Everything it may write.
    pub writes: RegSet,
    /// What it certainly overwrites as a whole: a subset of `writes`, scalar registers only.
    pub kills: RegSet,
    /// Whether what it overwrites of its vector registers is all of it, in every lane that is active. What survives of
    /// a register is among `reads`.
    whole_lanes: bool,
}

impl Accesses {
    /// The accesses of an instruction by itself. Calls and jumps say nothing here of what they lead to.
    ///
    /// `indexed` says of which operands the numbers may be others at run time ([`Indexing::at`]).
    #[must_use]
    pub fn of(inst: &Inst, indexed: Indexed) -> Accesses {
        Self::with(inst, inst.reads(), inst.writes(), indexed)
    }

    /// [`Accesses::of`] an instruction where it is: with the vector registers that it means there ([`Body::reads`]).
    #[must_use]
    pub fn at(body: &Body, id: InstId, indexing: &Indexing) -> Accesses {
        Self::with(body.inst(id), body.reads(id), body.writes(id), indexing.at(id))
    }

    /// Whether an instruction reads what [`Inst::reads`] says and nothing else, writes what [`Inst::writes`] says, and
    /// overwrites all scalar registers among that but MODE, and in every active lane the vector registers.
    pub(super) fn are_as_named(inst: &Inst, indexed: Indexed) -> bool {
        Self::are_named(inst, indexed)
            && !Self::keeps_parts(inst)
            && !inst.variant.opcode_flags.contains(OpcodeFlags::WRITE_LANE)
    }

    fn with(
        inst: &Inst,
        reads: impl Iterator<Item = Reg>,
        writes: impl Iterator<Item = Reg>,
        indexed: Indexed,
    ) -> Accesses {
        let opcode_flags = inst.variant.opcode_flags;
        // Of a vector register, some write one lane only.
        let whole_lanes = !opcode_flags.contains(OpcodeFlags::WRITE_LANE);
        let mut accesses = Accesses { reads: RegSet::EMPTY, writes: RegSet::EMPTY, kills: RegSet::EMPTY, whole_lanes };
        reads.for_each(|reg| accesses.reads.insert(reg));
        let conditional = opcode_flags.contains(OpcodeFlags::CONDITIONAL);
        writes.for_each(|reg| {
            accesses.writes.insert(reg);
            // MODE is written in parts (`s_setreg_b32` of some of its bits, `s_set_gpr_idx_on` of one).
            if reg.file == RegFile::Scalar && reg.first != scalar::MODE && !conditional {
                accesses.kills.insert(reg);
            }
        });
        if Self::keeps_parts(inst) {
            // No vector write kills; this keeps the *reads* complete.
            accesses.reads.add_vectors(&accesses.writes);
        }
        if Self::are_named(inst, indexed) {
            return accesses;
        }
        if conditional {
            accesses.reads.add_all(&accesses.writes);
        }
        if opcode_flags.contains(OpcodeFlags::SCALAR_RELATIVE) {
            // The register is the named one plus M0.
            accesses.reads.add_all(&scalars());
            if opcode_flags.contains(OpcodeFlags::SCALAR_RELATIVE_WRITE) {
                accesses.writes.add_all(&scalars());
                accesses.kills = RegSet::EMPTY;
            }
        }
        if Self::is_indexed(inst, indexed) {
            accesses.index(indexed);
        }
        if indexed.contains(Indexed::SKIPPED) {
            accesses.reads.add_vectors(&accesses.writes);
            (accesses.kills, accesses.whole_lanes) = (RegSet::EMPTY, false);
        }
        if opcode_flags.intersects(OpcodeFlags::VECTOR_RELATIVE | OpcodeFlags::SWAP_RELATIVE) {
            accesses.reads.add_vectors(&RegSet::ALL);
            accesses.writes.add_vectors(&RegSet::ALL);
            accesses.whole_lanes = false;
        }
        if inst.variant.branch == Branch::Trap {
            // The trap handler may look at anything.
            accesses.reads = RegSet::ALL;
        }
        if inst.variant.memory == Memory::Message {
            accesses.reads.insert(Reg::M0);
        }
        accesses
    }

    /// `Accesses::are_as_named`, but for vector registers that it writes: not all of them has to be overwritten, and
    /// what [`Accesses::keeps_parts`] says is read as well.
    pub fn are_named(inst: &Inst, indexed: Indexed) -> bool {
        !inst.variant.opcode_flags.intersects(SPECIAL)
            && !Self::is_indexed(inst, indexed)
            && !indexed.contains(Indexed::SKIPPED)
            && inst.variant.branch != Branch::Trap
            && inst.variant.memory != Memory::Message
    }

    /// Whether parts of the vector registers that an instruction writes survive: it reads them as well.
    pub fn keeps_parts(inst: &Inst) -> bool {
        inst.variant.flags.intersects(Flags::D16 | Flags::MFMA)
            || inst.modifiers.sdwa.is_some()
            || inst.modifiers.dpp.is_some()
    }

    /// Whether an instruction is one of those that the index mode is about.
    fn is_indexed(inst: &Inst, indexed: Indexed) -> bool {
        indexed.intersects(Indexed::OPERANDS) && inst.variant.flags.contains(Flags::VALU)
    }

    /// Adds what an index, which is not negative, may make of the vector registers that are named.
    fn index(&mut self, indexed: Indexed) {
        let named = self.reads;
        if indexed.intersects(Indexed::SOURCES) {
            self.reads.add_vectors(&from_lowest(&named));
        }
        if indexed.contains(Indexed::DESTINATION) {
            let reached = from_lowest(&self.writes);
            self.writes.add_vectors(&reached);
            // Whatever is not written stays as it was.
            self.reads.add_vectors(&reached);
            self.whole_lanes = false;
        }
    }

    /// What it overwrites in every lane that is active: as `kills`, with the vector registers. What survives of a
    /// register is among `reads`.
    #[must_use]
    pub fn lane_kills(&self) -> RegSet {
        let mut kills = self.kills;
        if self.whole_lanes {
            kills.add_vectors(&self.writes);
        }
        kills
    }
}

/// What makes the registers of an instruction others than those that it names, or their writing conditional.
const SPECIAL: OpcodeFlags = OpcodeFlags::CONDITIONAL
    .union(OpcodeFlags::SCALAR_RELATIVE)
    .union(OpcodeFlags::SCALAR_RELATIVE_WRITE)
    .union(OpcodeFlags::VECTOR_RELATIVE)
    .union(OpcodeFlags::SWAP_RELATIVE);

/// The vector registers from the lowest one of a set on, with `v0`, which stands for those that do not exist; none if
/// the set has none.
fn from_lowest(set: &RegSet) -> RegSet {
    let vector = |reg: &Reg| reg.file == RegFile::Vector;
    let Some(lowest) = set.vectors().iter().find(vector) else { return RegSet::EMPTY };
    let reached = (lowest.first..INDEXABLE).map(|number| Reg::vector(number, 1));
    reached.chain([Reg::vector(0, 1)]).collect()
}

/// Vector registers that targets with an index mode have names for.
const INDEXABLE: u16 = 256;

/// `s0..` to VCC: what an indexed scalar access can reach.
fn scalars() -> RegSet {
    (0..scalar::VCC + 2).map(|code| Reg::scalar(code, 1)).collect()
}
