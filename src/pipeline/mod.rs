//! The one place that orders the stages.
//!
//! - [`Object`]: a code object found in an input, decoded;
//! - [`rewrite`]: input bytes to output bytes whose kernels count, with a map for each rewritten object;
//! - [`inspect`], [`disassemble`]: what a person wants to know of an input;
//! - [`waits`]: joins a profile with the code it came from and explains what waits for what.
//!
//! Files, processes and terminals are no business of this module: bytes in, values out.

mod annotate;
mod counted;
mod disassemble;
mod inspect;
mod kernel_facts;
mod object;
mod options;
mod rewrite;
mod symbols;
pub mod waits;

pub use disassemble::{Listed, SourceText, disassemble};
pub use inspect::{Extract, Inspected, inspect};
pub use object::{Object, objects};
pub use options::{Counters, Options, Selection};
pub use rewrite::{Destination, Progress, Rewritten, rewrite, rewrite_to};
pub use wavetap_instrument::ProbeKind;
pub use wavetap_object::emit::{Output, Packing, Scratch};
