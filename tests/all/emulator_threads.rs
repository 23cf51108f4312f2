//! Workgroups of one dispatch on several threads: the same memory, counts and faults as on one.

use crate::emulated::{Bench, PRELUDE, compile, compiler_is_there};
use wavetap::emulator::{DispatchStats, FaultKind};

const GROUPS: u32 = 64;
const GROUP: u16 = 256;
const ITEMS: usize = GROUPS as usize * GROUP as usize;
/// Enough work that dispatches are divided.
const ROUNDS: u64 = 100;

/// A device outside the strict mode for each number of threads.
fn with_threads(target: &str, source: &str, flags: &[&str], test: impl Fn(usize, &mut Bench)) {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("directory");
    let image = compile(dir.path(), target, &format!("{PRELUDE}{source}"), flags);
    for threads in [1, 2, 5] {
        let mut bench = Bench::new(target, 0, &image);
        let options = bench.device.options_mut();
        (options.strict, options.threads) = (false, threads);
        test(threads, &mut bench);
    }
}

/// A number whose bits look random.
fn mixed(n: usize) -> u32 {
    (n as u32).wrapping_mul(0x9e37_79b9).rotate_left(7) ^ n as u32
}

#[test]
fn memory_and_counts_are_the_same() {
    let source = r"KERNEL void kernel_main(const u32 *in, u32 *out, u64 rounds) {
        SHARED u32 tile[256];
        u32 t = local_id(), i = global_id(), v = in[i];
        for (u64 n = 0; n < rounds; ++n) {
            tile[t] = v;
            barrier();
            u32 other = tile[(t * 7 + (u32)n) & 255];
            v = v & 1 ? v * 3 + other : (v >> 1) + in[(v + other) % 16384];
            barrier();
        }
        out[i] = v;
    }";
    for target in ["gfx90a", "gfx1100"] {
        let first: std::cell::RefCell<Option<(Vec<u32>, DispatchStats)>> = Default::default();
        with_threads(target, source, &[], |threads, bench| {
            let (input, output) =
                (bench.buffer(&(0..ITEMS).map(mixed).collect::<Vec<_>>()), bench.buffer(&vec![0; ITEMS]));
            // Twice: the second time other threads have code that is decoded already.
            for _ in 0..2 {
                let stats = bench.run("kernel_main", GROUPS, GROUP, 0, &[input, output, ROUNDS]).expect("no fault");
                let found = (bench.read(output, ITEMS), stats);
                let first = &mut *first.borrow_mut();
                let same = first.as_ref().is_none_or(|first| *first == found);
                assert!(same, "{target}: {threads} threads differ from one");
                first.get_or_insert(found);
            }
        });
    }
}

