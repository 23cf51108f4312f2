//! A slice as data.

mod convert;
mod json;
mod names;
mod reading;

pub use json::{
    Ambiguous, Blame, Candidate, Chain, Confidence, CountSource, Coverage, Cycles, Edge, Evidence, ForeignSamples,
    GivenSamples, Inlined, KernelSamples, KernelSlice, LaneAccess, OperationSlice, SCHEMA, SampledPlace, SelfBlame,
    Slice, Step, WaitCertainty, WaitSlice, WorkgroupSource,
};
