//! Ranges of device memory.

/// First byte, and the one after the last.
pub(crate) type Range = (u64, u64);

/// Any place.
pub(crate) const ANYWHERE: Range = (0, u64::MAX);

/// Whether two ranges have a byte in common.
pub(crate) fn overlap(a: Range, b: Range) -> bool {
    a.0 < b.1 && b.0 < a.1
}
