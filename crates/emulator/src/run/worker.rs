//! Runs the workgroups of a dispatch: scheduling, barriers, fuel, counting.

use std::ops::Range;
use std::time::Duration;

use smallvec::SmallVec;

use wavetap_amdgpu::{Target, print};
use wavetap_profile::probes::branches::ScalarCounts;

use super::accesses::{WarmLine, note_accesses, note_lines};
use super::clock_loops;
use super::code::Code;
use super::counts::{OpCount, executed_ops, tally};
use super::origins::OriginBook;
use super::plan::Plan;
use super::residency::WaitingGroups;
use super::schedule::Schedule;
use super::shared::Shared;
use super::straight_line::run_straight_line;
use crate::address::{CodeAddress, ObjectId};
use crate::fault::findings::Findings;
use crate::fault::stop::Stop;
use crate::fault::{Fault, FaultKind};
use crate::memory::View;
use crate::op::Site;
use crate::shadow::global::GlobalRaces;
use crate::state::barrier::Barrier;
use crate::state::core::Core;
use crate::state::op::Op;
use crate::state::random::Random;
use crate::state::wave::{Status, Wave};
use crate::state::work::WorkRows;
use crate::strict::{self, store_order};
use crate::trace::origins::WaveOrigins;
use crate::trace::{DispatchStats, Trace};

/// Instructions a wave runs before another has its turn, where nothing is random.
const QUANTUM: u64 = 20_000;
/// Instructions without a workgroup getting done, after which one more is let in: it may be waited for.
const PATIENCE: u64 = 200_000;
/// What it takes of a share of instructions to find that a workgroup waits.
const WAITED: u64 = 100;
/// Instructions that a thread executes in a microsecond, about.
const PER_MICROSECOND: u64 = 100;
/// Instructions of a share that are executed before an interrupt ends it: a caller that polls for the end must not
/// keep it from that.
const LEAST: u64 = 20_000;

/// A workgroup that is running.
pub(crate) struct Workgroup {
    /// How many the worker had begun with it.
    pub number: u64,
    pub lds: Vec<u8>,
    pub waves: Vec<Wave>,
    pub barrier: Barrier,
}

/// What runs workgroups of a dispatch: one for each thread.
pub(crate) struct Worker<'a> {
    pub shared: &'a Shared<'a>,
    pub memory: View<'a>,
    pub code: &'a mut Code,
    /// Ticks of the shader clock.
    pub clock: u64,
    pub random: Random,
    pub stats: DispatchStats,
    /// By instruction.
    pub(super) counts: Vec<OpCount>,
    /// Those that are not zero are among these.
    pub(super) counted: Range<usize>,
    pub(super) origins: Option<OriginBook>,
    pub findings: Findings,
    /// The accesses of global memory, where races there are checked.
    pub races: Option<Box<GlobalRaces>>,
    pub work: WorkRows,
    /// Places for waves that are not taken.
    pub free: Vec<usize>,
    pub(super) running: Vec<Workgroup>,
    /// Workgroups of which one is begun next.
    pub(super) window: Vec<[u32; 3]>,
    /// In which order they begin and run, where that is chosen at random.
    pub(super) schedule: Schedule,
    /// Workgroups that wait for others.
    pub(super) waiting: WaitingGroups,
    /// Workgroups that run side by side.
    pub(super) wanted: usize,
    /// Instructions since a workgroup was begun or got done.
    pub(super) waited: u64,
    /// Which workgroup's turn it is, and the instructions that it has executed of it, where nothing is random.
    pub(super) turn: (usize, u64),
    /// When it was found that all its workgroups wait for those of others, in releases by global wave sync.
    pub(super) waits_since: Option<u64>,
    /// Ticks that the last instruction made pass, which waits for a clock.
    pub(crate) passed: u64,
    /// How long it slept, for a wave that waits for a clock, and no share was charged for yet.
    pub(super) slept: Duration,
    /// The lines that are accessed, where they are noted.
    pub(super) lines: Option<Vec<WarmLine>>,
    /// A list for them.
    pub(super) unused_lines: Vec<WarmLine>,
}

