//! Instrumentation: what is measured, as edits of a kernel, and what that needs of registers, LDS and the kernel
//! descriptor.
//!
//! [`KernelFacts`] analyses one kernel once; [`instrument`] plans it for one counter mode: a snippet at each site of
//! the probes, a prologue that finds the record, and an epilogue at each end of the wave. Nothing is placed here and
//! nothing is written; a kernel that cannot be instrumented correctly is refused with its reason.
//!
//! | folder | question |
//! |---|---|
//! | `probe` | what is measured: one file for each probe |
//! | `placement` | which counters are kept, and how the others follow from them |
//! | `sink` | where counters are kept: one file for each place |
//! | `register` | counters in registers |
//! | `scavenge` | which registers inserted code uses |
//! | `frame` | what the kernel's entry and ends do |
//! | `layout` | where original and inserted code lie |
//! | `object` | all kernels of a code object together: what is added to it |
//!
//! Inserted code keeps its state in registers that no code of the kernel, nor anything it can call, names. Those are
//! looked for inside the kernel's allocation first; then the allocation grows; then snippets scavenge what they need:
//! scalar registers, spilled to lanes of a vector register, or lanes of vector registers, spilled to scalar registers,
//! or both, spilled to AGPRs or scratch memory. No allocation is ever lowered.
//!
//! Functions that a kernel reaches by calls of known targets are cloned for it and instrumented like it.
#![forbid(unsafe_code)]

mod asm;
mod block_weights;
mod cost;
mod facts;
mod frame;
mod group_memory;
mod guards;
mod hazard_mitigation;
mod high_registers;
pub mod layout;
pub mod object;
mod placement;
mod plan;
mod probe;
mod records;
pub mod refusal;
mod register;
mod scavenge;
mod scheduling;
mod sink;
#[cfg(test)]
mod tests;
mod uncopied;

use std::sync::OnceLock;

use smallvec::SmallVec;

use wavetap_amdgpu::Loss;
use wavetap_analysis::cfg::Program;
use wavetap_analysis::dataflow::{Summaries, UsedRegisters, WaitSummaries};
use wavetap_analysis::kernel::edit::Edits;
use wavetap_analysis::kernel::{Image, Stop};
use wavetap_object::code_object::{Kernel, KernelDescriptor, KernelMetadata};
use wavetap_profile::map::{self, CounterMode, Resources, Site};
use wavetap_profile::placement::Placement;

pub use facts::KernelFacts;
pub use probe::ProbeKind;
pub use scavenge::SpillTo;
pub use scavenge::registers::{resources, resources_of};
pub use wavetap_profile::placement::CounterPlacement;

/// A code object's code with what is known of it as a whole: made once, used for each kernel.
#[derive(Debug)]
pub struct Analysis<'a> {
    program: &'a Program,
    image: &'a Image<'a>,
    summaries: Summaries,
    waits: WaitSummaries,
    /// What code at the end of an unknown pointer may touch, once something needs it.
    callable: OnceLock<UsedRegisters>,
    always_scavenge: bool,
    always_spill: Option<SpillTo>,
}

impl<'a> Analysis<'a> {
    /// Analyses what kernels share: what calls may read, write and leave outstanding.
    #[must_use]
    pub fn new(program: &'a Program, image: &'a Image<'a>) -> Analysis<'a> {
        let (summaries, waits) = (Summaries::compute(program), WaitSummaries::compute(program));
        Analysis {
            program,
            image,
            summaries,
            waits,
            callable: OnceLock::new(),
            always_scavenge: false,
            always_spill: None,
        }
    }

    /// Makes inserted code scavenge its scalar registers at each place even where some are unused. The scalar
    /// allocation then grows for the prologue alone; probes are longer.
    #[must_use]
    pub fn scavenging(self) -> Analysis<'a> {
        Analysis { always_scavenge: true, ..self }
    }

    /// Makes inserted code scavenge scalar registers and spill whole vector registers at each place even where some are
    /// unused.
    #[must_use]
    pub fn spilling(self, to: SpillTo) -> Analysis<'a> {
        Analysis { always_spill: Some(to), ..self }
    }
}

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

/// Plans the instrumentation of one kernel.
///
/// # Errors
/// Refused if it cannot be done correctly; failed if the kernel's descriptor contradicts itself or an instruction
/// cannot be built.
pub fn instrument(facts: &KernelFacts<'_, '_>, request: &Request) -> Result<Instrumented, Stop> {
    plan::cheapest(facts, request)
}

/// Whether launches of a kernel may need LDS after its static one, so that counters there could leave them none. `told`
/// says that the compiler of the code object names such kernels by an argument, as compilers do from code object
/// version 5 on; otherwise anything that looks like it counts.
///
/// # Errors
/// Refused if its code is not known.
pub fn may_have_dynamic_lds(program: &Program, kernel: &Kernel, told: bool) -> Result<bool, Stop> {
    let id = facts::find(program, kernel)?;
    Ok(kernel.metadata.as_ref().is_some_and(|metadata| group_memory::may_be_dynamic(program, id, metadata, told)))
}
