//! Outstanding memory operations and what each `s_waitcnt` waits for.
//!
//! A counter (gfx9: vmcnt, lgkmcnt, expcnt) counts operations that were issued and are not complete; `s_waitcnt` waits until at most N are left. Operations
//! of one kind complete in order, so an operation with at least N younger ones behind it is complete after the wait. Scalar loads complete in any
//! order, and so do operations of different kinds in one counter; a pending FLAT operation, which counts in two counters, has no place in either
//! order: then only a wait for 0 proves anything about one operation.
//!
//! The state at a point is, for each counter, the operations that may be pending there with the least and the greatest number of younger ones. At a join
//! it is the union; an operation that is pending on all paths is *certain*.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::regset::RegSet;
use crate::cfg::{Cfg, Exit, Program};
use crate::entity::InstId;
use crate::isa::{Counters, Flags, Inst, Memory, Role, Value};
use crate::kernel::{Body, BodyKind, CallTarget, Flow};

/// A wait counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// `vmcnt`: vector memory; on gfx9 stores too.
    Vm,
    /// `lgkmcnt`: LDS, GDS, scalar memory, messages.
    Lgkm,
    /// `expcnt`: exports and GDS.
    Exp,
}

impl Counter {
    /// All of them.
    pub const ALL: [Counter; 3] = [Counter::Vm, Counter::Lgkm, Counter::Exp];

    /// The name in `s_waitcnt`'s syntax: `vmcnt`.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["vmcnt", "lgkmcnt", "expcnt"][self as usize]
    }

    fn flag(self) -> Counters {
        [Counters::VM, Counters::LGKM, Counters::EXP][self as usize]
    }
}

/// The counts an `s_waitcnt` names; none where the field has its maximum, which waits for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitCounts([Option<u8>; 3]);

impl WaitCounts {
    /// Reads the fields of a gfx9 `s_waitcnt`: vmcnt 3:0 and 15:14, expcnt 6:4, lgkmcnt 11:8. None for any other instruction.
    #[must_use]
    pub fn of(inst: &Inst) -> Option<WaitCounts> {
        if !inst.variant.flags.contains(Flags::WAIT) || inst.name() != "s_waitcnt" {
            return None;
        }
        let Value::Imm(bits) = inst.operand(Role::WaitCount).or_else(|| inst.operand(Role::Simm16))?.value else { return None };
        let field = |value: i64, max: i64| (value != max).then_some(value as u8);
        Some(WaitCounts([field(bits & 15 | bits >> 10 & 0x30, 63), field(bits >> 8 & 15, 15), field(bits >> 4 & 7, 7)]))
    }

    /// The number of operations that may stay outstanding.
    #[must_use]
    pub fn get(self, counter: Counter) -> Option<u8> {
        self.0[counter as usize]
    }
}

/// Something that incremented a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Whatever the caller had outstanding when it called this function.
    Caller,
    /// An instruction of this body.
    Inst(InstId),
    /// Whatever this call left outstanding.
    Callee(InstId),
}

/// An operation that may be outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingOperation {
    /// The operation.
    pub operation: Operation,
    /// The least number of younger operations in the counter, over all paths.
    pub min_younger: u8,
    /// The greatest number, at most [`MOST`]; with an operation in a loop, that of its oldest instance.
    pub max_younger: u8,
    /// Whether it is outstanding on every path.
    pub certain: bool,
}

/// How sure it is that a wait waits for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// On every path that reaches the wait.
    Must,
    /// On some path.
    May,
    /// It may be among those waited for: operations of this counter complete out of order and the wait is not for 0.
    Unordered,
}

/// One operation that a wait waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitedOperation {
    /// The operation.
    pub operation: Operation,
    /// How sure that is.
    pub certainty: Certainty,
}

/// One counter of one `s_waitcnt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The `s_waitcnt`.
    pub inst: InstId,
    /// The counter.
    pub counter: Counter,
    /// How many may stay outstanding.
    pub count: u8,
    /// What it waits for, ascending.
    pub operations: Vec<WaitedOperation>,
}

/// Positions are counted up to here: more than any counter of gfx9 holds (vmcnt, 6 bits).
pub const MOST: u8 = 64;

