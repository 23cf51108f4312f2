//! Host memory that kernels may use at its host address: pinned, managed and registered memory.

use std::collections::BTreeMap;
use std::sync::atomic::{Ordering, fence};

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
    /// `hipMallocSignalMemory`.
    Signal,
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
        let address = self.address + offset as usize;
        // The emulator keeps to the registered length, and an address that is not null cannot fail. The program may
        // write at the same time: what is aligned is read in one step.
        match into.len() {
            4 if address.is_multiple_of(4) => {
                into.copy_from_slice(&raw::atomic32(address).load(Ordering::Acquire).to_ne_bytes())
            }
            8 if address.is_multiple_of(8) => {
                into.copy_from_slice(&raw::atomic64(address).load(Ordering::Acquire).to_ne_bytes())
            }
            _ => {
                let _ = raw::read(address, into);
                fence(Ordering::Acquire);
            }
        }
    }

    fn write(&mut self, offset: u64, from: &[u8]) {
        let address = self.address + offset as usize;
        match *from {
            [a, b, c, d] if address.is_multiple_of(4) => {
                raw::atomic32(address).store(u32::from_ne_bytes([a, b, c, d]), Ordering::Release);
            }
            [a, b, c, d, e, f, g, h] if address.is_multiple_of(8) => {
                raw::atomic64(address).store(u64::from_ne_bytes([a, b, c, d, e, f, g, h]), Ordering::Release);
            }
            _ => {
                fence(Ordering::Release);
                let _ = raw::write(address, from);
            }
        }
    }

    fn update(&mut self, offset: u64, size: usize, f: &dyn Fn(u64) -> u64) -> u64 {
        let address = self.address + offset as usize;
        match size {
            4 if address.is_multiple_of(4) => {
                let cell = raw::atomic32(address);
                let old = cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some(f(old.into()) as u32));
                old.unwrap_or_else(|old| old).into()
            }
            8 if address.is_multiple_of(8) => {
                let old = raw::atomic64(address).fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some(f(old)));
                old.unwrap_or_else(|old| old)
            }
            _ => {
                let mut bytes = [0; 8];
                self.read(offset, &mut bytes[..size]);
                let old = u64::from_le_bytes(bytes);
                self.write(offset, &f(old).to_le_bytes()[..size]);
                old
            }
        }
    }
}

impl HostMemory {
    /// Allocates zeroed host memory and maps it into the device. The host's memory is taken as it is written.
    pub(crate) fn allocate(&mut self, device: &mut Device, size: usize, kind: HostKind, flags: u32) -> Outcome<u64> {
        let memory = raw::pages(Self::whole(size)?).ok_or(OUT_OF_MEMORY)?;
        let range = HostRange { address: memory as u64, size: size as u64, kind, flags };
        if let Err(status) = self.map(device, range) {
            raw::give_back_pages(memory, Self::whole(size)?);
            return Err(status);
        }
        Ok(range.address)
    }

    /// Bytes of the pages that so many bytes are in.
    fn whole(size: usize) -> Outcome<usize> {
        size.max(1).checked_next_multiple_of(PAGE).ok_or(OUT_OF_MEMORY)
    }

    /// Maps a range of the program into the device.
    pub(crate) fn register(&mut self, device: &mut Device, address: u64, size: u64, flags: u32) -> Outcome {
        self.map(device, HostRange { address, size, kind: HostKind::Registered, flags })
            .map_err(|_| HOST_MEMORY_ALREADY_REGISTERED)
    }

    fn map(&mut self, device: &mut Device, range: HostRange) -> Outcome {
        let window = Box::new(Window { address: usize::try_from(range.address).map_err(|_| INVALID_VALUE)? });
        device.register_foreign(window, range.address, range.size).map_err(|_| INVALID_VALUE)?;
        self.ranges.insert(range.address, range);
        Ok(())
    }

    /// Ends what `allocate` began.
    pub(crate) fn free(&mut self, device: &mut Device, address: u64) -> Outcome {
        let range =
            *self.ranges.get(&address).filter(|range| range.kind != HostKind::Registered).ok_or(INVALID_VALUE)?;
        self.unmap(device, address)?;
        // `allocate` made it, and it was in the table, so it is freed once.
        raw::give_back_pages(address as usize, Self::whole(range.size as usize)?);
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

    /// What was allocated for the program and kernels.
    pub(crate) fn allocated(&self) -> impl Iterator<Item = &HostRange> {
        self.ranges.values().filter(|range| matches!(range.kind, HostKind::Pinned | HostKind::Managed))
    }

    /// The range that contains an address.
    pub(crate) fn range_of(&self, address: u64) -> Option<&HostRange> {
        self.ranges
            .range(..=address)
            .next_back()
            .map(|(_, range)| range)
            .filter(|range| address - range.address < range.size)
    }
}
