//! Puts a code object into device memory as the ROCm loader does.

use std::collections::BTreeMap;

/// Which load an object came from; never reused on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u32);

/// What a symbol names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// A kernel descriptor (`STT_OBJECT` whose name ends in `.kd`).
    KernelDescriptor,
    /// A variable.
    Object,
    /// Code.
    Function,
    /// Anything else.
    Other,
}

/// A global symbol of a loaded object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadedSymbol {
    /// Device address.
    pub address: u64,
    /// `st_size`.
    pub size: u64,
    /// What it names.
    pub kind: SymbolKind,
}

/// A code object in device memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedObject {
    /// Its identity.
    pub id: ObjectId,
    /// Device address of the object's virtual address 0: a place in the file at virtual address `v` is at `base + v`.
    pub base: u64,
    /// Bytes allocated.
    pub size: u64,
    /// Global symbols by name.
    pub symbols: BTreeMap<String, LoadedSymbol>,
}

impl LoadedObject {
    /// Device address of the kernel descriptor of the kernel `name` (without `.kd`).
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<u64> {
        self.symbols.get(&format!("{name}.kd")).map(|symbol| symbol.address)
    }
}
