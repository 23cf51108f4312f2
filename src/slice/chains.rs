//! Why a wave waits: from a wait back to the operation that it really waits for, and from there to what the operation's address is made of.
//!
//! A wait ends when the last of its operations arrives. Of each operation, what is left of its latency when the wait begins is predicted: the latency of its class, less
//! the cycles in which the wave issues the instructions between the two, on the shortest way (other waits on the way take time as well, which is not known). The one
//! with the most left is blamed, as often as it is outstanding at all: always if it is on every path, else as often as its block was executed for each execution of the
//! wait. What is then left of the blame goes to the one that arrives before it, and so on. The shares of a wait's operations sum to 1. An operation in a block that was
//! never executed cannot be a cause, for this input. Where nothing is left of any latency nothing is blamed: the wait costs nothing. Nothing is known, either, of what a function's caller
//! may have under way: it is among the wait's operations, and in no chain.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::WaitCertainty;
use super::counts::{BlockCounts, CountSource};
use super::latency::{self, Cycles};
use crate::cfg::Cfg;
use crate::dataflow::{Definition, Definitions, Operation, Wait};
use crate::entity::InstId;
use crate::isa::{self, MachineFact, Reg, RegFile, Role, Value, scalar};
use crate::kernel::Body;
use crate::profile::file::{Counts, KernelTotals};
use crate::profile::hex;
use crate::profile::map::Source;

/// How often an operation is taken to be outstanding that is so on some paths, where the counters do not tell.
const UNKNOWN_FREQUENCY: f64 = 0.5;
/// Steps of a path behind the operation that is waited for.
const LONGEST: usize = 6;
/// Shares below this are left out, and given to the others.
const LEAST_SHARE: f64 = 0.001;

/// One cause of one wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// Address of the wait: the same as [`super::WaitSlice::address`].
    #[serde(with = "hex")]
    pub address: u64,
    /// Which of its counters.
    pub counter: String,
    /// Of what the wait costs, how much this cause is blamed for, 0 to 1: those of a wait and counter sum to 1.
    pub share: f64,
    /// Predicted cycles of all waves, of one execution if it is not known how many there were: executions × what is left of the latency × share.
    pub predicted_cycles: u64,
    /// Samples of waves at the wait that had not issued it, those of this cause: divided among the causes of the instruction as the predicted cycles are.
    #[serde(default)]
    pub samples: Option<f64>,
    /// Of all chains of the kernel, this one's part: of samples if there are some; of predicted cycles else, among those whose executions are known, or are not, as this
    /// one's.
    pub kernel_share: f64,
    /// What it rests on.
    pub evidence: Evidence,
    /// In words.
    pub reading: String,
    /// From the wait to where it comes from.
    pub path: Vec<Step>,
}

/// What a blame rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Whether the operation is outstanding at the wait.
    pub certainty: WaitCertainty,
    /// How the number of the wait's executions is known.
    pub executions: CountSource,
    /// The operation's latency, in cycles.
    pub latency: Cycles,
    /// Cycles in which other instructions are issued between the operation and the wait, at least.
    pub hidden_cycles: u64,
    /// Whether the same operation is blamed most if all latencies are halved, and if they are doubled.
    pub stable: bool,
    /// Lanes that are active on average where the operation is executed, if a site that counts lanes formed its mask.
    pub active_lanes: Option<f64>,
}

/// One place on a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its address.
    #[serde(with = "hex")]
    pub address: u64,
    /// The instruction as printed; a call stands for what the function called has left under way.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// Why it is here.
    pub edge: Edge,
}

/// How a step follows from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// It is the wait.
    Stall,
    /// The wait waits for it.
    Wait,
    /// It may have written a register that the step before reads.
    Register,
}

/// What chains are made from.
pub(super) struct Context<'a> {
    pub(super) body: &'a Body,
    pub(super) cfg: &'a Cfg,
    pub(super) definitions: Definitions<'a>,
    pub(super) counts: &'a BlockCounts,
    pub(super) totals: Option<&'a KernelTotals>,
}

/// An operation with what decides whether it is blamed.
struct Cause {
    /// The operation, or the call of the function that issued it.
    inst: InstId,
    by_callee: bool,
    certainty: WaitCertainty,
    latency: Cycles,
    hidden: u64,
    /// How often it is outstanding for each execution of the wait.
    frequency: f64,
}

impl Cause {
    /// What is left of the latency, with latencies multiplied by `numerator / 2`.
    fn left(&self, numerator: u64) -> u64 {
        (u64::from(self.latency.typical) * numerator / 2).saturating_sub(self.hidden)
    }
}

/// Latencies as they are, halved, doubled: numerators over 2.
const AS_THEY_ARE: u64 = 2;
const HALVED: u64 = 1;
const DOUBLED: u64 = 4;

