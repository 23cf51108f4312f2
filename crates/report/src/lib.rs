//! What a person or another program gets to see: text, HTML, SARIF, remarks, traces, tables.
//!
//! What is said of a run, and how much it matters, is the data of [`wavetap_explain`]: a [`Report`] is a
//! [`Profile`](wavetap_profile::file::Profile) with what follows from it, and its serialised form is the interface for
//! other programs (`wavetap.report/1`). [`text`] and [`html`] render the same values. [`compare`] puts several runs of
//! one program side by side.
//!
//! Nothing here computes a count: every number is copied or is a difference or quotient of two others.
#![forbid(unsafe_code)]

mod arrows;
mod bad_access;
mod branches;
pub mod check;
pub mod compare;
pub mod counted;
pub mod diff;
pub mod disassembly;
pub mod doctor;
pub mod export;
pub mod fidelity;
pub mod findings;
mod fit;
pub mod html;
mod imbalance;
pub mod inspect;
mod kernel_facts;
pub mod launches;
pub mod listing;
pub mod memory;
pub mod mix;
pub mod plain;
mod regions;
mod render;
pub mod replay;
pub mod rewrite;
pub mod roofline;
mod sections;
pub mod slice;
mod stalls;
mod style;
pub mod summary;
pub mod table;
pub mod text;
pub mod time;
pub mod vendor_code;
pub mod verify;

pub(crate) use wavetap_explain::variants;
pub use wavetap_explain::variants::{Build, Compiler};
pub use wavetap_explain::{
    Basis, Block, Branch, Kernel, MeasuredLatency, MeasuredLoad, MeasuredTime, REPORT_SCHEMA, Report, RunInfo,
    Sections, SiteTable, TableSite, TimedBlock, names, occupancy,
};
