//! Where what an instruction reads comes from, as questions: answers are looked for only where a path leads.

use super::code::Code;
use crate::access::LaneAccess;
use wavetap_base::entity::InstId;

/// Which of the values that an instruction reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// All, the address among them, but no mask of lanes and no mode.
    All,
    /// What it stores.
    Stored,
}

/// Where the lanes of an instruction come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaskSource {
    /// The instruction that formed the mask: a divergent branch, or what wrote the guard.
    pub formed: InstId,
    /// The comparison that it took it from.
    pub compared: Option<InstId>,
}

/// Where a loaded value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A store to the same place.
    Store {
        /// The nearest.
        inst: InstId,
        /// No other may have written what is loaded.
        certain: bool,
    },
    /// The one instruction that writes this memory.
    OnlyStore(InstId),
    /// It is not known which store.
    Unknown,
}

/// Answers about one body. [`crate::Reaching`] answers from reads, writes and guards.
pub trait DataFlow {
    /// The instructions that may have written a value which `at` reads, in any order. What was there at the entry, and
    /// what calls wrote, is no instruction.
    fn producers(&self, code: &Code<'_>, at: InstId, of: Values) -> Vec<InstId>;

    /// The one instruction that wrote the mask of lanes under which `at` runs. None if several may have, and if `at`
    /// works for the whole wave.
    fn lanes_written_by(&self, _code: &Code<'_>, _at: InstId) -> Option<InstId> {
        None
    }

    /// What left `at` its lanes. None if all lanes of the wave may be there, or that is not known.
    fn mask(&self, _code: &Code<'_>, _at: InstId) -> Option<MaskSource> {
        None
    }

    /// Where the value comes from that a load gives, of memory that only the wave or its workgroup sees; none for other
    /// instructions. `executed` says whether an instruction was ever executed, as far as is known.
    fn origin(&self, _code: &Code<'_>, _load: InstId, _executed: &dyn Fn(InstId) -> bool) -> Option<Origin> {
        None
    }

    /// How the lanes of an access to global memory lie to each other. None for other instructions, and where that is
    /// not known.
    fn lane_access(&self, _code: &Code<'_>, _at: InstId) -> Option<LaneAccess> {
        None
    }

    /// Cycles that an operation takes longer than its class, because of where its lanes access memory.
    fn extra_latency(&self, _code: &Code<'_>, _at: InstId) -> u32 {
        0
    }
}
