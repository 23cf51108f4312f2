//! A slice as data.

mod convert;
mod json;
mod reading;

pub use json::{Chain, ForeignSamples, GivenSamples, KernelSamples, KernelSlice, SCHEMA, Slice};
pub use wavetap_memory::WorkgroupSource;
pub use wavetap_slice::access::LaneAccess;
pub use wavetap_slice::counts::CountSource;
pub use wavetap_slice::latency::Cycles;
pub use wavetap_slice::{
    Ambiguous, Blame, Candidate, Confidence, Coverage, Edge, Evidence, Inlined, OperationSlice, SampledPlace,
    SelfBlame, Step, WaitCertainty, WaitSlice,
};
