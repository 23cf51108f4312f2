//! Processes that split in two: the child has the parent's memory, and the runtime in it.
//!
//! What the parent has collected is the parent's: the child begins with nothing and writes its own journal. The lock is
//! held while the process splits, so that no other thread, which the child does not have, leaves it locked there for
//! good.

use std::cell::UnsafeCell;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::raw;
use crate::runtime::{Runtime, WAITING, try_runtime};

/// A thread that runs a kernel holds the lock: longer than this, a split does not wait for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The lock while the process splits.
struct Held(UnsafeCell<Option<MutexGuard<'static, Runtime>>>);

// SAFETY: used by the two functions below only, between which the C library holds a lock of its own: no other thread
// splits the process meanwhile.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));

/// Takes the lock: what runs in the background gives it up when it is waited for.
extern "C" fn before() {
    WAITING.fetch_add(1, Ordering::Relaxed);
    let start = Instant::now();
    let guard = loop {
        match try_runtime() {
            Some(guard) => break Some(guard),
            None if start.elapsed() >= PATIENCE => break None,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    WAITING.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: as `Held` says.
    unsafe { *HELD.0.get() = guard };
}

/// Gives it back.
extern "C" fn in_parent() {
    // SAFETY: as `Held` says.
    drop(unsafe { (*HELD.0.get()).take() });
}

/// Gives it back. What is in flight is the parent's, and so are the threads that wait.
extern "C" fn in_child() {
    WAITING.store(0, Ordering::Relaxed);
    // SAFETY: as `Held` says.
    if let Some(mut runtime) = unsafe { (*HELD.0.get()).take() } {
        runtime.tasks.clear();
    }
}

/// Makes splits safe from now on.
pub(crate) fn watch() {
    raw::around_forks(before, in_parent, in_child);
}
