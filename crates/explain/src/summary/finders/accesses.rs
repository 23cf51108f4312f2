//! Accesses of memory that cost more than their bytes need, by source line.
//!
//! What an access costs is what the timing model saw, where time is modelled: the lines that its lanes were in, the
//! cycles of its bank conflicts. Else it is what was recorded of it, and else what its code says of whole waves.

use super::lines::Lines;
use super::{Reason, Subject};
use crate::Basis;
use crate::memory::words::what;
use crate::memory::{Category, LdsOfWave, MemoryAccess, Severity};
use crate::summary::bound;
use crate::summary::data::FindingKind;
use crate::summary::waiting::{Waited, waiting};
use wavetap_profile::map::Source;
use wavetap_profile::time::InstructionCycles;

/// Accesses of a sort that have this part of what all cost beyond need are a finding: below it, a change does not show.
const EXCESS_SHARE: f64 = 0.05;
/// An access is expensive if it costs so many times what its bytes need.
const EXPENSIVE: f64 = 2.0;

/// An access, and what it costs beyond need.
struct Excess<'a> {
    access: &'a MemoryAccess,
    source: Option<Source>,
    cost: Cost,
    executions: f64,
}

/// What an execution of an access costs, would at best, and how that is known.
#[derive(Debug, Clone, Copy)]
struct Cost {
    is: f64,
    best: f64,
    basis: Basis,
}

impl Excess<'_> {
    fn total(&self) -> f64 {
        (self.cost.is - self.cost.best).max(0.0) * self.executions
    }
}

/// Executed accesses, at least twice as expensive as need be, and what all such accesses of a kernel cost.
fn expensive<'a>(
    subject: &Subject<'a>,
    cost: impl Fn(&MemoryAccess, f64) -> Option<Cost>,
) -> Option<(Vec<Excess<'a>>, f64)> {
    let code = subject.code?;
    let half = f64::from(subject.kernel.wave_size().unwrap_or(0)) / 2.0;
    let (mut found, mut all) = (Vec::new(), 0.0);
    for access in &subject.memory?.accesses {
        let Some(executions) = executions(subject, access).filter(|executions| *executions > 0.0) else { continue };
        let Some(cost) = cost(access, executions) else { continue };
        let lanes = code.average_lanes(access.address).or(access.active_lanes);
        // What the code says is of all lanes: nothing is said of an access that fewer than half of them do.
        if cost.basis == Basis::Predicted && lanes.is_some_and(|lanes| lanes < half) {
            continue;
        }
        all += cost.is * executions;
        let is_expensive = match cost.basis {
            Basis::Predicted => access.severity >= Severity::Medium,
            _ => cost.is >= EXPENSIVE * cost.best,
        };
        if is_expensive {
            let source = code.line(access.address).or(access.source.as_ref()).cloned();
            found.push(Excess { access, source, cost, executions });
        }
    }
    Some((found, all))
}

/// How often waves executed an access: in the run whose time is modelled, if there is one.
fn executions(subject: &Subject<'_>, access: &MemoryAccess) -> Option<f64> {
    let modelled = modelled(subject, access.address).map(|modelled| modelled.executions);
    modelled.or(access.executions).map(|executions| executions as f64)
}

/// What the timing model has of an instruction.
fn modelled<'a>(subject: &Subject<'a>, address: u64) -> Option<&'a InstructionCycles> {
    let time = subject.time?;
    // Files of versions that did not note lines have no resources.
    let known = time.instructions.binary_search_by_key(&address, |each| each.address).ok();
    known.filter(|_| !time.resources.is_empty()).map(|at| &time.instructions[at])
}

/// Of these accesses, those on the main line if there is one.
fn on_main_line<'e, 'a>(excess: &'e [Excess<'a>], lines: &Lines) -> Vec<&'e Excess<'a>> {
    let main = lines.main().map(|(source, _)| source.cloned());
    excess.iter().filter(|excess| main.as_ref().is_none_or(|source| excess.source == *source)).collect()
}

