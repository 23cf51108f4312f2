//! Vector floating-point operations.

use rustc_apfloat::Round;
use wavetap::isa::Modifier;

use super::lane::{Lane, T};
use super::number::{Env, f16, f32, f64, flush16, flush32, half_of};
use super::random::Random;
use super::state::{Loose, half};

const F: &[T] = &[T::F32];
const FF: &[T] = &[T::F32, T::F32];
const FFF: &[T] = &[T::F32, T::F32, T::F32];
const D: &[T] = &[T::F64];
const DD: &[T] = &[T::F64, T::F64];
const DDD: &[T] = &[T::F64, T::F64, T::F64];
const H: &[T] = &[T::F16];
const HH: &[T] = &[T::F16, T::F16];
const HHH: &[T] = &[T::F16, T::F16, T::F16];

type Function = fn(&Env, &[u64]) -> u64;

fn op(dst: T, src: &'static [T], f: Function) -> Option<Lane> {
    Some(Lane { dst, src, f, loose: None, carry: None })
}

fn about(dst: T, src: &'static [T], loose: Loose, f: Function) -> Option<Lane> {
    Some(Lane { dst, src, f, loose: Some(loose), carry: None })
}

/// Where a result is a part of a register, it must be whole enough to tell a NaN.
pub fn modifiers(lane: &Lane) -> Option<fn(&mut Random, Modifier) -> Option<u64>> {
    match lane.dst {
        T::F16 if lane.loose.is_some() => Some(|random, modifier| match modifier {
            Modifier::DstSel => Some(6),
            Modifier::OpSel => Some(random.below(8)),
            _ => None,
        }),
        T::F32 | T::F64 => Some(|_, modifier| (modifier == Modifier::DstSel).then_some(6)),
        // The sign of a NaN is not documented, so it is not extended.
        T::F16 => Some(|random, modifier| match modifier {
            Modifier::DstSel => Some(4 + random.below(3)),
            Modifier::DstUnused => Some(2 * random.below(2)),
            _ => None,
        }),
        _ => None,
    }
}

fn single(bits: u64) -> core::primitive::f64 {
    core::primitive::f32::from_bits(bits as u32).into()
}
fn word(value: core::primitive::f64) -> u64 {
    (value as core::primitive::f32).to_bits().into()
}
fn double(bits: u64) -> core::primitive::f64 {
    core::primitive::f64::from_bits(bits)
}
fn narrow(bits: u64) -> core::primitive::f64 {
    half(bits as u32)
}

/// The definition of a floating-point operation.
pub fn definition(name: &str) -> Option<Lane> {
    singles(name)
        .or_else(|| single_functions(name))
        .or_else(|| doubles(name))
        .or_else(|| halves(name))
        .or_else(|| cube(name))
}

/// A product and a sum, each rounded, without denormals.
fn mad32(e: &Env, s: &[u64]) -> u64 {
    let product = flush32(f32::mul(flush32(s[0]), flush32(s[1]), e.round32));
    flush32(f32::add(product, flush32(s[2]), e.round32))
}

fn mad16(e: &Env, s: &[u64]) -> u64 {
    let product = flush16(f16::mul(flush16(s[0]), flush16(s[1]), e.round64));
    flush16(f16::add(product, flush16(s[2]), e.round64))
}

fn is_zero32(bits: u64) -> bool {
    bits & 0x7fff_ffff == 0
}

