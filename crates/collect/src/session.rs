//! Attaching to rewritten code objects, arming their control blocks, and draining their records.
//!
//! # Dispatches that overlap
//!
//! A code object has one control block, so that what it says holds for all dispatches of the object in flight.
//! [`Overlap`] says how a backend runs them:
//!
//! - [`Overlap::Concurrent`], a GPU: their waves take records of one buffer. The buffer, its capacity and its flags
//!   stay as they are while anything is in flight; only the ordinal changes. A dispatch begins only if there is a
//!   record for each of its waves, or if all in flight are of one kernel: otherwise [`BeginError::Busy`] says that one
//!   has to end first. Records are told apart by the kernel in their header. Those of a kernel are folded when none of
//!   its dispatches is in flight any more, what remains when nothing of the object is.
//! - [`Overlap::TimeSliced`], the emulator: one dispatch runs at a time, and [`Session::resume`] says which. Each has a
//!   buffer of its own, and the block is exchanged.
//!
//! Either way every wave's counters are in the totals of its kernel exactly once. A wave reads the ordinal when it
//! begins. Where dispatches of one kernel overlap it may be that of the other one, so that the output of single waves
//! ([`wavetap_profile::file::WaveCounts`]) then has no ordinal.

mod attached;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_object::code_object::CodeObject;
use wavetap_profile::control;
use wavetap_profile::file::Profile;
use wavetap_profile::launches::LaunchShape;
use wavetap_profile::map::ObjectMap;

use crate::collector::Collector;
use crate::memory::DeviceMemory;
use attached::{Attached, MemberState};

/// Device memory that the records of one buffer may take, unless the options say otherwise.
pub const MEMORY_LIMIT: u64 = 256 << 20;

/// How dispatches of one object overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// Their waves run at the same time.
    Concurrent,
    /// One runs at a time, and the backend says which with [`Session::resume`].
    TimeSliced,
}

/// Records that hold the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// One for each wave, within the memory limit; waves share them where that does not suffice.
    PerWave,
    /// This many, shared.
    Shared(u32),
    /// This many; waves that find them taken are dropped, visibly.
    Dropping(u32),
}

/// How a session measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How dispatches overlap.
    pub overlap: Overlap,
    /// How many records there are.
    pub records: Records,
    /// Device memory in bytes that the records of one buffer may take.
    pub memory_limit: u64,
}

/// A code object that a session is attached to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectId(usize);

/// A dispatch in flight. It is handed back when the dispatch has ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ticket {
    object: ObjectId,
    number: u64,
}

/// What is dispatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispatchInfo {
    /// The kernel's index in the site table.
    pub kernel: u32,
    /// At most so many waves.
    pub waves: u64,
    /// The dispatch's ordinal, for the output of single waves.
    pub ordinal: u32,
}

/// Why a dispatch cannot begin.
#[derive(Debug)]
pub enum BeginError {
    /// There is no record for each of its waves, and dispatches in flight use the buffer: one of them has to end first.
    Busy {
        /// Dispatches of the object in flight.
        in_flight: usize,
    },
    /// Something else.
    Failed(Error),
}

impl fmt::Display for BeginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BeginError::Busy { in_flight } => {
                write!(
                    f,
                    "no records are free while {in_flight} dispatches of the code object are in flight: one has to end \
                        first"
                )
            }
            BeginError::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BeginError {}

impl From<Error> for BeginError {
    fn from(error: Error) -> BeginError {
        BeginError::Failed(error)
    }
}

impl From<BeginError> for Error {
    fn from(error: BeginError) -> Error {
        match error {
            BeginError::Busy { .. } => Error::limit(error.to_string()),
            BeginError::Failed(error) => error,
        }
    }
}

/// The code objects of one process that count, and what they have counted.
#[derive(Debug)]
pub struct Session {
    options: Options,
    collector: Collector,
    objects: Vec<Option<Attached>>,
    tickets: u64,
}

impl Session {
    /// A session without objects.
    #[must_use]
    pub fn new(collector: Collector, options: Options) -> Session {
        Session { options, collector, objects: Vec::new(), tickets: 0 }
    }

    /// Attaches to a code object that was loaded; `address_of` gives the device address of a symbol. None if the object
    /// was not rewritten.
    ///
    /// # Errors
    /// Malformed if control block and site table do not fit one another; Unsupported if one of them is of an unknown
    /// version.
    pub fn attach<M: DeviceMemory>(
        &mut self,
        memory: &M,
        code: &CodeObject<'_>,
        address_of: impl Fn(&str) -> Option<u64>,
    ) -> Result<Option<ObjectId>> {
        let Some(block) = address_of(control::SYMBOL) else { return Ok(None) };
        let section = code.elf().section(control::MAP_SECTION);
        let missing = || Error::malformed(format!("{} is there and {} is not", control::SYMBOL, control::MAP_SECTION));
        let section = code.elf().contents(section.ok_or_else(missing)?)?;
        let map = ObjectMap::unpack(section).within(|| control::MAP_SECTION.into())?;
        self.attach_map(memory, map, block).map(Some)
    }

    /// Attaches to a code object whose site table and control block are known.
    ///
    /// # Errors
    /// As [`Session::attach`].
    pub fn attach_map<M: DeviceMemory>(&mut self, memory: &M, map: ObjectMap, block: u64) -> Result<ObjectId> {
        let attached = Attached::new(memory, Arc::new(map), block)?;
        self.objects.push(Some(attached));
        Ok(ObjectId(self.objects.len() - 1))
    }

