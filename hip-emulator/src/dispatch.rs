//! Launching kernels, running them, and collecting what they counted.

use std::sync::Arc;

use wavetap::code_object::ValueKind;
use wavetap::collect::check::places;
use wavetap::collect::journals::Changes;
use wavetap::collect::residency::fewer_workgroups;
use wavetap::collect::selected::Submitted;
use wavetap::collect::session::{DispatchInfo, Ticket};
use wavetap::collect::uncounted::Why;
use wavetap::emulated::EmulatedMemory;
use wavetap::emulator::{Beyond, Dispatch, DispatchStats, Fault, FaultKind, Finding, Share};
use wavetap::error::{Error, Result};
use wavetap::profile::file::Work;
use wavetap::profile::launches::workgroups;

use crate::begin::{Begin, End};
use crate::captured;
use crate::check::Accessor;
use crate::collection::Collection;
use crate::device_heap;
use crate::fault_places;
use crate::images::{Kernel, KernelRef, bytes_of, loaded_bytes};
use crate::in_flight::{InFlight, Segment};
use crate::kernarg::{self, Shape};
use crate::launch_attributes;
use crate::messages::{complain, say_fault};
use crate::objects::tasks;
use crate::raw;
use crate::runtime::Runtime;
use crate::status::*;
use crate::stream_op::Launch;
use crate::time::Dispatched;
use crate::uncounted;

/// What became of a launch.
pub(crate) enum Launched {
    /// It has ended then.
    Ended(End),
    InFlight(Box<InFlight>),
}

/// Wave-instructions that the thread executes which launches a kernel: one that has not ended then goes on while the
/// thread does.
const AT_ONCE: u64 = 500_000;

impl Runtime {
    /// Refuses what HIP refuses before it launches anything.
    pub(crate) fn check_launch(&mut self, kernel: &KernelRef, shape: &Shape) -> Outcome {
        self.check_shape(kernel, shape)
            .inspect_err(|status| self.not_counted(kernel, None, uncounted::refused(*status)))
    }

    fn check_shape(&mut self, kernel: &KernelRef, shape: &Shape) -> Outcome {
        let metadata = self.kernel(kernel)?;
        if kernarg::has(&metadata, &ValueKind::HiddenPrintfBuffer) {
            say_fault(
                &kernel.name,
                "it prints into a buffer (-mprintf-kind=buffered), which the built-in runtime does not have",
            );
            return Err(NOT_SUPPORTED);
        }
        if kernarg::has(&metadata, &ValueKind::HiddenHeapV1) && self.heap_users.insert(kernel.image) {
            let (_, loaded) = self.load(kernel.image)?;
            if device_heap::waits_for_ever(&loaded.bytes) {
                let why = "it may call malloc, which was compiled with device libraries of ROCm 5: they wait for a \
                    clock that this processor does not have, on a GPU as well, and then never return";
                say_fault(&kernel.name, why);
            }
        }
        launch_attributes::check_cluster(metadata.cluster_dims.unwrap_or_default())?;
        kernarg::check(&metadata, shape, self.device()?.target())?;
        self.check_room(kernel, shape)
    }

    /// Refuses workgroups that no compute unit has registers for.
    fn check_room(&mut self, kernel: &KernelRef, shape: &Shape) -> Outcome {
        let (device, loaded) = self.load(kernel.image)?;
        let Some(kernel_object) = loaded.object.kernel(&kernel.name) else { return Ok(()) };
        // Its LDS was looked at.
        match device.check_room(kernel_object, shape.workgroup.iter().product(), shape.dynamic_lds) {
            Err(fault) if matches!(fault.kind, FaultKind::NoRoom { .. }) => {
                say_fault(&kernel.name, &fault.kind.to_string());
                Err(LAUNCH_OUT_OF_RESOURCES)
            }
            _ => Ok(()),
        }
    }

    /// Whether kernels count.
    pub(crate) fn counts(&self) -> bool {
        self.settings.wants_counters()
    }

