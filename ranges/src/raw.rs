//! The program's pointers, and the C library: all unsafe code. A program promises that its pointers are null or valid
//! for what a call does, which every `unsafe` below rests on.

use std::ffi::{CStr, c_char};

/// The text at an address; none if that is null.
pub(crate) fn text(address: *const c_char) -> Option<String> {
    if address.is_null() {
        return None;
    }
    // SAFETY: not null; the program's texts end with a zero.
    Some(unsafe { CStr::from_ptr(address) }.to_string_lossy().into_owned())
}

/// Stores a value, unless the address is null.
pub(crate) fn store<T>(address: *mut T, value: T) {
    if !address.is_null() {
        // SAFETY: not null; the caller promises room for a T.
        unsafe { address.write_unaligned(value) };
    }
}

/// Stores as many bytes as there is room for, unless the address is null.
pub(crate) fn store_bytes(address: *mut c_char, room: usize, bytes: &[u8]) {
    if !address.is_null() {
        // SAFETY: not null; the caller promises so much room, and not more is written.
        unsafe { address.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len().min(room)) };
    }
}

/// The system's number of the calling thread.
pub(crate) fn thread() -> u64 {
    unsafe extern "C" {
        /// The C library's function.
        safe fn gettid() -> i32;
    }
    gettid().unsigned_abs().into()
}
