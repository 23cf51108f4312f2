//! Streams and events. Everything is executed where it is called, so a stream is always idle and an event has always happened.

use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_void};
use std::time::Instant;

use crate::raw;
use crate::runtime::runtime;
use crate::status::*;

/// `hipEventDisableTiming`.
const DISABLE_TIMING: c_uint = 2;

/// Handles below this are the streams that always exist: null, legacy, per thread.
const FIRST_HANDLE: usize = 0x1000;

/// A stream that the program created.
#[derive(Debug, Clone, Copy)]
struct Stream {
    flags: c_uint,
    priority: c_int,
}

/// An event.
#[derive(Debug, Clone, Copy)]
struct Event {
    recorded: Option<Instant>,
    timed: bool,
}

/// All streams and events, by handle.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    streams: HashMap<usize, Stream>,
    events: HashMap<usize, Event>,
    handles: usize,
}

impl Streams {
    fn handle(&mut self) -> usize {
        self.handles += 16;
        FIRST_HANDLE + self.handles
    }

    fn create(&mut self, flags: c_uint, priority: c_int) -> usize {
        let handle = self.handle();
        self.streams.insert(handle, Stream { flags, priority });
        handle
    }

    fn stream(&self, handle: *mut c_void) -> Outcome<Stream> {
        let handle = handle as usize;
        if handle < FIRST_HANDLE {
            return Ok(Stream { flags: 0, priority: 0 });
        }
        self.streams.get(&handle).copied().ok_or(INVALID_HANDLE)
    }

    fn event(&mut self, handle: *mut c_void) -> Outcome<&mut Event> {
        self.events.get_mut(&(handle as usize)).ok_or(INVALID_HANDLE)
    }

    fn record(&mut self, handle: *mut c_void) -> Outcome {
        self.event(handle)?.recorded = Some(Instant::now());
        Ok(())
    }

    /// Records an event if there is one.
    pub(crate) fn record_optional(&mut self, handle: *mut c_void) -> Outcome {
        if handle.is_null() { Ok(()) } else { self.record(handle) }
    }
}

fn create_stream(out: *mut usize, flags: c_uint, priority: c_int) -> Outcome {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    let handle = runtime().streams.create(flags, priority);
    raw::store(out, handle)
}

fn create_event(out: *mut usize, flags: c_uint) -> Outcome {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    let mut runtime = runtime();
    let handle = runtime.streams.handle();
    runtime.streams.events.insert(handle, Event { recorded: None, timed: flags & DISABLE_TIMING == 0 });
    raw::store(out, handle)
}

fn idle(stream: *mut c_void) -> Outcome {
    runtime().streams.stream(stream).map(|_| ())
}

/// A function of the program that a stream calls.
type Callback = extern "C" fn(*mut c_void, Status, *mut c_void);

/// A function of the program that a stream calls.
type HostFunction = extern "C" fn(*mut c_void);

