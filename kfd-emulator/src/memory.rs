//! What the program has allocated by the driver.
//!
//! Everything but the program's own pages is a range of one file in memory, of which each descriptor of the driver is a
//! duplicate: the program maps the range by the offset that it is given, and the device maps it, too.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use wavetap_emulator::{FileOffset, MmapRegion};

use crate::raw;

/// Bytes of device memory.
pub(crate) const VRAM: u64 = 8 << 30;

/// Pages of the host.
const PAGE: u64 = 4096;

/// `KFD_IOC_ALLOC_MEM_FLAGS_*`.
mod flag {
    pub(super) const VRAM: u32 = 1;
    pub(super) const USERPTR: u32 = 1 << 2;
    pub(super) const DOORBELL: u32 = 1 << 3;
    pub(super) const MMIO_REMAP: u32 = 1 << 4;
    pub(super) const EXECUTABLE: u32 = 1 << 30;
}

/// An allocation.
pub(crate) struct Allocation {
    /// Its address on the device.
    pub(crate) address: u64,
    size: u64,
    flags: u32,
    /// Where it is in the file; none of the program's own pages.
    offset: Option<u64>,
    pages: Arc<MmapRegion>,
    /// For how many devices it is mapped.
    mapped: bool,
}

/// What mapping an allocation into the device takes.
pub(crate) struct Mapping {
    pub(crate) address: u64,
    pub(crate) pages: Arc<MmapRegion>,
    /// Kernels may execute it.
    pub(crate) executable: bool,
}

impl Allocation {
    /// Whether it is memory: registers of the device are not mapped into it.
    fn is_memory(&self) -> bool {
        self.flags & (flag::DOORBELL | flag::MMIO_REMAP) == 0
    }
}

/// All allocations by their handles.
pub(crate) struct Allocations {
    file: Arc<File>,
    length: u64,
    all: BTreeMap<u64, Allocation>,
    handles: u64,
    /// Bytes of device memory in use.
    used: u64,
}

impl Allocations {
    /// None yet.
    pub(crate) fn new() -> io::Result<Self> {
        let file = File::from(memfd_create(c"wavetap-kfd", MemfdFlags::CLOEXEC)?);
        // The first pages are those of doorbells that are mapped without an allocation.
        let length = 1 << 20;
        file.set_len(length)?;
        Ok(Allocations { file: Arc::new(file), length, all: BTreeMap::new(), handles: 0, used: 0 })
    }

    /// The file that all descriptors of the driver are duplicates of.
    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Bytes of device memory that are free.
    pub(crate) fn available(&self) -> u64 {
        VRAM - self.used
    }

    /// Allocates memory, or takes in the program's own pages at `place`; gives the handle, and where it can be mapped.
    pub(crate) fn allocate(&mut self, address: u64, size: u64, flags: u32, place: u64) -> Result<(u64, u64), i32> {
        let size = size.checked_next_multiple_of(PAGE).filter(|size| *size > 0).ok_or(libc::EINVAL)?;
        let counted = if flags & flag::VRAM != 0 { size } else { 0 };
        if counted > self.available() {
            return Err(libc::ENOMEM);
        }
        let (offset, pages) = if flags & flag::USERPTR != 0 {
            if !place.is_multiple_of(PAGE) {
                return Err(libc::EINVAL);
            }
            (None, raw::pages(place, size).ok_or(libc::EFAULT)?)
        } else {
            let offset = self.length;
            let length = offset.checked_add(size).ok_or(libc::ENOMEM)?;
            self.file.set_len(length).map_err(|error| error.raw_os_error().unwrap_or(libc::ENOMEM))?;
            self.length = length;
            let size = usize::try_from(size).map_err(|_| libc::ENOMEM)?;
            let part = FileOffset::from_arc(Arc::clone(&self.file), offset);
            (Some(offset), MmapRegion::from_file(part, size).map_err(|_| libc::ENOMEM)?)
        };
        self.handles += 1;
        self.used += counted;
        let allocation = Allocation { address, size, flags, offset, pages: Arc::new(pages), mapped: false };
        self.all.insert(self.handles, allocation);
        Ok((self.handles, offset.unwrap_or(place)))
    }

    /// Frees an allocation, which the device must not have any more: where it was mapped, gives its address.
    pub(crate) fn free(&mut self, handle: u64) -> Result<Option<u64>, i32> {
        let allocation = self.all.remove(&handle).ok_or(libc::EINVAL)?;
        if allocation.flags & flag::VRAM != 0 {
            self.used -= allocation.size;
        }
        if let Some(offset) = allocation.offset {
            // What the program has still mapped of it reads as zeros. Without room for this it just stays.
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(&*self.file, flags, offset, allocation.size);
        }
        Ok((allocation.mapped && allocation.is_memory()).then_some(allocation.address))
    }

    /// Marks an allocation as mapped; what is to be mapped unless it was already.
    pub(crate) fn map(&mut self, handle: u64) -> Result<Option<Mapping>, i32> {
        let allocation = self.all.get_mut(&handle).ok_or(libc::EINVAL)?;
        let before = std::mem::replace(&mut allocation.mapped, true);
        Ok((!before && allocation.is_memory()).then(|| Mapping {
            address: allocation.address,
            pages: Arc::clone(&allocation.pages),
            executable: allocation.flags & flag::EXECUTABLE != 0,
        }))
    }

    /// Marks an allocation as not mapped; its address if it was.
    pub(crate) fn unmap(&mut self, handle: u64) -> Result<Option<u64>, i32> {
        let allocation = self.all.get_mut(&handle).ok_or(libc::EINVAL)?;
        let before = std::mem::replace(&mut allocation.mapped, false);
        Ok((before && allocation.is_memory()).then_some(allocation.address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_memory_is_counted_and_ends() {
        let mut all = Allocations::new().expect("a file");
        let (first, offset) = all.allocate(0x10_0000, 5000, flag::VRAM, 0).expect("memory");
        assert_eq!((all.available(), offset % PAGE), (VRAM - 8192, 0));
        assert_eq!(all.allocate(0x20_0000, VRAM, flag::VRAM, 0).err(), Some(libc::ENOMEM));
        assert!(all.map(first).expect("known").is_some() && all.map(first).expect("known").is_none());
        assert_eq!(all.free(first), Ok(Some(0x10_0000)));
        assert_eq!((all.free(first), all.available()), (Err(libc::EINVAL), VRAM));
    }

    #[test]
    fn pages_of_the_program_must_be_there() {
        let mut all = Allocations::new().expect("a file");
        assert_eq!(all.allocate(0x1000, 4096, flag::USERPTR, 0x1000).err(), Some(libc::EFAULT));
        assert_eq!(all.allocate(0x1000, 4096, flag::USERPTR, 0x1001).err(), Some(libc::EINVAL));
    }
}
