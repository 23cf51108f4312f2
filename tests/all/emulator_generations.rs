//! Single instructions of gfx10 and later, against values worked out by hand from the instruction set manuals.

use crate::emulated::{Bench, compiler_is_there};

type Words = [u32; 4];

/// Waits that gfx12 has other instructions for.
const GFX8: &[&str] = &["gfx803"];
const GFX10: &[&str] = &["gfx1010", "gfx1030"];
const GFX11: &[&str] = &["gfx1100", "gfx1150"];
const GFX12: &[&str] = &["gfx1200"];
const BEFORE_GFX12: &[&str] = &["gfx1010", "gfx1030", "gfx1100", "gfx1150"];
const GFX11_UP: &[&str] = &["gfx1100", "gfx1150", "gfx1200"];
const GFX11_5_UP: &[&str] = &["gfx1150", "gfx1200"];
const ALL: &[&str] = &["gfx1010", "gfx1030", "gfx1100", "gfx1150", "gfx1200"];
const EVERY: &[&str] = &["gfx803", "gfx1010", "gfx1030", "gfx1100", "gfx1150", "gfx1200"];

/// One piece of code: what the lanes get in `v4..v7`, what each of them must have in `v8..v11`; `v0` is the lane.
struct Case {
    name: &'static str,
    targets: &'static [&'static str],
    code: &'static str,
    expected: fn(usize, &[Words; 64]) -> Words,
}

macro_rules! case {
    ($name:ident, $targets:expr, $code:expr, $expected:expr) => {
        Case { name: stringify!($name), targets: $targets, code: $code, expected: $expected }
    };
}

fn assemble(dir: &std::path::Path, target: &str, lanes: u32, cases: &[&Case]) -> Vec<u8> {
    let (load, store) = if GFX12.contains(&target) {
        ("s_wait_kmcnt 0", "s_wait_loadcnt 0")
    } else {
        ("s_waitcnt lgkmcnt(0)", "s_waitcnt vmcnt(0)")
    };
    let settle = if GFX12.contains(&target) {
        "s_wait_loadcnt_dscnt 0\n s_wait_kmcnt 0"
    } else {
        "s_waitcnt vmcnt(0) lgkmcnt(0)"
    };
    // gfx8 has flat addresses only, and its additions give a carry.
    let flat = |base: u32, then: &str| {
        let high = base + 1;
        format!("v_mov_b32 v3, s{high}\n v_add_u32 v2, vcc, s{base}, v1\n v_addc_u32 v3, vcc, 0, v3, vcc\n {then}")
    };
    let (first, last) = if GFX8.contains(&target) {
        (
            flat(4, "flat_load_dwordx4 v[4:7], v[2:3]\n s_waitcnt vmcnt(0) lgkmcnt(0)"),
            flat(6, "flat_store_dwordx4 v[2:3], v[8:11]"),
        )
    } else {
        ("global_load_dwordx4 v[4:7], v1, s[4:5]".into(), "global_store_dwordx4 v1, v[8:11], s[6:7]".into())
    };
    let mut text = String::from(".amdhsa_code_object_version 5\n");
    for Case { name, code, .. } in cases {
        text += &format!(
            ".text\n.globl {name}\n.p2align 8\n.type {name},@function\n{name}:\n s_load_dwordx4 s[4:7], s[0:1], 0x0\n \
                v_and_b32 v0, 0x3ff, v0\n v_lshlrev_b32 v1, 4, v0\n {load}\n {first}\n v_mov_b32 v8, 0\n v_mov_b32 v9, \
                0\n v_mov_b32 v10, 0\n v_mov_b32 v11, 0\n {store}\n s_nop 7\n{code}\n {settle}\n {last}\n s_endpgm\n\
             .rodata\n.p2align 6\n.amdhsa_kernel {name}\n .amdhsa_user_sgpr_kernarg_segment_ptr 1\n \
             .amdhsa_next_free_vgpr 64\n .amdhsa_next_free_sgpr 40\n {wave32}.amdhsa_group_segment_fixed_size 4096\n\
             .end_amdhsa_kernel\n",
            wave32 = if GFX8.contains(&target) {
                String::new()
            } else {
                format!(".amdhsa_wavefront_size32 {}\n ", u32::from(lanes == 32))
            },
        );
    }
    let (source, object, image) = (dir.join("cases.s"), dir.join("cases.o"), dir.join("cases.co"));
    std::fs::write(&source, text).expect("written");
    let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
        let output = std::process::Command::new(program).args(arguments).output().expect("it starts");
        assert!(output.status.success(), "{target}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let (cpu, wave) = (
        format!("-mcpu={target}"),
        if GFX8.contains(&target) {
            "-mcumode"
        } else if lanes == 64 {
            "-mwavefrontsize64"
        } else {
            "-mno-wavefrontsize64"
        },
    );
    let start = ["-target".as_ref(), "amdgcn-amd-amdhsa".as_ref(), cpu.as_ref(), wave.as_ref(), "-c".as_ref()];
    run("clang-19", &[&start[..], &[source.as_ref(), "-o".as_ref(), object.as_ref()]].concat());
    run("ld.lld-19", &["-shared".as_ref(), object.as_ref(), "-o".as_ref(), image.as_ref()]);
    std::fs::read(image).expect("code object")
}

