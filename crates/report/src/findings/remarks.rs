//! What was found as optimisation remarks in LLVM's YAML format (LLVM, "Remarks"), which `opt-viewer` and
//! `llvm-remarkutil` read: one document for each finding, and one for each kernel of which something is said.

use super::FindingLog;
use wavetap_profile::map::Source;

/// Documents for all that was found, the worst first, and then for each kernel.
#[must_use]
pub fn remarks(log: &FindingLog) -> String {
    let mut out = String::new();
    for finding in &log.findings {
        let source = finding
            .source
            .as_ref()
            .map(|source| Source { file: log.relative(&source.file).to_owned(), line: source.line });
        out.push_str(&document(
            log.pass,
            if finding.is_missed { "Missed" } else { "Analysis" },
            log.rules.get(finding.rule).map_or("", |rule| rule.name),
            source.as_ref(),
            &finding.kernel.name,
            finding.executions,
            &finding.arguments,
        ));
    }
    for note in &log.notes {
        let text = note.texts.iter().enumerate().map(|(place, (_, text))| {
            ("String", if place == 0 { format!("{}: {text}", note.kernel.target) } else { format!("; {text}") })
        });
        let text: Vec<(&str, String)> = text.collect();
        out.push_str(&document(log.pass, "Analysis", note.name, None, &note.kernel.name, None, &text));
    }
    out
}

fn document(
    pass: &str,
    kind: &str,
    name: &str,
    source: Option<&Source>,
    function: &str,
    hotness: Option<u64>,
    arguments: &[(&str, String)],
) -> String {
    let mut out = format!("--- !{kind}\nPass:            {pass}\nName:            {name}\n");
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
