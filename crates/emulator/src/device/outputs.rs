//! What dispatches leave in memory, to compare the same ones of two runs.
//!
//! Pages that a dispatch has written are those that the checks of races know, which forget what came before as soon as
//! a dispatch is ordered after everything. Memory of the host and the emulator's own is left out.

use std::hash::{DefaultHasher, Hasher};

use super::Device;
use crate::address::allocation::{Allocation, AllocationKind};
use crate::fault::MemoryAccess;
use crate::fault::last_write::LastWrite;
use crate::shadow::global::cells::PAGE;

impl Device {
    /// The memory that was written since the last dispatch that came after everything began, by rising address: in
    /// pieces that each lie within a page and an allocation. Empty unless races in memory are checked
    /// ([`Options::races`](crate::Options::races)).
    #[must_use]
    pub fn written_memory(&self) -> Vec<(u64, Vec<u8>)> {
        let Some(races) = &self.races else { return Vec::new() };
        let is_compared = |memory: &Allocation| {
            !matches!(memory.kind, AllocationKind::Foreign | AllocationKind::Runtime) && memory.size > 0
        };
        let allocations: Vec<Allocation> = self.memory.allocations().filter(is_compared).collect();
        let view = self.memory.view();
        let mut pieces = Vec::new();
        for page in races.written_pages() {
            let (start, end) = (page * PAGE, (page + 1) * PAGE);
            let first = allocations.partition_point(|memory| memory.address + memory.size <= start);
            for memory in allocations[first..].iter().take_while(|memory| memory.address < end) {
                let (from, to) = (start.max(memory.address), end.min(memory.address + memory.size));
                let mut bytes = vec![0; (to - from) as usize];
                if view.read(from, &mut bytes, MemoryAccess::Load).is_ok() {
                    pieces.push((from, bytes));
                }
            }
        }
        pieces
    }

    /// A digest of that, and of where it is.
    #[must_use]
    pub fn digest_of_written_memory(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (address, bytes) in self.written_memory() {
            hasher.write_u64(address);
            hasher.write(&bytes);
        }
        hasher.finish()
    }

    /// What has written a byte last, if it was an instruction since then.
    #[must_use]
    pub fn last_write(&mut self, address: u64) -> Option<LastWrite> {
        self.races.as_mut()?.last_write(address)
    }
}
