//! The memory of a GPU as a session accesses it: copied by the runtime, never touched by the host itself.

use wavetap::collect::memory::{DeviceMemory, MemoryError, Operation};

use crate::api::Api;

/// Allocations of the runtime begin at multiples of this.
const PAGE: u64 = 4096;

/// The memory of one GPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentMemory<'a> {
    pub(crate) api: &'a Api,
    pub(crate) agent: u64,
}

fn refused(operation: Operation, address: u64, size: u64, reason: String) -> MemoryError {
    MemoryError { operation, address, size, reason }
}

impl DeviceMemory for AgentMemory<'_> {
    fn alloc(&mut self, size: u64, align: u64) -> Result<u64, MemoryError> {
        let allocate = || {
            if align > PAGE {
                return Err(format!("the runtime aligns to {PAGE} bytes, {align} were wanted"));
            }
            let bytes = usize::try_from(size).map_err(|_| "it is more than there are addresses".to_owned())?;
            self.api.allocate(self.api.device_pool(self.agent)?, bytes.max(1))
        };
        allocate().map_err(|reason| refused(Operation::Alloc, 0, size, reason))
    }

    fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        self.api.free(address).map_err(|reason| refused(Operation::Free, address, 0, reason))
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let size = into.len() as u64;
        self.api.read_memory(address, into).map_err(|reason| refused(Operation::Read, address, size, reason))
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        let size = bytes.len() as u64;
        self.api.write_memory(address, bytes).map_err(|reason| refused(Operation::Write, address, size, reason))
    }
}
