//! Why a wave waits: from a wait back to the operation that it really waits for, and from there to what the operation's
//! address is made of.
//!
//! A wait ends when the last of its operations arrives, in whichever of its counters. Of each operation, what is left
//! of its latency when the wait begins is predicted (`exposed.rs`): the latency of its class, less the cycles in which
//! the wave issues the instructions between the two, and stands at the waits between the two, on the shortest way;
//! loops in between go as many rounds as were counted. An operation is outstanding always if it is on every path, else
//! as often as its block was executed for each execution of the wait. How long the wait usually lasts follows: until
//! the last of those that are there. How it is shared: by how much shorter it would be if the operation took no time,
//! with latencies anywhere in their ranges. The shares of an instruction's operations sum to 1. An operation in a block
//! that was never executed cannot be a cause, for this input. Where nothing is left of any latency nothing is blamed:
//! the wait costs nothing. Nothing is known, either, of what a function's caller may have under way: it is among the
//! wait's operations, and in no chain.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::WaitCertainty;
use super::access::{LaneAccess, Launched};
use super::counts::{BlockCounts, CountSource};
use super::evidence::SelfBlame;
use super::exposed::{self, AS_THEY_ARE, Cause, DOUBLED, HALVED, Stalls, expected, normalise};
use super::latency::Cycles;
use super::memory::Stores;
use super::path::Path;
use wavetap_amdgpu::{Reg, scalar};
use wavetap_analysis::cfg::{Cfg, Loops};
use wavetap_analysis::dataflow::{AffineAddresses, Definition, Definitions, Wait};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;
use wavetap_profile::file::KernelTotals;
use wavetap_profile::hex;
use wavetap_profile::map::Source;
use wavetap_profile::probes::branches::BranchCounts;

/// Shares below this are left out, and given to the others.
const LEAST_SHARE: f64 = 0.01;

/// One cause of one wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chain {
    /// Address of the wait: the same as [`super::WaitSlice::address`].
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// By which of its counters it waits for this; with a `+` between them if by several.
    pub counter: String,
    /// Of what the wait costs, how much this cause is blamed for, 0 to 1: those of an address sum to 1.
    pub share: f64,
    /// Predicted cycles of all waves, of one execution if it is not known how many there were: executions × what is
    /// left of the latency × share.
    pub predicted_cycles: u64,
    /// Samples of waves at the wait that had not issued it (of a thread trace, cycles of stall), those of this cause:
    /// divided among the causes of the instruction as the predicted cycles are.
    #[serde(default)]
    pub samples: Option<f64>,
    /// Of these, the ones that no other wave of the SIMD used: where samples tell that of every one.
    #[serde(default)]
    pub exposed_samples: Option<f64>,
    /// Of all chains of the kernel, this one's part: of samples if there are some; of predicted cycles else, among
    /// those whose executions are known, or are not, as this one's.
    pub kernel_share: f64,
    /// Why waves stand there, if no cause is known: only samples tell of such stalls.
    #[serde(default)]
    pub self_blame: Option<SelfBlame>,
    /// What it rests on.
    pub evidence: Evidence,
    /// In words.
    pub reading: String,
    /// From the wait to where it comes from.
    pub path: Vec<Step>,
    /// What left the operation blamed its lanes: the branch that formed the mask under which it runs, and the
    /// comparison that this took it from. Empty if that is no branch.
    #[serde(default)]
    pub mask: Vec<Step>,
    /// Whether a value on the path was loaded from LDS or scratch memory, and it is not known for certain by which
    /// store it was written: the path goes on with the load's address, or with the nearest of several stores.
    #[serde(default)]
    pub through_memory: bool,
}

