//! Instructions of Volta and later: 128 bits each, with control bits that say how long to wait before the next one and
//! for which scoreboards.
//!
//! ```
//! use wavetap_nvidia::isa::{Model, Word, decode};
//!
//! // IMAD.MOV.U32 R1, RZ, RZ, R2 of sm_80: only R2 is read.
//! let inst = decode(Model::new(80)?, Word::new(0x0000_00ff_ff01_7224, 0x000f_e400_078e_0002), 0)?;
//! assert_eq!(inst.name(), "IMAD");
//! assert_eq!(inst.operands.iter().map(ToString::to_string).collect::<Vec<_>>(), ["R1", "R2"]);
//! assert_eq!(inst.control().stall, 2);
//! # Ok::<(), wavetap_base::error::Error>(())
//! ```

mod control;
mod decode;
mod table;
mod text;

pub use control::{Control, SCOREBOARDS};
pub use decode::{Inst, Model, Register, decode};
pub use table::{Action, File, Use};

/// Bytes of an instruction.
pub const INST_BYTES: u64 = 16;

/// The bits of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Word(u128);

impl Word {
    /// From its lower and its upper half, as `nvdisasm -hex` prints them.
    #[must_use]
    pub const fn new(lower: u64, upper: u64) -> Word {
        Word(lower as u128 | (upper as u128) << 64)
    }

    /// From its bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Word {
        Word(u128::from_le_bytes(bytes))
    }

    /// The lower and the upper half.
    #[must_use]
    pub const fn halves(self) -> (u64, u64) {
        (self.0 as u64, (self.0 >> 64) as u64)
    }

    /// Bits 0 to 11: the operation and its form.
    #[must_use]
    pub const fn opcode(self) -> u16 {
        self.0 as u16 & 0xfff
    }

    /// `count` bits (at most 64) from bit `first` on.
    #[must_use]
    pub const fn field(self, first: u8, count: u8) -> u64 {
        (self.0 >> first) as u64 & (u64::MAX >> (64 - count))
    }

    /// One bit.
    #[must_use]
    pub const fn bit(self, bit: u8) -> bool {
        self.0 >> bit & 1 == 1
    }

    /// A number of these bits, the lowest first.
    fn gather(self, bits: &[u8]) -> u8 {
        bits.iter().rev().fold(0, |value, bit| value << 1 | u8::from(self.bit(*bit)))
    }

    /// `count` bits from bit `first` on as a signed number.
    fn signed(self, first: u8, count: u8) -> i64 {
        (self.field(first, count) << (64 - count)) as i64 >> (64 - count)
    }
}
