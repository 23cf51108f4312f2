//! Import cycles: the files of a crate import each other, and where they do so in a circle none of them can be read,
//! tested or moved without the others. A cycle may be as large as a folder, which is then one thing; never larger.
//!
//! The graph has an edge from each file to those that define what it names: `crate::…`, `super::…`, `self::…` and
//! paths that begin with a module of its own, in `use` declarations and elsewhere. Re-exports are followed to what
//! they export. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::source;

/// Cycles larger than a folder that crates still have: of each the number of its files, in descending order. Cycles
/// are only taken from this list, and only become smaller.
pub const ALLOWED: &[(&str, &[usize])] =
    &[("crates/amdgpu", &[11, 3]), ("crates/profile", &[2]), ("rewriter-tests", &[2])];

/// How many re-exports a path may go through.
const MOST_REEXPORTS: usize = 8;

/// What begins an item other than a declaration of a module or an import.
const ITEMS: &[&str] = &["fn", "struct", "enum", "union", "trait", "const", "static", "type", "impl", "macro_rules"];

/// A file of a crate, as module.
#[derive(Debug, Default)]
struct Module {
    /// The names that it defines.
    items: BTreeSet<String>,
    /// What its imports call what they import, and the paths.
    imports: Vec<(String, Vec<String>)>,
    /// The other paths that it names.
    paths: Vec<Vec<String>>,
    /// The modules that only tests have.
    tests: Vec<String>,
}

/// Names of modules, from the root of the crate.
type ModulePath = Vec<String>;

/// The imports between the files of one crate.
#[derive(Debug)]
pub struct Graph {
    files: BTreeMap<ModulePath, PathBuf>,
    modules: BTreeMap<ModulePath, Module>,
}

impl Graph {
    /// Of the texts of the files in a crate's `src`, named relative to it.
    pub fn of(files: &[(PathBuf, String)]) -> Graph {
        let mut graph = Graph { files: BTreeMap::new(), modules: BTreeMap::new() };
        for (file, text) in files {
            graph.files.insert(module_path(file), file.clone());
            graph.modules.insert(module_path(file), read(text));
        }
        let tests: Vec<ModulePath> =
            graph.modules.iter().flat_map(|(path, module)| module.tests.iter().map(|name| child(path, name))).collect();
        let is_test = |path: &ModulePath| tests.iter().any(|test| path.starts_with(test));
        graph.files.retain(|path, _| !is_test(path));
        graph.modules.retain(|path, _| !is_test(path));
        graph
    }

    /// The cycles that are larger than a folder: their files, and the imports in them that lead to another folder.
    pub fn cycles(&self) -> Vec<Cycle> {
        let imports: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> =
            self.modules.keys().filter(|path| self.is_node(path)).map(|path| (path, self.imported(path))).collect();
        let mut cycles: Vec<Cycle> = components(&imports)
            .into_iter()
            .filter(|members| members.iter().any(|path| self.folder(path) != self.folder(members[0])))
            .map(|members| {
                let crossing = members.iter().flat_map(|from| imports[*from].iter().map(|to| (*from, *to)));
                let crossing = crossing
                    .filter(|(from, to)| members.contains(to) && self.folder(from) != self.folder(to))
                    .map(|(from, to)| format!("{} → {}", self.files[from].display(), self.files[to].display()));
                Cycle { size: members.len(), imports: crossing.collect() }
            })
            .collect();
        cycles.sort_by_key(|cycle| usize::MAX - cycle.size);
        cycles
    }

    /// The folder of a file: `a.rs`, `a/mod.rs` and `a/b.rs` are of the folder `a`, `a/b.rs` is of `a/b` if that is a
    /// folder.
    fn folder(&self, path: &ModulePath) -> ModulePath {
        let has_children = self.modules.keys().any(|other| other.len() > path.len() && other.starts_with(path));
        if path.len() < 2 || has_children { path.clone() } else { path[..path.len() - 1].to_vec() }
    }

    /// Whether a module is more than declarations of others.
    fn is_node(&self, path: &ModulePath) -> bool {
        !path.is_empty() || !self.modules[path].items.is_empty()
    }

