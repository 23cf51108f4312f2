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

use super::code::ExecutedCode;
use super::data::{Finding, FindingKind};
use crate::Kernel;
use crate::launches::LaunchTable;
use crate::memory::KernelMemory;
use waits::{WaitFinding, Waited};
use wavetap_profile::time::KernelTime;

/// Where findings in the code explain less than this part of a kernel, the place that most is spent on is named.
const EXPLAINED: f64 = 0.25;

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

/// Whether something is about operations of a sort.
type OfOperations = fn(Waited) -> bool;

/// Those that stand by themselves.
const FINDERS: [Finder; 5] =
    [launch::launches, launch::occupancy, lanes::idle_waves, lanes::divergence, waits::barriers];

/// Those that say why operations take long, and which operations these are: that a kernel waits for them is part of
/// what they found.
const REASONS: [(Finder, OfOperations); 3] = [
    (accesses::global_memory, Waited::is_global),
    (accesses::lds_banks, Waited::is_lds),
    (scratch::scratch, |waited| waited == Waited::Scratch),
];

/// What matters of a kernel, the most first.
pub(super) fn find(subject: &Subject<'_>) -> Vec<Finding> {
    let mut waits = waits::waits(subject);
    let mut findings: Vec<Finding> = FINDERS.iter().flat_map(|finder| finder(subject)).collect();
    for (finder, is_it) in REASONS {
        for mut finding in finder(subject) {
            let same = |wait: &mut WaitFinding| is_it(wait.waited) && wait.finding.source == finding.source;
            for wait in waits.extract_if(.., same).collect::<Vec<WaitFinding>>() {
                if subject.time.is_some() {
                    let part = if wait.waited == Waited::Scratch { wait.sum } else { wait.main };
                    finding.text.push_str(&format!("; waits {:.0} % of cycles", 100.0 * part));
                    finding.basis = wait.finding.basis;
                }
                finding.weight = finding.weight.max(wait.finding.weight);
            }
            findings.push(finding);
        }
    }
    findings.extend(waits.into_iter().map(|wait| wait.finding));
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
