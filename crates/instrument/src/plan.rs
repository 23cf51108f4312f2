//! One kernel's instrumentation: a counter sink, a strategy for registers, and all the code that follows from the two.

use super::{Instrumented, MetadataChange, Request};
use crate::facts::{ClonedFunction, KernelFacts};
use crate::frame::entry::{Entry, EntryNeeds, ScratchAccess};
use crate::frame::{Frame, delayed_wait, epilogue, first_vector, flat_scratch, prologue};
use crate::placement::{PlacedCounters, PlacedRecord, PointJobs, Prices};
use crate::probe::{Emitter, time};
use crate::records::RecordChoice;
use crate::scavenge::lane_spills::{LaneBudget, MOST_SLOTS};
use crate::scavenge::registers::{self, Allocation, NUMBERED_VGPRS, Scalars, Vectors};
use crate::scavenge::spill_slots::{self, SpillSlots};
use crate::scavenge::{LAST_RESORT, LiveOut, STRATEGIES, Scavenger, VgprStrategy};
use crate::sink::{CounterSink, Counters, GlobalSink, LdsSink};
use crate::{cost, group_memory, guards, high_registers, register, scheduling};
use wavetap_amdgpu::{Demand, Loss, Reg, Target};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::edit::{Edits, FunctionEdits, Item, Snippet};
use wavetap_analysis::kernel::{Body, Reason, Refusal, Stop};
use wavetap_base::entity::{ProgramPoint, Side};
use wavetap_base::error::Error;
use wavetap_object::code_object::{Field, KernelDescriptor};
use wavetap_profile::map::{CounterMode, VectorSource};
use wavetap_profile::placement::{CounterPlacement, Placement};
use wavetap_profile::record::record_bytes;

/// What counting the lanes with which a wave begins costs, in additions at sites: the wave has to wait for the address
/// of its record, which it could do later. A guess.
const ENTRY_WEIGHT: f64 = 3.0;

/// Tries the strategies in order and returns the first that costs no occupancy, or what costs least of it.
pub(crate) fn cheapest(facts: &KernelFacts<'_, '_>, request: &Request) -> Result<Instrumented, Stop> {
    if let Some(what) = facts.needs_global_memory()
        && request.mode != CounterMode::Global
    {
        return Err(Refusal::new(Reason::CounterMode, format!("{what} in global memory")).into());
    }
    if facts.time.is_some() {
        // A wave's last block ends where the wave does.
        facts.uncopied.check_return(facts.analysis.program)?;
    }
    if request.mode == CounterMode::Register {
        return register::cheapest(facts, request, |planned| costs_too_much(request, planned));
    }
    if request.placement == CounterPlacement::Minimal
        && facts.needs_global_memory().is_none()
        && let Some(placed) = facts.placed(placed)?
        && (request.mode != CounterMode::Global || pays(facts, placed))
    {
        // What does not follow is kept.
        match cheapest_of(facts, request, Some(placed)) {
            Err(Stop::Refused(_)) => {}
            planned => return planned,
        }
    }
    cheapest_of(facts, request, None)
}

/// The fewest counters from which all others follow.
fn placed(facts: &KernelFacts<'_, '_>) -> Result<PlacedRecord, Stop> {
    // Waves that do not end leave counters from which nothing follows.
    facts.uncopied.check_return(facts.analysis.program)?;
    let PlacedCounters { values, counters } = PlacedCounters::minimal(facts, Prices::MEMORY)?;
    let bodies: Vec<&Body> = facts.functions.iter().map(|function| function.body).collect();
    Ok(PlacedRecord::of(&bodies, &values, &counters)?)
}

