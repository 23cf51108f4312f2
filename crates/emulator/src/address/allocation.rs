//! What an allocation of device memory is, and what memory of the host must do to be one.

/// Host memory that kernels may access at its host address.
///
/// The implementor is the owner of the bytes; offsets are from the registered address and always within the registered
/// length.
pub trait ForeignMemory: Send {
    /// Copies bytes out.
    fn read(&self, offset: u64, into: &mut [u8]);
    /// Copies bytes in.
    fn write(&mut self, offset: u64, from: &[u8]);
    /// Replaces the `size` bytes (1 to 8) at an offset by what `f` makes of them; returns what they were. Where others
    /// than kernels use the memory it is to be one step.
    fn update(&mut self, offset: u64, size: usize, f: &dyn Fn(u64) -> u64) -> u64 {
        let mut bytes = [0; 8];
        self.read(offset, &mut bytes[..size]);
        let old = u64::from_le_bytes(bytes);
        self.write(offset, &f(old).to_le_bytes()[..size]);
        old
    }
}

/// What an allocation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationKind {
    /// [`crate::Device::malloc`].
    Device,
    /// [`crate::Device::register_foreign`].
    Foreign,
    /// A loaded code object.
    CodeObject,
    /// An accessible part of what [`crate::Device::reserve`] gave.
    Mapped,
    /// The emulator's own: dispatch packets, queues, scratch.
    Runtime,
}

/// A range of device addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// First address.
    pub address: u64,
    /// Length in bytes.
    pub size: u64,
    /// The kind of memory.
    pub kind: AllocationKind,
}
