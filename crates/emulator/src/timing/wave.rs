//! The clock of a wave: when its registers are ready, what it has in flight, and to which instructions its cycles were
//! charged.
//!
//! A scoreboard with times: each register has the cycle at which its value is ready, and each counter a list of the
//! cycles at which its operations complete. An operation of an order (vector memory, LDS) completes no earlier than the
//! one before it, so its time is the maximum of both. A wait for N ends when all but N of a counter are complete, and
//! was for the instruction whose own time that is.
//!
//! Invariant: all cycles before `now` are charged, each to one instruction and either to its issue slot or to one stall
//! reason; `now` never goes back. So the charged cycles of a wave add up to its time.

use rustc_hash::FxHashMap;
use wavetap_amdgpu::Counter;

use super::facts::{Pipe, TimingFacts, Unit};
use super::memory::Traffic;
use crate::address::CodeAddress;
use crate::op::registers::{SCALAR_SLOTS, SLOTS};
use crate::trace::timing::{
    InstructionTime, SampleKind, StallReason, TraceCategory, TracedInstruction, WaveSample, WaveTrace,
};

const COUNTERS: usize = Counter::ALL.len();
/// Operations of a kind complete in order: vector memory, LDS.
const ORDERS: usize = 2;

/// Most samples of a dispatch that are kept.
const MOST_SAMPLES: usize = 1 << 20;

/// Most instructions of traced waves of a dispatch that are kept.
const MOST_TRACED: usize = 1 << 18;

/// Where the cycles of all waves are counted.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// By index of the instruction.
    pub counts: Vec<InstructionTime>,
    pub samples: Vec<WaveSample>,
    pub lost_samples: u64,
    /// Cycles of waits, by the indices of the instruction that waited and of the one that it waited for.
    pub waited: FxHashMap<(usize, usize), u64>,
    interval: Option<u64>,
    pub waves: Vec<WaveTrace>,
    pub lost_waves: u64,
    /// Instructions of waves that are traced, and of those that were.
    traced: usize,
}

/// An instruction that cycles are charged to.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub index: usize,
    pub place: CodeAddress,
    pub facts: &'a TimingFacts,
}

impl Book {
    pub(crate) fn new(interval: Option<u64>) -> Book {
        Book { interval, ..Book::default() }
    }

    fn count(&mut self, index: usize) -> &mut InstructionTime {
        if self.counts.len() <= index {
            self.counts.resize(index + 1, InstructionTime::default());
        }
        &mut self.counts[index]
    }

    /// What an instruction did to caches and LDS.
    pub(crate) fn moved(&mut self, index: usize, traffic: Traffic) {
        let count = self.count(index);
        count.lines += traffic.lines;
        count.lds_conflict_cycles += traffic.conflicts;
    }

    /// The branch that was issued at a cycle is taken: the last sample, which may be of it, was taken before.
    pub(crate) fn taken(&mut self, wave: &WaveClock, at: u64) {
        let its = |sample: &&mut WaveSample| (sample.workgroup, sample.wave) == (wave.workgroup, wave.index as u32);
        if let Some(sample) = self.samples.last_mut().filter(its)
            && (sample.kind, sample.stalled) == (SampleKind::Branch, None)
            && sample.cycle >= at
        {
            sample.kind = SampleKind::BranchTaken;
        }
    }

    /// Samples of a wave from cycle `from` to `to`. Waves are sampled at different cycles, so that what they do in step
    /// is seen at all of its steps.
    fn sample(&mut self, wave: &WaveClock, at: At, (from, to): (u64, u64), stalled: Option<StallReason>) {
        self.sample_wait(wave, at, (from, to), stalled, None);
    }

