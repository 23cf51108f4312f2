//! Reaching definitions: which instructions may have written what a use reads.
//!
//! Found backward from the use, through static single assignment ([`Ssa`]): only through writes and merges of the
//! register, however much code lies between. A scalar write ends the search on its path. A vector write reaches only
//! the lanes of its EXEC, so it ends the search only where all lanes of the use were certainly active at it
//! ([`ExecMasks`]). Instructions that read other lanes (DPP, `v_readlane`, LDS permutes) never have their search ended
//! by a vector write, except that a lane whose number is known has what was last written to that lane (scalar registers
//! are spilled that way).

use rustc_hash::FxHashSet;

use super::access::Accesses;
use super::exec_masks::{Context, ExecMasks};
use super::indexing::Indexing;
use super::regset::RegSet;
use super::ssa::{ENTRY, Kills, Node, Ssa, SsaId};
use super::summary::Summaries;
use crate::cfg::{Cfg, Loops};
use crate::kernel::{Body, Flow};
use wavetap_amdgpu::{Inst, MaskOp, Opcode, OpcodeFlags, Reg, RegFile, Role, Target, Value, scalar};
use wavetap_base::entity::{BlockId, InstId};

/// Where a value may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Definition {
    /// It was there when the body was entered.
    Entry,
    /// An instruction wrote it.
    Inst(InstId),
    /// Something that this call executes wrote it.
    Call(InstId),
}

/// A value of a register: what one write left there, or what comes together where paths meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ValueId {
    def: SsaId,
    /// Of what was there at the entry, which one definition stands for in all registers: which register.
    entry_of: Option<u16>,
}

/// The SSA definition of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SsaDef {
    /// It was there when the body was entered.
    Entry,
    /// An instruction, or what it calls, wrote it.
    Inst(InstId),
    /// Values came together at the beginning of a block.
    Merge(BlockId),
}

/// Answers which definitions reach a use.
#[derive(Debug)]
pub struct Definitions<'a> {
    pub(super) body: &'a Body,
    pub(super) cfg: &'a Cfg,
    loops: Loops,
    pub(super) ssa: Ssa,
    pub(super) masks: ExecMasks,
    /// The call instructions, with the registers that each may write.
    calls: Vec<(InstId, RegSet)>,
    indexing: Indexing,
}

impl<'a> Definitions<'a> {
    /// Prepares to answer for one body.
    #[must_use]
    pub fn new(body: &'a Body, cfg: &'a Cfg, summaries: &Summaries) -> Self {
        let loops = cfg.loops();
        let ssa = Ssa::compute(body, cfg, &loops, summaries);
        let masks = ExecMasks::compute(Context { body, cfg, loops: &loops, ssa: &ssa });
        let called = |id| match body.flow(id) {
            Flow::Call(target) => Some((id, summaries.of(target).writes)),
            _ => None,
        };
        let calls = body.ids().filter_map(called).collect();
        Definitions { body, cfg, loops, ssa, masks, calls, indexing: Indexing::of(body) }
    }