/// Where a wave was when it was stopped.
pub(crate) struct Stopped {
    pub stop: Stop,
    pub op: Option<usize>,
    pub pc: u64,
}

impl<'a> Worker<'a> {
    /// Adds the executions in runs to the others.
    fn settle(&mut self) {
        let mut running = 0;
        for count in self.counts.get_mut(self.counted.clone()).unwrap_or_default() {
            running += std::mem::take(&mut count.begun);
            count.executed += running as u64;
        }
    }

    /// What was done: totals, and the ticks of the clock.
    pub(crate) fn finish(mut self) -> (DispatchStats, u64) {
        self.settle();
        for (op, count) in executed_ops(self.code, &self.counts, &self.counted) {
            self.stats.add(op.class, count.executed);
        }
        if self.shared.options.trace {
            self.stats.trace = Some(self.trace());
        }
        self.counts.get_mut(self.counted.clone()).unwrap_or_default().fill(OpCount::default());
        self.code.pool.counts = std::mem::take(&mut self.counts);
        self.stats.origins = self.origins.take().map(|book| Box::new(book.finish(self.code)));
        (self.stats, self.clock)
    }

    pub(crate) fn clock(&self) -> u64 {
        self.clock
    }

    /// Whether it slept since the last call. A share of instructions is charged for that with as many as would have
    /// been executed meanwhile.
    pub(crate) fn charge_sleep(&mut self, instructions: &mut u64) -> bool {
        let slept = std::mem::take(&mut self.slept);
        if slept.is_zero() {
            return false;
        }
        let charge = u64::try_from(slept.as_micros()).unwrap_or(u64::MAX).saturating_mul(PER_MICROSECOND);
        *instructions = instructions.saturating_sub(charge);
        true
    }

    /// Whether an instruction of this kind was executed.
    pub(crate) fn executed(&mut self, is: impl Fn(&Op) -> bool) -> bool {
        self.settle();
        executed_ops(self.code, &self.counts, &self.counted).any(|(op, count)| count.executed > 0 && is(op))
    }

    /// A fault before any instruction.
    pub(crate) fn outside(kind: FaultKind, workgroup: [u32; 3], wave: u32) -> Fault {
        Fault { kind, object: None, address: 0, instruction: "".into(), lane: None, workgroup, wave }
    }

    /// Runs workgroups until none is left, so many instructions have been executed, or others are to have their turn;
    /// returns whether none is left.
    pub(crate) fn groups(&mut self, instructions: &mut u64) -> Result<bool, Fault> {
        let result = self.some_groups(instructions);
        if result.is_err() {
            self.shared.fail();
        }
        result
    }

