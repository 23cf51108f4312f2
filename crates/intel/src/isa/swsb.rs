//! Software scoreboard bits: what an instruction waits for, and the token that it sets.
//!
//! Bits 8 to 17 of every instruction, on Xe-HPC. Encodings are those of the assembler; see `docs/reference/intel.md`.

use std::fmt;

use wavetap_base::error::{Error, Result};

/// An in-order pipe, whose instructions are named by their distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pipe {
    /// Floating point of 32 bits and fewer.
    Float,
    /// Integers, and moves to them.
    Integer,
    /// Floating point of 64 bits.
    Long,
    /// Transcendental functions.
    Math,
}

impl Pipe {
    /// All pipes, in the order of their numbers.
    pub const ALL: [Pipe; 4] = [Pipe::Float, Pipe::Integer, Pipe::Long, Pipe::Math];

    /// The letter before `@`.
    #[must_use]
    pub const fn letter(self) -> &'static str {
        match self {
            Pipe::Float => "F",
            Pipe::Integer => "I",
            Pipe::Long => "L",
            Pipe::Math => "M",
        }
    }
}

/// Whose distance is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DistanceOf {
    /// `@n`: the pipe that follows from the instruction's types.
    Own,
    /// `A@n`: each in-order pipe.
    All,
    /// `F@n` and so on.
    Pipe(Pipe),
}

/// A wait for the n-th last instruction of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Distance {
    /// Of which pipe.
    pub of: DistanceOf,
    /// 1 is the last one; at most 7.
    pub distance: u8,
}

impl fmt::Display for Distance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.of {
            DistanceOf::Own => "",
            DistanceOf::All => "A",
            DistanceOf::Pipe(pipe) => pipe.letter(),
        };
        write!(f, "{letter}@{}", self.distance)
    }
}

/// What is done with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenUse {
    /// `$t.dst`: waits until the result is written.
    Result,
    /// `$t.src`: waits until the operands were read.
    Operands,
    /// `$t`: the instruction sets it.
    Set,
}

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    /// 0 to 31.
    pub number: u8,
    /// What is done with it.
    pub usage: TokenUse,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usage = match self.usage {
            TokenUse::Result => ".dst",
            TokenUse::Operands => ".src",
            TokenUse::Set => "",
        };
        write!(f, "${}{usage}", self.number)
    }
}

/// The scoreboard bits of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Swsb {
    /// A distance that it waits for.
    pub distance: Option<Distance>,
    /// A token that it waits for or sets.
    pub token: Option<Token>,
}

/// What combined forms mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Combined {
    Send,
    Dpas,
    Other,
}

/// The tokens of Xe-HPC.
pub const TOKENS: u8 = 32;

pub(super) fn decode(bits: u16, combined: Combined) -> Result<Swsb> {
    let (mode, low) = (bits >> 8, (bits & 0xff) as u8);
    let (number, usage) = (low & 0x1f, low >> 5);
    let token = |usage| Some(Token { number, usage });
    let distance = |of, distance| Some(Distance { of, distance });
    if mode != 0 {
        use DistanceOf::{All, Own};
        let (of, usage) = match (combined, mode) {
            (Combined::Send, 1) => (All, TokenUse::Set),
            (Combined::Send, 2) => (DistanceOf::Pipe(Pipe::Float), TokenUse::Set),
            (Combined::Send, _) => (DistanceOf::Pipe(Pipe::Integer), TokenUse::Set),
            (Combined::Dpas, 1) => (Own, TokenUse::Set),
            (Combined::Dpas, 2) | (Combined::Other, 2) => (Own, TokenUse::Operands),
            (Combined::Dpas, _) => (Own, TokenUse::Result),
            (Combined::Other, 1) => (Own, TokenUse::Result),
            (Combined::Other, _) => (All, TokenUse::Result),
        };
        // Three bits: a distance of 0 would name nothing.
        let n = usage_distance(low)?;
        return Ok(Swsb { distance: distance(of, n), token: token(usage) });
    }
    Ok(match usage {
        4 => Swsb { distance: None, token: token(TokenUse::Result) },
        5 => Swsb { distance: None, token: token(TokenUse::Operands) },
        6 => Swsb { distance: None, token: token(TokenUse::Set) },
        0 | 1 if low == 0 => Swsb::default(),
        0 | 1 => {
            let of = match low >> 3 {
                0 => DistanceOf::Own,
                1 => DistanceOf::All,
                2 => DistanceOf::Pipe(Pipe::Float),
                3 => DistanceOf::Pipe(Pipe::Integer),
                4 => DistanceOf::Pipe(Pipe::Long),
                5 => DistanceOf::Pipe(Pipe::Math),
                _ => return Err(unknown(bits)),
            };
            if low & 7 == 0 {
                return Err(unknown(bits));
            }
            Swsb { distance: distance(of, low & 7), token: None }
        }
        _ => return Err(unknown(bits)),
    })
}

fn usage_distance(low: u8) -> Result<u8> {
    match low >> 5 {
        0 => Err(unknown(u16::from(low))),
        distance => Ok(distance),
    }
}

fn unknown(bits: u16) -> Error {
    Error::unsupported(format!("scoreboard bits {bits:#05x}, which name nothing"))
}

impl Swsb {
    /// The token that the instruction sets.
    #[must_use]
    pub fn set(self) -> Option<u8> {
        self.token.filter(|token| token.usage == TokenUse::Set).map(|token| token.number)
    }
}

impl fmt::Display for Swsb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.distance, self.token) {
            (Some(distance), Some(token)) => write!(f, "{distance},{token}"),
            (Some(distance), None) => write!(f, "{distance}"),
            (None, Some(token)) => write!(f, "{token}"),
            (None, None) => Ok(()),
        }
    }
}
