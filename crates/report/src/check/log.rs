//! Findings as the log that is written as SARIF.

use serde_json::{Map, Value, json};
use wavetap_explain::check::identity;
use wavetap_profile::check::{CheckReport, Class, Finding, Severity};

use super::sentence;
use crate::findings::{FindingLog, Level, LoggedFinding, NamedKernel, RuleText};

impl From<Severity> for Level {
    fn from(severity: Severity) -> Level {
        match severity {
            Severity::Note => Level::Note,
            Severity::Warning => Level::Warning,
            Severity::Error => Level::Error,
        }
    }
}

/// The log of a report. `file` is the application's file, `base` the folder that names of files are relative to.
#[must_use]
pub fn log(report: &CheckReport, file: &str, base: Option<&str>) -> FindingLog {
    let mut classes: Vec<Class> = report.findings.iter().map(|finding| finding.class).collect();
    classes.sort_unstable();
    classes.dedup();
    let rule = |class: &Class| {
        let text = class.text();
        let level = class.severity().into();
        RuleText { id: text.name, name: text.name, summary: text.summary, explanation: text.hint, level }
    };
    let place = |class: Class| classes.iter().position(|known| *known == class).unwrap_or_default();
    FindingLog {
        file: file.to_owned(),
        base: base.map(str::to_owned),
        pass: "wavetap-check",
        fingerprint: "checkFinding/v1",
        rules: classes.iter().map(rule).collect(),
        findings: report.findings.iter().map(|finding| logged(finding, place(finding.class))).collect(),
        notes: Vec::new(),
        run: report.not_checked.iter().map(|what| (Level::Warning, format!("not checked: {what}"))).collect(),
        unread: Vec::new(),
    }
}

fn logged(finding: &Finding, rule: usize) -> LoggedFinding {
    let caller = finding.call.as_ref().and_then(|call| call.stack.first());
    let name = match (&finding.at, caller.and_then(|frame| frame.function.as_ref()), &finding.call) {
        (Some(at), ..) => at.kernel.clone(),
        (None, Some(function), _) => function.clone(),
        (None, None, Some(call)) => call.function.clone(),
        (None, None, None) => String::new(),
    };
    let source = match &finding.at {
        Some(at) => at.source.clone(),
        None => caller.and_then(|frame| frame.source.clone()),
    };
    let message = sentence(finding);
    let mut properties: Map<String, Value> = Map::new();
    properties.insert("tool".to_owned(), json!(finding.tool));
    properties.insert("count".to_owned(), json!(finding.count));
    LoggedFinding {
        rule,
        level: finding.severity.into(),
        is_missed: true,
        kernel: NamedKernel { name: name.clone(), demangled: name, target: String::new() },
        source,
        address: finding.at.as_ref().map(|at| at.address),
        place: identity(finding),
        arguments: vec![("String", message.clone())],
        message,
        share: None,
        executions: None,
        properties,
    }
}
