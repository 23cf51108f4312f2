//! Instructions: what they read and write, what they leave in flight, and what they wait for.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use smallvec::SmallVec;

use crate::cycles::Cycles;

/// A run of units of one register file.
///
/// A unit is the least part that can be written alone: a register of 32 bits, a predicate, a byte of a register. The
/// builder of the code numbers files and units; here they are numbers that overlap or do not. Registers that are not
/// there (zero, true, null) have no location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The register file.
    pub file: u8,
    /// The first unit.
    pub first: u32,
    /// How many units, at least 1.
    pub units: u32,
}

impl Location {
    /// One past the last unit.
    #[must_use]
    pub fn end(self) -> u32 {
        self.first.saturating_add(self.units)
    }

    /// Whether the two have a unit in common.
    #[must_use]
    pub fn overlaps(self, other: Location) -> bool {
        self.file == other.file && self.first < other.end() && other.first < self.end()
    }
}

/// What an instruction reads a location for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadRole {
    /// A value that it computes with.
    Value,
    /// Where it accesses memory.
    Address,
    /// What it stores.
    Data,
    /// Which lanes it works for, or whether it is executed: a guard, a mask of lanes. Paths do not follow it.
    Mask,
    /// How it works: a mode. Paths do not follow it.
    Mode,
}

impl ReadRole {
    /// Whether a value flows through it, rather than which lanes or how.
    #[must_use]
    pub fn is_value(self) -> bool {
        !matches!(self, ReadRole::Mask | ReadRole::Mode)
    }
}

/// A location that an instruction reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Read {
    /// The location.
    pub location: Location,
    /// What for.
    pub role: ReadRole,
}

/// A location that an instruction writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Write {
    /// The location.
    pub location: Location,
    /// Whether part of the old value may stay for another reason than the guard: bits or lanes that are not written.
    /// Then the search for definitions goes on before it.
    pub partial: bool,
}

/// The predicate under which an instruction works; where it does not hold, what would be written keeps its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The predicate. The instruction's reads should have it, too, as [`ReadRole::Mask`].
    pub predicate: Location,
    /// Whether it works where the predicate is false.
    pub negated: bool,
}

impl Guard {
    /// Whether one holds exactly where the other does not, if the predicate is the same value.
    #[must_use]
    pub fn is_opposite(self, other: Guard) -> bool {
        self.predicate == other.predicate && self.negated != other.negated
    }
}

/// What kind of work an instruction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Arithmetic of fixed latency.
    Alu,
    /// What computes or exchanges lanes with a latency that varies: transcendentals, conversions, shuffles.
    Special,
    /// Products of matrices.
    Matrix,
    /// Memory that is the same for all lanes: scalar loads, constants.
    Constant,
    /// Memory of a workgroup: LDS, shared, SLM.
    Shared,
    /// Memory of a lane: scratch, local.
    Private,
    /// Global memory, buffers among it.
    Global,
    /// An address that may be global, of the workgroup or of the lane.
    Generic,
    /// Images and textures.
    Image,
    /// Waits for other waves.
    Barrier,
    /// Orders or invalidates memory, without access.
    Fence,
    /// Messages to other units than memory.
    Message,
    /// Branches, calls and the end.
    Control,
    /// Waits only.
    Wait,
    /// The rest.
    Other,
}

impl Class {
    /// In words, in the plural where there is one.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Class::Alu => "arithmetic",
            Class::Special => "special functions",
            Class::Matrix => "matrix products",
            Class::Constant => "constant memory",
            Class::Shared => "shared memory",
            Class::Private => "private memory",
            Class::Global => "global memory",
            Class::Generic => "generic memory",
            Class::Image => "images",
            Class::Barrier => "barriers",
            Class::Fence => "fences",
            Class::Message => "messages",
            Class::Control => "branches",
            Class::Wait => "waits",
            Class::Other => "other instructions",
        }
    }

    /// Whether it accesses memory.
    #[must_use]
    pub fn is_memory(self) -> bool {
        use Class::{Constant, Generic, Global, Image, Private, Shared};
        matches!(self, Constant | Shared | Private | Global | Generic | Image)
    }
}

/// What a call does to the state of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallEffect {
    /// Whether the callee may write any location; else the call's own [`Instruction::writes`] say what.
    pub may_write_anything: bool,
    /// Whether all operations that were in flight at the call are complete after it.
    pub completes: bool,
    /// Whether operations of the callee may be in flight after it.
    pub leaves: bool,
}

impl CallEffect {
    /// Nothing is known of the callee.
    pub const UNKNOWN: CallEffect = CallEffect { may_write_anything: true, completes: false, leaves: true };
}

/// How control leaves the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// The wave ends.
    End,
    /// The function returns to its caller.
    Return,
    /// The function ends in another function.
    TailCall,
    /// It jumps to a place that is not known.
    Unknown,
}