    fn some_groups(&mut self, instructions: &mut u64) -> Result<bool, Fault> {
        let (plan, strict) = (self.shared.plan, self.shared.options.strict);
        let (mut interrupted, mut share) = (false, 0);
        loop {
            while self.running.len() < self.wanted {
                // Without room for it a workgroup is left to others, who may have some: all that run may wait for it.
                let has_room = self.running.is_empty() || self.free.len() >= plan.waves_of([0; 3]) as usize;
                while has_room && self.window.len() < self.schedule.window {
                    match self.shared.next() {
                        Some(id) => self.window.push(id),
                        None => break,
                    }
                }
                let Some(&first) = self.window.first() else { break };
                if self.free.len() < plan.waves_of(first) as usize && !self.running.is_empty() {
                    break;
                }
                let at = match () {
                    () if !strict => 0,
                    () if self.waiting.in_order => self.first_of_window(),
                    () => self.schedule.begins(self.window.len(), &mut self.random),
                };
                let id = self.window.remove(at);
                let group = self.start(plan, id)?;
                self.running.push(group);
                self.waited = 0;
            }
            if self.running.is_empty() || self.shared.failed() {
                self.shared.gws().leave();
                return Ok(true);
            }
            if *instructions == 0 || interrupted {
                return Ok(false);
            }
            let count = self.running.len();
            let at = if strict {
                let any = self.schedule.runs(count, &mut self.random);
                self.next_that_goes_on(any)
            } else {
                self.turn.0 % count
            };
            let mut group = self.running.swap_remove(at);
            self.before_turn();
            let executed = self.turn(plan, &mut group)?;
            self.after_turn(&group);
            self.waited += executed;
            self.turn.1 += executed;
            if executed == 0 || self.turn.1 >= QUANTUM {
                self.turn = (at + 1, 0);
            }
            *instructions = instructions.saturating_sub(executed);
            if group.waves.iter().all(|wave| wave.status == Status::Ended) {
                self.end(group);
                (self.waited, self.waiting.try_again) = (0, false);
            } else {
                self.running.push(group);
                let last = self.running.len() - 1;
                self.running.swap(at, last);
            }
            if executed == 0 {
                self.others_first()?;
                self.one_waits();
                // Who is waited for may have its turn only when this one's ends.
                *instructions = instructions.saturating_sub(WAITED);
            }
            share += executed;
            interrupted = (self.charge_sleep(instructions) || share >= LEAST) && self.shared.interrupted();
            if self.waited > PATIENCE {
                self.wanted += 1;
                self.waited = 0;
            }
        }
    }

    pub(crate) fn start(&mut self, plan: &Plan, id: [u32; 3]) -> Result<Workgroup, Fault> {
        let pool = &mut self.code.pool;
        let mut lds = pool.lds(plan.launch.lds_allocated() as usize);
        let options = self.shared.options;
        // Where orders are compared a workgroup begins with the same in each.
        let mut own = options.schedule.map(|_| {
            let number = plan.number_of(id).rotate_left(16);
            Random::new(options.seed ^ plan.dispatch.dispatch_id.rotate_left(32) ^ number)
        });
        let random = own.as_mut().unwrap_or(&mut self.random);
        if options.strict {
            lds.chunks_mut(8).for_each(|chunk| {
                let bits = random.next().to_le_bytes();
                chunk.copy_from_slice(&bits[..chunk.len()]);
            });
        }
        let mut waves = if options.strict { Vec::new() } else { pool.waves() };
        for index in 0..plan.waves_of(id) {
            let Some(slot) = self.free.pop() else {
                return Err(Self::outside(
                    FaultKind::Setup { reason: "no room for the waves of a workgroup".into() },
                    id,
                    index,
                ));
            };
            if waves.len() <= index as usize {
                waves.push(plan.blank());
            }
            let wave = &mut waves[index as usize];
            let parts = (&mut *random, &mut self.code.pool);
            plan.begin(wave, &self.memory, parts, id, (index, slot)).map_err(|kind| Self::outside(kind, id, index))?;
            wave.origins = self.origins.is_some().then(|| Box::new(WaveOrigins::new(wave.vgpr.len(), wave.agpr.len())));
            self.stats.waves += 1;
        }
        waves.truncate(plan.waves_of(id) as usize);
        let mut barrier = Barrier { members: waves.len() as u32, ..Barrier::default() };
        barrier.checks.sites.begin(barrier.members);
        // In modelled time nothing is checked.
        if let Some(races) = self.races.as_mut().filter(|_| self.shared.options.timing.is_none()) {
            barrier.checks.group = races.order.start(plan.number, id, waves.len());
        }
        Ok(Workgroup { number: self.waiting.begin(), lds, waves, barrier })
    }

    /// A workgroup has ended.
    pub(crate) fn end(&mut self, group: Workgroup) {
        self.free.extend(group.waves.iter().map(|wave| wave.group));
        if let (Some(races), Some(group)) = (&mut self.races, group.barrier.checks.group) {
            races.order.end(group);
        }
        if !self.shared.options.strict {
            self.code.pool.take(group);
        }
        self.stats.workgroups += 1;
    }

