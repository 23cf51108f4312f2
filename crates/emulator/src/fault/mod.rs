//! Why a dispatch was stopped, with the instruction it happened at.

mod checked;
pub(crate) mod findings;
pub(crate) mod last_write;
pub(crate) mod overrun;
pub(crate) mod stop;

use std::fmt;
use std::sync::Arc;

use wavetap_amdgpu::Limit;
use wavetap_base::error::{Error, Kind};

use crate::address::ObjectId;
use crate::address::allocation::Allocation;

/// What a memory instruction was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryAccess {
    /// Reading.
    Load,
    /// Writing.
    Store,
    /// Reading and writing at once.
    Atomic,
    /// Fetching an instruction.
    Fetch,
}

/// An earlier access of LDS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LdsAccess {
    /// Whether it loaded, stored, or both.
    pub access: MemoryAccess,
    /// Name of the instruction.
    pub instruction: &'static str,
    /// Its code address (virtual, in the object).
    pub address: u64,
    /// The wave within the workgroup.
    pub wave: u32,
    /// Why the two are not ordered.
    pub missing: MissingOrder,
}

/// What is wrong with how waves come to a barrier. Addresses are code addresses (virtual, in the object).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarrierProblem {
    /// Another wave waits at another barrier.
    Different {
        /// The barrier.
        at: u64,
        /// The other one.
        other: u64,
        /// The wave that came there.
        wave: u32,
    },
    /// Waves have ended that did not come to it.
    Ended {
        /// The barrier.
        at: u64,
        /// How many.
        waves: u32,
    },
    /// Lanes are not active when their wave comes to it.
    Lanes {
        /// The barrier.
        at: u64,
        /// A bit for each.
        lanes: u64,
    },
}

impl BarrierProblem {
    /// The code address of the barrier.
    #[must_use]
    pub fn at(self) -> u64 {
        match self {
            BarrierProblem::Different { at, .. }
            | BarrierProblem::Ended { at, .. }
            | BarrierProblem::Lanes { at, .. } => at,
        }
    }
}

impl fmt::Display for BarrierProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BarrierProblem::Different { other, wave, .. } => {
                write!(f, "wave {wave} of the workgroup waits at another barrier, at {other:#x}")
            }
            BarrierProblem::Ended { waves: 1, .. } => f.write_str("a wave of the workgroup ended without coming to it"),
            BarrierProblem::Ended { waves, .. } => {
                write!(f, "{waves} waves of the workgroup ended without coming to it")
            }
            BarrierProblem::Lanes { lanes, .. } => {
                write!(f, "{} lanes of the wave are not active when it comes to it", lanes.count_ones())
            }
        }
    }
}

/// Why nothing orders an access of LDS after an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingOrder {
    /// The earlier one is the same wave's, and may still be in flight.
    OwnWait,
    /// The other wave has not waited for it before it came to the barrier between the two.
    Wait,
    /// There is no barrier between the two.
    Barrier,
}

/// An earlier access of global memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalAccess {
    /// Whether it loaded, stored, or both.
    pub access: MemoryAccess,
    /// Name of the instruction; of an access of the host, what it is called.
    pub instruction: &'static str,
    /// Its code address (virtual, in the object).
    pub address: u64,
    /// The object whose code it is in; none for an access of the host.
    pub object: Option<ObjectId>,
    /// The number of the dispatch, or of the access of the host ([`crate::Flight::number`]).
    pub dispatch: u64,
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// The wave within the workgroup.
    pub wave: u32,
    /// Why the two are not ordered.
    pub missing: MissingSynchronisation,
}

/// Workgroups that wait for one that has no room beside them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoProgress {
    /// How many wait.
    pub waiting: u64,
    /// How many workgroups of the dispatch the GPU holds.
    pub room: u64,
    /// The GPU, in words.
    pub board: Arc<str>,
    /// What they wait for a change of.
    pub address: u64,
    /// Bytes.
    pub size: u32,
    /// The workgroup that writes there.
    pub writer: [u32; 3],
    /// The allocation there.
    pub nearest: Option<Allocation>,
}

