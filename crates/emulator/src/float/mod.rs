//! Floating-point arithmetic as the vector ALU does it: rounding and denormal modes, half precision, exact residues.
//!
//! Single and half precision operations are done in double precision with *rounding to odd* (a result that is not exact
//! gets an odd last bit), which makes the final rounding to the narrow format correct in every mode.

pub(crate) mod directed_rounding;
pub(crate) mod small_float;

/// Rounding modes, as in the MODE register's `FP_ROUND` fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Round {
    Nearest,
    Up,
    Down,
    Zero,
}

/// The part of MODE that arithmetic depends on, and the clamp bit of the instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Env {
    /// Of single precision.
    pub round32: Round,
    /// Of double and half precision.
    pub round64: Round,
    /// Single-precision denormals are flushed on input.
    pub flush_in32: bool,
    pub flush_out32: bool,
    /// Double- and half-precision denormals are flushed on input.
    pub flush_in64: bool,
    pub flush_out64: bool,
    pub dx10_clamp: bool,
    pub ieee: bool,
    /// Overflowing half-precision results become the largest number (`FP16_OVFL`).
    pub half_overflow: bool,
    /// The instruction's clamp bit.
    pub clamp: bool,
    /// The truth table of `v_bitop3`.
    pub table: u8,
    /// The byte or half of a source that conversions take.
    pub part: u8,
}

impl Env {
    /// What nearly all compiled code runs with: rounding to nearest, denormals kept, no clamp.
    pub(crate) const USUAL: Env = Env {
        round32: Round::Nearest,
        round64: Round::Nearest,
        flush_in32: false,
        flush_out32: false,
        flush_in64: false,
        flush_out64: false,
        dx10_clamp: true,
        ieee: true,
        half_overflow: false,
        clamp: false,
        table: 0,
        part: 0,
    };

    /// What gfx8's does, and whatever is compiled to flush denormals: the same, but those of single precision are taken
    /// and made zeros.
    pub(crate) const FLUSHING: Env = Env { flush_in32: true, flush_out32: true, ..Env::USUAL };

    /// From MODE (AMD ISA guides, "Mode register"): round 3:0, denorm 7:4, DX10_CLAMP 8, IEEE 9, FP16_OVFL 23.
    pub(crate) fn from_mode(mode: u32) -> Self {
        let round = |bits: u32| match bits & 3 {
            0 => Round::Nearest,
            1 => Round::Up,
            2 => Round::Down,
            _ => Round::Zero,
        };
        Env {
            round32: round(mode),
            round64: round(mode >> 2),
            flush_in32: mode & 0x10 == 0,
            flush_out32: mode & 0x20 == 0,
            flush_in64: mode & 0x40 == 0,
            flush_out64: mode & 0x80 == 0,
            dx10_clamp: mode & 0x100 != 0,
            ieee: mode & 0x200 != 0,
            half_overflow: mode & 1 << 23 != 0,
            clamp: false,
            table: 0,
            part: 0,
        }
    }
}

/// A double with an exact last bit or an odd one: rounds correctly to any narrower format.
fn odd(value: f64, residue: f64) -> f64 {
    if residue == 0.0 || !value.is_finite() || !residue.is_finite() {
        return value;
    }
    if value == 0.0 {
        return residue;
    }
    let mut bits = value.to_bits();
    if (residue < 0.0) != (value < 0.0) {
        bits -= 1;
    }
    f64::from_bits(bits | 1)
}

/// The rounding error of `a + b = s` (Knuth).
fn sum_residue(a: f64, b: f64, s: f64) -> f64 {
    let bb = s - a;
    (a - (s - bb)) + (b - bb)
}

/// `a + b` rounded to odd.
pub(crate) fn add_odd(a: f64, b: f64) -> f64 {
    let s = a + b;
    if s.is_finite() { odd(s, sum_residue(a, b, s)) } else { s }
}

/// `a * b + c` rounded to odd, where `a * b` is exact in double precision (products of single or half precision).
pub(crate) fn fma_odd(a: f64, b: f64, c: f64) -> f64 {
    add_odd(a * b, c)
}

/// A quotient rounded to odd.
pub(crate) fn div_odd(a: f64, b: f64) -> f64 {
    let q = a / b;
    if !q.is_finite() || q == 0.0 || !b.is_finite() {
        return q;
    }
    let rest = (-q).mul_add(b, a);
    odd(q, if b < 0.0 { -rest } else { rest })
}

/// A square root rounded to odd.
pub(crate) fn sqrt_odd(a: f64) -> f64 {
    let r = a.sqrt();
    if !r.is_finite() || r == 0.0 { r } else { odd(r, (-r).mul_add(r, a)) }
}

/// A sum rounded to odd; an exact zero sum of numbers with different signs is negative when rounding down.
pub(crate) fn sum_odd(a: f64, b: f64, round: Round) -> f64 {
    let sum = add_odd(a, b);
    if sum == 0.0 && round == Round::Down && a.is_sign_negative() != b.is_sign_negative() { -0.0 } else { sum }
}

