//! Vector integer and bit operations.

use super::lane::{Lane, T};
use super::number::Env;

const U: &[T] = &[T::U32];
const UU: &[T] = &[T::U32, T::U32];
const UUU: &[T] = &[T::U32, T::U32, T::U32];
const DD: &[T] = &[T::U64, T::U64];
const HH: &[T] = &[T::U16, T::U16];
const HHH: &[T] = &[T::U16, T::U16, T::U16];

fn op(dst: T, src: &'static [T], f: fn(&Env, &[u64]) -> u64) -> Option<Lane> {
    Some(Lane { dst, src, f, loose: None, carry: None })
}

fn carrying(src: &'static [T], f: fn(&Env, &[u64]) -> u64, carry: fn(&Env, &[u64]) -> bool) -> Option<Lane> {
    Some(Lane { dst: T::U32, src, f, loose: None, carry: Some(carry) })
}

fn u(x: u64) -> u32 {
    x as u32
}
fn i(x: u64) -> i64 {
    i64::from(x as u32 as i32)
}
fn h(x: u64) -> i64 {
    i64::from(x as u16 as i16)
}
fn i24(x: u64) -> i64 {
    i64::from((x as i32) << 8 >> 8)
}
fn u24(x: u64) -> u64 {
    x & 0xff_ffff
}
fn bytes(x: u64) -> [u8; 4] {
    (x as u32).to_le_bytes()
}
/// An exact result in so many bits, saturated with the clamp bit.
fn unsigned(e: &Env, exact: i128, width: u32) -> u64 {
    let most = (1_i128 << width) - 1;
    (if e.clamp { exact.clamp(0, most) } else { exact & most }) as u64
}
fn signed(e: &Env, exact: i128, width: u32) -> u64 {
    let most = (1_i128 << (width - 1)) - 1;
    (if e.clamp { exact.clamp(-most - 1, most) } else { exact } & ((1_i128 << width) - 1)) as u64
}
fn saturated(exact: i64) -> i64 {
    exact.clamp(i32::MIN.into(), i32::MAX.into())
}
/// Four numbers of four bits each, of four bytes.
fn nibbles(x: u64, f: fn(u8) -> u8) -> u64 {
    bytes(x).iter().rev().fold(0, |all, byte| all << 4 | u64::from(f(*byte) & 15))
}
fn big(x: u64) -> i128 {
    i128::from(x)
}
fn middle<V: Ord + Copy>(mut all: [V; 3]) -> V {
    all.sort_unstable();
    all[1]
}
/// Sum of absolute differences of bytes; `masked`: without those whose second byte is 0.
fn differences(a: u64, b: u64, masked: bool) -> u64 {
    bytes(a).iter().zip(bytes(b)).filter(|(_, b)| !masked || *b != 0).map(|(a, b)| u64::from(a.abs_diff(b))).sum()
}
/// Four sums of 16 bits, of the bytes from each of the first four on.
fn quad(e: &Env, s: &[u64], masked: bool) -> u64 {
    (0..4).fold(0, |all, n| {
        let sum = differences(s[0] >> (8 * n), s[1], masked) + (s[2] >> (16 * n) & 0xffff);
        all | unsigned(e, big(sum), 16) << (16 * n)
    })
}

/// The definition of a vector integer operation.
pub fn definition(name: &str) -> Option<Lane> {
    words(name).or_else(|| halves(name)).or_else(|| wide(name)).or_else(|| sums(name))
}

