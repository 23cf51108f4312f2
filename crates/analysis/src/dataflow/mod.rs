//! What holds at each point of a body: live registers, definitions that reach a use, outstanding memory operations.
//!
//! All analyses are conservative in one stated direction, and each says which:
//!
//! * [`Liveness`]: a register that is *not* live is really never read again before it is written. Vector registers are
//!   written under EXEC, so no write of one ends its life. Where a call's target is unknown, where a function returns,
//!   and at jumps to unknown places, everything is live.
//! * [`MaybeInitialized`]: a vector register that is *not* assigned really holds nothing that the program put there.
//! * [`Summaries`]: what a call may read and write, at most.
//! * [`Definitions`]: every instruction whose result may be what a use reads is found.
//! * [`Aperture`]: an access that is said to be of LDS or scratch is certainly of it.
//! * [`Waits`]: an operation that is not listed as pending is really complete.

mod access;
mod completion;
mod definitions;
mod exec_masks;
mod flat_memory;
mod indexing;
mod lane_values;
mod liveness;
mod maybe_initialized;
mod pending;
mod private_segment;
mod regset;
mod ssa;
mod summary;
mod usage;
mod waits;

pub use access::Accesses;
pub use completion::{
    CompletionOrder, FlatMemory, WrittenRegs, completion_order, counters_of, may_not_count, written_by,
};
pub use definitions::{Definition, Definitions, SsaDef, ValueId};
pub use flat_memory::Aperture;
pub use indexing::{Indexed, Indexing};
pub use lane_values::{LaneSum, LaneValue, LaneValues, Offsets, Opaque, Symbol, Term, WaveShape};
pub use liveness::Liveness;
pub use maybe_initialized::MaybeInitialized;
pub use private_segment::accesses_private_segment;
pub use regset::RegSet;
pub use summary::{Summaries, Summary};
pub use usage::{UsedRegisters, callable_registers, reachable_registers, used_registers};
pub use waits::{Certainty, MOST, Operation, PendingOperation, Wait, WaitSummaries, WaitedOperation, Waits};

#[cfg(test)]
mod tests;
