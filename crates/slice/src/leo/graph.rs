//! The dependence graph: what an instruction may stand still for, found backward over the control-flow graph.
//!
//! Register edges are reaching definitions: on each path back from the consumer, the nearest write that overlaps the
//! register; each block is entered once. Counter edges follow LEO's description: going back from a wait for N, the
//! newest N operations of the counter are passed over, the older ones are dependences, down to what an earlier wait for
//! the counter has already waited for. That search visits a block once for each pair of these two counts, which are
//! bounded by the encoding of a wait, so it ends. Unlike the slicer's own analysis it knows neither completion orders
//! nor lanes: the rule is LEO's, for comparison.

use rustc_hash::{FxHashMap, FxHashSet};

use wavetap_amdgpu::{Counter, Memory, Reg, RegFile, scalar};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::{BlockId, InstId};

/// Why one instruction depends on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    /// It reads a register that the other one writes.
    Register,
    /// It waits for the other one by a counter.
    Counter,
}

/// An edge of the graph, seen from the instruction that depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Edge {
    pub(super) producer: InstId,
    pub(super) kind: Kind,
}

/// Answers what an instruction depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Graph<'a> {
    pub(super) body: &'a Body,
    pub(super) cfg: &'a Cfg,
}

impl Graph<'_> {
    /// Everything that `consumer` depends on, ascending; itself is not among it. Of two edges to the same instruction
    /// the one by a counter is kept.
    pub(super) fn edges(self, consumer: InstId) -> Vec<Edge> {
        let mut kinds: FxHashMap<InstId, Kind> = FxHashMap::default();
        for reg in self.body.reads(consumer).filter(|reg| is_followed(*reg)) {
            for index in 0..u16::from(reg.dwords) {
                self.writers(consumer, Reg { first: reg.first + index, dwords: 1, ..reg }, &mut kinds);
            }
        }
        if let Some(counts) = wavetap_amdgpu::wait_count(self.body.target(), self.body.inst(consumer)) {
            for (counter, count) in counts.iter() {
                self.counted(consumer, counter, count, &mut kinds);
            }
        }
        kinds.remove(&consumer);
        let mut edges: Vec<Edge> = kinds.into_iter().map(|(producer, kind)| Edge { producer, kind }).collect();
        edges.sort_unstable();
        edges
    }

    /// Reaching definitions of one register: the nearest writer on each path.
    fn writers(self, consumer: InstId, reg: Reg, kinds: &mut FxHashMap<InstId, Kind>) {
        let mut seen: FxHashSet<BlockId> = FxHashSet::default();
        let mut work: Vec<(BlockId, InstId)> = vec![(self.cfg.block_of(consumer), consumer)];
        while let Some((block, behind)) = work.pop() {
            let found = (self.cfg.block(block).first.0..behind.0)
                .rev()
                .map(InstId)
                .find(|id| self.body.writes(*id).any(|to| to.overlaps(reg)));
            match found {
                Some(writer) => {
                    kinds.entry(writer).or_insert(Kind::Register);
                }
                None => self.push_predecessors(block, |before, behind| {
                    if seen.insert(before) {
                        work.push((before, behind));
                    }
                }),
            }
        }
    }

    /// The operations that a wait for at most `count` of a counter waits for, by counting: the newest `count` on each
    /// path may be outstanding, and older ones are what it waits for, down to those that an earlier wait for the
    /// counter has waited for.
    fn counted(self, consumer: InstId, counter: Counter, count: u8, kinds: &mut FxHashMap<InstId, Kind>) {
        // How many newer operations were met, up to `count`, and how many older ones there can be.
        let mut seen: FxHashSet<(BlockId, u8, u8)> = FxHashSet::default();
        let mut work: Vec<(BlockId, InstId, u8, u8)> = vec![(self.cfg.block_of(consumer), consumer, 0, u8::MAX)];
        while let Some((block, behind, mut newer, mut older)) = work.pop() {
            for id in (self.cfg.block(block).first.0..behind.0).rev().map(InstId) {
                let inst = self.body.inst(id);
                if let Some(left) =
                    wavetap_amdgpu::wait_count(self.body.target(), inst).and_then(|counts| counts.get(counter))
                {
                    older = older.min(left);
                }
                if older > 0 && wavetap_amdgpu::issued(inst).contains(counter.flag()) {
                    if newer < count {
                        newer += 1;
                    } else {
                        kinds.insert(id, Kind::Counter);
                    }
                    // Without an earlier wait there may be any number.
                    older = if older == u8::MAX { older } else { older - 1 };
                }
                if older == 0 {
                    break;
                }
            }
            if older > 0 {
                self.push_predecessors(block, |before, behind| {
                    if seen.insert((before, newer, older)) {
                        work.push((before, behind, newer, older));
                    }
                });
            }
        }
    }

    /// The blocks before a block, each with the place after its last instruction.
    fn push_predecessors(self, block: BlockId, mut push: impl FnMut(BlockId, InstId)) {
        for edge in &self.cfg.block(block).predecessors {
            push(edge.block, InstId(self.cfg.block(edge.block).last.0 + 1));
        }
    }

    /// Whether an instruction accesses memory.
    pub(super) fn is_memory(self, id: InstId) -> bool {
        !matches!(self.body.inst(id).variant.memory, Memory::None | Memory::Message)
    }
}

/// Registers that a value flows through: not EXEC, which says for which lanes.
fn is_followed(reg: Reg) -> bool {
    reg.file != RegFile::Scalar || !(reg.is_null() || reg.overlaps(Reg::EXEC) || reg.first == scalar::MODE)
}