    /// Runs a kernel, if it is short to its end; otherwise it returns what is in flight. A fault is not an error of
    /// this launch: the device then answers everything with the fault's error.
    pub(crate) fn launch(&mut self, launch: &Launch, begin: &Begin) -> Outcome<Launched> {
        let Launch { kernel, shape, arguments, cooperative, submitted, .. } = launch;
        let Kernel { loaded: mut metadata, original } = self.needs(kernel)?;
        let target = self.device()?.target();
        kernarg::check(&original, shape, target)?;
        if self.settings.skip_kernels {
            return Ok(Launched::Ended(begin.end()));
        }
        let fewer = if *cooperative { self.fewer_workgroups(kernel, shape)? } else { None };
        if fewer.is_some() {
            metadata = Arc::clone(&original);
        }
        let (group_segment_size, no_room) =
            uncounted::lds(metadata.group_segment_fixed_size, original.group_segment_fixed_size, shape, target);
        let fixed = u32::try_from(metadata.private_segment_fixed_size).map_err(|_| INVALID_VALUE)?;
        let private_segment_size =
            if metadata.uses_dynamic_stack { fixed.saturating_add(self.stack_limit) } else { fixed };
        let mut services = kernarg::Services::default();
        if kernarg::has(&metadata, &ValueKind::HiddenHostcallBuffer) {
            let (device, _) = self.device.as_mut().ok_or(NO_DEVICE)?;
            services.hostcall = self.hostcall.address(device)?;
            if kernarg::may_allocate(&metadata) {
                services.heap = self.hostcall.heap(device)?;
            }
        }
        let mut segment = kernarg::segment(&metadata, shape, arguments, &services)?;
        let grids = if *cooperative { kernarg::add_grids(&mut segment, &metadata) } else { None };
        let ordinal = self.dispatches;
        self.dispatches += 1;
        let room = (segment.len() as u64, metadata.kernarg_segment_align.max(64).next_power_of_two());
        let kept = self.kernargs.get_mut(&room).and_then(Vec::pop);
        let (device, loaded) = self.load(kernel.image)?;
        let mut kernel_object = loaded.object.kernel(&kernel.name).ok_or(NOT_FOUND)?;
        if fewer.is_some() || no_room.is_some() {
            kernel_object = match loaded.original(device, &kernel.name) {
                Some(original) => original,
                // Without its descriptor the original cannot run, and nothing else may.
                None if fewer.is_some() => return Err(COOPERATIVE_LAUNCH_TOO_LARGE),
                None => kernel_object,
            };
        }
        let kernarg_address = kept.map_or_else(|| device.malloc(room.0, room.1), Ok).map_err(|_| OUT_OF_MEMORY)?;
        if let Some(grids) = grids {
            kernarg::describe_grid(&mut segment, kernarg_address, grids, shape);
        }
        device.write(kernarg_address, &segment).map_err(|_| OUT_OF_MEMORY)?;
        let mut workgroup = [0; 3];
        for (to, from) in workgroup.iter_mut().zip(shape.workgroup) {
            *to = u16::try_from(from).map_err(|_| INVALID_CONFIGURATION)?;
        }
        let dispatch = Dispatch {
            kernel_object,
            grid: shape.items,
            workgroup,
            private_segment_size,
            group_segment_size: u32::try_from(group_segment_size).map_err(|_| INVALID_CONFIGURATION)?,
            kernarg_address,
            dispatch_id: ordinal,
        };
        let why_original = fewer.or(no_room);
        let has_room = why_original.is_none();
        let instrumented =
            loaded.counters.as_ref().filter(|_| has_room).and_then(|counters| counters.index_of(&kernel.name));
        // Without counts no reason is reported.
        let why_not = if self.counts() && instrumented.is_none() {
            let (_, loaded) = self.load(kernel.image)?;
            uncounted::without_counters(loaded, &kernel.name).or(why_original)
        } else {
            None
        };
        let left_out = self.left_out(kernel, submitted)?;
        let region = submitted.region.as_deref().filter(|_| !left_out);
        let region = self.collection.selected.named(region);
        let region = region.as_deref();
        let mut ticket = None;
        if let Some(index) = instrumented.filter(|_| self.counts() && !left_out) {
            let region = region.map(|name| self.collection.session.collector_mut().region(name));
            let (grid, workgroup) = (shape.items, shape.workgroup);
            let info = DispatchInfo { kernel: index, grid, workgroup, ordinal: ordinal as u32, region };
            match self.begin_counting(kernel, &info) {
                Ok(begun) => ticket = begun,
                Err(error) => self.stop(&kernel.name, &error.to_string()),
            }
        }
        if let Some(why) = why_not.filter(|_| !left_out) {
            self.not_counted(kernel, region, why);
        }
        if self.settings.strict {
            let mut passes = self.settings.findings.of_kernel(&kernel.name);
            if !passes.suppressed.kinds().is_empty() {
                let (_, loaded) = self.load(kernel.image)?;
                let rewritten = fault_places::rewritten(&loaded.bytes, &kernel.name);
                passes.suppressed = passes.suppressed.with_addresses(rewritten);
            }
            self.device()?.options_mut().passes = passes;
        }
        let snapshot = self.snapshot(kernel, &dispatch, arguments);
        let is_modelled = self.device()?.options().timing.is_some();
        let started = self.clocks.launch(begin);
        let order = self.clocks.keeps_order().then(|| self.order_of(begin));
        let device = self.device()?;
        if is_modelled {
            device.set_clock(started);
        }
        if let Some(order) = order {
            device.order_next(order);
        }
        match device.begin(&dispatch) {
            Ok(flight) => {
                self.collection.host_launch(&self.settings, &kernel.name, shape);
                let mut of = InFlight::new(
                    kernel.clone(),
                    *shape,
                    flight,
                    Segment { address: kernarg_address, room },
                    ticket,
                    target,
                    ordinal,
                );
                (of.region, of.left_out) = (region.map(str::to_owned), left_out);
                (of.started, of.workgroups) = (begin.end_at(started), workgroups(shape.items, shape.workgroup));
                self.began(&of);
                if let Some(event) = launch.start_event {
                    self.streams.started(event, started);
                }
                let at_once = if snapshot.is_some() { captured::AT_ONCE } else { AT_ONCE };
                of.snapshot = snapshot.map(|snapshot| (snapshot, self.tasks.running().next().is_none()));
                if let Some(end) = self.advance(&mut of, Share { instructions: at_once, interrupt: None })? {
                    return Ok(Launched::Ended(end));
                }
                if let Some((_, alone)) = &mut of.snapshot {
                    *alone = false;
                }
                self.collection.journals.set_running(&of.kernel.name, true);
                self.met_program(&of);
                Ok(Launched::InFlight(Box::new(of)))
            }
            Err(fault) => {
                self.abandon(kernel, region, ticket, &fault);
                self.fault(&kernel.name, ordinal, &fault);
                Ok(Launched::Ended(begin.end_at(started)))
            }
        }
    }

