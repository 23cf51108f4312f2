//! What a stall is really for: of each operation that a wait may wait for, what becomes of the wait when that operation
//! alone takes no time.

use std::collections::BTreeMap;
use std::fmt;

use rewriter_tests::Failure;
use wavetap::amd_code::{CodeInputs, with_code};
use wavetap::cfg::{Cfg, Program};
use wavetap::dataflow::{Certainty, Operation, Summaries, WaitSummaries, Waits};
use wavetap::emulator::{LatencyClass, LatencyOverride};
use wavetap::entity::InstId;
use wavetap::isa::Memory;
use wavetap::kernel::{Body, BodyKind};
use wavetap::memory::Launched;
use wavetap::profile::file::KernelTotals;
use wavetap::slice::KernelInputs;
use wavetap::slice::blame::{Blame, StallCycles, blame_stalls};
use wavetap::slice::counts::KernelCounts;

/// A wait is looked at if it has so many hundredths of its kernel's waiting, and only if its operations, each by
/// itself, account for so many of its own.
const SUBSTANTIAL: u64 = 10;
const EXPLAINED: u64 = 5;
/// Most waits of a kernel, and most operations of a wait, that are looked at.
const MOST_WAITS: usize = 4;
const MOST_OPERATIONS: usize = 12;
/// Other draws of all latencies by which the best guess is made.
pub const DRAWS: u64 = 16;
/// Operations within so many hundredths of the largest effect are as good as it.
const AS_GOOD: f64 = 0.02;

/// What a modelled run says.
#[derive(Default)]
pub struct Timed {
    /// Cycles at instructions, by address.
    pub stalls: BTreeMap<u64, StallCycles>,
    /// How often instructions were executed.
    pub executions: BTreeMap<u64, u64>,
    /// The counts of branches, by kernel.
    pub totals: BTreeMap<String, KernelTotals>,
}

impl Timed {
    /// Cycles that waves waited for counters at an instruction.
    pub fn waited(&self, address: u64) -> u64 {
        self.stalls.get(&address).and_then(|stall| stall.reasons.get("WAITCNT")).copied().unwrap_or(0)
    }
}

/// What a wait is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    All,
    Straight,
    Frequency,
    Loops,
    OutOfOrder,
    Mixed,
}

impl Group {
    pub const EACH: [Group; 6] =
        [Group::All, Group::Straight, Group::Frequency, Group::Loops, Group::OutOfOrder, Group::Mixed];

    pub fn text(self) -> &'static str {
        match self {
            Group::All => "all",
            Group::Straight => "straight-line code: one block, no loop",
            Group::Frequency => "paths differ in frequency",
            Group::Loops => "loops",
            Group::OutOfOrder => "counters that are out of order",
            Group::Mixed => "vector memory, LDS and scalar memory mixed",
        }
    }
}

/// How near a rule came.
#[derive(Debug, Clone, Copy, Default)]
pub struct Score {
    /// Whether the operation that it blames most has the largest effect; with several that it blames alike, the share
    /// of them that have.
    pub top: f64,
    /// Half of the sum of the differences of all shares: 0 to 1.
    pub distance: f64,
}

/// By what waits are judged: LEO's rule, ours, ours with samples of the same run that tell for what waves waited, and
/// the best guess, which knows from which numbers latencies are drawn and not which were.
pub const COLUMNS: usize = 4;
pub const LEO: usize = 0;
pub const OURS: usize = 1;
pub const SAMPLED: usize = 2;
pub const GUESS: usize = 3;

/// A wait with its scores.
pub struct Judged {
    pub label: String,
    pub groups: Vec<Group>,
    /// None of the best guess where nothing is drawn.
    pub scores: [Option<Score>; COLUMNS],
    /// The shares as they are, by LEO's rule, by ours.
    pub shares: [Vec<(u64, f64)>; 3],
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.label)?;
        for (name, shares) in ["true", "leo", "ours"].iter().zip(&self.shares) {
            write!(f, "; {name}")?;
            shares.iter().try_for_each(|(cause, share)| write!(f, " {cause:#x} {:.0} %", 100.0 * share))?;
        }
        Ok(())
    }
}

/// What came of a kernel.
#[derive(Default)]
pub struct Outcome {
    pub judged: Vec<Judged>,
    /// Substantial waits with one operation, those of what a function has left or a caller has, and those that no
    /// operation by itself explains.
    pub single: u64,
    pub calls: u64,
    pub joint: u64,
}

