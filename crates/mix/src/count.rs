//! The instructions of a body with what was counted of them.

use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::{Aperture, Definitions, accesses_private_segment};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::{BlockId, InstId};

use crate::addresses::address_arithmetic;
use crate::lanes::LaneCounts;
use crate::sites::SiteCounts;
use crate::work::WorkOfInstruction;

/// An instruction with what was counted of it.
#[derive(Debug, Clone)]
pub struct CountedInstruction {
    /// The instruction.
    pub inst: InstId,
    /// Its block.
    pub block: BlockId,
    /// Its address.
    pub address: u64,
    /// How often waves executed it; none if that is not known.
    pub executions: Option<u64>,
    /// Lanes that were active, summed over its executions; none if that is not known.
    pub lanes: Option<u64>,
    /// What one execution does.
    pub work: WorkOfInstruction,
    /// Whether all it computes is an address; none where that was not found out ([`address_arithmetic`]).
    pub makes_addresses: Option<bool>,
}

/// The instructions of a body, in the order of their addresses. `is_closed` as in [`LaneCounts::derive`].
#[must_use]
pub fn instructions(
    body: &Body,
    cfg: &Cfg,
    definitions: &Definitions<'_>,
    counts: &SiteCounts<'_>,
    is_closed: bool,
) -> Vec<CountedInstruction> {
    let of_block = |block: BlockId| Some(counts.block(body.address(cfg.block(block).first))?.executions);
    instructions_of(body, cfg, definitions, counts, is_closed, of_block)
}

/// The same with executions of blocks from elsewhere: they follow from counts of branches, too.
#[must_use]
pub fn instructions_of(
    body: &Body,
    cfg: &Cfg,
    definitions: &Definitions<'_>,
    counts: &SiteCounts<'_>,
    is_closed: bool,
    executions: impl Fn(BlockId) -> Option<u64>,
) -> Vec<CountedInstruction> {
    let lanes = LaneCounts::derive(body, cfg, definitions, counts, is_closed && counts.is_complete());
    let addresses = address_arithmetic(body, definitions);
    let of = |inst: InstId| {
        let block = cfg.block_of(inst);
        let executions = executions(block).filter(|_| !body.may_be_skipped(inst));
        CountedInstruction {
            inst,
            block,
            address: body.address(inst),
            executions,
            // What is never executed has no lanes.
            lanes: match executions {
                Some(0) => Some(0),
                Some(_) => lanes.of(inst),
                None => None,
            },
            work: WorkOfInstruction::of(
                body.inst(inst),
                accesses_private_segment(body, definitions, inst),
                Aperture::of(body, definitions, inst),
            ),
            makes_addresses: addresses.as_ref().map(|addresses| addresses.contains(inst.index())),
        }
    };
    body.ids().map(of).collect()
}
