//! Where things are: allocations, loaded objects, code.

pub(crate) mod allocation;
pub(crate) mod aperture;
pub(crate) mod place;
pub(crate) mod range;

/// Which load an object came from; never reused on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u32);

/// The place of an instruction: the object and the virtual address in it (as in its ELF file).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeAddress {
    /// The loaded object.
    pub object: ObjectId,
    /// The virtual address within it.
    pub address: u64,
}
