//! The dependence graph: what an instruction may stand still for, found backward over the control-flow graph.
//!
//! Register edges are reaching definitions: on each path back from the consumer, the nearest write that overlaps the
//! register; each block is entered once. Counter edges follow LEO's description: going back from a wait for N, the
//! newest N operations of the counter are passed over, the older ones are dependences, down to what an earlier wait for
//! the counter has already waited for. That search visits a block once for each pair of these two counts, which are
//! bounded by the encoding of a wait, so it ends. Unlike the slicer's own analysis it knows neither completion orders
//! nor lanes: the rule is LEO's, for comparison.

use rustc_hash::{FxHashMap, FxHashSet};

use wavetap_base::entity::{BlockId, InstId};
use wavetap_code::{Code, CounterId, Location};

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
    pub(super) code: &'a Code<'a>,
}

impl Graph<'_> {
    /// Everything that `consumer` depends on, ascending; itself is not among it. Of two edges to the same instruction
    /// the one by a counter is kept.
    pub(super) fn edges(self, consumer: InstId) -> Vec<Edge> {
        let mut kinds: FxHashMap<InstId, Kind> = FxHashMap::default();
        let inst = self.code.inst(consumer);
        for read in inst.reads.iter().filter(|read| read.role.is_value()) {
            for first in read.location.first..read.location.end() {
                self.writers(consumer, Location { first, units: 1, ..read.location }, &mut kinds);
            }
        }
        for wait in &inst.waits {
            self.counted(consumer, wait.counter, wait.count, &mut kinds);
        }
        kinds.remove(&consumer);
        let mut edges: Vec<Edge> = kinds.into_iter().map(|(producer, kind)| Edge { producer, kind }).collect();
        edges.sort_unstable();
        edges
    }

    /// Reaching definitions of one unit: the nearest writer on each path.
    fn writers(self, consumer: InstId, unit: Location, kinds: &mut FxHashMap<InstId, Kind>) {
        let mut seen: FxHashSet<BlockId> = FxHashSet::default();
        let mut work: Vec<(BlockId, InstId)> = vec![(self.code.block_of(consumer), consumer)];
        while let Some((block, behind)) = work.pop() {
            let found = (self.code.graph().block(block).first.0..behind.0)
                .rev()
                .map(InstId)
                .find(|id| self.code.inst(*id).writes.iter().any(|to| to.location.overlaps(unit)));
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
    fn counted(self, consumer: InstId, counter: CounterId, count: u8, kinds: &mut FxHashMap<InstId, Kind>) {
        // How many newer operations were met, up to `count`, and how many older ones there can be.
        let mut seen: FxHashSet<(BlockId, u8, u8)> = FxHashSet::default();
        let mut work: Vec<(BlockId, InstId, u8, u8)> = vec![(self.code.block_of(consumer), consumer, 0, u8::MAX)];
        while let Some((block, behind, mut newer, mut older)) = work.pop() {
            for id in (self.code.graph().block(block).first.0..behind.0).rev().map(InstId) {
                let inst = self.code.inst(id);
                if let Some(wait) = inst.waits.iter().find(|wait| wait.counter == counter) {
                    older = older.min(wait.count);
                }
                if older > 0 && inst.counts_in(counter) {
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
        let graph = self.code.graph();
        for edge in &graph.block(block).predecessors {
            push(edge.block, InstId(graph.block(edge.block).last.0 + 1));
        }
    }

    /// Whether an instruction accesses memory.
    pub(super) fn is_memory(self, id: InstId) -> bool {
        self.code.inst(id).class.is_memory()
    }
}
