//! Rules of the source tree that no compiler checks: which crate depends on which, import cycles, file length, where
//! `unsafe` may stand, words that have no place here.

mod crates;
mod cycles;
mod docs;
mod features;
mod hooks;
mod licences;
mod mnemonics;
mod source;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file over this many lines is two files.
const MAX_LINES: usize = 700;

/// Code, comments and prose have at most so many columns.
const COLUMNS: usize = 120;

/// Sources of the committed samples, whose debug information has line numbers: their lines do not move.
const LINES_DO_NOT_MOVE: &str = "hip-samples/src/";

/// Files where `unsafe` may stand: code that other programs load or that calls a C library, the command's one memory
/// map, and what it tells the allocator.
const UNSAFE_ALLOWED: &[&str] = &[
    "hip-emulator/src/",
    "kfd-emulator/src/",
    "hsa-tool/src/",
    "ranges/src/",
    "rewriter-tests/llvm-oracle/src/ffi.rs",
    "cli/src/map_file.rs",
    "cli/src/runtime.rs",
    "cli/src/memory.rs",
];

/// Module names that say nothing.
const EMPTY_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "manager", "common", "misc"];

/// The folder of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package is inside the workspace")
}

/// Every file of the project, relative to its root, sorted: what git tracks, or all files where there is no git.
fn project_files() -> Vec<PathBuf> {
    let git = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let mut files: Vec<PathBuf> = match git {
        Ok(out) if out.status.success() && !out.stdout.is_empty() => {
            String::from_utf8_lossy(&out.stdout).split('\0').filter(|p| !p.is_empty()).map(PathBuf::from).collect()
        }
        _ => walk(root())
            .into_iter()
            .map(|p| p.strip_prefix(root()).expect("walked from the root").to_path_buf())
            .collect(),
    };
    files.retain(|f| root().join(f).is_file());
    files.sort();
    assert!(files.iter().any(|f| f == Path::new("src/lib.rs")), "the project's files were not found");
    files
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("readable folder").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if name != "target" && name != ".git" {
                files.extend(walk(&path));
            }
        } else {
            files.push(path);
        }
    }
    files
}

/// The project's text files with one of these extensions.
fn texts(extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let wanted = |f: &Path| f.extension().is_some_and(|e| extensions.iter().any(|w| e == *w));
    let files = project_files().into_iter().filter(|f| wanted(f));
    files
        .map(|f| (f.clone(), fs::read_to_string(root().join(&f)).unwrap_or_else(|e| panic!("{}: {e}", f.display()))))
        .collect()
}

/// Fails with every complaint, one to a line.
fn no_complaints(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn no_stage_asks_for_the_text_of_a_mnemonic() {
    let table = fs::read_to_string(root().join("isa-tables/opcodes.yaml")).expect("the table of operations");
    let names = mnemonics::names(&table);
    assert!(names.len() > 2000);
    let mut complaints = mnemonics::missing(root());
    for (file, text) in texts(&["rs"]) {
        if mnemonics::is_product(&file) {
            complaints.extend(mnemonics::complaint(&file, &mnemonics::places(&text, &names)));
        }
    }
    no_complaints(complaints);
}

#[test]
fn crates_depend_only_on_what_the_table_allows() {
    let mut complaints = Vec::new();
    let mut seen = Vec::new();
    for (file, text) in texts(&["toml"]) {
        let Ok(inside) = file.strip_prefix("crates") else { continue };
        let name = inside.iter().next().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some((_, allowed)) = crates::TABLE.iter().find(|(known, _)| *known == name) else {
            complaints.push(format!(
                "{}: the table of rewriter-tests/tests/tidy/crates.rs does not have {name}",
                file.display()
            ));
            continue;
        };
        for dependency in crates::dependencies(&text).into_iter().filter(|dependency| !allowed.contains(dependency)) {
            complaints.push(format!("{}: {name} may not depend on {dependency}", file.display()));
        }
        seen.push(name);
    }
    let missing = crates::TABLE.iter().filter(|(name, _)| !seen.iter().any(|seen| seen == name));
    complaints.extend(missing.map(|(name, _)| format!("crates/{name} does not exist")));
    no_complaints(complaints);
}

#[test]
fn no_import_cycle_is_larger_than_a_folder() {
    let texts = texts(&["rs"]);
    let mut complaints = Vec::new();
    let manifests = project_files().into_iter().filter(|file| file.ends_with("Cargo.toml"));
    let folders: Vec<PathBuf> = manifests.map(|file| file.parent().expect("a file has a folder").to_owned()).collect();
    for folder in &folders {
        let files: Vec<(PathBuf, String)> = texts
            .iter()
            .filter_map(|(file, text)| Some((file.strip_prefix(folder.join("src")).ok()?.to_owned(), text.clone())))
            .collect();
        let name = folder.to_string_lossy();
        let allowed = cycles::ALLOWED.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, sizes)| *sizes);
        complaints.extend(cycles::complaint(&name, &cycles::Graph::of(&files).cycles(), allowed));
    }
    let gone = cycles::ALLOWED.iter().filter(|(known, _)| !folders.iter().any(|folder| folder == Path::new(known)));
    complaints.extend(gone.map(|(known, _)| format!("{known} is allowed to have cycles and is not there")));
    no_complaints(complaints);
}

