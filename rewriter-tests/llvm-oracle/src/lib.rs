//! LLVM's AMDGPU disassembler as a second opinion, and its code generator for processors that the installed compiler
//! does not know, with nothing to install: `rustc` brings its own `libLLVM`, and that library exports the LLVM C API
//! with the AMDGPU target in it.
//!
//! Two ways to ask:
//!
//! * [`Oracle`] asks a child process (the `llvm-oracle` binary of this package). LLVM dies on some words that are no
//!   instruction; the child asks it in a copy of itself and goes on with another one, and the answer is
//!   [`Answer::Crash`]. Tests use this one.
//! * [`Disassembler`] calls LLVM in this process. It is for benchmarks and for code that a compiler really emitted.
//!
//! To compile, run [`program`] with `compile`: [`compile`] is what it does, and LLVM ends the process where it cannot.
//!
//! ```no_run
//! let mut oracle = llvm_oracle::Oracle::new().unwrap();
//! assert_eq!(oracle.disassemble("gfx90a", &[0x00, 0x00, 0x81, 0xbf]), Some((4, "s_endpgm".into())));
//! ```
//!
//! A target is a processor name, optionally followed by features: `gfx90a`, `gfx1200,+real-true16`. The text is LLVM's
//! default syntax, as `llvm-mc --disassemble` prints it, with runs of white space made one space.

mod ffi;
mod process;

pub use ffi::{
    Compilation, Disassembler, LIBRARY_VARIABLE, OracleError, compile, compiler_version, in_copy, library_path,
};
pub use process::{Answer, Oracle, Query, program};

/// The longest encoding that is handed to LLVM for one instruction (bytes); longer input is cut. The longest AMDGPU
/// encoding is 16 bytes, and 20 with a literal.
pub const MAX_INSTRUCTION_BYTES: usize = 20;
