//! Numbers of the machine around the instructions: how many compute units, what caches hold and how far away they are.
//!
//! They are what a model of time needs; nothing that is read, printed, checked or rewritten depends on them. `isa-tables/machine.yaml` has them with their sources.

use super::target::Target;

/// A number that may not be known exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// At least.
    pub min: u32,
    /// Usually; what a model takes.
    pub typical: u32,
    /// At most.
    pub max: u32,
}

/// How many facts there are.
pub(super) const MACHINE_FACTS: usize = 32;

/// The facts of `isa-tables/machine.yaml`, in the order of `build/targets.rs`. Cycles are those of the shader clock, rates are per cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MachineFact {
    /// Compute units of the device.
    ComputeUnits,
    /// Cycles from one instruction of a wave to its next one, and of a SIMD to the next one of a kind.
    IssueInterval,
    /// Lanes that a SIMD works on in a cycle.
    ValuLanes,
    /// How many times as long as a 32-bit operation one of class `valu64` keeps the SIMD.
    RateValu64,
    /// The same of class `valu_f64`.
    RateF64,
    /// The same of class `trans`.
    RateTrans,
    /// 1 where other operations can be issued while a transcendental one runs.
    TransBeside,
    /// Operations (two for a multiplication and its addition) of a SIMD on double precision matrices; 0 where there are none.
    MatrixF64,
    /// Of single precision.
    MatrixF32,
    /// Of the shortened single precision.
    MatrixXf32,
    /// Of half precision.
    MatrixF16,
    /// Of `bf16`.
    MatrixBf16,
    /// Of 8-bit integers and floats.
    MatrixI8,
    /// Of 4- and 6-bit numbers.
    MatrixI4,
    /// Banks of LDS, 4 bytes wide.
    LdsBanks,
    /// Bytes of the vector L1 cache of a compute unit.
    L1Bytes,
    /// Its ways.
    L1Ways,
    /// Bytes that it gives.
    L1Bandwidth,
    /// Cycles from a vector memory instruction to its result, if all of it is there.
    L1Hit,
    /// Bytes of the scalar cache.
    ScalarBytes,
    /// Its ways.
    ScalarWays,
    /// Compute units that share it.
    ScalarSharers,
    /// Cycles from a scalar load to its result, if all of it is there.
    ScalarHit,
    /// Bytes of the L2 cache that a compute unit reaches.
    L2Bytes,
    /// Its ways.
    L2Ways,
    /// Bytes of its line.
    L2LineBytes,
    /// Its channels, over which lines are spread.
    L2Channels,
    /// Bytes that each of them gives or takes.
    L2Bandwidth,
    /// Cycles from an instruction to its result, if that is in L2.
    L2Hit,
    /// Bytes that memory gives or takes.
    MemoryBandwidth,
    /// Cycles from an instruction to its result, if that is in memory only.
    Memory,
    /// Cycles that an atomic operation keeps its line.
    Atomic,
}

impl Target {
    /// A number of the machine around the instructions.
    ///
    /// ```
    /// use wavetap_amdgpu::{MachineFact, Target};
    /// let target = Target::by_name("gfx90a").unwrap();
    /// assert_eq!(target.machine(MachineFact::ComputeUnits).typical, 104);
    /// ```
    #[must_use]
    pub fn machine(self, fact: MachineFact) -> Estimate {
        self.data.machine[fact as usize]
    }
}