/// Whether placed counters in memory are predicted to cost less than all of them.
fn pays(facts: &KernelFacts<'_, '_>, placed: &PlacedRecord) -> bool {
    let entry = placed.entry_lanes.map_or(0.0, |_| ENTRY_WEIGHT);
    let functions = facts.functions.iter().zip(&placed.functions);
    let additions = functions.map(|(function, points)| {
        let weight = |inst| function.weights()[function.cfg.block_of(inst).index()];
        let kept: f64 = points.iter().filter(|point| point.count > 0).map(|point| weight(point.point.inst)).sum();
        let all: f64 = function.sites.iter().map(|placed| weight(placed.site.inst)).sum();
        (kept, all)
    });
    let (kept, all) = additions.fold((entry, 0.0), |(kept, all), (here, sites)| (kept + here, all + sites));
    kept <= all
}

/// [`cheapest`] with counters that are placed, or all of them.
fn cheapest_of(
    facts: &KernelFacts<'_, '_>,
    request: &Request,
    placed: Option<&PlacedRecord>,
) -> Result<Instrumented, Stop> {
    let plan = |strategy, live_out| plan(facts, request, placed, strategy, live_out);
    if let Some(to) = facts.analysis.always_spill {
        return match plan(VgprStrategy::Spill(to), LiveOut::All) {
            Err(Stop::Refused(_)) => plan(VgprStrategy::Spill(to), LiveOut::Callers),
            planned => planned,
        };
    }
    let mut refusal = match plan(VgprStrategy::Unused, LiveOut::All) {
        Ok(planned) => match costs_too_much(request, &planned) {
            None => return Ok(planned),
            Some(refusal) => refusal,
        },
        Err(Stop::Refused(refusal)) if matches!(refusal.reason, Reason::VectorRegisters | Reason::ScalarRegisters) => {
            refusal
        }
        Err(stop) => return Err(stop),
    };
    for live_out in [LiveOut::All, LiveOut::Callers] {
        let mut costly = None;
        for strategy in STRATEGIES {
            match plan(strategy, live_out) {
                Ok(planned) if costs_too_much(request, &planned).is_some() => {}
                Ok(planned) if planned.before.waves_per_simd > planned.after.waves_per_simd => {
                    costly = costly.or(Some(planned))
                }
                Ok(planned) => return Ok(planned),
                Err(Stop::Refused(last))
                    if strategy == LAST_RESORT && live_out == LiveOut::All && refusal.reason == last.reason =>
                {
                    refusal.detail =
                        format!("{}; and none can be moved to scratch memory: {}", refusal.detail, last.detail);
                    refusal.address = refusal.address.or(last.address);
                }
                Err(Stop::Refused(_)) => {}
                Err(stop) => return Err(stop),
            }
        }
        if costly.is_some() || !facts.calls_known_functions() {
            return costly.ok_or(Stop::Refused(refusal));
        }
    }
    Err(Stop::Refused(refusal))
}

/// The refusal of what costs more occupancy than the request allows. Nothing says how large the workgroups of launches
/// will be: it is the size for which the loss is largest.
fn costs_too_much(request: &Request, planned: &Instrumented) -> Option<Refusal> {
    let Loss { workgroup_size, before, .. } = planned.loss;
    let lost = planned.loss.waves();
    request.max_occupancy_loss.filter(|most| lost > *most).map(|most| {
        let detail = format!(
            "with workgroups of {workgroup_size}, {lost} of {before} waves per SIMD would be lost, and at most \
                {most} may be"
        );
        Refusal::new(Reason::OccupancyLoss, detail)
    })
}

/// The sink of a counter mode, and the mode that it has: counters for which LDS has no room at all are in memory.
fn sink(
    facts: &KernelFacts<'_, '_>,
    mode: CounterMode,
    placed: Option<&PlacedRecord>,
    records: RecordChoice,
) -> Result<(CounterMode, Box<dyn CounterSink>), Stop> {
    let global = || Box::new(GlobalSink { records });
    match mode {
        CounterMode::Global => Ok((mode, global())),
        CounterMode::Lds => {
            group_memory::check(facts.target, facts.kernel, facts.metadata)?;
            facts.uncopied.check_return(facts.analysis.program)?;
            let ends = placed.map_or_else(|| facts.table.ends(), |placed| placed.ends.clone());
            let sink = LdsSink::plan(facts.target, &ends, facts.workgroup_size, facts.lds_bytes);
            if sink.lds_bytes() == 0 && !ends.is_empty() {
                return Ok((CounterMode::Global, global()));
            }
            Ok((mode, Box::new(sink)))
        }
        CounterMode::Register => Err(Error::internal("registers are no sink of single additions").into()),
    }
}

