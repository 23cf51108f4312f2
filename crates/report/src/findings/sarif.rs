//! What was found as SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), which editors and code review
//! read.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{FindingLog, Level, LoggedFinding, NamedKernel, RuleText};
use wavetap_object::code_object::digest;
use wavetap_profile::map::Source;

/// Of the properties of this version.
const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
const VERSION: &str = "2.1.0";

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
    help: Message,
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location>,
    partial_fingerprints: BTreeMap<&'static str, String>,
    /// 0 to 100: the share of the run, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<f64>,
    properties: Map<String, Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    physical_location: Option<PhysicalLocation>,
    logical_locations: [LogicalLocation; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
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

/// What was found, as a log of one run. What is said of kernels, and of the run, is a notification.
#[must_use]
pub fn sarif(log: &FindingLog) -> Log {
    let unread = log.unread.iter().map(|part| Notification {
        level: name(Level::Error),
        message: message(&format!("not readable: {part}")),
        locations: Vec::new(),
    });
    let run = log.run.iter().map(|(level, text)| Notification {
        level: name(*level),
        message: message(text),
        locations: Vec::new(),
    });
    let kernels = log.notes.iter().flat_map(|note| {
        note.texts.iter().map(|(level, text)| Notification {
            level: name(*level),
            message: message(&format!("{}: {text}", note.kernel.target)),
            locations: vec![Location {
                physical_location: None,
                logical_locations: [logical(&note.kernel)],
                message: None,
            }],
        })
    });
    let run = Run {
        tool: Tool {
            driver: Driver {
                name: "wavetap",
                version: env!("CARGO_PKG_VERSION"),
                rules: log.rules.iter().map(descriptor).collect(),
            },
        },
        invocations: [Invocation {
            execution_successful: log.unread.is_empty(),
            tool_execution_notifications: unread.chain(run).chain(kernels).collect(),
        }],
        artifacts: [Artifact {
            location: ArtifactLocation { uri: uri(log.relative(&log.file)) },
            roles: ["analysisTarget"],
        }],
        results: log.findings.iter().map(|finding| result(finding, log)).collect(),
    };
    Log { schema: SCHEMA, version: VERSION, runs: [run] }
}

fn name(level: Level) -> &'static str {
    match level {
        Level::Note => "note",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}

fn descriptor(rule: &RuleText) -> ReportingDescriptor {
    ReportingDescriptor {
        id: rule.id,
        name: rule.name,
        short_description: message(rule.summary),
        full_description: message(rule.explanation),
        help: message(rule.explanation),
        default_configuration: Configuration { level: name(rule.level) },
    }
}

fn result(finding: &LoggedFinding, log: &FindingLog) -> ResultObject {
    let LoggedFinding { kernel, .. } = finding;
    let id = log.rules.get(finding.rule).map_or("", |rule| rule.id);
    let identity = format!("{id} {} {} {}", kernel.target, kernel.name, finding.place);
    ResultObject {
        rule_id: id,
        rule_index: finding.rule,
        level: name(finding.level),
        message: message(&finding.message),
        locations: [location(log, kernel, finding.source.as_ref(), finding.address, None)],
        related_locations: finding
            .related
            .iter()
            .map(|place| location(log, &place.function, place.source.as_ref(), place.address, Some(&place.message)))
            .collect(),
        partial_fingerprints: BTreeMap::from([(log.fingerprint, digest(identity.as_bytes()))]),
        rank: finding.share.map(|share| 100.0 * share.clamp(0.0, 1.0)),
        properties: finding.properties.clone(),
    }
}

/// A source line, or an instruction of the log's file where there is no line.
fn location(
    log: &FindingLog,
    kernel: &NamedKernel,
    source: Option<&Source>,
    address: Option<u64>,
    text: Option<&str>,
) -> Location {
    let in_file = |file: &str| ArtifactLocation { uri: uri(log.relative(file)) };
    let physical_location = match source {
        Some(source) => PhysicalLocation {
            artifact_location: in_file(&source.file),
            // Code that the compiler made of no line has line 0; the format's begin with 1.
            region: (source.line > 0).then_some(Region { start_line: source.line }),
            address: None,
        },
        None => PhysicalLocation {
            artifact_location: in_file(&log.file),
            region: None,
            address: address.map(|address| Address {
                absolute_address: address,
                kind: "instruction",
                fully_qualified_name: format!("{} {}", kernel.target, kernel.name),
            }),
        },
    };
    Location {
        physical_location: Some(physical_location),
        logical_locations: [logical(kernel)],
        message: text.map(message),
    }
}

fn logical(kernel: &NamedKernel) -> LogicalLocation {
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
