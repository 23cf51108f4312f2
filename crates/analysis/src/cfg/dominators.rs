//! Dominators and post-dominators, by Cooper, Harvey and Kennedy's iteration over reverse postorder.

use super::graph::Cfg;
use wavetap_base::entity::BlockId;

/// The root of the tree has this parent; blocks outside of the tree have it too, and no number.
const NONE: u32 = u32::MAX;

/// A dominator tree or post-dominator tree.
///
/// In a post-dominator tree, blocks from which no exit can be reached (endless loops) are outside: nothing
/// post-dominates them.
#[derive(Debug, Clone)]
pub struct DominatorTree {
    /// Immediate dominator by block; the virtual root is the block after the last one.
    parents: Vec<u32>,
    /// Entry and exit number of each block in a walk of the tree: an ancestor's interval encloses its descendants'.
    intervals: Vec<(u32, u32)>,
    /// How many nodes are blocks: the virtual exit is none.
    blocks: u32,
}

impl DominatorTree {
    pub(super) fn of_entry(cfg: &Cfg) -> Self {
        let root = cfg.entry().0;
        let order: Vec<u32> = cfg.reverse_postorder().iter().map(|block| block.0).collect();
        let predecessors: Vec<Vec<u32>> =
            cfg.blocks().iter().map(|block| block.predecessors.iter().map(|edge| edge.block.0).collect()).collect();
        Self::solve(&order, &predecessors, root, cfg.len() as u32)
    }

    pub(super) fn of_exits(cfg: &Cfg) -> Self {
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
        Self::solve(&reverse_postorder(&forward, root), &reversed, root, root)
    }

    fn solve(order: &[u32], predecessors: &[Vec<u32>], root: u32, blocks: u32) -> Self {
        let count = predecessors.len();
        let mut position = vec![NONE; count];
        for (index, &node) in order.iter().enumerate() {
            position[node as usize] = index as u32;
        }
        let mut parents = vec![NONE; count];
        parents[root as usize] = root;
        let intersect = |parents: &[u32], mut a: u32, mut b: u32| {
            while a != b {
                while position[a as usize] > position[b as usize] {
                    a = parents[a as usize];
                }
                while position[b as usize] > position[a as usize] {
                    b = parents[b as usize];
                }
            }
            a
        };
        let mut changed = true;
        while changed {
            changed = false;
            for &node in order.iter().filter(|node| **node != root) {
                let mut parent = NONE;
                for &predecessor in &predecessors[node as usize] {
                    if parents[predecessor as usize] == NONE {
                        continue;
                    }
                    parent = if parent == NONE { predecessor } else { intersect(&parents, parent, predecessor) };
                }
                if parents[node as usize] != parent {
                    parents[node as usize] = parent;
                    changed = true;
                }
            }
        }
        parents[root as usize] = NONE;
        let mut children = vec![Vec::new(); count];
        for (node, &parent) in parents.iter().enumerate() {
            if parent != NONE {
                children[parent as usize].push(node as u32);
            }
        }
        let mut intervals = vec![(NONE, 0); count];
        let mut clock = 0;
        let mut stack = vec![(root, 0)];
        intervals[root as usize].0 = 0;
        while let Some((node, next)) = stack.last_mut() {
            clock += 1;
            match children[*node as usize].get(*next) {
                Some(&child) => {
                    *next += 1;
                    intervals[child as usize].0 = clock;
                    stack.push((child, 0));
                }
                None => {
                    intervals[*node as usize].1 = clock;
                    stack.pop();
                }
            }
        }
        DominatorTree { parents, intervals, blocks }
    }

    /// The immediate (post-)dominator. None for the root, for blocks outside of the tree and where only the virtual
    /// exit post-dominates.
    #[must_use]
    pub fn parent(&self, block: BlockId) -> Option<BlockId> {
        let parent = *self.parents.get(block.index())?;
        (parent < self.blocks).then_some(BlockId(parent))
    }

    /// Whether `a` (post-)dominates `b`; a block does so itself. False if either is outside of the tree.
    #[must_use]
    pub fn dominates(&self, a: BlockId, b: BlockId) -> bool {
        match (self.intervals.get(a.index()), self.intervals.get(b.index())) {
            (Some(&(a_in, a_out)), Some(&(b_in, b_out))) if a_in != NONE && b_in != NONE => {
                a_in <= b_in && b_out <= a_out
            }
            _ => false,
        }
    }

    /// Whether the block is in the tree.
    #[must_use]
    pub fn contains(&self, block: BlockId) -> bool {
        self.intervals.get(block.index()).is_some_and(|interval| interval.0 != NONE)
    }
}

fn reverse_postorder(successors: &[Vec<u32>], root: u32) -> Vec<u32> {
    let mut order = Vec::new();
    let mut seen = vec![false; successors.len()];
    seen[root as usize] = true;
    let mut stack = vec![(root, 0)];
    while let Some((node, next)) = stack.last_mut() {
        match successors[*node as usize].get(*next) {
            Some(&to) => {
                *next += 1;
                if !std::mem::replace(&mut seen[to as usize], true) {
                    stack.push((to, 0));
                }
            }
            None => {
                order.push(*node);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}
