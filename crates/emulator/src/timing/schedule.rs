//! The order of everything: the wave that can issue first issues next, of several the oldest.
//!
//! A wave is examined when it may issue. If it cannot, the cycles until it may are charged to a reason, and it is
//! examined again then. So every cycle of a resident wave is either one of an issue slot or charged to one reason, and
//! the functional emulator executes all instructions in the order of their cycles.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wavetap_amdgpu::{Latency, MachineFact};

use super::facts::{PIPES, TimingFacts, UNITS, Unit};
use super::machine::Machine;
use super::memory::{Hierarchy, KeptMemory};
use super::place::{Places, compute_units};
use super::wave::{At, Book, WaveClock};
use crate::address::CodeAddress;
use crate::exec::memory::accesses::How;
use crate::fault::stop::Stop;
use crate::fault::{Fault, FaultKind};
use crate::run::plan::Plan;
use crate::run::worker::{Stopped, Worker, Workgroup};
use crate::state::wave::Status;
use crate::strict;
use crate::trace::timing::{MemoryCounts, ModelledTime, Resource, ResourceUse, StallReason, Timing};

/// How many waves SIMDs and compute units have, and since when.
#[derive(Debug, Default)]
struct Residents {
    simds: Vec<(u64, u32)>,
    units: Vec<(u64, u32)>,
}

impl Residents {
    fn of(units: usize, simds: usize) -> Residents {
        Residents { simds: vec![(0, 0); simds], units: vec![(0, 0); units] }
    }

    /// A wave comes to a SIMD of a compute unit.
    fn enter(&mut self, at: u64, unit: usize, simd: usize) {
        for (since, waves) in [&mut self.units[unit], &mut self.simds[simd]] {
            if *waves == 0 {
                *since = at;
            }
            *waves += 1;
        }
    }

    /// A wave leaves; notes for how long its SIMD and its compute unit have had waves if it is the last one.
    fn leave(&mut self, at: u64, unit: usize, simd: usize, used: &mut ResourceUse) {
        let of = [(&mut self.units[unit], Resource::ComputeUnit), (&mut self.simds[simd], Resource::Simd)];
        for ((since, waves), resource) in of {
            *waves -= 1;
            if *waves == 0 {
                used.busy[resource as usize] += at.saturating_sub(*since);
            }
        }
    }
}

/// When a SIMD can issue to its units, and when its pipes are free.
#[derive(Debug, Clone, Default)]
struct Simd {
    units: [u64; UNITS],
    pipes: [u64; PIPES],
}

/// The state of a dispatch in modelled time, while others have their turn, too.
pub(crate) struct PausedModel {
    machine: Machine,
    memory: Hierarchy,
    places: Places,
    simds: Vec<Simd>,
    book: Book,
    /// By index of the instruction.
    facts: Vec<Option<Box<TimingFacts>>>,
    /// How busy SIMDs and compute units were.
    used: ResourceUse,
    residents: Residents,
    /// Workgroups that run, and their places for waves.
    groups: Vec<Option<Workgroup>>,
    /// The waves of each workgroup.
    members: Vec<Vec<usize>>,
    waves: Vec<Option<WaveClock>>,
    unused: (Vec<usize>, Vec<usize>),
    /// Waves by the cycle in which they are examined next, and by age.
    next: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// How many workgroups have begun.
    begun: u64,
    born: u64,
    /// The shader clock when the dispatch began.
    clock: u64,
    end: u64,
    wave_cycles: u64,
    most_waves: u32,
}

/// A [`PausedModel`] that goes on.
struct Scheduler<'r, 'a> {
    run: &'r mut Worker<'a>,
    plan: &'r Plan,
    model: PausedModel,
}

impl PausedModel {
    /// The workgroups that have begun and not ended.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &Workgroup> {
        self.groups.iter().flatten()
    }
}

/// How far a dispatch is after a share of its time.
pub(crate) enum Advanced {
    /// It goes on from here.
    Paused(Box<PausedModel>),
    /// It has ended, and left this to the next one.
    Ended(Box<KeptMemory>),
}

