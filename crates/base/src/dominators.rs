//! Dominators and post-dominators, by the Semi-NCA algorithm (Georgiadis 2005, "Linear-time algorithms for dominators
//! and related problems"): semidominators in a depth-first tree by path compression (Lengauer and Tarjan), of which
//! nearest common ancestors are the dominators. Nearly linear in the edges of graphs that code has.

use crate::entity::BlockId;

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
    /// The tree of the nodes that a root leads to, by the successors and the predecessors of each node. The first
    /// `blocks` nodes are blocks; others are virtual.
    ///
    /// # Panics
    /// If a number is not that of a node.
    #[must_use]
    pub fn solve(successors: &[Vec<u32>], predecessors: &[Vec<u32>], root: u32, blocks: u32) -> Self {
        let count = predecessors.len();
        let parents = immediate_dominators(successors, predecessors, root);
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

/// By node: its immediate dominator; none of the root and of nodes that it does not lead to.
fn immediate_dominators(successors: &[Vec<u32>], predecessors: &[Vec<u32>], root: u32) -> Vec<u32> {
    let count = successors.len();
    // Nodes in the order of a depth-first walk; by node, its place there; by place, that of the parent in the walk.
    let (mut order, mut places, mut parents) = (Vec::new(), vec![NONE; count], Vec::new());
    let mut stack = vec![(root, 0)];
    places[root as usize] = 0;
    order.push(root);
    parents.push(0);
    while let Some((node, next)) = stack.last_mut() {
        let node = *node;
        let Some(&to) = successors[node as usize].get(*next) else {
            stack.pop();
            continue;
        };
        *next += 1;
        if places[to as usize] == NONE {
            places[to as usize] = order.len() as u32;
            order.push(to);
            parents.push(places[node as usize]);
            stack.push((to, 0));
        }
    }
    // By place: the semidominator; in the forest of nodes that were visited, an ancestor, and the node with the least
    // semidominator on the path there.
    let mut semi: Vec<u32> = (0..order.len() as u32).collect();
    let mut best = semi.clone();
    let mut ancestors = vec![NONE; order.len()];
    let mut path = Vec::new();
    for place in (1..order.len() as u32).rev() {
        let mut least = parents[place as usize];
        for &predecessor in &predecessors[order[place as usize] as usize] {
            let from = places[predecessor as usize];
            if from != NONE {
                compress(from, &mut ancestors, &mut best, &semi, &mut path);
                least = least.min(semi[best[from as usize] as usize]);
            }
        }
        semi[place as usize] = least;
        ancestors[place as usize] = parents[place as usize];
    }
    // The dominator is the nearest common ancestor of the parent and the semidominator, in the tree of dominators.
    let mut dominators = parents;
    for place in 1..order.len() {
        while dominators[place] > semi[place] {
            dominators[place] = dominators[dominators[place] as usize];
        }
    }
    let mut all = vec![NONE; count];
    for place in 1..order.len() {
        all[order[place] as usize] = order[dominators[place] as usize];
    }
    all
}

/// Makes the root of its tree the ancestor of a node and of those on the path there, and finds what is best on it.
fn compress(node: u32, ancestors: &mut [u32], best: &mut [u32], semi: &[u32], path: &mut Vec<u32>) {
    let mut at = node;
    while ancestors[at as usize] != NONE && ancestors[ancestors[at as usize] as usize] != NONE {
        path.push(at);
        at = ancestors[at as usize];
    }
    while let Some(at) = path.pop() {
        let ancestor = ancestors[at as usize];
        if semi[best[ancestor as usize] as usize] < semi[best[at as usize] as usize] {
            best[at as usize] = best[ancestor as usize];
        }
        ancestors[at as usize] = ancestors[ancestor as usize];
    }
}
