//! The device as a program asks about it: one device, number 0.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::entry_point::entry_points;
use crate::lock::runtime;
use crate::messages::complain;
use crate::properties::TOTAL_MEMORY;
use crate::properties::{self, Facts};
use crate::raw;
use crate::raw::loaded_as_hip_5;
use crate::status::*;

/// The version of HIP that the program was linked with, in HIP's form: major * 10^7 + minor * 10^5 + patch.
fn version() -> c_int {
    if loaded_as_hip_5() { 50_220_000 } else { 60_000_000 }
}

/// Where the device is on its PCI bus.
pub(crate) const PCI_ADDRESS: &str = "0000:03:00.0";

/// The version from which on programs know the newer structures, as `hipGetProcAddress` is given it.
const FIRST_R0600: c_int = 600;

/// `hipLimit_t`.
const LIMIT_STACK: c_int = 0;
const LIMIT_HEAP: c_int = 2;

/// Flags of the device that HIP knows: how the host waits, of which there is one; that host memory is mapped; that
/// scratch is not made smaller again.
const SCHEDULE: c_uint = 7;
const FLAGS: c_uint = SCHEDULE | 8 | 16;

/// What `hipSetDeviceFlags` set.
static DEVICE_FLAGS: AtomicU32 = AtomicU32::new(0);

/// There is one device, number 0.
pub(crate) fn only(device: c_int) -> Outcome {
    if device == 0 { Ok(()) } else { Err(INVALID_DEVICE) }
}

fn facts() -> Outcome<Facts> {
    runtime().facts()
}

fn text(out: *mut c_char, length: c_int, text: &str) -> Outcome {
    let length = usize::try_from(length).ok().filter(|length| *length > 0).ok_or(INVALID_VALUE)?;
    let mut bytes: Vec<u8> = text.bytes().take(length - 1).collect();
    bytes.push(0);
    raw::write(out as usize, &bytes)
}

