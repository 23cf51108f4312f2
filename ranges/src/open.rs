//! Which ranges are open.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Between the names of ranges, one inside the other.
const SEPARATOR: &str = "/";

/// Whether profilers are to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Pausing {
    /// The program has not said so.
    Unsaid = 0,
    /// They pause.
    Paused = 1,
    /// They count.
    Resumed = 2,
}

/// The number of the next range: those that are open are in the order in which they were opened.
static NEXT: AtomicU64 = AtomicU64::new(1);

static PAUSING: AtomicU32 = AtomicU32::new(Pausing::Unsaid as u32);

/// The process's ranges by number.
static STARTED: Mutex<BTreeMap<u64, String>> = Mutex::new(BTreeMap::new());

thread_local! {
    // No destructor: functions that run at exit may still launch.

    /// The thread's ranges with their numbers.
    static PUSHED: ManuallyDrop<RefCell<Vec<(u64, String)>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Opens a range of the calling thread and gives its level.
pub(crate) fn push(name: &str) -> usize {
    PUSHED.with(|pushed| {
        let mut pushed = pushed.borrow_mut();
        pushed.push((next(), name.to_owned()));
        pushed.len() - 1
    })
}

/// Closes it and gives its level; none if there is none.
pub(crate) fn pop() -> Option<usize> {
    PUSHED.with(|pushed| {
        let mut pushed = pushed.borrow_mut();
        pushed.pop()?;
        let level = pushed.len();
        if level == 0 {
            // Threads that have ended leak nothing.
            *pushed = Vec::new();
        }
        Some(level)
    })
}

/// Opens a range of the process and gives its number.
pub(crate) fn start(name: &str) -> u64 {
    let number = next();
    STARTED.lock().unwrap_or_else(PoisonError::into_inner).insert(number, name.to_owned());
    number
}

/// Closes it; one that is not open is none.
pub(crate) fn stop(number: u64) {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
}

/// Has profilers pause or go on.
pub(crate) fn pause(paused: bool) {
    let value = if paused { Pausing::Paused } else { Pausing::Resumed };
    PAUSING.store(value as u32, Ordering::Relaxed);
}

/// Whether the program has profilers pause.
#[must_use]
pub fn pausing() -> Pausing {
    match PAUSING.load(Ordering::Relaxed) {
        1 => Pausing::Paused,
        2 => Pausing::Resumed,
        _ => Pausing::Unsaid,
    }
}

/// The ranges that are open in the calling thread, its own and the process's in the order in which they were opened,
/// separated by `/`; none if none is.
#[must_use]
pub fn region() -> Option<String> {
    let started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    PUSHED.with(|pushed| {
        let pushed = pushed.borrow();
        if started.is_empty() && pushed.is_empty() {
            return None;
        }
        let mut open: Vec<(u64, &str)> = pushed.iter().map(|(number, name)| (*number, name.as_str())).collect();
        open.extend(started.iter().map(|(number, name)| (*number, name.as_str())));
        open.sort_unstable();
        Some(open.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(SEPARATOR))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_a_thread_and_of_the_process() {
        assert_eq!((region(), pop()), (None, None));
        assert_eq!([push("step"), push("decode")], [0, 1]);
        let file = start("file");
        assert_eq!(push("attention"), 2);
        assert_eq!(region().as_deref(), Some("step/decode/file/attention"));
        let other = std::thread::spawn(region).join().unwrap();
        assert_eq!(other.as_deref(), Some("file"), "a thread has its own and those of the process");
        assert_eq!([pop(), pop()], [Some(2), Some(1)]);
        stop(file);
        stop(file);
        assert_eq!(region().as_deref(), Some("step"));
        assert_eq!((pop(), pop(), region()), (Some(0), None, None));
        // What the other end of it reads.
        push("step");
        let (mut now, mut name) = (9, [0; 4]);
        let room = name.len();
        assert_eq!(crate::wavetap_ranges(&raw mut now, name.as_mut_ptr(), room - 1), 4);
        assert_eq!((now, name.map(|byte| byte as u8)), (0, *b"ste\0"));
        pop();
        pause(true);
        assert_eq!(pausing(), Pausing::Paused);
        pause(false);
        assert_eq!(pausing(), Pausing::Resumed);
    }
}
