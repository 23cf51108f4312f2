//! The module table: what each module of the library may import. A checker that shared code with what it checks would repeat
//! its errors, so `verify` and `emulator` import nothing of the stages that rewrite.

use std::path::Path;

use crate::source::{is_word, strip};

/// A module and the modules it may import; `error`, `bytes`, `entity` and `glob` may be imported everywhere.
const TABLE: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("bytes", &[]),
    ("entity", &[]),
    ("glob", &[]),
    ("elf", &[]),
    ("offload_bundle", &["elf"]),
    ("code_object", &["elf", "isa"]),
    ("isa", &[]),
    ("profile", &[]),
    ("kernel", FORMATS),
    ("cfg", &["elf", "offload_bundle", "code_object", "isa", "profile", "kernel"]),
    ("dataflow", &["elf", "offload_bundle", "code_object", "isa", "profile", "kernel", "cfg"]),
    ("instrument", &["elf", "offload_bundle", "code_object", "isa", "profile", "kernel", "cfg", "dataflow"]),
    ("layout", &["elf", "code_object", "isa", "kernel", "cfg"]),
    ("emit", &["elf", "offload_bundle", "code_object", "isa", "profile", "kernel", "cfg", "layout"]),
    ("verify", &["elf", "offload_bundle", "code_object", "isa", "profile", "kernel", "cfg", "dataflow"]),
    ("emulator", &["elf", "code_object", "isa", "profile"]),
    ("slice", &["elf", "offload_bundle", "code_object", "isa", "profile", "kernel", "cfg", "dataflow"]),
    // Prints what the checker found as it prints profiles and slices.
    ("report", &["elf", "code_object", "isa", "profile", "slice", "verify"]),
    ("pipeline", EVERYTHING),
];

const FORMATS: &[&str] = &["elf", "offload_bundle", "code_object", "isa", "profile"];
const EVERYTHING: &[&str] = &["*"];
const GROUND: &[&str] = &["error", "bytes", "entity", "glob"];

/// What is wrong with the imports of `text`, the library's source file `inside` (relative to `src/`).
pub fn complaints(inside: &Path, text: &str) -> Vec<String> {
    let mut parts: Vec<String> = inside.with_extension("").iter().map(|p| p.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|p| p == "mod" || p == "lib") {
        parts.pop();
    }
    // lib.rs declares; it imports nothing that could break the table.
    let Some(module) = parts.first() else { return Vec::new() };
    let Some((_, allowed)) = TABLE.iter().find(|(name, _)| name == module) else {
        return vec![format!("module {module} is not in the table of rewriter-tests/tests/tidy/imports.rs: say what it may import")];
    };
    let code = strip(text);
    let mut complaints = Vec::new();
    for (line, imported) in root_paths(&code, parts.len()) {
        let known = TABLE.iter().any(|(name, _)| *name == imported);
        let fine =
            imported == *module || allowed.contains(&imported.as_str()) || *allowed == EVERYTHING || GROUND.contains(&imported.as_str());
        if !fine && (known || imported == "*") {
            complaints.push(format!("line {line}: {module} may not import {imported}"));
        }
    }
    complaints
}

/// The first segments of all paths from the crate's root, with their lines: `crate::a::b`, `use crate::{a, b::c}`, and
/// `super::…` chains that climb out of a file whose module is `depth` segments deep.
fn root_paths(code: &str, depth: usize) -> Vec<(usize, String)> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    // Braces that are open, and whether each belongs to an inline module.
    let mut braces: Vec<bool> = Vec::new();
    let mut at = 0;
    let mut before = ["", ""];
    while at < bytes.len() {
        if bytes[at] == b'{' {
            braces.push(before[0] == "mod");
        } else if bytes[at] == b'}' {
            braces.pop();
        }
        if !is_word(bytes[at]) {
            if bytes[at] == b';' {
                before = ["", ""];
            }
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_word(bytes[at]) {
            at += 1;
        }
        let word = &code[start..at];
        before = [before[1], word];
        let tail = match word {
            "crate" => code[at..].trim_start().strip_prefix("::"),
            "super" => {
                let deep = depth + braces.iter().filter(|m| **m).count();
                let mut climbed = 1;
                let mut rest = code[at..].trim_start();
                while let Some(next) = rest.strip_prefix("::").map(str::trim_start).and_then(|r| r.strip_prefix("super")) {
                    climbed += 1;
                    rest = next.trim_start();
                }
                at = code.len() - rest.len();
                rest.strip_prefix("::").filter(|_| climbed == deep)
            }
            _ => None,
        };
        if let Some(tail) = tail {
            let line = code[..start].matches('\n').count() + 1;
            found.extend(heads(tail.trim_start()).into_iter().map(|h| (line, h)));
        }
    }
    found
}

/// The first segment of a path, or of each path of a group.
fn heads(tail: &str) -> Vec<String> {
    if let Some(group) = tail.strip_prefix('{') {
        let mut heads = Vec::new();
        let (mut depth, mut from) = (0, 0);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    heads.extend(heads_of_one(&group[from..at]));
                    from = at + 1;
                    if c == '}' {
                        break;
                    }
                }
                _ => {}
            }
        }
        return heads;
    }
    heads_of_one(tail).into_iter().collect()
}

fn heads_of_one(path: &str) -> Option<String> {
    let path = path.trim_start();
    if path.starts_with('*') {
        return Some("*".into());
    }
    let head: String = path.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    (!head.is_empty()).then_some(head)
}

#[test]
fn finds_forbidden_imports_in_every_spelling() {
    let bad = |file: &str, text: &str| complaints(Path::new(file), text).len();
    assert_eq!(bad("emulator/wave.rs", "use crate::isa::Inst;\nuse crate::{error::Error, profile};"), 0);
    assert_eq!(bad("emulator/wave.rs", "use crate::{isa::Inst,\n layout::{A, B}, emit};"), 2);
    assert_eq!(bad("emulator/wave.rs", "fn f() { crate::cfg::build() }"), 1);
    assert_eq!(bad("emulator/wave.rs", "use super::super::cfg;"), 1);
    assert_eq!(bad("emulator/wave.rs", "use super::cfg;"), 0, "a module of its own of that name");
    assert_eq!(bad("emulator/wave.rs", "mod tests { use super::super::cfg; }"), 0, "the same from an inline module");
    assert_eq!(bad("emulator/mod.rs", "mod tests { use super::super::cfg; }"), 1);
    assert_eq!(bad("emulator/mod.rs", "use crate::*;"), 1);
    assert_eq!(bad("emulator/mod.rs", "// use crate::cfg;\n/// [`crate::cfg`]\nconst S: &str = \"crate::cfg\";"), 0);
    assert_eq!(bad("unheard_of.rs", ""), 1);
    assert_eq!(bad("pipeline/mod.rs", "use crate::{layout, emit};"), 0);
}
