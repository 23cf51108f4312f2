//! Outstanding memory operations and what each `s_waitcnt` and its relatives wait for.
//!
//! A counter counts operations that were issued and are not complete; a wait lasts until at most N are left. Operations
//! of one kind complete in order, so an operation with at least N younger ones after it is complete after the wait.
//! Scalar loads complete in any order, and so do operations of different kinds in one counter; up to gfx9 a pending
//! FLAT operation, which counts in two counters, has no place in either order: then only a wait for 0 proves anything
//! about one operation.
//!
//! The state at a point is, for each counter, the operations that may be pending there with the least and the greatest
//! number of younger ones. At a join it is the union; an operation that is pending on all paths is *certain*.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::completion::{
    CompletionOrder, FlatMemory, WrittenRegs, completion_order, counters_of, may_not_count, written_by,
};
use super::pending::{Pending, Position, Queue};
use super::regset::RegSet;
use super::summary::callers;
use crate::cfg::{Cfg, Exit, Program};
use crate::kernel::{Body, BodyKind, CallTarget, Flow};
use crate::solver::{Analysis, Lattice, iterate, solve};
use wavetap_amdgpu::{Counter, Inst, Memory, Opcode, OpcodeFlags, Value, issued, wait_count};
use wavetap_base::entity::{BlockId, InstId};

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
    /// On which paths the wait waits for it.
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

/// Positions are counted up to here: more than any counter holds (6 bits at most).
pub const MOST: u8 = 64;

/// How many counters there are, on all targets together.
const COUNTERS: usize = Counter::ALL.len();

/// What the steps of the analysis look things up in.
#[derive(Debug, Clone, Copy)]
struct Context<'a> {
    body: &'a Body,
    summaries: &'a WaitSummaries,
    flat: FlatMemory,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct State([Queue; COUNTERS]);

/// What may be pending in either.
impl Lattice for State {
    fn join(&mut self, other: &State) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            changed |= mine.join(theirs);
        }
        changed
    }
}

impl State {
    fn at_entry(body: &Body) -> State {
        let mut state = State::default();
        if body.kind() == BodyKind::Function {
            for counter in counters_of(body.target()) {
                state.0[counter as usize].insert(unknown(Operation::Caller));
            }
        }
        state
    }