/// What a blame rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Whether the operation is outstanding at the wait.
    pub certainty: WaitCertainty,
    /// How the number of the wait's executions is known.
    pub executions: CountSource,
    /// The operation's latency, in cycles.
    pub latency: Cycles,
    /// Cycles that pass between the operation and the wait, at least: in which other instructions are issued, and in
    /// which the wave is predicted to stand at other waits.
    pub hidden_cycles: u64,
    /// Whether the same operation is blamed most if all latencies are halved, and if they are doubled.
    pub stable: bool,
    /// Lanes that are active on average where the operation is executed, if a site that counts lanes formed its mask.
    pub active_lanes: Option<f64>,
    /// How the lanes of an access to global memory lie to each other, where that follows from the code.
    #[serde(default)]
    pub access: Option<LaneAccess>,
    /// All of this in a word; none by a rule that does not say.
    #[serde(default)]
    pub confidence: Option<Confidence>,
}

/// How much a blame is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The operation is waited for on every path, executions were counted or follow from counts, and other latencies
    /// would not change who is blamed.
    High,
    /// One of these does not hold.
    Medium,
    /// Several do not hold.
    Low,
}

impl Confidence {
    fn of(certainty: WaitCertainty, executions: CountSource, stable: bool) -> Confidence {
        let doubts = [certainty != WaitCertainty::Must, executions == CountSource::Unknown, !stable];
        match doubts.into_iter().filter(|doubt| *doubt).count() {
            0 => Confidence::High,
            1 => Confidence::Medium,
            _ => Confidence::Low,
        }
    }
}

/// A call that was inlined: where the function that the instruction is from was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inlined {
    /// The function that was inlined, if the debug information has its name.
    pub function: Option<String>,
    /// The line that calls it.
    pub called_at: Source,
}

/// One place on a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// Its address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// The instruction as printed; a call stands for what the function called has left outstanding.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// By which calls that were inlined it came there, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<Inlined>,
    /// Why it is here.
    pub edge: Edge,
}

/// How a step follows from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// It is the wait.
    Stall,
    /// The wait waits for it.
    Wait,
    /// It may have written a register that the step before reads.
    Register,
    /// It wrote what the step before loads: to the same place of LDS or scratch memory.
    Memory,
    /// It is the one instruction that writes the LDS that the step before loads.
    ThroughMemory,
    /// It formed the mask of lanes under which the operation runs.
    Mask,
}

/// What chains are made from.
pub(super) struct Context<'a> {
    pub(super) body: &'a Body,
    pub(super) cfg: &'a Cfg,
    pub(super) definitions: Definitions<'a>,
    pub(super) stores: Stores,
    pub(super) loops: Loops,
    pub(super) stalls: Stalls,
    /// By operation, from where on.
    pub(super) paths: RefCell<FxHashMap<InstId, Path>>,
    /// With what is known of the accesses that were asked for.
    pub(super) strides: RefCell<(AffineAddresses, FxHashMap<InstId, Option<LaneAccess>>)>,
    pub(super) launched: Launched,
    pub(super) counts: &'a BlockCounts,
    pub(super) totals: Option<&'a KernelTotals>,
}

