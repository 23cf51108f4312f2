//! Contexts, of which the device has one, and what concerns more than one device, of which there is one.

use std::ffi::{c_char, c_int, c_uint};

use crate::devices::{PCI_ADDRESS, only};
use crate::entry_point::entry_points;
use crate::per_thread::{PerThread, pop};
use crate::raw;
use crate::status::*;

/// The handle of the one context.
pub(crate) const CONTEXT: usize = 0x10;

/// What `hipCtxGetApiVersion` has always answered.
const API_VERSION: c_int = 4;

thread_local! {
    /// The contexts that this thread has made current one above the other; each is [`CONTEXT`] or none.
    static STACK: PerThread<Vec<usize>> = const { PerThread::new(Vec::new()) };
}

fn context(context: usize) -> Outcome {
    if context == CONTEXT { Ok(()) } else { Err(INVALID_CONTEXT) }
}

/// Another device, which there is none of.
fn peer(device: c_int) -> Outcome {
    only(device)?;
    // A device is not its own peer.
    Err(INVALID_DEVICE)
}

entry_points! {
    /// The context of a device.
    fn hipCtxCreate(out: *mut usize, _flags: c_uint, device: c_int) {
        only(device)?;
        STACK.with(|stack| stack.borrow_mut().push(CONTEXT));
        raw::store(out, CONTEXT)
    }

    /// Ends a context for this thread; the device's memory stays.
    fn hipCtxDestroy(which: usize) {
        context(which)?;
        STACK.with(pop);
        Ok(())
    }

    /// Makes a context current, above the one that was.
    fn hipCtxPushCurrent(which: usize) {
        context(which)?;
        STACK.with(|stack| stack.borrow_mut().push(which));
        Ok(())
    }

    /// Ends what [`hipCtxPushCurrent`] began.
    fn hipCtxPopCurrent(out: *mut usize) {
        let popped = STACK.with(pop).ok_or(INVALID_CONTEXT)?;
        raw::store_optional(out, popped);
        Ok(())
    }

    /// Makes a context the current one.
    fn hipCtxSetCurrent(which: usize) {
        if which != 0 {
            context(which)?;
        }
        STACK.with(|stack| {
            pop(stack);
            if which != 0 {
                stack.borrow_mut().push(which);
            }
        });
        Ok(())
    }

    /// The current context; the device's own unless another was set.
    fn hipCtxGetCurrent(out: *mut usize) {
        raw::store(out, STACK.with(|stack| stack.borrow().last().copied().unwrap_or(CONTEXT)))
    }

    /// The device of the current context.
    fn hipCtxGetDevice(out: *mut c_int) {
        raw::store(out, 0)
    }

    /// Version of a context.
    fn hipCtxGetApiVersion(which: usize, out: *mut c_int) {
        if which != 0 {
            context(which)?;
        }
        raw::store(out, API_VERSION)
    }

    /// Flags of the current context.
    fn hipCtxGetFlags(out: *mut c_uint) {
        raw::store(out, 0)
    }

    /// Caches do not matter here.
    fn hipCtxSetCacheConfig(_config: c_int) {
        Ok(())
    }

    /// Caches do not matter here.
    fn hipCtxGetCacheConfig(out: *mut c_int) {
        raw::store(out, 0)
    }

    /// Banks of LDS do not matter here.
    fn hipCtxSetSharedMemConfig(_config: c_int) {
        Ok(())
    }

    /// Banks of LDS do not matter here.
    fn hipCtxGetSharedMemConfig(out: *mut c_int) {
        raw::store(out, 0)
    }

    /// Lets a context use another's memory: there is no other.
    fn hipCtxEnablePeerAccess(which: usize, _flags: c_uint) {
        context(which)?;
        Err(INVALID_DEVICE)
    }

    /// Ends what [`hipCtxEnablePeerAccess`] began, which nothing did.
    fn hipCtxDisablePeerAccess(which: usize) {
        context(which)?;
        Err(PEER_ACCESS_NOT_ENABLED)
    }

    /// The context of a device.
    fn hipDevicePrimaryCtxRetain(out: *mut usize, device: c_int) {
        only(device)?;
        raw::store(out, CONTEXT)
    }

    /// Ends what [`hipDevicePrimaryCtxRetain`] began.
    fn hipDevicePrimaryCtxRelease(device: c_int) {
        only(device)
    }

    /// Empties the context of a device; memory stays.
    fn hipDevicePrimaryCtxReset(device: c_int) {
        only(device)
    }

    /// Flags of the context of a device.
    fn hipDevicePrimaryCtxSetFlags(device: c_int, _flags: c_uint) {
        only(device)?;
        // The context has been made with the device.
        Err(CONTEXT_ALREADY_IN_USE)
    }

    /// Flags of the context of a device, and that it is there.
    fn hipDevicePrimaryCtxGetState(device: c_int, flags: *mut c_uint, active: *mut c_int) {
        only(device)?;
        raw::store(flags, 0)?;
        raw::store(active, 1)
    }

    /// Whether devices can reach each other's memory: there is no other.
    fn hipDeviceCanAccessPeer(out: *mut c_int, device: c_int, other: c_int) {
        only(device)?;
        only(other)?;
        raw::store(out, 0)
    }

    /// Lets the device use another's memory: there is no other.
    fn hipDeviceEnablePeerAccess(other: c_int, flags: c_uint) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        peer(other)
    }

    /// Ends what [`hipDeviceEnablePeerAccess`] began, which nothing did.
    fn hipDeviceDisablePeerAccess(other: c_int) {
        only(other)?;
        Err(PEER_ACCESS_NOT_ENABLED)
    }

    /// How devices reach each other: there is no other.
    fn hipDeviceGetP2PAttribute(_out: *mut c_int, _attribute: c_int, from: c_int, to: c_int) {
        only(from)?;
        peer(to)
    }

    /// How devices are connected: there is no other.
    fn hipExtGetLinkTypeAndHopCount(from: c_int, to: c_int, kind: *mut u32, hops: *mut u32) {
        if from < 0 || to < 0 || from == to || kind.is_null() || hops.is_null() {
            return Err(INVALID_VALUE);
        }
        only(from)?;
        only(to)?;
        Err(INVALID_VALUE)
    }

    /// The device at a PCI address.
    fn hipDeviceGetByPCIBusId(out: *mut c_int, address: *const c_char) {
        if raw::string(address)?.eq_ignore_ascii_case(PCI_ADDRESS) { raw::store(out, 0) } else { Err(INVALID_VALUE) }
    }

    /// A name of the device that no other has.
    fn hipDeviceGetUuid(out: *mut [u8; 16], device: c_int) {
        only(device)?;
        raw::store(out, *b"wavetap-emulator")
    }
}