entry_points! {
    /// Starts the runtime; it starts itself.
    fn hipInit(flags: c_uint) {
        if flags == 0 { Ok(()) } else { Err(INVALID_VALUE) }
    }

    /// Number of devices.
    fn hipGetDeviceCount(out: *mut c_int) {
        raw::store(out, 1)
    }

    /// The current device.
    fn hipGetDevice(out: *mut c_int) {
        raw::store(out, 0)
    }

    /// Makes a device the current one.
    fn hipSetDevice(device: c_int) {
        only(device)
    }

    /// Handle of a device.
    fn hipDeviceGet(out: *mut c_int, device: c_int) {
        only(device)?;
        raw::store(out, 0)
    }

    /// The devices that may be used.
    fn hipSetValidDevices(_devices: *const c_int, _count: c_int) {
        Ok(())
    }

    /// Frees everything. Memory is kept until the program ends, so that a pointer that is still used afterwards is not
    /// given out again.
    fn hipDeviceReset() {
        let outcome = crate::tasks::wait_for_all();
        // Many programs end after this in a manner that calls nothing of ours.
        if let Err(error) = runtime().write() {
            complain("the counts could not be written", &error);
        }
        outcome
    }

    /// Flags of the device: none does anything. Those that say how the host waits are returned on request.
    fn hipSetDeviceFlags(flags: c_uint) {
        if flags & !FLAGS != 0 || (flags & SCHEDULE).count_ones() > 1 {
            return Err(INVALID_VALUE);
        }
        DEVICE_FLAGS.store(flags & SCHEDULE, Ordering::Relaxed);
        Ok(())
    }

    /// Flags of the device.
    fn hipGetDeviceFlags(out: *mut c_uint) {
        raw::store(out, DEVICE_FLAGS.load(Ordering::Relaxed))
    }

    /// Version of the runtime.
    fn hipRuntimeGetVersion(out: *mut c_int) {
        raw::store(out, version())
    }

    /// Version of the driver.
    fn hipDriverGetVersion(out: *mut c_int) {
        raw::store(out, version())
    }

    /// Properties, in the layout of HIP before 6.0.
    fn hipGetDeviceProperties / hipGetDevicePropertiesR0000(out: *mut c_void, device: c_int) {
        only(device)?;
        raw::store(out.cast::<properties::R0000>(), properties::R0000::of(&facts()?))
    }

    /// Properties, in the layout of HIP 6.0 and later.
    fn hipGetDevicePropertiesR0600(out: *mut c_void, device: c_int) {
        only(device)?;
        raw::store(out.cast::<properties::R0600>(), properties::R0600::of(&facts()?))
    }

    /// The device that comes closest to some properties: there is one.
    fn hipChooseDevice / hipChooseDeviceR0000 / hipChooseDeviceR0600(out: *mut c_int, properties: *const c_void) {
        if properties.is_null() { Err(INVALID_VALUE) } else { raw::store(out, 0) }
    }

    /// One property.
    fn hipDeviceGetAttribute(out: *mut c_int, attribute: c_int, device: c_int) {
        only(device)?;
        raw::store(out, properties::attribute(&facts()?, attribute).ok_or(INVALID_VALUE)?)
    }

    /// Name of a device.
    fn hipDeviceGetName(out: *mut c_char, length: c_int, device: c_int) {
        only(device)?;
        text(out, length, &facts()?.name)
    }

    /// PCI address of a device.
    fn hipDeviceGetPCIBusId(out: *mut c_char, length: c_int, device: c_int) {
        only(device)?;
        text(out, length, PCI_ADDRESS)
    }

    /// Compute capability, which for AMD is the generation.
    fn hipDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: c_int) {
        only(device)?;
        let facts = facts()?;
        raw::store(major, facts.major)?;
        raw::store(minor, facts.minor)
    }

    /// Bytes of device memory.
    fn hipDeviceTotalMem(out: *mut usize, device: c_int) {
        only(device)?;
        raw::store(out, TOTAL_MEMORY)
    }

    /// A limit of the device.
    fn hipDeviceGetLimit(out: *mut usize, limit: c_int) {
        let value = match limit {
            LIMIT_STACK => runtime().stack_limit as usize,
            LIMIT_HEAP => runtime().heap_limit,
            _ => return Err(UNSUPPORTED_LIMIT),
        };
        raw::store(out, value)
    }

    /// Sets a limit: the stack of kernels whose need is not known, or the size that the heap of kernels has at first,
    /// which grows when it is used up.
    fn hipDeviceSetLimit(limit: c_int, value: usize) {
        match limit {
            LIMIT_STACK => runtime().stack_limit = u32::try_from(value).map_err(|_| INVALID_VALUE)?,
            LIMIT_HEAP if value <= TOTAL_MEMORY => runtime().heap_limit = value,
            LIMIT_HEAP => return Err(INVALID_VALUE),
            _ => return Err(UNSUPPORTED_LIMIT),
        }
        Ok(())
    }

    /// Caches do not matter here.
    fn hipDeviceSetCacheConfig(_config: c_int) {
        Ok(())
    }

    /// Caches do not matter here.
    fn hipDeviceGetCacheConfig(out: *mut c_int) {
        raw::store(out, 0)
    }

    /// Banks of LDS do not matter here.
    fn hipDeviceSetSharedMemConfig(_config: c_int) {
        Ok(())
    }

    /// Banks of LDS do not matter here.
    fn hipDeviceGetSharedMemConfig(out: *mut c_int) {
        raw::store(out, 0)
    }

    /// Address of an entry point. Where HIP 6 changed a structure, programs for it get the entry point that has the new
    /// one.
    fn hipGetProcAddress / hipGetProcAddress_spt(
        name: *const c_char,
        out: *mut *mut c_void,
        version: c_int,
        _flags: u64,
        result: *mut c_int,
    ) {
        let mut name = raw::string(name)?;
        if version >= FIRST_R0600 && matches!(name.as_str(), "hipGetDeviceProperties" | "hipChooseDevice") {
            name.push_str("R0600");
        }
        let found = raw::own_function(&name);
        // HIP_GET_PROC_ADDRESS_SUCCESS and HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND.
        raw::store_optional(result, if found.is_null() { 1 } else { 0 });
        raw::store(out, found)?;
        if found.is_null() { Err(INVALID_VALUE) } else { Ok(()) }
    }
}
