//! The memory of an emulated device as a backend of [`crate::collect`].

use wavetap_collect::memory::{DeviceMemory, MemoryError, Operation};
use wavetap_emulator::{AllocationKind, Device, SHARED_APERTURE, private_aperture};
use wavetap_profile::accesses::{AllocatedRange, Apertures};

/// The memory of an emulated device.
pub struct EmulatedMemory<'d>(pub &'d mut Device);

impl DeviceMemory for EmulatedMemory<'_> {
    fn alloc(&mut self, size: u64, align: u64) -> Result<u64, MemoryError> {
        self.0.malloc(size, align).map_err(|error| refused(Operation::Alloc, 0, size, &error))
    }

    fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        self.0.free(address).map_err(|error| refused(Operation::Free, address, 0, &error))
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let size = into.len() as u64;
        self.0.read(address, into).map_err(|error| refused(Operation::Read, address, size, &error))
    }

    fn allocations(&self) -> Vec<AllocatedRange> {
        let accessible = self.0.allocations().filter(|allocation| allocation.kind != AllocationKind::Runtime);
        accessible.map(|allocation| AllocatedRange { address: allocation.address, size: allocation.size }).collect()
    }

    fn accessible(&self) -> Option<Vec<AllocatedRange>> {
        let all = self.0.allocations();
        Some(all.map(|allocation| AllocatedRange { address: allocation.address, size: allocation.size }).collect())
    }

    fn apertures(&self) -> Option<Apertures> {
        Some(Apertures { shared: SHARED_APERTURE, private: private_aperture(self.0.target()) })
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.0.write(address, bytes).map_err(|error| refused(Operation::Write, address, bytes.len() as u64, &error))
    }
}

fn refused(operation: Operation, address: u64, size: u64, error: &wavetap_base::error::Error) -> MemoryError {
    MemoryError { operation, address, size, reason: error.to_string() }
}
