//! What matters of a kernel: a function for each kind of finding, with its evidence and its threshold.
//!
//! A new kind is a function in a file here, its place in [`FINDERS`], and its row in the table of the guide.

mod accesses;
mod hot;
mod lanes;
mod launch;
mod lines;
mod scratch;
mod waits;

use std::collections::BTreeSet;

use super::bound;
use super::data::{Finding, FindingKind, Limit};
use super::subject::Subject;
use super::waiting::{Part, waiting};
use crate::Basis;

/// Where findings in the code explain less than this part of a kernel, the place that most is spent on is named.
const EXPLAINED: f64 = 0.25;
/// How long a kernel waits for operations of which something was found is said from this part of it on.
const WAITED: f64 = 0.05;
/// What loses less than this part of a kernel is not said.
const NEAR_NOTHING: f64 = 0.03;
/// No finding is said to make a kernel more than 100 times as fast.
const LEAST_TIME: f64 = 0.01;
/// Nor what would make it faster by less than this.
const NO_GAIN: f64 = 1.05;
/// Where a part of the machine is busy for so much of the time, waits are for it: what they would gain must be more
/// than [`SOME_GAIN`].
const SATURATED: f64 = 0.75;
const SOME_GAIN: f64 = 1.25;

/// Finds what matters of one sort.
type Finder = fn(&Subject<'_>) -> Vec<Finding>;

/// Those that stand by themselves.
const FINDERS: [Finder; 6] = [
    launch::launches,
    launch::occupancy,
    lanes::idle_waves,
    lanes::divergence,
    lanes::unfilled_workgroups,
    waits::barriers,
];

/// Why operations take long.
struct Reason {
    finding: Finding,
    /// Their addresses: that a kernel waits for one of them is part of what was found.
    operations: BTreeSet<u64>,
}

/// Finds reasons of one sort.
type ReasonFinder = fn(&Subject<'_>) -> Vec<Reason>;

const REASONS: [ReasonFinder; 3] = [accesses::global_memory, accesses::lds_banks, scratch::scratch];

/// What matters of a kernel, the most first.
pub(super) fn find(subject: &Subject<'_>) -> Vec<Finding> {
    let mut waiting = waiting(subject);
    let mut findings: Vec<Finding> = FINDERS.iter().flat_map(|finder| finder(subject)).collect();
    for Reason { mut finding, operations } in REASONS.iter().flat_map(|finder| finder(subject)) {
        let of_them = |part: &mut Part| part.operation.is_some_and(|address| operations.contains(&address));
        let parts = waiting.values_mut().flat_map(|parts| parts.extract_if(.., of_them).collect::<Vec<Part>>());
        let waited: f64 = parts.map(|part| part.part).sum();
        if waited >= WAITED {
            if subject.time.is_some() {
                finding.text.push_str(&format!("; waits {:.0} % of cycles", 100.0 * waited));
            }
            let weight = if subject.time.is_some() { waited } else { waits::WAITING * waited };
            finding.weight = finding.weight.max(weight);
        }
        findings.push(finding);
    }
    let waits = waits::waits(subject, waiting);
    // What is wrong at a line that a kernel waits at comes before that it waits.
    for reason in findings.iter_mut().filter(|finding| finding.kind == FindingKind::Memory) {
        let here = waits.iter().filter(|wait| wait.source == reason.source && wait.also == reason.also);
        reason.weight = here.map(|wait| wait.weight).fold(reason.weight, f64::max);
    }
    findings.extend(waits);
    let is_saturated = bound::least(subject, &[]).is_some_and(|least| least >= SATURATED);
    let least_gain = |kind: FindingKind| match kind {
        FindingKind::Wait | FindingKind::Occupancy if is_saturated => SOME_GAIN,
        _ => NO_GAIN,
    };
    for finding in findings.iter_mut().filter(|finding| finding.modelled_gain.is_none()) {
        finding.modelled_gain = gain(subject, finding);
    }
    findings.retain(|finding| {
        let is_gain = finding.modelled_gain.is_none_or(|gain| gain >= least_gain(finding.kind));
        finding.weight >= NEAR_NOTHING && is_gain
    });
    findings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let in_code = findings.iter().filter(|finding| !finding.kind.is_of_launch()).map(|finding| finding.weight);
    let is_explained = in_code.fold(0.0, f64::max) >= EXPLAINED;
    let hot = hot::hot_code(subject).filter(|hot| !is_explained || hot.weight >= EXPLAINED);
    // A place comes after reasons, unless it is one.
    let of_scalars = bound::bound(subject).is_some_and(|bound| bound.first.limit == Limit::Scalar);
    let place = hot.as_ref().map_or(0, |hot| match hot.help.is_empty() {
        true => findings.len(),
        // A loop over lanes is what keeps scalar instructions busy.
        false if of_scalars => 0,
        false => findings.partition_point(|finding| finding.weight >= hot.weight),
    });
    findings.splice(place..place, hot);
    one_of_launch(&mut findings);
    findings
}

/// Parts of the machine whose work is that of waves, however many of their lanes are active.
const LANES: &[Limit] = &[Limit::VectorAlu, Limit::Transcendental, Limit::Matrix, Limit::Scalar];

/// What a finding of a kind leaves of a kernel, if nothing of it were lost: the parts of the machine that it takes work
/// from.
fn mended(kind: FindingKind) -> &'static [Limit] {
    match kind {
        FindingKind::Memory | FindingKind::Spills => &[Limit::Memory, Limit::Mall, Limit::L2, Limit::L1],
        FindingKind::LdsBanks => &[Limit::Lds],
        FindingKind::Divergence | FindingKind::UnfilledWorkgroups => LANES,
        FindingKind::IdleWaves => &[Limit::Scalar, Limit::VectorAlu],
        FindingKind::Launch | FindingKind::Wait | FindingKind::Occupancy | FindingKind::HotCode => &[],
    }
}

/// How many times as fast a kernel would be at most without what a finding loses.
fn gain(subject: &Subject<'_>, finding: &Finding) -> Option<f64> {
    match finding.kind {
        FindingKind::HotCode => None,
        // What is about launches alone is what starting them takes, all but one.
        FindingKind::Launch if finding.basis == Basis::Modelled => {
            subject.time?;
            Some(1.0 / (1.0 - bound::part_of_launches(subject)).max(LEAST_TIME))
        }
        kind => gain_of(subject, finding.weight, mended(kind)),
    }
}

/// The same if a part of a kernel is not lost, and the parts of the machine that are mended have less to do: the others
/// stay as busy as they are, and starting the launches takes as long.
fn gain_of(subject: &Subject<'_>, lost: f64, mended: &[Limit]) -> Option<f64> {
    let time = (1.0 - lost).max(bound::least(subject, mended)?).max(LEAST_TIME);
    let starting = bound::part_of_launches(subject);
    Some(1.0 / (starting + (1.0 - starting) * time))
}

/// Where something is found in the code, one finding is about the launch: waves without work, which have a line, or
/// that with the largest weight.
fn one_of_launch(findings: &mut Vec<Finding>) {
    let is_of_launch = |finding: &Finding| finding.kind.is_of_launch();
    if findings.iter().all(is_of_launch) {
        return;
    }
    let idle = findings.iter().position(|finding| finding.kind == FindingKind::IdleWaves);
    let kept = idle.or_else(|| findings.iter().position(is_of_launch));
    let mut place = 0..;
    findings.retain(|finding| place.next() == kept || !is_of_launch(finding));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Basis;

    #[test]
    fn the_launch_takes_no_place_of_the_code() {
        let finding = |kind, weight| Finding::new(kind, Basis::Counted, String::new(), "", weight);
        let kept = |kinds: &[FindingKind]| {
            let mut findings: Vec<Finding> = kinds.iter().map(|kind| finding(*kind, 0.5)).collect();
            one_of_launch(&mut findings);
            findings.into_iter().map(|finding| finding.kind).collect::<Vec<FindingKind>>()
        };
        use FindingKind::{Divergence, IdleWaves, Launch, Occupancy, Wait};
        assert_eq!(kept(&[Launch, Divergence, Occupancy, Wait]), [Launch, Divergence, Wait]);
        assert_eq!(kept(&[Launch, Divergence, IdleWaves]), [Divergence, IdleWaves]);
        assert_eq!(kept(&[Launch, IdleWaves, Occupancy]), [Launch, IdleWaves, Occupancy], "nothing else");
        assert_eq!(kept(&[Wait, Divergence]), [Wait, Divergence]);
    }
}