fn singles(name: &str) -> Option<Lane> {
    match name {
        "v_add_f32" => op(T::F32, FF, |e, s| f32::add(s[0], s[1], e.round32)),
        "v_sub_f32" => op(T::F32, FF, |e, s| f32::sub(s[0], s[1], e.round32)),
        "v_subrev_f32" => op(T::F32, FF, |e, s| f32::sub(s[1], s[0], e.round32)),
        "v_mul_f32" => op(T::F32, FF, |e, s| f32::mul(s[0], s[1], e.round32)),
        "v_mul_legacy_f32" | "v_mul_dx9_zero_f32" => {
            op(T::F32, FF, |e, s| if is_zero32(s[0]) || is_zero32(s[1]) { 0 } else { f32::mul(s[0], s[1], e.round32) })
        }
        "v_mad_f32" | "v_mac_f32" | "v_madmk_f32" | "v_madak_f32" => op(T::F32, FFF, mad32),
        "v_mad_legacy_f32" | "v_mac_legacy_f32" => op(T::F32, FFF, |e, s| {
            // Zero times anything is zero.
            let zero = is_zero32(flush32(s[0])) || is_zero32(flush32(s[1]));
            if zero { flush32(f32::add(0, flush32(s[2]), e.round32)) } else { mad32(e, s) }
        }),
        "v_fma_f32" | "v_fmac_f32" | "v_fmamk_f32" | "v_fmaak_f32" => {
            op(T::F32, FFF, |e, s| f32::fma(s[0], s[1], s[2], e.round32))
        }
        "v_fma_legacy_f32" | "v_fma_dx9_zero_f32" | "v_fmac_legacy_f32" | "v_fmac_dx9_zero_f32" => {
            op(T::F32, FFF, |e, s| {
                if is_zero32(s[0]) || is_zero32(s[1]) { s[2] } else { f32::fma(s[0], s[1], s[2], e.round32) }
            })
        }
        "v_min_f32" => op(T::F32, FF, |e, s| f32::min(e, s[0], s[1])),
        "v_max_f32" => op(T::F32, FF, |e, s| f32::max(e, s[0], s[1])),
        "v_min3_f32" => op(T::F32, FFF, |e, s| f32::min(e, f32::min(e, s[0], s[1]), s[2])),
        "v_max3_f32" => op(T::F32, FFF, |e, s| f32::max(e, f32::max(e, s[0], s[1]), s[2])),
        "v_med3_f32" => op(T::F32, FFF, f32::median),
        "v_trunc_f32" => op(T::F32, F, |_, s| f32::integral(s[0], Round::TowardZero)),
        "v_ceil_f32" => op(T::F32, F, |_, s| f32::integral(s[0], Round::TowardPositive)),
        "v_rndne_f32" => op(T::F32, F, |_, s| f32::integral(s[0], Round::NearestTiesToEven)),
        "v_floor_f32" => op(T::F32, F, |_, s| f32::integral(s[0], Round::TowardNegative)),
        "v_fract_f32" => about(T::F32, F, Loose::Ulp32(1), |_, s| f32::fraction(s[0])),
        "v_frexp_mant_f32" => op(T::F32, &[T::B32], |_, s| f32::mantissa(s[0])),
        "v_frexp_exp_i32_f32" => op(T::U32, &[T::B32], |_, s| f32::exponent(s[0]) as u64),
        "v_ldexp_f32" => op(T::F32, &[T::F32, T::U32], |e, s| f32::scale(s[0], s[1] as i32, e.round32)),
        _ => None,
    }
}

/// The functions that are documented to one unit in the last place, without denormals.
fn single_functions(name: &str) -> Option<Lane> {
    let of = |f: Function| about(T::F32, F, Loose::Ulp32(2), f);
    match name {
        "v_exp_f32" | "v_exp_legacy_f32" => of(|_, s| word(single(flush32(s[0])).exp2())),
        "v_log_f32" | "v_log_legacy_f32" => of(|_, s| word(single(flush32(s[0])).log2())),
        "v_tanh_f32" => of(|_, s| word(single(flush32(s[0])).tanh())),
        "v_rcp_f32" | "v_rcp_iflag_f32" => of(|_, s| word(1.0 / single(flush32(s[0])))),
        "v_rsq_f32" => of(|_, s| match single(flush32(s[0])) {
            // The root of -0 is -0.
            0.0 => flush32(s[0]) | 0x7f80_0000,
            value => word(1.0 / value.sqrt()),
        }),
        "v_sqrt_f32" => of(|_, s| word(single(flush32(s[0])).sqrt())),
        // Angles in turns.
        "v_sin_f32" => about(T::F32, F, Loose::Near32(2e-6), |_, s| word(turns(single(s[0])).sin())),
        "v_cos_f32" => about(T::F32, F, Loose::Near32(2e-6), |_, s| word(turns(single(s[0])).cos())),
        _ => None,
    }
}

