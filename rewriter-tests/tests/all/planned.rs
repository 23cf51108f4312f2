//! What the tests of planned code begin with: the samples, and the branch probe in one kernel.

use std::fs;

use rewriter_tests::place;
use wavetap::code_object::Kernel;
use wavetap::instrument::{Analysis, CounterPlacement, Instrumented, KernelFacts, Request, instrument, probe};
use wavetap::kernel::Stop;
use wavetap::profile::map::CounterMode;

/// Names and contents of the prebuilt samples.
pub fn samples() -> Vec<(String, Vec<u8>)> {
    let read = |name: String| (name.clone(), fs::read(place::samples().join(&name)).expect("a sample"));
    let samples: Vec<_> = place::sample_names().into_iter().map(read).collect();
    assert!(samples.len() >= 13, "all samples are there");
    samples
}

/// Counters in this place, of which these are kept.
pub fn request(mode: CounterMode, placement: CounterPlacement, index: u32, control: u64) -> Request {
    Request { mode, placement, index, control, per_wave: false, max_occupancy_loss: None }
}

/// The branch probe in a kernel.
pub fn branches(analysis: &Analysis<'_>, kernel: &Kernel, request: &Request) -> Result<Instrumented, Stop> {
    instrument(&KernelFacts::of(analysis, kernel, &[probe::BRANCHES])?, request)
}
