//! The block probe: how often each basic block was executed, and by how many lanes.

use super::{Emitter, FunctionProbe, Probe, ProbeSite, Scc};
use crate::asm::{c, s};
use crate::function::ClonedFunction;
use crate::placement::Quantity;
use wavetap_analysis::kernel::Stop;
use wavetap_base::entity::{InstId, ProgramPoint, Side};
use wavetap_profile::probes::blocks::{BLOCK, PROBE};

/// Lane of `lanes`; lane 0 (executions) always holds 1.
const LANES: u32 = 1;
/// Both.
const COUNTED: u32 = 0b11;

/// See the module.
#[derive(Debug)]
pub(super) struct Blocks;

/// The blocks of a function.
#[derive(Debug)]
struct BlocksOf(Vec<ProbeSite>);

/// The first instruction of each block that the original's waves execute.
pub(super) fn first_instructions(function: &ClonedFunction<'_>) -> impl Iterator<Item = InstId> {
    // Instrumented code loads arguments as for firmware that preloads none. The original's waves start after that code.
    let start = function.entry();
    let first = move |first, last| match function.is_before_entry(first) {
        true => (start <= last).then_some(start),
        false => Some(first),
    };
    function.cfg.blocks().iter().filter_map(move |block| first(block.first, block.last))
}

impl Probe for Blocks {
    fn name(&self) -> &'static str {
        PROBE
    }

    fn summary(&self) -> &'static str {
        "Executions and active lanes of every basic block"
    }

    fn prepare(&self, function: &ClonedFunction<'_>) -> Result<Box<dyn FunctionProbe>, Stop> {
        let blocks = first_instructions(function);
        let mut sites: Vec<ProbeSite> = blocks.map(|inst| ProbeSite { inst, kind: &BLOCK }).collect();
        sites.sort_by_key(|site| site.inst);
        Ok(Box::new(BlocksOf(sites)))
    }
}

impl FunctionProbe for BlocksOf {
    fn sites(&self) -> &[ProbeSite] {
        &self.0
    }

    fn counters(&self, _: &ClonedFunction<'_>, site: &ProbeSite) -> Vec<Vec<(i64, Quantity)>> {
        let before = ProgramPoint { inst: site.inst, side: Side::Before };
        vec![vec![(1, Quantity::Executions(site.inst))], vec![(1, Quantity::Lanes(before))]]
    }

    fn at_site(&self, site: &ProbeSite, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop> {
        // Branches to the block come here, too, and with any EXEC.
        let before = ProgramPoint { inst: site.inst, side: Side::Before };
        emitter.measure(before, Scc::Preserved, |m| {
            let (exec, saved, lanes) = (m.exec(), m.saved_exec(), s(m.r.first));
            m.asm.masks("s_bcnt1_i32_b", &[lanes, exec])?;
            m.reach()?;
            m.asm.masks("s_mov_b", &[saved, exec])?;
            m.value(LANES, lanes)?;
            m.asm.masks("s_mov_b", &[exec, c(COUNTED)])?;
            m.add()
        })
    }
}
