//! Conversions between number formats.

use super::float::{self, Env, Round, add_odd, from_f16, to_f16, to_f32};
use super::lanes::Lane;
use super::op::{High, Meaning, Ty};
use super::vector_float::{s32, w32};
use super::vector_int::lane;

const N: Ty = Ty::None;
const W: Ty = Ty::B32;
const F: Ty = Ty::F32;
const D: Ty = Ty::F64;
const H: Ty = Ty::F16;

fn one(dst: Ty, src: Ty, f: impl Lane) -> Meaning {
    lane(f, dst, [src, N, N, N], High::Zero)
}
fn two(src: Ty, f: impl Lane) -> Meaning {
    lane(f, W, [src, src, N, N], High::Zero)
}

fn x(bits: u64) -> f64 {
    f64::from(s32(bits))
}
fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}
fn hf(bits: u64) -> f64 {
    from_f16(bits as u16)
}
/// An integer as a float: exact in double precision first.
fn float_of(e: &Env, value: f64) -> u64 {
    w32(to_f32(value, e.round32))
}
fn byte(bits: u64, n: u32) -> u64 {
    w32(f32::from((bits >> (8 * n)) as u8))
}

/// A float as a signed or unsigned normalised 16-bit integer.
fn normalised(value: f64, signed: bool) -> u64 {
    if value.is_nan() {
        0
    } else if signed {
        u64::from((value.clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i16 as u16)
    } else {
        u64::from((value.clamp(0.0, 1.0) * 65535.0).round_ties_even() as u16)
    }
}

/// A float as a byte, rounded by the mode and saturated.
fn byte_of(e: &Env, value: f64) -> u64 {
    let rounded = match e.round32 {
        Round::Nearest => value.round_ties_even(),
        Round::Up => value.ceil(),
        Round::Down => value.floor(),
        Round::Zero => value.trunc(),
    };
    u64::from(rounded as u8)
}

/// The 8-bit float formats of CDNA3: exponent bias one above IEEE's, no infinity, one NaN (0x80).
#[derive(Clone, Copy)]
struct Float8 {
    mantissa_bits: u32,
    bias: i32,
}

const FP8: Float8 = Float8 { mantissa_bits: 3, bias: 8 };
const BF8: Float8 = Float8 { mantissa_bits: 2, bias: 16 };

impl Float8 {
    fn value(self, bits: u8) -> f32 {
        if bits == 0x80 {
            return f32::NAN;
        }
        let sign = if bits & 0x80 != 0 { -1.0 } else { 1.0 };
        let mantissa = u32::from(bits) & ((1 << self.mantissa_bits) - 1);
        let exponent = (u32::from(bits) & 0x7f) >> self.mantissa_bits;
        let unit = 2f32.powi(-(self.mantissa_bits as i32));
        if exponent == 0 {
            sign * mantissa as f32 * unit * 2f32.powi(1 - self.bias)
        } else {
            sign * (1.0 + mantissa as f32 * unit) * 2f32.powi(exponent as i32 - self.bias)
        }
    }

    /// Round to nearest even; overflow gives the largest value with `clamp`, else NaN.
    fn bits(self, value: f32, clamp: bool) -> u8 {
        if value.is_nan() {
            return 0x80;
        }
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let magnitude = f64::from(value.abs());
        if magnitude == 0.0 {
            return 0;
        }
        let exponent = if value.is_infinite() { 1000 } else { (float::frexp64(magnitude).1 - 1).max(1 - self.bias) };
        let whole = (magnitude * 2f64.powi(self.mantissa_bits as i32 - exponent.min(200))).round_ties_even();
        let implicit = 1_u32 << self.mantissa_bits;
        let whole = whole.min(f64::from(4 * implicit)) as u32;
        let biased = exponent + self.bias - 1;
        let bits = biased as u32 * implicit + whole;
        if exponent > 200 || bits > 0x7f {
            return if clamp { sign | 0x7f } else { 0x80 };
        }
        if bits == 0 { 0 } else { sign | bits as u8 }
    }
}

fn pack8(format: Float8, e: &Env, s: &[u64; 4]) -> u64 {
    u64::from(format.bits(s32(s[0]), e.clamp)) | u64::from(format.bits(s32(s[1]), e.clamp)) << 8
}

fn unpack8(format: Float8, bits: u64) -> u64 {
    w32(format.value(bits as u8)) | w32(format.value((bits >> 8) as u8)) << 32
}

/// Adds stochastic bits below the mantissa that stays, then truncates.
fn stochastic8(format: Float8, e: &Env, s: &[u64; 4]) -> u64 {
    let value = s32(s[0]);
    if !value.is_finite() {
        return u64::from(format.bits(value, e.clamp));
    }
    let keep = 23 - format.mantissa_bits;
    let noise = (s[1] as u32) >> (32 - keep);
    let sum = f32::from_bits((value.to_bits() + noise) & !((1 << keep) - 1));
    u64::from(format.bits(sum, e.clamp))
}

/// The meaning of a conversion.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    Some(match name {
        "v_cvt_i32_f64" => one(W, D, |_, s| u64::from(d(s[0]) as i32 as u32)),
        "v_cvt_u32_f64" => one(W, D, |_, s| u64::from(d(s[0]) as u32)),
        "v_cvt_f64_i32" => one(D, W, |_, s| f64::from(s[0] as u32 as i32).to_bits()),
        "v_cvt_f64_u32" => one(D, W, |_, s| f64::from(s[0] as u32).to_bits()),
        "v_cvt_f32_i32" => one(F, W, |e, s| float_of(e, f64::from(s[0] as u32 as i32))),
        "v_cvt_f32_u32" => one(F, W, |e, s| float_of(e, f64::from(s[0] as u32))),
        "v_cvt_u32_f32" => one(W, F, |_, s| u64::from(s32(s[0]) as u32)),
        "v_cvt_i32_f32" => one(W, F, |_, s| u64::from(s32(s[0]) as i32 as u32)),
        "v_cvt_rpi_i32_f32" => one(W, F, |_, s| u64::from((x(s[0]) + 0.5).floor() as i32 as u32)),
        "v_cvt_flr_i32_f32" => one(W, F, |_, s| u64::from(x(s[0]).floor() as i32 as u32)),
        "v_cvt_f16_f32" => one(H, F, |e, s| u64::from(to_f16(x(s[0]), e.round64))),
        "v_cvt_f32_f16" => one(F, H, |_, s| w32(hf(s[0]) as f32)),
        "v_cvt_f32_f64" => one(F, D, |e, s| w32(to_f32(d(s[0]), e.round32))),
        "v_cvt_f64_f32" => one(D, F, |_, s| x(s[0]).to_bits()),
        "v_cvt_f32_ubyte0" => one(F, W, |_, s| byte(s[0], 0)),
        "v_cvt_f32_ubyte1" => one(F, W, |_, s| byte(s[0], 1)),
        "v_cvt_f32_ubyte2" => one(F, W, |_, s| byte(s[0], 2)),
        "v_cvt_f32_ubyte3" => one(F, W, |_, s| byte(s[0], 3)),
        "v_cvt_off_f32_i4" => one(F, W, |_, s| w32(((s[0] as i32) << 28 >> 28) as f32 / 16.0)),
        "v_cvt_f16_u16" => one(H, Ty::B16, |e, s| u64::from(to_f16(f64::from(s[0] as u16), e.round64))),
        "v_cvt_f16_i16" => one(H, Ty::B16, |e, s| u64::from(to_f16(f64::from(s[0] as u16 as i16), e.round64))),
        "v_cvt_u16_f16" => one(Ty::B16, H, |_, s| u64::from(hf(s[0]) as u16)),
        "v_cvt_i16_f16" => one(Ty::B16, H, |_, s| u64::from(hf(s[0]) as i16 as u16)),
        "v_cvt_norm_i16_f16" => one(Ty::B16, H, |_, s| normalised(hf(s[0]), true)),
        "v_cvt_norm_u16_f16" => one(Ty::B16, H, |_, s| normalised(hf(s[0]), false)),
        "v_cvt_pknorm_i16_f32" => two(F, |_, s| normalised(x(s[0]), true) | normalised(x(s[1]), true) << 16),
        "v_cvt_pknorm_u16_f32" => two(F, |_, s| normalised(x(s[0]), false) | normalised(x(s[1]), false) << 16),
        "v_cvt_pknorm_i16_f16" => two(H, |_, s| normalised(hf(s[0]), true) | normalised(hf(s[1]), true) << 16),
        "v_cvt_pknorm_u16_f16" => two(H, |_, s| normalised(hf(s[0]), false) | normalised(hf(s[1]), false) << 16),
        "v_cvt_pkrtz_f16_f32" => two(F, |_, s| u64::from(to_f16(x(s[0]), Round::Zero)) | u64::from(to_f16(x(s[1]), Round::Zero)) << 16),
        "v_cvt_pk_u8_f32" => lane(
            |e, s| {
                let shift = 8 * (s[1] & 3);
                s[2] & !(0xff << shift) | byte_of(e, x(s[0])) << shift
            },
            W,
            [F, W, W, N],
            High::Zero,
        ),
        // The accumulating form takes the destination as its third source.
        "v_cvt_pkaccum_u8_f32" => lane(
            |e, s| {
                let shift = 8 * (s[1] & 3);
                s[2] & !(0xff << shift) | byte_of(e, x(s[0])) << shift
            },
            W,
            [F, W, W, N],
            High::Zero,
        ),
        "v_cvt_f32_fp8" => one(F, W, |_, s| w32(FP8.value(s[0] as u8))),
        "v_cvt_f32_bf8" => one(F, W, |_, s| w32(BF8.value(s[0] as u8))),
        "v_cvt_pk_f32_fp8" => one(Ty::B64, W, |_, s| unpack8(FP8, s[0])),
        "v_cvt_pk_f32_bf8" => one(Ty::B64, W, |_, s| unpack8(BF8, s[0])),
        "v_cvt_pk_fp8_f32" => lane(|e, s| pack8(FP8, e, s), Ty::B16, [F, F, N, N], High::Keep),
        "v_cvt_pk_bf8_f32" => lane(|e, s| pack8(BF8, e, s), Ty::B16, [F, F, N, N], High::Keep),
        _ => return None,
    })
}

