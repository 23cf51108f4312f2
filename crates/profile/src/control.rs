//! The control blocks: where the host and instrumented kernels meet. The one global symbol [`SYMBOL`] names an array
//! with a block for each instrumented kernel, in the order of the site table, so that dispatches of different kernels
//! never meet.
//!
//! The host sets a kernel's block before it dispatches it. While the buffer pointer is null, the kernel counts nothing.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | version ([`VERSION`]) |
//! | 4 | 4 | flags ([`FLAG_SHARED`]) |
//! | 8 | 8 | device address of the record buffer, 8-aligned, or 0 |
//! | 16 | 4 | capacity in records; a power of two when records are shared |
//! | 20 | 4 | bytes of the object's largest record (set by the rewriter, never by the host) |
//! | 24 | 8 | workgroups of the grid in x and y |
//! | 32 | 4 | dispatch ordinal |
//! | 36 | 4 | waves of a workgroup that is not partial |
//! | 40 | 4 | dropped: waves whose record is beyond the capacity (atomic) |
//! | 44 | 4 | bytes from one record to the next |
//! | 48 | 8 | device address of the sample table, 4-aligned |
//! | 56 | 4 | slots of a wave |
//! | 60 | 4 | reserved, 0 |
//!
//! Only version and buffer mean anything where waves choose records by the place where they run
//! ([`super::map::KernelMap::slots`]). The others are for kernels in which each wave has a record of its own: there is
//! one dispatch of such a kernel in flight at a time. The last three are for kernels that record their accesses
//! ([`super::accesses`]): the sample table has a 32-bit number for each workgroup, in the order x, y, z: that of the
//! workgroup among the sampled ones, or [`NOT_SAMPLED`].

use wavetap_base::bytes;
use wavetap_base::error::{Error, Result};

pub use wavetap_base::added::{CONTROL_SYMBOL as SYMBOL, MAP_SECTION};
/// Version of blocks and records. Version 1 had one block, and a wave claimed a record from it.
pub const VERSION: u32 = 2;
/// Size of a block in bytes.
pub const SIZE: u64 = 64;
/// Flag: waves whose index is beyond the capacity share records (`index & (capacity - 1)`), none is dropped.
pub const FLAG_SHARED: u32 = 1;

/// Offset of the flags.
pub const FLAGS: u64 = 4;
/// Offset of the buffer address.
pub const BUFFER: u64 = 8;
/// Offset of the capacity.
pub const CAPACITY: u64 = 16;
/// Offset of the stride.
pub const STRIDE: u64 = 20;
/// Offset of the numbers of workgroups in x and y.
pub const GROUPS: u64 = 24;
/// Offset of the dispatch ordinal.
pub const DISPATCH: u64 = 32;
/// Offset of the waves of a workgroup.
pub const GROUP_WAVES: u64 = 36;
/// Offset of the drop count.
pub const DROPPED: u64 = 40;
/// Offset of the bytes from one record to the next.
pub const RECORD_STRIDE: u64 = 44;
/// Offset of the sample table's address.
pub const SAMPLE_TABLE: u64 = 48;
/// Offset of the slots of a wave.
pub const SLOTS: u64 = 56;
/// What the sample table says of a workgroup that records nothing.
pub const NOT_SAMPLED: u32 = u32::MAX;

/// Offset of a kernel's block among the blocks.
#[must_use]
pub fn offset_of(kernel: u32) -> u64 {
    u64::from(kernel) * SIZE
}

/// A block's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Control {
    /// Flags.
    pub flags: u32,
    /// Device address of the record buffer, or 0.
    pub buffer: u64,
    /// Capacity in records.
    pub capacity: u32,
    /// Bytes of the object's largest record.
    pub stride: u32,
    /// Workgroups of the grid in x and y.
    pub groups: [u32; 2],
    /// Dispatch ordinal.
    pub dispatch: u32,
    /// Waves of a workgroup that is not partial.
    pub group_waves: u32,
    /// Waves whose record is beyond the capacity.
    pub dropped: u32,
    /// Bytes from one record to the next.
    pub record_stride: u32,
    /// Device address of the sample table.
    pub sample_table: u64,
    /// Slots of a wave.
    pub slots: u32,
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
        out[24..28].copy_from_slice(&self.groups[0].to_le_bytes());
        out[28..32].copy_from_slice(&self.groups[1].to_le_bytes());
        out[32..36].copy_from_slice(&self.dispatch.to_le_bytes());
        out[36..40].copy_from_slice(&self.group_waves.to_le_bytes());
        out[40..44].copy_from_slice(&self.dropped.to_le_bytes());
        out[44..48].copy_from_slice(&self.record_stride.to_le_bytes());
        out[48..56].copy_from_slice(&self.sample_table.to_le_bytes());
        out[56..60].copy_from_slice(&self.slots.to_le_bytes());
        out
    }

    /// The bytes of an object's blocks before a host sets them, where its largest record has so many bytes.
    #[must_use]
    pub fn initial(kernels: usize, stride: u32) -> Vec<u8> {
        Control { stride, ..Control::default() }.to_bytes().repeat(kernels)
    }

    /// Reads a block.
    ///
    /// # Errors
    /// Malformed if it is short, Unsupported if it is of another version.
    pub fn from_bytes(data: &[u8]) -> Result<Control> {
        bytes::slice(data, 0, SIZE, "control block")?;
        let version = bytes::u32_at(data, 0, "control block version")?;
        if version != VERSION {
            return Err(Error::unsupported(format!(
                "control block version {version}, this program knows {VERSION}: rewrite the original file again"
            )));
        }
        Ok(Control {
            flags: bytes::u32_at(data, FLAGS, "control block flags")?,
            buffer: bytes::u64_at(data, BUFFER, "control block buffer")?,
            capacity: bytes::u32_at(data, CAPACITY, "control block capacity")?,
            stride: bytes::u32_at(data, STRIDE, "control block stride")?,
            groups: [
                bytes::u32_at(data, GROUPS, "control block workgroups")?,
                bytes::u32_at(data, GROUPS + 4, "control block workgroups")?,
            ],
            dispatch: bytes::u32_at(data, DISPATCH, "control block dispatch")?,
            group_waves: bytes::u32_at(data, GROUP_WAVES, "control block waves of a workgroup")?,
            dropped: bytes::u32_at(data, DROPPED, "control block drop count")?,
            record_stride: bytes::u32_at(data, RECORD_STRIDE, "control block record stride")?,
            sample_table: bytes::u64_at(data, SAMPLE_TABLE, "control block sample table")?,
            slots: bytes::u32_at(data, SLOTS, "control block slots")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_back() {
        let control = Control {
            flags: 1,
            buffer: 0x2000_0000_0040,
            capacity: 4,
            stride: 72,
            groups: [9, 8],
            dispatch: 7,
            group_waves: 6,
            dropped: 5,
            record_stride: 96,
            sample_table: 0x2000_0000_1000,
            slots: 77,
        };
        assert_eq!(Control::from_bytes(&control.to_bytes()).unwrap(), control);
        assert!(Control::from_bytes(&[0; 64]).is_err(), "version 0 is not ours");
        assert!(Control::from_bytes(&control.to_bytes()[..63]).is_err());
    }

    #[test]
    fn a_block_of_an_older_version_is_refused() {
        let mut bytes = Control::default().to_bytes();
        bytes[0] = 1;
        let found = Control::from_bytes(&bytes).unwrap_err().to_string();
        assert!(found.contains("control block version 1, this program knows 2: rewrite the original file"), "{found}");
    }
}
