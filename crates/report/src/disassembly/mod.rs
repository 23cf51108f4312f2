//! Annotated disassembly, as data.
//!
//! A [`Disassembly`] is what `wavetap disasm --format json` writes: the selected code objects and, for each, its code
//! in address order. A [`CodeText`] is one kernel, one device function, or code between them that no symbol covers;
//! together they cover every executable section, so that no byte is left out. Big inputs are made and written one
//! [`CodeText`] after the other. [`crate::listing`] and [`crate::plain`] render the same values as text.

mod annotate;
mod json;
mod list;
mod symbols;

pub use json::JsonStream;
pub use list::{Listed, SourceText, list};
pub use wavetap_explain::HexAddress;

use serde::{Deserialize, Serialize};

use crate::counted::CountedText;
use crate::occupancy::Occupancy;
use crate::slice::CountSource;
use wavetap_base::error::{Error, Result};
use wavetap_profile::hex;
use wavetap_profile::map::Source;
use wavetap_profile::probes::branches::BranchCounts;

/// Schema of a disassembly.
pub const SCHEMA: &str = "wavetap.disasm/2";

/// The code of some code objects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disassembly {
    /// [`SCHEMA`].
    pub schema: String,
    /// The selected code objects, in file order.
    pub objects: Vec<ListedObject>,
}

/// A code object and its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedObject {
    /// What the object is.
    #[serde(flatten)]
    pub facts: ObjectFacts,
    /// Its code: by section, then by address.
    pub code: Vec<CodeText>,
}

/// What a code object is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObjectFacts {
    /// `0.2`: bundle and entry, as `inspect` shows them and `--entry` takes them; `0.0` for a code object by itself.
    pub id: String,
    /// Whether it is a file by itself, in no bundle.
    pub bare: bool,
    /// Target id: `gfx90a:xnack-`.
    pub target: String,
    /// 4, 5 or 6.
    pub code_object_version: u8,
    /// MD5 of its bytes: joins it with profiles.
    pub digest: String,
    /// Whether it has source lines.
    pub line_table: bool,
}

/// What a piece of code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CodeKind {
    /// A kernel.
    Kernel,
    /// A device function.
    Function,
    /// Code, data or padding that no symbol covers and no known call reaches.
    Other,
}

/// A kernel, a function, or what lies between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodeText {
    /// What it is.
    pub kind: CodeKind,
    /// Mangled name; none between functions.
    pub name: Option<String>,
    /// Demangled name.
    pub demangled: Option<String>,
    /// Target id.
    pub target: String,
    /// The section it is in; empty for an object without section headers.
    pub section: String,
    /// Address of its first byte.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// Address after its last byte.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub end: u64,
    /// What a kernel's descriptor and metadata say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelFacts>,
    /// Why control flow was not followed, if it was not: the code is then listed as it lies in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The most live registers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Pressure>,
    /// Whose counts are at its instructions, if a profile was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedText>,
    /// The basic blocks, by address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockText>,
    /// The natural loops, outer ones before those inside them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<LoopText>,
    /// Every word, in address order: instructions, and data where no instruction is.
    pub instructions: Vec<InstText>,
}

/// What starts a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelFacts {
    /// Address of its descriptor.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub descriptor: u64,
    /// Vector registers used, AGPRs included where they share the allocation, as the metadata says.
    pub vgprs: Option<u64>,
    /// Vector registers allocated; none for a processor that is not known.
    pub allocated_vgprs: Option<u32>,
    /// AGPRs used, as the metadata says.
    pub agprs: Option<u64>,
    /// Scalar registers used, VCC and the like included, as the metadata says.
    pub sgprs: Option<u64>,
    /// Scalar registers allocated; none for a processor that is not known.
    pub allocated_sgprs: Option<u32>,
    /// Static LDS in bytes.
    pub lds_bytes: u64,
    /// Scratch of a lane in bytes, where fixed.
    pub scratch_bytes: u64,
    /// Whether more scratch may be used than `scratch_bytes`.
    pub dynamic_stack: bool,
    /// Bytes of arguments.
    pub kernarg_bytes: u64,
    /// Scalar registers spilled.
    pub spilled_sgprs: Option<u64>,
    /// Vector registers spilled.
    pub spilled_vgprs: Option<u64>,
    /// Most work-items of a workgroup, as the metadata says.
    pub workgroup_size: Option<u64>,
    /// Lanes of a wave.
    pub wave_size: u32,
    /// The workgroup size that the source requires, x, y, z.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_workgroup: Option<[u64; 3]>,
    /// Waves per SIMD and what limits them; none for a processor that is not known.
    pub occupancy: Option<Occupancy>,
}

