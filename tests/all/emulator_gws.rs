//! Barriers of a whole grid: by global wave sync, as cooperative groups have them on gfx9 and gfx10, and by a counter
//! in memory.

use crate::emulated::{Bench, PRELUDE, compile, compiler_is_there};
use wavetap::emulator::FaultKind;

const GROUPS: u32 = 24;
const GROUP: u16 = 128;
const ITEMS: usize = GROUPS as usize * GROUP as usize;
const TARGETS: [&str; 5] = ["gfx900", "gfx90a", "gfx942", "gfx1030", "gfx1100"];

/// Each work-item takes over, again and again, what one of another workgroup had in the round before. One lane of a
/// workgroup stands for all of it, as in `__ockl_grid_sync`.
const SOURCE: &str = r#"
static inline DEVICE void grid_barrier(u32 others) {
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
    __builtin_amdgcn_s_barrier();
    if (!local_id()) __builtin_amdgcn_ds_gws_barrier(others, 5);
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}
KERNEL void kernel_main(u32 *one, u32 *other, u64 rounds, u64 others, u64 work) {
    u32 i = global_id();
    for (u64 round = 0; round < rounds; ++round) {
        u32 v = one[(i * 37 + 129) % 3072] + (u32)round;
        for (u64 n = 0; n < work * (group_id() % 3); ++n) v = v * 1664525u + 1013904223u;
        other[i] = v;
        grid_barrier((u32)others);
        u32 *swap = one; one = other; other = swap;
    }
}
KERNEL void spins(u32 *one, u32 *other, u64 rounds, u64 others, u32 *came) {
    u32 i = global_id();
    for (u64 round = 0; round < rounds; ++round) {
        other[i] = one[(i * 37 + 129) % 3072] + (u32)round;
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
        __builtin_amdgcn_s_barrier();
        if (!local_id()) {
            __hip_atomic_fetch_add(came, 1, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT);
            while (__hip_atomic_load(came, __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_AGENT) < (u32)(others + 1)
            * (u32)(round + 1)) __builtin_amdgcn_s_sleep(1);
        }
        __builtin_amdgcn_s_barrier();
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
        u32 *swap = one; one = other; other = swap;
    }
}
KERNEL void leaves(u64 others) {
    if (group_id()) grid_barrier((u32)others);
}
KERNEL void sets_up(u32 *out, u64 others) {
    if (group_id() == 1) {
        if (local_id() == 0) __builtin_amdgcn_ds_gws_init((u32)others, 7);
        __builtin_amdgcn_s_barrier();
        __builtin_amdgcn_ds_gws_barrier(77, 7);
    }
    out[global_id()] = global_id();
}
KERNEL void one_by_one(u32 *count, u64 places) {
    if (global_id() == 0) __builtin_amdgcn_ds_gws_init((u32)places, 9);
    __builtin_amdgcn_ds_gws_sema_p(9);
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
    volatile u32 *shared = count;
    u32 seen = shared[0];
    for (u32 n = 0; n < group_id() % 5; ++n) __builtin_amdgcn_s_sleep(1);
    shared[0] = seen + 1;
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
    __builtin_amdgcn_ds_gws_sema_v(9);
}
KERNEL void in_turn(u32 *out, u64 many) {
    if (group_id() == 0) {
        out[1] = 7;
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
        __builtin_amdgcn_ds_gws_sema_br((u32)many, 4);
    } else {
        __builtin_amdgcn_ds_gws_sema_p(4);
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
        out[group_id() + 1] = ((volatile u32 *)out)[1];
    }
}
"#;

/// The same on the host.
fn expected(rounds: u32, work: u32) -> Vec<u32> {
    let mut items: Vec<u32> = (0..ITEMS as u32).collect();
    for round in 0..rounds {
        items = (0..ITEMS as u32)
            .map(|i| {
                let v = items[((i * 37 + 129) % ITEMS as u32) as usize].wrapping_add(round);
                (0..work * (i / u32::from(GROUP) % 3))
                    .fold(v, |v, _| v.wrapping_mul(1_664_525).wrapping_add(1_013_904_223))
            })
            .collect();
    }
    items
}

fn check(bench: &mut Bench, rounds: u32, work: u32, what: &str) {
    meets(bench, "kernel_main", rounds, work, work.into(), what);
    let came = bench.buffer(&[0]);
    meets(bench, "spins", 2, 0, came, what);
}

/// `last` is the kernel's last argument.
fn meets(bench: &mut Bench, kernel: &str, rounds: u32, work: u32, last: u64, what: &str) {
    let (one, other) = (bench.buffer(&(0..ITEMS as u32).collect::<Vec<_>>()), bench.buffer(&vec![0; ITEMS]));
    let arguments = [one, other, rounds.into(), u64::from(GROUPS - 1), last];
    let stats =
        bench.run(kernel, GROUPS, GROUP, 0, &arguments).unwrap_or_else(|fault| panic!("{what}, {kernel}: {fault}"));
    assert_eq!(stats.workgroups, u64::from(GROUPS), "{what}, {kernel}");
    let written = if rounds.is_multiple_of(2) { one } else { other };
    assert_eq!(bench.read(written, ITEMS), expected(rounds, work), "{what}, {kernel}");
}

