//! What waits wait for.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::instruction::{CounterId, Event};
use wavetap_base::entity::InstId;

/// Something that is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Whatever the caller had in flight when it called this function.
    Caller,
    /// An instruction of this body.
    Inst(InstId),
    /// Whatever this call left in flight.
    Callee(InstId),
}

/// How sure it is that a wait waits for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitCertainty {
    /// On every path.
    Must,
    /// On some path.
    May,
    /// One of several that complete out of order.
    Unordered,
    /// An invalidation of caches, if the hardware counts it: compilers take it that it does not.
    IfCounted,
}

/// One operation that a wait waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitedOperation {
    /// The operation.
    pub operation: Operation,
    /// How sure that is.
    pub certainty: WaitCertainty,
    /// What of it is waited for.
    pub event: Event,
    /// A younger instruction of its in-order unit that counts in the counter in its place: the operation has no counter
    /// of its own, and is complete when that one is.
    pub covered_by: Option<InstId>,
}

/// One counter that one instruction waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The instruction.
    pub inst: InstId,
    /// The counter.
    pub counter: CounterId,
    /// How many may stay in flight.
    pub count: u8,
    /// As the vendor's assembler writes it, where it is not `counter(count)`.
    pub name: Option<Cow<'static, str>>,
    /// What it waits for, ascending.
    pub operations: Vec<WaitedOperation>,
}