fn words(name: &str) -> Option<Lane> {
    match name {
        "v_mov_b32" | "v_accvgpr_mov_b32" | "v_accvgpr_read_b32" | "v_accvgpr_write_b32" => op(T::U32, U, |_, s| s[0]),
        "v_not_b32" => op(T::U32, U, |_, s| s[0] ^ 0xffff_ffff),
        "v_and_b32" => op(T::U32, UU, |_, s| s[0] & s[1]),
        "v_or_b32" => op(T::U32, UU, |_, s| s[0] | s[1]),
        "v_xor_b32" => op(T::U32, UU, |_, s| s[0] ^ s[1]),
        "v_xnor_b32" => op(T::U32, UU, |_, s| !(s[0] ^ s[1]) & 0xffff_ffff),
        "v_or3_b32" => op(T::U32, UUU, |_, s| s[0] | s[1] | s[2]),
        "v_xor3_b32" => op(T::U32, UUU, |_, s| s[0] ^ s[1] ^ s[2]),
        "v_and_or_b32" => op(T::U32, UUU, |_, s| s[0] & s[1] | s[2]),
        "v_bfi_b32" => op(T::U32, UUU, |_, s| s[0] & s[1] | (s[0] ^ 0xffff_ffff) & s[2]),
        "v_cndmask_b32" => op(T::U32, &[T::B32, T::B32, T::Mask], |_, s| if s[2] == 1 { s[1] } else { s[0] }),
        "v_lshlrev_b32" => op(T::U32, UU, |_, s| s[1] << (s[0] % 32)),
        "v_lshrrev_b32" => op(T::U32, UU, |_, s| s[1] >> (s[0] % 32)),
        "v_ashrrev_i32" => op(T::U32, UU, |_, s| (i(s[1]) >> (s[0] % 32)) as u64),
        "v_lshl_add_u32" => op(T::U32, UUU, |_, s| (s[0] << (s[1] % 32)) + s[2]),
        "v_add_lshl_u32" => op(T::U32, UUU, |_, s| ((s[0] + s[1]) & 0xffff_ffff) << (s[2] % 32)),
        "v_lshl_or_b32" => op(T::U32, UUU, |_, s| s[0] << (s[1] % 32) | s[2]),
        "v_add3_u32" => op(T::U32, UUU, |_, s| s[0] + s[1] + s[2]),
        "v_xad_u32" => op(T::U32, UUU, |_, s| (s[0] ^ s[1]) + s[2]),
        "v_bfm_b32" => op(T::U32, UU, |_, s| ((1 << (s[0] % 32)) - 1) << (s[1] % 32)),
        "v_bfe_u32" => op(T::U32, UUU, |_, s| (s[0] >> (s[1] % 32)) & ((1 << (s[2] % 32)) - 1)),
        "v_bfe_i32" => op(T::U32, UUU, |_, s| {
            let width = s[2] % 32;
            let field = (i(s[0]) >> (s[1] % 32)) as u64 & ((1 << width) - 1);
            // The highest bit of the field is its sign.
            if width > 0 && field >> (width - 1) & 1 != 0 { field | u64::MAX << width } else { field }
        }),
        "v_bfrev_b32" => op(T::U32, U, |_, s| (0..32).map(|n| (s[0] >> n & 1) << (31 - n)).sum()),
        "v_bcnt_u32_b32" => op(T::U32, UU, |_, s| (0..32).map(|n| s[0] >> n & 1).sum::<u64>() + s[1]),
        "v_ffbh_u32" | "v_clz_i32_u32" => {
            op(T::U32, U, |_, s| (0..32).find(|n| s[0] >> (31 - n) & 1 != 0).unwrap_or(u64::MAX))
        }
        "v_ffbl_b32" | "v_ctz_i32_b32" => {
            op(T::U32, U, |_, s| (0..32).find(|n| s[0] >> n & 1 != 0).unwrap_or(u64::MAX))
        }
        "v_ffbh_i32" | "v_cls_i32" => {
            op(T::U32, U, |_, s| (1..32).find(|n| s[0] >> (31 - n) & 1 != s[0] >> 31 & 1).unwrap_or(u64::MAX))
        }
        "v_alignbit_b32" => op(T::U32, &[T::U32, T::U32, T::U16], |_, s| (s[0] << 32 | s[1]) >> (s[2] % 32)),
        "v_alignbyte_b32" => op(T::U32, &[T::U32, T::U32, T::U16], |_, s| (s[0] << 32 | s[1]) >> (8 * (s[2] % 4))),
        "v_perm_b32" => op(T::U32, UUU, |_, s| {
            let data = (s[0] << 32 | s[1]).to_le_bytes();
            let sign = |byte: usize| if data[byte] >= 0x80 { 0xff } else { 0 };
            u32::from_le_bytes(bytes(s[2]).map(|select| match select {
                0..=7 => data[usize::from(select)],
                8 => sign(1),
                9 => sign(3),
                10 => sign(5),
                11 => sign(7),
                12 => 0,
                _ => 0xff,
            }))
            .into()
        }),
        "v_add_u32" | "v_add_nc_u32" => op(T::U32, UU, |e, s| unsigned(e, big(s[0]) + big(s[1]), 32)),
        "v_sub_u32" | "v_sub_nc_u32" => op(T::U32, UU, |e, s| unsigned(e, big(s[0]) - big(s[1]), 32)),
        "v_subrev_u32" | "v_subrev_nc_u32" => op(T::U32, UU, |e, s| unsigned(e, big(s[1]) - big(s[0]), 32)),
        "v_add_i32" | "v_add_nc_i32" => op(T::U32, UU, |e, s| signed(e, (i(s[0]) + i(s[1])).into(), 32)),
        "v_sub_i32" | "v_sub_nc_i32" => op(T::U32, UU, |e, s| signed(e, (i(s[0]) - i(s[1])).into(), 32)),
        "v_mul_lo_u32" => op(T::U32, UU, |_, s| s[0].wrapping_mul(s[1])),
        "v_mul_hi_u32" => op(T::U32, UU, |_, s| (s[0] * s[1]) >> 32),
        "v_mul_hi_i32" => op(T::U32, UU, |_, s| ((i(s[0]) * i(s[1])) >> 32) as u64),
        "v_mul_u32_u24" => op(T::U32, UU, |_, s| u24(s[0]) * u24(s[1])),
        "v_mul_hi_u32_u24" => op(T::U32, UU, |_, s| (u24(s[0]) * u24(s[1])) >> 32),
        "v_mul_i32_i24" => op(T::U32, UU, |_, s| (i24(s[0]) * i24(s[1])) as u64),
        "v_mul_hi_i32_i24" => op(T::U32, UU, |_, s| ((i24(s[0]) * i24(s[1])) >> 32) as u64),
        "v_mad_u32_u24" => op(T::U32, UUU, |e, s| unsigned(e, big(u24(s[0]) * u24(s[1])) + big(s[2]), 32)),
        "v_mad_i32_i24" => op(T::U32, UUU, |e, s| signed(e, (i24(s[0]) * i24(s[1]) + i(s[2])).into(), 32)),
        "v_mad_u32_u16" => op(T::U32, &[T::U16, T::U16, T::U32], |e, s| unsigned(e, big(s[0] * s[1] + s[2]), 32)),
        "v_mad_i32_i16" => {
            op(T::U32, &[T::U16, T::U16, T::U32], |e, s| signed(e, (h(s[0]) * h(s[1]) + i(s[2])).into(), 32))
        }
        "v_mad_u32" => op(T::U32, UUU, |_, s| s[0].wrapping_mul(s[1]).wrapping_add(s[2])),
        // The sums saturate without being asked to.
        "v_add_max_u32" => op(T::U32, UUU, |_, s| (s[0] + s[1]).min(0xffff_ffff).max(s[2])),
        "v_add_min_u32" => op(T::U32, UUU, |_, s| (s[0] + s[1]).min(0xffff_ffff).min(s[2])),
        "v_add_max_i32" => op(T::U32, UUU, |_, s| saturated(i(s[0]) + i(s[1])).max(i(s[2])) as u64),
        "v_add_min_i32" => op(T::U32, UUU, |_, s| saturated(i(s[0]) + i(s[1])).min(i(s[2])) as u64),
        "v_min_u32" => op(T::U32, UU, |_, s| s[0].min(s[1])),
        "v_max_u32" => op(T::U32, UU, |_, s| s[0].max(s[1])),
        "v_min_i32" => op(T::U32, UU, |_, s| i(s[0]).min(i(s[1])) as u64),
        "v_max_i32" => op(T::U32, UU, |_, s| i(s[0]).max(i(s[1])) as u64),
        "v_min3_u32" => op(T::U32, UUU, |_, s| s[0].min(s[1]).min(s[2])),
        "v_max3_u32" => op(T::U32, UUU, |_, s| s[0].max(s[1]).max(s[2])),
        "v_min3_i32" => op(T::U32, UUU, |_, s| i(s[0]).min(i(s[1])).min(i(s[2])) as u64),
        "v_max3_i32" => op(T::U32, UUU, |_, s| i(s[0]).max(i(s[1])).max(i(s[2])) as u64),
        "v_med3_u32" => op(T::U32, UUU, |_, s| middle([s[0], s[1], s[2]])),
        "v_med3_i32" => op(T::U32, UUU, |_, s| middle([i(s[0]), i(s[1]), i(s[2])]) as u64),
        "v_cvt_pk_u16_u32" => op(T::U32, UU, |_, s| s[0].min(0xffff) | s[1].min(0xffff) << 16),
        "v_cvt_pk_i16_i32" => op(T::U32, UU, |_, s| {
            let half = |x: u64| i(x).clamp(-32768, 32767) as u64 & 0xffff;
            half(s[0]) | half(s[1]) << 16
        }),
        "v_sat_pk_u8_i16" => Some(Lane {
            dst: T::U16,
            src: &[T::P16],
            f: |_, s| {
                let byte = |x: u64| h(x).clamp(0, 255) as u64;
                byte(s[0]) | byte(s[0] >> 16) << 8
            },
            loose: Some(super::state::Loose::Low16),
            carry: None,
        }),
        "v_sat_pk4_i4_i8" => op(T::U16, U, |_, s| nibbles(s[0], |byte| (byte as i8).clamp(-8, 7) as u8)),
        "v_sat_pk4_u4_u8" => op(T::U16, U, |_, s| nibbles(s[0], |byte| byte.min(15))),
        "v_pack_b32_f16" => op(T::U32, &[T::F16, T::F16], |_, s| s[0] | s[1] << 16),
        "v_add_co_u32" | "v_add_co_ci_u32_no" => {
            carrying(UU, |e, s| unsigned(e, big(s[0] + s[1]), 32), |_, s| (s[0] + s[1]) >> 32 != 0)
        }
        "v_sub_co_u32" => carrying(UU, |e, s| unsigned(e, big(s[0]) - big(s[1]), 32), |_, s| s[1] > s[0]),
        "v_subrev_co_u32" => carrying(UU, |e, s| unsigned(e, big(s[1]) - big(s[0]), 32), |_, s| s[0] > s[1]),
        "v_addc_co_u32" | "v_add_co_ci_u32" => carrying(
            &[T::U32, T::U32, T::Mask],
            |e, s| unsigned(e, big(s[0] + s[1] + s[2]), 32),
            |_, s| (s[0] + s[1] + s[2]) >> 32 != 0,
        ),
        "v_subb_co_u32" | "v_sub_co_ci_u32" => carrying(
            &[T::U32, T::U32, T::Mask],
            |e, s| unsigned(e, big(s[0]) - big(s[1]) - big(s[2]), 32),
            |_, s| s[1] + s[2] > s[0],
        ),
        "v_subbrev_co_u32" | "v_subrev_co_ci_u32" => carrying(
            &[T::U32, T::U32, T::Mask],
            |e, s| unsigned(e, big(s[1]) - big(s[0]) - big(s[2]), 32),
            |_, s| s[0] + s[2] > s[1],
        ),
        _ => None,
    }
}

