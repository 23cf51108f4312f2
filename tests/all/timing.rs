//! The timing model against what is known of machines: rates, latencies, conflicts and capacities, each by a kernel
//! that depends on one of them.
//!
//! Expected numbers are written here, not taken from the tables: a change of the tables that moves them is a change
//! that someone should see.

use crate::timed::{Kernel, assembler_is_there, changed, each, each_of, stalled};
use wavetap::emulator::{StallReason, Timing};

const WAIT_LDS: &str = "s_waitcnt lgkmcnt(0)";
const WAIT_LOAD: &str = "s_waitcnt vmcnt(0)";

/// What follows each other at the latency, and what does not at the rate.
#[test]
fn chains_take_latencies_and_independent_operations_rates() {
    if !assembler_is_there() {
        return;
    }
    let independent = |name: &str, width: u32| {
        let of = |n: u32| if width == 1 { format!("v{n}") } else { format!("v[{n}:{}]", n + 1) };
        (0..8)
            .map(|n| format!("{name} {}, {}, {}, {}", of(8 + 2 * n), of(2), of(4), of(6)))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let single = ("v_fma_f32 v8, v8, v2, v4", independent("v_fma_f32", 1));
    let double = ("v_fma_f64 v[8:9], v[8:9], v[2:3], v[4:5]", independent("v_fma_f64", 2));
    for (target, (chain, others), latency, rate) in [
        ("gfx900", &single, 4.0, 4.0),
        ("gfx90a", &single, 4.0, 4.0),
        ("gfx942", &single, 4.0, 4.0),
        ("gfx1030", &single, 5.0, 1.0),
        ("gfx1100", &single, 5.0, 1.0),
        ("gfx1200", &single, 5.0, 1.0),
        // Double precision: a sixteenth of the rate, a half, the same.
        ("gfx900", &double, 64.0, 64.0),
        ("gfx906", &double, 16.0, 8.0),
        ("gfx90a", &double, 4.0, 4.0),
        ("gfx1030", &double, 22.0, 16.0),
    ] {
        assert_eq!(each(target, chain, &[0; 64]), latency, "{target} {chain}");
        assert_eq!(each(target, others, &[0; 64]) / 8.0, rate, "{target} {others}");
    }
}

#[test]
fn waves_of_64_take_two_passes_on_32_lanes() {
    if !assembler_is_there() {
        return;
    }
    let of = |body: &'static str| {
        each_of(
            &|times| Kernel::repeated("gfx1100", body, times).with(|k| k.lanes = 64),
            &[0; 64],
            1,
            &Timing::default(),
        )
    };
    assert_eq!(of("v_add_nc_u32 v8, v8, v2"), 6.0);
    assert_eq!(of("v_add_nc_u32 v8, v7, v2\n v_add_nc_u32 v9, v7, v2"), 4.0);
    // What there are twice the units for takes one; not with DPP.
    assert_eq!(of("v_fma_f32 v8, v8, v2, v4"), 5.0);
    assert_eq!(of("v_fma_f32 v8, v7, v2, v4\n v_max_f32 v9, v7, v2"), 2.0);
    assert_eq!([of("v_mov_b32 v8, v8"), of("v_mov_b32_dpp v8, v8 row_shr:1")], [5.0, 6.0]);
}

