//! Divides the workgroups of a dispatch among threads.
//!
//! Outside strict mode only, where everything that is random comes from one seed. What a kernel's result depends on
//! may then be the order of its workgroups, as on a GPU: of atomics that give tickets, say. Sums of floats by atomics
//! are kept from it: such a dispatch stays on one thread, so that its result is the same every time.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread;

use wavetap_amdgpu::{OpcodeFlags, Target};

use super::flight::{Flight, Helper, Share, Stage, TimedStage};
use crate::fault::findings::Findings;
use crate::fault::{Fault, FaultKind};
use crate::launch::options::Options;
use crate::launch::packet::{Dispatch, Origin};
use crate::memory::Memory;
use crate::run::code::Code;
use crate::run::paused::PausedWorker;
use crate::run::plan::Plan;
use crate::run::shared::{DispatchProgress, Shared};
use crate::run::worker::Worker;
use crate::shadow::global::GlobalRaces;
use crate::state::op::Op;
use crate::timing;
use crate::trace::DispatchStats;

/// Instructions that a dispatch executes on one thread before it is divided: to start threads for less is not worth it.
const ALONE: u64 = 50_000;

/// Begins a dispatch, whose packet and queue may lie in memory already.
pub(crate) fn begin(
    target: Target,
    options: &Options,
    memory: &mut Memory,
    clock: u64,
    dispatch: &Dispatch,
    origin: Origin,
) -> Result<Flight, Fault> {
    let plan = Plan::new(memory, target, options, dispatch, origin).map_err(|kind| Worker::outside(kind, [0; 3], 0))?;
    let lead = PausedWorker::new(options, &plan, clock, (0..plan.slots).rev().collect());
    let stage = if options.timing.is_some() {
        Stage::Timed(TimedStage::NotBegun(None))
    } else if options.strict || options.origins || threads(options) == 1 {
        Stage::Lead
    } else {
        Stage::Alone(ALONE)
    };
    Ok(Flight {
        plan,
        progress: DispatchProgress::new(options),
        lead: Some(lead),
        stage,
        others: Vec::new(),
        objects: 0,
        fuel: options.fuel,
    })
}

/// Runs a share of a dispatch; what it did once it has ended, and the clock. `helpers` has the code of other threads,
/// each decoded by itself.
pub(crate) fn advance(
    flight: &mut Flight,
    options: &Options,
    memory: &Memory,
    (code, helpers): (&mut Code, &mut Vec<Code>),
    (findings, races): (&mut Findings, &mut Option<Box<GlobalRaces>>),
    share: Share,
) -> Result<Option<(DispatchStats, u64)>, Fault> {
    let shared = Shared { plan: &flight.plan, options, memory, progress: &flight.progress, interrupt: share.interrupt };
    let ended = || Worker::outside(FaultKind::Setup { reason: "the dispatch has ended".into() }, [0; 3], 0);
    let mut lead = Worker::resume(&shared, code, flight.lead.take().ok_or_else(ended)?);
    let mut left = share.instructions;
    // Strict mode has one thread.
    std::mem::swap(&mut lead.findings, findings);
    std::mem::swap(&mut lead.races, races);
    let done = part(&shared, &mut lead, &mut flight.stage, (&mut flight.others, helpers), &mut left);
    std::mem::swap(&mut lead.findings, findings);
    std::mem::swap(&mut lead.races, races);
    if !done? {
        flight.lead = Some(lead.pause());
        return Ok(None);
    }
    let (mut stats, end) = lead.finish();
    for mut helper in flight.others.drain(..) {
        if let Some(paused) = helper.paused.take() {
            stats.merge(&Worker::resume(&shared, &mut helper.code, paused).finish().0);
        }
        helpers.push(helper.code);
    }
    Ok(Some((stats, end)))
}