/// The order in which an operation completes relative to others of its counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Vmem,
    Lds,
    Gds,
    Export,
    Message,
    Unordered,
}

fn kind(body: &Body, operation: Operation) -> Kind {
    let Operation::Inst(id) = operation else { return Kind::Unordered };
    let inst = body.inst(id);
    match inst.variant.memory {
        Memory::Global | Memory::Scratch | Memory::Buffer | Memory::Image => Kind::Vmem,
        Memory::Lds if inst.modifiers.gds => Kind::Gds,
        Memory::Lds => Kind::Lds,
        Memory::Gds => Kind::Gds,
        Memory::Message => Kind::Message,
        Memory::None => Kind::Export,
        Memory::Scalar | Memory::Flat => Kind::Unordered,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    min: u8,
    max: u8,
    certain: bool,
}

type Queue = BTreeMap<Operation, Position>;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct State([Queue; 3]);

impl State {
    fn at_entry(kind: BodyKind) -> State {
        let mut state = State::default();
        if kind == BodyKind::Function {
            for queue in &mut state.0 {
                queue.insert(Operation::Caller, Position { min: 0, max: MOST, certain: false });
            }
        }
        state
    }

    /// Everything that may be pending.
    fn operations(&self) -> impl Iterator<Item = (Counter, Operation)> + '_ {
        Counter::ALL.into_iter().zip(&self.0).flat_map(|(counter, queue)| queue.keys().map(move |operation| (counter, *operation)))
    }

    /// Adds what may be pending in `other`; tells whether that changed `self`.
    fn join(&mut self, other: &State) -> bool {
        let before = self.clone();
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            for (operation, position) in mine.iter_mut() {
                position.certain &= theirs.get(operation).is_some_and(|other| other.certain);
            }
            for (operation, other) in theirs {
                mine.entry(*operation)
                    .and_modify(|position| {
                        position.min = position.min.min(other.min);
                        position.max = position.max.max(other.max);
                    })
                    .or_insert(Position { certain: false, ..*other });
            }
        }
        *self != before
    }

    /// The effect of one instruction; waits are told to `report`.
    fn step(&mut self, body: &Body, id: InstId, summaries: &WaitSummaries, mut report: impl FnMut(Wait)) {
        let inst = body.inst(id);
        if let Some(counts) = WaitCounts::of(inst) {
            for counter in Counter::ALL {
                if let Some(count) = counts.get(counter) {
                    let operations = self.wait(body, counter, count);
                    report(Wait { inst: id, counter, count, operations });
                }
            }
        }
        for counter in Counter::ALL {
            if inst.variant.counters.contains(counter.flag()) {
                self.issue(counter, Operation::Inst(id));
            }
        }
        if let Flow::Call(target) = body.flow(id) {
            let summary = summaries.of(target);
            for counter in Counter::ALL {
                let queue = &mut self.0[counter as usize];
                if summary.completes_caller[counter as usize] {
                    queue.clear();
                }
                for position in queue.values_mut() {
                    *position = Position { min: position.min, max: MOST, certain: false };
                }
                if summary.leaves[counter as usize] {
                    queue.insert(Operation::Callee(id), Position { min: 0, max: MOST, certain: false });
                }
            }
        }
    }

    fn issue(&mut self, counter: Counter, operation: Operation) {
        let queue = &mut self.0[counter as usize];
        for position in queue.values_mut() {
            position.min = (position.min + 1).min(MOST);
            position.max = (position.max + 1).min(MOST);
        }
        let oldest = queue.get(&operation).map_or(0, |position| position.max);
        queue.insert(operation, Position { min: 0, max: oldest, certain: true });
    }

    fn wait(&mut self, body: &Body, counter: Counter, count: u8) -> Vec<WaitedOperation> {
        let queue = &mut self.0[counter as usize];
        let mut waited = Vec::new();
        let mut kinds: SmallVec<[Kind; 4]> = queue.keys().map(|operation| kind(body, *operation)).collect();
        kinds.dedup();
        let ordered = kinds.iter().all(|kind| *kind == kinds[0] && *kind != Kind::Unordered);
        if count > 0 && !ordered {
            // An operation counts once for each of its instances: with one in a loop there may be more than operations.
            let enough = queue.len() > usize::from(count) || queue.values().any(|position| position.max >= count);
            if enough {
                for (operation, position) in queue.iter_mut() {
                    position.certain = false;
                    waited.push(WaitedOperation { operation: *operation, certainty: Certainty::Unordered });
                }
            }
            return waited;
        }
        queue.retain(|operation, position| {
            if position.max >= count {
                let must = position.min >= count && position.certain;
                waited.push(WaitedOperation { operation: *operation, certainty: if must { Certainty::Must } else { Certainty::May } });
            }
            if position.min >= count {
                return false;
            }
            if position.max >= count {
                *position = Position { min: position.min, max: count - 1, certain: false };
            }
            true
        });
        waited
    }
}

