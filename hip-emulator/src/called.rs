//! The entry point that a thread is in, by name.

use std::cell::Cell;

thread_local! {
    static CALLED: Cell<&'static str> = const { Cell::new("a call") };
}

/// Remembers the entry point that this thread is in.
pub(crate) fn called(name: &'static str) {
    CALLED.set(name);
}

/// The entry point that this thread is in, or was in last.
pub(crate) fn called_now() -> &'static str {
    CALLED.get()
}
