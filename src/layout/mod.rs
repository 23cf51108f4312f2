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
use crate::isa::Target;

/// `s_nop 0` on the gfx9 family: fills gaps between kernels and behind the last one.
const S_NOP: u32 = 0xbf80_0000;

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
    let mut placed = Placed { bytes: Vec::new(), entries: Vec::new() };
    for code in kernels {
        let start = align_up(placed.bytes.len() as u64, ENTRY_ALIGN);
        fill(&mut placed.bytes, start);
        placed.entries.push(base + start);
        placed.bytes.extend(code.bytes(base + start)?);
    }
    let end = placed.bytes.len() as u64 + u64::from(target.code_end_padding());
    fill(&mut placed.bytes, end);
    debug_assert_eq!(placed.bytes.len() as u64, extent(target, kernels));
    Ok(placed)
}

fn fill(bytes: &mut Vec<u8>, end: u64) {
    while (bytes.len() as u64) < end {
        bytes.extend(S_NOP.to_le_bytes());
    }
}