impl Context<'_> {
    /// The causes of what an instruction waits for, in all its counters. Where nothing is predicted to be left to wait
    /// for, there are none; if the wave is known to have stood there, `stood`, latencies were longer than is known, and
    /// the causes are those of which something is left if all are as much longer as is needed.
    pub(super) fn of_waits(&self, waits: &[Wait], stood: bool, source: &dyn Fn(u64) -> Option<Source>) -> Vec<Chain> {
        let wait = waits[0].inst;
        let causes = self.causes(waits, |latency| u64::from(latency.max) * DOUBLED / AS_THEY_ARE);
        let mut shares = kept(exposed::shares(&causes, AS_THEY_ARE));
        let expected = expected(&causes);
        // A wait at which nothing usually lasts so long costs nothing.
        let unlikely = expected < 0.5;
        if unlikely {
            let found = LONGER.iter().filter(|_| stood).map(|numerator| kept(exposed::shares(&causes, *numerator)));
            let Some(found) = found.into_iter().find(|shares| first(shares).is_some()) else { return Vec::new() };
            shares = found;
        }
        let (executions, known) = self.counts.of(self.cfg.block_of(wait));
        let top = |numerator| first(&exposed::shares(&causes, numerator));
        let stable = !unlikely
            && top(HALVED).is_none_or(|index| Some(index) == first(&shares))
            && top(DOUBLED) == first(&shares);
        let mut chains = Vec::new();
        for (cause, share) in causes.iter().zip(&shares).filter(|(_, share)| **share > 0.0) {
            let cycles = executions.unwrap_or(1) as f64 * expected * share;
            let active_lanes = if cause.by_callee { None } else { self.active_lanes(cause.inst) };
            let path = if cause.by_callee {
                self.call_path(wait, cause.inst, source)
            } else {
                self.path(wait, cause.inst, source)
            };
            chains.push(Chain {
                address: self.body.address(wait),
                counter: cause.counters.join("+"),
                share: *share,
                predicted_cycles: cycles.round() as u64,
                samples: None,
                exposed_samples: None,
                self_blame: None,
                kernel_share: 0.0,
                evidence: Evidence {
                    certainty: cause.certainty,
                    executions: known,
                    latency: cause.latency,
                    hidden_cycles: cause.between.cycles(),
                    stable,
                    active_lanes,
                    access: if cause.by_callee { None } else { self.lane_access(cause.inst) },
                    confidence: Some(if unlikely {
                        Confidence::Low
                    } else {
                        Confidence::of(cause.certainty, known, stable)
                    }),
                },
                reading: self.reading(cause, *share, unlikely, active_lanes, source),
                path: path.steps,
                mask: path.mask,
                through_memory: path.through_memory,
            });
        }
        chains
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
        let mut here = self.totals?.sites.iter().filter(|site| site.address == address);
        match here.find_map(|site| BranchCounts::of(&site.counts))? {
            BranchCounts::Exec(counts) => counts.average_lanes().map(|(_, after)| after),
            BranchCounts::Scalar(_) => None,
        }
    }

    fn reading(
        &self,
        cause: &Cause,
        share: f64,
        unlikely: bool,
        lanes: Option<f64>,
        source: &dyn Fn(u64) -> Option<Source>,
    ) -> String {
        let address = self.body.address(cause.inst);
        let place = match source(address) {
            Some(Source { file, line }) => format!("{}:{line}", file.rsplit('/').next().unwrap_or(&file)),
            None => format!("{address:#x}"),
        };
        let what =
            if cause.by_callee { "what the function called left under way" } else { self.body.inst(cause.inst).name() };
        let access = if cause.by_callee { None } else { self.lane_access(cause.inst) };
        let scattered = match access.filter(|access| access.scattered()) {
            Some(access) => format!("; {}", access.text()),
            None => String::new(),
        };
        let lanes = lanes.map_or_else(String::new, |lanes| {
            format!("; {lanes:.1} of {} lanes active", self.body.target().wave_size())
        });
        let predicted = if unlikely { "by prediction not waited for, and if at all then" } else { "predicted to be" };
        format!("{:.0} % of this wait is {predicted} for {what} at {place}{lanes}{scattered}", 100.0 * share)
    }
}

/// Latencies as they are and longer: numerators over 2.
const LONGER: [u64; 4] = [AS_THEY_ARE, DOUBLED, 2 * DOUBLED, 8 * DOUBLED];

/// Shares without the small ones.
fn kept(mut shares: Vec<f64>) -> Vec<f64> {
    shares.iter_mut().filter(|share| **share < LEAST_SHARE).for_each(|share| *share = 0.0);
    normalise(&mut shares);
    shares
}

/// The largest share's index, if one is blamed.
fn first(shares: &[f64]) -> Option<usize> {
    let best = shares.iter().copied().enumerate().filter(|(_, share)| *share > 0.0);
    best.max_by(|(a, x), (b, y)| x.total_cmp(y).then(b.cmp(a))).map(|(index, _)| index)
}
