//! Capturing: what streams are given to do becomes a graph.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};

use crate::entry_point::entry_points;
use crate::lock::runtime;
use crate::objects::captures::{Capture, Captured};
use crate::objects::streams::{NON_BLOCKING, Stream, Streams};
use crate::per_thread::PerThread;
use crate::raw;
use crate::runtime::Runtime;
use crate::status::*;
use crate::stream_op::StreamOp;

/// `hipStreamCaptureMode`: which calls of whom a capture forbids.
const MODE_GLOBAL: c_int = 0;
const MODE_THREAD: c_int = 1;
const MODE_RELAXED: c_int = 2;

/// `hipStreamCaptureStatus`.
const STATUS_NONE: c_int = 0;
const STATUS_ACTIVE: c_int = 1;
const STATUS_INVALIDATED: c_int = 2;

thread_local! {
    /// What `hipThreadExchangeStreamCaptureMode` set.
    static MODE: Cell<c_int> = const { Cell::new(MODE_GLOBAL) };
}

impl Runtime {
    /// Adds an operation to the graph that is being captured from a stream; false if none is.
    pub(crate) fn capture_operation(&mut self, stream: *mut c_void, operation: &StreamOp) -> Outcome<bool> {
        let captured = self.streams.stream(stream)?.captured.clone();
        let Some(captured) = captured else { return self.outside_of_captures(stream, operation) };
        let graph = self.streams.captures.valid(captured.capture)?.graph;
        match operation {
            StreamOp::Record(event) => self.streams.event(*event as *mut c_void)?.captured = Some(captured),
            StreamOp::Wait(event) => {
                let of_event = self.streams.event(*event as *mut c_void)?.captured.clone();
                let status = match of_event {
                    Some(of_event) if of_event.capture == captured.capture => {
                        self.join(stream, of_event)?;
                        return Ok(true);
                    }
                    Some(_) => STREAM_CAPTURE_MERGE,
                    None => STREAM_CAPTURE_ISOLATION,
                };
                self.streams.captures.invalidate(captured.capture);
                return Err(status);
            }
            _ => {
                let node = self.graphs.add(graph, operation.clone(), &captured.last)?;
                if let StreamOp::Allocate { address, size } = operation {
                    self.graph_allocates(graph, *address, *size)?;
                }
                self.streams.stream(stream)?.captured = Some(Captured { last: vec![node], ..captured });
            }
        }
        Ok(true)
    }

    /// What a stream that is not being captured may do.
    fn outside_of_captures(&mut self, stream: *mut c_void, operation: &StreamOp) -> Outcome<bool> {
        if let StreamOp::Wait(event) = operation {
            let captured = self.streams.event(*event as *mut c_void)?.captured.clone();
            if let Some(captured) = captured.filter(|captured| self.streams.captures.is_active(captured.capture)) {
                self.join(stream, captured)?;
                return Ok(true);
            }
        }
        if Streams::is_legacy(stream) {
            let streams = &self.streams.streams;
            let blocking = |capture: &&u64| {
                let captured = |stream: &&Stream| stream.captured.as_ref().is_some_and(|of| of.capture == **capture);
                streams.values().filter(captured).any(|stream| stream.flags & NON_BLOCKING == 0)
            };
            if let Some(capture) = self.streams.captures.captures.keys().find(blocking).copied() {
                self.streams.captures.invalidate(capture);
                return Err(STREAM_CAPTURE_IMPLICIT);
            }
        }
        Ok(false)
    }

    /// A stream goes on after what an event stands for.
    fn join(&mut self, stream: *mut c_void, with: Captured) -> Outcome {
        self.streams.captures.valid(with.capture)?;
        let stream = self.streams.stream(stream)?;
        match &mut stream.captured {
            Some(own) => {
                for node in with.last {
                    if !own.last.contains(&node) {
                        own.last.push(node);
                    }
                }
            }
            None => stream.captured = Some(with),
        }
        Ok(())
    }

