//! Conversions between number formats.

use wavetap_amdgpu::{Opcode, Target};

use super::float_ops::{s32, w32};
use super::int_ops::lane;
use super::run_lane;
use crate::fault::stop::undefined;
use crate::float::small_float::{Format, SINGLE, decode, encode, encode_stochastic, half_stochastic};
use crate::float::{Env, Round, add_odd, from_f16, half_by_mode, to_bf16, to_f16, to_f32};
use crate::lanes::Lane;
use crate::op::semantics::{High, LaneFn, Ty};
use crate::state::op::{Handler, Meaning};

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

/// Whether a number too large for 8 bits becomes the largest one: MODE's FP16_OVFL (ISA guides, "CVT FP8 FP16_OVFL
/// rule"), or clamping where it is encoded.
fn saturates(e: &Env) -> bool {
    e.half_overflow || e.clamp
}

fn pack8(format: Format, e: &Env, s: &[u64; 4]) -> u64 {
    let code = |bits: u64| u64::from(encode(format, x(bits), saturates(e)));
    code(s[0]) | code(s[1]) << 8
}

fn unpack8(format: Format, bits: u64) -> u64 {
    value8(format, bits) | value8(format, bits >> 8) << 32
}

fn value8(format: Format, bits: u64) -> u64 {
    w32(decode(format, bits as u8) as f32)
}

/// The byte that `byte_sel` chooses.
fn chosen_byte(e: &Env, bits: u64) -> u64 {
    bits >> (8 * u32::from(e.part & 3))
}

/// The functions of a conversion for the formats of either kind.
macro_rules! eight {
    ($fnuz:expr, $brain:literal, |$format:ident, $e:ident, $s:ident| $body:expr) => {{
        let function: LaneFn = if $fnuz {
            |$e, $s| {
                let $format = Format::eight($brain, true);
                $body
            }
        } else {
            |$e, $s| {
                let $format = Format::eight($brain, false);
                $body
            }
        };
        function
    }};
}

/// The meaning of a conversion to or from 8-bit floats.
fn eight(opcode: Opcode, fnuz: bool) -> Option<Meaning> {
    let pair = |f: LaneFn| lane(f, Ty::B16, [F, F, N, N], High::Keep);
    Some(match opcode {
        Opcode::V_CVT_F32_FP8 => one(F, W, eight!(fnuz, false, |format, e, s| value8(format, chosen_byte(e, s[0])))),
        Opcode::V_CVT_F32_BF8 => one(F, W, eight!(fnuz, true, |format, e, s| value8(format, chosen_byte(e, s[0])))),
        Opcode::V_CVT_PK_F32_FP8 => one(Ty::B64, W, eight!(fnuz, false, |format, _e, s| unpack8(format, s[0]))),
        Opcode::V_CVT_PK_F32_BF8 => one(Ty::B64, W, eight!(fnuz, true, |format, _e, s| unpack8(format, s[0]))),
        Opcode::V_CVT_PK_FP8_F32 => pair(eight!(fnuz, false, |format, e, s| pack8(format, e, s))),
        Opcode::V_CVT_PK_BF8_F32 => pair(eight!(fnuz, true, |format, e, s| pack8(format, e, s))),
        _ => return None,
    })
}

/// The meaning of a conversion on a target.
pub(crate) fn meaning(target: Target, opcode: Opcode) -> Option<Meaning> {
    plain(opcode).or_else(|| newer(opcode)).or_else(|| eight(opcode, target.fnuz_fp8()))
}

fn newer(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::V_CVT_I32_I16 => one(W, Ty::B16, |_, s| u64::from(s[0] as u16 as i16 as u32)),
        Opcode::V_CVT_U32_U16 => one(W, Ty::B16, |_, s| s[0] & 0xffff),
        Opcode::V_CVT_PK_I16_F32 => {
            two(F, |_, s| u64::from(s32(s[0]) as i16 as u16) | u64::from(s32(s[1]) as i16 as u16) << 16)
        }
        Opcode::V_CVT_PK_U16_F32 => two(F, |_, s| u64::from(s32(s[0]) as u16) | u64::from(s32(s[1]) as u16) << 16),
        Opcode::V_CVT_F32_BF16 => one(W, Ty::B16, |_, s| s[0] << 16),
        Opcode::V_CVT_PK_BF16_F32 => two(F, |_, s| u64::from(to_bf16(s32(s[0]))) | u64::from(to_bf16(s32(s[1]))) << 16),
        Opcode::V_CVT_PK_F16_F32 => two(F, |_, s| {
            let half = |bits: u64| u64::from(to_f16(x(bits), Round::Nearest));
            half(s[0]) | half(s[1]) << 16
        }),
        Opcode::V_CVT_F16_FP8 => {
            one(H, W, |e, s| u64::from(to_f16(decode(Format::E4M3, chosen_byte(e, s[0]) as u8), Round::Nearest)))
        }
        Opcode::V_CVT_F16_BF8 => {
            one(H, W, |e, s| u64::from(to_f16(decode(Format::E5M2, chosen_byte(e, s[0]) as u8), Round::Nearest)))
        }
        Opcode::V_CVT_PK_F16_FP8 => one(W, Ty::B16, |_, s| halves8(Format::E4M3, s[0])),
        Opcode::V_CVT_PK_F16_BF8 => one(W, Ty::B16, |_, s| halves8(Format::E5M2, s[0])),
        Opcode::V_CVT_PK_FP8_F16 => without_signs(one(Ty::B16, W, |e, s| pack_halves8(Format::E4M3, e, s[0]))),
        Opcode::V_CVT_PK_BF8_F16 => without_signs(one(Ty::B16, W, |e, s| pack_halves8(Format::E5M2, e, s[0]))),
        _ => return None,
    })
}

