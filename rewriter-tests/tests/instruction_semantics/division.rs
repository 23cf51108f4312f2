//! The three steps of a division: scale the operands, the last multiply-add with the scale taken back, and the special
//! cases (AMD ISA guides, `V_DIV_SCALE`, `V_DIV_FMAS`, `V_DIV_FIXUP`).

use rustc_apfloat::ieee::Quad;
use rustc_apfloat::{Float, FloatConvert, Round};

use crate::lane::{Lane, T};
use crate::number::Odd;

/// A multiply-add whose sum is scaled before it is rounded: by way of a format in which products are exact and sums
/// keep enough bits to round to odd.
macro_rules! scaled {
    ($float:ty, $s:expr, $by:expr, $round:expr) => {{
        let mut loses = false;
        let wide = |bits: u64| -> Quad {
            let mut loses = false;
            <$float>::from_bits(bits.into()).convert(&mut loses).value
        };
        let value = wide($s[0]).mul_add_odd(wide($s[1]), wide($s[2]), $round);
        let value: $float = value.scalbn($by).convert_r($round, &mut loses).value;
        value.to_bits() as u64
    }};
}

macro_rules! division_of {
    ($module:ident, $fraction:expr, $exponent_bits:expr, $far:expr, $scale:expr, $underflow:expr) => {
        #[allow(dead_code)] // Half precision is not scaled.
        mod $module {
            use super::*;
            use crate::number::$module::{F, fma, from, scale};

            const EXPONENT: u64 = (1 << $exponent_bits) - 1;
            const SIGN: u64 = 1 << ($fraction + $exponent_bits);

            fn biased(bits: u64) -> i64 {
                (bits >> $fraction & EXPONENT) as i64
            }

            /// Whether a quotient is a denormal or less, but not zero, by exact comparison of exponents and
            /// significands.
            fn tiny(n: F, d: F) -> bool {
                if !n.is_finite_non_zero() || !d.is_finite_non_zero() {
                    return false;
                }
                let mantissa = |value: F| {
                    let mut exponent = 0;
                    let fraction = value.frexp(&mut exponent).abs();
                    (fraction, exponent)
                };
                let ((a, i), (b, j)) = (mantissa(n), mantissa(d));
                // n / d = a / b * 2^(i-j), a / b in (1/2, 2)
                let exponent = i - j - if a < b { 1 } else { 0 };
                exponent < F::MIN_EXP
            }

            /// The scaled operand and whether the quotient is to be scaled back; S0 is the operand, S1 the denominator,
            /// S2 the numerator.
            pub fn div_scale(s: &[u64]) -> (u64, bool) {
                let (den, num) = (from(s[1]), from(s[2]));
                let one = F::from_u128(1).value;
                let scaled = |by: i32| scale(s[0], by, Round::NearestTiesToEven);
                let only = |which: usize, by: i32| if s[0] == s[which] { scaled(by) } else { s[0] };
                if num.is_zero() || den.is_zero() {
                    (F::NAN.to_bits() as u64, false)
                } else if biased(s[2]) - biased(s[1]) >= $far {
                    (only(1, $scale), true)
                } else if den.is_denormal() {
                    (scaled($scale), false)
                } else if tiny(one, den) && tiny(num, den) {
                    // Down: the manuals' text has the scale of a small denominator here too, which would overflow.
                    (only(1, -$scale), true)
                } else if tiny(one, den) {
                    (scaled(-$scale), false)
                } else if tiny(num, den) {
                    (only(2, $scale), true)
                } else if biased(s[2]) <= $fraction + i64::from($fraction == 52) {
                    (scaled($scale), false)
                } else {
                    (s[0], false)
                }
            }

            pub fn div_fixup(s: &[u64]) -> u64 {
                let (den, num) = (from(s[1]), from(s[2]));
                let sign = (s[1] ^ s[2]) & SIGN;
                let infinity = EXPONENT << $fraction;
                if num.is_nan()
                    || den.is_nan()
                    || (num.is_zero() && den.is_zero())
                    || (num.is_infinite() && den.is_infinite())
                {
                    infinity | 1 << ($fraction - 1)
                } else if den.is_zero() || num.is_infinite() {
                    sign | infinity
                } else if den.is_infinite() || num.is_zero() || biased(s[2]) - biased(s[1]) < $underflow {
                    sign
                } else if from(s[0]).is_nan() {
                    sign | infinity
                } else {
                    sign | s[0] & (SIGN - 1)
                }
            }

            /// The sum is scaled back by the numerator's size, and rounded once.
            pub fn div_fmas(s: &[u64], round: Round) -> u64 {
                if s[3] == 0 {
                    return fma(s[0], s[1], s[2], round);
                }
                let by = if biased(s[2]) > (EXPONENT >> 1) as i64 { $scale } else { -$scale };
                scaled!(F, s, by, round)
            }
        }
    };
}

division_of!(f32, 23, 8, 96, 64, -150);
division_of!(f64, 52, 11, 768, 128, -1075);
division_of!(f16, 10, 5, 1000, 0, -1000);

/// The definition of a step of a division.
pub fn definition(name: &str) -> Option<Lane> {
    let op = |dst, src, f| Some(Lane { dst, src, f, loose: None, carry: None });
    match name {
        "v_div_scale_f32" => Some(Lane {
            dst: T::F32,
            src: &[T::B32, T::B32, T::B32],
            f: |_, s| f32::div_scale(s).0,
            loose: None,
            carry: Some(|_, s| f32::div_scale(s).1),
        }),
        "v_div_scale_f64" => Some(Lane {
            dst: T::F64,
            src: &[T::B64, T::B64, T::B64],
            f: |_, s| f64::div_scale(s).0,
            loose: None,
            carry: Some(|_, s| f64::div_scale(s).1),
        }),
        "v_div_fmas_f32" => op(T::F32, &[T::B32, T::B32, T::B32, T::Mask], |e, s| f32::div_fmas(s, e.round32)),
        "v_div_fmas_f64" => op(T::F64, &[T::B64, T::B64, T::B64, T::Mask], |e, s| f64::div_fmas(s, e.round64)),
        "v_div_fixup_f32" => op(T::F32, &[T::F32, T::F32, T::F32], |_, s| f32::div_fixup(s)),
        "v_div_fixup_f64" => op(T::F64, &[T::F64, T::F64, T::F64], |_, s| f64::div_fixup(s)),
        "v_div_fixup_f16" | "v_div_fixup_legacy_f16" => op(T::F16, &[T::F16, T::F16, T::F16], |_, s| f16::div_fixup(s)),
        _ => None,
    }
}
