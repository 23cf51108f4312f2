//! What launches and calls are ordered after, where races are looked for: streams, events, graphs, and what the program
//! has waited for.

use std::collections::BTreeMap;
use std::sync::Arc;

use wavetap::code_object::demangle;
use wavetap::collect::check::places::complete_place;
use wavetap::emulator::{DispatchOrder, Fault, HostAccess, HostTouch};
use wavetap::profile::check::{Allocation, Class, Finding};

use crate::begin::{Begin, End};
use crate::check::{Accessor, RawCall};
use crate::images::loaded_bytes;
use crate::in_flight::InFlight;
use crate::objects::streams::{LEGACY, NON_BLOCKING, Place};
use crate::runtime::Runtime;
use crate::touched::{self, Touch, Use};

/// Bytes of a call's access that may be a flag for a kernel in flight.
const FLAG: u64 = 8;

impl Runtime {
    /// Whether everything is done one after the other, in the legacy default stream.
    fn has_one_stream(&self) -> bool {
        !self.clocks.has_branches() && self.streams.streams.keys().all(|stream| *stream <= 1)
    }

    /// What an operation is ordered after.
    pub(crate) fn order_of(&self, begin: &Begin) -> DispatchOrder {
        let done = &begin.after.done;
        let is_all = !self.uses_host
            && (self.has_one_stream()
                || self.tasks.tasks.is_empty()
                    && self.clocks.is_all(done)
                    && self.places().all(|place| self.clocks.is_all(&self.clocks.begin(place).after.done)));
        // Then whatever comes next is ordered after everything, too, and what was before can be forgotten.
        if is_all { DispatchOrder::everything() } else { DispatchOrder::clone(done) }
    }

    /// All streams that there are.
    fn places(&self) -> impl Iterator<Item = Place> {
        let created = self.streams.streams.iter();
        let created = created.map(|(handle, stream)| (*handle, stream.flags & NON_BLOCKING == 0));
        created.chain(self.clocks.used()).chain([(LEGACY, true)])
    }

    /// A kernel has begun.
    pub(crate) fn began(&mut self, of: &InFlight) {
        let (Some(check), true) = (&mut self.check, self.clocks.keeps_order()) else { return };
        let number = of.flight.number();
        let (kernel, launch) = (of.kernel.clone(), of.ordinal + 1);
        check.accesses.add(number, Accessor::Launch { number, kernel, launch, met_program: false });
        self.clocks.began(number);
    }

    /// The program goes on while a kernel is in flight: they may talk to each other.
    pub(crate) fn met_program(&mut self, of: &InFlight) {
        self.check.iter_mut().for_each(|check| check.accesses.met_program(of.flight.number()));
    }

    /// Notes what a call accesses, and with what that races; gives when it ends, so that later ones are ordered after
    /// it.
    pub(crate) fn note_accesses(&mut self, accesses: &[HostAccess], begin: &Begin, end: End) -> End {
        match self.race(accesses, begin) {
            Some((end_of_it, races)) => {
                for fault in races {
                    let call = begin.call.clone();
                    call.into_iter().for_each(|call| self.note_race(Class::StreamRace, fault.clone(), &call));
                }
                end.and(&end_of_it)
            }
            None => end,
        }
    }

    /// Notes that a call frees memory, and what may still use it; gives when it ends.
    pub(crate) fn note_free(&mut self, address: u64, begin: &Begin) -> End {
        let allocation = self.device.as_ref().and_then(|(device, _)| device.allocation_of(address));
        let Some(allocation) = allocation.filter(|_| self.clocks.keeps_order()) else { return begin.end() };
        let range = address..address.saturating_add(allocation.size);
        let Some((end, races)) = self.race(&[HostAccess { range, write: true }], begin) else { return begin.end() };
        for mut fault in races {
            let (Some(check), Some(call)) = (&mut self.check, begin.call.as_deref()) else { continue };
            let earlier = check.accesses.earlier(&mut fault);
            let by = match &earlier {
                Some(Accessor::Launch { launch, .. }) => format!("launch {launch}"),
                Some(Accessor::Call(call)) => call.function().to_owned(),
                None => "an earlier operation".to_owned(),
            };
            let race = fault.checked(0);
            let message = format!("{} frees memory that {by} may still use", call.function());
            let mut finding = Finding::new(Class::UseAfterFree, message);
            let size = allocation.size;
            finding.allocation = Some(Allocation { address, size, offset: 0, variable: None, made: None, freed: None });
            finding.other = race.other;
            self.add_race(finding, earlier, call);
        }
        end
    }

