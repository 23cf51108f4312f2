//! The rules of what is found in a run, in words.

use crate::findings::{Level, RuleText};
use crate::memory::{self, RecordedPattern};
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
        FindingKind::UnfilledWorkgroups => (
            "unfilled-workgroups",
            "UnfilledWorkgroups",
            "Workgroups are larger than their work: most of the kernel runs without some of their work-items.",
            "A test of the work-item's number in its workgroup leaves lanes idle in every workgroup. Choose the \
                workgroup's size by the work that it has, or give each work-item several parts of it.",
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
    let RecordedPattern { id, rule, summary, explanation, is_note, .. } = RecordedPattern::of(kind);
    let level = if is_note { Level::Note } else { Level::Warning };
    RuleText { id, name: rule, summary, explanation, level }
}