pub const RULES: [Blame; 2] = [Blame::Leo, Blame::Exposed];

/// An operation and how sure it is.
type Candidate = (InstId, Certainty);

/// Runs a kernel with some latencies changed; the number says which draw of the others it is.
pub type Run<'a> = dyn FnMut(&[LatencyOverride], u64) -> Result<Timed, Failure> + 'a;

/// Judges the waits of the kernels of a program. `time` runs it with some latencies changed, and all others drawn anew
/// for each number but 0, if they are drawn by chance, `is_drawn`.
pub fn judge(
    label: &str,
    program: &Program,
    base: &Timed,
    is_drawn: bool,
    time: &mut Run<'_>,
) -> Result<Outcome, Failure> {
    let (waits, values) = (WaitSummaries::compute(program), Summaries::compute(program));
    let mut outcome = Outcome::default();
    let drawn: Vec<(u64, Timed)> = (1..=if is_drawn { DRAWS } else { 0 })
        .map(|draw| Ok((draw, time(&[], draw)?)))
        .collect::<Result<_, Failure>>()?;
    for body in program.bodies().iter().filter(|body| body.kind() == BodyKind::Kernel) {
        let cfg = Cfg::build(body);
        let mut operations: BTreeMap<u64, (bool, Vec<Candidate>)> = BTreeMap::new();
        for wait in Waits::compute(body, &cfg, &waits).all() {
            let (outside, all) = operations.entry(body.address(wait.inst)).or_default();
            for edge in &wait.operations {
                match edge.operation {
                    Operation::Inst(id) if base.executions.get(&body.address(id)).copied().unwrap_or(0) > 0 => {
                        all.push((id, edge.certainty));
                    }
                    Operation::Inst(_) => {}
                    Operation::Callee(_) | Operation::Caller => *outside = true,
                }
            }
        }
        let all: u64 = operations.keys().map(|address| base.waited(*address)).sum();
        let mut substantial: Vec<u64> =
            operations.keys().copied().filter(|wait| base.waited(*wait) * 100 > all * SUBSTANTIAL).collect();
        substantial.sort_by_key(|wait| std::cmp::Reverse(base.waited(*wait)));
        let counted = base.totals.get(body.name()).map(KernelCounts::of);
        let launched = Launched::of(None, counted.map(|counted| counted.totals));
        let inputs = CodeInputs { launched, ..CodeInputs::new(body, &waits, &values) };
        let blamed = with_code(&inputs, |code| {
            let inputs = KernelInputs::new(code).with_counts(counted);
            let told = blame_stalls(Blame::Exposed, &inputs, &base.stalls);
            let untold: BTreeMap<u64, StallCycles> =
                base.stalls.iter().map(|(at, stall)| (*at, without(stall))).collect();
            let [leo, ours] = RULES.map(|rule| blame_stalls(rule, &inputs, &untold));
            [leo, ours, told]
        })
        .map_err(|e| e.to_string())?;
        for wait in substantial.into_iter().take(MOST_WAITS) {
            let (outside, candidates) = &operations[&wait];
            let mut addresses: Vec<u64> = candidates.iter().map(|(id, _)| body.address(*id)).collect();
            addresses.sort_unstable();
            addresses.dedup();
            match (outside, addresses.len()) {
                (true, _) => outcome.calls += 1,
                (false, 0 | 1) => outcome.single += 1,
                (false, n) if n > MOST_OPERATIONS => outcome.joint += 1,
                (false, _) => {
                    let mut effects_of = |draw: u64, base: &Timed| -> Result<BTreeMap<u64, f64>, Failure> {
                        let effect = |address: &u64| {
                            let none = LatencyOverride { class: LatencyClass::At(*address), cycles: 0 };
                            let changed = time(&[none], draw)?;
                            Ok((*address, base.waited(wait).saturating_sub(changed.waited(wait)) as f64))
                        };
                        addresses.iter().map(effect).collect()
                    };
                    let mut effects = effects_of(0, base)?;
                    let sum: f64 = effects.values().sum();
                    if sum * 100.0 < (base.waited(wait) * EXPLAINED) as f64 {
                        outcome.joint += 1;
                        continue;
                    }
                    effects.values_mut().for_each(|effect| *effect /= sum);
                    let shares = |rule: usize| -> Vec<(u64, f64)> {
                        let found = blamed[rule].iter().find(|stall| stall.address == wait);
                        let causes = found.map(|stall| stall.causes.as_slice()).unwrap_or_default();
                        causes.iter().map(|cause| (cause.address, cause.share)).collect()
                    };
                    let mut guess: BTreeMap<u64, f64> = BTreeMap::new();
                    for drawn in &drawn {
                        let (draw, base) = drawn;
                        let effects = effects_of(*draw, base)?;
                        let best =
                            effects.iter().max_by(|a, b| a.1.total_cmp(b.1)).filter(|(_, effect)| **effect > 0.0);
                        *guess.entry(best.map_or(0, |(address, _)| *address)).or_default() += 1.0 / DRAWS as f64;
                    }
                    guess.remove(&0);
                    let guess: Vec<(u64, f64)> = guess.into_iter().collect();
                    let score = |blamed: &[(u64, f64)]| score(&effects, blamed);
                    let shares_of = [0, 1, 2].map(shares);
                    let scores = [
                        Some(score(&shares_of[LEO])),
                        Some(score(&shares_of[OURS])),
                        Some(score(&shares_of[SAMPLED])),
                        is_drawn.then(|| score(&guess)),
                    ];
                    let [leo, ours, _] = shares_of;
                    let shares = [effects.clone().into_iter().collect(), leo, ours];
                    outcome.judged.push(Judged {
                        label: format!("{label} {} {wait:#x}", body.name()),
                        groups: groups(body, &cfg, wait, candidates, base),
                        scores,
                        shares,
                    });
                }
            }
        }
    }
    Ok(outcome)
}