    /// One wave of a group runs for a while, its time not being modelled; returns the instructions that it ran, and the
    /// lines of memory that it accessed.
    pub(crate) fn turn_unmodelled(
        &mut self,
        plan: &Plan,
        group: &mut Workgroup,
    ) -> Result<(u64, Vec<WarmLine>), Fault> {
        self.lines = Some(std::mem::take(&mut self.unused_lines));
        let executed = self.turn(plan, group);
        let lines = self.lines.take().unwrap_or_default();
        Ok((executed?, lines))
    }

    /// Takes the list back.
    pub(crate) fn take_lines(&mut self, mut lines: Vec<WarmLine>) {
        lines.clear();
        self.unused_lines = lines;
    }

    /// How often each instruction was executed, by its index.
    pub(crate) fn executions(&mut self) -> Vec<u64> {
        self.settle();
        let mut all = vec![0; self.counted.end];
        for at in self.counted.clone() {
            all[at] = self.counts.get(at).map_or(0, |count| count.executed);
        }
        all
    }

    /// One wave of a group runs for a while; returns the instructions it ran.
    fn turn(&mut self, plan: &Plan, group: &mut Workgroup) -> Result<u64, Fault> {
        for wave in &mut group.waves {
            self.at_gws(plan, wave, group.barrier.checks.group);
            if wave.status == Status::AtSplitBarrier && group.barrier.phase != wave.signalled {
                strict::passes(&mut group.barrier, wave, self.races.as_deref_mut());
                wave.status = Status::Running;
            }
        }
        if self.is_waiting(group) {
            return Ok(0);
        }
        let mut ready: SmallVec<[usize; 32]> = SmallVec::new();
        let goes_on = |wave: &Wave| wave.status == Status::Running && !self.waits(wave);
        ready.extend((0..group.waves.len()).filter(|&n| goes_on(&group.waves[n])));
        if ready.is_empty() {
            // Every wave yields, waits at the barrier or has ended: yielding waves go on first.
            let yielding = group.waves.iter().any(|wave| wave.status == Status::Yielding);
            if !yielding && group.waves.iter().any(|wave| wave.status == Status::AtGws) {
                return Ok(0);
            }
            let from = if yielding { Status::Yielding } else { Status::AtBarrier };
            for (n, wave) in group.waves.iter_mut().enumerate() {
                if wave.status == from && !self.waits(wave) {
                    wave.status = Status::Running;
                    ready.push(n);
                }
            }
            if self.shared.options.strict && !yielding && !ready.is_empty() {
                let races = self.races.as_deref_mut();
                strict::at_barrier(&mut group.barrier, &mut group.waves, &plan.launch, races);
            }
        }
        let Some(&first) = ready.first() else {
            let Some(wave) = group.waves.iter().find(|wave| wave.status == Status::AtSplitBarrier) else {
                return Ok(0);
            };
            let kind =
                FaultKind::Undefined { what: "every wave waits at a barrier that not all have signalled".into() };
            return Err(self.fault(Stopped { stop: Stop { kind, lane: None }, op: None, pc: wave.pc }, wave));
        };
        let (at, quantum) = if self.shared.options.strict {
            let quantum = self.schedule.turn(&mut self.random);
            (ready[self.schedule.runs(ready.len(), &mut self.random)], quantum)
        } else {
            (first, QUANTUM)
        };
        let shared = store_order::is_shared(&plan.launch, group.waves.len());
        if shared {
            group.barrier.hold_stores_of_others(&mut group.waves, at);
        }
        let wave = &mut group.waves[at];
        let given = self.shared.take_fuel(quantum);
        let mut fuel = given;
        let ran = self.wave(plan, wave, &mut group.lds, &mut group.barrier, quantum, &mut fuel);
        self.shared.give_fuel(fuel);
        ran.map_err(|stopped| self.fault(self.explained(*stopped, wave), wave))?;
        self.at_gws(plan, wave, group.barrier.checks.group);
        if shared {
            group.barrier.return_stores_to_others(&mut group.waves, at);
        }
        let wave = &group.waves[at];
        // A wave that ran out of its turn makes room for the others even where nothing is random.
        if wave.status == Status::Running && !self.shared.options.strict && group.waves.len() > 1 {
            group.waves[at].status = Status::Yielding;
        }
        Ok(given - fuel)
    }