    /// The same, of a wave that waits for an operation of this instruction, if that is known.
    fn sample_wait(
        &mut self,
        wave: &WaveClock,
        at: At,
        (from, to): (u64, u64),
        stalled: Option<StallReason>,
        waits_for: Option<CodeAddress>,
    ) {
        let Some(interval) = self.interval else { return };
        let phase = wave.age.wrapping_mul(0x9e37_79b9) % interval;
        let mut cycle = from + (phase + interval - from % interval) % interval;
        while cycle < to {
            if self.samples.len() == MOST_SAMPLES {
                self.lost_samples += 1;
            } else {
                self.samples.push(WaveSample {
                    cycle,
                    place: at.place,
                    stalled,
                    waits_for,
                    exec: wave.exec,
                    workgroup: wave.workgroup,
                    wave: wave.index as u32,
                    unit: wave.unit as u32,
                    simd: wave.simd as u32,
                    resident: wave.resident,
                    kind: at.facts.kind,
                });
            }
            cycle += interval;
        }
    }
}

/// An operation in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flying {
    /// When it is done.
    pub done: u64,
    /// The instruction that takes so long: it, or one before that it completes in order with.
    pub index: usize,
}

/// A wave in time.
#[derive(Debug)]
pub(crate) struct WaveClock {
    pub start: u64,
    /// All cycles before this one are charged.
    pub now: u64,
    /// The next instruction has been fetched.
    pub fetched: u64,
    /// When the value in a register is there, by slot.
    ready: Box<[u64; SLOTS]>,
    /// Which of them the vector ALU wrote last, as bits.
    of_valu: [u64; SLOTS / 64],
    /// The operations in flight, by counter.
    flying: [Vec<Flying>; COUNTERS],
    /// The last one of a counter and order.
    last: [[Flying; ORDERS]; COUNTERS],
    /// When everything that was in flight has left it.
    pub drained: u64,
    /// The instruction at which it stands at a barrier.
    pub parked: Option<usize>,
    /// When it learns that the last split barrier was met.
    pub met: u64,
    /// The oldest wave has the lowest number.
    pub age: u64,
    pub group: usize,
    pub index: usize,
    pub workgroup: [u32; 3],
    pub unit: usize,
    pub simd: usize,
    pub exec: u64,
    pub resident: u32,
    /// How often it has executed each instruction, by index; where time is by chance.
    executed: Vec<u64>,
    /// From when on cycles are charged to the instruction that it executes next.
    since: u64,
    /// What it has executed, if it is traced.
    traced: Option<Vec<TracedInstruction>>,
}

impl WaveClock {
    pub(crate) fn new(
        start: u64,
        age: u64,
        (group, index): (usize, usize),
        (unit, simd): (usize, usize),
        workgroup: [u32; 3],
    ) -> Self {
        WaveClock {
            start,
            now: start,
            fetched: start,
            ready: Box::new([start; SLOTS]),
            of_valu: [0; SLOTS / 64],
            flying: std::array::from_fn(|_| Vec::new()),
            last: [[Flying { done: start, index: usize::MAX }; ORDERS]; COUNTERS],
            drained: start,
            parked: None,
            met: 0,
            age,
            group,
            index,
            workgroup,
            unit,
            simd,
            exec: 0,
            resident: 0,
            executed: Vec::new(),
            since: start,
            traced: None,
        }
    }

    /// Notes what it executes from now on.
    pub(crate) fn trace(&mut self) {
        self.traced = Some(Vec::new());
    }

    /// All cycles of the instruction that it has executed are charged.
    pub(crate) fn done(&mut self) {
        if let Some(last) = self.traced.as_mut().and_then(|traced| traced.last_mut()) {
            last.duration = self.now - last.begin;
        }
        self.since = self.now;
    }

    /// Gives what it has executed to the book, at its end.
    pub(crate) fn close(&mut self, book: &mut Book) {
        self.done();
        let Some(mut instructions) = self.traced.take() else { return };
        if let Some(last) = instructions.last_mut() {
            last.category = TraceCategory::Message;
        }
        book.waves.push(WaveTrace {
            workgroup: self.workgroup,
            wave: self.index as u32,
            simd: self.simd as u32,
            begin: self.start,
            end: self.now,
            instructions,
        });
    }

    /// Counts an execution of an instruction; returns how many there were before.
    pub(crate) fn again(&mut self, index: usize) -> u64 {
        if self.executed.len() <= index {
            self.executed.resize(index + 1, 0);
        }
        self.executed[index] += 1;
        self.executed[index] - 1
    }

