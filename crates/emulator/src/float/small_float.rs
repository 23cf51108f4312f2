//! Floats of 4 to 8 bits, and bfloat16: the formats of the OCP specifications, and those of CDNA3, whose 8-bit ones
//! have no negative zero and no infinity.

use super::Round;
use crate::float;

/// What the largest codes of a format mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Special {
    /// Numbers, all of them.
    None,
    /// The largest code of either sign is NaN; there is no infinity (OCP E4M3).
    Nan,
    /// As in IEEE formats: the largest exponent is infinity and NaN (OCP E5M2).
    Ieee,
    /// Only what would be -0 is NaN (CDNA3).
    MinusZero,
}

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    special: Special,
}

impl Format {
    const fn new(exponent_bits: u32, mantissa_bits: u32, bias: i32, special: Special) -> Format {
        Format { exponent_bits, mantissa_bits, bias, special }
    }

    /// FP8 and BF8 as OCP has them (gfx950, gfx12).
    pub(crate) const E4M3: Format = Format::new(4, 3, 7, Special::Nan);
    pub(crate) const E5M2: Format = Format::new(5, 2, 15, Special::Ieee);
    /// FP8 and BF8 of CDNA3.
    pub(crate) const E4M3_FNUZ: Format = Format::new(4, 3, 8, Special::MinusZero);
    pub(crate) const E5M2_FNUZ: Format = Format::new(5, 2, 16, Special::MinusZero);
    /// FP6, BF6 and FP4.
    pub(crate) const E2M3: Format = Format::new(2, 3, 1, Special::None);
    pub(crate) const E3M2: Format = Format::new(3, 2, 3, Special::None);
    pub(crate) const E2M1: Format = Format::new(2, 1, 1, Special::None);

    /// The format that `fp8` or `bf8` names.
    pub(crate) const fn eight(brain: bool, fnuz: bool) -> Format {
        match (brain, fnuz) {
            (false, false) => Self::E4M3,
            (true, false) => Self::E5M2,
            (false, true) => Self::E4M3_FNUZ,
            (true, true) => Self::E5M2_FNUZ,
        }
    }

    /// The format that a field of matrix instructions says.
    pub(crate) fn by_code(code: u8) -> Option<Format> {
        [Self::E4M3, Self::E5M2, Self::E2M3, Self::E3M2, Self::E2M1].get(usize::from(code)).copied()
    }

    pub(crate) const fn bits(self) -> u32 {
        1 + self.exponent_bits + self.mantissa_bits
    }

    const fn sign(self) -> u8 {
        1 << (self.bits() - 1)
    }

    /// The code of the largest number.
    const fn largest(self) -> u8 {
        let all = self.sign() - 1;
        match self.special {
            Special::None | Special::MinusZero => all,
            Special::Nan => all - 1,
            Special::Ieee => all - (1 << self.mantissa_bits),
        }
    }

    const fn nan(self) -> u8 {
        match self.special {
            Special::MinusZero => self.sign(),
            _ => self.sign() - 1,
        }
    }
}

/// The number that a code stands for.
pub(crate) fn decode(format: Format, bits: u8) -> f64 {
    let code = bits & (format.sign() - 1);
    let negative = bits & format.sign() != 0;
    let sign = if negative { -1.0 } else { 1.0 };
    match format.special {
        Special::MinusZero if negative && code == 0 => return f64::NAN,
        Special::Nan | Special::Ieee if code > format.largest() => {
            let infinite = format.special == Special::Ieee && code == format.largest() + 1;
            return if infinite { sign * f64::INFINITY } else { f64::NAN };
        }
        _ => {}
    }
    let fraction = f64::from(code & ((1 << format.mantissa_bits) - 1)) * 2f64.powi(-(format.mantissa_bits as i32));
    match i32::from(code >> format.mantissa_bits) {
        0 => sign * fraction * 2f64.powi(1 - format.bias),
        exponent => sign * (1.0 + fraction) * 2f64.powi(exponent - format.bias),
    }
}

