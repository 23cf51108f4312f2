//! What a stream is given to do, as data: done at once or in its turn, or kept as a node of a graph while the stream is
//! being captured.

use std::ffi::c_void;

use wavetap::collect::selected::Submitted;

use crate::copies::{BoxCopy, BoxFill};
use crate::images::KernelRef;
use crate::kernarg::Shape;
use crate::status::*;

/// A kernel with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) kernel: KernelRef,
    pub(crate) shape: Shape,
    /// The explicit arguments at their places in the kernel argument segment.
    pub(crate) arguments: Vec<u8>,
    /// Its workgroups wait for each other.
    pub(crate) cooperative: bool,
    /// Where the program was when it submitted it.
    pub(crate) submitted: Submitted,
    /// The event that is to have the time at which it starts.
    pub(crate) start_event: Option<usize>,
}

impl Launch {
    /// A launch that is not submitted yet, of workgroups that do not wait for each other.
    pub(crate) fn new(kernel: KernelRef, shape: Shape, arguments: Vec<u8>) -> Launch {
        Launch { kernel, shape, arguments, cooperative: false, submitted: Submitted::default(), start_event: None }
    }
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

/// One operation of an instantiated graph.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// The node it was made from.
    pub(crate) node: usize,
    pub(crate) operation: StreamOp,
    pub(crate) after: Vec<usize>,
    pub(crate) enabled: bool,
}
