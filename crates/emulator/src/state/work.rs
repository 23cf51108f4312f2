//! Rows that fast paths of vector instructions work with.

use super::wave::Wave;
use crate::lanes::{Register, blend};

/// Rows that instructions work with; what is in them means nothing afterwards, but for those of scalars.
pub(crate) struct WorkRows {
    pub broadcast: Broadcast,
    /// Sources with another sign, and lane masks.
    pub signed: [Register; 3],
    /// Sources without denormals.
    pub flushed: [Register; 3],
    /// Results.
    pub out: [Box<Register>; 2],
    /// What is loaded from memory.
    pub loaded: [Box<Register>; 4],
}

/// A row for each scalar register, in which all lanes are the same: what the register was when it was last a source. It
/// mostly still is.
pub(crate) struct Broadcast(pub Vec<Register>);

impl Default for WorkRows {
    fn default() -> Self {
        WorkRows {
            broadcast: Broadcast(vec![Register::default(); 128]),
            signed: Default::default(),
            flushed: Default::default(),
            out: Default::default(),
            loaded: Default::default(),
        }
    }
}

/// Makes the rows of results registers' own, in the lanes of a mask: all of them change places if those are all lanes.
#[inline(always)]
pub(crate) fn put(registers: &mut [Box<Register>], rows: &mut [Box<Register>], mask: u64, lanes: u64) {
    for (register, row) in registers.iter_mut().zip(rows) {
        if mask == lanes {
            std::mem::swap(register, row);
        } else {
            blend(register, row, mask);
        }
    }
}

impl Broadcast {
    /// Makes the rows of some registers what these are now.
    #[inline]
    pub(crate) fn update(&mut self, wave: &Wave, first: u16, count: u16) {
        for code in usize::from(first)..usize::from(first + count) {
            let (value, row) = (wave.sgpr[code], &mut self.0[code]);
            if row[0] != value {
                row.fill(value);
            }
        }
    }
}
