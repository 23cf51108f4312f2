//! How often the blocks of a function are executed, in relation to each other: a guess.

use wavetap_amdgpu::{Branch, Condition};
use wavetap_analysis::cfg::{Cfg, EdgeKind};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::BlockId;

/// How much more often a loop's blocks are executed than those around it: a guess.
const LOOP_WEIGHT: f64 = 8.0;
/// How often a branch over code that no lane would execute is not taken: a guess.
const LANES_WEIGHT: f64 = 0.8;

/// By block: how often it is executed when the function is called once. A guess from loops and branches.
pub(crate) fn block_weights(body: &Body, cfg: &Cfg) -> Vec<f64> {
    let loops = cfg.loops();
    let depth = |block: BlockId| loops.depth(block) as i32;
    let mut weights = vec![0.0; cfg.len()];
    weights[cfg.entry().index()] = LOOP_WEIGHT.powi(depth(cfg.entry()));
    for &id in cfg.reverse_postorder() {
        let block = cfg.block(id);
        for edge in block.successors.iter().filter(|edge| !cfg.retreats(id, edge.block)) {
            let share = match (body.inst(block.last).variant.branch, edge.kind) {
                _ if block.successors.len() < 2 => 1.0,
                (Branch::Conditional(Condition::ExecZ), EdgeKind::FallThrough)
                | (Branch::Conditional(Condition::ExecNz), EdgeKind::Taken) => LANES_WEIGHT,
                (Branch::Conditional(Condition::ExecZ | Condition::ExecNz), _) => 1.0 - LANES_WEIGHT,
                _ => 0.5,
            };
            let loops = LOOP_WEIGHT.powi(depth(edge.block) - depth(id));
            weights[edge.block.index()] += weights[id.index()] * share * loops;
        }
    }
    weights
}
