//! What a kernel waits for, by the operations that are waited for.

use std::collections::{BTreeMap, BTreeSet};

use super::subject::Subject;
use crate::code::ExecutedInstruction;
use wavetap_mix::{AccessKind, Class, VectorSpace};
use wavetap_profile::map::Source;
use wavetap_profile::time::KernelTime;

/// What the timing model calls cycles at waits for counters, and at barriers.
const AT_WAIT: &str = "WAITCNT";
pub(super) const AT_BARRIER: &str = "BARRIER_WAIT";

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

    /// What waits of this sort are for.
    pub(super) fn what(self) -> &'static str {
        match self {
            Waited::AtEnd => "stores when they end",
            Waited::Calls => "operations of called functions",
            waited => waited.name(),
        }
    }

    pub(super) fn name(self) -> &'static str {
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
    pub(super) source: Option<Source>,
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
    // No chains: waits that the slicer predicts to take no time, and those of called functions, which have no
    // operations.
    let explained: BTreeSet<u64> = kernel.chains.iter().map(|chain| chain.address).collect();
    for (address, cycles) in stalled.iter().flatten().filter(|(address, _)| !explained.contains(address)) {
        let part = *cycles as f64 / all.max(1.0);
        let waited = match code.instructions.get(address).map(|instruction| instruction.class) {
            Some(Class::Wait) => Waited::Calls,
            Some(Class::Control) => Waited::AtEnd,
            _ => continue,
        };
        let operations: Vec<(u64, &ExecutedInstruction)> = kernel
            .waits
            .iter()
            .filter(|wait| wait.address == *address)
            .flat_map(|wait| &wait.operations)
            .filter_map(|operation| Some((operation.address?, code.instructions.get(&operation.address?)?)))
            .collect();
        for (at, operation) in &operations {
            let (part, source) = (part / operations.len() as f64, operation.source.clone());
            let waited = Waited::of(operation, kernel.waves);
            parts.entry(waited).or_default().push(Part { source, part, operation: Some(*at) });
        }
        if operations.is_empty() {
            let source = code.line(*address).cloned();
            parts.entry(waited).or_default().push(Part { source, part, operation: None });
        }
    }
    parts
}

/// Cycles of waves in the model.
pub(super) fn all_cycles(time: &KernelTime) -> f64 {
    time.instructions.iter().map(|each| each.modelled_cycles()).sum::<u64>() as f64
}

/// Cycles of stalls for a reason, by the address of the instruction.
pub(super) fn stalls<'t>(time: &'t KernelTime, reason: &'t str) -> impl Iterator<Item = (u64, u64)> + 't {
    time.instructions.iter().filter_map(move |each| Some((each.address, *each.modelled_stalled.get(reason)?)))
}
