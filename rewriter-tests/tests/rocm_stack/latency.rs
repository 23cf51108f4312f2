//! What the latency probe measures on the real libraries: the executions that it measures on the emulator's own
//! runtime, and a distribution of all of them.

use super::{counts, program, samples};
use rewriter_tests::full;
use wavetap::profile::file::{KernelTotals, Profile};
use wavetap::profile::probes::latency::{EMPTY, LatencyCounts, LatencyKind};

fn measured(stack: &str, name: &str) -> Profile {
    counts(&["--stack", stack, "--probe", "memory-latency"], &program(name), &[])
}

/// The counters of each load.
fn loads(kernel: &KernelTotals) -> Vec<(u64, LatencyKind, LatencyCounts)> {
    let of = |kind: LatencyKind| {
        let sites = kernel.sites.iter();
        sites.filter_map(move |site| Some((site.address, kind, LatencyCounts::of(&site.counts, kind.schema())?)))
    };
    let mut all: Vec<_> = LatencyKind::ALL.into_iter().flat_map(of).collect();
    all.sort_by_key(|(address, kind, _)| (*address, *kind));
    all
}

#[test]
fn latency_is_measured_as_on_the_emulators_own_runtime() {
    let quick = ["spmv", "nested_loops"];
    for name in samples().into_iter().filter(|name| full() || quick.contains(&&**name)) {
        let (real, own) = (measured("rocm", &name), measured("hip", &name));
        assert_eq!(real.kernels.len(), own.kernels.len(), "{name}");
        assert!(!real.kernels.is_empty() && real.complete, "{name}: {real:?}");
        for (real, own) in real.kernels.iter().zip(&own.kernels) {
            let executions = |kernel| -> Vec<(u64, LatencyKind, u64, u64)> {
                let loads = loads(kernel).into_iter();
                loads.map(|(address, kind, counts)| (address, kind, counts.executions, counts.idle)).collect()
            };
            assert_eq!((&real.name, executions(real)), (&own.name, executions(own)), "{name}");
            for kernel in [real, own] {
                for (address, _, counts) in loads(kernel) {
                    let in_buckets: u64 = counts.buckets.iter().map(|bucket| bucket.executions).sum();
                    assert_eq!(in_buckets, counts.executions, "{name}: {address:#x}");
                    let shortest = counts.shortest.unwrap_or_default();
                    let sums = shortest * counts.executions..=counts.longest * counts.executions;
                    assert!(sums.contains(&counts.cycles), "{name}: {address:#x}: {counts:?}");
                }
                let empty = kernel.sites.iter().find_map(|site| LatencyCounts::of(&site.counts, &EMPTY));
                assert_eq!(empty.map(|empty| empty.executions), Some(kernel.waves), "{name}");
            }
        }
    }
}
