//! Operations in flight, and what each wait waits for, from [`Issue`](crate::Issue) and [`WaitFor`].
//!
//! A forward analysis over blocks. The state at a point is, for each counter, the operations that may be in it, with
//! the least and the greatest number of younger ones over all paths, and whether they are there on every path. At a
//! join it is the union.
//!
//! A wait for 0 empties its counter. A wait for more proves something only where all operations in the counter leave it
//! in order ([`Issue::order`](crate::Issue::order)): those with as many younger ones have left; else each may be what
//! it waits for ([`WaitCertainty::Unordered`]). An operation whose result is there has left all its counters.
//!
//! An operation without a counter that an in-order unit works on ([`Instruction::unit`]) is in flight, too. The next
//! instruction of the unit that counts for its result covers it: it is in that one's counter from then on, at its
//! place. Of each operation of a unit it is kept which younger ones of the unit followed on every path (at most
//! `MOST_YOUNGER`): when one of these is complete, it is.
//!
//! What is issued under a guard may not be. Other counters count in no order, and a call changes all as its
//! [`CallEffect`] says.

use std::collections::VecDeque;

use smallvec::SmallVec;

use crate::graph::Graph;
use crate::instruction::{CallEffect, Counter, Event, Flow, Instruction, WaitFor};
use crate::waits::{Operation, Wait, WaitCertainty, WaitedOperation};
use wavetap_base::entity::{BlockId, InstId};

/// Numbers of younger operations are counted up to here; a wait for as many or more waits for nothing.
pub const MOST: u8 = 64;

/// Younger operations of the same unit that are kept of each.
const MOST_YOUNGER: usize = 16;

/// An operation in a counter, or in a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pending {
    operation: Operation,
    event: Event,
    order: Option<u8>,
    min: u8,
    max: u8,
    certain: bool,
    covered_by: Option<InstId>,
    unit: Option<u8>,
    /// Operations of the unit that were issued later, on every path.
    younger: SmallVec<[InstId; 4]>,
}

impl Pending {
    /// Of which nothing is known but that it may be there.
    fn unknown(operation: Operation) -> Pending {
        let (order, covered_by, unit, younger) = (None, None, None, SmallVec::new());
        Pending { operation, event: Event::Result, order, min: 0, max: MOST, certain: false, covered_by, unit, younger }
    }

    fn key(&self) -> (Operation, Option<InstId>) {
        (self.operation, self.covered_by)
    }

    /// Both instances of one operation; true if this one changed.
    fn join(&mut self, other: &Pending) -> bool {
        let mut both = Pending {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            certain: self.certain && other.certain,
            ..self.clone()
        };
        both.younger.retain(|id| other.younger.contains(id));
        let changed = both != *self;
        *self = both;
        changed
    }
}

/// In a queue, operations are ascending by [`Pending::key`].
type Queue = Vec<Pending>;

fn insert(queue: &mut Queue, pending: Pending) {
    match queue.binary_search_by_key(&pending.key(), Pending::key) {
        Ok(index) => {
            let (certain, max) = (queue[index].certain || pending.certain, queue[index].max);
            queue[index].join(&pending);
            // One instance is there, whichever.
            (queue[index].certain, queue[index].max) = (certain, max.max(pending.max));
        }
        Err(index) => queue.insert(index, pending),
    }
}

fn join(queue: &mut Queue, other: &Queue) -> bool {
    let mut changed = false;
    for mine in queue.iter_mut() {
        changed |= match other.binary_search_by_key(&mine.key(), Pending::key) {
            Ok(index) => mine.join(&other[index]),
            Err(_) => std::mem::replace(&mut mine.certain, false),
        };
    }
    for theirs in other {
        if let Err(index) = queue.binary_search_by_key(&theirs.key(), Pending::key) {
            queue.insert(index, Pending { certain: false, ..theirs.clone() });
            changed = true;
        }
    }
    changed
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    counters: Vec<Queue>,
    /// Operations of in-order units that count in no counter.
    uncounted: Queue,
}