fn run(lanes: u32, cases: &[Case], inputs: &[Words; 64]) {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("directory");
    for target in EVERY {
        let chosen: Vec<&Case> = cases.iter().filter(|case| case.targets.contains(target)).collect();
        if chosen.is_empty() {
            continue;
        }
        let image = assemble(dir.path(), target, lanes, &chosen);
        let mut bench = Bench::new(target, 1, &image);
        for case in chosen {
            let found =
                bench.snippet(case.name, inputs).unwrap_or_else(|fault| panic!("{target} {}: {fault}", case.name));
            for (lane, found) in found.iter().enumerate() {
                let expected = (case.expected)(lane, inputs);
                assert_eq!(
                    *found, expected,
                    "{target} {} lane {lane}: {found:x?}, {expected:x?} expected, inputs {:x?}",
                    case.name, inputs[lane]
                );
            }
        }
    }
}

fn inputs() -> [Words; 64] {
    std::array::from_fn(|lane| {
        let n = lane as u32 + 1;
        [n.wrapping_mul(0x9e37_79b9), n.wrapping_mul(0x85eb_ca6b) ^ 0xffff, n.wrapping_mul(0xc2b2_ae35), n % 40]
    })
}

#[test]
fn integers() {
    let cases = [
        case!(
            sums,
            ALL,
            "v_add_nc_u32 v8, v4, v5\nv_sub_nc_u32 v9, v4, v5\nv_xor3_b32 v10, v4, v5, v6\nv_add_nc_u32 v11, v4, v5 \
                clamp",
            |l, i| {
                let [a, b, c, _] = i[l];
                [a.wrapping_add(b), a.wrapping_sub(b), a ^ b ^ c, a.saturating_add(b)]
            }
        ),
        case!(
            carries,
            ALL,
            "v_add_co_u32 v8, vcc_lo, v4, v5\nv_add_co_ci_u32 v9, vcc_lo, v5, v6, vcc_lo\nv_sub_co_ci_u32 v10, vcc_lo, \
                v4, v5, vcc_lo\nv_cndmask_b32 v11, v4, v5, vcc_lo",
            |l, i| {
                let [a, b, c, _] = i[l];
                let (x, carry) = a.overflowing_add(b);
                let y = u64::from(b) + u64::from(c) + u64::from(carry);
                let z = i64::from(a) - i64::from(b) - (y >> 32) as i64;
                [x, y as u32, z as u32, if z < 0 { b } else { a }]
            }
        ),
        case!(
            halves,
            ALL,
            "v_mov_b32 v8, -1\nv_add_nc_u16 v8, v4, v5\nv_mov_b32 v9, -1\nv_mul_lo_u16 v9, v4, v5\nv_mov_b32 v10, -1\n\
                v_add_nc_i16 v10, v4, v5 op_sel:[1,0,1]\nv_mov_b32 v11, -1\nv_lshlrev_b16 v11, 3, v4",
            |l, i| {
                let [a, b, ..] = i[l];
                // The other half stays.
                let sum = (a as u16).wrapping_add(b as u16);
                let high = ((a >> 16) as u16).wrapping_add(b as u16);
                let product = (a as u16).wrapping_mul(b as u16);
                [
                    0xffff_0000 | u32::from(sum),
                    0xffff_0000 | u32::from(product),
                    u32::from(high) << 16 | 0xffff,
                    0xffff_0000 | u32::from((a as u16) << 3),
                ]
            }
        ),
        case!(
            minmax,
            GFX11_UP,
            "v_minmax_u32 v8, v4, v5, v6\nv_maxmin_i32 v9, v4, v5, v6\nv_clz_i32_u32 v10, v7\nv_and_b16 v11, v4, v5",
            |l, i| {
                let [a, b, c, n] = i[l];
                [
                    a.min(b).max(c),
                    (a as i32).max(b as i32).min(c as i32) as u32,
                    if n == 0 { u32::MAX } else { n.leading_zeros() },
                    a & b & 0xffff,
                ]
            }
        ),
        case!(
            dots,
            GFX11_UP,
            "v_dot4_i32_iu8 v8, v4, v5, v7 neg_lo:[1,0,0]\nv_dot8_i32_iu4 v9, v4, v5, v7 neg_lo:[1,1,0]\nv_dot4_u32_u8 \
                v10, v4, v5, v6",
            |l, i| {
                let [a, b, c, n] = i[l];
                let bytes = |x: u32| x.to_le_bytes();
                let mixed: i32 = (0..4).map(|k| i32::from(bytes(a)[k] as i8) * i32::from(bytes(b)[k])).sum();
                let nibble = |x: u32, k: u32| (x << (28 - 4 * k)) as i32 >> 28;
                let small: i32 = (0..8).map(|k| nibble(a, k) * nibble(b, k)).sum();
                let plain: u32 = (0..4).map(|k| u32::from(bytes(a)[k]) * u32::from(bytes(b)[k])).sum();
                [(n as i32 + mixed) as u32, (n as i32 + small) as u32, c.wrapping_add(plain), 0]
            }
        ),
        case!(
            pairs,
            GFX11_UP,
            "v_mov_b32 v8, v4\nv_mov_b32 v9, v5\nv_dual_mov_b32 v8, v9 :: v_dual_mov_b32 v9, v8\nv_dual_mov_b32 v10, \
                v5 :: v_dual_add_nc_u32 v11, 1, v4",
            |l, i| [i[l][1], i[l][0], i[l][1], i[l][0].wrapping_add(1)]
        ),
    ];
    run(32, &cases, &inputs());
}