    /// Runs a share of a kernel in flight; gives its end once it has ended. A fault ends it, too.
    pub(crate) fn advance(&mut self, of: &mut InFlight, share: Share) -> Outcome<Option<End>> {
        let (_, loaded) = self.load(of.kernel.image)?;
        let object = loaded.counters.as_ref().map(|counters| counters.object);
        let (device, session) = self.device_and_session()?;
        let memory = &mut EmulatedMemory(device);
        let armed = match (&of.ticket, object) {
            (Some(ticket), _) => session.resume(memory, ticket),
            // Without room for its counters a kernel must not touch them, nor those of another dispatch in flight.
            (None, Some(object)) => session.suspend(memory, object),
            (None, None) => Ok(()),
        };
        if let Err(error) = armed {
            self.stop(&of.kernel.name, &error.to_string());
        }
        let device = self.device()?;
        let result = device.advance(&mut of.flight, share);
        let found = device.take_findings();
        if !found.is_empty() {
            self.note_findings(&of.kernel.name, of.ordinal, found);
        }
        let stats = match result {
            Ok(None) => return Ok(None),
            Ok(Some(stats)) => stats,
            Err(fault) => {
                self.abandon(&of.kernel, of.region.as_deref(), of.ticket.take(), &fault);
                self.fault(&of.kernel.name, of.ordinal, &fault);
                return Ok(Some(of.started.clone()));
            }
        };
        if !of.left_out
            && let Err(error) = self.collect(of, &stats)
        {
            self.stop(&of.kernel.name, &error.to_string());
        }
        self.ended(&of.kernel, &stats, of.kernarg);
        if let Some((snapshot, alone)) = of.snapshot.take() {
            self.complete(snapshot, alone);
        }
        self.note_output(&of.kernel.name, of.ordinal);
        let cycles = stats.time.as_ref().map_or(0, |time| time.cycles);
        let cycle = self.clocks.kernel(of.started.cycle, cycles, of.workgroups);
        Ok(Some(End { cycle, ..of.started.clone().with(of.flight.number()) }))
    }

