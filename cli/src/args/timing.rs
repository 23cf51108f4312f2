//! What is modelled of time.

use clap::Args;
use wavetap::emulator::{LatencyOverride, TimedWorkgroups};

/// Whether to model time.
#[derive(Debug, Clone, Default, Args)]
pub struct TimingArgs {
    /// Emulator: model how many cycles the kernels take and what their waves wait for, and report it (`profile` runs
    /// the application a second time for it, unmodified and with empty stdin; `compare` shows it for every run). A
    /// model, not a measurement
    #[arg(long)]
    pub timing: bool,
    /// Emulator: another latency for the model, by class: valu32, valu64, valu_f64, trans, mfma, salu, smem, lds, vmem,
    /// export, branch, barrier, message, wait, gl1, l2, mall, memory, store, page, atomic (implies --timing; may be
    /// given several times)
    #[arg(long, value_name = "CLASS=CYCLES")]
    pub latency: Vec<LatencyOverride>,
    /// Emulator: which workgroups of a dispatch are modelled: all, a number, or auto for a part of a dispatch that has
    /// many more than the device holds. The others are executed without the model, and the report says how exact the
    /// time is that is worked out for them (implies --timing)
    #[arg(long, value_name = "all|auto|N")]
    pub timed_workgroups: Option<TimedWorkgroups>,
}

impl TimingArgs {
    /// Whether time is to be modelled.
    pub fn wanted(&self) -> bool {
        self.timing || !self.latency.is_empty() || self.timed_workgroups.is_some()
    }
}