/// The most live registers at one time, and the first instruction after which there are so many.
///
/// Counted as a lane sees it: a vector register lives from a write to the last read of what was written, as in a
/// compiler's register allocation. Of a function only the registers that it names itself count, and all of those it has
/// written are taken to be live when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pressure {
    /// Vector registers.
    pub vgprs: Peak,
    /// AGPRs.
    pub agprs: Peak,
    /// Scalar registers, VCC included.
    pub sgprs: Peak,
}

/// A maximum and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Peak {
    /// Registers.
    pub live: u16,
    /// Address of the first instruction after which so many are live.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub at: u64,
}

/// A basic block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockText {
    /// `.B3`.
    pub label: String,
    /// Address of its first instruction.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// Address after its last instruction.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub end: u64,
    /// How many loops it lies in.
    pub loop_depth: u32,
    /// Label of the header of the innermost loop it lies in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loop_header: Option<String>,
    /// Labels of the blocks control comes from.
    pub predecessors: Vec<String>,
    /// Labels of the blocks control goes to.
    pub successors: Vec<String>,
    /// How often waves executed it, where that was counted or follows from what was: 0 says that nothing in it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executions: Option<u64>,
    /// How the number of executions is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executions_source: Option<CountSource>,
}

/// A natural loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopText {
    /// Label of the block in which it is entered.
    pub header: String,
    /// Labels of the blocks that branch back to the header.
    pub latches: Vec<String>,
    /// 1 for an outermost loop.
    pub depth: u32,
    /// Labels of its blocks, header included.
    pub blocks: Vec<String>,
}

/// An instruction, a word that is none, or a run of equal ones.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstText {
    /// Original virtual address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// Its bytes, in hex, in memory order.
    pub bytes: String,
    /// The instruction as printed, or `.long 0x…` for a word that is no instruction.
    pub instruction: String,
    /// The two operations of a pair (VOPD): what each reads and writes. Both read before either writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub halves: Vec<HalfText>,
    /// How often it stands here in a row, if more than once: padding.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u64,
    /// Whether control reaches it, as far as is known.
    pub reachable: bool,
    /// Where a branch goes, or what a call calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Destination>,
    /// The symbol whose address is complete in registers after this instruction: `table+0x10`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Destination>,
    /// What a wait waits for, by counter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitText>,
    /// Addresses of the waits that wait for this operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waited_at: Vec<HexAddress>,
    /// What was counted at it: the sum over [`CountedText::kernels`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<BranchCounts>,
    /// Registers live after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
    /// Source line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The functions it was inlined through, the innermost first. Empty when it was not inlined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<InlinedFrame>,
    /// The text of the source line, where it was asked for, is there, and differs in place from the instruction before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_text: Option<String>,
}

/// One of the two operations of an instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HalfText {
    /// What it is called where it is alone: `v_add_f32`.
    pub operation: String,
    /// The vector registers that it reads, `v1`, as the instruction names them.
    pub reads: Vec<String>,
    /// The vector registers that it writes.
    pub writes: Vec<String>,
}

fn once() -> u64 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_once(times: &u64) -> bool {
    *times == 1
}

/// An address and what is there: where a branch or call goes, what an address in registers is the address of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Destination {
    /// The block's label, the function's name, `table+0x10` or `unknown`.
    pub name: String,
    /// The nearest function before it, mangled, and the distance: `_Z3addPfi+0x40`; for data the symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Its address, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<HexAddress>,
    /// Whether it is a block of the same piece of code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub block: bool,
}

/// One counter of a wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitText {
    /// `vmcnt`.
    pub counter: String,
    /// How many operations may stay outstanding.
    pub count: u8,
    /// What it waits for.
    pub operations: Vec<WaitedText>,
}

/// An operation that a wait waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitedText {
    /// What it is.
    pub what: Waited,
    /// The address of the operation, or of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<HexAddress>,
    /// How sure it is that the wait waits for it.
    pub certainty: Sureness,
}

