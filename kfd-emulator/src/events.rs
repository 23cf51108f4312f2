//! Events: what the runtime's threads wait for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// `KFD_IOC_EVENT_SIGNAL` and `KFD_IOC_EVENT_MEMORY`.
pub(crate) const SIGNAL: u32 = 0;
pub(crate) const MEMORY: u32 = 8;

/// Most events; the runtime has a page with a slot of 8 bytes for each signal.
const MOST: u32 = 4096;

/// Bytes of a slot.
const SLOT: u64 = 8;

/// A timeout that never comes.
const FOREVER: u32 = u32::MAX;

/// The age of an event that was never set.
const NEW: u64 = 1;

/// A number of the calling thread that no other one has.
fn this_thread() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static THREAD: u64 = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    THREAD.with(|number| *number)
}

struct Event {
    kind: u32,
    auto_reset: bool,
    is_set: bool,
    /// How often it was set, and one more: 0 says of a waiter that it does not know.
    age: u64,
    waiters: u32,
    /// The age that each thread has seen which does not say what it knows.
    seen: BTreeMap<u64, u64>,
    /// The address of a memory exception, and the number by which the driver knows its GPU.
    exception: (u64, u32),
}

/// An event that is waited for, and what became of it.
pub(crate) struct Waited {
    pub(crate) event: u32,
    /// The age that the waiter knows, or 0.
    pub(crate) known_age: u64,
    pub(crate) outcome: Option<Outcome>,
}

/// What a waiter is told of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A signal's age.
    Signal(u64),
    /// The address of a memory exception that has happened, and the number by which the driver knows its GPU.
    Memory(u64, u32),
}

/// All events.
#[derive(Default)]
pub(crate) struct Events {
    all: Mutex<BTreeMap<u32, Event>>,
    /// Address of the page of slots, if the program has named one.
    slots: AtomicU64,
    changed: Condvar,
}

impl Events {
    fn all(&self) -> MutexGuard<'_, BTreeMap<u32, Event>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program has put the page of slots at an address.
    pub(crate) fn set_slots(&self, address: u64) {
        self.slots.store(address, Ordering::Release);
    }

    /// The event whose slot is at an address.
    pub(crate) fn of_slot(&self, address: u64) -> Option<u32> {
        let slots = Some(self.slots.load(Ordering::Acquire)).filter(|slots| *slots != 0)?;
        let number = u32::try_from(address.checked_sub(slots)? / SLOT).ok()?;
        (number < MOST).then_some(number)
    }

    /// A new event's number.
    pub(crate) fn create(&self, kind: u32, auto_reset: bool) -> Result<u32, i32> {
        let mut all = self.all();
        let number = (1..MOST).find(|number| !all.contains_key(number)).ok_or(libc::ENOSPC)?;
        let event =
            Event { kind, auto_reset, is_set: false, age: NEW, waiters: 0, seen: BTreeMap::new(), exception: (0, 0) };
        all.insert(number, event);
        Ok(number)
    }

    /// Ends an event; who waits for it goes on.
    pub(crate) fn destroy(&self, number: u32) -> Result<(), i32> {
        let removed = self.all().remove(&number);
        self.changed.notify_all();
        removed.map(drop).ok_or(libc::EINVAL)
    }

    /// Sets an event. One that resets itself wakes all that wait for it now; without any it stays set for the next.
    pub(crate) fn set(&self, number: u32) -> Result<(), i32> {
        let mut all = self.all();
        set(all.get_mut(&number).ok_or(libc::EINVAL)?);
        self.changed.notify_all();
        Ok(())
    }

    /// Resets an event.
    pub(crate) fn reset(&self, number: u32) -> Result<(), i32> {
        self.all().get_mut(&number).ok_or(libc::EINVAL)?.is_set = false;
        Ok(())
    }

    /// Sets the events of memory exceptions; whether there is any.
    pub(crate) fn memory_exception(&self, address: u64, gpu_id: u32) -> bool {
        let mut any = false;
        for event in self.all().values_mut().filter(|event| event.kind == MEMORY) {
            event.exception = (address, gpu_id);
            set(event);
            any = true;
        }
        self.changed.notify_all();
        any
    }

