//! Handles that a program holds and never looks into.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Handles below this are the streams that always exist: null, legacy, per thread.
pub(crate) const FIRST_HANDLE: usize = 0x1000;

/// A number that no other thing has, so that a handle of one kind is never taken for one of another.
pub(crate) fn handle() -> usize {
    static LAST: AtomicUsize = AtomicUsize::new(FIRST_HANDLE);
    LAST.fetch_add(16, Ordering::Relaxed) + 16
}
