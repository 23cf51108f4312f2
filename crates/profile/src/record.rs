//! The record: what one wave leaves behind, or all waves of a kernel that ran in the same place.
//!
//! A header of [`HEADER`] bytes, then the 64-bit counters of the kernel's sites, each site at the offset its
//! [`super::map::Site`] names. The host zeroes the buffer; waves *add* their counters atomically, so that they may
//! share a record.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | kernel index in the site table |
//! | 4 | 4 | dispatch ordinal |
//! | 8 | 12 | workgroup id x, y, z |
//! | 20 | 4 | wave index in the workgroup |
//! | 24 | 4 | waves that began with this record (added) |
//! | 28 | 4 | waves that finished with it (added in the epilogue) |
//!
//! A wave with a record of its own stores the first six fields. Waves that choose a record by the place where they run
//! leave them 0: a buffer has records of one kernel. Such a wave adds to the last field; how many began is known from
//! the grid.

use wavetap_base::bytes;
use wavetap_base::error::Result;

/// Size of the header in bytes.
pub const HEADER: u32 = 32;
/// Size of a counter in bytes.
pub const COUNTER: u32 = 8;
/// Offset of the kernel index.
pub const KERNEL: u32 = 0;
/// Offset of the dispatch ordinal.
pub const DISPATCH: u32 = 4;
/// Offset of the workgroup ids.
pub const WORKGROUP: u32 = 8;
/// Offset of the wave index.
pub const WAVE: u32 = 20;
/// Offset of the count of waves that began.
pub const BEGAN: u32 = 24;
/// Offset of the count of waves that finished.
pub const FINISHED: u32 = 28;

/// Size of a record with so many counters, in bytes.
#[must_use]
pub const fn record_bytes(counters: u32) -> u32 {
    HEADER.saturating_add(counters.saturating_mul(COUNTER))
}

/// The header of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Kernel index in the site table.
    pub kernel: u32,
    /// Dispatch ordinal.
    pub dispatch: u32,
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// Wave index in the workgroup.
    pub wave: u32,
    /// Waves that began with this record.
    pub began: u32,
    /// Waves that finished with it.
    pub finished: u32,
}

impl Header {
    /// Reads the header of a record.
    ///
    /// # Errors
    /// Malformed if the record is shorter than a header.
    pub fn from_bytes(record: &[u8]) -> Result<Header> {
        let field = |offset: u32| bytes::u32_at(record, offset.into(), "record header");
        Ok(Header {
            kernel: field(KERNEL)?,
            dispatch: field(DISPATCH)?,
            workgroup: [field(WORKGROUP)?, field(WORKGROUP + 4)?, field(WORKGROUP + 8)?],
            wave: field(WAVE)?,
            began: field(BEGAN)?,
            finished: field(FINISHED)?,
        })
    }
}
