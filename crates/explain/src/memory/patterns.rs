//! What patterns of recorded accesses are called, and what is said of them: a row for each, which is all that a new
//! pattern needs besides the function in `wavetap-memory` that finds it.

use super::FindingKind;

/// A pattern of recorded accesses in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedPattern {
    /// In a word or a few.
    pub name: &'static str,
    /// The name of its rule to programs: it does not change.
    pub id: &'static str,
    /// The same as one word.
    pub rule: &'static str,
    /// What is wrong, in one sentence.
    pub summary: &'static str,
    /// What that costs, and what may be done.
    pub explanation: &'static str,
    /// Whether it is worth knowing, and no warning.
    pub is_note: bool,
}

impl RecordedPattern {
    /// That of a kind of finding.
    #[must_use]
    pub fn of(kind: FindingKind) -> RecordedPattern {
        match kind {
            FindingKind::Hot => RecordedPattern {
                name: "hot",
                id: "recorded-hot",
                rule: "RecordedHot",
                summary: "Most waves of a workgroup access the same words.",
                explanation: "Each wave requests them again. Load them to LDS once for each workgroup.",
                is_note: false,
            },
            FindingKind::HotRandom => RecordedPattern {
                name: "hot, at random",
                id: "recorded-hot-random",
                rule: "RecordedHotRandom",
                summary: "Most waves of a workgroup access the same lines, at words that depend on data.",
                explanation: "The order of the data decides: sort it, or work on blocks of it.",
                is_note: false,
            },
            FindingKind::SmallSlices => RecordedPattern {
                name: "slices smaller than a line",
                id: "recorded-small-slices",
                rule: "RecordedSmallSlices",
                summary: "What each wave accesses of an array is smaller than a cache line.",
                explanation: "Several waves request the same line. Exchange the indices of the work-item, so that \
                    a wave uses whole lines.",
                is_note: false,
            },
            FindingKind::Strided => RecordedPattern {
                name: "strided",
                id: "recorded-strided",
                rule: "RecordedStrided",
                summary: "A few words of each line are accessed, at regular distances, and the others never.",
                explanation: "Most of what is fetched is not used. Store together what is used together.",
                is_note: false,
            },
            FindingKind::Misaligned => RecordedPattern {
                name: "misaligned",
                id: "recorded-misaligned",
                rule: "RecordedMisaligned",
                summary: "Lanes access what lies next to each other, but not from where a line begins.",
                explanation: "Each wave requests one line more than its bytes fill. Begin rows where lines begin.",
                is_note: false,
            },
            FindingKind::Halo => RecordedPattern {
                name: "halo",
                id: "recorded-halo",
                rule: "RecordedHalo",
                summary: "Lanes access what lies next to each other, but not from where a line begins, beside \
                    accesses that do.",
                explanation: "The neighbours of a stencil do so. It is often right as it is; LDS or lane exchanges \
                    save the requests.",
                is_note: true,
            },
            FindingKind::Uncoalesced => RecordedPattern {
                name: "uncoalesced",
                id: "recorded-uncoalesced",
                rule: "RecordedUncoalesced",
                summary: "An execution takes more cache lines than its bytes fill.",
                explanation: "Let neighbouring lanes access neighbouring data.",
                is_note: false,
            },
            FindingKind::LdsThreadPrivate => RecordedPattern {
                name: "private to each work-item",
                id: "recorded-lds-private",
                rule: "RecordedLdsPrivate",
                summary: "Each word of an array in LDS is accessed by one lane only.",
                explanation: "Registers would hold it without the latency of LDS and without a barrier.",
                is_note: false,
            },
            FindingKind::LdsWaveLocal => RecordedPattern {
                name: "local to each wave",
                id: "recorded-lds-wave-local",
                rule: "RecordedLdsWaveLocal",
                summary: "Each word of an array in LDS is accessed by the lanes of one wave only.",
                explanation: "DPP, ds_bpermute or v_readlane exchange between the lanes of a wave; the barrier may \
                    not be needed.",
                is_note: true,
            },
            FindingKind::BankConflict => RecordedPattern {
                name: "bank conflicts",
                id: "recorded-bank-conflict",
                rule: "RecordedBankConflict",
                summary: "Lanes access different words of one bank of LDS.",
                explanation: "LDS serves one word of a bank at a time. Pad the rows of the array, or exchange its \
                    parts by XOR.",
                is_note: false,
            },
            FindingKind::FewLanes => RecordedPattern {
                name: "few lanes",
                id: "recorded-few-lanes",
                rule: "RecordedFewLanes",
                summary: "An access is coalesced, and a few lanes make it.",
                explanation: "It costs as much as one of all lanes. Let active lanes lie together, or give each \
                    more to do.",
                is_note: true,
            },
            FindingKind::UniformLoad => RecordedPattern {
                name: "uniform vector load",
                id: "recorded-uniform-load",
                rule: "RecordedUniformLoad",
                summary: "All lanes load the same with a vector instruction.",
                explanation: "A scalar load would fetch it once for the wave: `const` and `__restrict__` on the \
                    pointer let the compiler choose one.",
                is_note: true,
            },
        }
    }
}
