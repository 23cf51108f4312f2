//! The functions of the C library that this library comes before: what they are asked of the driver's files is answered
//! here, and everything else passed on.

use std::ffi::{c_char, c_int, c_ulong, c_void};

use crate::driver::{self, Driver};
use crate::layout::Record;
use crate::paths::{Place, place};
use crate::{raw, requests};

/// The `ioctl` type of the driver.
const KFD_TYPE: c_ulong = b'K' as c_ulong;

/// Gives an answer of the driver in the manner of the C library.
fn answer(result: Result<c_int, c_int>) -> c_int {
    result.unwrap_or_else(|errno| {
        raw::set_errno(errno);
        -1
    })
}

/// Whether a file is to be written: those of the driver cannot be.
fn writes(flags: c_int) -> bool {
    flags & libc::O_ACCMODE != libc::O_RDONLY || flags & (libc::O_CREAT | libc::O_TRUNC) != 0
}

fn opened(
    path: *const c_char,
    flags: c_int,
    mode: libc::mode_t,
    next: impl FnOnce(*const c_char, c_int, libc::mode_t) -> c_int,
) -> c_int {
    match place(path) {
        // To look at it only.
        Place::Node(_, file) if flags & libc::O_PATH != 0 => next(file.as_ptr(), flags, mode),
        Place::Node(node, _) => answer(Driver::get().ok_or(libc::ENODEV).and_then(|driver| driver.open(node))),
        Place::Ours(file) if writes(flags) && flags & libc::O_PATH == 0 => {
            let is_missing = flags & libc::O_CREAT == 0 && raw::access(file.as_ptr(), libc::F_OK) != 0;
            answer(Err(if is_missing { libc::ENOENT } else { libc::EACCES }))
        }
        Place::Ours(file) => next(file.as_ptr(), flags, mode),
        Place::Other | Place::None => next(path, flags, mode),
    }
}

/// What a function that opens a stream does with a path.
fn stream(path: *const c_char, mode: *const c_char, next: impl FnOnce(*const c_char) -> *mut c_void) -> *mut c_void {
    let refused = |errno| {
        raw::set_errno(errno);
        std::ptr::null_mut()
    };
    let reads =
        raw::path(mode).is_some_and(|mode| mode.to_bytes().first() == Some(&b'r') && !mode.to_bytes().contains(&b'+'));
    match place(path) {
        Place::Ours(_) if !reads => refused(libc::EACCES),
        Place::Ours(file) => next(file.as_ptr()),
        // A stream closes its file without [`close`], so it cannot have one of the driver's descriptors.
        Place::Node(_, file) => next(file.as_ptr()),
        Place::Other | Place::None => next(path),
    }
}

/// Opens a file. The mode is passed on whether there is one or not.
#[unsafe(no_mangle)]
pub extern "C" fn open(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    opened(path, flags, mode, raw::open)
}

/// Opens a file.
#[unsafe(no_mangle)]
pub extern "C" fn open64(path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    opened(path, flags, mode, raw::open64)
}

/// Opens a file; what compilers make of [`open`] where they check its use.
#[unsafe(no_mangle)]
pub extern "C" fn __open_2(path: *const c_char, flags: c_int) -> c_int {
    opened(path, flags, 0, raw::open)
}

/// Opens a file; what compilers make of [`open64`] where they check its use.
#[unsafe(no_mangle)]
pub extern "C" fn __open64_2(path: *const c_char, flags: c_int) -> c_int {
    opened(path, flags, 0, raw::open64)
}

/// Opens a file by a path that may start at a folder: those of the driver do not.
#[unsafe(no_mangle)]
pub extern "C" fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    opened(path, flags, mode, |path, flags, mode| raw::openat(folder, path, flags, mode))
}

/// Opens a file by a path that may start at a folder; what compilers make of [`openat`] where they check its use.
#[unsafe(no_mangle)]
pub extern "C" fn __openat_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    openat(folder, path, flags, 0)
}

/// Opens a file by a path that may start at a folder; what compilers make of [`openat64`] where they check its use.
#[unsafe(no_mangle)]
pub extern "C" fn __openat64_2(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    openat64(folder, path, flags, 0)
}

/// Opens a file by a path that may start at a folder.
#[unsafe(no_mangle)]
pub extern "C" fn openat64(folder: c_int, path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    opened(path, flags, mode, |path, flags, mode| raw::openat64(folder, path, flags, mode))
}

/// Opens a stream.
#[unsafe(no_mangle)]
pub extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut c_void {
    stream(path, mode, |path| raw::fopen(path, mode))
}

/// Opens a stream.
#[unsafe(no_mangle)]
pub extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut c_void {
    stream(path, mode, |path| raw::fopen64(path, mode))
}

/// Opens a stream again.
#[unsafe(no_mangle)]
pub extern "C" fn freopen(path: *const c_char, mode: *const c_char, of: *mut c_void) -> *mut c_void {
    stream(path, mode, |path| raw::freopen(path, mode, of))
}

/// Opens a stream again.
#[unsafe(no_mangle)]
pub extern "C" fn freopen64(path: *const c_char, mode: *const c_char, of: *mut c_void) -> *mut c_void {
    stream(path, mode, |path| raw::freopen64(path, mode, of))
}

/// Closes a file.
#[unsafe(no_mangle)]
pub extern "C" fn close(descriptor: c_int) -> c_int {
    driver::forget(descriptor);
    raw::close(descriptor)
}

/// Asks something of a driver.
#[unsafe(no_mangle)]
pub extern "C" fn ioctl(descriptor: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if !driver::is_ours(descriptor) {
        return raw::ioctl(descriptor, request, argument);
    }
    // As `_IOC_NR`, `_IOC_TYPE` and `_IOC_SIZE` have it.
    let (number, kind, size) = (request & 0xff, request >> 8 & 0xff, (request >> 16 & 0x3fff) as usize);
    let Some(driver) = Driver::started() else { return answer(Err(libc::ENODEV)) };
    if kind != KFD_TYPE {
        return answer(Err(libc::EINVAL));
    }
    let Some(bytes) = raw::bytes(argument as u64, size) else { return answer(Err(libc::EFAULT)) };
    answer(requests::answer(driver, number as u8, &mut Record(bytes)).map(|()| 0))
}