/// Of a register with two numbers it is not documented which of them an absolute value or a negation is of.
fn without_signs((_, semantics): Meaning) -> Meaning {
    let run: Handler = |core, op| {
        if op.inst.modifiers.abs != 0 || op.inst.modifiers.neg != 0 {
            return undefined("a conversion of two numbers in a register with a sign changed");
        }
        run_lane(core, op)
    };
    (run, semantics)
}

/// Two 8-bit floats as halves.
fn halves8(format: Format, bits: u64) -> u64 {
    let half = |bits: u64| u64::from(to_f16(decode(format, bits as u8), Round::Nearest));
    half(bits) | half(bits >> 8) << 16
}

fn pack_halves8(format: Format, e: &Env, bits: u64) -> u64 {
    let code = |bits: u64| u64::from(encode(format, hf(bits), saturates(e)));
    code(bits) | code(bits >> 16) << 8
}

fn plain(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::V_CVT_I32_F64 => one(W, D, |_, s| u64::from(d(s[0]) as i32 as u32)),
        Opcode::V_CVT_U32_F64 => one(W, D, |_, s| u64::from(d(s[0]) as u32)),
        Opcode::V_CVT_F64_I32 => one(D, W, |_, s| f64::from(s[0] as u32 as i32).to_bits()),
        Opcode::V_CVT_F64_U32 => one(D, W, |_, s| f64::from(s[0] as u32).to_bits()),
        Opcode::V_CVT_F32_I32 => one(F, W, |e, s| float_of(e, f64::from(s[0] as u32 as i32))),
        Opcode::V_CVT_F32_U32 => one(F, W, |e, s| float_of(e, f64::from(s[0] as u32))),
        Opcode::V_CVT_U32_F32 => one(W, F, |_, s| u64::from(s32(s[0]) as u32)),
        Opcode::V_CVT_I32_F32 => one(W, F, |_, s| u64::from(s32(s[0]) as i32 as u32)),
        Opcode::V_CVT_RPI_I32_F32 | Opcode::V_CVT_NEAREST_I32_F32 => {
            one(W, F, |_, s| u64::from((x(s[0]) + 0.5).floor() as i32 as u32))
        }
        Opcode::V_CVT_FLR_I32_F32 | Opcode::V_CVT_FLOOR_I32_F32 => {
            one(W, F, |_, s| u64::from(x(s[0]).floor() as i32 as u32))
        }
        Opcode::V_CVT_F16_F32 => one(H, F, |e, s| u64::from(half_by_mode(e, x(s[0])))),
        Opcode::V_CVT_F32_F16 => one(F, H, |_, s| w32(hf(s[0]) as f32)),
        Opcode::V_CVT_F32_F64 => one(F, D, |e, s| w32(to_f32(d(s[0]), e.round32))),
        Opcode::V_CVT_F64_F32 => one(D, F, |_, s| x(s[0]).to_bits()),
        Opcode::V_CVT_F32_UBYTE0 => one(F, W, |_, s| byte(s[0], 0)),
        Opcode::V_CVT_F32_UBYTE1 => one(F, W, |_, s| byte(s[0], 1)),
        Opcode::V_CVT_F32_UBYTE2 => one(F, W, |_, s| byte(s[0], 2)),
        Opcode::V_CVT_F32_UBYTE3 => one(F, W, |_, s| byte(s[0], 3)),
        Opcode::V_CVT_OFF_F32_I4 => one(F, W, |_, s| w32(((s[0] as i32) << 28 >> 28) as f32 / 16.0)),
        Opcode::V_CVT_F16_U16 => one(H, Ty::B16, |e, s| u64::from(to_f16(f64::from(s[0] as u16), e.round64))),
        Opcode::V_CVT_F16_I16 => one(H, Ty::B16, |e, s| u64::from(to_f16(f64::from(s[0] as u16 as i16), e.round64))),
        Opcode::V_CVT_U16_F16 => one(Ty::B16, H, |_, s| u64::from(hf(s[0]) as u16)),
        Opcode::V_CVT_I16_F16 => one(Ty::B16, H, |_, s| u64::from(hf(s[0]) as i16 as u16)),
        Opcode::V_CVT_NORM_I16_F16 => one(Ty::B16, H, |_, s| normalised(hf(s[0]), true)),
        Opcode::V_CVT_NORM_U16_F16 => one(Ty::B16, H, |_, s| normalised(hf(s[0]), false)),
        Opcode::V_CVT_PKNORM_I16_F32 | Opcode::V_CVT_PK_NORM_I16_F32 => {
            two(F, |_, s| normalised(x(s[0]), true) | normalised(x(s[1]), true) << 16)
        }
        Opcode::V_CVT_PKNORM_U16_F32 | Opcode::V_CVT_PK_NORM_U16_F32 => {
            two(F, |_, s| normalised(x(s[0]), false) | normalised(x(s[1]), false) << 16)
        }
        Opcode::V_CVT_PKNORM_I16_F16 | Opcode::V_CVT_PK_NORM_I16_F16 => {
            two(H, |_, s| normalised(hf(s[0]), true) | normalised(hf(s[1]), true) << 16)
        }
        Opcode::V_CVT_PKNORM_U16_F16 | Opcode::V_CVT_PK_NORM_U16_F16 => {
            two(H, |_, s| normalised(hf(s[0]), false) | normalised(hf(s[1]), false) << 16)
        }
        Opcode::V_CVT_PKRTZ_F16_F32 | Opcode::V_CVT_PK_RTZ_F16_F32 => {
            two(F, |_, s| u64::from(to_f16(x(s[0]), Round::Zero)) | u64::from(to_f16(x(s[1]), Round::Zero)) << 16)
        }
        Opcode::V_CVT_SR_F16_F32 => lane(
            |e, s| u64::from(half_stochastic(s32(s[0]), false, s[1] as u32, saturates(e))),
            H,
            [F, W, N, N],
            High::Keep,
        ),
        Opcode::V_CVT_SR_BF16_F32 => lane(
            |e, s| u64::from(half_stochastic(s32(s[0]), true, s[1] as u32, saturates(e))),
            Ty::B16,
            [F, W, N, N],
            High::Keep,
        ),
        Opcode::V_CVT_PK_U8_F32 => lane(
            |e, s| {
                let shift = 8 * (s[1] & 3);
                s[2] & !(0xff << shift) | byte_of(e, x(s[0])) << shift
            },
            W,
            [F, W, W, N],
            High::Zero,
        ),
        // The accumulating form takes the destination as its third source.
        Opcode::V_CVT_PKACCUM_U8_F32 => lane(
            |e, s| {
                let shift = 8 * (s[1] & 3);
                s[2] & !(0xff << shift) | byte_of(e, x(s[0])) << shift
            },
            W,
            [F, W, W, N],
            High::Zero,
        ),
        _ => return None,
    })
}

/// Stochastic conversions write one byte of the destination.
pub(crate) fn stochastic(target: Target, opcode: Opcode) -> Option<LaneFn> {
    let fnuz = target.fnuz_fp8();
    Some(match opcode {
        Opcode::V_CVT_SR_FP8_F32 => {
            eight!(fnuz, false, |format, e, s| u64::from(encode_stochastic(
                format,
                x(s[0]),
                SINGLE,
                s[1] as u32,
                saturates(e)
            )))
        }
        Opcode::V_CVT_SR_BF8_F32 => {
            eight!(fnuz, true, |format, e, s| u64::from(encode_stochastic(
                format,
                x(s[0]),
                SINGLE,
                s[1] as u32,
                saturates(e)
            )))
        }
        _ => return None,
    })
}

/// A single-precision sum, for atomics.
pub(crate) fn sum32(a: u64, b: u64) -> u64 {
    w32(to_f32(add_odd(x(a), x(b)), Round::Nearest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalised_integers_saturate() {
        assert_eq!(normalised(2.0, true), 0x7fff);
        assert_eq!(normalised(-1.0, true), 0x8001);
        assert_eq!(normalised(0.5, false), 0x8000);
        assert_eq!(normalised(f64::NAN, false), 0);
    }
}
