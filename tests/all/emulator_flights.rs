//! Dispatches in flight: several make progress together, and how one is cut into parts makes no difference.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::emulated::{Bench, PRELUDE, TARGETS, compile, compiler_is_there};
use wavetap::emulator::{Dispatch, DispatchStats, Fault, FaultKind, Share, Timing};

/// A dispatch of workgroups of 64 with these arguments.
fn dispatch(bench: &mut Bench, kernel: &str, groups: u32, arguments: &[u64], ordinal: u64) -> Dispatch {
    let words: Vec<u32> =
        arguments.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]).chain([0; 64]).collect();
    Dispatch {
        kernel_object: bench.object.kernel(kernel).expect("kernel"),
        grid: [64 * groups, 1, 1],
        workgroup: [64, 1, 1],
        private_segment_size: 0,
        group_segment_size: 1024,
        kernarg_address: bench.buffer(&words),
        dispatch_id: ordinal,
    }
}

/// Runs a dispatch in parts.
fn in_parts(bench: &mut Bench, dispatch: &Dispatch, share: Share) -> Result<DispatchStats, Fault> {
    let mut flight = bench.device.begin(dispatch)?;
    loop {
        if let Some(stats) = bench.device.advance(&mut flight, share)? {
            return Ok(stats);
        }
        // What happens between parts is no matter.
        bench.buffer(&[7; 10]);
    }
}

#[test]
fn dispatches_that_wait_for_each_other_end() {
    if !compiler_is_there() {
        return;
    }
    let source = format!(
        "{PRELUDE}KERNEL void kernel_main(u32 *own, u32 *other, u64 first) {{
            if (local_id()) return;
            for (u32 turn = 1; turn <= 30; ++turn) {{
                while (__hip_atomic_load(other, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < turn - (u32)first) {{}}
                __hip_atomic_store(own, turn, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
            }}
        }}"
    );
    let dir = tempfile::tempdir().expect("directory");
    for target in TARGETS {
        let image = compile(dir.path(), target, &source, &[]);
        for strict in [true, false] {
            let mut bench = Bench::new(target, 5, &image);
            bench.device.options_mut().strict = strict;
            let (a, b) = (bench.buffer(&[0; 64]), bench.buffer(&[0; 64]));
            let dispatches = [
                dispatch(&mut bench, "kernel_main", 1, &[a, b, 1], 0),
                dispatch(&mut bench, "kernel_main", 1, &[b, a, 0], 1),
            ];
            let mut flights: Vec<_> =
                dispatches.iter().map(|dispatch| Some(bench.device.begin(dispatch).expect("begun"))).collect();
            let mut turns = 0;
            while flights.iter().any(Option::is_some) {
                turns += 1;
                assert!(turns < 10_000, "{target}: they do not end");
                for flight in &mut flights {
                    let Some(of) = flight else { continue };
                    let share = Share { instructions: 500, interrupt: None };
                    if bench.device.advance(of, share).unwrap_or_else(|fault| panic!("{target}: {fault}")).is_some() {
                        *flight = None;
                    }
                }
            }
            assert_eq!((bench.read(a, 1), bench.read(b, 1)), (vec![30], vec![30]), "{target}");
        }
    }
}

#[test]
fn parts_make_no_difference() {
    if !compiler_is_there() {
        return;
    }
    let source = format!(
        "{PRELUDE}KERNEL void kernel_main(u32 *out, u64 turns) {{
            SHARED u32 tile[64];
            u32 x = global_id();
            for (u32 i = 0; i < turns; ++i) {{
                tile[local_id()] = x;
                barrier();
                x = x * 1664525u + tile[63 - local_id()];
                barrier();
                if (x & 1) x += i;
            }}
            out[global_id()] = x;
        }}"
    );
    let dir = tempfile::tempdir().expect("directory");
    for target in TARGETS {
        let image = compile(dir.path(), target, &source, &[]);
        for (strict, threads, timed) in [(true, 1, false), (false, 1, false), (false, 3, false), (false, 1, true)] {
            let place = format!("{target} strict {strict} threads {threads} timed {timed}");
            let waiting = AtomicUsize::new(1);
            let mut results = Vec::new();
            for share in [
                Share::all(),
                Share { instructions: 1, interrupt: None },
                Share { instructions: 20_000, interrupt: None },
                Share { instructions: u64::MAX, interrupt: Some(&waiting) },
            ] {
                let mut bench = Bench::new(target, 9, &image);
                let options = bench.device.options_mut();
                (options.strict, options.threads, options.trace) = (strict, threads, true);
                options.timing = timed.then(Timing::default);
                let out = bench.buffer(&[0; 40 * 64]);
                let dispatch = dispatch(&mut bench, "kernel_main", 40, &[out, 100], 3);
                let stats = in_parts(&mut bench, &dispatch, share).unwrap_or_else(|fault| panic!("{place}: {fault}"));
                let time = stats.time.as_ref().map(|time| (time.cycles, time.wave_cycles));
                results.push((
                    bench.read(out, 40 * 64),
                    stats.instructions,
                    stats.workgroups,
                    stats.waves,
                    stats.trace,
                    time,
                ));
            }
            assert!(results.iter().all(|result| *result == results[0]), "{place}");
            assert_eq!(results[0].2, 40);
        }
        waiting_is_seen(target, &image);
    }
}

/// A share ends soon where others wait, and not where none do.
fn waiting_is_seen(target: &str, image: &[u8]) {
    let mut bench = Bench::new(target, 9, image);
    bench.device.options_mut().strict = false;
    bench.device.options_mut().threads = 1;
    let out = bench.buffer(&[0; 64]);
    let dispatch = dispatch(&mut bench, "kernel_main", 1, &[out, 50_000], 0);
    let mut flight = bench.device.begin(&dispatch).expect("begun");
    let waiting = AtomicUsize::new(1);
    let share = Share { instructions: u64::MAX, interrupt: Some(&waiting) };
    assert!(bench.device.advance(&mut flight, share).expect("no fault").is_none(), "{target}");
    let executed = flight.executed();
    assert!(executed > 0 && executed < 100_000, "{target}: {executed}");
    let mut states = 0;
    flight.states(|_| states += 1);
    assert!(states > 0, "{target}");
    waiting.store(0, Ordering::Relaxed);
    let stats = bench.device.advance(&mut flight, share).expect("no fault").expect("ended");
    assert!(stats.instructions > 500_000, "{target}");
    let fault = bench.device.advance(&mut flight, share).expect_err("it has ended");
    assert!(matches!(fault.kind, FaultKind::Setup { .. }), "{target}");
}
