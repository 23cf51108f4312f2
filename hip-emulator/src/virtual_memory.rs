//! The entry points for virtual memory: addresses are reserved, memory is created, mapped to addresses, and made
//! accessible.
//!
//! Memory has its bytes where it is mapped, and takes them along to where it is mapped next. It can be mapped once at a
//! time, as a whole or in part, which is what allocators do with it.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ops::Range;

use wavetap::stderr_line;

use crate::devices::only;
use crate::entry_point::entry_points;
use crate::handles::handle;
use crate::lock::runtime;
use crate::objects::virtual_memory::{Created, Location, Mapping, Properties, VirtualMemory};
use crate::raw::{self, loaded_as_hip_5};
use crate::runtime::Runtime;
use crate::status::*;
use crate::tasks::wait_for_all;

/// What sizes and addresses are multiples of: what AMD's driver gives for memory of a GPU.
const GRANULARITY: u64 = 2 << 20;

/// `hipMemAllocationTypePinned`, the one that there is, and that without caches.
const PINNED: c_int = 1;
const UNCACHED: c_int = 0x4000_0000;
/// `hipMemLocationTypeDevice`.
const ON_A_DEVICE: c_int = 1;
/// `hipMemAccessFlagsProtNone` and `hipMemAccessFlagsProtReadWrite`.
const NO_ACCESS: c_int = 0;
const READ_WRITE: c_int = 3;

/// `hipMemAllocationProp` since HIP 6.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct NewProperties {
    kind: c_int,
    handles: c_int,
    location: Location,
    windows: usize,
    compression: u8,
    rdma: u8,
    usage: u16,
}

/// The same of HIP 5.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct OldProperties {
    compression: u8,
    location: Location,
    handles: c_int,
    kind: c_int,
    usage: u16,
    windows: usize,
}

impl Properties {
    /// Those at an address, in the form of the HIP that the program was built for.
    fn load(from: *const c_void) -> Outcome<Properties> {
        if loaded_as_hip_5() {
            let OldProperties { kind, handles, location, .. } = raw::load(from.cast())?;
            return Ok(Properties { kind, handles, location });
        }
        let NewProperties { kind, handles, location, .. } = raw::load(from.cast())?;
        Ok(Properties { kind, handles, location })
    }

    fn store(self, to: *mut c_void) -> Outcome {
        let Properties { kind, handles, location } = self;
        if loaded_as_hip_5() {
            let old = OldProperties { compression: 0, location, handles, kind, usage: 0, windows: 0 };
            return raw::store(to.cast(), old);
        }
        raw::store(to.cast(), NewProperties { kind, handles, location, windows: 0, compression: 0, rdma: 0, usage: 0 })
    }
}

/// `hipMemAccessDesc`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Access {
    location: Location,
    flags: c_int,
}

/// A range of whole granules.
fn granules(address: u64, size: usize) -> Outcome<Range<u64>> {
    let size = size as u64;
    let whole = size > 0 && size.is_multiple_of(GRANULARITY) && address.is_multiple_of(GRANULARITY);
    let end = address.checked_add(size).filter(|_| whole).ok_or(INVALID_VALUE)?;
    Ok(address..end)
}

fn checked(properties: *const c_void) -> Outcome<Properties> {
    let properties = Properties::load(properties)?;
    if !matches!(properties.kind, PINNED | UNCACHED) || properties.location.kind != ON_A_DEVICE {
        return Err(INVALID_VALUE);
    }
    only(properties.location.id)?;
    if properties.handles != 0 {
        stderr_line!("wavetap: memory for other processes is not implemented by the built-in runtime");
        return Err(NOT_SUPPORTED);
    }
    Ok(properties)
}

impl Runtime {
    /// The addresses of mappings that make up a range exactly.
    fn mappings_of(&self, range: &Range<u64>) -> Outcome<Vec<u64>> {
        let mut at = range.start;
        let mut found = Vec::new();
        for (address, mapping) in self.virtual_memory.mappings.range(range.clone()) {
            if *address != at {
                return Err(INVALID_VALUE);
            }
            at += mapping.size;
            found.push(*address);
        }
        if at == range.end { Ok(found) } else { Err(INVALID_VALUE) }
    }

