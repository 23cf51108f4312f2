//! The memory of a GPU as a session accesses it: copied by the runtime. The host itself
//! touches only what it has allocated for that.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wavetap::collect::memory::{DeviceMemory, MemoryError, Operation};
use wavetap::profile::accesses::{AllocatedRange, Apertures};

use crate::api::{Api, QueueAddress};
use crate::raw;

/// Allocations of the runtime begin at multiples of this.
const PAGE: u64 = 4096;

/// Offset of bits 63:32 of flat addresses in LDS, which those in scratch follow (`amd_queue_t`).
const APERTURES: usize = 64;

/// What kernels may access of memory.
#[derive(Debug, Default)]
pub(crate) struct Allocations {
    /// What the program has allocated, by address.
    own: Mutex<BTreeMap<u64, u64>>,
    /// Other memory, by what it is removed by: first address and size. The same may be there several times.
    other: Mutex<BTreeMap<u64, Vec<(u64, u64)>>>,
}

impl Allocations {
    fn ranges(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn others(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<(u64, u64)>>> {
        self.other.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds memory that the program has not allocated of the runtime, and kernels may access: the host's, the
    /// runtime's, code objects. `key` is what [`Allocations::remove_other`] is called with.
    pub(crate) fn add_other(&self, key: u64, address: u64, size: u64) {
        self.others().entry(key).or_default().push((address, size));
    }

    /// Removes what was added last with a key.
    pub(crate) fn remove_other(&self, key: u64) {
        if let Entry::Occupied(mut known) = self.others().entry(key) {
            known.get_mut().pop();
            if known.get().is_empty() {
                known.remove();
            }
        }
    }

    /// Removes all that was added with a key.
    pub(crate) fn remove_others(&self, key: u64) {
        self.others().remove(&key);
    }

    /// All of it.
    pub(crate) fn accessible(&self) -> Vec<AllocatedRange> {
        let own = self.all();
        let others = self.others();
        let all = own.into_iter().chain(others.values().flatten().copied());
        all.map(|(address, size)| AllocatedRange { address, size }).collect()
    }

    /// First addresses and sizes.
    pub(crate) fn all(&self) -> Vec<(u64, u64)> {
        self.ranges().iter().map(|(address, size)| (*address, *size)).collect()
    }

    pub(crate) fn add(&self, address: u64, size: u64) {
        self.ranges().insert(address, size);
    }

    pub(crate) fn remove(&self, address: u64) {
        self.ranges().remove(&address);
    }
}

/// Which flat addresses of a queue's dispatches are not in global memory; none if the queue does not say so.
fn apertures(queue: QueueAddress) -> Option<Apertures> {
    let shared = raw::load::<u32>(queue + APERTURES)?;
    let private = raw::load::<u32>(queue + APERTURES + size_of::<u32>())?;
    (shared != 0 && private != 0 && shared != private).then_some(Apertures { shared, private })
}

/// The memory of one GPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentMemory<'a> {
    pub(crate) api: &'a Api,
    pub(crate) agent: u64,
    /// What the program has allocated, and the queue of the dispatch, where accesses may be recorded.
    pub(crate) accessed: Option<(&'a Allocations, QueueAddress)>,
}

impl<'a> AgentMemory<'a> {
    /// The memory of an agent, where no dispatch begins or ends.
    pub(crate) fn new(api: &'a Api, agent: u64) -> AgentMemory<'a> {
        AgentMemory { api, agent, accessed: None }
    }
}

fn refused(operation: Operation, address: u64, size: u64, reason: String) -> MemoryError {
    MemoryError { operation, address, size, reason }
}

/// Allocates by a function, which takes a size in bytes.
fn allocated(size: u64, align: u64, allocate: impl FnOnce(usize) -> Result<u64, String>) -> Result<u64, MemoryError> {
    let checked = || {
        if align > PAGE {
            return Err(format!("the runtime aligns to {PAGE} bytes, {align} were wanted"));
        }
        let bytes = usize::try_from(size).map_err(|_| "it is more than there are addresses".to_owned())?;
        allocate(bytes.max(1))
    };
    checked().map_err(|reason| refused(Operation::Alloc, 0, size, reason))
}

impl DeviceMemory for AgentMemory<'_> {
    fn alloc(&mut self, size: u64, align: u64) -> Result<u64, MemoryError> {
        allocated(size, align, |bytes| self.api.allocate(self.api.device_pool(self.agent)?, bytes))
    }

    fn alloc_visible(&mut self, size: u64, align: u64) -> Result<u64, MemoryError> {
        allocated(size, align, |bytes| self.api.allocate_host(self.agent, bytes))
    }

    fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        self.api.free(address).map_err(|reason| refused(Operation::Free, address, 0, reason))
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let size = into.len() as u64;
        self.api.read_memory(address, into).map_err(|reason| refused(Operation::Read, address, size, reason))
    }

    fn read_now(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        for (byte, at) in into.iter_mut().zip(address as usize..) {
            *byte = raw::load_shared(at);
        }
        Ok(())
    }

    fn allocations(&self) -> Vec<AllocatedRange> {
        let Some((allocations, _)) = self.accessed else { return Vec::new() };
        let range = |(address, size): (&u64, &u64)| AllocatedRange { address: *address, size: *size };
        allocations.ranges().iter().map(range).collect()
    }

    fn accessible(&self) -> Option<Vec<AllocatedRange>> {
        let (allocations, _) = self.accessed?;
        // Elsewhere kernels access whatever memory the host has.
        (!self.api.can_access_the_host()).then(|| allocations.accessible())
    }

    fn mapped_at(&self, address: u64) -> Option<AllocatedRange> {
        self.api.allocation_at(address).map(|(address, size)| AllocatedRange { address, size })
    }

    fn apertures(&self) -> Option<Apertures> {
        self.accessed.and_then(|(_, queue)| apertures(queue))
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        let size = bytes.len() as u64;
        self.api.write_memory(address, bytes).map_err(|reason| refused(Operation::Write, address, size, reason))
    }
}
