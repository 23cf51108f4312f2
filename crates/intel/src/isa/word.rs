//! An instruction word of 128 bits.

/// A full instruction word. Bits are counted from 0 in little-endian order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Word(pub u128);

impl Word {
    /// The bits `low..=high` as a number; at most 64 of them.
    #[must_use]
    pub const fn bits(self, low: u32, high: u32) -> u64 {
        (self.0 >> low) as u64 & (u64::MAX >> (63 - (high - low)))
    }

    /// One bit.
    #[must_use]
    pub const fn bit(self, number: u32) -> bool {
        self.0 >> number & 1 == 1
    }

    /// Up to eight bits.
    pub(crate) const fn field(self, low: u32, width: u32) -> u8 {
        self.bits(low, low + width - 1) as u8
    }
}
