//! The caller's pointers. All that an entry point reads or writes through them goes through here.
//!
//! A HIP program promises, as with any C interface, that a pointer it passes is null or valid for what the function is
//! said to do. Null is checked for; the rest is the caller's promise, which every `unsafe` below rests on.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::status::{INVALID_VALUE, Outcome};

/// Stores a result.
pub(crate) fn store<T>(place: *mut T, value: T) -> Outcome {
    if place.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null; the caller promises room for a T. It may be unaligned inside a packed structure.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// Stores a result if the caller wants it.
pub(crate) fn store_optional<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: as in `store`.
        unsafe { place.write_unaligned(value) };
    }
}

/// Reads a value.
pub(crate) fn load<T: Copy>(place: *const T) -> Outcome<T> {
    if place.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null; the caller promises a T there.
    Ok(unsafe { place.read_unaligned() })
}

/// Reads element `index` of an array.
pub(crate) fn element<T: Copy>(array: *const T, index: usize) -> Outcome<T> {
    load(if array.is_null() { array } else { array.wrapping_add(index) })
}

/// Copies the caller's bytes.
pub(crate) fn read(address: usize, into: &mut [u8]) -> Outcome {
    if into.is_empty() {
        return Ok(());
    }
    if address == 0 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null; the caller promises `into.len()` readable bytes, and `into` is our own memory, so the two do
    // not overlap.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, into.as_mut_ptr(), into.len()) };
    Ok(())
}

/// Copies into the caller's memory.
pub(crate) fn write(address: usize, from: &[u8]) -> Outcome {
    if from.is_empty() {
        return Ok(());
    }
    if address == 0 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: as in `read`, with the caller's memory writable.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), address as *mut u8, from.len()) };
    Ok(())
}

/// A dword of the caller's that the program may use at the same time; the address is aligned and not null.
pub(crate) fn atomic32<'m>(address: usize) -> &'m AtomicU32 {
    // SAFETY: the caller of this function checked the alignment; the program promises that memory which it lets kernels
    // use is there. Accesses that race with the program's own are atomic on both sides, or the program's error.
    unsafe { AtomicU32::from_ptr(address as *mut u32) }
}

/// Two dwords of the caller's, as [`atomic32`].
pub(crate) fn atomic64<'m>(address: usize) -> &'m AtomicU64 {
    // SAFETY: as in `atomic32`.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }
}

/// New pages of the process, which hold zeros.
pub(crate) fn pages(len: usize) -> Option<usize> {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: a new mapping changes none that there is.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
    (address != libc::MAP_FAILED).then_some(address as usize)
}

/// Ends pages that [`pages`] gave, and that nothing uses any more.
pub(crate) fn give_back_pages(address: usize, len: usize) {
    // SAFETY: the caller of this function has them from `pages`, with this length, and gives them back once.
    unsafe { libc::munmap(address as *mut c_void, len) };
}

/// Whether all pages of a range are mapped in this process.
pub(crate) fn is_mapped(address: usize, len: usize) -> bool {
    const PAGE: usize = 4096;
    let (start, Some(end)) = (address & !(PAGE - 1), address.checked_add(len)) else { return false };
    // SAFETY: it changes nothing, and says of a range that is not mapped that it is not.
    unsafe { libc::msync(start as *mut c_void, end - start, libc::MS_ASYNC) == 0 }
}

/// Copies within the caller's memory.
pub(crate) fn copy(to: usize, from: usize, len: usize) -> Outcome {
    if len == 0 {
        return Ok(());
    }
    if to == 0 || from == 0 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null; the caller promises `len` bytes at both; `copy` allows overlap.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, len) };
    Ok(())
}

/// Reads an array; a null pointer is an array of no elements.
pub(crate) fn array<T: Copy>(array: *const T, count: usize) -> Outcome<Vec<T>> {
    (0..count).map(|index| element(array, index)).collect()
}

/// A string of the caller.
pub(crate) fn string(text: *const c_char) -> Outcome<String> {
    if text.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null; the caller promises a terminating zero.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(str::to_owned).map_err(|_| INVALID_VALUE)
}

/// The bytes of a range that was found in this process's table of mappings.
///
/// They must stay mapped and unchanged for as long as they are used: a loaded program's read-only data does, and an
/// image that a program passes does until the call that it is passed to returns.
pub(crate) fn mapped<'m>(address: usize, len: usize) -> &'m [u8] {
    // SAFETY: the caller of this function took the range from /proc/self/maps, where it is readable.
    unsafe { std::slice::from_raw_parts(address as *const u8, len) }
}

/// `Dl_info`.
#[repr(C)]
struct Found {
    file_name: *const c_char,
    file_base: *mut c_void,
    symbol_name: *const c_char,
    symbol_address: *mut c_void,
}

/// A value that C's `printf` formats.
pub(crate) enum Formatted {
    /// For conversions of a `long long`, or of an `int` that it fits.
    Integer(u64),
    Float(f64),
    Pointer(u64),
    Text(Vec<u8>),
}

