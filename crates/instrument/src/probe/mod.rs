//! What is measured: one file for each probe.
//!
//! A probe finds its sites in a function and writes, with an [`Emitter`], the code that measures each of them. It knows
//! nothing of where counters are kept ([`crate::sink`]) or where registers come from ([`crate::scavenge`]).

mod blocks;
mod branches;
mod clock;
mod emitter;
pub(crate) mod latency;
pub(crate) mod memory;
pub(crate) mod table;
pub(crate) mod time;

pub(crate) use emitter::{Emitter, Measurement, Scc};

use std::sync::Arc;

use crate::facts::ClonedFunction;
use crate::placement::Quantity;
use wavetap_analysis::kernel::Stop;
use wavetap_base::entity::InstId;
use wavetap_profile::schema::KindSchema;

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeKind {
    /// Divergence of branches: every instruction that narrows EXEC, and every uniform branch.
    Branches,
    /// Executions and active lanes of every basic block.
    Blocks,
    /// Accesses to memory with the addresses of their lanes, in sampled workgroups.
    Memory,
    /// Time of every wave, and in every basic block.
    Time,
    /// Cycles from each load to the end of the wait that completes it.
    MemoryLatency,
    /// The same, where nothing else is outstanding: each load is waited for at once.
    DrainedLatency,
}

impl ProbeKind {
    /// All of them.
    pub const ALL: [ProbeKind; 6] = [
        ProbeKind::Branches,
        ProbeKind::Blocks,
        ProbeKind::Memory,
        ProbeKind::Time,
        ProbeKind::MemoryLatency,
        ProbeKind::DrainedLatency,
    ];

    /// Its name, as on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ProbeKind::Branches => "branches",
            ProbeKind::Blocks => "blocks",
            ProbeKind::Memory => "memory",
            ProbeKind::Time => "time",
            ProbeKind::MemoryLatency => "memory-latency",
            ProbeKind::DrainedLatency => "drained-latency",
        }
    }

    /// What it measures, for people.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            ProbeKind::Branches => {
                "Divergent branches, with the lanes that stay active; uniform branches, and how often they are taken"
            }
            ProbeKind::Blocks => "Executions and active lanes of every basic block",
            ProbeKind::Memory => "Addresses of the lanes of each access to memory, in sampled workgroups",
            ProbeKind::Time => "Time of every wave, and in every basic block, in cycles of the shader's clock",
            ProbeKind::MemoryLatency => {
                "Cycles from each vector load to the end of the wait that completes it, with their distribution"
            }
            ProbeKind::DrainedLatency => "The same, each load alone: inserted code waits before it and after it",
        }
    }

    /// Whether it measures how long loads take.
    #[must_use]
    pub fn measures_latency(self) -> bool {
        matches!(self, ProbeKind::MemoryLatency | ProbeKind::DrainedLatency)
    }

    /// Whether it measures by reading clocks.
    #[must_use]
    pub fn reads_clocks(self) -> bool {
        self == ProbeKind::Time || self.measures_latency()
    }

    /// The probe of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<ProbeKind> {
        ProbeKind::ALL.into_iter().find(|probe| probe.name() == name)
    }

    /// How it measures.
    pub(crate) fn probe(self) -> &'static dyn Probe {
        match self {
            ProbeKind::Branches => &branches::Branches,
            ProbeKind::Blocks => &blocks::Blocks,
            ProbeKind::Memory => &memory::Memory,
            ProbeKind::Time => &time::Time,
            ProbeKind::MemoryLatency | ProbeKind::DrainedLatency => &latency::MemoryLatency,
        }
    }
}

/// A place that a probe measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProbeSite {
    /// The instruction.
    pub(crate) inst: InstId,
    /// What it counts.
    pub(crate) kind: &'static Arc<KindSchema>,
}

/// Something to measure.
pub(crate) trait Probe: Sync {
    /// Its sites in a function, by address.
    ///
    /// # Errors
    /// Refused if one of them cannot be measured correctly.
    fn sites(&self, function: &ClonedFunction<'_>) -> Result<Vec<ProbeSite>, Stop>;

    /// What each counter of a site is made of: quantities, each times a factor. Where counters are placed, this is all
    /// that a probe says of them.
    fn counters(&self, function: &ClonedFunction<'_>, site: &ProbeSite) -> Vec<Vec<(i64, Quantity)>>;

    /// Writes the code of one site where every counter is kept.
    ///
    /// # Errors
    /// Refused if there are no registers for it; failed if an instruction cannot be built.
    fn emit(&self, site: &ProbeSite, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop>;
}
