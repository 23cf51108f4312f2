//! Unsigned LEB128 (DWARF 5, 7.6): numbers of seven bits a byte, the low ones first; a byte with its high bit set is
//! not the last.
//!
//! These are 20 lines of our own, not a crate's: what the crates have (leb128fmt, unsigned-varint, leb128, gimli) reads
//! at a position, from a stream or with a reader of its own, so that each caller would wrap it in as many lines; and
//! some refuse a number that is longer than it must be, which the standard allows.

use crate::error::{Error, Result};

/// Bits of the number in a byte.
const BITS: u32 = 7;
/// Set in a byte that is not the last.
const MORE: u8 = 1 << BITS;

/// Appends a number.
///
/// ```
/// use wavetap_base::leb128;
///
/// let mut bytes = Vec::new();
/// leb128::put(&mut bytes, 2);
/// leb128::put(&mut bytes, 129);
/// assert_eq!(bytes, [2, 0x81, 0x01]);
/// let mut rest = bytes.as_slice();
/// assert_eq!((leb128::take(&mut rest)?, leb128::take(&mut rest)?, rest.len()), (2, 129, 0));
/// # Ok::<(), wavetap_base::error::Error>(())
/// ```
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >> BITS != 0 {
        out.push(number as u8 | MORE);
        number >>= BITS;
    }
    out.push(number as u8);
}

/// Reads a number at the start of `bytes` and removes it from there.
///
/// # Errors
/// Malformed if `bytes` end within the number, or if it has more than 64 bits.
pub fn take(bytes: &mut &[u8]) -> Result<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(BITS as usize) {
        let (byte, rest) = bytes.split_first().ok_or_else(|| Error::malformed("a number is cut off"))?;
        *bytes = rest;
        let bits = u64::from(byte & !MORE);
        if bits << shift >> shift != bits {
            break;
        }
        number |= bits << shift;
        if byte & MORE == 0 {
            return Ok(number);
        }
    }
    Err(Error::malformed("a number exceeds 64 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_and_read_as_the_standard_says() {
        // The first five: DWARF 5, 7.6, "Examples of unsigned LEB128 encodings".
        let examples: [(u64, &[u8]); 7] = [
            (2, &[2]),
            (127, &[127]),
            (128, &[0x80, 1]),
            (129, &[0x81, 1]),
            (12857, &[57 + 0x80, 100]),
            (0, &[0]),
            (u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        ];
        for (number, expected) in examples {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(bytes, expected, "{number}");
            let mut rest = bytes.as_slice();
            assert_eq!((take(&mut rest).ok(), rest), (Some(number), &[][..]));
        }
        // Longer than it must be.
        assert_eq!(take(&mut [0x82, 0x80, 0].as_slice()).ok(), Some(2));
    }

    #[test]
    fn what_is_no_number_of_64_bits_is_refused() {
        let message = |mut bytes: &[u8]| take(&mut bytes).expect_err("no number").to_string();
        for cut_off in [&[][..], &[0x80], &[0xff; 9]] {
            assert!(message(cut_off).contains("cut off"), "{cut_off:?}");
        }
        // Bit 64 alone, in the tenth byte; bits after an eleventh.
        for long in [&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2][..], &[0x80; 11], &[0xff; 10]] {
            assert!(message(long).contains("64 bits"), "{long:?}");
        }
    }
}
