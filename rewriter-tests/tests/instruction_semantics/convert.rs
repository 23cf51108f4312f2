//! Conversions between number formats.

use rustc_apfloat::Round;
use rustc_apfloat::ieee::{Double, Half, Single};

use super::lane::{Lane, T};
use super::number::{Env, convert, f16, f32, f64};
use super::state::half;

type Function = fn(&Env, &[u64]) -> u64;

fn op(dst: T, src: &'static [T], f: Function) -> Option<Lane> {
    Some(Lane { dst, src, f, loose: None, carry: None })
}

fn single(bits: u64) -> core::primitive::f64 {
    core::primitive::f32::from_bits(bits as u32).into()
}

/// A fraction of one as an integer of 16 bits with sign or without.
fn normalised(value: core::primitive::f64, most: core::primitive::f64) -> u64 {
    let least = if most == 32767.0 { -1.0 } else { 0.0 };
    if value.is_nan() { 0 } else { (value.clamp(least, 1.0) * most).round_ties_even() as i64 as u64 & 0xffff }
}

fn byte(word: u64, n: u32) -> u64 {
    f32::from_signed((word >> (8 * n) & 0xff) as i64, Round::NearestTiesToEven)
}

/// A float as a byte of a word.
fn packed_byte(e: &Env, s: &[u64]) -> u64 {
    let shift = 8 * (s[1] & 3);
    let byte = f32::to_integer(s[0], 8, false, e.round32);
    s[2] & !(0xff << shift) | byte << shift
}

/// The definition of a conversion.
pub fn definition(name: &str) -> Option<Lane> {
    use Round::{NearestTiesToEven as Nearest, TowardNegative as Down, TowardZero as Zero};
    match name {
        "v_cvt_i32_f64" => op(T::U32, &[T::F64], |_, s| f64::to_integer(s[0], 32, true, Zero)),
        "v_cvt_u32_f64" => op(T::U32, &[T::F64], |_, s| f64::to_integer(s[0], 32, false, Zero)),
        "v_cvt_f64_i32" => op(T::F64, &[T::U32], |e, s| f64::from_signed((s[0] as i32).into(), e.round64)),
        "v_cvt_f64_u32" => op(T::F64, &[T::U32], |e, s| f64::from_signed(s[0] as i64, e.round64)),
        "v_cvt_f32_i32" => op(T::F32, &[T::U32], |e, s| f32::from_signed((s[0] as i32).into(), e.round32)),
        "v_cvt_f32_u32" => op(T::F32, &[T::U32], |e, s| f32::from_signed(s[0] as i64, e.round32)),
        "v_cvt_u32_f32" => op(T::U32, &[T::F32], |_, s| f32::to_integer(s[0], 32, false, Zero)),
        "v_cvt_i32_f32" => op(T::U32, &[T::F32], |_, s| f32::to_integer(s[0], 32, true, Zero)),
        // floor(x + 0.5), the sum being exact in double precision where it matters.
        "v_cvt_rpi_i32_f32" | "v_cvt_nearest_i32_f32" => {
            op(T::U32, &[T::F32], |_, s| f64::to_integer((single(s[0]) + 0.5).to_bits(), 32, true, Down))
        }
        "v_cvt_flr_i32_f32" | "v_cvt_floor_i32_f32" => {
            op(T::U32, &[T::F32], |_, s| f32::to_integer(s[0], 32, true, Down))
        }
        "v_cvt_f16_f32" => op(T::F16, &[T::F32], |e, s| convert::<Single, Half>(s[0], e.round64)),
        "v_cvt_f32_f16" => op(T::F32, &[T::F16], |_, s| convert::<Half, Single>(s[0], Nearest)),
        "v_cvt_f32_f64" => op(T::F32, &[T::F64], |e, s| convert::<Double, Single>(s[0], e.round32)),
        "v_cvt_f64_f32" => op(T::F64, &[T::F32], |_, s| convert::<Single, Double>(s[0], Nearest)),
        "v_cvt_f32_ubyte0" => op(T::F32, &[T::U32], |_, s| byte(s[0], 0)),
        "v_cvt_f32_ubyte1" => op(T::F32, &[T::U32], |_, s| byte(s[0], 1)),
        "v_cvt_f32_ubyte2" => op(T::F32, &[T::U32], |_, s| byte(s[0], 2)),
        "v_cvt_f32_ubyte3" => op(T::F32, &[T::U32], |_, s| byte(s[0], 3)),
        // Four bits with sign, in sixteenths.
        "v_cvt_off_f32_i4" => op(T::F32, &[T::U32], |_, s| {
            let offset = (s[0] & 7) as i64 - (s[0] & 8) as i64;
            f32::scale(f32::from_signed(offset, Nearest), -4, Nearest)
        }),
        "v_cvt_f16_u16" => op(T::F16, &[T::U16], |e, s| f16::from_signed(s[0] as i64, e.round64)),
        "v_cvt_f16_i16" => op(T::F16, &[T::U16], |e, s| f16::from_signed((s[0] as i16).into(), e.round64)),
        "v_cvt_u16_f16" => op(T::U16, &[T::F16], |_, s| f16::to_integer(s[0], 16, false, Zero)),
        "v_cvt_i16_f16" => op(T::U16, &[T::F16], |_, s| f16::to_integer(s[0], 16, true, Zero)),
        "v_cvt_norm_i16_f16" => op(T::U16, &[T::F16], |_, s| normalised(half(s[0] as u32), 32767.0)),
        "v_cvt_norm_u16_f16" => op(T::U16, &[T::F16], |_, s| normalised(half(s[0] as u32), 65535.0)),
        "v_cvt_pknorm_i16_f32" | "v_cvt_pk_norm_i16_f32" => op(T::U32, &[T::F32, T::F32], |_, s| {
            normalised(single(s[0]), 32767.0) | normalised(single(s[1]), 32767.0) << 16
        }),
        "v_cvt_pknorm_u16_f32" | "v_cvt_pk_norm_u16_f32" => op(T::U32, &[T::F32, T::F32], |_, s| {
            normalised(single(s[0]), 65535.0) | normalised(single(s[1]), 65535.0) << 16
        }),
        "v_cvt_pknorm_i16_f16" | "v_cvt_pk_norm_i16_f16" => op(T::U32, &[T::F16, T::F16], |_, s| {
            normalised(half(s[0] as u32), 32767.0) | normalised(half(s[1] as u32), 32767.0) << 16
        }),
        "v_cvt_pknorm_u16_f16" | "v_cvt_pk_norm_u16_f16" => op(T::U32, &[T::F16, T::F16], |_, s| {
            normalised(half(s[0] as u32), 65535.0) | normalised(half(s[1] as u32), 65535.0) << 16
        }),
        "v_cvt_pkrtz_f16_f32" | "v_cvt_pk_rtz_f16_f32" => op(T::H16, &[T::F32, T::F32], |_, s| {
            convert::<Single, Half>(s[0], Zero) | convert::<Single, Half>(s[1], Zero) << 16
        }),
        "v_cvt_pk_u8_f32" | "v_cvt_pkaccum_u8_f32" => op(T::U32, &[T::F32, T::U32, T::U32], packed_byte),
        _ => None,
    }
}