impl State {
    fn new(counters: &[Counter], is_kernel: bool) -> State {
        let caller = |_: &Counter| if is_kernel { Vec::new() } else { vec![Pending::unknown(Operation::Caller)] };
        State { counters: counters.iter().map(caller).collect(), uncounted: Vec::new() }
    }

    fn join(&mut self, other: &State) -> bool {
        let mut changed = join(&mut self.uncounted, &other.uncounted);
        for (mine, theirs) in self.counters.iter_mut().zip(&other.counters) {
            changed |= join(mine, theirs);
        }
        changed
    }

    fn queues(&mut self) -> impl Iterator<Item = &mut Queue> {
        self.counters.iter_mut().chain([&mut self.uncounted])
    }

    /// The effect of one instruction; its waits are told to `report`.
    fn step(&mut self, counters: &[Counter], id: InstId, inst: &Instruction, mut report: impl FnMut(Wait)) {
        for wait in &inst.waits {
            let operations = self.wait(wait, wait.guarded && inst.guard.is_some());
            let WaitFor { counter, count, ref name, .. } = *wait;
            report(Wait { inst: id, counter, count, name: name.clone(), operations });
        }
        if let Flow::Call(CallEffect { completes, leaves, .. }) = inst.flow {
            self.call(id, completes, leaves);
        }
        self.issue(counters, id, inst);
    }

    fn call(&mut self, id: InstId, completes: bool, leaves: bool) {
        for queue in self.queues() {
            if completes {
                queue.clear();
            }
            for pending in queue.iter_mut() {
                (pending.max, pending.certain) = (MOST, false);
            }
        }
        if leaves {
            let callee = Pending::unknown(Operation::Callee(id));
            self.counters.iter_mut().for_each(|queue| insert(queue, callee.clone()));
        }
    }

    fn issue(&mut self, counters: &[Counter], id: InstId, inst: &Instruction) {
        let is_certain = inst.guard.is_none();
        if let Some(unit) = inst.unit {
            for pending in self.queues().flatten().filter(|pending| pending.unit == Some(unit)) {
                let follows = is_certain && pending.operation != Operation::Inst(id);
                if follows && !pending.younger.contains(&id) && pending.younger.len() < MOST_YOUNGER {
                    pending.younger.push(id);
                }
            }
        }
        let mut is_counted = false;
        for issue in &inst.issues {
            is_counted |= issue.event == Event::Result;
            let queue = &mut self.counters[issue.counter.index()];
            for pending in queue.iter_mut() {
                pending.min = (pending.min + u8::from(is_certain)).min(MOST);
                pending.max = (pending.max + 1).min(MOST);
            }
            if let Some(depth) = counters[issue.counter.index()].depth {
                queue.retain(|pending| pending.min < depth);
            }
            let new = Pending {
                operation: Operation::Inst(id),
                event: issue.event,
                order: issue.order,
                min: 0,
                max: 0,
                certain: is_certain,
                covered_by: None,
                unit: inst.unit,
                younger: SmallVec::new(),
            };
            if issue.event == Event::Result && inst.unit.is_some() {
                for pending in self.uncounted.iter().filter(|pending| pending.unit == inst.unit) {
                    let (order, covered_by) = (issue.order, Some(id));
                    let certain = pending.certain && is_certain;
                    insert(queue, Pending { order, covered_by, certain, min: 0, max: 0, ..pending.clone() });
                }
            }
            insert(queue, new);
        }
        if is_counted && is_certain {
            self.uncounted.retain(|pending| inst.unit.is_none() || pending.unit != inst.unit);
        }
        if !is_counted && inst.unit.is_some() {
            let mut new = Pending::unknown(Operation::Inst(id));
            (new.max, new.certain, new.unit) = (0, is_certain, inst.unit);
            insert(&mut self.uncounted, new);
        }
    }

