//! Basic blocks and edges.

use smallvec::SmallVec;

use super::loops::Loops;
use crate::instruction::{Exit, Flow, Instruction};
use wavetap_base::dominators::DominatorTree;
use wavetap_base::entity::{BlockId, InstId};
use wavetap_base::error::{Error, Result};

/// Why control goes from one block to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EdgeKind {
    /// To the next instruction: no branch there, or one that is not taken.
    FallThrough,
    /// A branch that is taken.
    Taken,
    /// Back from a call to the instruction after it.
    CallReturn,
}

/// One end of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The block at the other end.
    pub block: BlockId,
    /// Why control goes there.
    pub kind: EdgeKind,
}

/// A basic block: instructions `first..=last` follow each other by index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The first instruction.
    pub first: InstId,
    /// The last instruction.
    pub last: InstId,
    /// Where control goes.
    pub successors: SmallVec<[Edge; 2]>,
    /// Where control comes from.
    pub predecessors: SmallVec<[Edge; 2]>,
    /// How control leaves the body at the end of the block, if it does. Under a guard there are successors, too.
    pub exit: Option<Exit>,
}

impl Block {
    /// The instructions, first to last.
    pub fn insts(&self) -> impl DoubleEndedIterator<Item = InstId> + ExactSizeIterator + use<> {
        (self.first.0..self.last.0 + 1).map(InstId)
    }
}

/// The control-flow graph of one body. Blocks are in address order; all instructions are in one.
#[derive(Debug, Clone)]
pub struct Graph {
    blocks: Vec<Block>,
    block_of: Vec<BlockId>,
    entry: BlockId,
    reverse_postorder: Vec<BlockId>,
    /// By block: its place in `reverse_postorder`.
    places: Vec<u32>,
}

impl Graph {
    /// The graph of blocks that are in address order, with their successors; predecessors are filled in.
    ///
    /// # Panics
    /// If a successor or the entry is not a block.
    #[must_use]
    pub fn new(mut blocks: Vec<Block>, entry: BlockId) -> Graph {
        blocks.iter_mut().for_each(|block| block.predecessors.clear());
        let mut block_of = Vec::new();
        for index in 0..blocks.len() {
            let from = BlockId(index as u32);
            block_of.extend(blocks[index].insts().map(|_| from));
            for edge in blocks[index].successors.clone() {
                blocks[edge.block.index()].predecessors.push(Edge { block: from, kind: edge.kind });
            }
        }
        let reverse_postorder = reverse_postorder(&blocks, entry);
        let mut places = vec![0; blocks.len()];
        reverse_postorder.iter().enumerate().for_each(|(place, block)| places[block.index()] = place as u32);
        Graph { blocks, block_of, entry, reverse_postorder, places }
    }

    /// The graph that the flow of instructions gives; the first one is the entry.
    pub(crate) fn of_flow(instructions: &[Instruction]) -> Result<Graph> {
        let at = |address: u64| {
            let found = instructions.binary_search_by_key(&address, |inst| inst.address);
            found.map_err(|_| Error::malformed("a branch to a place where no instruction begins").at(address))
        };
        let mut leader = vec![false; instructions.len() + 1];
        leader[0] = true;
        for (index, inst) in instructions.iter().enumerate() {
            if inst.flow != Flow::Next {
                leader[index + 1] = true;
            }
            if let Flow::Branch { targets, .. } = &inst.flow {
                for target in targets {
                    leader[at(*target)?] = true;
                }
            }
        }
        let mut blocks: Vec<Block> = Vec::new();
        let mut block_of = Vec::with_capacity(instructions.len());
        for (index, id) in (0..instructions.len() as u32).map(InstId).enumerate() {
            if leader[index] {
                blocks.push(Block {
                    first: id,
                    last: id,
                    successors: SmallVec::new(),
                    predecessors: SmallVec::new(),
                    exit: None,
                });
            }
            let block = blocks.len() - 1; // The first instruction is a leader.
            blocks[block].last = id;
            block_of.push(BlockId(block as u32));
        }
        for block in &mut blocks {
            let inst = &instructions[block.last.index()];
            let next = match &inst.flow {
                Flow::Next => Some(EdgeKind::FallThrough),
                Flow::Call(_) => Some(EdgeKind::CallReturn),
                Flow::Branch { targets, falls_through } => {
                    for target in targets {
                        block.successors.push(Edge { block: block_of[at(*target)?], kind: EdgeKind::Taken });
                    }
                    falls_through.then_some(EdgeKind::FallThrough)
                }
                Flow::Exit { exit, falls_through } => {
                    block.exit = Some(*exit);
                    falls_through.then_some(EdgeKind::FallThrough)
                }
            };
            if let Some(kind) = next {
                let following = block_of.get(block.last.index() + 1);
                let following = following.ok_or_else(|| Error::malformed("the code has no end").at(inst.address))?;
                block.successors.push(Edge { block: *following, kind });
            }
        }
        Ok(Graph::new(blocks, BlockId(0)))
    }

