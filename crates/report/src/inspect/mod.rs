//! What is in a file, as data and as text.

mod of_input;

use serde::{Deserialize, Serialize};

use crate::disassembly::KernelFacts;
use crate::style::Style;
use crate::table::{Align, Table, grouped};
use wavetap_object::offload_bundle::EntryPlace;
use wavetap_object::selection::Selection;
use wavetap_profile::hex;

/// Schema of an inspection.
pub const SCHEMA: &str = "wavetap.inspect/2";

/// What to look into and how.
#[derive(Debug, Clone, Default)]
pub struct Inspected {
    /// Which kernels and targets.
    pub selection: Selection,
    /// Entries (`0.2`), any of which has to match; none selects every entry.
    pub entries: Vec<String>,
    /// The workgroup size that occupancy is for.
    pub workgroup: Option<u32>,
    /// Bytes of LDS that launches add, for occupancy.
    pub dynamic_lds: u32,
}

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inspection {
    /// [`SCHEMA`].
    pub schema: String,
    /// What the file is.
    pub container: String,
    /// Its bundles, in file order.
    pub bundles: Vec<InspectedBundle>,
    /// The selected code objects that the HIP runtime will see, or that were asked for by entry.
    pub objects: Vec<InspectedObject>,
    /// Bundles and wrappers that contradict the format and are not listed, each with what is wrong and where.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub malformed: Vec<String>,
}

/// A bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InspectedBundle {
    /// Its number, from 0.
    pub index: usize,
    /// File offset.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub offset: u64,
    /// Bytes in the file.
    pub size: u64,
    /// Version of the compressed format, if it is compressed.
    pub compressed: Option<u16>,
    /// Bytes it unpacks to, if it is compressed.
    pub unpacked_size: Option<u64>,
    /// Whether the HIP runtime is told of it.
    pub registered: bool,
    /// Its selected entries, the host's included.
    pub entries: Vec<InspectedEntry>,
}

/// An entry of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InspectedEntry {
    /// `0.2`: number of the bundle, number of the entry. `--entry` takes it.
    pub id: String,
    /// The id in the bundle: `hipv4-amdgcn-amd-amdhsa--gfx90a`.
    pub name: String,
    /// Target id: `gfx90a:xnack-`; none for the host's entry.
    pub target: Option<String>,
    /// Offset in the bundle, unpacked if it is compressed.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub offset: u64,
    /// Offset in the file; none in a compressed bundle.
    pub file_offset: Option<u64>,
    /// Bytes.
    pub size: u64,
    /// What it is.
    pub contents: Contents,
    /// 4, 5 or 6, where it is a code object that can be read.
    pub code_object_version: Option<u8>,
    /// What is wrong with its place, if it contradicts the format: then it has no contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The file that it was written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extracted: Option<String>,
}

/// What an entry is, from its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Contents {
    /// Nothing: the host's entry.
    Empty,
    /// An ELF file.
    Elf,
    /// LLVM bitcode.
    Bitcode,
    /// SPIR-V.
    Spirv,
    /// Something else.
    Unknown,
}

/// A code object.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InspectedObject {
    /// The id of its entry; `0.0` for a code object by itself.
    pub id: String,
    /// Target id.
    pub target: String,
    /// Whether this program can decode its code.
    pub handled: bool,
    /// Why nothing more is known of it, if it is of a kind that is not handled or contradicts its format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// 4, 5 or 6.
    pub code_object_version: Option<u8>,
    /// Bytes.
    pub size: u64,
    /// MD5.
    pub digest: String,
    /// Whether it was rewritten to count.
    pub counts: bool,
    /// Whether it has source lines.
    pub line_table: bool,
    /// The selected kernels, by address.
    pub kernels: Vec<InspectedKernel>,
    /// The device functions that are no kernels, by address.
    pub functions: Vec<InspectedFunction>,
    /// The variables, by address.
    pub variables: Vec<InspectedVariable>,
    /// Kernels, functions, symbols and metadata that contradict the format and are not listed, each with what is wrong
    /// and where.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub malformed: Vec<String>,
}

/// A kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InspectedKernel {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Virtual address of its first instruction.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub entry: u64,
    /// Bytes of code.
    pub code_bytes: u64,
    /// What it needs.
    #[serde(flatten)]
    pub facts: KernelFacts,
}

/// A device function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InspectedFunction {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Virtual address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// Bytes of code.
    pub code_bytes: u64,
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InspectedVariable {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Virtual address; 0 if it is not defined here.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The section it is in; none if it is not defined here.
    pub section: Option<String>,
}

impl Contents {
    /// What a file with these contents is usually called.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Contents::Elf => "co",
            Contents::Bitcode => "bc",
            Contents::Spirv => "spv",
            Contents::Empty | Contents::Unknown => "bin",
        }
    }
}

