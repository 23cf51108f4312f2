//! What a kernel waits for, by the line of the operation that is waited for.

use std::collections::{BTreeMap, BTreeSet};

use super::Subject;
use super::lines::Lines;
use crate::Basis;
use crate::code::ExecutedInstruction;
use crate::memory::Category;
use crate::summary::data::{Finding, FindingKind};
use wavetap_mix::{AccessKind, Class, VectorSpace};
use wavetap_profile::map::Source;
use wavetap_profile::time::KernelTime;

/// Operations of a sort that have this part of the modelled cycles are a finding.
const SHARE: f64 = 0.15;
/// Or, where no time is modelled, this part of all waiting that is predicted.
const PREDICTED_SHARE: f64 = 0.4;
/// Addresses are said to be loaded before of this part of what is waited for, or more.
const INDIRECT: f64 = 0.5;
/// Where no time is modelled, a kernel is taken to wait for this part of it.
pub(super) const WAITING: f64 = 0.25;
/// What the timing model calls cycles at waits for counters, and at barriers.
const AT_WAIT: &str = "WAITCNT";
const AT_BARRIER: &str = "BARRIER_WAIT";

/// What a wait waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waited {
    GlobalLoads,
    GlobalStores,
    GlobalAtomics,
    /// Of global memory, LDS or scratch: the code does not say.
    Flat,
    Scratch,
    ScalarLoads,
    /// Of arguments, most often: at most once in each wave.
    ScalarLoadsOnce,
    LdsReads,
    LdsWrites,
    LdsAtomics,
    LaneExchanges,
    Images,
    Calls,
    /// Stores that are not done when a wave ends.
    AtEnd,
    /// Others, and those that are not known.
    Other,
    /// All together.
    Several,
}

impl Waited {
    /// What an operation of a kernel with so many waves is.
    fn of(operation: &ExecutedInstruction, waves: u64) -> Waited {
        let is_rare = operation.executions.is_some_and(|executions| executions <= waves);
        match operation.class {
            Class::VectorMemory(VectorSpace::Scratch, _) => Waited::Scratch,
            Class::VectorMemory(VectorSpace::Image, _) => Waited::Images,
            Class::VectorMemory(VectorSpace::Flat, _) => Waited::Flat,
            Class::VectorMemory(_, AccessKind::Read) => Waited::GlobalLoads,
            Class::VectorMemory(_, AccessKind::Write) => Waited::GlobalStores,
            Class::VectorMemory(_, AccessKind::Atomic) => Waited::GlobalAtomics,
            Class::ScalarMemory(_) if is_rare => Waited::ScalarLoadsOnce,
            Class::ScalarMemory(_) => Waited::ScalarLoads,
            Class::Lds(AccessKind::Read) => Waited::LdsReads,
            Class::Lds(AccessKind::Write) => Waited::LdsWrites,
            Class::Lds(AccessKind::Atomic) => Waited::LdsAtomics,
            Class::LdsExchange => Waited::LaneExchanges,
            Class::Branch => Waited::Calls,
            _ => Waited::Other,
        }
    }

    /// Whether it is global memory.
    pub(super) fn is_global(self) -> bool {
        matches!(self, Waited::GlobalLoads | Waited::GlobalStores | Waited::GlobalAtomics)
    }

    /// Whether it is LDS.
    pub(super) fn is_lds(self) -> bool {
        matches!(self, Waited::LdsReads | Waited::LdsWrites | Waited::LdsAtomics)
    }

    fn name(self) -> &'static str {
        match self {
            Waited::GlobalLoads => "global loads",
            Waited::GlobalStores => "global stores",
            Waited::GlobalAtomics => "global atomics",
            Waited::Flat => "FLAT accesses (global, LDS or scratch)",
            Waited::Scratch => "scratch accesses",
            Waited::ScalarLoads => "scalar loads",
            Waited::ScalarLoadsOnce => "scalar loads, once a wave",
            Waited::LdsReads => "LDS reads",
            Waited::LdsWrites => "LDS writes",
            Waited::LdsAtomics => "LDS atomics",
            Waited::LaneExchanges => "lane exchanges through LDS",
            Waited::Images => "images",
            Waited::AtEnd | Waited::Calls | Waited::Other | Waited::Several => "other operations",
        }
    }
}