/// What a function does to outstanding operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WaitSummary {
    /// Whether everything that was outstanding at the call is complete when it returns, by counter.
    completes_caller: [bool; 3],
    /// Whether it may leave operations of its own outstanding.
    leaves: [bool; 3],
    /// The registers that those may still write.
    writes: RegSet,
}

impl WaitSummary {
    const NOTHING: WaitSummary = WaitSummary { completes_caller: [true; 3], leaves: [false; 3], writes: RegSet::EMPTY };
    const UNKNOWN: WaitSummary = WaitSummary { completes_caller: [false; 3], leaves: [true; 3], writes: RegSet::ALL };
}

/// What calls do to outstanding operations.
#[derive(Debug, Clone, Default)]
pub struct WaitSummaries {
    by_entry: FxHashMap<u64, WaitSummary>,
}

impl WaitSummaries {
    /// Nothing is known of any call.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Finds out for each function of a program: the least fixed point, so that recursion alone makes nothing unknown.
    #[must_use]
    pub fn compute(program: &Program) -> Self {
        let functions: Vec<(&Body, Cfg)> =
            program.bodies().iter().filter(|body| body.kind() == BodyKind::Function).map(|body| (body, Cfg::build(body))).collect();
        let by_entry = functions.iter().map(|(body, _)| (body.entry_address(), WaitSummary::NOTHING)).collect();
        let mut summaries = Self { by_entry };
        loop {
            // What is known of a callee's effects only grows, and is finite.
            let next =
                functions.iter().map(|(body, cfg)| (body.entry_address(), Waits::compute(body, cfg, &summaries).summary())).collect();
            if next == summaries.by_entry {
                return summaries;
            }
            summaries.by_entry = next;
        }
    }

    fn of(&self, target: CallTarget) -> WaitSummary {
        match target {
            CallTarget::Known(address) => self.by_entry.get(&address).copied().unwrap_or(WaitSummary::UNKNOWN),
            CallTarget::Unknown => WaitSummary::UNKNOWN,
        }
    }
}

/// The outstanding operations of a body at every point.
#[derive(Debug)]
pub struct Waits<'a> {
    body: &'a Body,
    cfg: &'a Cfg,
    summaries: &'a WaitSummaries,
    block_in: Vec<State>,
    waits: Vec<Wait>,
}

impl<'a> Waits<'a> {
    /// Follows the counters through a body.
    #[must_use]
    pub fn compute(body: &'a Body, cfg: &'a Cfg, summaries: &'a WaitSummaries) -> Self {
        let mut block_in: Vec<Option<State>> = vec![None; cfg.len()];
        block_in[cfg.entry().index()] = Some(State::at_entry(body.kind()));
        let mut queued = vec![false; cfg.len()];
        let mut work = std::collections::VecDeque::from([cfg.entry()]);
        while let Some(block) = work.pop_front() {
            queued[block.index()] = false;
            let Some(mut state) = block_in[block.index()].clone() else { continue };
            for id in cfg.block(block).insts() {
                state.step(body, id, summaries, |_| {});
            }
            for edge in &cfg.block(block).successors {
                let changed = match &mut block_in[edge.block.index()] {
                    Some(old) => old.join(&state),
                    unreached => {
                        *unreached = Some(state.clone());
                        true
                    }
                };
                if changed && !std::mem::replace(&mut queued[edge.block.index()], true) {
                    work.push_back(edge.block);
                }
            }
        }
        let block_in: Vec<State> = block_in.into_iter().map(Option::unwrap_or_default).collect();
        let mut waits = Vec::new();
        for block in cfg.ids() {
            let mut state = block_in[block.index()].clone();
            for id in cfg.block(block).insts() {
                state.step(body, id, summaries, |wait| waits.push(wait));
            }
        }
        Waits { body, cfg, summaries, block_in, waits }
    }

