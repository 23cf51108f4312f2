//! Managed memory, and what is asked about pointers one property at a time.

use std::ffi::{c_int, c_uint, c_void};

use crate::arrays;
use crate::devices::only;
use crate::entry_point::entry_points;
use crate::host_memory::HostKind;
use crate::lock::runtime;
use crate::memory::{allocation_of, array_type, attributes};
use crate::objects::advice::{Advice, NOWHERE};
use crate::raw;
use crate::runtime::Runtime;
use crate::status::*;
use crate::stream_op::StreamOp;
use crate::submit::submit;

/// `hipCpuDeviceId`.
const HOST: c_int = -1;

/// `hipMemoryAdvise`: each is set by an odd number or 0 and ended by the next; coherency is on its own.
const ADVICE_READ_MOSTLY: c_int = 1;
const ADVICE_PREFERRED_LOCATION: c_int = 3;
const ADVICE_ACCESSED_BY: c_int = 5;
const ADVICE_COARSE_GRAIN: c_int = 100;

/// `hipMemRangeAttribute`.
const RANGE_READ_MOSTLY: c_int = 1;
const RANGE_PREFERRED_LOCATION: c_int = 2;
const RANGE_ACCESSED_BY: c_int = 3;
const RANGE_LAST_PREFETCH: c_int = 4;
const RANGE_COHERENCY: c_int = 100;

fn location(device: c_int) -> Outcome {
    if device == HOST { Ok(()) } else { only(device) }
}

impl Runtime {
    /// The advice about the managed memory that a range lies in.
    fn advice(&mut self, address: u64, size: usize) -> Outcome<&mut Advice> {
        let range = self
            .host
            .range_of(address)
            .filter(|range| range.kind == HostKind::Managed)
            .copied()
            .ok_or(INVALID_VALUE)?;
        if size == 0 || size as u64 > range.size - (address - range.address) {
            return Err(INVALID_VALUE);
        }
        Ok(self.advised.entry(range.address).or_default())
    }
}

fn advise(address: u64, size: usize, what: c_int, device: c_int) -> Outcome {
    location(device)?;
    let mut runtime = runtime();
    let advice = runtime.advice(address, size)?;
    let on = what % 2 == 1;
    match what {
        ADVICE_READ_MOSTLY | 2 => advice.read_mostly = on,
        ADVICE_PREFERRED_LOCATION | 4 => advice.preferred = if on { device } else { NOWHERE },
        ADVICE_ACCESSED_BY | 6 => advice.accessed_by[usize::from(device == HOST)] = on,
        ADVICE_COARSE_GRAIN | 101 => advice.coarse = !on,
        _ => return Err(INVALID_VALUE),
    }
    Ok(())
}

/// `hipMemLocation`: a sort of place and its number.
#[repr(C)]
#[derive(Clone, Copy)]
struct Place {
    kind: c_int,
    id: c_int,
}

impl Place {
    /// The place as older calls name it.
    fn device(self) -> Outcome<c_int> {
        match self.kind {
            1 => Ok(self.id),
            2 => Ok(HOST),
            _ => Err(INVALID_VALUE),
        }
    }
}

fn prefetch(address: u64, size: usize, device: c_int, stream: *mut c_void) -> Outcome {
    location(device)?;
    runtime().advice(address, size)?.prefetched = device;
    submit(stream, StreamOp::Empty)
}

fn range_attribute(advice: &Advice, attribute: c_int) -> Outcome<Vec<c_int>> {
    Ok(match attribute {
        RANGE_READ_MOSTLY => vec![advice.read_mostly.into()],
        RANGE_PREFERRED_LOCATION => vec![advice.preferred],
        RANGE_ACCESSED_BY => [(0, advice.accessed_by[0]), (HOST, advice.accessed_by[1])]
            .into_iter()
            .filter(|(_, yes)| *yes)
            .map(|(id, _)| id)
            .collect(),
        RANGE_LAST_PREFETCH => vec![advice.prefetched],
        // Fine-grained coherency unless coarse was advised.
        RANGE_COHERENCY => vec![advice.coarse.into()],
        _ => return Err(INVALID_VALUE),
    })
}

fn store_range_attribute(out: *mut c_int, bytes: usize, attribute: c_int, address: u64, size: usize) -> Outcome {
    // Device memory is coarse-grained, and nothing else can be asked of it.
    let device = attribute == RANGE_COHERENCY && runtime().is_device_memory(address);
    let advice =
        if device { Advice { coarse: true, ..Advice::default() } } else { *runtime().advice(address, size)? };
    let values = range_attribute(&advice, attribute)?;
    if out.is_null() || bytes == 0 || !bytes.is_multiple_of(size_of::<c_int>()) {
        return Err(INVALID_VALUE);
    }
    (0..bytes / size_of::<c_int>())
        .try_for_each(|at| raw::store(out.wrapping_add(at), values.get(at).copied().unwrap_or(NOWHERE)))
}

