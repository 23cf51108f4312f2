//! The module for Python: its own tests, with the command that was built, and in the full tests the notebook.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rewriter_tests::command;
use rewriter_tests::place::root;

use super::datasets::engines;

/// An interpreter: the one that has the engines, or else the system's.
fn python() -> PathBuf {
    engines().unwrap_or_else(|| PathBuf::from("python3"))
}

/// Runs Python with the module, and the command before others on PATH.
fn run(arguments: &[&str], folder: &Path) -> Output {
    let tool = command::wavetap().expect("the command is built");
    let beside = tool.parent().expect("a folder").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(beside).chain(std::env::split_paths(&path))).expect("a PATH");
    Command::new(python())
        .args(arguments)
        .current_dir(folder)
        .env("PATH", path)
        .env("PYTHONPATH", root().join("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("python3 starts")
}

#[test]
fn the_module_passes_its_tests() {
    let ended = run(&["-m", "unittest", "discover", "-s", "tests"], &root().join("python"));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let count = said.lines().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse::<u32>().ok());
    assert!(count.is_some_and(|count| count >= 14), "{said}");
}

#[test]
fn the_notebook_runs() {
    if std::env::var_os("WAVETAP_FULL_TESTS").is_none() {
        println!("skipped: of the full tests (WAVETAP_FULL_TESTS=1)");
        return;
    }
    let out = tempfile::tempdir().expect("a folder");
    let folder = out.path().to_str().expect("a path");
    let convert = ["-m", "nbconvert", "--to", "html", "--execute", "--output-dir", folder, "tour.ipynb"];
    let ended = run(&convert, &root().join("python"));
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let page = std::fs::read_to_string(out.path().join("tour.html")).expect("a page");
    assert!(page.contains("s_and_saveexec_b64 s[4:5], vcc"), "the sites are shown");
}
