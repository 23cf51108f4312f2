//! What MODE means for the fast paths of instructions.

use crate::float::Env;

/// What a MODE means for fast paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FpMode {
    /// [`Env::USUAL`].
    Usual,
    /// [`Env::FLUSHING`].
    Flushing,
    /// What is open to operations that are no arithmetic on floats.
    Bits,
    /// Registers are indexed: none is open.
    Closed,
}

/// MODE bit that offsets vector registers by M0.
pub(crate) const GPR_IDX_EN: u32 = 1 << 27;

/// MODE bit that lets vector instructions be skipped (gfx8 and gfx9).
pub(crate) const VSKIP: u32 = 1 << 28;

impl FpMode {
    pub(crate) fn of(mode: u32) -> FpMode {
        match Env::from_mode(mode) {
            _ if mode & GPR_IDX_EN != 0 => FpMode::Closed,
            Env::USUAL => FpMode::Usual,
            Env::FLUSHING => FpMode::Flushing,
            _ => FpMode::Bits,
        }
    }
}