#[test]
fn lanes() {
    let cases = [
        case!(
            rows,
            ALL,
            "s_mov_b32 s8, 0x76543210\ns_mov_b32 s9, 0x89abcdef\nv_permlane16_b32 v8, v4, s8, s9\nv_permlanex16_b32 \
                v9, v4, s8, s9\nv_mov_b32_dpp v10, v4 row_share:3\nv_mov_b32_dpp v11, v4 row_xmask:5",
            |l, i| {
                let within = l % 16;
                let select = if within < 8 { within } else { 15 - (within - 8) };
                let row = l - within;
                [i[row + select][0], i[(row ^ 16) + select][0], i[row + 3][0], i[l ^ 5][0]]
            }
        ),
        case!(
            eights,
            ALL,
            "v_mov_b32_dpp v8, v4 dpp8:[7,6,5,4,3,2,1,0]\nv_add_nc_u32_dpp v9, v4, v5 dpp8:[1,1,1,1,5,5,5,5]",
            |l, i| {
                let at = l & !7 | if l % 8 < 4 { 1 } else { 5 };
                [i[l ^ 7][0], i[at][0].wrapping_add(i[l][1]), 0, 0]
            }
        ),
        case!(
            masks,
            ALL,
            "s_mov_b32 s9, exec_lo\nv_cmp_lt_u32 vcc_lo, 15, v7\ns_and_saveexec_b32 s8, vcc_lo\nv_mov_b32 v8, 1\n\
                s_xor_b32 exec_lo, exec_lo, s8\nv_mov_b32 v8, 2\ns_mov_b32 exec_lo, s8\nv_cmp_eq_u32 s10, 0, v7\n\
                v_cmpx_gt_u32 20, v7\nv_mov_b32 v9, 3\ns_mov_b32 exec_lo, s9\nv_mov_b32 v10, vcc_lo",
            |l, i| {
                let n = i[l][3];
                // The comparison that writes EXEC leaves VCC alone.
                let half = l & 32;
                let mask = (0..32).filter(|k| i[half + k][3] > 15).fold(0_u32, |mask, k| mask | 1 << k);
                [if n > 15 { 1 } else { 2 }, if n < 20 { 3 } else { 0 }, mask, 0]
            }
        ),
        case!(
            relative,
            ALL,
            "v_mov_b32 v20, 7\nv_mov_b32 v21, 8\ns_mov_b32 m0, 1\nv_movrels_b32 v8, v20\ns_mov_b32 m0, 2\n\
                v_movreld_b32 v7, v21\nv_swap_b32 v20, v21\nv_mov_b32 v10, v20",
            |_, _| [7 + 1, 8, 8, 0]
        ),
        case!(
            exchanged,
            ALL,
            "v_lshlrev_b32 v2, 2, v0\nv_xor_b32 v2, 0xc, v2\nds_bpermute_b32 v8, v2, v4\nv_and_b32 v3, 31, v0\n\
                v_lshlrev_b32 v3, 7, v3\nv_lshrrev_b32 v20, 5, v0\nv_lshlrev_b32 v20, 2, v20\nv_or_b32 v3, v3, v20\n\
                ds_write_b32 v3, v5\nds_read_b32 v9, v3",
            |l, i| [i[l ^ 3][0], i[l][1], 0, 0]
        ),
    ];
    run(32, &cases, &inputs());
}

