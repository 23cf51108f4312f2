//! The program's pointers, and the functions of the C library that this library comes before. All unsafe code is here.
//!
//! A program promises the kernel, and so this library, that the pointers which it passes are null or valid for what the
//! call does. Null is checked for; the rest is the caller's promise, which every `unsafe` below rests on.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::sync::OnceLock;

use wavetap_emulator::MmapRegion;

/// A path.
pub(crate) fn path<'p>(path: *const c_char) -> Option<&'p CStr> {
    // SAFETY: not null; the caller promises a terminating zero.
    (!path.is_null()).then(|| unsafe { CStr::from_ptr(path) })
}

/// The bytes at an address of the program's.
pub(crate) fn bytes<'p>(address: u64, length: usize) -> Option<&'p mut [u8]> {
    if address == 0 {
        return None;
    }
    // SAFETY: not null; the caller promises so many bytes, which nothing else uses during the call.
    Some(unsafe { std::slice::from_raw_parts_mut(address as *mut u8, length) })
}

/// Stores a result if the caller wants it.
pub(crate) fn store<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: not null; the caller promises room for a T.
        unsafe { place.write_unaligned(value) };
    }
}

/// Sets the error number of the C library.
pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: the place belongs to this thread for as long as it runs.
    unsafe { *libc::__errno_location() = errno };
}

/// Whether a range is mapped in this process.
pub(crate) fn is_mapped(address: u64, length: u64) -> bool {
    // SAFETY: it changes nothing, and says of a range that is not mapped that it is not.
    unsafe { libc::msync(address as *mut c_void, length as usize, libc::MS_ASYNC) == 0 }
}

/// The program's own pages. They must stay mapped for as long as the device has them, as with the kernel's driver.
pub(crate) fn pages(address: u64, length: u64) -> Option<MmapRegion> {
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
    if !is_mapped(address, length) {
        return None;
    }
    // SAFETY: the range is mapped, and the program that registers it promises that it stays so. What the region gives
    // out is accessed as memory that others change at the same time.
    unsafe { MmapRegion::build_raw(address as *mut u8, length as usize, protection, flags) }.ok()
}

/// A code object that AMD's runtime has loaded, as it tells debuggers: where its virtual address 0 is, and where its
/// bytes are, as an address (`memory://PROCESS#offset=ADDRESS&size=BYTES`, `file://PATH#offset=OFFSET&size=BYTES`).
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: usize,
    next: *const LinkMap,
}

/// The start of what has the list of them (`_amdgpu_r_debug`).
#[repr(C)]
struct LoadedList {
    version: c_int,
    first: *const LinkMap,
}

/// The code objects that AMD's runtime has loaded: where they are, and where their bytes are.
pub(crate) fn loaded_objects() -> Vec<(u64, String)> {
    /// More would not be a list.
    const MOST: usize = 1 << 16;
    // SAFETY: the name ends with a zero.
    let list = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_amdgpu_r_debug".as_ptr()) }.cast::<LoadedList>();
    let mut found = Vec::new();
    if list.is_null() {
        return found;
    }
    // SAFETY: the runtime's variable, which is there as long as its library is.
    let mut next = unsafe { (*list).first };
    while found.len() < MOST && is_mapped(next as u64 & !0xfff, 1) && !next.is_null() {
        // SAFETY: an entry of the runtime's list, which is mapped.
        let LinkMap { base, name, next: after, .. } = unsafe { std::ptr::read(next) };
        if let Some(name) = path(name) {
            found.push((base as u64, name.to_string_lossy().into_owned()));
        }
        next = after;
    }
    found
}

/// Has a function called when the program ends.
pub(crate) fn at_exit(function: extern "C" fn()) {
    // SAFETY: the function is this library's, which is never unloaded.
    unsafe { libc::atexit(function) };
}

/// Ends the process at once, without its exit handlers: it is in the middle of a call of its own.
pub(crate) fn end_now(status: c_int) -> ! {
    // SAFETY: it has no conditions.
    unsafe { libc::_exit(status) }
}

/// Writes what the C library holds of the program's output: `abort` does not.
pub(crate) fn flush_output() {
    // SAFETY: without a stream it flushes all of them, each under its lock.
    unsafe { libc::fflush(std::ptr::null_mut()) };
}

/// A function of the next library that has it: what this library's function of that name comes before.
struct Next {
    name: &'static CStr,
    address: OnceLock<usize>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Next { name, address: OnceLock::new() }
    }

    /// Its address; 0 if there is none.
    fn address(&self) -> usize {
        // SAFETY: the name ends with a zero; RTLD_NEXT starts the search after this library.
        *self.address.get_or_init(|| unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) } as usize)
    }
}

