//! Attaching to rewritten code objects, arming their control blocks, and draining their records.
//!
//! # Dispatches that overlap
//!
//! Each kernel has a control block of its own, so that dispatches of different kernels never meet. What a block says
//! holds for all dispatches of its kernel in flight. [`Overlap`] says how a backend runs them:
//!
//! - [`Overlap::Concurrent`], a GPU: dispatches of one kernel add to the records of one buffer, which stays while any
//!   is in flight. Its records are folded when none is any more. Where each wave has its own record
//!   ([`KernelMap::slots`](wavetap_profile::map::KernelMap::slots) is none, or accesses are recorded), one dispatch is
//!   in flight at a time: otherwise [`BeginError::Busy`] says that one has to end first. So it does where the program
//!   has come to another region: records do not say whose they are.
//! - [`Overlap::TimeSliced`], the emulator: one dispatch runs at a time, and [`Session::resume`] says which. Each has a
//!   buffer of its own, and the block is exchanged.
//!
//! Either way every wave's counters are in the totals of its kernel exactly once. How many waves a dispatch has follows
//! from its grid: those that have left no mark in a record are unfinished.

mod attached;
mod checks;
mod sample;
#[cfg(test)]
mod tests;
mod window;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_object::code_object::CodeObject;
use wavetap_profile::control;
use wavetap_profile::file::Profile;
use wavetap_profile::launches::{self, LaunchShape};
use wavetap_profile::map::{KernelMap, ObjectMap};

use crate::collector::{Collector, CountedKernel, EndedDispatch, RegionId};
use crate::memory::DeviceMemory;
use crate::selected::DispatchNumbers;
use attached::Attached;
use window::MemberState;

/// Workgroups whose accesses are recorded, unless the options say otherwise.
pub const SAMPLE: WorkgroupSample = WorkgroupSample::Some(8);
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

/// Records that hold the counters, of kernels in which each wave has its own. Others have a few of a fixed number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// One for each wave, within the memory limit; waves share them where that does not suffice.
    PerWave,
    /// This many, shared.
    Shared(u32),
    /// This many; waves that find them taken are dropped, visibly.
    Dropping(u32),
}

/// Of which workgroups the accesses to memory are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkgroupSample {
    /// Of all.
    All,
    /// Of at most so many: the first, the middle and the last of a grid, and others that a hash chooses.
    Some(u32),
    /// Of each so manyth.
    EachNth(u32),
}

impl FromStr for WorkgroupSample {
    type Err = Error;

    /// `all`, a number of workgroups, or `1/64`.
    fn from_str(text: &str) -> Result<WorkgroupSample> {
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let sample = match text.strip_prefix("1/") {
            Some(step) => number(step).map(WorkgroupSample::EachNth),
            None if text == "all" => Some(WorkgroupSample::All),
            None => number(text).map(WorkgroupSample::Some),
        };
        let expected = "`all`, a number of workgroups, or `1/N` for each Nth";
        sample.ok_or_else(|| Error::malformed(format!("workgroups {text:?}: expected {expected}")))
    }
}

impl fmt::Display for WorkgroupSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkgroupSample::All => f.write_str("all"),
            WorkgroupSample::Some(most) => most.fmt(f),
            WorkgroupSample::EachNth(step) => write!(f, "1/{step}"),
        }
    }
}

/// Dispatches of a kernel whose accesses are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchSample {
    /// Those with these numbers.
    Numbers(DispatchNumbers),
    /// The first, the second, the fourth and so on, each time twice as many later, and each that has more than twice
    /// the waves of all that were recorded before. The first levels of a graph search have hardly any work, and the
    /// first steps of a solver may be small: those that carry the traffic come later.
    Spread,
}

impl DispatchSample {
    /// Whether a dispatch of `waves` waves is one of them, of which `before` came before, and the largest recorded one
    /// had `most` waves.
    fn takes(self, before: u64, waves: u64, most: u64) -> bool {
        match self {
            DispatchSample::Numbers(numbers) => numbers.has(before + 1),
            DispatchSample::Spread => (before + 1).is_power_of_two() || waves > most.saturating_mul(2),
        }
    }
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
    /// Of which workgroups accesses are recorded, where they are.
    pub sample: WorkgroupSample,
    /// Of which dispatches of a kernel.
    pub sampled_dispatches: DispatchSample,
}

impl Options {
    /// So many records in at most [`MEMORY_LIMIT`] bytes; of [`SAMPLE`] accesses.
    #[must_use]
    pub fn new(overlap: Overlap, records: Records) -> Options {
        Options {
            overlap,
            records,
            memory_limit: MEMORY_LIMIT,
            sample: SAMPLE,
            sampled_dispatches: DispatchSample::Spread,
        }
    }
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
    /// Work-items of the grid in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a workgroup that is not partial.
    pub workgroup: [u32; 3],
    /// The dispatch's ordinal, for the output of single waves.
    pub ordinal: u32,
    /// The region of the program that it is in ([`Collector::region`]).
    pub region: Option<RegionId>,
}

impl DispatchInfo {
    /// Workgroups in x, y, z.
    fn groups(&self) -> [u32; 3] {
        std::array::from_fn(|axis| self.grid[axis].div_ceil(self.workgroup[axis].max(1)))
    }

    /// Waves of a workgroup that is not partial.
    fn waves_of_workgroup(&self, kernel: &KernelMap) -> Result<u32> {
        let lanes = lanes(kernel)?;
        let items = self.workgroup.iter().fold(1_u64, |items, axis| items.saturating_mul((*axis).into()));
        u32::try_from(items.div_ceil(lanes.into()))
            .map_err(|_| Error::limit(format!("a workgroup of {items} work-items")))
    }

