//! A worker while others have their turn.

use std::ops::Range;
use std::time::Duration;

use super::code::Code;
use super::counts::OpCount;
use super::origins::OriginBook;
use super::plan::Plan;
use super::residency::WaitingGroups;
use super::schedule::Schedule;
use super::shared::Shared;
use super::worker::{Worker, Workgroup};
use crate::fault::findings::Findings;
use crate::launch::options::Options;
use crate::state::random::Random;
use crate::state::work::WorkRows;
use crate::trace::DispatchStats;

/// A [`Worker`] while others have their turn.
pub(crate) struct PausedWorker {
    clock: u64,
    random: Random,
    stats: DispatchStats,
    counts: Vec<OpCount>,
    counted: Range<usize>,
    origins: Option<OriginBook>,
    work: WorkRows,
    free: Vec<usize>,
    running: Vec<Workgroup>,
    window: Vec<[u32; 3]>,
    schedule: Schedule,
    waiting: WaitingGroups,
    wanted: usize,
    waited: u64,
    turn: (usize, u64),
    waits_since: Option<u64>,
}

impl PausedWorker {
    /// One that has done nothing yet.
    pub(crate) fn new(options: &Options, plan: &Plan, clock: u64, free: Vec<usize>) -> Self {
        let dispatch = &plan.dispatch;
        let schedule = Schedule::new(options, plan);
        PausedWorker {
            clock,
            random: Random::new(options.seed ^ dispatch.dispatch_id.rotate_left(32)),
            stats: DispatchStats::default(),
            counts: Vec::new(),
            counted: 0..0,
            origins: options.origins.then(OriginBook::new),
            work: WorkRows::default(),
            free,
            running: Vec::new(),
            window: Vec::new(),
            wanted: schedule.resident,
            schedule,
            waiting: WaitingGroups::default(),
            waited: 0,
            turn: (0, 0),
            waits_since: None,
        }
    }

    /// Its workgroups that have begun and not ended.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &Workgroup> {
        self.running.iter()
    }
}

impl<'a> Worker<'a> {
    /// Goes on where it was paused.
    pub(crate) fn resume(shared: &'a Shared<'a>, code: &'a mut Code, paused: PausedWorker) -> Self {
        let PausedWorker {
            clock,
            random,
            stats,
            mut counts,
            counted,
            origins,
            work,
            free,
            running,
            window,
            schedule,
            waiting,
            wanted,
            waited,
            turn,
            waits_since,
        } = paused;
        let memory = shared.memory.view_of_kernels(shared.options.strict);
        if counts.is_empty() {
            counts = std::mem::take(&mut code.pool.counts);
        }
        Worker {
            shared,
            memory,
            code,
            clock,
            random,
            stats,
            counts,
            counted,
            origins,
            findings: Findings::default(),
            races: None,
            work,
            free,
            running,
            window,
            schedule,
            waiting,
            wanted,
            waited,
            turn,
            waits_since,
            passed: 0,
            slept: Duration::ZERO,
            lines: None,
            unused_lines: Vec::new(),
        }
    }

    /// What it needs to go on later.
    pub(crate) fn pause(self) -> PausedWorker {
        let Worker {
            clock,
            random,
            stats,
            counts,
            counted,
            origins,
            work,
            free,
            running,
            window,
            schedule,
            waiting,
            wanted,
            waited,
            turn,
            waits_since,
            ..
        } = self;
        PausedWorker {
            clock,
            random,
            stats,
            counts,
            counted,
            origins,
            work,
            free,
            running,
            window,
            schedule,
            waiting,
            wanted,
            waited,
            turn,
            waits_since,
        }
    }
}
