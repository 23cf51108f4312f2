//! Code placement: original instructions and inserted snippets become bytes at new addresses.
//!
//! [`Code::plan`] orders everything and fixes all sizes, which do not depend on the address; [`Code::bytes`] resolves branches, addresses
//! and the program counter for a given address; [`place`] puts several kernels into one executable segment.
//!
//! Rules:
//!
//! * Original instructions are copied byte for byte; only the displacement of a direct branch changes. A branch to an instruction goes to
//!   the start of what is inserted before it.
//! * `s_getpc_b64` yields the *original* program counter: what follows adds a distance to reach constants, functions and tables, and those have
//!   not moved. A jump through a register whose target inside the kernel is known becomes a direct branch.
//! * What cannot be placed is refused ([`crate::kernel::Refusal`]); nothing is approximated.

mod code;
mod piece;
mod reach;
#[cfg(test)]
mod tests;

pub use code::Code;

use crate::bytes::align_up;
use crate::code_object::ENTRY_ALIGN;
use crate::error::{Error, Result};
use crate::isa::{self, Target, Value};

/// What fills gaps between kernels and behind the last one, where the target has it: the first of these that it has.
const FILLERS: [&str; 2] = ["s_code_end", "s_nop"];

/// The contents of an executable segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The bytes, padding behind the last instruction included.
    pub bytes: Vec<u8>,
    /// The entry address of each kernel, in the order given.
    pub entries: Vec<u64>,
}

/// How many bytes [`place`] will make of these kernels.
#[must_use]
pub fn extent(target: Target, kernels: &[&Code]) -> u64 {
    let end = kernels.iter().fold(0, |end, code| align_up(end, ENTRY_ALIGN) + code.size());
    end + u64::from(target.code_end_padding())
}

/// Places kernels one behind the other from `base` on, each entry aligned, and pads the end for the instruction prefetcher.
///
/// # Errors
/// Internal if `base` is not aligned or an instruction of our own cannot be encoded.
pub fn place(target: Target, kernels: &[&Code], base: u64) -> Result<Placed> {
    if !base.is_multiple_of(ENTRY_ALIGN) {
        return Err(Error::internal("code is to be placed at an address that is not 256-aligned").at(base));
    }
    let filler = filler(target)?;
    let mut placed = Placed { bytes: Vec::new(), entries: Vec::new() };
    for code in kernels {
        let start = align_up(placed.bytes.len() as u64, ENTRY_ALIGN);
        fill(&mut placed.bytes, start, filler);
        placed.entries.push(base + start);
        placed.bytes.extend(code.bytes(base + start)?);
    }
    let end = placed.bytes.len() as u64 + u64::from(target.code_end_padding());
    fill(&mut placed.bytes, end, filler);
    debug_assert_eq!(placed.bytes.len() as u64, extent(target, kernels));
    Ok(placed)
}

/// The word of the padding.
fn filler(target: Target) -> Result<u32> {
    let mnemonic = FILLERS.into_iter().find(|mnemonic| isa::has_operation(target, mnemonic)).unwrap_or("s_nop");
    let operands: &[Value] = if mnemonic == "s_nop" { &[Value::Imm(0)] } else { &[] };
    let bytes = piece::encode(target, mnemonic, operands)?;
    let word = bytes.first_chunk::<4>().ok_or_else(|| Error::internal(format!("{mnemonic} is shorter than a word")))?;
    Ok(u32::from_le_bytes(*word))
}

fn fill(bytes: &mut Vec<u8>, end: u64, filler: u32) {
    while (bytes.len() as u64) < end {
        bytes.extend(filler.to_le_bytes());
    }
}
