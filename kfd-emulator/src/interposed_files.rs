//! The functions of the C library that look at files without opening them: what they are asked of the driver's files is
//! answered from the folder of these, and everything else passed on.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;

use crate::driver::Driver;
use crate::nodes::Node;
use crate::paths::{Place, place, without_root};
use crate::raw;

/// Version 1 of the structure, which is the only one of 64-bit programs.
const STAT_VERSION: c_int = 1;

/// Calls a function that describes a file with the path where it is, and makes a device of what it says of one.
fn describe(path: *const c_char, buffer: *mut libc::stat, next: impl FnOnce(*const c_char) -> c_int) -> c_int {
    match place(path) {
        Place::Node(node, file) => {
            let result = next(file.as_ptr());
            if result == 0 {
                raw::make_device(buffer, node.number());
            }
            result
        }
        Place::Ours(file) => next(file.as_ptr()),
        Place::Other | Place::None => next(path),
    }
}

/// [`describe`] for an open file.
fn describe_open(descriptor: c_int, buffer: *mut libc::stat, next: impl FnOnce() -> c_int) -> c_int {
    let result = next();
    if let Some(node) = open_node(descriptor)
        && result == 0
    {
        raw::make_device(buffer, node.number());
    }
    result
}

fn open_node(descriptor: c_int) -> Option<Node> {
    Driver::known()?.node_of(descriptor)
}

/// Calls a function with the path where a file is.
fn there<T>(path: *const c_char, next: impl FnOnce(*const c_char) -> T) -> T {
    match place(path) {
        Place::Node(_, file) | Place::Ours(file) => next(file.as_ptr()),
        Place::Other | Place::None => next(path),
    }
}

/// Whether the empty path of a call means its descriptor.
fn is_empty(path: *const c_char, flags: c_int) -> bool {
    flags & libc::AT_EMPTY_PATH != 0 && raw::path(path).is_none_or(CStr::is_empty)
}

/// What a path that was found is called from `/` on: the folder of the driver's files is taken away. Gives how many
/// bytes it has then.
fn outside(path: *mut c_char, length: usize, with_zero: bool) -> usize {
    let Some(driver) = Driver::known() else { return length };
    let found = raw::written(path, length);
    let Some(rest) = without_root(found, &driver.root).map(<[u8]>::len) else { return length };
    raw::drop_front(path, driver.root.as_os_str().as_bytes().len(), rest + usize::from(with_zero));
    rest
}

/// [`outside`] of a path that ends with a zero.
fn outside_text(path: *mut c_char) -> *mut c_char {
    if let Some(text) = raw::path(path) {
        outside(path, text.to_bytes().len(), true);
    }
    path
}

/// Describes a file.
#[unsafe(no_mangle)]
pub extern "C" fn stat(path: *const c_char, buffer: *mut libc::stat) -> c_int {
    describe(path, buffer, |path| raw::stat(path, buffer))
}

/// Describes a file, of a link itself.
#[unsafe(no_mangle)]
pub extern "C" fn lstat(path: *const c_char, buffer: *mut libc::stat) -> c_int {
    describe(path, buffer, |path| raw::lstat(path, buffer))
}

/// Describes an open file.
#[unsafe(no_mangle)]
pub extern "C" fn fstat(descriptor: c_int, buffer: *mut libc::stat) -> c_int {
    describe_open(descriptor, buffer, || raw::fstat(descriptor, buffer))
}

/// Describes a file by a path that may start at a folder, or an open file.
#[unsafe(no_mangle)]
pub extern "C" fn fstatat(folder: c_int, path: *const c_char, buffer: *mut libc::stat, flags: c_int) -> c_int {
    if is_empty(path, flags) {
        return describe_open(folder, buffer, || raw::fstatat(folder, path, buffer, flags));
    }
    describe(path, buffer, |path| raw::fstatat(folder, path, buffer, flags))
}

/// Describes a file.
#[unsafe(no_mangle)]
pub extern "C" fn stat64(path: *const c_char, buffer: *mut libc::stat) -> c_int {
    describe(path, buffer, |path| raw::stat64(path, buffer))
}

