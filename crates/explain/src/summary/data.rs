//! A summary as data.

use serde::{Deserialize, Serialize};

use crate::basis::Basis;
use wavetap_profile::map::Source;

/// Where a run went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// What the shares are of.
    pub shares_of: SharesOf,
    /// Whether a kernel executed something else in the run whose time is modelled than in the one that was counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs_differ: bool,
    /// The kernels with the largest shares, the largest first.
    pub kernels: Vec<KernelSummary>,
    /// How many more there are.
    pub more: u64,
    /// The share of those together, 0 to 1.
    pub share_of_more: f64,
}

/// What kernels have shares of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SharesOf {
    /// Cycles of the timing model.
    ModelledCycles,
    /// Wave-instructions that the emulator executed, those that count included.
    Instructions,
    /// Waves that ran.
    Waves,
}

impl SharesOf {
    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SharesOf::ModelledCycles => "modelled cycles",
            SharesOf::Instructions => "executed wave-instructions",
            SharesOf::Waves => "waves",
        }
    }
}

/// A kernel, and what matters most of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelSummary {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Target id.
    pub target: String,
    /// MD5 of the original code object.
    pub object: String,
    /// As text has it: without types of parameters where no other kernel is called so, and of instances of a template
    /// without its arguments.
    #[serde(default)]
    pub title: String,
    /// Its share, 0 to 1; of several instances of a template together.
    pub share: f64,
    /// All instances of the template that were dispatched, the one with the largest share first: the names and the
    /// findings here are of that one. Empty for a kernel that is the only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instances: Vec<Instance>,
    /// What matters most, at most four.
    pub findings: Vec<Finding>,
}

/// One of several instances of a template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Instance {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// MD5 of the original code object.
    pub object: String,
    /// Its share, 0 to 1.
    pub share: f64,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// How it was launched.
    Launch,
    /// Waves that leave without having done anything.
    IdleWaves,
    /// Lanes that take different sides of a branch, or leave a loop at different times.
    Divergence,
    /// What waits wait for.
    Wait,
    /// How lanes access memory.
    Memory,
    /// Conflicts of LDS banks.
    LdsBanks,
    /// Waves that a SIMD holds.
    Occupancy,
    /// Spilled registers, or arrays in scratch memory.
    Spills,
    /// The place that most is spent on, where nothing else explains it.
    HotCode,
}

impl FindingKind {
    /// Whether it is about how a kernel was launched, not about its code.
    #[must_use]
    pub fn is_of_launch(self) -> bool {
        matches!(self, FindingKind::Launch | FindingKind::IdleWaves | FindingKind::Occupancy)
    }
}

/// Something that matters of a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// What was found, in words.
    pub text: String,
    /// What it rests on.
    pub basis: Basis,
    /// The sort of change that helps; empty where nothing is known.
    pub help: String,
    /// The source line, if it is about one; of several the one with the largest part. A line of the program itself:
    /// where code of a header of HIP was inlined, the line that calls it.
    pub source: Option<Source>,
    /// The other lines, if it is about several; the text names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Source>,
    /// By which findings of a kernel are ordered, 0 to 1: which part of what it is about is lost. No prediction.
    pub weight: f64,
}
