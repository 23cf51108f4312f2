//! What is wrong with accesses as SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), which editors and
//! code review read.

use std::collections::BTreeMap;

use serde::Serialize;

use super::text::{left_out, summary};
use super::{Category, Finding, KernelMemory, MemoryReport, Rule, Severity};
use wavetap_object::code_object::digest;

/// Of the properties of this version.
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
const VERSION: &str = "2.1.0";
/// The name of our fingerprints, with the version of what they are made of.
const FINGERPRINT: &str = "memoryAccess/v1";

/// A log file.
#[derive(Debug, Serialize)]
pub struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    invocations: [Invocation; 1],
    artifacts: [Artifact; 1],
    results: Vec<ResultObject>,
}

#[derive(Debug, Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Driver {
    name: &'static str,
    version: &'static str,
    rules: Vec<ReportingDescriptor>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportingDescriptor {
    id: &'static str,
    name: &'static str,
    short_description: Message,
    full_description: Message,
    default_configuration: Configuration,
}

#[derive(Debug, Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Debug, Serialize)]
struct Message {
    text: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    tool_execution_notifications: Vec<Notification>,
}

#[derive(Debug, Serialize)]
struct Notification {
    level: &'static str,
    message: Message,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locations: Vec<Location>,
}

#[derive(Debug, Serialize)]
struct Artifact {
    location: ArtifactLocation,
    roles: [&'static str; 1],
}

#[derive(Debug, Serialize)]
struct ArtifactLocation {
    uri: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultObject {
    rule_id: &'static str,
    rule_index: usize,
    level: &'static str,
    message: Message,
    locations: [Location; 1],
    partial_fingerprints: BTreeMap<&'static str, String>,
    /// 0 to 100: the share of what is too much in the whole run, if it was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<f64>,
    properties: Properties,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    physical_location: Option<PhysicalLocation>,
    logical_locations: [LogicalLocation; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Address>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Address {
    absolute_address: u64,
    kind: &'static str,
    /// The addresses are those of one code object of the file.
    fully_qualified_name: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    fully_qualified_name: String,
    decorated_name: String,
    kind: &'static str,
}

/// What has no place of its own in the format.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    target: String,
    severity: Severity,
    category: Category,
    address: String,
    instruction: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    executions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excess: Option<f64>,
}

/// What is wrong with the accesses of a file of this name, the worst first. Kernels, and how many of their accesses are
/// not known, are notifications.
#[must_use]
pub fn sarif(report: &MemoryReport, file: &str) -> Log {
    let unread = report.unread.iter().map(|part| Notification {
        level: "error",
        message: message(&format!("not readable: {part}")),
        locations: Vec::new(),
    });
    let of_kernel = |kernel, level, text: &str| Notification {
        level,
        message: message(text),
        locations: vec![Location { physical_location: None, logical_locations: [logical(kernel)] }],
    };
    let kernels = report.kernels.iter().flat_map(|kernel| {
        let known = of_kernel(kernel, "note", &format!("{}: {}", kernel.target, summary(kernel)));
        let not = left_out(kernel).map(|text| of_kernel(kernel, "warning", &format!("{}: {text}", kernel.target)));
        std::iter::once(known).chain(not)
    });
    let run = Run {
        tool: Tool {
            driver: Driver {
                name: "wavetap",
                version: env!("CARGO_PKG_VERSION"),
                rules: Rule::ALL.into_iter().map(descriptor).collect(),
            },
        },
        invocations: [Invocation {
            execution_successful: report.unread.is_empty(),
            tool_execution_notifications: unread.chain(kernels).collect(),
        }],
        artifacts: [Artifact { location: ArtifactLocation { uri: uri(file) }, roles: ["analysisTarget"] }],
        results: report.findings().iter().map(|finding| result(finding, file)).collect(),
    };
    Log { schema: SCHEMA, version: VERSION, runs: [run] }
}

fn descriptor(rule: Rule) -> ReportingDescriptor {
    let level = match rule {
        Rule::UniformLoad | Rule::FewLanes | Rule::Misaligned => "note",
        Rule::Strided | Rule::Rows | Rule::Uncoalesced | Rule::BankConflict => "warning",
    };
    ReportingDescriptor {
        id: rule.id(),
        name: rule.name(),
        short_description: message(rule.summary()),
        full_description: message(rule.explanation()),
        default_configuration: Configuration { level },
    }
}

fn result(finding: &Finding<'_>, file: &str) -> ResultObject {
    let Finding { kernel, access, rule, .. } = *finding;
    let physical_location = match &access.source {
        Some(source) => PhysicalLocation {
            artifact_location: ArtifactLocation { uri: uri(&source.file) },
            region: Some(Region { start_line: source.line }),
            address: None,
        },
        None => PhysicalLocation {
            artifact_location: ArtifactLocation { uri: uri(file) },
            region: None,
            address: Some(Address {
                absolute_address: access.address,
                kind: "instruction",
                fully_qualified_name: format!("{} {}", kernel.target, kernel.name),
            }),
        },
    };
    let identity = format!("{} {} {} {}", rule.id(), kernel.target, kernel.name, finding.place);
    ResultObject {
        rule_id: rule.id(),
        rule_index: Rule::ALL.iter().position(|other| *other == rule).unwrap_or_default(),
        level: match finding.severity {
            Severity::None | Severity::Low => "note",
            Severity::Medium => "warning",
            Severity::High => "error",
        },
        message: message(&finding.message()),
        locations: [Location { physical_location: Some(physical_location), logical_locations: [logical(kernel)] }],
        partial_fingerprints: BTreeMap::from([(FINGERPRINT, digest(identity.as_bytes()))]),
        rank: finding.share.map(|share| 100.0 * share.clamp(0.0, 1.0)),
        properties: Properties {
            target: kernel.target.clone(),
            severity: finding.severity,
            category: access.category,
            address: format!("{:#x}", access.address),
            instruction: access.instruction.clone(),
            executions: access.executions,
            excess: access.excess,
        },
    }
}

fn logical(kernel: &KernelMemory) -> LogicalLocation {
    LogicalLocation {
        fully_qualified_name: kernel.demangled.clone(),
        decorated_name: kernel.name.clone(),
        kind: "function",
    }
}

/// A plain text message without placeholders and links (3.11.5, 3.11.6): names in it may look like these.
fn message(text: &str) -> Message {
    Message { text: text.replace('{', "{{").replace('}', "}}").replace("](", "] (") }
}

/// A file's name as a URI (RFC 3986): absolute, or relative to wherever the reader looks.
fn uri(file: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encoded = |component: &str| -> String {
        let one = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        component.bytes().map(one).collect()
    };
    let components: Vec<String> =
        file.split('/').filter(|component| !matches!(*component, "" | ".")).map(encoded).collect();
    let scheme = if file.starts_with('/') { "file:///" } else { "" };
    format!("{scheme}{}", components.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_uris() {
        for (file, expected) in [
            ("/src/a b.hip", "file:///src/a%20b.hip"),
            ("//host/x", "file:///host/x"),
            ("./a/./b//c.hpp", "a/b/c.hpp"),
            ("./dir/x:y%.hip", "dir/x%3Ay%25.hip"),
            ("ä.hip", "%C3%A4.hip"),
        ] {
            assert_eq!(uri(file), expected);
        }
    }

    #[test]
    fn names_in_messages_are_no_links_and_no_placeholders() {
        assert_eq!(message("a[1](2) {0}").text, "a[1] (2) {{0}}");
    }
}
