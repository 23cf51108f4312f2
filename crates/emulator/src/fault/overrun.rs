//! Accesses past the end of what was requested, within what is allocated.

use super::MemoryAccess;
use crate::address::CodeAddress;
use crate::address::allocation::Allocation;

/// An access past the end of what the program requested, within what the hardware allocates for it: outside strict mode
/// it is let be, as GPUs do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overrun {
    /// The instruction.
    pub place: CodeAddress,
    /// It, as a disassembler prints it.
    pub instruction: Box<str>,
    /// The first byte of the access: an address, or an offset in LDS.
    pub address: u64,
    /// Its size in bytes.
    pub size: u32,
    /// What ends before it.
    pub beyond: Beyond,
}

/// What ends before an [`Overrun`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// An allocation, but not its last page of 4 KiB.
    Allocation {
        /// What was being done.
        access: MemoryAccess,
        /// The allocation.
        allocation: Allocation,
    },
    /// The LDS of a workgroup, but not its last allocation unit ([`Target::lds_granule`]).
    ///
    /// [`Target::lds_granule`]: wavetap_amdgpu::Target::lds_granule
    Lds {
        /// Bytes that the dispatch requests.
        requested: u32,
        /// Bytes in whole units.
        allocated: u32,
    },
}