impl InspectedEntry {
    /// Whether it is code for a device: what is extracted.
    #[must_use]
    pub fn is_code(&self) -> bool {
        self.target.is_some() && self.size > 0 && self.problem.is_none()
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> EntryPlace {
        let (bundle, entry) = self.id.split_once('.').unwrap_or((&self.id, "0"));
        EntryPlace { bundle: bundle.parse().unwrap_or(0), entry: entry.parse().unwrap_or(0) }
    }
}

impl Inspection {
    /// As text.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let mut lines = vec![self.container.clone()];
        for bundle in &self.bundles {
            bundle.lines(style, &mut lines);
        }
        lines.extend(self.malformed.iter().map(|part| style.warn(&format!("not readable: {part}"))));
        for object in &self.objects {
            lines.push(String::new());
            object.lines(style, &mut lines);
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

impl InspectedBundle {
    fn lines(&self, style: Style, lines: &mut Vec<String>) {
        let packed = match (self.compressed, self.unpacked_size) {
            (Some(version), Some(size)) => format!(", compressed (CCOB v{version}) from {} bytes", grouped(size)),
            _ => String::new(),
        };
        let seen = if self.registered { "" } else { ", not registered with the HIP runtime" };
        lines.push(format!(
            "bundle {} at offset {:#x}, {} bytes{packed}{seen}",
            self.index,
            self.offset,
            grouped(self.size)
        ));
        let offset = if self.compressed.is_some() { "unpacked offset" } else { "offset" };
        let mut table = Table::new(&[
            ("id", Align::Left),
            ("target", Align::Left),
            (offset, Align::Right),
            ("size", Align::Right),
            ("contents", Align::Left),
            ("extracted to", Align::Words),
        ]);
        for entry in &self.entries {
            let contents = match (entry.contents, entry.code_object_version) {
                (Contents::Elf, Some(version)) => format!("code object v{version}"),
                (Contents::Elf, None) => "ELF file".to_owned(),
                (Contents::Empty, _) if entry.problem.is_some() => style.warn("not readable"),
                (Contents::Empty, _) => String::new(),
                (Contents::Bitcode, _) => "LLVM bitcode".to_owned(),
                (Contents::Spirv, _) => "SPIR-V".to_owned(),
                (Contents::Unknown, _) => "unknown".to_owned(),
            };
            table.row([
                entry.id.clone(),
                entry.target.clone().unwrap_or_else(|| entry.name.clone()),
                format!("{:#x}", entry.file_offset.unwrap_or(entry.offset)),
                grouped(entry.size),
                contents,
                entry.extracted.clone().unwrap_or_default(),
            ]);
        }
        push_table(&table, style, lines);
    }
}

impl InspectedObject {
    fn lines(&self, style: Style, lines: &mut Vec<String>) {
        lines.push(format!("{} ({})", style.bold(&self.target), self.id));
        let mut facts: Vec<String> =
            self.code_object_version.map(|version| format!("code object v{version}")).into_iter().collect();
        facts.push(format!("{} bytes", grouped(self.size)));
        if let Some(problem) = &self.problem {
            lines.push(style.dim(&format!("  {}", facts.join(", "))));
            lines.push(style.warn(&format!("  {problem}")));
            return;
        }
        facts.push(if self.line_table { "source lines".to_owned() } else { "no source lines".to_owned() });
        if self.counts {
            facts.push("rewritten: it counts".to_owned());
        }
        if !self.handled {
            facts.push(style.warn("its instructions are not known"));
        }
        lines.push(style.dim(&format!("  {}", facts.join(", "))));
        self.kernel_lines(style, lines);
        let mut functions = Table::new(&[("address", Align::Right), ("function", Align::Name), ("code", Align::Right)]);
        for function in &self.functions {
            functions.row([
                format!("{:#x}", function.address),
                style.name(&function.demangled).into_owned(),
                grouped(function.code_bytes),
            ]);
        }
        if !functions.is_empty() {
            lines.push(String::new());
        }
        push_table(&functions, style, lines);
        let mut variables = Table::new(&[
            ("address", Align::Right),
            ("variable", Align::Name),
            ("bytes", Align::Right),
            ("section", Align::Left),
        ]);
        for variable in &self.variables {
            variables.row([
                format!("{:#x}", variable.address),
                style.name(&variable.demangled).into_owned(),
                grouped(variable.size),
                variable.section.clone().unwrap_or_else(|| "not defined here".to_owned()),
            ]);
        }
        if !variables.is_empty() {
            lines.push(String::new());
        }
        push_table(&variables, style, lines);
        if !self.malformed.is_empty() {
            lines.push(String::new());
        }
        lines.extend(self.malformed.iter().map(|part| style.warn(&format!("  not readable: {part}"))));
    }

    fn kernel_lines(&self, style: Style, lines: &mut Vec<String>) {
        let mut table = Table::new(&[
            ("entry", Align::Right),
            ("kernel", Align::Name),
            ("code", Align::Right),
            ("SGPRs", Align::Right),
            ("VGPRs", Align::Right),
            ("AGPRs", Align::Right),
            ("LDS", Align::Right),
            ("scratch", Align::Right),
            ("arguments", Align::Right),
            ("spills", Align::Words),
            ("workgroup", Align::Right),
            ("lanes", Align::Right),
            ("waves/SIMD", Align::Right),
            ("limited by", Align::Words),
            ("next step", Align::Words),
        ]);
        for kernel in &self.kernels {
            let facts = &kernel.facts;
            let occupancy = facts.occupancy.as_ref();
            table.row([
                format!("{:#x}", kernel.entry),
                style.name(&kernel.demangled).into_owned(),
                grouped(kernel.code_bytes),
                facts.used_sgprs(),
                facts.used_vgprs(),
                facts.agprs.filter(|count| *count > 0).map(grouped).unwrap_or_default(),
                grouped(facts.lds_bytes),
                format!("{}{}", grouped(facts.scratch_bytes), if facts.dynamic_stack { "+" } else { "" }),
                grouped(facts.kernarg_bytes),
                facts.spills(),
                facts.workgroup(),
                facts.wave_size.to_string(),
                occupancy.map(|occupancy| format!("{} of {}", occupancy.waves, occupancy.most)).unwrap_or_default(),
                occupancy.map(|occupancy| occupancy.limited_by()).unwrap_or_default(),
                occupancy.map(|occupancy| occupancy.next_step()).unwrap_or_default(),
            ]);
        }
        if table.is_empty() {
            lines.push("  no kernels".to_owned());
        }
        push_table(&table, style, lines);
    }
}

fn push_table(table: &Table, style: Style, lines: &mut Vec<String>) {
    if table.is_empty() {
        return;
    }
    lines.extend(table.lines(2, style));
}
