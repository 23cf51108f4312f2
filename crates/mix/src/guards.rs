//! What runs with fewer lanes because of each instruction that narrows EXEC, and which waves leave at once.
//!
//! An instruction is under those that formed the masks it runs under ([`Definitions::mask_formed_by`], and so on
//! outward), and under those that take lanes out of the loops that it is in. Of the lanes that are idle at it, each of
//! these is given the difference between the lanes before it and before the next one inward. Lanes before are averages
//! over the executions of the narrowing instruction, so what is given to a single one is an estimate; the sum is not
//! more than what is idle.
//!
//! Lanes are idle because of a branch only in waves whose lanes disagreed at it. Where all lanes of each wave agreed,
//! nothing is idle because of it, though waves without a lane may execute the code under it, where compilers leave out
//! the branch that skips it. Where some waves disagreed and there is no such branch, waves without a lane are in the
//! averages, too: then what is idle in one execution is at most the lanes before, times the part of waves that
//! disagreed.

use std::collections::BTreeMap;

use fixedbitset::FixedBitSet;
use wavetap_amdgpu::{Branch, Condition, Flags, Opcode, OpcodeFlags, Reg, RegFile, Role};
use wavetap_analysis::cfg::{Cfg, EdgeKind, Exit, Loop};
use wavetap_analysis::dataflow::{Definition, Definitions};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::{BlockId, InstId};
use wavetap_profile::probes::branches::ExecCounts;

use crate::count::CountedInstruction;
use crate::sites::SiteCounts;

/// Masks within each other that are followed outward from an instruction.
const DEPTH: usize = 32;

/// What runs under an instruction that narrows EXEC.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardedWork {
    /// The instruction.
    pub inst: InstId,
    /// Whether it takes lanes out of a loop that other lanes stay in; otherwise it begins a branch.
    pub leaves_loop: bool,
    /// Executions by waves of the instructions under it.
    pub executions: u64,
    /// Their active lanes, summed.
    pub lanes: u64,
    /// Whether these lanes follow from the counts; otherwise those of some are taken to be as many as go on after the
    /// instruction on average.
    pub is_counted: bool,
    /// Lanes on average before it; of a loop, where waves enter it.
    pub before: f64,
    /// Lanes that are idle at these executions because of it, summed: an estimate (see the module).
    pub idle: f64,
    /// Whether waves without a lane may be among these executions: no branch skips the code for them.
    pub with_empty: bool,
    /// Which part of the waves that came to it had lanes that disagreed, 0 to 1.
    pub disagreed: f64,
    /// Which part of the lanes that came to it goes on, 0 to 1.
    pub going_on: f64,
}

/// A narrowing instruction, and the lanes before it on average.
#[derive(Clone, Copy)]
struct Guard {
    inst: InstId,
    leaves_loop: bool,
    before: f64,
    /// As in [`GuardedWork`].
    with_empty: bool,
    disagreed: f64,
    going_on: f64,
}

impl Guard {
    fn of(inst: InstId, counts: &ExecCounts) -> Guard {
        let part = |number: u64, of: u64| number as f64 / of.max(1) as f64;
        Guard {
            inst,
            leaves_loop: false,
            before: part(counts.lanes_before, counts.executions),
            with_empty: false,
            disagreed: part(counts.divergences(), counts.executions),
            going_on: part(counts.lanes_after, counts.lanes_before),
        }
    }

    /// The lanes that are idle because of it in an execution, if so many are active inside.
    fn idle(&self, inside: f64) -> f64 {
        let idle = (self.before - inside).max(0.0);
        match () {
            // Lanes that left in one round are idle in all later ones, whether the others agree or not.
            () if self.disagreed == 0.0 => 0.0,
            () if self.with_empty && !self.leaves_loop => idle.min(self.before * self.disagreed),
            () => idle,
        }
    }
}