#[test]
fn no_file_is_too_long() {
    let mut complaints = Vec::new();
    for (file, text) in texts(&["rs", "sh", "hip", "h", "py"]) {
        let lines = text.lines().count();
        if lines > MAX_LINES {
            complaints.push(format!("{}: {lines} lines, at most {MAX_LINES}", file.display()));
        }
    }
    no_complaints(complaints);
}

#[test]
fn no_line_of_code_is_too_long() {
    let mut complaints = Vec::new();
    let sources = texts(&["rs", "sh", "py", "hip", "c", "cpp", "h"]);
    for (file, text) in sources.into_iter().filter(|(file, _)| !file.starts_with(LINES_DO_NOT_MOVE)) {
        for (number, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS {
                complaints.push(format!("{}:{}: {columns} columns, at most {COLUMNS}", file.display(), number + 1));
            }
        }
    }
    no_complaints(complaints);
}

#[test]
fn unsafe_stands_only_where_it_must_and_says_why() {
    let mut complaints = Vec::new();
    for (file, text) in texts(&["rs"]) {
        let name = file.to_string_lossy().into_owned();
        let code = source::strip(&text);
        let original: Vec<&str> = text.lines().collect();
        for (number, line) in code.lines().enumerate() {
            if !source::words(line).any(|w| w == "unsafe") {
                continue;
            }
            if !UNSAFE_ALLOWED.iter().any(|allowed| name.starts_with(allowed)) {
                complaints.push(format!("{name}:{}: `unsafe` may not stand here", number + 1));
            } else if (line.contains("unsafe {") || line.contains("unsafe impl"))
                && !original[number.saturating_sub(8)..=number].iter().any(|l| l.contains("SAFETY"))
            {
                complaints.push(format!("{name}:{}: no SAFETY comment says why this is sound", number + 1));
            }
        }
    }
    let libraries =
        crates::TABLE.iter().map(|(name, _)| format!("crates/{name}/src/lib.rs")).chain(["src/lib.rs".to_owned()]);
    for library in libraries {
        if !fs::read_to_string(root().join(&library)).expect("a library").contains("#![forbid(unsafe_code)]") {
            complaints.push(format!("{library} does not forbid unsafe code"));
        }
    }
    no_complaints(complaints);
}

#[test]
fn messages_are_written_without_a_panic() {
    // Their errors end the process, and that can be an application's.
    let panicking = ["println!(", "print!("];
    let product = |file: &Path| {
        let mut parts = file.iter().map(|part| part.to_string_lossy());
        let first = parts.next().unwrap_or_default().into_owned();
        let in_source = first == "src" || parts.any(|part| part == "src");
        in_source
            && ["src", "cli", "crates", "hip-emulator", "hsa-tool", "kfd-emulator", "ranges"].contains(&first.as_str())
    };
    let mut complaints = Vec::new();
    for (file, text) in texts(&["rs"]).into_iter().filter(|(file, _)| product(file)) {
        for (number, line) in source::strip(&text).lines().enumerate() {
            if panicking.iter().any(|w| line.contains(w)) {
                complaints.push(format!("{}:{}: use stderr_line!", file.display(), number + 1));
            }
        }
    }
    no_complaints(complaints);
}

#[test]
fn nothing_is_left_unfinished() {
    let mut complaints = Vec::new();
    for (file, text) in texts(&["rs"]) {
        for (number, line) in source::strip(&text).lines().enumerate() {
            if ["todo!(", "unimplemented!(", "dbg!("].iter().any(|w| line.contains(w)) {
                complaints.push(format!("{}:{}: {}", file.display(), number + 1, line.trim()));
            }
        }
    }
    no_complaints(complaints);
}

#[test]
fn names_say_something() {
    let empty = |file: &PathBuf| {
        file.iter().any(|part| EMPTY_NAMES.iter().any(|n| Path::new(part).file_stem().is_some_and(|s| s == *n)))
    };
    no_complaints(
        project_files()
            .iter()
            .filter(|f| empty(f))
            .map(|f| format!("{}: a name that says nothing", f.display()))
            .collect(),
    );
}

#[test]
fn no_file_names_a_machine_or_a_registry() {
    // Put together here, so that this file does not contain them.
    let words: Vec<String> = [
        ["/wo", "rk/"],
        ["/ho", "me/"],
        ["crates", ".io"],
        ["pypi", ".org"],
        ["deb.", "debian.org"],
        ["proxy.", "golang"],
    ]
    .iter()
    .map(|parts| parts.concat())
    .collect();
    let mut complaints = Vec::new();
    for file in project_files() {
        // Cargo writes its registry's name itself.
        if file == Path::new("Cargo.lock") {
            continue;
        }
        let bytes = fs::read(root().join(&file)).expect("readable file");
        for word in &words {
            if let Some(at) = bytes.windows(word.len()).position(|w| w == word.as_bytes()) {
                let line = bytes[..at].iter().filter(|b| **b == b'\n').count() + 1;
                complaints.push(format!("{}:{line}: {word}", file.display()));
            }
        }
    }
    no_complaints(complaints);
}

#[test]
fn every_binary_and_library_folder_is_in_the_workspace() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace manifest");
    let members = project_files().into_iter().filter(|f| f.ends_with("Cargo.toml") && f != Path::new("Cargo.toml"));
    let missing = members
        .map(|f| f.parent().expect("a file has a folder").display().to_string())
        .filter(|m| !manifest.contains(&format!("\"{m}\"")));
    no_complaints(missing.map(|m| format!("{m} is no member of the workspace: its tests do not run")).collect());
}