    /// Forgets an object that is unloaded and frees its records. What of it is in flight is not counted.
    ///
    /// # Errors
    /// Internal if the object was detached before; what the memory reports.
    pub fn detach<M: DeviceMemory>(&mut self, memory: &mut M, object: ObjectId) -> Result<()> {
        let attached = self.objects.get_mut(object.0).and_then(Option::take).ok_or_else(gone)?;
        attached.free(memory)
    }

    /// The site table of an object.
    ///
    /// # Errors
    /// Internal if the object was detached.
    pub fn map(&self, object: ObjectId) -> Result<&Arc<ObjectMap>> {
        self.objects.get(object.0).and_then(Option::as_ref).map(|attached| &attached.map).ok_or_else(gone)
    }

    /// Arms the control block for a dispatch that is about to begin.
    ///
    /// # Errors
    /// [`BeginError::Busy`] if a dispatch in flight has to end first; otherwise what the memory reports, and Malformed
    /// if the object has no such kernel.
    pub fn begin_dispatch<M: DeviceMemory>(
        &mut self,
        memory: &mut M,
        object: ObjectId,
        info: &DispatchInfo,
    ) -> Result<Ticket, BeginError> {
        let attached = self.objects.get_mut(object.0).and_then(Option::as_mut).ok_or_else(gone)?;
        // Kernels are in the profile in the order of their first dispatch, whichever ends first.
        self.collector.place(&attached.map, info.kernel)?;
        let number = self.tickets;
        attached.begin(memory, &self.options, number, info)?;
        self.tickets += 1;
        Ok(Ticket { object, number })
    }

    /// Says that a dispatch goes on now, and no other of its object ([`Overlap::TimeSliced`]).
    ///
    /// # Errors
    /// What the memory reports.
    pub fn resume<M: DeviceMemory>(&mut self, memory: &mut M, ticket: &Ticket) -> Result<()> {
        let attached = self.objects.get_mut(ticket.object.0).and_then(Option::as_mut).ok_or_else(gone)?;
        attached.resume(memory, ticket.number)
    }

    /// Says that a dispatch of the object that is not counted goes on now, and no other of it
    /// ([`Overlap::TimeSliced`]): it measures nothing.
    ///
    /// # Errors
    /// What the memory reports.
    pub fn suspend<M: DeviceMemory>(&mut self, memory: &mut M, object: ObjectId) -> Result<()> {
        let attached = self.objects.get_mut(object.0).and_then(Option::as_mut).ok_or_else(gone)?;
        attached.suspend(memory)
    }

    /// Adds the records of a dispatch that has ended to the profile, or leaves that to the end of another one in
    /// flight. Returns the places in the profile of kernels whose totals have changed.
    ///
    /// # Errors
    /// Malformed if block, records and site table do not fit one another; Limit if a counter exceeds 64 bits; what the
    /// memory reports.
    pub fn end_dispatch<M: DeviceMemory>(
        &mut self,
        memory: &mut M,
        ticket: Ticket,
        shape: Option<LaunchShape>,
    ) -> Result<Vec<usize>> {
        let attached = self.objects.get_mut(ticket.object.0).and_then(Option::as_mut).ok_or_else(gone)?;
        attached.end(memory, &mut self.collector, ticket.number, MemberState::Ended(shape))
    }

    /// Forgets a dispatch that faulted: its records are not added. Where dispatches of its kernel overlapped with it,
    /// theirs are not, either. Returns what [`Session::end_dispatch`] does.
    ///
    /// # Errors
    /// As those of [`Session::end_dispatch`].
    pub fn abandon<M: DeviceMemory>(&mut self, memory: &mut M, ticket: Ticket) -> Result<Vec<usize>> {
        let attached = self.objects.get_mut(ticket.object.0).and_then(Option::as_mut).ok_or_else(gone)?;
        attached.end(memory, &mut self.collector, ticket.number, MemberState::Abandoned)
    }

    /// The collector.
    #[must_use]
    pub fn collector(&self) -> &Collector {
        &self.collector
    }

    /// The collector, for what a backend knows besides the records: refusals, work, dispatches that are not counted.
    #[must_use]
    pub fn collector_mut(&mut self) -> &mut Collector {
        &mut self.collector
    }

    /// The collector and the site table of an object.
    ///
    /// # Errors
    /// Internal if the object was detached.
    pub fn collector_and_map(&mut self, object: ObjectId) -> Result<(&mut Collector, &ObjectMap)> {
        let attached = self.objects.get(object.0).and_then(Option::as_ref).ok_or_else(gone)?;
        Ok((&mut self.collector, &attached.map))
    }

    /// Begins a profile of its own: in a child after `fork`, to which the parent's counts do not belong.
    pub fn restart(&mut self) {
        self.collector = self.collector.fresh();
    }

    /// Marks the run as ended and returns the profile. Dispatches in flight are not in it; what ends later would begin
    /// a new one.
    #[must_use]
    pub fn finish(&mut self) -> Profile {
        let fresh = self.collector.fresh();
        std::mem::replace(&mut self.collector, fresh).finish()
    }
}

fn gone() -> Error {
    Error::internal("the code object was detached")
}
