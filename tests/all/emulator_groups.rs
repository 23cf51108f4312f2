//! Workgroups in the emulator: LDS and barriers, atomics, exchanges between lanes, and the branch trace.

use crate::emulated::{Bench, PRELUDE, TARGETS, compile, compiler_is_there};

fn for_each_target(source: &str, flags: &[&str], test: impl Fn(&str, &mut Bench)) {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("directory");
    for target in TARGETS {
        let image = compile(dir.path(), target, &format!("{PRELUDE}{source}"), flags);
        for seed in 0..4 {
            test(target, &mut Bench::new(target, seed, &image));
        }
    }
}

#[test]
fn reduction_through_lds() {
    let source = r"KERNEL void kernel_main(const u32 *in, u32 *out) {
        SHARED u32 tile[256];
        u32 t = local_id();
        tile[t] = in[global_id()];
        barrier();
        for (u32 half = group_size() / 2; half; half /= 2) { if (t < half) tile[t] += tile[t + half]; barrier(); }
        if (!t) out[group_id()] = tile[0];
    }";
    for_each_target(source, &[], |target, bench| {
        let data: Vec<u32> = (0..5 * 256).map(|n| n * n + 7).collect();
        let (input, output) = (bench.buffer(&data), bench.buffer(&[0; 5]));
        bench.run("kernel_main", 5, 256, 0, &[input, output]).unwrap_or_else(|fault| panic!("{target}: {fault}"));
        let expected: Vec<u32> = data.chunks(256).map(|chunk| chunk.iter().sum()).collect();
        assert_eq!(bench.read(output, 5), expected, "{target}");
    });
}

