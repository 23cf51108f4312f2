//! What is found in memory accesses, and in which form.

use clap::ValueEnum;
use wavetap::report::memory::Severity;

/// `--format` where there are findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FindingsFormat {
    /// For people.
    Text,
    /// For programs; the field `schema` names the version.
    Json,
    /// The same as YAML.
    Yaml,
    /// What is wrong, in SARIF 2.1.0, for editors and code review.
    Sarif,
    /// What is wrong, as LLVM's optimisation remarks in YAML.
    Remarks,
}

/// `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// From a quarter more than it needs on.
    Low,
    /// From twice as much on.
    Medium,
    /// From eight times as much on.
    High,
}

impl From<FailOn> for Severity {
    fn from(least: FailOn) -> Severity {
        match least {
            FailOn::Low => Severity::Low,
            FailOn::Medium => Severity::Medium,
            FailOn::High => Severity::High,
        }
    }
}
