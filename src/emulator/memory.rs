//! Device memory: allocations with gaps between them, and host memory that is mapped in.

use crate::bytes::align_up;
use crate::error::{Error, Result};

use super::fault::{FaultKind, MemoryAccess};

/// First device address: no host pointer of a 47-bit address space is near, and the flat apertures lie above.
const FIRST_ADDRESS: u64 = 0x2000_0000_0000;
/// No device address is at or above this one.
const LAST_ADDRESS: u64 = 0x7000_0000_0000;
/// Unmapped bytes between allocations: an index that runs past the end hits nothing.
const GUARD: u64 = 0x1_0000;
/// The least alignment of an allocation, as `hipMalloc` gives it.
const MIN_ALIGN: u64 = 256;
/// Most bytes all owned allocations may have together.
const MAX_TOTAL: u64 = 16 << 30;

/// Host memory that kernels may access at its host address.
///
/// The implementor is the owner of the bytes; offsets are from the registered address and always within the registered length.
pub trait ForeignMemory: Send {
    /// Copies bytes out.
    fn read(&self, offset: u64, into: &mut [u8]);
    /// Copies bytes in.
    fn write(&mut self, offset: u64, from: &[u8]);
}

/// What an allocation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationKind {
    /// [`super::Device::malloc`].
    Device,
    /// [`super::Device::register_foreign`].
    Foreign,
    /// A loaded code object.
    CodeObject,
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
    /// What it is for.
    pub kind: AllocationKind,
}

enum Storage {
    Owned(Vec<u8>),
    Foreign(Box<dyn ForeignMemory>),
}

struct Block {
    allocation: Allocation,
    storage: Storage,
}

/// All memory of a device.
pub(super) struct Memory {
    /// Sorted by address, disjoint.
    blocks: Vec<Block>,
    next: u64,
    total: u64,
    /// Address ranges of code, which kernels must not write.
    code: Vec<(u64, u64)>,
    /// The block that the last access hit: neighbouring lanes mostly hit the same one.
    recent: usize,
}

impl Memory {
    pub(super) fn new() -> Self {
        Memory { blocks: Vec::new(), next: FIRST_ADDRESS, total: 0, code: Vec::new(), recent: 0 }
    }

    pub(super) fn malloc(&mut self, size: u64, align: u64, kind: AllocationKind) -> Result<u64> {
        if align > 1 << 30 || !align.max(1).is_power_of_two() {
            return Err(Error::unsupported(format!("allocation alignment {align}: a power of two up to 2^30 expected")));
        }
        let size = size.max(1);
        if size > MAX_TOTAL || self.total + size > MAX_TOTAL {
            return Err(Error::limit(format!("device memory: {size} bytes wanted, {} of {MAX_TOTAL} in use", self.total)));
        }
        let address = align_up(self.next, align.max(MIN_ALIGN));
        if address + size + GUARD > LAST_ADDRESS {
            return Err(Error::limit("device memory: the address range is used up"));
        }
        let length = usize::try_from(size).map_err(|_| Error::limit("device memory: allocation too large for this machine"))?;
        self.next = align_up(address + size + GUARD, MIN_ALIGN);
        self.total += size;
        self.insert(Block { allocation: Allocation { address, size, kind }, storage: Storage::Owned(vec![0; length]) });
        Ok(address)
    }

    pub(super) fn register(&mut self, memory: Box<dyn ForeignMemory>, address: u64, size: u64) -> Result<()> {
        let end =
            address.checked_add(size).filter(|_| size > 0).ok_or_else(|| Error::unsupported("empty or wrapping range of host memory"))?;
        if self.blocks.iter().any(|b| b.allocation.address < end && address < b.allocation.address + b.allocation.size) {
            return Err(Error::unsupported(format!("host memory {address:#x}..{end:#x} is mapped already")));
        }
        self.insert(Block { allocation: Allocation { address, size, kind: AllocationKind::Foreign }, storage: Storage::Foreign(memory) });
        Ok(())
    }

    fn insert(&mut self, block: Block) {
        let at = self.blocks.partition_point(|b| b.allocation.address < block.allocation.address);
        self.blocks.insert(at, block);
        self.recent = 0;
    }

    /// Removes the block that starts at `address`.
    pub(super) fn remove(&mut self, address: u64) -> Result<Allocation> {
        match self.blocks.binary_search_by_key(&address, |b| b.allocation.address) {
            Ok(at) => {
                let block = self.blocks.remove(at);
                self.recent = 0;
                let range = block.allocation.address..block.allocation.address + block.allocation.size;
                self.code.retain(|(start, _)| !range.contains(start));
                if matches!(block.storage, Storage::Owned(_)) {
                    self.total -= block.allocation.size;
                }
                Ok(block.allocation)
            }
            Err(_) => Err(Error::unsupported(format!("no allocation starts at {address:#x}"))),
        }
    }