/// Stochastic conversions write one byte of the destination, chosen by `op_sel[3:2]`.
pub(super) fn stochastic(name: &str) -> Option<fn(&Env, &[u64; 4]) -> u64> {
    Some(match name {
        "v_cvt_sr_fp8_f32" => |e, s| stochastic8(FP8, e, s),
        "v_cvt_sr_bf8_f32" => |e, s| stochastic8(BF8, e, s),
        _ => return None,
    })
}

/// The value of an 8-bit float, for matrix instructions.
pub(super) fn from_f8(bits: u8, brain: bool) -> f32 {
    if brain { BF8.value(bits) } else { FP8.value(bits) }
}

/// A single-precision sum, for atomics.
pub(super) fn sum32(a: u64, b: u64) -> u64 {
    w32(to_f32(add_odd(x(a), x(b)), Round::Nearest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bit_floats_round_trip() {
        for format in [FP8, BF8] {
            for bits in 0..=255_u8 {
                let value = format.value(bits);
                if bits == 0x80 {
                    assert!(value.is_nan());
                } else {
                    assert_eq!(format.bits(value, false), bits, "{value}");
                }
            }
        }
        assert_eq!(FP8.value(0x7f), 240.0, "the largest value of the FNUZ format");
        assert_eq!(BF8.value(0x7f), 57344.0);
        assert_eq!(FP8.bits(1e6, true), 0x7f);
        assert_eq!(FP8.bits(1e6, false), 0x80);
    }

    #[test]
    fn normalised_integers_saturate() {
        assert_eq!(normalised(2.0, true), 0x7fff);
        assert_eq!(normalised(-1.0, true), 0x8001);
        assert_eq!(normalised(0.5, false), 0x8000);
        assert_eq!(normalised(f64::NAN, false), 0);
    }
}
