//! One kernel's instrumentation: a counter sink, a strategy for registers, and all the code that follows from the two.

use crate::facts::KernelFacts;
use crate::frame::entry::{Entry, EntryNeeds, ScratchAccess};
use crate::frame::{Frame, delayed_wait, epilogue, first_vector, flat_scratch, prologue};
use crate::function::ClonedFunction;
use crate::instrumented::{Instrumented, Request};
use crate::placement::{PlacedCounters, PlacedRecord, Prices};
use crate::planned::{PlannedCode, in_order};
use crate::probe::Emitter;
use crate::records::RecordChoice;
use crate::scavenge::lane_spills::{LaneBudget, MOST_SLOTS};
use crate::scavenge::registers::{Allocation, NUMBERED_VGPRS, OwnRegisters, Scalars, Vectors};
use crate::scavenge::spill_slots::{self, SpillSlots};
use crate::scavenge::{LAST_RESORT, LiveOut, STRATEGIES, Scavenger, VgprStrategy};
use crate::sink::{CounterSink, GlobalSink, LdsSink};
use crate::site::Counters;
use crate::{group_memory, guards, register};
use wavetap_amdgpu::Loss;
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::edit::Snippet;
use wavetap_analysis::kernel::{Body, Reason, Refusal, Stop};
use wavetap_base::entity::{ProgramPoint, Side};
use wavetap_base::error::Error;
use wavetap_profile::map::CounterMode;
use wavetap_profile::placement::{CounterPlacement, Placement};
use wavetap_profile::record::{HEADER, record_bytes};

/// What counting the lanes with which a wave begins costs, in additions at sites: the wave has to wait for the address
/// of its record, which it could do later. A guess.
const ENTRY_WEIGHT: f64 = 3.0;