    /// Waits for one or all of these events for so many milliseconds; whether that was enough.
    ///
    /// Runtimes share an event between signals that several threads wait for. One that has looked at its signal and is
    /// about to wait would wait forever if another one took the event's being set. Newer runtimes say which age they
    /// know; of a thread of an older one it is remembered here. It may be woken once too often, and looks again.
    pub(crate) fn wait(&self, waited: &mut [Waited], for_all: bool, milliseconds: u32) -> bool {
        let end = (milliseconds != FOREVER)
            .then(|| Instant::now().checked_add(Duration::from_millis(milliseconds.into())))
            .flatten();
        let thread = this_thread();
        let mut all = self.all();
        // The age of each when the wait began, or one that none has where it had been set before.
        let mut began = Vec::with_capacity(waited.len());
        for one in waited.iter() {
            began.push(match all.get_mut(&one.event) {
                None => 0,
                Some(event) => {
                    event.waiters += 1;
                    let known_age = match one.known_age {
                        0 if event.auto_reset => event.seen.get(&thread).copied().unwrap_or(NEW),
                        0 => event.age,
                        known => known,
                    };
                    let fires = event.is_set || event.kind == SIGNAL && known_age != event.age;
                    if event.auto_reset {
                        event.is_set = false;
                    }
                    if fires { 0 } else { event.age }
                }
            });
        }
        let enough = loop {
            let fired = waited
                .iter()
                .zip(&began)
                .filter(|(one, age)| all.get(&one.event).is_none_or(|event| event.age != **age));
            let fired = fired.count();
            if if for_all { fired == waited.len() } else { fired > 0 } {
                break true;
            }
            all = match end {
                None => self.changed.wait(all).unwrap_or_else(PoisonError::into_inner),
                Some(end) => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break false;
                    }
                    self.changed.wait_timeout(all, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        };
        for (one, age) in waited.iter_mut().zip(began) {
            let Some(event) = all.get_mut(&one.event) else { continue };
            event.waiters = event.waiters.saturating_sub(1);
            if one.known_age == 0 {
                event.seen.insert(thread, event.age);
            }
            one.outcome = match event.kind {
                MEMORY if event.age != age => Some(Outcome::Memory(event.exception.0, event.exception.1)),
                SIGNAL => Some(Outcome::Signal(event.age)),
                _ => None,
            };
        }
        enough
    }
}

fn set(event: &mut Event) {
    event.age += 1;
    event.is_set = !event.auto_reset || event.waiters == 0;
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn wait(events: &Events, numbers: &[u32], for_all: bool, milliseconds: u32) -> (bool, Vec<Option<Outcome>>) {
        let mut waited: Vec<_> =
            numbers.iter().map(|event| Waited { event: *event, known_age: 0, outcome: None }).collect();
        let enough = events.wait(&mut waited, for_all, milliseconds);
        (enough, waited.into_iter().map(|one| one.outcome).collect())
    }

    #[test]
    fn an_event_that_resets_itself_wakes_all_who_wait() {
        let events = Events::default();
        let number = events.create(SIGNAL, true).expect("an event");
        thread::scope(|scope| {
            let waiters: Vec<_> = (0..3).map(|_| scope.spawn(|| wait(&events, &[number], true, 60_000).0)).collect();
            while events.all()[&number].waiters < 3 {
                thread::yield_now();
            }
            events.set(number).expect("known");
            assert!(waiters.into_iter().all(|waiter| waiter.join().expect("no panic")));
        });
        // A thread that has not waited yet may have looked at its signal before.
        assert!(wait(&events, &[number], true, 0).0 && !wait(&events, &[number], true, 0).0);
        // Without a waiter it stays set for one.
        events.set(number).expect("known");
        assert!(wait(&events, &[number], true, 0).0 && !wait(&events, &[number], true, 0).0);
    }

    #[test]
    fn what_another_thread_took_is_not_missed() {
        let events = Events::default();
        let number = events.create(SIGNAL, true).expect("an event");
        events.set(number).expect("known");
        assert!(wait(&events, &[number], true, 0).0);
        // Between a look at a signal and the wait for its event another thread takes the event.
        events.set(number).expect("known");
        thread::scope(|scope| {
            assert!(scope.spawn(|| wait(&events, &[number], true, 0).0).join().expect("no panic"));
        });
        assert!(wait(&events, &[number], true, 0).0 && !wait(&events, &[number], true, 0).0);
    }

    #[test]
    fn one_is_enough_unless_all_are_waited_for() {
        let events = Events::default();
        let numbers = [0, 1].map(|_| events.create(SIGNAL, false).expect("an event"));
        events.set(numbers[1]).expect("known");
        assert!(wait(&events, &numbers, false, 0).0 && !wait(&events, &numbers, true, 1).0);
        events.set(numbers[0]).expect("known");
        assert!(wait(&events, &numbers, true, 0).0);
        events.reset(numbers[0]).expect("known");
        assert!(!wait(&events, &numbers, true, 0).0);
    }

    #[test]
    fn a_waiter_that_knows_an_older_age_does_not_wait() {
        let events = Events::default();
        let number = events.create(SIGNAL, true).expect("an event");
        events.set(number).expect("known");
        let (_, outcome) = wait(&events, &[number], true, 0);
        assert_eq!(outcome, [Some(Outcome::Signal(2))]);
        for (known_age, enough) in [(1, true), (2, false), (0, false)] {
            let mut waited = [Waited { event: number, known_age, outcome: None }];
            assert_eq!(events.wait(&mut waited, true, 0), enough, "{known_age}");
        }
    }

    #[test]
    fn a_memory_exception_has_its_address() {
        let events = Events::default();
        assert!(!events.memory_exception(1, 2));
        let number = events.create(MEMORY, true).expect("an event");
        assert_eq!(wait(&events, &[number], true, 0), (false, vec![None]));
        assert!(events.memory_exception(0x1234, 3));
        assert_eq!(wait(&events, &[number], true, 0), (true, vec![Some(Outcome::Memory(0x1234, 3))]));
    }
}
