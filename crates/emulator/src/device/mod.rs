//! The device: memory, loaded objects, dispatches.

pub(crate) mod flight;
mod host_program;
pub(crate) mod outputs;
pub(crate) mod workers;

use wavetap_amdgpu::Target;
use wavetap_base::error::{Error, Result};

use self::flight::{Flight, Share, Stage, TimedStage};
use self::host_program::PlacedCode;
use crate::address::ObjectId;
use crate::address::allocation::{Allocation, AllocationKind, ForeignMemory};
use crate::fault::findings::{Finding, Findings};
use crate::fault::{Fault, MemoryAccess};
use crate::launch::options::Options;
use crate::launch::packet::{Dispatch, Origin};
use crate::memory::Memory;
use crate::memory::loader::{self, LoadedObject};
use crate::run::code::Code;
use crate::run::plan::Descriptor;
use crate::run::worker::Worker;
use crate::shadow::global::GlobalRaces;
use crate::shadow::global::dispatches::{DispatchNumber, DispatchOrder};
use crate::shadow::global::host::{HostAccess, HostTouch};
use crate::timing::KeptMemory;
use crate::trace::DispatchStats;

/// An emulated GPU.
pub struct Device {
    target: Target,
    options: Options,
    memory: Memory,
    code: Code,
    /// The code of other threads.
    helpers: Vec<Code>,
    findings: Findings,
    /// The accesses of global memory, where races there are checked.
    races: Option<Box<GlobalRaces>>,
    /// What the next dispatch is ordered after, if not everything.
    next_order: Option<DispatchOrder>,
    next_object: u32,
    /// Code that the program has put into memory itself.
    placed: Vec<PlacedCode>,
    /// How often an object was loaded or freed, or code changed.
    changes: u32,
    /// Shader clock ticks.
    clock: u64,
    /// What the caches have between dispatches, in modelled time.
    kept: Option<Box<KeptMemory>>,
}

impl Device {
    /// A device of this target with empty memory.
    #[must_use]
    pub fn new(target: Target, options: Options) -> Self {
        let races = (options.races && options.strict).then(Box::default);
        Device {
            target,
            options,
            races,
            memory: Memory::new(),
            code: Code::default(),
            helpers: Vec::new(),
            findings: Findings::default(),
            next_order: None,
            next_object: 0,
            placed: Vec::new(),
            changes: 0,
            clock: 0,
            kept: None,
        }
    }

    /// Its target.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// The options that the device was made with.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// How it behaves from the next dispatch on.
    pub fn options_mut(&mut self) -> &mut Options {
        &mut self.options
    }

    /// Allocates zeroed device memory; `align` is a power of two (at least 256 is given). An allocation of no bytes
    /// gets an address of its own.
    ///
    /// # Errors
    /// Limit when memory is used up, unsupported for an alignment that is no power of two.
    pub fn malloc(&mut self, size: u64, align: u64) -> Result<u64> {
        self.memory.malloc(size, align, AllocationKind::Device)
    }

    /// Allocates zeroed device memory at an address, for memory whose pointers were made elsewhere.
    ///
    /// # Errors
    /// Limit when memory is used up, unsupported if the range is empty or something else is in it.
    pub fn malloc_at(&mut self, address: u64, size: u64) -> Result<()> {
        self.memory.malloc_at(address, size, AllocationKind::Device)
    }

    /// Frees what [`Device::malloc`] gave.
    ///
    /// # Errors
    /// Unsupported if no such allocation starts at `address`.
    pub fn free(&mut self, address: u64) -> Result<()> {
        match self.memory.allocation_of(address) {
            Some(allocation) if allocation.kind == AllocationKind::Device => {
                let freed = self.memory.remove(address);
                self.forget(freed)
            }
            _ => Err(Error::unsupported(format!("no device allocation starts at {address:#x}"))),
        }
    }

