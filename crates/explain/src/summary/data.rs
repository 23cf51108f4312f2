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
    /// What starting all launches of the run takes, where their time is modelled and that is much beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches: Option<LaunchCost>,
}

/// What the launches of a run take besides what they run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchCost {
    /// How many there were.
    pub launches: u64,
    /// The modelled microseconds of all kernels.
    pub modelled_microseconds: f64,
    /// What starting them takes at least, in microseconds.
    pub starting_microseconds: f64,
}

/// What can bound a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Starting launches.
    Launches,
    /// Waves without work.
    IdleWaves,
    /// Too few waves for the machine.
    FewWaves,
    /// Bandwidth of memory.
    Memory,
    /// Bandwidth of the Infinity Cache.
    Mall,
    /// Bandwidth of L2.
    L2,
    /// The vector L1 cache: addresses and lines.
    L1,
    /// LDS.
    Lds,
    /// The vector ALU.
    VectorAlu,
    /// The unit for transcendental operations.
    Transcendental,
    /// Matrix cores.
    Matrix,
    /// Issue of scalar instructions.
    Scalar,
    /// Latency of global memory and of what else `s_waitcnt` waits for, but LDS.
    MemoryLatency,
    /// Latency of LDS.
    LdsLatency,
    /// Waves that come late to barriers.
    Barriers,
    /// Results of the ALUs that are not there yet.
    Dependencies,
    /// Instructions after branches that are not there yet.
    Branches,
}

impl Limit {
    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Limit::Launches => "launches",
            Limit::IdleWaves => "waves without work",
            Limit::FewWaves => "few waves",
            Limit::Memory => "memory bandwidth",
            Limit::Mall => "Infinity Cache bandwidth",
            Limit::L2 => "L2 bandwidth",
            Limit::L1 => "L1",
            Limit::Lds => "LDS",
            Limit::VectorAlu => "vector ALU",
            Limit::Transcendental => "transcendental unit",
            Limit::Matrix => "matrix cores",
            Limit::Scalar => "scalar instructions (masks, loop control)",
            Limit::MemoryLatency => "memory latency",
            Limit::LdsLatency => "LDS latency",
            Limit::Barriers => "barriers",
            Limit::Dependencies => "ALU dependencies",
            Limit::Branches => "branches",
        }
    }
}

/// Something that bounds a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitPart {
    /// What.
    pub limit: Limit,
    /// In words, with numbers.
    pub text: String,
    /// Of a part of the machine, for which part of the time it is busy; of latencies, for which part of their time
    /// waves wait; of few waves, which part of the SIMDs has none; of launches, which part of the time starting them
    /// takes. Where no time is modelled, the cycles that it takes, beside those of what takes most. 0 to 1.
    pub part: f64,
}

/// What bounds a kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bound {
    /// What bounds it.
    pub first: LimitPart,
    /// What would bound it, or hold it up, next.
    pub next: Option<LimitPart>,
    /// What that rests on: modelled, or predicted from counts and the machine's rates.
    pub basis: Basis,
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
    /// What bounds it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
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
    /// Work-items of each workgroup that have nothing to do: it is larger than its work.
    UnfilledWorkgroups,
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

impl Finding {
    /// A finding about no line in particular.
    pub(super) fn new(kind: FindingKind, basis: Basis, text: String, help: &str, weight: f64) -> Finding {
        let help = help.to_owned();
        Finding { kind, text, basis, help, source: None, also: Vec::new(), weight, modelled_gain: None }
    }
}

impl FindingKind {
    /// Whether it is about how a kernel was launched, not about its code.
    #[must_use]
    pub fn is_of_launch(self) -> bool {
        matches!(self, FindingKind::Launch | FindingKind::IdleWaves | FindingKind::Occupancy)
    }
}

impl Limit {
    /// The sort of change that helps; empty where the findings say it.
    #[must_use]
    pub fn help(self) -> &'static str {
        match self {
            Limit::Launches => "do more in each",
            Limit::IdleWaves => "launch waves only for work",
            Limit::FewWaves => "use more waves",
            Limit::Memory => "move fewer bytes",
            Limit::Mall | Limit::L2 => "reuse more in LDS and registers",
            _ => "",
        }
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
    /// How many times as fast the kernel would be at most, by the timing model, if nothing of it were lost (Amdahl's
    /// law), as far as what else keeps the machine busy allows; none where no time is modelled, and of what is no loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled_gain: Option<f64>,
}
