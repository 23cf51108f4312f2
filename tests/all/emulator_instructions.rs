//! Single instructions that compilers rarely emit, against values worked out by hand from the instruction set manuals.

use crate::emulated::{Bench, Snippet, assemble, compiler_is_there};

const ALL: &[&str] = &["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942"];
const BEFORE_CDNA2: &[&str] = &["gfx900", "gfx906", "gfx908"];
const CDNA2_UP: &[&str] = &["gfx90a", "gfx942"];

type Words = [u32; 4];

/// One snippet: what the lanes get, what each of them must give.
struct Case {
    name: &'static str,
    code: &'static str,
    targets: &'static [&'static str],
    expected: fn(usize, &[Words; 64]) -> Words,
}

const A: u32 = 0x8142_f307;
const B: u32 = 0x10e0_7f99;
const C: u32 = 0x0c05_0b02;

/// Lanes 0: the three constants above, so that expected values can be written down; others: mixed bits.
fn inputs() -> [Words; 64] {
    std::array::from_fn(|lane| {
        let n = lane as u32;
        if n == 0 {
            [A, B, C, 5]
        } else {
            [n.wrapping_mul(0x9e37_79b9), n.wrapping_mul(0x85eb_ca6b) ^ 0xffff, n.wrapping_mul(0xc2b2_ae35), n % 40]
        }
    })
}

fn run(cases: &[Case], inputs: &[Words; 64]) {
    if !compiler_is_there() {
        return;
    }
    let dir = tempfile::tempdir().expect("directory");
    for target in ALL {
        let chosen: Vec<&Case> = cases.iter().filter(|case| case.targets.contains(target)).collect();
        let snippets: Vec<Snippet> = chosen.iter().map(|case| Snippet { name: case.name, code: case.code }).collect();
        if snippets.is_empty() {
            continue;
        }
        let image = assemble(dir.path(), target, &snippets).unwrap_or_else(|message| panic!("{target}: {message}"));
        let mut bench = Bench::new(target, 1, &image);
        for case in chosen {
            let found =
                bench.snippet(case.name, inputs).unwrap_or_else(|fault| panic!("{target} {}: {fault}", case.name));
            for lane in 0..64 {
                let expected = (case.expected)(lane, inputs);
                assert_eq!(
                    found[lane], expected,
                    "{target} {} lane {lane}: {:x?}, {expected:x?} expected, inputs {:x?}",
                    case.name, found[lane], inputs[lane]
                );
            }
        }
    }
}

fn bytes(x: u32) -> [u32; 4] {
    x.to_le_bytes().map(u32::from)
}

fn f(x: u32) -> f32 {
    f32::from_bits(x)
}

macro_rules! case {
    ($name:ident, $code:expr, $expected:expr) => {
        case!($name, ALL, $code, $expected)
    };
    ($name:ident, $targets:expr, $code:expr, $expected:expr) => {
        Case { name: stringify!($name), code: $code, targets: $targets, expected: $expected }
    };
}