    /// Notes what a dispatch has gone on after: each place is told once, or is a record of what is checked.
    fn note_findings(&mut self, kernel: &str, ordinal: u64, found: Vec<Finding>) {
        let object = |fault: &Fault| bytes_of(&self.code.images, fault.object);
        let Some(check) = &mut self.check else {
            let text = |fault: &Fault| fault_places::text(object(fault), fault);
            return self.findings.add(&self.settings.findings, kernel, found, text);
        };
        for mut found in found {
            let bytes = object(&found.fault);
            fault_places::in_original(bytes, &mut found.fault);
            let earlier = check.accesses.earlier(&mut found.fault);
            let mut finding = found.checked(ordinal + 1);
            earlier.iter().for_each(|earlier| earlier.judge(&mut finding));
            let mut of_launch = None;
            match (&earlier, &mut finding.other) {
                (Some(Accessor::Call(call)), Some(other)) => other.call = Some(call.resolve()),
                (Some(Accessor::Launch { kernel, .. }), _) => {
                    of_launch = Some((loaded_bytes(&self.code.images, kernel), kernel.name.as_str()));
                }
                _ => {}
            }
            // What tells places apart.
            let others = finding.other.as_mut().and_then(|other| other.at.as_mut());
            if let Some(at) = others {
                of_launch.map_or(kernel, |(_, name)| name).clone_into(&mut at.kernel);
            }
            finding.at.iter_mut().for_each(|at| kernel.clone_into(&mut at.kernel));
            check.found(finding, |finding| places::complete(finding, bytes, kernel, of_launch));
        }
    }

    /// Notes what a kernel has left in memory that has ended.
    fn note_output(&mut self, kernel: &str, ordinal: u64) {
        let others_go_on = self.tasks.running().next().is_some();
        let (Some(check), Some((device, _))) = (&mut self.check, &mut self.device) else { return };
        let images = &self.code.images;
        check.ended((device, ordinal + 1, kernel), others_go_on, |finding, write| {
            places::complete(finding, bytes_of(images, write.object), kernel, None);
        });
    }

    /// Whether nothing is to be collected of a dispatch, where only some of them are chosen; records why.
    fn left_out(&mut self, kernel: &KernelRef, submitted: &Submitted) -> Outcome<bool> {
        if !self.counts() && !self.collection.looks_at_dispatches() {
            return Ok(false);
        }
        let (_, loaded) = self.load(kernel.image)?;
        let counters = loaded.counters.as_ref();
        let mapped = counters.and_then(|counters| counters.map.kernels.iter().find(|map| map.name == kernel.name));
        let records_accesses = mapped.is_some_and(|map| map.records_accesses);
        let why = self.collection.selected.why_not(&kernel.name, submitted, records_accesses);
        let left_out = why.is_some();
        if let Some(why) = why {
            self.not_counted(kernel, None, why);
        }
        Ok(left_out)
    }

    /// Why a cooperative launch has to run the original, if its kernel counts and it has to.
    fn fewer_workgroups(&mut self, kernel: &KernelRef, shape: &Shape) -> Outcome<Option<Why>> {
        let (_, loaded) = self.load(kernel.image)?;
        let Some(counters) = &loaded.counters else { return Ok(None) };
        let Some(mapped) = counters.map.kernels.iter().find(|mapped| mapped.name == kernel.name) else {
            return Ok(None);
        };
        let size = shape.workgroup.iter().product();
        Ok(fewer_workgroups(&counters.map.target, (&mapped.before, &mapped.after), size, shape.dynamic_lds))
    }

