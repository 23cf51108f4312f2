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

use crate::gpu::{Gpu, Gpus};
use crate::raw;

/// Bytes of each GPU's memory.
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
    /// Whose memory it is in, or who asked for it.
    owner: Gpu,
    /// The GPUs that it is mapped for.
    mapped: Gpus,
}

/// What mapping an allocation into GPUs takes.
pub(crate) struct Mapping {
    /// Those that have not had it.
    pub(crate) gpus: Gpus,
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

    /// The GPUs, unless it is no memory.
    fn with(&self, gpus: Gpus) -> Gpus {
        if self.is_memory() { gpus } else { Gpus::default() }
    }
}

/// All allocations by their handles.
pub(crate) struct Allocations {
    file: Arc<File>,
    length: u64,
    all: BTreeMap<u64, Allocation>,
    handles: u64,
    /// Bytes of each GPU's memory in use.
    used: Vec<u64>,
}

impl Allocations {
    /// None yet, for so many GPUs.
    pub(crate) fn new(gpus: u32) -> io::Result<Self> {
        let file = File::from(memfd_create(c"wavetap-kfd", MemfdFlags::CLOEXEC)?);
        // The first pages are those of doorbells that are mapped without an allocation.
        let length = 1 << 20;
        file.set_len(length)?;
        Ok(Allocations { file: Arc::new(file), length, all: BTreeMap::new(), handles: 0, used: vec![0; gpus as usize] })
    }

    /// The file that all descriptors of the driver are duplicates of.
    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Bytes of a GPU's memory that are free.
    pub(crate) fn available(&self, gpu: Gpu) -> u64 {
        self.used.get(gpu.index()).map_or(0, |used| VRAM - used)
    }

    /// Allocates memory of a GPU or of the host, or takes in the program's own pages at `place`; gives the handle, and
    /// where it can be mapped.
    pub(crate) fn allocate(
        &mut self,
        owner: Gpu,
        address: u64,
        size: u64,
        flags: u32,
        place: u64,
    ) -> Result<(u64, u64), i32> {
        let size = size.checked_next_multiple_of(PAGE).filter(|size| *size > 0).ok_or(libc::EINVAL)?;
        let counted = if flags & flag::VRAM != 0 { size } else { 0 };
        if counted > self.available(owner) {
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
        self.used[owner.index()] += counted;
        let pages = Arc::new(pages);
        let allocation = Allocation { address, size, flags, offset, pages, owner, mapped: Gpus::default() };
        self.all.insert(self.handles, allocation);
        Ok((self.handles, offset.unwrap_or(place)))
    }

    /// Where an allocation is on the device.
    pub(crate) fn address(&self, handle: u64) -> Option<u64> {
        self.all.get(&handle).map(|allocation| allocation.address)
    }

    /// Frees an allocation: its address, and the GPUs that it has to be taken from.
    pub(crate) fn free(&mut self, handle: u64) -> Result<(u64, Gpus), i32> {
        let allocation = self.all.remove(&handle).ok_or(libc::EINVAL)?;
        if allocation.flags & flag::VRAM != 0 {
            self.used[allocation.owner.index()] -= allocation.size;
        }
        if let Some(offset) = allocation.offset {
            // What the program has still mapped of it reads as zeros. Without room for this it just stays.
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(&*self.file, flags, offset, allocation.size);
        }
        Ok((allocation.address, allocation.with(allocation.mapped)))
    }

    /// Marks an allocation as mapped for GPUs; what is to be mapped for those that have not had it.
    pub(crate) fn map(&mut self, handle: u64, gpus: Gpus) -> Result<Mapping, i32> {
        let allocation = self.all.get_mut(&handle).ok_or(libc::EINVAL)?;
        let before = allocation.mapped;
        allocation.mapped = before.union(gpus);
        Ok(Mapping {
            gpus: allocation.with(gpus.without(before)),
            address: allocation.address,
            pages: Arc::clone(&allocation.pages),
            executable: allocation.flags & flag::EXECUTABLE != 0,
        })
    }

    /// Marks an allocation as not mapped for GPUs: its address, and those that had it.
    pub(crate) fn unmap(&mut self, handle: u64, gpus: Gpus) -> Result<(u64, Gpus), i32> {
        let allocation = self.all.get_mut(&handle).ok_or(libc::EINVAL)?;
        let before = allocation.mapped;
        allocation.mapped = before.without(gpus);
        Ok((allocation.address, allocation.with(gpus.intersection(before))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first GPU of two.
    fn first() -> (Allocations, Gpu) {
        (Allocations::new(2).expect("a file"), Gpu::all(1).next().expect("a GPU"))
    }

    #[test]
    fn memory_is_counted_for_each_gpu_and_ends() {
        let (mut all, gpu) = first();
        let other = Gpu::all(2).last().expect("a GPU");
        let (handle, offset) = all.allocate(gpu, 0x10_0000, 5000, flag::VRAM, 0).expect("memory");
        assert_eq!((all.available(gpu), all.available(other), offset % PAGE), (VRAM - 8192, VRAM, 0));
        assert_eq!(all.allocate(gpu, 0x20_0000, VRAM, flag::VRAM, 0).err(), Some(libc::ENOMEM));
        assert!(all.allocate(other, 0x20_0000, VRAM, flag::VRAM, 0).is_ok());
        assert!(all.free(handle).is_ok());
        assert_eq!((all.free(handle), all.available(gpu)), (Err(libc::EINVAL), VRAM));
    }

    #[test]
    fn an_allocation_is_mapped_once_for_each_gpu() {
        let (mut all, gpu) = first();
        let (both, one) = (Gpu::all(2).collect::<Gpus>(), Gpus::from_iter([gpu]));
        let (handle, _) = all.allocate(gpu, 0x10_0000, PAGE, flag::VRAM, 0).expect("memory");
        let mut mapped = |gpus| all.map(handle, gpus).expect("known").gpus;
        assert_eq!((mapped(one), mapped(one), mapped(both)), (one, Gpus::default(), both.without(one)));
        assert_eq!(all.unmap(handle, one), Ok((0x10_0000, one)));
        assert_eq!(all.unmap(handle, one), Ok((0x10_0000, Gpus::default())));
        assert_eq!(all.free(handle), Ok((0x10_0000, both.without(one))));
    }

    #[test]
    fn pages_of_the_program_must_be_there() {
        let (mut all, gpu) = first();
        assert_eq!(all.allocate(gpu, 0x1000, 4096, flag::USERPTR, 0x1000).err(), Some(libc::EFAULT));
        assert_eq!(all.allocate(gpu, 0x1000, 4096, flag::USERPTR, 0x1001).err(), Some(libc::EINVAL));
    }
}
