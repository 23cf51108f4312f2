//! LEO's blame, as the baseline to compare ours with: `wavetap slice --blame leo`.
//!
//! LEO ("LEO: Tracing GPU Stall Root Causes via Cross-Vendor Backward Slicing", Y. Xia and J. Mellor-Crummey, arXiv
//! 2604.20032) slices backward from instructions at which waves were seen to stand still. This is its method as it is
//! *published*, written anew. Its public artifact does other things on AMD hardware (one basic block for each function,
//! operations that are not read, counters matched line by line, equal blame at every `s_waitcnt`): none of that is
//! here, because who compares with a program's faults proves little. From the rest of this crate it uses the decoder,
//! the control-flow graph, the tables of latencies and the counts of blocks; its reaching definitions, its matching of
//! waits and its distances are its own.
//!
//! # Taken from the paper
//! * The graph: an edge from each instruction to those that it depends on, by registers (reaching definitions over the
//!   control-flow graph), and from each `s_waitcnt` to the operations that it waits for, found backward by counting
//!   those that count in its counter.
//! * Four prunings: by category (an edge of a kind that the stall's reasons do not show), by barriers (constraints that
//!   other vendors encode: none on AMD), by latency (an edge whose producer's latency has passed in the issue of other
//!   instructions, on all paths), by execution (a producer that was never executed). Edges of waits are pruned by the
//!   last one only.
//! * Four factors for each edge that is left, each normalised over the edges of a stall, and multiplied: *distance*
//!   (the nearest producer's distance divided by this one's), *efficiency* (of memory transactions), *issue* (how often
//!   the producer was issued, of all of them) and *match* (how much of the stall is of the edge's category). The
//!   product, normalised, divides the stall.
//! * A stall with no edge left is the instruction's own, by a class after its main reason.
//! * Chains: from the stall to a cause, and on to the producer that is blamed most in all, five steps at most.
//!
//! # Decided here, where the paper is silent or says it of other vendors
//! * All registers are followed, VCC, SCC and M0 with them, but EXEC, of which it says nothing: every vector
//!   instruction would depend on the last branch. A write ends the search on its path, whichever lanes it was for.
//! * All counters are counted in the same way, those of later generations too (the paper has `vmcnt` and `lgkmcnt`).
//!   What counts in which is the decoder's knowledge. An earlier wait bounds how many operations can be left from
//!   before it, whether for fewer or for more than this one. Operations are taken to complete in order.
//! * It works within one body: calls neither produce values nor count.
//! * Latencies are the tables' greatest, as LEO prunes by the greatest of its own; issue takes the target's issue
//!   interval, an `s_nop` as many as it says. The way with the fewest cycles decides.
//! * Scalar memory and LDS are memory as other memory is. Stall reasons are rocprofiler-sdk's: WAITCNT is memory,
//!   ALU_DEPENDENCY execution, BARRIER_WAIT synchronisation, NO_INSTRUCTION_AVAILABLE fetch, ARBITER_NOT_WIN and
//!   ARBITER_WIN_EX_STALL the pipe; the rest says nothing of a category. An edge of a wait is of memory: it is what the
//!   wait is for (the artifact has it as synchronisation, which rocprofiler-sdk never reports for it).
//! * The distance is the mean number of instructions over all paths with as few retreating edges as possible; what an
//!   earlier writer ends is not taken out of the paths.
//! * No AMD profiler tells transactions of single instructions, so efficiency is equal for all. The number of issues is
//!   the executions of the producer's block where all are known by counters, else the samples in which it was issued,
//!   where there are some; else equal. Without reasons the match is equal, and no edge is pruned by category.
//! * A class for indirect access means instructions that choose their registers at run time.
//! * A stall is every sample in which a wave did not issue, whatever other waves did meanwhile; of a thread trace, the
//!   cycles of stall, and its hit counts are issues.
//! * Without samples the stalls are the ones that our prediction has, so that the two rules divide the same cycles.

mod distance;
mod graph;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use self::distance::Distances;
use self::graph::{Edge, Graph, Kind};
use crate::counts::{BlockCounts, KernelCounts};
use crate::lines::step;
use crate::result::{Cause, Chain, Edge as StepEdge, Evidence, KernelSlice, SampledPlace, StallClass, Step};
use crate::stall::StallCycles;
use wavetap_base::entity::InstId;
use wavetap_code::{Class, Code, Properties, StallReason, WaitCertainty};

/// Latencies are multiplied by this over 2.
pub(super) const AS_THEY_ARE: u64 = 2;
const HALVED: u64 = 1;
const DOUBLED: u64 = 4;
/// Steps of a chain, the stall and its cause among them.
const LONGEST: usize = 5;