/// Begins a dispatch in modelled time, with what the one before has left.
pub(crate) fn begin(
    run: &mut Worker,
    plan: &Plan,
    timing: &Timing,
    kept: Option<KeptMemory>,
) -> Result<PausedModel, Fault> {
    let target = plan.launch.target;
    let machine = Machine::new(target, timing);
    let places = Places::new(target, &plan.demand(), compute_units(target));
    // Without scratch there is nothing that limits the waves but the machine.
    let slots = if plan.launch.scratch_arena.0 == 0 { plan.slots.max(places.waves()) } else { plan.slots };
    let clock = run.clock;
    run.passed = 0;
    run.free = (0..slots).rev().collect();
    let model = PausedModel {
        memory: Hierarchy::new(machine.clone(), places.units() * places.cus, kept),
        simds: vec![Simd::default(); places.units() * places.simds()],
        used: ResourceUse::default(),
        residents: Residents::of(places.units() * places.cus, places.units() * places.simds()),
        machine,
        places,
        book: Book::new(timing.sample_interval.map(|interval| interval.get().into())),
        facts: Vec::new(),
        groups: Vec::new(),
        members: Vec::new(),
        waves: Vec::new(),
        unused: (Vec::new(), Vec::new()),
        next: BinaryHeap::new(),
        begun: 0,
        born: 0,
        clock,
        end: 0,
        wave_cycles: 0,
        most_waves: 0,
    };
    let mut scheduler = Scheduler { run, plan, model };
    scheduler.begin(0)?;
    Ok(scheduler.model)
}

/// Runs the workgroups of a dispatch until all have ended, or waves were examined so many times, or others are to have
/// their turn.
pub(crate) fn advance(
    run: &mut Worker,
    plan: &Plan,
    paused: PausedModel,
    instructions: &mut u64,
) -> Result<Advanced, Fault> {
    /// How often others are thought of.
    const OFTEN: u64 = 1 << 14;
    let mut scheduler = Scheduler { run, plan, model: paused };
    while let Some(Reverse((at, _, wave))) = scheduler.model.next.pop() {
        scheduler.look(at, wave)?;
        *instructions = instructions.saturating_sub(1);
        let often = scheduler.run.charge_sleep(instructions) || instructions.is_multiple_of(OFTEN);
        if *instructions == 0 || often && scheduler.run.shared.interrupted() {
            return Ok(Advanced::Paused(Box::new(scheduler.model)));
        }
    }
    if let Some(group) = scheduler.model.groups.iter().flatten().next() {
        return Err(scheduler.run.stuck(group));
    }
    Ok(Advanced::Ended(Box::new(scheduler.finish())))
}

impl Scheduler<'_, '_> {
    fn finish(self) -> KeptMemory {
        let Scheduler { run, model, .. } = self;
        let PausedModel { book, mut memory, places, machine, mut used, end, wave_cycles, most_waves, clock, .. } =
            model;
        let l2_left = memory.changed_lines();
        let end = memory.release(end);
        let units = (places.units() * places.cus) as u64;
        let simds = units * places.simds_per_cu as u64;
        used.available[Resource::ComputeUnit as usize] = units * end;
        for resource in [Resource::Simd, Resource::VectorAlu, Resource::Matrix, Resource::Scalar] {
            used.available[resource as usize] = simds * end;
        }
        if machine.fact(MachineFact::TransBeside) != 0 {
            used.available[Resource::Transcendental as usize] = simds * end;
        }
        used.add(&memory.used(end));
        let counts = MemoryCounts { l2_left, ..memory.counts };
        let mut time =
            ModelledTime { cycles: end, wave_cycles, most_waves, memory: counts, used, ..ModelledTime::default() };
        for (index, count) in
            book.counts.iter().enumerate().filter(|(_, count)| count.executions > 0 || count.stalls() > 0)
        {
            let op = run.op(index);
            time.instructions.entry(CodeAddress { object: op.object, address: op.address }).or_default().add(count);
        }
        time.samples = book.samples;
        time.samples.sort_by_key(|sample| sample.cycle);
        time.lost_samples = book.lost_samples;
        run.stats.time = Some(Box::new(time));
        run.clock = clock + end;
        memory.keep(end)
    }

