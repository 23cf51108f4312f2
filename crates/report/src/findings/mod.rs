//! What is wrong with code, whatever found it, in the forms that other tools read: [`sarif`], [`remarks`].
//!
//! Who finds something makes a [`FindingLog`] of it; the writers add nothing, and know nothing of what was found.

mod remarks;
mod sarif;

pub use remarks::remarks;
pub use sarif::{Log, sarif};

use serde_json::{Map, Value};
use wavetap_profile::map::Source;

/// What was found in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingLog {
    /// The file's name.
    pub file: String,
    /// The folder that names of files below it are given relative to.
    pub base: Option<String>,
    /// What remarks have as their pass.
    pub pass: &'static str,
    /// What fingerprints are made of, with a version: `memoryAccess/v1`.
    pub fingerprint: &'static str,
    /// The rules; findings have their places.
    pub rules: Vec<RuleText>,
    /// What was found, the worst first.
    pub findings: Vec<LoggedFinding>,
    /// What is said of kernels as a whole.
    pub notes: Vec<KernelNote>,
    /// What is said of the run as a whole.
    pub run: Vec<(Level, String)>,
    /// What cannot be read, each with what is wrong and where.
    pub unread: Vec<String>,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Worth knowing.
    Note,
    /// Worth a change.
    Warning,
    /// It costs most of what it is about.
    Error,
}

/// A rule in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleText {
    /// Its name to programs: it does not change.
    pub id: &'static str,
    /// The same as one word.
    pub name: &'static str,
    /// What is wrong, in one sentence.
    pub summary: &'static str,
    /// What that costs, and what may be done.
    pub explanation: &'static str,
    /// How bad it is unless a finding says something else.
    pub level: Level,
}

/// A kernel by its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedKernel {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Target id.
    pub target: String,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedFinding {
    /// The rule, by its place in [`FindingLog::rules`].
    pub rule: usize,
    /// How bad it is.
    pub level: Level,
    /// Whether something could be better; otherwise it is only said.
    pub is_missed: bool,
    /// The kernel.
    pub kernel: NamedKernel,
    /// The source line.
    pub source: Option<Source>,
    /// The instruction.
    pub address: Option<u64>,
    /// Other places that it is about.
    pub related: Vec<RelatedPlace>,
    /// Which of its rule and kernel it is, in words that outlast a build.
    pub place: String,
    /// What was found, in words.
    pub message: String,
    /// The same as arguments of a remark: one after the other they are a sentence; those with other names than
    /// `String` are for programs.
    pub arguments: Vec<(&'static str, String)>,
    /// Its share of the run, 0 to 1, if that is known.
    pub share: Option<f64>,
    /// Executions by waves, if they were counted.
    pub executions: Option<u64>,
    /// What else programs may want to know.
    pub properties: Map<String, Value>,
}

/// Another place that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelatedPlace {
    /// What is there.
    pub message: String,
    /// The kernel, or the function of the host.
    pub function: NamedKernel,
    /// The source line.
    pub source: Option<Source>,
    /// The instruction, if it is in a kernel.
    pub address: Option<u64>,
}

/// What is said of a kernel as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelNote {
    /// The kernel.
    pub kernel: NamedKernel,
    /// The name of the remark.
    pub name: &'static str,
    /// What is said.
    pub texts: Vec<(Level, String)>,
}

impl FindingLog {
    /// A file's name as it is written: below the base relative to it.
    fn relative<'f>(&self, file: &'f str) -> &'f str {
        let below = self.base.as_deref().and_then(|base| file.strip_prefix(base.trim_end_matches('/')));
        below.and_then(|rest| rest.strip_prefix('/')).unwrap_or(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_the_base_are_relative_to_it() {
        let mut log = FindingLog {
            file: String::new(),
            base: Some("/src/app".to_owned()),
            pass: "p",
            fingerprint: "f/v1",
            rules: Vec::new(),
            findings: Vec::new(),
            notes: Vec::new(),
            run: Vec::new(),
            unread: Vec::new(),
        };
        for (file, expected) in [
            ("/src/app/k.hip", "k.hip"),
            ("/src/app/a/k.hip", "a/k.hip"),
            ("/src/application/k.hip", "/src/application/k.hip"),
            ("/usr/k.hip", "/usr/k.hip"),
            ("k.hip", "k.hip"),
        ] {
            assert_eq!(log.relative(file), expected);
        }
        log.base = Some("/".to_owned());
        assert_eq!(log.relative("/src/k.hip"), "src/k.hip");
        log.base = None;
        assert_eq!(log.relative("/src/k.hip"), "/src/k.hip");
    }
}
