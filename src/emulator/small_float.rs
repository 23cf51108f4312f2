//! Floats of 4 to 8 bits, and bfloat16: the formats of the OCP specifications, and those of CDNA3, whose 8-bit ones have no negative zero and no infinity.

use super::float::{self, Round};

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
pub(super) struct Format {
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
    pub(super) const E4M3: Format = Format::new(4, 3, 7, Special::Nan);
    pub(super) const E5M2: Format = Format::new(5, 2, 15, Special::Ieee);
    /// FP8 and BF8 of CDNA3.
    pub(super) const E4M3_FNUZ: Format = Format::new(4, 3, 8, Special::MinusZero);
    pub(super) const E5M2_FNUZ: Format = Format::new(5, 2, 16, Special::MinusZero);
    /// FP6, BF6 and FP4.
    pub(super) const E2M3: Format = Format::new(2, 3, 1, Special::None);
    pub(super) const E3M2: Format = Format::new(3, 2, 3, Special::None);
    pub(super) const E2M1: Format = Format::new(2, 1, 1, Special::None);

    /// The format that `fp8` or `bf8` names.
    pub(super) const fn eight(brain: bool, fnuz: bool) -> Format {
        match (brain, fnuz) {
            (false, false) => Self::E4M3,
            (true, false) => Self::E5M2,
            (false, true) => Self::E4M3_FNUZ,
            (true, true) => Self::E5M2_FNUZ,
        }
    }

    /// The format that a field of matrix instructions says.
    pub(super) fn by_code(code: u8) -> Option<Format> {
        [Self::E4M3, Self::E5M2, Self::E2M3, Self::E3M2, Self::E2M1].get(usize::from(code)).copied()
    }

    pub(super) const fn bits(self) -> u32 {
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
pub(super) fn decode(format: Format, bits: u8) -> f64 {
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

/// The nearest code to a number that is exact or rounded to odd, ties to even. What is too large becomes the largest number with `saturate`, and else
/// infinity or NaN, whichever the format has; a format with neither always saturates.
pub(super) fn encode(format: Format, value: f64, saturate: bool) -> u8 {
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

/// The code of a single-precision number with random bits added below the mantissa that stays, and the rest cut off.
pub(super) fn encode_stochastic(format: Format, value: f32, random: u32, saturate: bool) -> u8 {
    if !value.is_finite() {
        return encode(format, value.into(), saturate);
    }
    let cut = 23 - format.mantissa_bits;
    let sum = f32::from_bits((value.to_bits() + (random >> (32 - cut))) & !((1 << cut) - 1));
    encode(format, sum.into(), saturate)
}

/// A number that is exact or rounded to odd as bfloat16.
pub(super) fn round_bf16(value: f64, round: Round) -> u16 {
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

    const ALL: [Format; 7] = [Format::E4M3, Format::E5M2, Format::E4M3_FNUZ, Format::E5M2_FNUZ, Format::E2M3, Format::E3M2, Format::E2M1];

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
        for (value, expected) in
            [(1.0, 0x3f80), (1.00390625, 0x3f80), (1.01171875, 0x3f82), (1.0039062500000002, 0x3f81), (f64::MAX, 0x7f80)]
        {
            assert_eq!(round_bf16(value, Round::Nearest), expected, "{value}");
        }
        assert_eq!(round_bf16(-1.001, Round::Down), 0xbf81);
        assert_eq!(round_bf16(-1.001, Round::Up), 0xbf80);
        assert!(from_nan(round_bf16(f64::NAN, Round::Nearest)));
    }

    fn from_nan(bits: u16) -> bool {
        float::from_bf16(bits).is_nan()
    }
}
