//! The control block: the one global symbol through which the host and instrumented kernels meet.
//!
//! The host sets it after the code object is loaded. While its buffer pointer is null, an instrumented kernel counts
//! nothing.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | version ([`VERSION`]) |
//! | 4 | 4 | flags ([`FLAG_SHARED`]) |
//! | 8 | 8 | device address of the record buffer, 8-aligned, or 0 |
//! | 16 | 4 | capacity in records; a power of two when records are shared |
//! | 20 | 4 | record stride in bytes (set by the rewriter, never by the host) |
//! | 24 | 4 | head: waves that asked for a record (atomic) |
//! | 28 | 4 | dropped: waves that found the buffer full (atomic) |
//! | 32 | 4 | dispatch ordinal, set by the host before a dispatch where it knows |
//! | 36 | 28 | reserved, 0 |

use wavetap_base::bytes;
use wavetap_base::error::{Error, Result};

pub use wavetap_base::added::{CONTROL_SYMBOL as SYMBOL, MAP_SECTION};
/// Version of block and record.
pub const VERSION: u32 = 1;
/// Size of the block in bytes.
pub const SIZE: u64 = 64;
/// Flag: waves beyond the capacity share records (`index & (capacity - 1)`) through atomic adds, none is dropped.
pub const FLAG_SHARED: u32 = 1;

/// Offset of the flags.
pub const FLAGS: u64 = 4;
/// Offset of the buffer address.
pub const BUFFER: u64 = 8;
/// Offset of the capacity.
pub const CAPACITY: u64 = 16;
/// Offset of the stride.
pub const STRIDE: u64 = 20;
/// Offset of the head.
pub const HEAD: u64 = 24;
/// Offset of the drop count.
pub const DROPPED: u64 = 28;
/// Offset of the dispatch ordinal.
pub const DISPATCH: u64 = 32;

/// The block's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Control {
    /// Flags.
    pub flags: u32,
    /// Device address of the record buffer, or 0.
    pub buffer: u64,
    /// Capacity in records.
    pub capacity: u32,
    /// Record stride in bytes.
    pub stride: u32,
    /// Waves that asked for a record.
    pub head: u32,
    /// Waves that found the buffer full.
    pub dropped: u32,
    /// Dispatch ordinal.
    pub dispatch: u32,
}

impl Control {
    /// The block's bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; SIZE as usize] {
        let mut out = [0; SIZE as usize];
        out[0..4].copy_from_slice(&VERSION.to_le_bytes());
        out[4..8].copy_from_slice(&self.flags.to_le_bytes());
        out[8..16].copy_from_slice(&self.buffer.to_le_bytes());
        out[16..20].copy_from_slice(&self.capacity.to_le_bytes());
        out[20..24].copy_from_slice(&self.stride.to_le_bytes());
        out[24..28].copy_from_slice(&self.head.to_le_bytes());
        out[28..32].copy_from_slice(&self.dropped.to_le_bytes());
        out[32..36].copy_from_slice(&self.dispatch.to_le_bytes());
        out
    }

    /// Reads a block.
    ///
    /// # Errors
    /// Malformed if it is short, Unsupported if it is of another version.
    pub fn from_bytes(data: &[u8]) -> Result<Control> {
        bytes::slice(data, 0, SIZE, "control block")?;
        let version = bytes::u32_at(data, 0, "control block version")?;
        if version != VERSION {
            return Err(Error::unsupported(format!("control block version {version}, this program knows {VERSION}")));
        }
        Ok(Control {
            flags: bytes::u32_at(data, FLAGS, "control block flags")?,
            buffer: bytes::u64_at(data, BUFFER, "control block buffer")?,
            capacity: bytes::u32_at(data, CAPACITY, "control block capacity")?,
            stride: bytes::u32_at(data, STRIDE, "control block stride")?,
            head: bytes::u32_at(data, HEAD, "control block head")?,
            dropped: bytes::u32_at(data, DROPPED, "control block drop count")?,
            dispatch: bytes::u32_at(data, DISPATCH, "control block dispatch")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_back() {
        let control =
            Control { flags: 1, buffer: 0x2000_0000_0040, capacity: 4, stride: 72, head: 9, dropped: 5, dispatch: 7 };
        assert_eq!(Control::from_bytes(&control.to_bytes()).unwrap(), control);
        assert!(Control::from_bytes(&[0; 64]).is_err(), "version 0 is not ours");
        assert!(Control::from_bytes(&control.to_bytes()[..63]).is_err());
    }
}