/// A stall without what it was for.
fn without(stall: &StallCycles) -> StallCycles {
    StallCycles { waits_for: BTreeMap::new(), ..stall.clone() }
}

fn score(truth: &BTreeMap<u64, f64>, blamed: &[(u64, f64)]) -> Score {
    let best = truth.values().copied().fold(0.0, f64::max);
    let most = blamed.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let first: Vec<u64> = blamed.iter().filter(|(_, share)| most - share < 1e-9).map(|(cause, _)| *cause).collect();
    let right = first.iter().filter(|cause| truth.get(cause).is_some_and(|share| best - share <= AS_GOOD)).count();
    let blame = |cause: &u64| blamed.iter().find(|(other, _)| other == cause).map_or(0.0, |(_, share)| *share);
    let among: f64 = truth.iter().map(|(cause, share)| (share - blame(cause)).abs()).sum();
    let beside: f64 = blamed.iter().filter(|(cause, _)| !truth.contains_key(cause)).map(|(_, share)| *share).sum();
    // Who blames nobody is as far away as can be.
    let nobody = if blamed.is_empty() { 1.0 } else { 0.0 };
    Score {
        top: if first.is_empty() { 0.0 } else { right as f64 / first.len() as f64 },
        distance: (among + beside + nobody) / 2.0,
    }
}

fn groups(body: &Body, cfg: &Cfg, wait: u64, candidates: &[Candidate], base: &Timed) -> Vec<Group> {
    let loops = cfg.loops();
    let mut groups = vec![Group::All];
    let Some(id) = body.at(wait) else { return groups };
    let block = cfg.block_of(id);
    let executions = |id: InstId| base.executions.get(&body.address(id)).copied().unwrap_or(0);
    let in_loop = std::iter::once(id)
        .chain(candidates.iter().map(|(id, _)| *id))
        .any(|id| loops.innermost(cfg.block_of(id)).is_some());
    if in_loop {
        groups.push(Group::Loops);
    }
    if !in_loop && candidates.iter().all(|(id, _)| cfg.block_of(*id) == block) {
        groups.push(Group::Straight);
    }
    if candidates.iter().any(|(other, _)| executions(*other) != executions(id)) {
        groups.push(Group::Frequency);
    }
    let flat = |id: &InstId| body.inst(*id).variant.memory == Memory::Flat && !body.target().flat_in_order();
    let scalar = |id: &InstId| body.inst(*id).variant.memory == Memory::Scalar;
    if candidates.iter().any(|(id, certainty)| *certainty == Certainty::Unordered || flat(id) || scalar(id)) {
        groups.push(Group::OutOfOrder);
    }
    let latency = |id: InstId| body.inst(id).variant.latency;
    if candidates.iter().any(|(id, _)| latency(*id) != latency(candidates[0].0)) {
        groups.push(Group::Mixed);
    }
    groups
}
