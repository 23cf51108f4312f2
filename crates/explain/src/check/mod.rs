//! What is shown of the findings of `wavetap check`: their order, what a file of suppressions or a baseline leaves out.

mod orders;
pub mod outputs;
mod suppressions;

use std::collections::BTreeSet;

use wavetap_profile::check::{CheckReport, CodePlace, Finding, HostCall, Severity};

pub use orders::merge;
pub use suppressions::CheckSuppressions;

/// Orders findings: the worst first, and of one severity in the order in which they were found.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
}

/// Takes findings out that are suppressed; how many.
pub fn suppress(findings: &mut Vec<Finding>, suppressions: &CheckSuppressions) -> u64 {
    let before = findings.len();
    findings.retain(|finding| !suppressions.covers(finding));
    (before - findings.len()) as u64
}

/// Takes findings out that an earlier report has, at the same place of the source; how many.
pub fn leave_out_baseline(findings: &mut Vec<Finding>, baseline: &CheckReport) -> u64 {
    let known: BTreeSet<String> = baseline.findings.iter().map(identity).collect();
    let before = findings.len();
    findings.retain(|finding| !known.contains(&identity(finding)));
    (before - findings.len()) as u64
}

/// Whether a run with these findings fails, where those from a severity on make it fail.
#[must_use]
pub fn fails(findings: &[Finding], least: Severity) -> bool {
    findings.iter().any(|finding| finding.severity >= least)
}

/// What a finding is, in words that outlast a build: its class, kernel and source line, or instruction where there is
/// no line; of a race both lines, whichever is named first; of a call its function, and who calls it.
#[must_use]
pub fn identity(finding: &Finding) -> String {
    let mut words = vec![finding.class.to_string()];
    let other = finding.other.as_ref().and_then(|other| other.at.as_ref());
    let mut ends: Vec<String> = finding.at.iter().chain(other).map(of_code).collect();
    ends.sort();
    words.extend(ends);
    words.extend(finding.call.as_ref().map(of_call));
    words.join(" | ")
}

fn of_code(at: &CodePlace) -> String {
    let place = match &at.source {
        Some(source) => format!("{}:{}", source.file, source.line),
        None => format!("{:#x}", at.address),
    };
    format!("{} at {place}", at.kernel)
}

fn of_call(call: &HostCall) -> String {
    let by = call.stack.first().map(|frame| match (&frame.source, &frame.function) {
        (Some(source), _) => format!("{}:{}", source.file, source.line),
        (None, Some(function)) => function.clone(),
        (None, None) => format!("{:#x}", frame.address),
    });
    format!("{} by {}", call.function, by.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::check::{AccessKind, Class, HostCall, OtherAccess, SCHEMA};

    fn found(class: Class, function: &str) -> Finding {
        let mut finding = Finding::new(class, "message");
        finding.call = Some(HostCall { function: function.to_owned(), stack: Vec::new() });
        finding
    }

    #[test]
    fn a_baseline_leaves_out_what_it_has() {
        let mut findings = vec![found(Class::Leak, "hipMalloc"), found(Class::DoubleFree, "hipFree")];
        sort(&mut findings);
        assert_eq!(findings[0].class, Class::DoubleFree);
        let baseline = CheckReport {
            schema: SCHEMA.to_owned(),
            command: Vec::new(),
            tools: Vec::new(),
            seed: 0,
            schedule_seeds: Vec::new(),
            exit_code: 0,
            findings: vec![found(Class::Leak, "hipMalloc"), found(Class::Leak, "hipFree")],
            suppressed: 0,
            in_baseline: 0,
            not_checked: Vec::new(),
        };
        assert_eq!(leave_out_baseline(&mut findings, &baseline), 1);
        // It may have been written by a version that named the places of a race in another order.
        let race = |first: u64, second: u64| {
            let at = |address: u64| {
                Some(CodePlace {
                    kernel: "k".to_owned(),
                    address,
                    instruction: String::new(),
                    source: None,
                    function: None,
                    inlined_at: Vec::new(),
                })
            };
            let mut finding = Finding::new(Class::LdsRace, "message");
            finding.at = at(first);
            finding.other = Some(OtherAccess {
                kind: AccessKind::Store,
                at: at(second),
                by: None,
                call: None,
                later: false,
                missing: String::new(),
            });
            finding
        };
        assert_eq!(identity(&race(4, 8)), identity(&race(8, 4)));
        assert_ne!(identity(&race(4, 8)), identity(&race(4, 4)));
        assert_eq!(findings.len(), 1);
        assert!(fails(&findings, Severity::Error) && !fails(&[], Severity::Note));
        assert!(!fails(&[found(Class::Leak, "hipMalloc")], Severity::Error));
    }
}
