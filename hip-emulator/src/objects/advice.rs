//! Advice about managed memory.

use std::ffi::c_int;

/// `hipInvalidDeviceId`.
pub(crate) const NOWHERE: c_int = -2;

/// What a program has advised about a range: nothing depends on it, but it may be asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Advice {
    pub(crate) read_mostly: bool,
    pub(crate) preferred: c_int,
    pub(crate) accessed_by: [bool; 2],
    pub(crate) prefetched: c_int,
    pub(crate) coarse: bool,
}

impl Default for Advice {
    fn default() -> Self {
        Advice { read_mostly: false, preferred: NOWHERE, accessed_by: [false; 2], prefetched: NOWHERE, coarse: false }
    }
}
