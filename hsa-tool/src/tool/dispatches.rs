//! Packets on their way to a queue: dispatches are armed, and patched for what kernels with counters need. What has
//! ended is collected.
//!
//! A dispatch that counts completes a signal of this tool: its own, if the program gave it none, or that of a barrier
//! after it. Nothing waits in the program's way: a thread looks at the signals.

use std::sync::Arc;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use wavetap::collect::residency::fewer_workgroups;
use wavetap::collect::session::{BeginError, DispatchInfo, ObjectId, Ticket};
use wavetap::collect::uncounted::{Why, WorkgroupLds};
use wavetap::profile::launches::{LaunchShape, NotCounted};

use super::{Counters, Counting, LoadedKernel, State, Tool, complain};
use crate::api::QueueAddress;
use crate::memory::AgentMemory;
use crate::objects::{Form, Object};
use crate::packets::Packet;
use crate::raw;

/// How long a dispatch waits for records that others in flight use.
const PATIENCE: Duration = Duration::from_secs(2);
const NAP: Duration = Duration::from_micros(50);

/// Offset of the number of packets that a queue has room for (`hsa_queue_t`).
const QUEUE_SIZE: usize = 24;

/// A dispatch in flight that counts.
pub(crate) struct InFlight {
    /// Its signal: 1, and 0 when it has ended.
    signal: u64,
    pub(super) ticket: Ticket,
    pub(crate) object: ObjectId,
    pub(super) agent: u64,
    pub(crate) kernel: Arc<str>,
    pub(crate) region: Option<String>,
    pub(crate) code: Arc<Object>,
    shape: LaunchShape,
    queue: QueueAddress,
}

/// Why a dispatch whose code is unloaded is not counted.
pub(crate) fn unloaded() -> Why {
    (NotCounted::Faulted, "its code object was unloaded before it ended".to_owned())
}

/// What a dispatch needs besides what the program gave it.
struct Needed {
    counters: Counters,
    lds: u32,
    scratch: u32,
    shape: LaunchShape,
}

impl Tool {
    /// What is put into a queue in place of a packet.
    pub(crate) fn replace(&self, queue: QueueAddress, packet: Packet) -> (Packet, Option<Packet>) {
        if !packet.is_dispatch() || !self.is_here() {
            return (packet, None);
        }
        let kernel_object = packet.kernel_object();
        self.load_beside(kernel_object);
        self.listen();
        let submitted = self.submitted();
        let mut state = self.state();
        let Some(kernel) = state.kernels.get(&kernel_object).cloned() else {
            // Its executable was loaded by a call that this tool does not know.
            let why = "its code object was loaded in a way that the HSA tool does not know".to_owned();
            state.not_counted(("?", None), &Object::unknown(), (NotCounted::NotRewritten, why));
            return (packet, None);
        };
        // HIP's own kernels are in no list.
        if kernel.object.form != Form::HipsOwn {
            let records = state.records_accesses(&kernel);
            if let Some(why) = state.selected.why_not(&kernel.name, &submitted, records) {
                match &kernel.counting {
                    Counting::Counts(counters) => run_original(&mut state, *counters, &kernel, None, why),
                    _ => state.not_counted((&kernel.name, None), &kernel.object, why),
                }
                return (packet, None);
            }
        }
        let region = state.selected.named(submitted.region.as_deref());
        let region = region.as_deref();
        if state.list(&kernel, region, &packet) {
            return (packet, None);
        }
        let counters = match &kernel.counting {
            Counting::Counts(counters) => *counters,
            Counting::AtDispatch => return (packet, None),
            Counting::Not(why) => {
                if let Some(why) = why.clone() {
                    state.not_counted((&kernel.name, region), &kernel.object, why);
                }
                return (packet, None);
            }
        };
        let is_cooperative = state.cooperative.contains(&queue);
        match needed(&kernel, counters, &packet, is_cooperative) {
            Ok(needed) => self.count(&mut state, (queue, region), packet, &kernel, needed),
            Err(why) => {
                run_original(&mut state, counters, &kernel, region, why);
                (packet, None)
            }
        }
    }

