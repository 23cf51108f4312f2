//! Divides the workgroups of a dispatch among threads.
//!
//! Outside the strict mode only, where everything that is random comes from one seed. What a kernel's result depends on may then be the order of its
//! workgroups, as on a GPU: of atomics that give tickets, say. Sums of floats by atomics are kept from it: such a dispatch stays on one thread, so that its
//! result is the same every time.

use std::num::NonZero;
use std::thread;

use super::Options;
use super::code::Code;
use super::dispatch::{Dispatch, Plan};
use super::fault::Fault;
use super::findings::Findings;
use super::memory::Memory;
use super::op::Op;
use super::run::{Shared, Worker};
use super::timing;
use super::trace::DispatchStats;
use crate::isa::Target;

/// Instructions that a dispatch executes on one thread before it is divided: to start threads for less is not worth it.
const ALONE: u64 = 50_000;

/// Runs a dispatch to its end. `helpers` has the code of the other threads, each decoded by itself.
pub(super) fn run(
    (target, options): (Target, &Options),
    memory: &mut Memory,
    (code, helpers): (&mut Code, &mut Vec<Code>),
    (clock, findings): (&mut u64, &mut Findings),
    dispatch: &Dispatch,
) -> Result<DispatchStats, Fault> {
    let plan = Plan::new(memory, target, options, dispatch).map_err(|kind| Worker::outside(kind, [0; 3], 0))?;
    let shared = Shared::new(&plan, options, memory);
    let mut lead = Worker::new(&shared, code, *clock, (0..plan.slots).rev().collect());
    // The strict mode has one thread.
    std::mem::swap(&mut lead.findings, findings);
    let result = match &options.timing {
        Some(timing) => timing::groups(&mut lead, &plan, timing).map(|()| Vec::new()),
        None => divided(&shared, &mut lead, helpers),
    };
    std::mem::swap(&mut lead.findings, findings);
    let (mut stats, end) = lead.finish();
    *clock = end;
    let result = result.map(|others| {
        others.into_iter().for_each(|other| stats.merge(&other));
        stats
    });
    plan.release(memory);
    result
}

/// The lead runs; when the dispatch turns out to be a long one, others help. Gives what they did.
fn divided(shared: &Shared, lead: &mut Worker, helpers: &mut Vec<Code>) -> Result<Vec<DispatchStats>, Fault> {
    let threads = if shared.options.strict || shared.options.origins { 1 } else { threads(shared.options) };
    if threads == 1 {
        return lead.groups(u64::MAX).map(|_| Vec::new());
    }
    let done = lead.groups(ALONE)?;
    let largest = shared.plan.waves_of([0; 3]) as usize;
    let places = lead.spare_places(largest);
    let helping = shared.left().min(threads as u64 - 1).min((places.len() / largest.max(1)) as u64) as usize;
    if done || helping == 0 || lead.executed(depends_on_order) {
        lead.take_places(places);
        return lead.groups(u64::MAX).map(|_| Vec::new());
    }
    while helpers.len() < helping {
        helpers.push(lead.fork_code());
    }
    let clock = lead.clock();
    let mut shares: Vec<Vec<usize>> = vec![Vec::new(); helping + 1];
    places.into_iter().enumerate().for_each(|(n, place)| shares[n % (helping + 1)].push(place));
    lead.take_places(shares.pop().unwrap_or_default());
    shared.gws().join(helping);
    thread::scope(|scope| {
        let work = |(code, places)| {
            scope.spawn(move || {
                let mut worker = Worker::new(shared, code, clock, places);
                worker.groups(u64::MAX).map(|_| worker.finish().0)
            })
        };
        let others: Vec<_> = helpers.iter_mut().zip(shares).map(work).collect();
        let mine = lead.groups(u64::MAX);
        let mut stats = Vec::new();
        let mut fault = mine.err();
        for other in others {
            match other.join() {
                Ok(Ok(done)) => stats.push(done),
                // Of several faults the one of the first workgroup is told.
                Ok(Err(found)) => fault = fault.into_iter().chain([found]).min_by_key(|fault| [2, 1, 0].map(|axis| fault.workgroup[axis])),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        fault.map_or(Ok(stats), Err)
    })
}

fn threads(options: &Options) -> usize {
    match options.threads {
        0 => thread::available_parallelism().map_or(1, NonZero::get),
        given => given,
    }
}

/// Whether results of this instruction differ in the order in which workgroups execute it: sums of floats in memory that they share.
fn depends_on_order(op: &Op) -> bool {
    let name = op.inst.variant.name;
    name.contains("atomic") && ["add_f", "fadd", "pk_add"].iter().any(|sum| name.contains(sum))
}