    /// Tells the device what a call accesses; when it ends, and the races. None if nothing of it matters.
    fn race(&mut self, accesses: &[HostAccess], begin: &Begin) -> Option<(End, Vec<Fault>)> {
        if !self.clocks.keeps_order() {
            return None;
        }
        // In one stream all are ordered but the program's own.
        let one_stream = self.has_one_stream();
        let is_shared =
            |address| self.host.range_of(address).is_some() || !one_stream && self.is_device_memory(address);
        let accesses: Vec<HostAccess> =
            accesses.iter().filter(|access| is_shared(access.range.start)).cloned().collect();
        let bytes: u64 = accesses.iter().map(|HostAccess { range, .. }| range.end - range.start).sum();
        // What the host gives to a kernel that waits for it is no race.
        if bytes == 0 || bytes <= FLAG && self.tasks.running().next().is_some() {
            return None;
        }
        let order = self.order_of(begin);
        let (device, _) = self.device.as_mut()?;
        let name = begin.call.as_ref().map_or("a call", |call| call.function());
        let (number, races) = device.host_accesses(&accesses, order, name);
        if let (Some(check), Some(call)) = (&mut self.check, &begin.call) {
            check.accesses.add(number, Accessor::Call(Arc::clone(call)));
        }
        self.clocks.began(number);
        Some((begin.end().with(number), races))
    }

    /// Lets the device use all memory: what the program has done so far is looked at.
    pub(crate) fn begin_use(&mut self) {
        if touched::is_used() {
            touched::protect(&BTreeMap::new());
            self.note_touches();
        }
    }

    /// Protects the host memory that what the program has not waited for uses: the program should not use it yet.
    pub(crate) fn end_use(&mut self) {
        let in_flight = self.tasks.running().next().is_some();
        let (Some((device, _)), true) = (&mut self.device, self.clocks.keeps_order()) else { return };
        let done = &self.clocks.seen_by_program().done;
        let mut wanted = BTreeMap::new();
        for range in self.host.allocated() {
            // A page with other bytes is left: a system call that accesses them would fail.
            let whole = range.size > touched::PAGE as u64;
            for (page, written) in device.unordered_pages(range.address..range.address + range.size, done, whole) {
                wanted.insert(page as usize, if written { Use::Any } else { Use::Write });
            }
        }
        self.uses_host = !wanted.is_empty();
        // With a kernel in flight the program may talk to it.
        if in_flight {
            wanted.clear();
        }
        if (!wanted.is_empty() || touched::is_used())
            && !touched::protect(&wanted)
            && !std::mem::replace(&mut self.said_untouched, true)
            && let Some(check) = &mut self.check
        {
            check.not_checked("accesses of the host: the application handles the signal SIGSEGV itself");
        }
    }

    /// Notes what the program has done with memory that was protected.
    fn note_touches(&mut self) {
        for Touch { address, write, stack } in touched::take() {
            let Some((device, _)) = &mut self.device else { return };
            match device.touch(address, write, &self.clocks.seen_by_program().done) {
                HostTouch::Ordered => {}
                // What is stored like that tells the program that the dispatch has come so far.
                HostTouch::Synchronises(dispatch) => self.clocks.seen(&End::default().with(dispatch)),
                HostTouch::Races { fault, may_be_flag } => {
                    let earlier = self.check.as_ref().and_then(|check| check.accesses.earlier(&mut fault.clone()));
                    match earlier {
                        Some(Accessor::Launch { met_program: true, number, .. }) if may_be_flag => {
                            self.clocks.seen(&End::default().with(number));
                        }
                        _ => self.note_race(Class::HostRace, fault, &RawCall::of_program(stack)),
                    }
                }
            }
        }
    }

    /// Notes that a call's access is not ordered after an earlier one.
    fn note_race(&mut self, class: Class, mut fault: Fault, call: &RawCall) {
        let Some(check) = &mut self.check else { return };
        let earlier = check.accesses.earlier(&mut fault);
        let mut finding = fault.checked(0);
        finding.set_class(class);
        finding.message = format!("{}'s {}", call.function(), finding.message);
        if let (Class::HostRace, Some(other)) = (class, &mut finding.other) {
            "a synchronisation of the host with its stream".clone_into(&mut other.missing);
        }
        (finding.at, finding.by, finding.stopped) = (None, None, false);
        self.add_race(finding, earlier, call);
    }

    /// Adds the earlier side to a finding of a call, and notes it.
    fn add_race(&mut self, mut finding: Finding, earlier: Option<Accessor>, call: &RawCall) {
        let Some(check) = &mut self.check else { return };
        earlier.iter().for_each(|earlier| earlier.judge(&mut finding));
        let mut of_kernel = None;
        match (&mut finding.other, &earlier) {
            (Some(other), Some(Accessor::Call(call))) => other.call = Some(call.resolve()),
            (Some(other), Some(Accessor::Launch { kernel, .. })) => {
                of_kernel = Some((loaded_bytes(&self.code.images, kernel), kernel));
                other.at.iter_mut().for_each(|at| demangle(&kernel.name).as_ref().clone_into(&mut at.kernel));
            }
            _ => {}
        }
        check.called(finding, call, |finding| {
            let at = finding.other.as_mut().and_then(|other| other.at.as_mut());
            if let (Some(at), Some((bytes, kernel))) = (at, of_kernel) {
                complete_place(at, bytes, &kernel.name);
            }
        });
    }
}