    /// Every counter of every `s_waitcnt` in address order, with the operations it waits for.
    #[must_use]
    pub fn all(&self) -> &[Wait] {
        &self.waits
    }

    fn state_before(&self, id: InstId) -> State {
        let block = self.cfg.block_of(id);
        let mut state = self.block_in[block.index()].clone();
        for earlier in self.cfg.block(block).insts().take_while(|earlier| *earlier != id) {
            state.step(self.body, earlier, self.summaries, |_| {});
        }
        state
    }

    /// What may be outstanding in a counter just before an instruction.
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[must_use]
    pub fn pending(&self, id: InstId, counter: Counter) -> Vec<PendingOperation> {
        let state = self.state_before(id);
        let pending = |(operation, position): (&Operation, &Position)| PendingOperation {
            operation: *operation,
            min_younger: position.min,
            max_younger: position.max,
            certain: position.certain,
        };
        state.0[counter as usize].iter().map(pending).collect()
    }

    /// The registers that outstanding operations may still write just before an instruction: even if dead, they must not be used for anything else.
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[must_use]
    pub fn pending_writes(&self, id: InstId) -> RegSet {
        self.writes_of(&self.state_before(id))
    }

    /// [`Waits::pending_writes`] before every instruction, by index.
    #[must_use]
    pub fn all_pending_writes(&self) -> Vec<RegSet> {
        let mut all = Vec::with_capacity(self.body.len());
        for block in self.cfg.ids() {
            let mut state = self.block_in[block.index()].clone();
            for id in self.cfg.block(block).insts() {
                all.push(self.writes_of(&state));
                state.step(self.body, id, self.summaries, |_| {});
            }
        }
        all
    }

    /// Calls `visit` for every instruction, in address order, with the operations that may be outstanding just before it, and in which counter.
    pub fn for_each_pending(&self, mut visit: impl FnMut(InstId, &[(Counter, Operation)])) {
        for block in self.cfg.ids() {
            let mut state = self.block_in[block.index()].clone();
            for id in self.cfg.block(block).insts() {
                visit(id, &state.operations().collect::<Vec<_>>());
                state.step(self.body, id, self.summaries, |_| {});
            }
        }
    }

    /// The registers that an operation may still write while it is outstanding in a counter.
    #[must_use]
    pub fn results(&self, counter: Counter, operation: Operation) -> RegSet {
        let writes = match operation {
            // A caller that has a load outstanding across a call expects its result afterwards.
            Operation::Caller => RegSet::ALL,
            Operation::Inst(id) => return self.body.inst(id).writes().collect(),
            Operation::Callee(id) => match self.body.flow(id) {
                Flow::Call(target) => self.summaries.of(target).writes,
                _ => RegSet::ALL,
            },
        };
        // Only scalar loads write scalar registers.
        if counter == Counter::Lgkm { writes } else { writes.vectors() }
    }

    fn writes_of(&self, state: &State) -> RegSet {
        state.operations().fold(RegSet::EMPTY, |writes, (counter, operation)| writes.union(self.results(counter, operation)))
    }

    /// What this body does to its caller's operations, if it is a function.
    fn summary(&self) -> WaitSummary {
        let mut summary = WaitSummary::NOTHING;
        for (index, block) in self.cfg.blocks().iter().enumerate() {
            match block.exit {
                Some(Exit::Return) => {
                    let mut state = self.block_in[index].clone();
                    block.insts().for_each(|id| state.step(self.body, id, self.summaries, |_| {}));
                    for (counter, queue) in state.0.iter_mut().enumerate() {
                        summary.completes_caller[counter] &= queue.remove(&Operation::Caller).is_none();
                        summary.leaves[counter] |= !queue.is_empty();
                    }
                    summary.writes = summary.writes.union(self.writes_of(&state));
                }
                Some(Exit::TailCall | Exit::Unknown) => return WaitSummary::UNKNOWN,
                Some(Exit::End) | None => {}
            }
        }
        summary
    }
}