    fn set_access(&mut self, range: &Range<u64>, accessible: bool) -> Outcome {
        for address in self.mappings_of(range)? {
            let VirtualMemory { mappings, created } = &mut self.virtual_memory;
            let mapping = mappings.get_mut(&address).ok_or(INVALID_VALUE)?;
            let (part, is_new) = (address..address + mapping.size, std::mem::take(&mut mapping.is_new));
            mapping.accessible = accessible;
            let bytes = created.get_mut(&mapping.memory).filter(|_| is_new).and_then(|memory| memory.bytes.take());
            // To write it, it has to be accessible.
            let device = self.device()?;
            device.set_accessible(part.clone(), true).map_err(|_| OUT_OF_MEMORY)?;
            if let Some(bytes) = bytes {
                let length = bytes.len().min((part.end - part.start) as usize);
                device.write(part.start, &bytes[..length]).map_err(|_| INVALID_VALUE)?;
            } else if is_new {
                self.make_fresh(part.start, part.end - part.start)?;
            }
            if !accessible {
                self.device()?.set_accessible(part, false).map_err(|_| INVALID_VALUE)?;
            }
        }
        Ok(())
    }

    fn unmap(&mut self, range: &Range<u64>) -> Outcome {
        for address in self.mappings_of(range)? {
            let Some(mapping) = self.virtual_memory.mappings.remove(&address) else { continue };
            let part = address..address + mapping.size;
            let is_kept = self.virtual_memory.created.get(&mapping.memory).is_some_and(|memory| memory.handles > 0);
            let device = self.device()?;
            // What was never accessible has the bytes that it came with.
            let mut bytes = None;
            if is_kept && !mapping.is_new {
                let mut read = vec![0; mapping.size as usize];
                device.set_accessible(part.clone(), true).map_err(|_| OUT_OF_MEMORY)?;
                device.read(address, &mut read).map_err(|_| INVALID_VALUE)?;
                bytes = Some(read);
            }
            device.set_accessible(part, false).map_err(|_| INVALID_VALUE)?;
            if let Some(memory) = self.virtual_memory.created.get_mut(&mapping.memory) {
                memory.mapped = false;
                memory.bytes = bytes.or(memory.bytes.take());
            }
            self.virtual_memory.forget(mapping.memory);
        }
        Ok(())
    }
}

