//! Runs what the pages show as typed at a prompt, and compares what it prints.
//!
//! A block of the language `console` has commands after `$ ` and what they print. `…` on a line of its own stands for
//! any lines, and within a line for any text; runs of blanks are the same. A command without output is run all the
//! same, and so is one that is shown by itself, indented, with `./app` for the reader's program. The commands of all
//! pages run in one folder, in order, where the samples are as in the project: a reader follows more than one guide
//! there, and no command replaces a file unasked.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rewriter_tests::{command, place, words};

use crate::compile::PAGE;
use crate::page;

/// Pages with commands. Every page that has a block is here, or is that which is compiled from.
const PAGES: &[&str] = &[
    "README.md",
    "docs/guide/check.md",
    "docs/guide/compare.md",
    "docs/guide/coverage.md",
    "docs/guide/diff.md",
    "docs/guide/export.md",
    "docs/guide/fleet.md",
    "docs/guide/html.md",
    "docs/guide/inspect.md",
    "docs/guide/install.md",
    "docs/guide/launches.md",
    "docs/guide/memory-latency.md",
    "docs/guide/memory.md",
    "docs/guide/mix.md",
    "docs/guide/other-gpus.md",
    "docs/guide/profile.md",
    "docs/guide/replay.md",
    "docs/guide/roofline.md",
    "docs/guide/slice.md",
    "docs/guide/summary.md",
    "docs/guide/time.md",
    "docs/guide/values.md",
    "docs/reference/timing-model.md",
];
/// What an indented command needs that is not there: another program, libraries, a value of the reader's.
const NEEDED: &[&str] = &["python", "mpirun", "--stack rocm", "completions", "ORIGINAL"];
/// The sample that stands for the reader's program.
const APP: &str = "two_kernels";
/// What stands for any text.
const ANYTHING: &str = "…";

/// A command and the lines that it should print.
#[derive(Debug, PartialEq)]
pub struct Shown<'t> {
    pub command: &'t str,
    pub output: Vec<&'t str>,
}

/// The commands of a page.
pub fn commands(text: &str) -> Vec<Shown<'_>> {
    let mut shown: Vec<Shown> = Vec::new();
    let (mut fenced, mut console) = (false, false);
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            console = !fenced && language == "console";
            fenced = !fenced;
        } else if !fenced && line.starts_with("    wavetap ") {
            // What is far to the right explains it.
            let command = line.trim().split("   ").next().unwrap_or_default();
            if !NEEDED.iter().any(|needed| command.contains(needed)) {
                shown.push(Shown { command, output: Vec::new() });
            }
        } else if console {
            match (line.strip_prefix("$ "), shown.last_mut()) {
                (Some(command), _) => shown.push(Shown { command, output: Vec::new() }),
                (None, Some(last)) => last.output.push(line),
                (None, None) => panic!("a console block begins with output: {line}"),
            }
        }
    }
    shown
}

/// Whether `found` is what `expected` shows.
pub fn prints(expected: &[&str], found: &[&str]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((first, rest)) if first.trim() == ANYTHING => {
            (0..=found.len()).any(|skipped| prints(rest, &found[skipped..]))
        }
        Some((first, rest)) => {
            found.split_first().is_some_and(|(line, more)| is_line(first, line) && prints(rest, more))
        }
    }
}

