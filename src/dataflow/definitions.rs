//! Reaching definitions: which instructions may have written what a use reads.
//!
//! Found backward from the use, on demand. A scalar write ends the search on its path. A vector write reaches only the lanes of its EXEC, so it ends
//! the search only where EXEC was at most narrowed between it and the use (`s_and_saveexec_b64`, `s_and_b64 exec, exec, m`,
//! `s_andn2_b64 exec, exec, m`, `v_cmpx`): then all lanes of the use were written by it. Instructions that read other lanes (DPP, `v_readlane`,
//! LDS permutes) never have their search ended by a vector write.

use rustc_hash::FxHashSet;

use super::access::Accesses;
use super::summary::Summaries;
use crate::cfg::Cfg;
use crate::entity::{BlockId, InstId};
use crate::isa::{Half, Inst, Reg, RegFile, Role, Target, scalar};
use crate::kernel::{Body, Flow};

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

/// Answers which definitions reach a use.
#[derive(Debug)]
pub struct Definitions<'a> {
    body: &'a Body,
    cfg: &'a Cfg,
    summaries: &'a Summaries,
    accesses: Vec<Accesses>,
}

impl<'a> Definitions<'a> {
    /// Prepares to answer for one body.
    #[must_use]
    pub fn new(body: &'a Body, cfg: &'a Cfg, summaries: &'a Summaries) -> Self {
        let indexed = Accesses::indexed(body);
        let accesses = body.ids().map(|id| Accesses::at(body, id, indexed)).collect();
        Definitions { body, cfg, summaries, accesses }
    }

    /// Every definition of any part of `reg` that may reach `use_inst`, ascending.
    ///
    /// # Panics
    /// If `use_inst` is not of this body.
    #[must_use]
    pub fn reaching(&self, use_inst: InstId, reg: Reg) -> Vec<Definition> {
        let mut found = FxHashSet::default();
        for index in 0..u16::from(reg.dwords) {
            self.search(use_inst, Reg { first: reg.first + index, dwords: 1, ..reg }, &mut found);
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_unstable();
        found
    }

    /// Walks back from the use. A place in the walk is a block's end together with whether EXEC may have been widened since.
    fn search(&self, use_inst: InstId, reg: Reg, found: &mut FxHashSet<Definition>) {
        let widened = reads_other_lanes(self.body.inst(use_inst));
        let block = self.cfg.block_of(use_inst);
        let first = self.cfg.block(block).first;
        let mut seen: FxHashSet<(BlockId, bool)> = FxHashSet::default();
        let mut work = Vec::new();
        if let Some(widened) = self.walk((first.0..use_inst.0).rev().map(InstId), reg, widened, found) {
            self.leave(block, widened, found, &mut seen, &mut work);
        }
        while let Some((block, widened)) = work.pop() {
            if let Some(widened) = self.walk(self.cfg.block(block).insts().rev(), reg, widened, found) {
                self.leave(block, widened, found, &mut seen, &mut work);
            }
        }
    }

    fn leave(
        &self,
        block: BlockId,
        widened: bool,
        found: &mut FxHashSet<Definition>,
        seen: &mut FxHashSet<(BlockId, bool)>,
        work: &mut Vec<(BlockId, bool)>,
    ) {
        if block == self.cfg.entry() && self.cfg.block(block).first == self.body.entry() {
            found.insert(Definition::Entry);
        }
        for edge in &self.cfg.block(block).predecessors {
            if seen.insert((edge.block, widened)) {
                work.push((edge.block, widened));
            }
        }
    }

    /// Walks instructions backward; gives whether EXEC may have been widened, or none if the search ended.
    fn walk(&self, insts: impl Iterator<Item = InstId>, reg: Reg, mut widened: bool, found: &mut FxHashSet<Definition>) -> Option<bool> {
        for id in insts {
            if let Flow::Call(target) = self.body.flow(id) {
                let writes = self.summaries.of(target).writes;
                if writes.overlaps(reg) {
                    found.insert(Definition::Call(id));
                }
                widened |= writes.overlaps(Reg::EXEC);
            }
            let accesses = &self.accesses[id.index()];
            if accesses.writes.overlaps(reg) {
                found.insert(Definition::Inst(id));
                if accesses.kills.overlaps(reg) || (reg.file != RegFile::Scalar && !widened && overwrites_lanes(self.body, id, reg)) {
                    return None;
                }
            }
            widened |= accesses.writes.overlaps(Reg::EXEC) && !narrows_exec(self.body.target(), self.body.inst(id));
        }
        Some(widened)
    }
}

/// Whether the instruction writes all bits of `reg` in every active lane, named as an operand of its own.
fn overwrites_lanes(body: &Body, id: InstId, reg: Reg) -> bool {
    let inst = body.inst(id);
    let whole = inst.modifiers.sdwa.is_none()
        && inst.modifiers.dpp.is_none()
        && !inst.variant.flags.contains(crate::isa::Flags::D16)
        && inst.modifiers.op_sel & 8 == 0
        && !inst.name().starts_with("v_movrel")
        && !inst.name().starts_with("v_swaprel")
        && !matches!(inst.name(), "v_writelane_b32");
    // An operand that is read as well (a tied destination) keeps a part of its old value.
    whole
        && inst.operands.iter().any(|operand| {
            let all = operand.access == crate::isa::Access::Write && operand.half == Half::Whole;
            all && body.register(id, operand).is_some_and(|written| written.overlaps(reg))
        })
}

/// Whether the instruction reads lanes that its EXEC does not enable.
fn reads_other_lanes(inst: &Inst) -> bool {
    inst.modifiers.dpp.is_some()
        || [
            "v_readlane",
            "v_readfirstlane",
            "v_permlane",
            "v_mfma",
            "v_smfmac",
            "v_wmma",
            "v_swmmac",
            "ds_bpermute",
            "ds_permute",
            "ds_swizzle",
            "v_accvgpr",
        ]
        .iter()
        .any(|name| inst.name().starts_with(name))
}

/// Whether the instruction's write of EXEC can only clear bits.
fn narrows_exec(target: Target, inst: &Inst) -> bool {
    // As wide as the wave's masks: a half of EXEC is all of it only where waves have 32 lanes.
    let exec = Reg::scalar(scalar::EXEC, (target.wave_size() / 32) as u8);
    let reads_exec = |role| inst.operand(role).and_then(|operand| operand.reg()) == Some(exec);
    let name = inst.name();
    let Some(operation) = name.strip_suffix(if exec.dwords == 1 { "_b32" } else { "_b64" }) else { return name.starts_with("v_cmpx") };
    match operation {
        // EXEC = S0 & EXEC, EXEC = ~S0 & EXEC (Vega ISA, SOP1; RDNA3 has other names).
        "s_and_saveexec" | "s_andn1_saveexec" | "s_andn1_wrexec" | "s_and_not0_saveexec" | "s_and_not0_wrexec" => true,
        "s_and" => reads_exec(Role::Src0) || reads_exec(Role::Src1),
        "s_andn2" | "s_and_not1" => reads_exec(Role::Src0),
        _ => name.starts_with("v_cmpx"),
    }
}
