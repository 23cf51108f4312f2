//! What the waits of a kernel wait for, ranked by what they may cost.
//!
//! Each wait (`s_waitcnt`, a scoreboard, a token) is linked over the control-flow graph to the operations it waits for
//! ([`wavetap_code::Code::waits`]), with how often it was executed ([`counts`]) and how long such operations take
//! ([`wavetap_code::Instruction::latency`]). The product ranks the waits, and [`Chain`]s say which operation each
//! really waits for and where that comes from ([`slice_kernel`]). It is a *prediction*: nothing here was timed. Samples
//! and traces of a run say how long waves really stalled ([`slice()`]); [`mod@blame`] has the rules by which stalls are
//! divided, ours and that of [`leo`].
//!
//! Nothing here knows a vendor: code comes as [`wavetap_code::Code`]. [`SliceInputs`] go in, a [`SliceResult`] comes
//! out, which is plain data: words and JSON are made of it in `report`.
#![forbid(unsafe_code)]

pub mod blame;
pub mod counts;
mod input;
mod kernel;
pub mod leo;
mod lines;
mod result;
mod samples;
mod stall;
#[cfg(test)]
mod tests;

pub use input::{SliceInputs, slice};
pub use kernel::{KernelInputs, slice_kernel};
pub use result::{
    Ambiguous, Blame, Candidate, Cause, Chain, Confidence, Coverage, Edge, Evidence, ForeignSamples, GivenSamples,
    Inlined, KernelSamples, KernelSlice, Mismatch, OperationSlice, SampledPlace, SelfBlame, SliceResult, StallClass,
    Step, WaitSlice,
};
pub use samples::CodeToSlice;
pub use wavetap_code::{Class, Cycles, LaneAccess, WaitCertainty, WorkgroupSource};