#[test]
fn waves_of_64_on_rdna_and_gfx8() {
    let cases = [
        case!(
            carries_and_halves,
            GFX8,
            "v_add_u32 v8, vcc, v4, v5\nv_addc_u32 v9, vcc, v5, v6, vcc\nv_mov_b32 v10, -1\nv_mad_u16 v10, v4, v5, v6\n\
                v_mov_b32 v11, -1\nv_add_u16 v11, v4, v5",
            |l, i| {
                let [a, b, c, _] = i[l];
                let (x, carry) = a.overflowing_add(b);
                let y = b.wrapping_add(c).wrapping_add(carry.into());
                let mad = (a as u16).wrapping_mul(b as u16).wrapping_add(c as u16);
                // The other halves are cleared.
                [x, y, mad.into(), (a as u16).wrapping_add(b as u16).into()]
            }
        ),
        case!(
            halves_exchange,
            GFX11_UP,
            "v_permlane64_b32 v8, v4\nv_mbcnt_lo_u32_b32 v9, -1, 0\nv_mbcnt_hi_u32_b32 v9, -1, v9",
            |l, i| [i[l ^ 32][0], l as u32, 0, 0]
        ),
        case!(
            fetched,
            BEFORE_GFX12,
            "v_xor_b32 v2, 35, v0\nv_lshlrev_b32 v2, 2, v2\nds_bpermute_b32 v8, v2, v4",
            |l, i| [i[l ^ 3][0], 0, 0, 0]
        ),
        case!(
            fetched_far,
            GFX12,
            "v_xor_b32 v2, 35, v0\nv_lshlrev_b32 v2, 2, v2\nds_bpermute_b32 v8, v2, v4",
            |l, i| [i[l ^ 35][0], 0, 0, 0]
        ),
        case!(
            subvectors,
            BEFORE_GFX12,
            "s_mov_b32 s9, 5\ns_subvector_loop_begin s8, .Lskip\n.Lloop:\nv_mov_b32 v8, s9\ns_add_u32 s9, s9, 1\n\
                s_subvector_loop_end s8, .Lloop\n.Lskip:\nv_mov_b32 v9, s9",
            |l, _| [5 + (l / 32) as u32, 7, 0, 0]
        ),
    ];
    run(64, &cases, &inputs());
}

fn f(value: f32) -> u32 {
    value.to_bits()
}

