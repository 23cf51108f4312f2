//! Parts of a code object that contradict the format while the rest can be read.

use std::fmt;

use wavetap_base::error::Error;

/// What sort of part a [`MalformedPart`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartKind {
    /// A kernel: its descriptor or the code that it names.
    Kernel,
    /// A device function that is not a kernel.
    Function,
    /// The metadata note as a whole: no kernel of the object is described.
    Metadata,
    /// The entry of one kernel in the metadata note.
    MetadataEntry,
    /// An entry of a symbol table.
    Symbol,
}

impl PartKind {
    /// Its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PartKind::Kernel => "kernel",
            PartKind::Function => "function",
            PartKind::Metadata => "metadata note",
            PartKind::MetadataEntry => "metadata of kernel",
            PartKind::Symbol => "symbol",
        }
    }
}

/// A part of a code object that cannot be read: it is left out of the lists of the [`CodeObject`](super::CodeObject),
/// and whoever was asked for it has to say so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedPart {
    /// What it is.
    pub kind: PartKind,
    /// Its (mangled) name; of a symbol whose name cannot be read, table and index; empty for the metadata note.
    pub name: String,
    /// What is wrong with it, and where.
    pub error: Error,
}

impl fmt::Display for MalformedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.name.is_empty() { "" } else { " " };
        write!(f, "{}{space}{}: {}", self.kind.name(), self.name, self.error)
    }
}