    /// How many blocks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there is no block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// All block indices in address order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = BlockId> + ExactSizeIterator + use<> {
        (0..self.blocks.len() as u32).map(BlockId)
    }

    /// One block.
    ///
    /// # Panics
    /// If `id` is not of this graph.
    #[must_use]
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// All blocks in address order.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The block an instruction is in.
    ///
    /// # Panics
    /// If `inst` is not of this body.
    #[must_use]
    pub fn block_of(&self, inst: InstId) -> BlockId {
        self.block_of[inst.index()]
    }

    /// The block in which the body is entered.
    #[must_use]
    pub fn entry(&self) -> BlockId {
        self.entry
    }

    /// Blocks in reverse postorder of a depth-first walk from the entry, then from all blocks that it does not reach:
    /// predecessors first, but for retreating edges.
    #[must_use]
    pub fn reverse_postorder(&self) -> &[BlockId] {
        &self.reverse_postorder
    }

    /// The place of a block in [`Graph::reverse_postorder`].
    ///
    /// # Panics
    /// If the block is not of this graph.
    #[must_use]
    pub fn place_of(&self, block: BlockId) -> u32 {
        self.places[block.index()]
    }

    /// Whether an edge from one block to another goes back in [`Graph::reverse_postorder`]: it closes a loop.
    ///
    /// # Panics
    /// If one of the blocks is not of this graph.
    #[must_use]
    pub fn retreats(&self, from: BlockId, to: BlockId) -> bool {
        self.place_of(from) >= self.place_of(to)
    }

    /// The natural loops.
    #[must_use]
    pub fn loops(&self) -> Loops {
        let ends = |edges: &[Edge]| edges.iter().map(|edge| edge.block.0).collect();
        let successors: Vec<Vec<u32>> = self.blocks.iter().map(|block| ends(&block.successors)).collect();
        let predecessors: Vec<Vec<u32>> = self.blocks.iter().map(|block| ends(&block.predecessors)).collect();
        Loops::find(self, &DominatorTree::solve(&successors, &predecessors, self.entry.0, self.blocks.len() as u32))
    }
}

fn reverse_postorder(blocks: &[Block], entry: BlockId) -> Vec<BlockId> {
    let mut order = Vec::with_capacity(blocks.len());
    let mut seen = vec![false; blocks.len()];
    let mut stack: Vec<(usize, usize)> = Vec::new();
    for start in std::iter::once(entry.index()).chain(0..blocks.len()) {
        if blocks.is_empty() || std::mem::replace(&mut seen[start], true) {
            continue;
        }
        stack.push((start, 0));
        while let Some((block, following)) = stack.last_mut() {
            match blocks[*block].successors.get(*following) {
                Some(edge) => {
                    *following += 1;
                    let next = edge.block.index();
                    if !std::mem::replace(&mut seen[next], true) {
                        stack.push((next, 0));
                    }
                }
                None => {
                    order.push(BlockId(*block as u32));
                    stack.pop();
                }
            }
        }
    }
    order.reverse();
    order
}
