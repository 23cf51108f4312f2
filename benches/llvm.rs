//! The peer: LLVM's disassembler.

use std::hint::black_box;

use llvm_oracle::Disassembler;
use rewriter_tests::real_code::Code;

/// Disassembles all of it once; how many instructions that are.
///
/// # Panics
/// If the Rust toolchain has no LLVM, or that does not know the processor.
pub fn disassemble(parts: &[Code]) -> usize {
    let Some(first) = parts.first() else { return 0 };
    let mut disassembler = Disassembler::new(first.target.name()).expect("the Rust toolchain has LLVM");
    let mut instructions = 0;
    for part in parts {
        let mut at = 0;
        while at + 4 <= part.bytes.len() {
            instructions += 1;
            at += disassembler.raw(&part.bytes[at..], part.address + at as u64).map_or(4, |(size, text)| {
                black_box(text);
                size
            });
        }
    }
    instructions
}