/// The angle of a number of turns, less than one in either direction.
pub fn turns(n: core::primitive::f64) -> core::primitive::f64 {
    n % 1.0 * std::f64::consts::TAU
}

fn doubles(name: &str) -> Option<Lane> {
    // "Accuracy is 2^29 units in the last place".
    let of = |f: Function| about(T::F64, D, Loose::Ulp64(1 << 29), f);
    match name {
        "v_add_f64" => op(T::F64, DD, |e, s| f64::add(s[0], s[1], e.round64)),
        "v_mul_f64" => op(T::F64, DD, |e, s| f64::mul(s[0], s[1], e.round64)),
        "v_fma_f64" | "v_fmac_f64" | "v_fmamk_f64" | "v_fmaak_f64" => {
            op(T::F64, DDD, |e, s| f64::fma(s[0], s[1], s[2], e.round64))
        }
        "v_min_f64" => op(T::F64, DD, |e, s| f64::min(e, s[0], s[1])),
        "v_max_f64" => op(T::F64, DD, |e, s| f64::max(e, s[0], s[1])),
        "v_trunc_f64" => op(T::F64, D, |_, s| f64::integral(s[0], Round::TowardZero)),
        "v_ceil_f64" => op(T::F64, D, |_, s| f64::integral(s[0], Round::TowardPositive)),
        "v_rndne_f64" => op(T::F64, D, |_, s| f64::integral(s[0], Round::NearestTiesToEven)),
        "v_floor_f64" => op(T::F64, D, |_, s| f64::integral(s[0], Round::TowardNegative)),
        "v_fract_f64" => about(T::F64, D, Loose::Ulp64(1), |_, s| f64::fraction(s[0])),
        "v_frexp_mant_f64" => op(T::F64, &[T::B64], |_, s| f64::mantissa(s[0])),
        "v_frexp_exp_i32_f64" => op(T::U32, &[T::B64], |_, s| f64::exponent(s[0]) as u64),
        "v_ldexp_f64" => op(T::F64, &[T::F64, T::U32], |e, s| f64::scale(s[0], s[1] as i32, e.round64)),
        "v_rcp_f64" => of(|_, s| (1.0 / double(s[0])).to_bits()),
        "v_rsq_f64" => {
            of(|_, s| if double(s[0]) == 0.0 { s[0] | 0x7ff << 52 } else { (1.0 / double(s[0]).sqrt()).to_bits() })
        }
        "v_sqrt_f64" => of(|_, s| double(s[0]).sqrt().to_bits()),
        _ => None,
    }
}

