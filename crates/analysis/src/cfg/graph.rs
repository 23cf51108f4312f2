//! Basic blocks and edges.

use smallvec::SmallVec;

use super::dominators::{self, DominatorTree};
use super::loops::Loops;
use crate::kernel::{Body, Flow};
use crate::solver::{self, Graph};
use wavetap_base::entity::{BlockId, InstId};

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

/// How a block leaves the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// The wave ends (`s_endpgm`).
    End,
    /// The function returns to its caller.
    Return,
    /// The function ends in another function.
    TailCall,
    /// It jumps to a place that is not known.
    Unknown,
}

/// A basic block: instructions `first..=last` follow each other by index and in memory.
#[derive(Debug, Clone)]
pub struct Block {
    /// The first instruction.
    pub first: InstId,
    /// The last instruction.
    pub last: InstId,
    /// Where control goes.
    pub successors: SmallVec<[Edge; 2]>,
    /// Where control comes from.
    pub predecessors: SmallVec<[Edge; 2]>,
    /// How control leaves the body at the end of the block, if it does.
    pub exit: Option<Exit>,
}

impl Block {
    /// The instructions, first to last.
    pub fn insts(&self) -> impl DoubleEndedIterator<Item = InstId> + ExactSizeIterator + use<> {
        (self.first.0..self.last.0 + 1).map(InstId)
    }
}

/// The control-flow graph of one body. Blocks are in address order; every block is reachable from the entry.
///
/// A conditional branch to the next instruction gives two edges to the same block.
#[derive(Debug, Clone)]
pub struct Cfg {
    blocks: Vec<Block>,
    block_of: Vec<BlockId>,
    entry: BlockId,
    reverse_postorder: Vec<BlockId>,
    /// By block: its place in `reverse_postorder`.
    places: Vec<u32>,
}

impl Cfg {
    /// Builds the graph of a body.
    #[must_use]
    pub fn build(body: &Body) -> Cfg {
        let mut leader = vec![false; body.len()];
        leader[body.entry().index()] = true;
        leader[0] = true;
        for id in body.ids() {
            if body.flow(id) != Flow::Next {
                body.successors(id).for_each(|to| leader[to.index()] = true);
                if let Some(behind) = leader.get_mut(id.index() + 1) {
                    *behind = true;
                }
            }
        }
        let mut blocks: Vec<Block> = Vec::new();
        let mut block_of = Vec::with_capacity(body.len());
        for id in body.ids() {
            if leader[id.index()] {
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
        for index in 0..blocks.len() {
            let last = blocks[index].last;
            let flow = body.flow(last);
            if let Flow::Jump(to) | Flow::Branch(to) = flow {
                connect(&mut blocks, index, block_of[to.index()], EdgeKind::Taken);
            }
            if let Some(next) = body.next(last) {
                let kind = if matches!(flow, Flow::Call(_)) { EdgeKind::CallReturn } else { EdgeKind::FallThrough };
                connect(&mut blocks, index, block_of[next.index()], kind);
            }
            blocks[index].exit = match flow {
                Flow::End => Some(Exit::End),
                Flow::Return => Some(Exit::Return),
                Flow::TailCall(_) => Some(Exit::TailCall),
                Flow::IndirectJump => Some(Exit::Unknown),
                _ => None,
            };
        }
        let entry = block_of[body.entry().index()];
        let following = |block: usize| blocks[block].successors.iter().map(|edge| edge.block.index());
        let reverse_postorder = solver::reverse_postorder(blocks.len(), [entry.index()], following);
        let reverse_postorder: Vec<BlockId> =
            reverse_postorder.into_iter().map(|block| BlockId(block as u32)).collect();
        let mut places = vec![0; blocks.len()];
        reverse_postorder.iter().enumerate().for_each(|(place, block)| places[block.index()] = place as u32);
        Cfg { blocks, block_of, entry, reverse_postorder, places }
    }

    /// How many blocks there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Never true: the entry is a block.
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

    /// Blocks in reverse postorder of a depth-first walk from the entry: predecessors first, but for retreating edges.
    #[must_use]
    pub fn reverse_postorder(&self) -> &[BlockId] {
        &self.reverse_postorder
    }

    /// The place of a block in [`Cfg::reverse_postorder`].
    ///
    /// # Panics
    /// If the block is not of this graph.
    #[must_use]
    pub fn place_of(&self, block: BlockId) -> u32 {
        self.places[block.index()]
    }

    /// The blocks for a forward analysis: along the edges.
    #[must_use]
    pub fn forward(&self) -> Forward<'_> {
        Forward(self)
    }

    /// The blocks for a backward analysis: against the edges.
    #[must_use]
    pub fn backward(&self) -> Backward<'_> {
        let order: Vec<BlockId> = self.reverse_postorder.iter().rev().copied().collect();
        Backward { cfg: self, order }
    }

    /// Whether an edge from one block to another goes back in [`Cfg::reverse_postorder`]: it closes a loop.
    ///
    /// # Panics
    /// If one of the blocks is not of this graph.
    #[must_use]
    pub fn retreats(&self, from: BlockId, to: BlockId) -> bool {
        self.place_of(from) >= self.place_of(to)
    }

    /// The dominator tree, rooted in the entry.
    #[must_use]
    pub fn dominators(&self) -> DominatorTree {
        dominators::of_entry(self)
    }

    /// The post-dominator tree, rooted in a virtual exit after all blocks that leave the body.
    #[must_use]
    pub fn post_dominators(&self) -> DominatorTree {
        dominators::of_exits(self)
    }

    /// The natural loops.
    #[must_use]
    pub fn loops(&self) -> Loops {
        Loops::find(self, &self.dominators())
    }
}

/// [`Cfg::forward`].
#[derive(Debug, Clone, Copy)]
pub struct Forward<'a>(&'a Cfg);

impl Graph for Forward<'_> {
    type Node = BlockId;

    fn order(&self) -> &[BlockId] {
        &self.0.reverse_postorder
    }

    fn rank(&self, block: BlockId) -> usize {
        self.0.places[block.index()] as usize
    }

    fn index(&self, block: BlockId) -> usize {
        block.index()
    }

    fn successors(&self, block: BlockId) -> impl Iterator<Item = BlockId> {
        self.0.block(block).successors.iter().map(|edge| edge.block)
    }
}

/// [`Cfg::backward`].
#[derive(Debug, Clone)]
pub struct Backward<'a> {
    cfg: &'a Cfg,
    /// The last block first.
    order: Vec<BlockId>,
}

impl Graph for Backward<'_> {
    type Node = BlockId;

    fn order(&self) -> &[BlockId] {
        &self.order
    }

    fn rank(&self, block: BlockId) -> usize {
        self.order.len() - 1 - self.cfg.places[block.index()] as usize
    }

    fn index(&self, block: BlockId) -> usize {
        block.index()
    }

    fn successors(&self, block: BlockId) -> impl Iterator<Item = BlockId> {
        self.cfg.block(block).predecessors.iter().map(|edge| edge.block)
    }
}

fn connect(blocks: &mut [Block], from: usize, to: BlockId, kind: EdgeKind) {
    blocks[from].successors.push(Edge { block: to, kind });
    blocks[to.index()].predecessors.push(Edge { block: BlockId(from as u32), kind });
}
