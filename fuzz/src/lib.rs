//! What a coverage-guided fuzzer runs. A target takes any bytes and panics where the library breaks a promise: it
//! answers or refuses, in any case without a panic, and what it gives back fits together.
//!
//! - [`bundles`]: a host file, a bundle, a compressed bundle; code objects are found or refused.
//! - [`code_objects`]: a code object; tables, metadata, line table and listing are read or refused.
//! - [`instructions`]: a target and instruction words; what decodes prints, and encodes to its own bytes.
//! - [`graphs`]: control flow of up to 100,000 blocks; every analysis answers soon.
//! - [`rewrite`]: a small code object and changes of its code; refused, or verified and equal to the original when run.
//! - [`profiles`]: a profile, site table, journal or other file of ours; what is read is the same after it was written.
//! - [`samples`]: samples that `rocprofv3` took; they are read or refused.
//!
//! `fuzz/run.sh` builds the fuzzer and runs targets; `tests/inputs.rs` replays what it found once (`fuzz/inputs`) and
//! what it begins with ([`seeds`]).
#![forbid(unsafe_code)]

mod answers;
pub mod bundles;
pub mod code_objects;
pub mod graphs;
pub mod instructions;
pub mod profiles;
pub mod rewrite;
pub mod samples;
pub mod seeds;

pub use answers::{check_error, read};

/// A target by name.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Names it on the command line, and its folders.
    pub name: &'static str,
    /// Takes any bytes.
    pub run: fn(&[u8]),
    /// Inputs that the fuzzer begins with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Longest input in bytes that is of use.
    pub max_len: usize,
}

/// All targets.
pub const TARGETS: [Target; 7] = [
    Target { name: "bundles", run: bundles::run, seeds: bundles::seeds, max_len: 1 << 18 },
    Target { name: "code_objects", run: code_objects::run, seeds: code_objects::seeds, max_len: 1 << 16 },
    Target { name: "instructions", run: instructions::run, seeds: instructions::seeds, max_len: 1 << 8 },
    Target { name: "graphs", run: graphs::run, seeds: graphs::seeds, max_len: 1 << 7 },
    Target { name: "rewrite", run: rewrite::run, seeds: rewrite::seeds, max_len: 1 << 8 },
    Target { name: "profiles", run: profiles::run, seeds: profiles::seeds, max_len: 1 << 14 },
    Target { name: "samples", run: samples::run, seeds: samples::seeds, max_len: 1 << 13 },
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
