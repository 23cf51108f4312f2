//! Registers that something may have set since a kernel was entered, or before.
//!
//! A forward *may* analysis over blocks. The lattice is [`RegSet`] by inclusion with union as join, so the iteration
//! ends: sets only grow. Transfer: a write adds its registers; nothing is ever removed; a call, a tail call and a jump
//! to an unknown place add all registers, because the code there is not analysed here.
//!
//! Invariant: a register that is *not* in the set at a point is undefined there on every path. The set may be too
//! large, never too small: functions, and bodies that choose registers at run time, begin with all registers.

use super::regset::RegSet;
use crate::cfg::Cfg;
use crate::kernel::{Body, BodyKind, Flow};
use crate::solver::{Analysis, Lattice, solve};
use wavetap_amdgpu::OpcodeFlags;
use wavetap_base::entity::{BlockId, InstId, ProgramPoint, Side};

/// The registers that may have been set at each point of a body: a vector register or numbered scalar register that is
/// not among them really holds nothing that the program or the hardware put there.
///
/// A function is entered with whatever its callers have, a call may set anything, and so may code that chooses
/// registers at run time.
#[derive(Debug, Clone)]
pub struct MaybeInitialized {
    /// At the start of each block that is reached.
    block_in: Vec<RegSet>,
}

impl MaybeInitialized {
    /// Analyses a body. A kernel is entered with these registers set, as its descriptor says.
    #[must_use]
    pub fn compute(body: &Body, cfg: &Cfg, at_entry: &RegSet) -> MaybeInitialized {
        let known = body.kind() == BodyKind::Kernel && !body.opcode_flags().intersects(OpcodeFlags::CHOOSES_REGISTERS);
        let at_entry = if known { *at_entry } else { RegSet::ALL };
        let block_in = solve(&cfg.forward(), &mut Writes { body, cfg }, [(cfg.entry(), at_entry)]);
        MaybeInitialized { block_in: block_in.into_iter().map(Option::unwrap_or_default).collect() }
    }

    /// What may have been set at a point of this body, whose block it is in.
    #[must_use]
    pub fn at(&self, body: &Body, cfg: &Cfg, point: ProgramPoint) -> RegSet {
        let block = cfg.block_of(point.inst);
        let mut set = self.block_in[block.index()];
        for id in cfg.block(block).insts().take_while(|id| *id <= point.inst) {
            if id < point.inst || point.side == Side::After {
                step(body, id, &mut set);
            }
        }
        set
    }
}

/// The registers that may have been set at the start of each block.
struct Writes<'a> {
    body: &'a Body,
    cfg: &'a Cfg,
}

impl Analysis for Writes<'_> {
    type Node = BlockId;
    type State = RegSet;

    fn transfer(&mut self, block: BlockId, set: &mut RegSet) {
        self.cfg.block(block).insts().for_each(|id| step(self.body, id, set));
    }

    fn join(&mut self, _: BlockId, state: &mut RegSet, incoming: &RegSet) -> bool {
        state.join(incoming)
    }
}

fn step(body: &Body, id: InstId, set: &mut RegSet) {
    match body.flow(id) {
        Flow::Call(_) | Flow::TailCall(_) | Flow::IndirectJump => *set = RegSet::ALL,
        _ => body.writes(id).for_each(|reg| set.insert(reg)),
    }
}
