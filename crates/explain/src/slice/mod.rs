//! A slice as data.

mod compare;
mod convert;
mod json;
mod reading;

pub use compare::{
    COMPARISON_SCHEMA, ComparedCause, ComparedKernel, KernelVersion, LoneKernel, ShareBasis, SliceComparison,
    VersionCause, compare,
};
pub use json::{Chain, ForeignSamples, GivenSamples, KernelSamples, KernelSlice, SCHEMA, Slice};
pub use wavetap_memory::WorkgroupSource;
pub use wavetap_slice::counts::CountSource;
pub use wavetap_slice::{
    Ambiguous, Blame, Candidate, Class, Confidence, Coverage, Cycles, Edge, Evidence, Inlined, LaneAccess,
    OperationSlice, SampledPlace, SelfBlame, Step, WaitCertainty, WaitSlice,
};
