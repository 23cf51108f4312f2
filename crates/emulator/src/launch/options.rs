//! How a device behaves.

use std::collections::BTreeSet;
use std::sync::Arc;

use wavetap_amdgpu::EventHazards;

use crate::fault::findings::Passes;
use crate::trace::timing::Timing;

/// What a GPU has room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Residency {
    /// Its compute units.
    pub compute_units: u32,
    /// What reports call it.
    pub board: Arc<str>,
}

/// How a [`crate::Device`] behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Checks waits and hazards, fills what is undefined with random bits, schedules at random.
    pub strict: bool,
    /// Hazards that strict mode does not stop for, where a compiler is known to leave them in its code.
    pub tolerated: EventHazards,
    /// Strict mode also reports races in global memory. Has an effect on devices that were made with it.
    pub races: bool,
    /// Findings of strict mode that a dispatch goes on after ([`crate::Device::take_findings`]).
    pub passes: Passes,
    /// Strict mode also finds barriers that not all waves, or not all lanes of a wave, come to. The hardware has a
    /// meaning for these, so that results are what they are there.
    pub barriers: bool,
    /// Chooses everything random; the same seed gives the same run.
    pub seed: u64,
    /// Chooses the order of workgroups and waves in strict mode in another manner than the seed does; 0 is the usual
    /// order. What is undefined is then the same in all orders, as far as it is there when a workgroup begins.
    pub schedule: Option<u64>,
    /// Strict mode also finds workgroups that wait for one that has no room beside them. Has an effect together with
    /// [`Options::races`].
    pub residency: Option<Residency>,
    /// Wave-instructions that a dispatch may execute.
    pub fuel: u64,
    /// Collects a [`crate::Trace`] for each dispatch.
    pub trace: bool,
    /// Has the trace count the active lanes of every instruction, which takes longer.
    pub trace_lanes: bool,
    /// Collects [`crate::Origins`] for each dispatch, which then runs on one thread and takes many times as long.
    pub origins: bool,
    /// Keeps so many records at most, for each thread, of where lanes go in memory
    /// ([`crate::DispatchStats::accesses`]).
    pub accesses: usize,
    /// Notes when each wave executes the instructions at these addresses of their code objects
    /// ([`crate::DispatchStats::visits`]).
    pub watched: Arc<BTreeSet<u64>>,
    /// Megahertz of the shader clock, beside which the constant clock has 100; not 0. A kernel that waits until a clock
    /// shows a later time waits for about that time.
    pub clock_mhz: u32,
    /// Models the time that dispatches take ([`crate::DispatchStats::time`]).
    pub timing: Option<Timing>,
    /// Threads that the workgroups of a long dispatch are divided among; 0: as many as there are cores. Strict mode
    /// uses one.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            strict: true,
            tolerated: EventHazards::empty(),
            races: false,
            passes: Passes::default(),
            barriers: false,
            seed: 0,
            schedule: None,
            residency: None,
            fuel: 50_000_000_000,
            trace: false,
            trace_lanes: false,
            origins: false,
            accesses: 0,
            watched: Arc::default(),
            clock_mhz: 2000,
            timing: None,
            threads: 0,
        }
    }
}
