//! The entry points for streams and events. What a stream has not done is in [`crate::tasks`].

use std::ffi::{c_int, c_uint, c_void};

use wavetap::stderr_line;

use crate::entry_point::entry_points;
use crate::handles::{FIRST_HANDLE, handle, missing};
use crate::lock::runtime;
use crate::objects::streams::{Event, NON_BLOCKING, PRIORITIES, own_default};
use crate::raw;
use crate::runtime::Runtime;
use crate::status::*;
use crate::stream_op::{Callback, Comparison, HostCall, HostFunction, StreamOp, ValueWait};
use crate::submit::submit;
use crate::tasks;
use crate::time::accuracy;

/// `hipEventDisableTiming`.
const DISABLE_TIMING: c_uint = 2;

/// Flags that an event may be created with: blocking, without time, for several processes, without a fence to the
/// system, and the two releases, of which there is one at most.
const EVENT_FLAGS: c_uint = 1 | DISABLE_TIMING | INTERPROCESS | RELEASES;
const INTERPROCESS: c_uint = 4;
const RELEASES: c_uint = 0xe000_0000;

/// Records an event in the order of a stream if there is one.
pub(crate) fn record_optional(stream: *mut c_void, event: *mut c_void) -> Outcome {
    if event.is_null() { Ok(()) } else { with_event(stream, event, StreamOp::Record(event as usize)) }
}

fn create_stream(out: *mut usize, flags: c_uint, priority: c_int) -> Outcome {
    if out.is_null() || flags & !NON_BLOCKING != 0 {
        return Err(INVALID_VALUE);
    }
    let mut runtime = runtime();
    let handle = runtime.streams.create(flags, priority);
    runtime.check.iter_mut().for_each(|check| check.handles.created(handle, "stream"));
    drop(runtime);
    raw::store(out, handle)
}

fn create_event(out: *mut usize, flags: c_uint) -> Outcome {
    if out.is_null() || flags & !EVENT_FLAGS != 0 || (flags & RELEASES).count_ones() > 1 {
        return Err(INVALID_VALUE);
    }
    let event = handle();
    let mut runtime = runtime();
    runtime.streams.events.insert(event, Event::new(flags & DISABLE_TIMING == 0));
    runtime.check.iter_mut().for_each(|check| check.handles.created(event, "event"));
    drop(runtime);
    raw::store(out, event)
}

fn known(stream: *mut c_void) -> Outcome {
    runtime().streams.stream(stream).map(|_| ())
}

/// A stream that the program asks or waits for.
fn idle(stream: *mut c_void) -> Outcome {
    let mut runtime = runtime();
    let captured = runtime.streams.stream(stream)?.captured.clone();
    match captured {
        Some(captured) => {
            runtime.streams.captures.invalidate(captured.capture);
            Err(STREAM_CAPTURE_UNSUPPORTED)
        }
        None => Ok(()),
    }
}

impl Runtime {
    /// The program has seen that an event has happened.
    fn seen_event(&mut self, event: *mut c_void) -> Outcome {
        self.seen(&self.streams.end(event as usize));
        Ok(())
    }

    /// Megahertz of the modelled clock, if time is modelled, for a time that the program gets; says once on standard
    /// error what it is worth.
    fn modelled_mhz(&mut self) -> Outcome<Option<u32>> {
        let Some(timing) = &self.settings.timing else { return Ok(None) };
        let latencies: Vec<String> = timing.latencies.iter().map(ToString::to_string).collect();
        let board = timing.board;
        let target = self.device()?.target();
        if !self.settings.hidden_output && !std::mem::replace(&mut self.said_modelled, true) {
            stderr_line!("wavetap: times of events are {}", accuracy(target, board, &latencies).sentence());
        }
        Ok(self.clocks.mhz())
    }
}

/// An operation with an event, which must exist.
fn with_event(stream: *mut c_void, event: *mut c_void, operation: StreamOp) -> Outcome {
    runtime().streams.event(event)?;
    submit(stream, operation)
}

