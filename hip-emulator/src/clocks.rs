//! What the program and its streams have seen to be done, and the modelled clock of the device and of what uses it, if
//! time is modelled: in cycles of the shader clock that the device reports.
//!
//! An operation begins when it has been submitted and all that it comes after has ended, and ends after what it takes
//! (`wavetap::isa::host_times`). The program itself takes no time: its clock goes on to the end of what it waits for,
//! or has seen to be done, and it submits everything at once. It has one clock, whichever of its threads waits.

use std::collections::HashMap;
use std::sync::Arc;

use wavetap::emulator::{DispatchNumber, DispatchOrder};
use wavetap::isa::host_times::{self, COPY_NS, FIRST_LAUNCH_NS, NEXT_LAUNCH_NS};
use wavetap::isa::{Board, MachineFact, Target};
use wavetap::profile::host::HostOperation;

use crate::begin::{Begin, Cycle, End};
use crate::busy::Busy;
use crate::objects::streams::{Place, comes_after};

/// The modelled clocks. Without a model nothing takes any time.
#[derive(Debug)]
pub(crate) struct Clocks {
    machine: Option<Machine>,
    /// Whether it matters which dispatches have ended.
    orders: bool,
    /// Whether a stream has done several things at once.
    branches: bool,
    /// What the program has seen.
    program: End,
    /// When what each stream has done so far has ended; whether it and the legacy default stream wait for each other.
    ends: HashMap<usize, (End, bool)>,
    /// All dispatches and accesses of calls that have begun, and the last of them.
    begun: DispatchOrder,
    last: DispatchNumber,
}

/// What a device has.
#[derive(Debug)]
struct Machine {
    mhz: u32,
    /// Bytes a cycle of its memory.
    memory: u64,
    units: Busy,
    /// To the device, and back.
    links: [Busy; 2],
}

impl Clocks {
    pub(crate) fn new() -> Clocks {
        Clocks {
            machine: None,
            orders: false,
            branches: false,
            program: End::default(),
            ends: HashMap::new(),
            begun: DispatchOrder::default(),
            last: DispatchNumber::default(),
        }
    }

    /// Time is modelled from now on, for this device.
    pub(crate) fn start(&mut self, target: Target, board: Option<&Board>, mhz: u32) {
        let board = board.filter(|board| board.target == target.name());
        let fact = |fact| {
            let number = board.map_or(target.machine(fact).typical, |board| board.machine(fact));
            u64::from(number).max(1)
        };
        self.machine = Some(Machine {
            mhz,
            memory: fact(MachineFact::MemoryBandwidth),
            units: Busy::new(fact(MachineFact::ComputeUnits)),
            links: [Busy::new(1), Busy::new(1)],
        });
    }

    /// Megahertz of the clock, if time is modelled.
    pub(crate) fn mhz(&self) -> Option<u32> {
        self.machine.as_ref().map(|machine| machine.mhz)
    }

    /// It matters from now on which dispatches have ended.
    pub(crate) fn keep_order(&mut self) {
        self.orders = true;
    }

    /// Whether it matters which dispatches have ended.
    pub(crate) fn keeps_order(&self) -> bool {
        self.orders
    }

    /// A stream does several things at once from now on.
    pub(crate) fn branch(&mut self) {
        self.branches = true;
    }

    /// Whether a stream has done several things at once.
    pub(crate) fn has_branches(&self) -> bool {
        self.branches
    }

    /// From when on something may begin that the program submits now, as far as it comes after what has been done.
    pub(crate) fn begin(&self, place: Place) -> Begin {
        let after = self.end_before(place);
        let done = End { cycle: 0, done: Arc::clone(&self.program.done) };
        Begin { submitted: self.program.cycle, after: after.and(&done), call: None }
    }

    /// When what the next operation of a stream comes after has ended, of what has been done.
    pub(crate) fn end_before(&self, place: Place) -> End {
        let before = self.ends.iter().filter(|(stream, (_, blocking))| comes_after(place, (**stream, *blocking)));
        before.fold(End::default(), |all, (_, (end, _))| all.and(end))
    }

    /// When what a stream has done has ended.
    pub(crate) fn end_of(&self, (stream, _): Place) -> End {
        self.ends.get(&stream).map_or_else(End::default, |(end, _)| end.clone())
    }

    /// When all has ended that has been done.
    pub(crate) fn latest(&self) -> End {
        self.ends.values().fold(self.program.clone(), |all, (end, _)| all.and(end))
    }

