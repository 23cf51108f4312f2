//! The ranges that a program marks with roctx, and where it has profilers pause.
//!
//! In place of `libroctx64` and `librocprofiler-sdk-roctx`: a program that marks ranges calls this library, and what
//! counts its kernels asks for the ranges that are open ([`region`], [`wavetap_ranges`]). A range that was pushed is
//! its thread's; one that was started is the process's until it is stopped. Nothing is passed on: no other profiler
//! sees the ranges of a process that this library is in.

#![allow(non_snake_case, reason = "the names are ROCm's")]

mod open;
mod raw;

use std::ffi::{c_char, c_int, c_void};

pub use open::{Pausing, pausing, region};

/// What a call gives that did what it should.
const SUCCESS: c_int = 0;
/// What a call gives that was no good.
const FAILED: c_int = -1;

/// What is open in the calling thread, for a library that finds this one by name: writes as much of the region's name
/// as there is room for, and gives the length of all of it. The word is set to a [`Pausing`].
#[unsafe(no_mangle)]
pub extern "C" fn wavetap_ranges(pausing_now: *mut u32, name: *mut c_char, room: usize) -> usize {
    raw::store(pausing_now, pausing() as u32);
    let region = region().unwrap_or_default();
    raw::store_bytes(name, room, region.as_bytes());
    region.len()
}

/// Opens a range of the calling thread; gives its level, from 0.
#[unsafe(no_mangle)]
pub extern "C" fn roctxRangePushA(message: *const c_char) -> c_int {
    raw::text(message).map_or(FAILED, |name| c_int::try_from(open::push(&name)).unwrap_or(c_int::MAX))
}

/// Closes the range of the calling thread that was opened last; gives its level.
#[unsafe(no_mangle)]
pub extern "C" fn roctxRangePop() -> c_int {
    open::pop().map_or(FAILED, |level| c_int::try_from(level).unwrap_or(c_int::MAX))
}

/// Opens a range of the process; gives what closes it.
#[unsafe(no_mangle)]
pub extern "C" fn roctxRangeStartA(message: *const c_char) -> u64 {
    raw::text(message).map_or(u64::MAX, |name| open::start(&name))
}

/// Closes a range of the process.
#[unsafe(no_mangle)]
pub extern "C" fn roctxRangeStop(range: u64) {
    open::stop(range);
}

/// A moment: no dispatch is in it.
#[unsafe(no_mangle)]
pub extern "C" fn roctxMarkA(_message: *const c_char) {}

/// Has profilers pause. Of a single thread: nothing here is by thread, all pause.
#[unsafe(no_mangle)]
pub extern "C" fn roctxProfilerPause(_thread: u64) -> c_int {
    open::pause(true);
    SUCCESS
}

/// Has profilers go on.
#[unsafe(no_mangle)]
pub extern "C" fn roctxProfilerResume(_thread: u64) -> c_int {
    open::pause(false);
    SUCCESS
}

/// Has profilers go on, by HIP's own name.
#[unsafe(no_mangle)]
pub extern "C" fn hipProfilerStart() -> c_int {
    open::pause(false);
    SUCCESS
}

/// Has profilers pause, by HIP's own name.
#[unsafe(no_mangle)]
pub extern "C" fn hipProfilerStop() -> c_int {
    open::pause(true);
    SUCCESS
}

/// The number of the calling thread.
#[unsafe(no_mangle)]
pub extern "C" fn roctxGetThreadId(thread: *mut u64) -> c_int {
    if thread.is_null() {
        return FAILED;
    }
    raw::store(thread, raw::thread());
    SUCCESS
}

/// A name for the calling thread; no report has threads.
#[unsafe(no_mangle)]
pub extern "C" fn roctxNameOsThread(_name: *const c_char) -> c_int {
    SUCCESS
}

/// A name for an agent of HSA, as that for a thread.
#[unsafe(no_mangle)]
pub extern "C" fn roctxNameHsaAgent(_name: *const c_char, _agent: *const c_void) -> c_int {
    SUCCESS
}

/// A name for a device of HIP, as that for a thread.
#[unsafe(no_mangle)]
pub extern "C" fn roctxNameHipDevice(_name: *const c_char, _device: c_int) -> c_int {
    SUCCESS
}

/// A name for a stream of HIP, as that for a thread.
#[unsafe(no_mangle)]
pub extern "C" fn roctxNameHipStream(_name: *const c_char, _stream: *const c_void) -> c_int {
    SUCCESS
}

/// `libroctracer64` asks to be told of ranges: it is not.
#[unsafe(no_mangle)]
pub extern "C" fn roctxRegisterTracerCallback(_function: *const c_void) {}

/// The major version of the interface.
#[unsafe(no_mangle)]
pub extern "C" fn roctx_version_major() -> u32 {
    4
}

/// Its minor version.
#[unsafe(no_mangle)]
pub extern "C" fn roctx_version_minor() -> u32 {
    1
}