    /// Calls that act at once are an error while a capture is going on that forbids them.
    pub(crate) fn refuse_while_capturing(&mut self) -> Outcome {
        let (mode, thread) = (MODE.get(), std::thread::current().id());
        for capture in self.streams.captures.captures.values_mut() {
            let own = capture.thread == thread;
            let forbids = match capture.mode {
                MODE_GLOBAL => own || mode == MODE_GLOBAL,
                MODE_THREAD => own,
                _ => false,
            };
            if forbids && mode != MODE_RELAXED {
                capture.valid = false;
                return Err(STREAM_CAPTURE_UNSUPPORTED);
            }
        }
        Ok(())
    }

    fn begin(&mut self, stream: *mut c_void, graph: Option<usize>, after: &[usize], mode: c_int) -> Outcome {
        if !(MODE_GLOBAL..=MODE_RELAXED).contains(&mode) {
            return Err(INVALID_VALUE);
        }
        if Streams::is_legacy(stream) {
            return Err(STREAM_CAPTURE_UNSUPPORTED);
        }
        if self.streams.stream(stream)?.captured.is_some() {
            return Err(ILLEGAL_STATE);
        }
        for node in after {
            if Some(self.graphs.node(*node)?.graph) != graph {
                return Err(INVALID_VALUE);
            }
        }
        let graph = match graph {
            Some(graph) => self.graphs.graph(graph).map(|_| graph)?,
            None => self.graphs.create(),
        };
        let captures = &mut self.streams.captures;
        captures.last += 1;
        let number = captures.last;
        let capture =
            Capture { origin: stream as usize, graph, mode, thread: std::thread::current().id(), valid: true };
        captures.captures.insert(number, capture);
        self.streams.stream(stream)?.captured = Some(Captured { capture: number, last: after.to_vec() });
        Ok(())
    }

    /// Ends a capture; the inner error is that of one which has ended without a graph.
    fn end(&mut self, stream: *mut c_void) -> Outcome<Outcome<usize>> {
        let captured = self.streams.stream(stream)?.captured.clone().ok_or(ILLEGAL_STATE)?;
        let capture = self.streams.captures.captures.get(&captured.capture).ok_or(ILLEGAL_STATE)?;
        if capture.origin != stream as usize {
            return Err(STREAM_CAPTURE_UNMATCHED);
        }
        if capture.mode != MODE_RELAXED && capture.thread != std::thread::current().id() {
            return Err(STREAM_CAPTURE_WRONG_THREAD);
        }
        let (graph, valid) = (capture.graph, capture.valid);
        self.streams.captures.captures.remove(&captured.capture);
        let reached = self.graphs.ancestors(&captured.last);
        let mut joined = true;
        for stream in self.streams.streams.values_mut() {
            if stream.captured.as_ref().is_some_and(|own| own.capture == captured.capture) {
                joined &= stream.captured.take().is_some_and(|own| own.last.iter().all(|node| reached.contains(node)));
            }
        }
        if valid && joined {
            return Ok(Ok(graph));
        }
        let dropped = self.graphs.remove(graph)?;
        self.give_back(dropped.memory);
        Ok(Err(if valid { STREAM_CAPTURE_UNJOINED } else { STREAM_CAPTURE_INVALIDATED }))
    }

    /// State and number of the capture that a stream is part of, its graph, and the nodes that the next one will come
    /// after.
    fn capture_state(&mut self, stream: *mut c_void) -> Outcome<(c_int, u64, usize, Vec<usize>)> {
        let Some(captured) = self.streams.stream(stream)?.captured.clone() else {
            return Ok((STATUS_NONE, 0, 0, Vec::new()));
        };
        let capture = self.streams.captures.captures.get(&captured.capture).ok_or(ILLEGAL_STATE)?;
        let status = if capture.valid { STATUS_ACTIVE } else { STATUS_INVALIDATED };
        Ok((status, captured.capture, capture.graph, captured.last))
    }
}

