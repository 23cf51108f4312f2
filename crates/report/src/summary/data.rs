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
    /// Its share, 0 to 1.
    pub share: f64,
    /// What matters most, at most two.
    pub findings: Vec<Finding>,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// How it was launched.
    Launch,
    /// Lanes that take different sides of a branch.
    Divergence,
    /// What waits wait for.
    Wait,
    /// How lanes access memory.
    Memory,
    /// Conflicts of LDS banks.
    LdsBanks,
    /// Waves that a SIMD holds.
    Occupancy,
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
    /// The sort of change that helps.
    pub help: String,
    /// The source line, if it is about one.
    pub source: Option<Source>,
    /// By which findings of a kernel are ordered, 0 to 1: which part of what it is about is lost. No prediction.
    pub weight: f64,
}
