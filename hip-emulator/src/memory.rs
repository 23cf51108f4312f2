//! Allocation: device memory, host memory that kernels see, and what is known of a pointer.

use std::ffi::{c_int, c_uint, c_void};

use wavetap::emulator::AllocationKind;

use crate::entry_point::entry_points;
use crate::extents::{Extent, PitchedPointer};
use crate::host_memory::HostKind;
use crate::lock::runtime;
use crate::properties::TOTAL_MEMORY;
use crate::raw::{self, loaded_as_hip_5};
use crate::status::*;
use crate::tasks::wait_for_all;

/// Kinds of memory that `hipExtMallocWithFlags` allocates: of the device, coarse or fine-grained; signals, which are of
/// the host; of the device, not cached, or in one piece.
const PLAIN: c_uint = 0;
const FINE_GRAINED: c_uint = 1;
const SIGNALS: c_uint = 2;
const UNCACHED: c_uint = 3;
const CONTIGUOUS: c_uint = 4;

/// Bytes of a signal.
const SIGNAL: usize = 8;

/// Flags of host memory that exclude each other: coherent and not.
const COHERENT: c_uint = 0x4000_0000;
const NOT_COHERENT: c_uint = 0x8000_0000;

/// Flags of managed memory: who uses it first.
const ATTACH_GLOBAL: c_uint = 1;
const ATTACH_HOST: c_uint = 2;

/// A GPU's memory is given out in whole pages.
const GPU_PAGE: u64 = 4096;

/// Rows of pitched memory start on multiples of this.
const PITCH: usize = 256;

/// `hipPointerAttribute_t`.
#[repr(C)]
pub(crate) struct PointerAttributes {
    pub(crate) kind: c_int,
    device: c_int,
    pub(crate) device_pointer: u64,
    pub(crate) host_pointer: u64,
    pub(crate) is_managed: c_int,
    flags: c_uint,
}

impl PointerAttributes {
    /// Memory that HIP does not know. From HIP 6 on, the call succeeds (before, it fails): `hipMemoryTypeUnregistered`,
    /// `hipInvalidDeviceId`.
    const UNREGISTERED: PointerAttributes =
        PointerAttributes { kind: 0, device: -2, device_pointer: 0, host_pointer: 0, is_managed: 0, flags: 0 };
}

/// Values of `hipMemoryType`: HIP 6 gave them other numbers.
struct MemoryTypes {
    host: c_int,
    device: c_int,
    managed: c_int,
}

fn memory_types() -> MemoryTypes {
    if loaded_as_hip_5() {
        // There, managed memory is reported as memory of the device.
        MemoryTypes { host: 0, device: 1, managed: 1 }
    } else {
        MemoryTypes { host: 1, device: 2, managed: 3 }
    }
}

/// `hipMemoryTypeArray`.
pub(crate) fn array_type() -> c_int {
    if loaded_as_hip_5() { 2 } else { 10 }
}

/// Allocates device memory.
pub(crate) fn allocate(size: usize) -> Outcome<u64> {
    if size == 0 {
        return Ok(0);
    }
    let mut runtime = runtime();
    runtime.refuse_while_capturing()?;
    runtime.allocate(size as u64)
}

fn allocate_host(size: usize, kind: HostKind, flags: c_uint) -> Outcome<u64> {
    if flags & COHERENT != 0 && flags & NOT_COHERENT != 0 {
        return Err(INVALID_VALUE);
    }
    if size == 0 {
        return Ok(0);
    }
    let mut runtime = runtime();
    let (device, host) = runtime.device_and_host()?;
    let address = host.allocate(device, size, kind, flags)?;
    runtime.note_allocation(address, size as u64);
    Ok(address)
}

/// Frees memory of any kind; null is nothing.
fn free(address: u64) -> Outcome {
    if address == 0 {
        return Ok(());
    }
    runtime().refuse_while_capturing()?;
    wait_for_all()?;
    let mut runtime = runtime();
    if runtime.graph_memory.frees(address)? { Ok(()) } else { runtime.free(address) }
}

