//! What `wavetap check` found: a finding for each place, with what is known of it.
//!
//! Processes write findings as lines of JSON ([`Line`]), because a process can end at any time; the command adds them
//! up ([`CheckReport`]).

mod classes;
mod ends;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::hex;
use super::map::Source;

pub use classes::{Class, ClassText, Severity, Tool};

/// Schema of [`CheckReport`] as JSON.
pub const SCHEMA: &str = "wavetap.check/1";

/// All that was found in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// The application and its arguments.
    pub command: Vec<String>,
    /// What was looked for.
    pub tools: Vec<Tool>,
    /// The seed of everything that is random.
    pub seed: u64,
    /// The orders of workgroups and waves that were tried; 0 is the usual one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedule_seeds: Vec<u64>,
    /// The application's exit code, 128 + n after signal n.
    pub exit_code: i32,
    /// What was found: errors first, and places in the order in which they were found.
    pub findings: Vec<Finding>,
    /// How many findings are not listed, because a file of suppressions names them.
    #[serde(default)]
    pub suppressed: u64,
    /// How many are not listed, because the baseline has them.
    #[serde(default)]
    pub in_baseline: u64,
    /// What could not be looked at, and why.
    #[serde(default)]
    pub not_checked: Vec<String>,
}

/// What was found at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The tool that found it.
    pub tool: Tool,
    /// What is wrong.
    pub class: Class,
    /// How bad that is.
    pub severity: Severity,
    /// The same with its numbers, as a sentence without its place.
    pub message: String,
    /// How often it was found: in how many lanes of all executions, or calls. At least, if the kernel could not go on.
    pub count: u64,
    /// Whether the kernel could not go on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// Where in a kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<CodePlace>,
    /// Who did it first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Executor>,
    /// What was accessed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// The allocation that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Allocation>,
    /// The other access, which nothing orders with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<OtherAccess>,
    /// The call of the application that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<HostCall>,
    /// The call that destroyed what that call uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destroyed: Option<HostCall>,
    /// In which orders of workgroups and waves, where several were tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedules: Option<FoundIn>,
    /// What usually mends it.
    #[serde(default)]
    pub hint: String,
}

/// Orders of workgroups and waves in which something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundIn {
    /// How many.
    pub count: u64,
    /// The seed of the first one (`--schedule-seed`), of which all else that the finding says is.
    pub first: u64,
}

/// An instruction of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodePlace {
    /// The kernel's demangled name.
    pub kernel: String,
    /// Virtual address of the instruction in its code object.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub address: u64,
    /// It as a disassembler prints it.
    pub instruction: String,
    /// Its source line, where the object has a line table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The function that the line is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Where that was inlined: the innermost call first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined_at: Vec<SourceFrame>,
}

/// A place in a function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceFrame {
    /// The function, demangled, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The place, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

/// A wave, and its lanes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Executor {
    /// The number of the launch in its process, from 1.
    pub launch: u64,
    /// The workgroup.
    pub workgroup: [u32; 3],
    /// The wave in the workgroup.
    pub wave: u32,
    /// The lanes, ascending; empty where it is about the whole wave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<u8>,
}

/// The kind of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AccessKind {
    /// It reads.
    Load,
    /// It writes.
    Store,
    /// It reads and writes in one step.
    Atomic,
    /// An instruction is fetched.
    Fetch,
    /// A wave comes to a barrier.
    Barrier,
}

impl AccessKind {
    /// Its name after its article.
    #[must_use]
    pub fn with_article(self) -> String {
        let article = if matches!(self, AccessKind::Atomic | AccessKind::Fetch) { "an" } else { "a" };
        format!("{article} {self}")
    }
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::Atomic => "atomic",
            AccessKind::Fetch => "instruction fetch",
            AccessKind::Barrier => "barrier",
        })
    }
}

/// An access of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Access {
    /// Its kind.
    pub kind: AccessKind,
    /// The first byte: an address in global memory, an offset in LDS or in the scratch of a lane.
    pub address: String,
    /// Bytes.
    pub size: u32,
}