/// Plans with vector registers from one strategy.
fn plan(
    facts: &KernelFacts<'_, '_>,
    request: &Request,
    placed: Option<&PlacedRecord>,
    strategy: VgprStrategy,
    live_out: LiveOut,
) -> Result<Instrumented, Stop> {
    let KernelFacts { analysis, kernel, metadata, id, target, functions, .. } = facts;
    let (program, target) = (analysis.program, *target);
    let record_bytes = record_bytes(placed.map_or(facts.table.counters(), |placed| placed.placement.kept));
    let records = RecordChoice::of(target, request.per_wave || facts.records_accesses, record_bytes);
    let (mode, sink) = sink(facts, request.mode, placed, records)?;
    let mut descriptor = kernel.descriptor;
    let scratch = if strategy == LAST_RESORT { ScratchAccess::of(target) } else { ScratchAccess::Given };
    let sets_flat_scratch = scratch == ScratchAccess::FlatScratch;
    let entry = Entry::extend(target, &mut descriptor, sink.entry_needs(records), scratch)?;
    let allocation = Allocation {
        target,
        descriptor: &kernel.descriptor,
        used: facts.used,
        accum: metadata.agpr_count,
        bounded_calls: facts.has_bounded_calls,
        keeps_flat_scratch: sets_flat_scratch && flat_scratch::stays(program, *id, entry.original()),
        most_vgprs: facts.most_vgprs(),
    };
    allocation.check_names()?;
    let mut free = allocation.free_scalars(entry.scalars());
    // Where too few scalar registers are unused, every snippet scavenges what it needs; where too few vector registers
    // are, these.
    let scavenges = analysis.always_scavenge || matches!(strategy, VgprStrategy::Spill(_));
    let reserved = if scavenges { None } else { Scalars::take(|count, align| free.take(count, align)).ok() };
    if facts.measures_latency && reserved.is_none() {
        let detail = "latencies would have in them what it takes to move registers: inserted code needs scalar and \
            vector registers that no code uses";
        let reason = if strategy == VgprStrategy::Unused { Reason::ScalarRegisters } else { Reason::VectorRegisters };
        return Err(Refusal::new(reason, detail).into());
    }
    if placed.is_some() && reserved.is_none() {
        // Scavenged registers may be those that hold EXEC as it was: such kernels keep all their counters.
        let detail = "placed counters need scalar registers that no code uses";
        return Err(Refusal::new(Reason::ScalarRegisters, detail).into());
    }
    let (mut lanes, mut counter_base, mut slots) = (None, None, None);
    let vectors = match strategy {
        VgprStrategy::Unused => allocation.choose_vectors(facts.records_accesses)?,
        VgprStrategy::SpillLanes => {
            // What is spilled has to be found again: not both kinds of registers can be.
            if reserved.is_none() || allocation.used.indexed || facts.needs_global_memory().is_some() {
                return Err(Refusal::new(
                    Reason::VectorRegisters,
                    "no vector registers are free, and none can be borrowed",
                )
                .into());
            }
            counter_base = if sink.has_base() { Some(free.take(1, 1)?) } else { None };
            // Whole pairs, as for the two that vector instructions read.
            let pairs = std::iter::from_fn(|| free.take(2, 2).ok()).flat_map(|first| [first, first + 1]);
            let slots = pairs.take(MOST_SLOTS).collect();
            lanes = Some(LaneBudget { slots, end: allocation.vgprs().min(NUMBERED_VGPRS.into()) as u16 });
            Vectors::behind_ids(target)
        }
        VgprStrategy::Spill(to) => {
            let vectors = spill_slots::choose(target, functions, facts.records_accesses)?;
            slots = Some(SpillSlots::find(to, &allocation, metadata, spill_slots::count(&vectors), &mut free)?);
            vectors
        }
    };
    let frame = Frame {
        target,
        vectors,
        reserved,
        counter_base,
        spill_slots: slots,
        sets_flat_scratch,
        entry_lanes: placed.and_then(|placed| placed.entry_lanes).map(|offset| Counters { offset, count: 1 }),
        sink: &*sink,
        time: facts.time,
        records,
        is_sampled: facts.records_accesses,
        // What is spilled between snippets does not keep what they change; flat addresses take scalar registers.
        counts_slots: facts.records_accesses && slots.is_none() && vectors.flat.is_none(),
        record_bytes,
        delays_wait: reserved.is_some()
            && sink.entry_needs(records) == EntryNeeds::Nothing
            && placed.is_none_or(|placed| placed.entry_lanes.is_none())
            && delayed_wait::waits_in_time(functions[0].body, |point| match placed {
                Some(placed) => placed.functions[0].iter().any(|here| here.point == point),
                None => functions[0].sites.iter().any(|placed| placed.site.inst == point.inst),
            }),
        kernel: request.index,
        control: request.control,
    };
    let (prologue, prologue_end) =
        prologue::prologue(&frame, &entry, first_vector::sequence(functions[0].body, &entry)?)?;
    // FLAT_SCRATCH lies after all numbered registers, also those of the original.
    let original_end =
        allocation.used.named.highest_sgpr().filter(|_| sets_flat_scratch).map_or(0, |highest| u32::from(highest) + 1);
    let keeps = reserved.is_some() || slots.and_then(SpillSlots::resource).is_some();
    let sgprs = prologue_end.max(if keeps { free.end } else { 0 }).max(original_end);
    let vgprs = vectors.end();
    allocation.grow(&mut descriptor, sgprs, vgprs)?;
    let (agpr_count, private_segment) = match slots {
        None => (metadata.agpr_count, metadata.private_segment_fixed_size),
        Some(slots) => slots.allocate(&allocation, metadata, &mut descriptor, spill_slots::count(&vectors))?,
    };

    let end = allocation.sgprs().max(sgprs);
    let mut inserts = Vec::new();
    for (number, (function, liveness)) in functions.iter().zip(facts.liveness(live_out)).enumerate() {
        let reads_registers = reserved.is_none() || lanes.is_some() || facts.records_accesses;
        let pending = if reads_registers { function.pending(analysis) } else { &[] };
        let assigned = (!pending.is_empty()).then(|| function.assigned(&entry.original_registers()));
        inserts.push(insertions(
            &frame,
            &Scavenger { function, liveness, reserved, lanes: lanes.as_ref(), slots, pending, assigned, end },
            placed.and_then(|placed| placed.functions.get(number)).map(Vec::as_slice),
        )?);
    }
    let mut inserts = inserts.into_iter();
    let of_kernel = inserts.next().unwrap_or_default();
    let clones = functions[1..].iter().zip(inserts);
    let clones = clones.map(|(function, inserts)| FunctionEdits { entry: function.body.entry_address(), inserts });
    let edits = Edits {
        prologue,
        inserts: of_kernel,
        functions: clones.collect(),
        spare_scalar: reserved.map(|scalars| Reg::scalar(scalars.saved_scc, 1)),
    };
    let code = PlannedCode {
        edits,
        descriptor,
        sgprs,
        vgprs,
        agpr_count,
        private_segment,
        lds_bytes: sink.lds_bytes(),
        mode,
        record_bytes,
        slots: records.slots().filter(|_| placed.is_none()),
        vector_registers: strategy.into(),
        placement: placed.map(|placed| Placement { slots: records.slots().unwrap_or(0), ..placed.placement.clone() }),
    };
    code.finish(facts, &allocation)
}