    /// The modules that define what a module names, itself apart.
    fn imported(&self, path: &ModulePath) -> BTreeSet<&ModulePath> {
        let module = &self.modules[path];
        let paths = module.imports.iter().filter(|(name, _)| !name.starts_with("pub ")).map(|(_, path)| path);
        let found = paths.chain(&module.paths).filter_map(|named| self.resolve(path, named, MOST_REEXPORTS));
        found.filter(|found| *found != path && self.is_node(found)).collect()
    }

    /// The module that defines what `named` means in the module `at`; none if that is outside of the crate.
    fn resolve(&self, at: &ModulePath, named: &[String], reexports: usize) -> Option<&ModulePath> {
        let (mut here, mut rest) = match named.first()?.as_str() {
            "crate" => (Vec::new(), &named[1..]),
            "self" => (at.clone(), &named[1..]),
            "super" => (at[..at.len().checked_sub(1)?].to_vec(), &named[1..]),
            first if self.modules.contains_key(&child(at, first)) => (at.clone(), named),
            _ => return None,
        };
        while rest.first().is_some_and(|name| name == "super") {
            here.pop()?;
            rest = &rest[1..];
        }
        while let Some(name) = rest.first() {
            let below = child(&here, name);
            if self.modules.contains_key(&below) {
                (here, rest) = (below, &rest[1..]);
                continue;
            }
            let module = self.modules.get(&here)?;
            if !module.items.contains(name)
                && let Some(found) = self.reexported(&here, module, rest, reexports)
            {
                return Some(found);
            }
            break;
        }
        self.modules.get_key_value(&here).map(|(path, _)| path)
    }

    /// The module that defines what a module does not define itself but imports.
    fn reexported(&self, at: &ModulePath, module: &Module, rest: &[String], reexports: usize) -> Option<&ModulePath> {
        let fewer = reexports.checked_sub(1)?;
        let as_name = |name: &str| name.strip_prefix("pub ").unwrap_or(name).to_owned();
        if let Some((_, path)) = module.imports.iter().find(|(name, _)| as_name(name) == rest[0]) {
            let further: Vec<String> = path.iter().chain(&rest[1..]).cloned().collect();
            return self.resolve(at, &further, fewer);
        }
        let globs = module.imports.iter().filter(|(name, _)| as_name(name) == "*");
        let mut targets = globs.filter_map(|(_, path)| self.resolve(at, path, fewer));
        targets.find(|target| self.modules[*target].items.contains(&rest[0]))
    }
}

/// A strongly connected component of the imports that is larger than a folder.
#[derive(Debug, PartialEq, Eq)]
pub struct Cycle {
    size: usize,
    imports: Vec<String>,
}

/// What is wrong with the cycles of a crate.
pub fn complaint(name: &str, cycles: &[Cycle], allowed: &[usize]) -> Option<String> {
    let sizes: Vec<usize> = cycles.iter().map(|cycle| cycle.size).collect();
    if sizes == allowed {
        return None;
    }
    let fewer = sizes.len() <= allowed.len() && sizes.iter().zip(allowed).all(|(size, allowed)| size <= allowed);
    if fewer {
        return Some(format!("{name}: import cycles of {sizes:?} files, {allowed:?} are allowed: lower the numbers"));
    }
    let imports: Vec<&str> = cycles.iter().flat_map(|cycle| &cycle.imports).map(String::as_str).collect();
    Some(format!(
        "{name}: import cycles of {sizes:?} files that are larger than a folder, {allowed:?} are allowed:\n  {}",
        imports.join("\n  ")
    ))
}

fn child(path: &ModulePath, name: &str) -> ModulePath {
    path.iter().cloned().chain([name.to_owned()]).collect()
}

/// `a/b` of `a/b.rs` and `a/b/mod.rs`; nothing of `lib.rs` and `main.rs`.
fn module_path(file: &Path) -> ModulePath {
    let mut path: ModulePath = file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let name = path.last().cloned().unwrap_or_default();
    if name == "mod" || (path.len() == 1 && (name == "lib" || name == "main")) {
        path.pop();
    }
    path
}

