//! What is left of each latency when a wait begins: how long a wave is predicted to stand there, and for what.
//!
//! `left(o) = latency(o) - between(o, wait)`, at least 0. `between` is the length of the shortest path from the
//! operation to the wait, with as many younger operations of the counter as the wait leaves outstanding (Dijkstra,
//! backward from the wait, over pairs of a block and a number of operations passed). An instruction costs its issue
//! slots, a wait on the path also its own predicted length, both times the counted rounds of a loop in between. So
//! waits depend on each other: they are predicted in the order of execution, and with loops iterated `ROUNDS` times,
//! each time half way to the new value.
//!
//! The expected length of a wait takes the operations by `left`, longest first, each with the probability that it is
//! outstanding and no longer one is. Shares: latencies are independent three-point distributions (PERT); the effect of
//! an operation is how much the expected maximum shrinks without it, and the effects are scaled to a sum of 1.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::Context;
use wavetap_base::entity::{BlockId, InstId};
use wavetap_code::{CounterId, Cycles, Event, Operation, Wait, WaitCertainty, WaitedOperation};

/// How often an operation is taken to be outstanding that is so on some paths, where the counters do not tell.
const UNKNOWN_FREQUENCY: f64 = 0.5;
/// How often all waits are predicted from the others: a wait in a loop shortens itself in the next round of the loop,
/// and settles half way.
const ROUNDS: usize = 5;

/// How probable either end of a range of latencies is, as PERT weighs estimates: 1, 4 and 1 of 6.
const RARE: f64 = 1.0 / 6.0;
/// Less probable than this is never.
const NEVER: f64 = 1e-9;

/// Latencies as they are, halved, doubled: numerators over 2.
pub(super) const AS_THEY_ARE: u64 = 2;
pub(super) const HALVED: u64 = 1;
pub(super) const DOUBLED: u64 = 4;

/// An operation with what decides whether it is blamed.
pub(super) struct Candidate<'a> {
    /// The operation, or the call of the function that issued it.
    pub(super) inst: InstId,
    pub(super) by_callee: bool,
    /// The counters by which the wait waits for it.
    pub(super) counters: SmallVec<[&'a str; 2]>,
    pub(super) certainty: WaitCertainty,
    pub(super) latency: Cycles,
    /// Between the operation and the wait.
    pub(super) between: Between,
    /// How often it is outstanding for each execution of the wait.
    pub(super) frequency: f64,
}

/// Which ways from an operation to a wait are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ways {
    /// The loop that is only left: the last operation in it is what is waited for.
    left: Option<usize>,
    /// The counter, and how many operations of it come after the one that is waited for, at least.
    counter: CounterId,
    younger: u8,
}

/// Cycles that pass between two instructions, on the shortest way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Between {
    /// In which instructions are issued, and waves are predicted to stand at waits.
    total: u64,
    /// Of these, in which they stand.
    waiting: u64,
}

impl Between {
    /// Farther away than any latency reaches.
    const FAR: Between = Between { total: u64::MAX, waiting: 0 };

    pub(super) fn cycles(self) -> u64 {
        self.total
    }
}

impl Candidate<'_> {
    /// What is left of a latency when the wait begins, with all latencies multiplied by `numerator / 2`.
    fn left_of(&self, latency: u32, numerator: u64) -> u64 {
        let Between { total, waiting } = self.between;
        let hidden = total.saturating_sub(waiting).saturating_add(waiting * numerator / 2);
        (u64::from(latency) * numerator / 2).saturating_sub(hidden)
    }

    /// What is left of the usual latency.
    fn left(&self) -> u64 {
        self.left_of(self.latency.typical, AS_THEY_ARE)
    }
}

