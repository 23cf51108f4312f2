//! Static single assignment for whole registers: which write, or which merge of writes, each point sees.
//!
//! One pass in reverse postorder. A block where paths meet gets a merge for each register on which they do not agree;
//! the header of a loop, whose end was not seen yet, for each that the loop writes. So a register that nothing writes
//! costs nothing, however much code lies between.
//!
//! A definition does not always replace the one before: a vector write leaves inactive lanes, a call may write or not
//! (`Kills`). Each write therefore has a link to the definition `before` it, and a search from a use follows these
//! links as far as lanes may be left.

use std::ops::Range;

use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

use super::access::Accesses;
use super::indexing::Indexing;
use super::regset::RegSet;
use super::summary::Summaries;
use crate::cfg::{Cfg, Loops};
use crate::kernel::{Body, Flow};
use wavetap_amdgpu::{Access, Half, OpcodeFlags, Reg, RegFile};
use wavetap_base::entity::{BlockId, InstId};

/// A write of one register, or a merge of several: an index.
pub(super) type SsaId = u32;

/// Whatever was there at the entry, of any register.
pub(super) const ENTRY: SsaId = 0;

/// The kinds of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    /// What was there at the entry.
    Entry,
    /// An instruction's write.
    Write {
        inst: InstId,
        /// The definition that it replaces, or changes in part.
        before: SsaId,
        kills: Kills,
    },
    /// Something that a call may write.
    Call { inst: InstId, before: SsaId },
    /// Paths meet at the beginning of a block: what each predecessor has, from this index on.
    Merge { block: BlockId, operands: u32 },
}

/// What is left of a register that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kills {
    /// Nothing.
    All,
    /// The lanes that are not active.
    Lanes,
    /// Not known.
    Nothing,
}

/// Position of EXEC as a whole: a definition for each instruction that writes any of it.
pub(super) const EXEC: usize = RegSet::POSITIONS;
/// Not looked at: nothing reads it.
const UNREAD: u16 = u16::MAX;

/// The definitions of all registers that a body reads.
#[derive(Debug)]
pub(super) struct Ssa {
    nodes: Vec<Node>,
    /// Of merges, one after the other.
    operands: Vec<SsaId>,
    /// By position in a [`RegSet`]: which column of a state.
    columns: Vec<u16>,
    /// By column: which position.
    position_of: Vec<u16>,
    /// Of which position each is a definition; of [`ENTRY`], of none.
    positions: Vec<u16>,
    /// By instruction: which of `reads` are its own.
    reads_of: Vec<Range<u32>>,
    /// Position and definition.
    reads: Vec<(u16, SsaId)>,
    /// By instruction: EXEC before it.
    exec: Vec<SsaId>,
    /// By block: EXEC at its beginning and its end.
    exec_at: Vec<(SsaId, SsaId)>,
}

/// What a pass over a body needs.
struct Pass<'a> {
    body: &'a Body,
    summaries: &'a Summaries,
    indexing: Indexing,
}

impl Pass<'_> {
    /// Calls `visit` with the position of each register that an instruction may write, what that leaves of it, and
    /// whether it is by a call.
    fn for_writes(&self, id: InstId, mut visit: impl FnMut(usize, Kills, bool)) {
        let accesses = Accesses::at(self.body, id, &self.indexing);
        let mut named = RegSet::EMPTY;
        // An operand that is read as well (a tied destination) keeps a part of its old value, unless that is what the
        // result is made of.
        let inst = self.body.inst(id);
        if super::definitions::writes_whole_lanes(inst) {
            let accumulates = inst.is_any(OpcodeFlags::ACCUMULATES);
            for operand in &inst.operands {
                let written = operand.access == Access::Write || (operand.access == Access::ReadWrite && accumulates);
                let all = written && operand.half == Half::Whole;
                if let Some(reg) = self.body.register(id, operand).filter(|_| all) {
                    named.insert(reg);
                }
            }
        }
        for reg in accesses.writes.iter() {
            let kills = if accesses.kills.contains(reg) {
                Kills::All
            } else if reg.file != RegFile::Scalar && named.contains(reg) {
                Kills::Lanes
            } else {
                Kills::Nothing
            };
            RegSet::positions(reg).for_each(|position| visit(position, kills, false));
        }
        // What is called runs after the call has written where it returns to.
        if let Flow::Call(target) = self.body.flow(id) {
            let writes = self.summaries.of(target).writes;
            writes.iter().flat_map(RegSet::positions).for_each(|position| visit(position, Kills::Nothing, true));
        }
    }
}

