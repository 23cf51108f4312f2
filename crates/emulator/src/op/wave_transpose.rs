//! Loads of numbers of 8 and 4 bits for matrix instructions of gfx1250: each lane loads a piece of a row of 16 numbers,
//! which all of them then exchange, so that a lane has a part of a column.
//!
//! Of 8 bits a lane has half of a row. In each 16 lanes the first four have the first halves of rows 0 to 3, the next
//! four the second halves, the others rows 4 to 7; lane n gets column n: measured on hardware (a public demo of
//! `ds_load_tr8_b64`), as Triton lays its tiles out for it, and as the CDNA5 ISA guide draws it for
//! `global_load_tr8_b64` (10.9.2). Of 4 bits a lane has a row; lane n gets column n mod 16 of rows 0 to 7 and 16 to 23,
//! or if it is one of the last 16, of the others (the same drawing; AMD's emulator, rocjitsu). Of 6 bits the drawing
//! and that emulator do not agree: they have no meaning here, like those of gfx12.0, of which there is no drawing.
//!
//! With all lanes off a load from memory does nothing (CDNA5 ISA guide); with some of them off it is undefined. Those
//! from LDS ignore EXEC, it says, which others doubt: refused.

use wavetap_amdgpu::Opcode;

use crate::lanes::LANES;

/// Lanes of a wave.
pub(crate) const WAVE: usize = 32;

/// Registers that a lane loads.
pub(crate) const WORDS: usize = 2;

/// Bits of a number.
pub(crate) fn bits_of(opcode: Opcode) -> Option<usize> {
    match opcode {
        Opcode::DS_LOAD_TR8_B64 | Opcode::GLOBAL_LOAD_TR8_B64 => Some(8),
        Opcode::DS_LOAD_TR4_B64 | Opcode::GLOBAL_LOAD_TR4_B64 => Some(4),
        _ => None,
    }
}

/// The lane that has loaded a number of another, and which of its own that is.
pub(crate) fn source(bits: usize, lane: usize, n: usize) -> (usize, usize) {
    match bits {
        8 => (lane & 16 | n >> 2 << 3 | lane >> 1 & 4 | n & 3, lane & 7),
        _ => (n >> 3 << 4 | lane >> 1 & 8 | n & 7, lane & 15),
    }
}

/// What the lanes have after the exchange.
pub(crate) fn exchange(bits: usize, loaded: &[[u32; LANES]; WORDS]) -> [[u32; LANES]; WORDS] {
    let mut result = [[0; LANES]; WORDS];
    let each = 32 / bits;
    for (lane, n) in (0..WAVE).flat_map(|lane| (0..WORDS * each).map(move |n| (lane, n))) {
        let (from, which) = source(bits, lane, n);
        let number = loaded[which / each][from] >> (which % each * bits) & ((1 << bits) - 1);
        result[n / each][lane] |= number << (n % each * bits);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_goes_to_one_place() {
        for (bits, each) in [(8, 8), (4, 16)] {
            let places: std::collections::BTreeSet<_> =
                (0..WAVE).flat_map(|lane| (0..each).map(move |n| source(bits, lane, n))).collect();
            assert_eq!(places.len(), WAVE * each);
            assert!(places.iter().all(|(lane, n)| *lane < WAVE && *n < each));
        }
    }
}
