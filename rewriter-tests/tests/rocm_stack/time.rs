//! What the time probe measures on the real libraries: the waves and executions that it measures on the emulator's own
//! runtime, and times that add up.

use super::{counts, program, samples};
use rewriter_tests::full;
use wavetap::profile::file::{KernelTotals, Profile};
use wavetap::profile::probes::time::{BLOCK, BlockTime, EMPTY, WaveTime};

fn measured(stack: &str, name: &str) -> Profile {
    counts(&["--stack", stack, "--probe", "time"], &program(name), &[])
}

/// Each block's executions.
fn executions(kernel: &KernelTotals) -> Vec<(u64, u64)> {
    let blocks = kernel.sites.iter().filter_map(|site| Some((site.address, BlockTime::of(&site.counts, &BLOCK)?)));
    blocks.map(|(address, time)| (address, time.executions)).collect()
}

#[test]
fn time_is_measured_as_on_the_emulators_own_runtime() {
    let quick = ["calls", "nested_loops"];
    for name in samples().into_iter().filter(|name| full() || quick.contains(&&**name)) {
        let (real, own) = (measured("rocm", &name), measured("hip", &name));
        assert_eq!(real.kernels.len(), own.kernels.len(), "{name}");
        assert!(!real.kernels.is_empty() && real.complete, "{name}: {real:?}");
        for (real, own) in real.kernels.iter().zip(&own.kernels) {
            assert_eq!((&real.name, real.waves), (&own.name, own.waves), "{name}");
            assert_eq!(executions(real), executions(own), "{name}: {}", real.name);
            for kernel in [real, own] {
                let waves = kernel.sites.iter().find_map(|site| WaveTime::of(&site.counts)).expect("times of waves");
                let times = |kind| -> Vec<BlockTime> {
                    kernel.sites.iter().filter_map(|site| BlockTime::of(&site.counts, kind)).collect()
                };
                let blocks: u64 = times(&BLOCK).iter().chain(&times(&EMPTY)).map(|time| time.cycles).sum();
                assert_eq!((waves.waves, waves.cycles), (kernel.waves, blocks), "{name}: {}", kernel.name);
                assert!(waves.first_begin <= waves.last_begin && waves.last_begin <= waves.last_end, "{waves:?}");
                assert!(waves.shortest <= waves.longest && waves.longest > 0, "{waves:?}");
                assert_eq!(times(&EMPTY).iter().map(|time| time.executions).sum::<u64>(), kernel.waves, "{name}");
            }
        }
    }
}