impl Ssa {
    pub(super) fn compute(body: &Body, cfg: &Cfg, loops: &Loops, summaries: &Summaries) -> Ssa {
        let pass = Pass { body, summaries, indexing: Indexing::of(body) };
        let mut columns = vec![UNREAD; RegSet::POSITIONS + 1];
        let mut position_of: Vec<u16> = Vec::new();
        let mut column = |position: usize| {
            if columns[position] == UNREAD {
                columns[position] = position_of.len() as u16;
                position_of.push(position as u16);
            }
        };
        column(EXEC);
        body.ids().flat_map(|id| body.reads(id)).flat_map(RegSet::positions).for_each(&mut column);
        let width = position_of.len();
        let mut ssa = Ssa {
            nodes: vec![Node::Entry],
            operands: Vec::new(),
            columns,
            position_of,
            positions: vec![0],
            reads_of: vec![0..0; body.len()],
            reads: Vec::new(),
            exec: vec![0; body.len()],
            exec_at: vec![(0, 0); cfg.len()],
        };
        let written = ssa.written_in_loops(&pass, cfg, loops, width);
        let mut ends: Vec<Option<Box<[SsaId]>>> = vec![None; cfg.len()];
        let mut merges: Vec<(SsaId, usize)> = Vec::new();
        let headers: FxHashMap<BlockId, usize> =
            loops.all().iter().enumerate().map(|(index, each)| (each.header, index)).collect();
        for &block in cfg.reverse_postorder() {
            let mut state = ssa.meet(cfg, block, &ends, width, &mut merges, || {
                headers.get(&block).filter(|_| !loops.irreducible()).map(|index| &written[*index])
            });
            ssa.exec_at[block.index()].0 = state[ssa.column(EXEC)];
            for id in cfg.block(block).insts() {
                ssa.exec[id.index()] = state[ssa.column(EXEC)];
                let first = ssa.reads.len() as u32;
                for position in body.reads(id).flat_map(RegSet::positions) {
                    ssa.reads.push((position as u16, state[ssa.column(position)]));
                }
                ssa.reads_of[id.index()] = first..ssa.reads.len() as u32;
                ssa.step(&pass, id, &mut state);
            }
            ssa.exec_at[block.index()].1 = state[ssa.column(EXEC)];
            ends[block.index()] = Some(state.into());
        }
        for (merge, column) in merges {
            let Node::Merge { block, .. } = ssa.nodes[merge as usize] else { continue };
            let at = ssa.operands.len() as u32;
            let from = cfg
                .block(block)
                .predecessors
                .iter()
                .map(|edge| ends[edge.block.index()].as_ref().map_or(0, |end| end[column]));
            ssa.operands.extend(from);
            // The entry has one way in that is no edge.
            if block == cfg.entry() {
                ssa.operands.push(0);
            }
            ssa.nodes[merge as usize] = Node::Merge { block, operands: at };
        }
        ssa
    }

    fn column(&self, position: usize) -> usize {
        usize::from(self.columns[position])
    }

    /// By loop: the columns that it writes.
    fn written_in_loops(&self, pass: &Pass<'_>, cfg: &Cfg, loops: &Loops, width: usize) -> Vec<FixedBitSet> {
        let mut by_loop = vec![FixedBitSet::with_capacity(width); loops.all().len()];
        for block in cfg.ids() {
            let Some(innermost) = loops.innermost(block) else { continue };
            for id in cfg.block(block).insts() {
                pass.for_writes(id, |position, _, _| {
                    if self.columns[position] != UNREAD {
                        by_loop[innermost].insert(self.column(position));
                    }
                    if is_exec(position) {
                        by_loop[innermost].insert(self.column(EXEC));
                    }
                });
            }
        }
        // Inner loops come after those around them.
        for index in (0..by_loop.len()).rev() {
            if let Some(parent) = loops.all()[index].parent {
                let inner = by_loop[index].clone();
                by_loop[parent].union_with(&inner);
            }
        }
        by_loop
    }