/// Inserted code, and what it needs.
#[derive(Debug)]
pub(crate) struct PlannedCode {
    pub(crate) edits: Edits,
    /// The descriptor with the registers that it needs.
    pub(crate) descriptor: KernelDescriptor,
    /// One more than the highest scalar register that it uses of its own, and the highest vector register.
    pub(crate) sgprs: u32,
    pub(crate) vgprs: u32,
    /// What the metadata says of AGPRs and scratch memory.
    pub(crate) agpr_count: u64,
    pub(crate) private_segment: u64,
    /// Bytes of LDS that a workgroup needs more than before.
    pub(crate) lds_bytes: u32,
    /// Where its counters are.
    pub(crate) mode: CounterMode,
    pub(crate) record_bytes: u32,
    /// How many records waves share by where they run, in code without placed counters.
    pub(crate) slots: Option<u32>,
    pub(crate) vector_registers: VectorSource,
    pub(crate) placement: Option<Placement>,
}

impl PlannedCode {
    /// What follows from it for the kernel: descriptor, metadata, occupancy.
    pub(crate) fn finish(self, facts: &KernelFacts<'_, '_>, allocation: &Allocation<'_>) -> Result<Instrumented, Stop> {
        let KernelFacts { analysis, kernel, metadata, target, functions, .. } = facts;
        let (program, target) = (analysis.program, *target);
        let PlannedCode { mut edits, mut descriptor, sgprs, vgprs, agpr_count, private_segment, .. } = self;
        if program.bodies().iter().any(Body::sets_scheduling) {
            scheduling::leave_nothing(target, &mut edits)?;
        }
        let extra = self.lds_bytes;
        let (lds_bytes, workgroup_size) = (facts.lds_bytes, facts.workgroup_size);
        if descriptor.get(Field::GROUP_SEGMENT_FIXED_SIZE) != 0 || extra != 0 {
            descriptor.set(Field::GROUP_SEGMENT_FIXED_SIZE, lds_bytes + extra)?;
        }
        let mut before = registers::resources(target, &kernel.descriptor, lds_bytes, workgroup_size);
        before.code_bytes =
            functions.iter().flat_map(|function| function.body.insts()).map(|inst| u64::from(inst.size)).sum();
        let mut after = registers::resources(target, &descriptor, lds_bytes + extra, workgroup_size);
        let machine = kernel.descriptor.machine(target);
        let demands = (
            kernel.descriptor.demand(target, lds_bytes, workgroup_size),
            descriptor.demand(target, lds_bytes + extra, workgroup_size),
        );
        if facts.size_is_required {
            (before.waves_per_simd, after.waves_per_simd) =
                (machine.occupancy(&demands.0).waves, machine.occupancy(&demands.1).waves);
        }
        if let Some(size) = machine.lost_workgroup(&demands.0, &demands.1, facts.size_is_required) {
            let limit = machine.occupancy(&Demand { workgroup_size: size, ..demands.1 }).limit;
            let detail = format!(
                "workgroups of {size} work-items would not fit on a compute unit any more: {} vector registers, {} \
                    scalar registers and {} bytes of LDS; too much of {limit}",
                demands.1.vgprs, demands.1.sgprs, demands.1.lds_bytes
            );
            return Err(Refusal::new(Reason::Unlaunchable, detail).into());
        }
        let loss = machine.worst_loss(if facts.size_is_required { workgroup_size } else { 1 }, &demands.0, &demands.1);
        let (named_scalars, named_vectors) = named_registers(target, &edits);
        // Where every wave has the same number, the original may count less than all that can lie after the numbered
        // ones.
        let counted_scalars =
            (sgprs.max(named_scalars) + registers::NAMED_SGPRS).min(target.fixed_sgprs().unwrap_or(u32::MAX));
        let metadata = MetadataChange {
            sgpr_count: metadata.sgpr_count.max(counted_scalars.into()).max(allocation.named_sgprs(&descriptor)),
            vgpr_count: allocation.metadata_vgprs(&descriptor, metadata, vgprs.max(named_vectors), agpr_count),
            agpr_count,
            group_segment_fixed_size: u64::from(lds_bytes + extra),
            private_segment_fixed_size: private_segment,
        };
        let added_cycles = cost::added_cycles(target, after.waves_per_simd, snippets(functions, &edits));
        Ok(Instrumented {
            added_cycles,
            edits,
            descriptor,
            metadata,
            sites: facts.table.sites.clone(),
            record_bytes: self.record_bytes,
            uncounted_callees: facts.uncopied.names(program),
            vector_registers: self.vector_registers,
            mode: self.mode,
            placement: self.placement,
            placement_fallback: facts.is_over_budget().then_some(CounterPlacement::All),
            slots: self.slots,
            before,
            after,
            loss,
        })
    }
}