    pub(crate) fn wave(
        &mut self,
        plan: &Plan,
        wave: &mut Wave,
        lds: &mut [u8],
        barrier: &mut Barrier,
        quantum: u64,
        fuel: &mut u64,
    ) -> Result<(), Box<Stopped>> {
        let Worker {
            shared, memory, code, clock, random, stats, counts, counted, origins, findings, work, races, ..
        } = self;
        let (passed, slept, lines) = (&mut self.passed, &mut self.slept, &mut self.lines);
        let options = shared.options;
        let launch = &plan.launch;
        let races = races.as_deref_mut();
        let mut core = Core { memory, lds, wave, launch, random, stats, clock, barrier, work, races };
        // The place of the next instruction if the last one is followed by it: code is mostly decoded in the order in
        // which it runs.
        let mut next = usize::MAX;
        let watches = !options.watched.is_empty();
        let notes = options.accesses > 0 || lines.is_some();
        let one_by_one = launch.strict || origins.is_some() || options.trace_lanes || notes || watches;
        let mut left = quantum;
        while left > 0 {
            let pc = core.wave.pc;
            let stopped =
                |kind: FaultKind, op: Option<usize>| Box::new(Stopped { stop: Stop { kind, lane: None }, op, pc });
            if *fuel == 0 {
                return Err(stopped(FaultKind::OutOfFuel, None));
            }
            let index = match code.ops.get(next) {
                Some(op)
                    if op.pc == pc
                        && op.inst.wave_size as usize == launch.lanes
                        && op.vgpr_msb == core.wave.vgpr_msb =>
                {
                    next
                }
                _ => code.at(pc, core.wave.vgpr_msb, launch.target, core.memory).map_err(|kind| stopped(kind, None))?,
            };
            if counts.len() <= code.ops.len() {
                counts.resize(code.ops.len() + 1, OpCount::default());
            }
            *counted = if counted.start == counted.end {
                index..index + 1
            } else {
                counted.start.min(index)..counted.end.max(index + 1)
            };
            let op = &code.ops[index];
            if op.straight_line > 1 && !one_by_one && !core.skips_vectors() {
                let block = &code.ops[index..][..(op.straight_line as usize).min(left.min(*fuel) as usize)];
                let (done, result) = run_straight_line(&mut core, block);
                next = index + done;
                counts[index].begun += 1;
                counts[next].begun -= 1;
                counted.end = counted.end.max(next + 1);
                *fuel -= done as u64;
                left -= done as u64;
                *core.clock += 4 * done as u64;
                if let Err(stop) = result {
                    return Err(Box::new(Stopped { stop: *stop, op: Some(next), pc: code.ops[next].pc }));
                }
                continue;
            }
            next = index + 1;
            left -= 1;
            *fuel -= 1;
            *core.clock += 4;
            core.wave.pc = op.next;
            if core.skips_vectors() && op.is_vector() {
                continue;
            }
            if launch.strict {
                core.wave.checks.at = op.address;
                let checked = core.wave.hazards.check_clause(op);
                let checked = core.passed(checked).and_then(|()| strict::before(&mut core, op));
                checked.map_err(|stop| Box::new(Stopped { stop: *stop, op: Some(index), pc }))?;
            }
            let before = if op.site == Site::Exec || options.trace_lanes { core.wave.exec() } else { 0 };
            core.wave.jumped = false;
            if let Some(book) = origins {
                book.before(core.wave, op, index);
            }
            if watches && options.watched.contains(&op.address) {
                core.note_visit(op);
            }
            if options.accesses > 0 {
                note_accesses(&mut core, op, options.accesses);
            }
            if let Some(lines) = lines {
                note_lines(&mut core, op, lines);
            }
            if let Err(stop) = (op.run)(&mut core, op) {
                return Err(Box::new(Stopped { stop: *stop, op: Some(index), pc }));
            }
            core.note_overrun(op);
            if let Some(book) = origins {
                book.after(core.wave, op, index);
            }
            if launch.strict {
                core.wave.hazards.advance(u64::from(op.slots));
                strict::after(&mut core, op).map_err(|stop| Box::new(Stopped { stop: *stop, op: Some(index), pc }))?;
            }
            if launch.strict && core.wave.checks.has_found() {
                let (mut found, place) = (core.wave.checks.take_found(), code.place(pc));
                found.retain(|stop| !findings.again(place, &stop.kind));
                let found = found.into_iter();
                let found =
                    found.map(|stop| fault(code, launch.target, Stopped { stop, op: Some(index), pc }, core.wave));
                findings.add_all(found.collect(), &launch.passes);
            }
            counts[index].executed += 1;
            if std::mem::take(&mut core.wave.checks.pauses) {
                left = 0;
            }
            if options.trace && (op.site != Site::None || options.trace_lanes) {
                tally(&mut counts[index], op, core.wave, before);
            }
            if op.reads_clock {
                let place = (&mut *core.wave, core.memory, launch);
                if let Some(advance) = clock_loops::after_read(code, index, place, *core.clock, || shared.waits_since())
                {
                    (*passed, *core.clock) = (advance.ticks, *core.clock + advance.ticks);
                    if !advance.sleep.is_zero() {
                        std::thread::sleep(advance.sleep);
                        *slept += advance.sleep;
                        left = 0;
                    }
                }
            }
            if core.wave.status != Status::Running {
                if core.wave.status == Status::Ended {
                    core.barrier.members -= 1;
                    core.barrier.settle();
                    let published = core.wave.in_flight.publish(None, true, core.memory, core.lds);
                    published.map_err(|kind| stopped(kind, Some(index)))?;
                }
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn fault(&self, stopped: Stopped, wave: &Wave) -> Fault {
        fault(self.code, self.shared.plan.launch.target, stopped, wave)
    }

    fn trace(&self) -> Trace {
        let mut trace = Trace::default();
        for (op, count) in executed_ops(self.code, &self.counts, &self.counted) {
            if count.executed == 0 {
                continue;
            }
            let place: (ObjectId, u64) = (op.object, op.address);
            let place = CodeAddress { object: place.0, address: place.1 };
            // One address may have been decoded several times, with other high bits of register numbers.
            *trace.executed.entry(place).or_default() += count.executed;
            if self.shared.options.trace_lanes {
                *trace.lanes.entry(place).or_default() += count.lanes;
            }
            match op.site {
                Site::Exec => *trace.exec_sites.entry(place).or_default() += count.exec,
                Site::Branch => {
                    let counts = ScalarCounts { executions: count.executed, taken: count.taken };
                    *trace.branches.entry(place).or_default() += counts;
                }
                Site::None => {}
            }
        }
        trace
    }
}

/// Where a wave was stopped, and why.
fn fault(code: &Code, target: Target, stopped: Stopped, wave: &Wave) -> Fault {
    let Stopped { mut stop, op, pc } = stopped;
    let place = code.place(pc);
    if let (FaultKind::LdsBounds { access, .. }, Some(op)) = (&mut stop.kind, op.map(|at| &code.ops[at])) {
        *access = op.memory_access();
    }
    Fault {
        kind: stop.kind,
        object: place.map(|(object, _)| object),
        address: place.map_or(pc, |(_, address)| address),
        instruction: op.map_or_else(Default::default, |at| print(target, &code.ops[at].inst).into()),
        lane: stop.lane,
        workgroup: wave.group_id,
        wave: wave.index,
    }
}
