//! What is in a file, as data and as text.

use serde::{Deserialize, Serialize};

use super::table::{Align, Table, grouped};
use super::text::Style;
use crate::profile::hex;
use crate::profile::map::Resources;

/// Schema of an inspection.
pub const SCHEMA: &str = "wavetap.inspect/1";

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// [`SCHEMA`].
    pub schema: String,
    /// What the file is.
    pub container: String,
    /// Its bundles, in file order.
    pub bundles: Vec<InspectedBundle>,
    /// The selected code objects.
    pub objects: Vec<InspectedObject>,
}

/// A bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InspectedBundle {
    /// File offset.
    #[serde(with = "hex")]
    pub offset: u64,
    /// Bytes in the file.
    pub size: u64,
    /// Version of the compressed format, if it is compressed.
    pub compressed: Option<u16>,
    /// Whether the HIP runtime is told of it.
    pub registered: bool,
    /// The ids of its selected entries, the host's included.
    pub entries: Vec<String>,
}

/// A code object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InspectedObject {
    /// Index of the bundle it is in.
    pub bundle: Option<usize>,
    /// Index of the bundle's entry.
    pub entry: Option<usize>,
    /// Target id.
    pub target: String,
    /// Whether this program can decode its code.
    pub handled: bool,
    /// 4, 5 or 6.
    pub code_object_version: u8,
    /// Bytes.
    pub size: u64,
    /// MD5.
    pub digest: String,
    /// Whether it was rewritten to count.
    pub counts: bool,
    /// Whether it has source lines.
    pub line_table: bool,
    /// Device functions that are no kernels, demangled.
    pub functions: Vec<String>,
    /// The selected kernels, by address.
    pub kernels: Vec<InspectedKernel>,
}

/// A kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InspectedKernel {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Virtual address of its first instruction.
    #[serde(with = "hex")]
    pub entry: u64,
    /// Bytes of code.
    pub code_bytes: u64,
    /// Accumulation registers it uses, as the metadata says.
    pub agprs: Option<u64>,
    /// Scratch of a lane in bytes, where fixed.
    pub scratch_bytes: u64,
    /// Bytes of arguments.
    pub kernarg_bytes: u64,
    /// Scalar registers spilled.
    pub spilled_sgprs: Option<u64>,
    /// Vector registers spilled.
    pub spilled_vgprs: Option<u64>,
    /// Most work-items of a workgroup, as the metadata says.
    pub workgroup_size: Option<u64>,
    /// Registers and LDS as allocated, and occupancy; none for a processor that is not handled.
    pub resources: Option<Resources>,
}

impl Inspection {
    /// As text.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let mut lines = vec![self.container.clone()];
        for (index, bundle) in self.bundles.iter().enumerate() {
            let packed = bundle.compressed.map(|version| format!(", compressed (CCOB v{version})")).unwrap_or_default();
            let seen = if bundle.registered { "" } else { ", not registered with the HIP runtime" };
            lines.push(format!(
                "bundle {index} at offset {:#x}, {} bytes{packed}{seen}: {}",
                bundle.offset,
                grouped(bundle.size),
                bundle.entries.join(" ")
            ));
        }
        for object in &self.objects {
            lines.push(String::new());
            object.lines(style, &mut lines);
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

impl InspectedObject {
    fn lines(&self, style: Style, lines: &mut Vec<String>) {
        let place = match (self.bundle, self.entry) {
            (Some(bundle), Some(entry)) => format!(" (bundle {bundle}, entry {entry})"),
            _ => String::new(),
        };
        lines.push(format!("{}{place}", style.bold(&self.target)));
        let mut facts = vec![format!("code object v{}", self.code_object_version), format!("{} bytes", grouped(self.size))];
        facts.push(if self.line_table { "source lines".to_owned() } else { "no source lines".to_owned() });
        if self.counts {
            facts.push("rewritten: it counts".to_owned());
        }
        if !self.handled {
            facts.push(style.warn("this processor is not handled"));
        }
        lines.push(style.dim(&format!("  {}", facts.join(", "))));
        let mut table = Table::new(&[
            ("entry", Align::Right),
            ("kernel", Align::Left),
            ("code", Align::Right),
            ("SGPRs", Align::Right),
            ("VGPRs", Align::Right),
            ("of them AGPRs", Align::Right),
            ("LDS", Align::Right),
            ("scratch", Align::Right),
            ("spills", Align::Right),
            ("workgroup", Align::Right),
            ("waves/SIMD", Align::Right),
        ]);
        for kernel in &self.kernels {
            let number = |value: Option<u64>| value.map(grouped).unwrap_or_default();
            let resource = |of: fn(&Resources) -> u32| number(kernel.resources.as_ref().map(of).map(u64::from));
            let spills = kernel.spilled_sgprs.unwrap_or(0) + kernel.spilled_vgprs.unwrap_or(0);
            table.row([
                format!("{:#x}", kernel.entry),
                kernel.demangled.clone(),
                grouped(kernel.code_bytes),
                resource(|r| r.sgprs),
                resource(|r| r.vgprs),
                number(kernel.agprs.filter(|count| *count > 0)),
                resource(|r| r.lds_bytes),
                grouped(kernel.scratch_bytes),
                number((spills > 0).then_some(spills)),
                number(kernel.workgroup_size),
                resource(|r| r.waves_per_simd),
            ]);
        }
        if table.is_empty() {
            lines.push("  no kernel selected".to_owned());
        } else {
            let mut table = table.lines(2).into_iter();
            lines.extend(table.next().map(|head| style.dim(&head)));
            lines.extend(table);
        }
        if !self.functions.is_empty() {
            lines.push(format!("  device functions: {}", self.functions.join(", ")));
        }
    }
}
