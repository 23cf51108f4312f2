//! Active lanes of every instruction, as far as they follow from the counts of blocks.
//!
//! A block is counted with the lanes that are active where it begins. These are active up to the first instruction that
//! writes EXEC. After the last one they are what the block passes on along its edges: lanes that come to a block along
//! its edges are those that it begins with, along the edge of a branch that is taken with EXEC = 0 there are none, and
//! if all terms of such a sum but one are known, so is that one. Besides, a mask that `s_and_saveexec` saved has as
//! many lanes where EXEC is restored from it as there were before it, if both were executed as often and under the same
//! loop. The counts of branches, if there are any, have the lanes before and after instructions that narrow EXEC.

use rustc_hash::FxHashMap;
use wavetap_amdgpu::{Branch, Condition, MaskOp, Reg, Role};
use wavetap_analysis::cfg::{Cfg, EdgeKind, Exit};
use wavetap_analysis::dataflow::{Definition, Definitions};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::{BlockId, InstId};

use crate::sites::SiteCounts;

/// Active lanes by instruction, summed over its executions.
#[derive(Debug)]
pub struct LaneCounts {
    lanes: Vec<Option<u64>>,
}

impl LaneCounts {
    /// Works out those of a body. `is_closed`: control comes to a block along the edges of the graph only, and every
    /// wave was counted to its end.
    #[must_use]
    pub fn derive(
        body: &Body,
        cfg: &Cfg,
        definitions: &Definitions<'_>,
        counts: &SiteCounts<'_>,
        is_closed: bool,
    ) -> LaneCounts {
        let mut solver = Solver::new(body, cfg);
        solver.add_sites(body, counts);
        let counted = solver.segments.clone();
        let is_closed = is_closed && !cfg.blocks().iter().any(|block| block.exit == Some(Exit::Unknown));
        if is_closed {
            solver.restores = restores(body, cfg, definitions, counts);
            solver.solve();
        }
        let segments = if solver.contradiction { counted } else { solver.segments };
        let mut lanes = vec![None; body.len()];
        for block in cfg.ids() {
            let mut segment = 0;
            for inst in cfg.block(block).insts() {
                lanes[inst.index()] = segments[block.index()][segment];
                segment += usize::from(writes_exec(body, inst));
            }
        }
        LaneCounts { lanes }
    }

    /// Lanes that were active when an instruction was executed, summed over its executions; none if that is not known.
    #[must_use]
    pub fn of(&self, inst: InstId) -> Option<u64> {
        self.lanes.get(inst.index()).copied().flatten()
    }
}

fn writes_exec(body: &Body, inst: InstId) -> bool {
    body.writes(inst).any(|reg| reg.overlaps(Reg::EXEC))
}

/// A stretch of a block in which EXEC does not change: the block and the number of writes of EXEC before it.
type Segment = (BlockId, usize);

struct Solver<'a> {
    cfg: &'a Cfg,
    /// By block and segment.
    segments: Vec<Vec<Option<u64>>>,
    /// The segment before each write of EXEC.
    before: FxHashMap<InstId, Segment>,
    edges: Vec<Option<u64>>,
    /// Edge numbers by block.
    outgoing: Vec<Vec<usize>>,
    incoming: Vec<Vec<usize>>,
    /// Writes of EXEC, and the instructions before which it had what they write.
    restores: Vec<(InstId, InstId)>,
    changed: bool,
    contradiction: bool,
}

