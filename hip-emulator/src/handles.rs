//! Handles that a program holds and never looks into.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::status::Status;

/// Handles below this are the streams that always exist: null, legacy, per thread.
pub(crate) const FIRST_HANDLE: usize = 0x1000;

thread_local! {
    static MISSING: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Nothing has this handle: remembers it, and gives the status.
pub(crate) fn missing(handle: usize, status: Status) -> Status {
    MISSING.set(Some(handle));
    status
}

/// The handle that this thread found nothing for, if it did since this was asked last.
pub(crate) fn last_missing() -> Option<usize> {
    MISSING.take()
}

/// A number that no other thing has, so that a handle of one kind is never taken for one of another.
pub(crate) fn handle() -> usize {
    static LAST: AtomicUsize = AtomicUsize::new(FIRST_HANDLE);
    LAST.fetch_add(16, Ordering::Relaxed) + 16
}
