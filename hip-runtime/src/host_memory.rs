//! Host memory that kernels may use at its host address: pinned, managed and registered memory.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;

use wavetap::emulator::{Device, ForeignMemory};

use crate::raw;
use crate::status::*;

/// Host memory is given out in whole pages, as pinning does.
const PAGE: usize = 4096;

/// How a range came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// `hipHostMalloc`.
    Pinned,
    /// `hipMallocManaged` and managed variables.
    Managed,
    /// `hipHostRegister`: the program's own.
    Registered,
}

/// A range of host memory that the device sees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostRange {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) kind: HostKind,
    pub(crate) flags: u32,
}

/// All such ranges, by address.
#[derive(Debug, Default)]
pub(crate) struct HostMemory {
    ranges: BTreeMap<u64, HostRange>,
}

/// The device's way to a range.
struct Window {
    address: usize,
}

impl ForeignMemory for Window {
    fn read(&self, offset: u64, into: &mut [u8]) {
        // The emulator keeps to the registered length, and an address that is not null cannot fail.
        let _ = raw::read(self.address + offset as usize, into);
    }

    fn write(&mut self, offset: u64, from: &[u8]) {
        let _ = raw::write(self.address + offset as usize, from);
    }
}

impl HostMemory {
    /// Allocates zeroed host memory and maps it into the device.
    pub(crate) fn allocate(&mut self, device: &mut Device, size: usize, kind: HostKind, flags: u32) -> Outcome<u64> {
        let layout = Self::layout(size)?;
        // SAFETY: the layout's size is at least a page.
        let memory = unsafe { alloc_zeroed(layout) };
        if memory.is_null() {
            return Err(OUT_OF_MEMORY);
        }
        let range = HostRange { address: memory as u64, size: size as u64, kind, flags };
        if let Err(status) = self.map(device, range) {
            // SAFETY: allocated above with this layout and given to nobody.
            unsafe { dealloc(memory, layout) };
            return Err(status);
        }
        Ok(range.address)
    }

    fn layout(size: usize) -> Outcome<Layout> {
        Layout::from_size_align(size.max(PAGE), PAGE).map_err(|_| OUT_OF_MEMORY)
    }

    /// Maps a range of the program into the device.
    pub(crate) fn register(&mut self, device: &mut Device, address: u64, size: u64, flags: u32) -> Outcome {
        self.map(device, HostRange { address, size, kind: HostKind::Registered, flags }).map_err(|_| HOST_MEMORY_ALREADY_REGISTERED)
    }

    fn map(&mut self, device: &mut Device, range: HostRange) -> Outcome {
        let window = Box::new(Window { address: usize::try_from(range.address).map_err(|_| INVALID_VALUE)? });
        device.register_foreign(window, range.address, range.size).map_err(|_| INVALID_VALUE)?;
        self.ranges.insert(range.address, range);
        Ok(())
    }

    /// Ends what `allocate` began.
    pub(crate) fn free(&mut self, device: &mut Device, address: u64) -> Outcome {
        let range = *self.ranges.get(&address).filter(|range| range.kind != HostKind::Registered).ok_or(INVALID_VALUE)?;
        self.unmap(device, address)?;
        let layout = Self::layout(range.size as usize)?;
        // SAFETY: `allocate` made it with this layout, and it was in the table, so it is freed once.
        unsafe { dealloc(address as *mut u8, layout) };
        Ok(())
    }

    /// Ends what `register` began.
    pub(crate) fn unregister(&mut self, device: &mut Device, address: u64) -> Outcome {
        let known = self.ranges.get(&address).is_some_and(|range| range.kind == HostKind::Registered);
        if known { self.unmap(device, address) } else { Err(HOST_MEMORY_NOT_REGISTERED) }
    }

    fn unmap(&mut self, device: &mut Device, address: u64) -> Outcome {
        device.unregister_foreign(address).map_err(|_| INVALID_VALUE)?;
        self.ranges.remove(&address);
        Ok(())
    }

    /// The range that contains an address.
    pub(crate) fn range_of(&self, address: u64) -> Option<&HostRange> {
        self.ranges.range(..=address).next_back().map(|(_, range)| range).filter(|range| address - range.address < range.size)
    }
}