#[test]
fn transcendentals_and_matrix_operations_keep_their_units() {
    if !assembler_is_there() {
        return;
    }
    assert_eq!(each("gfx90a", "v_rcp_f32 v8, v2", &[0; 64]), 16.0);
    assert_eq!(each("gfx1100", "v_rcp_f32 v8, v2", &[0; 64]), 4.0);
    // Three others go beside it on RDNA, none on CDNA.
    let mixed = "v_rcp_f32 v8, v2\n v_add_f32 v9, v2, v3\n v_add_f32 v10, v2, v3\n v_add_f32 v11, v2, v3";
    assert_eq!(each("gfx1100", mixed, &[0; 64]), 4.0);
    assert_eq!(each("gfx90a", mixed, &[0; 64]), 28.0);
    // 32 x 32 x 8 multiplications and additions, at 1024 (CDNA 2) and 2048 (CDNA 3) operations a cycle and compute
    // unit.
    assert_eq!(each("gfx90a", "v_mfma_f32_32x32x8f16 a[0:15], v[2:3], v[4:5], a[16:31]", &[0; 64]), 64.0);
    assert_eq!(each("gfx942", "v_mfma_f32_32x32x8_f16 a[0:15], v[2:3], v[4:5], a[16:31]", &[0; 64]), 32.0);
    // Two blocks of 32 x 32 x 1 at 256 operations.
    assert_eq!(each("gfx90a", "v_mfma_f32_32x32x1f32 a[0:31], v2, v4, 0", &[0; 64]), 64.0);
    // Fifteen vector operations fit beside one of 64 cycles that takes a slot itself.
    let beside =
        format!("v_mfma_f32_32x32x8f16 a[0:15], v[2:3], v[4:5], a[16:31]\n{}", "v_add_f32 v9, v2, v3\n".repeat(15));
    assert_eq!(each("gfx90a", &beside, &[0; 64]), 64.0);
    // WMMA is what the vector ALU does.
    assert_eq!(each("gfx1100", "v_wmma_f32_16x16x16_f16 v[8:15], v[16:23], v[24:31], v[32:39]", &[0; 64]), 32.0);
}

#[test]
fn pointer_chases_take_the_latency_of_each_step() {
    if !assembler_is_there() {
        return;
    }
    // One lane; the value that is read is the next address, 0.
    let lds = |times| {
        Kernel::new(
            "gfx90a",
            format!(
                "s_mov_b64 exec, 1\n v_mov_b32 v2, 0\n{}",
                format!("ds_read_b32 v2, v2\n{WAIT_LDS}\n").repeat(times)
            ),
        )
    };
    assert_eq!(each_of(&lds, &[0; 64], 1, &Timing::default()), 52.0, "48 cycles, and the slot of the wait");
    assert_eq!(each_of(&lds, &[0; 64], 1, &changed(&["lds=100"])), 104.0);
    let global = |times| {
        let step = format!("global_load_dword v2, v2, s[4:5]\n{WAIT_LOAD}\n");
        Kernel::new("gfx90a", format!("s_mov_b64 exec, 1\n v_mov_b32 v2, 0\n{}", step.repeat(times)))
    };
    assert_eq!(each_of(&global, &[0; 64], 1, &Timing::default()), 124.0, "120 cycles of an L1 hit");
    assert_eq!(each_of(&global, &[0; 64], 1, &changed(&["vmem=60"])), 64.0);
    let scalar = |times| Kernel::new("gfx90a", format!("s_load_dword s8, s[4:5], 0x0\n{WAIT_LDS}\n").repeat(times));
    assert_eq!(each_of(&scalar, &[0; 64], 1, &Timing::default()), 56.0, "50 cycles end in a slot that begins at 52");
}

/// A list that goes through so many bytes in steps of 128, so many times around.
fn around(target: &'static str, bytes: usize, timing: &Timing) -> f64 {
    const STEP: usize = 128;
    let memory: Vec<u32> =
        (0..bytes / 4).map(|n| if 4 * n % STEP == 0 { ((4 * n + STEP) % bytes) as u32 } else { 0 }).collect();
    let times = |rounds: usize| {
        let steps = rounds * bytes / STEP;
        let body = format!(
            "s_mov_b64 exec, 1\n v_mov_b32 v2, 0\n s_mov_b32 s8, {steps}\nagain:\n global_load_dword v2, v2, s[4:5]\n \
                s_sub_u32 s8, s8, 1\n s_cmp_lg_u32 s8, 0\n {WAIT_LOAD}\n s_cbranch_scc1 again"
        );
        (Kernel::new(target, body).time(&memory, (1, 64), timing).cycles, steps)
    };
    let ((first, fewer), (second, more)) = (times(1), times(3));
    (second - first) as f64 / (more - fewer) as f64
}