    pub(super) fn allocation_of(&self, address: u64) -> Option<Allocation> {
        self.find(address, 1).map(|at| self.blocks[at].allocation)
    }

    pub(super) fn in_use(&self) -> u64 {
        self.total
    }

    fn find(&self, address: u64, size: u64) -> Option<usize> {
        let within = |b: &Block| address >= b.allocation.address && address - b.allocation.address <= b.allocation.size.wrapping_sub(size);
        if let Some(block) = self.blocks.get(self.recent)
            && size <= block.allocation.size
            && within(block)
        {
            return Some(self.recent);
        }
        let at = self.blocks.partition_point(|b| b.allocation.address <= address).checked_sub(1)?;
        let block = &self.blocks[at];
        (size <= block.allocation.size && within(block)).then_some(at)
    }

    /// The bytes of the device's own allocation around an address, and where it starts.
    pub(super) fn around(&mut self, address: u64) -> Option<(&[u8], u64)> {
        let at = self.find(address, 1)?;
        self.recent = at;
        let block = &self.blocks[at];
        match &block.storage {
            Storage::Owned(bytes) => Some((bytes, block.allocation.address)),
            Storage::Foreign(_) => None,
        }
    }

    /// [`Memory::around`] for writing; none of what kernels may not write.
    pub(super) fn around_to_write(&mut self, address: u64) -> Option<(&mut [u8], u64)> {
        let at = self.find(address, 1)?;
        self.recent = at;
        let block = &mut self.blocks[at];
        match &mut block.storage {
            Storage::Owned(bytes) if block.allocation.kind != AllocationKind::CodeObject => Some((bytes, block.allocation.address)),
            _ => None,
        }
    }

    fn violation(&self, address: u64, size: usize, access: MemoryAccess) -> FaultKind {
        let distance = |b: &Block| {
            let a = b.allocation;
            if address < a.address { a.address - address } else { address.saturating_sub(a.address + a.size) }
        };
        let nearest = self.blocks.iter().min_by_key(|b| distance(b)).map(|b| b.allocation);
        FaultKind::Memory { address, size: size as u32, access, nearest }
    }

    /// Reads bytes that must lie within one allocation.
    pub(super) fn read(&mut self, address: u64, into: &mut [u8], access: MemoryAccess) -> std::result::Result<(), FaultKind> {
        let Some(at) = self.find(address, into.len() as u64) else { return Err(self.violation(address, into.len(), access)) };
        self.recent = at;
        self.copy_out(at, address, into);
        Ok(())
    }

    /// [`Memory::read`] for a shared borrow.
    pub(super) fn peek(&self, address: u64, into: &mut [u8]) -> std::result::Result<(), FaultKind> {
        match self.find(address, into.len() as u64) {
            Some(at) => {
                self.copy_out(at, address, into);
                Ok(())
            }
            None => Err(self.violation(address, into.len(), MemoryAccess::Load)),
        }
    }

    fn copy_out(&self, at: usize, address: u64, into: &mut [u8]) {
        let block = &self.blocks[at];
        let offset = address - block.allocation.address;
        match &block.storage {
            Storage::Owned(bytes) => into.copy_from_slice(&bytes[offset as usize..][..into.len()]),
            Storage::Foreign(memory) => memory.read(offset, into),
        }
    }

    /// Writes bytes that must lie within one allocation.
    pub(super) fn write(&mut self, address: u64, from: &[u8], access: MemoryAccess) -> std::result::Result<(), FaultKind> {
        let Some(at) = self.find(address, from.len() as u64) else { return Err(self.violation(address, from.len(), access)) };
        self.recent = at;
        self.refuse_code(at, address, from.len(), access)?;
        let block = &mut self.blocks[at];
        let offset = address - block.allocation.address;
        match &mut block.storage {
            Storage::Owned(bytes) => bytes[offset as usize..][..from.len()].copy_from_slice(from),
            Storage::Foreign(memory) => memory.write(offset, from),
        }
        Ok(())
    }

    /// Marks a range as code.
    pub(super) fn protect(&mut self, start: u64, end: u64) {
        self.code.push((start, end));
    }

    fn refuse_code(&self, at: usize, address: u64, size: usize, access: MemoryAccess) -> std::result::Result<(), FaultKind> {
        if self.blocks[at].allocation.kind == AllocationKind::CodeObject
            && self.code.iter().any(|&(start, end)| address < end && start < address + size as u64)
        {
            return Err(self.violation(address, size, access));
        }
        Ok(())
    }

    /// Whether a store of these bytes is allowed.
    pub(super) fn check_store(&mut self, address: u64, size: usize) -> std::result::Result<(), FaultKind> {
        match self.find(address, size as u64) {
            Some(at) => {
                self.recent = at;
                self.refuse_code(at, address, size, MemoryAccess::Store)
            }
            None => Err(self.violation(address, size, MemoryAccess::Store)),
        }
    }
}