/// Why nothing orders an access of global memory after an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingSynchronisation {
    /// Of waves of one workgroup: there is no barrier between the two.
    Barrier,
    /// The other wave has synchronised with this one, but had not waited for its write before.
    Wait,
    /// Of different workgroups: the other one has handed nothing over that this one has taken.
    Order,
    /// Of different dispatches, or of a dispatch and the host: neither is over before the other begins.
    Dispatch,
}

/// The kinds of faults, with what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// An address outside every allocation.
    Memory {
        /// The first byte of the access.
        address: u64,
        /// Its size in bytes.
        size: u32,
        /// What was being done.
        access: MemoryAccess,
        /// The allocation that lies closest, if there is any.
        nearest: Option<Allocation>,
    },
    /// An access to LDS outside what the dispatch packet allocates.
    LdsBounds {
        /// What was being done.
        access: MemoryAccess,
        /// The first byte of the access.
        offset: u64,
        /// Its size in bytes.
        size: u32,
        /// Bytes allocated.
        allocated: u32,
    },
    /// An access to scratch outside the private segment.
    ScratchBounds {
        /// The first byte of the access, within the lane's private segment.
        offset: i64,
        /// Its size in bytes.
        size: u32,
        /// What was being done.
        access: MemoryAccess,
        /// Bytes allocated for each lane.
        allocated: u32,
    },
    /// An address that the instruction needs aligned, and is not.
    Misaligned {
        /// The address.
        address: u64,
        /// The alignment needed.
        align: u32,
    },
    /// A register whose pending result no wait has guaranteed.
    MissingWait {
        /// The register, as an assembler names it.
        register: Box<str>,
        /// Name of the operation that will write it.
        pending: &'static str,
        /// Its code address (virtual, in the object).
        pending_at: u64,
        /// The counter to be waited for.
        counter: Box<str>,
        /// Whether the register was to be written rather than read.
        overwritten: bool,
    },
    /// Fewer wait states than the target requires.
    Hazard {
        /// The rule.
        rule: &'static str,
        /// Wait states required; 0 for a rule that is not about their number.
        required: u32,
        /// Wait states there were.
        found: u32,
        /// The register or resource concerned.
        resource: Box<str>,
    },
    /// Two accesses of LDS that nothing orders, of different waves or of one that has not waited.
    LdsRace {
        /// The first byte they share.
        offset: u32,
        /// What was being done.
        access: MemoryAccess,
        /// The access before.
        other: LdsAccess,
    },
    /// A barrier that not all of a workgroup come to ([`Options::barriers`](crate::Options::barriers)).
    Barrier {
        /// What is wrong.
        problem: BarrierProblem,
    },
    /// Two accesses of global memory that nothing orders, at least one of them a write.
    GlobalRace {
        /// The first byte where this was found.
        address: u64,
        /// What was being done.
        access: MemoryAccess,
        /// The access before.
        other: Box<GlobalAccess>,
        /// Both store the same value.
        same_value: bool,
    },
    /// Lanes of one instruction that store different values to one place in global memory.
    LaneConflict {
        /// The first byte that they share.
        address: u64,
        /// Two of the lanes.
        lanes: [u8; 2],
    },
    /// A use of undefined bits.
    Uninitialised {
        /// The register, as an assembler names it.
        register: Box<str>,
        /// Where its bits come from.
        origin: Box<str>,
        /// The use of the undefined value, in words.
        used: &'static str,
    },
    /// A register outside what the kernel descriptor allocates.
    RegisterBounds {
        /// The register, as an assembler names it.
        register: Box<str>,
        /// How many of its file are allocated.
        allocated: u32,
    },
    /// An instruction this emulator has no meaning for.
    UnknownInstruction {
        /// Its name.
        name: Box<str>,
    },
    /// Bytes that are no instruction.
    Undecodable {
        /// Why not.
        reason: Box<str>,
    },
    /// Something the architecture leaves undefined.
    Undefined {
        /// What the architecture leaves undefined, in words.
        what: Box<str>,
    },
    /// `s_trap`.
    Trap {
        /// Its number.
        id: u8,
    },
    /// The dispatch used up its fuel.
    OutOfFuel,
    /// The same, while a wave waited for a change of memory.
    EndlessWait {
        /// Where.
        address: u64,
        /// Bytes.
        size: u32,
        /// The allocation there.
        nearest: Option<Allocation>,
    },
    /// Workgroups that wait for one that has no room beside them ([`Options::residency`](crate::Options::residency)).
    NoProgress(Box<NoProgress>),
    /// No workgroup of the dispatch fits on a compute unit.
    NoRoom {
        /// What there is too little of.
        limit: Limit,
        /// What a workgroup needs of it, in words.
        reason: Box<str>,
    },
    /// The dispatch itself cannot be set up: bad descriptor, sizes or addresses.
    Setup {
        /// Why.
        reason: Box<str>,
    },
}