/// What runs under each instruction of a body that narrows EXEC and was counted, by its place in the code.
#[must_use]
pub fn guarded_work(
    body: &Body,
    cfg: &Cfg,
    definitions: &Definitions<'_>,
    counts: &SiteCounts<'_>,
    instructions: &[CountedInstruction],
) -> Vec<GuardedWork> {
    let by_inst: BTreeMap<InstId, &CountedInstruction> =
        instructions.iter().map(|instruction| (instruction.inst, instruction)).collect();
    let guard = |inst: InstId| {
        let counted = counts.exec(body.address(inst))?;
        let with_empty = skipping(body, cfg, inst).is_none();
        (counted.executions > 0).then(|| Guard { with_empty, ..Guard::of(inst, &counted) })
    };
    let of_loops = loop_guards(body, cfg, counts, &by_inst);
    let mut work: BTreeMap<InstId, GuardedWork> = BTreeMap::new();
    for instruction in instructions {
        let Some(executions) = instruction.executions.filter(|count| *count > 0) else { continue };
        let innermost = definitions.mask_formed_by(instruction.inst);
        let going_on = || lanes_going_on(body, cfg, counts, &by_inst, innermost?);
        let counted = instruction.lanes.map(|lanes| lanes as f64 / executions as f64);
        let Some(active) = counted.or_else(going_on) else { continue };
        let outward = std::iter::successors(innermost, |inst| definitions.mask_formed_by(*inst));
        let mut guards: Vec<Guard> = outward.take(DEPTH).filter_map(guard).collect();
        let around = of_loops.iter().filter(|(blocks, _)| blocks.contains(instruction.block.index()));
        guards.extend(around.map(|(_, guard)| *guard));
        guards.sort_by(|a, b| b.before.total_cmp(&a.before).then(a.inst.cmp(&b.inst)));
        guards.dedup_by_key(|guard| guard.inst);
        for (index, guard) in guards.iter().enumerate() {
            let inner = guards.get(index + 1).map_or(active, |inner| inner.before.max(active));
            let entry = work.entry(guard.inst).or_insert(GuardedWork {
                inst: guard.inst,
                leaves_loop: guard.leaves_loop,
                executions: 0,
                lanes: 0,
                is_counted: true,
                before: guard.before,
                idle: 0.0,
                with_empty: guard.with_empty,
                disagreed: guard.disagreed,
                going_on: guard.going_on,
            });
            entry.executions = entry.executions.saturating_add(executions);
            entry.lanes = entry.lanes.saturating_add((active * executions as f64).round() as u64);
            entry.is_counted &= counted.is_some();
            entry.idle += executions as f64 * guard.idle(inner);
        }
    }
    work.into_values().collect()
}

/// Lanes on average with which waves go on after a branch that an instruction begins: of those that do.
fn lanes_going_on(
    body: &Body,
    cfg: &Cfg,
    counts: &SiteCounts<'_>,
    instructions: &BTreeMap<InstId, &CountedInstruction>,
    inst: InstId,
) -> Option<f64> {
    let counted = counts.exec(body.address(inst))?;
    let inside = Some(cfg.block(skipping(body, cfg, inst)?)).filter(|block| block.predecessors.len() == 1)?;
    let waves = instructions.get(&inside.first)?.executions.filter(|waves| *waves > 0)?;
    Some(counted.lanes_after as f64 / waves as f64)
}

/// Where waves with a lane go on after an instruction, if a branch at the end of its block sends those without
/// elsewhere.
pub(crate) fn skipping(body: &Body, cfg: &Cfg, inst: InstId) -> Option<BlockId> {
    let block = cfg.block(cfg.block_of(inst));
    let inside = match body.inst(block.last).variant.branch {
        Branch::Conditional(Condition::ExecZ) => EdgeKind::FallThrough,
        Branch::Conditional(Condition::ExecNz) => EdgeKind::Taken,
        _ => return None,
    };
    block.successors.iter().find(|edge| edge.kind == inside).map(|edge| edge.block)
}

/// The instructions that take lanes out of loops, with the blocks of the loop: the last write of EXEC of a block that
/// ends in a branch on EXEC of which one side stays in the loop and the other leaves it.
fn loop_guards(
    body: &Body,
    cfg: &Cfg,
    counts: &SiteCounts<'_>,
    instructions: &BTreeMap<InstId, &CountedInstruction>,
) -> Vec<(FixedBitSet, Guard)> {
    let loops = cfg.loops();
    if loops.irreducible() {
        return Vec::new();
    }
    let mut guards = Vec::new();
    for each in loops.all() {
        let Some(before) = entering_lanes(cfg, each, instructions) else { continue };
        let blocks: FixedBitSet = each.blocks.iter().map(|block| block.index()).collect();
        for block in &each.blocks {
            let (last, successors) = (cfg.block(*block).last, &cfg.block(*block).successors);
            let on_exec =
                matches!(body.inst(last).variant.branch, Branch::Conditional(Condition::ExecZ | Condition::ExecNz));
            let staying = successors.iter().filter(|edge| blocks.contains(edge.block.index())).count();
            if !on_exec || staying != 1 || successors.len() != 2 {
                continue;
            }
            let writes_exec = |inst: &InstId| body.writes(*inst).any(|reg| reg.overlaps(Reg::EXEC));
            let last_write = cfg.block(*block).insts().rev().find(writes_exec);
            let counted = last_write.and_then(|inst| Some((inst, counts.exec(body.address(inst))?)));
            guards.extend(counted.map(|(inst, counted)| {
                (blocks.clone(), Guard { leaves_loop: true, before, ..Guard::of(inst, &counted) })
            }));
        }
    }
    guards
}