    /// Everything that may be pending.
    fn operations(&self) -> impl Iterator<Item = (Counter, Operation)> + '_ {
        Counter::ALL
            .into_iter()
            .zip(&self.0)
            .flat_map(|(counter, queue)| queue.iter().map(move |pending| (counter, pending.operation)))
    }

    /// The effect of one instruction.
    fn step(&mut self, context: Context<'_>, id: InstId) {
        self.step_with(context, id, None);
    }

    /// [`State::step`]; waits are told to `report`.
    fn step_with(&mut self, context: Context<'_>, id: InstId, mut report: Option<&mut dyn FnMut(Wait)>) {
        let body = context.body;
        let inst = body.inst(id);
        if let Some(counts) = wait_count(body.target(), inst) {
            for (counter, count) in counts.iter() {
                match &mut report {
                    None => self.wait(counter, count, |_| {}),
                    Some(report) => {
                        let mut operations = Vec::new();
                        self.wait(counter, count, |waited| operations.push(waited));
                        report(Wait { inst: id, counter, count, operations });
                    }
                }
            }
        }
        if inst.variant.opcode_flags.contains(OpcodeFlags::BARRIER_WAIT) {
            self.answer(body, inst);
        }
        let issued = issued(inst);
        for counter in Counter::ALL {
            if issued.contains(counter.flag()) {
                self.issue(context, counter, id);
            }
        }
        if let Flow::Call(target) = body.flow(id) {
            let summary = context.summaries.of(target);
            for counter in counters_of(body.target()) {
                let queue = &mut self.0[counter as usize];
                if summary.completes_caller[counter as usize] {
                    queue.clear();
                }
                for Pending { position, .. } in queue.iter_mut() {
                    *position = Position { min: position.min, max: MOST, certain: false };
                }
                if summary.leaves[counter as usize] {
                    queue.insert(unknown(Operation::Callee(id)));
                }
            }
        }
    }

    fn issue(&mut self, context: Context<'_>, counter: Counter, id: InstId) {
        let operation = Operation::Inst(id);
        let queue = &mut self.0[counter as usize];
        let kind = completion_order(context.body, context.flat, counter, id);
        if counter == Counter::X {
            // The hardware waits between the translations of scalar and of vector memory operations.
            queue.retain(|older| !matches!(older.operation, Operation::Inst(_)) || older.kind == kind);
        }
        let counts = u8::from(!may_not_count(context.body, id));
        for Pending { position, .. } in queue.iter_mut() {
            position.min = (position.min + counts).min(MOST);
            position.max = (position.max + 1).min(MOST);
        }
        let oldest = queue.get(operation).map_or(0, |position| position.max);
        queue.insert(Pending { operation, position: Position { min: 0, max: oldest, certain: counts == 1 }, kind });
    }

    /// A barrier's wait comes after the answer to its `s_barrier_signal_isfirst` (LLVM, SIInsertWaitcnts).
    fn answer(&mut self, body: &Body, wait: &Inst) {
        let number = |inst: &Inst| match inst.operands.first()?.value {
            Value::InlineInt(number) => Some(i16::from(number)),
            Value::Imm(number) => Some(number as i16),
            // M0 has it.
            _ => None,
        };
        let of_barrier = |inst: &Inst| {
            inst.opcode() == Opcode::S_BARRIER_SIGNAL_ISFIRST && number(inst).is_some() && number(inst) == number(wait)
        };
        self.0[Counter::Km as usize]
            .retain(|pending| !matches!(pending.operation, Operation::Inst(id) if of_barrier(body.inst(id))));
    }

    /// A wait; what it waits for is told to `waited`, ascending.
    fn wait(&mut self, counter: Counter, count: u8, mut waited: impl FnMut(WaitedOperation)) {
        let queue = &mut self.0[counter as usize];
        let first = queue.iter().next().map_or(CompletionOrder::Unordered, |pending| pending.kind);
        let ordered = first != CompletionOrder::Unordered && queue.iter().all(|pending| pending.kind == first);
        if count > 0 && !ordered {
            // An operation counts once for each of its instances: with one in a loop there may be more than operations.
            let enough = queue.len() > usize::from(count) || queue.iter().any(|pending| pending.position.max >= count);
            if enough {
                for Pending { operation, position, .. } in queue.iter_mut() {
                    position.certain = false;
                    waited(WaitedOperation { operation: *operation, certainty: Certainty::Unordered });
                }
            }
            return;
        }
        let mut complete: SmallVec<[Operation; 8]> = SmallVec::new();
        queue.retain(|Pending { operation, position, .. }| {
            if position.max >= count {
                let must = position.min >= count && position.certain;
                waited(WaitedOperation {
                    operation: *operation,
                    certainty: if must { Certainty::Must } else { Certainty::May },
                });
            }
            if position.min >= count {
                complete.push(*operation);
                return false;
            }
            if position.max >= count {
                *position = Position { min: position.min, max: count - 1, certain: false };
            }
            true
        });
        // The address of an operation that is complete was translated.
        let translations = &mut self.0[Counter::X as usize];
        if !translations.is_empty() {
            for operation in complete.iter().filter(|operation| matches!(operation, Operation::Inst(_))) {
                translations.remove(*operation);
            }
        }
    }
}

/// Whether [`State::step`] may change anything.
fn changes_what_is_pending(body: &Body, id: InstId) -> bool {
    let inst = body.inst(id);
    wait_count(body.target(), inst).is_some()
        || inst.variant.opcode_flags.contains(OpcodeFlags::BARRIER_WAIT)
        || !issued(inst).is_empty()
        || matches!(body.flow(id), Flow::Call(_))
}