/// Reads what a file defines and names.
fn read(text: &str) -> Module {
    let code = source::strip(text);
    let tokens = tokens(&code);
    let mut module = Module::default();
    let (mut at, mut depth) = (0, 0_u32);
    while at < tokens.len() {
        let public = at > 0 && (tokens[at - 1] == "pub" || tokens[at - 1] == ")");
        match tokens[at] {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "#" if is_cfg_test(&tokens[at..]) => {
                at = skip_item(&tokens, at, &mut module.tests);
                continue;
            }
            "use" => {
                let end = at + tokens[at..].iter().position(|token| *token == ";").unwrap_or(tokens.len() - at);
                let mut imports = Vec::new();
                expand(&tokens[at + 1..end], &mut 0, &Vec::new(), &mut imports);
                // What a function imports, only it sees.
                let exports = depth == 0 && public;
                module.imports.extend(
                    imports.into_iter().map(|(name, path)| (if exports { format!("pub {name}") } else { name }, path)),
                );
                at = end;
            }
            "impl" if depth == 0 => drop(module.items.insert("impl".to_owned())),
            word if ITEMS.contains(&word) && depth == 0 => {
                let name = tokens[at + 1..].iter().find(|token| !matches!(**token, "!" | "fn" | "mut"));
                module.items.extend(name.map(|name| (*name).to_owned()));
            }
            word if is_name(word) && (at == 0 || tokens[at - 1] != "::") => {
                let is_visibility = at > 1 && tokens[at - 1] == "in" && tokens[at - 2] == "(";
                let mut path = vec![word.to_owned()];
                while tokens.get(at + 1) == Some(&"::") && tokens.get(at + 2).is_some_and(|token| is_name(token)) {
                    path.push(tokens[at + 2].to_owned());
                    at += 2;
                }
                if path.len() > 1 && !is_visibility {
                    module.paths.push(path);
                }
            }
            _ => {}
        }
        at += 1;
    }
    module
}

fn is_name(token: &str) -> bool {
    token.bytes().next().is_some_and(|byte| source::is_word(byte) && !byte.is_ascii_digit())
}

/// Words, `::` and other characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let word = rest.bytes().take_while(|byte| source::is_word(*byte)).count();
        let length = if word > 0 {
            word
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            tokens.push(&rest[..length]);
        }
        rest = &rest[length..];
    }
    tokens
}

/// Whether an attribute stands here that leaves the next item to tests.
fn is_cfg_test(tokens: &[&str]) -> bool {
    let end = tokens.iter().position(|token| *token == "]").unwrap_or(0);
    let attribute = &tokens[..end];
    attribute.get(2) == Some(&"cfg") && attribute.contains(&"test") && !attribute.contains(&"not")
}

/// Where the item behind an attribute ends. The name of a module that is declared here is added to `modules`.
fn skip_item(tokens: &[&str], mut at: usize, modules: &mut Vec<String>) -> usize {
    let mut depth = 0_u32;
    let mut is_import = false;
    while at < tokens.len() {
        match tokens[at] {
            "[" | "(" | "{" => depth += 1,
            "]" | ")" => depth = depth.saturating_sub(1),
            "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && !is_import {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            "use" if depth == 0 => is_import = true,
            "mod" if depth == 0 && tokens.get(at + 2) == Some(&";") => modules.push(tokens[at + 1].to_owned()),
            _ => {}
        }
        at += 1;
    }
    at
}