#[inline(always)]
pub(crate) fn add64(e: &Env, a: f64, b: f64) -> f64 {
    if e.round64 == Round::Nearest { a + b } else { directed_rounding::fma(a, 1.0, b, 0, e.round64) }
}

#[inline(always)]
pub(crate) fn mul64(e: &Env, a: f64, b: f64) -> f64 {
    if e.round64 == Round::Nearest { a * b } else { directed_mul64(e, a, b) }
}

#[cold]
#[inline(never)]
fn directed_mul64(e: &Env, a: f64, b: f64) -> f64 {
    let p = a * b;
    if a == 0.0 || b == 0.0 {
        return p;
    }
    // A zero of the product's sign changes nothing.
    directed_rounding::fma(a, b, 0.0_f64.copysign(p), 0, e.round64)
}

#[inline(always)]
pub(crate) fn fma64(e: &Env, a: f64, b: f64, c: f64) -> f64 {
    if e.round64 == Round::Nearest { a.mul_add(b, c) } else { directed_rounding::fma(a, b, c, 0, e.round64) }
}

/// `(a * b + c) * 2^exponent`, rounded once.
pub(crate) fn fma64_scaled(e: &Env, a: f64, b: f64, c: f64, exponent: i32) -> f64 {
    directed_rounding::fma(a, b, c, exponent, e.round64)
}

/// `value * 2^exponent`, rounded by the mode where the result is a denormal or too large.
pub(crate) fn scale64(e: &Env, value: f64, exponent: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        value
    } else {
        directed_rounding::fma(value, 1.0, 0.0_f64.copysign(value), exponent, e.round64)
    }
}

/// Rounds a (round-to-odd) double to single precision.
pub(crate) fn to_f32(value: f64, round: Round) -> f32 {
    let nearest = value as f32;
    if round == Round::Nearest || value.is_nan() || value.is_infinite() {
        return nearest;
    }
    let back = f64::from(nearest);
    if back == value {
        return nearest;
    }
    let down = |x: f32| -up32(-x);
    match round {
        Round::Up if back < value => up32(nearest),
        Round::Down if back > value => down(nearest),
        Round::Zero if value > 0.0 && back > value => down(nearest),
        Round::Zero if value < 0.0 && back < value => up32(nearest),
        _ => nearest,
    }
}

fn up32(value: f32) -> f32 {
    if value == 0.0 {
        f32::from_bits(1)
    } else if value == f32::NEG_INFINITY {
        f32::MIN
    } else if value > 0.0 {
        f32::from_bits(value.to_bits() + 1)
    } else {
        f32::from_bits(value.to_bits() - 1)
    }
}

/// Half precision to double: exact.
pub(crate) fn from_f16(bits: u16) -> f64 {
    let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f64::from(bits & 0x3ff);
    match exponent {
        0 => sign * fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::from_bits(f64::NAN.to_bits() | u64::from(bits & 0x3ff) << 42 | u64::from(bits & 0x8000) << 48),
        _ => sign * (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
    }
}

/// Rounds a (round-to-odd) double to half precision.
pub(crate) fn to_f16(value: f64, round: Round) -> u16 {
    let sign = ((value.to_bits() >> 48) & 0x8000) as u16;
    if value.is_nan() {
        return sign | 0x7e00 | ((value.to_bits() >> 42) & 0x1ff) as u16;
    }
    let magnitude = value.abs();
    let away = match round {
        Round::Nearest => None,
        Round::Zero => Some(false),
        Round::Up => Some(value > 0.0),
        Round::Down => Some(value < 0.0),
    };
    if magnitude.is_infinite() {
        return sign | 0x7c00;
    }
    // In units of the last place of the binade (or of the denormals).
    let exponent = (((magnitude.to_bits() >> 52) as i32) - 1023).max(-14);
    let scaled = magnitude * 2f64.powi(10 - exponent);
    let whole = scaled.floor();
    let rest = scaled - whole;
    let whole = whole as u32;
    let up = match away {
        None => rest > 0.5 || (rest == 0.5 && whole & 1 == 1),
        Some(away) => away && rest > 0.0,
    };
    // A denormal has biased exponent 0; carrying out of the fraction moves into the exponent by itself.
    let biased = if whole < 0x400 { 0 } else { (exponent + 15) as u32 };
    let bits = if biased == 0 { whole } else { (biased << 10) + (whole - 0x400) } + u32::from(up);
    if exponent > 15 || bits >= 0x7c00 {
        return if away == Some(false) { sign | 0x7bff } else { sign | 0x7c00 };
    }
    sign | bits as u16
}

/// Rounds a (round-to-odd) double to half precision as MODE says: `FP16_OVFL` makes what overflows the largest number;
/// infinity stays.
pub(crate) fn half_by_mode(env: &Env, value: f64) -> u16 {
    let bits = to_f16(value, env.round64);
    if env.half_overflow && value.is_finite() && bits & 0x7fff == 0x7c00 { bits - 1 } else { bits }
}

/// bfloat16 to double: exact.
pub(crate) fn from_bf16(bits: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(bits) << 16))
}

