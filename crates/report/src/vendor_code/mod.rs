//! Code of GPUs of other vendors, listed: what a file has, and instructions with what they wait for. There are no
//! descriptors, registers and occupancy in it: those are known of AMD GPUs.

mod text;

use std::collections::BTreeMap;

use serde::Serialize;

use wavetap_code::{Class, Code, Operation};
use wavetap_profile::hex;
use wavetap_profile::map::Source;

pub use text::{render_code, render_inspection};

/// Schema of [`VendorCode`] as JSON.
pub const SCHEMA: &str = "wavetap.code/1";

/// The code in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VendorCode {
    /// [`SCHEMA`].
    pub schema: String,
    /// Who makes the processors: `NVIDIA`, `Intel`.
    pub vendor: String,
    /// The code objects.
    pub objects: Vec<VendorObject>,
    /// What else the file has, which is not read and need not be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What of the file was not read, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// The code for a processor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VendorObject {
    /// The processor as its vendor names it.
    pub target: String,
    /// Its kernels and functions.
    pub functions: Vec<VendorFunction>,
}

/// A kernel or function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VendorFunction {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Whether it is launched; else it is called.
    pub kernel: bool,
    /// Bytes of its instructions.
    pub bytes: u64,
    /// How many it has.
    pub instructions: u64,
    /// Those that wait for operations in flight.
    pub waits: u64,
    /// Instructions by what they do.
    pub classes: BTreeMap<String, u64>,
    /// Why it is not decoded, if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Its instructions, where they are listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<VendorInstruction>,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VendorInstruction {
    /// Its address in the terms in which samples have it: its offset from the kernel's start.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// As printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// What it does.
    pub class: Class,
    /// What it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<VendorWait>,
}

/// A scoreboard, token or pipe that an instruction waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VendorWait {
    /// As the vendor writes it: `SB2`, `$4.dst`.
    pub counter: String,
    /// The addresses of the instructions whose operations it waits for; of a call, what the function called has left.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<wavetap_profile::HexText>"))]
    #[serde(serialize_with = "addresses")]
    pub operations: Vec<u64>,
}

fn addresses<S: serde::Serializer>(addresses: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(addresses.iter().map(|address| format!("{address:#x}")))
}

impl VendorFunction {
    /// What is known of a function; with its instructions if they are to be `listed`.
    #[must_use]
    pub fn of(code: &Code<'_>, demangled: &str, listed: bool) -> VendorFunction {
        let mut classes: BTreeMap<String, u64> = BTreeMap::new();
        for inst in code.instructions() {
            *classes.entry(inst.class.words().to_owned()).or_default() += 1;
        }
        let mut waits: BTreeMap<u64, Vec<VendorWait>> = BTreeMap::new();
        for wait in code.waits().iter().filter(|wait| !wait.operations.is_empty()) {
            let operations = wait.operations.iter().filter_map(|each| match each.operation {
                Operation::Inst(id) | Operation::Callee(id) => Some(code.address(id)),
                Operation::Caller => None,
            });
            let counter = wait.name.as_deref().unwrap_or_else(|| code.counter_name(wait.counter)).to_owned();
            let wait_of = VendorWait { counter, operations: operations.collect() };
            waits.entry(code.address(wait.inst)).or_default().push(wait_of);
        }
        let instruction = |inst: &wavetap_code::Instruction| VendorInstruction {
            address: inst.address,
            instruction: inst.text.to_string(),
            source: code.lines().line(inst.address).map(|line| Source { file: line.file, line: line.line }),
            class: inst.class,
            waits_for: waits.get(&inst.address).cloned().unwrap_or_default(),
        };
        VendorFunction {
            name: code.name().to_owned(),
            demangled: demangled.to_owned(),
            kernel: code.is_kernel(),
            bytes: code.instructions().iter().map(|inst| u64::from(inst.length)).sum(),
            instructions: code.instructions().len() as u64,
            waits: waits.len() as u64,
            classes,
            refused: None,
            code: if listed { code.instructions().iter().map(instruction).collect() } else { Vec::new() },
        }
    }

    /// A function that is not decoded.
    #[must_use]
    pub fn refused(name: &str, demangled: &str, kernel: bool, why: String) -> VendorFunction {
        VendorFunction {
            name: name.to_owned(),
            demangled: demangled.to_owned(),
            kernel,
            bytes: 0,
            instructions: 0,
            waits: 0,
            classes: BTreeMap::new(),
            refused: Some(why),
            code: Vec::new(),
        }
    }
}
