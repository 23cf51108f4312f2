//! The simple cases of divisions and transcendental functions, for loops of vector instructions
//! ([`crate::lanes::simplified`]): functions of a lane without branches and calls. Their bit says that the case is
//! another one, which [`super::float_ops`] defines.
//!
//! A transcendental result is the rounded value of the host's double-precision function, whose relative error is
//! below 2^-51. Here it is computed with an error below [`ERROR`], and the case is simple only if all numbers that are
//! so near round to the same one. So both give the same bits.

use crate::float::{Env, flush32};

const SIGN32: u64 = 1 << 31;
const SIGN64: u64 = 1 << 63;

/// A bound of the relative errors of the functions here; they are below 2^-45.
const ERROR: f64 = 1.0 / (1_u64 << 43) as f64;

fn exponent32(bits: u64) -> i32 {
    (bits >> 23 & 0xff) as i32
}

fn exponent64(bits: u64) -> i32 {
    (bits >> 52 & 0x7ff) as i32
}

/// Neither zero nor a denormal, infinity or NaN.
fn is_normal32(bits: u64) -> bool {
    // In 32 bits: the loop then has no wider lanes.
    ((bits as u32) >> 23 & 0xff).wrapping_sub(1) < 254
}

fn is_normal64(bits: u64) -> bool {
    (bits >> 52 & 0x7ff).wrapping_sub(1) < 2046
}

/// Neither operand has to be scaled: both are normal, the numerator is not small, its reciprocal and the quotient are
/// normal.
pub(super) fn div_scale32(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    let (den, num) = (exponent32(s[1]), exponent32(s[2]));
    let simple = (1..=252).contains(&den) & (24..=254).contains(&num) & (-125..96).contains(&(num - den));
    (s[0], !simple)
}

pub(super) fn div_scale64(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    let (den, num) = (exponent64(s[1]), exponent64(s[2]));
    let simple = (1..=2044).contains(&den) & (54..=2046).contains(&num) & (-1021..768).contains(&(num - den));
    (s[0], !simple)
}

/// Without scaling, and no NaN: which of several NaNs comes out depends on the order of operands, and so on the
/// compiler.
pub(super) fn div_fmas32(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    let single = |bits: u64| f32::from_bits(bits as u32);
    let value = single(s[0]).mul_add(single(s[1]), single(s[2]));
    (u64::from(value.to_bits()), value.is_nan())
}

pub(super) fn div_fmas64(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    let value = f64::from_bits(s[0]).mul_add(f64::from_bits(s[1]), f64::from_bits(s[2]));
    (value.to_bits(), value.is_nan())
}

/// The quotient of two normal numbers, with their sign.
pub(super) fn div_fixup32(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    let simple = is_normal32(s[1])
        & is_normal32(s[2])
        & (exponent32(s[0]) != 255)
        & (exponent32(s[2]) - exponent32(s[1]) >= -150);
    (s[0] & !SIGN32 | (s[1] ^ s[2]) & SIGN32, !simple)
}

pub(super) fn div_fixup64(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    let simple = is_normal64(s[1])
        & is_normal64(s[2])
        & (exponent64(s[0]) != 2047)
        & (exponent64(s[2]) - exponent64(s[1]) >= -1075);
    (s[0] & !SIGN64 | (s[1] ^ s[2]) & SIGN64, !simple)
}

/// A normal number whose scaled value is normal.
pub(super) fn ldexp32(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    let by = (s[1] as u32 as i32).clamp(-400, 400);
    let exponent = exponent32(s[0]) + by;
    let simple = is_normal32(s[0]) & (1..=254).contains(&exponent);
    (u64::from((s[0] as u32).wrapping_add((by as u32) << 23)), !simple)
}

pub(super) fn ldexp64(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    let by = (s[1] as u32 as i32).clamp(-4000, 4000);
    let exponent = exponent64(s[0]) + by;
    let simple = is_normal64(s[0]) & (1..=2046).contains(&exponent);
    (s[0].wrapping_add((i64::from(by) as u64) << 52), !simple)
}

pub(super) fn mantissa32(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    (s[0] & !(0xff << 23) | 126 << 23, !is_normal32(s[0]))
}

pub(super) fn mantissa64(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    (s[0] & !(0x7ff << 52) | 1022 << 52, !is_normal64(s[0]))
}

pub(super) fn exponent_of32(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    (u64::from((exponent32(s[0]) - 126) as u32), !is_normal32(s[0]))
}

pub(super) fn exponent_of64(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    (u64::from((exponent64(s[0]) - 1022) as u32), !is_normal64(s[0]))
}

/// A value in single precision, and whether numbers near it are rounded to another one.
fn rounded(value: f64) -> (u64, bool) {
    let (less, more) = ((value * (1.0 - ERROR)) as f32, (value * (1.0 + ERROR)) as f32);
    (u64::from(less.to_bits()), less.to_bits() != more.to_bits())
}

/// A polynomial by its coefficients, the highest first.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    // No fused multiply-add: a host without it would call a function.
    coefficients.into_iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// Added to a small integer, it leaves that in the lowest bits of the sum.