    /// Begins as many workgroups as there is room for.
    fn begin(&mut self, at: u64) -> Result<(), Fault> {
        let [nx, ny, nz] = self.plan.groups.map(u64::from);
        while self.model.begun < nx * ny * nz {
            let n = self.model.begun;
            let id = [(n % nx) as u32, (n / nx % ny) as u32, (n / (nx * ny)) as u32];
            let waves = self.plan.waves_of(id);
            if self.run.free.len() < waves as usize && self.model.groups.iter().any(Option::is_some) {
                return Ok(());
            }
            let Some((unit, simds)) = self.model.places.enter(waves) else { return Ok(()) };
            let group = self.run.start(self.plan, id)?;
            self.model.begun += 1;
            let slot = keep(&mut self.model.groups, &mut self.model.unused.0, group);
            self.model.members.resize(self.model.groups.len(), Vec::new());
            self.model.members[slot].clear();
            let resident = self.model.places.resident(unit);
            self.model.most_waves = self.model.most_waves.max(resident.div_ceil(self.model.places.simds() as u32));
            for (index, simd) in simds.into_iter().enumerate() {
                let cu = self.model.places.compute_unit(unit, simd);
                self.model.residents.enter(at, cu, unit * self.model.places.simds() + simd);
                let clock = WaveClock::new(at, self.model.born, (slot, index), (unit, simd), id);
                let age = self.model.born;
                self.model.born += 1;
                let wave = keep(&mut self.model.waves, &mut self.model.unused.1, clock);
                self.model.members[slot].push(wave);
                self.model.next.push(Reverse((at, age, wave)));
            }
        }
        Ok(())
    }

    /// Examines a wave at a cycle: it issues, or the cycles until it may are charged to a reason and it is examined
    /// again.
    fn look(&mut self, at: u64, wave: usize) -> Result<(), Fault> {
        let (Some(clock), plan) = (&mut self.model.waves[wave], self.plan) else { return Ok(()) };
        let Some(group) = &mut self.model.groups[clock.group] else { return Ok(()) };
        let index = self.run.at(plan, group, clock.index)?;
        if self.model.facts.len() <= index {
            self.model.facts.resize_with(index + 1, || None);
        }
        let op = self.run.op(index);
        let place = CodeAddress { object: op.object, address: op.address };
        let facts =
            &**self.model.facts[index].get_or_insert_with(|| Box::new(TimingFacts::of(op, &self.model.machine)));
        let here = At { index, place, facts };
        clock.exec = group.waves[clock.index].exec();
        clock.resident = self.model.places.resident(clock.unit);

        let mut last = StallReason::ArbiterNotWin;
        let waits = clock.counted_down(facts, clock.now);
        for (reason, until) in [
            (StallReason::NoInstructionAvailable, clock.fetched),
            (StallReason::AluDependency, clock.operands(facts)),
            (StallReason::Waitcnt, waits),
        ] {
            if until > clock.now {
                clock.stall(&mut self.model.book, here, reason, until);
                last = reason;
            }
        }
        let slot = self.model.machine.slot(clock.now);
        clock.stall(&mut self.model.book, here, last, slot);
        let simd = &mut self.model.simds[clock.unit * self.model.places.simds() + clock.simd];
        if clock.now == at {
            // It could issue: are those free that it issues to?
            let (unit, pipe) = free(simd, facts, at);
            clock.stall(&mut self.model.book, here, StallReason::ArbiterNotWin, unit);
            clock.stall(&mut self.model.book, here, StallReason::ArbiterWinExStall, self.model.machine.slot(pipe));
        }
        if clock.now > at {
            self.model.next.push(Reverse((clock.now, clock.age, wave)));
            return Ok(());
        }
        if facts.unit != Unit::Internal {
            simd.units[facts.unit as usize] = at + facts.issue;
        }
        for &(pipe, cycles) in &facts.pipes {
            simd.pipes[pipe as usize] = at + cycles;
            self.model.used.busy[pipe.resource() as usize] += cycles;
        }
        if facts.unit == Unit::Scalar {
            self.model.used.busy[Resource::Scalar as usize] += facts.issue;
        }
        clock.issue(&mut self.model.book, here);
        self.execute(at, wave, index)
    }