/// Tries the strategies in order and returns the first that costs no occupancy, or what costs least of it.
pub(crate) fn cheapest(facts: &KernelFacts<'_, '_>, request: &Request) -> Result<Instrumented, Stop> {
    if let Some(what) = facts.needs.global_memory
        && request.mode != CounterMode::Global
    {
        return Err(Refusal::new(Reason::CounterMode, format!("{what} in global memory")).into());
    }
    if facts.needs.every_end {
        facts.uncopied.check_return(facts.analysis.program)?;
    }
    if request.mode == CounterMode::Register {
        if facts.needs.at_each_site {
            let detail = "what is measured at each site is not counted in registers";
            return Err(Refusal::new(Reason::CounterMode, detail).into());
        }
        return register::cheapest(facts, request, |planned| costs_too_much(request, planned));
    }
    if request.placement == CounterPlacement::Minimal
        && facts.needs.can_be_placed()
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
    record_bytes: u32,
) -> Result<(CounterMode, Box<dyn CounterSink>), Stop> {
    let global = || Box::new(GlobalSink { records, record_bytes });
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
    let KernelFacts { analysis, kernel, metadata, id, target, functions, needs, .. } = facts;
    let (program, target) = (analysis.program, *target);
    let record_bytes = record_bytes(placed.map_or(facts.table.counters(), |placed| placed.placement.kept));
    let records = RecordChoice::of(target, request.per_wave || needs.records, record_bytes);
    let (mode, sink) = sink(facts, request.mode, placed, records, record_bytes)?;
    let mut descriptor = kernel.descriptor;
    let scratch = if strategy == LAST_RESORT { ScratchAccess::of(target) } else { ScratchAccess::Given };
    let sets_flat_scratch = scratch == ScratchAccess::FlatScratch;
    let entry_needs = if needs.allocations { EntryNeeds::All } else { sink.entry_needs(records) };
    let entry = Entry::extend(target, &mut descriptor, entry_needs, scratch, facts.preload)?;
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
    if let (Some(detail), None) = (needs.unused_registers, reserved) {
        let reason = if strategy == VgprStrategy::Unused { Reason::ScalarRegisters } else { Reason::VectorRegisters };
        return Err(Refusal::new(reason, detail).into());
    }
    if placed.is_some() && reserved.is_none() {
        // Scavenged registers may be those that hold EXEC as it was: such kernels keep all their counters.
        let detail = "placed counters need scalar registers that no code uses";
        return Err(Refusal::new(Reason::ScalarRegisters, detail).into());
    }
    let held_exec = reserved.filter(|_| needs.narrows_exec).and_then(|_| free.take(2, 2).ok());
    let (mut lanes, mut counter_base, mut slots) = (None, None, None);
    let vectors = match strategy {
        VgprStrategy::Unused => {
            allocation.choose_vectors(needs.payload(), needs.payload() > 0 || facts.reads_at_sites())?
        }
        VgprStrategy::SpillLanes => {
            // What is spilled has to be found again: not both kinds of registers can be.
            if reserved.is_none() || allocation.used.indexed || !needs.allows_lane_spills() {
                let detail = "no vector registers are free, and none can be scavenged";
                return Err(Refusal::new(Reason::VectorRegisters, detail).into());
            }
            counter_base = if sink.has_base() { Some(free.take(1, 1)?) } else { None };
            // Whole pairs, as for the two that vector instructions read.
            let pairs = std::iter::from_fn(|| free.take(2, 2).ok()).flat_map(|first| [first, first + 1]);
            let slots = pairs.take(MOST_SLOTS).collect();
            lanes = Some(LaneBudget { slots, end: allocation.vgprs().min(NUMBERED_VGPRS.into()) as u16 });
            Vectors::behind_ids(target)
        }
        VgprStrategy::Spill(to) => {
            let vectors = spill_slots::choose(target, functions, facts.read_at_sites(), needs.payload())?;
            slots = Some(SpillSlots::find(to, &allocation, metadata, spill_slots::count(&vectors), &mut free)?);
            vectors
        }
    };
    let resource = slots.and_then(SpillSlots::resource);
    let own =
        OwnRegisters { target, vectors, reserved, counter_base, resource, held_exec, keeps_lanes: needs.keeps_lanes };
    let frame = Frame {
        own,
        spill_slots: slots,
        sets_flat_scratch,
        entry_lanes: placed.and_then(|placed| placed.entry_lanes).map(|offset| Counters { offset, count: 1 }),
        sink: &*sink,
        records,
        is_sampled: needs.records,
        checks_bounds: needs.allocations,
        // What is spilled between snippets does not keep what they change; flat addresses take scalar registers.
        counts_slots: needs.records && slots.is_none() && vectors.flat.is_none(),
        record_bytes,
        delays_wait: reserved.is_some()
            && entry_needs == EntryNeeds::Nothing
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
    let keeps = reserved.is_some() || resource.is_some();
    let sgprs = prologue_end.max(if keeps { free.end } else { 0 }).max(original_end);
    let vgprs = vectors.end();
    allocation.grow(&mut descriptor, sgprs, vgprs)?;
    let (agpr_count, private_segment) = match slots {
        None => (metadata.agpr_count, metadata.private_segment_fixed_size),
        Some(slots) => slots.allocate(&allocation, metadata, &mut descriptor, spill_slots::count(&vectors))?,
    };

    let end = allocation.sgprs().max(sgprs);
    let writer = Writer { facts, frame: &frame, placed };
    let reads_registers = reserved.is_none() || lanes.is_some() || facts.reads_at_sites();
    let mut inserts = Vec::new();
    for (number, (function, liveness)) in functions.iter().zip(facts.liveness(live_out)).enumerate() {
        let pending = if reads_registers { function.pending() } else { &[] };
        let assigned = (!pending.is_empty()).then(|| function.assigned(&entry.original_registers()));
        let scavenger =
            Scavenger { function, liveness, reserved, lanes: lanes.as_ref(), slots, pending, assigned, end };
        inserts.push(writer.insertions(number, &scavenger)?);
    }
    let code = PlannedCode {
        prologue,
        inserts,
        spare_scalar: reserved.map(|scalars| scalars.saved_scc),
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

/// What is written into the functions of a kernel.
struct Writer<'w> {
    facts: &'w KernelFacts<'w, 'w>,
    frame: &'w Frame<'w>,
    placed: Option<&'w PlacedRecord>,
}

impl Writer<'_> {
    /// A function's snippets, by their place: those of its sites, or of points with placed counters.
    fn insertions(&self, number: usize, scavenger: &Scavenger<'_>) -> Result<Vec<(ProgramPoint, Snippet)>, Stop> {
        let Writer { facts, frame, placed } = *self;
        let function: &ClonedFunction<'_> = scavenger.function;
        let probes = facts.probes(number);
        let mut inserts = Vec::new();
        let mut emitter = Emitter {
            frame,
            scavenger,
            table: &facts.table,
            counters: Counters { offset: HEADER, count: 0 },
            reads: RegSet::EMPTY,
            inserts: &mut inserts,
        };
        match placed {
            Some(placed) => {
                for here in placed.functions.get(number).into_iter().flatten() {
                    function.check_modes(here.point.inst)?;
                    emitter.counters = Counters { offset: here.offset, count: here.count };
                    emitter.count(here)?;
                }
            }
            None => {
                if number == 0 {
                    probes.iter().try_for_each(|probe| probe.at_entry(&mut emitter))?;
                }
                for placed in &function.sites {
                    function.check_modes(placed.site.inst)?;
                    let probe = probes.get(placed.probe).ok_or_else(|| Error::internal("a site has no probe"))?;
                    (emitter.counters, emitter.reads) = (placed.counters(), probe.reads(function, &placed.site));
                    probe.at_site(&placed.site, &mut emitter)?;
                }
                emitter.reads = RegSet::EMPTY;
            }
        }
        for end in function.ends() {
            function.check_modes(end)?;
            let point =
                ProgramPoint { inst: guards::place_before_end(function.body, &function.cfg, end), side: Side::Before };
            if placed.is_none() {
                probes.iter().try_for_each(|probe| probe.at_end(point, &mut emitter))?;
            }
            let (own, here) = scavenger.at_end(&frame.own, point)?;
            emitter.inserts.push((point, epilogue::epilogue(&Frame { own, ..*frame }, &here, point.inst != end)?));
        }
        in_order(function, frame.own.vectors.bank, facts.needs.narrows_exec, inserts)
    }
}
