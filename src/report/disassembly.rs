//! Annotated disassembly, as data and as text.

use serde::{Deserialize, Serialize};

use super::text::{Style, place};
use crate::profile::hex;
use crate::profile::map::Source;

/// Schema of a disassembly.
pub const SCHEMA: &str = "wavetap.disasm/1";

/// Column at which annotations begin, as in `objdump`.
const COMMENT_COLUMN: usize = 64;

/// Kernels and functions, disassembled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disassembly {
    /// [`SCHEMA`].
    pub schema: String,
    /// The bodies, by object, then by address.
    pub bodies: Vec<BodyText>,
    /// What could not be decoded, and why.
    pub undecodable: Vec<String>,
}

/// One kernel or function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyText {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Target id.
    pub target: String,
    /// Whether it is a kernel.
    pub kernel: bool,
    /// The basic blocks, by address.
    pub blocks: Vec<BlockText>,
}

/// A basic block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockText {
    /// `.B3`.
    pub label: String,
    /// How many loops it lies in.
    pub loop_depth: u32,
    /// Labels of the blocks control comes from.
    pub predecessors: Vec<String>,
    /// The instructions.
    pub instructions: Vec<InstText>,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstText {
    /// Original virtual address.
    #[serde(with = "hex")]
    pub address: u64,
    /// Its bytes, in hex, in memory order.
    pub bytes: String,
    /// The instruction as printed.
    pub instruction: String,
    /// Where a branch goes, or what a call calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Addresses of the operations that a wait waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// Source line.
    pub source: Option<Source>,
}

impl Disassembly {
    /// As text.
    #[must_use]
    pub fn render(&self, style: Style) -> String {
        let mut lines = Vec::new();
        for body in &self.bodies {
            body.lines(style, &mut lines);
            lines.push(String::new());
        }
        if self.bodies.is_empty() {
            lines.push("no kernel selected\n".to_owned());
        }
        lines.join("\n")
    }
}

impl BodyText {
    fn lines(&self, style: Style, lines: &mut Vec<String>) {
        let kind = if self.kernel { "kernel" } else { "function" };
        lines.push(format!("{}  {}", style.bold(&self.demangled), style.dim(&format!("{kind}, {}", self.target))));
        let mut shown = None;
        for block in &self.blocks {
            let mut facts = Vec::new();
            if block.loop_depth > 0 {
                facts.push(format!("loop depth {}", block.loop_depth));
            }
            if !block.predecessors.is_empty() {
                facts.push(format!("from {}", block.predecessors.join(" ")));
            }
            let facts = if facts.is_empty() { String::new() } else { style.dim(&format!("  ; {}", facts.join(", "))) };
            lines.push(format!("{}:{facts}", block.label));
            for inst in &block.instructions {
                if inst.source != shown {
                    shown.clone_from(&inst.source);
                    lines.extend(shown.as_ref().map(|source| style.dim(&format!("  ; {}", place(Some(source))))));
                }
                lines.push(inst.line(style));
            }
        }
    }
}

impl InstText {
    fn line(&self, style: Style) -> String {
        let code = format!("  {:>6x}  {}", self.address, self.instruction);
        let mut notes = Vec::new();
        notes.extend(self.to.as_ref().map(|to| format!("→ {to}")));
        if !self.waits_for.is_empty() {
            notes.push(format!("waits for {}", self.waits_for.join(", ")));
        }
        if notes.is_empty() {
            return code;
        }
        let gap = COMMENT_COLUMN.saturating_sub(code.chars().count()).max(2);
        format!("{code}{}{}", " ".repeat(gap), style.dim(&format!("; {}", notes.join("; "))))
    }
}
