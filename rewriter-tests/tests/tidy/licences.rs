//! Licences and sources of dependencies, by the list that `cargo deny` reads.

use std::fs;
use std::process::Command;

use spdx::{Expression, ParseMode};

use super::{no_complaints, root};

/// The licences that `deny.toml` allows: the strings of its list `allow`.
fn allowed() -> Vec<String> {
    let text = fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    let (_, rest) = text.split_once("\nallow = [\n").expect("a list of licences");
    let (list, _) = rest.split_once("\n]").expect("the end of the list");
    let quoted = |line: &str| Some(line.trim().strip_prefix('"')?.strip_suffix("\",")?.to_owned());
    let allowed: Vec<String> = list.lines().filter(|line| !line.trim().starts_with('#')).filter_map(quoted).collect();
    assert!(!allowed.is_empty(), "deny.toml allows nothing");
    allowed
}

/// What is wrong with a licence, written as an SPDX expression or, as older packages do, with a slash.
fn complaint(licence: Option<&str>, allowed: &[String]) -> Option<String> {
    let Some(licence) = licence else { return Some("it names no licence".to_owned()) };
    let expression = match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(expression) => expression,
        Err(error) => return Some(format!("{licence:?}: {error}")),
    };
    let permitted = expression.evaluate(|requirement| allowed.contains(&requirement.to_string()));
    (!permitted).then(|| format!("{licence} is not what deny.toml allows"))
}

#[test]
fn dependencies_have_licences_that_are_allowed() {
    let metadata = |how: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(["metadata", "--format-version", "1", "--all-features", "--locked"]).args(how);
        command.current_dir(root()).output().expect("cargo starts")
    };
    // Packages for other systems may not have been downloaded: nothing that is built needs them.
    let offline = metadata(&["--offline"]);
    let output = if offline.status.success() { offline } else { metadata(&[]) };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let allowed = allowed();
    let mut complaints = Vec::new();
    for package in packages {
        let name = format!("{} {}", package["name"], package["version"]);
        complaints
            .extend(complaint(package["license"].as_str(), &allowed).map(|complaint| format!("{name}: {complaint}")));
        // The workspace's own have none; the registry is the only one that Cargo knows without being told of others.
        let source = package["source"].as_str();
        if source.is_some_and(|source| !source.starts_with("registry+https://github.com/rust-lang/")) {
            complaints.push(format!("{name} comes from {}", package["source"]));
        }
    }
    assert!(packages.len() > 100, "only {} packages", packages.len());
    no_complaints(complaints);
}

#[test]
fn licences_that_are_not_allowed_are_found() {
    let allowed = ["MIT".to_owned(), "Zlib".to_owned(), "Apache-2.0 WITH LLVM-exception".to_owned()];
    for licence in
        ["MIT", "GPL-3.0-only OR MIT", "Unlicense/MIT", "MIT AND (Zlib OR ISC)", "Apache-2.0 WITH LLVM-exception"]
    {
        assert_eq!(complaint(Some(licence), &allowed), None, "{licence}");
    }
    for licence in ["GPL-3.0-only", "MIT AND ISC", "Apache-2.0", "GPL-2.0-only/ISC", "proprietary"] {
        assert!(complaint(Some(licence), &allowed).is_some(), "{licence}");
    }
    assert!(complaint(None, &allowed).is_some());
}