/// Describes a file, of a link itself.
#[unsafe(no_mangle)]
pub extern "C" fn lstat64(path: *const c_char, buffer: *mut libc::stat) -> c_int {
    describe(path, buffer, |path| raw::lstat64(path, buffer))
}

/// Describes an open file.
#[unsafe(no_mangle)]
pub extern "C" fn fstat64(descriptor: c_int, buffer: *mut libc::stat) -> c_int {
    describe_open(descriptor, buffer, || raw::fstat64(descriptor, buffer))
}

/// Describes a file by a path that may start at a folder, or an open file.
#[unsafe(no_mangle)]
pub extern "C" fn fstatat64(folder: c_int, path: *const c_char, buffer: *mut libc::stat, flags: c_int) -> c_int {
    if is_empty(path, flags) {
        return describe_open(folder, buffer, || raw::fstatat64(folder, path, buffer, flags));
    }
    describe(path, buffer, |path| raw::fstatat64(folder, path, buffer, flags))
}

/// What compilers made of [`stat`] with a C library before 2.33.
#[unsafe(no_mangle)]
pub extern "C" fn __xstat(version: c_int, path: *const c_char, buffer: *mut libc::stat) -> c_int {
    of_version(version, || stat(path, buffer))
}

/// What compilers made of [`lstat`] with a C library before 2.33.
#[unsafe(no_mangle)]
pub extern "C" fn __lxstat(version: c_int, path: *const c_char, buffer: *mut libc::stat) -> c_int {
    of_version(version, || lstat(path, buffer))
}

/// What compilers made of [`fstat`] with a C library before 2.33.
#[unsafe(no_mangle)]
pub extern "C" fn __fxstat(version: c_int, descriptor: c_int, buffer: *mut libc::stat) -> c_int {
    of_version(version, || fstat(descriptor, buffer))
}

/// What compilers made of [`fstatat`] with a C library before 2.33.
#[unsafe(no_mangle)]
pub extern "C" fn __fxstatat(
    version: c_int,
    folder: c_int,
    path: *const c_char,
    buffer: *mut libc::stat,
    flags: c_int,
) -> c_int {
    of_version(version, || fstatat(folder, path, buffer, flags))
}

/// What compilers made of [`stat`] with a C library before 2.33.
#[unsafe(no_mangle)]
pub extern "C" fn __xstat64(version: c_int, path: *const c_char, buffer: *mut libc::stat) -> c_int {
    of_version(version, || stat(path, buffer))
}

/// What compilers made of [`lstat`] with a C library before 2.33.
#[unsafe(no_mangle)]
pub extern "C" fn __lxstat64(version: c_int, path: *const c_char, buffer: *mut libc::stat) -> c_int {
    of_version(version, || lstat(path, buffer))
}

/// What compilers made of [`fstat`] with a C library before 2.33.
#[unsafe(no_mangle)]
pub extern "C" fn __fxstat64(version: c_int, descriptor: c_int, buffer: *mut libc::stat) -> c_int {
    of_version(version, || fstat(descriptor, buffer))
}

/// What compilers made of [`fstatat`] with a C library before 2.33.
#[unsafe(no_mangle)]
pub extern "C" fn __fxstatat64(
    version: c_int,
    folder: c_int,
    path: *const c_char,
    buffer: *mut libc::stat,
    flags: c_int,
) -> c_int {
    of_version(version, || fstatat(folder, path, buffer, flags))
}

fn of_version(version: c_int, next: impl FnOnce() -> c_int) -> c_int {
    if version == STAT_VERSION {
        return next();
    }
    raw::set_errno(libc::EINVAL);
    -1
}

/// Describes a file by a path that may start at a folder, or an open file.
#[unsafe(no_mangle)]
pub extern "C" fn statx(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    buffer: *mut libc::statx,
) -> c_int {
    let (node, result) = match place(path) {
        _ if is_empty(path, flags) => (open_node(folder), raw::statx(folder, path, flags, mask, buffer)),
        Place::Node(node, file) => (Some(node), raw::statx(folder, file.as_ptr(), flags, mask, buffer)),
        Place::Ours(file) => (None, raw::statx(folder, file.as_ptr(), flags, mask, buffer)),
        Place::Other | Place::None => (None, raw::statx(folder, path, flags, mask, buffer)),
    };
    if let Some(node) = node
        && result == 0
    {
        raw::make_device_of_statx(buffer, node.number());
    }
    result
}

