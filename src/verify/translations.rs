//! No instruction overwrites a register that a memory instruction may have to read again: until its addresses are translated it may be replayed (gfx1250).
//!
//! Original instructions among themselves are the compiler's business. What inserted ones overwrite, and what inserted ones read, is followed in the simplest
//! way: everything may be untranslated until a wait for no translation at all, or until the original itself overwrites the register.

use super::align::Alignment;
use super::finding::{Finding, Rule};
use crate::cfg::{Cfg, Worklist};
use crate::dataflow::RegSet;
use crate::entity::InstId;
use crate::isa::{Counter, Reg, issued, scalar, wait_count};
use crate::kernel::{Body, BodyKind, Flow};

/// Registers that may be read again, by whose instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    original: RegSet,
    inserted: RegSet,
}

impl State {
    const NOTHING: State = State { original: RegSet::EMPTY, inserted: RegSet::EMPTY };

    fn join(&mut self, other: &State) -> bool {
        let joined = State { original: self.original.union(other.original), inserted: self.inserted.union(other.inserted) };
        let more = joined != *self;
        *self = joined;
        more
    }

    fn step(&mut self, new: &Body, id: InstId, inserted: bool) {
        let inst = new.inst(id);
        if wait_count(new.target(), inst).is_some_and(|counts| counts.get(Counter::X) == Some(0)) {
            *self = State::NOTHING;
        }
        if issued(inst).contains(Counter::X.flag()) {
            let set = if inserted { &mut self.inserted } else { &mut self.original };
            new.reads(id).for_each(|reg| set.insert(reg));
        } else if !inserted {
            // The original may overwrite it here, so nothing reads it again any more.
            self.original = self.original.difference(new.writes(id).collect());
        }
        if matches!(new.flow(id), Flow::Call(_)) {
            // Whatever the function leaves.
            self.original = RegSet::ALL;
        }
    }
}

/// Registers that hold nothing.
fn holds_nothing(reg: Reg) -> bool {
    reg == Reg::SCC || reg == Reg::scalar(scalar::NULL, 1)
}

/// Checks one kernel's or function's new code.
pub(super) fn check(new: &Body, cfg: &Cfg, alignment: &Alignment, findings: &mut Vec<Finding>) {
    if new.target().largest_wait(Counter::X).is_none() {
        return;
    }
    let inserted = |id: InstId| alignment.original(id).is_none();
    let mut before: Vec<Option<State>> = vec![None; cfg.blocks().len()];
    let entry = cfg.block_of(new.entry());
    let unknown = if new.kind() == BodyKind::Function { RegSet::ALL } else { RegSet::EMPTY };
    before[entry.index()] = Some(State { original: unknown, inserted: RegSet::EMPTY });
    let mut work = Worklist::new(cfg);
    work.push(entry);
    while let Some(block) = work.pop() {
        let Some(mut state) = before[block.index()].clone() else { continue };
        cfg.block(block).insts().for_each(|id| state.step(new, id, inserted(id)));
        for next in cfg.block(block).successors.iter().map(|edge| edge.block) {
            let changed = match &mut before[next.index()] {
                Some(known) => known.join(&state),
                unknown => {
                    *unknown = Some(state.clone());
                    true
                }
            };
            if changed {
                work.push(next);
            }
        }
    }
    for (block, state) in cfg.blocks().iter().zip(before) {
        let Some(mut state) = state else { continue };
        for id in block.insts() {
            let at_risk = if inserted(id) { state.original.union(state.inserted) } else { state.inserted };
            let clash: RegSet = new.writes(id).filter(|reg| !holds_nothing(*reg) && at_risk.overlaps(*reg)).collect();
            // A wait comes first.
            let waits = wait_count(new.target(), new.inst(id)).is_some();
            if !clash.is_empty() && !waits {
                let message =
                    format!("{} overwrites {clash:?}, which a memory instruction may read again: no wait for xcnt", new.inst(id).name());
                findings.push(Finding::new(Rule::Wait, message).at(new.address(id)));
            }
            state.step(new, id, inserted(id));
        }
    }
}
