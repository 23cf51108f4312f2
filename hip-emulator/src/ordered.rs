//! What launches and calls are ordered after, where races are looked for: streams, events, graphs, and what the program
//! has waited for.

use std::sync::Arc;

use wavetap::code_object::demangle;
use wavetap::emulator::{DispatchOrder, Fault, HostAccess};
use wavetap::profile::check::{Allocation, Class, Finding};

use crate::begin::{Begin, End};
use crate::check::{Accessor, RawCall};
use crate::fault_places::complete_place;
use crate::images::loaded_bytes;
use crate::in_flight::InFlight;
use crate::objects::streams::{LEGACY, NON_BLOCKING, Place};
use crate::runtime::Runtime;

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
        let is_all = self.has_one_stream()
            || self.tasks.tasks.is_empty()
                && self.clocks.is_all(done)
                && self.places().all(|place| self.clocks.is_all(&self.clocks.begin(place).after.done));
        // Then whatever comes next is ordered after everything, too, and what was before can be forgotten.
        if is_all { DispatchOrder::everything() } else { DispatchOrder::clone(done) }
    }

    /// All streams that there are.
    fn places(&self) -> impl Iterator<Item = Place> {
        let created = self.streams.streams.iter();
        let created = created.map(|(handle, stream)| (*handle, stream.flags & NON_BLOCKING == 0));
        created.chain([(LEGACY, true)])
    }

    /// A kernel has begun.
    pub(crate) fn began(&mut self, of: &InFlight) {
        let (Some(check), true) = (&mut self.check, self.clocks.keeps_order()) else { return };
        let number = of.flight.number();
        check.accesses.add(number, Accessor::Launch { kernel: of.kernel.clone(), launch: of.ordinal + 1 });
        self.clocks.began(number);
    }

    /// Notes what a call accesses, and with what that races; gives when it ends, so that later ones are ordered after
    /// it.
    pub(crate) fn note_accesses(&mut self, accesses: &[HostAccess], begin: &Begin, end: End) -> End {
        match self.race(accesses, begin) {
            Some((end_of_it, races)) => {
                races.into_iter().for_each(|fault| self.note_race(fault, begin.call.as_deref()));
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
        if !self.clocks.keeps_order() || self.has_one_stream() {
            return None;
        }
        let is_shared = |address| self.is_device_memory(address) || self.host.range_of(address).is_some();
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

    /// Notes that a call's access is not ordered after an earlier one.
    fn note_race(&mut self, mut fault: Fault, call: Option<&RawCall>) {
        let (Some(check), Some(call)) = (&mut self.check, call) else { return };
        let earlier = check.accesses.earlier(&mut fault);
        let mut finding = fault.checked(0);
        finding.message = format!("{}: {}", call.function(), finding.message);
        (finding.at, finding.by, finding.stopped) = (None, None, false);
        self.add_race(finding, earlier, call);
    }

    /// Adds the earlier side to a finding of a call, and notes it.
    fn add_race(&mut self, mut finding: Finding, earlier: Option<Accessor>, call: &RawCall) {
        let Some(check) = &mut self.check else { return };
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