/// All inserted code of a kernel, each with how often it is guessed to run. How often a function is called is not
/// known: each counts once.
fn snippets<'e>(functions: &[ClonedFunction<'_>], edits: &'e Edits) -> Vec<(f64, &'e Snippet)> {
    let mut snippets = vec![(1.0, &edits.prologue)];
    let inserts = std::iter::once(&edits.inserts).chain(edits.functions.iter().map(|function| &function.inserts));
    for (function, inserts) in functions.iter().zip(inserts) {
        let times = |inst| function.weights()[function.cfg.block_of(inst).index()];
        snippets.extend(inserts.iter().map(|(point, snippet)| (times(point.inst), snippet)));
    }
    snippets
}

/// One more than the highest numbered scalar register, and than the highest vector register, that inserted code names:
/// what it scavenges need not be among those that the original names.
fn named_registers(target: Target, edits: &Edits) -> (u32, u32) {
    let inserts = edits.inserts.iter().chain(edits.functions.iter().flat_map(|function| &function.inserts));
    let items = inserts.flat_map(|(_, snippet)| &snippet.items);
    let instructions = items.filter_map(|item| if let Item::Inst(inst) = item { Some(inst) } else { None });
    let named: RegSet = instructions.flat_map(|inst| inst.reads().chain(inst.writes())).collect();
    let end = |highest: Option<u16>| highest.map_or(0, |highest| u32::from(highest) + 1);
    (end(named.highest_sgpr_below(target.addressable_sgprs() as u16)), end(named.highest_vgpr()))
}