    /// When all registers that an instruction needs are there.
    pub(crate) fn operands(&self, facts: &TimingFacts) -> u64 {
        let ready = |slot: &u16| {
            let slot = usize::from(*slot);
            let valu = self.of_valu[slot / 64] >> (slot % 64) & 1;
            self.ready[slot] + valu * facts.farther[usize::from(slot >= SCALAR_SLOTS)]
        };
        facts.reads.iter().map(ready).max().unwrap_or(0)
    }

    pub(crate) fn result(&mut self, facts: &TimingFacts, at: u64) {
        let valu = u64::from(facts.unit == Unit::Valu);
        for slot in &facts.writes {
            let slot = usize::from(*slot);
            self.ready[slot] = at + facts.latency;
            self.of_valu[slot / 64] = self.of_valu[slot / 64] & !(1 << (slot % 64)) | valu << (slot % 64);
        }
    }

    /// When so few operations are in flight as an instruction waits for, and for which that is, if it is later.
    pub(crate) fn counted_down(&mut self, facts: &TimingFacts, at: u64) -> Option<Flying> {
        let mut until: Option<Flying> = None;
        for &(counter, allowed) in &facts.waits {
            let flying = &mut self.flying[counter];
            flying.retain(|each| each.done > at);
            if flying.len() > allowed {
                flying.sort_unstable();
                until = until.max(Some(flying[flying.len() - allowed - 1]));
            }
        }
        until
    }

    /// Notes an operation that is done at `done`, or when those before it are that it completes in order with.
    pub(crate) fn fly(&mut self, facts: &TimingFacts, operation: Flying, at: u64) {
        for &counter in &facts.counters {
            let mut operation = operation;
            if let Some(order) = facts.order {
                let last = &mut self.last[counter][order];
                if operation.done >= last.done {
                    *last = operation;
                }
                operation = *last;
            }
            let flying = &mut self.flying[counter];
            // Where no instruction waits, the list must not grow.
            if flying.len() >= 64 {
                flying.retain(|each| each.done > at);
            }
            flying.push(operation);
        }
    }

    /// Charges the cycles up to `until` to an instruction that is not issued.
    pub(crate) fn stall(&mut self, book: &mut Book, at: At, reason: StallReason, until: u64) {
        if until > self.now {
            book.count(at.index).stalled[reason as usize] += until - self.now;
            book.sample(self, at, (self.now, until), Some(reason));
            self.now = until;
        }
    }

    /// Charges the cycles until an operation is done to the instruction that waits for it.
    pub(crate) fn wait(&mut self, book: &mut Book, at: At, operation: (Flying, CodeAddress)) {
        let (Flying { done: until, index }, place) = operation;
        if until > self.now {
            book.count(at.index).stalled[StallReason::Waitcnt as usize] += until - self.now;
            *book.waited.entry((at.index, index)).or_default() += until - self.now;
            book.sample_wait(self, at, (self.now, until), Some(StallReason::Waitcnt), Some(place));
            self.now = until;
        }
    }

    /// Charges the slot of an instruction that is issued.
    pub(crate) fn issue(&mut self, book: &mut Book, at: At) {
        let count = book.count(at.index);
        count.executions += 1;
        count.issued += at.facts.issue;
        let vector = at.facts.pipes.iter().filter(|(pipe, _)| *pipe == Pipe::Valu);
        count.vector_alu += vector.map(|(_, cycles)| cycles).sum::<u64>();
        book.sample(self, at, (self.now, self.now + at.facts.issue), None);
        if let Some(traced) = &mut self.traced {
            if book.traced < MOST_TRACED {
                book.traced += 1;
                let (place, begin, category) = (at.place, self.since, at.facts.category());
                traced.push(TracedInstruction { place, begin, issued: at.facts.issue, duration: 0, category });
            } else {
                // A part of a wave would look like a whole one.
                book.lost_waves += 1;
                self.traced = None;
            }
        }
        self.now += at.facts.issue;
    }
}