/// Rounds single precision to bfloat16, to nearest even.
pub(crate) fn to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

pub(crate) fn flush32(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

pub(crate) fn flush64(bits: u64) -> u64 {
    if bits & 0x7ff0_0000_0000_0000 == 0 { bits & 1 << 63 } else { bits }
}

pub(crate) fn flush16(bits: u16) -> u16 {
    if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits }
}

/// `value * 2^exponent`, rounded once where the result is a double denormal.
pub(crate) fn ldexp64(value: f64, exponent: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // Normalise first, so that at most the last multiplication rounds.
    let (mantissa, own) = frexp64(value);
    let total = i64::from(own) + i64::from(exponent);
    if total > 1024 {
        return mantissa.signum() * f64::INFINITY;
    }
    if total >= -1021 {
        return f64::from_bits((mantissa.to_bits() & !(0x7ff << 52)) | ((total + 1022) as u64) << 52);
    }
    if total < -1080 {
        return mantissa.signum() * 0.0;
    }
    mantissa * 2f64.powi(-1000) * 2f64.powi((total + 1000) as i32)
}

/// Significand in ±[0.5, 1) and exponent; zero, infinities and NaN as they are with exponent 0.
pub(crate) fn frexp64(value: f64) -> (f64, i32) {
    if value == 0.0 || !value.is_finite() {
        return (value, 0);
    }
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    if exponent == 0 {
        let (mantissa, exponent) = frexp64(value * 2f64.powi(64));
        return (mantissa, exponent - 64);
    }
    (f64::from_bits((bits & !(0x7ff << 52)) | 1022 << 52), exponent - 1022)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every half-precision value survives the way through double precision, in every mode.
    #[test]
    fn half_round_trip() {
        for bits in 0..=u16::MAX {
            let value = from_f16(bits);
            for round in [Round::Nearest, Round::Up, Round::Down, Round::Zero] {
                let back = to_f16(value, round);
                if value.is_nan() {
                    assert!(from_f16(back).is_nan());
                } else {
                    assert_eq!(back, bits, "{bits:#x}");
                }
            }
        }
    }

    #[test]
    fn half_rounds_between_neighbours() {
        for bits in 0..0x7bff_u16 {
            let (low, high) = (from_f16(bits), from_f16(bits + 1));
            let quarter = low + (high - low) / 4.0;
            let middle = f64::midpoint(low, high);
            assert_eq!(to_f16(quarter, Round::Nearest), bits);
            assert_eq!(to_f16(quarter, Round::Up), bits + 1);
            assert_eq!(to_f16(-quarter, Round::Down), 0x8000 | (bits + 1));
            assert_eq!(to_f16(-quarter, Round::Zero), 0x8000 | bits);
            assert_eq!(to_f16(middle, Round::Nearest) & 1, 0, "ties to even");
        }
        assert_eq!(to_f16(65520.0, Round::Nearest), 0x7c00);
        assert_eq!(to_f16(65519.9, Round::Nearest), 0x7bff);
        assert_eq!(to_f16(1e9, Round::Zero), 0x7bff);
        assert_eq!(to_f16(-1e9, Round::Up), 0xfbff);
    }

    /// Native single-precision arithmetic is the reference in the nearest mode.
    #[test]
    fn odd_rounding_gives_correct_single_precision() {
        let mut state = 1_u64;
        for _ in 0..200_000 {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                f32::from_bits((state >> 32) as u32)
            };
            let (a, b, c) = (next(), next(), next());
            if a.is_nan() || b.is_nan() || c.is_nan() {
                continue;
            }
            let (x, y, z) = (f64::from(a), f64::from(b), f64::from(c));
            let same =
                |ours: f32, native: f32| ours.to_bits() == native.to_bits() || (ours.is_nan() && native.is_nan());
            assert!(same(to_f32(add_odd(x, y), Round::Nearest), a + b));
            assert!(same(to_f32(fma_odd(x, y, z), Round::Nearest), a.mul_add(b, c)), "{a} {b} {c}");
            assert!(same(to_f32(div_odd(x, y), Round::Nearest), a / b));
            assert!(same(to_f32(sqrt_odd(x), Round::Nearest), a.sqrt()));
            let exact = add_odd(x, y);
            if exact.is_finite() {
                assert!(f64::from(to_f32(exact, Round::Down)) <= exact && f64::from(to_f32(exact, Round::Up)) >= exact);
            }
        }
    }

    #[test]
    fn frexp_and_ldexp_are_inverse() {
        for value in [1.0, -3.5, f64::MIN_POSITIVE, f64::from_bits(1), f64::from_bits(0x000f_ffff_ffff_ffff), f64::MAX]
        {
            let (mantissa, exponent) = frexp64(value);
            assert!((0.5..1.0).contains(&mantissa.abs()));
            assert_eq!(ldexp64(mantissa, exponent), value);
        }
        assert_eq!(ldexp64(1.0, 5000), f64::INFINITY);
        assert_eq!(ldexp64(-1.0, -5000), 0.0);
        assert_eq!(ldexp64(1.5, -1074), f64::from_bits(2), "ties to even");
    }
}