#[test]
fn floats() {
    let cases = [
        case!(
            scalar,
            GFX11_5_UP,
            "s_mov_b32 s8, 1.0\ns_mov_b32 s9, 0x40400000\ns_fmac_f32 s9, 2.0, s9\ns_sub_f32 s10, s8, s9\ns_cvt_i32_f32 \
                s11, s10\ns_cvt_f16_f32 s12, s9\ns_cmp_lt_f32 s8, s9\ns_cselect_b32 s13, 1, 0\nv_mov_b32 v8, s9\n\
                v_mov_b32 v9, s11\nv_mov_b32 v10, s12\nv_mov_b32 v11, s13",
            |_, _| {
                // 2 * 3 + 3 = 9 is 0x4880 in half precision.
                [f(9.0), -8_i32 as u32, 0x4880, 1]
            }
        ),
        case!(
            number,
            GFX12,
            "v_mov_b32 v2, 0x7fc00000\nv_min_num_f32 v8, v2, v4\nv_minimum_f32 v9, v2, v4\nv_maximum3_f32 v10, v4, v5, \
                v6\nv_maxmin_num_f32 v11, v4, v5, v6",
            |l, i| {
                let [a, b, c, _] = i[l].map(f32::from_bits);
                [f(a), 0x7fc0_0000, f(a.max(b).max(c)), f(a.max(b).min(c))]
            }
        ),
        case!(median, BEFORE_GFX12, "v_med3_f32 v8, v4, v5, v6\nv_min3_f32 v9, v4, v5, v6", |l, i| {
            let mut all = [i[l][0], i[l][1], i[l][2]].map(f32::from_bits);
            all.sort_by(f32::total_cmp);
            [f(all[1]), f(all[0]), 0, 0]
        }),
        case!(
            eight_bits,
            GFX12,
            "v_mov_b32 v2, 0x43e00000\nv_cvt_pk_fp8_f32 v8, v4, v2\nv_cvt_f32_fp8 v9, v8\nv_cvt_f32_fp8 v10, v8 \
                byte_sel:1\nv_cvt_pk_bf8_f32 v11, v4, v2",
            |l, i| {
                // Small multiples of 1/2 are exact in either format; 448 is E4M3's largest, and 0x5f in E5M2.
                let value = f32::from_bits(i[l][0]);
                let code = |mantissa: i32, bias: i32| {
                    if value == 0.0 {
                        return if value.is_sign_negative() { 0x80 } else { 0 };
                    }
                    let bits = value.to_bits();
                    let exponent = (bits >> 23 & 0xff) as i32 - 127 + bias;
                    (bits >> 31 << 7) | (exponent as u32) << mantissa | bits >> (23 - mantissa) & ((1 << mantissa) - 1)
                };
                [0x7e00 | code(3, 7), f(value), f(448.0), 0x5f00 | code(2, 15)]
            }
        ),
    ];
    let inputs = std::array::from_fn(|lane| {
        let n = (lane % 7) as f32 - 3.0;
        [f(n * 0.5), f((lane % 5) as f32 - 1.5), f(((lane * 3) % 8) as f32 * 0.25), lane as u32]
    });
    run(32, &cases, &inputs);
}

/// A small number of half precision.
fn half(n: i32) -> u32 {
    match n {
        -2 => 0xc000,
        -1 => 0xbc00,
        0 => 0,
        1 => 0x3c00,
        2 => 0x4000,
        _ => 0x4200,
    }
}

fn entry(line: usize, k: usize) -> i32 {
    ((line * 5 + k * 3) % 6) as i32 - 2
}

/// No two places along K have the same in all lines.
fn uneven(line: usize, k: usize) -> i32 {
    ((line * k + k / 6 * (line / 3)) % 6) as i32 - 2
}

