//! What must hold of modelled time whatever the kernel: random kernels, with loops, divergence, LDS, atomics and
//! barriers.

use std::collections::BTreeMap;
use std::num::NonZero;

use crate::random::Random;
use crate::timed::{Kernel, assembler_is_there};
use wavetap::emulator::{CodeAddress, TimedWorkgroups, Timing};

/// One instruction, or a few. What is written to memory does not depend on the order of waves: sums by atomics, and
/// what a lane works out by itself.
fn instruction(random: &mut Random, lanes: u32) -> String {
    let [a, b, c] = std::array::from_fn(|_| 2 + random.below(8));
    let n = random.below(8);
    let (wide, mask, exec) = if lanes == 64 { ("b64", "s[22:23]", "exec") } else { ("b32", "s22", "exec_lo") };
    let vcc = if lanes == 64 { "vcc" } else { "vcc_lo" };
    match random.below(20) {
        0..4 => format!("v_fma_f32 v{a}, v{b}, v{c}, v{a}"),
        4 => format!("v_rcp_f32 v{a}, v{b}"),
        5 => format!("v_mul_lo_u32 v{a}, v{b}, v{c}"),
        6 => "v_fma_f64 v[10:11], v[10:11], v[2:3], v[4:5]".into(),
        7 => format!("s_add_u32 s8, s8, s9\n s_mul_i32 s9, s8, s{}", 8 + n % 2),
        8 | 9 => format!("global_load_dword v{a}, v1, s[4:5] offset:{}", n * 256),
        10 => format!("global_store_dword v1, v{a}, s[6:7]"),
        11 => "global_atomic_add v13, v0, s[6:7] offset:1536".into(),
        12 => format!("ds_write_b32 v1, v{a}\n s_waitcnt lgkmcnt(0)\n ds_read_b32 v{b}, v1"),
        13 => "ds_add_u32 v14, v0".into(),
        14 => format!("s_load_dword s10, s[4:5], {:#x}", n * 64),
        15 => format!("s_waitcnt vmcnt({n})"),
        16 => format!("s_waitcnt lgkmcnt({n})"),
        17 => format!("s_nop {n}"),
        18 => ["s_sleep 1", "s_barrier"][n % 2].into(),
        _ => format!(
            "v_cmp_gt_u32 {vcc}, {}, v0\n s_and_saveexec_{wide} {mask}, {vcc}\n v_fma_f32 v{a}, v{b}, v{c}, v{a}\n \
                global_load_dword v{b}, v1, s[4:5]\n s_mov_{wide} {exec}, {mask}",
            n * 9
        ),
    }
}

fn kernel(random: &mut Random, target: &'static str, lanes: u32) -> Kernel {
    let mut body = String::from(
        "v_mov_b32 v13, 0\n v_mov_b32 v14, 0x800\n s_add_u32 s6, s4, 0x4000\n s_addc_u32 s7, s5, 0\n s_mov_b32 s8, 3\n \
            s_mov_b32 s9, 5\n",
    );
    (2..12).for_each(|n| body += &format!("v_mov_b32 v{n}, {n}.0\n"));
    for label in 0..1 + random.below(3) {
        let many = 5 + random.below(25);
        let code: Vec<String> = (0..many).map(|_| instruction(random, lanes)).collect();
        body += &format!(
            "s_mov_b32 s20, {}\nloop{label}:\n{}\n s_sub_u32 s20, s20, 1\n s_cmp_lg_u32 s20, 0\n s_cbranch_scc1 \
                loop{label}\n",
            1 + random.below(6),
            code.join("\n")
        );
    }
    Kernel::new(target, body).with(|kernel| kernel.lanes = lanes)
}