/// Bytes from row to row of pitched memory.
pub(crate) fn pitch(width: usize) -> Outcome<usize> {
    width.checked_next_multiple_of(PITCH).ok_or(OUT_OF_MEMORY)
}

/// Allocates rows of device memory; gives where and with which pitch.
pub(crate) fn allocate_pitched(width: usize, height: usize) -> Outcome<(u64, usize)> {
    let pitch = pitch(width)?;
    Ok((allocate(pitch.checked_mul(height).ok_or(OUT_OF_MEMORY)?)?, pitch))
}

/// Start and size of the allocation that contains an address.
pub(crate) fn allocation_of(address: u64) -> Outcome<(u64, u64)> {
    let mut runtime = runtime();
    let allocation = runtime.device()?.allocation_of(address).ok_or(NOT_FOUND)?;
    Ok((allocation.address, allocation.size))
}

/// What is known of the memory at an address.
pub(crate) fn attributes(address: u64) -> Outcome<PointerAttributes> {
    let types = memory_types();
    let mut runtime = runtime();
    let (device, host) = runtime.device_and_host()?;
    if let Some(range) = host.range_of(address) {
        let managed = range.kind == HostKind::Managed;
        let kind = if managed { types.managed } else { types.host };
        return Ok(PointerAttributes {
            kind,
            device: 0,
            device_pointer: address,
            host_pointer: address,
            is_managed: managed.into(),
            flags: range.flags,
        });
    }
    device.allocation_of(address).filter(|found| found.kind != AllocationKind::Foreign).ok_or(INVALID_VALUE)?;
    Ok(PointerAttributes {
        kind: types.device,
        device: 0,
        device_pointer: address,
        host_pointer: 0,
        is_managed: 0,
        flags: 0,
    })
}

