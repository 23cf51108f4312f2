//! Reads Intel GPU code: zebins, the instructions of Ponte Vecchio (Xe-HPC) and what they read, write and wait for.
//!
//! [`open`] finds the zebins of a file; each [`Function`] gives its code as a slicer reads it.
//!
//! ```
//! # fn main() -> Result<(), wavetap_base::error::Error> {
//! # let file = include_bytes!("../tests/zebins/kernels.zebin");
//! for zebin in wavetap_intel::open(file, "kernels.zebin")? {
//!     for function in zebin.functions() {
//!         let lines = zebin.lines(function);
//!         let code = function.code(&lines)?;
//!         println!("{}: {} waits", code.name(), code.waits().len());
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | module | for |
//! |---|---|
//! | [`container`] | files: zebins, OpenCL device binaries, archives of several devices, line tables |
//! | [`isa`] | instructions: compacted and full words, operands, messages, scoreboard bits |
//! | [`samples`] | samples of stalls that `unitrace` took |
#![forbid(unsafe_code)]

pub mod container;
pub mod isa;
mod latency;
mod program;
pub mod samples;

pub use container::{Function, Target, Zebin, open};
pub use program::program_code;
