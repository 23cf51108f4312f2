//! The forms in which findings are written: what SARIF's specification says of the objects that are used, and LLVM's
//! own reader of remarks.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::Failure;
use crate::command::{self, Finished};

/// Rules of SARIF 2.1.0, by section, for the objects that are written.
#[must_use]
pub fn sarif_faults(log: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut rule = |holds: bool, section: &str| {
        if !holds {
            faults.push(section.to_owned());
        }
    };
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    rule(log["version"] == "2.1.0", "3.13.2: the version");
    rule(log["$schema"].as_str().is_some_and(|uri| uri.starts_with("https://")), "3.13.3: an absolute URI");
    for run in log["runs"].as_array().into_iter().flatten() {
        let driver = &run["tool"]["driver"];
        rule(is_text(&driver["name"]), "3.19.8: the name of the tool");
        let rules = driver["rules"].as_array().cloned().unwrap_or_default();
        let ids: BTreeSet<&str> = rules.iter().filter_map(|rule| rule["id"].as_str()).collect();
        rule(ids.len() == rules.len(), "3.49.3: ids are there and differ");
        for described in &rules {
            for text in ["shortDescription", "fullDescription"] {
                rule(is_text(&described[text]["text"]), "3.12.3: a multiformat message has a text");
            }
            rule(!is_text(&described["name"]) || described["name"] != described["id"], "3.49.7: a name that differs");
        }
        for invocation in run["invocations"].as_array().into_iter().flatten() {
            rule(invocation["executionSuccessful"].is_boolean(), "3.20.14: whether it was successful");
            for notification in invocation["toolExecutionNotifications"].as_array().into_iter().flatten() {
                rule(is_text(&notification["message"]["text"]), "3.58.5: a notification has a message");
            }
        }
        for result in run["results"].as_array().into_iter().flatten() {
            let index = result["ruleIndex"].as_u64().and_then(|index| usize::try_from(index).ok());
            let described = index.and_then(|index| rules.get(index));
            rule(described.is_some_and(|rule| rule["id"] == result["ruleId"]), "3.27.6: the index of the rule");
            let level = result["level"].as_str().unwrap_or_default();
            rule(["none", "note", "warning", "error"].contains(&level), "3.27.10: a level");
            rule(is_text(&result["message"]["text"]), "3.27.11: a message");
            let text = result["message"]["text"].as_str().unwrap_or_default();
            rule(!text.replace("{{", "").replace("}}", "").contains(['{', '}']), "3.11.5: braces are doubled");
            rule(!text.contains("]("), "3.11.6: no links");
            rule(result["rank"].as_f64().is_none_or(|rank| (0.0..=100.0).contains(&rank)), "3.27.25: a rank");
            let prints = result["partialFingerprints"].as_object();
            rule(prints.is_some_and(|prints| prints.values().all(is_text)), "3.27.17: fingerprints are strings");
            let locations = result["locations"].as_array().cloned().unwrap_or_default();
            rule(locations.len() == 1, "3.27.12: one location");
            for location in &locations {
                let physical = &location["physicalLocation"];
                let uri = physical["artifactLocation"]["uri"].as_str().unwrap_or_default();
                let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/%:".contains(c);
                rule(!uri.is_empty() && uri.chars().all(plain), "3.4.3: a URI reference");
                rule(!uri.starts_with('/'), "3.4.3: no absolute path without a scheme");
                let line = physical["region"]["startLine"].as_u64();
                let address = physical["address"]["absoluteAddress"].as_u64();
                rule(line != Some(0) && !(line.is_some() && address.is_some()), "3.30.5, 3.32.6: a line or an address");
                let logical = &location["logicalLocations"][0];
                rule(is_text(&logical["fullyQualifiedName"]), "3.33.5: the name of the kernel");
                rule(logical["kind"] == "function", "3.33.7: a kind");
            }
        }
    }
    faults
}

/// What LLVM's tool makes of some remarks.
///
/// # Errors
/// If it refuses them.
pub fn remarkutil(remarks: &str, arguments: &[&str]) -> Result<Finished, Failure> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let file = folder.path().join("remarks.yaml");
    fs::write(&file, remarks).map_err(|e| e.to_string())?;
    let file = file.display().to_string();
    let arguments: Vec<&str> = arguments.iter().copied().chain([file.as_str()]).collect();
    command::run("llvm-remarkutil-19".as_ref(), &arguments, &[], folder.path())?.exited(0)
}
