//! Processes that split in two: the child has the parent's memory, and the runtime in it.
//!
//! What the parent has collected is the parent's: the child begins with nothing and writes its own journal. The lock is held while the process splits, so that no other
//! thread, which the child does not have, leaves it locked there for good.

use std::cell::UnsafeCell;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use crate::raw;
use crate::runtime::{Runtime, try_runtime};

/// A thread that runs a kernel holds the lock: longer than this, a split does not wait for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The lock while the process splits.
struct Held(UnsafeCell<Option<MutexGuard<'static, Runtime>>>);

// SAFETY: used by the two functions below only, between which the C library holds a lock of its own: no other thread splits the process meanwhile.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));

/// Takes the lock.
extern "C" fn before() {
    let start = Instant::now();
    let guard = loop {
        match try_runtime() {
            Some(guard) => break Some(guard),
            None if start.elapsed() >= PATIENCE => break None,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    // SAFETY: as `Held` says.
    unsafe { *HELD.0.get() = guard };
}

/// Gives it back, in the parent and in the child.
extern "C" fn after() {
    // SAFETY: as `Held` says.
    drop(unsafe { (*HELD.0.get()).take() });
}

/// Makes splits safe from now on.
pub(crate) fn watch() {
    raw::around_fork(before, after);
}
