//! Streams and events.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_void};
use std::time::Instant;

use super::captures::{Captured, Captures};
use crate::begin::{Cycle, End};
use crate::handles::{handle, missing};
use crate::status::*;

/// `hipStreamNonBlocking`.
pub(crate) const NON_BLOCKING: c_uint = 1;

/// `hipStreamPerThread`.
const PER_THREAD: usize = 2;

/// The legacy default stream, which has two handles: this and 1.
pub(crate) const LEGACY: usize = 0;

/// A stream as tasks know it: a number, and whether it and the legacy default stream wait for each other.
pub(crate) type Place = (usize, bool);

/// Whether what a stream does next comes after what another one was given before.
pub(crate) fn comes_after((stream, blocking): Place, (other, blocks): Place) -> bool {
    other == stream || stream == LEGACY && blocks || blocking && other == LEGACY
}

thread_local! {
    /// The number of this thread's default stream: no handle.
    static OWN: usize = handle();

    /// Whether the null stream is this thread's in the call that it is in.
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

/// Says which stream the null stream is in the call that this thread is in.
pub(crate) fn default_is_per_thread(yes: bool) {
    IS_OWN.set(yes);
}

/// Whether the null stream is this thread's in the call that it is in.
pub(crate) fn own_default() -> bool {
    IS_OWN.get()
}

/// Priorities as HIP numbers them: the lowest and the highest.
pub(crate) const PRIORITIES: [c_int; 2] = [1, -1];

/// A stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    pub(crate) flags: c_uint,
    pub(crate) priority: c_int,
    /// The compute units that it was created for: a bit each; empty for all.
    pub(crate) units: Vec<u32>,
    pub(crate) captured: Option<Captured>,
}

/// When an event was recorded.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    /// On the clock of this machine.
    pub(crate) at: Instant,
    /// On the modelled clock, if time is modelled, and what had ended.
    pub(crate) end: End,
}

impl Recorded {
    fn now(end: End) -> Option<Recorded> {
        Some(Recorded { at: Instant::now(), end })
    }
}

/// An event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Event {
    pub(crate) recorded: Option<Recorded>,
    pub(crate) timed: bool,
    /// The task that will record it.
    pending: Option<u64>,
    /// What a stream that was being captured had done when it recorded this.
    pub(crate) captured: Option<Captured>,
}

impl Event {
    /// One that has not been recorded; whether it is one that time can be measured with.
    pub(crate) fn new(timed: bool) -> Event {
        Event { timed, ..Event::default() }
    }
}

/// All streams and events, by handle.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    pub(crate) streams: HashMap<usize, Stream>,
    pub(crate) events: HashMap<usize, Event>,
    pub(crate) captures: Captures,
}

impl Streams {
    pub(crate) fn create(&mut self, flags: c_uint, priority: c_int) -> usize {
        let handle = handle();
        let priority = priority.clamp(PRIORITIES[1], PRIORITIES[0]);
        self.streams.insert(handle, Stream { flags, priority, ..Stream::default() });
        handle
    }

    /// A stream; those that always exist are there without having been created.
    pub(crate) fn stream(&mut self, handle: *mut c_void) -> Outcome<&mut Stream> {
        let handle = handle as usize;
        if handle <= PER_THREAD {
            Ok(self.streams.entry(handle).or_default())
        } else {
            self.streams.get_mut(&handle).ok_or_else(|| missing(handle, CONTEXT_IS_DESTROYED))
        }
    }

    /// Whether a stream is the one that others wait for.
    pub(crate) fn is_legacy(stream: *mut c_void) -> bool {
        (stream as usize) < PER_THREAD
    }

    pub(crate) fn event(&mut self, handle: *mut c_void) -> Outcome<&mut Event> {
        self.events.get_mut(&(handle as usize)).ok_or_else(|| missing(handle as usize, INVALID_HANDLE))
    }

    pub(crate) fn record(&mut self, handle: *mut c_void, end: End) -> Outcome {
        let event = self.event(handle)?;
        (event.recorded, event.pending) = (Recorded::now(end), None);
        event.captured = None;
        Ok(())
    }

    /// The stream of a handle as tasks know it.
    pub(crate) fn place(&mut self, stream: *mut c_void) -> Outcome<Place> {
        Ok(match stream as usize {
            LEGACY if IS_OWN.get() => (OWN.with(|own| *own), true),
            PER_THREAD => (OWN.with(|own| *own), true),
            handle if handle < PER_THREAD => (LEGACY, true),
            handle => (handle, self.stream(stream)?.flags & NON_BLOCKING == 0),
        })
    }

    /// The task that will record an event, if it has not been done.
    pub(crate) fn pending(&self, event: usize) -> Option<u64> {
        self.events.get(&event).and_then(|event| event.pending)
    }

    /// A task will record an event: what recorded it before does not count any more.
    pub(crate) fn will_record(&mut self, event: usize, task: u64) -> Outcome {
        let event = self.event(event as *mut c_void)?;
        (event.pending, event.captured) = (Some(task), None);
        Ok(())
    }

    /// A task records an event, unless it was ended or another one will record it.
    pub(crate) fn recorded(&mut self, event: usize, task: u64, end: End) {
        if let Some(event) = self.events.get_mut(&event).filter(|event| event.pending == Some(task)) {
            (event.recorded, event.pending) = (Recorded::now(end), None);
        }
    }

    /// The launch that an event was recorded for starts at a modelled time.
    pub(crate) fn started(&mut self, event: usize, cycle: Cycle) {
        let event = self.events.get_mut(&event).filter(|event| event.pending.is_none());
        if let Some(recorded) = event.and_then(|event| event.recorded.as_mut()) {
            recorded.end.cycle = recorded.end.cycle.max(cycle);
        }
    }

    /// When an event has happened that has been recorded, or will be by a task that has not been done.
    pub(crate) fn end(&self, event: usize) -> End {
        let recorded = self.events.get(&event).and_then(|event| event.recorded.as_ref());
        recorded.map_or_else(End::default, |recorded| recorded.end.clone())
    }

    /// An event that may be asked or waited for by the program; the task that will record it.
    pub(crate) fn reached(&mut self, handle: *mut c_void) -> Outcome<Option<u64>> {
        let event = self.event(handle)?;
        let (captured, pending) = (event.captured.clone(), event.pending);
        if captured.is_some_and(|captured| self.captures.is_active(captured.capture)) {
            Err(CAPTURED_EVENT)
        } else {
            Ok(pending)
        }
    }
}