/// Formats a value by a specification that has one conversion, of its kind, and no `*`.
pub(crate) fn format(specification: &[u8], value: Formatted) -> Vec<u8> {
    /// Longer texts are cut: no width or precision of a format makes the library allocate more.
    const LONGEST: usize = 1 << 16;
    let Ok(specification) = CString::new(specification) else { return Vec::new() };
    let mut out = vec![0_u8; LONGEST];
    let (to, format) = (out.as_mut_ptr().cast::<c_char>(), specification.as_ptr());
    // SAFETY: `out` has room for LONGEST bytes; the specification has one conversion, which the caller matches with the
    // kind of value.
    let written = unsafe {
        match value {
            Formatted::Integer(value) => snprintf(to, LONGEST, format, value),
            Formatted::Float(value) => snprintf(to, LONGEST, format, value),
            Formatted::Pointer(value) => snprintf(to, LONGEST, format, value as *const c_void),
            Formatted::Text(text) => {
                let Ok(text) = CString::new(text) else { return Vec::new() };
                snprintf(to, LONGEST, format, text.as_ptr())
            }
        }
    };
    out.truncate(usize::try_from(written).unwrap_or(0).min(LONGEST - 1));
    out
}

/// Prints to the C library's standard output or standard error; whether that worked.
pub(crate) fn print(text: &[u8], to_error: bool) -> bool {
    // SAFETY: the streams exist from the program's start, `text` is readable for its length.
    unsafe { fwrite(text.as_ptr().cast(), 1, text.len(), if to_error { stderr } else { stdout }) == text.len() }
}

unsafe extern "C" {
    /// The C library's streams.
    static stdout: *mut c_void;
    static stderr: *mut c_void;

    fn snprintf(to: *mut c_char, size: usize, format: *const c_char, ...) -> c_int;

    fn fwrite(from: *const c_void, size: usize, count: usize, stream: *mut c_void) -> usize;

    /// Which loaded file an address belongs to (glibc).
    fn dladdr(address: *const c_void, found: *mut Found) -> c_int;

    /// Address of a symbol (POSIX).
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;

    /// A loaded library (POSIX).
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;

    /// Functions that are called around every fork (POSIX): before it, and after it in the parent and in the child.
    fn pthread_atfork(before: extern "C" fn(), in_parent: extern "C" fn(), in_child: extern "C" fn()) -> c_int;

    /// Ends the process without running exit handlers (POSIX).
    safe fn _exit(status: c_int) -> !;
}

/// Has functions called before every fork, and after it in the parent and in the child.
pub(crate) fn around_forks(before: extern "C" fn(), in_parent: extern "C" fn(), in_child: extern "C" fn()) {
    // SAFETY: the functions are this library's, which is never unloaded while the program forks.
    unsafe { pthread_atfork(before, in_parent, in_child) };
}

/// Ends the program at once. Its exit handlers would call back into this library, which may be just about to be set up.
pub(crate) fn end_now(status: c_int) -> ! {
    _exit(status)
}

/// Writes what the C library holds of the program's output, as it does when a program ends by itself: `abort` does not.
pub(crate) fn flush_output() {
    // SAFETY: without a stream it flushes all of them, each under its lock.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

/// Address of a function that this library exports; null if it exports none of that name.
pub(crate) fn own_function(name: &str) -> *mut c_void {
    /// Lazy binding, and only what is loaded already.
    const RTLD_LAZY_NOLOAD: c_int = 1 | 4;
    let (Some(path), Ok(name)) = (own_file_name(), CString::new(name)) else { return std::ptr::null_mut() };
    let Ok(path) = CString::new(path) else { return std::ptr::null_mut() };
    // SAFETY: both texts end with a zero; the library is this one, which is loaded.
    let library = unsafe { dlopen(path.as_ptr(), RTLD_LAZY_NOLOAD) };
    if library.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the handle was just given out and is kept.
    unsafe { dlsym(library, name.as_ptr()) }
}

/// Frames of a stack that are looked at.
const MOST_FRAMES: usize = 48;

/// The addresses to which the functions of this thread's stack return, the innermost first.
pub(crate) fn return_addresses() -> Vec<usize> {
    let mut found = [std::ptr::null_mut::<c_void>(); MOST_FRAMES];
    // SAFETY: there is room for so many addresses.
    let count = unsafe { libc::backtrace(found.as_mut_ptr(), MOST_FRAMES as c_int) };
    found[..usize::try_from(count).unwrap_or(0).min(MOST_FRAMES)].iter().map(|address| *address as usize).collect()
}

/// The file that an address of code is loaded from, and where that begins.
pub(crate) fn module_of(address: usize) -> Option<(String, usize)> {
    let found = module(address as *const c_void)?;
    Some((string(found.file_name).ok()?, found.file_base as usize))
}

/// Whether an address of code is one of this library's.
pub(crate) fn is_own(address: usize) -> bool {
    let base = |address| module(address).map(|module| module.file_base as usize);
    base(address as *const c_void).is_some_and(|found| base(own_file_name as *const c_void) == Some(found))
}

/// The name that this library was loaded by.
pub(crate) fn own_file_name() -> Option<String> {
    string(module(own_file_name as *const c_void)?.file_name).ok()
}

fn module(address: *const c_void) -> Option<Found> {
    let mut found = Found {
        file_name: std::ptr::null(),
        file_base: std::ptr::null_mut(),
        symbol_name: std::ptr::null(),
        symbol_address: std::ptr::null_mut(),
    };
    // SAFETY: `found` has the layout of `Dl_info`; any address may be asked for.
    let known = unsafe { dladdr(address, &raw mut found) } != 0;
    known.then_some(found)
}

/// Whether the program asked for `libamdhip64.so.5`: its headers then are those of HIP 5.
pub(crate) fn loaded_as_hip_5() -> bool {
    own_file_name().is_some_and(|name| name.ends_with(".so.5"))
}
