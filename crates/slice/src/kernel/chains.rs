//! Why a wave waits: from a wait back to the operation that it really waits for, and from there to what the operation's
//! address is made of.
//!
//! A wait ends when the last of its operations arrives, in whichever of its counters. Of each operation, what is left
//! of its latency when the wait begins is predicted (`exposed`): the latency of its class, less the cycles in which
//! the wave issues the instructions between the two, and stands at the waits between the two, on the shortest way;
//! loops in between go as many rounds as were counted. An operation is outstanding always if it is on every path, else
//! as often as its block was executed for each execution of the wait. How long the wait usually lasts follows: until
//! the last of those that are there. How it is shared: by how much shorter it would be if the operation took no time,
//! with latencies anywhere in their ranges. The shares of an instruction's operations sum to 1. An operation in a block
//! that was never executed cannot be a cause, for this input. Where nothing is left of any latency nothing is blamed:
//! the wait costs nothing. Nothing is known, either, of what a function's caller may have outstanding: it is among the
//! wait's operations, and in no chain.

use super::Context;
use std::collections::BTreeMap;

use super::exposed::{self, AS_THEY_ARE, Candidate, DOUBLED, HALVED, expected, normalise};
use crate::result::{Cause, Chain, Confidence, Evidence};
use crate::stall::StallCycles;
use wavetap_base::entity::InstId;
use wavetap_code::Wait;
use wavetap_profile::probes::branches::BranchCounts;

/// Shares below this are left out, and given to the others.
const LEAST_SHARE: f64 = 0.01;

impl Context<'_> {
    /// The causes of what an instruction waits for, in all its counters. Where nothing is predicted to be left to wait
    /// for, there are none; if the wave is known to have stalled there, latencies were longer than is known, and the
    /// causes are those of which something is left if all are as much longer as is needed. Where it is known for which
    /// operations waves stood there, these are the causes.
    pub(super) fn of_waits(&self, waits: &[Wait], stall: Option<&StallCycles>) -> Vec<Chain> {
        let stall = stall.filter(|stall| stall.cycles > 0);
        let wait = waits[0].inst;
        let causes = self.causes(waits, |latency| u64::from(latency.max) * DOUBLED / AS_THEY_ARE);
        let mut shares = kept(exposed::shares(&causes, AS_THEY_ARE));
        let expected = expected(&causes);
        let told = stall.and_then(|stall| self.told(&causes, &shares, &stall.waits_for));
        // A wait at which nothing usually lasts so long costs nothing.
        let unlikely = told.is_none() && expected < 0.5;
        let observed = told.as_ref().map(|told| told.observed);
        if let Some(told) = told {
            shares = told.shares;
        } else if unlikely {
            let found =
                LONGER.iter().filter(|_| stall.is_some()).map(|numerator| kept(exposed::shares(&causes, *numerator)));
            let Some(found) = found.into_iter().find(|shares| first(shares).is_some()) else { return Vec::new() };
            shares = found;
        }
        let (executions, known) = self.counts.of(self.code.block_of(wait));
        let top = |numerator| first(&exposed::shares(&causes, numerator));
        let stable = !unlikely
            && top(HALVED).is_none_or(|index| Some(index) == first(&shares))
            && top(DOUBLED) == first(&shares);
        let mut chains = Vec::new();
        for (cause, share) in causes.iter().zip(&shares).filter(|(_, share)| **share > 0.0) {
            let cycles = executions.unwrap_or(1) as f64 * expected * share;
            let active_lanes = if cause.by_callee { None } else { self.active_lanes(cause.inst) };
            let path = if cause.by_callee { self.call_path(wait, cause.inst) } else { self.path(wait, cause.inst) };
            chains.push(Chain {
                address: self.code.address(wait),
                counter: cause.counters.join("+"),
                share: *share,
                predicted_cycles: cycles.round() as u64,
                samples: None,
                exposed_samples: None,
                cause: if cause.by_callee {
                    Cause::Callee { likely: !unlikely }
                } else {
                    Cause::Operation { name: self.code.inst(cause.inst).name.clone(), likely: !unlikely }
                },
                class: (!cause.by_callee).then(|| self.code.inst(cause.inst).class),
                kernel_share: 0.0,
                evidence: Evidence {
                    certainty: cause.certainty,
                    executions: known,
                    latency: cause.latency,
                    hidden_cycles: cause.between.cycles(),
                    stable,
                    active_lanes,
                    access: if cause.by_callee { None } else { self.code.lane_access(cause.inst) },
                    observed,
                    address_loaded_by: path.address_loaded_by.map(|load| self.code.address(load)),
                    confidence: Some(match observed {
                        Some(observed) if observed >= ENOUGH => Confidence::High,
                        _ if unlikely => Confidence::Low,
                        _ => Confidence::of(cause.certainty, known, stable),
                    }),
                },
                path: path.steps,
                mask: path.mask,
                through_memory: path.through_memory,
            });
        }
        chains
    }

    /// The shares of causes of which samples tell how often waves waited for them. What is not among the causes is an
    /// operation of a function that was called, if there is one; samples of others say nothing. None if none is left.
    fn told(&self, causes: &[Candidate<'_>], predicted: &[f64], operations: &BTreeMap<u64, u64>) -> Option<Told> {
        let mut shares: Vec<f64> = predicted.iter().map(|share| share * PREDICTED_WEIGHT).collect();
        let mut observed = 0;
        for (&address, &count) in operations {
            let own = |cause: &Candidate<'_>| !cause.by_callee && self.code.address(cause.inst) == address;
            let of_callee = |cause: &Candidate<'_>| cause.by_callee && self.code.at(address).is_none();
            let of = causes.iter().position(own).or_else(|| causes.iter().position(of_callee));
            if let Some(of) = of {
                shares[of] += count as f64;
                observed += count;
            }
        }
        normalise(&mut shares);
        (observed > 0).then(|| Told { shares: kept(shares), observed })
    }

    /// Lanes active on average after the one site that formed the operation's mask.
    fn active_lanes(&self, id: InstId) -> Option<f64> {
        let totals = self.totals?;
        let address = self.code.address(self.code.lanes_written_by(id)?);
        let mut here = totals.sites.iter().filter(|site| site.address == address);
        match here.find_map(|site| BranchCounts::of(&site.counts))? {
            BranchCounts::Exec(counts) => counts.average_lanes().map(|(_, after)| after),
            BranchCounts::Scalar(_) => None,
        }
    }
}

/// How a wait is divided by what is known of it.
struct Told {
    shares: Vec<f64>,
    /// Samples or cycles that tell.
    observed: u64,
}

/// A prediction weighs as much as so many samples that tell for what a wave waited.
const PREDICTED_WEIGHT: f64 = 1.0;
/// So many samples are enough to rely on.
const ENOUGH: u64 = 16;

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