    /// What is there at the beginning of a block.
    fn meet<'w>(
        &mut self,
        cfg: &Cfg,
        block: BlockId,
        ends: &[Option<Box<[SsaId]>>],
        width: usize,
        merges: &mut Vec<(SsaId, usize)>,
        written: impl FnOnce() -> Option<&'w FixedBitSet>,
    ) -> Vec<SsaId> {
        let predecessors = &cfg.block(block).predecessors;
        let known: Vec<&[SsaId]> = predecessors.iter().filter_map(|edge| ends[edge.block.index()].as_deref()).collect();
        let entry = vec![0; width];
        let mut ways: Vec<&[SsaId]> = known.clone();
        if block == cfg.entry() {
            ways.push(&entry);
        }
        let mut state = ways.first().map_or_else(|| entry.clone(), |first| first.to_vec());
        // A loop's end is not seen yet; where loops are not natural, anything may come from there.
        let unseen = known.len() < predecessors.len();
        let written = if unseen { written() } else { None };
        for column in 0..width {
            let from_later = unseen && written.is_none_or(|written| written.contains(column));
            if from_later || ways.iter().any(|way| way[column] != state[column]) {
                state[column] = self.nodes.len() as SsaId;
                self.nodes.push(Node::Merge { block, operands: 0 });
                self.positions.push(self.position_of[column]);
                merges.push((state[column], column));
            }
        }
        state
    }

    fn step(&mut self, pass: &Pass<'_>, id: InstId, state: &mut [SsaId]) {
        let mut exec = None;
        let (nodes, positions, columns) = (&mut self.nodes, &mut self.positions, &self.columns);
        let mut write = |position: usize, kills: Kills, by_call: bool| {
            if columns[position] == UNREAD {
                return;
            }
            let slot = &mut state[usize::from(columns[position])];
            let before = *slot;
            *slot = nodes.len() as SsaId;
            positions.push(position as u16);
            nodes.push(if by_call { Node::Call { inst: id, before } } else { Node::Write { inst: id, before, kills } });
        };
        pass.for_writes(id, |position, kills, by_call| {
            if is_exec(position) {
                exec = Some(by_call);
            }
            write(position, kills, by_call);
        });
        if let Some(by_call) = exec {
            write(EXEC, Kills::Nothing, by_call);
        }
    }

    /// The kind of a definition, with its links.
    pub(super) fn node(&self, def: SsaId) -> Node {
        self.nodes[def as usize]
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// What an instruction reads of a register: a definition for each 32 bits of it.
    pub(super) fn read(&self, id: InstId, reg: Reg) -> impl Iterator<Item = SsaId> {
        self.read_at(id, reg).map(|(_, def)| def)
    }

    /// [`Ssa::read`] with positions in a [`RegSet`].
    pub(super) fn read_at(&self, id: InstId, reg: Reg) -> impl Iterator<Item = (u16, SsaId)> {
        let Range { start, end } = self.reads_of[id.index()];
        let reads = &self.reads[start as usize..end as usize];
        let wanted = RegSet::positions(reg);
        reads.iter().filter(move |(position, _)| wanted.contains(&usize::from(*position))).copied()
    }

    /// Every definition with its position in a [`RegSet`], or that of [`EXEC`], in the order in which they were found:
    /// but for merges, each after what it was made from.
    pub(super) fn all(&self) -> impl Iterator<Item = (SsaId, usize, Node)> + '_ {
        self.nodes
            .iter()
            .zip(&self.positions)
            .enumerate()
            .skip(1)
            .map(|(index, (node, position))| (index as SsaId, usize::from(*position), *node))
    }

    /// EXEC before an instruction.
    pub(super) fn exec_before(&self, id: InstId) -> SsaId {
        self.exec[id.index()]
    }

    /// EXEC at the beginning and at the end of a block.
    pub(super) fn exec_at(&self, block: BlockId) -> (SsaId, SsaId) {
        self.exec_at[block.index()]
    }

    /// What comes together in a merge: the predecessor, none for the body's entry, and what there is at its end.
    pub(super) fn merged<'a>(
        &'a self,
        cfg: &'a Cfg,
        block: BlockId,
        operands: u32,
    ) -> impl Iterator<Item = (Option<BlockId>, SsaId)> + 'a {
        let from = cfg.block(block).predecessors.iter().map(|edge| Some(edge.block));
        let entry = (block == cfg.entry()).then_some(None);
        from.chain(entry).zip(&self.operands[operands as usize..]).map(|(from, def)| (from, *def))
    }
}

fn is_exec(position: usize) -> bool {
    RegSet::positions(Reg::EXEC).contains(&position)
}