    /// Every definition of any part of `reg` that may reach `use_inst`, ascending. Only what the instruction reads has
    /// any.
    ///
    /// # Panics
    /// If `use_inst` is not of this body.
    #[must_use]
    pub fn reaching(&self, use_inst: InstId, reg: Reg) -> Vec<Definition> {
        let across = reg.file == RegFile::Scalar || reads_other_lanes(self.body.inst(use_inst));
        // Lanes that matter, as a definition of EXEC: those that are active at the use. None if it may be any.
        let lanes = (!across).then(|| self.ssa.exec_before(use_inst));
        // The one lane that is read, if it is known.
        let lane =
            (reg.file != RegFile::Scalar).then(|| chosen_lane(self.body, use_inst, Opcode::V_READLANE_B32)).flatten();
        let mut found: Vec<Definition> = Vec::new();
        let mut seen: FxHashSet<(SsaId, Option<SsaId>)> = FxHashSet::default();
        let mut work: Vec<(SsaId, Option<SsaId>)> = self.ssa.read(use_inst, reg).map(|def| (def, lanes)).collect();
        // A search through SSA definitions, not a fixed point over blocks: the lanes that matter depend on the path.
        while let Some((def, lanes)) = work.pop() {
            if !seen.insert((def, lanes)) {
                continue;
            }
            match self.ssa.node(def) {
                Node::Entry => found.push(Definition::Entry),
                Node::Call { inst, before } => {
                    found.push(Definition::Call(inst));
                    work.push((before, lanes));
                }
                Node::Write { inst, before, kills } => {
                    let written =
                        lane.and_then(|lane| Some((lane, chosen_lane(self.body, inst, Opcode::V_WRITELANE_B32)?)));
                    if written.is_some_and(|(read, written)| read != written) {
                        work.push((before, lanes));
                        continue;
                    }
                    found.push(Definition::Inst(inst));
                    let all = match kills {
                        _ if written.is_some() => true,
                        Kills::All => true,
                        Kills::Lanes => lanes.is_some_and(|lanes| self.masks.covers(self.ssa.exec_before(inst), lanes)),
                        Kills::Nothing => false,
                    };
                    if !all {
                        work.push((before, lanes));
                    }
                }
                Node::Merge { block, operands } => {
                    let merged = self.ssa.merged(self.cfg, block, operands);
                    work.extend(
                        merged.map(|(from, def)| (def, lanes.and_then(|lanes| self.lanes_before(lanes, block, from)))),
                    );
                }
            }
        }
        self.unnamed(use_inst, reg, &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// What an instruction reads that it does not name (`v_movrels_b32`, vector registers with an index) may be from
    /// any write of it anywhere.
    fn unnamed(&self, use_inst: InstId, reg: Reg, found: &mut Vec<Definition>) {
        let asked: RegSet = std::iter::once(reg).collect();
        let unnamed = asked.difference(self.body.reads(use_inst).collect());
        if unnamed.is_empty() {
            return;
        }
        let wanted = Accesses::at(self.body, use_inst, &self.indexing).reads.intersection(unnamed);
        if wanted.is_empty() {
            return;
        }
        found.push(Definition::Entry);
        let writes = |id: &InstId| Accesses::at(self.body, *id, &self.indexing).writes.intersects(&wanted);
        found.extend(self.body.ids().filter(writes).map(Definition::Inst));
        found.extend(
            self.calls.iter().filter(|(_, writes)| writes.intersects(&wanted)).map(|(id, _)| Definition::Call(*id)),
        );
    }

    /// Which values an instruction reads of a register, 32 bits after 32: two instructions that read the same have read
    /// what the same write made, if neither is in a loop that makes it again in between.
    ///
    /// # Panics
    /// If `id` is not of this body.
    pub fn values(&self, id: InstId, reg: Reg) -> impl Iterator<Item = ValueId> {
        let value = |(position, def): (u16, SsaId)| ValueId { def, entry_of: (def == ENTRY).then_some(position) };
        self.ssa.read_at(id, reg).map(value)
    }

    /// Where the values were made that an instruction reads of a register: [`Definitions::values`] of instructions on a
    /// path without these are the same.
    ///
    /// # Panics
    /// If `id` is not of this body.
    pub fn ssa_defs(&self, id: InstId, reg: Reg) -> impl Iterator<Item = SsaDef> {
        self.ssa.read(id, reg).map(|def| match self.ssa.node(def) {
            Node::Entry => SsaDef::Entry,
            Node::Write { inst, .. } | Node::Call { inst, .. } => SsaDef::Inst(inst),
            Node::Merge { block, .. } => SsaDef::Merge(block),
        })
    }

    /// Whether all lanes that are active at `inner` are certainly active at `outer`, if that has been executed before
    /// in the same round of all loops.
    ///
    /// # Panics
    /// If one of them is not of this body.
    #[must_use]
    pub fn covers(&self, outer: InstId, inner: InstId) -> bool {
        self.masks.covers(self.ssa.exec_before(outer), self.ssa.exec_before(inner))
    }

    /// The instruction that formed the innermost mask of lanes which everything that an instruction does is certainly
    /// under: a divergent branch whose end is later. None where that is not known, and where it may be all lanes of
    /// the wave.
    ///
    /// # Panics
    /// If `id` is not of this body.
    #[must_use]
    pub fn mask_formed_by(&self, id: InstId) -> Option<InstId> {
        let narrows = |inst: &InstId| narrows_exec(self.body.target(), self.body.inst(*inst));
        self.masks.around(self.ssa.exec_before(id)).find_map(|mask| match self.ssa.node(mask) {
            Node::Write { inst, .. } => Some(inst).filter(narrows),
            Node::Entry | Node::Call { .. } | Node::Merge { .. } => None,
        })
    }

    /// The lanes that matter, at the end of the predecessor of a block: what they are within there.
    pub(super) fn lanes_before(&self, lanes: SsaId, block: BlockId, from: Option<BlockId>) -> Option<SsaId> {
        let Some(from) = from else { return Some(lanes) };
        if self.masks.covers(self.ssa.exec_at(block).0, lanes) {
            Some(self.ssa.exec_at(from).1)
        } else if self.cfg.retreats(from, block) {
            self.masks.outside(
                Context { body: self.body, cfg: self.cfg, loops: &self.loops, ssa: &self.ssa },
                lanes,
                block,
            )
        } else {
            Some(lanes)
        }
    }
}

/// Whether what the instruction writes of a vector register as an operand of its own is all bits of it, in every active
/// lane.
pub(super) fn writes_whole_lanes(inst: &Inst) -> bool {
    inst.modifiers.sdwa.is_none()
        && inst.modifiers.dpp.is_none()
        && !inst.variant.flags.contains(wavetap_amdgpu::Flags::D16)
        && inst.modifiers.op_sel & 8 == 0
        && !inst.is_any(OpcodeFlags::VECTOR_RELATIVE | OpcodeFlags::SWAP_RELATIVE | OpcodeFlags::WRITE_LANE)
}

/// The lane that an instruction of this operation reads or writes, if it is a constant. Lanes beyond the wave's are
/// counted from 0 again.
fn chosen_lane(body: &Body, id: InstId, opcode: Opcode) -> Option<i64> {
    let inst = body.inst(id);
    if inst.opcode() != opcode {
        return None;
    }
    let lane = match inst.operand(Role::Src1)?.value {
        Value::InlineInt(lane) => lane.into(),
        Value::Literal(lane) => lane.into(),
        Value::Imm(lane) => lane,
        _ => return None,
    };
    Some(lane & (i64::from(body.target().wave_size()) - 1))
}

/// Whether the instruction reads lanes that its EXEC does not enable.
fn reads_other_lanes(inst: &Inst) -> bool {
    inst.modifiers.dpp.is_some() || inst.is_any(OpcodeFlags::CROSS_LANE)
}

/// Whether the instruction's write of EXEC can only clear bits.
pub(super) fn narrows_exec(target: Target, inst: &Inst) -> bool {
    // As wide as the wave's masks: a half of EXEC is all of it only where waves have 32 lanes.
    let exec = Reg::scalar(scalar::EXEC, (target.wave_size() / 32) as u8);
    let reads_exec = |role| inst.operand(role).and_then(|operand| operand.reg()) == Some(exec);
    match inst.opcode().mask().filter(|mask| mask.dwords == exec.dwords).map(|mask| mask.operation) {
        // EXEC = S0 & EXEC, EXEC = ~S0 & EXEC (Vega ISA, SOP1).
        Some(MaskOp::AndSaveexec | MaskOp::Andn1Saveexec | MaskOp::Andn1Wrexec) => true,
        Some(MaskOp::And) => reads_exec(Role::Src0) || reads_exec(Role::Src1),
        Some(MaskOp::Andn2) => reads_exec(Role::Src0),
        _ => inst.is_any(OpcodeFlags::CMPX),
    }
}
