//! The entry points that are not implemented: loadable, and honest when they are called.
//!
//! The build makes this list from `entry-points.txt` and the sources:
#![doc = include_str!(concat!(env!("OUT_DIR"), "/missing.md"))]

use std::ffi::{c_char, c_uint, c_void};

use crate::raw;
use crate::status::{NOT_SUPPORTED, Status, answer};
use wavetap::stderr_line;

/// Says on standard error what was called.
fn missing(name: &str) -> Status {
    stderr_line!("wavetap: {name} is not implemented by the built-in runtime");
    answer(|| Err(NOT_SUPPORTED))
}

/// Exports a function that says its name. On x86-64 a function may be passed any number of arguments that it does not
/// look at.
macro_rules! stub {
    ($name:ident) => {
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        extern "C" fn $name() -> Status {
            missing(stringify!($name))
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/stubs.rs"));

/// Name of a kernel for tools: not known.
#[unsafe(no_mangle)]
extern "C" fn hipKernelNameRef(_function: *mut c_void) -> *const c_char {
    missing("hipKernelNameRef");
    c"".as_ptr()
}

/// Name of a kernel for tools: not known.
#[unsafe(no_mangle)]
extern "C" fn hipKernelNameRefByPtr(_function: *const c_void, _stream: *mut c_void) -> *const c_char {
    missing("hipKernelNameRefByPtr");
    c"".as_ptr()
}

/// Name of an entry point for tools: not known.
#[unsafe(no_mangle)]
extern "C" fn hipApiName(_id: c_uint) -> *const c_char {
    missing("hipApiName");
    c"".as_ptr()
}

/// Name of a command for tools: not known.
#[unsafe(no_mangle)]
extern "C" fn hipGetCmdName(_id: c_uint) -> *const c_char {
    missing("hipGetCmdName");
    c"".as_ptr()
}

/// The precompiled header for the runtime compiler: there is none.
#[unsafe(no_mangle)]
extern "C" fn __hipGetPCH(header: *mut *const c_char, size: *mut c_uint) {
    raw::store_optional(header, std::ptr::null());
    raw::store_optional(size, 0);
}