    /// Work-items of a workgroup: the last ones of a row may be smaller than the others.
    fn size_of(&self, workgroup: [u32; 3]) -> u64 {
        let along = |axis: usize| {
            let before = u64::from(workgroup[axis]) * u64::from(self.workgroup[axis]);
            u64::from(self.workgroup[axis]).min(u64::from(self.grid[axis]).saturating_sub(before))
        };
        (0..3).map(along).product()
    }

    /// Waves of the dispatch: the last workgroups of a row may be smaller than the others.
    fn waves(&self, kernel: &KernelMap) -> Result<u64> {
        Ok(launches::waves(self.grid, self.workgroup, lanes(kernel)?))
    }
}

/// Lanes of a kernel's waves.
fn lanes(kernel: &KernelMap) -> Result<u32> {
    match kernel.after.wave_size {
        lanes @ (32 | 64) => Ok(lanes),
        other => Err(Error::malformed(format!(
            "the site table says that waves of kernel {} have {other} lanes, expected 32 or 64",
            kernel.name
        ))),
    }
}

/// Why a dispatch cannot begin.
#[derive(Debug)]
pub enum BeginError {
    /// Each wave has its own record, and a dispatch in flight uses them, or those in flight are in another region of
    /// the program: they have to end first.
    Busy {
        /// Dispatches of the kernel in flight.
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
                    "no records are free while {in_flight} dispatches of the kernel are in flight: one has to end first"
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

    /// Attaches to a code object whose site table and control blocks are known.
    ///
    /// # Errors
    /// As [`Session::attach`].
    pub fn attach_map<M: DeviceMemory>(
        &mut self,
        memory: &M,
        map: impl Into<Arc<ObjectMap>>,
        block: u64,
    ) -> Result<ObjectId> {
        let attached = Attached::new(memory, map.into(), block)?;
        self.objects.push(Some(attached));
        Ok(ObjectId(self.objects.len() - 1))
    }

    /// Says that nothing dispatches the kernels of an object but what this session is told of. Those whose waves choose
    /// records by where they run keep their buffer from one dispatch to the next, which saves copies.
    ///
    /// # Errors
    /// Internal if the object was detached.
    pub fn stay_armed(&mut self, object: ObjectId) -> Result<()> {
        let attached = self.objects.get_mut(object.0).and_then(Option::as_mut).ok_or_else(gone)?;
        attached.stays_armed = self.options.overlap == Overlap::Concurrent;
        Ok(())
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

    /// Whether the next dispatch of a kernel has something to say beside that it was launched: where accesses are
    /// recorded, those of some dispatches are ([`DispatchSample`]).
    ///
    /// # Errors
    /// Internal if the object was detached; Malformed if it has no such kernel, or its grid is none.
    pub fn measures_next(&self, object: ObjectId, info: &DispatchInfo) -> Result<bool> {
        let attached = self.objects.get(object.0).and_then(Option::as_ref).ok_or_else(gone)?;
        attached.measures_next(&self.options, info)
    }

    /// Adds a dispatch that the original of a kernel runs, as it has nothing to say
    /// ([`Session::measures_next`]). Returns the kernel's place in the profile.
    ///
    /// # Errors
    /// As [`Session::measures_next`].
    pub fn add_unmeasured(&mut self, object: ObjectId, info: &DispatchInfo, shape: LaunchShape) -> Result<usize> {
        let attached = self.objects.get_mut(object.0).and_then(Option::as_mut).ok_or_else(gone)?;
        attached.add_unmeasured(info.kernel);
        let map = &attached.map;
        let waves = map.kernels.get(info.kernel as usize).map_or(Ok(0), |kernel| info.waves(kernel))?;
        let of = CountedKernel { map, kernel: info.kernel, region: info.region };
        self.collector.add_unsampled(of, waves)?;
        let ended = EndedDispatch { kernel: info.kernel, ordinal: info.ordinal, shape: Some(shape) };
        self.collector.add_dispatches(of, &[ended])?;
        self.collector.place(map, info.kernel)
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
        let changed = attached.end(memory, &mut self.collector, ticket.number, MemberState::Ended(shape))?;
        Ok(changed.into_iter().collect())
    }

    /// Forgets a dispatch that faulted: its records are not added. Where dispatches of its kernel overlapped with it,
    /// theirs are not, either. Returns what [`Session::end_dispatch`] does.
    ///
    /// # Errors
    /// As those of [`Session::end_dispatch`].
    pub fn abandon<M: DeviceMemory>(&mut self, memory: &mut M, ticket: Ticket) -> Result<Vec<usize>> {
        let attached = self.objects.get_mut(ticket.object.0).and_then(Option::as_mut).ok_or_else(gone)?;
        let changed = attached.end(memory, &mut self.collector, ticket.number, MemberState::Abandoned)?;
        Ok(changed.into_iter().collect())
    }

    /// Adds what a dispatch in flight has found so far of accesses out of bounds: the device has stopped, and no
    /// dispatch will end. Its records are not read. Returns the place in the profile of its kernel, if that looks for
    /// them.
    ///
    /// # Errors
    /// Malformed if what was found contradicts itself; what the memory reports.
    pub fn find_at_fault<M: DeviceMemory>(&mut self, memory: &M, ticket: Ticket) -> Result<Option<usize>> {
        let attached = self.objects.get(ticket.object.0).and_then(Option::as_ref).ok_or_else(gone)?;
        attached.find(memory, &mut self.collector, ticket.number)
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
