//! Live registers at every point.
//!
//! Backward over instructions: live before = (live after − killed) ∪ read. Only scalar registers are killed: a vector
//! write under a partial EXEC leaves other lanes as they were, and EXEC is not proved to be full anywhere. At
//! `s_endpgm` nothing is live. Everything is live where a function jumps to an unknown place, before a call with an
//! unknown target, and, unless something is known of the callers ([`Liveness::returning_to`]), where a function returns
//! or tail-calls.

use rustc_hash::FxHashMap;

use super::access::Accesses;
use super::indexing::Indexing;
use super::regset::RegSet;
use super::summary::Summaries;
use crate::cfg::{Block, Cfg};
use crate::kernel::{Body, Flow};
use crate::solver::{Analysis, Lattice, solve};
use wavetap_amdgpu::{Reg, RegFile, scalar};
use wavetap_base::entity::{BlockId, InstId, ProgramPoint, Side};

/// The live registers of a body, before and after each instruction.
#[derive(Debug, Clone)]
pub struct Liveness {
    before: Vec<RegSet>,
    /// By block: after its last instruction.
    block_out: Vec<RegSet>,
    /// Of the last instruction of each block, the block.
    ends: FxHashMap<InstId, BlockId>,
    /// The instruction that control falls through to.
    fall_through: Vec<Option<InstId>>,
}

impl Liveness {
    /// Computes liveness; `summaries` tells what calls read.
    #[must_use]
    pub fn compute(body: &Body, cfg: &Cfg, summaries: &Summaries) -> Liveness {
        Self::returning_to(body, cfg, summaries, RegSet::ALL)
    }

    /// Liveness as one lane sees it, for counting registers only: a vector write ends the life of what the register
    /// held, because a lane that takes no part in the write is on another path of the program. That is how compilers
    /// allocate registers. It does *not* say that a register is free to be used by inserted code, which may run under a
    /// wider EXEC.
    #[must_use]
    pub fn of_lanes(body: &Body, cfg: &Cfg, summaries: &Summaries) -> Liveness {
        Self::solve_with(body, cfg, summaries, RegSet::ALL, true)
    }

    /// Liveness with a given set live where control goes back to the caller: what any caller may still read then.
    #[must_use]
    pub fn returning_to(body: &Body, cfg: &Cfg, summaries: &Summaries, at_return: RegSet) -> Liveness {
        Self::solve_with(body, cfg, summaries, at_return, false)
    }

    fn solve_with(body: &Body, cfg: &Cfg, summaries: &Summaries, at_return: RegSet, lanes: bool) -> Liveness {
        let backward = Backward::of(body, summaries, lanes);
        // Every block has a boundary value: one that is in an endless loop may read registers, too.
        let at_ends = cfg.ids().map(|block| (block, leaving(body, cfg.block(block).last, summaries, at_return)));
        let mut effects = Effects(cfg.blocks().iter().map(|data| backward.effect(data)).collect());
        let block_out = solve(&cfg.backward(), &mut effects, at_ends);
        let block_out: Vec<RegSet> = block_out.into_iter().map(Option::unwrap_or_default).collect();
        let mut before = vec![RegSet::EMPTY; body.len()];
        for (data, out) in cfg.blocks().iter().zip(&block_out) {
            let mut live = *out;
            for id in data.insts().rev() {
                backward.step(id, &mut live);
                before[id.index()] = live;
            }
        }
        let ends = cfg.ids().map(|block| (cfg.block(block).last, block)).collect();
        Liveness { before, block_out, ends, fall_through: body.ids().map(|id| body.next(id)).collect() }
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
        match self.ends.get(&id) {
            Some(block) => &self.block_out[block.index()],
            None => self.before(InstId(id.0 + 1)),
        }
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

/// What is live after an instruction because control leaves the body there.
fn leaving(body: &Body, id: InstId, summaries: &Summaries, at_return: RegSet) -> RegSet {
    match body.flow(id) {
        Flow::TailCall(target) => summaries.of(target).reads.union(at_return),
        Flow::Return => at_return,
        Flow::IndirectJump => RegSet::ALL,
        Flow::Next | Flow::Jump(_) | Flow::Branch(_) | Flow::Call(_) | Flow::End => RegSet::EMPTY,
    }
}

/// Of each block: what it reads before it kills it, and what it kills.
struct Effects(Vec<(RegSet, RegSet)>);

impl Analysis for Effects {
    type Node = BlockId;
    type State = RegSet;

    fn transfer(&mut self, block: BlockId, live: &mut RegSet) {
        let (reads, kills) = &self.0[block.index()];
        live.remove_all(kills);
        live.add_all(reads);
    }

    fn join(&mut self, _: BlockId, state: &mut RegSet, incoming: &RegSet) -> bool {
        state.join(incoming)
    }
}

/// What instructions do to what is live after them.
struct Backward<'b> {
    body: &'b Body,
    lanes: bool,
    /// What those read and kill that do not simply access what they name; by instruction, ascending.
    special: Vec<(InstId, RegSet, RegSet)>,
    /// By instruction: whether it is one of those.
    is_special: Vec<bool>,
}

impl<'b> Backward<'b> {
    fn of(body: &'b Body, summaries: &Summaries, lanes: bool) -> Backward<'b> {
        let indexing = Indexing::of(body);
        let (mut special, mut is_special) = (Vec::new(), vec![false; body.len()]);
        for id in body.ids() {
            let call = if let Flow::Call(target) = body.flow(id) { Some(target) } else { None };
            if call.is_none() && Accesses::are_as_named(body.inst(id), indexing.at(id)) {
                continue;
            }
            let own = Accesses::at(body, id, &indexing);
            let mut reads = own.reads;
            if let Some(target) = call {
                // The callee reads what the call itself left, so a link register that the call writes is not read from
                // before it.
                reads.add_all(&summaries.of(target).reads.difference(own.kills));
            }
            is_special[id.index()] = true;
            special.push((id, reads, if lanes { own.lane_kills() } else { own.kills }));
        }
        Backward { body, lanes, special, is_special }
    }

    fn special(&self, id: InstId) -> Option<&(InstId, RegSet, RegSet)> {
        if !self.is_special[id.index()] {
            return None;
        }
        self.special.binary_search_by_key(&id, |(id, ..)| *id).ok().map(|index| &self.special[index])
    }

    /// The registers that an instruction kills which accesses what it names.
    fn named_kills(&self, id: InstId) -> impl Iterator<Item = Reg> {
        self.body.writes(id).filter(|reg| match reg.file {
            RegFile::Scalar => reg.first != scalar::MODE,
            RegFile::Vector | RegFile::Accum => self.lanes,
        })
    }

    /// From what is live after an instruction to what is live before it.
    fn step(&self, id: InstId, live: &mut RegSet) {
        if let Some((_, reads, kills)) = self.special(id) {
            live.remove_all(kills);
            live.add_all(reads);
        } else {
            self.named_kills(id).for_each(|reg| live.remove(reg));
            self.body.reads(id).for_each(|reg| live.insert(reg));
        }
    }

    /// The effect of a block: what it reads before it kills it, and what it kills.
    fn effect(&self, data: &Block) -> (RegSet, RegSet) {
        let (mut first, mut killed) = (RegSet::EMPTY, RegSet::EMPTY);
        for id in data.insts().rev() {
            self.step(id, &mut first);
            match self.special(id) {
                Some((_, _, kills)) => killed.add_all(kills),
                None => self.named_kills(id).for_each(|reg| killed.insert(reg)),
            }
        }
        (first, killed)
    }
}