/// The nearest code to a number that is exact or rounded to odd, ties to even. What is too large becomes the largest
/// number with `saturate`, and else infinity or NaN, whichever the format has; a format with neither always saturates.
pub(crate) fn encode(format: Format, value: f64, saturate: bool) -> u8 {
    if value.is_nan() {
        // A format without NaN has its largest number for it (OCP leaves this open).
        return if format.special == Special::None { format.largest() } else { format.nan() };
    }
    let sign = if value.is_sign_negative() { format.sign() } else { 0 };
    let magnitude = value.abs();
    let exponent = if magnitude == 0.0 { i32::MIN } else { float::frexp64(magnitude).1 - 1 };
    let too_large = |sign: u8| match format.special {
        Special::None => sign | format.largest(),
        _ if saturate => sign | format.largest(),
        Special::Ieee => sign | (format.largest() + 1),
        Special::Nan => sign | format.nan(),
        Special::MinusZero => format.nan(),
    };
    if magnitude.is_infinite() || exponent > 1 << format.exponent_bits {
        return too_large(sign);
    }
    let exponent = exponent.max(1 - format.bias);
    let whole = float::ldexp64(magnitude, format.mantissa_bits as i32 - exponent).round_ties_even() as u32;
    // The implicit bit, or a carry out of the fraction, counts the exponent up by itself.
    let code = (((exponent + format.bias - 1) as u32) << format.mantissa_bits) + whole;
    if code > u32::from(format.largest()) {
        return too_large(sign);
    }
    if code == 0 && format.special == Special::MinusZero { 0 } else { sign | code as u8 }
}

/// The fraction bits of what is converted.
pub(crate) const SINGLE: u32 = 23;

/// Exponent and fraction bits, without sign, of a finite number with random bits added below what stays of its
/// fraction, and the rest cut off (HIP, `amd_hip_ocp_host.hpp`, `from_float_sr`; rocm-systems, rocjitsu). `precision`
/// is the number's fraction bits; the topmost random bit stands directly below the last fraction bit that stays. What
/// is too small for the format's exponents is shifted to the right before, and loses what falls off.
fn rounded_stochastically(value: f64, random: u32, (precision, mantissa_bits, bias): (u32, u32, i32)) -> u32 {
    let magnitude = value.abs();
    if magnitude == 0.0 {
        return 0;
    }
    let exponent = float::frexp64(magnitude).1 - 1;
    let smallest = 1 - bias;
    // With the implicit bit, which counts the exponent up by itself.
    let whole = float::ldexp64(magnitude, precision as i32 - exponent) as u32;
    let shifted = whole.checked_shr((smallest - exponent).max(0) as u32).unwrap_or(0);
    let sum = shifted + (random >> (32 - precision + mantissa_bits));
    (((exponent.max(smallest) - smallest) as u32) << mantissa_bits) + (sum >> (precision - mantissa_bits))
}

/// The code of a number of so many fraction bits, rounded by random bits ([`rounded_stochastically`]); too large and
/// not finite as [`encode`].
pub(crate) fn encode_stochastic(format: Format, value: f64, precision: u32, random: u32, saturate: bool) -> u8 {
    if !value.is_finite() {
        return encode(format, value, saturate);
    }
    let code = rounded_stochastically(value, random, (precision, format.mantissa_bits, format.bias));
    if code > u32::from(format.largest()) {
        return encode(format, f64::INFINITY.copysign(value), saturate);
    }
    let sign = if value.is_sign_negative() { format.sign() } else { 0 };
    if code == 0 && format.special == Special::MinusZero { 0 } else { sign | code as u8 }
}

/// The same for half precision, or bfloat16 with `brain`.
pub(crate) fn half_stochastic(value: f32, brain: bool, random: u32, saturate: bool) -> u16 {
    let wide = f64::from(value);
    if !value.is_finite() {
        return if brain { round_bf16(wide, Round::Nearest) } else { float::to_f16(wide, Round::Nearest) };
    }
    let (format, infinity) = if brain { ((SINGLE, 7, 127), 0x7f80) } else { ((SINGLE, 10, 15), 0x7c00) };
    let code = rounded_stochastically(wide, random, format).min(infinity);
    let code = if code == infinity && saturate { code - 1 } else { code };
    code as u16 | if value.is_sign_negative() { 0x8000 } else { 0 }
}

