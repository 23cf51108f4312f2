//! Natural loops, and whether control flow is reducible.
//!
//! An edge to a block that dominates its source is a back edge; the natural loop of a header is the header and all
//! blocks that reach one of its back edges without passing the header (Aho, Lam, Sethi, Ullman, "Compilers", 9.6). All
//! back edges to one header form one loop. A retreating edge that is no back edge makes the graph irreducible.
//!
//! Headers are visited in reverse postorder, in which an outer header precedes the headers inside its loop: when a loop
//! is found, the innermost loop that is already known at its header is its parent. Nested loops of depth d list a block
//! d times, so the total is bounded (`MOST_MEMBERS`); beyond it, control flow counts as irreducible.

use super::dominators::DominatorTree;
use super::graph::Cfg;
use wavetap_base::entity::BlockId;

/// Blocks of loops for each block of a body, those of nested loops once for each: more are not listed.
const MOST_MEMBERS: usize = 64;

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
        let mut loops: Vec<Loop> = Vec::new();
        let mut innermost = vec![None; cfg.len()];
        // By block: the last loop that it was found in.
        let mut found_in = vec![usize::MAX; cfg.len()];
        let mut left = MOST_MEMBERS * cfg.len();
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
            let index = loops.len();
            found_in[header.index()] = index;
            let mut blocks = vec![header];
            let mut work = latches.clone();
            // Reachability, against the edges and up to the header.
            while let Some(block) = work.pop() {
                if std::mem::replace(&mut found_in[block.index()], index) != index {
                    blocks.push(block);
                    work.extend(cfg.block(block).predecessors.iter().map(|edge| edge.block));
                }
            }
            if blocks.len() > left {
                return Loops { loops: Vec::new(), innermost: vec![None; cfg.len()], irreducible: true };
            }
            left -= blocks.len();
            blocks.sort_unstable();
            // A header comes before the headers inside its loop in reverse postorder, so the last enclosing loop is the
            // innermost.
            let parent: Option<usize> = innermost[header.index()];
            let depth = parent.map_or(1, |outer| loops[outer].depth + 1);
            blocks.iter().for_each(|block| innermost[block.index()] = Some(index));
            loops.push(Loop { header, latches, blocks, parent, depth });
        }
        Loops { loops, innermost, irreducible }
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
    /// listed. So it is said where loops are nested so deeply that to list their blocks would take too long; then none
    /// is listed.
    #[must_use]
    pub fn irreducible(&self) -> bool {
        self.irreducible
    }
}
