//! A slice as data.

mod convert;
mod json;
mod reading;

pub use json::{Chain, ForeignSamples, GivenSamples, KernelSamples, KernelSlice, SCHEMA, Slice};
pub use wavetap_memory::WorkgroupSource;
pub use wavetap_slice::counts::CountSource;
pub use wavetap_slice::{
    Ambiguous, Blame, Candidate, Confidence, Coverage, Cycles, Edge, Evidence, Inlined, LaneAccess, OperationSlice,
    SampledPlace, SelfBlame, Step, WaitCertainty, WaitSlice,
};