#[test]
fn integers_and_bits() {
    let cases = [
        case!(permute, "v_perm_b32 v8, v4, v5, v6", |lane, i| {
            let [a, b, c, _] = i[lane];
            let data = (u64::from(a) << 32 | u64::from(b)).to_le_bytes();
            let byte = |select: u8| match select {
                0..=7 => data[usize::from(select)],
                8..=11 => {
                    if data[usize::from(2 * (select - 8) + 1)] > 127 {
                        255
                    } else {
                        0
                    }
                }
                12 => 0,
                _ => 255,
            };
            if lane == 0 {
                // Selectors 0x0c 0x05 0x0b 0x02 by hand.
                assert_eq!(u32::from_le_bytes(c.to_le_bytes().map(byte)), 0x00f3_ffe0);
            }
            [u32::from_le_bytes(c.to_le_bytes().map(byte)), 0, 0, 0]
        }),
        case!(align, "v_alignbyte_b32 v8, v4, v5, 1\nv_alignbit_b32 v9, v4, v5, v7", |lane, i| {
            let both = u64::from(i[lane][0]) << 32 | u64::from(i[lane][1]);
            [(both >> 8) as u32, (both >> (i[lane][3] & 31)) as u32, 0, 0]
        }),
        case!(
            sums_of_differences,
            "v_sad_u8 v8, v4, v5, v6\nv_msad_u8 v9, v4, v5, v6\nv_sad_hi_u8 v10, v4, v5, v6\nv_sad_u16 v11, v4, v5, v6",
            |lane, i| {
                let [a, b, c, _] = i[lane];
                let sad: u32 = (0..4).map(|n| bytes(a)[n].abs_diff(bytes(b)[n])).sum();
                let masked: u32 = (0..4).filter(|&n| bytes(b)[n] != 0).map(|n| bytes(a)[n].abs_diff(bytes(b)[n])).sum();
                let words = (a & 0xffff).abs_diff(b & 0xffff) + (a >> 16).abs_diff(b >> 16);
                [sad.wrapping_add(c), masked.wrapping_add(c), (sad << 16).wrapping_add(c), words.wrapping_add(c)]
            }
        ),
        case!(lerp, "v_lerp_u8 v8, v4, v5, v6", |lane, i| {
            let [a, b, c, _] = i[lane];
            let mean: Vec<u8> = (0..4).map(|n| ((bytes(a)[n] + bytes(b)[n] + (bytes(c)[n] & 1)) / 2) as u8).collect();
            [u32::from_le_bytes([mean[0], mean[1], mean[2], mean[3]]), 0, 0, 0]
        }),
        case!(
            four_sums,
            "v_mov_b32 v20, v4\nv_mov_b32 v21, v5\nv_mqsad_u32_u8 v[8:11], v[20:21], v6, v[8:11]",
            |lane, i| {
                let data = u64::from(i[lane][0]) | u64::from(i[lane][1]) << 32;
                std::array::from_fn(|n| {
                    let window = bytes((data >> (8 * n)) as u32);
                    let reference = bytes(i[lane][2]);
                    (0..4).filter(|&k| reference[k] != 0).map(|k| window[k].abs_diff(reference[k])).sum()
                })
            }
        ),
        case!(
            fields,
            "v_bfe_u32 v8, v4, v7, 7\nv_bfe_i32 v9, v4, v7, 7\nv_bfi_b32 v10, v4, v5, v6\nv_bfm_b32 v11, v7, 3",
            |lane, i| {
                let [a, b, c, n] = i[lane];
                let n5 = n & 31;
                [a >> n5 & 0x7f, ((((a as i32) >> n5) << 25) >> 25) as u32, a & b | !a & c, ((1_u32 << n5) - 1) << 3]
            }
        ),
        case!(find, "v_ffbh_u32 v8, v4\nv_ffbl_b32 v9, v4\nv_ffbh_i32 v10, v4\nv_bfrev_b32 v11, v4", |lane, i| {
            let a = i[lane][0];
            let same = (0..32).take_while(|n| a >> (31 - n) & 1 == a >> 31).count() as u32;
            [a.leading_zeros(), a.trailing_zeros(), if same == 32 { u32::MAX } else { same }, a.reverse_bits()]
        }),
        case!(
            medians,
            "v_med3_i32 v8, v4, v5, v6\nv_med3_u32 v9, v4, v5, v6\nv_min3_i32 v10, v4, v5, v6\nv_max3_u32 v11, v4, v5, \
                v6",
            |lane, i| {
                let mut signed = [i[lane][0] as i32, i[lane][1] as i32, i[lane][2] as i32];
                let mut unsigned = [i[lane][0], i[lane][1], i[lane][2]];
                signed.sort_unstable();
                unsigned.sort_unstable();
                [signed[1] as u32, unsigned[1], signed[0] as u32, unsigned[2]]
            }
        ),
        case!(
            combined,
            "v_lshl_add_u32 v8, v4, 3, v5\nv_add_lshl_u32 v9, v4, v5, 4\nv_xad_u32 v10, v4, v5, v6\nv_and_or_b32 v11, \
                v4, v5, v6",
            |lane, i| {
                let [a, b, c, _] = i[lane];
                [(a << 3).wrapping_add(b), a.wrapping_add(b) << 4, (a ^ b).wrapping_add(c), a & b | c]
            }
        ),
        case!(
            wide_products,
            "v_mad_u64_u32 v[8:9], s[20:21], v4, v5, v[6:7]\nv_mad_i64_i32 v[10:11], s[20:21], v4, v5, v[6:7]",
            |lane, i| {
                let [a, b, c, d] = i[lane];
                let add = u64::from(c) | u64::from(d) << 32;
                let u = (u64::from(a) * u64::from(b)).wrapping_add(add);
                let s = (i64::from(a as i32) * i64::from(b as i32)).wrapping_add(add as i64) as u64;
                [u as u32, (u >> 32) as u32, s as u32, (s >> 32) as u32]
            }
        ),
        case!(
            narrow_products,
            "v_mul_i32_i24 v8, v4, v5\nv_mul_hi_u32_u24 v9, v4, v5\nv_mad_i32_i24 v10, v4, v5, v6\nv_mul_lo_u16 v11, \
                v4, v5",
            |lane, i| {
                let [a, b, c, _] = i[lane];
                let s24 = |x: u32| i64::from((x << 8) as i32 >> 8);
                let product = s24(a) * s24(b);
                let high = (u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 32;
                [
                    product as u32,
                    high as u32,
                    (product as u32).wrapping_add(c),
                    (a & 0xffff).wrapping_mul(b & 0xffff) & 0xffff,
                ]
            }
        ),
        case!(
            clamped,
            "v_add_u32 v8, v4, v5 clamp\nv_sub_u32 v9, v4, v5 clamp\nv_add_i32 v10, v4, v5 clamp\nv_sub_u16 v11, v4, \
                v5 clamp",
            |lane, i| {
                let [a, b, ..] = i[lane];
                [
                    a.saturating_add(b),
                    a.saturating_sub(b),
                    (a as i32).saturating_add(b as i32) as u32,
                    u32::from((a as u16).saturating_sub(b as u16)),
                ]
            }
        ),
        case!(
            carries,
            "v_add_co_u32 v8, vcc, v4, v5\ns_nop 1\nv_addc_co_u32 v9, vcc, v5, v6, vcc\ns_nop 1\nv_subb_co_u32 v10, \
                vcc, v4, v5, vcc\ns_nop 1\nv_cndmask_b32 v11, v4, v5, vcc",
            |lane, i| {
                let [a, b, c, _] = i[lane];
                let (x, carry) = a.overflowing_add(b);
                let y = u64::from(b) + u64::from(c) + u64::from(carry);
                let borrow = u64::from(y >> 32 != 0);
                let z = i64::from(a) - i64::from(b) - borrow as i64;
                [x, y as u32, z as u32, if z < 0 { b } else { a }]
            }
        ),
        case!(
            bytes_selected,
            "v_add_u32_sdwa v8, v4, v5 dst_sel:BYTE_1 dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:WORD_1\nv_mov_b32 \
                v9, v6\nv_mov_b32_sdwa v9, v4 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_2\n\
                v_mov_b32_sdwa v10, sext(v4) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_0\nv_mov_b32_sdwa v11, \
                v4 dst_sel:BYTE_0 dst_unused:UNUSED_SEXT src0_sel:BYTE_0",
            |lane, i| {
                let [a, b, c, _] = i[lane];
                [
                    (((a >> 24) + (b >> 16)) & 0xff) << 8,
                    c & 0xffff | (a >> 16 & 0xff) << 16,
                    a as i16 as u32,
                    a as i8 as u32,
                ]
            }
        ),
        case!(
            halves_selected,
            "v_mad_u16 v8, v4, v5, v6 op_sel:[1,0,0,0]\nv_mov_b32 v9, -1\nv_mad_u16 v9, v4, v5, v6 op_sel:[0,1,0,1]\n\
                v_mov_b32 v10, -1\nv_max3_i16 v10, v4, v5, v6",
            |lane, i| {
                let [a, b, c, _] = i[lane];
                let first = (a >> 16).wrapping_mul(b & 0xffff).wrapping_add(c) & 0xffff;
                let second = (a & 0xffff).wrapping_mul(b >> 16).wrapping_add(c) & 0xffff;
                let max = (a as i16).max(b as i16).max(c as i16) as u16;
                [first, 0xffff | second << 16, 0xffff_0000 | u32::from(max), 0]
            }
        ),
        case!(
            packed,
            "v_pk_add_u16 v8, v4, v5 clamp\nv_pk_mul_lo_u16 v9, v4, v5 op_sel:[1,0] op_sel_hi:[0,1]\nv_pk_mad_i16 v10, \
                v4, v5, v6\nv_pk_max_i16 v11, v4, v5",
            |lane, i| {
                let [a, b, c, _] = i[lane];
                let pair = |low: u16, high: u16| u32::from(low) | u32::from(high) << 16;
                let (al, ah, bl, bh, cl, ch) =
                    (a as u16, (a >> 16) as u16, b as u16, (b >> 16) as u16, c as u16, (c >> 16) as u16);
                [
                    pair(al.saturating_add(bl), ah.saturating_add(bh)),
                    pair(ah.wrapping_mul(bl), al.wrapping_mul(bh)),
                    pair(al.wrapping_mul(bl).wrapping_add(cl), ah.wrapping_mul(bh).wrapping_add(ch)),
                    pair((al as i16).max(bl as i16) as u16, (ah as i16).max(bh as i16) as u16),
                ]
            }
        ),
        case!(
            saturating_conversions,
            "v_cvt_pk_i16_i32 v8, v4, v5\nv_cvt_pk_u16_u32 v9, v4, v7\nv_sat_pk_u8_i16 v10, v4",
            |lane, i| {
                let [a, b, _, n] = i[lane];
                let s = |x: u32| u32::from((x as i32).clamp(-32768, 32767) as u16);
                let byte = |x: u16| u32::from((x as i16).clamp(0, 255) as u16);
                [
                    s(a) | s(b) << 16,
                    a.min(0xffff) | n.min(0xffff) << 16,
                    byte(a as u16) | byte((a >> 16) as u16) << 8,
                    0,
                ]
            }
        ),
    ];
    run(&cases, &inputs());
}

#[test]
fn scalars() {
    // Scalars come from lane 0, results go to every lane.
    let cases = [
        case!(
            fields64,
            "v_readfirstlane_b32 s8, v4\nv_readfirstlane_b32 s9, v5\ns_nop 4\ns_bfe_i64 s[10:11], s[8:9], 0x140007\n\
                s_bfe_u64 s[12:13], s[8:9], 0x14000d\nv_mov_b32 v8, s10\nv_mov_b32 v9, s11\nv_mov_b32 v10, s12\n\
                v_mov_b32 v11, s13",
            |_, _| {
                let both = u64::from(A) | u64::from(B) << 32;
                let signed = (((both >> 7) << 44) as i64 >> 44) as u64;
                let unsigned = both >> 13 & 0xf_ffff;
                [signed as u32, (signed >> 32) as u32, unsigned as u32, (unsigned >> 32) as u32]
            }
        ),
        case!(
            first_bits,
            "v_readfirstlane_b32 s8, v4\nv_readfirstlane_b32 s9, v5\ns_nop 4\ns_flbit_i32 s10, s8\ns_flbit_i32_b64 \
                s11, s[8:9]\ns_ff0_i32_b32 s12, s8\ns_bcnt1_i32_b64 s13, s[8:9]\nv_mov_b32 v8, s10\nv_mov_b32 v9, s11\n\
                v_mov_b32 v10, s12\nv_mov_b32 v11, s13",
            |_, _| {
                // A begins with 1 0; B with 0001; A ends with 0111.
                [1, 3, 3, A.count_ones() + B.count_ones()]
            }
        ),
        case!(
            masks,
            "s_mov_b32 s8, 0x80100f01\ns_wqm_b32 s9, s8\ns_quadmask_b32 s10, s8\ns_bitreplicate_b64_b32 s[12:13], s8\n\
                v_mov_b32 v8, s9\nv_mov_b32 v9, s10\nv_mov_b32 v10, s12\nv_mov_b32 v11, s13",
            |_, _| { [0xf0f0_0f0f, 0xa5, 0x00ff_0003, 0xc000_0300] }
        ),
        case!(
            packs,
            "s_mov_b32 s8, 0x12345678\ns_mov_b32 s9, 0x9abcdef0\ns_pack_ll_b32_b16 s10, s8, s9\ns_pack_lh_b32_b16 s11, \
                s8, s9\ns_pack_hh_b32_b16 s12, s8, s9\ns_lshl3_add_u32 s13, s8, s9\nv_mov_b32 v8, s10\nv_mov_b32 v9, \
                s11\nv_mov_b32 v10, s12\nv_mov_b32 v11, s13",
            |_, _| {
                [0xdef0_5678, 0x9abc_5678, 0x9abc_1234, 0x1234_5678_u32.wrapping_shl(3).wrapping_add(0x9abc_def0)]
            }
        ),
        case!(
            signed_overflow,
            "s_mov_b32 s8, 0x7fffffff\ns_add_i32 s9, s8, 1\ns_cselect_b32 s10, 1, 0\ns_addk_i32 s8, 0x1\ns_cselect_b32 \
                s11, 1, 0\ns_movk_i32 s12, 0x8000\ns_absdiff_i32 s13, s12, 5\nv_mov_b32 v8, s9\nv_mov_b32 v9, s10\n\
                v_mov_b32 v10, s11\nv_mov_b32 v11, s13",
            |_, _| { [0x8000_0000, 1, 1, 32773] }
        ),
        case!(
            high_products,
            "s_mov_b32 s8, 0x80000001\ns_mul_hi_i32 s9, s8, 6\ns_mul_hi_u32 s10, s8, 6\ns_mulk_i32 s8, 0xfffd\n\
                s_cmpk_lg_u32 s8, 0xfffd\ns_cselect_b32 s11, 3, 4\nv_mov_b32 v8, s9\nv_mov_b32 v9, s10\nv_mov_b32 v10, \
                s8\nv_mov_b32 v11, s11",
            |_, _| { [0xffff_fffd, 3, 0x8000_0001_u32.wrapping_mul(-3_i32 as u32), 3] }
        ),
        case!(
            subroutine,
            "s_getpc_b64 s[8:9]\ns_add_u32 s8, s8, 20\ns_addc_u32 s9, s9, 0\ns_swappc_b64 s[10:11], s[8:9]\ns_branch \
                .Lsubroutine_end\ns_nop 0\ns_mov_b32 s12, 77\ns_setpc_b64 s[10:11]\n.Lsubroutine_end:\nv_mov_b32 v8, \
                s12",
            |_, _| [77, 0, 0, 0]
        ),
        case!(
            indexed,
            "v_mov_b32 v20, 1\nv_mov_b32 v21, 2\nv_mov_b32 v22, 3\ns_mov_b32 s8, 2\ns_set_gpr_idx_on s8, \
                gpr_idx(SRC0)\nv_mov_b32 v8, v20\ns_set_gpr_idx_off\ns_set_gpr_idx_on s8, gpr_idx(DST)\nv_mov_b32 v9, \
                v21\ns_set_gpr_idx_off",
            |_, _| { [3, 0, 0, 2] }
        ),
        case!(
            mode_register,
            "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 1\ns_nop 1\nv_mov_b32 v3, 1.0\nv_mov_b32 v2, 0x30000000\n\
                v_add_f32 v8, v3, v2\ns_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0\nv_add_f32 v9, v3, v2\ns_nop 0\n\
                s_getreg_b32 s8, hwreg(HW_REG_MODE, 4, 4)\nv_mov_b32 v10, s8",
            |_, _| {
                // Rounded up, then to nearest; the default denormal mode of the assembler: single flushed, double kept.
                [0x3f80_0001, 0x3f80_0000, 0xc, 0]
            }
        ),
    ];
    run(&cases, &inputs());
}

#[test]
fn floats() {
    let cases = [
        case!(
            modifiers,
            // Output modifiers count for nothing in IEEE mode, and have no negative zero.
            "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 0\nv_add_f32 v8, -v4, |v5|\nv_mul_f32 v9, v4, v5 mul:2\n\
                v_add_f32 v10, v4, v5 clamp\nv_max_f32 v11, v4, -|v5|",
            |lane, i| {
                let (a, b) = (f(i[lane][0]), f(i[lane][1]));
                let doubled = a * b * 2.0 + 0.0;
                [
                    (-a + b.abs()).to_bits(),
                    doubled.to_bits(),
                    (a + b).clamp(0.0, 1.0).to_bits(),
                    a.max(-b.abs()).to_bits(),
                ]
            }
        ),
        case!(
            parts,
            "v_frexp_mant_f32 v8, v4\nv_frexp_exp_i32_f32 v9, v4\nv_ldexp_f32 v10, v4, 3\nv_fract_f32 v11, v4",
            |lane, i| {
                let a = f(i[lane][0]);
                let e = if a == 0.0 { 0 } else { a.abs().log2().floor() as i32 + 1 };
                [(a / 2f32.powi(e)).to_bits(), e as u32, (a * 8.0).to_bits(), (a - a.floor()).to_bits()]
            }
        ),
        case!(
            classes,
            "v_mov_b32 v3, 0x1f8\nv_cmp_class_f32 vcc, v4, v3\ns_nop 1\nv_cndmask_b32 v8, 0, 1, vcc\nv_cmp_class_f32 \
                vcc, v4, 8\ns_nop 1\nv_cndmask_b32 v9, 0, 1, vcc",
            |lane, i| {
                let a = f(i[lane][0]);
                [u32::from(a.is_finite()), u32::from(a.is_normal() && a < 0.0), 0, 0]
            }
        ),
        case!(
            bytes_of,
            "v_cvt_f32_ubyte2 v8, v7\nv_cvt_pk_u8_f32 v9, v5, 2, v7\nv_cvt_flr_i32_f32 v10, v4\nv_cvt_rpi_i32_f32 v11, \
                v4",
            |lane, i| {
                let [a, b, _, n] = i[lane];
                let byte = f(b).round_ties_even().clamp(0.0, 255.0) as u32;
                [
                    (((n >> 16) & 0xff) as f32).to_bits(),
                    n & !0x00ff_0000 | byte << 16,
                    f(a).floor() as i32 as u32,
                    (f(a) + 0.5).floor() as i32 as u32,
                ]
            }
        ),
        case!(
            normalised,
            "v_cvt_pknorm_i16_f32 v8, v4, v5\nv_cvt_pkrtz_f16_f32 v9, 1.0, -2.0\nv_cvt_f16_f32 v10, v4\nv_cvt_f32_f16 \
                v10, v10",
            |lane, i| {
                let s = |x: u32| u32::from((f(x).clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i16 as u16);
                // Multiples of 1/8 below 8 are exact in half precision.
                [s(i[lane][0]) | s(i[lane][1]) << 16, 0xc000_3c00, i[lane][0], 0]
            }
        ),
        case!(cube, "v_cubeid_f32 v8, v4, v5, 1.0\nv_cubema_f32 v9, v4, v5, 1.0", |lane, i| {
            let (x, y) = (f(i[lane][0]), f(i[lane][1]));
            let (id, major) = if 1.0 >= x.abs() && 1.0 >= y.abs() {
                (4.0, 1.0)
            } else if y.abs() >= x.abs() {
                (if y < 0.0 { 3.0 } else { 2.0 }, y)
            } else {
                (if x < 0.0 { 1.0 } else { 0.0_f32 }, x)
            };
            [id.to_bits(), (2.0 * major).to_bits(), 0, 0]
        }),
        case!(
            doubles,
            "v_cvt_f64_f32 v[20:21], v4\nv_cvt_f64_f32 v[22:23], v5\nv_fma_f64 v[8:9], v[20:21], v[22:23], v[20:21]\n\
                v_max_f64 v[10:11], v[20:21], -v[22:23]",
            |lane, i| {
                let (a, b) = (f64::from(f(i[lane][0])), f64::from(f(i[lane][1])));
                let (x, y) = (a.mul_add(b, a).to_bits(), a.max(-b).to_bits());
                [x as u32, (x >> 32) as u32, y as u32, (y >> 32) as u32]
            }
        ),
        case!(
            pairs,
            CDNA2_UP,
            "v_mov_b32 v20, v4\nv_mov_b32 v21, v5\nv_mov_b32 v22, v5\nv_mov_b32 v23, v4\nv_pk_mul_f32 v[8:9], \
                v[20:21], v[22:23] op_sel_hi:[0,1] neg_lo:[1,0]\nv_pk_fma_f32 v[10:11], v[20:21], 2.0, v[22:23] \
                op_sel_hi:[1,0,1]",
            |lane, i| {
                let (a, b) = (f(i[lane][0]), f(i[lane][1]));
                [(-a * b).to_bits(), (a * a).to_bits(), a.mul_add(2.0, b).to_bits(), b.mul_add(2.0, a).to_bits()]
            }
        ),
        case!(
            transcendental,
            "v_exp_f32 v8, v7\nv_mov_b32 v9, 0x3e800000\nv_sin_f32 v9, v9\nv_rcp_f32 v10, 4.0\nv_rsq_f32 v11, 4.0",
            |_, _| {
                // The fourth input is an integer: a denormal, which the exponential flushes.
                [1.0_f32.to_bits(), 1.0_f32.to_bits(), 0.25_f32.to_bits(), 0.5_f32.to_bits()]
            }
        ),
    ];
    let inputs = std::array::from_fn(|lane| {
        let n = lane as i32 - 31;
        [(n as f32 * 0.125).to_bits(), ((n * 7 % 13) as f32 * 0.5).to_bits(), 3.0_f32.to_bits(), lane as u32]
    });
    run(&cases, &inputs);
}

/// Entries of A and B for the matrix tests: small integers, so that every order of additions gives the same sum.
fn entry(lane: usize, element: usize, salt: usize) -> i32 {
    ((lane * 7 + element * 3 + salt * 5) % 11) as i32 - 5
}

/// A has four numbers in a lane, B eight: A's first pair takes B's 0 and 2 of the first four, the second pair 1 and 3
/// of the others.
fn sparse_matrix() -> Case {
    let code = "v_cvt_pkrtz_f16_f32 v20, v4, v6\nv_cvt_pkrtz_f16_f32 v21, v5, v7\nv_mov_b32 v22, v21\nv_mov_b32 v23, \
        v20\nv_mov_b32 v24, 0xd8\ns_nop 1\n\
        v_smfmac_f32_16x16x32_f16 v[8:11], v[20:21], v[20:23], v24\ns_nop 15\ns_nop 15";
    case!(sparse, &["gfx942"], code, |lane, _| {
        let number = |lane: usize, n: usize| entry(lane, n % 2, n / 2);
        std::array::from_fn(|r| {
            let (i, j) = (4 * (lane / 16) + r, lane % 16);
            let pairs = (0..4).flat_map(|group| {
                [(0, 0), (1, 2), (2, 3), (3, 1)].map(|(a, b)| number(i + 16 * group, a) * number(j + 16 * group, b))
            });
            (pairs.sum::<i32>() as f32).to_bits()
        })
    })
}

#[test]
fn matrices() {
    let cases = [
        case!(four_by_four, CDNA2_UP, "v_mfma_f32_4x4x1f32 v[8:11], v4, v5, 0\ns_nop 15\ns_nop 15", |lane, _| {
            let block = lane / 4;
            std::array::from_fn(|i| ((entry(4 * block + i, 0, 0) * entry(lane, 0, 1)) as f32).to_bits())
        }),
        case!(sixteen, CDNA2_UP, "v_mfma_f32_16x16x4f32 v[8:11], v4, v5, 1.0\ns_nop 15\ns_nop 15", |lane, _| {
            std::array::from_fn(|r| {
                let (i, j) = (4 * (lane / 16) + r, lane % 16);
                let sum: i32 = (0..4).map(|k| entry(i + 16 * k, 0, 0) * entry(j + 16 * k, 0, 1)).sum();
                ((sum + 1) as f32).to_bits()
            })
        }),
        case!(
            accumulated,
            &["gfx908"],
            "v_accvgpr_write_b32 a0, 2\nv_accvgpr_write_b32 a1, 2\nv_accvgpr_write_b32 a2, 2\nv_accvgpr_write_b32 a3, \
                2\nv_cvt_i32_f32 v6, v4\nv_cvt_i32_f32 v7, v5\nv_and_b32 v6, 0xff, v6\nv_and_b32 v7, 0xff, v7\ns_nop \
                3\nv_mfma_i32_16x16x16i8 a[0:3], v6, v7, a[0:3]\ns_nop 15\ns_nop 15\nv_accvgpr_read_b32 v8, a0\n\
                v_accvgpr_read_b32 v9, a1\nv_accvgpr_read_b32 v10, a2\nv_accvgpr_read_b32 v11, a3",
            |lane, _| {
                // Only the first of the four bytes of each lane is not zero.
                std::array::from_fn(|r| {
                    let (i, j) = (4 * (lane / 16) + r, lane % 16);
                    (2 + (0..4).map(|k| entry(i + 16 * k, 0, 0) * entry(j + 16 * k, 0, 1)).sum::<i32>()) as u32
                })
            }
        ),
        case!(
            halves,
            CDNA2_UP,
            "v_cvt_pkrtz_f16_f32 v20, v4, v6\nv_cvt_pkrtz_f16_f32 v22, v5, v7\nv_mov_b32 v21, 0\nv_mov_b32 v23, 0\n\
                s_nop 1\nv_mfma_f32_16x16x16f16 v[8:11], v[20:21], v[22:23], 0\ns_nop 15\ns_nop 15",
            |lane, _| {
                std::array::from_fn(|r| {
                    let (i, j) = (4 * (lane / 16) + r, lane % 16);
                    let sum: i32 = (0..4)
                        .flat_map(|k| (0..2).map(move |e| entry(i + 16 * k, e, 0) * entry(j + 16 * k, e, 1)))
                        .sum();
                    (sum as f32).to_bits()
                })
            }
        ),
        case!(
            double_blocks,
            CDNA2_UP,
            "v_cvt_f64_f32 v[20:21], v4\nv_cvt_f64_f32 v[22:23], v5\ns_nop 1\nv_mfma_f64_4x4x4f64 v[8:9], v[20:21], \
                v[22:23], 0\ns_nop 15\ns_nop 15",
            |lane, _| {
                let (i, j, block) = (lane / 16, lane % 4, lane / 4 % 4);
                let sum: i32 =
                    (0..4).map(|k| entry(i + 4 * block + 16 * k, 0, 0) * entry(j + 4 * block + 16 * k, 0, 1)).sum();
                let bits = f64::from(sum).to_bits();
                [bits as u32, (bits >> 32) as u32, 0, 0]
            }
        ),
    ];
    let cases: Vec<Case> = cases.into_iter().chain([sparse_matrix()]).collect();
    let inputs = std::array::from_fn(|lane| {
        let float = |element, salt| (entry(lane, element, salt) as f32).to_bits();
        [float(0, 0), float(0, 1), float(1, 0), float(1, 1)]
    });
    run(&cases, &inputs);
}

#[test]
fn local_memory() {
    let address = "v_lshlrev_b32 v2, 4, v0\nds_write_b128 v2, v[4:7]\ns_waitcnt lgkmcnt(0)\n";
    let with = |code: &str| -> &'static str { format!("{address}{code}\ns_waitcnt lgkmcnt(0)").leak() };
    let cases = [
        case!(
            two_at_once,
            with("ds_read2_b32 v[8:9], v2 offset0:2 offset1:1\nds_read_b64 v[10:11], v2 offset:8"),
            |lane, i| [i[lane][2], i[lane][1], i[lane][2], i[lane][3]]
        ),
        case!(strided, with("v_lshlrev_b32 v3, 2, v0\nds_read2st64_b32 v[8:9], v3 offset0:0 offset1:1"), |lane, i| {
            [i[lane / 4][lane % 4], i[16 + lane / 4][lane % 4], 0, 0]
        }),
        case!(
            narrow,
            with(
                "ds_read_u8 v8, v2 offset:1\nds_read_i16 v9, v2 offset:2\nds_read_u16_d16_hi v10, v2 offset:4\n\
                    ds_read_i8_d16 v11, v2 offset:3"
            ),
            |lane, i| {
                let [a, b, ..] = i[lane];
                [a >> 8 & 0xff, (a >> 16) as i16 as u32, b << 16, (a >> 24) as i8 as i16 as u16 as u32]
            }
        ),
        case!(
            exchanges,
            with(
                "ds_add_rtn_u32 v8, v2, v5\nds_cmpst_rtn_b32 v9, v2, v4, v6 offset:4\nds_wrxchg_rtn_b32 v10, v2, v7 \
                    offset:8\ns_waitcnt lgkmcnt(0)\nds_read_b32 v11, v2"
            ),
            |lane, i| {
                let [a, b, c, _] = i[lane];
                [a, b, c, a.wrapping_add(b)]
            }
        ),
        case!(
            counters,
            with(
                "ds_inc_rtn_u32 v8, v2, v7\nds_dec_rtn_u32 v9, v2, v7 offset:4\nds_rsub_rtn_u32 v10, v2, v4 offset:8\n\
                    s_waitcnt lgkmcnt(0)\nds_read_b32 v11, v2 offset:8"
            ),
            |lane, i| {
                let [a, b, c, _] = i[lane];
                [a, b, c, a.wrapping_sub(c)]
            }
        ),
        case!(
            appended,
            with(
                "v_mov_b32 v3, 0\nds_write_b32 v3, v3 offset:2048\ns_waitcnt lgkmcnt(0)\ns_mov_b32 m0, 2048\ns_mov_b64 \
                    exec, 0xf0f\nds_append v8\ns_waitcnt lgkmcnt(0)\nds_consume v9\ns_waitcnt lgkmcnt(0)\ns_mov_b64 \
                    exec, -1\nds_read_b32 v10, v3 offset:2048"
            ),
            |lane, _| { [0, if 0xf0f_u64 >> lane & 1 != 0 { 8 } else { 0 }, 0, 0] }
        ),
        case!(sent, with("v_xor_b32 v3, 5, v0\nv_lshlrev_b32 v3, 2, v3\nds_permute_b32 v8, v3, v4"), |lane, i| [
            i[lane ^ 5][0],
            0,
            0,
            0
        ]),
    ];
    run(&cases, &inputs());
}

#[test]
fn buffers() {
    // A descriptor for the output: stride 16, 64 records, element of the lane.
    let code = "s_mov_b32 s12, s4\ns_mov_b32 s13, s5\ns_or_b32 s13, s13, 0x100000\ns_mov_b32 s14, 64\ns_mov_b32 s15, \
        0x20000\n\
        buffer_load_dwordx2 v[8:9], v0, s[12:15], 0 idxen offset:4\nv_add_u32 v2, 32, v0\nbuffer_load_dword v10, v2, \
        s[12:15], 0 idxen\n\
        s_mov_b32 s13, s5\ns_mov_b32 s14, 512\nbuffer_load_ubyte v11, v1, s[12:15], 0 offen offset:13\n\
        s_waitcnt vmcnt(0)";
    let cases = [case!(structured_and_raw, code, |lane, i| {
        let beyond = if lane < 32 { i[lane + 32][0] } else { 0 };
        [i[lane][1], i[lane][2], beyond, if lane < 32 { i[lane][3] >> 8 & 0xff } else { 0 }]
    })];
    run(&cases, &inputs());
}

#[test]
fn scalar_memory() {
    let cases = [
        case!(
            loads,
            "s_mov_b32 s20, 16\ns_load_dwordx2 s[8:9], s[4:5], s20\ns_load_dword s10, s[4:5], 0x24\ns_waitcnt \
                lgkmcnt(0)\nv_mov_b32 v8, s8\nv_mov_b32 v9, s9\nv_mov_b32 v10, s10",
            |_, i| { [i[1][0], i[1][1], i[2][1], 0] }
        ),
        case!(
            stores,
            BEFORE_CDNA2,
            "s_mov_b32 s8, 0x1234\ns_store_dword s8, s[4:5], 0x0\ns_waitcnt lgkmcnt(0)\ns_dcache_wb\ns_load_dword s9, \
                s[4:5], 0x0\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v8, s9",
            |_, _| { [0x1234, 0, 0, 0] }
        ),
    ];
    run(&cases, &inputs());
}