/// A dispatch that was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// The object whose code was running.
    pub object: Option<ObjectId>,
    /// Virtual address of the instruction in that object (or the raw program counter where no object is).
    pub address: u64,
    /// The instruction as a disassembler prints it; empty if it could not be decoded.
    pub instruction: Box<str>,
    /// The lane, where one lane is to blame.
    pub lane: Option<u8>,
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// The wave within the workgroup.
    pub wave: u32,
}

impl fmt::Display for MemoryAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryAccess::Load => "load",
            MemoryAccess::Store => "store",
            MemoryAccess::Atomic => "atomic",
            MemoryAccess::Fetch => "instruction fetch",
        })
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::Memory { address, size, access, nearest } => {
                let range = |of: &Allocation| format!("{:#x}..{:#x}", of.address, of.address + of.size);
                let contains = |of: &Allocation, byte: u64| byte >= of.address && byte - of.address < of.size;
                write!(f, "{access} of {size} bytes at {address:#x} ")?;
                match nearest {
                    None => f.write_str("is outside every allocation"),
                    Some(of) if !contains(of, *address) => {
                        write!(f, "is outside every allocation (nearest: {})", range(of))
                    }
                    Some(of) if contains(of, address.saturating_add(u64::from(*size).max(1) - 1)) => {
                        write!(f, "hits what kernels must not access in that way: code, in {}", range(of))
                    }
                    Some(of) => write!(f, "runs past the end of its allocation, {}", range(of)),
                }
            }
            FaultKind::LdsBounds { offset, size, allocated, .. } => {
                write!(
                    f,
                    "LDS access of {size} bytes at offset {offset:#x} is outside the {allocated} bytes of the workgroup"
                )
            }
            FaultKind::ScratchBounds { offset, size, access, allocated } if *offset >= 0 => {
                write!(
                    f,
                    "stack overflow: {access} of {size} bytes at offset {offset:#x} of a lane's scratch, which has \
                        {allocated} bytes "
                )?;
                f.write_str("(hipDeviceSetLimit(hipLimitStackSize, …) gives more to kernels with a dynamic stack; ")?;
                f.write_str("without one, an index is out of bounds)")
            }
            FaultKind::ScratchBounds { offset, size, access, allocated } => {
                write!(
                    f,
                    "{access} of {size} bytes at offset {offset} is before a lane's scratch, which has {allocated} \
                        bytes"
                )
            }
            FaultKind::Misaligned { address, align } => {
                write!(f, "address {address:#x} is not aligned to {align} bytes")
            }
            FaultKind::MissingWait { register, pending, pending_at, counter, overwritten } => {
                let verb = if *overwritten { "overwrites" } else { "reads" };
                write!(
                    f,
                    "{verb} {register} while `{pending}` at {pending_at:#x} may still be in flight: {counter} was not \
                        waited for"
                )
            }
            FaultKind::Hazard { rule, required: 0, resource, .. } => write!(f, "hazard on {resource}: {rule}"),
            FaultKind::Hazard { rule, required, found, resource } => {
                write!(f, "hazard on {resource}: {rule} needs {required} wait states, there are {found}")
            }
            FaultKind::LdsRace { offset, access, other } => {
                let LdsAccess { access: before, instruction, address, wave, missing } = other;
                write!(
                    f,
                    "race in LDS: {access} of byte {offset:#x} after {before} by `{instruction}` at {address:#x} of \
                        wave {wave}, "
                )?;
                f.write_str(match missing {
                    MissingOrder::OwnWait => "which may still be in flight",
                    MissingOrder::Wait => "which that wave has not waited for before the barrier between them",
                    MissingOrder::Barrier => "with no barrier between them",
                })
            }
            FaultKind::Barrier { problem } => write!(f, "barrier: {problem}"),
            FaultKind::GlobalRace { address, access, other, same_value } => {
                let GlobalAccess { access: before, instruction, address: at, workgroup, wave, missing, .. } = &**other;
                let what = if *same_value { "race with the same value" } else { "race" };
                write!(f, "{what} in memory: {access} of byte {address:#x} after {before} by `{instruction}`")?;
                if other.object.is_some() {
                    write!(f, " at {at:#x} of workgroup {workgroup:?} wave {wave}")?;
                }
                if *missing == MissingSynchronisation::Dispatch {
                    write!(f, " in dispatch {}", other.dispatch)?;
                }
                f.write_str(match missing {
                    MissingSynchronisation::Barrier => ", with no barrier between them",
                    MissingSynchronisation::Wait => {
                        ", which that wave has not waited for before it synchronised with this one"
                    }
                    MissingSynchronisation::Order => ", with no synchronisation between the workgroups",
                    MissingSynchronisation::Dispatch => ", with nothing that orders the two",
                })
            }
            FaultKind::LaneConflict { address, lanes: [first, second] } => {
                write!(f, "lanes {first} and {second} store different values to byte {address:#x} of memory")
            }
            FaultKind::Uninitialised { register, origin, used } => {
                write!(f, "{register} is used as {used}, but has bits that were never written ({origin})")
            }
            FaultKind::RegisterBounds { register, allocated } => {
                write!(f, "{register} is outside the {allocated} registers that the kernel descriptor allocates")
            }
            FaultKind::UnknownInstruction { name } => write!(f, "the emulator has no meaning for {name}"),
            FaultKind::Undecodable { reason } => write!(f, "no instruction: {reason}"),
            FaultKind::Undefined { what } => write!(f, "undefined: {what}"),
            FaultKind::Trap { id } => write!(f, "s_trap {id}"),
            FaultKind::OutOfFuel => f.write_str("the dispatch used up its fuel"),
            FaultKind::EndlessWait { address, size, .. } => write!(
                f,
                "the dispatch used up its fuel while a wave waited in a loop for a change of the {size} bytes at \
                    {address:#x}"
            ),
            FaultKind::NoProgress(found) => {
                let NoProgress { waiting, room, board, address, writer: [x, y, z], .. } = &**found;
                write!(
                    f,
                    "{waiting} workgroups wait for one that has no room on {board}, where {room} fit: workgroup ({x}, \
                        {y}, {z}) writes {address:#x}, and begins only when one of them ends"
                )
            }
            FaultKind::NoRoom { limit, reason } => write!(f, "the launch is limited by {limit}: {reason}"),
            FaultKind::Setup { reason } => write!(f, "the dispatch cannot be set up: {reason}"),
        }
    }
}