impl Context<'_> {
    /// The causes of one wait.
    pub(super) fn of_wait(&self, wait: &Wait, source: &dyn Fn(u64) -> Option<Source>) -> Vec<Chain> {
        let causes = self.causes(wait);
        let shares = shares(&causes, AS_THEY_ARE);
        let (executions, known) = self.counts.of(self.cfg.block_of(wait.inst));
        let top = |numerator| first(&shares_of(&causes, numerator));
        let stable = top(HALVED).is_none_or(|index| Some(index) == first(&shares)) && top(DOUBLED) == first(&shares);
        let mut chains = Vec::new();
        for (cause, share) in causes.iter().zip(&shares).filter(|(_, share)| **share > 0.0) {
            let cycles = executions.unwrap_or(1) as f64 * cause.left(AS_THEY_ARE) as f64 * share;
            let active_lanes = if cause.by_callee { None } else { self.active_lanes(cause.inst) };
            let path = self.path(wait, cause, source);
            chains.push(Chain {
                address: self.body.address(wait.inst),
                counter: wait.counter.name().to_owned(),
                share: *share,
                predicted_cycles: cycles.round() as u64,
                samples: None,
                kernel_share: 0.0,
                evidence: Evidence {
                    certainty: cause.certainty,
                    executions: known,
                    latency: cause.latency,
                    hidden_cycles: cause.hidden,
                    stable,
                    active_lanes,
                },
                reading: self.reading(cause, *share, active_lanes, source),
                path,
            });
        }
        chains
    }

    fn causes(&self, wait: &Wait) -> Vec<Cause> {
        let target = self.body.target();
        let latency = |operation: Operation| match operation {
            Operation::Inst(id) => latency::of(target, self.body.inst(id)),
            Operation::Callee(_) | Operation::Caller => latency::unknown_memory(target),
        };
        let longest = wait.operations.iter().map(|each| u64::from(latency(each.operation).typical)).max().unwrap_or(0);
        let between = self.issued_between(wait.inst, longest * DOUBLED / AS_THEY_ARE);
        let (executions, _) = self.counts.of(self.cfg.block_of(wait.inst));
        let mut causes = Vec::new();
        for each in &wait.operations {
            let (inst, by_callee) = match each.operation {
                Operation::Inst(id) => (id, false),
                Operation::Callee(id) => (id, true),
                Operation::Caller => continue,
            };
            let issued = self.counts.of(self.cfg.block_of(inst)).0;
            if issued == Some(0) {
                continue;
            }
            let certainty = WaitCertainty::from(each.certainty);
            let frequency = match (certainty, issued, executions) {
                (WaitCertainty::Must, _, _) => 1.0,
                (_, Some(issued), Some(executions)) if executions > 0 => (issued as f64 / executions as f64).min(1.0),
                _ => UNKNOWN_FREQUENCY,
            };
            // Farther away than the walk went: nothing of its latency is left. A function may have issued its operations just before it returned.
            let hidden = between.get(&inst).copied().unwrap_or(u64::MAX);
            causes.push(Cause { inst, by_callee, certainty, latency: latency(each.operation), hidden, frequency });
        }
        causes
    }

    /// The fewest cycles in which instructions are issued from each instruction to the wait, for those from which it is at most `limit`.
    fn issued_between(&self, wait: InstId, limit: u64) -> FxHashMap<InstId, u64> {
        let interval = u64::from(self.body.target().machine(MachineFact::IssueInterval).typical).max(1);
        let mut found: FxHashMap<InstId, u64> = FxHashMap::default();
        let mut work: BinaryHeap<Reverse<(u64, InstId)>> = BinaryHeap::new();
        let push = |work: &mut BinaryHeap<_>, to: InstId, cycles| {
            let block = self.cfg.block(self.cfg.block_of(to));
            if block.first == to {
                work.extend(block.predecessors.iter().map(|edge| Reverse((cycles, self.cfg.block(edge.block).last))));
            } else {
                work.push(Reverse((cycles, InstId(to.0 - 1))));
            }
        };
        push(&mut work, wait, interval);
        while let Some(Reverse((cycles, id))) = work.pop() {
            if cycles > limit || found.contains_key(&id) {
                continue;
            }
            found.insert(id, cycles);
            push(&mut work, id, cycles + interval * self.slots(id));
        }
        found
    }

    /// Issue slots that an instruction takes.
    fn slots(&self, id: InstId) -> u64 {
        let inst = self.body.inst(id);
        match inst.operand(Role::Simm16).map(|operand| operand.value) {
            Some(Value::Imm(more)) if inst.name() == "s_nop" => more as u64 % 16 + 1,
            _ => 1,
        }
    }

    /// The wait, the operation, and from which instructions its address comes: of several the one that takes longest, of equal ones the nearest.
    fn path(&self, wait: &Wait, cause: &Cause, source: &dyn Fn(u64) -> Option<Source>) -> Vec<Step> {
        let step = |id: InstId, edge| {
            let address = self.body.address(id);
            Step { address, instruction: isa::print(self.body.target(), self.body.inst(id)), source: source(address), edge }
        };
        let mut at = cause.inst;
        let mut path = vec![step(wait.inst, Edge::Stall), step(at, Edge::Wait)];
        if cause.by_callee {
            return path;
        }
        let mut seen = FxHashSet::from_iter([at]);
        for _ in 0..LONGEST {
            let target = self.body.target();
            let reads = self.body.reads(at).filter(|reg| is_value(*reg));
            let producers = reads.flat_map(|reg| self.definitions.reaching(at, reg)).filter_map(|definition| match definition {
                Definition::Inst(id) => Some(id),
                Definition::Entry | Definition::Call(_) => None,
            });
            let executed = |id: &InstId| self.counts.of(self.cfg.block_of(*id)).0 != Some(0);
            let slowest = producers
                .filter(|id| !seen.contains(id) && executed(id))
                .max_by_key(|id| (latency::of(target, self.body.inst(*id)).typical, Reverse(at.0.abs_diff(id.0)), *id));
            let Some(producer) = slowest else { break };
            seen.insert(producer);
            path.push(step(producer, Edge::Register));
            at = producer;
        }
        path
    }

    /// Lanes active on average behind the one site that formed the operation's mask.
    fn active_lanes(&self, id: InstId) -> Option<f64> {
        let exec = Reg::scalar(scalar::EXEC, (self.body.target().wave_size() / 32) as u8);
        // A scalar load is one for the whole wave.
        if !self.body.reads(id).any(|reg| reg.overlaps(exec)) {
            return None;
        }
        let [Definition::Inst(formed)] = self.definitions.reaching(id, exec)[..] else { return None };
        let address = self.body.address(formed);
        let site = self.totals?.branches.iter().find(|site| site.address == address)?;
        match site.counts {
            Counts::Exec(counts) if counts.executions > 0 => Some(counts.lanes_after as f64 / counts.executions as f64),
            _ => None,
        }
    }

    fn reading(&self, cause: &Cause, share: f64, lanes: Option<f64>, source: &dyn Fn(u64) -> Option<Source>) -> String {
        let address = self.body.address(cause.inst);
        let place = match source(address) {
            Some(Source { file, line }) => format!("{}:{line}", file.rsplit('/').next().unwrap_or(&file)),
            None => format!("{address:#x}"),
        };
        let what = if cause.by_callee { "what the function called left under way" } else { self.body.inst(cause.inst).name() };
        let lanes = lanes.map_or_else(String::new, |lanes| format!("; {lanes:.1} of {} lanes active", self.body.target().wave_size()));
        format!("{:.0} % of this wait is predicted to be for {what} at {place}{lanes}", 100.0 * share)
    }
}

