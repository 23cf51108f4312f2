//! Which registers an outstanding operation may still write, at every instruction.
//!
//! For each counter and register, how many younger operations *of the same kind* there are at least after the youngest
//! one that writes the register: as long as it has not arrived neither have those, if the kind completes in order, and
//! a wait for no more than that many has seen it arrive, whatever else the counter counts. A wait for none has in any
//! case. What original and what inserted operations write is kept apart.
//!
//! Within a block an operation is known by the number it has among those of its kind in its counter, so that issuing
//! one and waiting cost the same however many are outstanding; between blocks by its age.

use smallvec::SmallVec;

use wavetap_amdgpu::{Counter, Opcode, OpcodeFlags, Reg, RegFile, Target, Value, issued, wait_count};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::{
    CompletionOrder, FlatMemory, MOST, Operation, RegSet, WaitSummaries, WrittenRegs, completion_order, counters_of,
    may_not_count, written_by,
};
use wavetap_analysis::kernel::{Body, BodyKind, Flow};
use wavetap_analysis::solver::{Analysis, Lattice, solve};
use wavetap_base::entity::{BlockId, InstId};

/// Kinds of operations, by number.
const KINDS: usize = CompletionOrder::Unordered as usize + 1;

/// What code issued an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Issuer {
    Original,
    Inserted,
}

/// A register that will be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Write {
    /// Counter, issuer, position of the register: writes are sorted by this.
    key: u32,
    /// Of the operation that writes it; unordered also where those of several kinds may.
    kind: CompletionOrder,
    /// Younger operations of that kind in the counter, at least; up to [`MOST`].
    age: u8,
    by: InstId,
}

impl Write {
    /// What is known where either may be outstanding.
    fn or(self, other: Write) -> Write {
        if self.kind != other.kind {
            Write { kind: CompletionOrder::Unordered, age: 0, ..self }
        } else if other.age < self.age {
            other
        } else {
            self
        }
    }
}

fn key(counter: Counter, issuer: Issuer, position: usize) -> u32 {
    ((counter as u32) << 1 | issuer as u32) << 16 | position as u32
}

/// The counters whose operations write registers. Those of the others, such as stores, are not followed, whoever issued
/// them: no wait in a function may ever be for its caller's.
fn writing_counters(target: Target) -> impl Iterator<Item = Counter> {
    counters_of(target).filter(|counter| written_by(*counter) != WrittenRegs::Nothing)
}

/// Operations of which only that they exist is known: in a counter, of a call or of the caller.
type Unknown = (Counter, Operation);

/// What may be outstanding between two blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    writes: Vec<Write>,
    /// Ascending.
    unknown: SmallVec<[Unknown; 4]>,
}

impl State {
    fn at_entry(body: &Body) -> State {
        let mut state = State { writes: Vec::new(), unknown: SmallVec::new() };
        if body.kind() == BodyKind::Function {
            for counter in writing_counters(body.target()) {
                state.unknown.push((counter, Operation::Caller));
            }
            state.unknown.sort_unstable();
        }
        state
    }
}

/// What may be outstanding in either.
impl Lattice for State {
    fn join(&mut self, other: &State) -> bool {
        let mut more = false;
        if self.unknown != other.unknown {
            let known = self.unknown.len();
            self.unknown.extend_from_slice(&other.unknown);
            self.unknown.sort_unstable();
            self.unknown.dedup();
            more = self.unknown.len() > known;
        }
        if other.writes.is_empty() || self.writes == other.writes {
            return more;
        }
        let mut joined = Vec::with_capacity(self.writes.len().max(other.writes.len()));
        let (mut mine, mut theirs) = (self.writes.iter().copied().peekable(), other.writes.iter().copied().peekable());
        loop {
            let next = match (mine.peek().copied(), theirs.peek().copied()) {
                (Some(a), Some(b)) if a.key == b.key => {
                    mine.next();
                    theirs.next();
                    let either = a.or(b);
                    more |= (either.kind, either.age) != (a.kind, a.age);
                    either
                }
                (Some(a), b) if b.is_none_or(|b| a.key < b.key) => {
                    mine.next();
                    a
                }
                (_, Some(b)) => {
                    theirs.next();
                    more = true;
                    b
                }
                (_, None) => break,
            };
            joined.push(next);
        }
        self.writes = joined;
        more
    }
}