/// The compute units that a stream uses, as many words as its mask has: those of its mask that there are, or all.
fn units_of(stream: *mut c_void, words: u32) -> Outcome<Vec<u32>> {
    let mut runtime = runtime();
    let units = runtime.facts()?.compute_units;
    let all: Vec<u32> = (0..units)
        .step_by(u32::BITS as usize)
        .map(|first| u32::MAX >> (u32::BITS as c_int - (units - first).min(u32::BITS as c_int)))
        .collect();
    if (words as usize) < all.len() {
        return Err(INVALID_VALUE);
    }
    let own: Vec<u32> = runtime.streams.stream(stream)?.units.iter().zip(&all).map(|(own, all)| own & all).collect();
    Ok(if own.iter().any(|word| *word != 0) { own } else { all })
}

/// Refuses what streams can neither store to nor wait for: memory that the device does not see.
fn check_value_address(address: u64) -> Outcome {
    let runtime = runtime();
    if runtime.is_device_memory(address) || runtime.host.range_of(address).is_some() {
        Ok(())
    } else {
        Err(INVALID_VALUE)
    }
}

/// `hipStreamBatchMemOpParams`: what waits and writes have in common.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct BatchOperation {
    kind: c_uint,
    address: u64,
    value: u64,
    flags: c_uint,
    alias: u64,
    rest: u64,
}

/// Stores a value in stream order.
fn write_value(stream: *mut c_void, address: u64, value: &[u8]) -> Outcome {
    check_value_address(address)?;
    submit(stream, StreamOp::Fill(crate::copies::BoxFill::elements(address, value, 1)))
}

/// Waits in stream order until memory has a value.
fn wait_value(stream: *mut c_void, address: u64, bytes: usize, value: u64, flags: c_uint, mask: u64) -> Outcome {
    let comparison = match flags {
        0 => Comparison::AtLeast,
        1 => Comparison::Equal,
        2 => Comparison::AnyBit,
        3 => Comparison::Nor,
        _ => return Err(INVALID_VALUE),
    };
    check_value_address(address)?;
    submit(stream, StreamOp::WaitValue(ValueWait { address, bytes, value, mask, comparison }))
}