    /// Reserves a range of addresses of which nothing can be accessed, at an address if one is wanted and free. `align`
    /// is a power of two.
    ///
    /// # Errors
    /// Limit when addresses are used up, unsupported for a size of 0 or more than 4 TiB and other alignments.
    pub fn reserve(&mut self, size: u64, align: u64, wanted: Option<u64>) -> Result<u64> {
        self.memory.reserve(size, align, wanted)
    }

    /// Ends a reservation, of which nothing may be accessible.
    ///
    /// # Errors
    /// Unsupported if there is none of this address and size, or something of it is accessible.
    pub fn end_reservation(&mut self, address: u64, size: u64) -> Result<()> {
        self.memory.end_reservation(address, size)
    }

    /// Makes a part of a reservation accessible, or inaccessible; its bytes stay.
    ///
    /// # Errors
    /// Unsupported if it is not a part of one reservation, limit when memory is used up.
    pub fn set_accessible(&mut self, part: std::ops::Range<u64>, accessible: bool) -> Result<()> {
        self.memory.set_accessible(part, accessible)
    }

    /// From now on nothing has written the allocation that starts at `address`: strict mode reports what depends on its
    /// bytes, until kernels or [`Device::write`] have written them.
    pub fn mark_undefined(&mut self, address: u64) {
        self.memory.mark_undefined(address);
    }

    /// How many bytes of a range nothing has written since [`Device::mark_undefined`], and the address of the first of
    /// them; none if there are none, or the range does not lie within one allocation.
    #[must_use]
    pub fn undefined_bytes(&self, address: u64, len: u64) -> Option<(u64, u64)> {
        self.memory.view().undefined_bytes(address, len)
    }

    /// Bytes of a range were copied to another: what nothing has written there, nothing has written here. Ranges that
    /// do not lie within one allocation stay as they are.
    pub fn copy_undefined(&self, to: u64, from: u64, len: u64) {
        self.memory.view().copy_undefined(to, from, len);
    }

