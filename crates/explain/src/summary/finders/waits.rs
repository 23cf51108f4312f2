//! What a kernel waits for, by the line of the operation that is waited for.

use super::Subject;
use super::lines::Lines;
use crate::Basis;
use crate::memory::Category;
use crate::summary::bound;
use crate::summary::data::{Finding, FindingKind};
use crate::summary::waiting::{AT_BARRIER, Part, Waited, Waiting, all_cycles, stalls};

/// Operations of a sort that have this part of the modelled cycles are a finding.
const SHARE: f64 = 0.15;
/// Or, where no time is modelled, this part of all waiting that is predicted.
const PREDICTED_SHARE: f64 = 0.4;
/// Addresses are said to be loaded before of this part of what is waited for, or more.
const INDIRECT: f64 = 0.5;
/// Where no time is modelled, a kernel is taken to wait for this part of it.
pub(super) const WAITING: f64 = 0.25;

/// What a kernel waits for, by the slicer's prediction, and how long, by the timing model if there is modelled time: by
/// sort of operation, or of all sorts together where each has little.
pub(super) fn waits(subject: &Subject<'_>, waiting: Waiting) -> Vec<Finding> {
    // A kernel without other waits has all its predicted waiting at its arguments, however long it runs.
    let counts = |waited: Waited| match subject.time {
        // Where memory or a cache is busy, waits for it are what that looks like in the code.
        Some(time) if bound::is_memory_busy(time) => {
            !waited.is_global() && !matches!(waited, Waited::AtEnd | Waited::Flat | Waited::ScalarLoadsOnce)
        }
        Some(_) => true,
        None => waited != Waited::ScalarLoadsOnce,
    };
    let waiting: Waiting = waiting.into_iter().filter(|(waited, _)| counts(*waited)).collect();
    let all: Vec<Part> = waiting.values().flatten().cloned().collect();
    let of_sort = |(waited, parts): (Waited, Vec<Part>)| of_operations(subject, waited, &parts);
    let mut findings: Vec<Finding> = waiting.into_iter().filter_map(of_sort).collect();
    if findings.is_empty() {
        findings.extend(of_operations(subject, Waited::Several, &all));
    }
    findings
}

/// Whether most of what is waited for are accesses whose addresses were loaded before.
fn is_indirect(subject: &Subject<'_>, parts: &[Part]) -> bool {
    let Some(memory) = subject.memory else { return false };
    let is_it = |part: &&Part| {
        let mut accesses = memory.accesses.iter().filter(|access| Some(access.address) == part.operation);
        accesses.any(|access| access.category == Category::Indirect)
    };
    let sum = |parts: &mut dyn Iterator<Item = &Part>| parts.map(|part| part.part).sum::<f64>();
    sum(&mut parts.iter().filter(is_it)) >= INDIRECT * sum(&mut parts.iter())
}

fn of_operations(subject: &Subject<'_>, waited: Waited, parts: &[Part]) -> Option<Finding> {
    let is_modelled = subject.time.is_some();
    let (threshold, of) = if is_modelled { (SHARE, "of cycles") } else { (PREDICTED_SHARE, "of waiting") };
    let lines = Lines::add_up(parts.iter().map(|part| (part.source.clone(), part.part)));
    let sum = lines.sum();
    if sum < threshold {
        return None;
    }
    let name = waited.name();
    let main = lines.main().map_or(sum, |(_, part)| part);
    let share = format!("{:.0} % {of}", 100.0 * main);
    let text = match (lines.main(), waited) {
        (Some(_), Waited::Several | Waited::Other) => format!("waits: {share}{}", lines.with_others()),
        (None, Waited::Several | Waited::Other) => format!("waits{}: {share}", lines.places()),
        (_, Waited::AtEnd) => format!("waits for stores when it ends{}: {share}", lines.places()),
        (Some(_), Waited::Calls) => format!("waits in called functions: {share}{}", lines.with_others()),
        (None, Waited::Calls) => format!("waits in called functions{}: {share}", lines.places()),
        (Some(_), _) => format!("waits for its {name}: {share}{}", lines.with_others()),
        (None, _) => format!("waits for {name}{}: {share}", lines.places()),
    };
    let most_waves = subject.time.map(|time| time.most_waves_per_simd);
    let help = match (waited, most_waves) {
        (Waited::ScalarLoadsOnce, _) => "do more in each wave",
        (Waited::AtEnd, _) => "do more in a wave, or store less",
        (Waited::Scratch, _) => "keep fewer values alive, or allow more registers",
        (Waited::GlobalAtomics | Waited::LdsAtomics, _) => "have fewer of them: combine values before",
        (Waited::GlobalLoads, _) if is_indirect(subject, parts) => "they depend on loads: have more in flight",
        (_, Some(1)) => "start earlier, have more waves (now 1 a SIMD)",
        _ => "start earlier, have more waves",
    };
    let weight = if is_modelled { sum } else { WAITING * sum * subject.part_of_accesses() };
    Some(lines.finding(FindingKind::Wait, Basis::Predicted, text, help, weight))
}

/// Barriers at which waves stand long in the model.
pub(super) fn barriers(subject: &Subject<'_>) -> Vec<Finding> {
    at_barriers(subject).into_iter().collect()
}

fn at_barriers(subject: &Subject<'_>) -> Option<Finding> {
    let (time, code) = (subject.time?, subject.code?);
    let all = all_cycles(time).max(1.0);
    let parts = stalls(time, AT_BARRIER).map(|(address, cycles)| (code.line(address).cloned(), cycles as f64 / all));
    let lines = Lines::add_up(parts);
    let sum = lines.sum();
    if sum < SHARE {
        return None;
    }
    let text = match lines.main() {
        Some((_, part)) => {
            format!("waits at its barriers: {:.0} % of cycles{}", 100.0 * part, lines.with_others())
        }
        None => format!("waits at barriers{}: {:.0} % of cycles", lines.places(), 100.0 * sum),
    };
    let help = "divide the work before them evenly, or have fewer";
    Some(lines.finding(FindingKind::Wait, Basis::Modelled, text, help, sum))
}
