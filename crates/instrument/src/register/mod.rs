//! Counters in registers: those from which all others follow ([`crate::placement`]) are kept in scalar registers that
//! no code of the kernel names, or in lanes of such vector registers, and are added to memory when the wave ends.
//!
//! Nothing asks in between whether anything is counted: an addition costs less than that. At its end a wave adds its
//! counters to one of a few records, by where on the machine it runs, so that waves seldom meet at one address.

mod code;
mod locations;

use crate::facts::KernelFacts;
use crate::frame::entry::Entry;
use crate::frame::first_vector;
use crate::function::ClonedFunction;
use crate::guards;
use crate::instrumented::{Instrumented, Request};
use crate::placement::{Job, PlacedCounters, jobs};
use crate::planned::{PlannedCode, in_order};
use crate::scavenge::LiveOut;
use crate::scavenge::registers::{Allocation, ScalarPool};
use crate::scavenge::scalars::{Place, Scavenged};
use code::{RegisterFrame, Reserved, Temporaries};
use locations::CounterLocations;
use wavetap_amdgpu::Reg;
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::edit::Snippet;
use wavetap_analysis::kernel::{Body, Reason, Refusal, Stop};
use wavetap_base::entity::{InstId, ProgramPoint, Side};
use wavetap_base::error::Error;
use wavetap_profile::map::VectorSource;
use wavetap_profile::record::HEADER;

/// Which registers may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// Those that let as many waves run as the kernel's own registers do.
    WithoutLoss,
    /// Any that are free.
    Any,
}

/// Plans counters in registers: in those alone that cost no occupancy, or in whatever is free.
pub(crate) fn cheapest(
    facts: &KernelFacts<'_, '_>,
    request: &Request,
    costs_too_much: impl Fn(&Instrumented) -> Option<Refusal>,
) -> Result<Instrumented, Stop> {
    facts.uncopied.check_return(facts.analysis.program)?;
    let placed = PlacedCounters::of(facts, request.placement)?;
    let without_loss = match plan(facts, request, &placed, Room::WithoutLoss) {
        Err(Stop::Refused(refusal)) => refusal,
        planned => return planned,
    };
    let planned = plan(facts, request, &placed, Room::Any)?;
    match costs_too_much(&planned) {
        Some(Refusal { reason, detail, address }) => {
            let detail = format!("{detail}; without a loss, {}", without_loss.detail);
            Err(Refusal { reason, detail, address }.into())
        }
        None => Ok(planned),
    }
}