/// Divides stalls of one body.
#[derive(Debug)]
pub(super) struct Blamer<'a> {
    graph: Graph<'a>,
    distances: Distances<'a>,
    counts: &'a BlockCounts,
}

/// What one cause of a stall is blamed for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Share {
    /// None: the stalled instruction itself.
    pub(super) cause: Option<InstId>,
    kind: Option<Kind>,
    /// Of the stall, 0 to 1.
    pub(super) share: f64,
    /// Cycles in which other instructions are issued between the two, at least; no more than the greatest latency are
    /// counted.
    hidden: u64,
}

/// What LEO distinguishes: of edges and of stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Category {
    Memory,
    Execution,
    Synchronisation,
}

/// The reasons of a stall by category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Reasons {
    memory: u64,
    execution: u64,
    synchronisation: u64,
    pipe: u64,
    fetch: u64,
}

impl Reasons {
    fn of(properties: &Properties, stall: &StallCycles) -> Reasons {
        let mut reasons = Reasons::default();
        for (reason, cycles) in &stall.reasons {
            let place = match properties.stall_reason(reason) {
                Some(StallReason::InFlight) => &mut reasons.memory,
                Some(StallReason::Dependency) => &mut reasons.execution,
                Some(StallReason::Barrier) => &mut reasons.synchronisation,
                Some(StallReason::IssueContention | StallReason::BusyPipe) => &mut reasons.pipe,
                Some(StallReason::InstructionFetch) => &mut reasons.fetch,
                Some(StallReason::Sleep | StallReason::Other) | None => continue,
            };
            *place = place.saturating_add(*cycles);
        }
        reasons
    }

    fn in_category(self, category: Category) -> u64 {
        match category {
            Category::Memory => self.memory,
            Category::Execution => self.execution,
            Category::Synchronisation => self.synchronisation,
        }
    }
}

impl<'a> Blamer<'a> {
    pub(super) fn new(code: &'a Code<'a>, counts: &'a BlockCounts) -> Self {
        let graph = Graph { code };
        Blamer { graph, distances: Distances::new(graph), counts }
    }

    /// Divides one stall. `issued` gives the samples in which an instruction was issued, if there are samples that
    /// tell; latencies are multiplied by `numerator` / 2.
    pub(super) fn blame(
        &self,
        stalled: InstId,
        stall: &StallCycles,
        issued: &dyn Fn(InstId) -> Option<u64>,
        numerator: u64,
    ) -> Vec<Share> {
        let reasons = Reasons::of(self.graph.code.properties(), stall);
        let (edges, hidden) = self.pruned(stalled, reasons, numerator);
        if edges.is_empty() {
            return vec![Share { cause: None, kind: None, share: 1.0, hidden: 0 }];
        }
        let producers: Vec<InstId> = edges.iter().map(|edge| edge.producer).collect();
        let distances = self.distances.mean(&producers, stalled);
        let nearest = distances.iter().copied().fold(f64::INFINITY, f64::min);
        let distance: Vec<f64> = distances.iter().map(|distance| nearest / distance).collect();
        let matching = edges.iter().map(|edge| reasons.in_category(self.category(stalled, *edge)) as f64).collect();
        // Efficiency would be a fourth, and is equal.
        let factors = [distance, self.issues(&producers, issued), matching];
        let mut product = vec![1.0; edges.len()];
        for factor in factors {
            let sum: f64 = factor.iter().sum();
            if sum > 0.0 {
                product.iter_mut().zip(factor).for_each(|(product, factor)| *product *= factor / sum);
            }
        }
        let sum: f64 = product.iter().sum();
        if sum == 0.0 {
            product.fill(1.0);
        }
        let sum = if sum == 0.0 { edges.len() as f64 } else { sum };
        let share = |(edge, product): (Edge, f64)| Share {
            cause: Some(edge.producer),
            kind: Some(edge.kind),
            share: product / sum,
            hidden: hidden.get(&edge.producer).copied().unwrap_or_else(|| self.latency(edge.producer, AS_THEY_ARE)),
        };
        edges.into_iter().zip(product).map(share).collect()
    }

    /// How often each of them was issued; all equal where that is not known of each.
    fn issues(&self, producers: &[InstId], samples: &dyn Fn(InstId) -> Option<u64>) -> Vec<f64> {
        let executions = |id: &InstId| self.counts.of(self.graph.code.block_of(*id)).0;
        let all =
            |known: &dyn Fn(&InstId) -> Option<u64>| -> Option<Vec<u64>> { producers.iter().map(known).collect() };
        let issues = all(&executions).or_else(|| all(&|id| samples(*id))).unwrap_or_default();
        if issues.is_empty() {
            return vec![1.0; producers.len()];
        }
        issues.into_iter().map(|issues| issues.max(1) as f64).collect()
    }

