//! What is asked for of a kernel, and what comes out: data, of which all else in this crate is the making.

use smallvec::SmallVec;

use wavetap_amdgpu::Loss;
use wavetap_analysis::kernel::edit::Edits;
use wavetap_object::code_object::{KernelDescriptor, KernelMetadata};
use wavetap_profile::map::{self, CounterMode, Resources, Site};
use wavetap_profile::placement::{CounterPlacement, Placement};

/// What to instrument, and how.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Where counters live while it runs.
    pub mode: CounterMode,
    /// Which counters are kept.
    pub placement: CounterPlacement,
    /// Its index in the site table.
    pub index: u32,
    /// Virtual address of its control block in the rewritten object.
    pub control: u64,
    /// Whether each wave has a record of its own. Otherwise waves share a few, by where they run, which is cheaper.
    /// Counters in registers are always shared.
    pub per_wave: bool,
    /// How many of a SIMD's waves the kernel may lose to its counters, at most; any number if not said.
    pub max_occupancy_loss: Option<u32>,
}

/// Numbers of a kernel's metadata that change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetadataChange {
    /// `.sgpr_count`
    pub sgpr_count: u64,
    /// `.vgpr_count`
    pub vgpr_count: u64,
    /// `.agpr_count`
    pub agpr_count: u64,
    /// `.group_segment_fixed_size`
    pub group_segment_fixed_size: u64,
    /// `.private_segment_fixed_size`
    pub private_segment_fixed_size: u64,
}

impl MetadataChange {
    /// What is to be written into the metadata of the kernel, of which it says `before` so far.
    #[must_use]
    pub fn numbers(&self, before: &KernelMetadata) -> SmallVec<[(&'static str, u64); 5]> {
        let always = [
            (".sgpr_count", self.sgpr_count),
            (".vgpr_count", self.vgpr_count),
            (".group_segment_fixed_size", self.group_segment_fixed_size),
        ];
        // Few kernels need more of these, and not all metadata have them.
        let seldom = [
            (".agpr_count", self.agpr_count, before.agpr_count),
            (".private_segment_fixed_size", self.private_segment_fixed_size, before.private_segment_fixed_size),
        ];
        let changed = seldom.into_iter().filter(|(_, now, before)| now != before).map(|(key, now, _)| (key, now));
        always.into_iter().chain(changed).collect()
    }
}

/// A planned instrumentation of one kernel.
#[derive(Debug, Clone)]
pub struct Instrumented {
    /// What to insert.
    pub edits: Edits,
    /// The descriptor, but for its entry.
    pub descriptor: KernelDescriptor,
    /// The metadata's new numbers.
    pub metadata: MetadataChange,
    /// The sites, in the order of their counters: the kernel's by address, then those of its functions. Without source
    /// lines.
    pub sites: Vec<Site>,
    /// Size of the kernel's records.
    pub record_bytes: u32,
    /// How many records waves share by where they run; none where each has its own, or their number is that of the
    /// placement.
    pub slots: Option<u32>,
    /// Whether waves of sampled workgroups alone have records, with slots for accesses after the counters.
    pub records_accesses: bool,
    /// Functions whose branches are not counted, or not always: their originals may run. `?` stands for unknown ones.
    pub uncounted_callees: Vec<String>,
    /// Which counters its records have, where the others follow from these.
    pub placement: Option<Placement>,
    /// The placement in place of the one that was asked for, where that takes too much work to find.
    pub placement_fallback: Option<CounterPlacement>,
    /// Where the vector registers come from.
    pub vector_registers: map::VectorSource,
    /// Where its counters are: in memory, where LDS was asked for and has no room.
    pub mode: CounterMode,
    /// What the kernel needs as it was.
    pub before: Resources,
    /// What it needs with the edits; the size of the new code is not known here and 0.
    pub after: Resources,
    /// What it costs in occupancy with the workgroup size for which that is most.
    pub loss: Loss,
    /// Cycles that inserted code takes of a wave: a prediction, to compare counter modes with.
    pub added_cycles: u64,
}
