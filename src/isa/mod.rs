//! The instruction set: decode, encode, print, and what each instruction reads, writes and waits for.
//!
//! Everything target-specific is data: `isa-tables/*.yaml` is compiled into the library by the build script.

mod inst;
mod table;
mod target;

pub use inst::{Access, Dpp, Inst, Modifiers, Operand, Reg, RegFile, Role, Sdwa, Value, ValueType, scalar};
pub use table::{Branch, Condition, Counters, Encoding, Flags, Implicit, Latency, Memory, OperandSpec, Variant};
pub use target::Target;

use crate::error::{Error, Result};

/// Decodes the instruction at the start of `bytes` (little-endian code).
///
/// # Errors
/// Malformed if no instruction of `target` has this encoding or `bytes` ends within it.
pub fn decode(_target: Target, _bytes: &[u8]) -> Result<Inst> {
    Err(Error::internal("the instruction tables are not built yet"))
}

/// Encodes an instruction. An instruction that was decoded gives its own bytes back.
///
/// # Errors
/// Unsupported if an operand or modifier does not fit the variant's fields.
pub fn encode(_target: Target, _inst: &Inst) -> Result<Vec<u8>> {
    Err(Error::internal("the instruction tables are not built yet"))
}

/// The instruction as LLVM's disassembler prints it, operands separated by `, `; a branch target is printed as its displacement.
#[must_use]
pub fn print(_target: Target, inst: &Inst) -> String {
    inst.variant.mnemonic.to_owned()
}

/// Builds an instruction from its mnemonic (as LLVM prints it, `v_add_u32_e32`) and operand values in the assembler's order; operands and
/// modifiers can be changed afterwards on the result.
///
/// # Errors
/// Unsupported if the target has no such mnemonic or the operands do not fit it.
pub fn build(_target: Target, mnemonic: &str, _operands: &[Value]) -> Result<Inst> {
    Err(Error::unsupported(format!("no instruction {mnemonic}")))
}