/// A function's snippets, by their place: those of its sites, or of points with placed counters.
fn insertions(
    frame: &Frame<'_>,
    scavenger: &Scavenger<'_>,
    placed: Option<&[PointJobs]>,
) -> Result<Vec<(ProgramPoint, Snippet)>, Stop> {
    let function: &ClonedFunction<'_> = scavenger.function;
    let mut inserts = Vec::new();
    match placed {
        Some(points) => {
            for here in points {
                function.check_modes(here.point.inst)?;
                let counters = Counters { offset: here.offset, count: here.count };
                Emitter { frame, scavenger, counters, inserts: &mut inserts }.count(here)?;
            }
        }
        None => {
            for placed in &function.sites {
                function.check_modes(placed.site.inst)?;
                let counters = Counters { offset: placed.offset, count: placed.site.kind.counters() };
                let mut emitter = Emitter { frame, scavenger, counters, inserts: &mut inserts };
                placed.probe.probe().emit(&placed.site, &mut emitter)?;
            }
        }
    }
    for end in function.ends() {
        function.check_modes(end)?;
        let point =
            ProgramPoint { inst: guards::place_before_end(function.body, &function.cfg, end), side: Side::Before };
        if let Some(waves) = &frame.time {
            let counters = waves.counters();
            time::end(&mut Emitter { frame, scavenger, counters, inserts: &mut inserts }, point)?;
        }
        let (frame, here) = scavenger.at_end(frame, point)?;
        inserts.push((point, epilogue::epilogue(&frame, &here, point.inst != end)?));
    }
    for (point, snippet) in &mut inserts {
        guards::check_clause(function.body, &function.neighbours, *point)?;
        scheduling::bracket(function.body, *point, snippet)?;
        high_registers::bracket(function.body, frame.vectors.bank, *point, snippet)?;
    }
    inserts.sort_by_key(|(point, _)| *point);
    Ok(inserts)
}