/// Makes a function that calls the next library's function of a name; without one it fails with `ENOSYS`.
macro_rules! next {
    ($(#[$doc:meta])* $name:ident, $symbol:literal, ($($argument:ident: $type:ty),*) -> $result:ty, $failed:expr,
        ($($as:ty),* $(; $variadic:tt)?)) => {
        $(#[$doc])*
        pub(crate) fn $name($($argument: $type),*) -> $result {
            static NEXT: Next = Next::new($symbol);
            let address = NEXT.address();
            if address == 0 {
                set_errno(libc::ENOSYS);
                return $failed;
            }
            // SAFETY: the address is that of the C library's function of this name, which has this signature.
            let function = unsafe {
                std::mem::transmute::<usize, unsafe extern "C" fn($($as),* $(, $variadic)?) -> $result>(address)
            };
            // SAFETY: the arguments are the caller's, who called that very function.
            unsafe { function($($argument),*) }
        }
    };
}

const NONE: *mut c_void = std::ptr::null_mut();

/// A call of the kernel, where the C library has no function of the name: before its version 2.33 the functions of the
/// family of `stat` were no symbols.
fn call(number: c_long, arguments: [usize; 5]) -> c_int {
    let [one, two, three, four, five] = arguments;
    // SAFETY: the arguments are those of a function that makes this very call, whose caller promises them.
    unsafe { libc::syscall(number, one, two, three, four, five) as c_int }
}

/// Makes what the C library says of a file that stands for a device file be said of the device.
pub(crate) fn make_device(buffer: *mut libc::stat, (major, minor): (u32, u32)) {
    if buffer.is_null() {
        return;
    }
    // SAFETY: not null; the caller promises the structure, which the C library has filled.
    let buffer = unsafe { &mut *buffer };
    buffer.st_mode = libc::S_IFCHR | DEVICE_MODE;
    buffer.st_rdev = libc::makedev(major, minor);
    (buffer.st_size, buffer.st_blocks) = (0, 0);
}

/// [`make_device`] of the other structure.
pub(crate) fn make_device_of_statx(buffer: *mut libc::statx, (major, minor): (u32, u32)) {
    if buffer.is_null() {
        return;
    }
    // SAFETY: not null; the caller promises the structure, which the C library has filled.
    let buffer = unsafe { &mut *buffer };
    buffer.stx_mode = (libc::S_IFCHR | DEVICE_MODE) as u16;
    (buffer.stx_rdev_major, buffer.stx_rdev_minor) = (major, minor);
    (buffer.stx_size, buffer.stx_blocks) = (0, 0);
}

/// Everybody may open the devices.
const DEVICE_MODE: libc::mode_t = 0o666;

/// Takes the first bytes of a path away, of which so many follow: a terminating zero among them, or none.
pub(crate) fn drop_front(path: *mut c_char, front: usize, rest: usize) {
    // SAFETY: the caller gives a path that the C library has written, of at least so many bytes.
    unsafe { std::ptr::copy(path.add(front), path, rest) };
}

/// The bytes that a function has written to a buffer.
pub(crate) fn written<'b>(buffer: *const c_char, length: usize) -> &'b [u8] {
    if buffer.is_null() {
        return &[];
    }
    // SAFETY: not null; a function of the C library has just said that it wrote so many.
    unsafe { std::slice::from_raw_parts(buffer.cast(), length) }
}

next!(
    /// `open`.
    open, c"open", (path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int, -1, (*const c_char, c_int; ...)
);
next!(
    /// `open64`.
    open64, c"open64", (path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int, -1,
    (*const c_char, c_int; ...)
);
next!(
    /// `openat`.
    openat, c"openat", (folder: c_int, path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int, -1,
    (c_int, *const c_char, c_int; ...)
);
next!(
    /// `openat64`.
    openat64, c"openat64", (folder: c_int, path: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int, -1,
    (c_int, *const c_char, c_int; ...)
);
next!(
    /// `fopen`.
    fopen, c"fopen", (path: *const c_char, mode: *const c_char) -> *mut c_void, NONE, (*const c_char, *const c_char)
);
next!(
    /// `fopen64`.
    fopen64, c"fopen64", (path: *const c_char, mode: *const c_char) -> *mut c_void, NONE,
    (*const c_char, *const c_char)
);
next!(
    /// `opendir`.
    opendir, c"opendir", (path: *const c_char) -> *mut c_void, NONE, (*const c_char)
);
next!(
    /// `access`.
    access, c"access", (path: *const c_char, mode: c_int) -> c_int, -1, (*const c_char, c_int)
);
next!(
    /// `close`.
    close, c"close", (descriptor: c_int) -> c_int, -1, (c_int)
);
next!(
    /// `ioctl`.
    ioctl, c"ioctl", (descriptor: c_int, request: c_ulong, argument: *mut c_void) -> c_int, -1, (c_int, c_ulong; ...)
);
next!(
    /// `stat`.
    stat, c"stat", (path: *const c_char, buffer: *mut libc::stat) -> c_int,
    call(libc::SYS_newfstatat, [libc::AT_FDCWD as usize, path as usize, buffer as usize, 0, 0]),
    (*const c_char, *mut libc::stat)
);
next!(
    /// `lstat`.
    lstat, c"lstat", (path: *const c_char, buffer: *mut libc::stat) -> c_int,
    call(
        libc::SYS_newfstatat,
        [libc::AT_FDCWD as usize, path as usize, buffer as usize, libc::AT_SYMLINK_NOFOLLOW as usize, 0]
    ),
    (*const c_char, *mut libc::stat)
);
next!(
    /// `fstat`.
    fstat, c"fstat", (descriptor: c_int, buffer: *mut libc::stat) -> c_int,
    call(libc::SYS_fstat, [descriptor as usize, buffer as usize, 0, 0, 0]), (c_int, *mut libc::stat)
);
next!(
    /// `fstatat`.
    fstatat, c"fstatat", (folder: c_int, path: *const c_char, buffer: *mut libc::stat, flags: c_int) -> c_int,
    call(libc::SYS_newfstatat, [folder as usize, path as usize, buffer as usize, flags as usize, 0]),
    (c_int, *const c_char, *mut libc::stat, c_int)
);
next!(
    /// `stat64`.
    stat64, c"stat64", (path: *const c_char, buffer: *mut libc::stat) -> c_int,
    call(libc::SYS_newfstatat, [libc::AT_FDCWD as usize, path as usize, buffer as usize, 0, 0]),
    (*const c_char, *mut libc::stat)
);
next!(
    /// `lstat64`.
    lstat64, c"lstat64", (path: *const c_char, buffer: *mut libc::stat) -> c_int,
    call(
        libc::SYS_newfstatat,
        [libc::AT_FDCWD as usize, path as usize, buffer as usize, libc::AT_SYMLINK_NOFOLLOW as usize, 0]
    ),
    (*const c_char, *mut libc::stat)
);
next!(
    /// `fstat64`.
    fstat64, c"fstat64", (descriptor: c_int, buffer: *mut libc::stat) -> c_int,
    call(libc::SYS_fstat, [descriptor as usize, buffer as usize, 0, 0, 0]), (c_int, *mut libc::stat)
);
next!(
    /// `fstatat64`.
    fstatat64, c"fstatat64", (folder: c_int, path: *const c_char, buffer: *mut libc::stat, flags: c_int) -> c_int,
    call(libc::SYS_newfstatat, [folder as usize, path as usize, buffer as usize, flags as usize, 0]),
    (c_int, *const c_char, *mut libc::stat, c_int)
);
next!(
    /// `statx`.
    statx, c"statx",
    (folder: c_int, path: *const c_char, flags: c_int, mask: c_uint, buffer: *mut libc::statx) -> c_int,
    call(libc::SYS_statx, [folder as usize, path as usize, flags as usize, mask as usize, buffer as usize]),
    (c_int, *const c_char, c_int, c_uint, *mut libc::statx)
);
next!(
    /// `faccessat`.
    faccessat, c"faccessat", (folder: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int,
    -1, (c_int, *const c_char, c_int, c_int)
);
next!(
    /// `eaccess`.
    eaccess, c"eaccess", (path: *const c_char, mode: c_int) -> c_int, -1, (*const c_char, c_int)
);
next!(
    /// `euidaccess`.
    euidaccess, c"euidaccess", (path: *const c_char, mode: c_int) -> c_int, -1, (*const c_char, c_int)
);
next!(
    /// `readlink`.
    readlink, c"readlink", (path: *const c_char, buffer: *mut c_char, size: usize) -> isize,
    -1, (*const c_char, *mut c_char, usize)
);
next!(
    /// `readlinkat`.
    readlinkat, c"readlinkat", (folder: c_int, path: *const c_char, buffer: *mut c_char, size: usize) -> isize,
    -1, (c_int, *const c_char, *mut c_char, usize)
);
next!(
    /// `realpath`.
    realpath, c"realpath", (path: *const c_char, buffer: *mut c_char) -> *mut c_char,
    NONE.cast(), (*const c_char, *mut c_char)
);
next!(
    /// `canonicalize_file_name`.
    canonicalize_file_name, c"canonicalize_file_name", (path: *const c_char) -> *mut c_char,
    NONE.cast(), (*const c_char)
);
next!(
    /// `freopen`.
    freopen, c"freopen", (path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void,
    NONE, (*const c_char, *const c_char, *mut c_void)
);
next!(
    /// `freopen64`.
    freopen64, c"freopen64", (path: *const c_char, mode: *const c_char, stream: *mut c_void) -> *mut c_void,
    NONE, (*const c_char, *const c_char, *mut c_void)
);
next!(
    /// `scandir`.
    scandir, c"scandir", (path: *const c_char, list: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int,
    -1, (*const c_char, *mut c_void, *mut c_void, *mut c_void)
);
next!(
    /// `scandir64`.
    scandir64, c"scandir64", (path: *const c_char, list: *mut c_void, filter: *mut c_void, order: *mut c_void) -> c_int,
    -1, (*const c_char, *mut c_void, *mut c_void, *mut c_void)
);
next!(
    /// `getxattr`.
    getxattr, c"getxattr", (path: *const c_char, name: *const c_char, value: *mut c_void, size: usize) -> isize, -1,
    (*const c_char, *const c_char, *mut c_void, usize)
);
next!(
    /// `lgetxattr`.
    lgetxattr, c"lgetxattr", (path: *const c_char, name: *const c_char, value: *mut c_void, size: usize) -> isize, -1,
    (*const c_char, *const c_char, *mut c_void, usize)
);