/// Whether a file may be used.
#[unsafe(no_mangle)]
pub extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    there(path, |path| raw::access(path, mode))
}

/// Whether a file may be used.
#[unsafe(no_mangle)]
pub extern "C" fn faccessat(folder: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int {
    there(path, |path| raw::faccessat(folder, path, mode, flags))
}

/// Whether a file may be used.
#[unsafe(no_mangle)]
pub extern "C" fn eaccess(path: *const c_char, mode: c_int) -> c_int {
    there(path, |path| raw::eaccess(path, mode))
}

/// Whether a file may be used.
#[unsafe(no_mangle)]
pub extern "C" fn euidaccess(path: *const c_char, mode: c_int) -> c_int {
    there(path, |path| raw::euidaccess(path, mode))
}

/// Where a link leads.
#[unsafe(no_mangle)]
pub extern "C" fn readlink(path: *const c_char, buffer: *mut c_char, size: usize) -> isize {
    link_text(buffer, there(path, |path| raw::readlink(path, buffer, size)))
}

/// Where a link leads.
#[unsafe(no_mangle)]
pub extern "C" fn readlinkat(folder: c_int, path: *const c_char, buffer: *mut c_char, size: usize) -> isize {
    link_text(buffer, there(path, |path| raw::readlinkat(folder, path, buffer, size)))
}

/// [`readlink`] where compilers check its use.
#[unsafe(no_mangle)]
pub extern "C" fn __readlink_chk(path: *const c_char, buffer: *mut c_char, size: usize, _room: usize) -> isize {
    readlink(path, buffer, size)
}

/// [`readlinkat`] where compilers check its use.
#[unsafe(no_mangle)]
pub extern "C" fn __readlinkat_chk(
    folder: c_int,
    path: *const c_char,
    buffer: *mut c_char,
    size: usize,
    _room: usize,
) -> isize {
    readlinkat(folder, path, buffer, size)
}

/// Takes the folder of the driver's files away from what a link says: those of open files (`/proc/self/fd`) do.
fn link_text(buffer: *mut c_char, result: isize) -> isize {
    usize::try_from(result).map_or(result, |length| outside(buffer, length, false) as isize)
}

/// The path of a file without links.
#[unsafe(no_mangle)]
pub extern "C" fn realpath(path: *const c_char, buffer: *mut c_char) -> *mut c_char {
    outside_text(there(path, |path| raw::realpath(path, buffer)))
}

/// [`realpath`] where compilers check its use.
#[unsafe(no_mangle)]
pub extern "C" fn __realpath_chk(path: *const c_char, buffer: *mut c_char, _room: usize) -> *mut c_char {
    realpath(path, buffer)
}

/// The path of a file without links.
#[unsafe(no_mangle)]
pub extern "C" fn canonicalize_file_name(path: *const c_char) -> *mut c_char {
    outside_text(there(path, raw::canonicalize_file_name))
}

/// Opens a folder.
#[unsafe(no_mangle)]
pub extern "C" fn opendir(path: *const c_char) -> *mut c_void {
    there(path, raw::opendir)
}

/// Lists a folder.
#[unsafe(no_mangle)]
pub extern "C" fn scandir(path: *const c_char, list: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int {
    there(path, |path| raw::scandir(path, list, filter, order))
}

/// Lists a folder.
#[unsafe(no_mangle)]
pub extern "C" fn scandir64(path: *const c_char, list: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int {
    there(path, |path| raw::scandir64(path, list, filter, order))
}

/// What else is said of a file.
#[unsafe(no_mangle)]
pub extern "C" fn getxattr(path: *const c_char, name: *const c_char, value: *mut c_void, size: usize) -> isize {
    there(path, |path| raw::getxattr(path, name, value, size))
}

/// What else is said of a file.
#[unsafe(no_mangle)]
pub extern "C" fn lgetxattr(path: *const c_char, name: *const c_char, value: *mut c_void, size: usize) -> isize {
    there(path, |path| raw::lgetxattr(path, name, value, size))
}
