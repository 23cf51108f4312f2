//! Natural loops, and whether control flow is reducible.
//!
//! The natural loop of a header is the header and all blocks that reach a back edge to it without passing it (Aho, Lam,
//! Sethi, Ullman, "Compilers", 9.6); all back edges to one header form one loop. A retreating edge whose target does
//! not dominate its source makes the graph irreducible. Nested loops of depth d list a block d times, so their total is
//! bounded (`MOST_MEMBERS`); beyond it, control flow counts as irreducible. Blocks that the entry does not reach
//! (padding) count for nothing.

use super::blocks::{Edge, Graph};
use wavetap_base::dominators::DominatorTree;
use wavetap_base::entity::BlockId;

/// Blocks of loops for each block of a body, those of nested loops once for each: more are not listed.
const MOST_MEMBERS: usize = 64;

/// A natural loop: the blocks from which control can return to its header without leaving it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// The block that dominates all of the loop.
    pub header: BlockId,
    /// All blocks of the loop, header included, ascending.
    pub blocks: Vec<BlockId>,
    /// The innermost loop around this one, as an index into [`Loops::all`].
    pub parent: Option<usize>,
}

/// The loops of a body, outer ones before inner ones.
#[derive(Debug, Clone)]
pub struct Loops {
    loops: Vec<Loop>,
    innermost: Vec<Option<usize>>,
    irreducible: bool,
}

impl Loops {
    pub(crate) fn find(graph: &Graph, dominators: &DominatorTree) -> Loops {
        let mut found = Loops { loops: Vec::new(), innermost: vec![None; graph.len()], irreducible: false };
        // By block: the last loop that it was found in.
        let mut found_in = vec![usize::MAX; graph.len()];
        let mut members = 0;
        for &header in graph.reverse_postorder() {
            let mut work: Vec<BlockId> = Vec::new();
            let reached = |edge: &&Edge| dominators.contains(edge.block);
            for edge in graph.block(header).predecessors.iter().filter(reached) {
                if dominators.dominates(header, edge.block) {
                    work.push(edge.block);
                } else if graph.retreats(edge.block, header) {
                    found.irreducible = true;
                }
            }
            if work.is_empty() {
                continue;
            }
            let index = found.loops.len();
            found_in[header.index()] = index;
            let mut blocks = vec![header];
            while let Some(block) = work.pop() {
                if std::mem::replace(&mut found_in[block.index()], index) != index {
                    blocks.push(block);
                    work.extend(graph.block(block).predecessors.iter().filter(reached).map(|edge| edge.block));
                }
            }
            members += blocks.len();
            if members > MOST_MEMBERS * graph.len() {
                return Loops { loops: Vec::new(), innermost: vec![None; graph.len()], irreducible: true };
            }
            blocks.sort_unstable();
            // Outer headers come first in reverse postorder: what is known at the header is the innermost around it.
            let parent = found.innermost[header.index()];
            blocks.iter().for_each(|block| found.innermost[block.index()] = Some(index));
            found.loops.push(Loop { header, blocks, parent });
        }
        found
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

    /// The loops around a block, from the innermost to the outermost.
    pub fn around(&self, block: BlockId) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.innermost(block), |index| self.loops[*index].parent)
    }

    /// Whether there is a cycle that can be entered at more than one block. Such cycles are not listed. So it is said
    /// where loops are nested so deeply that listing their blocks would take too long; then none is listed.
    #[must_use]
    pub fn irreducible(&self) -> bool {
        self.irreducible
    }
}
