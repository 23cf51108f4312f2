//! What matters of a kernel: a function for each kind of finding, with its evidence and its threshold.
//!
//! A new kind is a function here, its place in [`FINDERS`], and its row in the table of the guide.

use super::data::{Finding, FindingKind};
use crate::launches::{LaunchTable, WarningKind};
use crate::memory::{Category, KernelMemory, MemoryAccess, Severity, looks_like, what};
use crate::slice::Step;
use crate::table::grouped;
use crate::{Basis, Kernel};
use wavetap_profile::map::Source;
use wavetap_profile::probes::branches::BranchCounts;
use wavetap_profile::time::KernelTime;

/// A branch whose lanes disagree in this part of its executions is a finding.
const DIVERGENT: f64 = 0.25;
/// And after which at most this part of the lanes is left.
const LANES_LEFT: f64 = 0.75;
/// A wave whose lanes disagree executes both sides, which costs it at most half of its time there.
const BOTH_SIDES: f64 = 0.5;
/// A cause that has this part of what a kernel waits for is a finding.
const WAIT_SHARE: f64 = 0.25;
/// Where no time is modelled, a kernel is taken to wait for this part of it.
const WAITING: f64 = 0.25;
/// An array access that has this part of a kernel's excess of lines or LDS cycles is a finding: below it, a change does
/// not show.
const EXCESS_SHARE: f64 = 0.05;
/// A SIMD that holds this part of its waves, or less, is a finding.
const OCCUPANCY: f64 = 0.5;
/// What few waves cost depends on what they wait for.
const OCCUPANCY_WEIGHT: f64 = 0.3;
/// Warnings of launches below this weight are in the launch table only.
const LAUNCH_WEIGHT: f64 = 0.1;

/// What findings are found in.
pub(super) struct Subject<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) launches: &'a LaunchTable,
    pub(super) time: Option<&'a KernelTime>,
    pub(super) memory: Option<&'a KernelMemory>,
}