    /// Executes the instruction that a wave has issued.
    fn execute(&mut self, at: u64, wave: usize, index: usize) -> Result<(), Fault> {
        let (Some(clock), Some(facts)) = (&mut self.model.waves[wave], &self.model.facts[index]) else { return Ok(()) };
        let Some(group) = &mut self.model.groups[clock.group] else { return Ok(()) };
        let memory = matches!(facts.unit, Unit::Vmem | Unit::Lds) || !facts.counters.is_empty();
        let accesses = if memory { self.run.accesses(self.plan, group, clock.index, index) } else { None };
        let phase = group.barrier.phase;
        self.run.step(self.plan, group, clock.index, self.model.clock + at)?;

        clock.result(facts, at);
        let cu = self.model.places.compute_unit(clock.unit, clock.simd);
        if memory {
            let done = match &accesses {
                Some(accesses) if facts.unit == Unit::Scalar => self.model.memory.scalar(cu, at, accesses),
                Some(accesses) => {
                    let traffic = self.model.memory.vector((cu, clock.simd), at, accesses);
                    self.model.book.moved(index, traffic);
                    traffic.done
                }
                None => at + facts.latency,
            };
            let drawn = match self.model.machine.chance {
                Some(_) => {
                    let (address, nth) = (self.run.op(index).address, clock.again(index));
                    self.model.machine.drawn(facts.class, address, clock.age, nth)
                }
                None => None,
            };
            let done = facts.fixed.or(drawn).map_or(done, |cycles| at + cycles);
            clock.fly(facts, done, at);
            let stores = accesses.as_ref().is_some_and(|all| all.how == How::Store && !all.memory.is_empty());
            let ended =
                if stores { done - self.model.machine.acknowledgement().min(done.saturating_sub(at)) } else { done };
            clock.drained = clock.drained.max(ended);
            self.model.end = self.model.end.max(ended);
        }
        if facts.invalidates || facts.invalidates_shared {
            self.model.memory.invalidate(cu, facts.invalidates_shared);
        }
        let op = self.run.op(index);
        let state = &mut group.waves[clock.index];
        let here = At { index, place: CodeAddress { object: op.object, address: op.address }, facts };
        let now = clock.now;
        clock.stall(&mut self.model.book, here, StallReason::InternalInstruction, now + facts.internal);
        if state.pc != op.next {
            clock.fetched = at + self.model.machine.latency(Latency::Branch);
            self.model.book.taken(clock, at);
        } else if facts.unit == Unit::Branch {
            clock.fetched = at + self.model.machine.not_taken;
        }
        match state.status {
            Status::Running | Status::Yielding => {
                state.status = Status::Running;
                let now = clock.now;
                let passed = std::mem::take(&mut self.run.passed);
                clock.stall(&mut self.model.book, here, StallReason::SleepWait, now + facts.sleep + passed);
                if facts.waits_for_barrier {
                    let met = clock.met;
                    clock.stall(&mut self.model.book, here, StallReason::BarrierWait, met);
                }
                self.model.next.push(Reverse((clock.now, clock.age, wave)));
            }
            Status::AtBarrier | Status::AtSplitBarrier => clock.parked = Some(index),
            // Its registers are free when what it has in flight is done.
            Status::Ended => {
                let drained = clock.drained;
                clock.stall(&mut self.model.book, here, StallReason::Waitcnt, drained);
            }
            Status::AtGws => {
                let what = "global wave sync while time is modelled".into();
                let stop = Stop { kind: FaultKind::Undefined { what }, lane: None };
                return Err(self.run.fault(Stopped { stop, op: Some(index), pc: state.pc }, state));
            }
        }
        let (ended, waits) = (state.status == Status::Ended, state.status == Status::AtBarrier);
        let (slot, settled) = (clock.group, group.barrier.phase != phase);
        if settled {
            self.release(slot, Status::AtSplitBarrier, at);
        }
        if ended || waits {
            self.arrive(slot, at);
        }
        if ended { self.wave_ends(wave) } else { Ok(()) }
    }

