//! Reasons of stalls that samples give, in terms that all vendors share.

/// Why a wave did not issue its next instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StallReason {
    /// An operation in flight, at a wait counter, a scoreboard or a token: `WAITCNT`, `long_sb`, `short_sb`,
    /// `SbidStall`.
    InFlight,
    /// A result of fixed latency: `ALU_DEPENDENCY`, `wait`, `DistStall`.
    Dependency,
    /// Other waves of the workgroup, or a fence: `BARRIER_WAIT`, `barrier`, `membar`, `SyncStall`.
    Barrier,
    /// The next instruction was not there yet: `NO_INSTRUCTION_AVAILABLE`, `no_inst`, `InstrFetchStall`.
    InstructionFetch,
    /// Another wave was issued first: `ARBITER_NOT_WIN`, `not_selected`.
    IssueContention,
    /// The unit or the queue that it needs was full: `ARBITER_WIN_EX_STALL`, `lg`, `mio`, `tex`, `math`, `SendStall`,
    /// `PipeStall`.
    BusyPipe,
    /// The program said so: `SLEEP_WAIT`, `sleep`.
    Sleep,
    /// Anything else: `drain`, `branch_resolving`, `dispatch`, `OtherStall`.
    Other,
}