/// Finds what matters of one sort.
pub(super) type Finder = fn(&Subject<'_>) -> Vec<Finding>;

/// All of them.
pub(super) const FINDERS: [Finder; 6] = [launches, divergence, waits, global_memory, lds_banks, occupancy];

/// How it was launched: the warnings of the launch table that cost more than a little.
fn launches(subject: &Subject<'_>) -> Vec<Finding> {
    let warnings = subject.launches.warnings_of(&subject.kernel.object, &subject.kernel.name);
    let counts = |warning: &&crate::launches::LaunchWarning| {
        warning.weight >= LAUNCH_WEIGHT && warning.kind != WarningKind::TailHint
    };
    let finding = |warning: &crate::launches::LaunchWarning| Finding {
        kind: FindingKind::Launch,
        text: format!("{}: {}", warning.kind.name(), warning.text),
        basis: match warning.kind {
            WarningKind::LanesLeftOut | WarningKind::Uneven => Basis::Counted,
            _ => Basis::Computed,
        },
        help: warning.kind.help().to_owned(),
        source: warning.source.clone(),
        weight: warning.weight,
    };
    warnings.filter(counts).map(finding).collect()
}

/// The branch that leaves most lanes idle, if lanes disagree often and few are left.
fn divergence(subject: &Subject<'_>) -> Vec<Finding> {
    let kernel = subject.kernel;
    let exec = |branch: &crate::Branch| match branch.counts {
        BranchCounts::Exec(exec) => Some(exec),
        BranchCounts::Scalar(_) => None,
    };
    let most = kernel.branches.iter().filter_map(exec).map(|exec| exec.executions).max().unwrap_or(0);
    let lost = lanes_lost(kernel);
    let worst = kernel.branches.iter().filter_map(|branch| {
        let exec = exec(branch)?;
        let divergent = exec.divergences() as f64 / exec.executions.max(1) as f64;
        let left = exec.lanes_after as f64 / exec.lanes_before.max(1) as f64;
        if exec.executions == 0 || divergent < DIVERGENT || left > LANES_LEFT {
            return None;
        }
        let weight = BOTH_SIDES * divergent * exec.executions as f64 / most.max(1) as f64;
        // What all blocks together lose, no branch exceeds.
        let weight = lost.map_or(weight, |lost| weight.min(lost));
        let (before, after) = exec.average_lanes()?;
        Some(Finding {
            kind: FindingKind::Divergence,
            text: format!(
                "divergence: lanes disagree in {:.0} % of {} executions, {before:.1} → {after:.1} active",
                100.0 * divergent,
                grouped(exec.executions)
            ),
            basis: Basis::Counted,
            help: "give the lanes of a wave work that takes the same side".to_owned(),
            source: branch.source.clone(),
            weight,
        })
    });
    worst.max_by(|a, b| a.weight.total_cmp(&b.weight)).into_iter().collect()
}

/// The part of the lanes that is idle in the blocks of a kernel, by executions, where blocks were counted.
fn lanes_lost(kernel: &Kernel) -> Option<f64> {
    let lanes = kernel.wave_size()?;
    let sum = |of: fn(&crate::Block) -> u64| kernel.sections.blocks.iter().map(of).fold(0, u64::saturating_add);
    let (executions, active) = (sum(|block| block.counts.executions), sum(|block| block.counts.lanes));
    (executions > 0).then(|| 1.0 - active as f64 / (executions as f64 * f64::from(lanes)))
}

/// What a kernel waits for most, by the slicer's prediction.
fn waits(subject: &Subject<'_>) -> Vec<Finding> {
    let executed = |chain: &&crate::slice::Chain| {
        let wait = subject.kernel.waits.iter().find(|wait| wait.address == chain.address);
        wait.is_some_and(|wait| wait.executions.is_some_and(|executions| executions > 0))
    };
    let Some(chain) = subject.kernel.chains.iter().find(executed) else { return Vec::new() };
    let waiting = subject.time.map_or(WAITING, stalled);
    if chain.kernel_share < WAIT_SHARE || waiting * chain.kernel_share < LAUNCH_WEIGHT {
        return Vec::new();
    }
    // The wait itself is the first step; the operation that is waited for the second.
    let blamed = chain.path.get(1).or(chain.path.first());
    let modelled = subject.time.map_or_else(String::new, |_| format!(", of {:.0} % modelled stalls", 100.0 * waiting));
    vec![Finding {
        kind: FindingKind::Wait,
        text: format!("waits, {:.0} % of all predicted{modelled}: {}", 100.0 * chain.kernel_share, chain.reading),
        basis: Basis::Predicted,
        help: "start it earlier, have more waves, or access less".to_owned(),
        source: blamed.and_then(own_line),
        weight: waiting * chain.kernel_share,
    }]
}

/// The line of a step in the kernel itself, where it is in a function that was inlined into it.
fn own_line(step: &Step) -> Option<Source> {
    step.inlined.last().map(|inlined| inlined.called_at.clone()).or_else(|| step.source.clone())
}

/// The part of its cycles that waves of a kernel stand at waits in the model.
fn stalled(time: &KernelTime) -> f64 {
    let all: u64 = time.instructions.iter().map(|each| each.modelled_cycles()).sum();
    let waits = time.instructions.iter().filter_map(|each| each.modelled_stalled.get("WAITCNT")).sum::<u64>();
    waits as f64 / all.max(1) as f64
}

/// The access of global memory that causes most lines beyond what its bytes need.
fn global_memory(subject: &Subject<'_>) -> Vec<Finding> {
    let worst = worst(subject, |access| access.lines.map(|lines| (lines.likely, lines.ideal)));
    let finding = |(access, weight): (&MemoryAccess, f64)| {
        let (lines, kernel) = (access.lines?, subject.memory?);
        Some(Finding {
            kind: FindingKind::Memory,
            text: format!(
                "memory: {}: {}: {:.0} lines of a wave where {:.0} would do, {} times",
                what(access),
                looks_like(access, kernel),
                lines.likely,
                lines.ideal,
                grouped(access.executions.unwrap_or(0))
            ),
            basis: Basis::Predicted,
            help: match access.category {
                Category::Misaligned => "begin rows at multiples of a line".to_owned(),
                _ => "have neighbouring lanes access neighbouring data".to_owned(),
            },
            source: access.source.clone(),
            weight,
        })
    };
    worst.and_then(finding).into_iter().collect()
}

/// The access of LDS that has most cycles of bank conflicts.
fn lds_banks(subject: &Subject<'_>) -> Vec<Finding> {
    let cost = |access: &MemoryAccess| access.lds.map(|lds| (lds.cycles, lds.cycles - lds.conflicts));
    let worst = worst(subject, cost);
    let finding = |(access, weight): (&MemoryAccess, f64)| {
        let lds = access.lds?;
        Some(Finding {
            kind: FindingKind::LdsBanks,
            text: format!(
                "LDS: {}: {}-way bank conflicts, {:.0} cycles of a wave where {:.0} would do, {} times",
                what(access),
                lds.ways,
                lds.cycles,
                lds.cycles - lds.conflicts,
                grouped(access.executions.unwrap_or(0))
            ),
            basis: Basis::Predicted,
            help: "pad rows, or exchange columns by the row's number".to_owned(),
            source: access.source.clone(),
            weight,
        })
    };
    worst.and_then(finding).into_iter().collect()
}

/// The executed access, at least twice as expensive as need be, whose excess is the largest part of what all such
/// accesses of a kernel cost; and that part. `cost` is what an execution costs, and would at best.
///
/// What the code says is of all lanes: nothing is said of an access in whose block fewer than half of them are active.
fn worst<'a>(
    subject: &Subject<'a>,
    cost: impl Fn(&MemoryAccess) -> Option<(f64, f64)>,
) -> Option<(&'a MemoryAccess, f64)> {
    let half = f64::from(subject.kernel.wave_size().unwrap_or(0)) / 2.0;
    let executed = |access: &MemoryAccess| {
        let (actual, best) = cost(access).filter(|_| access.active_lanes.is_none_or(|lanes| lanes >= half))?;
        Some((actual, best, access.executions? as f64))
    };
    let accesses = &subject.memory?.accesses;
    let all: f64 = accesses.iter().filter_map(executed).map(|(actual, _, executions)| actual * executions).sum();
    let worst = accesses.iter().filter(|access| access.severity >= Severity::Medium).filter_map(|access| {
        let (actual, best, executions) = executed(access)?;
        let part = (actual - best).max(0.0) * executions / all.max(1.0);
        (part >= EXCESS_SHARE).then_some((access, part))
    });
    worst.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Few waves on a SIMD, of launches that have more.
fn occupancy(subject: &Subject<'_>) -> Vec<Finding> {
    let rows = subject.launches.rows.iter().filter(|row| row.kernel.is(&subject.kernel.object, &subject.kernel.name));
    let few = rows.filter_map(|row| {
        let (waves, most) = (row.occupancy?, row.most_waves?);
        let part = f64::from(waves) / f64::from(most.max(1));
        // Launches that do not fill one round have no use for more.
        (part <= OCCUPANCY && !row.limited_by.is_empty() && row.rounds? > 1.0).then_some((row, waves, most, part))
    });
    let Some((row, waves, most, part)) = few.min_by(|a, b| a.3.total_cmp(&b.3)) else { return Vec::new() };
    let limits: Vec<&str> = row.limited_by.iter().map(|resource| resource.name()).collect();
    vec![Finding {
        kind: FindingKind::Occupancy,
        text: format!("occupancy: {waves} of {most} waves per SIMD, limited by {}", limits.join(", ")),
        basis: Basis::Computed,
        help: format!("use less of {}; `wavetap inspect` says how much less", limits.join(" and ")),
        source: None,
        weight: OCCUPANCY_WEIGHT * (1.0 - part),
    }]
}