/// Memory that was allocated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Allocation {
    /// Its first byte.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Bytes from its first to the first that was accessed; negative if that comes before it.
    pub offset: i64,
    /// The variable of a code object that it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// The call that allocated it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<HostCall>,
    /// The call that freed it, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed: Option<HostCall>,
}

/// A call of the application.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostCall {
    /// The function of HIP.
    pub function: String,
    /// Who called it: the innermost first. What is in the C library and in Wavetap's own libraries is left out.
    #[serde(default)]
    pub stack: Vec<HostFrame>,
}

/// A frame of the application's stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFrame {
    /// The executable or library.
    pub module: String,
    /// Virtual address in it of the call.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub address: u64,
    /// The function, demangled, if a symbol names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The line of the call, if there is a line table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

/// The other of two accesses that nothing orders. It came earlier unless `later` is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherAccess {
    /// Its kind.
    pub kind: AccessKind,
    /// Where in a kernel it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<CodePlace>,
    /// Who did it, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Executor>,
    /// The call of the application that it was, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<HostCall>,
    /// Whether it came later: of two places in kernels one that writes is named first, then that whose line is
    /// first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub later: bool,
    /// What would order the two.
    pub missing: String,
}

/// What a process says of a place: once when it is found, and again with how often it was found since then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// A program begins, which may be one that another one became. Places count from 0 again.
    Begin,
    /// A new place. Its number is how many there were before.
    Found(Box<Finding>),
    /// The number of a place, and how often it was found since its last line.
    Again {
        /// Its number.
        place: u64,
        /// How often.
        count: u64,
    },
    /// A kernel has been launched: the first of the process.
    Launched,
    /// What cannot be looked at.
    NotChecked(String),
    /// What a launch has left in memory.
    Output(Output),
    /// A page of that.
    Page(OutputPage),
}

/// What a launch has left in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The number of the launch in its process, from 1.
    pub launch: u64,
    /// The kernel's demangled name, and those that ran at the same time.
    pub kernels: Vec<String>,
    /// Of all pages that were written.
    pub digest: u64,
}

/// What is in a page of device memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPage {
    /// Address of the first byte.
    pub address: u64,
    /// Its bytes as hexadecimal digits.
    pub bytes: String,
}

impl Finding {
    /// With nothing known but what is wrong.
    #[must_use]
    pub fn new(class: Class, message: impl Into<String>) -> Finding {
        Finding {
            tool: class.tool(),
            class,
            severity: class.severity(),
            message: message.into(),
            count: 1,
            stopped: false,
            at: None,
            by: None,
            access: None,
            allocation: None,
            other: None,
            call: None,
            destroyed: None,
            schedules: None,
            hint: class.text().hint.to_owned(),
        }
    }

    /// Makes it one of another class.
    pub fn set_class(&mut self, class: Class) {
        (self.tool, self.class, self.severity) = (class.tool(), class, class.severity());
        class.text().hint.clone_into(&mut self.hint);
    }

    /// What is the same of findings that are one place: its class, its source line (its instruction, where that is not
    /// known) or call, and, of a race, the other one, whichever of the two comes first.
    #[must_use]
    pub fn place(&self) -> Place<'_> {
        let code = |at: &Option<CodePlace>| {
            at.as_ref().map(|at| match &at.source {
                Some(source) => (at.kernel.clone(), source.file.clone(), source.line.into()),
                None => (at.kernel.clone(), String::new(), at.address),
            })
        };
        let mut code = [code(&self.at), self.other.as_ref().and_then(|other| code(&other.at))];
        if code[1].is_some() {
            code.sort();
        }
        let earlier = self.other.as_ref().and_then(|other| other.call.as_ref());
        Place { class: self.class, code, calls: [self.call.as_ref(), earlier] }
    }
}

/// [`Finding::place`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place<'f> {
    class: Class,
    code: [Option<(String, String, u64)>; 2],
    calls: [Option<&'f HostCall>; 2],
}