fn halves(name: &str) -> Option<Lane> {
    match name {
        "v_add_u16" | "v_add_nc_u16" => op(T::U16, HH, |e, s| unsigned(e, big(s[0]) + big(s[1]), 16)),
        "v_sub_u16" | "v_sub_nc_u16" => op(T::U16, HH, |e, s| unsigned(e, big(s[0]) - big(s[1]), 16)),
        "v_subrev_u16" => op(T::U16, HH, |e, s| unsigned(e, big(s[1]) - big(s[0]), 16)),
        "v_add_i16" | "v_add_nc_i16" => op(T::U16, HH, |e, s| signed(e, (h(s[0]) + h(s[1])).into(), 16)),
        "v_sub_i16" | "v_sub_nc_i16" => op(T::U16, HH, |e, s| signed(e, (h(s[0]) - h(s[1])).into(), 16)),
        "v_mul_lo_u16" => op(T::U16, HH, |_, s| (s[0] * s[1]) & 0xffff),
        "v_mad_u16" | "v_mad_legacy_u16" => op(T::U16, HHH, |e, s| unsigned(e, big(s[0] * s[1] + s[2]), 16)),
        "v_mad_i16" | "v_mad_legacy_i16" => op(T::U16, HHH, |e, s| signed(e, (h(s[0]) * h(s[1]) + h(s[2])).into(), 16)),
        "v_lshlrev_b16" => op(T::U16, HH, |_, s| s[1] << (s[0] % 16) & 0xffff),
        "v_lshrrev_b16" => op(T::U16, HH, |_, s| s[1] >> (s[0] % 16)),
        "v_ashrrev_i16" => op(T::U16, HH, |_, s| (h(s[1]) >> (s[0] % 16)) as u64 & 0xffff),
        "v_min_u16" => op(T::U16, HH, |_, s| s[0].min(s[1])),
        "v_max_u16" => op(T::U16, HH, |_, s| s[0].max(s[1])),
        "v_min_i16" => op(T::U16, HH, |_, s| h(s[0]).min(h(s[1])) as u64),
        "v_max_i16" => op(T::U16, HH, |_, s| h(s[0]).max(h(s[1])) as u64),
        "v_min3_u16" => op(T::U16, HHH, |_, s| s[0].min(s[1]).min(s[2])),
        "v_max3_u16" => op(T::U16, HHH, |_, s| s[0].max(s[1]).max(s[2])),
        "v_min3_i16" => op(T::U16, HHH, |_, s| h(s[0]).min(h(s[1])).min(h(s[2])) as u64),
        "v_max3_i16" => op(T::U16, HHH, |_, s| h(s[0]).max(h(s[1])).max(h(s[2])) as u64),
        "v_med3_u16" => op(T::U16, HHH, |_, s| middle([s[0], s[1], s[2]])),
        "v_med3_i16" => op(T::U16, HHH, |_, s| middle([h(s[0]), h(s[1]), h(s[2])]) as u64),
        "v_and_b16" => op(T::U16, HH, |_, s| s[0] & s[1]),
        "v_or_b16" => op(T::U16, HH, |_, s| s[0] | s[1]),
        "v_xor_b16" => op(T::U16, HH, |_, s| s[0] ^ s[1]),
        "v_not_b16" => op(T::U16, &[T::U16], |_, s| s[0] ^ 0xffff),
        "v_mov_b16" => op(T::U16, &[T::B16], |_, s| s[0]),
        "v_cndmask_b16" => op(T::U16, &[T::B16, T::B16, T::Mask], |_, s| if s[2] == 1 { s[1] } else { s[0] }),
        _ => None,
    }
}

