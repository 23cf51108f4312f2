//! The order of everything: the wave that can issue first issues next, of several the oldest.
//!
//! A wave is examined when it may issue. If it cannot, the cycles until it may are charged to a reason, and it is
//! examined again then. So every cycle of a resident wave is either one of an issue slot or charged to one reason, and
//! the functional emulator executes all instructions in the order of their cycles.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use wavetap_amdgpu::{Latency, MachineFact};

use super::facts::{PIPES, TimingFacts, UNITS, Unit};
use super::machine::Machine;
use super::memory::{Hierarchy, KeptMemory};
use super::place::Places;
use super::sampling::{Next, Windows};
use super::wave::{At, Book, Flying, WaveClock};
use crate::address::CodeAddress;
use crate::exec::memory::accesses::How;
use crate::fault::stop::Stop;
use crate::fault::{Fault, FaultKind};
use crate::run::plan::Plan;
use crate::run::worker::{Stopped, Worker, Workgroup};
use crate::state::wave::Status;
use crate::strict;
use crate::trace::timing::{
    InstructionTime, MemoryCounts, ModelledTime, Resource, ResourceUse, StallReason, Timing, scaled,
};

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
    /// Which workgroups are modelled, if not all are.
    windows: Option<Windows>,
    /// Workgroups are executed without the model.
    skipping: Option<Skipping>,
    /// Whether the waves of the first compute unit are traced.
    traces: bool,
    /// The shader clock when the dispatch began.
    clock: u64,
    end: u64,
    wave_cycles: u64,
    most_waves: u32,
}

