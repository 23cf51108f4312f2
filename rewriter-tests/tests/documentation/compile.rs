//! Does what the guide for compiling says: writes the files that it shows, and runs its commands, as a shell would.
//!
//! A block whose language is followed by a file's name is that file. Of the commands only those of programs that are
//! not installed are left out, and these may be `hipcc` alone: the other packages are those that tests need anyway.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rewriter_tests::{command, place};

use crate::console::{commands, difference, prints};
use crate::page;

/// The page.
pub const PAGE: &str = "docs/guide/compile.md";
/// A program of ROCm's, which is large and is not what is tested here.
const OF_ROCM: &str = "hipcc";

/// The names and contents of the files that a page shows.
fn files(text: &str) -> Vec<(&str, String)> {
    let mut files: Vec<(&str, String)> = Vec::new();
    let (mut fenced, mut shown) = (false, false);
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            fenced = !fenced;
            shown = match language.split_once(' ') {
                Some((_, name)) if fenced => {
                    files.push((name, String::new()));
                    true
                }
                _ => false,
            };
        } else if let (true, Some((_, contents))) = (shown, files.last_mut()) {
            *contents += &format!("{line}\n");
        }
    }
    files
}

fn is_installed(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(program).is_file())
}

#[test]
fn what_the_guide_compiles_is_compiled_and_profiled() {
    let text = fs::read_to_string(page(PAGE)).expect("the page");
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path();
    symlink(place::root().join("hip-samples"), here.join("hip-samples")).expect("a link");
    for (name, contents) in files(&text) {
        fs::write(here.join(name), contents).expect("a file");
    }
    let wavetap = command::wavetap().expect("the command");
    let path =
        format!("{}:{}", wavetap.parent().expect("a folder").display(), std::env::var("PATH").expect("a search path"));
    let environment = [
        ("PATH", path.into()),
        ("XDG_CACHE_HOME", here.join("cache").into()),
        ("CMAKE_BUILD_PARALLEL_LEVEL", "1".into()),
    ];
    let (mut wrong, mut run, mut left_out) = (Vec::new(), 0, Vec::new());
    for shown in commands(&text) {
        let last = shown.command.split_whitespace().last().unwrap_or_default();
        if !is_installed(OF_ROCM) && (shown.command.starts_with(OF_ROCM) || last.ends_with(OF_ROCM)) {
            left_out.push(shown.command);
            continue;
        }
        run += 1;
        let outcome = command::run(Path::new("/bin/sh"), &["-c", shown.command], &environment, here);
        match outcome.and_then(|finished| finished.exited(0)) {
            Err(failure) => wrong.push(failure),
            Ok(finished) => {
                let out = finished.out();
                let lines: Vec<&str> = out.lines().collect();
                if !shown.output.is_empty() && !prints(&shown.output, &lines) {
                    let what = difference(&shown.output, &lines);
                    wrong.push(format!("{what}\n{}", finished.failure("prints something else")));
                } else if finished.err().contains("warning:") {
                    wrong.push(finished.failure("warns, and the page does not say so"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
    assert!(run > 20, "the page has commands");
    assert!(left_out.len() <= 2, "{left_out:?}");
}

/// What a newcomer installs is what tests compile with.
#[test]
fn the_packages_to_install_are_those_that_tests_compile_with() {
    let text = fs::read_to_string(page(PAGE)).expect("the page");
    let line = text.lines().find(|line| line.trim_start().starts_with("apt-get install")).expect("a line");
    let script = fs::read_to_string(page("test.sh")).expect("the script");
    let packages = |line: &str| -> Vec<String> {
        line.split(|c: char| !c.is_ascii_alphanumeric() && !"-+.".contains(c)).map(str::to_owned).collect()
    };
    let tested: Vec<String> = script.lines().filter(|line| line.starts_with("packages=")).flat_map(packages).collect();
    let named = line.split_whitespace().skip(2).filter(|word| !word.starts_with("--"));
    // Rust needs a linker, which brings a compiler of C, so what compiles C++ is not among them.
    let unknown: Vec<&str> = named.filter(|name| *name != "g++" && !tested.iter().any(|known| known == name)).collect();
    assert!(unknown.is_empty(), "not in test.sh: {unknown:?}");
}

#[test]
fn files_are_those_with_a_name() {
    let text = "```cpp a.hip\nint a;\n```\n\n```console\n$ true\n```\n```cpp b/c.h\n\nint b;\n```\n";
    let expected = [("a.hip", "int a;\n".to_owned()), ("b/c.h", "\nint b;\n".to_owned())];
    assert_eq!(files(text), expected);
}