#[test]
fn working_sets_are_in_the_cache_that_holds_them() {
    if !assembler_is_there() {
        return;
    }
    // A branch that is taken takes 20 cycles beyond the load: 120 + 4 of the wait + 20.
    let of = |bytes| around("gfx90c", bytes, &Timing::default());
    let (small, medium, large) = (of(8 << 10), of(256 << 10), of(4 << 20));
    assert_eq!(small, 144.0, "in L1");
    assert_eq!(medium, 324.0, "in L2");
    assert!((723.0..728.0).contains(&large), "in memory: {large}");
    // On gfx90a L2 has 8 MiB.
    assert_eq!(around("gfx90a", 2 << 20, &Timing::default()), 324.0);
    assert_eq!(around("gfx90c", 256 << 10, &changed(&["l2=200"])), 224.0);
    assert_eq!(around("gfx90c", 256 << 10, &changed(&["memory=2000"])), 324.0, "memory is not what it waits for");
    assert_eq!(around("gfx90c", 4 << 20, &changed(&["memory=1000"])) - large, 300.0);
    // Beyond L2 of gfx1030 (4 MiB) is the Infinity Cache, which has what was read before.
    let beyond = |latencies: &[&str]| around("gfx1030", 12 << 20, &changed(latencies));
    assert_eq!(beyond(&["mall=1000", "memory=5000"]) - beyond(&[]), 1000.0 - 380.0);
    let within = |latencies: &[&str]| around("gfx1030", 64 << 10, &changed(latencies));
    assert_eq!(within(&["gl1=200"]) - within(&[]), 200.0 - 110.0);
    assert_eq!(within(&["l2=1000"]), within(&[]));
}

#[test]
fn the_first_access_to_a_page_waits_for_its_translation() {
    if !assembler_is_there() {
        return;
    }
    const TOUCH: &str = "v_mov_b32 v2, 0\n global_load_dword v3, v2, s[4:5]\n s_waitcnt vmcnt(0)\n";
    let of = |times: usize, latencies: &[&str]| {
        let kernel = Kernel::repeated("gfx90a", TOUCH, times);
        stalled(&kernel.time(&[0; 64], (1, 64), &changed(latencies)), StallReason::Waitcnt)
    };
    // The kernel's arguments are on a page of scalar memory, which is changed with it.
    let first = |latencies: &[&str]| of(1, latencies) - of(0, latencies);
    assert_eq!(first(&["page=3000"]) - first(&["page=0"]), 3000);
    assert_eq!(of(2, &["page=3000"]) - of(1, &["page=3000"]), 116, "an L1 hit less the slot of the load");
}

/// A dispatch finds what the one before has left in L2, and its pages translated; not what was in L1.
#[test]
fn a_later_dispatch_finds_l2_and_translations() {
    if !assembler_is_there() {
        return;
    }
    let kernel = Kernel::new("gfx942", format!("global_load_dword v3, v1, s[4:5]\n {WAIT_LOAD}"));
    let [first, second, third] = &kernel.times((&[0; 64], 256), (1, 64), 3)[..] else { panic!("three times") };
    assert_eq!((first.memory.l1_misses, first.memory.l2_misses), (2, 3), "the line of the arguments and two of data");
    assert_eq!((second.memory.l1_misses, second.memory.l2_misses), (2, 0));
    // Memory and translation, and then L2: 880 + 1000 - 300; and the arguments: 880 - 300. A wait ends with a slot.
    let waits = |time| stalled(time, StallReason::Waitcnt);
    let shorter = waits(first) - waits(second);
    assert!(shorter.abs_diff(880 + 1000 - 300 + 880 - 300) <= 4, "{shorter}");
    assert_eq!((second.cycles, second.memory), (third.cycles, third.memory));
}

