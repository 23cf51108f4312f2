//! From the operation that is waited for, back to where its address comes from, and to the branch that left it its
//! lanes.
//!
//! A greedy walk, not a whole slice: at each instruction it goes to one producer, of those that were executed the one
//! with the longest typical latency, of equal ones the nearest. From a reload it goes to the store (`memory`), and from
//! there follows only the stored data. No instruction is visited twice, and a path has at most `LONGEST` steps after
//! the operation. Where the store is not certain, the path says that it goes through memory.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use super::Context;
use super::memory::{Code, Origin};
use crate::latency;
use crate::lines::SourceLines;
use crate::result::{Edge, Step};
use wavetap_amdgpu::{Reg, RegFile, Role, scalar};
use wavetap_analysis::dataflow::Definition;
use wavetap_base::entity::InstId;

/// Steps of a path after the operation that is waited for.
const LONGEST: usize = 6;

/// A path, and whether it leaves something out.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) steps: Vec<Step>,
    pub(super) through_memory: bool,
    /// What left the operation its lanes.
    pub(super) mask: Vec<Step>,
}

impl Context<'_> {
    fn step(&self, id: InstId, edge: Edge, lines: &dyn SourceLines) -> Step {
        let address = self.body.address(id);
        let instruction = wavetap_amdgpu::print(self.body.target(), self.body.inst(id));
        Step { address, instruction, source: lines.line(address), inlined: lines.inlined(address), edge }
    }

    fn executed(&self, id: InstId) -> bool {
        self.counts.of(self.cfg.block_of(id)).0 != Some(0)
    }

    /// The wait, the operation, and from which instructions its address comes: of several the one that takes longest,
    /// of equal ones the nearest. What is reloaded comes from the store; of that the data are followed.
    pub(super) fn path(&self, wait: InstId, cause: InstId, lines: &dyn SourceLines) -> Path {
        let mut paths = self.paths.borrow_mut();
        // Of an operation that several waits wait for, the way back is the same.
        let behind = paths.entry(cause).or_insert_with(|| self.path_behind(cause, lines));
        let steps = std::iter::once(self.step(wait, Edge::Stall, lines)).chain(behind.steps.iter().cloned()).collect();
        Path { steps, through_memory: behind.through_memory, mask: behind.mask.clone() }
    }

    fn path_behind(&self, cause: InstId, lines: &dyn SourceLines) -> Path {
        let steps = vec![self.step(cause, Edge::Wait, lines)];
        let mut path = Path { steps, through_memory: false, mask: self.mask(cause, lines) };
        let mut seen = FxHashSet::from_iter([cause]);
        let (mut at, mut data_only) = (cause, false);
        while path.steps.len() < LONGEST + 1 {
            // The operation that is waited for takes its time for its address; of what comes before, the value matters.
            let code = Code { body: self.body, cfg: self.cfg, definitions: self.definitions };
            let origin = if at == cause { None } else { self.stores.origin(code, at, |id| self.executed(id)) };
            let stored = match origin {
                Some(Origin::Store { inst, certain }) => {
                    path.through_memory |= !certain;
                    Some((inst, Edge::Memory))
                }
                Some(Origin::OnlyStore(store)) => Some((store, Edge::ThroughMemory)),
                Some(Origin::Unknown) => {
                    path.through_memory = true;
                    None
                }
                None => None,
            };
            let next = match stored.filter(|(store, _)| !seen.contains(store)) {
                Some(stored) => Some(stored),
                None => self.producer(at, data_only, &seen).map(|producer| (producer, Edge::Register)),
            };
            let Some((next, edge)) = next else { break };
            seen.insert(next);
            path.steps.push(self.step(next, edge, lines));
            data_only = edge != Edge::Register;
            at = next;
        }
        path
    }

    /// The wait, and the call of the function that left something outstanding.
    pub(super) fn call_path(&self, wait: InstId, call: InstId, lines: &dyn SourceLines) -> Path {
        Path {
            steps: vec![self.step(wait, Edge::Stall, lines), self.step(call, Edge::Wait, lines)],
            through_memory: false,
            mask: Vec::new(),
        }
    }

    /// The instruction that what this one reads is waited for longest from.
    fn producer(&self, at: InstId, data_only: bool, seen: &FxHashSet<InstId>) -> Option<InstId> {
        let inst = self.body.inst(at);
        let data =
            inst.operands.iter().filter(|operand| matches!(operand.role, Role::Vdata | Role::Data0 | Role::Data1));
        let data = data.filter_map(|operand| self.body.register(at, operand));
        let reads: Vec<Reg> =
            if data_only { data.collect() } else { self.body.reads(at).filter(|reg| is_value(*reg)).collect() };
        let producers = reads.into_iter().flat_map(|reg| self.definitions.reaching(at, reg)).filter_map(|definition| {
            match definition {
                Definition::Inst(id) => Some(id),
                Definition::Entry | Definition::Call(_) => None,
            }
        });
        let time = |id: InstId| latency::of(self.body.target(), self.body.inst(id)).typical;
        producers
            .filter(|id| !seen.contains(id) && self.executed(*id))
            .max_by_key(|id| (time(*id), Reverse(at.0.abs_diff(id.0)), *id))
    }

    /// The instruction that left an operation its lanes, and the comparison before it; nothing if all lanes of the wave
    /// may be there, or that is not known.
    fn mask(&self, id: InstId, lines: &dyn SourceLines) -> Vec<Step> {
        let exec = Reg::scalar(scalar::EXEC, (self.body.target().wave_size() / 32) as u8);
        // A scalar load is one for the whole wave.
        if !self.body.reads(id).any(|reg| reg.overlaps(exec)) {
            return Vec::new();
        }
        let Some(formed) = self.definitions.mask_formed_by(id) else { return Vec::new() };
        let mut steps = vec![self.step(formed, Edge::Mask, lines)];
        let condition = self.body.reads(formed).filter(|reg| reg.file == RegFile::Scalar && !reg.overlaps(Reg::EXEC));
        let compared =
            condition.flat_map(|reg| self.definitions.reaching(formed, reg)).filter_map(
                |definition| match definition {
                    Definition::Inst(id) => Some(id),
                    Definition::Entry | Definition::Call(_) => None,
                },
            );
        let nearest = compared.min_by_key(|id| (formed.0.abs_diff(id.0), *id));
        steps.extend(nearest.map(|id| self.step(id, Edge::Register, lines)));
        steps
    }
}

/// Registers that hold data, rather than which lanes or how.
fn is_value(reg: Reg) -> bool {
    reg.file != RegFile::Scalar || !(reg.overlaps(Reg::EXEC) || reg.first == scalar::MODE)
}
