//! What is known of a kernel that findings, and what bounds it, are found in.

use crate::Kernel;
use crate::code::ExecutedCode;
use crate::launches::LaunchTable;
use crate::memory::{KernelMemory, MemoryAccess};
use wavetap_profile::time::KernelTime;

/// What findings are found in.
pub(super) struct Subject<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) launches: &'a LaunchTable,
    pub(super) time: Option<&'a KernelTime>,
    pub(super) memory: Option<&'a KernelMemory>,
    pub(super) code: Option<&'a ExecutedCode>,
    /// What its work takes, where no time is modelled and that is known.
    pub(super) cycles: Option<Cycles>,
}

impl Subject<'_> {
    /// Active lanes of an instruction on average; those of a whole wave where that is not known.
    pub(super) fn active_lanes(&self, address: u64) -> f64 {
        let known = self.code.and_then(|code| code.average_lanes(address));
        known.unwrap_or_else(|| f64::from(self.kernel.wave_size().unwrap_or(0)))
    }

    /// Lines of L1 that an execution of an access takes at least, if its lanes access different bytes.
    pub(super) fn least_lines(&self, access: &MemoryAccess) -> f64 {
        let line = f64::from(self.memory.map_or(0, |memory| memory.line_bytes).max(1));
        let bytes = f64::from(access.bytes.max(1)) * f64::from(access.addresses.max(1));
        (self.active_lanes(access.address) * bytes / line).max(1.0)
    }

    /// Where no time is modelled, the part of it that a kernel spends on accesses of memory and LDS, by what is
    /// counted.
    pub(super) fn part_of_accesses(&self) -> f64 {
        self.cycles.map_or(1.0, |cycles| cycles.part_of_memory().max(cycles.part_of_lds()))
    }
}

/// Cycles of the whole machine that the work of a kernel takes of each part.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Cycles {
    pub(super) vector_alu: f64,
    pub(super) scalar: f64,
    pub(super) lds: f64,
    pub(super) matrix: f64,
    /// If no cache has a line.
    pub(super) memory: f64,
}

impl Cycles {
    /// The part of all that is memory.
    pub(super) fn part_of_memory(&self) -> f64 {
        self.memory / (self.memory + self.vector_alu.max(self.scalar) + self.lds + self.matrix).max(f64::MIN_POSITIVE)
    }

    /// The part of all that is LDS.
    pub(super) fn part_of_lds(&self) -> f64 {
        self.lds / (self.lds + self.vector_alu.max(self.scalar) + self.matrix).max(f64::MIN_POSITIVE)
    }
}