fn is_line(expected: &str, found: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (expected, found) = (plain(expected), plain(found));
    let parts: Vec<&str> = expected.split(ANYTHING).map(str::trim).collect();
    let [first, middle @ .., last] = parts.as_slice() else { return expected == found };
    let Some(mut rest) = found.strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// What the output lacks: the first line of `expected` that is nowhere, or the order.
pub fn difference(expected: &[&str], found: &[&str]) -> String {
    let missing =
        expected.iter().find(|line| line.trim() != ANYTHING && !found.iter().any(|other| is_line(line, other)));
    missing.map_or_else(
        || "the lines are there, but others lie between them".into(),
        |line| format!("no such line: {line}"),
    )
}

fn check(name: &str, folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(page(name)).expect("a page");
    let wavetap = command::wavetap().expect("the command");
    let mut wrong = Vec::new();
    for shown in commands(&text) {
        let words: Vec<&str> = shown.command.split_whitespace().collect();
        let Some((&"wavetap", arguments)) = words.split_first() else {
            wrong.push(format!("{name}: {}: only commands of wavetap can be tried", shown.command));
            continue;
        };
        // With findings the exit code is 1.
        let finds = arguments.first() == Some(&"check") && shown.output.iter().any(|line| line.starts_with("error: "));
        let code = i32::from(finds);
        let outcome = command::run(&wavetap, arguments, &[], folder).and_then(|finished| finished.exited(code));
        match outcome {
            Err(failure) => wrong.push(format!("{name}: {failure}")),
            Ok(finished) => {
                let out = finished.out();
                let lines: Vec<&str> = out.lines().collect();
                if !shown.output.is_empty() && !prints(&shown.output, &lines) {
                    wrong.push(format!(
                        "{name}: {}\n{}",
                        difference(&shown.output, &lines),
                        finished.failure("prints something else")
                    ));
                }
            }
        }
    }
    wrong
}

#[test]
fn commands_print_what_the_pages_show() {
    let folder = tempfile::tempdir().expect("a folder");
    symlink(place::root().join("hip-samples"), folder.path().join("hip-samples")).expect("a link");
    fs::copy(place::samples().join(APP), folder.path().join("app")).expect("a program");
    let wrong: Vec<String> = PAGES.iter().flat_map(|name| check(name, folder.path())).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

#[test]
fn every_page_with_commands_is_tried() {
    let mut folders = vec![page("docs")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "md")
                && fs::read_to_string(&path).is_ok_and(|text| text.contains("\n```console\n"))
            {
                found.push(path);
            }
        }
    }
    let known = |path: &&std::path::PathBuf| !PAGES.iter().chain([&PAGE]).any(|name| page(name) == **path);
    let missing: Vec<&Path> = found.iter().filter(known).map(|path| path.as_path()).collect();
    assert!(missing.is_empty(), "not in PAGES: {missing:?}");
}

#[test]
fn help_has_no_banned_words() {
    let wavetap = command::wavetap().expect("the command");
    let here = place::root();
    let help = |arguments: &[&str]| {
        command::run(&wavetap, arguments, &[], here).and_then(|run| run.exited(0)).expect("help").out()
    };
    let summary = help(&["--help"]);
    let listed = |text: &str, head: &str| -> Vec<String> {
        text.lines()
            .skip_while(|line| *line != head)
            .skip(1)
            .take_while(|line| !line.is_empty())
            .filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')))
            .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
            .collect()
    };
    let names = listed(&summary, "Commands:");
    let forms = listed(&help(&["export", "--help"]), "Forms:");
    assert!(names.len() > 8 && forms.len() > 8, "{names:?} {forms:?}");
    let mut wrong = Vec::new();
    let of_command = names.iter().map(|name| (name.clone(), help(&[name, "--help"])));
    let of_form = forms.iter().map(|form| (format!("export {form}"), help(&["export", form, "--help"])));
    for (name, text) in of_command.chain(of_form).chain([("wavetap".to_owned(), summary.clone())]) {
        wrong.extend(words::banned(&text).map(|word| format!("wavetap {name} --help: {word:?}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn shown_output_can_differ() {
    let text = "# T\n\n    wavetap d e   why\n    wavetap f python\n\n```console\n$ wavetap a\nx  y …\n…\nz\n\
        $ wavetap b\n```\n\n```\n$ wavetap c\n```\n";
    let shown = commands(text);
    assert_eq!(shown.iter().map(|s| s.command).collect::<Vec<_>>(), ["wavetap d e", "wavetap a", "wavetap b"]);
    let expected = &shown[1].output;
    assert!(prints(expected, &["x y 1", "2", "3", "z"]) && prints(expected, &["x y", "z"]));
    assert!(
        !prints(expected, &["x y 1", "2"])
            && !prints(expected, &["y 1", "z"])
            && !prints(expected, &["x y", "z", "more"])
    );
    assert!(is_line("a … b … c", "a 1 b 2 c") && !is_line("a … b … c", "a 1 c 2 b"));
}
