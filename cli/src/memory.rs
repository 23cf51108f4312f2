//! A rewrite takes much memory for one code object after the other. GNU's allocator keeps what was freed, for each
//! thread by itself, unless it is told not to.

/// Freed memory at the end of a thread's arena from which it goes back to the system, in bytes: an object of a few
/// megabytes leaves ten times as much behind.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT: libc::c_int = 8 << 20;
/// How much more an arena asks the system for than it needs at once: nearly every kernel lets it grow and shrink.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const AHEAD: libc::c_int = 4 << 20;

/// Lets the allocator keep little. Each thread keeps its own arena: threads that share one spend as much time on its
/// lock as on the work.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn keep_little() {
    // SAFETY: `mallopt` sets a number of the allocator's under its lock, and refuses what it cannot do.
    #[allow(unsafe_code)]
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
        libc::mallopt(libc::M_TOP_PAD, AHEAD);
    }
}

/// Other allocators have no such numbers.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_little() {}
