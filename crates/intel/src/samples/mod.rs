//! Samples of stalls: what `unitrace --stall-sampling` writes.

mod unitrace;

pub use unitrace::{KernelSamples, REASONS, is_unitrace, read};