    /// Streams that have done something which the program may not have seen.
    pub(crate) fn used(&self) -> impl Iterator<Item = Place> {
        self.ends.iter().map(|(stream, (_, blocking))| (*stream, *blocking))
    }

    /// A stream has done something.
    pub(crate) fn ended(&mut self, (stream, blocking): Place, end: &End) {
        if self.machine.is_none() && !self.orders {
            return;
        }
        let (known, blocks) = self.ends.entry(stream).or_default();
        *known = std::mem::take(known).and(end);
        *blocks = blocking;
    }

    /// The program has seen that something has ended.
    pub(crate) fn seen(&mut self, end: &End) {
        self.program = std::mem::take(&mut self.program).and(end);
    }

    /// What the program has seen.
    pub(crate) fn seen_by_program(&self) -> &End {
        &self.program
    }

    /// A dispatch, or the accesses of a call, has begun.
    pub(crate) fn began(&mut self, dispatch: DispatchNumber) {
        self.begun.add(dispatch);
        self.last = dispatch;
    }

    /// Whether everything is done that has begun.
    pub(crate) fn is_all(&self, done: &DispatchOrder) -> bool {
        done.has_all(&self.begun)
    }

    /// Forgets what was before now: nothing begins earlier any more, as nothing is left that was submitted earlier.
    /// Returns whether that is everything.
    pub(crate) fn forget(&mut self) -> bool {
        let is_all = self.orders && self.is_all(&self.program.done);
        if is_all {
            self.begun = DispatchOrder::up_to(self.last);
            self.program.done = Arc::new(self.begun.clone());
        }
        let now = &self.program;
        self.ends.retain(|_, (end, _)| end.cycle > now.cycle || !now.done.has_all(&end.done));
        let now = now.cycle;
        if let Some(machine) = &mut self.machine {
            machine.units.forget_before(now);
            machine.links.iter_mut().for_each(|link| link.forget_before(now));
        }
        is_all
    }

    /// When a kernel begins.
    pub(crate) fn launch(&self, begin: &Begin) -> Cycle {
        let Some(machine) = &self.machine else { return 0 };
        machine.units.free_from(machine.launched(begin))
    }

    /// When a kernel ends that has so many workgroups and takes so many cycles alone.
    pub(crate) fn kernel(&mut self, start: Cycle, cycles: u64, workgroups: u64) -> Cycle {
        self.machine.as_mut().map_or(0, |machine| machine.units.add(start, cycles, workgroups))
    }

    /// When a copy or fill of so many bytes ends; whether a fill is of the device's memory. A copy within the host's
    /// memory is the program's own work.
    pub(crate) fn moved(&mut self, begin: &Begin, operation: HostOperation, bytes: u64, on_device: bool) -> Cycle {
        let Some(machine) = self.machine.as_mut().filter(|_| bytes > 0) else { return begin.time() };
        let link = match operation {
            HostOperation::HostToDevice => &mut machine.links[0],
            HostOperation::DeviceToHost => &mut machine.links[1],
            // A kernel of the runtime's, which has the whole device: its memory, or the link to the host's.
            HostOperation::DeviceToDevice | HostOperation::Fill => {
                let cycles = match operation {
                    HostOperation::Fill if !on_device => host_times::copied_bytes(bytes, machine.mhz),
                    HostOperation::Fill => bytes.div_ceil(machine.memory),
                    // Read and written.
                    _ => bytes.saturating_mul(2).div_ceil(machine.memory),
                };
                let start = machine.units.free_from(machine.launched(begin));
                return machine.units.add(start, cycles, u64::MAX);
            }
            HostOperation::HostToHost | HostOperation::Launch => return begin.time(),
        };
        let start = link.free_from(begin.time().saturating_add(host_times::cycles(COPY_NS, machine.mhz)));
        link.add(start, host_times::copied_bytes(bytes, machine.mhz), 1)
    }
}

impl Machine {
    /// When a kernel can begin: of what it takes to launch it on an idle device, all but the last part may be over
    /// before what it comes after has ended.
    fn launched(&self, begin: &Begin) -> Cycle {
        let first = begin.submitted.saturating_add(host_times::cycles(FIRST_LAUNCH_NS, self.mhz));
        first.max(begin.after.cycle.saturating_add(host_times::cycles(NEXT_LAUNCH_NS, self.mhz)))
    }
}