/// Runs up to so many instructions; returns whether the dispatch has ended. When it turns out to be a long one, others
/// help.
fn part(
    shared: &Shared,
    lead: &mut Worker,
    stage: &mut Stage,
    (others, helpers): (&mut Vec<Helper>, &mut Vec<Code>),
    left: &mut u64,
) -> Result<bool, Fault> {
    match stage {
        Stage::Timed(stage) => {
            let Some(timing) = &shared.options.timing else { return lead.groups(left) };
            let model = match std::mem::replace(stage, TimedStage::NotBegun(None)) {
                TimedStage::Paused(model) => *model,
                TimedStage::NotBegun(kept) => timing::begin(lead, shared.plan, timing, kept.map(|kept| *kept))?,
                ended @ TimedStage::Ended(_) => {
                    *stage = ended;
                    return Ok(true);
                }
            };
            *stage = match timing::advance(lead, shared.plan, model, left)? {
                timing::Advanced::Paused(model) => TimedStage::Paused(model),
                timing::Advanced::Ended(kept) => TimedStage::Ended(kept),
            };
            return Ok(matches!(stage, TimedStage::Ended(_)));
        }
        Stage::Alone(alone) => {
            let given = (*left).min(*alone);
            let mut unused = given;
            let ended = lead.groups(&mut unused)?;
            *left -= given - unused;
            *alone -= given - unused;
            if ended || *alone > 0 {
                return Ok(ended);
            }
            *stage = divide(shared, lead, others, helpers);
        }
        Stage::Lead | Stage::Divided(_) => {}
    }
    match stage {
        Stage::Divided(ended) => divided(shared, (lead, ended), others, left),
        _ => lead.groups(left),
    }
}

/// Finds others that help, if there is something left for them.
fn divide(shared: &Shared, lead: &mut Worker, others: &mut Vec<Helper>, helpers: &mut Vec<Code>) -> Stage {
    let threads = threads(shared.options);
    let largest = shared.plan.waves_of([0; 3]) as usize;
    let places = lead.spare_places(largest);
    let helping = shared.left().min(threads as u64 - 1).min((places.len() / largest.max(1)) as u64) as usize;
    if helping == 0 || lead.executed(depends_on_order) {
        lead.take_places(places);
        return Stage::Lead;
    }
    let mut shares: Vec<Vec<usize>> = vec![Vec::new(); helping + 1];
    // By workgroups: all of them may have to run at once, and half a workgroup's places are of no use.
    for (n, places) in places.chunks(largest.max(1)).enumerate() {
        shares[n % (helping + 1)].extend_from_slice(places);
    }
    lead.take_places(shares.pop().unwrap_or_default());
    shared.gws().join(helping);
    others.extend(shares.into_iter().map(|places| Helper {
        code: helpers.pop().unwrap_or_else(|| lead.fork_code()),
        paused: Some(PausedWorker::new(shared.options, shared.plan, lead.clock(), places)),
        done: false,
    }));
    Stage::Divided(false)
}

/// All run a share at the same time.
fn divided(
    shared: &Shared,
    (lead, ended): (&mut Worker, &mut bool),
    others: &mut [Helper],
    left: &mut u64,
) -> Result<bool, Fault> {
    let instructions = *left;
    thread::scope(|scope| {
        let work = |helper: &mut Helper| -> Result<(), Fault> {
            let Some(paused) = helper.paused.take() else { return Ok(()) };
            let mut worker = Worker::resume(shared, &mut helper.code, paused);
            let result = worker.groups(&mut instructions.clone());
            helper.paused = Some(worker.pause());
            result.map(|done| helper.done = done)
        };
        let running: Vec<_> =
            others.iter_mut().filter(|helper| !helper.done).map(|helper| scope.spawn(move || work(helper))).collect();
        let mut fault = None;
        if !*ended {
            match lead.groups(left) {
                Ok(done) => *ended = done,
                Err(found) => fault = Some(found),
            }
        }
        for other in running {
            match other.join() {
                Ok(Ok(())) => {}
                // Of several faults the one of the first workgroup is reported.
                Ok(Err(found)) => {
                    fault =
                        fault.into_iter().chain([found]).min_by_key(|fault| [2, 1, 0].map(|axis| fault.workgroup[axis]))
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        fault.map_or(Ok(()), Err)
    })?;
    Ok(*ended && others.iter().all(|helper| helper.done))
}

/// Cores that this process may use. To find it out takes longer than a small dispatch.
static CORES: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));

fn threads(options: &Options) -> usize {
    match options.threads {
        0 => *CORES,
        given => given,
    }
}

/// Whether results of this instruction differ in the order in which workgroups execute it: sums of floats in memory
/// that they share.
fn depends_on_order(op: &Op) -> bool {
    op.inst.is_any(OpcodeFlags::FLOAT_SUM)
}
