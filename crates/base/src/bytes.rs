//! Checked little-endian reading and writing of byte slices.
//!
//! Every read names the offset it failed at; nothing here panics on a short or lying input.

use crate::error::{Error, Result};

/// A checked view of `len` bytes at `offset` of `data`.
///
/// # Errors
/// Malformed if the range does not lie within `data`, naming `what` was to be read.
pub fn slice<'d>(data: &'d [u8], offset: u64, len: u64, what: &str) -> Result<&'d [u8]> {
    let end = offset.checked_add(len);
    match end {
        Some(end) if end <= data.len() as u64 => Ok(&data[offset as usize..end as usize]),
        _ => {
            Err(Error::malformed(format!("{what}: {len} bytes expected, the data ends at {:#x}", data.len()))
                .at(offset))
        }
    }
}

/// Reads a `u16` at `offset`.
///
/// # Errors
/// Malformed if it does not lie within `data`.
pub fn u16_at(data: &[u8], offset: u64, what: &str) -> Result<u16> {
    let b = slice(data, offset, 2, what)?;
    Ok(u16::from_le_bytes([b[0], b[1]]))
}

/// Reads a `u32` at `offset`.
///
/// # Errors
/// Malformed if it does not lie within `data`.
pub fn u32_at(data: &[u8], offset: u64, what: &str) -> Result<u32> {
    let b = slice(data, offset, 4, what)?;
    Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

/// Reads a `u64` at `offset`.
///
/// # Errors
/// Malformed if it does not lie within `data`.
pub fn u64_at(data: &[u8], offset: u64, what: &str) -> Result<u64> {
    let lo = u32_at(data, offset, what)?;
    let hi = u32_at(data, offset.saturating_add(4), what)?;
    Ok(u64::from(lo) | u64::from(hi) << 32)
}

/// Overwrites bytes at `offset`.
///
/// # Errors
/// Internal if the range does not lie within `data`: writers compute their own offsets.
pub fn put(data: &mut [u8], offset: u64, bytes: &[u8]) -> Result<()> {
    let len = data.len();
    let place = usize::try_from(offset).ok().and_then(|o| data.get_mut(o..o.checked_add(bytes.len())?));
    match place {
        Some(place) => {
            place.copy_from_slice(bytes);
            Ok(())
        }
        None => Err(Error::internal(format!("write of {} bytes past the end {len:#x}", bytes.len())).at(offset)),
    }
}

/// The smallest multiple of `align` (a power of two) that is not below `value`.
#[must_use]
pub const fn align_up(value: u64, align: u64) -> u64 {
    (value + align - 1) & !(align - 1)
}