entry_points! {
    /// Allocates device memory.
    fn hipMalloc(out: *mut u64, size: usize) {
        raw::store(out, 0)?;
        raw::store(out, allocate(size)?)
    }

    /// Allocates device memory of a kind, of which all are one, or a signal, which is host memory.
    fn hipExtMallocWithFlags(out: *mut u64, size: usize, flags: c_uint) {
        raw::store(out, 0)?;
        let address = match flags {
            PLAIN | FINE_GRAINED | UNCACHED | CONTIGUOUS => allocate(size)?,
            SIGNALS if size == SIGNAL => allocate_host(size, HostKind::Signal, 0)?,
            _ => return Err(INVALID_VALUE),
        };
        raw::store(out, address)
    }

    /// Allocates rows of device memory with a pitch.
    fn hipMallocPitch(out: *mut u64, pitch: *mut usize, width: usize, height: usize) {
        let (address, row) = allocate_pitched(width, height)?;
        raw::store(pitch, row)?;
        raw::store(out, address)
    }

    /// As [`hipMallocPitch`], for elements of a size.
    fn hipMemAllocPitch(out: *mut u64, pitch: *mut usize, width: usize, height: usize, _element: c_uint) {
        let (address, row) = allocate_pitched(width, height)?;
        raw::store(pitch, row)?;
        raw::store(out, address)
    }

    /// Allocates a box of device memory with a pitch.
    fn hipMalloc3D(out: *mut PitchedPointer, extent: Extent) {
        let rows = extent.height.checked_mul(extent.depth).ok_or(OUT_OF_MEMORY)?;
        let (address, pitch) = allocate_pitched(extent.width, rows)?;
        raw::store(out, PitchedPointer { pointer: address, pitch, x: extent.width, y: extent.height })
    }

    /// Frees device, managed or pinned memory once all streams are idle.
    fn hipFree / hipHostFree / hipFreeHost(address: u64) {
        free(address)
    }

    /// Allocates host memory that kernels see at its own address.
    fn hipHostMalloc / hipHostAlloc / hipExtHostAlloc(out: *mut u64, size: usize, flags: c_uint) {
        raw::store(out, 0)?;
        raw::store(out, allocate_host(size, HostKind::Pinned, flags)?)
    }

    /// As [`hipHostMalloc`] without flags.
    fn hipMallocHost / hipMemAllocHost(out: *mut u64, size: usize) {
        raw::store(out, 0)?;
        raw::store(out, allocate_host(size, HostKind::Pinned, 0)?)
    }

    /// Allocates memory that host and kernels share.
    fn hipMallocManaged(out: *mut u64, size: usize, flags: c_uint) {
        if size == 0 || !matches!(flags, ATTACH_GLOBAL | ATTACH_HOST) {
            return Err(INVALID_VALUE);
        }
        raw::store(out, 0)?;
        raw::store(out, allocate_host(size, HostKind::Managed, flags)?)
    }

    /// Lets kernels see a range of the program's memory.
    fn hipHostRegister(pointer: *mut c_void, size: usize, flags: c_uint) {
        if pointer.is_null() {
            return Err(INVALID_VALUE);
        }
        if size == 0 || !raw::is_mapped(pointer as usize, size) {
            return Err(OUT_OF_MEMORY);
        }
        let mut runtime = runtime();
        let (device, host) = runtime.device_and_host()?;
        host.register(device, pointer as u64, size as u64, flags)
    }

    /// Ends [`hipHostRegister`].
    fn hipHostUnregister(pointer: *mut c_void) {
        wait_for_all()?;
        let mut runtime = runtime();
        let (device, host) = runtime.device_and_host()?;
        host.unregister(device, pointer as u64)
    }

    /// The address at which kernels see pinned memory: its own.
    fn hipHostGetDevicePointer(out: *mut u64, host: *mut c_void, _flags: c_uint) {
        runtime().host.range_of(host as u64).ok_or(INVALID_VALUE)?;
        raw::store(out, host as u64)
    }

    /// The flags pinned memory was allocated with.
    fn hipHostGetFlags(out: *mut c_uint, host: *mut c_void) {
        let flags = runtime().host.range_of(host as u64).ok_or(INVALID_VALUE)?.flags;
        raw::store(out, flags)
    }

    /// Free and total device memory; an allocation takes whole pages.
    fn hipMemGetInfo(free: *mut usize, total: *mut usize) {
        let used: u64 = runtime()
            .device()?
            .allocations()
            .filter(|allocation| allocation.kind != AllocationKind::Foreign)
            .map(|allocation| allocation.size.next_multiple_of(GPU_PAGE))
            .sum();
        let used = usize::try_from(used).map_err(|_| UNKNOWN)?;
        raw::store_optional(free, TOTAL_MEMORY.saturating_sub(used));
        raw::store_optional(total, TOTAL_MEMORY);
        Ok(())
    }

    /// Start and size of the allocation around an address.
    fn hipMemGetAddressRange(base: *mut u64, size: *mut usize, pointer: u64) {
        let (start, length) = allocation_of(pointer)?;
        raw::store_optional(base, start);
        raw::store_optional(size, length as usize);
        Ok(())
    }

    /// Size of the allocation that starts at an address.
    fn hipMemPtrGetInfo(pointer: u64, size: *mut usize) {
        raw::store(size, allocation_of(pointer).map_err(|_| INVALID_VALUE)?.1 as usize)
    }

    /// What sort of memory a pointer points to.
    fn hipPointerGetAttributes(out: *mut c_void, pointer: *const c_void) {
        let found = match attributes(pointer as u64) {
            Err(INVALID_VALUE) if !pointer.is_null() && !loaded_as_hip_5() => PointerAttributes::UNREGISTERED,
            found => found?,
        };
        raw::store(out.cast::<PointerAttributes>(), found)
    }
}
