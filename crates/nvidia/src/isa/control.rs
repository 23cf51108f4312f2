//! The control bits of an instruction.

use super::Word;

/// Scoreboards of a warp.
pub const SCOREBOARDS: u8 = 6;

/// How an instruction is issued: bits 105 to 125.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Control {
    /// Cycles until the warp can issue its next instruction, 0 to 15.
    pub stall: u8,
    /// Whether the scheduler may switch to another warp (bit 109 is 0).
    pub may_yield: bool,
    /// The scoreboard that counts it until its result is written, 0 to 5.
    pub write: Option<u8>,
    /// The scoreboard that counts it until its operands were read, 0 to 5.
    pub read: Option<u8>,
    /// Bit k: it waits until nothing is in flight on scoreboard k.
    pub wait: u8,
    /// Operand slots whose register stays in the reuse cache.
    pub reuse: u8,
}

impl Control {
    pub(super) fn of(word: Word) -> Control {
        let scoreboard = |first| u8::try_from(word.field(first, 3)).ok().filter(|number| *number < SCOREBOARDS);
        Control {
            stall: word.field(105, 4) as u8,
            may_yield: !word.bit(109),
            write: scoreboard(110),
            read: scoreboard(113),
            wait: word.field(116, 6) as u8,
            reuse: word.field(122, 4) as u8,
        }
    }

    /// The scoreboards it waits for, ascending.
    pub fn waits(self) -> impl Iterator<Item = u8> {
        (0..SCOREBOARDS).filter(move |number| self.wait >> number & 1 == 1)
    }
}