/// Who writes a register at last, by the number of the operation among those of its kind; 0 is before all.
#[derive(Debug, Clone, Copy)]
struct Slot {
    kind: CompletionOrder,
    number: u32,
    by: InstId,
}

/// One counter while a block is walked.
struct Queue {
    counter: Counter,
    written: WrittenRegs,
    /// By kind: the number of the youngest operation.
    youngest: [u32; KINDS],
    /// By kind: operations up to this number are complete.
    complete: [u32; KINDS],
    /// By issuer and kind: the number of the youngest operation that writes a register.
    writers: [[u32; KINDS]; 2],
    /// By issuer and position; made when first needed.
    slots: Vec<Slot>,
    /// Keys of slots that were filled since the block began, some perhaps twice.
    filled: Vec<u32>,
}

impl Queue {
    fn fill(&mut self, issuer: Issuer, position: usize, mut slot: Slot) {
        if self.slots.is_empty() {
            self.slots =
                vec![Slot { kind: CompletionOrder::Unordered, number: 0, by: InstId(0) }; 2 * RegSet::POSITIONS];
        }
        let index = issuer as usize * RegSet::POSITIONS + position;
        let older = self.slots[index];
        if older.kind != slot.kind && self.is_pending(older) {
            // That the younger one has arrived says nothing of the older one.
            slot =
                Slot { kind: CompletionOrder::Unordered, number: self.issue(true, CompletionOrder::Unordered), ..slot };
        }
        self.slots[index] = slot;
        let youngest = &mut self.writers[issuer as usize][slot.kind as usize];
        *youngest = (*youngest).max(slot.number);
        self.filled.push(key(self.counter, issuer, position));
    }

    /// The operation that may still write a register.
    fn pending(&self, issuer: Issuer, position: usize) -> Option<InstId> {
        let slot = self.slots.get(issuer as usize * RegSet::POSITIONS + position)?;
        self.is_pending(*slot).then_some(slot.by)
    }

    fn is_pending(&self, slot: Slot) -> bool {
        slot.number > self.complete[slot.kind as usize]
    }

    /// Whether an operation of theirs may still write any register.
    fn writes(&self, issuer: Issuer) -> bool {
        self.writers[issuer as usize].iter().zip(&self.complete).any(|(number, complete)| number > complete)
    }

    /// One more operation; gives its number. One that may not count has that of the one before it: the same number of
    /// younger ones shows that either has arrived. If none is outstanding it has one of its own.
    fn issue(&mut self, counts: bool, kind: CompletionOrder) -> u32 {
        let (youngest, complete) = (&mut self.youngest[kind as usize], self.complete[kind as usize]);
        *youngest = (*youngest + u32::from(counts)).max(complete + 1);
        *youngest
    }

    /// A wait; tells whether everything is complete.
    fn wait(&mut self, count: u8) -> bool {
        if count == 0 {
            self.complete = self.youngest;
            return true;
        }
        for (kind, (complete, youngest)) in self.complete.iter_mut().zip(self.youngest).enumerate() {
            if kind != CompletionOrder::Unordered as usize {
                *complete = (*complete).max(youngest.saturating_sub(u32::from(count)));
            }
        }
        false
    }
}

/// [`OutstandingWrites::follow`].
struct Walk<'w, 'a, O, V> {
    writes: &'w mut OutstandingWrites<'a>,
    issuer: O,
    visit: V,
    /// By block: whether the last visit returned true somewhere in it.
    noted: Vec<bool>,
}

impl<'a, O, V> Analysis for Walk<'_, 'a, O, V>
where
    O: Fn(InstId) -> Issuer,
    V: FnMut(&OutstandingWrites<'a>, InstId, bool) -> bool,
{
    type Node = BlockId;
    type State = State;

    fn transfer(&mut self, block: BlockId, state: &mut State) {
        let data = self.writes.cfg.block(block);
        self.writes.load(state);
        let mut noted = false;
        for id in data.insts() {
            noted |= (self.visit)(self.writes, id, false);
            self.writes.step(id, (self.issuer)(id));
        }
        self.noted[block.index()] = noted;
        if !data.successors.is_empty() {
            self.writes.store(state);
        }
    }

    fn join(&mut self, _: BlockId, state: &mut State, incoming: &State) -> bool {
        state.join(incoming)
    }
}

/// A body issuer operations are followed.
pub(crate) struct OutstandingWrites<'a> {
    body: &'a Body,
    cfg: &'a Cfg,
    summaries: &'a WaitSummaries,
    queues: Vec<Queue>,
    /// Ascending.
    unknown: SmallVec<[Unknown; 4]>,
    /// By issuer: whether an operation may still write a register.
    writing: [bool; 2],
    /// Of what original operations write, only this is followed.
    asked: RegSet,
}