    /// Makes a dispatch count.
    fn count(
        &self,
        state: &mut MutexGuard<'_, State>,
        (queue, region): (QueueAddress, Option<&str>),
        mut packet: Packet,
        kernel: &LoadedKernel,
        needed: Needed,
    ) -> (Packet, Option<Packet>) {
        let Needed { counters, lds, scratch, shape } = needed;
        let (grid, workgroup, ordinal) = (packet.grid(), packet.workgroup(), state.next_ordinal);
        state.next_ordinal = ordinal.wrapping_add(1);
        let region_id = region.map(|name| state.session.collector_mut().region(name));
        let info = DispatchInfo { kernel: counters.kernel, grid, workgroup, ordinal, region: region_id };
        if counters.descriptor.is_some() && matches!(state.session.measures_next(counters.object, &info), Ok(false)) {
            match state.session.add_unmeasured(counters.object, &info, shape) {
                Ok(place) => state.write(&[place]),
                Err(error) => {
                    complain(&format!("a dispatch of kernel {} is not counted", kernel.name), &error);
                    state.lack();
                }
            }
            return (packet, None);
        }
        if packet.completion_signal() != 0 && self.api.tables.queues_stop() {
            self.make_room(state, queue);
        }
        let signal = match state.signals.pop().map_or_else(|| self.api.new_signal(), Ok) {
            Ok(signal) => signal,
            Err(error) => {
                let why = (NotCounted::Refused, format!("no_signal: {error}"));
                run_original(state, counters, kernel, region, why);
                return (packet, None);
            }
        };
        let ticket = match self.begin(state, (kernel.agent, queue), counters.object, &info) {
            Ok(ticket) => ticket,
            Err(problem) => {
                state.signals.push(signal);
                let why = (NotCounted::Refused, format!("no_records: {problem}"));
                run_original(state, counters, kernel, region, why);
                return (packet, None);
            }
        };
        if let Some(descriptor) = counters.descriptor {
            packet.set_kernel_object(descriptor);
        }
        packet.set_group_segment(lds);
        packet.set_private_segment(scratch);
        packet.synchronise_with_host();
        let after = if packet.completion_signal() == 0 {
            packet.set_completion_signal(signal);
            None
        } else {
            Some(Packet::all_ended(signal))
        };
        state.set_uncollected(true);
        state.in_flight.push(InFlight {
            signal,
            ticket,
            object: counters.object,
            agent: kernel.agent,
            kernel: Arc::clone(&kernel.name),
            region: region.map(str::to_owned),
            code: Arc::clone(&kernel.object),
            shape,
            queue,
        });
        self.wake();
        (packet, after)
    }

    /// Waits until half of a queue is free of dispatches that take two packets each, but not for long: they may wait
    /// for a packet that comes after.
    fn make_room(&self, state: &mut MutexGuard<'_, State>, queue: QueueAddress) {
        let start = Instant::now();
        let size = raw::load::<u32>(queue + QUEUE_SIZE).unwrap_or(0) as usize;
        let is_full =
            |state: &State| 2 * state.in_flight.iter().filter(|flight| flight.queue == queue).count() + 2 > size / 2;
        while is_full(state) && start.elapsed() < PATIENCE {
            if !self.collect_ended(state) {
                std::thread::sleep(NAP);
            }
        }
    }

    /// Arms a dispatch. Where others have to end first, it waits for them, but not for long: they may wait for this
    /// one.
    fn begin(
        &self,
        state: &mut MutexGuard<'_, State>,
        (agent, queue): (u64, QueueAddress),
        object: ObjectId,
        info: &DispatchInfo,
    ) -> Result<Ticket, String> {
        let start = Instant::now();
        let mut memory = self.memory(agent, queue);
        loop {
            match state.session.begin_dispatch(&mut memory, object, info) {
                Ok(ticket) => return Ok(ticket),
                Err(BeginError::Failed(error)) => return Err(error.to_string()),
                Err(BeginError::Busy { .. }) if start.elapsed() < PATIENCE => {
                    if !self.collect_ended(state) {
                        std::thread::sleep(NAP);
                    }
                }
                Err(busy) => return Err(busy.to_string()),
            }
        }
    }