fn wide(name: &str) -> Option<Lane> {
    match name {
        "v_mov_b64" => op(T::U64, &[T::U64], |_, s| s[0]),
        "v_lshlrev_b64" => op(T::U64, &[T::U32, T::U64], |_, s| s[1] << (s[0] % 64)),
        "v_lshrrev_b64" => op(T::U64, &[T::U32, T::U64], |_, s| s[1] >> (s[0] % 64)),
        "v_ashrrev_i64" => op(T::U64, &[T::U32, T::U64], |_, s| (s[1] as i64 >> (s[0] % 64)) as u64),
        // The amount is that of an address: at most 4 is meaningful, and more gives no shift by more than the low three
        // bits say.
        "v_lshl_add_u64" => op(T::U64, &[T::U64, T::U32, T::U64], |_, s| (s[0] << (s[1] % 8)).wrapping_add(s[2])),
        "v_add_nc_u64" => op(T::U64, DD, |e, s| unsigned(e, big(s[0]) + big(s[1]), 64)),
        "v_sub_nc_u64" => op(T::U64, DD, |e, s| unsigned(e, big(s[0]) - big(s[1]), 64)),
        "v_mul_u64" => op(T::U64, DD, |_, s| (u128::from(s[0]) * u128::from(s[1])) as u64),
        "v_min_u64" => op(T::U64, DD, |_, s| s[0].min(s[1])),
        "v_max_u64" => op(T::U64, DD, |_, s| s[0].max(s[1])),
        "v_min_i64" => op(T::U64, DD, |_, s| (s[0] as i64).min(s[1] as i64) as u64),
        "v_max_i64" => op(T::U64, DD, |_, s| (s[0] as i64).max(s[1] as i64) as u64),
        "v_mad_nc_u64_u32" => {
            op(T::U64, &[T::U32, T::U32, T::U64], |e, s| unsigned(e, big(s[0]) * big(s[1]) + big(s[2]), 64))
        }
        "v_mad_nc_i64_i32" => op(T::U64, &[T::U32, T::U32, T::U64], |e, s| {
            signed(e, i128::from(i(s[0])) * i128::from(i(s[1])) + i128::from(s[2] as i64), 64)
        }),
        "v_mad_u64_u32" | "v_mad_co_u64_u32" => Some(Lane {
            dst: T::U64,
            src: &[T::U32, T::U32, T::U64],
            f: |e, s| unsigned(e, big(s[0]) * big(s[1]) + big(s[2]), 64),
            loose: None,
            carry: Some(|_, s| (big(s[0]) * big(s[1]) + big(s[2])) >> 64 != 0),
        }),
        "v_mad_i64_i32" | "v_mad_co_i64_i32" => Some(Lane {
            dst: T::U64,
            src: &[T::U32, T::U32, T::U64],
            f: |e, s| signed(e, i128::from(i(s[0])) * i128::from(i(s[1])) + i128::from(s[2] as i64), 64),
            loose: None,
            // The 65th bit of the sum of sign-extended numbers.
            carry: Some(|_, s| (i128::from(i(s[0])) * i128::from(i(s[1])) + i128::from(s[2] as i64)) >> 64 & 1 != 0),
        }),
        _ => None,
    }
}

