//! AMD GPU code as a slicer reads it.
//!
//! A [`Code`](wavetap_code::Code) of a decoded body: its wait counters and what each `s_waitcnt` waits for are those of
//! [`wavetap_analysis::dataflow::Waits`], values come from where [`wavetap_analysis::dataflow::Definitions`] says, with
//! EXEC masks; what is reloaded from LDS or scratch memory comes from the store that wrote it (`stores`), and how lanes
//! access memory is what [`wavetap_memory`] finds. [`with_code`] has one body, [`Decoded`] the kernels and functions of
//! a code object.
#![forbid(unsafe_code)]

mod access;
mod answers;
mod build;
mod decoded;
mod entries;
mod lines;
mod stores;

pub use build::{CodeInputs, graph, with_code};
pub use decoded::{AmdFunction, Decoded};
pub use entries::{always_returns, begins_after_entry, entries, starts_after_entry};
pub use lines::TableLines;

#[cfg(test)]
mod tests;
