//! Memory that a program maps to addresses itself.

use std::collections::BTreeMap;
use std::ffi::c_int;

use crate::status::*;

/// `hipMemLocation`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) kind: c_int,
    pub(crate) id: c_int,
}

/// What memory is created with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Properties {
    pub(crate) kind: c_int,
    pub(crate) handles: c_int,
    pub(crate) location: Location,
}

/// What `hipMemCreate` made.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) size: u64,
    pub(crate) properties: Properties,
    /// Handles that the program has not released.
    pub(crate) handles: u32,
    pub(crate) mapped: bool,
    /// Its bytes, from its first on, while it is not mapped and has been; none before that.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// Memory that is mapped.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) size: u64,
    pub(crate) memory: usize,
    pub(crate) accessible: bool,
    /// Its bytes are still to be put there, which is done when it is made accessible.
    pub(crate) is_new: bool,
}

/// All virtual memory of a program.
#[derive(Debug, Default)]
pub(crate) struct VirtualMemory {
    pub(crate) created: BTreeMap<usize, Created>,
    /// By address.
    pub(crate) mappings: BTreeMap<u64, Mapping>,
}

impl VirtualMemory {
    pub(crate) fn memory(&mut self, handle: usize) -> Outcome<&mut Created> {
        self.created.get_mut(&handle).filter(|memory| memory.handles > 0).ok_or(INVALID_VALUE)
    }

    /// Forgets memory that nothing refers to any more.
    pub(crate) fn forget(&mut self, handle: usize) {
        if self.created.get(&handle).is_some_and(|memory| memory.handles == 0 && !memory.mapped) {
            self.created.remove(&handle);
        }
    }

    /// The mapping around an address.
    pub(crate) fn around(&self, address: u64) -> Outcome<&Mapping> {
        let (start, mapping) = self.mappings.range(..=address).next_back().ok_or(INVALID_VALUE)?;
        if address - start < mapping.size { Ok(mapping) } else { Err(INVALID_VALUE) }
    }
}