/// Where control goes after an instruction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Flow {
    /// To the next instruction.
    #[default]
    Next,
    /// To one of some places.
    Branch {
        /// The addresses of the places.
        targets: SmallVec<[u64; 1]>,
        /// Whether it may also go on with the next instruction: a condition or a guard.
        falls_through: bool,
    },
    /// Into a function, and then to the next instruction.
    Call(CallEffect),
    /// Out of the body.
    Exit {
        /// How.
        exit: Exit,
        /// Whether it may also go on with the next instruction, under a guard.
        falls_through: bool,
    },
}

/// Number of a counter of operations in flight, in [`crate::Code::counters`]: a wait counter, a scoreboard, one of the
/// two events of a token, or an in-order pipe of which distances are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterId(pub u8);

impl CounterId {
    /// The number as a `usize`.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Something that counts operations in flight: issue adds one, completion takes one off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// Its name as the vendor writes it: `vmcnt`, `SB2`, `$4.dst`, `F`.
    pub name: Cow<'static, str>,
    /// How many younger operations one may have and still be waited for. With so many it is taken to be complete. For
    /// in-order pipes whose instructions are named by a short distance (Intel: 7); none for others.
    pub depth: Option<u8>,
}

/// When an operation leaves a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// Its result is written, or its access done. That its operands were read follows.
    Result,
    /// Its operands were read, so that they may be overwritten.
    Operands,
}

/// That an instruction counts in a counter, until an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Issue {
    /// The counter.
    pub counter: CounterId,
    /// When it leaves the counter.
    pub event: Event,
    /// Operations of one counter with the same number leave it in the order in which they were issued. None: in any
    /// order, so that only a wait for 0 proves anything of one.
    pub order: Option<u8>,
}

/// That an instruction waits until at most so many operations are left in a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitFor {
    /// The counter.
    pub counter: CounterId,
    /// How many may stay in flight. For "the n-th last is done" it is n - 1.
    pub count: u8,
    /// What the vendor's assembler writes, where it is not `counter(count)`: `SB2`, `$4.dst`, `F@1`.
    pub name: Option<Cow<'static, str>>,
    /// Whether it may not wait, under the instruction's guard. A wait of control bits is not under the guard.
    pub guarded: bool,
}

/// An instruction. [`Instruction::new`] is one that does nothing; the fields are what it does.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    /// Its address, in the terms in which samples have it.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// As printed, with its guard and operands.
    pub text: Box<str>,
    /// Its name, without operands.
    pub name: Cow<'static, str>,
    /// What it reads, its guard among it.
    pub reads: SmallVec<[Read; 4]>,
    /// What it writes.
    pub writes: SmallVec<[Write; 2]>,
    /// The predicate under which it works.
    pub guard: Option<Guard>,
    /// Whether it reads other lanes than it works for: guards say nothing of their values.
    pub crosses_lanes: bool,
    /// Whether it chooses its registers at run time.
    pub is_indirect: bool,
    /// Where control goes.
    pub flow: Flow,
    /// What kind of work it is.
    pub class: Class,
    /// From its issue until its result is there, without contention.
    pub latency: Cycles,
    /// From its issue until its operands were read.
    pub operand_latency: Cycles,
    /// From its issue until the wave can issue the next instruction, at least: an issue interval, a stall count.
    pub issue_cycles: u32,
    /// The counters in which it counts.
    pub issues: SmallVec<[Issue; 2]>,
    /// The in-order unit that works on it: results of instructions of one unit are written in order, so that one
    /// without a counter is complete when a younger one is. The builder numbers units.
    pub unit: Option<u8>,
    /// What it waits for before it does anything else. An implicit wait, for a token that it sets anew, is one of them.
    pub waits: SmallVec<[WaitFor; 2]>,
    /// Whether it is a wait even if `waits` is empty: of a form that can wait and does not here.
    pub is_wait: bool,
}

impl Instruction {
    /// An instruction that reads, writes and waits for nothing and goes on to the next. Its name is the text up to the
    /// first blank.
    #[must_use]
    pub fn new(address: u64, length: u32, text: impl Into<Box<str>>) -> Instruction {
        let text = text.into();
        let name = text.split_whitespace().next().unwrap_or_default().to_owned();
        Instruction {
            address,
            length,
            text,
            name: Cow::Owned(name),
            reads: SmallVec::new(),
            writes: SmallVec::new(),
            guard: None,
            crosses_lanes: false,
            is_indirect: false,
            flow: Flow::Next,
            class: Class::Other,
            latency: Cycles::default(),
            operand_latency: Cycles::default(),
            issue_cycles: 1,
            issues: SmallVec::new(),
            unit: None,
            waits: SmallVec::new(),
            is_wait: false,
        }
    }

    /// Whether waves can stand at it for operations in flight.
    #[must_use]
    pub fn can_wait(&self) -> bool {
        self.is_wait || !self.waits.is_empty()
    }

    /// Whether it counts in a counter.
    #[must_use]
    pub fn counts_in(&self, counter: CounterId) -> bool {
        self.issues.iter().any(|issue| issue.counter == counter)
    }

    /// Whether a write of it leaves part of the old value.
    #[must_use]
    pub fn keeps(&self, write: &Write) -> bool {
        write.partial || self.guard.is_some()
    }
}
