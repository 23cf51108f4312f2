//! The runtime's pointers, and the C library. With `api` all unsafe code is here.
//!
//! The runtime promises that the tables it passes are as large as they say, and a program promises the runtime, and so
//! this library, that its pointers are null or valid for what a call does. Null is checked for; the rest is their
//! promise, which every `unsafe` below rests on.

use std::ffi::{CStr, c_char, c_int, c_void};

/// Gives rocprofiler-sdk a function to be called with a runtime's tables
/// (`rocprofiler_at_intercept_table_registration`); 0 is success.
pub(crate) type Register = extern "C" fn(Registered, c_int, *mut c_void) -> c_int;

/// What it calls: with the kind of table, the runtime's version, how many were registered before, an array of tables
/// and its length.
pub(crate) type Registered = extern "C" fn(u32, u64, u64, *mut usize, u64, *mut c_void);

/// A value at an address; none if that is null.
pub(crate) fn load<T: Copy>(address: usize) -> Option<T> {
    // SAFETY: not null; whoever gave the address promises a T there.
    (address != 0).then(|| unsafe { (address as *const T).read_unaligned() })
}

/// A byte of memory that a GPU may write meanwhile.
pub(crate) fn load_shared(address: usize) -> u8 {
    // SAFETY: whoever gave the address has allocated memory of the host there.
    unsafe { (address as *const u8).read_volatile() }
}

/// Stores a value at an address, unless that is null.
pub(crate) fn store<T>(address: usize, value: T) {
    if address != 0 {
        // SAFETY: not null; whoever gave the address promises room for a T.
        unsafe { (address as *mut T).write_unaligned(value) };
    }
}

/// The bytes at an address.
pub(crate) fn bytes<'m>(address: usize, size: usize) -> Option<&'m [u8]> {
    // SAFETY: not null; the program promises so many bytes until it destroys what it made of them.
    (address != 0).then(|| unsafe { std::slice::from_raw_parts(address as *const u8, size) })
}

/// The text at an address.
pub(crate) fn text(address: *const c_char) -> String {
    if address.is_null() {
        return String::new();
    }
    // SAFETY: not null; the runtime's texts end with a zero.
    unsafe { CStr::from_ptr(address) }.to_string_lossy().into_owned()
}

/// The whole contents of an open file, whatever its position is.
pub(crate) fn file(descriptor: c_int) -> std::io::Result<Vec<u8>> {
    /// What is read at a time.
    const PART: usize = 1 << 20;
    let mut contents = Vec::new();
    loop {
        let start = contents.len();
        contents.resize(start + PART, 0);
        // SAFETY: there is room for PART bytes from `start` on.
        let read = unsafe {
            libc::pread(descriptor, contents[start..].as_mut_ptr().cast::<c_void>(), PART, start as libc::off_t)
        };
        let Ok(read) = usize::try_from(read) else { return Err(std::io::Error::last_os_error()) };
        contents.truncate(start + read);
        if read == 0 {
            return Ok(contents);
        }
    }
}

/// rocprofiler-sdk's function that takes who is to have a runtime's tables, if the process has loaded it.
pub(crate) fn register() -> Option<Register> {
    let name = c"rocprofiler_at_intercept_table_registration";
    // SAFETY: the name ends with a zero.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: not null; the function has had this type in every release (rocprofiler-sdk, `intercept_table.h`).
    (!function.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Register>(function) })
}

/// The function of the library of ranges that says what is open in the calling thread (`wavetap_ranges`).
pub(crate) type Ranges = extern "C" fn(*mut u32, *mut c_char, usize) -> usize;

/// It, if the process has that library.
pub(crate) fn ranges() -> Option<Ranges> {
    // SAFETY: the name ends with a zero.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"wavetap_ranges".as_ptr()) };
    // SAFETY: not null; the function of this name has this type.
    (!function.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Ranges>(function) })
}

/// Has a function called when the program ends or this library is unloaded.
pub(crate) fn at_exit(function: extern "C" fn()) {
    // SAFETY: the function is this library's; glibc calls it before it unloads the library.
    unsafe { libc::atexit(function) };
}

/// Ends the process at once, without its exit handlers: it is in the middle of a call of its own.
pub(crate) fn end_now(status: c_int) -> ! {
    // SAFETY: it has no conditions.
    unsafe { libc::_exit(status) }
}