const SHIFT: f64 = 6_755_399_441_055_744.0;

/// Two to a power: of a whole number, and of the rest by the exponential series.
pub(super) fn exp2(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    const LN_2: f64 = std::f64::consts::LN_2;
    let x = f32::from_bits(flush32(s[0] as u32));
    // Normal results only.
    let simple = x.abs() < 125.0;
    let x = f64::from(x);
    let whole = x.round_ties_even();
    let power = polynomial(
        (x - whole) * LN_2,
        [
            1.0 / 479_001_600.0,
            1.0 / 39_916_800.0,
            1.0 / 3_628_800.0,
            1.0 / 362_880.0,
            1.0 / 40_320.0,
            1.0 / 5_040.0,
            1.0 / 720.0,
            1.0 / 120.0,
            1.0 / 24.0,
            1.0 / 6.0,
            0.5,
            1.0,
            1.0,
        ],
    );
    let scale = f64::from_bits((whole + (SHIFT + 1023.0)).to_bits() << 52);
    let (bits, near) = rounded(power * scale);
    (bits, near | !simple)
}

/// The logarithm to base 2: the exponent, and of a number near 1 twice the inverse hyperbolic tangent of
/// `(x - 1) / (x + 1)`, by its series.
pub(super) fn log2(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    /// The bits of the least single-precision number not below the square root of one half.
    const ROOT: u32 = 0x3f35_04f4;
    const TWICE: f64 = 2.0 * std::f64::consts::LOG2_E;
    let bits = s[0] as u32;
    let above = bits.wrapping_sub(ROOT);
    let exponent = (above as i32) >> 23;
    let near_one = f64::from(f32::from_bits(bits.wrapping_sub(above & 0xff80_0000)));
    let ratio = (near_one - 1.0) / (near_one + 1.0);
    let series = polynomial(
        ratio * ratio,
        [
            TWICE / 21.0,
            TWICE / 19.0,
            TWICE / 17.0,
            TWICE / 15.0,
            TWICE / 13.0,
            TWICE / 11.0,
            TWICE / 9.0,
            TWICE / 7.0,
            TWICE / 5.0,
            TWICE / 3.0,
            TWICE,
        ],
    );
    let (value, near) = rounded(f64::from(exponent) + ratio * series);
    (value, near | !is_normal32(s[0]) | (bits >> 31 != 0))
}

/// The reciprocal of a square root: in single precision, then one step of Newton's method.
pub(super) fn reciprocal_root(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    let x = f32::from_bits(s[0] as u32);
    let first = f64::from(1.0 / x.sqrt());
    let (bits, near) = rounded(first * (1.5 - 0.5 * f64::from(x) * first * first));
    (bits, near | !is_normal32(s[0]) | (s[0] & SIGN32 != 0))
}

/// Sine and cosine of an angle in turns that is no whole number of quarters.
#[inline(always)]
fn sine_and_cosine(bits: u64) -> (f64, f64, u64, bool) {
    /// The lower part of a quarter turn, which is below the last bit of the upper one.
    const LOWER: f64 = 6.123_233_995_736_766e-17;
    let turns = f64::from(f32::from_bits(bits as u32));
    let part = turns - turns.round_ties_even();
    let quarters = (part * 4.0).round_ties_even();
    // Rounded as the general function rounds it: near a zero of the function that shows in the result.
    let angle = part * std::f64::consts::TAU;
    let rest = angle - quarters * std::f64::consts::FRAC_PI_2 - quarters * LOWER;
    let square = rest * rest;
    let sine = rest
        * polynomial(
            square,
            [
                -1.0 / 1_307_674_368_000.0,
                1.0 / 6_227_020_800.0,
                -1.0 / 39_916_800.0,
                1.0 / 362_880.0,
                -1.0 / 5_040.0,
                1.0 / 120.0,
                -1.0 / 6.0,
                1.0,
            ],
        );
    let cosine = polynomial(
        square,
        [
            1.0 / 20_922_789_888_000.0,
            -1.0 / 87_178_291_200.0,
            1.0 / 479_001_600.0,
            -1.0 / 3_628_800.0,
            1.0 / 40_320.0,
            -1.0 / 720.0,
            1.0 / 24.0,
            -0.5,
            1.0,
        ],
    );
    let simple = turns.is_finite() & (part * 4.0 != quarters);
    (sine, cosine, (quarters + SHIFT).to_bits(), simple)
}

/// A value or its negative.
fn with_sign(value: f64, negative: u64) -> f64 {
    f64::from_bits(value.to_bits() ^ (negative << 63))
}

pub(super) fn sine(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    let (sine, cosine, quarters, simple) = sine_and_cosine(s[0]);
    let value = if quarters & 1 != 0 { cosine } else { sine };
    let (bits, near) = rounded(with_sign(value, quarters >> 1 & 1));
    (bits, near | !simple)
}

pub(super) fn cosine(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    let (sine, cosine, quarters, simple) = sine_and_cosine(s[0]);
    let value = if quarters & 1 != 0 { sine } else { cosine };
    let (bits, near) = rounded(with_sign(value, (quarters + 1) >> 1 & 1));
    (bits, near | !simple)
}