fn sums(name: &str) -> Option<Lane> {
    match name {
        "v_sad_u8" => op(T::U32, UUU, |e, s| unsigned(e, big(differences(s[0], s[1], false) + s[2]), 32)),
        "v_sad_hi_u8" => op(T::U32, UUU, |e, s| unsigned(e, big((differences(s[0], s[1], false) << 16) + s[2]), 32)),
        "v_msad_u8" => op(T::U32, UUU, |e, s| unsigned(e, big(differences(s[0], s[1], true) + s[2]), 32)),
        "v_sad_u16" => op(T::U32, UUU, |e, s| {
            let half = |n: u32| (s[0] >> n & 0xffff).abs_diff(s[1] >> n & 0xffff);
            unsigned(e, big(half(0) + half(16) + s[2]), 32)
        }),
        "v_sad_u32" => op(T::U32, UUU, |e, s| unsigned(e, big(s[0].abs_diff(s[1]) + s[2]), 32)),
        "v_qsad_pk_u16_u8" => op(T::U64, &[T::U64, T::U32, T::U64], |e, s| quad(e, s, false)),
        "v_mqsad_pk_u16_u8" => op(T::U64, &[T::U64, T::U32, T::U64], |e, s| quad(e, s, true)),
        "v_lerp_u8" => op(T::U32, UUU, |_, s| {
            let [a, b, c] = [s[0], s[1], s[2]].map(bytes);
            u32::from_le_bytes(std::array::from_fn(|n| {
                ((u16::from(a[n]) + u16::from(b[n]) + u16::from(c[n] & 1)) / 2) as u8
            }))
            .into()
        }),
        "v_dot4_i32_i8" | "v_dot4c_i32_i8" => op(T::U32, UUU, |e, s| {
            let products =
                bytes(s[0]).iter().zip(bytes(s[1])).map(|(a, b)| i64::from(*a as i8) * i64::from(b as i8)).sum::<i64>();
            signed(e, (products + i(s[2])).into(), 32)
        }),
        "v_dot4_u32_u8" => op(T::U32, UUU, |e, s| {
            let products = bytes(s[0]).iter().zip(bytes(s[1])).map(|(a, b)| u64::from(*a) * u64::from(b)).sum::<u64>();
            unsigned(e, big(products + s[2]), 32)
        }),
        "v_dot8_i32_i4" | "v_dot8c_i32_i4" => op(T::U32, UUU, |e, s| {
            let four = |x: u64, n: u32| i64::from(u(x << (28 - 4 * n)) as i32 >> 28);
            signed(e, ((0..8).map(|n| four(s[0], n) * four(s[1], n)).sum::<i64>() + i(s[2])).into(), 32)
        }),
        "v_dot8_u32_u4" => op(T::U32, UUU, |e, s| {
            unsigned(e, big((0..8).map(|n| (s[0] >> (4 * n) & 15) * (s[1] >> (4 * n) & 15)).sum::<u64>() + s[2]), 32)
        }),
        "v_dot2c_i32_i16" => {
            op(T::U32, UUU, |e, s| signed(e, (h(s[0]) * h(s[1]) + h(s[0] >> 16) * h(s[1] >> 16) + i(s[2])).into(), 32))
        }
        _ => None,
    }
}