    /// The edges that the prunings leave, and the cycles of issue between producers and the stalled instruction.
    fn pruned(&self, stalled: InstId, reasons: Reasons, numerator: u64) -> (Vec<Edge>, FxHashMap<InstId, u64>) {
        let mut edges = self.graph.edges(stalled);
        // Where neither is there the reasons say nothing of these categories.
        if reasons.memory > 0 || reasons.execution > 0 {
            edges.retain(|edge| match (edge.kind, self.category(stalled, *edge)) {
                (Kind::Counter, _) | (_, Category::Synchronisation) => true,
                (_, category) => reasons.in_category(category) > 0,
            });
        }
        let longest =
            edges.iter().map(|edge| self.latency(edge.producer, numerator.max(AS_THEY_ARE))).max().unwrap_or(0);
        let between = self.distances.issued_between(stalled, longest);
        edges.retain(|edge| {
            let visible =
                between.get(&edge.producer).is_some_and(|cycles| *cycles < self.latency(edge.producer, numerator));
            edge.kind == Kind::Counter || visible
        });
        edges.retain(|edge| self.counts.of(self.graph.code.block_of(edge.producer)).0 != Some(0));
        (edges, between)
    }

    fn latency(&self, id: InstId, numerator: u64) -> u64 {
        u64::from(self.graph.code.inst(id).latency.max) * numerator / AS_THEY_ARE
    }

    fn category(&self, stalled: InstId, edge: Edge) -> Category {
        let is_barrier = |id: InstId| self.graph.code.inst(id).class == Class::Barrier;
        if edge.kind == Kind::Counter || self.graph.is_memory(edge.producer) {
            Category::Memory
        } else if is_barrier(stalled) || is_barrier(edge.producer) {
            Category::Synchronisation
        } else {
            Category::Execution
        }
    }

    /// The class of a stall that is the instruction's own.
    fn class(&self, stalled: InstId, stall: &StallCycles) -> StallClass {
        if self.graph.code.inst(stalled).is_indirect {
            return StallClass::IndirectAccess;
        }
        let Reasons { memory, execution, synchronisation, pipe, fetch } =
            Reasons::of(self.graph.code.properties(), stall);
        let classes = [
            (memory, StallClass::MemoryLatency),
            (execution, StallClass::SaturatedComputation),
            (synchronisation, StallClass::Synchronisation),
            (pipe, StallClass::BusyPipe),
            (fetch, StallClass::InstructionFetch),
        ];
        let first = classes.iter().rev().max_by_key(|(cycles, _)| *cycles);
        first.filter(|(cycles, _)| *cycles > 0).map_or(StallClass::Scheduler, |(_, class)| *class)
    }
}

