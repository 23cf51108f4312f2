//! What is expected of each program.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use rewriter_tests::{Failure, place};
use serde::Deserialize;

const SCHEMA: &str = "wavetap.check-expectations/1";
/// What programs are compiled for that name no targets.
pub const TARGETS: [&str; 5] = ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"];
/// The tools, and at least so many programs for each.
const TOOLS: [(&str, usize); 5] = [("memory", 12), ("races", 15), ("init", 6), ("sync", 6), ("api", 8)];

pub fn folder() -> PathBuf {
    place::root().join("hip-samples/check")
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: String,
    classes: BTreeMap<String, Vec<String>>,
    programs: Vec<Program>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub program: String,
    pub report: String,
    tool: String,
    class: String,
    /// Whether the run may end at a finding.
    #[serde(default)]
    pub stops: bool,
    #[serde(default)]
    pub targets: Vec<String>,
    /// Why it is not checked on AMD's runtime.
    pub rocm: Option<String>,
    /// Wave-instructions that a launch may execute.
    pub fuel: Option<u64>,
    /// How many orders of workgroups and waves are tried.
    pub schedules: Option<u64>,
    /// Whether inserted code finds its mistake, on AMD's runtime.
    #[serde(default)]
    pub probe: bool,
    /// Why its mistake is not found yet. What is reported of it must be right all the same.
    pub not_found: Option<String>,
    pub buggy: Vec<Expected>,
    /// Of the source and of the header, by name.
    #[serde(skip)]
    pub lines: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    #[serde(default)]
    pub tool: String,
    #[serde(default)]
    pub class: String,
    pub line: Texts,
    #[serde(default)]
    pub other: Texts,
    pub call: Option<String>,
    #[serde(default)]
    pub or: Vec<String>,
    pub severity: Option<String>,
    #[serde(default)]
    pub optional: bool,
    #[serde(default)]
    pub targets: Vec<String>,
    pub allocation: Option<u64>,
    pub after: Option<[u64; 2]>,
    pub before: Option<[u64; 2]>,
    pub space: Option<String>,
    /// All names of its classes.
    #[serde(skip)]
    pub classes: Vec<String>,
}

/// A part of a line, or of several.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(untagged)]
pub enum Texts {
    #[default]
    None,
    One(String),
    Any(Vec<String>),
}

impl Texts {
    pub fn all(&self) -> &[String] {
        match self {
            Texts::None => &[],
            Texts::One(text) => std::slice::from_ref(text),
            Texts::Any(texts) => texts,
        }
    }

    pub fn are_in(&self, line: &str) -> bool {
        self.all().iter().any(|text| line.contains(text.as_str()))
    }
}

impl Expected {
    pub fn is_on(&self, target: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|name| name == target)
    }
}

impl Program {
    pub fn targets(&self) -> Vec<&str> {
        if self.targets.is_empty() { TARGETS.to_vec() } else { self.targets.iter().map(String::as_str).collect() }
    }

    pub fn source(&self) -> String {
        format!("{}.hip", self.program)
    }

    fn read_lines(&mut self) -> Result<(), Failure> {
        for name in [self.source(), "check.h".to_owned()] {
            let file = folder().join(&name);
            let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            self.lines.insert(name, text.lines().map(str::to_owned).collect());
        }
        Ok(())
    }

    /// What is wrong with the expectation itself.
    fn fault(&self) -> Option<Failure> {
        let lines = &self.lines[&self.source()];
        let compiled = lines.iter().find_map(|line| line.strip_prefix("// targets: "));
        let compiled = compiled.map_or(TARGETS.to_vec(), |names| names.split(' ').collect());
        if self.targets() != compiled {
            return Some(format!("targets {:?}, but compiled for {compiled:?}", self.targets()));
        }
        let number = self.report.rsplit(' ').next().unwrap_or_default();
        if !lines[0].starts_with("// ") || !lines.iter().take(4).any(|line| line.contains(number)) {
            return Some(format!("its head does not name {number}"));
        }
        if self.buggy.iter().all(|expected| expected.optional) {
            return Some("nothing must be found".into());
        }
        for expected in &self.buggy {
            if expected.line.all().is_empty() {
                return Some("a finding without a line".into());
            }
            for text in expected.line.all().iter().chain(expected.other.all()) {
                let count = lines.iter().filter(|line| line.contains(text.as_str())).count();
                if count != 1 {
                    return Some(format!("{count} lines have {text:?}"));
                }
            }
        }
        None
    }
}

/// All programs, in the order of the file.
pub fn programs() -> Result<Vec<Program>, Failure> {
    let file = folder().join("expected.yaml");
    let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let File { schema, classes, mut programs } =
        serde_yaml::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
    if schema != SCHEMA {
        return Err(format!("{}: another schema", file.display()));
    }
    for program in &mut programs {
        program.read_lines()?;
        let (tool, class) = (program.tool.clone(), program.class.clone());
        for expected in &mut program.buggy {
            for (own, default) in [(&mut expected.tool, &tool), (&mut expected.class, &class)] {
                if own.is_empty() {
                    own.clone_from(default);
                }
            }
            for class in std::iter::once(&expected.class).chain(&expected.or) {
                let others = classes.get(class).ok_or_else(|| format!("{}: no class {class}", program.program))?;
                expected.classes.push(class.clone());
                expected.classes.extend(others.iter().cloned());
            }
        }
        if let Some(fault) = program.fault() {
            return Err(format!("{}: {fault}", program.program));
        }
    }
    Ok(programs)
}

/// Whether the file has all programs of the folder, and enough of each tool.
pub fn checked() -> Result<(), Failure> {
    let programs = programs()?;
    let mut named: Vec<String> = programs.iter().map(Program::source).collect();
    named.sort();
    let entries = fs::read_dir(folder()).map_err(|e| e.to_string())?.flatten();
    let mut sources: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    sources.retain(|name| name.ends_with(".hip"));
    sources.sort();
    if named != sources {
        return Err(format!("the file has {named:?}, the folder {sources:?}"));
    }
    for (tool, least) in TOOLS {
        let count = programs.iter().filter(|program| program.tool == tool).count();
        if count < least {
            return Err(format!("{count} programs for {tool}"));
        }
    }
    match programs.iter().find(|program| TOOLS.iter().all(|(tool, _)| *tool != program.tool)) {
        Some(program) => Err(format!("{}: no tool {}", program.program, program.tool)),
        None => Ok(()),
    }
}