/// The names that a tree of imports brings in, and their paths.
fn expand(tokens: &[&str], at: &mut usize, before: &ModulePath, out: &mut Vec<(String, ModulePath)>) {
    let mut path = before.clone();
    while let Some(token) = tokens.get(*at) {
        *at += 1;
        match *token {
            "{" => {
                while tokens.get(*at).is_some_and(|token| *token != "}") {
                    expand(tokens, at, &path, out);
                    *at += usize::from(tokens.get(*at) == Some(&","));
                }
                *at += 1;
                return;
            }
            "*" => return out.push(("*".to_owned(), path)),
            "as" => {
                let name = tokens.get(*at).map_or_else(String::new, |name| (*name).to_owned());
                *at += 1;
                return out.push((name, path));
            }
            "::" => {}
            // `a::{self, b}`.
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
        if matches!(tokens.get(*at), None | Some(&"," | &"}")) {
            break;
        }
    }
    if let Some(name) = path.last().cloned() {
        out.push((name, path));
    }
}

/// The strongly connected components of more than one node.
fn components<'a>(imports: &BTreeMap<&'a ModulePath, BTreeSet<&'a ModulePath>>) -> Vec<Vec<&'a ModulePath>> {
    let reached: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> = imports
        .keys()
        .map(|start| {
            let (mut seen, mut waiting) = (BTreeSet::new(), vec![*start]);
            while let Some(path) = waiting.pop() {
                waiting.extend(imports[path].iter().filter(|to| seen.insert(**to)));
            }
            (*start, seen)
        })
        .collect();
    let mut found: BTreeSet<Vec<&ModulePath>> = BTreeSet::new();
    for (path, seen) in &reached {
        let circle: Vec<&ModulePath> = seen.iter().filter(|to| reached[**to].contains(path)).copied().collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Graph {
        Graph::of(&files.iter().map(|(file, text)| (PathBuf::from(file), (*text).to_owned())).collect::<Vec<_>>())
    }

    fn imports(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        graph(files).cycles().into_iter().map(|cycle| cycle.imports).collect()
    }

    const ROOT: (&str, &str) = ("lib.rs", "mod a; mod b; mod c; pub use b::B;");

    #[test]
    fn a_cycle_between_folders_is_found_wherever_its_imports_stand() {
        let b = ("b/mod.rs", "mod inner; pub use inner::B; pub fn f() {}");
        let inner = ("b/inner.rs", "use crate::{c, a::{self, A}}; pub struct B;");
        let cycle = vec![vec!["a.rs → b/inner.rs".to_owned(), "b/inner.rs → a.rs".to_owned()]];
        for a in [
            "use super::b::{B as Other, f}; pub struct A;",
            "use crate::B; pub struct A;",
            "pub struct A; fn g() { let _ = crate::b::inner::B; }",
            "pub struct A; fn g() { use super::B; }",
            "use crate::b::*; pub struct A; fn g() { crate::b::B::new() }",
        ] {
            let found = imports(&[ROOT, ("a.rs", a), b, inner, ("c.rs", "")]);
            let found: Vec<Vec<String>> =
                found.into_iter().map(|all| all.into_iter().filter(|i| !i.contains("b/mod.rs")).collect()).collect();
            assert_eq!(found, cycle, "{a}");
        }
    }

    #[test]
    fn what_is_no_cycle_is_not_found() {
        let a = "pub(in crate::c) struct A; // crate::b::B\n const TEXT: &str = \"crate::b::B\";";
        let tested = "#[cfg(test)] mod tests { use crate::c::C; } #[cfg(test)] use super::{c::C};
            #[cfg(test)] mod more; use crate::a::A;";
        let files =
            [ROOT, ("a.rs", a), ("b.rs", tested), ("b/more.rs", "use crate::c::C;"), ("c.rs", "use super::b::B;")];
        assert!(imports(&files).is_empty());
        let folder = [
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b; mod c; fn f() { b::g() }"),
            ("a/b.rs", "use super::f; use super::c::C;"),
            ("a/c.rs", "use super::b::g; struct C;"),
        ];
        assert!(imports(&folder).is_empty());
    }

    #[test]
    fn folders_inside_of_folders_are_folders() {
        let files = [
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b; fn f() { b::inner::g() }"),
            ("a/b.rs", "pub mod inner;"),
            ("a/b/inner.rs", "use super::super::f;"),
        ];
        assert_eq!(imports(&files), [["a/mod.rs → a/b/inner.rs", "a/b/inner.rs → a/mod.rs"]]);
    }

    #[test]
    fn a_root_with_code_is_a_file_like_others() {
        let files = [("lib.rs", "mod a; use a::A; pub struct R(A);"), ("a.rs", "use crate::R; pub struct A;")];
        assert_eq!(imports(&files), [["lib.rs → a.rs", "a.rs → lib.rs"]]);
        assert!(imports(&[("lib.rs", "mod a; pub use a::A;"), files[1]]).is_empty());
    }

    #[test]
    fn the_list_only_shrinks() {
        let cycles = [Cycle { size: 3, imports: vec!["a.rs → b.rs".to_owned()] }];
        assert_eq!(complaint("x", &cycles, &[3]), None);
        assert!(complaint("x", &cycles, &[4]).is_some_and(|text| text.contains("lower")));
        assert!(complaint("x", &cycles, &[3, 2]).is_some_and(|text| text.contains("lower")));
        assert!(complaint("x", &cycles, &[]).is_some_and(|text| text.contains("a.rs → b.rs")));
    }
}