impl<'a> OutstandingWrites<'a> {
    /// `asked` are the registers of which it will be asked whether an original operation may still write them.
    pub(crate) fn new(body: &'a Body, cfg: &'a Cfg, summaries: &'a WaitSummaries, asked: RegSet) -> Self {
        let queue = |counter| {
            let written = written_by(counter);
            Queue {
                counter,
                written,
                youngest: [0; KINDS],
                complete: [0; KINDS],
                writers: [[0; KINDS]; 2],
                slots: Vec::new(),
                filled: Vec::new(),
            }
        };
        let queues = writing_counters(body.target()).map(queue).collect();
        OutstandingWrites { body, cfg, summaries, queues, unknown: SmallVec::new(), writing: [false; 2], asked }
    }

    /// Calls `visit` before each instruction, until nothing changes any more; then once more for the blocks in which it
    /// returned true the last time, with `true`.
    pub(crate) fn follow(&mut self, issuer: impl Fn(InstId) -> Issuer, visit: impl FnMut(&Self, InstId, bool) -> bool) {
        let cfg = self.cfg;
        let at_entry = State::at_entry(self.body);
        let mut walk = Walk { writes: self, issuer, visit, noted: vec![false; cfg.len()] };
        let block_in = solve(&cfg.forward(), &mut walk, [(cfg.entry(), at_entry)]);
        let Walk { writes, issuer, mut visit, noted } = walk;
        for block in cfg.ids().filter(|block| noted[block.index()]) {
            let Some(state) = &block_in[block.index()] else { continue };
            writes.load(state);
            for id in cfg.block(block).insts() {
                visit(writes, id, true);
                writes.step(id, issuer(id));
            }
        }
    }

    /// Whether an operation of theirs may still write any register: quick, and false only if
    /// [`OutstandingWrites::writing`] finds nothing.
    pub(crate) fn may_write(&self, of: Issuer) -> bool {
        self.writing[of as usize]
    }

    /// Finds out what [`OutstandingWrites::may_write`] tells: after every change.
    fn note_writing(&mut self) {
        self.writing = [Issuer::Original, Issuer::Inserted].map(|of| self.queues.iter().any(|queue| queue.writes(of)));
    }

    /// The operations that may still write one of these registers, with the registers: those of `of`, in any counter.
    /// Of originals, that write registers that were asked for.
    pub(crate) fn writing(&self, registers: &[Reg], of: Issuer) -> SmallVec<[(InstId, RegSet); 1]> {
        let mut found: SmallVec<[(InstId, RegSet); 1]> = SmallVec::new();
        for queue in self.queues.iter().filter(|queue| queue.writes(of)) {
            for position in registers.iter().flat_map(|reg| RegSet::positions(*reg)) {
                let Some(by) = queue.pending(of, position) else { continue };
                let index = found.iter().position(|(other, _)| *other == by).unwrap_or_else(|| {
                    found.push((by, RegSet::EMPTY));
                    found.len() - 1
                });
                found[index].1.insert(RegSet::reg_at(position));
            }
        }
        found
    }