/// Workgroups between two windows.
#[derive(Default)]
struct Skipping {
    /// When there was room for the first one.
    at: u64,
    /// The one that runs.
    group: Option<Workgroup>,
    /// Instructions that it has executed. It may wait for one that is modelled.
    executed: u64,
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
        self.groups.iter().flatten().chain(self.skipping.iter().filter_map(|skipping| skipping.group.as_ref()))
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
    let places = Places::new(target, &plan.demand(), machine.fact(MachineFact::ComputeUnits) as usize);
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
        windows: None,
        skipping: None,
        traces: timing.waves,
        clock,
        end: 0,
        wave_cycles: 0,
        most_waves: 0,
    };
    let mut scheduler = Scheduler { run, plan, model };
    scheduler.begin(0)?;
    let held = scheduler.model.begun;
    scheduler.model.windows = Windows::new(timing.workgroups, scheduler.workgroups(), held);
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
    let mut skipped = 0;
    loop {
        if let Some(skipping) = scheduler.model.skipping.take() {
            let (executed, waits) = scheduler.skip(skipping)?;
            *instructions = instructions.saturating_sub(executed);
            skipped += executed;
            let often = scheduler.run.charge_sleep(instructions) || skipped > OFTEN;
            if *instructions == 0 || often && scheduler.run.shared.interrupted() {
                return Ok(Advanced::Paused(Box::new(scheduler.model)));
            }
            if !waits {
                continue;
            }
        }
        let Some(Reverse((at, _, wave))) = scheduler.model.next.pop() else {
            if scheduler.model.skipping.is_some() {
                continue;
            }
            break;
        };
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
        let PausedModel { book, mut memory, places, machine, mut used, end, most_waves, clock, windows, .. } = model;
        let mut wave_cycles = model.wave_cycles;
        let l2_left = memory.changed_lines();
        // What was counted is of the workgroups that were modelled.
        let executed = run.executions();
        let of = |index: usize| executed.get(index).copied().unwrap_or(0);
        let extrapolated = windows.map(|windows| {
            let part = book.counts.iter().map(|count| count.executions).sum();
            let all = (0..executed.len()).map(of).sum();
            memory.scale((all, part));
            used.busy.iter_mut().for_each(|busy| *busy = scaled(*busy, (all, part)));
            (windows, (all, part))
        });
        let released = memory.release(end);
        let (left_out, extrapolated) = match &extrapolated {
            Some((windows, _)) => {
                let (left_out, how) = windows.extrapolate(released);
                // A SIMD has waves for all of the time.
                let busy = [Resource::Simd, Resource::ComputeUnit];
                for resource in busy {
                    used.busy[resource as usize] =
                        scaled(model.used.busy[resource as usize], (released + left_out, released));
                }
                (left_out, Some(how))
            }
            None => (0, None),
        };
        let end = released + left_out;
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
        let mut instructions: BTreeMap<CodeAddress, InstructionTime> = BTreeMap::new();
        for index in 0..book.counts.len().max(executed.len()) {
            let mut count = book.counts.get(index).copied().unwrap_or_default();
            if extrapolated.is_some() {
                count.scale(of(index));
            }
            if count.executions > 0 || count.stalls() > 0 {
                let op = run.op(index);
                let place = CodeAddress { object: op.object, address: op.address };
                instructions.entry(place).or_default().add(&count);
            }
        }
        let place = |index: usize| {
            let op = run.op(index);
            CodeAddress { object: op.object, address: op.address }
        };
        let mut waited: BTreeMap<(CodeAddress, CodeAddress), u64> = BTreeMap::new();
        for (&(waiting, operation), &cycles) in &book.waited {
            let modelled = book.counts.get(waiting).map_or(0, |count| count.executions);
            let cycles = if extrapolated.is_some() { scaled(cycles, (of(waiting), modelled)) } else { cycles };
            *waited.entry((place(waiting), place(operation))).or_default() += cycles;
        }
        if extrapolated.is_some() {
            wave_cycles = instructions.values().map(|each| each.issued + each.stalls()).sum();
        }
        let mut samples = book.samples;
        samples.sort_by_key(|sample| sample.cycle);
        let time = ModelledTime {
            cycles: end,
            wave_cycles,
            most_waves,
            instructions,
            waited,
            memory: counts,
            used,
            samples,
            lost_samples: book.lost_samples,
            waves: book.waves,
            lost_waves: book.lost_waves,
            extrapolated,
        };
        run.stats.time = Some(Box::new(time));
        run.clock = clock + end;
        memory.keep(released)
    }

    /// The workgroups of the dispatch.
    fn workgroups(&self) -> u64 {
        self.plan.groups.map(u64::from).iter().product()
    }

    /// The workgroup of a number.
    fn id(&self, n: u64) -> [u32; 3] {
        let [nx, ny, _] = self.plan.groups.map(u64::from);
        [(n % nx) as u32, (n / nx % ny) as u32, (n / (nx * ny)) as u32]
    }

    /// Goes on with workgroups that are not modelled; how many instructions were executed, and whether what is modelled
    /// has to go on first.
    fn skip(&mut self, mut skipping: Skipping) -> Result<(u64, bool), Fault> {
        /// Instructions of a workgroup from which on it may wait for one that is modelled.
        const PATIENCE: u64 = 1 << 20;
        let mut group = match skipping.group.take() {
            Some(group) => group,
            None => {
                let n = self.model.begun;
                if self.model.windows.as_mut().is_none_or(|windows| windows.skips(n) == Next::Modelled) {
                    self.begin(skipping.at)?;
                    return Ok((0, false));
                }
                let id = self.id(n);
                if self.run.free.len() < self.plan.waves_of(id) as usize {
                    self.model.skipping = Some(skipping);
                    return Ok((0, true));
                }
                self.model.begun += 1;
                skipping.executed = 0;
                self.run.start(self.plan, id)?
            }
        };
        let unit = (self.model.begun % (self.model.places.units() as u64)) as usize * self.model.places.cus;
        self.run.clock = self.model.clock + skipping.at;
        let (executed, lines) = self.run.turn_unmodelled(self.plan, &mut group)?;
        self.model.memory.warm(unit, &lines);
        self.run.take_lines(lines);
        if let Some(wave) = group.waves.iter().find(|wave| wave.status == Status::AtGws) {
            return Err(self.run.fault(at_gws(None, wave.pc), wave));
        }
        skipping.executed += executed;
        if group.waves.iter().all(|wave| wave.status == Status::Ended) {
            self.run.end(group);
        } else {
            skipping.group = Some(group);
        }
        let waits = skipping.group.is_some() && skipping.executed > PATIENCE;
        self.model.skipping = Some(skipping);
        Ok((executed, waits))
    }

    /// Begins as many workgroups as there is room for.
    fn begin(&mut self, at: u64) -> Result<(), Fault> {
        while self.model.begun < self.workgroups() && self.model.skipping.is_none() {
            let n = self.model.begun;
            let id = self.id(n);
            let waves = self.plan.waves_of(id);
            if self.run.free.len() < waves as usize && self.model.groups.iter().any(Option::is_some) {
                return Ok(());
            }
            if let Some(windows) = self.model.windows.as_mut().filter(|windows| windows.asks(n)) {
                if !self.model.places.has_room(waves) {
                    return Ok(());
                }
                if windows.room(n, at) == Next::Skipped {
                    self.model.skipping = Some(Skipping { at, ..Skipping::default() });
                    return Ok(());
                }
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
                let mut clock = WaveClock::new(at, self.model.born, (slot, index), (unit, simd), id);
                if self.model.traces && cu == 0 {
                    clock.trace();
                }
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
        for (reason, until) in
            [(StallReason::NoInstructionAvailable, clock.fetched), (StallReason::AluDependency, clock.operands(facts))]
        {
            if until > clock.now {
                clock.stall(&mut self.model.book, here, reason, until);
                last = reason;
            }
        }
        if let Some(operation) = waits.filter(|operation| operation.done > clock.now) {
            let op = self.run.op(operation.index);
            let place = CodeAddress { object: op.object, address: op.address };
            clock.wait(&mut self.model.book, here, (operation, place));
            last = StallReason::Waitcnt;
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
            clock.fly(facts, Flying { done, index }, at);
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
                clock.done();
                self.model.next.push(Reverse((clock.now, clock.age, wave)));
            }
            Status::AtBarrier | Status::AtSplitBarrier => clock.parked = Some(index),
            // Its registers are free when what it has in flight is done.
            Status::Ended => {
                let drained = clock.drained;
                clock.stall(&mut self.model.book, here, StallReason::Waitcnt, drained);
            }
            Status::AtGws => return Err(self.run.fault(at_gws(Some(index), state.pc), state)),
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
                Status::AtSplitBarrier => waves
                    .iter()
                    .filter(|wave| wave.status == status)
                    .for_each(|wave| strict::passes(barrier, wave, None)),
                _ if waves.iter().any(|wave| wave.status == status) => {
                    strict::at_barrier(barrier, waves, &self.plan.launch, None)
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
            clock.done();
            clock.parked = None;
            state.status = Status::Running;
            self.model.next.push(Reverse((clock.now, clock.age, wave)));
        }
    }

    fn wave_ends(&mut self, wave: usize) -> Result<(), Fault> {
        let Some(mut clock) = self.model.waves[wave].take() else { return Ok(()) };
        clock.close(&mut self.model.book);
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

/// Workgroups that wait for each other here would need all of them to be modelled.
fn at_gws(op: Option<usize>, pc: u64) -> Stopped {
    let kind = FaultKind::Undefined { what: "global wave sync while time is modelled".into() };
    Stopped { stop: Stop { kind, lane: None }, op, pc }
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