#[test]
fn atomics() {
    let source = r"KERNEL void kernel_main(const u32 *in, u32 *out, u64 *wide, float *sum) {
        SHARED u32 bins[16];
        u32 t = local_id();
        if (t < 16) bins[t] = 0;
        barrier();
        u32 v = in[global_id()];
        __hip_atomic_fetch_add(&bins[v & 15], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
        barrier();
        if (t < 16) __hip_atomic_fetch_add(&out[t], bins[t], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        __hip_atomic_fetch_max(&out[16], v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        __hip_atomic_fetch_min((i32 *)&out[17], (i32)v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        __hip_atomic_fetch_xor(&out[18], v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        u32 old = __hip_atomic_fetch_or(&out[19], 1u << (v & 31), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        if (!(old >> (v & 31) & 1)) __hip_atomic_fetch_add(&out[20], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        u32 expect = 0; __hip_atomic_compare_exchange_strong(&out[21], &expect, v | 1, __ATOMIC_RELAXED,
        __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        __hip_atomic_fetch_add(&wide[0], (u64)v << 8, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        u64 seen = wide[1]; while (!__hip_atomic_compare_exchange_weak(&wide[1], &seen, seen + v, __ATOMIC_RELAXED,
        __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)) {}
        __hip_atomic_fetch_add(sum, (float)(v & 7), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    }";
    for_each_target(source, &["-munsafe-fp-atomics"], |target, bench| {
        let data: Vec<u32> = (0..3 * 192_u32).map(|n| n.wrapping_mul(2_654_435_761) >> 3).collect();
        let (input, output, wide, sum) =
            (bench.buffer(&data), bench.buffer(&[0; 32]), bench.buffer(&[0; 4]), bench.buffer(&[0]));
        bench
            .run("kernel_main", 3, 192, 0, &[input, output, wide, sum])
            .unwrap_or_else(|fault| panic!("{target}: {fault}"));
        let found = bench.read(output, 22);
        for bin in 0..16 {
            assert_eq!(
                found[bin as usize] as usize,
                data.iter().filter(|v| *v & 15 == bin).count(),
                "{target} bin {bin}"
            );
        }
        assert_eq!(found[16], *data.iter().max().unwrap());
        assert_eq!(found[17] as i32, data.iter().map(|v| *v as i32).min().unwrap().min(0));
        assert_eq!(found[18], data.iter().fold(0, |all, v| all ^ v));
        let bits = data.iter().fold(0_u32, |all, v| all | 1 << (v & 31));
        assert_eq!((found[19], found[20]), (bits, bits.count_ones()));
        assert!(data.iter().any(|v| v | 1 == found[21]));
        let total: u64 = data.iter().map(|v| u64::from(*v)).sum();
        let words = bench.read(wide, 4);
        let value = |n: usize| u64::from(words[n]) | u64::from(words[n + 1]) << 32;
        assert_eq!((value(0), value(2)), (total << 8, total), "{target}");
        assert_eq!(f32::from_bits(bench.read(sum, 1)[0]), data.iter().map(|v| (v & 7) as f32).sum::<f32>());
    });
}

#[test]
fn lanes() {
    let source = r"KERNEL void kernel_main(const u32 *in, u32 *out) {
        u32 t = local_id(), v = in[t];
        out[t] = __builtin_amdgcn_ds_bpermute((int)((t * 7 + 3) & 63) * 4, v);
        out[64 + t] = __builtin_amdgcn_ds_swizzle(v, 0x041f);
        out[128 + t] = __builtin_amdgcn_mov_dpp(v, 0x1b, 0xf, 0xf, false);
        out[192 + t] = __builtin_amdgcn_update_dpp(77, v, 0x111, 0xf, 0xf, false);
        out[256 + t] = __builtin_amdgcn_readlane(v, 13);
        u64 mask = __builtin_amdgcn_uicmp(v & 1, 1, 32);
        out[320 + t] = (u32)mask; out[384 + t] = (u32)(mask >> 32);
        out[448 + t] = __builtin_amdgcn_mbcnt_hi((u32)(mask >> 32), __builtin_amdgcn_mbcnt_lo((u32)mask, 5));
        u32 r = 0; if (t % 3 == 1) r = __builtin_amdgcn_readfirstlane(v); out[512 + t] = r;
        out[576 + t] = __builtin_amdgcn_update_dpp(5, v, 0x142, 0xa, 0xf, false);
        out[640 + t] = __builtin_amdgcn_update_dpp(5, v, 0x12f, 0xf, 0x5, true);
        u32 odd = 9; if (t & 1) odd = __builtin_amdgcn_ds_bpermute((t ^ 1) * 4, v); out[704 + t] = odd;
    }";
    for_each_target(source, &[], |target, bench| {
        let v: Vec<u32> = (0..64_u32).map(|n| n.wrapping_mul(0x9e37_79b9) >> 5).collect();
        let (input, output) = (bench.buffer(&v), bench.buffer(&[0; 768]));
        bench.run("kernel_main", 1, 64, 0, &[input, output]).unwrap_or_else(|fault| panic!("{target}: {fault}"));
        let found = bench.read(output, 768);
        let mask = (0..64).fold(0_u64, |all, n| all | u64::from(v[n] & 1) << n);
        let expect = |row: usize, f: &dyn Fn(usize) -> u32| {
            for t in 0..64 {
                assert_eq!(found[64 * row + t], f(t), "{target} row {row} lane {t}");
            }
        };
        expect(0, &|t| v[(t * 7 + 3) & 63]);
        expect(1, &|t| v[t ^ 1]);
        expect(2, &|t| v[(t & !3) + (3 - (t & 3))]);
        expect(3, &|t| if t % 16 == 0 { 77 } else { v[t - 1] });
        expect(4, &|_| v[13]);
        expect(5, &|_| mask as u32);
        expect(6, &|_| (mask >> 32) as u32);
        expect(7, &|t| 5 + (mask & ((1 << t) - 1)).count_ones());
        expect(8, &|t| if t % 3 == 1 { v[1] } else { 0 });
        expect(9, &|t| {
            if t / 16 == 1 {
                v[15]
            } else if t / 16 == 3 {
                v[47]
            } else {
                5
            }
        });
        // Row rotation by 15 to the right; banks 1 and 3 keep the old value.
        expect(10, &|t| if (t / 4) % 2 == 0 { v[(t & !15) + ((t + 1) & 15)] } else { 5 });
        // The lane fetched from is inactive.
        expect(11, &|t| if t & 1 == 1 { 0 } else { 9 });
    });
}

/// The kernel of the issue of divergence: half of each workgroup's first wave goes one way.
#[test]
fn trace_counts_what_the_source_says() {
    let source = r"KERNEL void kernel_main(u32 *out) {
        u32 t = local_id(), v = 0;
        if (t < 32) { v = out[global_id()] * 3; __builtin_amdgcn_s_sleep(1); out[global_id()] = v; } else {
        out[global_id() + 2048] = t; }
    }";
    for_each_target(source, &[], |target, bench| {
        let output = bench.buffer(&[1; 4096]);
        let stats = bench.run("kernel_main", 16, 128, 0, &[output]).unwrap_or_else(|fault| panic!("{target}: {fault}"));
        assert_eq!((stats.workgroups, stats.waves), (16, 32));
        let trace = stats.trace.expect("trace");
        assert_eq!(trace.executed.values().sum::<u64>(), stats.instructions);
        let split: Vec<_> = trace.exec_sites.values().filter(|site| site.divergences() != 0).collect();
        assert_eq!(split.len(), 1, "{target}: {:?}", trace.exec_sites);
        let site = split[0];
        assert_eq!(
            (site.executions, site.agreements, site.divergences(), site.lanes_before, site.empty),
            (32, 16, 16, 2048, 0)
        );
        assert!(site.lanes_after == 512 || site.lanes_after == 1536, "{target}: {site:?}");
    });
}

#[test]
fn partial_waves_and_three_dimensions() {
    use wavetap::emulator::Dispatch;
    if !compiler_is_there() {
        return;
    }
    let source = format!(
        "{PRELUDE}KERNEL void kernel_main(u32 *out) {{
            u32 x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workitem_id_y(), z = \
            __builtin_amdgcn_workitem_id_z();
            u32 gx = __builtin_amdgcn_workgroup_id_x() * 5 + x, gy = __builtin_amdgcn_workgroup_id_y() * 3 + y, gz = \
            __builtin_amdgcn_workgroup_id_z() * 7 + z;
            out[(gz * 9 + gy) * 10 + gx] = gx | gy << 8 | gz << 16;
        }}"
    );
    let dir = tempfile::tempdir().expect("directory");
    for target in TARGETS {
        let image = compile(dir.path(), target, &source, &[]);
        let mut bench = Bench::new(target, 3, &image);
        let output = bench.buffer(&[u32::MAX; 10 * 9 * 14]);
        let kernarg = bench.buffer(&[output as u32, (output >> 32) as u32]);
        let dispatch = Dispatch {
            kernel_object: bench.object.kernel("kernel_main").expect("kernel"),
            grid: [10, 9, 14],
            workgroup: [5, 3, 7],
            private_segment_size: 0,
            group_segment_size: 0,
            kernarg_address: kernarg,
            dispatch_id: 0,
        };
        let stats = bench.device.dispatch(&dispatch).unwrap_or_else(|fault| panic!("{target}: {fault}"));
        assert_eq!((stats.workgroups, stats.waves), (12, 24), "105 work-items are two waves");
        for (n, value) in bench.read(output, 10 * 9 * 14).into_iter().enumerate() {
            let (x, y, z) = (n % 10, n / 10 % 9, n / 90);
            assert_eq!(value as usize, x | y << 8 | z << 16, "{target}");
        }
    }
}
