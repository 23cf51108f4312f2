//! The outcome of a verification, as data and as text.

use serde::{Deserialize, Serialize};

use super::style::{Style, counted};
use wavetap_object::code_object::demangle;
use wavetap_verify::Report;

/// Schema of a verification.
pub const SCHEMA: &str = "wavetap.verify/1";

/// What was checked and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verification {
    /// [`SCHEMA`].
    pub schema: String,
    /// Whether every rule held.
    pub faithful: bool,
    /// Code objects that differ from the original's.
    pub objects: usize,
    /// Instrumented kernels that were checked.
    pub kernels: usize,
    /// Broken rules.
    pub findings: Vec<BrokenRule>,
}

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BrokenRule {
    /// Fixed short name of the rule.
    pub rule: String,
    /// The code object's place in the file.
    pub place: String,
    /// Mangled name of the kernel, where it concerns one.
    pub kernel: Option<String>,
    /// Virtual address in the rewritten object, as a hex string, where there is one.
    pub address: Option<String>,
    /// What is wrong.
    pub message: String,
}

impl Verification {
    /// The outcome as data.
    #[must_use]
    pub fn new(report: &Report) -> Verification {
        let findings: Vec<BrokenRule> = report
            .findings
            .iter()
            .map(|(place, finding)| BrokenRule {
                rule: finding.rule.name().to_owned(),
                place: place.clone(),
                kernel: finding.kernel.clone(),
                address: finding.address.map(|address| format!("{address:#x}")),
                message: finding.message.clone(),
            })
            .collect();
        Verification {
            schema: SCHEMA.to_owned(),
            faithful: findings.is_empty(),
            objects: report.objects,
            kernels: report.kernels,
            findings,
        }
    }

    /// As text.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let mut lines: Vec<String> = self.findings.iter().map(|finding| finding.line(style)).collect();
        let checked = format!(
            "{} and {} in them",
            counted(self.objects as u64, "rewritten code object", "rewritten code objects"),
            counted(self.kernels as u64, "instrumented kernel", "instrumented kernels")
        );
        lines.push(match (self.findings.len(), self.objects) {
            (0, 0) => "faithful: the code objects are the original's, byte for byte".to_owned(),
            (0, _) => format!("faithful: checked {checked}"),
            (broken, _) => style
                .warn(&format!("NOT faithful: {}, checked {checked}", counted(broken as u64, "finding", "findings"))),
        });
        lines.push(String::new());
        lines.join("\n")
    }
}

impl BrokenRule {
    fn line(&self, style: Style) -> String {
        let kernel = self.kernel.as_ref().map(|name| format!(", {}", demangle(name))).unwrap_or_default();
        let address = self.address.as_ref().map(|address| format!(" at {address}")).unwrap_or_default();
        format!("{}: {}{kernel}{address}: {}", style.bold(&self.rule), self.place, self.message)
    }
}
