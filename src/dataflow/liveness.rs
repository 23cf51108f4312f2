//! Live registers at every point.
//!
//! Backward over instructions: live before = (live after − killed) ∪ read. Only scalar registers are killed: a vector write under a partial
//! EXEC leaves other lanes as they were, and EXEC is not proved to be full anywhere. At `s_endpgm` nothing is live. Everything is live where a
//! function returns, tail-calls, or jumps to an unknown place, and before a call with an unknown target.

use super::access::Accesses;
use super::regset::RegSet;
use super::summary::Summaries;
use crate::cfg::Cfg;
use crate::entity::{InstId, ProgramPoint, Side};
use crate::kernel::{Body, Flow};

/// The live registers of a body, before and after each instruction.
#[derive(Debug, Clone)]
pub struct Liveness {
    before: Vec<RegSet>,
    after: Vec<RegSet>,
    /// The instruction that control falls through to.
    fall_through: Vec<Option<InstId>>,
}

impl Liveness {
    /// Computes liveness; `summaries` tells what calls read.
    #[must_use]
    pub fn compute(body: &Body, cfg: &Cfg, summaries: &Summaries) -> Liveness {
        Self::solve(body, cfg, summaries, RegSet::ALL)
    }

    /// Liveness as one lane sees it, for counting registers only: a vector write ends the life of what the register held, because a lane that takes no
    /// part in the write is on another path of the program. That is how compilers allocate registers. It does *not* say that a register is free to be
    /// used by inserted code, which may run under a wider EXEC.
    #[must_use]
    pub fn of_lanes(body: &Body, cfg: &Cfg, summaries: &Summaries) -> Liveness {
        Self::solve_with(body, cfg, summaries, RegSet::ALL, true)
    }

    /// Liveness with a given set live where control goes back to the caller.
    pub(super) fn solve(body: &Body, cfg: &Cfg, summaries: &Summaries, at_return: RegSet) -> Liveness {
        Self::solve_with(body, cfg, summaries, at_return, false)
    }

    fn solve_with(body: &Body, cfg: &Cfg, summaries: &Summaries, at_return: RegSet, lanes: bool) -> Liveness {
        let indexed = Accesses::indexed(body);
        let effects: Vec<Effect> = body.ids().map(|id| Effect::of(body, id, indexed, summaries, at_return, lanes)).collect();
        let mut block_in = vec![RegSet::EMPTY; cfg.len()];
        let mut queued = vec![true; cfg.len()];
        // Processed from the back: postorder first.
        let mut work: Vec<_> = cfg.reverse_postorder().to_vec();
        while let Some(block) = work.pop() {
            queued[block.index()] = false;
            let data = cfg.block(block);
            let mut live = data.successors.iter().fold(RegSet::EMPTY, |live, edge| live.union(block_in[edge.block.index()]));
            for id in data.insts().rev() {
                live = effects[id.index()].apply(live);
            }
            if live != block_in[block.index()] {
                block_in[block.index()] = live;
                for edge in &data.predecessors {
                    if !std::mem::replace(&mut queued[edge.block.index()], true) {
                        work.push(edge.block);
                    }
                }
            }
        }
        let mut liveness = Liveness {
            before: vec![RegSet::EMPTY; body.len()],
            after: vec![RegSet::EMPTY; body.len()],
            fall_through: body.ids().map(|id| body.next(id)).collect(),
        };
        for data in cfg.blocks() {
            let mut live = data.successors.iter().fold(RegSet::EMPTY, |live, edge| live.union(block_in[edge.block.index()]));
            for id in data.insts().rev() {
                liveness.after[id.index()] = live.union(effects[id.index()].leaving);
                live = effects[id.index()].apply(live);
                liveness.before[id.index()] = live;
            }
        }
        liveness
    }

    /// What is live just before an instruction, on every path that reaches it.
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[must_use]
    pub fn before(&self, id: InstId) -> &RegSet {
        &self.before[id.index()]
    }

    /// What is live just after an instruction, wherever control goes.
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[must_use]
    pub fn after(&self, id: InstId) -> &RegSet {
        &self.after[id.index()]
    }

    /// What is live at a point. After an instruction means where it falls through: empty if it never does.
    ///
    /// # Panics
    /// If the point is not of this body.
    #[must_use]
    pub fn at(&self, point: ProgramPoint) -> &RegSet {
        match point.side {
            Side::Before => self.before(point.inst),
            Side::After => self.fall_through[point.inst.index()].map_or(&RegSet::EMPTY, |next| self.before(next)),
        }
    }
}

/// The backward effect of one instruction, calls included.
struct Effect {
    reads: RegSet,
    kills: RegSet,
    /// Live because control leaves the body here.
    leaving: RegSet,
}

impl Effect {
    fn of(body: &Body, id: InstId, indexed: bool, summaries: &Summaries, at_return: RegSet, lanes: bool) -> Effect {
        let own = Accesses::at(body, id, indexed);
        let kills = if lanes { own.lane_kills } else { own.kills };
        let mut effect = Effect { reads: own.reads, kills, leaving: RegSet::EMPTY };
        match body.flow(id) {
            // The callee reads what the call itself left, so a link register that the call writes is not read from before it.
            Flow::Call(target) => effect.reads = effect.reads.union(summaries.of(target).reads.difference(own.kills)),
            Flow::TailCall(target) => effect.leaving = summaries.of(target).reads.union(at_return),
            Flow::Return => effect.leaving = at_return,
            Flow::IndirectJump => effect.leaving = RegSet::ALL,
            Flow::Next | Flow::Jump(_) | Flow::Branch(_) | Flow::End => {}
        }
        effect
    }

    fn apply(&self, after: RegSet) -> RegSet {
        after.union(self.leaving).difference(self.kills).union(self.reads)
    }
}
