//! Where lanes went in memory, access by access.

use crate::address::CodeAddress;

/// Which memory is accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessedMemory {
    /// Device memory.
    Global,
    /// The lanes' private memory.
    Scratch,
    /// LDS.
    Lds,
}

/// Where the lanes of an instruction went with one address each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRecord {
    /// The instruction.
    pub place: CodeAddress,
    /// The workgroup's id.
    pub workgroup: [u32; 3],
    /// The wave, by its number in the workgroup.
    pub wave: u32,
    /// What the addresses are of.
    pub memory: AccessedMemory,
    /// Bytes that a lane reads or writes at its address.
    pub bytes: u32,
    /// The lanes that did; an instruction of two addresses has a record for each.
    pub lanes: u64,
    /// Their addresses, from the first lane on. Those of scratch are where the lanes' private memory is.
    pub addresses: Vec<u64>,
    /// Lanes that access fewer bytes, and how many: their other bytes are out of range of a buffer.
    pub heads: Vec<(u32, u32)>,
}

/// The accesses of a dispatch, in no particular order of the waves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessRecords {
    /// Those that there was room for ([`crate::Options::accesses`]).
    pub records: Vec<AccessRecord>,
    /// How many there was none for.
    pub dropped: u64,
}

impl AccessRecords {
    /// Keeps a record, if there is room for so many.
    pub(crate) fn add(&mut self, record: AccessRecord, most: usize) {
        if self.records.len() < most {
            self.records.push(record);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds what another thread saw of the same dispatch.
    pub(crate) fn merge(&mut self, other: &AccessRecords) {
        self.records.extend_from_slice(&other.records);
        self.dropped += other.dropped;
    }
}