fn images(test: impl Fn(&str, &[u8])) {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("directory");
    for target in TARGETS {
        test(target, &compile(dir.path(), target, &format!("{PRELUDE}{SOURCE}"), &[]));
    }
}

#[test]
fn all_workgroups_meet() {
    images(|target, image| {
        for seed in 0..2 {
            check(&mut Bench::new(target, seed, image), 5, 3, &format!("{target}, seed {seed}"));
        }
    });
}

#[test]
fn all_workgroups_meet_in_threads() {
    images(|target, image| {
        for threads in [1, 2, 5] {
            let mut bench = Bench::new(target, 0, image);
            let options = bench.device.options_mut();
            (options.strict, options.threads) = (false, threads);
            check(&mut bench, 4, 5, &format!("{target}, {threads} threads"));
            // Long enough that other threads help before the first barrier.
            check(&mut bench, 2, 150, &format!("{target}, {threads} threads, long"));
        }
    });
}

#[test]
fn a_barrier_that_not_all_come_to_is_a_fault() {
    images(|target, image| {
        for (strict, threads) in [(true, 1), (false, 1), (false, 3)] {
            let mut bench = Bench::new(target, 1, image);
            let options = bench.device.options_mut();
            (options.strict, options.threads) = (strict, threads);
            let fault = bench.run("leaves", GROUPS, GROUP, 0, &[u64::from(GROUPS - 1)]).expect_err("one has left");
            let FaultKind::Undefined { what } = &fault.kind else { panic!("{target}: {fault}") };
            assert!(what.contains("global wave sync"), "{target}: {fault}");
            // One fewer has to come.
            bench
                .run("leaves", GROUPS, GROUP, 0, &[u64::from(GROUPS - 2)])
                .unwrap_or_else(|fault| panic!("{target}: {fault}"));
        }
    });
}

/// A counter that the kernel has set holds, whatever the waves bring.
#[test]
fn a_kernel_sets_a_resource_up_itself() {
    images(|target, image| {
        let mut bench = Bench::new(target, 1, image);
        let out = bench.buffer(&vec![0; ITEMS]);
        let run = |bench: &mut Bench, others: u64| bench.run("sets_up", GROUPS, GROUP, 0, &[out, others]);
        let waves = u64::from(GROUP) / if target.starts_with("gfx1") { 32 } else { 64 };
        run(&mut bench, waves - 1).unwrap_or_else(|fault| panic!("{target}: {fault}"));
        assert_eq!(bench.read(out, ITEMS), (0..ITEMS as u32).collect::<Vec<_>>(), "{target}");
        run(&mut bench, waves).expect_err("one more than there are");
    });
}

/// One wave at a time, as the counter of a semaphore says; with no place none ever comes through.
#[test]
fn a_semaphore_lets_waves_through_one_by_one() {
    images(|target, image| {
        for (strict, threads) in [(true, 1), (false, 1), (false, 3)] {
            let mut bench = Bench::new(target, 1, image);
            let options = bench.device.options_mut();
            (options.strict, options.threads) = (strict, threads);
            let count = bench.buffer(&[0]);
            let run = |bench: &mut Bench, places: u64| bench.run("one_by_one", GROUPS, GROUP, 0, &[count, places]);
            run(&mut bench, 1).unwrap_or_else(|fault| panic!("{target}: {fault}"));
            let waves = u32::from(GROUP) / if target.starts_with("gfx1") { 32 } else { 64 } * GROUPS;
            assert_eq!(bench.read(count, 1), [waves], "{target}, strict {strict}, {threads} threads");
            let fault = run(&mut bench, 0).expect_err("none comes through");
            assert!(fault.to_string().contains("global wave sync"), "{target}: {fault}");
        }
    });
}

#[test]
fn a_semaphore_is_counted_up_by_more_than_one() {
    images(|target, image| {
        let mut bench = Bench::new(target, 2, image);
        let waves = u32::from(GROUP) / if target.starts_with("gfx1") { 32 } else { 64 };
        let out = bench.buffer(&[0; 32]);
        // Each wave of the first workgroup lets as many through as the others of the grid have for each of its own.
        bench
            .run("in_turn", GROUPS, GROUP, 0, &[out, u64::from(GROUPS - 1)])
            .unwrap_or_else(|fault| panic!("{target}: {fault}"));
        assert_eq!(bench.read(out, GROUPS as usize + 1)[1..], [7; GROUPS as usize], "{target}, {waves} waves");
    });
}
