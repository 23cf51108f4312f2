//! Registers that something may have set since a kernel was entered, or before.

use super::regset::RegSet;
use crate::cfg::{Cfg, Worklist};
use crate::kernel::{Body, BodyKind, Flow};
use wavetap_amdgpu::{OpcodeFlags, Reg};
use wavetap_base::entity::{InstId, ProgramPoint, Side};

/// The registers that may have been set at each point of a body: a vector register or numbered scalar register that is
/// not among them really holds nothing that the program or the hardware put there.
///
/// A function is entered with whatever its callers have, a call may set anything, and so may code that chooses
/// registers at run time.
#[derive(Debug, Clone)]
pub struct Assigned {
    /// At the start of each block that is reached.
    block_in: Vec<RegSet>,
}

/// The hardware writes work-item ids to so many registers at most.
const AT_ENTRY: u8 = 3;

impl Assigned {
    /// Analyses a body. A kernel is entered with these scalar registers set.
    #[must_use]
    pub fn compute(body: &Body, cfg: &Cfg, scalars: &RegSet) -> Assigned {
        let known = body.kind() == BodyKind::Kernel && !body.opcode_flags().intersects(OpcodeFlags::CHOOSES_REGISTERS);
        let at_entry = if known { scalars.union(RegSet::from_iter([Reg::vector(0, AT_ENTRY)])) } else { RegSet::ALL };
        let mut block_in = vec![RegSet::EMPTY; cfg.len()];
        block_in[cfg.entry().index()] = at_entry;
        let mut work = Worklist::new(cfg);
        // Blocks that nothing is set in have to be gone through once, too.
        cfg.ids().for_each(|block| work.push(block));
        while let Some(block) = work.pop() {
            let mut end = block_in[block.index()];
            cfg.block(block).insts().for_each(|id| step(body, id, &mut end));
            for edge in &cfg.block(block).successors {
                let place = &mut block_in[edge.block.index()];
                let joined = place.union(end);
                if *place != joined {
                    *place = joined;
                    work.push(edge.block);
                }
            }
        }
        Assigned { block_in }
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

fn step(body: &Body, id: InstId, set: &mut RegSet) {
    match body.flow(id) {
        Flow::Call(_) | Flow::TailCall(_) | Flow::IndirectJump => *set = RegSet::ALL,
        _ => body.writes(id).for_each(|reg| set.insert(reg)),
    }
}
