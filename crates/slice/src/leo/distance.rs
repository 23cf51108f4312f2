//! How far an instruction is after another: over all paths of the control-flow graph.
//!
//! The number of paths grows exponentially with branches, and loops have infinitely many. So paths are not listed: one
//! pass against the edges keeps for each block the number of its paths (as a logarithm) and their mean length, and adds
//! up successors: counts add, means are weighted by counts. Paths are counted in layers, by how many retreating edges
//! they take: within a layer the graph is acyclic. A producer has its distance from the first layer that reaches the
//! consumer, so the paths are those with the fewest retreating edges, of which there may be `RETREATS`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::graph::Graph;
use wavetap_base::entity::{BlockId, InstId};

/// Paths from some place: how many, as a logarithm because there may be more than any number holds, and their mean
/// length in instructions.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Paths {
    log_count: f64,
    mean: f64,
}

impl Paths {
    fn longer(self, instructions: f64) -> Paths {
        Paths { mean: self.mean + instructions, ..self }
    }

    /// Both sets together.
    fn and(self, other: Paths) -> Paths {
        let (more, fewer) = if self.log_count >= other.log_count { (self, other) } else { (other, self) };
        let ratio = (fewer.log_count - more.log_count).exp();
        Paths { log_count: more.log_count + ratio.ln_1p(), mean: (more.mean + ratio * fewer.mean) / (1.0 + ratio) }
    }
}

/// Retreating edges that paths may take, at most: the body of an irreducible loop may take two.
const RETREATS: usize = 3;

/// Gives distances on one body.
#[derive(Debug)]
pub(super) struct Distances<'a> {
    graph: Graph<'a>,
}

impl<'a> Distances<'a> {
    pub(super) fn new(graph: Graph<'a>) -> Self {
        Distances { graph }
    }

    /// The mean number of instructions from each of `producers` to `consumer`, over all paths that take as few
    /// retreating edges as possible; in address order where there is no path. At least 1.
    pub(super) fn mean(&self, producers: &[InstId], consumer: InstId) -> Vec<f64> {
        let cfg = self.graph.code.graph();
        let home = cfg.block_of(consumer);
        let mut found: Vec<Option<f64>> = producers
            .iter()
            .map(|id| (cfg.block_of(*id) == home && *id < consumer).then(|| f64::from(consumer.0 - id.0)))
            .collect();
        let mut ends: Vec<Option<Paths>> = Vec::new();
        for _ in 0..=RETREATS {
            if found.iter().all(Option::is_some) {
                break;
            }
            ends = self.layer(consumer, (!ends.is_empty()).then_some(&ends));
            for (id, place) in producers.iter().zip(&mut found).filter(|(_, place)| place.is_none()) {
                let block = cfg.block_of(*id);
                *place = ends[block.index()].map(|paths| paths.mean + f64::from(cfg.block(block).last.0 - id.0));
            }
        }
        let in_memory = |id: &InstId| f64::from(consumer.0.abs_diff(id.0)).max(1.0);
        found.into_iter().zip(producers).map(|(mean, id)| mean.unwrap_or_else(|| in_memory(id))).collect()
    }

    /// Paths from the end of each block to the first arrival at `consumer`, with one retreating edge more than those of
    /// `before`, or with none.
    fn layer(&self, consumer: InstId, before: Option<&Vec<Option<Paths>>>) -> Vec<Option<Paths>> {
        let cfg = self.graph.code.graph();
        let home = cfg.block_of(consumer);
        let arrival = Paths { log_count: 0.0, mean: f64::from(consumer.0 - cfg.block(home).first.0 + 1) };
        let size = |block: BlockId| f64::from(cfg.block(block).last.0 - cfg.block(block).first.0 + 1);
        let mut ends: Vec<Option<Paths>> = vec![None; cfg.len()];
        for block in cfg.reverse_postorder().iter().rev() {
            let mut all: Option<Paths> = None;
            for edge in &cfg.block(*block).successors {
                let to = edge.block;
                let retreats = cfg.retreats(*block, to);
                // Arrivals by a forward edge belong to the layer without retreating edges, those by a retreating one to
                // the first with one.
                let paths = match (before, retreats) {
                    (None, false) if to == home => Some(arrival),
                    (Some(_), false) if to == home => None,
                    (_, false) => ends[to.index()].map(|paths| paths.longer(size(to))),
                    (None, true) => None,
                    (Some(_), true) if to == home => Some(arrival),
                    (Some(before), true) => before[to.index()].map(|paths| paths.longer(size(to))),
                };
                all = match (all, paths) {
                    (Some(a), Some(b)) => Some(a.and(b)),
                    (a, b) => a.or(b),
                };
            }
            ends[block.index()] = all;
        }
        ends
    }

    /// The fewest cycles in which instructions are issued between each instruction and `consumer`, for those from which
    /// it is at most `limit`.
    pub(super) fn issued_between(&self, consumer: InstId, limit: u64) -> FxHashMap<InstId, u64> {
        let code = self.graph.code;
        let cfg = code.graph();
        let mut found: FxHashMap<InstId, u64> = FxHashMap::default();
        let mut work = BinaryHeap::from([Reverse((0, consumer, true))]);
        while let Some(Reverse((cycles, id, start))) = work.pop() {
            if cycles > limit || (!start && found.contains_key(&id)) {
                continue;
            }
            let behind = if start {
                cycles
            } else {
                found.insert(id, cycles);
                cycles + u64::from(code.inst(id).issue_cycles)
            };
            let block = cfg.block(cfg.block_of(id));
            if block.first == id {
                work.extend(block.predecessors.iter().map(|edge| Reverse((behind, cfg.block(edge.block).last, false))));
            } else {
                work.push(Reverse((behind, InstId(id.0 - 1), false)));
            }
        }
        found
    }
}
