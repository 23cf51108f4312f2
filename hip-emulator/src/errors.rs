//! The entry points for errors.

use crate::entry_point::entry_points;
use crate::raw;
use crate::status::*;

/// Gives the last error of this thread and forgets it.
#[unsafe(no_mangle)]
extern "C" fn hipGetLastError() -> Status {
    last_error(true)
}

/// As [`hipGetLastError`]: errors are all there is to remember here.
#[unsafe(no_mangle)]
extern "C" fn hipExtGetLastError() -> Status {
    last_error(true)
}

/// Gives the last error of this thread.
#[unsafe(no_mangle)]
extern "C" fn hipPeekAtLastError() -> Status {
    last_error(false)
}

/// Name of an error code.
#[unsafe(no_mangle)]
extern "C" fn hipGetErrorName(code: Status) -> *const core::ffi::c_char {
    name(code).as_ptr()
}

/// Text of an error code.
#[unsafe(no_mangle)]
extern "C" fn hipGetErrorString(code: Status) -> *const core::ffi::c_char {
    text(code).as_ptr()
}

entry_points! {
    /// Name of an error code, through a pointer.
    fn hipDrvGetErrorName(code: Status, out: *mut *const core::ffi::c_char) {
        raw::store(out, name(code).as_ptr())
    }

    /// Text of an error code, through a pointer.
    fn hipDrvGetErrorString(code: Status, out: *mut *const core::ffi::c_char) {
        raw::store(out, text(code).as_ptr())
    }
}