entry_points! {
    /// Several of the four below, in their order.
    fn hipStreamBatchMemOp(stream: *mut c_void, count: c_uint, operations: *const BatchOperation, flags: c_uint) {
        const MOST: c_uint = 256;
        if flags != 0 || count == 0 || count > MOST || operations.is_null() {
            return Err(INVALID_VALUE);
        }
        for BatchOperation { kind, address, value, flags, .. } in raw::array(operations, count as usize)? {
            match kind {
                1 => wait_value(stream, address, 4, value & u64::from(u32::MAX), flags, u32::MAX.into())?,
                2 => write_value(stream, address, &(value as u32).to_le_bytes())?,
                4 => wait_value(stream, address, 8, value, flags, u64::MAX)?,
                5 => write_value(stream, address, &value.to_le_bytes())?,
                // Barriers and flushes: AMD's runtime does not have them, either.
                _ => return Err(NOT_SUPPORTED),
            }
        }
        Ok(())
    }

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

    /// Creates a stream for some of the compute units; its mask can be asked for, and it runs as any other.
    fn hipExtStreamCreateWithCUMask(out: *mut usize, words: u32, mask: *const u32) {
        if out.is_null() {
            return Err(INVALID_HANDLE);
        }
        if mask.is_null() || words == 0 {
            return Err(INVALID_VALUE);
        }
        let units = raw::array(mask, words as usize)?;
        let mut runtime = runtime();
        let stream = runtime.streams.create(0, 0);
        runtime.streams.stream(stream as *mut c_void)?.units = units;
        raw::store(out, stream)
    }

    /// The compute units of a stream.
    fn hipExtStreamGetCUMask(stream: *mut c_void, words: u32, mask: *mut u32) {
        if mask.is_null() {
            return Err(INVALID_VALUE);
        }
        let units = units_of(stream, words)?;
        units.iter().enumerate().try_for_each(|(at, word)| raw::store(mask.wrapping_add(at), *word))
    }

    /// Ends a stream; what it was given to do is still done.
    fn hipStreamDestroy(stream: *mut c_void) {
        if (stream as usize) < FIRST_HANDLE {
            return Err(INVALID_HANDLE);
        }
        let mut runtime = runtime();
        let removed = runtime.streams.streams.remove(&(stream as usize));
        let removed = removed.ok_or_else(|| missing(stream as usize, CONTEXT_IS_DESTROYED))?;
        runtime.check.iter_mut().for_each(|check| check.handles.destroyed(stream as usize));
        if let Some(captured) = removed.captured {
            runtime.streams.captures.invalidate(captured.capture);
        }
        Ok(())
    }

    /// Waits until a stream is idle.
    fn hipStreamSynchronize / hipStreamSynchronize_spt(stream: *mut c_void) {
        idle(stream)?;
        tasks::wait_for_stream(stream)
    }

    /// Asks whether the next operation of a stream could begin: the legacy default stream is not ready while a blocking
    /// stream is busy, nor that one while the default stream is.
    fn hipStreamQuery / hipStreamQuery_spt(stream: *mut c_void) {
        idle(stream)?;
        let mut runtime = runtime();
        let place = runtime.streams.place(stream)?;
        if runtime.tasks.would_wait(place) { Err(NOT_READY) } else { runtime.seen_stream(stream) }
    }

    /// Lets a stream wait for an event.
    fn hipStreamWaitEvent / hipStreamWaitEvent_spt(stream: *mut c_void, event: *mut c_void, flags: c_uint) {
        runtime().streams.event(event)?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        with_event(stream, event, StreamOp::Wait(event as usize))
    }

    /// The flags a stream was created with.
    fn hipStreamGetFlags / hipStreamGetFlags_spt(stream: *mut c_void, out: *mut c_uint) {
        if stream.is_null() && !own_default() {
            return Err(INVALID_VALUE);
        }
        let flags = runtime().streams.stream(stream)?.flags;
        raw::store(out, flags)
    }

    /// The priority a stream was created with.
    fn hipStreamGetPriority / hipStreamGetPriority_spt(stream: *mut c_void, out: *mut c_int) {
        let priority = runtime().streams.stream(stream)?.priority;
        raw::store(out, priority)
    }

    /// A number of a stream that no other has.
    fn hipStreamGetId(stream: *mut c_void, out: *mut u64) {
        known(stream)?;
        raw::store(out, stream as u64)
    }

    /// The device of a stream.
    fn hipStreamGetDevice(stream: *mut c_void, out: *mut c_int) {
        known(stream)?;
        raw::store(out, 0)
    }

    /// Calls a function when all before it has been done.
    fn hipStreamAddCallback / hipStreamAddCallback_spt(
        stream: *mut c_void, callback: Option<Callback>, data: *mut c_void, flags: c_uint
    ) {
        let callback = callback.filter(|_| flags == 0).ok_or(INVALID_VALUE)?;
        submit(stream, StreamOp::Host { call: HostCall::OfStream(callback, stream as usize), data: data as usize })
    }

    /// Calls a function when all before it has been done.
    fn hipLaunchHostFunc / hipLaunchHostFunc_spt(
        stream: *mut c_void, function: Option<HostFunction>, data: *mut c_void
    ) {
        let function = function.ok_or(INVALID_VALUE)?;
        submit(stream, StreamOp::Host { call: HostCall::Plain(function), data: data as usize })
    }

    /// Attaches managed memory to a stream: all are one.
    fn hipStreamAttachMemAsync(stream: *mut c_void, pointer: *mut c_void, length: usize, _flags: c_uint) {
        if stream.is_null() || pointer.is_null() || length == 0 {
            return Err(INVALID_VALUE);
        }
        known(stream)
    }

    /// Stores a value in stream order.
    fn hipStreamWriteValue32(stream: *mut c_void, address: u64, value: u32, _flags: c_uint) {
        write_value(stream, address, &value.to_le_bytes())
    }

    /// Stores a value in stream order.
    fn hipStreamWriteValue64(stream: *mut c_void, address: u64, value: u64, _flags: c_uint) {
        write_value(stream, address, &value.to_le_bytes())
    }

    /// Waits for a value in stream order.
    fn hipStreamWaitValue32(stream: *mut c_void, address: u64, value: u32, flags: c_uint, mask: u32) {
        wait_value(stream, address, 4, value.into(), flags, mask.into())
    }

    /// Waits for a value in stream order.
    fn hipStreamWaitValue64(stream: *mut c_void, address: u64, value: u64, flags: c_uint, mask: u64) {
        wait_value(stream, address, 8, value, flags, mask)
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
        let mut runtime = runtime();
        let removed = runtime.streams.events.remove(&(event as usize));
        removed.ok_or_else(|| missing(event as usize, INVALID_HANDLE))?;
        runtime.check.iter_mut().for_each(|check| check.handles.destroyed(event as usize));
        Ok(())
    }

    /// Records an event in stream order.
    fn hipEventRecord / hipEventRecord_spt(event: *mut c_void, stream: *mut c_void) {
        with_event(stream, event, StreamOp::Record(event as usize))
    }

    /// Records an event in stream order.
    fn hipEventRecordWithFlags(event: *mut c_void, stream: *mut c_void, _flags: c_uint) {
        with_event(stream, event, StreamOp::Record(event as usize))
    }

    /// Waits for an event.
    fn hipEventSynchronize(event: *mut c_void) {
        let pending = runtime().streams.reached(event)?;
        pending.map_or(Ok(()), tasks::wait_for)?;
        runtime().seen_event(event)
    }

    /// Asks whether an event has happened.
    fn hipEventQuery(event: *mut c_void) {
        let mut runtime = runtime();
        match runtime.streams.reached(event)? {
            Some(_) => Err(NOT_READY),
            None => runtime.seen_event(event),
        }
    }

    /// Milliseconds between two events: of the modelled clock if time is modelled; otherwise of this machine, which is
    /// how long the emulator took and says nothing about a GPU.
    fn hipEventElapsedTime(out: *mut f32, start: *mut c_void, stop: *mut c_void) {
        if out.is_null() {
            return Err(INVALID_VALUE);
        }
        let mut runtime = runtime();
        if runtime.streams.reached(start)?.or(runtime.streams.reached(stop)?).is_some() {
            return Err(NOT_READY);
        }
        let (start, stop) = (runtime.streams.event(start)?.clone(), runtime.streams.event(stop)?.clone());
        if !start.timed || !stop.timed {
            return Err(INVALID_HANDLE);
        }
        let (start, stop) = (start.recorded.ok_or(INVALID_HANDLE)?, stop.recorded.ok_or(INVALID_HANDLE)?);
        runtime.seen(&start.end.clone().and(&stop.end));
        let milliseconds = match runtime.modelled_mhz()? {
            Some(mhz) => (stop.end.cycle as f64 - start.end.cycle as f64) / (f64::from(mhz) * 1e3),
            None if stop.at >= start.at => stop.at.duration_since(start.at).as_secs_f64() * 1e3,
            None => -start.at.duration_since(stop.at).as_secs_f64() * 1e3,
        };
        raw::store(out, milliseconds as f32)
    }

    /// Lowest and highest priority, which make no difference here.
    fn hipDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        raw::store_optional(least, PRIORITIES[0]);
        raw::store_optional(greatest, PRIORITIES[1]);
        Ok(())
    }

    /// Waits until all streams are idle.
    fn hipDeviceSynchronize / hipCtxSynchronize() {
        runtime().refuse_while_capturing()?;
        tasks::wait_for_all()
    }
}

/// The device of a stream, returned and not stored.
#[unsafe(no_mangle)]
extern "C" fn hipGetStreamDeviceId(_stream: *mut c_void) -> c_int {
    0
}