#[test]
fn random_kernels_keep_the_books() {
    if !assembler_is_there() {
        return;
    }
    let mut random = Random::new(0x5eed);
    let memory: Vec<u32> = (0..0x2000).map(|n| n * 7).collect();
    for round in 0..24 {
        let (target, lanes) = [("gfx90a", 64), ("gfx900", 64), ("gfx1030", 32), ("gfx1100", 64)][round % 4];
        let kernel = kernel(&mut random, target, lanes);
        let size = (1 + random.below(6) as u32, [64, 128, 256][random.below(3)]);
        let interval = 64;
        let timing = Timing { sample_interval: NonZero::new(interval), waves: true, ..Timing::default() };
        let (mut with, after) = kernel.run_on(&memory, size, Some(timing.clone()));
        let time = with.time.take().expect("modelled");

        // The model changes nothing but the order.
        let (without, plain) = kernel.run_on(&memory, size, None);
        assert_eq!(with, without, "{target} {}", kernel.body);
        assert!(plain == after, "{target}: other memory\n{}", kernel.body);
        // The same run takes the same cycles.
        let (again, _) = kernel.run_on(&memory, size, Some(timing));
        assert_eq!(again.time.as_deref(), Some(&*time), "{target}");

        // Every cycle of every wave is charged to one instruction, every execution to its own.
        let all: u64 = time.instructions.values().map(|each| each.issued + each.stalls()).sum();
        assert_eq!(all, time.wave_cycles, "{target} {}", kernel.body);
        let executed = with.trace.expect("traced").executed;
        let modelled: Vec<_> = time.instructions.iter().map(|(place, each)| (*place, each.executions)).collect();
        assert_eq!(modelled, executed.into_iter().collect::<Vec<_>>(), "{target}");
        // All waves together are no longer there than each of them all the time, and not all of them one after the
        // other.
        assert!(time.wave_cycles <= time.cycles * with.waves, "{target}");
        assert!(time.instructions.values().all(|each| each.issued >= each.executions));

        // What single waves did is without gaps, and of a dispatch that is on one compute unit it is everything.
        let mut sums: BTreeMap<CodeAddress, (u64, u64, u64)> = BTreeMap::new();
        for wave in &time.waves {
            let end = wave.instructions.iter().fold(wave.begin, |end, each| {
                assert_eq!(each.begin, end, "{target} {}", kernel.body);
                let sum = sums.entry(each.place).or_default();
                *sum = (sum.0 + 1, sum.1 + each.issued, sum.2 + each.duration);
                each.begin + each.duration
            });
            assert_eq!(end, wave.end, "{target} {}", kernel.body);
        }
        assert!(!time.waves.is_empty() && time.lost_waves == 0);
        if size.0 == 1 && target.starts_with("gfx9") {
            let all = time.instructions.iter();
            let all = all.map(|(place, each)| (*place, (each.executions, each.issued, each.issued + each.stalls())));
            assert_eq!(sums, all.collect::<BTreeMap<_, _>>(), "{target} {}", kernel.body);
        }

        // Samples: each wave's at its own cycles, all in order, none from outside.
        let expected = time.wave_cycles / u64::from(interval);
        assert!(
            (time.samples.len() as u64).abs_diff(expected) <= with.waves,
            "{} samples, {expected} expected",
            time.samples.len()
        );
        assert!(time.samples.is_sorted_by_key(|sample| sample.cycle) && time.lost_samples == 0);
        assert!(
            time.samples
                .iter()
                .all(|sample| sample.cycle < time.cycles && time.instructions.contains_key(&sample.place))
        );
    }
}

/// Workgroups that are not modelled do what they do otherwise, and the books are kept for all of them.
#[test]
fn a_part_of_the_workgroups_stands_for_all() {
    if !assembler_is_there() {
        return;
    }
    let mut random = Random::new(0x9a97);
    let memory: Vec<u32> = (0..0x2000).map(|n| n * 7).collect();
    for _ in 0..4 {
        // Two workgroups on each of eight compute units, because of their LDS.
        let kernel = kernel(&mut random, "gfx90c", 64).with(|kernel| kernel.lds = 0x8000);
        let size = (1200, 128);
        let part = Timing { workgroups: TimedWorkgroups::Auto, ..Timing::default() };
        let (mut with, after) = kernel.run_on(&memory, size, Some(part));
        let time = with.time.take().expect("modelled");
        let how = time.extrapolated.expect("not all were modelled");
        assert_eq!((how.modelled, how.workgroups), (16 * 25, 1200), "{}", kernel.body);
        let (without, plain) = kernel.run_on(&memory, size, None);
        assert_eq!(with, without, "{}", kernel.body);
        assert!(plain == after, "other memory\n{}", kernel.body);
        let all: u64 = time.instructions.values().map(|each| each.issued + each.stalls()).sum();
        assert_eq!(all, time.wave_cycles, "{}", kernel.body);
        let executed = with.trace.expect("traced").executed;
        let counted: Vec<_> = time.instructions.iter().map(|(place, each)| (*place, each.executions)).collect();
        assert_eq!(counted, executed.into_iter().collect::<Vec<_>>(), "{}", kernel.body);
        // What all of them take.
        let (whole, _) = kernel.run_on(&memory, size, Some(Timing::default()));
        let whole = whole.time.expect("modelled");
        let ratio = |one: u64, other: u64| (one as f64 / other as f64 - 1.0).abs();
        assert!(ratio(time.cycles, whole.cycles) < 0.05, "{how:?} {} {}\n{}", time.cycles, whole.cycles, kernel.body);
        assert!(ratio(time.wave_cycles, whole.wave_cycles) < 0.05, "{} {}", time.wave_cycles, whole.wave_cycles);
    }
}

/// Samples are a fair share of what they sample.
#[test]
fn samples_are_spread_as_the_cycles_are() {
    if !assembler_is_there() {
        return;
    }
    let body = "v_mov_b32 v2, 0\n s_mov_b32 s8, 400\nagain:\n global_load_dword v2, v2, s[4:5]\n s_sub_u32 s8, s8, 1\n \
        s_cmp_lg_u32 s8, 0\n s_waitcnt vmcnt(0)\n s_cbranch_scc1 again";
    let timing = Timing { sample_interval: NonZero::new(61), ..Timing::default() };
    let time = Kernel::new("gfx90a", body).time(&[0; 64], (8, 256), &timing);
    for (place, each) in &time.instructions {
        let cycles = each.issued + each.stalls();
        let found =
            time.samples.iter().filter(|sample| sample.place == *place).count() as f64 / time.samples.len() as f64;
        let expected = cycles as f64 / time.wave_cycles as f64;
        assert!((found - expected).abs() < 0.03, "{place:?}: {found} of the samples, {expected} of the cycles");
    }
    assert!(time.samples.len() > 10_000);
}