    /// Says of accesses after allocations, each place once, and after LDS, once for each kernel; keeps the segment of
    /// arguments for the next launch.
    pub(crate) fn ended(&mut self, kernel: &KernelRef, stats: &DispatchStats, arguments: Segment) {
        for overrun in &stats.overruns {
            let (place, end) = match overrun.beyond {
                Beyond::Allocation { .. } => (Some(overrun.place.address), "its page"),
                Beyond::Lds { .. } => (None, "its allocation unit"),
            };
            if self.overruns.insert((kernel.name.clone(), place)) {
                let more = format!(
                    "a GPU lets that be up to the end of {end}, and so does this run; with --strict it ends the program"
                );
                let what =
                    fault_places::text_of_overrun(bytes_of(&self.code.images, Some(overrun.place.object)), overrun);
                say_fault(&kernel.name, &format!("{what}: {more}"));
            }
        }
        self.kernargs.entry(arguments.room).or_default().push(arguments.address);
    }

    /// Arms the control block for a dispatch.
    fn begin_counting(&mut self, kernel: &KernelRef, info: &DispatchInfo) -> Result<Option<Ticket>> {
        let loaded =
            self.code.images.get(kernel.image).and_then(Option::as_ref).and_then(|image| image.loaded.as_ref());
        let counters = loaded.and_then(|loaded| loaded.counters.as_ref());
        let (Some(counters), Some((device, _))) = (counters, &mut self.device) else { return Ok(None) };
        Ok(Some(self.collection.session.begin_dispatch(&mut EmulatedMemory(device), counters.object, info)?))
    }

    /// Forgets what a dispatch counted that faulted, if it did.
    pub(crate) fn abandon(&mut self, kernel: &KernelRef, region: Option<&str>, ticket: Option<Ticket>, fault: &Fault) {
        let (Some(ticket), Some((device, _))) = (ticket, &mut self.device) else { return };
        if let Err(error) = self.collection.session.abandon(&mut EmulatedMemory(device), ticket) {
            complain("the counters of a kernel that faulted could not be taken away", &error);
        }
        let text = fault_places::text(bytes_of(&self.code.images, fault.object), fault);
        self.not_counted(kernel, region, uncounted::faulted(&text));
    }

    /// A kernel that faulted: what the program did wrong becomes an error that it gets from now on. Anything else, such
    /// as a broken rule of the hardware or an instruction that is not emulated, ends the program, which could not know
    /// that its results are worth nothing.
    pub(crate) fn fault(&mut self, kernel: &str, ordinal: u64, fault: &Fault) {
        if let Some(check) = &mut self.check {
            let (bytes, mut fault) = (bytes_of(&self.code.images, fault.object), fault.clone());
            fault_places::in_original(bytes, &mut fault);
            check.found(fault.checked(ordinal + 1), |finding| places::complete(finding, bytes, kernel, None));
        }
        let text = fault_places::text(bytes_of(&self.code.images, fault.object), fault);
        let status = match fault.kind {
            FaultKind::Memory { .. }
            | FaultKind::LdsBounds { .. }
            | FaultKind::ScratchBounds { .. }
            | FaultKind::Misaligned { .. } => ILLEGAL_ADDRESS,
            FaultKind::NoRoom { .. } => LAUNCH_OUT_OF_RESOURCES,
            FaultKind::Trap { .. } if self.hostcall.complained() => ASSERT,
            FaultKind::Trap { .. } => LAUNCH_FAILURE,
            FaultKind::UnknownInstruction { .. } => self.stop(kernel, &text),
            // What is found by then is kept, and the program sees what a GPU's fault would be.
            _ if self.check.is_some() => LAUNCH_FAILURE,
            _ => self.stop(kernel, &text),
        };
        say_fault(kernel, &text);
        if let Err(error) = self.write_time() {
            complain("the counts could not be written", &error);
        }
        break_device(status);
        tasks::wake();
    }