impl<'a> Solver<'a> {
    fn new(body: &Body, cfg: &'a Cfg) -> Solver<'a> {
        let (mut outgoing, mut incoming) = (vec![Vec::new(); cfg.len()], vec![Vec::new(); cfg.len()]);
        let (mut edges, mut segments, mut before) = (Vec::new(), Vec::new(), FxHashMap::default());
        for id in cfg.ids() {
            let block = cfg.block(id);
            // With EXEC = 0 there are no lanes.
            let empty = match body.inst(block.last).variant.branch {
                Branch::Conditional(Condition::ExecZ) => Some(EdgeKind::Taken),
                Branch::Conditional(Condition::ExecNz) => Some(EdgeKind::FallThrough),
                _ => None,
            };
            for edge in &block.successors {
                outgoing[id.index()].push(edges.len());
                incoming[edge.block.index()].push(edges.len());
                edges.push((Some(edge.kind) == empty).then_some(0));
            }
            let mut count = 0;
            for inst in block.insts().filter(|inst| writes_exec(body, *inst)) {
                before.insert(inst, (id, count));
                count += 1;
            }
            segments.push(vec![None; count + 1]);
        }
        let restores = Vec::new();
        Solver { cfg, segments, before, edges, outgoing, incoming, restores, changed: false, contradiction: false }
    }

    fn add_sites(&mut self, body: &Body, counts: &SiteCounts<'_>) {
        for block in self.cfg.ids() {
            if let Some(counted) = counts.block(body.address(self.cfg.block(block).first)) {
                self.set((block, 0), counted.lanes);
            }
        }
        let sites: Vec<(InstId, Segment)> = self.before.iter().map(|(inst, segment)| (*inst, *segment)).collect();
        for (inst, (block, number)) in sites {
            if let Some(counted) = counts.exec(body.address(inst)) {
                self.set((block, number), counted.lanes_before);
                self.set((block, number + 1), counted.lanes_after);
            }
        }
    }

    fn get(&self, (block, number): Segment) -> Option<u64> {
        self.segments[block.index()][number]
    }

    fn set(&mut self, (block, number): Segment, lanes: u64) {
        let place = &mut self.segments[block.index()][number];
        self.contradiction |= place.is_some_and(|known| known != lanes);
        self.changed |= place.is_none();
        *place = Some(lanes);
    }

    fn solve(&mut self) {
        self.changed = true;
        while std::mem::take(&mut self.changed) && !self.contradiction {
            for id in self.cfg.ids() {
                // Waves come to the entry from outside.
                if id != self.cfg.entry() {
                    self.balance((id, 0), true);
                }
                let block = self.cfg.block(id);
                // What a function does to EXEC until it returns is not known.
                let returns = block.successors.iter().any(|edge| edge.kind == EdgeKind::CallReturn);
                if block.exit.is_none() && !returns {
                    self.balance((id, self.segments[id.index()].len() - 1), false);
                }
            }
            for index in 0..self.restores.len() {
                let (restore, save) = self.restores[index];
                let (Some(&(block, number)), Some(&saved)) = (self.before.get(&restore), self.before.get(&save)) else {
                    continue;
                };
                match (self.get(saved), self.get((block, number + 1))) {
                    (Some(lanes), _) => self.set((block, number + 1), lanes),
                    (None, Some(lanes)) => self.set(saved, lanes),
                    (None, None) => {}
                }
            }
        }
    }

    /// The lanes of a segment are the sum of those along the edges: if all of these but one are known, so is the last.
    fn balance(&mut self, segment: Segment, incoming: bool) {
        let numbers = if incoming { &self.incoming } else { &self.outgoing }[segment.0.index()].clone();
        let (mut sum, mut missing) = (Some(0_u64), None);
        for number in numbers {
            match self.edges[number] {
                Some(lanes) => sum = sum.and_then(|sum| sum.checked_add(lanes)),
                None if missing.is_some() => return,
                None => missing = Some(number),
            }
        }
        match (missing, self.get(segment), sum) {
            (None, _, Some(sum)) => self.set(segment, sum),
            (Some(number), Some(total), Some(sum)) if total >= sum => {
                self.edges[number] = Some(total - sum);
                self.changed = true;
            }
            (Some(_), None, _) => {}
            (_, _, _) => self.contradiction = true,
        }
    }
}

/// Writes of EXEC that restore what an `s_and_saveexec` saved, with that.
fn restores(body: &Body, cfg: &Cfg, definitions: &Definitions<'_>, counts: &SiteCounts<'_>) -> Vec<(InstId, InstId)> {
    let loops = cfg.loops();
    let dominators = cfg.dominators();
    let executions = |block: BlockId| counts.block(body.address(cfg.block(block).first)).map(|block| block.executions);
    let exec = Reg::scalar(wavetap_amdgpu::scalar::EXEC, (body.target().wave_size() / 32) as u8);
    let restored = |inst: InstId| -> Option<InstId> {
        let code = body.inst(inst);
        let mask = code.opcode().mask().filter(|mask| mask.dwords == exec.dwords)?;
        let registers = |role| code.operand(role).and_then(|operand| operand.reg());
        if registers(Role::Sdst) != Some(exec) {
            return None;
        }
        let (source, is_union) = match (mask.operation, registers(Role::Src0), registers(Role::Src1)) {
            (MaskOp::Or, Some(first), Some(second)) if first == exec => (second, true),
            (MaskOp::Or, Some(first), Some(second)) if second == exec => (first, true),
            (MaskOp::Mov, Some(source), _) => (source, false),
            _ => return None,
        };
        let [Definition::Inst(save)] = definitions.reaching(inst, source)[..] else { return None };
        let saved = body.inst(save);
        let saves = saved
            .opcode()
            .mask()
            .is_some_and(|mask| mask.operation == MaskOp::AndSaveexec && mask.dwords == exec.dwords);
        let written = saved.operand(Role::Sdst).and_then(|operand| operand.reg());
        if !saves || written != Some(source) || is_union && !definitions.covers(save, inst) {
            return None;
        }
        // As often as it was saved it was restored: each time once, if neither is in a loop that the other is not in.
        let (here, there) = (cfg.block_of(inst), cfg.block_of(save));
        let same = executions(here).is_some() && executions(here) == executions(there);
        let once = !loops.irreducible() && loops.innermost(here) == loops.innermost(there);
        (same && once && dominators.dominates(there, here) && save != inst).then_some(save)
    };
    body.ids().filter(|inst| writes_exec(body, *inst)).filter_map(|inst| Some((inst, restored(inst)?))).collect()
}
