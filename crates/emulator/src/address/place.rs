//! Where the access of a lane goes.

/// Where the access of a lane goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LanePlace {
    Global(u64),
    Lds(u64),
    /// Offset in the lane's private segment.
    Scratch(i64),
    /// An address whose first so many bytes are in range of a buffer; the others are nowhere.
    Head(u64, u8),
    /// Out of range of a buffer: loads give zero, stores are dropped.
    Nowhere,
}
