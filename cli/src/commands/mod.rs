//! The subcommands, one file each.

pub mod capture;
pub mod check;
pub mod compare;
pub mod completions;
pub mod diff;
pub mod disasm;
pub mod doctor;
pub mod export;
pub mod inspect;
pub mod launches;
pub mod man;
pub mod memory;
pub mod merge;
pub mod mix;
mod orders;
pub mod profile;
pub mod replay;
pub mod report;
pub mod rewrite;
pub mod roofline;
pub mod run;
pub mod slice;
pub mod verify;