impl KernelSlice {
    /// The same with the chains that LEO's blame gives for the same stalls: the samples that the slice has, or, without
    /// samples, the cycles that its own chains predict.
    pub(crate) fn blamed_as_leo(self, code: &Code<'_>, counted: Option<KernelCounts<'_>>) -> KernelSlice {
        let counts = BlockCounts::of_code(code, counted);
        let blamer = Blamer::new(code, &counts);
        let mut predicted: BTreeMap<u64, u64> = BTreeMap::new();
        for chain in &self.chains {
            let all = predicted.entry(chain.address).or_default();
            *all = all.saturating_add(chain.predicted_cycles);
        }
        let stalls: BTreeMap<u64, StallCycles> = match &self.samples {
            Some(samples) => {
                let stall = |place: &SampledPlace| StallCycles {
                    cycles: place.samples.saturating_sub(place.issued),
                    reasons: place.stalled.clone(),
                    ..StallCycles::default()
                };
                samples.places.iter().map(|place| (place.address, stall(place))).collect()
            }
            None => predicted.iter().map(|(address, cycles)| (*address, (*cycles).into())).collect(),
        };
        let issues = |place: &SampledPlace| place.executions.unwrap_or(place.issued);
        let tells = self.samples.as_ref().is_some_and(|samples| samples.places.iter().any(|place| issues(place) > 0));
        let issued: FxHashMap<u64, u64> = self
            .samples
            .iter()
            .flat_map(|samples| &samples.places)
            .map(|place| (place.address, issues(place)))
            .collect();
        let issued = |id: InstId| tells.then(|| issued.get(&code.address(id)).copied().unwrap_or(0));

        let stalls: Vec<(InstId, StallCycles)> = stalls
            .into_iter()
            .filter(|(_, stall)| stall.cycles > 0)
            .filter_map(|(address, stall)| Some((code.at(address)?, stall)))
            .collect();
        let blamed: Vec<Vec<Share>> =
            stalls.iter().map(|(id, stall)| blamer.blame(*id, stall, &issued, AS_THEY_ARE)).collect();
        let mut as_cause: FxHashMap<InstId, f64> = FxHashMap::default();
        for ((_, stall), shares) in stalls.iter().zip(&blamed) {
            for share in shares {
                if let Some(cause) = share.cause {
                    *as_cause.entry(cause).or_default() += share.share * stall.cycles as f64;
                }
            }
        }
        let all: f64 = stalls.iter().map(|(_, stall)| stall.cycles as f64).sum();
        let maker = ChainMaker { blamer: &blamer, as_cause: &as_cause };
        let mut chains = Vec::new();
        for ((id, stall), shares) in stalls.iter().zip(&blamed) {
            let top =
                |shares: &[Share]| shares.iter().max_by(|a, b| a.share.total_cmp(&b.share)).map(|share| share.cause);
            let stable = [HALVED, DOUBLED]
                .iter()
                .all(|numerator| top(&blamer.blame(*id, stall, &issued, *numerator)) == top(shares));
            for share in shares.iter().filter(|share| share.share > 0.0) {
                let cycles = predicted.get(&code.address(*id)).copied().unwrap_or(0) as f64 * share.share;
                let mut chain = maker.chain(*id, stall, share);
                chain.predicted_cycles = cycles.round() as u64;
                chain.samples = self.samples.is_some().then_some(stall.cycles as f64 * share.share);
                chain.kernel_share = stall.cycles as f64 * share.share / all;
                chain.evidence.stable = stable;
                chains.push(chain);
            }
        }
        chains.sort_by(|a, b| b.kernel_share.total_cmp(&a.kernel_share).then(a.address.cmp(&b.address)));
        KernelSlice { chains, ..self }
    }
}

/// Makes chains of shares.
struct ChainMaker<'a> {
    blamer: &'a Blamer<'a>,
    /// What each instruction is blamed for in all.
    as_cause: &'a FxHashMap<InstId, f64>,
}

impl ChainMaker<'_> {
    fn chain(&self, stalled: InstId, stall: &StallCycles, share: &Share) -> Chain {
        let code = self.blamer.graph.code;
        let address = code.address(stalled);
        let of_latency = share.cause.unwrap_or(stalled);
        Chain {
            address,
            counter: code.waited_counters(stalled).join("+"),
            share: share.share,
            predicted_cycles: 0,
            samples: None,
            exposed_samples: None,
            cause: match share.cause {
                Some(cause) => Cause::Leo { name: code.inst(cause).name.clone() },
                None => Cause::LeoItself(self.blamer.class(stalled, stall)),
            },
            class: share.cause.map(|cause| code.inst(cause).class),
            kernel_share: 0.0,
            evidence: Evidence {
                certainty: WaitCertainty::May,
                executions: self.blamer.counts.of(code.block_of(stalled)).1,
                latency: code.inst(of_latency).latency,
                hidden_cycles: share.hidden,
                stable: false,
                active_lanes: None,
                access: None,
                address_loaded_by: None,
                observed: None,
                confidence: None,
            },
            path: self.path(stalled, share),
            mask: Vec::new(),
            through_memory: false,
        }
    }

    fn path(&self, stalled: InstId, share: &Share) -> Vec<Step> {
        let step = |id: InstId, edge| step(self.blamer.graph.code, id, edge);
        let of = |kind| if kind == Kind::Counter { StepEdge::Wait } else { StepEdge::Register };
        let mut path = vec![step(stalled, StepEdge::Stall)];
        let (Some(mut at), Some(kind)) = (share.cause, share.kind) else { return path };
        path.push(step(at, of(kind)));
        let mut seen = FxHashSet::from_iter([stalled, at]);
        while path.len() < LONGEST {
            let (edges, _) = self.blamer.pruned(at, Reasons::default(), AS_THEY_ARE);
            let blame = |edge: &Edge| self.as_cause.get(&edge.producer).copied().unwrap_or(0.0);
            let nearer = |edge: &Edge| at.0.abs_diff(edge.producer.0);
            let next = edges
                .iter()
                .max_by(|a, b| {
                    blame(a).total_cmp(&blame(b)).then(nearer(b).cmp(&nearer(a))).then(b.producer.cmp(&a.producer))
                })
                .filter(|edge| seen.insert(edge.producer));
            let Some(next) = next else { break };
            path.push(step(next.producer, of(next.kind)));
            at = next.producer;
        }
        path
    }
}