entry_points! {
    /// What sizes and addresses are multiples of.
    fn hipMemGetAllocationGranularity(out: *mut usize, properties: *const c_void, option: c_uint) {
        checked(properties)?;
        if option > 1 {
            return Err(INVALID_VALUE);
        }
        raw::store(out, GRANULARITY as usize)
    }

    /// Reserves addresses, at the wanted one if that is free.
    fn hipMemAddressReserve(out: *mut u64, size: usize, alignment: usize, wanted: u64, flags: c_ulonglong) {
        if out.is_null() || flags != 0 {
            return Err(INVALID_VALUE);
        }
        let alignment = (alignment as u64).max(GRANULARITY);
        granules(0, size)?;
        if !alignment.is_power_of_two() {
            return Err(INVALID_VALUE);
        }
        let wanted = (wanted != 0).then_some(wanted);
        let reserved = runtime().device()?.reserve(size as u64, alignment, wanted);
        raw::store(out, reserved.map_err(|_| OUT_OF_MEMORY)?)
    }

    /// Ends a reservation in which nothing is mapped.
    fn hipMemAddressFree(address: u64, size: usize) {
        let range = granules(address, size)?;
        wait_for_all()?;
        let mut runtime = runtime();
        if runtime.virtual_memory.mappings.range(range).next().is_some() {
            return Err(INVALID_VALUE);
        }
        runtime.device()?.end_reservation(address, size as u64).map_err(|_| INVALID_VALUE)
    }

    /// Creates memory.
    fn hipMemCreate(out: *mut usize, size: usize, properties: *const c_void, flags: c_ulonglong) {
        granules(0, size)?;
        let properties = checked(properties)?;
        if out.is_null() || flags != 0 {
            return Err(INVALID_VALUE);
        }
        let (number, mut runtime) = (handle(), runtime());
        let memory = Created { size: size as u64, properties, handles: 1, mapped: false, bytes: None };
        runtime.virtual_memory.created.insert(number, memory);
        raw::store(out, number)
    }

    /// Releases a handle; memory that is mapped stays until it is unmapped.
    fn hipMemRelease(memory: usize) {
        let mut runtime = runtime();
        runtime.virtual_memory.memory(memory)?.handles -= 1;
        runtime.virtual_memory.forget(memory);
        Ok(())
    }

    /// Maps memory to addresses.
    fn hipMemMap(address: u64, size: usize, offset: usize, memory: usize, flags: c_ulonglong) {
        let range = granules(address, size)?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        if offset != 0 {
            // Of AMD's runtime, too: "must be 0".
            return Err(INVALID_VALUE);
        }
        wait_for_all()?;
        let mut runtime = runtime();
        let before = runtime.virtual_memory.mappings.range(..range.end).next_back();
        if before.is_some_and(|(start, mapping)| start + mapping.size > range.start) {
            return Err(INVALID_VALUE);
        }
        let of = runtime.virtual_memory.memory(memory)?;
        if size as u64 > of.size {
            return Err(INVALID_VALUE);
        }
        if of.mapped {
            stderr_line!("wavetap: memory that is mapped at two addresses is not implemented by the built-in runtime");
            return Err(NOT_SUPPORTED);
        }
        // It must be a part of a reservation.
        runtime.device()?.set_accessible(range.clone(), false).map_err(|_| INVALID_VALUE)?;
        runtime.virtual_memory.memory(memory)?.mapped = true;
        let mapping = Mapping { size: size as u64, memory, accessible: false, is_new: true };
        runtime.virtual_memory.mappings.insert(address, mapping);
        Ok(())
    }

    /// Ends mappings.
    fn hipMemUnmap(address: u64, size: usize) {
        let range = granules(address, size)?;
        wait_for_all()?;
        runtime().unmap(&range)
    }

    /// Says who may access mappings.
    fn hipMemSetAccess(address: u64, size: usize, access: *const Access, count: usize) {
        let range = granules(address, size)?;
        if count == 0 {
            return Err(INVALID_VALUE);
        }
        let mut accessible = false;
        for Access { location, flags } in raw::array(access, count)? {
            if location.kind != ON_A_DEVICE {
                return Err(INVALID_VALUE);
            }
            only(location.id)?;
            accessible = match flags {
                NO_ACCESS => false,
                READ_WRITE => true,
                _ => {
                    stderr_line!("wavetap: memory that can only be read is not implemented by the built-in runtime");
                    return Err(NOT_SUPPORTED);
                }
            };
        }
        wait_for_all()?;
        runtime().set_access(&range, accessible)
    }

    /// Who may access the memory at an address.
    fn hipMemGetAccess(out: *mut c_ulonglong, location: *const Location, address: u64) {
        let location = raw::load(location)?;
        if location.kind != ON_A_DEVICE {
            return Err(INVALID_VALUE);
        }
        only(location.id)?;
        let accessible = runtime().virtual_memory.around(address)?.accessible;
        raw::store(out, if accessible { READ_WRITE } else { NO_ACCESS } as c_ulonglong)
    }

    /// What memory was created with.
    fn hipMemGetAllocationPropertiesFromHandle(out: *mut c_void, memory: usize) {
        let properties = runtime().virtual_memory.memory(memory)?.properties;
        properties.store(out)
    }

    /// Another handle of the memory that is mapped at an address.
    fn hipMemRetainAllocationHandle(out: *mut usize, address: u64) {
        if out.is_null() {
            return Err(INVALID_VALUE);
        }
        let mut runtime = runtime();
        let memory = runtime.virtual_memory.around(address)?.memory;
        let of = runtime.virtual_memory.created.get_mut(&memory).ok_or(INVALID_VALUE)?;
        of.handles += 1;
        raw::store(out, memory)
    }
}
