//! Loads of numbers of 4, 6, 8 and 16 bits for matrix instructions: each lane loads its own bytes, then the lanes of
//! a group exchange them, so that a lane has what is across the rows that were loaded.
//!
//! On gfx950 the 16 lanes of a group have rows of 16 numbers, one after the other, and lane n gets column n: with 16
//! bits a lane has a quarter of a row, with 8 bits half of it, else all of it. So AMD's rocRoller tests it on
//! hardware (`TransposeLoadsTest`, all four sizes); AMD's emulator (rocm-systems, rocjitsu) agrees on 16 and 8 bits,
//! and has what is not checked on others. gfx12 loads a row of eight numbers of 16 bits into each of 8 lanes, and
//! gives each lane a column: rocjitsu and IREE agree on that. What happens to lanes that are off is said of gfx1250
//! alone, and only in one place: with such lanes they are refused, as is gfx12 in wave64. gfx950 wants addresses
//! that are aligned (CDNA4 ISA guide, 11.4; 6 bits: to 16 bytes, rocRoller).

use wavetap_amdgpu::Opcode;

use crate::lanes::LANES;

/// Registers that a lane loads at most.
pub(crate) const MOST: usize = 4;

pub(crate) type Rows = [[u32; LANES]; MOST];

/// Which lane gets which numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Of a number.
    bits: usize,
    /// Of a lane.
    pub bytes: u8,
    /// Lanes that exchange numbers: as many as a row has numbers.
    group: usize,
    /// What addresses are a multiple of, 0 where nothing is said.
    pub alignment: u64,
}

/// A lane's number at a bit.
pub(crate) fn field(rows: &Rows, lane: usize, at: usize, bits: usize) -> u64 {
    let word = |n: usize| rows.get(n).map_or(0, |row| u64::from(row[lane]));
    (word(at / 32) | word(at / 32 + 1) << 32) >> (at % 32) & ((1 << bits) - 1)
}

impl Layout {
    const fn new(bits: usize, bytes: u8, group: usize, alignment: u64) -> Option<Layout> {
        Some(Layout { bits, bytes, group, alignment })
    }

    pub(crate) fn of(opcode: Opcode) -> Option<Layout> {
        match opcode {
            Opcode::DS_READ_B64_TR_B4 => Self::new(4, 8, 16, 8),
            Opcode::DS_READ_B96_TR_B6 => Self::new(6, 12, 16, 16),
            Opcode::DS_READ_B64_TR_B8 => Self::new(8, 8, 16, 8),
            Opcode::DS_READ_B64_TR_B16 => Self::new(16, 8, 16, 8),
            Opcode::DS_LOAD_TR16_B128 | Opcode::GLOBAL_LOAD_TR16_B128 | Opcode::GLOBAL_LOAD_TR_B128 => {
                Self::new(16, 16, 8, 0)
            }
            _ => None,
        }
    }

    pub(crate) fn words(self) -> usize {
        usize::from(self.bytes) / 4
    }

    /// The registers of the lanes after the exchange.
    pub(crate) fn exchange(self, loaded: &Rows, lanes: usize) -> Rows {
        let mut result = [[0; LANES]; MOST];
        let of_lane = 8 * usize::from(self.bytes) / self.bits;
        for place in 0..lanes * of_lane {
            // Number n of the lane's column is in row n.
            let (lane, n) = (place / of_lane, place % of_lane);
            let at = self.group * n + lane % self.group;
            let from = lane / self.group * self.group + at / of_lane;
            let number = field(loaded, from, at % of_lane * self.bits, self.bits);
            let (word, shift) = (n * self.bits / 32, n * self.bits % 32);
            result[word][lane] |= (number << shift) as u32;
            if shift + self.bits > 32 {
                result[word + 1][lane] |= (number << shift >> 32) as u32;
            }
        }
        result
    }
}