/// The wait for a store is as long as the way to L2 and back; a wave ends sooner.
#[test]
fn stores_are_acknowledged_by_l2() {
    if !assembler_is_there() {
        return;
    }
    const STORE: &str = "global_store_dword v2, v0, s[4:5]\n";
    let of = |waited: usize, last: &str| {
        let body = format!("v_mov_b32 v2, 0\n{}{last}", format!("{STORE} {WAIT_LOAD}\n").repeat(waited));
        let time = Kernel::new("gfx942", body).time(&[0; 64], (1, 64), &changed(&["page=0"]));
        stalled(&time, StallReason::Waitcnt)
    };
    assert_eq!(of(2, "") - of(1, ""), 300 - 4);
    assert_eq!(of(1, STORE) - of(1, ""), 200 - 8, "200 to the end of the wave");
}

/// What is only written is written to memory, too: by the end of the dispatch.
#[test]
fn write_only_kernels_are_not_faster_than_memory() {
    if !assembler_is_there() {
        return;
    }
    // Each work-item writes 16 bytes 16 times, the whole grid in a row: 16 MiB, more than fits in L2.
    const GROUPS: u32 = 256;
    const TIMES: u32 = 16;
    const ROW: u32 = GROUPS * 256 * 16;
    let bytes = u64::from(ROW * TIMES);
    let store = format!("global_store_dwordx4 v[4:5], v[8:11], off\n{}", moved(ROW));
    let body = format!(
        "s_lshl_b32 s8, s2, 12\n v_lshlrev_b32 v2, 4, v0\n v_add_u32 v2, s8, v2\n v_mov_b32 v5, s5\n \
         v_add_co_u32 v4, vcc, s4, v2\n v_addc_co_u32 v5, vcc, 0, v5, vcc\n{}",
        store.repeat(TIMES as usize)
    );
    // To memory, or to the cache before it.
    for (target, most) in [("gfx906", 590.0), ("gfx90a", 960.0), ("gfx942", 2800.0)] {
        for time in Kernel::new(target, &*body).times((&[0; 64], bytes), (GROUPS, 256), 2) {
            let rate = bytes as f64 / time.cycles as f64;
            assert!(rate <= most, "{target}: {rate} bytes a cycle were written, and {most} can be");
            assert!(rate > most / 4.0, "{target}: only {rate} bytes a cycle were written of {most}");
        }
    }
}

/// Adds to the address in `v[4:5]`.
fn moved(by: u32) -> String {
    format!("v_add_co_u32 v4, vcc, {by:#x}, v4\n v_addc_co_u32 v5, vcc, 0, v5, vcc\n")
}

