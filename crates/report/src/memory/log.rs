//! What is wrong with accesses, as the log that is written in the forms of other tools.

use serde_json::{Map, Value, json};

use super::text::{left_out, summary};
use super::words::{looks_like, number, what};
use super::{Finding, KernelMemory, MemoryReport, Rule, Severity, Space};
use crate::findings::{FindingLog, KernelNote, Level, LoggedFinding, NamedKernel, RuleText};

/// What is wrong with the accesses of a file of this name, the worst first. `base` is the folder that names of files
/// are relative to. Of kernels it says how many accesses they have, and of how many nothing is known.
#[must_use]
pub fn finding_log(report: &MemoryReport, file: &str, base: Option<String>) -> FindingLog {
    let note = |kernel: &KernelMemory| KernelNote {
        kernel: named(kernel),
        name: "MemoryAccesses",
        texts: std::iter::once((Level::Note, summary(kernel)))
            .chain(left_out(kernel).map(|text| (Level::Warning, text)))
            .collect(),
    };
    FindingLog {
        file: file.to_owned(),
        base,
        pass: "wavetap-memory",
        fingerprint: "memoryAccess/v1",
        rules: Rule::ALL.into_iter().map(rule_text).collect(),
        findings: report.findings().iter().map(logged).collect(),
        notes: report.kernels.iter().map(note).collect(),
        run: Vec::new(),
        unread: report.unread.clone(),
    }
}

fn rule_text(rule: Rule) -> RuleText {
    let level = match rule {
        Rule::UniformLoad | Rule::FewLanes | Rule::Misaligned => Level::Note,
        Rule::Strided | Rule::Rows | Rule::Uncoalesced | Rule::BankConflict => Level::Warning,
    };
    RuleText { id: rule.id(), name: rule.name(), summary: rule.summary(), explanation: rule.explanation(), level }
}

fn named(kernel: &KernelMemory) -> NamedKernel {
    let KernelMemory { name, demangled, target, .. } = kernel;
    NamedKernel { name: name.clone(), demangled: demangled.clone(), target: target.clone() }
}

/// The level of what is so bad.
pub(crate) fn level_of(severity: Severity) -> Level {
    match severity {
        Severity::None | Severity::Low => Level::Note,
        Severity::Medium => Level::Warning,
        Severity::High => Level::Error,
    }
}

fn logged(finding: &Finding<'_>) -> LoggedFinding {
    let Finding { kernel, access, rule, severity, share, .. } = *finding;
    LoggedFinding {
        rule: Rule::ALL.iter().position(|other| *other == rule).unwrap_or_default(),
        level: level_of(severity),
        is_missed: severity > Severity::None || rule == Rule::UniformLoad,
        kernel: named(kernel),
        source: access.source.clone(),
        address: Some(access.address),
        related: Vec::new(),
        place: finding.place.clone(),
        message: finding.message(),
        arguments: arguments(finding),
        share,
        executions: access.executions,
        properties: properties(finding),
    }
}

/// What has no place of its own in SARIF.
fn properties(finding: &Finding<'_>) -> Map<String, Value> {
    let Finding { kernel, access, severity, .. } = *finding;
    let all = [
        ("target", json!(kernel.target)),
        ("severity", json!(severity)),
        ("category", json!(access.category)),
        ("address", json!(format!("{:#x}", access.address))),
        ("instruction", json!(access.instruction)),
        ("executions", json!(access.executions)),
        ("excess", json!(access.excess)),
    ];
    all.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// One after the other they are a sentence; those with names are for programs.
fn arguments(finding: &Finding<'_>) -> Vec<(&'static str, String)> {
    let Finding { kernel, access, .. } = *finding;
    let mut arguments = vec![("String", format!("{}: {}", what(access), looks_like(access, kernel)))];
    let mut add = |before: &str, name, value: String| arguments.extend([("String", before.to_owned()), (name, value)]);
    if let Some((cost, ideal)) = access.cost() {
        let in_lds = access.space == Space::Lds;
        add(if in_lds { "; cycles of LDS: " } else { "; cache lines: " }, "Cost", number(cost));
        add(", at best ", "Ideal", number(ideal));
    }
    if let Some(executions) = access.executions {
        add("; executions: ", "Executions", executions.to_string());
    }
    if let Some(excess) = access.excess {
        add("; too much in all: ", "Excess", number(excess));
    }
    add("; on ", "Target", kernel.target.clone());
    add(" at ", "Address", format!("{:#x}", access.address));
    arguments
}