impl Fault {
    /// Replaces addresses of code by what they are elsewhere: those of rewritten code by the original's.
    pub fn map_addresses(&mut self, mut elsewhere: impl FnMut(u64) -> u64) {
        self.address = elsewhere(self.address);
        match &mut self.kind {
            FaultKind::MissingWait { pending_at, .. } => *pending_at = elsewhere(*pending_at),
            FaultKind::LdsRace { other, .. } => other.address = elsewhere(other.address),
            FaultKind::GlobalRace { other, .. } if other.object == self.object => {
                other.address = elsewhere(other.address);
            }
            _ => {}
        }
    }
}

impl From<Fault> for Error {
    /// Of the kind that the fault is: unsupported for an instruction that is not implemented, limit for fuel and room,
    /// malformed for what the kernel or its arguments did wrong.
    fn from(fault: Fault) -> Error {
        let kind = match fault.kind {
            FaultKind::UnknownInstruction { .. } => Kind::Unsupported,
            FaultKind::OutOfFuel | FaultKind::EndlessWait { .. } | FaultKind::NoRoom { .. } => Kind::Limit,
            _ => Kind::Malformed,
        };
        Error::new(kind, fault.to_string())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if !self.instruction.is_empty() {
            write!(f, ", in `{}`", self.instruction)?;
        }
        write!(f, " at {:#x}, workgroup {:?} wave {}", self.address, self.workgroup, self.wave)?;
        if let Some(lane) = self.lane {
            write!(f, " lane {lane}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}
