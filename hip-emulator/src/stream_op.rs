//! What a stream is given to do, as data: done at once or in its turn, or kept as a node of a graph while the stream is
//! being captured.

use std::ffi::c_void;

use wavetap::profile::host::HostOperation;

use crate::copies::{BoxCopy, BoxFill};
use crate::graphs::Step;
use crate::kernarg::Shape;
use crate::raw;
use crate::runtime::{KernelRef, Runtime, runtime};
use crate::status::*;
use crate::tasks;

/// A kernel with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) kernel: KernelRef,
    pub(crate) shape: Shape,
    /// The explicit arguments at their places in the kernel argument segment.
    pub(crate) arguments: Vec<u8>,
    /// Its workgroups wait for each other.
    pub(crate) cooperative: bool,
}

/// A function of the program that a stream calls (`hipHostFn_t`).
pub(crate) type HostFunction = extern "C" fn(*mut c_void);

/// A function of the program that a stream calls with its state (`hipStreamCallback_t`).
pub(crate) type Callback = extern "C" fn(*mut c_void, Status, *mut c_void);

/// Which function of the program is called.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HostCall {
    /// With the data alone.
    Plain(HostFunction),
    /// With this stream and its status.
    OfStream(Callback, usize),
}

/// A value that a stream waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueWait {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    pub(crate) value: u64,
    pub(crate) mask: u64,
    pub(crate) comparison: Comparison,
}

/// How it is compared with what is in memory (`hipStreamWaitValueGte` and so on).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    AtLeast,
    Equal,
    AnyBit,
    /// Not all bits are set in either.
    Nor,
}

impl ValueWait {
    /// What it waits for, in words.
    pub(crate) fn name(&self) -> String {
        let ValueWait { address, bytes, value, mask, comparison } = *self;
        let all = u64::MAX >> (64 - 8 * bytes);
        let masked = if mask & all == all { String::new() } else { format!(", of which {mask:#x} count,") };
        let relation = match comparison {
            Comparison::AtLeast => format!("to be at least {value:#x}"),
            Comparison::Equal => format!("to be {value:#x}"),
            Comparison::AnyBit => format!("to have one of the bits {value:#x}"),
            Comparison::Nor => format!("to lack a bit that {value:#x} lacks"),
        };
        format!("the {bytes} bytes at {address:#x}{masked} {relation}")
    }
}

/// One thing to do.
#[derive(Debug, Clone)]
pub(crate) enum StreamOp {
    /// Nothing: only its place in the order matters.
    Empty,
    Kernel(Launch),
    Copy(BoxCopy),
    /// A copy to or from a variable, which graphs tell from other copies.
    SymbolCopy {
        copy: BoxCopy,
        to_symbol: bool,
    },
    Fill(BoxFill),
    Host {
        call: HostCall,
        data: usize,
    },
    /// Records an event.
    Record(usize),
    /// Waits for an event.
    Wait(usize),
    /// Waits for a value in memory.
    WaitValue(ValueWait),
    /// A copy whose source was copied when it was submitted.
    Staged {
        copy: BoxCopy,
        bytes: Vec<u8>,
    },
    /// Frees memory.
    Release(u64),
    /// Makes memory of a graph look new.
    Allocate {
        address: u64,
        size: u64,
    },
    /// Ends the use of memory; that of a graph is freed with the graph.
    Free(u64),
    /// A graph within a graph, before it is instantiated.
    Child(usize),
    /// A graph within a graph.
    Steps(Vec<Step>),
}

