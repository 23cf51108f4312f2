//! Dominators: the iteration of Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm".

use super::blocks::Graph;
use wavetap_base::entity::BlockId;

/// Immediate dominators, from the entry.
#[derive(Debug, Clone)]
pub(crate) struct Dominators {
    /// By block: the immediate dominator; its own of the entry, none of a block that is not reached.
    idom: Vec<Option<BlockId>>,
    /// By block: the places in which a walk of the tree enters and leaves it.
    walked: Vec<(u32, u32)>,
}

impl Dominators {
    pub(crate) fn of(graph: &Graph) -> Dominators {
        let mut idom: Vec<Option<BlockId>> = vec![None; graph.len()];
        if graph.is_empty() {
            return Dominators { idom, walked: Vec::new() };
        }
        idom[graph.entry().index()] = Some(graph.entry());
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for &block in graph.reverse_postorder().iter().filter(|block| **block != graph.entry()) {
                let known = graph.block(block).predecessors.iter().map(|edge| edge.block);
                let known = known.filter(|before| idom[before.index()].is_some());
                let common = known.reduce(|a, b| Self::common(graph, &idom, a, b));
                if common.is_some() && idom[block.index()] != common {
                    idom[block.index()] = common;
                    changed = true;
                }
            }
        }
        let walked = walk(&idom, graph.entry());
        Dominators { idom, walked }
    }

    fn common(graph: &Graph, idom: &[Option<BlockId>], a: BlockId, b: BlockId) -> BlockId {
        let (mut a, mut b) = (a, b);
        while a != b {
            // The later one in reverse postorder goes up; what was reached has a dominator.
            let later = if graph.place_of(a) > graph.place_of(b) { &mut a } else { &mut b };
            *later = idom[later.index()].unwrap_or(graph.entry());
        }
        a
    }

    /// Whether a path leads from the entry to the block.
    pub(crate) fn reaches(&self, block: BlockId) -> bool {
        self.idom[block.index()].is_some()
    }

    /// Whether all paths from the entry to `inner` pass `outer`. Blocks that are not reached dominate nothing.
    pub(crate) fn dominates(&self, outer: BlockId, inner: BlockId) -> bool {
        if !self.reaches(outer) || !self.reaches(inner) {
            return false;
        }
        let ((enters, leaves), (of_inner, _)) = (self.walked[outer.index()], self.walked[inner.index()]);
        enters <= of_inner && of_inner < leaves
    }
}

/// The places of the blocks in a walk of the tree, root first.
fn walk(idom: &[Option<BlockId>], entry: BlockId) -> Vec<(u32, u32)> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); idom.len()];
    for (block, above) in idom.iter().enumerate() {
        if let Some(above) = above.filter(|_| block != entry.index()) {
            children[above.index()].push(block);
        }
    }
    let mut walked = vec![(0, 0); idom.len()];
    let mut place = 1;
    let mut stack = vec![(entry.index(), 0)];
    while let Some((block, child)) = stack.last_mut() {
        match children[*block].get(*child) {
            Some(next) => {
                *child += 1;
                walked[*next].0 = place;
                place += 1;
                stack.push((*next, 0));
            }
            None => {
                walked[*block].1 = place;
                stack.pop();
            }
        }
    }
    walked
}
