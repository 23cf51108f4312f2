//! Device memory as a backend offers it.

use std::fmt;

use wavetap_base::error::{Error, Kind};
use wavetap_profile::accesses::{AllocatedRange, Apertures};

/// The memory of a device. A backend implements it: the emulator, ROCm, a test.
pub trait DeviceMemory {
    /// Allocates `size` bytes at a multiple of `align`, a power of two. Contents are undefined.
    ///
    /// # Errors
    /// If there is not so much memory.
    fn alloc(&mut self, size: u64, align: u64) -> Result<u64, MemoryError>;

    /// As [`DeviceMemory::alloc`], in memory that [`DeviceMemory::read_now`] reads: the host's, where the device has
    /// its own.
    ///
    /// # Errors
    /// The same.
    fn alloc_visible(&mut self, size: u64, align: u64) -> Result<u64, MemoryError> {
        self.alloc(size, align)
    }

    /// Frees what [`DeviceMemory::alloc`] or [`DeviceMemory::alloc_visible`] returned.
    ///
    /// # Errors
    /// If nothing was allocated at that address.
    fn free(&mut self, address: u64) -> Result<(), MemoryError>;

    /// Copies from device memory. What kernels wrote before they ended is seen.
    ///
    /// # Errors
    /// If the range is not all allocated.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError>;

    /// Copies from what [`DeviceMemory::alloc_visible`] returned, without the device, which may have stopped. What
    /// kernels have released to the host is seen.
    ///
    /// # Errors
    /// If the range is not all allocated.
    fn read_now(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        self.read(address, into)
    }

    /// What is allocated of it, by rising address; nothing where that is not known.
    fn allocations(&self) -> Vec<AllocatedRange> {
        Vec::new()
    }

    /// All that kernels may access: that, and what the runtime has allocated for them; none where that is not known.
    fn accessible(&self) -> Option<Vec<AllocatedRange>> {
        None
    }

    /// What there is at an address, as the driver knows it, in whole pages. It may know memory that is not in
    /// [`DeviceMemory::accessible`]: none where it has nothing, or is not asked.
    fn mapped_at(&self, address: u64) -> Option<AllocatedRange> {
        let _ = address;
        None
    }

    /// Where flat addresses are of other memory than global, if that is known.
    fn apertures(&self) -> Option<Apertures> {
        None
    }

    /// Copies to device memory. Kernels that begin afterwards see it.
    ///
    /// # Errors
    /// If the range is not all allocated.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError>;
}

/// What was done with device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// [`DeviceMemory::alloc`].
    Alloc,
    /// [`DeviceMemory::free`].
    Free,
    /// [`DeviceMemory::read`].
    Read,
    /// [`DeviceMemory::write`].
    Write,
}

/// Why an operation on device memory failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryError {
    /// The operation.
    pub operation: Operation,
    /// The address; 0 for an allocation.
    pub address: u64,
    /// The size in bytes; 0 where something was freed.
    pub size: u64,
    /// What the backend says.
    pub reason: String,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryError { operation, address, size, reason } = self;
        match operation {
            Operation::Alloc => write!(f, "cannot allocate {size} bytes of device memory: {reason}"),
            Operation::Free => write!(f, "cannot free device memory at {address:#x}: {reason}"),
            Operation::Read => write!(f, "cannot read {size} bytes of device memory at {address:#x}: {reason}"),
            Operation::Write => write!(f, "cannot write {size} bytes of device memory at {address:#x}: {reason}"),
        }
    }
}

impl std::error::Error for MemoryError {}

impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Error {
        let kind = if error.operation == Operation::Alloc { Kind::Limit } else { Kind::Io };
        Error::new(kind, error.to_string())
    }
}
