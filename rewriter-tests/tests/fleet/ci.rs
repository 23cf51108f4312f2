//! The files of `examples/ci`, as a CI system would run them: every command of their steps, on two versions of a
//! program. A version that is like its base passes; one that diverges more or moves more bytes fails in the last step.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;

use rewriter_tests::{command, hip, place};
use serde_yaml::Value;
use tempfile::TempDir;

const SOURCE: &str = include_str!("app.hip");
const MAKEFILE: &str = "app: app.hip\n\tclang++-19 $(HIP_FLAGS) app.hip -o app -lamdhip64\n";
/// What a version does otherwise, by the names in the source, and the condition that holds where it is worse.
const VERSIONS: [(&str, &str, Option<&str>); 3] = [
    ("same", "", None),
    ("diverges", "#define DIVERGES\n", Some("divergences>+5%")),
    ("traffic", "#define TRAFFIC\n", Some("global_bytes>+5%")),
];

/// The device libraries as the compiler wants them.
static LIBRARY: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    hip::device_libraries(folder.path()).expect("device libraries");
    folder
});

fn recipe(name: &str) -> Value {
    let path = place::root().join("examples/ci").join(name);
    serde_yaml::from_str(&fs::read_to_string(path).expect("a recipe")).expect("YAML")
}

/// Variables of a mapping.
fn variables(mapping: &Value) -> BTreeMap<String, String> {
    let pairs = mapping.as_mapping().expect("variables");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    pairs.iter().map(|(name, value)| (text(name), text(value))).collect()
}

fn write_version(folder: &Path, define: &str) {
    fs::create_dir_all(folder).expect("a folder");
    fs::write(folder.join("app.hip"), format!("{define}{SOURCE}")).expect("a source");
    fs::write(folder.join("Makefile"), MAKEFILE).expect("a makefile");
}

/// Runs commands as both systems do: a shell that ends at the first one that fails.
fn shell(script: &str, folder: &Path, variables: &BTreeMap<String, String>) -> Output {
    let wavetap = command::wavetap().expect("the command is built");
    let path = format!(
        "{}:{}",
        wavetap.parent().expect("its folder").display(),
        std::env::var("PATH").expect("where programs are")
    );
    let flags = format!(
        "-w -x hip -std=c++17 -O2 -gline-tables-only --offload-arch=gfx90a --rocm-device-lib-path={}",
        LIBRARY.path().display()
    );
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", script]).current_dir(folder).envs(variables).env("PATH", path).env("HIP_FLAGS", flags);
    shell.output().expect("a shell starts")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Steps that succeed, and the last one, which ends with 1 where a condition holds.
fn expect_steps(
    name: &str,
    steps: &[String],
    folder: &Path,
    variables: &BTreeMap<String, String>,
    worse: Option<&str>,
) {
    let (last, first) = steps.split_last().expect("steps");
    for step in first {
        let ended = shell(step, folder, variables);
        assert_eq!(ended.status.code(), Some(0), "{name}: {step}\n{}", said(&ended));
    }
    assert!(last.contains("wavetap diff"), "{last}");
    let ended = shell(last, folder, variables);
    assert_eq!(ended.status.code(), Some(i32::from(worse.is_some())), "{name}: {last}\n{}", said(&ended));
    if let Some(condition) = worse {
        assert!(said(&ended).contains(&format!("condition holds: {condition}")), "{name}: {}", said(&ended));
    }
}

#[test]
fn github() {
    let recipe = recipe("github.yml");
    let job = &recipe["jobs"]["kernels"];
    let variables = variables(&job["env"]);
    let steps = job["steps"].as_sequence().expect("steps");
    let checkouts: Vec<&str> = steps
        .iter()
        .filter(|step| step["uses"].as_str().is_some_and(|action| action.starts_with("actions/checkout@")))
        .map(|step| step["with"]["path"].as_str().expect("where to"))
        .collect();
    assert_eq!(checkouts, ["base", "head"], "what the test puts there instead");
    let commands: Vec<String> = steps.iter().filter_map(|step| step["run"].as_str().map(str::to_owned)).collect();
    let uploaded = steps.iter().find_map(|step| step["with"]["sarif_file"].as_str()).expect("what is uploaded");
    for (name, define, worse) in VERSIONS {
        let folder = tempfile::tempdir().expect("a folder");
        write_version(&folder.path().join("base"), "");
        write_version(&folder.path().join("head"), define);
        expect_steps(name, &commands, folder.path(), &variables, worse);
        let sarif = fs::read_to_string(folder.path().join(uploaded)).expect("what is uploaded");
        let sarif: serde_json::Value = serde_json::from_str(&sarif).expect("JSON");
        assert_eq!(sarif["version"], "2.1.0", "{name}");
        assert!(sarif["runs"].as_array().is_some_and(|runs| !runs.is_empty()), "{name}");
    }
}

#[test]
fn gitlab() {
    let recipe = recipe("gitlab.yml");
    let job = &recipe["kernels"];
    let mut variables = variables(&job["variables"]);
    let script = job["script"].as_sequence().expect("a script");
    let commands: Vec<String> = script.iter().map(|line| line.as_str().expect("a command").to_owned()).collect();
    let report = job["artifacts"]["reports"]["junit"].as_str().expect("a report");
    for (name, define, worse) in VERSIONS {
        let folder = tempfile::tempdir().expect("a folder");
        let project = folder.path().join("project");
        write_version(&project, "");
        let git = |arguments: &str| {
            let line = format!("git -c user.name=t -c user.email=t@example.org -c init.defaultBranch=main {arguments}");
            let ended = shell(&line, &project, &BTreeMap::new());
            assert_eq!(ended.status.code(), Some(0), "{line}\n{}", said(&ended));
            String::from_utf8_lossy(&ended.stdout).trim().to_owned()
        };
        git("init -q");
        git("add .");
        git("commit -q -m base");
        variables.insert("CI_MERGE_REQUEST_DIFF_BASE_SHA".to_owned(), git("rev-parse HEAD"));
        write_version(&project, define);
        git("commit -q -a --allow-empty -m head");
        expect_steps(name, &commands, &project, &variables, worse);
        let junit = fs::read_to_string(project.join(report)).expect("a report");
        assert!(junit.contains("<testsuites") && !junit.contains("<failure"), "{name}: {junit}");
    }
}
