//! Reads past the end of an allocation, within its last page.

use super::MemoryAccess;
use crate::address::CodeAddress;
use crate::address::allocation::Allocation;

/// An access past the end of an allocation, but not of its last page of 4 KiB: outside strict mode it is let be, as
/// GPUs do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overrun {
    /// The instruction.
    pub place: CodeAddress,
    /// It, as a disassembler prints it.
    pub instruction: Box<str>,
    /// The first byte of the access.
    pub address: u64,
    /// Its size in bytes.
    pub size: u32,
    /// What was being done.
    pub access: MemoryAccess,
    /// The allocation.
    pub allocation: Allocation,
}