entry_points! {
    /// Creates a stream.
    fn hipStreamCreate(out: *mut usize) {
        create_stream(out, 0, 0)
    }

    /// Creates a stream.
    fn hipStreamCreateWithFlags(out: *mut usize, flags: c_uint) {
        create_stream(out, flags, 0)
    }

    /// Creates a stream.
    fn hipStreamCreateWithPriority(out: *mut usize, flags: c_uint, priority: c_int) {
        create_stream(out, flags, priority)
    }

    /// Ends a stream.
    fn hipStreamDestroy(stream: *mut c_void) {
        runtime().streams.streams.remove(&(stream as usize)).map(|_| ()).ok_or(INVALID_HANDLE)
    }

    /// Waits for a stream: it is idle.
    fn hipStreamSynchronize(stream: *mut c_void) {
        idle(stream)
    }

    /// Waits for a stream: it is idle.
    fn hipStreamSynchronize_spt(stream: *mut c_void) {
        idle(stream)
    }

    /// Asks whether a stream is idle: it is.
    fn hipStreamQuery(stream: *mut c_void) {
        idle(stream)
    }

    /// Lets a stream wait for an event, which has happened.
    fn hipStreamWaitEvent(stream: *mut c_void, event: *mut c_void, _flags: c_uint) {
        let mut runtime = runtime();
        runtime.streams.stream(stream)?;
        runtime.streams.event(event).map(|_| ())
    }

    /// The flags a stream was created with.
    fn hipStreamGetFlags(stream: *mut c_void, out: *mut c_uint) {
        let flags = runtime().streams.stream(stream)?.flags;
        raw::store(out, flags)
    }

    /// The priority a stream was created with.
    fn hipStreamGetPriority(stream: *mut c_void, out: *mut c_int) {
        let priority = runtime().streams.stream(stream)?.priority;
        raw::store(out, priority)
    }

    /// The device of a stream.
    fn hipStreamGetDevice(stream: *mut c_void, out: *mut c_int) {
        idle(stream)?;
        raw::store(out, 0)
    }

    /// Whether a stream is being captured: never.
    fn hipStreamIsCapturing(stream: *mut c_void, out: *mut c_int) {
        idle(stream)?;
        raw::store(out, 0)
    }

    /// Calls a function when all before it has been done, which is now.
    fn hipStreamAddCallback(stream: *mut c_void, callback: Option<Callback>, data: *mut c_void, _flags: c_uint) {
        idle(stream)?;
        callback.ok_or(INVALID_VALUE)?(stream, SUCCESS, data);
        Ok(())
    }

    /// Calls a function when all before it has been done, which is now.
    fn hipLaunchHostFunc(stream: *mut c_void, function: Option<HostFunction>, data: *mut c_void) {
        idle(stream)?;
        function.ok_or(INVALID_VALUE)?(data);
        Ok(())
    }

    /// Creates an event.
    fn hipEventCreate(out: *mut usize) {
        create_event(out, 0)
    }

    /// Creates an event.
    fn hipEventCreateWithFlags(out: *mut usize, flags: c_uint) {
        create_event(out, flags)
    }

    /// Ends an event.
    fn hipEventDestroy(event: *mut c_void) {
        runtime().streams.events.remove(&(event as usize)).map(|_| ()).ok_or(INVALID_HANDLE)
    }

    /// Records an event: it happens now.
    fn hipEventRecord(event: *mut c_void, stream: *mut c_void) {
        let mut runtime = runtime();
        runtime.streams.stream(stream)?;
        runtime.streams.record(event)
    }

    /// Records an event: it happens now.
    fn hipEventRecord_spt(event: *mut c_void, stream: *mut c_void) {
        let mut runtime = runtime();
        runtime.streams.stream(stream)?;
        runtime.streams.record(event)
    }

    /// Records an event: it happens now.
    fn hipEventRecordWithFlags(event: *mut c_void, stream: *mut c_void, _flags: c_uint) {
        let mut runtime = runtime();
        runtime.streams.stream(stream)?;
        runtime.streams.record(event)
    }

    /// Waits for an event: it has happened.
    fn hipEventSynchronize(event: *mut c_void) {
        runtime().streams.event(event).map(|_| ())
    }

    /// Asks whether an event has happened: it has.
    fn hipEventQuery(event: *mut c_void) {
        runtime().streams.event(event).map(|_| ())
    }

    /// Milliseconds of this machine between two events: how long the emulator took, nothing about a GPU.
    fn hipEventElapsedTime(out: *mut f32, start: *mut c_void, stop: *mut c_void) {
        let mut runtime = runtime();
        let (start, stop) = (*runtime.streams.event(start)?, *runtime.streams.event(stop)?);
        if !start.timed || !stop.timed {
            return Err(INVALID_HANDLE);
        }
        let (start, stop) = (start.recorded.ok_or(INVALID_HANDLE)?, stop.recorded.ok_or(INVALID_HANDLE)?);
        let milliseconds = |later: Instant, earlier: Instant| later.duration_since(earlier).as_secs_f64() * 1e3;
        raw::store(out, (if stop >= start { milliseconds(stop, start) } else { -milliseconds(start, stop) }) as f32)
    }

    /// Lowest and highest priority: there is one.
    fn hipDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        raw::store_optional(least, 0);
        raw::store_optional(greatest, 0);
        Ok(())
    }
}

/// The device of a stream, returned and not stored.
#[unsafe(no_mangle)]
extern "C" fn hipGetStreamDeviceId(_stream: *mut c_void) -> c_int {
    0
}