/// The operations that may be outstanding at the start of each block. There are finitely many, and finitely many
/// numbers of younger ones up to [`MOST`].
struct Operations<'a> {
    context: Context<'a>,
    cfg: &'a Cfg,
}

impl Analysis for Operations<'_> {
    type Node = BlockId;
    type State = State;

    fn transfer(&mut self, block: BlockId, state: &mut State) {
        self.cfg.block(block).insts().for_each(|id| state.step(self.context, id));
    }

    fn join(&mut self, _: BlockId, state: &mut State, incoming: &State) -> bool {
        state.join(incoming)
    }
}

/// Operations of which nothing is known but that they may be there.
fn unknown(operation: Operation) -> Pending {
    Pending { operation, position: Position { min: 0, max: MOST, certain: false }, kind: CompletionOrder::Unordered }
}

/// What a function does to outstanding operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitSummary {
    /// Whether everything that was outstanding at the call is complete when it returns, by counter.
    pub completes_caller: [bool; COUNTERS],
    /// Whether it may leave operations of its own outstanding.
    pub leaves: [bool; COUNTERS],
    /// The registers that those may still write.
    pub writes: RegSet,
}

impl WaitSummary {
    const NOTHING: WaitSummary =
        WaitSummary { completes_caller: [true; COUNTERS], leaves: [false; COUNTERS], writes: RegSet::EMPTY };
    const UNKNOWN: WaitSummary =
        WaitSummary { completes_caller: [false; COUNTERS], leaves: [true; COUNTERS], writes: RegSet::ALL };
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
        let functions: Vec<(&Body, Cfg)> = program
            .bodies()
            .iter()
            .filter(|body| body.kind() == BodyKind::Function)
            .map(|body| (body, Cfg::build(body)))
            .collect();
        let by_entry = functions.iter().map(|(body, _)| (body.entry_address(), WaitSummary::NOTHING)).collect();
        let mut summaries = Self { by_entry };
        let bodies: Vec<&Body> = functions.iter().map(|(body, _)| *body).collect();
        // What is known of a callee's effects only grows, and is finite.
        iterate(&callers(&bodies), |index| {
            let (body, cfg) = &functions[index];
            let summary = Waits::compute(body, cfg, &summaries).summary();
            summaries.by_entry.insert(body.entry_address(), summary) != Some(summary)
        });
        summaries
    }

    /// What a call of `target` does to the counters; of an unknown one, what any function may.
    pub fn of(&self, target: CallTarget) -> WaitSummary {
        match target {
            CallTarget::Known(address) => self.by_entry.get(&address).copied().unwrap_or(WaitSummary::UNKNOWN),
            CallTarget::Unknown => WaitSummary::UNKNOWN,
        }
    }
}

/// The outstanding operations of a body at every point.
#[derive(Debug)]
pub struct Waits<'a> {
    context: Context<'a>,
    cfg: &'a Cfg,
    block_in: Vec<State>,
    waits: Vec<Wait>,
}

impl<'a> Waits<'a> {
    /// Follows the counters through a body.
    #[must_use]
    pub fn compute(body: &'a Body, cfg: &'a Cfg, summaries: &'a WaitSummaries) -> Self {
        Self::compute_with(body, cfg, summaries, FlatMemory::Any)
    }

    /// [`Waits::compute`] with what is known of FLAT operations.
    #[must_use]
    pub fn compute_with(body: &'a Body, cfg: &'a Cfg, summaries: &'a WaitSummaries, flat: FlatMemory) -> Self {
        let context = Context { body, summaries, flat };
        let at_entry = State::at_entry(body);
        let block_in = solve(&cfg.forward(), &mut Operations { context, cfg }, [(cfg.entry(), at_entry)]);
        let block_in: Vec<State> = block_in.into_iter().map(Option::unwrap_or_default).collect();
        let mut waits = Vec::new();
        for block in cfg.ids() {
            let mut state = block_in[block.index()].clone();
            for id in cfg.block(block).insts() {
                state.step_with(context, id, Some(&mut |wait| waits.push(wait)));
            }
        }
        Waits { context, cfg, block_in, waits }
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
            state.step(self.context, earlier);
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
        let pending = |Pending { operation, position, .. }: &Pending| PendingOperation {
            operation: *operation,
            min_younger: position.min,
            max_younger: position.max,
            certain: position.certain,
        };
        state.0[counter as usize].iter().map(pending).collect()
    }

