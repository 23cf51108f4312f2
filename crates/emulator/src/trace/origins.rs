//! What waits waited for, and where the values in registers came from: an oracle for analyses that find that
//! from the code alone.
//!
//! Off unless [`crate::Options::origins`] is on. Each register of a wave has, dword by dword and lane by lane,
//! the instruction that wrote it last; each counter the operations that were issued and that no wait has forced to be
//! complete. Memory here is the slowest that the architecture allows: nothing is ever complete before a wait proves it.
//! Which registers an instruction uses is what the tables say; in strict mode also what it was seen to do.
//!
//! Places are relative to the function that is running: an instruction of its own, one that a function executed
//! which it called, or one from before it was called. A function ends where control returns to after its call; what
//! it jumps to otherwise counts as itself.

use std::collections::{BTreeMap, BTreeSet};

use wavetap_amdgpu::{Counter, Reg, RegFile};

use crate::address::CodeAddress;
use crate::lanes::LANES;

/// Where something was done, as the function sees it that is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// By an instruction of the function, since it was called.
    Here(CodeAddress),
    /// By an instruction that something executed which the function has called.
    Callee {
        /// The function's call.
        call: CodeAddress,
        /// The instruction.
        by: CodeAddress,
    },
    /// Before the function was called: by this instruction, or none, if it was there when the wave began.
    Caller(Option<CodeAddress>),
}

/// What the executions of a wait waited for in one counter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WaitOrigins {
    /// How many operations may stay outstanding.
    pub count: u8,
    /// How often waves executed it.
    pub executions: u64,
    /// Operations that it forces to be complete, with the executions in which they were outstanding.
    pub forced: BTreeMap<Origin, u64>,
    /// Operations of which it forces some, unknown which: they complete in any order, or in orders of their
    /// own.
    pub possible: BTreeMap<Origin, u64>,
}

/// Where the values of one dword of a register came from that an instruction has read, with how often (a vector
/// register counts once for each writer of its lanes).
pub type ValueOrigins = BTreeMap<Origin, u64>;

/// What a dispatch waited for and where its values came from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origins {
    /// By wait and counter.
    pub waits: BTreeMap<(CodeAddress, Counter), WaitOrigins>,
    /// By the instruction that reads and the dword of a register that it reads.
    pub values: BTreeMap<CodeAddress, BTreeMap<Reg, ValueOrigins>>,
    /// Operations that were outstanding in a counter just before an instruction, of those instructions that wait, jump,
    /// call, or end the wave.
    pub outstanding: BTreeMap<(CodeAddress, Counter), BTreeSet<Origin>>,
    /// Where calls, and jumps through registers, went.
    pub jumps: BTreeMap<CodeAddress, BTreeSet<CodeAddress>>,
}

pub(crate) const COUNTERS: usize = Counter::ALL.len();
/// The value that was there when the wave began.
pub(crate) const INITIAL: u32 = u32::MAX;
/// A frame without caller.
pub(crate) const NOBODY: u32 = u32::MAX;
/// Most writers that are remembered of one dword: its four bytes, and then some.
pub(crate) const MOST_WRITERS: usize = 8;
/// Places of registers: vector, accumulation, scalar registers, SCC.
pub(crate) const VECTOR: u16 = 0;
pub(crate) const ACCUM: u16 = 1024;
pub(crate) const SCALAR: u16 = ACCUM + 256;
pub(crate) const SCC: u16 = SCALAR + 128;
const SCALARS: usize = 129;

/// An instruction, by index, and the activation that executed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Event {
    pub op: u32,
    pub frame: u32,
}

/// One activation of a function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub parent: u32,
    pub call: u32,
    pub returns: u64,
}

/// An operation in flight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InFlight {
    pub event: Event,
    pub order: Option<Order>,
}

/// What operations of a counter complete in order with: those of vector memory, stores that may be of scratch, of LDS,
/// of GDS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Memory,
    OtherStores,
    Lds,
    Gds,
    Messages,
    Exports,
}

/// Registers that were accessed.
pub(crate) type RegisterRun = (RegFile, u16, u16);

/// What is known of a wave.
pub(crate) struct WaveOrigins {
    /// Sets of writers by number.
    pub scalars: [u32; SCALARS],
    pub vectors: Vec<[u32; LANES]>,
    pub accums: Vec<[u32; LANES]>,
    pub frames: Vec<Frame>,
    pub current: u32,
    pub queues: [Vec<InFlight>; COUNTERS],
    /// What the instruction that is running was seen to access.
    pub reads: Vec<RegisterRun>,
    pub writes: Vec<RegisterRun>,
    /// Before it.
    pub exec: u64,
    pub before: [u32; 128],
}

/// [`Origin`] by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Seen {
    Here(u32),
    Callee { call: u32, by: u32 },
    Caller(u32),
}

impl WaveOrigins {
    pub(crate) fn new(vectors: usize, accums: usize) -> WaveOrigins {
        WaveOrigins {
            // The set that has the initial value alone.
            scalars: [0; SCALARS],
            vectors: vec![[0; LANES]; vectors],
            accums: vec![[0; LANES]; accums],
            frames: vec![Frame { parent: NOBODY, call: 0, returns: 0 }],
            current: 0,
            queues: std::array::from_fn(|_| Vec::new()),
            reads: Vec::new(),
            writes: Vec::new(),
            exec: 0,
            before: [0; 128],
        }
    }

    /// An event as the running function sees it.
    pub(crate) fn seen(&self, event: Event) -> Seen {
        if event.op == INITIAL {
            return Seen::Caller(INITIAL);
        }
        if event.frame == self.current {
            return Seen::Here(event.op);
        }
        let mut frame = self.frames[event.frame as usize];
        while frame.parent != NOBODY {
            if frame.parent == self.current {
                return Seen::Callee { call: frame.call, by: event.op };
            }
            frame = self.frames[frame.parent as usize];
        }
        Seen::Caller(event.op)
    }
}
