//! Samples and traces of runs: which code they are of, and what they say of its waits.

mod matching;
mod stalls;
mod texts;

pub use matching::CodeToSlice;
pub(crate) use matching::MatchedSamples;
#[cfg(test)]
pub(crate) use matching::mismatch_of_code;
pub(crate) use stalls::{KernelSampled, stalled_for_memory};