#[test]
fn matrices() {
    fn product(row: usize, column: usize) -> u32 {
        f((0..16).map(|k| entry(row, k) * entry(column, k)).sum::<i32>() as f32 + 1.0)
    }
    // The columns of B are the rows of A. On gfx12 a lane has eight numbers, four words.
    let twelve = [case!(gram, GFX12, "v_wmma_f32_16x16x16_f16 v[8:15], v[4:7], v[4:7], 1.0", |l, _| {
        let l = l % 32;
        std::array::from_fn(|r| product(r + 8 * (l / 16), l % 16))
    })];
    let inputs = std::array::from_fn(|lane| {
        let (line, first) = (lane % 16, lane % 32 / 16 * 8);
        std::array::from_fn(|word| half(entry(line, first + 2 * word)) | half(entry(line, first + 2 * word + 1)) << 16)
    });
    run(32, &twelve, &inputs);
    // On gfx11 all sixteen: the words of the second half come from a row of lanes that has them.
    let code = "v_mov_b32 v20, v4\nv_mov_b32 v21, v5\nv_mov_b32 v22, v6\nv_mov_b32 v23, v7\nv_mov_b32 v2, 1.0\n\
        v_mov_b32 v24, v4\nv_mov_b32 v25, v5\nv_mov_b32 v26, v6\nv_mov_b32 v27, v7\n\
        s_mov_b32 s8, 0x76543210\ns_mov_b32 s9, 0xfedcba98\ns_mov_b32 exec_lo, 0xffff0000\nv_permlanex16_b32 v20, v4, \
        s8, s9 op_sel:[1,0]\nv_permlanex16_b32 v21, v5, s8, s9 op_sel:[1,0]\n\
        v_permlanex16_b32 v22, v6, s8, s9 op_sel:[1,0]\nv_permlanex16_b32 v23, v7, s8, s9 op_sel:[1,0]\n\
        s_mov_b32 exec_lo, 0xffff\nv_permlanex16_b32 v24, v4, s8, s9 op_sel:[1,0]\n\
        v_permlanex16_b32 v25, v5, s8, s9 op_sel:[1,0]\nv_permlanex16_b32 v26, v6, s8, s9 op_sel:[1,0]\n\
        v_permlanex16_b32 v27, v7, s8, s9 op_sel:[1,0]\ns_mov_b32 exec_lo, -1\n\
        v_wmma_f32_16x16x16_f16 v[8:15], v[20:27], v[20:27], 1.0";
    let eleven = [case!(gram, GFX11, code, |l, _| {
        let l = l % 32;
        std::array::from_fn(|r| product(2 * r + l / 16, l % 16))
    })];
    run(32, &eleven, &inputs);
}

/// On gfx11 each sixteen lanes may have their numbers in another order along K, if that of A is that of B; the sums are
/// small integers, so no order shows.
#[test]
fn matrices_in_another_order_along_k() {
    fn product(row: usize, column: usize) -> u32 {
        f((0..16).map(|k| uneven(row, k) * uneven(column, k)).sum::<i32>() as f32 + 1.0)
    }
    let inputs = std::array::from_fn(|lane| {
        let (line, first) = (lane % 16, lane % 32 / 16 * 8);
        std::array::from_fn(|word| {
            half(uneven(line, first + 2 * word)) | half(uneven(line, first + 2 * word + 1)) << 16
        })
    });
    // v[20:27] is all of a line in its order, v[28:35] too.
    let exec = |low: &str, high: &str| {
        format!(
            "s_mov_b32 exec_lo, {low}\n{}",
            if high.is_empty() { String::new() } else { format!("s_mov_b32 exec_hi, {high}\n") }
        )
    };
    let code = |wide: bool, body: &str, last: &str| {
        let exec = |low: &str| exec(low, if wide { low } else { "" });
        let mut text = String::from("s_mov_b32 s8, 0x76543210\ns_mov_b32 s9, 0xfedcba98\n");
        (0..4).for_each(|n| text += &format!("v_mov_b32 v{}, v{}\nv_mov_b32 v{}, v{}\n", 20 + n, 4 + n, 24 + n, 4 + n));
        for (lanes, first) in [("0xffff0000", 20), ("0xffff", 24)] {
            text += &exec(lanes);
            (0..4)
                .for_each(|n| text += &format!("v_permlanex16_b32 v{}, v{}, s8, s9 op_sel:[1,0]\n", first + n, 4 + n));
        }
        text += &exec("-1");
        (0..8).for_each(|n| text += &format!("v_mov_b32 v{}, v{}\n", 28 + n, 20 + n));
        format!("{text}{body}{last}")
    };
    let swap = |pairs: &[(u32, u32)]| pairs.iter().map(|(a, b)| format!("v_swap_b32 v{a}, v{b}\n")).collect::<String>();
    let both = [(20, 24), (21, 25), (22, 26), (23, 27), (28, 32), (29, 33), (30, 34), (31, 35)];
    let narrow = exec("0xffff0000", "") + &swap(&both) + &exec("-1", "");
    // Three orders: halves of K, two neighbours, and as it was.
    let wide = exec("0xffff0000", "0")
        + &swap(&both)
        + &exec("0", "0xffff")
        + &swap(&[(20, 21), (28, 29)])
        + &exec("-1", "-1");
    let only_a = exec("0xffff0000", "") + &swap(&both[..4]) + &exec("-1", "");
    let instruction = |registers: u32| {
        format!("s_waitcnt_depctr 0xfff\nv_wmma_f32_16x16x16_f16 v[8:{}], v[20:27], v[28:35], 1.0", 7 + registers)
    };
    let leak = |text: String| -> &'static str { text.leak() };
    let cases = [case!(halves, GFX11, leak(code(false, &narrow, &instruction(8))), |l, _| {
        let l = l % 32;
        std::array::from_fn(|r| product(2 * r + l / 16, l % 16))
    })];
    run(32, &cases, &inputs);
    let cases =
        [case!(quarters, GFX11, leak(code(true, &wide, &instruction(4))), |l, _| std::array::from_fn(|r| product(
            4 * r + l / 16,
            l % 16
        )))];
    run(64, &cases, &inputs);
    if compiler_is_there() {
        let dir = tempfile::tempdir().expect("directory");
        let case = case!(apart, GFX11, leak(code(false, &only_a, &instruction(8))), |_, _| [0; 4]);
        let mut bench = Bench::new("gfx1100", 1, &assemble(dir.path(), "gfx1100", 32, &[&case]));
        let fault = bench.snippet("apart", &inputs).expect_err("A and B have orders of their own");
        assert!(fault.to_string().contains("not every 16 lanes have the same numbers in an order along K"), "{fault}");
    }
}

