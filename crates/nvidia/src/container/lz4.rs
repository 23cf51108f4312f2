//! The block format of LZ4 (its "LZ4 Block Format Description"): sequences of literals and of copies of earlier output.
//! Containers of CUDA before 13 are packed with it.

use wavetap_base::error::{Error, Result};

/// A length of 15 in the token goes on in further bytes.
const LONG: usize = 15;
/// What a copy is longer than its length says.
const LEAST_COPY: usize = 4;

struct Input<'d> {
    bytes: &'d [u8],
    at: usize,
}

impl Input<'_> {
    fn byte(&mut self) -> Result<u8> {
        let byte = self.bytes.get(self.at).ok_or_else(|| Error::malformed("LZ4 data that end in a sequence"))?;
        self.at += 1;
        Ok(*byte)
    }

    /// A length whose first four bits are given.
    fn length(&mut self, first: u8) -> Result<usize> {
        let mut length = usize::from(first);
        while length >= LONG {
            let byte = self.byte()?;
            length = length.saturating_add(byte.into());
            if byte != u8::MAX {
                break;
            }
        }
        Ok(length)
    }
}

/// Unpacks a block to exactly `size` bytes.
///
/// # Errors
/// Malformed if the block ends too early, copies from before its begin, or unpacks to another size.
pub(super) fn unpack(block: &[u8], size: usize) -> Result<Vec<u8>> {
    let too_long = || Error::malformed(format!("LZ4 data that unpack to more than the {size:#x} bytes of the header"));
    let mut input = Input { bytes: block, at: 0 };
    let mut out: Vec<u8> = Vec::new();
    while input.at < block.len() {
        let token = input.byte()?;
        let literals = input.length(token >> 4)?;
        let text = input.at.checked_add(literals).and_then(|end| block.get(input.at..end));
        out.extend_from_slice(text.ok_or_else(|| Error::malformed("LZ4 data that end in literals"))?);
        input.at += literals;
        if out.len() > size {
            return Err(too_long());
        }
        // The last sequence has no copy.
        if input.at == block.len() {
            break;
        }
        let distance = usize::from(u16::from_le_bytes([input.byte()?, input.byte()?]));
        let length = input.length(token & 15)?.saturating_add(LEAST_COPY);
        let from = out.len().checked_sub(distance).filter(|_| distance > 0);
        let from = from.ok_or_else(|| Error::malformed("LZ4 data that copy from before their begin"))?;
        if length > size - out.len() {
            return Err(too_long());
        }
        // A copy may overlap what it writes.
        for index in from..from + length {
            out.push(out[index]);
        }
    }
    if out.len() != size {
        let text = format!("LZ4 data that unpack to {:#x} bytes, the header says {size:#x}", out.len());
        return Err(Error::malformed(text));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::unpack;

    #[test]
    fn literals_and_copies() {
        // "abc", then six bytes from three before, then "x".
        assert_eq!(unpack(&[0x32, b'a', b'b', b'c', 3, 0, 0x10, b'x'], 10).as_deref(), Ok(&b"abcabcabcx"[..]));
        // Fifteen literals and more: 15 + 2.
        let mut long = vec![0xf0, 2];
        long.extend([7; 17]);
        assert_eq!(unpack(&long, 17), Ok(vec![7; 17]));
    }

    #[test]
    fn damaged_blocks_are_refused() {
        let refused = |block: &[u8], size| unpack(block, size).expect_err("damaged").to_string();
        assert!(refused(&[0x32, b'a'], 9).contains("end in literals"));
        assert!(refused(&[0x12, b'a', 2, 0], 7).contains("before their begin"));
        assert!(refused(&[0x12, b'a', 0, 0], 7).contains("before their begin"));
        assert!(refused(&[0x12, b'a', 1, 0], 6).contains("more than"));
        assert!(refused(&[0x10, b'a'], 6).contains("unpack to 0x1 bytes"));
        assert!(refused(&[0x1f, b'a', 1, 0], 99).contains("end in a sequence"));
    }
}