#[test]
fn atomics_lose_nothing() {
    let source = r"KERNEL void kernel_main(u32 *bins, u64 *wide, u32 *tickets, u32 *taken, u64 rounds) {
        u32 i = global_id();
        for (u64 n = 0; n < rounds; ++n) {
            __hip_atomic_fetch_add(&bins[(i * 5 + (u32)n) & 63], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
            u64 seen = wide[0]; while (!__hip_atomic_compare_exchange_weak(&wide[0], &seen, seen + n,
            __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)) {}
            __hip_atomic_fetch_add(&wide[1], 0x100000001ull, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        }
        u32 ticket = __hip_atomic_fetch_add(tickets, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        __hip_atomic_fetch_add(&taken[ticket], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    }";
    with_threads("gfx90a", source, &[], |threads, bench| {
        const ROUNDS: u64 = 20;
        let (bins, wide, tickets, taken) =
            (bench.buffer(&[0; 64]), bench.buffer(&[0; 4]), bench.buffer(&[0]), bench.buffer(&vec![0; ITEMS]));
        bench.run("kernel_main", GROUPS, GROUP, 0, &[bins, wide, tickets, taken, ROUNDS]).expect("no fault");
        assert_eq!(bench.read(bins, 64), vec![(ITEMS * ROUNDS as usize / 64) as u32; 64], "{threads} threads");
        let words = bench.read(wide, 4);
        let wide = [0, 2].map(|n| u64::from(words[n]) | u64::from(words[n + 1]) << 32);
        assert_eq!(
            wide,
            [ITEMS as u64 * (0..ROUNDS).sum::<u64>(), ITEMS as u64 * ROUNDS * 0x1_0000_0001],
            "{threads} threads"
        );
        assert_eq!(bench.read(taken, ITEMS), vec![1; ITEMS], "{threads} threads: every ticket once");
    });
}

/// A scan in one pass: workgroups wait for what those before them publish, a flag and a value in one 64-bit word.
#[test]
fn workgroups_wait_for_each_other() {
    let source = r"KERNEL void kernel_main(const u32 *in, u64 *published, u32 *next, u32 *out, u64 rounds) {
        SHARED u32 group, before;
        SHARED u32 tile[256];
        u32 t = local_id();
        if (!t) group = __hip_atomic_fetch_add(next, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        barrier();
        u32 i = group * 256 + t, v = in[i];
        for (u64 n = 0; n < rounds; ++n) v = v * 1664525u + 1013904223u;
        tile[t] = v;
        for (u32 d = 1; d < 256; d *= 2) { barrier(); u32 add = t >= d ? tile[t - d] : 0; barrier(); tile[t] += add; }
        barrier();
        if (t == 255) {
            u64 seen = 1ull << 32;
            if (group) do seen = __hip_atomic_load(&published[group - 1], __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT);
            while (!(seen >> 32));
            before = (u32)seen;
            __hip_atomic_store(&published[group], (u64)(group + 2) << 32 | (u32)((u32)seen + tile[255]),
            __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
        }
        barrier();
        out[i] = tile[t] + before;
    }";
    for target in ["gfx90a", "gfx1100", "gfx803"] {
        with_threads(target, source, &[], |threads, bench| {
            let data: Vec<u32> = (0..ITEMS).map(mixed).collect();
            let (input, published) = (bench.buffer(&data), bench.buffer(&[0; 2 * GROUPS as usize]));
            let (next, output) = (bench.buffer(&[0]), bench.buffer(&vec![0; ITEMS]));
            bench.run("kernel_main", GROUPS, GROUP, 0, &[input, published, next, output, ROUNDS]).expect("no fault");
            let step = |v: u32| (0..ROUNDS).fold(v, |v, _| v.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
            let sums = data.iter().scan(0_u32, |sum, v| {
                *sum = sum.wrapping_add(step(*v));
                Some(*sum)
            });
            assert_eq!(bench.read(output, ITEMS), sums.collect::<Vec<_>>(), "{target}, {threads} threads");
        });
    }
}

#[test]
fn sums_of_floats_are_the_same_every_time() {
    let source = r"KERNEL void kernel_main(float *sum, u64 rounds) {
        float v = 1.0f / (float)(global_id() + 1);
        for (u64 n = 0; n < rounds; ++n) { __hip_atomic_fetch_add(sum, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        v = v * 0.999f + 1e-6f; }
    }";
    let first = std::cell::Cell::new(None);
    with_threads("gfx90a", source, &["-munsafe-fp-atomics"], |threads, bench| {
        let sum = bench.buffer(&[0]);
        bench.run("kernel_main", GROUPS, GROUP, 0, &[sum, 30]).expect("no fault");
        let found = bench.read(sum, 1)[0];
        assert!(f32::from_bits(found) > 1.0);
        assert_eq!(first.replace(Some(found)).unwrap_or(found), found, "{threads} threads");
    });
}

#[test]
fn faults_end_all_threads() {
    let source = r"KERNEL void kernel_main(u32 *out, u64 rounds) {
        u32 v = global_id();
        for (u64 n = 0; n < rounds || group_id() >= 40; ++n) { v = v * 3 + 1; if (group_id() == 40 && n == rounds)
        out[1ull << 40] = v; }
        out[global_id()] = v;
    }";
    with_threads("gfx90a", source, &[], |threads, bench| {
        let output = bench.buffer(&vec![0; ITEMS]);
        let fault = bench.run("kernel_main", GROUPS, GROUP, 0, &[output, 4 * ROUNDS]).expect_err("a wild store");
        assert!(matches!(fault.kind, FaultKind::Memory { .. }), "{threads} threads: {fault}");
        assert_eq!(fault.workgroup, [40, 0, 0], "{threads} threads: {fault}");
        // Those from 41 on never end.
        bench.device.options_mut().fuel = 3_000_000;
        let (small, kernel) = (bench.buffer(&[0; 4]), "kernel_main");
        let endless = bench.run(kernel, GROUPS, GROUP, 0, &[small, 1 << 40]).expect_err("it never ends");
        assert!(matches!(endless.kind, FaultKind::OutOfFuel), "{threads} threads: {endless}");
    });
}
