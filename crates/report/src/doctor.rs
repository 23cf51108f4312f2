//! What a machine has for programs to run on, as data and as text.

use serde::{Deserialize, Serialize};

use crate::style::Style;
use wavetap_profile::file::Backend;

/// Schema of a diagnosis.
pub const SCHEMA: &str = "wavetap.doctor/1";

/// What is there, what does not work, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnosis {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the command.
    pub version: String,
    /// Whether nothing was found that keeps programs from running on the emulator.
    pub emulator: bool,
    /// Whether there is a GPU, and nothing was found that keeps programs from running on it. No program was run on it.
    pub gpu: bool,
    /// What was looked at, by subject.
    pub checks: Vec<Check>,
}

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// The files of this program.
    Wavetap,
    /// GPUs, their driver and its devices.
    Gpu,
    /// AMD's libraries.
    Rocm,
    /// Variables, limits, folders.
    System,
    /// What compiles HIP programs.
    Compiler,
    /// Frameworks of Python.
    Frameworks,
    /// A program that was counted on the emulator.
    SelfTest,
}

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it has to be.
    Ok,
    /// Something that is worth knowing, or that only some uses need.
    Note,
    /// Something that does not work.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// What it is about.
    pub subject: Subject,
    /// Its fixed name.
    pub name: String,
    /// How it is.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// What programs cannot run on because of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<Backend>,
}

impl Check {
    /// A check that found something as it has to be.
    #[must_use]
    pub fn ok(subject: Subject, name: &str, found: impl Into<String>) -> Check {
        let (name, found) = (name.to_owned(), found.into());
        Check { subject, name, level: Level::Ok, found, advice: None, stops: Vec::new() }
    }

    /// A note, with what to do.
    #[must_use]
    pub fn note(subject: Subject, name: &str, found: impl Into<String>, advice: impl Into<String>) -> Check {
        Check { level: Level::Note, advice: Some(advice.into()), ..Check::ok(subject, name, found) }
    }

    /// A problem, with what to do, and what it stops.
    #[must_use]
    pub fn problem(
        subject: Subject,
        name: &str,
        found: impl Into<String>,
        advice: impl Into<String>,
        stops: &[Backend],
    ) -> Check {
        Check { level: Level::Problem, stops: stops.to_vec(), ..Check::note(subject, name, found, advice) }
    }
}

impl Diagnosis {
    /// What the checks come down to. `gpus` is whether there is a GPU at all.
    #[must_use]
    pub fn new(version: &str, gpus: bool, mut checks: Vec<Check>) -> Diagnosis {
        checks.sort_by_key(|check| check.subject);
        let works = |backend| !checks.iter().any(|check| check.stops.contains(&backend));
        Diagnosis {
            schema: SCHEMA.to_owned(),
            version: version.to_owned(),
            emulator: works(Backend::Emulator),
            gpu: gpus && works(Backend::Gpu),
            checks,
        }
    }

    /// As text: a line for each check, after it what to do.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let mut lines = vec![format!("wavetap {}", self.version)];
        let mut subject = None;
        for check in &self.checks {
            if subject.replace(check.subject) != Some(check.subject) {
                lines.extend([String::new(), style.bold(check.subject.title())]);
            }
            let level = match check.level {
                Level::Ok => "ok     ".to_owned(),
                Level::Note => style.warn("note   "),
                Level::Problem => style.bad("problem"),
            };
            lines.push(format!("  {level}  {}", check.found));
            lines.extend(check.advice.iter().map(|advice| format!("           {advice}")));
        }
        lines.push(String::new());
        lines.push(match (self.emulator, self.gpu) {
            (true, true) => "programs run on the GPU, and with --backend emulator on the emulator".to_owned(),
            (true, false) => "programs run on the emulator".to_owned(),
            (false, true) => style.bad("programs run on the GPU; the emulator does not work"),
            (false, false) => style.bad("no program can run: see the problems above"),
        });
        lines.push(String::new());
        lines.join("\n")
    }
}

impl Subject {
    fn title(self) -> &'static str {
        match self {
            Subject::Wavetap => "Wavetap",
            Subject::Gpu => "GPU",
            Subject::Rocm => "ROCm",
            Subject::System => "System",
            Subject::Compiler => "Compiler",
            Subject::Frameworks => "Frameworks",
            Subject::SelfTest => "Self-test",
        }
    }
}
