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

use super::data::{Finding, FindingKind};
use crate::code::ExecutedCode;
use crate::launches::LaunchTable;
use crate::memory::KernelMemory;
use crate::{Basis, Kernel};
use waits::Part;
use wavetap_profile::time::KernelTime;

/// Where findings in the code explain less than this part of a kernel, the place that most is spent on is named.
const EXPLAINED: f64 = 0.25;
/// How long a kernel waits for operations of which something was found is said from this part of it on.
const WAITED: f64 = 0.05;

/// What findings are found in.
pub(super) struct Subject<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) launches: &'a LaunchTable,
    pub(super) time: Option<&'a KernelTime>,
    pub(super) memory: Option<&'a KernelMemory>,
    pub(super) code: Option<&'a ExecutedCode>,
}

/// Finds what matters of one sort.
type Finder = fn(&Subject<'_>) -> Vec<Finding>;

/// Those that stand by themselves.
const FINDERS: [Finder; 5] =
    [launch::launches, launch::occupancy, lanes::idle_waves, lanes::divergence, waits::barriers];

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
    let mut waiting = waits::waiting(subject);
    let mut findings: Vec<Finding> = FINDERS.iter().flat_map(|finder| finder(subject)).collect();
    for Reason { mut finding, operations } in REASONS.iter().flat_map(|finder| finder(subject)) {
        let of_them = |part: &mut Part| part.operation.is_some_and(|address| operations.contains(&address));
        let parts = waiting.values_mut().flat_map(|parts| parts.extract_if(.., of_them).collect::<Vec<Part>>());
        let waited: f64 = parts.map(|part| part.part).sum();
        if waited >= WAITED {
            if subject.time.is_some() {
                finding.text.push_str(&format!("; waits {:.0} % of cycles", 100.0 * waited));
                finding.basis = Basis::Predicted;
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
    let in_code = findings.iter().filter(|finding| !finding.kind.is_of_launch()).map(|finding| finding.weight);
    let is_explained = in_code.fold(0.0, f64::max) >= EXPLAINED;
    findings.extend(hot::hot_code(subject).filter(|hot| !is_explained || hot.weight >= EXPLAINED));
    findings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    one_of_launch(&mut findings);
    findings
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
        let finding = |kind, weight| Finding {
            kind,
            text: String::new(),
            basis: Basis::Counted,
            help: String::new(),
            source: None,
            also: Vec::new(),
            weight,
        };
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