#[test]
fn strides_of_powers_of_two_conflict_in_lds() {
    if !assembler_is_there() {
        return;
    }
    let of = |target: &'static str, shift: u32| {
        let kernel = |times: usize| {
            let body = format!("v_lshlrev_b32 v2, {shift}, v0\n{}", "ds_read_b32 v3, v2\n".repeat(times));
            Kernel::new(target, body).with(|k| k.lds = 16384)
        };
        each_of(&kernel, &[0; 64], 1, &Timing::default())
    };
    // 64 lanes on 32 banks take two cycles; a slot takes four.
    assert_eq!([2, 3, 4, 5, 6, 7].map(|shift| of("gfx90a", shift)), [4.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
    // 32 lanes take one, and so does a slot.
    assert_eq!([2, 3, 4, 5, 6, 7].map(|shift| of("gfx1030", shift)), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
    let time = |stride: u32| {
        let body = format!("v_mul_u32_u24 v2, {stride}, v0\n ds_read_b32 v3, v2");
        Kernel::new("gfx90a", body)
            .with(|k| k.lds = 16384)
            .time(&[0; 64], (1, 64), &Timing::default())
            .memory
            .lds_conflict_cycles
    };
    assert_eq!([4, 128, 132].map(time), [0, 62, 0], "a padded row has no conflicts");
}

#[test]
fn scattered_loads_take_a_line_each() {
    if !assembler_is_there() {
        return;
    }
    const LOAD: &str = "global_load_dword v3, v2, s[4:5]\n";
    let memory = vec![0; 1 << 14];
    let of = |shift: u32| {
        let kernel = |times: usize| {
            Kernel::new("gfx90a", format!("v_lshlrev_b32 v2, {shift}, v0\n{LOAD}{WAIT_LOAD}\n{}", LOAD.repeat(times)))
        };
        each_of(&kernel, &memory, 1, &Timing::default())
    };
    // Four lanes go together, and each of four banks has a dword a cycle: in a row, every second, the others.
    assert_eq!([2, 3, 4, 5, 6].map(of), [4.0, 32.0, 64.0, 64.0, 64.0]);
    let counts = |shift: u32| {
        let body = format!(
            "v_lshlrev_b32 v2, {shift}, v0\n global_load_dword v3, v2, s[4:5]\n {WAIT_LOAD}\n global_load_dword v3, \
                v2, s[4:5]"
        );
        let memory = Kernel::new("gfx90a", body).time(&memory, (1, 64), &Timing::default()).memory;
        (memory.l1_hits, memory.l1_misses)
    };
    assert_eq!([2, 6].map(counts), [(4, 4), (64, 64)]);
}

#[test]
fn waves_hide_each_others_latency() {
    if !assembler_is_there() {
        return;
    }
    let chase =
        Kernel::repeated("gfx90a", &format!("v_mov_b32 v2, 0\n global_load_dword v2, v2, s[4:5]\n{WAIT_LOAD}"), 100);
    let chase = chase.with(|k| k.lds = 0);
    let time = |waves: u32| chase.time(&[0; 64], (waves * 104, 64), &Timing::default());
    // All compute units have as many waves, so that there is one for each SIMD, then four.
    let (one, many) = (time(4), time(16));
    assert_eq!((one.most_waves, many.most_waves), (1, 4));
    assert!(
        many.cycles < one.cycles * 3 / 2,
        "{} waves in {} cycles, four times as many in {}",
        4,
        one.cycles,
        many.cycles
    );
    assert_eq!(
        many.instructions.values().map(|each| each.executions).sum::<u64>(),
        4 * one.instructions.values().map(|each| each.executions).sum::<u64>()
    );
    // What keeps the vector ALU all the time is not hidden.
    let busy = Kernel::repeated("gfx90a", "v_fma_f32 v8, v8, v2, v4", 1000).with(|k| k.lds = 0);
    let cycles = |waves: u32| busy.time(&[0; 64], (waves * 104, 64), &Timing::default()).cycles;
    let (one, many) = (cycles(4), cycles(16));
    assert!(10 * many > 34 * one, "{one} {many}");
    // On RDNA dependent operations of five waves fill a SIMD.
    let chain = |waves: u16| {
        each_of(
            &|times| Kernel::repeated("gfx1100", "v_fma_f32 v8, v8, v2, v4", times),
            &[0; 64],
            waves,
            &Timing::default(),
        )
    };
    assert_eq!(
        [1, 4, 20, 32].map(chain),
        [5.0, 5.0, 5.0, 10.0],
        "of eight waves on a SIMD the five oldest fill it, then the others run"
    );
}

#[test]
fn waits_for_counters_end_in_order_or_not() {
    if !assembler_is_there() {
        return;
    }
    let memory = vec![0; 1 << 16];
    // The first load's line is there, the second one's is not.
    let begin = "s_mov_b64 exec, 1\n v_mov_b32 v2, 0\n global_load_dword v3, v2, s[4:5]\n s_waitcnt vmcnt(0)\n \
        v_mov_b32 v4, 0x8000\n";
    // At the end of the wave nothing is in flight.
    let of = |code: &str| {
        Kernel::new("gfx90a", format!("{begin}{code}\n s_sleep 32")).time(&memory, (1, 64), &Timing::default())
    };
    let wait = |code: &str| stalled(&of(code), StallReason::Waitcnt) - stalled(&of("s_nop 0"), StallReason::Waitcnt);
    let near = wait("global_load_dword v5, v2, s[4:5]\n global_load_dword v6, v4, s[4:5]\n s_waitcnt vmcnt(1)");
    let far = wait("global_load_dword v5, v2, s[4:5]\n global_load_dword v6, v4, s[4:5]\n s_waitcnt vmcnt(0)");
    let behind = wait("global_load_dword v6, v4, s[4:5]\n global_load_dword v5, v2, s[4:5]\n s_waitcnt vmcnt(1)");
    assert_eq!((near, far), (112, 696), "an L1 hit of 120, memory of 700, and the slots of the loads in between");
    assert_eq!(behind, 692, "the near one must wait for the far one, which began earlier");
    // Scalar loads come back as they come: the near one is the first.
    let scalar = wait("s_load_dword s8, s[4:5], 0x8000\n s_load_dword s9, s[0:1], 0x0\n s_waitcnt lgkmcnt(1)");
    assert!(scalar < 60, "{scalar}");
}

#[test]
fn barriers_wait_for_the_last_wave() {
    if !assembler_is_there() {
        return;
    }
    let kernel = |work: usize| {
        // The first wave works, the others come to the barrier at once.
        let body = format!(
            "v_readfirstlane_b32 s8, v0\n s_cmp_lg_u32 s8, 0\n s_cbranch_scc1 meet\n{}meet:\n s_barrier",
            "v_fma_f32 v8, v8, v2, v4\n".repeat(work)
        );
        Kernel::new("gfx90a", body)
    };
    let waited = |work| stalled(&kernel(work).time(&[0; 64], (1, 256), &Timing::default()), StallReason::BarrierWait);
    assert_eq!(waited(600) - waited(100), 3 * 500 * 4, "three waves wait for 500 operations of four cycles");
    let alone = kernel(600).time(&[0; 64], (1, 64), &Timing::default());
    assert!(stalled(&alone, StallReason::BarrierWait) <= 4);
    // gfx12's in two halves: what is done between them is not waited for.
    let split = |between: usize| {
        let body = format!(
            "v_readfirstlane_b32 s8, v0\n s_cmp_lg_u32 s8, 0\n s_cbranch_scc1 meet\n{}meet:\n s_barrier_signal -1\n\
                {}s_barrier_wait -1",
            "v_fma_f32 v8, v8, v2, v4\n".repeat(200),
            "v_fma_f32 v9, v9, v2, v4\n".repeat(between)
        );
        stalled(&Kernel::new("gfx1200", body).time(&[0; 64], (1, 64), &Timing::default()), StallReason::BarrierWait)
    };
    assert_eq!(
        split(0) - split(100),
        496 + 12,
        "of 100 operations the last one is issued after 99 of five cycles; the last wave learns after 14 cycles that \
            it was the last"
    );
    assert_eq!(split(300), 0);
}

#[test]
fn atomics_on_one_address_go_one_after_the_other() {
    if !assembler_is_there() {
        return;
    }
    const ATOMIC: &str = "global_atomic_add v2, v3, s[4:5]\n";
    let of = |address: &str, timing: &Timing| {
        let kernel = |times: usize| {
            Kernel::new("gfx90a", format!("{address}\n v_mov_b32 v3, 1\n{ATOMIC}{WAIT_LOAD}\n{}", ATOMIC.repeat(times)))
        };
        each_of(&kernel, &[0; 64], 1, timing)
    };
    let usual = Timing::default();
    assert_eq!(of("v_mov_b32 v2, 0", &usual), 128.0, "64 lanes of two cycles");
    assert_eq!(of("v_mov_b32 v2, v1", &usual), 16.0, "four lanes a cycle");
    assert_eq!(of("v_mov_b32 v2, 0", &changed(&["atomic=5"])), 320.0);
    // LDS takes them one after the other, too.
    let lds = |address: &str| {
        let kernel = |times: usize| {
            Kernel::new("gfx90a", format!("{address}\n v_mov_b32 v3, 1\n{}", "ds_add_u32 v2, v3\n".repeat(times)))
        };
        each_of(&kernel, &[0; 64], 1, &Timing::default())
    };
    // Two cycles are for data; eight bytes of each lane take the path to LDS for eight cycles.
    assert_eq!((lds("v_mov_b32 v2, 0"), lds("v_mov_b32 v2, v1")), (66.0, 8.0));
    let (stats, memory) = Kernel::new("gfx90a", "v_mov_b32 v2, 0\n v_mov_b32 v3, 1\n global_atomic_add v2, v3, s[4:5]")
        .run_on(&[0; 4], (16, 256), Some(usual));
    assert_eq!(memory[0], 4096);
    assert_eq!(stats.time.unwrap().memory.serialized_atomics, 64 * 63);
}

#[test]
fn an_override_moves_what_it_names_and_nothing_else() {
    if !assembler_is_there() {
        return;
    }
    // For each class a kernel whose time is that class's latency, on a machine on which the others are known not to
    // matter to it.
    let kernels = [
        ("valu32", "v_fma_f32 v8, v8, v2, v4"),
        ("valu_f64", "v_fma_f64 v[8:9], v[8:9], v[2:3], v[4:5]"),
        ("trans", "v_rcp_f32 v8, v8"),
        ("salu", "s_add_u32 s8, s8, s9"),
        ("lds", "ds_read_b32 v2, v2\n s_waitcnt lgkmcnt(0)"),
        ("vmem", "global_load_dword v2, v2, s[4:5]\n s_waitcnt vmcnt(0)"),
        ("smem", "s_load_dword s8, s[4:5], 0x0\n s_waitcnt lgkmcnt(0)"),
        ("branch", "s_branch 0"),
        ("barrier", "s_barrier"),
    ];
    for (name, body) in kernels {
        let kernel = |times: usize| {
            Kernel::new("gfx90a", format!("v_mov_b32 v2, 0\n s_mov_b64 exec, 1\n{}", format!("{body}\n").repeat(times)))
        };
        let usual = each_of(&kernel, &[0; 64], 1, &Timing::default());
        for (other, _) in kernels {
            let found = each_of(&kernel, &[0; 64], 1, &changed(&[&format!("{other}=400")]));
            // What follows is issued in the slot in which the latency ends, after it or with it.
            let expected = if other == name { if body.contains("waitcnt") { 404.0 } else { 400.0 } } else { usual };
            assert_eq!(found, expected, "{name} with {other}=400");
        }
    }
}

#[test]
fn what_is_waited_for_has_its_reason() {
    if !assembler_is_there() {
        return;
    }
    let of = |target: &'static str, body: &str, reason: StallReason| {
        let with = Kernel::repeated(target, body, 101).time(&[0; 64], (1, 64), &Timing::default());
        let without = Kernel::repeated(target, body, 1).time(&[0; 64], (1, 64), &Timing::default());
        (stalled(&with, reason) - stalled(&without, reason)) as f64 / 100.0
    };
    assert_eq!(of("gfx900", "v_fma_f64 v[8:9], v[8:9], v[2:3], v[4:5]", StallReason::AluDependency), 60.0);
    assert_eq!(of("gfx900", "v_fma_f64 v[8:9], v[6:7], v[2:3], v[4:5]", StallReason::ArbiterWinExStall), 60.0);
    assert_eq!(of("gfx90a", "s_nop 7", StallReason::InternalInstruction), 28.0, "seven slots more than one");
    assert_eq!(of("gfx90a", "s_sleep 2", StallReason::SleepWait), 128.0);
    assert_eq!(
        of("gfx90a", "s_branch 1\n s_nop 0", StallReason::NoInstructionAvailable),
        16.0,
        "twenty cycles from the branch to its target"
    );
    // Two waves on each of four SIMDs: one of them wins.
    let two = Kernel::repeated("gfx1100", "v_add_f32 v8, v2, v3", 100).with(|k| k.lds = 0).time(
        &[0; 64],
        (1, 256),
        &Timing::default(),
    );
    assert!(
        (390..=440).contains(&stalled(&two, StallReason::ArbiterNotWin)),
        "{}",
        stalled(&two, StallReason::ArbiterNotWin)
    );
}