thread_local! {
    /// The nodes that `hipStreamGetCaptureInfo_v2` gave out last: they are the library's, and the caller looks at them.
    static SHOWN: PerThread<Vec<usize>> = const { PerThread::new(Vec::new()) };
}

entry_points! {
    /// Begins to make a graph of what a stream is given to do.
    fn hipStreamBeginCapture / hipStreamBeginCapture_spt(stream: *mut c_void, mode: c_int) {
        runtime().begin(stream, None, &[], mode)
    }

    /// Begins to add what a stream is given to do to a graph.
    fn hipStreamBeginCaptureToGraph(
        stream: *mut c_void,
        graph: usize,
        after: *const usize,
        _edges: *const c_void,
        count: usize,
        mode: c_int,
    ) {
        let after = raw::array(after, count)?;
        runtime().begin(stream, Some(graph), &after, mode)
    }

    /// Ends a capture and gives the graph.
    fn hipStreamEndCapture / hipStreamEndCapture_spt(stream: *mut c_void, out: *mut usize) {
        if out.is_null() {
            return Err(INVALID_VALUE);
        }
        let result = runtime().end(stream)?;
        raw::store(out, *result.as_ref().unwrap_or(&0))?;
        result.map(|_| ())
    }

    /// Whether a stream is being captured.
    fn hipStreamIsCapturing / hipStreamIsCapturing_spt(stream: *mut c_void, out: *mut c_int) {
        let status = runtime().capture_state(stream)?.0;
        raw::store(out, status)
    }

    /// State and number of the capture of a stream.
    fn hipStreamGetCaptureInfo / hipStreamGetCaptureInfo_spt(stream: *mut c_void, status: *mut c_int, id: *mut u64) {
        let state = runtime().capture_state(stream)?;
        raw::store(status, state.0)?;
        raw::store_optional(id, state.1);
        Ok(())
    }

    /// State, number, graph and last nodes of the capture of a stream.
    fn hipStreamGetCaptureInfo_v2 / hipStreamGetCaptureInfo_v2_spt(
        stream: *mut c_void,
        status: *mut c_int,
        id: *mut u64,
        graph: *mut usize,
        nodes: *mut *const usize,
        count: *mut usize,
    ) {
        let state = runtime().capture_state(stream)?;
        raw::store(status, state.0)?;
        raw::store_optional(id, state.1);
        raw::store_optional(graph, state.2);
        raw::store_optional(count, state.3.len());
        SHOWN.with(|shown| {
            let mut shown = shown.borrow_mut();
            *shown = state.3;
            raw::store_optional(nodes, shown.as_ptr());
        });
        Ok(())
    }

    /// Sets or adds to the nodes that the next one comes after.
    fn hipStreamUpdateCaptureDependencies(stream: *mut c_void, nodes: *const usize, count: usize, flags: c_uint) {
        let nodes = raw::array(nodes, count)?;
        let mut runtime = runtime();
        let mut captured = runtime.streams.stream(stream)?.captured.clone().ok_or(ILLEGAL_STATE)?;
        let graph = runtime.streams.captures.valid(captured.capture)?.graph;
        for node in &nodes {
            if runtime.graphs.node(*node)?.graph != graph {
                return Err(INVALID_VALUE);
            }
        }
        match flags {
            0 => nodes.iter().for_each(|node| {
                if !captured.last.contains(node) {
                    captured.last.push(*node);
                }
            }),
            1 => captured.last = nodes,
            _ => return Err(INVALID_VALUE),
        }
        runtime.streams.stream(stream)?.captured = Some(captured);
        Ok(())
    }

    /// Sets which calls captures forbid this thread, and gives what was set before.
    fn hipThreadExchangeStreamCaptureMode(mode: *mut c_int) {
        let new = raw::load(mode)?;
        if !(MODE_GLOBAL..=MODE_RELAXED).contains(&new) {
            return Err(INVALID_VALUE);
        }
        raw::store(mode, MODE.replace(new))
    }
}
