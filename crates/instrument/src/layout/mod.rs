//! Code placement: original instructions and inserted snippets become bytes at new addresses.
//!
//! [`Code::plan`] orders everything and fixes all sizes, which do not depend on the address; [`Code::bytes`] resolves
//! branches, addresses and the program counter for a given address; [`Segment`] puts several kernels into one
//! executable segment.
//!
//! Rules:
//!
//! * Original instructions are copied byte for byte; only the displacement of a direct branch changes, and an
//!   `s_clause` between whose members something is inserted becomes `s_nop 0`. A branch to an instruction goes to the
//!   start of what is inserted before it.
//! * `s_getpc_b64` yields the *original* program counter: what follows adds a distance to reach constants, functions
//!   and tables, and those have not moved. A jump through a register whose target inside the kernel is known becomes a
//!   direct branch.
//! * What cannot be placed is refused ([`wavetap_analysis::kernel::Refusal`]); nothing is approximated.

mod code;
mod piece;
mod reach;
#[cfg(test)]
mod tests;

pub use code::Code;

use wavetap_amdgpu::{Opcode, Target, Value};
use wavetap_base::bytes::align_up;
use wavetap_base::error::{Error, Result};
use wavetap_object::code_object::ENTRY_ALIGN;

/// What fills gaps between kernels and after the last one, where the target has it: the first of these that it has.
const FILLERS: [Opcode; 2] = [Opcode::S_CODE_END, Opcode::S_NOP];

/// Where code has a distance from itself to the original image, of 64 bits: offsets of two literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distance {
    /// The low half.
    pub low: u64,
    /// The high half.
    pub high: u64,
}

/// Kernels one after the other in an executable segment.
#[derive(Debug, Clone)]
pub struct Segment {
    target: Target,
    base: u64,
    filler: u32,
    bytes: Vec<u8>,
    distances: Vec<Distance>,
}

impl Segment {
    /// An empty segment that starts at the address `base`.
    ///
    /// # Errors
    /// Internal if `base` is not 256-aligned.
    pub fn new(target: Target, base: u64) -> Result<Segment> {
        if !base.is_multiple_of(ENTRY_ALIGN) {
            return Err(Error::internal("code is to be placed at an address that is not 256-aligned").at(base));
        }
        Ok(Segment { target, base, filler: filler(target)?, bytes: Vec::new(), distances: Vec::new() })
    }

    /// Places a kernel after the others; gives the address of its entry, which is aligned.
    ///
    /// # Errors
    /// Internal if an instruction of our own cannot be encoded.
    pub fn push(&mut self, code: &Code) -> Result<u64> {
        let start = align_up(self.bytes.len() as u64, ENTRY_ALIGN);
        self.fill(start);
        let entry = self.base + start;
        code.write(entry, &mut self.bytes)?;
        let here = |Distance { low, high }| Distance { low: start + low, high: start + high };
        self.distances.extend(code.distances().map(here));
        Ok(entry)
    }

    /// Where distances to the original image are in the bytes.
    #[must_use]
    pub fn distances(&self) -> &[Distance] {
        &self.distances
    }

    /// The bytes, padded at the end for the instruction prefetcher.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.fill(self.bytes.len() as u64 + u64::from(self.target.code_end_padding()));
        self.bytes.shrink_to_fit();
        self.bytes
    }

    fn fill(&mut self, end: u64) {
        while (self.bytes.len() as u64) < end {
            self.bytes.extend(self.filler.to_le_bytes());
        }
    }
}

/// The contents of an executable segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The bytes, padding after the last instruction included.
    pub bytes: Vec<u8>,
    /// The entry address of each kernel, in the order given.
    pub entries: Vec<u64>,
}

/// Places kernels one after the other from `base` on, as [`Segment`] does.
///
/// # Errors
/// Internal if `base` is not aligned or an instruction of our own cannot be encoded.
pub fn place(target: Target, kernels: &[&Code], base: u64) -> Result<Placed> {
    let mut segment = Segment::new(target, base)?;
    let entries = kernels.iter().map(|code| segment.push(code)).collect::<Result<_>>()?;
    Ok(Placed { bytes: segment.finish(), entries })
}

/// The word of the padding.
fn filler(target: Target) -> Result<u32> {
    let opcode =
        FILLERS.into_iter().find(|opcode| wavetap_amdgpu::has_operation(target, *opcode)).unwrap_or(Opcode::S_NOP);
    let operands: &[Value] = if opcode == Opcode::S_NOP { &[Value::Imm(0)] } else { &[] };
    let bytes = piece::encode(target, opcode, operands)?;
    let word = bytes.first_chunk::<4>().ok_or_else(|| Error::internal(format!("{opcode} is shorter than a word")))?;
    Ok(u32::from_le_bytes(*word))
}