/// What most rests on.
fn basis(here: &[&Excess<'_>]) -> Basis {
    let worst = here.iter().max_by(|a, b| a.total().total_cmp(&b.total()));
    worst.map_or(Basis::Predicted, |worst| worst.cost.basis)
}

/// The part of its modelled cycles that a kernel waits for such operations, or that a part of the machine which bounds
/// it is busy with them if that is more; without modelled time the part `counted` of what its work takes.
fn part_of(subject: &Subject<'_>, is_it: impl Fn(Waited) -> bool, resources: &[&str], counted: f64) -> f64 {
    let Some(time) = subject.time else { return counted };
    let parts = waiting(subject).into_iter().filter(|(waited, _)| is_it(*waited));
    let waited = parts.flat_map(|(_, parts)| parts).map(|part| part.part).sum::<f64>();
    let busy = resources.iter().filter_map(|name| time.resource(name)).map(|resource| resource.part());
    busy.filter(|part| *part >= bound::BUSY).fold(waited, f64::max).min(1.0)
}

/// Lines of L1 that an access takes, and would at best.
fn lines_of(subject: &Subject<'_>, access: &MemoryAccess, executions: f64) -> Option<Cost> {
    let best = subject.least_lines(access);
    if let Some(modelled) = modelled(subject, access.address) {
        let is = modelled.lines as f64 / executions;
        return (modelled.lines > 0).then_some(Cost { is, best: best.min(is), basis: Basis::Modelled });
    }
    if let Some((is, best)) = recorded_lines(access) {
        return Some(Cost { is, best, basis: Basis::Counted });
    }
    access.lines.map(|lines| Cost { is: lines.likely, best: lines.ideal, basis: Basis::Predicted })
}

/// Lines of its executions that were recorded, and what their bytes need, on average.
fn recorded_lines(access: &MemoryAccess) -> Option<(f64, f64)> {
    let of_some = |measured: &&crate::memory::MeasuredAccess| measured.executions > 0;
    access.measured.iter().filter(of_some).find_map(|measured| measured.lines.zip(measured.ideal_lines))
}

/// Global memory: lines of the cache beyond what the bytes need.
pub(super) fn global_memory(subject: &Subject<'_>) -> Vec<Reason> {
    let cost = |access: &MemoryAccess, executions: f64| lines_of(subject, access, executions);
    let Some((excess, all)) = expensive(subject, cost) else { return Vec::new() };
    let lines = Lines::add_up(excess.iter().map(|excess| (excess.source.clone(), excess.total() / all.max(1.0))));
    let part = lines.main().map_or(lines.sum(), |(_, part)| part);
    let here = on_main_line(&excess, &lines);
    let Some(worst) = here.iter().max_by(|a, b| a.total().total_cmp(&b.total())) else { return Vec::new() };
    if part < EXCESS_SHARE {
        return Vec::new();
    }
    let Cost { is, best, .. } = worst.cost;
    let several = if here.len() > 1 { format!("{} accesses, worst: ", here.len()) } else { String::new() };
    let text = format!(
        "memory{}: {several}{}: {is:.0} lines of a wave where {:.0} would do",
        lines.places(),
        what(worst.access),
        best.ceil()
    );
    let help = match worst.access.category {
        Category::Misaligned => "begin rows where lines begin",
        Category::Rows => "let a wave access fewer rows",
        Category::Indirect => "sort by address, or have more in flight",
        _ => "let neighbouring lanes access neighbours",
    };
    let counted = subject.cycles.map_or(1.0, |cycles| cycles.part_of_memory());
    let weight = part * part_of(subject, Waited::is_global, &["l1", "l2", "mall", "memory"], counted);
    let operations = here.iter().map(|excess| excess.access.address).collect();
    vec![Reason { finding: lines.finding(FindingKind::Memory, basis(&here), text, help, weight), operations }]
}

/// Cycles of LDS that an access takes, and would at best.
fn lds_cycles_of(subject: &Subject<'_>, access: &MemoryAccess, executions: f64) -> Option<Cost> {
    let LdsOfWave { cycles, conflicts, .. } = access.lds?;
    let best = cycles - conflicts;
    match modelled(subject, access.address) {
        Some(modelled) => {
            let conflicts = modelled.modelled_lds_conflict_cycles as f64 / executions;
            Some(Cost { is: best + conflicts, best, basis: Basis::Modelled })
        }
        None => Some(Cost { is: cycles, best, basis: Basis::Predicted }),
    }
}

/// LDS: cycles of bank conflicts.
pub(super) fn lds_banks(subject: &Subject<'_>) -> Vec<Reason> {
    let cost = |access: &MemoryAccess, executions: f64| lds_cycles_of(subject, access, executions);
    let Some((excess, all)) = expensive(subject, cost) else { return Vec::new() };
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
        (sum + excess.cost.is * excess.executions, best + excess.cost.best * excess.executions)
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
    let counted = subject.cycles.map_or(1.0, |cycles| cycles.part_of_lds());
    let weight = part * part_of(subject, Waited::is_lds, &["lds"], counted);
    let operations = here.iter().map(|excess| excess.access.address).collect();
    let help = "pad rows, or exchange columns by row";
    vec![Reason { finding: lines.finding(FindingKind::LdsBanks, basis(&here), text, help, weight), operations }]
}
