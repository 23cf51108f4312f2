//! Whose counts are shown beside a piece of code, and what they leave out, as data and in words.

mod join;

pub use join::{CountedObject, ObjectCounts, ProfileOfInput, check, other_builds};

use serde::{Deserialize, Serialize};

use crate::style::{DID_NOT_END, Style, counted, missing_waves, not_counted};
use wavetap_profile::file::KernelTotals;

/// Names in one line; JSON has all.
const NAMES_SHOWN: usize = 4;

/// Whose counts are at the instructions of a piece of code: those of all [`CountedText::kernels`] together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedText {
    /// Whether the run ended; otherwise these are the counts up to then.
    pub complete: bool,
    /// The kernels that were counted and run it: of a kernel itself, of a function all that are known to call it or
    /// have counts in it.
    pub kernels: Vec<CountedKernel>,
    /// The kernels that are known to run it where they are executed, and of which there are no counts here, or not of
    /// all runs that were added up.
    pub uncounted: Vec<UncountedKernel>,
    /// Whether it may have run more often than is counted, although no known call says so: through pointers, or as an
    /// original beside the copies that count.
    pub more: bool,
}

/// A kernel with counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedKernel {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Dispatches.
    pub dispatches: u64,
    /// Waves that ran.
    pub waves: u64,
    /// Waves whose counters are missing.
    pub dropped: u64,
    /// Waves that never reached an epilogue.
    pub unfinished: u64,
    /// Functions it may call whose branches are not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted_callees: Vec<String>,
}

/// A kernel without counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UncountedKernel {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Why there are none.
    #[serde(flatten)]
    pub why: Uncounted,
}

/// Why there are no counts of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Uncounted {
    /// It could not be instrumented.
    Refused {
        /// Short fixed name of the reason.
        reason: String,
        /// One sentence with the place.
        detail: String,
    },
    /// A kernel of this name could not be instrumented, maybe that of another code object for the same target.
    PerhapsRefused {
        /// Short fixed name of the reason.
        reason: String,
        /// One sentence with the place.
        detail: String,
    },
    /// It was not dispatched, or not selected when the file was rewritten.
    NotCounted,
    /// It was not dispatched.
    NotDispatched,
    /// Some of its dispatches were not counted.
    Dispatches {
        /// How many.
        dispatches: u64,
        /// Why, in a sentence.
        detail: String,
    },
    /// It may have run the original of this function, which does not count.
    Original,
}

impl CountedKernel {
    /// What a profile says of the kernel as a whole.
    #[must_use]
    pub fn of(totals: &KernelTotals) -> CountedKernel {
        CountedKernel {
            name: totals.name.clone(),
            demangled: totals.demangled.clone(),
            dispatches: totals.dispatches,
            waves: totals.waves,
            dropped: totals.dropped,
            unfinished: totals.unfinished,
            uncounted_callees: totals.uncounted_callees.clone(),
        }
    }
}

impl std::fmt::Display for Uncounted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Uncounted::Refused { reason, detail } => write!(f, "left uncounted: {reason}: {detail}"),
            Uncounted::PerhapsRefused { reason, detail } => {
                write!(f, "not dispatched in this run, or left uncounted: {reason}: {detail}")
            }
            Uncounted::NotCounted => f.write_str("not dispatched in this run, or not among the kernels that count"),
            Uncounted::Dispatches { dispatches, detail } => {
                write!(f, "{}: {detail}", counted(*dispatches, "dispatch is not counted", "dispatches are not counted"))
            }
            Uncounted::NotDispatched => f.write_str("not dispatched in this run"),
            Uncounted::Original => f.write_str("it may have run the original, which does not count"),
        }
    }
}

impl CountedText {
    /// Whether the counts are all that there is to count: nothing ran beside them.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        let whole = |kernel: &CountedKernel| kernel.dropped == 0 && kernel.unfinished == 0;
        let did_not_run = |kernel: &UncountedKernel| kernel.why == Uncounted::NotDispatched;
        self.complete && !self.more && self.kernels.iter().all(whole) && self.uncounted.iter().all(did_not_run)
    }

    /// The lines in the heading of a kernel (`itself` is its mangled name) or of other code.
    pub(crate) fn lines(&self, itself: Option<&str>, style: Style) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.complete {
            lines.push(style.warn(DID_NOT_END));
        }
        match (self.kernels.as_slice(), self.uncounted.as_slice()) {
            ([], []) if !self.more => lines.push(style.dim("no counts: no kernel is known to run it")),
            ([], []) => {}
            ([only], _) if Some(&*only.name) == itself => {
                let runs = [counted(only.dispatches, "dispatch", "dispatches"), counted(only.waves, "wave", "waves")];
                lines.push(style.dim(&format!("counted: {}", runs.join(", "))));
                lines.extend(missing_waves(only.dropped, only.unfinished).map(|line| style.warn(&line)));
                lines.extend(not_counted(&only.uncounted_callees));
            }
            (kernels, _) => {
                let names: Vec<_> = kernels.iter().map(|kernel| style.name(&kernel.demangled)).collect();
                let names: Vec<&str> = names.iter().map(|name| &**name).collect();
                match names.as_slice() {
                    [] => {}
                    [only] => lines.push(style.dim(&format!("counted in {only}"))),
                    several => lines.push(style.dim(&format!(
                        "counted in {} kernels, added up: {}",
                        several.len(),
                        listed(several)
                    ))),
                }
                for kernel in kernels {
                    let missing = missing_waves(kernel.dropped, kernel.unfinished);
                    lines.extend(missing.map(|line| style.warn(&format!("{}: {line}", style.name(&kernel.demangled)))));
                }
            }
        }
        for (index, kernel) in self.uncounted.iter().enumerate() {
            if Some(&*kernel.name) == itself {
                let when = if self.kernels.iter().any(|counted| counted.name == kernel.name) {
                    "not in all runs"
                } else {
                    "no counts"
                };
                lines.push(style.warn(&format!("{when}: {}", kernel.why)));
            } else if index < NAMES_SHOWN {
                lines.push(style.warn(&format!("not counted in {}: {}", style.name(&kernel.demangled), kernel.why)));
            }
        }
        if self.uncounted.len() > NAMES_SHOWN {
            lines.push(style.warn(&format!("not counted in {} more kernels", self.uncounted.len() - NAMES_SHOWN)));
        }
        if self.more {
            let how = if self.kernels.is_empty() { "uncounted" } else { "more often than is counted" };
            lines.push(
                style.warn(&format!(
                    "it may have run {how}: through pointers, or as an original beside copies that count"
                )),
            );
        }
        lines
    }
}

/// The first names, and how many more there are.
fn listed(names: &[&str]) -> String {
    let first = names.iter().take(NAMES_SHOWN).copied().collect::<Vec<_>>().join(", ");
    if names.len() > NAMES_SHOWN { format!("{first} and {} more", names.len() - NAMES_SHOWN) } else { first }
}
