//! Natural loops, and whether control flow is reducible.

use fixedbitset::FixedBitSet;

use super::dominators::DominatorTree;
use super::graph::Cfg;
use wavetap_base::entity::BlockId;

/// A natural loop: the blocks from which control can return to its header without leaving it.
#[derive(Debug, Clone)]
pub struct Loop {
    /// The block that dominates all of the loop.
    pub header: BlockId,
    /// The blocks that branch back to the header.
    pub latches: Vec<BlockId>,
    /// All blocks of the loop, header included, ascending.
    pub blocks: Vec<BlockId>,
    /// The innermost loop around this one, as an index into [`Loops::all`].
    pub parent: Option<usize>,
    /// 1 for an outermost loop.
    pub depth: u32,
}

/// The loops of a body, outer ones before inner ones.
#[derive(Debug, Clone)]
pub struct Loops {
    loops: Vec<Loop>,
    innermost: Vec<Option<usize>>,
    irreducible: bool,
}

impl Loops {
    pub(super) fn find(cfg: &Cfg, dominators: &DominatorTree) -> Loops {
        let mut irreducible = false;
        let mut loops: Vec<(Loop, FixedBitSet)> = Vec::new();
        for &header in cfg.reverse_postorder() {
            let mut latches: Vec<BlockId> = Vec::new();
            for edge in &cfg.block(header).predecessors {
                if dominators.dominates(header, edge.block) {
                    latches.push(edge.block);
                } else if cfg.retreats(edge.block, header) {
                    irreducible = true;
                }
            }
            if latches.is_empty() {
                continue;
            }
            latches.sort_unstable();
            latches.dedup();
            let mut members = FixedBitSet::with_capacity(cfg.len());
            members.insert(header.index());
            let mut work = latches.clone();
            // Reachability, against the edges and up to the header.
            while let Some(block) = work.pop() {
                if !members.put(block.index()) {
                    work.extend(cfg.block(block).predecessors.iter().map(|edge| edge.block));
                }
            }
            let blocks = members.ones().map(|index| BlockId(index as u32)).collect();
            loops.push((Loop { header, latches, blocks, parent: None, depth: 1 }, members));
        }
        // A header comes before the headers inside its loop in reverse postorder, so the last enclosing loop is the
        // innermost.
        for index in 0..loops.len() {
            let header = loops[index].0.header.index();
            let parent = (0..index).rev().find(|&outer| loops[outer].1.contains(header));
            loops[index].0.depth = parent.map_or(1, |outer| loops[outer].0.depth + 1);
            loops[index].0.parent = parent;
        }
        let mut innermost = vec![None; cfg.len()];
        for (index, (each, _)) in loops.iter().enumerate() {
            for block in &each.blocks {
                innermost[block.index()] = Some(index);
            }
        }
        Loops { loops: loops.into_iter().map(|(each, _)| each).collect(), innermost, irreducible }
    }

    /// All loops, outer ones before those inside them.
    #[must_use]
    pub fn all(&self) -> &[Loop] {
        &self.loops
    }

    /// The innermost loop a block is in, as an index into [`Loops::all`].
    #[must_use]
    pub fn innermost(&self, block: BlockId) -> Option<usize> {
        self.innermost.get(block.index()).copied().flatten()
    }

    /// How many loops a block is in.
    #[must_use]
    pub fn depth(&self, block: BlockId) -> u32 {
        self.innermost(block).map_or(0, |index| self.loops[index].depth)
    }

    /// Whether there is a cycle that can be entered at more than one block. Such cycles are no natural loops and not
    /// listed.
    #[must_use]
    pub fn irreducible(&self) -> bool {
        self.irreducible
    }
}
