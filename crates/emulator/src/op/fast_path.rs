//! What the fast path of a vector ALU instruction needs, found once.

use super::semantics::Source;
use crate::lanes::{LanePart, Register};

/// What the fast path of an instruction needs of it, found once.
pub(crate) struct FastPath {
    /// The sources, and how many registers each is.
    pub sources: [(Source, u16); 3],
    /// Constants in all lanes, both dwords.
    pub constants: [[Option<Box<Register>>; 2]; 3],
    /// The destination, and how many registers it is.
    pub dst: (u16, u16),
    /// Of which source the absolute value is taken, and which is negated.
    pub abs: u8,
    pub neg: u8,
    /// Parts of sources that are taken instead of all of them (SDWA).
    pub parts: [Option<LanePart>; 2],
    /// Some source is not taken as it is.
    pub changed: bool,
    /// The third source is a lane mask.
    pub masked: bool,
    /// VCC is a fourth source: a flag of each lane, whose lanes are done one by one.
    pub flags: bool,
    /// Which sources are scalar registers, the same for all lanes.
    pub scalars: u8,
    pub float: bool,
    /// Which sources, and whether the result, are of single precision.
    pub singles: u8,
    /// How many registers of each file there must be.
    pub vector: u16,
    pub accum: u16,
    pub scalar: u16,
}

/// The SDWA selection of a whole register.
pub(crate) const WHOLE: u8 = 6;

/// The bit of [`FastPath::singles`] for the result.
pub(crate) const RESULT: u8 = 8;

impl LanePart {
    /// What an SDWA selection takes: 0-3 bytes, 4-5 words; none if that is everything.
    pub(crate) fn of(select: u8, signed: bool) -> Option<LanePart> {
        let (first, width) = match select {
            0..=3 => (8 * select, 8),
            4 | 5 => (16 * (select - 4), 16),
            _ => return None,
        };
        Some(LanePart { up: 32 - width - first, down: 32 - width, signed })
    }
}