impl StreamOp {
    /// Does what takes no time, or no more than a copy.
    pub(crate) fn run(&self, runtime: &mut Runtime) -> Outcome {
        match self {
            StreamOp::Empty | StreamOp::Wait(_) | StreamOp::WaitValue(_) => Ok(()),
            StreamOp::Free(address) if runtime.graph_memory.is_owned(*address) => Ok(()),
            StreamOp::Free(address) => {
                // Its graph has ended; what the program has freed itself is not freed again.
                let _ = runtime.free(*address);
                Ok(())
            }
            StreamOp::Copy(copy) | StreamOp::SymbolCopy { copy, .. } => {
                copy.run(runtime)?;
                runtime.copied(copy);
                Ok(())
            }
            StreamOp::Staged { copy, bytes } => {
                copy.with_source(bytes).run(runtime)?;
                runtime.copied(copy);
                Ok(())
            }
            StreamOp::Fill(fill) => {
                fill.run(runtime)?;
                let bytes = fill.extent.elements().saturating_mul(fill.element.len() as u64);
                runtime.collection.host(&runtime.settings, HostOperation::Fill, bytes);
                Ok(())
            }
            StreamOp::Record(event) => runtime.streams.record(*event as *mut c_void),
            StreamOp::Allocate { address, size } => runtime.make_fresh(*address, *size),
            StreamOp::Release(address) => runtime.free(*address),
            StreamOp::Kernel(_) | StreamOp::Host { .. } | StreamOp::Steps(_) | StreamOp::Child(_) => Err(INVALID_VALUE),
        }
    }
}

impl Runtime {
    /// Records a copy that was made.
    fn copied(&mut self, copy: &BoxCopy) {
        let operation =
            HostOperation::copy(self.is_device_memory(copy.to.start), self.is_device_memory(copy.from.start));
        self.collection.host(&self.settings, operation, copy.extent.elements());
    }

    /// Where a copy ends that the program's own memory is the target of, which may be gone once the call returns.
    fn is_to_pageable(&self, operation: &StreamOp) -> bool {
        match operation {
            StreamOp::Copy(copy) | StreamOp::SymbolCopy { copy, .. } => self.is_pageable(copy.to.start),
            _ => false,
        }
    }

    /// What is where a stream waits for a value.
    pub(crate) fn value(&self, wait: &ValueWait) -> Outcome<u64> {
        let mut value = [0; 8];
        let into = &mut value[..wait.bytes];
        if self.is_device_memory(wait.address) {
            self.read_device(wait.address, into)?
        } else {
            raw::read(wait.address as usize, into)?
        }
        Ok(u64::from_le_bytes(value))
    }

    /// Whether memory has a value that a stream waits for.
    pub(crate) fn has_value(&self, wait: &ValueWait) -> Outcome<bool> {
        let found = self.value(wait)? & wait.mask;
        Ok(match wait.comparison {
            Comparison::AtLeast => found >= wait.value,
            Comparison::Equal => found == wait.value,
            Comparison::AnyBit => found & wait.value != 0,
            Comparison::Nor => !(found | (wait.value & wait.mask)) & wait.mask != 0,
        })
    }
}

/// Gives a stream something to do, or the graph that is being captured from it. Only a copy to the program's own memory
/// has been done when this returns.
pub(crate) fn submit(stream: *mut c_void, operation: StreamOp) -> Outcome {
    let to_pageable = {
        let mut runtime = runtime();
        if runtime.capture_operation(stream, &operation)? {
            return Ok(());
        }
        runtime.is_to_pageable(&operation)
    };
    match tasks::give(stream, operation)? {
        Some(task) if to_pageable => tasks::wait_for(task),
        _ => Ok(()),
    }
}

/// As [`submit`], and has been done when this returns.
pub(crate) fn submit_and_wait(stream: *mut c_void, operation: StreamOp) -> Outcome {
    if runtime().capture_operation(stream, &operation)? {
        return Ok(());
    }
    tasks::give(stream, operation)?.map_or(Ok(()), tasks::wait_for)
}

/// Something that no capture may see, in the order of the default stream. It has been done when the call returns, but
/// for fills of device memory.
pub(crate) fn do_now(operation: &StreamOp) -> Outcome {
    let fills_device = {
        let mut runtime = runtime();
        runtime.refuse_while_capturing()?;
        matches!(operation, StreamOp::Fill(fill) if runtime.is_device_memory(fill.to.start))
    };
    match tasks::give(std::ptr::null_mut(), operation.clone())? {
        Some(task) if !fills_device => tasks::wait_for(task),
        _ => Ok(()),
    }
}