/// A number that is exact or rounded to odd as bfloat16.
pub(crate) fn round_bf16(value: f64, round: Round) -> u16 {
    // Single precision keeps enough bits if they are cut off with the last one odd.
    let cut = float::to_f32(value, Round::Zero);
    let bits = cut.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    let odd = bits | u32::from(f64::from(cut) != value);
    let (high, rest) = (odd >> 16, odd & 0xffff);
    let up = match round {
        Round::Nearest => rest > 0x8000 || (rest == 0x8000 && high & 1 != 0),
        Round::Zero => false,
        Round::Up => rest != 0 && value > 0.0,
        Round::Down => rest != 0 && value < 0.0,
    };
    (high + u32::from(up)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Format; 7] =
        [Format::E4M3, Format::E5M2, Format::E4M3_FNUZ, Format::E5M2_FNUZ, Format::E2M3, Format::E3M2, Format::E2M1];

    #[test]
    fn codes_survive_the_way_through_numbers() {
        for format in ALL {
            for bits in 0..=((1_u16 << format.bits()) - 1) as u8 {
                let value = decode(format, bits);
                if value.is_nan() {
                    assert!(decode(format, encode(format, value, false)).is_nan());
                } else {
                    assert_eq!(encode(format, value, false), bits, "{format:?} {value}");
                }
            }
        }
    }

    #[test]
    fn largest_numbers() {
        let largest = [448.0, 57344.0, 240.0, 57344.0, 7.5, 28.0, 6.0];
        for (format, largest) in ALL.into_iter().zip(largest) {
            assert_eq!(decode(format, format.largest()), largest, "{format:?}");
            assert_eq!(encode(format, 1e9, true), format.largest());
        }
        assert_eq!(encode(Format::E4M3, 1e9, false), 0x7f, "NaN");
        assert_eq!(encode(Format::E5M2, -1e9, false), 0xfc, "infinity");
        assert_eq!(encode(Format::E4M3_FNUZ, 1e9, false), 0x80, "NaN");
        assert_eq!(encode(Format::E2M1, f64::INFINITY, false), 0x7);
    }

    #[test]
    fn ties_go_to_even() {
        assert_eq!(encode(Format::E2M1, 2.5, true), 0b0100, "2, not 3");
        assert_eq!(encode(Format::E2M1, 3.5, true), 0b0110, "4, not 3");
        assert_eq!(encode(Format::E2M1, 0.25, true), 0);
        assert_eq!(encode(Format::E2M1, 0.75, true), 0b0010, "1, not 0.5");
        assert_eq!(encode(Format::E4M3, 464.0, true), 0x7e);
        assert_eq!(encode(Format::E4M3, 464.0, false), 0x7e, "half a unit above the largest number rounds to it");
        assert_eq!(encode(Format::E4M3, 465.0, false), 0x7f);
    }

    #[test]
    fn bfloat_rounding_is_correct() {
        for (value, expected) in [
            (1.0, 0x3f80),
            (1.00390625, 0x3f80),
            (1.01171875, 0x3f82),
            (1.0039062500000002, 0x3f81),
            (f64::MAX, 0x7f80),
        ] {
            assert_eq!(round_bf16(value, Round::Nearest), expected, "{value}");
        }
        assert_eq!(round_bf16(-1.001, Round::Down), 0xbf81);
        assert_eq!(round_bf16(-1.001, Round::Up), 0xbf80);
        assert!(from_nan(round_bf16(f64::NAN, Round::Nearest)));
    }

    /// The same by fractions: of the random numbers that are added, as many round up as is left of the number,
    /// counted in units of the last place.
    #[test]
    fn random_bits_round_up_as_often_as_a_number_is_nearer_to_the_next() {
        for format in ALL {
            let step = 32 - SINGLE + format.mantissa_bits;
            for code in 0..format.largest() {
                let (low, high) = (decode(format, code), decode(format, code + 1));
                for eighths in 0..8_u32 {
                    let value = low + (high - low) * f64::from(eighths) / 8.0;
                    let ups = (0..8_u32).filter(|n| {
                        let found = encode_stochastic(format, value, SINGLE, (n << 29) | ((1 << step) - 1), false);
                        assert!(found == code || found == code + 1, "{format:?} {value}: {found}");
                        found == code + 1
                    });
                    assert_eq!(ups.count(), eighths as usize, "{format:?} {value}");
                }
            }
        }
    }

    #[test]
    fn halves_are_cut_off_after_random_bits_were_added() {
        for (value, brain, random, code) in [
            (1.0, false, u32::MAX, 0x3c00),
            (1.0 + 1.0 / 2048.0, false, 0x7fff_ffff, 0x3c00),
            (1.0 + 1.0 / 2048.0, false, 0x8000_0000, 0x3c01),
            (-65519.0, false, u32::MAX, 0xfc00),
            (65504.0, false, u32::MAX, 0x7bff),
            (2f32.powi(-25), false, 0x8000_0000, 1),
            (2f32.powi(-25), false, 0x7fff_ffff, 0),
            (1.0 + 1.0 / 256.0, true, 0x7fff_ffff, 0x3f80),
            (1.0 + 1.0 / 256.0, true, 0x8000_0000, 0x3f81),
            (f32::MAX, true, 0x0001_0000, 0x7f80),
            (f32::MAX, true, 0x0000_ffff, 0x7f7f),
            (f32::INFINITY, true, 0, 0x7f80),
        ] {
            assert_eq!(half_stochastic(value, brain, random, false), code, "{value} {random:#x}");
        }
        assert_eq!(half_stochastic(65519.0, false, u32::MAX, true), 0x7bff);
    }

    fn from_nan(bits: u16) -> bool {
        float::from_bf16(bits).is_nan()
    }
}
