//! The hooks of `.githooks`, as git runs them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::root;

/// Runs a program in a folder, without the variables by which a git around this test names its own repository.
fn run(program: &str, arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        command.env_remove(variable);
    }
    command.output().unwrap_or_else(|e| panic!("{program}: {e}"))
}

/// What a hook says, if it refuses the commit.
fn refused(hook: &str, arguments: &[&str], folder: &Path) -> Option<String> {
    let path = root().join(".githooks").join(hook);
    let path = path.to_str().expect("a path in UTF-8");
    let output = run("sh", &[&[path], arguments].concat(), folder);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() == said.is_empty(), "{hook}: {said}");
    (!output.status.success()).then_some(said)
}

#[test]
fn subjects_have_at_most_72_characters() {
    let folder = tempfile::tempdir().expect("a folder");
    let says = |message: &str| {
        fs::write(folder.path().join("message"), message).expect("a message");
        refused("commit-msg", &["message"], folder.path())
    };
    // Characters, not bytes; comments and empty lines before the subject do not count, nor does the body.
    assert_eq!(says(&format!("\n# {0}\n{0}\n\n{0}{0}\n", "ü".repeat(72))), None);
    assert!(says(&"ü".repeat(73)).is_some_and(|said| said.contains("73 characters, at most 72")));
}

#[test]
fn staged_files_are_formatted_and_narrow() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    fs::create_dir(folder.path().join("src")).expect("a folder");
    write("Cargo.toml", "[package]\nname = \"sample\"\nedition = \"2024\"\n\n[workspace]\n");
    assert!(run("git", &["init", "--quiet"], folder.path()).status.success());
    let says = |text: &str| {
        write("src/lib.rs", text);
        assert!(run("git", &["add", "."], folder.path()).status.success());
        refused("pre-commit", &[], folder.path())
    };
    assert_eq!(says(&format!("// {}\npub fn a() {{}}\n", "ü".repeat(117))), None);
    let said = says(&format!("pub fn a() {{}}\n// {}\n", "ü".repeat(118))).expect("a line of 121 columns");
    assert!(said.contains("src/lib.rs: over 120 columns in line 2."), "{said}");
    let said = says("pub fn a( ) {}\n").expect("code that is not formatted");
    assert!(said.contains("`cargo fmt --all` formats it"), "{said}");
}