    /// Lets the waves of a workgroup go that stand at a barrier, if all do.
    fn arrive(&mut self, slot: usize, at: u64) {
        let Some(group) = &self.model.groups[slot] else { return };
        if group.waves.iter().all(|wave| wave.status != Status::Running) {
            self.release(slot, Status::AtBarrier, at);
        }
    }

    /// Waves of a workgroup go on that waited in this way.
    fn release(&mut self, slot: usize, status: Status, at: u64) {
        let Some(group) = &mut self.model.groups[slot] else { return };
        let until = at + self.model.machine.interval.max(self.model.machine.latency(Latency::Barrier));
        if self.plan.launch.strict {
            let (barrier, waves) = (&mut group.barrier, &mut group.waves);
            match status {
                Status::AtSplitBarrier => {
                    waves.iter().filter(|wave| wave.status == status).for_each(|wave| strict::passes(barrier, wave))
                }
                _ if waves.iter().any(|wave| wave.status == status) => {
                    strict::at_barrier(barrier, waves, &self.plan.launch)
                }
                _ => {}
            }
        }
        for &wave in &self.model.members[slot] {
            // Those that have ended may have made room for others.
            let Some(clock) = self.model.waves[wave].as_mut().filter(|clock| clock.group == slot) else { continue };
            if status == Status::AtSplitBarrier {
                clock.met = until;
            }
            let state = &mut group.waves[clock.index];
            let (Some(index), true) = (clock.parked, state.status == status) else { continue };
            let Some(facts) = &self.model.facts[index] else { continue };
            let op = self.run.op(index);
            let here = At { index, place: CodeAddress { object: op.object, address: op.address }, facts };
            clock.stall(&mut self.model.book, here, StallReason::BarrierWait, until);
            clock.parked = None;
            state.status = Status::Running;
            self.model.next.push(Reverse((clock.now, clock.age, wave)));
        }
    }

    fn wave_ends(&mut self, wave: usize) -> Result<(), Fault> {
        let Some(clock) = self.model.waves[wave].take() else { return Ok(()) };
        self.model.unused.1.push(wave);
        self.model.end = self.model.end.max(clock.now);
        self.model.wave_cycles += clock.now - clock.start;
        let cu = self.model.places.compute_unit(clock.unit, clock.simd);
        self.model.residents.leave(
            clock.now,
            cu,
            clock.unit * self.model.places.simds() + clock.simd,
            &mut self.model.used,
        );
        self.model.places.wave_ends(clock.unit, clock.simd);
        let all = |group: &Workgroup| group.waves.iter().all(|wave| wave.status == Status::Ended);
        if !self.model.groups[clock.group].as_ref().is_some_and(all) {
            return Ok(());
        }
        if let Some(group) = self.model.groups[clock.group].take() {
            self.run.free.extend(group.waves.iter().map(|wave| wave.group));
        }
        self.model.unused.0.push(clock.group);
        self.run.stats.workgroups += 1;
        self.model.places.group_ends(clock.unit);
        self.begin(clock.now)
    }
}

/// From when on a SIMD can issue an instruction, and from when on there is something to carry it out.
fn free(simd: &Simd, facts: &TimingFacts, at: u64) -> (u64, u64) {
    let unit = if facts.unit == Unit::Internal { at } else { simd.units[facts.unit as usize] };
    let pipe = facts.pipes.iter().map(|(pipe, _)| simd.pipes[*pipe as usize]).max().unwrap_or(at);
    (unit.max(at), pipe.max(at))
}

/// Puts something where there is a gap, or at the end.
fn keep<T>(list: &mut Vec<Option<T>>, gaps: &mut Vec<usize>, value: T) -> usize {
    match gaps.pop() {
        Some(at) => {
            list[at] = Some(value);
            at
        }
        None => {
            list.push(Some(value));
            list.len() - 1
        }
    }
}
