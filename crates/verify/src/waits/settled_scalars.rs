//! Scalar registers that nothing of the original's can be about to write, because the original accesses them itself.
//!
//! What a function that is not known leaves outstanding, or the caller of one, may write any register as far as anybody
//! can tell. But the original runs into that as well: an instruction of its own that reads a register, or writes it at
//! once, is right only if nothing that was issued before will still write the register. The waits that make sure of it
//! stand before that instruction, and none of them after the original instruction before it. All original waits
//! are in the new code, in the same places and no weaker (see [`crate::waits::outstanding`]), so what holds for the
//! original instruction holds in the new code, too,
//!
//! * after it, until original code issues an operation that writes the register, or calls something;
//! * before it, back to the original instruction before it.
//!
//! In between, inserted code may use the register. It must not need more: of a pair of which the original accesses one
//! register, the other is not safe. Only registers that the original names count, not what the tables say it accesses
//! besides, and only scalar ones: of a vector register the original may access lanes that nothing will write, and
//! inserted code others. Operations that inserted code has outstanding are another matter: none of this is about them.

use wavetap_amdgpu::{Access, Reg, RegFile, issued};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::kernel::{Body, BodyKind, Flow};
use wavetap_analysis::solver::{Analysis, Lattice, solve};
use wavetap_base::entity::{BlockId, InstId};

use crate::alignment::Alignment;

/// A set of scalar registers by operand code.
type Codes = u128;

fn codes(reg: Reg) -> Codes {
    let codes = (reg.first..reg.first + u16::from(reg.dwords))
        .filter(|code| reg.file == RegFile::Scalar && u32::from(*code) < Codes::BITS);
    codes.fold(0, |all, code| all | 1 << code)
}

/// Registers that original code has accessed on all paths since anything that may write them was issued.
#[derive(Debug, Clone, Copy)]
struct Safe(Codes);

impl Lattice for Safe {
    fn join(&mut self, other: &Safe) -> bool {
        let before = self.0;
        self.0 &= other.0;
        self.0 != before
    }
}

/// What instructions do to them.
#[derive(Clone, Copy)]
struct Steps<'a> {
    new: &'a Body,
    alignment: &'a Alignment,
}

/// From block to block.
struct Blocks<'a> {
    steps: Steps<'a>,
    cfg: &'a Cfg,
}

impl Analysis for Blocks<'_> {
    type Node = BlockId;
    type State = Safe;

    fn transfer(&mut self, block: BlockId, safe: &mut Safe) {
        safe.0 = self.cfg.block(block).insts().fold(safe.0, |before, id| self.steps.step(before, id));
    }

    fn join(&mut self, _: BlockId, state: &mut Safe, incoming: &Safe) -> bool {
        state.join(incoming)
    }
}

/// Where the original accesses which registers of one body's new code.
pub(crate) struct SettledScalars<'a> {
    steps: Steps<'a>,
    cfg: &'a Cfg,
    block_in: Vec<Option<Safe>>,
}

impl<'a> SettledScalars<'a> {
    pub(crate) fn compute(new: &'a Body, cfg: &'a Cfg, alignment: &'a Alignment) -> Self {
        let steps = Steps { new, alignment };
        // A kernel begins with nothing outstanding.
        let at_entry = Safe(if new.kind() == BodyKind::Kernel { Codes::MAX } else { 0 });
        let block_in = solve(&cfg.forward(), &mut Blocks { steps, cfg }, [(cfg.entry(), at_entry)]);
        SettledScalars { steps, cfg, block_in }
    }

    /// Whether nothing original that was issued before an inserted instruction can still write a register.
    pub(crate) fn is_settled(&self, id: InstId, reg: Reg) -> bool {
        let needed = codes(reg);
        needed != 0 && needed & !(self.before(id) | self.next(id)) == 0
    }

    /// Registers that original code has accessed since anything that may write them was issued.
    fn before(&self, id: InstId) -> Codes {
        let block = self.cfg.block_of(id);
        let Some(Safe(start)) = self.block_in[block.index()] else { return 0 };
        self.cfg
            .block(block)
            .insts()
            .take_while(|earlier| *earlier != id)
            .fold(start, |before, earlier| self.steps.step(before, earlier))
    }

    /// Registers that the original instruction accesses to which inserted code leads.
    fn next(&self, id: InstId) -> Codes {
        let (mut seen, mut work, mut all) = (vec![id], vec![id], Codes::MAX);
        // A search, not a fixed point: paths end at the first original instruction.
        while let Some(at) = work.pop() {
            if self.steps.alignment.original(at).is_some() {
                all &= self.steps.accesses(at);
                continue;
            }
            for next in self.steps.new.successors(at) {
                if !seen.contains(&next) {
                    seen.push(next);
                    work.push(next);
                }
            }
            if self.steps.new.flow(at) == Flow::End {
                all = 0;
            }
        }
        all
    }
}

impl Steps<'_> {
    /// Registers that an original instruction reads, or writes at once.
    fn accesses(&self, id: InstId) -> Codes {
        let inst = self.new.inst(id);
        let at_once = issued(inst).is_empty();
        let counts = inst.operands.iter().filter(|operand| at_once || operand.access != Access::Write);
        counts.filter_map(|operand| self.new.register(id, operand)).fold(0, |all, reg| all | codes(reg))
    }

    fn step(&self, before: Codes, id: InstId) -> Codes {
        if self.alignment.original(id).is_none() {
            return before;
        }
        if matches!(self.new.flow(id), Flow::Call(_)) {
            return 0;
        }
        let later = if issued(self.new.inst(id)).is_empty() {
            0
        } else {
            self.new.writes(id).fold(0, |all, reg| all | codes(reg))
        };
        (before | self.accesses(id)) & !later
    }
}
