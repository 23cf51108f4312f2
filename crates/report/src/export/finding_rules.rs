//! The rules of what is found in a run, in words.

use crate::findings::{Level, RuleText};
use crate::memory;
use crate::summary::FindingKind;

/// What a finding is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundBy {
    /// The summary of a kernel.
    Summary(FindingKind),
    /// Recorded accesses.
    Records(memory::FindingKind),
    /// The counts of a branch.
    Branch,
}

/// The rules that were broken, in the order in which they were met.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<FoundBy>);

impl Rules {
    /// The place of a rule.
    pub(super) fn place(&mut self, by: FoundBy) -> usize {
        self.0.iter().position(|other| *other == by).unwrap_or_else(|| {
            self.0.push(by);
            self.0.len() - 1
        })
    }

    /// All of them in words.
    pub(super) fn texts(&self) -> Vec<RuleText> {
        self.0.iter().map(|by| text(*by)).collect()
    }
}

fn text(by: FoundBy) -> RuleText {
    match by {
        FoundBy::Summary(kind) => of_summary(kind),
        FoundBy::Records(kind) => of_records(kind),
        FoundBy::Branch => RuleText {
            id: "divergent-branch",
            name: "DivergentBranch",
            summary: "Lanes of a wave disagreed at a branch.",
            explanation: "The wave executes both sides one after the other, each with a part of its lanes. Lanes of a \
                wave that have work of the same side, or a side that is short, cost little.",
            level: Level::Note,
        },
    }
}

fn of_summary(kind: FindingKind) -> RuleText {
    let (id, name, summary, explanation) = match kind {
        FindingKind::Launch => (
            "launch",
            "Launch",
            "A kernel is launched so that a part of the device has nothing to do.",
            "Workgroups that do not fill the device, last workgroups that are partly needed, and lanes that are left \
                out cost time in which nothing is computed. The launch table of the report has every launch.",
        ),
        FindingKind::IdleWaves => (
            "idle-waves",
            "IdleWaves",
            "Waves leave a kernel at once because none of their work-items has anything to do.",
            "Launching them costs time. Launch as many workgroups as there is work, or let each loop over several \
                parts.",
        ),
        FindingKind::Divergence => (
            "divergence",
            "Divergence",
            "A branch at which lanes of a wave often disagree costs a part of the kernel.",
            "The wave executes both sides one after the other, each with a part of its lanes. Give the lanes of a wave \
                work that takes the same side.",
        ),
        FindingKind::Wait => (
            "wait",
            "Wait",
            "A kernel waits for an operation for a large part of all that it is predicted to wait.",
            "Waits are predicted from counts and latencies. Start the operation earlier, have more waves, or access \
                less; `wavetap slice` shows what leads to it.",
        ),
        FindingKind::Memory => (
            "memory",
            "Memory",
            "An access of global memory takes several times the cache lines that its bytes fill.",
            "Let neighbouring lanes access neighbouring data; `wavetap memory` lists all accesses with their lines.",
        ),
        FindingKind::LdsBanks => (
            "lds-banks",
            "LdsBanks",
            "Lanes wait for each other at banks of LDS.",
            "LDS serves one word of a bank at a time. Pad the rows of the array, or permute its columns by row.",
        ),
        FindingKind::Occupancy => (
            "occupancy",
            "Occupancy",
            "A SIMD holds few waves of a kernel.",
            "With few waves nothing is left to execute while some wait. `wavetap inspect` says which resource is the \
                limit, and how much less of it makes room for another wave.",
        ),
        FindingKind::Spills => (
            "spills",
            "Spills",
            "A kernel often accesses scratch memory: spilled registers, or arrays that are indexed at run time.",
            "Each access takes a cache line for each lane's word. Keep fewer values alive, declare the size of \
                workgroups, or keep arrays in LDS.",
        ),
        FindingKind::HotCode => (
            "hot-code",
            "HotCode",
            "A loop or a line takes a large part of a kernel.",
            "It is the place to look at first; what is wrong there, if anything, is not known.",
        ),
    };
    RuleText { id, name, summary, explanation, level: Level::Warning }
}

fn of_records(kind: memory::FindingKind) -> RuleText {
    use memory::FindingKind as Of;
    let (id, name, summary, explanation) = match kind {
        Of::Hot => (
            "recorded-hot",
            "RecordedHot",
            "Most waves of a workgroup access the same words.",
            "Each wave requests them again. Load them to LDS once for each workgroup.",
        ),
        Of::HotRandom => (
            "recorded-hot-random",
            "RecordedHotRandom",
            "Most waves of a workgroup access the same lines, at words that depend on data.",
            "The order of the data decides: sort it, or work on blocks of it.",
        ),
        Of::SmallSlices => (
            "recorded-small-slices",
            "RecordedSmallSlices",
            "What each wave accesses of an array is smaller than a cache line.",
            "Several waves request the same line. Exchange the indices of the work-item, so that a wave uses whole \
                lines.",
        ),
        Of::Strided => (
            "recorded-strided",
            "RecordedStrided",
            "A few words of each line are accessed, at regular distances, and the others never.",
            "Most of what is fetched is not used. Store together what is used together.",
        ),
        Of::Misaligned => (
            "recorded-misaligned",
            "RecordedMisaligned",
            "Lanes access what lies next to each other, but not from where a line begins.",
            "Each wave requests one line more than its bytes fill. Begin rows where lines begin.",
        ),
        Of::Halo => (
            "recorded-halo",
            "RecordedHalo",
            "Lanes access what lies next to each other, but not from where a line begins, beside accesses that do.",
            "The neighbours of a stencil do so. It is often right as it is; LDS or lane exchanges save the requests.",
        ),
        Of::Uncoalesced => (
            "recorded-uncoalesced",
            "RecordedUncoalesced",
            "An execution takes more cache lines than its bytes fill.",
            "Let neighbouring lanes access neighbouring data.",
        ),
        Of::LdsThreadPrivate => (
            "recorded-lds-private",
            "RecordedLdsPrivate",
            "Each word of an array in LDS is accessed by one lane only.",
            "Registers would hold it without the latency of LDS and without a barrier.",
        ),
        Of::LdsWaveLocal => (
            "recorded-lds-wave-local",
            "RecordedLdsWaveLocal",
            "Each word of an array in LDS is accessed by the lanes of one wave only.",
            "DPP, ds_bpermute or v_readlane exchange between the lanes of a wave; the barrier may not be needed.",
        ),
        Of::BankConflict => (
            "recorded-bank-conflict",
            "RecordedBankConflict",
            "Lanes access different words of one bank of LDS.",
            "LDS serves one word of a bank at a time. Pad the rows of the array, or exchange its parts by XOR.",
        ),
        Of::FewLanes => (
            "recorded-few-lanes",
            "RecordedFewLanes",
            "An access is coalesced, and a few lanes make it.",
            "It costs as much as one of all lanes. Let active lanes lie together, or give each more to do.",
        ),
        Of::UniformLoad => (
            "recorded-uniform-load",
            "RecordedUniformLoad",
            "All lanes load the same with a vector instruction.",
            "A scalar load would fetch it once for the wave: `const` and `__restrict__` on the pointer let the \
                compiler choose one.",
        ),
    };
    let level = if matches!(kind, Of::Halo | Of::LdsWaveLocal | Of::FewLanes | Of::UniformLoad) {
        Level::Note
    } else {
        Level::Warning
    };
    RuleText { id, name, summary, explanation, level }
}
