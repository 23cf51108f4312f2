//! A slice as JSON and as text.

mod convert;
mod json;
mod names;
mod reading;
mod text;

pub use json::{
    Ambiguous, Blame, Candidate, Chain, Confidence, CountSource, Coverage, Cycles, Edge, Evidence, ForeignSamples,
    GivenSamples, Inlined, KernelSamples, KernelSlice, LaneAccess, OperationSlice, SCHEMA, SampledPlace, SelfBlame,
    Slice, Step, WaitCertainty, WaitSlice, WorkgroupSource,
};
pub use text::render;
pub(crate) use text::{chain_lines, edge_word, operation_text, wait_lines};
