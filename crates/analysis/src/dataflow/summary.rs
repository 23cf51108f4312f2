//! What a call may read and write: the sum over everything the callee may execute.

use rustc_hash::{FxHashMap, FxHashSet};

use super::access::Accesses;
use super::indexing::Indexing;
use super::liveness::Liveness;
use super::regset::RegSet;
use crate::cfg::{BodyId, Cfg, Program};
use crate::kernel::{Body, BodyKind, CallTarget, Flow};

/// What calling a function may do to registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Registers whose value at the call may be read. Saving a register in order to restore it counts as reading it.
    pub reads: RegSet,
    /// Registers that may be written, restored ones included.
    pub writes: RegSet,
}

impl Summary {
    /// Nothing is known: everything may be read and written.
    pub const UNKNOWN: Summary = Summary { reads: RegSet::ALL, writes: RegSet::ALL };
    const NOTHING: Summary = Summary { reads: RegSet::EMPTY, writes: RegSet::EMPTY };
}

/// The summaries of all functions of a program.
#[derive(Debug, Clone, Default)]
pub struct Summaries {
    by_entry: FxHashMap<u64, Summary>,
}

impl Summaries {
    /// Summaries for a body by itself: every call may do anything.
    #[must_use]
    pub fn none() -> Summaries {
        Summaries::default()
    }

    /// Computes the summaries of all functions of a program and of what else is called, as the least fixed point over
    /// the call graph.
    #[must_use]
    pub fn compute(program: &Program) -> Summaries {
        let mut callers: FxHashMap<BodyId, Vec<BodyId>> = FxHashMap::default();
        for id in program.ids() {
            for callee in program.call_sites(id).filter_map(|(_, callee)| callee) {
                callers.entry(callee).or_default().push(id);
            }
        }
        // Few kernels are called, and nobody asks for the others' summaries.
        let is_asked_for = |id: &BodyId| program.body(*id).kind() == BodyKind::Function || callers.contains_key(id);
        let cfgs: FxHashMap<BodyId, Cfg> =
            program.ids().filter(is_asked_for).map(|id| (id, Cfg::build(program.body(id)))).collect();
        let mut summaries = Summaries::default();
        let mut work: Vec<BodyId> = program.ids().filter(is_asked_for).collect();
        let mut is_waiting: FxHashSet<BodyId> = work.iter().copied().collect();
        for id in &work {
            summaries.by_entry.insert(program.body(*id).entry_address(), Summary::NOTHING);
        }
        while let Some(id) = work.pop() {
            is_waiting.remove(&id);
            let body = program.body(id);
            let summary = summarize(body, &cfgs[&id], &summaries);
            if summaries.by_entry.insert(body.entry_address(), summary) != Some(summary) {
                let callers = callers.get(&id).into_iter().flatten().copied().filter(is_asked_for);
                work.extend(callers.filter(|caller| is_waiting.insert(*caller)));
            }
        }
        summaries
    }

    /// What a call of `target` may do.
    #[must_use]
    pub fn of(&self, target: CallTarget) -> Summary {
        match target {
            CallTarget::Known(address) => self.by_entry.get(&address).copied().unwrap_or(Summary::UNKNOWN),
            CallTarget::Unknown => Summary::UNKNOWN,
        }
    }
}

fn summarize(body: &Body, cfg: &Cfg, summaries: &Summaries) -> Summary {
    let liveness = Liveness::returning_to(body, cfg, summaries, RegSet::EMPTY);
    let indexing = Indexing::of(body);
    let mut writes = RegSet::EMPTY;
    for id in body.ids() {
        writes = writes.union(Accesses::at(body, id, &indexing).writes);
        match body.flow(id) {
            Flow::Call(target) | Flow::TailCall(target) => writes = writes.union(summaries.of(target).writes),
            Flow::IndirectJump => writes = RegSet::ALL,
            _ => {}
        }
    }
    Summary { reads: *liveness.before(body.entry()), writes }
}