    /// Copies device memory out.
    ///
    /// # Errors
    /// Unsupported if the range does not lie within one allocation.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<()> {
        self.memory.view().read(address, into, MemoryAccess::Load).map_err(|kind| Error::unsupported(kind.to_string()))
    }

    /// Copies into device memory.
    ///
    /// # Errors
    /// Unsupported if the range does not lie within one allocation.
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<()> {
        self.memory
            .view()
            .write(address, from, MemoryAccess::Store)
            .map_err(|kind| Error::unsupported(kind.to_string()))?;
        self.memory.view().define(address, from.len() as u64);
        Ok(())
    }

    /// Maps host memory in at its own address: kernels read and write it through `memory`.
    ///
    /// # Errors
    /// Unsupported if the range is empty or overlaps another.
    pub fn register_foreign(&mut self, memory: Box<dyn ForeignMemory>, address: u64, len: u64) -> Result<()> {
        self.memory.register(memory, address, len)
    }

    /// Ends a mapping that [`Device::register_foreign`] made.
    ///
    /// # Errors
    /// Unsupported if none starts at `address`.
    pub fn unregister_foreign(&mut self, address: u64) -> Result<()> {
        match self.memory.allocation_of(address) {
            Some(allocation) if allocation.kind == AllocationKind::Foreign => {
                let freed = self.memory.remove(address);
                self.forget(freed)
            }
            _ => Err(Error::unsupported(format!("no host memory is mapped at {address:#x}"))),
        }
    }

    /// The allocation that contains `address`.
    #[must_use]
    pub fn allocation_of(&self, address: u64) -> Option<Allocation> {
        self.memory.allocation_of(address)
    }

    /// All allocations, by rising address.
    pub fn allocations(&self) -> impl Iterator<Item = Allocation> + '_ {
        self.memory.allocations()
    }

    /// Bytes of device memory in use.
    #[must_use]
    pub fn memory_in_use(&self) -> u64 {
        self.memory.in_use()
    }

    /// Loads a code object (the bytes of its ELF file): one allocation, segments by virtual address, dynamic
    /// relocations applied.
    ///
    /// # Errors
    /// Malformed if the file breaks the format, unsupported if it is for another target or the device is one whose code
    /// the emulator cannot run.
    pub fn load(&mut self, image: &[u8]) -> Result<LoadedObject> {
        self.load_image(image, None)
    }

    /// The same, with the object's virtual address 0 at a device address.
    ///
    /// # Errors
    /// As [`Device::load`], and unsupported if something else is where the object is to be.
    pub fn load_at(&mut self, image: &[u8], base: u64) -> Result<LoadedObject> {
        self.load_image(image, Some(base))
    }

    fn load_image(&mut self, image: &[u8], base: Option<u64>) -> Result<LoadedObject> {
        if !self.target.emulated() {
            return Err(Error::unsupported(format!("code for {} cannot be emulated", self.target.name())));
        }
        let id = ObjectId(self.next_object);
        let (object, code) = loader::load(&mut self.memory, self.target, (id, base), image)?;
        self.code.add(id, object.base, &code);
        self.helpers.clear();
        self.changes += 1;
        self.next_object += 1;
        Ok(object)
    }

    /// Frees a loaded object.
    ///
    /// # Errors
    /// Unsupported if it is not loaded.
    pub fn unload(&mut self, object: &LoadedObject) -> Result<()> {
        let freed = self.memory.remove(object.base);
        self.forget(freed)?;
        self.code.remove(object.id);
        self.helpers.clear();
        self.changes += 1;
        Ok(())
    }

    /// Runs a dispatch to its end.
    ///
    /// # Errors
    /// A [`Fault`] that names the instruction and what it did wrong. Memory is as the waves left it.
    pub fn dispatch(&mut self, dispatch: &Dispatch) -> std::result::Result<DispatchStats, Fault> {
        let mut flight = self.begin(dispatch)?;
        loop {
            if let Some(stats) = self.advance(&mut flight, Share::all())? {
                return Ok(stats);
            }
        }
    }

    /// Sets the shader clock that the next dispatch begins with. A later one begins where the latest to end has left
    /// it.
    pub fn set_clock(&mut self, cycle: u64) {
        self.clock = cycle;
    }

    /// Begins a dispatch, of which [`Device::advance`] runs one part after the other. Several may be in flight.
    ///
    /// # Errors
    /// A [`Fault`] if it cannot begin.
    pub fn begin(&mut self, dispatch: &Dispatch) -> std::result::Result<Flight, Fault> {
        let flight =
            workers::begin(self.target, &self.options, &mut self.memory, self.clock, dispatch, Origin::Caller)?;
        Ok(self.begun(flight))
    }

    /// Which dispatches and accesses of the host are over before the next dispatch begins, where races in memory are
    /// checked ([`Options::races`]): accesses of others race with its own. Without this, all that have begun before it
    /// are.
    pub fn order_next(&mut self, order: DispatchOrder) {
        self.next_order = Some(order);
    }

    /// The host, or a copy, reads or writes ranges of memory at once, after the dispatches and accesses that `order`
    /// names: their number, and what each races with, in the order of `accesses`. Nothing is done, and nothing found,
    /// unless races in memory are checked ([`Options::races`]). `name` is what a later race with one calls it.
    pub fn host_accesses(
        &mut self,
        accesses: &[HostAccess],
        order: DispatchOrder,
        name: &'static str,
    ) -> (DispatchNumber, Vec<Fault>) {
        let Some(races) = &mut self.races else { return Default::default() };
        let view = self.memory.view();
        let (number, found) = races.host_accesses(accesses, order, name, &|address| view.is_runtime(address));
        (number, found.into_iter().map(|kind| Worker::outside(kind, [0; 3], 0)).collect())
    }

    /// The pages of 4096 bytes in a range that other dispatches and accesses than `done` have accessed, with whether
    /// they have written; with `whole` only those of which they have accessed all bytes in the range. None unless races
    /// in memory are checked ([`Options::races`]).
    pub fn unordered_pages(
        &mut self,
        range: std::ops::Range<u64>,
        done: &DispatchOrder,
        whole: bool,
    ) -> Vec<(u64, bool)> {
        self.races.as_mut().map_or_else(Vec::new, |races| races.unordered_pages(range, done, whole))
    }

    /// Whether an access of the host's own code to a byte, when it knows that `done` have ended, races with others.
    pub fn touch(&mut self, address: u64, write: bool, done: &DispatchOrder) -> HostTouch<Fault> {
        let touch = self.races.as_mut().map_or(HostTouch::Ordered, |races| races.touch(address, write, done));
        match touch {
            HostTouch::Ordered => HostTouch::Ordered,
            HostTouch::Synchronises(dispatch) => HostTouch::Synchronises(dispatch),
            HostTouch::Races { fault, may_be_flag } => {
                HostTouch::Races { fault: Worker::outside(fault, [0; 3], 0), may_be_flag }
            }
        }
    }

    /// A dispatch that has just begun. In modelled time it takes the caches as the last dispatch to end has left them,
    /// or empty ones while another dispatch in flight has them.
    fn begun(&mut self, mut flight: Flight) -> Flight {
        let order = self.next_order.take().unwrap_or_else(DispatchOrder::everything);
        if let Some(races) = &mut self.races {
            flight.plan.number = races.begin(order);
        }
        flight.objects = self.changes;
        if let Stage::Timed(stage) = &mut flight.stage {
            *stage = TimedStage::NotBegun(self.kept.take());
        }
        flight
    }

    /// Whether a compute unit has room for a workgroup of so many work-items with so many bytes of LDS.
    ///
    /// # Errors
    /// [`FaultKind::NoRoom`](crate::FaultKind::NoRoom) if not; another one if there is no kernel descriptor at
    /// `kernel_object`.
    pub fn check_room(
        &self,
        kernel_object: u64,
        workgroup_size: u32,
        lds_bytes: u32,
    ) -> std::result::Result<(), Fault> {
        Descriptor::check(&self.memory.view(), self.target, kernel_object, (workgroup_size, lds_bytes))
            .map_err(|kind| Worker::outside(kind, [0; 3], 0))
    }

    /// Runs a share of a dispatch that [`Device::begin`] began; once it has ended, what it did.
    ///
    /// # Errors
    /// As [`Device::dispatch`]; it has ended then, too.
    pub fn advance(&mut self, flight: &mut Flight, share: Share) -> std::result::Result<Option<DispatchStats>, Fault> {
        if flight.objects != self.changes {
            flight.others.iter_mut().for_each(|helper| helper.code.follow(&self.code));
            flight.objects = self.changes;
        }
        let code = (&mut self.code, &mut self.helpers);
        match workers::advance(flight, &self.options, &self.memory, code, (&mut self.findings, &mut self.races), share)
        {
            Ok(None) => Ok(None),
            Ok(Some((stats, clock))) => {
                self.clock = self.clock.max(clock);
                flight.plan.release(&mut self.memory);
                self.end_races(flight);
                if let Stage::Timed(TimedStage::Ended(kept)) = std::mem::replace(&mut flight.stage, Stage::Lead) {
                    self.kept = Some(kept);
                }
                Ok(Some(stats))
            }
            Err(fault) => {
                flight.plan.release(&mut self.memory);
                self.end_races(flight);
                Err(fault)
            }
        }
    }

    pub(super) fn end_races(&mut self, flight: &Flight) {
        if let Some(races) = &mut self.races {
            races.end(flight.plan.number);
        }
    }

    /// Forgets the accesses of memory that is freed.
    fn forget(&mut self, freed: Result<Allocation>) -> Result<()> {
        let allocation = freed?;
        if let Some(races) = &mut self.races {
            races.forget(allocation.address, allocation.address.saturating_add(allocation.size));
        }
        Ok(())
    }

    /// The findings that dispatches went on after since they were last taken, each place once.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        self.findings.take()
    }
}
