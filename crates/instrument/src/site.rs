//! The places that probes measure.

use std::sync::Arc;

use wavetap_base::entity::InstId;
use wavetap_profile::schema::KindSchema;

/// A place that a probe measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeSite {
    /// The instruction.
    pub inst: InstId,
    /// What it counts.
    pub kind: &'static Arc<KindSchema>,
}

/// A site of one function, its probe, and the offset of its counters in a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedSite {
    /// The index of the probe among those that measure the kernel.
    pub(crate) probe: usize,
    pub(crate) site: ProbeSite,
    pub(crate) offset: u32,
}

/// The counters of a site.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counters {
    /// Offset of the first in the record.
    pub(crate) offset: u32,
    /// How many.
    pub(crate) count: u32,
}

impl PlacedSite {
    /// Its counters.
    pub(crate) fn counters(&self) -> Counters {
        Counters { offset: self.offset, count: self.site.kind.counters() }
    }
}