fn halves(name: &str) -> Option<Lane> {
    let of = |f: Function| about(T::F16, H, Loose::Ulp16(2), f);
    match name {
        "v_add_f16" => op(T::F16, HH, |e, s| f16::add(s[0], s[1], e.round64)),
        "v_sub_f16" => op(T::F16, HH, |e, s| f16::sub(s[0], s[1], e.round64)),
        "v_subrev_f16" => op(T::F16, HH, |e, s| f16::sub(s[1], s[0], e.round64)),
        "v_mul_f16" => op(T::F16, HH, |e, s| f16::mul(s[0], s[1], e.round64)),
        "v_mad_f16" | "v_mac_f16" | "v_madmk_f16" | "v_madak_f16" | "v_mad_legacy_f16" => op(T::F16, HHH, mad16),
        "v_fma_f16" | "v_fmac_f16" | "v_fma_legacy_f16" | "v_fmamk_f16" | "v_fmaak_f16" => {
            op(T::F16, HHH, |e, s| f16::fma(s[0], s[1], s[2], e.round64))
        }
        "v_min_f16" => op(T::F16, HH, |e, s| f16::min(e, s[0], s[1])),
        "v_max_f16" => op(T::F16, HH, |e, s| f16::max(e, s[0], s[1])),
        "v_min3_f16" => op(T::F16, HHH, |e, s| f16::min(e, f16::min(e, s[0], s[1]), s[2])),
        "v_max3_f16" => op(T::F16, HHH, |e, s| f16::max(e, f16::max(e, s[0], s[1]), s[2])),
        "v_med3_f16" => op(T::F16, HHH, f16::median),
        "v_trunc_f16" => op(T::F16, H, |_, s| f16::integral(s[0], Round::TowardZero)),
        "v_ceil_f16" => op(T::F16, H, |_, s| f16::integral(s[0], Round::TowardPositive)),
        "v_rndne_f16" => op(T::F16, H, |_, s| f16::integral(s[0], Round::NearestTiesToEven)),
        "v_floor_f16" => op(T::F16, H, |_, s| f16::integral(s[0], Round::TowardNegative)),
        "v_fract_f16" => of(|_, s| f16::fraction(s[0])),
        "v_frexp_mant_f16" => op(T::F16, &[T::B16], |_, s| f16::mantissa(s[0])),
        "v_frexp_exp_i16_f16" => op(T::U16, &[T::B16], |_, s| f16::exponent(s[0]) as u64 & 0xffff),
        "v_ldexp_f16" => op(T::F16, &[T::F16, T::U16], |e, s| f16::scale(s[0], (s[1] as i16).into(), e.round64)),
        "v_rcp_f16" => of(|_, s| half_of(1.0 / narrow(s[0]))),
        "v_sqrt_f16" => of(|_, s| half_of(narrow(s[0]).sqrt())),
        "v_rsq_f16" => of(|_, s| if narrow(s[0]) == 0.0 { s[0] | 0x7c00 } else { half_of(1.0 / narrow(s[0]).sqrt()) }),
        "v_tanh_f16" => of(|_, s| half_of(narrow(s[0]).tanh())),
        "v_log_f16" => of(|_, s| half_of(narrow(s[0]).log2())),
        "v_exp_f16" => of(|_, s| half_of(narrow(s[0]).exp2())),
        "v_sin_f16" => about(T::F16, H, Loose::Near16(1e-3), |_, s| half_of(turns(narrow(s[0])).sin())),
        "v_cos_f16" => about(T::F16, H, Loose::Near16(1e-3), |_, s| half_of(turns(narrow(s[0])).cos())),
        _ => None,
    }
}

/// Axis of the largest coordinate: the last of those that are as large.
fn axis(s: &[u64]) -> usize {
    let [x, y, z] = [0, 1, 2].map(|n| single(s[n]).abs());
    if z >= x && z >= y {
        2
    } else if y >= x {
        1
    } else {
        0
    }
}

fn cube(name: &str) -> Option<Lane> {
    const SIGN: u64 = 0x8000_0000;
    match name {
        "v_cubeid_f32" => op(T::F32, FFF, |_, s| {
            word((2 * axis(s)) as core::primitive::f64 + if single(s[axis(s)]) < 0.0 { 1.0 } else { 0.0 })
        }),
        "v_cubema_f32" => op(T::F32, FFF, |_, s| word(2.0 * single(s[axis(s)]))),
        "v_cubesc_f32" => op(T::F32, FFF, |_, s| match axis(s) {
            2 => {
                if single(s[2]) < 0.0 {
                    s[0] ^ SIGN
                } else {
                    s[0]
                }
            }
            1 => s[0],
            _ => {
                if single(s[0]) < 0.0 {
                    s[2]
                } else {
                    s[2] ^ SIGN
                }
            }
        }),
        "v_cubetc_f32" => op(T::F32, FFF, |_, s| match axis(s) {
            1 => {
                if single(s[1]) < 0.0 {
                    s[2] ^ SIGN
                } else {
                    s[2]
                }
            }
            _ => s[1] ^ SIGN,
        }),
        _ => None,
    }
}
