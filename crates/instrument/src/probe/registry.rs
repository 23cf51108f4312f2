//! The probes of this crate, by name. A new one is a line here.

use super::Probe;
use super::blocks::Blocks;
use super::bounds::Bounds;
use super::branches::Branches;
use super::latency::MemoryLatency;
use super::memory::Memory;
use super::time::Time;
use super::values::Values;

/// Divergence of branches: every instruction that narrows EXEC, and every uniform branch.
pub const BRANCHES: &dyn Probe = &Branches;
/// Executions and active lanes of every basic block.
pub const BLOCKS: &dyn Probe = &Blocks;
/// Accesses to memory with the addresses of their lanes, in sampled workgroups.
pub const MEMORY: &dyn Probe = &Memory;
/// Time of every wave, and in every basic block.
pub const TIME: &dyn Probe = &Time;
/// Cycles from each load to the end of the wait that completes it.
pub const MEMORY_LATENCY: &dyn Probe = &MemoryLatency { drains_all: false };
/// The same, where nothing else is outstanding: each load is waited for at once.
pub const DRAINED_LATENCY: &dyn Probe = &MemoryLatency { drains_all: true };

/// Loads whose value is the same in all lanes, or what the wave has loaded there before.
pub const VALUES: &dyn Probe = &Values;

/// Accesses to global memory outside of what is allocated.
pub const BOUNDS: &dyn Probe = &Bounds { drops: false };
/// The same, and lanes out of bounds do not execute the access.
pub const BOUNDS_DROP: &dyn Probe = &Bounds { drops: true };

/// All of them, in the order of `--help`.
pub const ALL: &[&dyn Probe] =
    &[BRANCHES, BLOCKS, MEMORY, TIME, MEMORY_LATENCY, DRAINED_LATENCY, VALUES, BOUNDS, BOUNDS_DROP];

/// The probe of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Probe> {
    ALL.iter().copied().find(|probe| probe.name() == name)
}
