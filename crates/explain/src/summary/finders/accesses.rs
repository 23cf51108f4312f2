//! Accesses of memory that cost more than their bytes need, by source line.

use super::lines::Lines;
use super::waits::{Waited, waiting};
use super::{Reason, Subject};
use crate::Basis;
use crate::memory::words::what;
use crate::memory::{Category, MemoryAccess, Severity};
use crate::summary::data::FindingKind;
use wavetap_profile::map::Source;

/// Accesses of a sort that have this part of what all cost beyond need are a finding: below it, a change does not show.
const EXCESS_SHARE: f64 = 0.05;
/// Where no time is modelled, a kernel is taken to spend this part of it on its accesses of one memory.
const ACCESSING: f64 = 1.0;
/// Nor is this part of what is predicted of bank conflicts in the timing model: what is predicted does not happen then.
const MODELLED_CONFLICTS: f64 = 0.5;

/// An access, and what it costs beyond need.
struct Excess<'a> {
    access: &'a MemoryAccess,
    source: Option<Source>,
    /// What an execution costs, and would at best.
    cost: (f64, f64),
    executions: f64,
}

impl Excess<'_> {
    fn total(&self) -> f64 {
        (self.cost.0 - self.cost.1).max(0.0) * self.executions
    }
}

/// Executed accesses, at least twice as expensive as need be, and what all such accesses of a kernel cost. `cost` is
/// what an execution costs, and would at best.
///
/// What the code says is of all lanes: nothing is said of an access that fewer than half of them do.
fn expensive<'a>(
    subject: &Subject<'a>,
    cost: impl Fn(&MemoryAccess) -> Option<(f64, f64)>,
) -> Option<(Vec<Excess<'a>>, f64)> {
    let code = subject.code?;
    let half = f64::from(subject.kernel.wave_size().unwrap_or(0)) / 2.0;
    let (mut found, mut all) = (Vec::new(), 0.0);
    for access in &subject.memory?.accesses {
        let lanes = code.average_lanes(access.address).or(access.active_lanes);
        let (Some(cost), Some(executions)) = (cost(access), access.executions) else { continue };
        if lanes.is_some_and(|lanes| lanes < half) {
            continue;
        }
        all += cost.0 * executions as f64;
        if access.severity >= Severity::Medium && executions > 0 {
            let source = code.line(access.address).or(access.source.as_ref()).cloned();
            found.push(Excess { access, source, cost, executions: executions as f64 });
        }
    }
    Some((found, all))
}

/// Of these accesses, those on the main line if there is one.
fn on_main_line<'e, 'a>(excess: &'e [Excess<'a>], lines: &Lines) -> Vec<&'e Excess<'a>> {
    let main = lines.main().map(|(source, _)| source.cloned());
    excess.iter().filter(|excess| main.as_ref().is_none_or(|source| excess.source == *source)).collect()
}

/// The part of its modelled cycles that a kernel waits for such operations.
fn waited_for(subject: &Subject<'_>, is_it: impl Fn(Waited) -> bool) -> f64 {
    if subject.time.is_none() {
        return ACCESSING;
    }
    let parts = waiting(subject).into_iter().filter(|(waited, _)| is_it(*waited));
    parts.flat_map(|(_, parts)| parts).map(|part| part.part).sum()
}

/// Global memory: lines of the cache beyond what the bytes need.
pub(super) fn global_memory(subject: &Subject<'_>) -> Vec<Reason> {
    let cost = |access: &MemoryAccess| access.lines.map(|lines| (lines.likely, lines.ideal));
    let Some((excess, all)) = expensive(subject, cost) else { return Vec::new() };
    let lines = Lines::add_up(excess.iter().map(|excess| (excess.source.clone(), excess.total() / all.max(1.0))));
    let part = lines.main().map_or(lines.sum(), |(_, part)| part);
    let here = on_main_line(&excess, &lines);
    let Some(worst) = here.iter().max_by(|a, b| a.total().total_cmp(&b.total())) else { return Vec::new() };
    if part < EXCESS_SHARE {
        return Vec::new();
    }
    let (likely, ideal) = worst.cost;
    let several = if here.len() > 1 { format!("{} accesses, worst: ", here.len()) } else { String::new() };
    let text = format!(
        "memory{}: {several}{}: {likely:.0} lines of a wave where {ideal:.0} would do",
        lines.places(),
        what(worst.access)
    );
    let help = match worst.access.category {
        Category::Misaligned => "begin rows where lines begin",
        Category::Rows => "let a wave access fewer rows",
        _ => "let neighbouring lanes access neighbours",
    };
    let weight = part * waited_for(subject, Waited::is_global);
    let operations = here.iter().map(|excess| excess.access.address).collect();
    vec![Reason { finding: lines.finding(FindingKind::Memory, Basis::Predicted, text, help, weight), operations }]
}

/// LDS: cycles of bank conflicts.
pub(super) fn lds_banks(subject: &Subject<'_>) -> Vec<Reason> {
    let cost = |access: &MemoryAccess| access.lds.map(|lds| (lds.cycles, lds.cycles - lds.conflicts));
    let Some((excess, all)) = expensive(subject, cost) else { return Vec::new() };
    let predicted: f64 = excess.iter().map(Excess::total).sum();
    let modelled = subject.time.map(|time| time.memory.modelled_lds_conflict_cycles as f64);
    if modelled.is_some_and(|modelled| modelled < MODELLED_CONFLICTS * predicted) {
        return Vec::new();
    }
    let lines = Lines::add_up(excess.iter().map(|excess| (excess.source.clone(), excess.total() / all.max(1.0))));
    let part = lines.main().map_or(lines.sum(), |(_, part)| part);
    let here = on_main_line(&excess, &lines);
    let Some(ways) = here.iter().filter_map(|excess| excess.access.lds).map(|lds| lds.ways).max() else {
        return Vec::new();
    };
    if part < EXCESS_SHARE {
        return Vec::new();
    }
    let (sum, best) = here.iter().fold((0.0, 0.0), |(sum, best), excess| {
        (sum + excess.cost.0 * excess.executions, best + excess.cost.1 * excess.executions)
    });
    let accesses = match here.as_slice() {
        [one] => what(one.access),
        _ => format!("{} accesses", here.len()),
    };
    let text = format!(
        "LDS{}: {accesses}: up to {ways}-way bank conflicts, {:.1} times the cycles",
        lines.places(),
        sum / best.max(1.0)
    );
    let weight = part * waited_for(subject, Waited::is_lds);
    let operations = here.iter().map(|excess| excess.access.address).collect();
    let help = "pad rows, or exchange columns by row";
    vec![Reason { finding: lines.finding(FindingKind::LdsBanks, Basis::Predicted, text, help, weight), operations }]
}
