//! The table of what tests cost, which `test.sh` writes: what is read from the output of `cargo test`, and that neither
//! the output nor the exit code of the tests is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use rewriter_tests::place;

/// As cargo and the two harnesses write it.
const LOG: &str = "\
   Compiling wavetap v0.1.0 (/somewhere)
     Running unittests src/lib.rs (target/debug/deps/wavetap_base-0123456789abcdef)

running 2 tests
..
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.04s

     Running tests/all/main.rs (target/debug/deps/all-fedcba9876543210)

running 3 tests
test odd ... FAILED

---- odd stdout ----
what was wrong
test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 5 filtered out; finished in 61.26s

error: test failed, to rerun pass `-p wavetap-base --test all`
\u{1b}[32m     Running\u{1b}[0m unittests src/main.rs (target/debug/deps/wavetap-0000000000000001)
\u{1b}[32m     Running\u{1b}[0m tests/kernels.rs (target/debug/deps/kernels-0000000000000002)
error: test failed, to rerun pass `-p rewriter-tests --test kernels`
Caused by:
  process didn't exit successfully: `target/debug/deps/kernels-0000000000000002` (signal: 6, SIGABRT)
   Doc-tests wavetap_base

running 4 tests
test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.30s

running 1 test
test result: ok. 0 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

all doctests ran in 1.52s; merged doctests compilation took 1.21s
error: 2 targets failed:
";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn each_program_has_a_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    fs::write(&log, LOG).expect("a file");
    let script = place::root().join("rewriter-tests/test-times.awk");
    let read = Command::new("awk").arg("-f").arg(script).arg(&log).output().expect("awk runs");
    let expected = [
        "wavetap_base, unit tests\t0.0\t2\t0\t0",
        "wavetap_base: all\t61.3\t1\t1\t1",
        "wavetap, unit tests\t-\t0\t0\t0",
        "wavetap: kernels\t-\t0\t0\t0",
        "wavetap_base, documentation\t1.5\t4\t1\t0",
    ];
    assert!(read.status.success(), "{}", text(&read.stderr));
    assert_eq!(text(&read.stdout).lines().collect::<Vec<_>>(), expected);
}

/// Runs `test.sh` in a folder of its own, where `cargo` writes [`LOG`] instead of running tests, and ends with a code.
fn run(code: u8) -> (Output, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    for made in ["bin", "rewriter-tests"] {
        fs::create_dir(path(made)).expect("a folder");
    }
    for name in ["test.sh", "rewriter-tests/test-times.awk"] {
        fs::copy(place::root().join(name), path(name)).expect("a copy");
    }
    fs::write(path("log"), LOG).expect("a file");
    let program = |name: &str, text: &str| {
        let file = path("bin").join(name);
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it is ours");
    };
    let log = path("log");
    program("cargo", &format!("[ \"$1\" = test ] || exit 0\ncat '{}' >&2\nexit {code}", log.display()));
    program("dpkg-query", "echo install ok installed");
    let search = std::env::var("PATH").unwrap_or_default();
    let ran = Command::new("bash")
        .arg(path("test.sh"))
        .arg("--no-install")
        .env("PATH", format!("{}:{search}", path("bin").display()))
        .output()
        .expect("bash runs");
    let table = fs::read_to_string(path("target/ci-times.txt")).unwrap_or_default();
    (ran, table)
}

#[test]
fn the_output_of_tests_their_exit_code_and_the_table_are_all_there() {
    let (ran, table) = run(101);
    let out = text(&ran.stdout);
    assert_eq!(ran.status.code(), Some(101), "{out}{}", text(&ran.stderr));
    assert!(out.contains("what was wrong"), "{out}");
    assert!(out.ends_with(&table), "{out}\n---\n{table}");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let steps: Vec<&str> = rows.iter().take(5).map(|row| row[0]).collect();
    assert_eq!(steps, ["step", "fmt", "clippy", "doc", "test"]);
    assert!(rows[1..5].iter().all(|row| row.len() == 3 && row[1..].iter().all(|n| n.parse::<f64>().is_ok())));
    // The longest first.
    assert_eq!(rows[6], ["test", "program", "seconds", "passed", "ignored", "failed"]);
    assert_eq!(rows[7], ["wavetap_base:", "all", "61.3", "1", "1", "1"]);
    assert_eq!(rows.len(), 12);
    assert_eq!(run(0).0.status.code(), Some(0));
}