    /// Records a dispatch that is not counted.
    pub(crate) fn not_counted(&mut self, kernel: &KernelRef, region: Option<&str>, why: Why) {
        let loaded =
            self.code.images.get(kernel.image).and_then(Option::as_ref).and_then(|image| image.loaded.as_ref());
        let Collection { session, tracer, uncounted, journals, .. } = &mut self.collection;
        // Where nothing counts, a list of launches and a trace lack what was not chosen.
        let tracer = tracer.as_mut().filter(|_| why.0.is_chosen());
        if !self.settings.wants_counters() && tracer.is_none() {
            return;
        }
        match uncounted.dispatch(kernel, loaded, region, why) {
            Ok(dispatch) => {
                let mut changes = Changes::default();
                if let Some(tracer) = tracer {
                    dispatch.clone().add_to(&mut tracer.profile_mut().uncounted);
                    changes.trace = Some((tracer.profile_mut(), None));
                }
                if self.settings.wants_counters() {
                    let collector = session.collector_mut();
                    collector.not_counted(dispatch);
                    changes.counters = Some((collector.profile_mut(), None));
                }
                journals.add(changes);
            }
            Err(error) => complain("a dispatch that was not counted could not be recorded", &error),
        }
    }

    /// Drains what a dispatch counted and adds the emulator's own numbers.
    pub(crate) fn collect(&mut self, of: &mut InFlight, stats: &DispatchStats) -> Result<()> {
        let ticket = of.ticket.take();
        let InFlight { kernel, shape, target, ordinal, region, started, .. } = of;
        let (target, ordinal, region) = (*target, *ordinal, region.as_deref());
        let loaded = self.code.images[kernel.image].as_ref().and_then(|image| image.loaded.as_ref());
        let loaded = loaded.ok_or_else(|| Error::internal("a kernel ran that is not loaded"))?;
        let mut changes = Changes::default();
        if let (Some(counters), Some(ticket), Some((device, _))) = (&loaded.counters, ticket, &mut self.device) {
            let index = counters
                .index_of(&kernel.name)
                .ok_or_else(|| Error::internal("a kernel counts that the site table lacks"))?;
            self.collection.session.end_dispatch(&mut EmulatedMemory(device), ticket, Some(shape.launched()))?;
            let collector = self.collection.session.collector_mut();
            let region = region.map(|name| collector.region(name));
            let DispatchStats { instructions, global_bytes, lds_bytes, .. } = *stats;
            collector.add_work(&counters.map, index, region, Work { instructions, global_bytes, lds_bytes })?;
            let place = collector.place(&counters.map, index)?;
            changes.counters = Some((collector.profile_mut(), Some(place)));
        }
        if let Some(tracer) = &mut self.collection.tracer {
            let place = tracer.add((&kernel.name, region), loaded, target, stats, shape)?;
            changes.trace = Some((tracer.profile_mut(), Some(place)));
        }
        if let Some(origins) = &mut self.collection.origins {
            origins.add(loaded, stats)?;
        }
        let mut added = None;
        if let Some(timer) = &mut self.collection.timer {
            let dispatch = Dispatched { ordinal, started: started.cycle, mhz: self.clocks.mhz() };
            added = timer.add((&kernel.name, region), loaded, target, &dispatch, stats)?;
        }
        if let (Some(added), Some(timer)) = (&added, &self.collection.timer) {
            changes.time = Some((added, timer.time()));
        }
        let mut exact = None;
        if let Some(fidelity) = &mut self.collection.fidelity {
            exact = fidelity.add(&kernel.name, loaded, target, stats)?;
        }
        if let (Some(exact), Some(fidelity)) = (&exact, &self.collection.fidelity) {
            changes.fidelity = Some((exact, fidelity.all()));
        }
        self.collection.journals.add(changes);
        self.write_now_and_then();
        Ok(())
    }

    /// Ends the program as a GPU's fault does: whatever the kernel was to compute is missing, and a program that goes
    /// on would not know.
    pub(crate) fn stop(&mut self, kernel: &str, reason: &str) -> ! {
        say_fault(kernel, reason);
        self.findings.finish(&self.settings.findings);
        if let Err(error) = self.write() {
            complain("the counts could not be written", &error);
        }
        // What the program has printed so far is what a person looks for first.
        raw::flush_output();
        std::process::abort()
    }
}