    /// The memory that dispatches of a queue access.
    fn memory(&self, agent: u64, queue: QueueAddress) -> AgentMemory<'_> {
        AgentMemory { accessed: Some((&self.allocations, queue)), ..AgentMemory::new(&self.api, agent) }
    }

    /// Collects the dispatches that have ended; whether any had.
    pub(crate) fn collect_ended(&self, state: &mut State) -> bool {
        let has_ended = |flight: &mut InFlight| (self.api.signal_load)(flight.signal) <= 0;
        let ended: Vec<InFlight> = state.in_flight.extract_if(.., has_ended).collect();
        let any = !ended.is_empty();
        for InFlight { signal, ticket, agent, shape, kernel, queue, .. } in ended {
            (self.api.signal_store)(signal, 1);
            state.signals.push(signal);
            let mut memory = self.memory(agent, queue);
            match state.session.end_dispatch(&mut memory, ticket, Some(shape)) {
                Ok(places) => state.write(&places),
                Err(error) => {
                    complain(&format!("what kernel {kernel} counted could not be collected"), &error);
                    state.lack();
                }
            }
        }
        if any && state.in_flight.is_empty() {
            state.set_uncollected(false);
        }
        any
    }

    /// Collects what ends until nothing is in flight of what is asked for, or for as long as that takes at most.
    pub(crate) fn wait_for(&self, state: &mut State, most: Duration, which: impl Fn(&InFlight) -> bool) {
        let start = Instant::now();
        loop {
            self.collect_ended(state);
            if !state.in_flight.iter().any(&which) || start.elapsed() > most {
                return;
            }
            std::thread::sleep(NAP);
        }
    }

    /// Collects what the dispatches of a queue have counted that is about to be destroyed.
    pub(crate) fn leave_queue(&self, queue: QueueAddress, patience: Duration) {
        let mut state = self.state();
        state.cooperative.remove(&queue);
        self.wait_for(&mut state, patience, |flight| flight.queue == queue);
        let left: Vec<InFlight> = state.in_flight.extract_if(.., |flight| flight.queue == queue).collect();
        for InFlight { ticket, agent, kernel, region, code, .. } in left {
            let why = "its queue was destroyed before it ended".to_owned();
            state.not_counted((&kernel, region.as_deref()), &code, (NotCounted::Faulted, why));
            let mut memory = AgentMemory::new(&self.api, agent);
            if let Err(error) = state.session.abandon(&mut memory, ticket) {
                complain("the counters of a kernel that did not end could not be taken away", &error);
            }
        }
    }
}

/// Records why a dispatch is not counted: its packet stays as it is.
fn run_original(state: &mut State, counters: Counters, kernel: &LoadedKernel, region: Option<&str>, why: Why) {
    if counters.descriptor.is_none() {
        // Its file was rewritten: it runs with its counters, which add to what others of the kernel count.
        let problem = "its file was rewritten before it was loaded, and has no original";
        complain(&format!("a dispatch of kernel {} is not counted by itself", kernel.name), &problem);
        state.lack();
    }
    state.not_counted((&kernel.name, region), &kernel.object, why);
}

/// How a packet launches a kernel.
pub(super) fn shape(packet: &Packet, dynamic_lds: u32) -> LaunchShape {
    LaunchShape { grid: Some(packet.grid()), workgroup: packet.workgroup(), dynamic_lds, dispatches: 1 }
}

/// What a dispatch needs, or why the original has to run.
fn needed(kernel: &LoadedKernel, counters: Counters, packet: &Packet, is_cooperative: bool) -> Result<Needed, Why> {
    let needs = counters.needs;
    let items = packet.workgroup().iter().fold(1_u64, |items, axis| items.saturating_mul((*axis).into()));
    if counters.descriptor.is_some() && needs.max_workgroup > 0 && items > needs.max_workgroup {
        let most = needs.max_workgroup;
        let detail = format!(
            "workgroup_too_large: launched with workgroups of {items} work-items, and its metadata says at most {most}"
        );
        return Err((NotCounted::Refused, detail));
    }
    let dynamic = packet.group_segment().saturating_sub(needs.known.lds);
    if let (true, Some((before, after))) = (is_cooperative, &needs.resources) {
        let size = u32::try_from(items).unwrap_or(u32::MAX);
        if let Some(why) = fewer_workgroups(&kernel.object.target, (before, after), size, dynamic) {
            return Err(why);
        }
    }
    let (with_counters, original) = (needs.with_counters.lds.into(), needs.known.lds.into());
    let lds = WorkgroupLds { with_counters, original, dynamic: dynamic.into(), most: kernel.object.most_lds.into() };
    let (lds, no_room) = lds.needed();
    if let Some(why) = no_room {
        return Err(why);
    }
    Ok(Needed {
        counters,
        lds: u32::try_from(lds).unwrap_or(u32::MAX),
        scratch: packet.private_segment().max(needs.with_counters.scratch),
        shape: shape(packet, dynamic),
    })
}
