//! What a call may read and write: the sum over everything the callee may execute.
//!
//! The least fixed point over the call graph, from functions to their callers (`iterate`). The lattice is a pair of
//! register sets by inclusion; every function begins with the empty pair, so recursion needs no special case.
//!
//! Transfer, for one function: `writes` is the union of what its instructions write and of the `writes` of its callees;
//! `reads` is what is live at its entry if nothing is live at its return ([`Liveness::returning_to`]), where a call
//! reads what its callee's summary says. A jump to an unknown place writes everything. A call with an unknown target
//! has [`Summary::UNKNOWN`]. Both sets only grow when those of callees grow.

use rustc_hash::{FxHashMap, FxHashSet};

use super::access::Accesses;
use super::indexing::Indexing;
use super::liveness::Liveness;
use super::regset::RegSet;
use crate::cfg::{BodyId, Cfg, Program};
use crate::kernel::{Body, BodyKind, CallTarget, Flow};
use crate::solver::{Edges, iterate};

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
        let called: FxHashSet<BodyId> =
            program.ids().flat_map(|id| program.call_sites(id).filter_map(|(_, callee)| callee)).collect();
        // Few kernels are called; the summaries of the others are not needed.
        let is_needed = |id: &BodyId| program.body(*id).kind() == BodyKind::Function || called.contains(id);
        let bodies: Vec<&Body> = program.ids().filter(is_needed).map(|id| program.body(id)).collect();
        let cfgs: Vec<Cfg> = bodies.iter().map(|body| Cfg::build(body)).collect();
        let by_entry = bodies.iter().map(|body| (body.entry_address(), Summary::NOTHING)).collect();
        let mut summaries = Summaries { by_entry };
        iterate(&callers(&bodies), |index| {
            let body = bodies[index];
            let summary = summarize(body, &cfgs[index], &summaries);
            summaries.by_entry.insert(body.entry_address(), summary) != Some(summary)
        });
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

/// The call graph of some bodies, by index, from each to those that call it.
pub(super) fn callers(bodies: &[&Body]) -> Edges {
    let by_entry: FxHashMap<u64, usize> =
        bodies.iter().enumerate().map(|(index, body)| (body.entry_address(), index)).collect();
    let mut callers = vec![Vec::new(); bodies.len()];
    for (caller, body) in bodies.iter().enumerate() {
        for (_, target) in body.calls() {
            if let CallTarget::Known(address) = target
                && let Some(callee) = by_entry.get(&address)
                && callers[*callee].last() != Some(&caller)
            {
                callers[*callee].push(caller);
            }
        }
    }
    Edges::new(callers, [])
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