/// Who arrives last first.
fn by_arrival(causes: &[Candidate<'_>]) -> Vec<usize> {
    let left = |index: &usize| causes[*index].left();
    let mut order: Vec<usize> = (0..causes.len()).filter(|index| left(index) > 0).collect();
    order.sort_by_key(|index| Reverse(left(index)));
    order
}

/// Cycles that a wait is predicted to last, if every latency is the usual one: until the last operation arrives, of
/// those that are there.
pub(super) fn expected(causes: &[Candidate<'_>]) -> f64 {
    let (mut cycles, mut rest) = (0.0, 1.0);
    for index in by_arrival(causes) {
        cycles += rest * causes[index].frequency * causes[index].left() as f64;
        rest *= 1.0 - causes[index].frequency;
    }
    cycles
}

/// How much shorter the wait would be, on average, if an operation took no time, as a part of the sum for all:
/// latencies are anywhere in their ranges, independently, and an operation is there as often as its frequency says. So
/// of two loads of one kind, neither of which is known to take longer, both are blamed.
pub(super) fn shares(causes: &[Candidate<'_>], numerator: u64) -> Vec<f64> {
    // What may be left of which, and how probable that is. The rest of each one's probability is that nothing is.
    let mut points: Vec<(u64, usize, f64)> = Vec::new();
    for (index, cause) in causes.iter().enumerate() {
        let Cycles { min, typical, max } = cause.latency;
        for (latency, weight) in [(min, RARE), (typical, 1.0 - 2.0 * RARE), (max, RARE)] {
            points.push((cause.left_of(latency, numerator), index, weight * cause.frequency));
        }
    }
    points.retain(|(left, ..)| *left > 0);
    points.sort_unstable_by_key(|(left, index, _)| (*left, *index));
    // From the longest time down: how probable it is that each is over by then.
    let mut over = vec![1.0; causes.len()];
    let mut effects = vec![0.0; causes.len()];
    while let Some(&(to, ..)) = points.last() {
        while let Some(&(_, index, weight)) = points.last().filter(|(left, ..)| *left == to) {
            over[index] = f64::max(over[index] - weight, 0.0);
            points.pop();
        }
        let from = points.last().map_or(0, |(left, ..)| *left);
        let certain = over.iter().filter(|over| **over < NEVER).count();
        let product: f64 = over.iter().filter(|over| **over >= NEVER).product();
        for (effect, &over) in effects.iter_mut().zip(&over) {
            let others = match (certain, over < NEVER) {
                (0, _) => product / over,
                (1, true) => product,
                _ => 0.0,
            };
            *effect += (to - from) as f64 * others * (1.0 - over);
        }
    }
    normalise(&mut effects);
    effects
}

/// Makes them sum to 1, if there are any.
pub(super) fn normalise(shares: &mut [f64]) {
    let sum: f64 = shares.iter().sum();
    if sum > 0.0 {
        shares.iter_mut().for_each(|share| *share /= sum);
    }
}

/// Predicted cycles by wait, one execution each.
#[derive(Debug, Clone, Default)]
pub(super) struct Stalls(FxHashMap<InstId, u64>);

/// Where an operation was issued, or the function called that issued it.
fn at(operation: Operation) -> Option<InstId> {
    match operation {
        Operation::Inst(id) | Operation::Callee(id) => Some(id),
        Operation::Caller => None,
    }
}

impl Context<'_> {
    /// Predicts all waits from each other. `waits` are those of an instruction each, in address order.
    pub(super) fn predict(&mut self, waits: &[&[Wait]]) {
        let mut order: Vec<&[Wait]> = waits.to_vec();
        order.sort_by_key(|waits| (self.code.graph().place_of(self.code.block_of(waits[0].inst)), waits[0].inst));
        // Without loops the first round, in the order of execution, is the last.
        let rounds = if self.loops.all().is_empty() && !self.loops.irreducible() { 1 } else { ROUNDS };
        for round in 0..rounds {
            for waits in &order {
                // What is in no loop does not change from round to round, but for what loops before it do.
                let looped =
                    self.loops.innermost(self.code.block_of(waits[0].inst)).is_some() || self.loops.irreducible();
                if !looped && round != 0 && round + 1 != rounds {
                    continue;
                }
                // Only what is left of usual latencies is asked for.
                let cycles = expected(&self.causes(waits, |latency| u64::from(latency.typical)));
                let stall = self.stalls.0.entry(waits[0].inst).or_default();
                *stall = if round == 0 { cycles.round() as u64 } else { (*stall + cycles.round() as u64) / 2 };
            }
        }
    }

    /// The causes of what an instruction waits for, in all its counters; of a latency, `reach` is as far as it is asked
    /// about.
    pub(super) fn causes<'w>(&'w self, waits: &'w [Wait], reach: impl Fn(Cycles) -> u64) -> Vec<Candidate<'w>> {
        let latency = |each: &WaitedOperation| match (each.operation, each.event) {
            (Operation::Inst(id), Event::Result) => self.latency(each).longer_by(self.code.extra_latency(id)),
            _ => self.latency(each),
        };
        let wait = waits[0].inst;
        let all = || waits.iter().flat_map(|wait| wait.operations.iter().map(move |each| (wait, each)));
        let longest = all().map(|(_, each)| reach(latency(each))).max().unwrap_or(0);
        let (executions, _) = self.counts.of(self.code.block_of(wait));
        let others_are_counted = all().any(|(_, each)| {
            let issued = at(each.operation).map(|id| self.counts.of(self.code.block_of(id)).0);
            issued.is_some_and(|issued| issued != Some(0)) && each.certainty != WaitCertainty::IfCounted
        });
        let mut ways: SmallVec<[(Ways, FxHashMap<InstId, Between>); 1]> = SmallVec::new();
        let mut causes: Vec<Candidate> = Vec::new();
        for (of, each) in all() {
            let (inst, by_callee) = match each.operation {
                Operation::Inst(id) => (id, false),
                Operation::Callee(id) => (id, true),
                Operation::Caller => continue,
            };
            let issued = self.counts.of(self.code.block_of(inst)).0;
            if issued == Some(0) {
                continue;
            }
            let certainty = each.certainty;
            // It is as soon done as what comes after it, if it is counted at all.
            if certainty == WaitCertainty::IfCounted && others_are_counted {
                continue;
            }
            let frequency = match (certainty, issued, executions) {
                (WaitCertainty::Must, _, _) => 1.0,
                (_, Some(issued), Some(executions)) if executions > 0 => (issued as f64 / executions as f64).min(1.0),
                _ => UNKNOWN_FREQUENCY,
            };
            if let Some(known) = causes.iter_mut().find(|cause| cause.inst == inst && cause.by_callee == by_callee) {
                known.counters.push(self.counter_name(of));
                if frequency > known.frequency {
                    (known.frequency, known.certainty) = (frequency, certainty);
                }
                continue;
            }
            let of_these = self.ways(of, each);
            if !ways.iter().any(|(of, _)| *of == of_these) {
                let wanted = all()
                    .filter(|(of, each)| self.ways(of, each) == of_these)
                    .filter_map(|(_, each)| at(each.operation));
                ways.push((of_these, self.between(wait, of_these, wanted.collect(), longest)));
            }
            // Farther away than the walk went: nothing of its latency is left. A function may have issued its
            // operations just before it returned.
            let found = ways.iter().find(|(of, _)| *of == of_these).and_then(|(_, between)| between.get(&inst));
            let between = found.copied().unwrap_or(Between::FAR);
            let counters = SmallVec::from_slice(&[self.counter_name(of)]);
            causes.push(Candidate { inst, by_callee, counters, certainty, latency: latency(each), between, frequency });
        }
        causes
    }

    /// Of operations in order, those are waited for that are followed by as many as may stay outstanding.
    fn ways(&self, wait: &Wait, each: &WaitedOperation) -> Ways {
        let younger = if each.certainty == WaitCertainty::Unordered { 0 } else { wait.count };
        let left = at(each.operation).and_then(|operation| self.loop_left(operation, wait.inst));
        Ways { left, counter: wait.counter, younger }
    }

    /// The outermost loop that has an operation in it and not the wait.
    fn loop_left(&self, operation: InstId, wait: InstId) -> Option<usize> {
        let around = |id: InstId| self.loops.around(self.code.block_of(id));
        around(operation).take_while(|index| !around(wait).any(|other| other == *index)).last()
    }

    /// The fewest cycles that pass from each operation that is wanted to the wait, for those from which it is at most
    /// `limit`. A loop in between goes as many rounds as were counted.
    fn between(
        &self,
        wait: InstId,
        ways: Ways,
        mut wanted: FxHashSet<InstId>,
        limit: u64,
    ) -> FxHashMap<InstId, Between> {
        let graph = self.code.graph();
        let interval = u64::from(self.code.properties().issue_interval);
        let mut found: FxHashMap<InstId, Between> = FxHashMap::default();
        let mut seen: FxHashSet<(BlockId, u8)> = FxHashSet::default();
        // Cycles, after which block, and how many operations of the counter were passed.
        let mut work: BinaryHeap<Reverse<(Between, BlockId, u8)>> = BinaryHeap::new();
        let mut part = Some((graph.block_of(wait), wait, Between { total: interval, waiting: 0 }, 0));
        while let Some((block, end, mut cycles, mut passed)) = part.take() {
            let rounds = self.rounds(block, graph.block_of(wait), ways.left);
            let first = graph.block(block).first;
            for id in (first.0..end.0).rev().map(InstId) {
                if cycles.total > limit || wanted.is_empty() {
                    break;
                }
                if passed == ways.younger && wanted.remove(&id) {
                    found.insert(id, cycles);
                }
                let waiting = rounds.saturating_mul(self.stalls.0.get(&id).copied().unwrap_or(0));
                let issuing = rounds.saturating_mul(u64::from(self.code.inst(id).issue_cycles));
                cycles.total = cycles.total.saturating_add(issuing).saturating_add(waiting);
                cycles.waiting = cycles.waiting.saturating_add(waiting);
                let counts = passed < ways.younger && self.code.inst(id).counts_in(ways.counter);
                passed += u8::from(counts);
            }
            if wanted.is_empty() {
                break;
            }
            if cycles.total <= limit {
                let before = graph.block(block).predecessors.iter();
                work.extend(before.map(|edge| Reverse((cycles, edge.block, passed))));
            }
            // The nearest that was not entered so before: what is found there is on the shortest way.
            while let Some(Reverse((cycles, block, passed))) = work.pop() {
                if seen.insert((block, passed)) {
                    part = Some((block, InstId(graph.block(block).last.0 + 1), cycles, passed));
                    break;
                }
            }
        }
        found
    }

    /// How often a block is executed on the way to the wait, if the way leads through it: in a loop that is neither
    /// around the wait nor the one that is left, as often for each execution of the wait as was counted.
    fn rounds(&self, block: BlockId, wait: BlockId, left: Option<usize>) -> u64 {
        let around = |block: BlockId| self.loops.around(block);
        let (Some(times), Some(waits)) = (self.counts.of(block).0, self.counts.of(wait).0) else { return 1 };
        let of_its_own = around(block).any(|index| !around(wait).any(|other| other == index));
        if !of_its_own || left.is_some_and(|left| around(block).any(|index| index == left)) {
            return 1;
        }
        times.checked_div(waits).unwrap_or(1).max(1)
    }

    /// The counter of a wait as the vendor writes it.
    fn counter_name<'w>(&'w self, wait: &'w Wait) -> &'w str {
        wait.name.as_deref().unwrap_or_else(|| self.code.counter_name(wait.counter))
    }
}
