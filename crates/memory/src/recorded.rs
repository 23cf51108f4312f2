//! Accesses that were recorded while a kernel ran, by an emulator or by inserted code: which lanes went where.

use std::collections::{BTreeMap, BTreeSet};

use crate::accesses::{Operation, Space};
use wavetap_amdgpu::Target;

/// An access of a wave that was recorded: an execution of an instruction, or, of one that takes two addresses of a
/// lane, of one of the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The instruction, where it is in the original code object.
    pub address: u64,
    /// The dispatch, by its number among those of the kernel.
    pub dispatch: u32,
    /// The workgroup's id.
    pub workgroup: [u32; 3],
    /// The wave, by its number in the workgroup.
    pub wave: u32,
    /// [`Space::Global`], [`Space::Lds`] or [`Space::Scratch`], as the addresses say.
    pub space: Space,
    /// What is done.
    pub operation: Operation,
    /// Bytes at each address of a lane.
    pub bytes: u32,
    /// The lanes that were active.
    pub lanes: u64,
    /// Their addresses, from the first active lane on: one for each bit of `lanes`. Those of LDS begin at 0.
    pub addresses: Vec<u64>,
}

/// Memory that was allocated while the kernel ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    /// Its first byte.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// Its number, in the order of allocation.
    pub ordinal: u32,
    /// A symbol, or the name of the argument that points to it, if either is known.
    pub name: Option<String>,
}

/// The workgroups of a dispatch, of which some were recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedGrid {
    /// Workgroups in x, y, z.
    pub workgroups: [u32; 3],
    /// The ids of those that were recorded.
    pub recorded: BTreeSet<[u32; 3]>,
}

/// What was recorded of a kernel, and what its analysis needs besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedKernel {
    /// With the wave size of the kernel.
    pub target: Target,
    /// Waves of a workgroup that is not at the end of the grid.
    pub waves: u32,
    /// The grids of dispatches, by the number of the dispatch: which neighbours of a workgroup were recorded as well.
    pub grids: BTreeMap<u32, RecordedGrid>,
    /// Workgroups of the dispatches that were recorded, whether they themselves were recorded or not.
    pub workgroups: u64,
    /// The accesses; those of a wave are in the order of execution.
    pub records: Vec<Recorded>,
    /// Executions for which there was no room, by the instruction's address.
    pub dropped: BTreeMap<u64, u64>,
    /// Executions that were recorded and whose addresses do not follow from that: through descriptors that are not of
    /// plain memory, or at the end of what one describes.
    pub unresolved: u64,
    /// By rising base; they do not overlap.
    pub allocations: Vec<Allocation>,
}

impl RecordedKernel {
    /// Lanes of a wave.
    #[must_use]
    pub fn lanes(&self) -> u32 {
        self.target.wave_size()
    }

    /// Bytes of a line of the vector L1 cache.
    #[must_use]
    pub fn line_bytes(&self) -> u32 {
        self.target.l1_line_bytes()
    }

    /// The allocation that has this address, by its index.
    #[must_use]
    pub fn allocation_of(&self, address: u64) -> Option<usize> {
        let after = self.allocations.partition_point(|allocation| allocation.base <= address);
        let index = after.checked_sub(1)?;
        let allocation = &self.allocations[index];
        (address - allocation.base < allocation.size).then_some(index)
    }
}

/// Records for tests.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Global memory of a mebibyte, which tests call address 0.
    pub(crate) const BASE: u64 = 0x10_0000;

    /// A load of lanes of wave 0 at places from [`BASE`] on.
    pub(crate) fn record(address: u64, bytes: u32, lanes: u64, place: impl Fn(u64) -> u64) -> Recorded {
        let each = (0..64).filter(|lane| lanes >> lane & 1 != 0);
        Recorded {
            address,
            dispatch: 0,
            workgroup: [0; 3],
            wave: 0,
            space: Space::Global,
            operation: Operation::Load,
            bytes,
            lanes,
            addresses: each.map(|lane| BASE + place(lane)).collect(),
        }
    }

    /// A kernel of one workgroup that was recorded as a whole.
    pub(crate) fn kernel(target: &str, records: Vec<Recorded>) -> RecordedKernel {
        let waves = records.iter().map(|record| record.wave + 1).max().unwrap_or(1);
        RecordedKernel {
            target: Target::by_name(target).expect("a target"),
            waves,
            grids: BTreeMap::new(),
            workgroups: 1,
            records,
            dropped: BTreeMap::new(),
            unresolved: 0,
            allocations: vec![Allocation { base: BASE, size: 1 << 20, ordinal: 0, name: Some("a".to_owned()) }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_the_allocation_around_it() {
        let allocation = |base, size| Allocation { base, size, ordinal: 0, name: None };
        let mut kernel = testing::kernel("gfx90a", vec![]);
        kernel.allocations = vec![allocation(0x100, 0x10), allocation(0x200, 0x80)];
        let of = |address| kernel.allocation_of(address);
        assert_eq!([of(0xff), of(0x100), of(0x10f), of(0x110)], [None, Some(0), Some(0), None]);
        assert_eq!([of(0x200), of(0x27f), of(0x280)], [Some(1), Some(1), None]);
        assert_eq!((kernel.lanes(), kernel.line_bytes()), (64, 64));
    }
}