    /// The unknown outstanding operations, with what they may write.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = (Operation, RegSet)> + '_ {
        self.unknown.iter().map(|(counter, operation)| {
            let writes = match operation {
                Operation::Callee(call) => match self.body.flow(*call) {
                    Flow::Call(target) => self.summaries.of(target).writes,
                    _ => RegSet::ALL,
                },
                // A caller that has a load outstanding across a call expects its result afterwards.
                _ => RegSet::ALL,
            };
            (*operation, if written_by(*counter) == WrittenRegs::All { writes } else { writes.vectors() })
        })
    }

    fn load(&mut self, state: &State) {
        for queue in &mut self.queues {
            queue.filled.clear();
            // All that was before has numbers up to `complete`.
            queue.complete = queue.youngest;
            queue.youngest.iter_mut().for_each(|youngest| *youngest += u32::from(MOST) + 1);
        }
        let mut queues = self.queues.iter_mut().peekable();
        for write in &state.writes {
            while queues.peek().is_some_and(|queue| (queue.counter as u32) << 17 < write.key & !0x1_ffff) {
                queues.next();
            }
            let Some(queue) = queues.peek_mut() else { break };
            let issuer = if write.key >> 16 & 1 == 0 { Issuer::Original } else { Issuer::Inserted };
            let number = queue.youngest[write.kind as usize] - u32::from(write.age);
            queue.fill(issuer, (write.key & 0xffff) as usize, Slot { kind: write.kind, number, by: write.by });
        }
        self.unknown.clone_from(&state.unknown);
        self.note_writing();
    }

    /// Puts what is outstanding into `state`, in place of what was there.
    fn store(&mut self, state: &mut State) {
        state.writes.clear();
        state.unknown.clone_from(&self.unknown);
        for queue in &mut self.queues {
            queue.filled.sort_unstable();
            queue.filled.dedup();
            for key in &queue.filled {
                let index = (key >> 16 & 1) as usize * RegSet::POSITIONS + (key & 0xffff) as usize;
                let slot = queue.slots[index];
                if queue.is_pending(slot) {
                    let age = (queue.youngest[slot.kind as usize] - slot.number).min(u32::from(MOST)) as u8;
                    state.writes.push(Write { key: *key, kind: slot.kind, age, by: slot.by });
                }
            }
        }
    }

    fn step(&mut self, id: InstId, issuer: Issuer) {
        let (body, inst) = (self.body, self.body.inst(id));
        let (waits, issued, flow) = (wait_count(body.target(), inst), issued(inst), body.flow(id));
        let answers = inst.variant.opcode_flags.contains(OpcodeFlags::BARRIER_WAIT);
        if waits.is_none() && issued.is_empty() && !answers && !matches!(flow, Flow::Call(_)) {
            return;
        }
        if let Some(counts) = waits {
            for queue in &mut self.queues {
                if counts.get(queue.counter).is_some_and(|count| queue.wait(count)) {
                    self.unknown.retain(|(counter, _)| *counter != queue.counter);
                }
            }
        }
        if answers {
            self.answer(id);
        }
        if !issued.is_empty() {
            let counts = !may_not_count(body, id);
            for queue in self.queues.iter_mut().filter(|queue| issued.contains(queue.counter.flag())) {
                let kind = completion_order(body, FlatMemory::Any, queue.counter, id);
                let slot = Slot { kind, number: queue.issue(counts, kind), by: id };
                let all = queue.written == WrittenRegs::All;
                for reg in body.writes(id).filter(|reg| all || reg.file != RegFile::Scalar) {
                    if issuer == Issuer::Inserted {
                        RegSet::positions(reg).for_each(|position| queue.fill(issuer, position, slot));
                    } else if self.asked.overlaps(reg) {
                        let asked =
                            RegSet::positions(reg).filter(|position| self.asked.contains(RegSet::reg_at(*position)));
                        asked.for_each(|position| queue.fill(issuer, position, slot));
                    }
                }
            }
        }
        if let Flow::Call(target) = flow {
            let summary = self.summaries.of(target);
            for queue in &mut self.queues {
                let counter = queue.counter;
                if summary.completes_caller[counter as usize] {
                    queue.complete = queue.youngest;
                    self.unknown.retain(|(other, _)| *other != counter);
                }
                if summary.leaves[counter as usize]
                    && let Err(place) = self.unknown.binary_search(&(counter, Operation::Callee(id)))
                {
                    self.unknown.insert(place, (counter, Operation::Callee(id)));
                }
            }
        }
        self.note_writing();
    }

    /// A barrier's wait comes after the answer to its `s_barrier_signal_isfirst`, which is in SCC then.
    fn answer(&mut self, wait: InstId) {
        let number = |id: InstId| match self.body.inst(id).operands.first()?.value {
            Value::InlineInt(number) => Some(i16::from(number)),
            Value::Imm(number) => Some(number as i16),
            // M0 has it.
            _ => None,
        };
        for queue in self.queues.iter_mut().filter(|queue| queue.counter == Counter::Km) {
            for position in RegSet::positions(Reg::SCC) {
                for issuer in [Issuer::Original, Issuer::Inserted] {
                    let Some(by) = queue.pending(issuer, position) else { continue };
                    let signal = self.body.inst(by).opcode() == Opcode::S_BARRIER_SIGNAL_ISFIRST;
                    if signal && number(by).is_some() && number(by) == number(wait) {
                        queue.slots[issuer as usize * RegSet::POSITIONS + position].number = 0;
                    }
                }
            }
        }
    }
}