/// A part of a kernel that it waits.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// The line of the operation, or of the wait where that is not known.
    source: Option<Source>,
    /// Of the modelled cycles, or of the waiting that is predicted.
    pub(super) part: f64,
    /// The address of the operation, if it is known.
    pub(super) operation: Option<u64>,
}

/// What a kernel waits, by what for.
pub(super) type Waiting = BTreeMap<Waited, Vec<Part>>;

/// Parts of a kernel that it waits.
pub(super) fn waiting(subject: &Subject<'_>) -> Waiting {
    let (kernel, code) = (subject.kernel, subject.code);
    let executed = |address: u64| {
        let mut waits = kernel.waits.iter().filter(|wait| wait.address == address);
        waits.any(|wait| wait.executions.is_some_and(|executions| executions > 0))
    };
    let stalled: Option<BTreeMap<u64, u64>> = subject.time.map(|time| stalls(time, AT_WAIT).collect());
    let cost = |chain: &crate::slice::Chain| match &stalled {
        Some(stalled) => stalled.get(&chain.address).map_or(0.0, |cycles| *cycles as f64 * chain.share),
        None if executed(chain.address) => chain.predicted_cycles as f64,
        None => 0.0,
    };
    let all = match subject.time {
        Some(time) => all_cycles(time),
        None => kernel.chains.iter().map(cost).sum(),
    };
    let Some(code) = code else { return BTreeMap::new() };
    let mut parts = Waiting::new();
    for chain in &kernel.chains {
        // The wait itself is the first step; the operation that is waited for the second.
        let operation = chain.path.get(1).map(|step| step.address);
        let operation = operation.and_then(|address| Some((address, code.instructions.get(&address)?)));
        let (waited, source) = match operation {
            Some((_, operation)) => (Waited::of(operation, kernel.waves), operation.source.clone()),
            None => (Waited::Other, code.line(chain.address).cloned()),
        };
        let part = cost(chain) / all.max(1.0);
        if part > 0.0 {
            let operation = operation.map(|(address, _)| address);
            parts.entry(waited).or_default().push(Part { source, part, operation });
        }
    }
    // Waits of called functions: the slicer has chains of the kernel's own.
    let explained: BTreeSet<u64> = kernel.chains.iter().map(|chain| chain.address).collect();
    for (address, cycles) in stalled.iter().flatten().filter(|(address, _)| !explained.contains(address)) {
        let waited = match code.instructions.get(address).map(|instruction| instruction.class) {
            Some(Class::Wait) => Waited::Calls,
            Some(Class::Control) => Waited::AtEnd,
            _ => continue,
        };
        let part = *cycles as f64 / all.max(1.0);
        parts.entry(waited).or_default().push(Part { source: code.line(*address).cloned(), part, operation: None });
    }
    parts
}

/// Cycles of waves in the model.
pub(super) fn all_cycles(time: &KernelTime) -> f64 {
    time.instructions.iter().map(|each| each.modelled_cycles()).sum::<u64>() as f64
}

/// Cycles of stalls for a reason, by the address of the instruction.
fn stalls<'t>(time: &'t KernelTime, reason: &'t str) -> impl Iterator<Item = (u64, u64)> + 't {
    time.instructions.iter().filter_map(move |each| Some((each.address, *each.modelled_stalled.get(reason)?)))
}

/// What a kernel waits for, by the slicer's prediction, and how long, by the timing model if there is modelled time: by
/// sort of operation, or of all sorts together where each has little.
pub(super) fn waits(subject: &Subject<'_>, waiting: Waiting) -> Vec<Finding> {
    // A kernel without other waits has all its predicted waiting at its arguments, however long it runs.
    let counts = |waited: Waited| subject.time.is_some() || waited != Waited::ScalarLoadsOnce;
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
    let weight = if is_modelled { sum } else { WAITING * sum };
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
