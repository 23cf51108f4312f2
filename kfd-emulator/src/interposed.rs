//! The functions of the C library that this library comes before: what they are asked of the driver's files is answered
//! here, and everything else passed on.

use std::borrow::Cow;
use std::ffi::{CString, OsStr, c_char, c_int, c_ulong, c_void};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::driver::{self, Driver};
use crate::gpu::Gpu;
use crate::layout::Record;
use crate::{raw, requests};

/// The driver's device, the beginning of the names of render nodes, and of the topology.
const KFD: &[u8] = b"/dev/kfd";
const RENDER: &[u8] = b"/dev/dri/renderD";
const TOPOLOGY: &[u8] = b"/sys/devices/virtual/kfd/kfd/topology";

/// Says that the graphics driver is loaded.
const INITSTATE: &[u8] = b"/sys/module/amdgpu/initstate";

/// The `ioctl` type of the driver.
const KFD_TYPE: c_ulong = b'K' as c_ulong;

/// What a path is.
enum Place<'p> {
    /// The driver's device, or the render node of a GPU.
    Device(Option<Gpu>),
    /// A file, perhaps instead of another one.
    File(Cow<'p, std::ffi::CStr>),
    /// None, or none in this process.
    None,
}

fn place<'p>(path: *const c_char) -> Place<'p> {
    let Some(path) = raw::path(path) else { return Place::None };
    let bytes = path.to_bytes();
    if bytes == KFD {
        return Place::Device(None);
    }
    if let Some(minor) = bytes.strip_prefix(RENDER) {
        let gpu = std::str::from_utf8(minor).ok().and_then(|minor| minor.parse().ok()).and_then(|minor| {
            let driver = Driver::get()?;
            Gpu::by_render_minor(minor, driver.gpus)
        });
        return gpu.map_or(Place::None, |gpu| Place::Device(Some(gpu)));
    }
    let name = match bytes.strip_prefix(TOPOLOGY) {
        Some(rest) => rest.strip_prefix(b"/").unwrap_or(rest),
        None if bytes == INITSTATE => b"initstate",
        None => return Place::File(Cow::Borrowed(path)),
    };
    let Some(driver) = Driver::get() else { return Place::None };
    let file = driver.topology.join(OsStr::from_bytes(name)).into_os_string().into_vec();
    // A path has no zero.
    CString::new(file).map_or(Place::None, |file| Place::File(Cow::Owned(file)))
}

/// Gives an answer of the driver in the manner of the C library.
fn answer(result: Result<c_int, c_int>) -> c_int {
    result.unwrap_or_else(|errno| {
        raw::set_errno(errno);
        -1
    })
}

fn opened(
    path: *const c_char,
    flags: c_int,
    mode: libc::mode_t,
    next: impl FnOnce(*const c_char, c_int, libc::mode_t) -> c_int,
) -> c_int {
    match place(path) {
        Place::Device(gpu) => answer(Driver::get().ok_or(libc::ENODEV).and_then(|driver| driver.open(gpu))),
        Place::File(path) => next(path.as_ptr(), flags, mode),
        Place::None => answer(Err(libc::ENOENT)),
    }
}

/// What a function that gives a pointer does with a path.
fn with_file(path: *const c_char, next: impl FnOnce(*const c_char) -> *mut c_void) -> *mut c_void {
    match place(path) {
        Place::File(path) => next(path.as_ptr()),
        Place::Device(_) => next(path),
        Place::None => {
            raw::set_errno(libc::ENOENT);
            std::ptr::null_mut()
        }
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

/// Opens a file by a path that may start at a folder.
#[unsafe(no_mangle)]
pub extern "C" fn openat64(folder: c_int, path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    opened(path, flags, mode, |path, flags, mode| raw::openat64(folder, path, flags, mode))
}

/// Opens a stream.
#[unsafe(no_mangle)]
pub extern "C" fn fopen(path: *const c_char, mode: *const c_char) -> *mut c_void {
    with_file(path, |path| raw::fopen(path, mode))
}

/// Opens a stream.
#[unsafe(no_mangle)]
pub extern "C" fn fopen64(path: *const c_char, mode: *const c_char) -> *mut c_void {
    with_file(path, |path| raw::fopen64(path, mode))
}

/// Opens a folder.
#[unsafe(no_mangle)]
pub extern "C" fn opendir(path: *const c_char) -> *mut c_void {
    with_file(path, raw::opendir)
}

/// Whether a file may be used.
#[unsafe(no_mangle)]
pub extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    match place(path) {
        Place::Device(_) => answer(Driver::get().map(|_| 0).ok_or(libc::ENODEV)),
        Place::File(path) => raw::access(path.as_ptr(), mode),
        Place::None => answer(Err(libc::ENOENT)),
    }
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
