//! What tests have cargo build has the features with which cargo built the tests: with others, a package and all that
//! is above it are built twice.

use std::collections::BTreeSet;
use std::process::Command;

use super::{no_complaints, root};

/// Packages with the features that cargo gives them when it builds tests of a selection: a line each.
fn resolved(selection: &[&str]) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--offline", "--edges", "normal,build,dev", "--prefix", "none", "--format", "{p}: {f}"]);
    let output = command.args(selection).current_dir(root()).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    // What cargo does not repeat it marks.
    text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).filter(|line| !line.is_empty()).collect()
}

#[test]
fn what_tests_build_has_the_features_of_the_workspace() {
    let workspace = resolved(&["--workspace"]);
    assert!(workspace.len() > 100, "only {} packages", workspace.len());
    // As `rewriter_tests::command` has it.
    for also in [None, Some("wavetap"), Some("wavetap-example-barriers")] {
        let packages = ["wavetap-cli", "rewriter-tests"].into_iter().chain(also);
        let selection: Vec<&str> = packages.flat_map(|name| ["--package", name]).collect();
        let others = resolved(&selection);
        let others = others.difference(&workspace);
        let complaint = |line: &String| format!("{line}: not so in the workspace ({})", selection.join(" "));
        no_complaints(others.map(complaint).collect());
    }
}