/// What sort of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Waited {
    /// The instruction at the address.
    Instruction,
    /// What the call at the address left outstanding.
    Callee,
    /// What the caller had outstanding.
    Caller,
}

/// How sure a wait is to wait for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sureness {
    /// On every path.
    Must,
    /// On some path.
    May,
    /// It may be among those waited for: they complete in any order.
    Unordered,
}

/// Numbers of live registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Live {
    /// Vector registers.
    pub vgprs: u16,
    /// AGPRs.
    pub agprs: u16,
    /// Scalar registers, VCC included.
    pub sgprs: u16,
}

/// A function that was inlined, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InlinedFrame {
    /// The inlined function, demangled, if the debug information tells.
    pub function: Option<String>,
    /// The line of the call that was replaced by it.
    pub at: Option<Source>,
}

/// Takes a disassembly piece by piece.
pub trait Sink {
    /// A code object begins.
    ///
    /// # Errors
    /// Whatever keeps it from being written.
    fn object(&mut self, facts: ObjectFacts) -> Result<()>;

    /// The next code of the object.
    ///
    /// # Errors
    /// Whatever keeps it from being written.
    fn code(&mut self, code: CodeText) -> Result<()>;
}

/// Keeps everything.
impl Sink for Disassembly {
    fn object(&mut self, facts: ObjectFacts) -> Result<()> {
        self.objects.push(ListedObject { facts, code: Vec::new() });
        Ok(())
    }

    fn code(&mut self, code: CodeText) -> Result<()> {
        let object = self.objects.last_mut().ok_or_else(|| Error::internal("code without an object"))?;
        object.code.push(code);
        Ok(())
    }
}

impl Default for Disassembly {
    fn default() -> Self {
        Disassembly { schema: SCHEMA.to_owned(), objects: Vec::new() }
    }
}

impl KernelFacts {
    /// `14 of 16`: used of allocated, as far as each is known.
    #[must_use]
    pub fn used_sgprs(&self) -> String {
        used(self.sgprs, self.allocated_sgprs)
    }

    /// The same of vector registers.
    #[must_use]
    pub fn used_vgprs(&self) -> String {
        used(self.vgprs, self.allocated_vgprs)
    }

    /// `12 SGPRs, 3 VGPRs`, or nothing.
    #[must_use]
    pub fn spills(&self) -> String {
        let spilled = [(self.spilled_sgprs, "SGPRs"), (self.spilled_vgprs, "VGPRs")];
        let spilled = spilled
            .into_iter()
            .filter_map(|(count, what)| Some(format!("{} {what}", count.filter(|count| *count > 0)?)));
        spilled.collect::<Vec<_>>().join(", ")
    }

    /// `≤ 1024`, or `16x16x1` where the source requires a size.
    #[must_use]
    pub fn workgroup(&self) -> String {
        match (self.required_workgroup, self.workgroup_size) {
            (Some([x, y, z]), _) => format!("{x}x{y}x{z}"),
            (None, Some(most)) => format!("≤ {most}"),
            (None, None) => String::new(),
        }
    }
}

fn used(count: Option<u64>, allocated: Option<u32>) -> String {
    match (count, allocated) {
        (Some(count), Some(allocated)) => format!("{count} of {allocated}"),
        (Some(count), None) => count.to_string(),
        (None, Some(allocated)) => allocated.to_string(),
        (None, None) => String::new(),
    }
}

impl InstText {
    /// Bytes of one instruction.
    #[must_use]
    pub fn size(&self) -> u64 {
        (self.bytes.len() / 2) as u64
    }

    /// Its words as numbers in hex, most significant digit first: `C00201C2`; a last piece of less than a word byte by
    /// byte.
    pub fn words(&self) -> impl Iterator<Item = String> + '_ {
        self.bytes.as_bytes().chunks(8).map(|word| {
            let bytes = word.chunks(2).rev().flatten();
            bytes.map(|digit| char::from(digit.to_ascii_uppercase())).collect()
        })
    }

    /// Whether it goes to another place of the code by its own displacement.
    #[must_use]
    pub fn is_branch(&self) -> bool {
        self.instruction.starts_with("s_branch") || self.instruction.starts_with("s_cbranch")
    }
}
