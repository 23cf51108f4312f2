//! What matters in a run, as data with what it rests on. `wavetap-report` renders it and decides nothing.
//!
//! - [`launches`]: how kernels were launched, the occupancy of that, and warnings;
//! - [`roofline`]: the least time that a kernel's work takes on a board, and which resource bounds it;
//! - [`summary`]: findings over all probes, with their weight, and which of them a summary shows;
//! - [`Report`]: all that is said of a run, with what each probe measured ([`sections`]);
//! - [`imbalance`]: how evenly ranks or hosts share what kernels did;
//! - [`diff`]: which kernels and sites of two runs are partners, what differs, and conditions on that;
//! - [`memory`], [`slice`](mod@slice), [`mix`]: what the analyses say of kernels, with what was counted;
//! - [`code`]: the code of kernels with what was counted of it;
//! - [`coverage`]: which source lines, branches and functions were executed;
//! - [`occupancy`], [`variants`], [`names`], [`words`]: what these share.
//!
//! Every number says what it rests on, by its field's name or by a [`Basis`].
#![forbid(unsafe_code)]

mod address;
mod bad_access;
mod basis;
pub mod check;
pub mod code;
pub mod coverage;
pub mod diff;
pub mod imbalance;
pub mod launches;
pub mod memory;
pub mod mix;
pub mod names;
pub mod occupancy;
pub mod regions;
mod report;
pub mod roofline;
pub mod sections;
pub mod slice;
pub mod summary;
pub mod variants;
pub mod words;

pub use address::HexAddress;
pub use bad_access::{BadAccess, UncheckedAccess};
pub use basis::Basis;
pub use report::{Kernel, REPORT_SCHEMA, Report, RunInfo};
pub use sections::{
    Block, Branch, MeasuredLatency, MeasuredLoad, MeasuredTime, Sections, SiteTable, TableSite, TimedBlock,
};
