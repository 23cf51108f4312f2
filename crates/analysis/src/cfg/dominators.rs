//! Dominators and post-dominators of bodies.

use super::graph::{Cfg, Edge};
pub use wavetap_base::dominators::DominatorTree;

/// The dominators of a body.
pub(super) fn of_entry(cfg: &Cfg) -> DominatorTree {
    let root = cfg.entry().0;
    let ends = |edges: &[Edge]| edges.iter().map(|edge| edge.block.0).collect();
    let successors: Vec<Vec<u32>> = cfg.blocks().iter().map(|block| ends(&block.successors)).collect();
    let predecessors: Vec<Vec<u32>> = cfg.blocks().iter().map(|block| ends(&block.predecessors)).collect();
    DominatorTree::solve(&successors, &predecessors, root, cfg.len() as u32)
}

/// The post-dominators: from the virtual exit, the node after the last block.
pub(super) fn of_exits(cfg: &Cfg) -> DominatorTree {
    let root = cfg.len() as u32;
    // In the reversed graph a block's predecessors are its successors, or the virtual root where it leaves the
    // body.
    let reversed: Vec<Vec<u32>> = cfg
        .blocks()
        .iter()
        .map(|block| {
            let exit = block.exit.map(|_| root);
            block.successors.iter().map(|edge| edge.block.0).chain(exit).collect()
        })
        .chain([Vec::new()])
        .collect();
    let exits = cfg.ids().filter(|id| cfg.block(*id).exit.is_some());
    let forward: Vec<Vec<u32>> = cfg
        .blocks()
        .iter()
        .map(|block| block.predecessors.iter().map(|edge| edge.block.0).collect())
        .chain([exits.map(|id| id.0).collect()])
        .collect();
    DominatorTree::solve(&forward, &reversed, root, root)
}
