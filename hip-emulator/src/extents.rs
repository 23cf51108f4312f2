//! Sizes and places of boxes of memory, as HIP's structures have them.

use std::ffi::c_int;

/// `hipPitchedPtr`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PitchedPointer {
    pub(crate) pointer: u64,
    pub(crate) pitch: usize,
    pub(crate) x: usize,
    pub(crate) y: usize,
}

/// `hipExtent`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

/// `hipPos`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Position {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
}

/// `hipMemcpy3DParms`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Copy3D {
    pub(crate) from_array: usize,
    pub(crate) from_position: Position,
    pub(crate) from: PitchedPointer,
    pub(crate) to_array: usize,
    pub(crate) to_position: Position,
    pub(crate) to: PitchedPointer,
    pub(crate) extent: Extent,
    pub(crate) kind: c_int,
}

impl Extent {
    /// How many elements it has.
    pub(crate) fn elements(self) -> u64 {
        (self.width as u64).saturating_mul(self.height as u64).saturating_mul(self.depth as u64)
    }
}
