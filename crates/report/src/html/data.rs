//! What a page shows besides the report itself.

use std::collections::BTreeMap;

use crate::disassembly::{CodeText, SourceText};
use crate::memory::KernelMemory;
use crate::mix::KernelMix;
use wavetap_profile::map::Source;

/// What is known of the code of a report's kernels, and how to get what is not.
#[derive(Default)]
pub struct PageData<'a> {
    /// By MD5 of the code object and mangled name.
    kernels: BTreeMap<(String, String), KernelCode>,
    /// Whether the file with the code was read: then the page does not say how to name it.
    pub has_binary: bool,
    /// Where the text of source lines comes from; none where it is not wanted.
    pub source_text: Option<&'a SourceText<'a>>,
    /// What of the code could not be read, each with its place.
    pub unread: Vec<String>,
}

/// What is known of the code of a kernel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KernelCode {
    /// Its disassembly.
    pub code: Option<CodeText>,
    /// How its lanes access memory.
    pub memory: Option<KernelMemory>,
    /// What it executed; none where basic blocks were not counted.
    pub mix: Option<KernelMix>,
    /// Its instructions, by address.
    pub instructions: Vec<InstructionFacts>,
}

/// What is known of an instruction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InstructionFacts {
    /// Its address.
    pub address: u64,
    /// What it is, as in the instruction mix: `valu.f32.fma`; of a pair both classes.
    pub class: String,
    /// How often waves executed it, if that is known.
    pub executions: Option<u64>,
    /// Lanes that were active on average, if that is known.
    pub lanes: Option<f64>,
}

impl PageData<'_> {
    /// The kernel of this name in the code object with this MD5.
    #[must_use]
    pub fn kernel(&self, object: &str, name: &str) -> Option<&KernelCode> {
        self.kernels.get(&(object.to_owned(), name.to_owned()))
    }

    /// The same to be filled.
    pub fn kernel_mut(&mut self, object: &str, name: &str) -> &mut KernelCode {
        self.kernels.entry((object.to_owned(), name.to_owned())).or_default()
    }

    /// The text of a source line.
    pub(super) fn text(&self, source: &Source) -> Option<String> {
        self.source_text.and_then(|text| text(&source.file, source.line))
    }
}
