//! The lock of the runtime, which a thread holds for every change to what this library knows, and what becomes of it
//! when the process splits in two.
//!
//! # Lock order
//!
//! One lock protects the whole [`Runtime`], because most calls need parts of all of it at once: a launch reads the code
//! and the streams, changes the device and its memory, and adds to what was collected. These are all the locks of this
//! library. A thread that holds one takes only later ones:
//!
//! 1. `PROGRAMS` of `hiprtc`: held while a program is compiled, which asks the device for its processor.
//! 2. [`RUNTIME`]: it is released while a thread waits for [`CHANGED`], and before a stream calls a function of the
//!    program, which may call HIP. A thread takes it once: what has the runtime is given `&mut Runtime`.
//! 3. `Buffer` of `hostcall`: held by a thread of the device for one access of a kernel.
//! 4. `PAGES` of `touched`: also taken where the program accesses a page that is protected.
//! 5. The locks of the standard streams.
//!
//! Everything else is atomic or of one thread. So threads cannot wait for each other in a circle.
//!
//! # Processes that split
//!
//! The child has the parent's memory, and the runtime in it. What the parent has collected is the parent's: the child
//! begins with nothing and writes its own journal. The lock is held while the process splits, so that no other thread,
//! which the child does not have, leaves it locked there for good.
//!
//! [`CHANGED`]: crate::objects::tasks::CHANGED

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::check::Check;
use crate::raw;
use crate::runtime::Runtime;
use crate::settings::Settings;
use crate::touched;

static RUNTIME: LazyLock<Mutex<Runtime>> = LazyLock::new(|| {
    raw::around_forks(before, in_parent, in_child);
    Mutex::new(Runtime::new(Settings::read()))
});

/// The runtime, unless another thread has it.
pub(crate) fn try_runtime() -> Option<MutexGuard<'static, Runtime>> {
    match RUNTIME.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Threads that wait for the runtime: while there are any, what runs in the background gives it up soon.
pub(crate) static WAITING: AtomicUsize = AtomicUsize::new(0);

/// The runtime, for this thread alone until the guard is dropped.
pub(crate) fn runtime() -> MutexGuard<'static, Runtime> {
    if let Ok(runtime) = RUNTIME.try_lock() {
        return runtime;
    }
    WAITING.fetch_add(1, Ordering::Relaxed);
    let runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    WAITING.fetch_sub(1, Ordering::Relaxed);
    runtime
}

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
        touched::forget();
        runtime.check.iter_mut().for_each(Check::forked);
    }
}
