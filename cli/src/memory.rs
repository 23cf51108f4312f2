//! A rewrite takes much memory for one code object after the other. GNU's allocator keeps what was freed, for each thread by itself, unless it is told not to.

/// Freed memory at the end of an arena from which it goes back to the system, in bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT: libc::c_int = 1 << 20;

/// Lets the allocator keep less: one arena for two threads, of which freed memory is for both, and a little of it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn keep_little() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let arenas = libc::c_int::try_from(threads.div_ceil(2)).unwrap_or(libc::c_int::MAX);
    // SAFETY: `mallopt` sets a number of the allocator's under its lock, and refuses what it cannot do.
    #[allow(unsafe_code)]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, arenas);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
    }
}

/// Other allocators have no such numbers.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_little() {}