/// Lanes on average with which waves come into a loop.
fn entering_lanes(cfg: &Cfg, each: &Loop, instructions: &BTreeMap<InstId, &CountedInstruction>) -> Option<f64> {
    let (mut executions, mut lanes) = (0_u64, 0_u64);
    for edge in &cfg.block(each.header).predecessors {
        if each.blocks.contains(&edge.block) {
            continue;
        }
        // A block with another way out is left with other lanes, or not as often.
        let from = cfg.block(edge.block);
        let counted = instructions.get(&from.last).filter(|_| from.successors.len() == 1)?;
        executions = executions.checked_add(counted.executions?)?;
        lanes = lanes.checked_add(counted.lanes?)?;
    }
    (executions > 0).then(|| lanes as f64 / executions as f64)
}

/// Waves that leave a kernel at a test near its beginning, without having done anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlyExit {
    /// The branch at which most of them leave.
    pub branch: InstId,
    /// Waves that leave, at this test and at others.
    pub waves: u64,
    /// Waves that came.
    pub of: u64,
}

/// The waves that leave a kernel at once: at branches that every wave comes to until then, to where the wave ends and
/// nothing is computed or stored. `executions` are those of a block.
#[must_use]
pub fn early_exits(body: &Body, cfg: &Cfg, executions: impl Fn(BlockId) -> Option<u64>) -> Option<EarlyExit> {
    let of = executions(cfg.entry())?;
    let (mut block, mut most, mut waves) = (cfg.entry(), None, 0_u64);
    // Where work has been done, it is no test at the beginning any more.
    while !has_effect(body, cfg, block) {
        let successors = &cfg.block(block).successors;
        let next = match successors.as_slice() {
            [edge] => edge.block,
            [first, second] if first.block != second.block => {
                let (leaving, staying) =
                    match (does_nothing(body, cfg, first.block), does_nothing(body, cfg, second.block)) {
                        (true, false) => (first.block, second.block),
                        (false, true) => (second.block, first.block),
                        _ => break,
                    };
                let only_from_here = |to: BlockId| cfg.block(to).predecessors.len() == 1;
                let gone = if only_from_here(leaving) {
                    executions(leaving)?
                } else if only_from_here(staying) {
                    executions(block)?.checked_sub(executions(staying)?)?
                } else {
                    break;
                };
                waves = waves.checked_add(gone)?;
                if gone > 0 && most.is_none_or(|(_, other)| gone > other) {
                    most = Some((cfg.block(block).last, gone));
                }
                staying
            }
            _ => break,
        };
        // Nor after a merge: not every wave comes there once.
        if cfg.block(next).predecessors.len() != 1 {
            break;
        }
        block = next;
    }
    most.map(|(branch, _)| EarlyExit { branch, waves, of })
}

/// Whether nothing is loaded, computed by lanes or stored from a block on until the wave ends.
fn does_nothing(body: &Body, cfg: &Cfg, from: BlockId) -> bool {
    let mut block = from;
    // Blocks in a row, of which each leads to one other.
    for _ in 0..cfg.len() {
        if has_effect(body, cfg, block) || cfg.block(block).insts().any(|inst| works(body, inst)) {
            return false;
        }
        match (cfg.block(block).exit, cfg.block(block).successors.as_slice()) {
            (Some(Exit::End), _) => return true,
            (None, [edge]) => block = edge.block,
            _ => return false,
        }
    }
    false
}

fn works(body: &Body, inst: InstId) -> bool {
    body.inst(inst).variant.flags.intersects(Flags::VALU | Flags::LOAD)
}

/// Whether a block stores something or waits for other waves.
fn has_effect(body: &Body, cfg: &Cfg, block: BlockId) -> bool {
    let effect = |inst: InstId| {
        let inst = body.inst(inst);
        inst.variant.flags.intersects(Flags::STORE | Flags::ATOMIC) || inst.is_any(OpcodeFlags::BARRIER)
    };
    cfg.block(block).insts().any(effect)
}

/// Whether a loop takes the lanes of a wave one by one: it reads a value of the lane that a search for the lowest bit
/// of a mask has found. Compilers make such loops of atomics that all lanes do at one address.
#[must_use]
pub fn goes_lane_by_lane(body: &Body, cfg: &Cfg, definitions: &Definitions<'_>, each: &Loop) -> bool {
    let is_search = |inst: InstId| {
        matches!(
            body.inst(inst).opcode(),
            Opcode::S_FF1_I32_B32 | Opcode::S_FF1_I32_B64 | Opcode::S_CTZ_I32_B32 | Opcode::S_CTZ_I32_B64
        ) && each.blocks.contains(&cfg.block_of(inst))
    };
    let reads_found_lane = |inst: InstId| {
        let code = body.inst(inst);
        let lane = code.operand(Role::Src1).and_then(|operand| operand.reg());
        let Some(lane) = lane.filter(|reg| reg.file == RegFile::Scalar) else { return false };
        code.opcode() == Opcode::V_READLANE_B32
            && definitions
                .reaching(inst, lane)
                .iter()
                .all(|definition| matches!(definition, Definition::Inst(from) if is_search(*from)))
    };
    each.blocks.iter().flat_map(|block| cfg.block(*block).insts()).any(reads_found_lane)
}
