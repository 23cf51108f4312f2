//! The one place that orders the stages.
//!
//! - [`Object`]: a code object found in an input, decoded;
//! - [`rewrite`]: input bytes to output bytes whose kernels count, with a map for each rewritten object;
//! - [`KernelRewriter`]: the same for single kernels of code that is loaded already;
//! - [`inspect`], [`disassemble`]: what a person wants to know of an input;
//! - [`memory()`]: how lanes access memory;
//! - [`page()`]: what an HTML page shows of the code of a profile's kernels;
//! - [`findings()`]: all that was found in a run, for other tools;
//! - [`coverage()`]: which source lines, branches and functions were executed;
//! - [`mix()`]: what kernels executed, from the counts of their blocks;
//! - [`roofline()`]: the least time that this takes on a board, by resource;
//! - [`Vendor`]: code of GPUs of other vendors, listed and sliced;
//! - [`check_selection`], [`check_profile`]: whether what is named is in an input;
//! - [`slice()`], [`explain`]: joins a profile with the code it came from and explains what waits for what.
//!
//! Files, processes and terminals are no business of this module: bytes in, values out.

mod coverage;
mod disassemble;
mod findings;
mod inspect;
mod kernel_rewriter;
mod memory;
mod memory_records;
mod mix;
mod object;
mod options;
mod page;
mod rewrite;
mod roofline;
mod selected;
mod slices;
mod summary;
mod vendors;

pub use coverage::{CoverageInputs, coverage};
pub use disassemble::disassemble;
pub use findings::{RunInputs, findings};
pub use inspect::{Extract, inspect};
pub use kernel_rewriter::{KernelRewriter, RewrittenKernel};
pub use memory::{KernelRecords, MemoryInputs, memory, recorded};
pub use mix::mix;
pub use object::{Object, objects};
pub use options::Options;
pub use page::page;
pub use rewrite::{Destination, Progress, Rewritten, rewrite, rewrite_to};
pub use roofline::{RooflineInputs, roofline};
pub use selected::{check_profile, check_runs_on, check_selection, other_builds};
pub use slices::{Evidence, explain, slice};
pub use vendors::{Vendor, refuse as refuse_vendor};
pub use wavetap_instrument::CounterPlacement;
pub use wavetap_instrument::object::Counters;
pub use wavetap_instrument::probe;
pub use wavetap_object::emit::{Output, Packing, Scratch};
pub use wavetap_object::selection::Selection;
pub use wavetap_report::disassembly::{Listed, SourceText};
pub use wavetap_report::inspect::Inspected;