/// What a property is where there is no such memory: none, and no device.
fn clear(out: *mut c_void, attribute: c_int) -> Outcome {
    match attribute {
        1 | 3 | 4 | 11 | 12 | 17 => raw::store(out.cast::<u64>(), 0),
        6 | 8 | 13 => raw::store(out.cast::<bool>(), attribute == 6),
        9 => raw::store(out.cast::<c_int>(), -2),
        _ => raw::store(out.cast::<c_uint>(), 0),
    }
}

/// `hipPointer_attribute`: a property of the memory at an address.
fn pointer_attribute(out: *mut c_void, attribute: c_int, address: u64) -> Outcome {
    if attribute == 2 && arrays::find(address as usize).is_ok() {
        return raw::store(out.cast::<c_int>(), array_type());
    }
    let of = attributes(address)?;
    let (start, size) = allocation_of(address)?;
    match attribute {
        2 => raw::store(out.cast::<c_int>(), of.kind),
        3 => raw::store(out.cast::<u64>(), of.device_pointer),
        4 if of.host_pointer != 0 => raw::store(out.cast::<u64>(), of.host_pointer),
        4 => Err(INVALID_VALUE),
        // Every copy has ended when the call returns.
        6 => raw::store(out.cast::<bool>(), true),
        // Allocations begin on multiples of 256.
        7 => raw::store(out.cast::<u32>(), (start >> 8) as u32),
        8 => raw::store(out.cast::<bool>(), of.is_managed != 0),
        9 => raw::store(out.cast::<c_int>(), 0),
        11 => raw::store(out.cast::<u64>(), start),
        12 => raw::store(out.cast::<usize>(), size as usize),
        13 => raw::store(out.cast::<bool>(), true),
        // Contexts; sharing with other processes and devices.
        1 | 5 | 10 | 14..=15 => Err(NOT_SUPPORTED),
        // Read and written.
        16 => raw::store(out.cast::<c_uint>(), 3),
        17 => {
            let pool = runtime().pools.allocations.get(&start).map(|(pool, _)| *pool);
            raw::store(out.cast::<usize>(), pool.ok_or(NOT_SUPPORTED)?)
        }
        _ => Err(INVALID_VALUE),
    }
}

entry_points! {
    /// Advice about managed memory: it is remembered and makes no difference.
    fn hipMemAdvise(address: u64, size: usize, what: c_int, device: c_int) {
        advise(address, size, what, device)
    }

    /// Moves managed memory: there is one memory, so there is nothing to do.
    fn hipMemPrefetchAsync(address: u64, size: usize, device: c_int, stream: *mut c_void) {
        prefetch(address, size, device, stream)
    }

    /// As [`hipMemAdvise`], with a place of another form.
    fn hipMemAdvise_v2(address: u64, size: usize, what: c_int, place: Place) {
        advise(address, size, what, place.device()?)
    }

    /// As [`hipMemPrefetchAsync`], with a place of another form.
    fn hipMemPrefetchAsync_v2(address: u64, size: usize, place: Place, flags: c_uint, stream: *mut c_void) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        prefetch(address, size, place.device()?, stream)
    }

    /// What was advised about managed memory.
    fn hipMemRangeGetAttribute(out: *mut c_int, bytes: usize, attribute: c_int, address: u64, size: usize) {
        store_range_attribute(out, bytes, attribute, address, size)
    }

    /// Several things that were advised about managed memory.
    fn hipMemRangeGetAttributes(
        outs: *const *mut c_int, bytes: *const usize, which: *const c_int, count: usize, address: u64, size: usize,
    ) {
        for at in 0..count {
            let (out, bytes) = (raw::element(outs, at)?, raw::element(bytes, at)?);
            store_range_attribute(out, bytes, raw::element(which, at)?, address, size)?;
        }
        Ok(())
    }

    /// A property of the memory at an address.
    fn hipPointerGetAttribute(out: *mut c_void, attribute: c_int, address: u64) {
        pointer_attribute(out, attribute, address)
    }

    /// Several properties of the memory at an address; those that it lacks are 0.
    fn hipDrvPointerGetAttributes(count: c_uint, which: *const c_int, outs: *const *mut c_void, address: u64) {
        if count == 0 || address == 0 {
            return Err(INVALID_VALUE);
        }
        for at in 0..count as usize {
            let (out, which) = (raw::element(outs, at)?, raw::element(which, at)?);
            if pointer_attribute(out, which, address).is_err() {
                clear(out, which)?;
            }
        }
        Ok(())
    }

    /// Sets whether copies with this memory have ended when the call returns: they always have.
    fn hipPointerSetAttribute(value: *const c_void, attribute: c_int, address: u64) {
        attributes(address)?;
        if value.is_null() || attribute != 6 { Err(INVALID_VALUE) } else { Ok(()) }
    }
}