    /// The registers that outstanding operations may still write just before an instruction: even if dead, they must
    /// not be used for anything else.
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
        let mut all = Vec::with_capacity(self.context.body.len());
        for block in self.cfg.ids() {
            let mut state = self.block_in[block.index()].clone();
            let mut writes = self.writes_of(&state);
            for id in self.cfg.block(block).insts() {
                all.push(writes);
                if changes_what_is_pending(self.context.body, id) {
                    state.step(self.context, id);
                    writes = self.writes_of(&state);
                }
            }
        }
        all
    }

    /// Calls `visit` for every instruction, in address order, with the operations that may be outstanding just before
    /// it, and in which counter.
    pub fn for_each_pending(&self, mut visit: impl FnMut(InstId, &[(Counter, Operation)])) {
        for block in self.cfg.ids() {
            let mut state = self.block_in[block.index()].clone();
            for id in self.cfg.block(block).insts() {
                visit(id, &state.operations().collect::<Vec<_>>());
                state.step(self.context, id);
            }
        }
    }

    /// The registers that an operation may still write while it is outstanding in a counter.
    #[must_use]
    pub fn results(&self, counter: Counter, operation: Operation) -> RegSet {
        let writes = match operation {
            // A caller that has a load outstanding across a call expects its result afterwards.
            Operation::Caller => RegSet::ALL,
            Operation::Inst(id) => {
                let only_counts =
                    self.context.flat == FlatMemory::NoLds && matches!(counter, Counter::Lgkm | Counter::Ds);
                if only_counts && self.context.body.inst(id).variant.memory == Memory::Flat {
                    return RegSet::EMPTY;
                }
                self.context.body.writes(id).collect()
            }
            Operation::Callee(id) => match self.context.body.flow(id) {
                Flow::Call(target) => self.context.summaries.of(target).writes,
                _ => RegSet::ALL,
            },
        };
        match written_by(counter) {
            WrittenRegs::All => writes,
            WrittenRegs::Vectors => writes.vectors(),
            WrittenRegs::Nothing => RegSet::EMPTY,
        }
    }

    /// The registers that an operation may still read while it is outstanding in a counter: to overwrite one is a
    /// fault.
    #[must_use]
    pub fn sources(&self, counter: Counter, operation: Operation) -> RegSet {
        let Operation::Inst(id) = operation else { return RegSet::EMPTY };
        let reads: RegSet = self.context.body.reads(id).collect();
        match counter {
            Counter::X => reads,
            // Exports and GDS; a direct read of LDS has no vector sources.
            Counter::Exp => reads.vectors(),
            _ => RegSet::EMPTY,
        }
    }

    fn writes_of(&self, state: &State) -> RegSet {
        state
            .operations()
            .fold(RegSet::EMPTY, |writes, (counter, operation)| writes.union(self.results(counter, operation)))
    }

    /// What this body does to its caller's operations, if it is a function.
    fn summary(&self) -> WaitSummary {
        let mut summary = WaitSummary::NOTHING;
        for (index, block) in self.cfg.blocks().iter().enumerate() {
            match block.exit {
                Some(Exit::Return) => {
                    let mut state = self.block_in[index].clone();
                    block.insts().for_each(|id| state.step(self.context, id));
                    for (counter, queue) in state.0.iter_mut().enumerate() {
                        summary.completes_caller[counter] &= !queue.remove(Operation::Caller);
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
