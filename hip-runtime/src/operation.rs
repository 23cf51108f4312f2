//! What a stream is given to do, as data: done at once, or kept as a node of a graph while the stream is being captured.

use std::ffi::c_void;

use crate::copies::{BoxCopy, BoxFill};
use crate::graphs::Step;
use crate::kernarg::Shape;
use crate::raw;
use crate::runtime::{KernelRef, runtime};
use crate::status::*;

/// A kernel with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) kernel: KernelRef,
    pub(crate) shape: Shape,
    /// The explicit arguments at their places in the kernel argument segment.
    pub(crate) arguments: Vec<u8>,
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

/// One thing to do.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
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
    /// Waits for an event, which has happened.
    Wait(usize),
    /// Makes memory of a graph look new.
    Allocate {
        address: u64,
        size: u64,
    },
    /// Ends the use of such memory; it is given back with the graph.
    Free(u64),
    /// A graph within a graph, before it is instantiated.
    Child(usize),
    /// A graph within a graph.
    Steps(Vec<Step>),
}

impl Operation {
    /// Does it. The runtime must not be locked: functions of the program are called.
    pub(crate) fn run(&self) -> Outcome {
        working()?;
        match self {
            Operation::Empty | Operation::Wait(_) | Operation::Free(_) => Ok(()),
            Operation::Kernel(launch) => runtime().launch(launch),
            Operation::Copy(copy) | Operation::SymbolCopy { copy, .. } => copy.run(&mut runtime()),
            Operation::Fill(fill) => fill.run(&mut runtime()),
            Operation::Host { call, data } => {
                let data = *data as *mut c_void;
                match call {
                    HostCall::Plain(function) => function(data),
                    HostCall::OfStream(function, stream) => function(*stream as *mut c_void, SUCCESS, data),
                }
                Ok(())
            }
            Operation::Record(event) => runtime().streams.record(*event as *mut c_void),
            Operation::Allocate { address, size } => runtime().make_fresh(*address, *size),
            Operation::Child(_) => Err(INVALID_VALUE),
            Operation::Steps(steps) => steps.iter().filter(|step| step.enabled).try_for_each(|step| step.operation.run()),
        }
    }
}

/// Gives a stream something to do: now, or in the graph that is being captured from it.
pub(crate) fn submit(stream: *mut c_void, operation: Operation) -> Outcome {
    if runtime().capture_operation(stream, &operation)? {
        return Ok(());
    }
    operation.run()
}

/// Something that is done when the call returns, which no capture may see.
pub(crate) fn do_now(operation: &Operation) -> Outcome {
    runtime().refuse_while_capturing()?;
    operation.run()
}

/// A stream's write of a value, or its wait for one.
pub(crate) fn memory_value(address: u64, bytes: usize) -> Outcome<u64> {
    let mut value = [0; 8];
    let mut runtime = runtime();
    if runtime.is_device_memory(address) {
        runtime.device()?.read(address, &mut value[..bytes]).map_err(|_| INVALID_VALUE)?;
    } else {
        raw::read(address as usize, &mut value[..bytes])?;
    }
    Ok(u64::from_le_bytes(value))
}