fn plan(
    facts: &KernelFacts<'_, '_>,
    request: &Request,
    placed: &PlacedCounters,
    room: Room,
) -> Result<Instrumented, Stop> {
    let KernelFacts { analysis, kernel, metadata, target, functions, .. } = facts;
    let target = *target;
    let mut descriptor = kernel.descriptor;
    let entry = Entry::keep(target, &mut descriptor, facts.preload)?;
    let allocation = Allocation {
        target,
        descriptor: &kernel.descriptor,
        used: facts.used,
        accum: metadata.agpr_count,
        bounded_calls: facts.has_bounded_calls,
        keeps_flat_scratch: false,
        most_vgprs: facts.most_vgprs(),
    };
    allocation.check_names()?;
    let (scalars_end, vectors_end) = match room {
        Room::WithoutLoss => allocation.ends_without_loss(),
        Room::Any => (target.addressable_sgprs(), allocation.end_of_vectors()),
    };
    let mut free = allocation.free_scalars_below(entry.scalars(), scalars_end);
    let measures = placed.values.needed(&placed.counters);
    let reserved = {
        let mut attempt = free.clone();
        let reserved = Reserved::take(|count, align| attempt.take(count, align)).ok();
        reserved.filter(|_| !analysis.always_scavenge).inspect(|_| free = attempt)
    };
    // Where too few scalar registers are unused, every snippet scavenges some.
    let spills = if reserved.is_none() { allocation.free_vector(&RegSet::EMPTY, vectors_end) } else { None };
    let taken: RegSet = spills.map(|register| Reg::vector(register, 1)).into_iter().collect();
    let locations = CounterLocations::find(target, &measures, &allocation, &mut free, (taken, vectors_end))?;
    let frame = RegisterFrame { target, control: request.control, reserved, spills, locations };
    let own = frame.own();
    let is_own = |number: u16| own.contains(Reg::scalar(number, 1));
    let missing = || Error::internal("a counter has no place");
    let placement = placed
        .values
        .placement(&placed.counters, frame.locations.kept(), frame.slots(), |measure| frame.locations.counters(measure))
        .ok_or_else(missing)?;
    let record_bytes = placement.record_bytes();

    let end = allocation.sgprs().max(free.end);
    let mut sgprs = free.end;
    let at_entry = match reserved {
        Some(reserved) => reserved.temporaries,
        None => {
            let mut pool = ScalarPool::new(target, entry.scalars(), is_own);
            let registers = Temporaries::take(|count, align| pool.take(count, align))?;
            sgprs = sgprs.max(pool.end);
            registers
        }
    };
    let first = first_vector::sequence(functions[0].body, &entry)?;
    sgprs = sgprs.max(first_vector::end_of_scalars(target, &first));
    let prologue = frame.prologue(first, at_entry, &entry)?;
    let mut vgprs = frame.vectors_end();
    let mut inserts = Vec::new();
    let bodies: Vec<&Body> = functions.iter().map(|function| function.body).collect();
    for ((function, jobs), liveness) in functions.iter().zip(jobs(&bodies, &measures)).zip(facts.liveness(LiveOut::All))
    {
        let mut snippets: Vec<(ProgramPoint, Snippet)> = Vec::new();
        for (point, todo) in jobs {
            function.check_modes(point.inst)?;
            let live = liveness.at(point);
            let scavenged = match reserved {
                Some(Reserved { temporaries: registers, .. }) => Scavenged { registers, live: Vec::new(), wait: false },
                None => {
                    let pending = function.pending().get(point.inst.index()).unwrap_or(&RegSet::EMPTY);
                    let assigned = function.assigned(&entry.original_registers());
                    let assigned = &assigned.at(function.body, &function.cfg, point);
                    let place = Place { end, live, assigned, pending, taken: &own };
                    scavenge(function, point, place, &todo)?
                }
            };
            let keeps_scc = live.overlaps(Reg::SCC);
            snippets.push((point, frame.snippet(&todo, function.body, keeps_scc, &scavenged)?));
        }
        for end in function.ends() {
            function.check_modes(end)?;
            let inst = guards::place_before_end(function.body, &function.cfg, end);
            let pending = function.pending().get(inst.index()).copied().unwrap_or_default();
            let registers = match reserved {
                Some(reserved) => reserved,
                // Nothing needs what the original has there any more.
                None => {
                    let accessed = accessed(function, inst);
                    let taken = |number| is_own(number) || accessed.overlaps(Reg::scalar(number, 1));
                    let mut pool = ScalarPool::new(target, 0, taken);
                    let registers = Reserved::take(|count, align| pool.take(count, align))?;
                    sgprs = sgprs.max(pool.end);
                    registers
                }
            };
            let (snippet, end_of_vectors) =
                frame.epilogue(&pending, function.slow_results(), record_bytes, inst != end, registers)?;
            vgprs = vgprs.max(end_of_vectors);
            snippets.push((ProgramPoint { inst, side: Side::Before }, snippet));
        }
        // What is counted before an end is counted before the epilogue.
        inserts.push(in_order(function, 0, false, snippets)?);
    }
    allocation.grow(&mut descriptor, sgprs, vgprs)?;
    let code = PlannedCode {
        prologue,
        inserts,
        spare_scalar: frame.spare(),
        descriptor,
        sgprs,
        vgprs,
        agpr_count: metadata.agpr_count,
        private_segment: metadata.private_segment_fixed_size,
        lds_bytes: 0,
        mode: request.mode,
        record_bytes: HEADER,
        vector_registers: VectorSource::default(),
        placement: Some(placement),
        slots: None,
    };
    code.finish(facts, &allocation)
}

/// What an instruction reads and writes.
fn accessed(function: &ClonedFunction<'_>, inst: InstId) -> RegSet {
    function.body.reads(inst).chain(function.body.writes(inst)).collect()
}

/// Scavenges the scalar registers of a snippet.
fn scavenge(
    function: &ClonedFunction<'_>,
    point: ProgramPoint,
    place: Place<'_>,
    jobs: &[Job],
) -> Result<Scavenged<Temporaries>, Refusal> {
    let taken = accessed(function, point.inst).union(*place.taken);
    let place = Place { taken: &taken, ..place };
    let address = Some(function.body.address(point.inst));
    let found = place.scavenge(|take| Temporaries::take(take)).map_err(|refusal| Refusal { address, ..refusal })?;
    // What is saved goes to a lane at once.
    let needs_none = jobs.iter().all(|job| *job == Job::SaveExec);
    Ok(if needs_none { Scavenged { live: Vec::new(), wait: false, ..found } } else { found })
}

/// The refusal of a kernel that has too few registers for its counters.
fn too_few(counters: usize, lanes: usize) -> Refusal {
    let detail = format!(
        "{counters} counters are kept, {lanes} of them find neither a free scalar register nor a lane of a free vector \
            register"
    );
    Refusal::new(Reason::ScalarRegisters, detail)
}