/// Registers that hold data, rather than which lanes or how.
fn is_value(reg: Reg) -> bool {
    reg.file != RegFile::Scalar || !(reg.overlaps(Reg::EXEC) || reg.first == scalar::MODE)
}

/// The causes' shares, small ones left out.
fn shares(causes: &[Cause], numerator: u64) -> Vec<f64> {
    let mut shares = shares_of(causes, numerator);
    shares.iter_mut().filter(|share| **share < LEAST_SHARE).for_each(|share| *share = 0.0);
    normalise(&mut shares);
    shares
}

/// Who arrives last is blamed as often as it is there; for the rest, who arrives before.
fn shares_of(causes: &[Cause], numerator: u64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..causes.len()).filter(|index| causes[*index].left(numerator) > 0).collect();
    order.sort_by_key(|index| (Reverse(causes[*index].left(numerator)), causes[*index].hidden, Reverse(causes[*index].inst)));
    let mut shares = vec![0.0; causes.len()];
    let mut rest = 1.0;
    for index in order {
        shares[index] = rest * causes[index].frequency;
        rest -= shares[index];
    }
    normalise(&mut shares);
    shares
}

fn normalise(shares: &mut [f64]) {
    let sum: f64 = shares.iter().sum();
    if sum > 0.0 {
        shares.iter_mut().for_each(|share| *share /= sum);
    }
}

/// The largest share's index, if one is blamed.
fn first(shares: &[f64]) -> Option<usize> {
    let best = shares.iter().copied().enumerate().filter(|(_, share)| *share > 0.0);
    best.max_by(|(a, x), (b, y)| x.total_cmp(y).then(b.cmp(a))).map(|(index, _)| index)
}