#[test]
fn memory() {
    let code = "v_lshlrev_b32 v2, 2, v0\nglobal_atomic_sub_u32 v8, v1, v4, s[4:5] glc\ns_load_dword s8, s[4:5], 0x10\n\
        buffer_gl0_inv";
    let gfx12 = "s_load_u16 s8, s[4:5], 0x12\ns_load_i8 s9, s[4:5], 0x13\ns_wait_kmcnt 0\nv_mov_b32 v8, s8\nv_mov_b32 \
        v9, s9\nglobal_atomic_cond_sub_u32 v10, v1, v7, s[4:5] offset:12 th:TH_ATOMIC_RETURN\ns_wait_loadcnt 0\n\
        global_load_b32 v11, v1, s[4:5] offset:12";
    let cases = [
        case!(subtract, GFX11, code, |l, i| [i[l][0], 0, 0, 0]),
        case!(narrow, GFX12, gfx12, |l, i| {
            let word = i[1][0];
            [word >> 16, (word as i32 >> 24) as u32, i[l][3], 0]
        }),
        case!(
            named_before,
            GFX10,
            "global_atomic_umax v8, v1, v5, s[4:5] glc\ns_waitcnt vmcnt(0)\nglobal_load_dword v9, v1, s[4:5]",
            |l, i| { [i[l][0], i[l][0].max(i[l][1]), 0, 0] }
        ),
    ];
    run(32, &cases, &inputs());
}

/// A descriptor with a format: records of 16 bytes, each lane's first two words as four numbers of 16 bits, then as
/// bytes.
#[test]
fn typed_buffers() {
    // gfx10's numbers for 16_16_16_16_UINT and 8_8_8_8_SINT are 69 and 61, with identity selection.
    let code = "s_mov_b32 s12, s4\ns_mov_b32 s13, s5\ns_or_b32 s13, s13, 0x100000\ns_mov_b32 s14, 64\ns_mov_b32 s15, \
        0x10045fac\n\
        buffer_load_format_xyzw v[8:11], v0, s[12:15], 0 idxen";
    let bytes = "s_mov_b32 s12, s4\ns_mov_b32 s13, s5\ns_or_b32 s13, s13, 0x100000\ns_mov_b32 s14, 64\ns_mov_b32 s15, \
        0x1003dfac\n\
        tbuffer_load_format_xyz v[8:10], v0, s[12:15], 0 format:61 idxen offset:4";
    let cases = [
        case!(halves, GFX10, code, |l, i| [i[l][0] & 0xffff, i[l][0] >> 16, i[l][1] & 0xffff, i[l][1] >> 16]),
        case!(signed_bytes, GFX10, bytes, |l, i| {
            let [x, y, z, _] = i[l][1].to_le_bytes().map(|byte| byte as i8 as u32);
            [x, y, z, 0]
        }),
    ];
    run(32, &cases, &inputs());
}
