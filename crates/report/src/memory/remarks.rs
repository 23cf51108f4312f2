//! What is wrong with accesses as optimisation remarks in LLVM's YAML format (LLVM, "Remarks"), which `opt-viewer` and
//! `llvm-remarkutil` read: one document for each, and one for each kernel that says how many accesses it has.

use super::text::{left_out, looks_like, number, summary, what};
use super::{Finding, MemoryReport, Rule, Severity, Space};
use wavetap_profile::map::Source;

/// The name that remarks have as their pass.
const PASS: &str = "wavetap-memory";

/// Documents for all that is wrong, the worst first, and then for each kernel.
#[must_use]
pub fn remarks(report: &MemoryReport) -> String {
    let mut out = String::new();
    for finding in report.findings() {
        out.push_str(&document(
            if is_missed(&finding) { "Missed" } else { "Analysis" },
            finding.rule.name(),
            finding.access.source.as_ref(),
            &finding.kernel.name,
            finding.access.executions,
            &arguments(&finding),
        ));
    }
    for kernel in &report.kernels {
        let mut text = vec![("String", format!("{}: {}", kernel.target, summary(kernel)))];
        text.extend(left_out(kernel).map(|text| ("String", format!("; {text}"))));
        out.push_str(&document("Analysis", "MemoryAccesses", None, &kernel.name, None, &text));
    }
    out
}

/// Whether it could be better; otherwise it is only said.
fn is_missed(finding: &Finding<'_>) -> bool {
    finding.severity > Severity::None || finding.rule == Rule::UniformLoad
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

fn document(
    kind: &str,
    name: &str,
    source: Option<&Source>,
    function: &str,
    hotness: Option<u64>,
    arguments: &[(&str, String)],
) -> String {
    let mut out = format!("--- !{kind}\nPass:            {PASS}\nName:            {name}\n");
    if let Some(Source { file, line }) = source {
        out.push_str(&format!("DebugLoc:        {{ File: {}, Line: {line}, Column: 0 }}\n", scalar(file)));
    }
    out.push_str(&format!("Function:        {}\n", scalar(function)));
    if let Some(hotness) = hotness {
        out.push_str(&format!("Hotness:         {hotness}\n"));
    }
    out.push_str("Args:\n");
    for (key, value) in arguments {
        out.push_str(&format!("  - {key}: {}\n", scalar(value)));
    }
    out.push_str("...\n");
    out
}

/// A quoted scalar of YAML: in single quotes, as LLVM writes them, unless a character can only be escaped.
fn scalar(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => format!("\\x{:02X}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_quoted() {
        for (text, expected) in
            [("a'b", "'a''b'"), ("x: {y} # z", "'x: {y} # z'"), ("a\n\"b\\", "\"a\\x0A\\\"b\\\\\""), ("", "''")]
        {
            assert_eq!(scalar(text), expected);
        }
    }
}