    /// What a wait waits for, ascending. One that may not wait changes nothing.
    fn wait(&mut self, wait: &WaitFor, may_not_wait: bool) -> Vec<WaitedOperation> {
        let (counter, count) = (wait.counter.index(), wait.count);
        let mut waited = Vec::new();
        let queue = &mut self.counters[counter];
        let mut report = |pending: &Pending, certainty| {
            let certainty =
                if may_not_wait && certainty == WaitCertainty::Must { WaitCertainty::May } else { certainty };
            let Pending { operation, event, covered_by, .. } = *pending;
            waited.push(WaitedOperation { operation, certainty, event, covered_by });
        };
        let order = queue.first().and_then(|pending| pending.order);
        let in_order = order.is_some() && queue.iter().all(|pending| pending.order == order);
        if count >= MOST {
            return waited;
        }
        if count > 0 && !in_order {
            let counted = queue.iter().filter(|pending| pending.covered_by.is_none());
            // An operation in a loop may be there more than once.
            if counted.clone().count() > usize::from(count) || queue.iter().any(|pending| pending.max >= count) {
                for pending in queue.iter_mut() {
                    report(pending, WaitCertainty::Unordered);
                    pending.certain &= may_not_wait;
                }
            }
            return merged(waited);
        }
        let mut complete: SmallVec<[(Operation, Event); 8]> = SmallVec::new();
        queue.retain_mut(|pending| {
            let Pending { operation, event, min, max, certain, .. } = *pending;
            if max >= count {
                let must = min >= count && certain;
                report(pending, if must { WaitCertainty::Must } else { WaitCertainty::May });
            }
            if may_not_wait {
                return true;
            }
            if min >= count {
                // An uncovered one has no instance left: the least number of younger ones is that of the youngest.
                complete.extend(pending.covered_by.is_none().then_some((operation, event)));
                return false;
            }
            if max >= count {
                (pending.max, pending.certain) = (count - 1, false);
            }
            true
        });
        for (operation, event) in complete {
            self.complete(operation, event);
        }
        merged(waited)
    }

    /// All instances of an operation have left a counter, with their results if that is the event.
    fn complete(&mut self, operation: Operation, event: Event) {
        let (Operation::Inst(id), Event::Result) = (operation, event) else { return };
        for queue in self.queues() {
            queue.retain(|pending| pending.operation != operation && !pending.younger.contains(&id));
        }
    }
}

/// An operation that is there by itself and under the cover of another, or of several, is one.
fn merged(mut waited: Vec<WaitedOperation>) -> Vec<WaitedOperation> {
    waited.dedup_by(|next, first| {
        let same = next.operation == first.operation;
        if same && next.certainty == WaitCertainty::Must {
            first.certainty = WaitCertainty::Must;
        }
        same
    });
    waited
}

/// What the waits of instructions wait for, in address order; of blocks that are reached.
///
/// # Panics
/// If the graph or a counter is not of these instructions.
#[must_use]
pub fn waits(instructions: &[Instruction], graph: &Graph, counters: &[Counter], is_kernel: bool) -> Vec<Wait> {
    let mut starts: Vec<Option<State>> = vec![None; graph.len()];
    let mut is_queued = vec![false; graph.len()];
    let entry = graph.entry();
    starts[entry.index()] = Some(State::new(counters, is_kernel));
    let mut work: VecDeque<BlockId> = VecDeque::from([entry]);
    while let Some(block) = work.pop_front() {
        is_queued[block.index()] = false;
        let Some(mut state) = starts[block.index()].clone() else { continue };
        for id in graph.block(block).insts() {
            state.step(counters, id, &instructions[id.index()], |_| {});
        }
        for edge in &graph.block(block).successors {
            let changed = match &mut starts[edge.block.index()] {
                Some(known) => known.join(&state),
                none => {
                    *none = Some(state.clone());
                    true
                }
            };
            if changed && !std::mem::replace(&mut is_queued[edge.block.index()], true) {
                work.push_back(edge.block);
            }
        }
    }
    let mut found = Vec::new();
    for block in graph.ids() {
        let Some(mut state) = starts[block.index()].take() else { continue };
        for id in graph.block(block).insts() {
            state.step(counters, id, &instructions[id.index()], |wait| found.push(wait));
        }
    }
    found
}
