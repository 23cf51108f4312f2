//! One dispatch of a kernel in a file, to run it again without its application.
//!
//! ```text
//! Filter ─► the dispatch ─► Snapshot::take ─► (it runs) ─► Snapshot::complete ─► CAPTURE
//!                             reached memory                 what has changed
//! CAPTURE ─► CaptureFile::open ─► memory at the same addresses ─► (it runs) ─► Outcome
//! ```
//!
//! Pointers in memory mean what they meant, because a replay has every allocation at the address that it had. Which
//! memory a kernel reaches is decided before it runs, from its arguments ([`reach`]): an access outside of that is a
//! fault of the replay, never a wrong value.
#![forbid(unsafe_code)]

pub mod file;
pub mod filter;
pub mod outcome;
pub mod reach;
pub mod snapshot;

pub use file::{CaptureFile, Header, MemoryRange};
pub use filter::Filter;
pub use outcome::Outcome;
pub use snapshot::{Launched, Memory, Snapshot};
