//! Floating-point instructions of the vector ALU.

use wavetap_amdgpu::Opcode;

use super::int_ops::lane;
use super::{minmax, run_lane, run_lane_bit, simple};
use crate::float::{self, Env, Round, add64, div_odd, fma64, from_f16, mul64, sqrt_odd, sum_odd, to_f32};
use crate::lanes::simplified::{simplified, simplified_bit};
use crate::lanes::{Lane, LaneBit, Operation};
use crate::op::semantics::{High, Semantics, Ty};
use crate::state::op::Meaning;

const N: Ty = Ty::None;
const F: Ty = Ty::F32;
const D: Ty = Ty::F64;
const H: Ty = Ty::F16;
/// Single precision without flushing: instructions that always accept denormals.
const X: Ty = Ty::B32;

fn f1(f: impl Lane) -> Meaning {
    lane(f, F, [F, N, N, N], High::Zero)
}
fn f2(f: impl Lane) -> Meaning {
    lane(f, F, [F, F, N, N], High::Zero)
}
fn f3(f: impl Lane) -> Meaning {
    lane(f, F, [F, F, F, N], High::Zero)
}
fn d1(f: impl Lane) -> Meaning {
    lane(f, D, [D, N, N, N], High::Zero)
}
fn d2(f: impl Lane) -> Meaning {
    lane(f, D, [D, D, N, N], High::Zero)
}
fn d3(f: impl Lane) -> Meaning {
    lane(f, D, [D, D, D, N], High::Zero)
}
/// An operation with a simple case.
fn simple_lane(f: impl Lane, simple: impl LaneBit, dst: Ty, src: [Ty; 4]) -> Meaning {
    (run_lane, Semantics::Lane { f: simplified(f, simple), dst, src, high: High::Zero })
}
fn simple1(f: impl Lane, simple: impl LaneBit, t: Ty) -> Meaning {
    simple_lane(f, simple, t, [t, N, N, N])
}
fn h1(f: impl Lane) -> Meaning {
    lane(f, H, [H, N, N, N], High::Zero)
}
fn h2(f: impl Lane) -> Meaning {
    lane(f, H, [H, H, N, N], High::Zero)
}
fn h3(f: impl Lane, high: High) -> Meaning {
    lane(f, H, [H, H, H, N], high)
}

pub(crate) fn s32(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}
pub(crate) fn w32(value: f32) -> u64 {
    u64::from(value.to_bits())
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
fn wh(e: &Env, value: f64) -> u64 {
    u64::from(float::half_by_mode(e, value))
}

#[inline(always)]
pub(crate) fn add32(e: &Env, a: u64, b: u64) -> u64 {
    if e.round32 == Round::Nearest { w32(s32(a) + s32(b)) } else { directed_add32(e, a, b) }
}

#[cold]
#[inline(never)]
fn directed_add32(e: &Env, a: u64, b: u64) -> u64 {
    w32(to_f32(sum_odd(x(a), x(b), e.round32), e.round32))
}

#[inline(always)]
pub(crate) fn mul32(e: &Env, a: u64, b: u64) -> u64 {
    if e.round32 == Round::Nearest { w32(s32(a) * s32(b)) } else { directed_mul32(e, a, b) }
}

#[cold]
#[inline(never)]
fn directed_mul32(e: &Env, a: u64, b: u64) -> u64 {
    w32(to_f32(x(a) * x(b), e.round32))
}

#[inline(always)]
pub(crate) fn fma32(e: &Env, a: u64, b: u64, c: u64) -> u64 {
    if e.round32 == Round::Nearest { w32(s32(a).mul_add(s32(b), s32(c))) } else { directed_fma32(e, a, b, c) }
}

#[cold]
#[inline(never)]
fn directed_fma32(e: &Env, a: u64, b: u64, c: u64) -> u64 {
    w32(to_f32(sum_odd(x(a) * x(b), x(c), e.round32), e.round32))
}

/// Multiply-add that rounds the product too and flushes denormals whatever MODE says.
fn mad32(e: &Env, s: &[u64; 4]) -> u64 {
    let flush = |bits: u64| u64::from(float::flush32(bits as u32));
    let product = flush(mul32(e, flush(s[0]), flush(s[1])));
    flush(add32(e, product, flush(s[2])))
}

fn neg(bits: u64) -> u64 {
    bits ^ 0x8000_0000
}

/// The meaning of a floating-point vector instruction.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    single(opcode)
        .or_else(|| double(opcode))
        .or_else(|| half(opcode))
        .or_else(|| minmax::meaning(opcode))
        .or_else(|| cube_and_division(opcode))
}

/// What a floating-point vector instruction does to a lane.
pub(crate) fn lane_fn(opcode: Opcode) -> Option<&'static dyn Operation> {
    match meaning(opcode)?.1 {
        Semantics::Lane { f, .. } => Some(f),
        _ => None,
    }
}

fn single(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::V_ADD_F32 => f2(|e, s| add32(e, s[0], s[1])),
        Opcode::V_SUB_F32 => f2(|e, s| add32(e, s[0], neg(s[1]))),
        Opcode::V_SUBREV_F32 => f2(|e, s| add32(e, s[1], neg(s[0]))),
        Opcode::V_MUL_F32 => f2(|e, s| mul32(e, s[0], s[1])),
        Opcode::V_MUL_LEGACY_F32 | Opcode::V_MUL_DX9_ZERO_F32 => {
            f2(|e, s| if s32(s[0]) == 0.0 || s32(s[1]) == 0.0 { 0 } else { mul32(e, s[0], s[1]) })
        }
        Opcode::V_MAD_F32 | Opcode::V_MAC_F32 | Opcode::V_MADMK_F32 | Opcode::V_MADAK_F32 => f3(mad32),
        Opcode::V_MAD_LEGACY_F32 | Opcode::V_MAC_LEGACY_F32 => f3(|e, s| {
            // Zero times anything is zero; denormals are zero here.
            let is_zero = |bits: u64| s32(bits).abs() < f32::MIN_POSITIVE;
            if is_zero(s[0]) || is_zero(s[1]) { mad32(e, &[0, 0, s[2], 0]) } else { mad32(e, s) }
        }),
        Opcode::V_FMA_F32 | Opcode::V_FMAC_F32 | Opcode::V_FMAMK_F32 | Opcode::V_FMAAK_F32 => {
            f3(|e, s| fma32(e, s[0], s[1], s[2]))
        }
        Opcode::V_FMA_LEGACY_F32
        | Opcode::V_FMAC_LEGACY_F32
        | Opcode::V_FMA_DX9_ZERO_F32
        | Opcode::V_FMAC_DX9_ZERO_F32 => {
            f3(|e, s| if s32(s[0]) == 0.0 || s32(s[1]) == 0.0 { s[2] } else { fma32(e, s[0], s[1], s[2]) })
        }
        Opcode::V_MULLIT_F32 => f3(|e, s| {
            let (b, c) = (s32(s[1]), s32(s[2]));
            if b == f32::MIN || b == f32::NEG_INFINITY || b.is_nan() || c <= 0.0 || c.is_nan() {
                w32(f32::MIN)
            } else if s32(s[0]) == 0.0 || b == 0.0 {
                0
            } else {
                mul32(e, s[0], s[1])
            }
        }),
        Opcode::V_TANH_F32 => f1(|_, s| flushed(s, |v| f64::from(v).tanh() as f32)),
        Opcode::V_FRACT_F32 => f1(|_, s| {
            let v = s32(s[0]);
            let below_one = f32::from_bits(0x3f7f_ffff);
            w32(if !v.is_finite() { f32::NAN } else { (v - v.floor()).min(below_one) })
        }),
        Opcode::V_TRUNC_F32 => f1(|_, s| w32(s32(s[0]).trunc())),
        Opcode::V_CEIL_F32 => f1(|_, s| w32(s32(s[0]).ceil())),
        Opcode::V_RNDNE_F32 => f1(|_, s| w32(s32(s[0]).round_ties_even())),
        Opcode::V_FLOOR_F32 => f1(|_, s| w32(s32(s[0]).floor())),
        Opcode::V_EXP_F32 | Opcode::V_EXP_LEGACY_F32 => {
            simple1(|_, s| flushed(s, |v| f64::from(v).exp2() as f32), simple::exp2, F)
        }
        Opcode::V_LOG_F32 | Opcode::V_LOG_LEGACY_F32 => {
            simple1(|_, s| flushed(s, |v| if v < 0.0 { f32::NAN } else { f64::from(v).log2() as f32 }), simple::log2, F)
        }
        Opcode::V_RCP_F32 | Opcode::V_RCP_IFLAG_F32 => f1(|_, s| flushed(s, |v| 1.0 / v)),
        Opcode::V_RSQ_F32 => simple1(
            |_, s| {
                flushed(s, |v| if v == 0.0 { f32::INFINITY.copysign(v) } else { (1.0 / f64::from(v).sqrt()) as f32 })
            },
            simple::reciprocal_root,
            F,
        ),
        Opcode::V_SQRT_F32 => f1(|_, s| flushed(s, f32::sqrt)),
        Opcode::V_SIN_F32 => simple1(|_, s| w32(turn(f64::from(s32(s[0])), f64::sin) as f32), simple::sine, F),
        Opcode::V_COS_F32 => simple1(|_, s| w32(turn(f64::from(s32(s[0])), f64::cos) as f32), simple::cosine, F),
        Opcode::V_FREXP_MANT_F32 => simple_lane(
            |_, s| {
                let v = s32(s[0]);
                w32(if v.is_finite() { float::frexp64(f64::from(v)).0 as f32 } else { v })
            },
            simple::mantissa32,
            F,
            [X, N, N, N],
        ),
        Opcode::V_FREXP_EXP_I32_F32 => simple_lane(
            |_, s| u64::from(float::frexp64(x(s[0])).1 as u32),
            simple::exponent_of32,
            Ty::B32,
            [X, N, N, N],
        ),
        Opcode::V_LDEXP_F32 => simple_lane(
            |e, s| w32(to_f32(float::ldexp64(x(s[0]), (s[1] as u32 as i32).clamp(-400, 400)), e.round32)),
            simple::ldexp32,
            F,
            [F, Ty::B32, N, N],
        ),
        _ => return None,
    })
}

/// Instructions that take and give no single-precision denormals.
#[inline(always)]
fn flushed(s: &[u64; 4], f: impl Fn(f32) -> f32) -> u64 {
    u64::from(float::flush32(f(f32::from_bits(float::flush32(s[0] as u32))).to_bits()))
}

/// A function of an angle in turns.
pub(crate) fn turn(turns: f64, f: fn(f64) -> f64) -> f64 {
    if !turns.is_finite() {
        return f64::NAN;
    }
    if turns == 0.0 {
        return f(turns);
    }
    // The reduced angle is exact, and so are the multiples of a quarter turn.
    let part = turns - turns.round_ties_even();
    let value = f(part * std::f64::consts::TAU);
    if (part * 4.0).fract() == 0.0 { value.round() } else { value }
}

fn double(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::V_ADD_F64 => d2(|e, s| add64(e, d(s[0]), d(s[1])).to_bits()),
        Opcode::V_MUL_F64 => d2(|e, s| mul64(e, d(s[0]), d(s[1])).to_bits()),
        Opcode::V_FMA_F64 | Opcode::V_FMAC_F64 | Opcode::V_FMAMK_F64 | Opcode::V_FMAAK_F64 => {
            d3(|e, s| fma64(e, d(s[0]), d(s[1]), d(s[2])).to_bits())
        }
        Opcode::V_TRUNC_F64 => d1(|_, s| d(s[0]).trunc().to_bits()),
        Opcode::V_CEIL_F64 => d1(|_, s| d(s[0]).ceil().to_bits()),
        Opcode::V_RNDNE_F64 => d1(|_, s| d(s[0]).round_ties_even().to_bits()),
        Opcode::V_FLOOR_F64 => d1(|_, s| d(s[0]).floor().to_bits()),
        Opcode::V_FRACT_F64 => d1(|_, s| {
            let v = d(s[0]);
            let below_one = f64::from_bits(0x3fef_ffff_ffff_ffff);
            if !v.is_finite() { f64::NAN } else { (v - v.floor()).min(below_one) }.to_bits()
        }),
        Opcode::V_RCP_F64 => d1(|_, s| (1.0 / d(s[0])).to_bits()),
        Opcode::V_RSQ_F64 => d1(|_, s| {
            let v = d(s[0]);
            if v == 0.0 { f64::INFINITY.copysign(v) } else { 1.0 / v.sqrt() }.to_bits()
        }),
        Opcode::V_SQRT_F64 => d1(|_, s| d(s[0]).sqrt().to_bits()),
        Opcode::V_FREXP_MANT_F64 => simple1(|_, s| float::frexp64(d(s[0])).0.to_bits(), simple::mantissa64, D),
        Opcode::V_FREXP_EXP_I32_F64 => simple_lane(
            |_, s| u64::from(float::frexp64(d(s[0])).1 as u32),
            simple::exponent_of64,
            Ty::B32,
            [D, N, N, N],
        ),
        Opcode::V_LDEXP_F64 => simple_lane(
            |e, s| float::scale64(e, d(s[0]), s[1] as u32 as i32).to_bits(),
            simple::ldexp64,
            D,
            [D, Ty::B32, N, N],
        ),
        Opcode::V_TRIG_PREOP_F64 => {
            lane(|_, s| trig_preop(s[0], (s[1] & 31) as u32).to_bits(), D, [D, Ty::B32, N, N], High::Zero)
        }
        _ => return None,
    })
}

/// Bits of 2/pi after the binary point, most significant first: 1,201 are used (computed with 1,300 bits of pi).
const TWO_OVER_PI: [u32; 40] = [
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
    0xdebb_c561,
    0xb724_6e3a,
    0x424d_d2e0,
    0x0649_2eea,
    0x09d1_921c,
    0xfe1d_eb1c,
    0xb129_a73e,
    0xe882_35f5,
    0x2ebb_4484,
    0xe99c_7026,
    0xb45f_7e41,
    0x3991_d639,
    0x8353_39f4,
    0x9c84_5f8b,
    0xbdf9_283b,
    0x1ff8_97ff,
    0xde05_980f,
    0xef2f_118b,
    0x5a0a_6d1f,
    0x6d36_7ecf,
    0x27cb_09b7,
    0x4f46_3f66,
    0x9e5f_ea2d,
    0x7527_bac7,
    0xebe5_f17b,
    0x3d07_39f7,
    0x8a52_92ea,
    0x6bfb_5fb1,
    0x1f8d_5d08,
    0x5603_3046,
    0xfc7b_6bab,
    0xf0cf_bc20,
    0x9af4_361d,
];

fn trig_preop(bits: u64, segment: u32) -> f64 {
    let exponent = (bits >> 52 & 0x7ff) as u32;
    let shift = segment * 53 + exponent.saturating_sub(1077);
    // 53 bits of 2/pi from bit `shift` on.
    let mut window = 0_u64;
    for at in shift..shift + 53 {
        let word = TWO_OVER_PI.get((at / 32) as usize).copied().unwrap_or(0);
        let bit = if at <= 1200 { word >> (31 - at % 32) & 1 } else { 0 };
        window = window << 1 | u64::from(bit);
    }
    let mut scale = -53 - shift as i32;
    if exponent >= 1968 {
        scale += 128;
    }
    float::ldexp64(window as f64, scale)
}

fn half(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::V_ADD_F16 => h2(|e, s| wh(e, sum_odd(hf(s[0]), hf(s[1]), e.round64))),
        Opcode::V_SUB_F16 => h2(|e, s| wh(e, sum_odd(hf(s[0]), -hf(s[1]), e.round64))),
        Opcode::V_SUBREV_F16 => h2(|e, s| wh(e, sum_odd(hf(s[1]), -hf(s[0]), e.round64))),
        Opcode::V_MUL_F16 => h2(|e, s| wh(e, hf(s[0]) * hf(s[1]))),
        Opcode::V_MAD_F16 | Opcode::V_MAC_F16 | Opcode::V_MADMK_F16 | Opcode::V_MADAK_F16 => h3(mad16, High::Keep),
        Opcode::V_MAD_LEGACY_F16 => h3(mad16, High::Zero),
        Opcode::V_FMA_F16 | Opcode::V_FMAC_F16 | Opcode::V_FMAMK_F16 | Opcode::V_FMAAK_F16 => {
            h3(|e, s| fma16(e, s[0], s[1], s[2]), High::Keep)
        }
        Opcode::V_FMA_LEGACY_F16 => h3(|e, s| fma16(e, s[0], s[1], s[2]), High::Zero),
        Opcode::V_TRUNC_F16 => h1(|e, s| wh(e, hf(s[0]).trunc())),
        Opcode::V_CEIL_F16 => h1(|e, s| wh(e, hf(s[0]).ceil())),
        Opcode::V_RNDNE_F16 => h1(|e, s| wh(e, hf(s[0]).round_ties_even())),
        Opcode::V_FLOOR_F16 => h1(|e, s| wh(e, hf(s[0]).floor())),
        Opcode::V_FRACT_F16 => h1(|e, s| {
            let v = hf(s[0]);
            wh(e, if !v.is_finite() { f64::NAN } else { (v - v.floor()).min(from_f16(0x3bff)) })
        }),
        Opcode::V_RCP_F16 => h1(|e, s| wh(e, div_odd(1.0, hf(s[0])))),
        Opcode::V_SQRT_F16 => h1(|e, s| wh(e, sqrt_odd(hf(s[0])))),
        Opcode::V_RSQ_F16 => h1(|e, s| {
            let v = hf(s[0]);
            wh(e, if v == 0.0 { f64::INFINITY.copysign(v) } else { 1.0 / v.sqrt() })
        }),
        Opcode::V_LOG_F16 => h1(|e, s| {
            let v = hf(s[0]);
            wh(e, if v < 0.0 { f64::NAN } else { v.log2() })
        }),
        Opcode::V_EXP_F16 => h1(|e, s| wh(e, hf(s[0]).exp2())),
        Opcode::V_TANH_F16 => h1(|e, s| wh(e, hf(s[0]).tanh())),
        Opcode::V_SIN_F16 => h1(|e, s| wh(e, turn(hf(s[0]), f64::sin))),
        Opcode::V_COS_F16 => h1(|e, s| wh(e, turn(hf(s[0]), f64::cos))),
        Opcode::V_FREXP_MANT_F16 => h1(|e, s| wh(e, float::frexp64(hf(s[0])).0)),
        Opcode::V_FREXP_EXP_I16_F16 => {
            lane(|_, s| u64::from(float::frexp64(hf(s[0])).1 as u16), Ty::B16, [Ty::B16, N, N, N], High::Zero)
        }
        Opcode::V_LDEXP_F16 => lane(
            |e, s| wh(e, float::ldexp64(hf(s[0]), i32::from(s[1] as u16 as i16).clamp(-100, 100))),
            H,
            [H, Ty::B16, N, N],
            High::Zero,
        ),
        _ => return None,
    })
}

pub(crate) fn fma16(e: &Env, a: u64, b: u64, c: u64) -> u64 {
    wh(e, sum_odd(hf(a) * hf(b), hf(c), e.round64))
}

fn mad16(e: &Env, s: &[u64; 4]) -> u64 {
    let flush = |bits: u64| u64::from(float::flush16(bits as u16));
    let product = flush(wh(e, hf(flush(s[0])) * hf(flush(s[1]))));
    flush(wh(e, sum_odd(hf(product), hf(flush(s[2])), e.round64)))
}

/// Which coordinate of a cube map direction is the major one.
fn major_axis(s: &[u64; 4]) -> (u8, f32, f32, f32) {
    let (a, b, c) = (s32(s[0]), s32(s[1]), s32(s[2]));
    let axis = if c.abs() >= a.abs() && c.abs() >= b.abs() {
        2
    } else if b.abs() >= a.abs() {
        1
    } else {
        0
    };
    (axis, a, b, c)
}

fn bit(f: impl LaneBit, simple: impl LaneBit, t: Ty) -> Meaning {
    (run_lane_bit, Semantics::LaneBit { f: simplified_bit(f, simple), dst: t, src: [t, t, t, N] })
}

fn cube_and_division(opcode: Opcode) -> Option<Meaning> {
    Some(match opcode {
        Opcode::V_CUBEID_F32 => f3(|_, s| {
            let (axis, a, b, c) = major_axis(s);
            let negative = [a, b, c][usize::from(axis)] < 0.0;
            w32(f32::from(2 * axis + u8::from(negative)))
        }),
        Opcode::V_CUBESC_F32 => f3(|_, s| {
            let (axis, a, _, c) = major_axis(s);
            w32(match axis {
                2 => {
                    if c < 0.0 {
                        -a
                    } else {
                        a
                    }
                }
                1 => a,
                _ => {
                    if a < 0.0 {
                        c
                    } else {
                        -c
                    }
                }
            })
        }),
        Opcode::V_CUBETC_F32 => f3(|_, s| {
            let (axis, _, b, c) = major_axis(s);
            w32(if axis == 1 { if b < 0.0 { -c } else { c } } else { -b })
        }),
        Opcode::V_CUBEMA_F32 => f3(|_, s| {
            let (axis, a, b, c) = major_axis(s);
            w32(2.0 * [a, b, c][usize::from(axis)])
        }),
        Opcode::V_DIV_SCALE_F32 => bit(div_scale32, simple::div_scale32, X),
        Opcode::V_DIV_SCALE_F64 => bit(div_scale64, simple::div_scale64, D),
        // The scale goes back the way `v_div_scale` went: up where the quotient is large, down where it is small.
        Opcode::V_DIV_FMAS_F32 => simple_lane(
            |e, s| {
                let scale = match s[3] {
                    0 => 0,
                    _ if exponent32(s32(s[2])) > 127 => 64,
                    _ => -64,
                };
                // One rounding: the sum keeps its odd last bit through the exact scaling.
                w32(to_f32(float::ldexp64(sum_odd(x(s[0]) * x(s[1]), x(s[2]), e.round32), scale), e.round32))
            },
            simple::div_fmas32,
            F,
            [X, X, X, Ty::Mask],
        ),
        Opcode::V_DIV_FMAS_F64 => simple_lane(
            |e, s| {
                let (a, b, c) = (d(s[0]), d(s[1]), d(s[2]));
                match s[3] {
                    0 => fma64(e, a, b, c),
                    _ if exponent64(c) > 1023 => float::fma64_scaled(e, a, b, c, 128),
                    _ => float::fma64_scaled(e, a, b, c, -128),
                }
                .to_bits()
            },
            simple::div_fmas64,
            D,
            [Ty::B64, Ty::B64, Ty::B64, Ty::Mask],
        ),
        Opcode::V_DIV_FIXUP_F32 => simple_lane(
            |_, s| {
                let (q, den, num) = (s32(s[0]), s32(s[1]), s32(s[2]));
                let extreme = exponent32(num) - exponent32(den) < -150;
                w32(div_fixup(f64::from(q), f64::from(den), f64::from(num), extreme) as f32)
            },
            simple::div_fixup32,
            F,
            [F, F, F, N],
        ),
        Opcode::V_DIV_FIXUP_F64 => simple_lane(
            |_, s| {
                let (q, den, num) = (d(s[0]), d(s[1]), d(s[2]));
                let extreme = exponent64(num) - exponent64(den) < -1075;
                div_fixup(q, den, num, extreme).to_bits()
            },
            simple::div_fixup64,
            D,
            [D, D, D, N],
        ),
        Opcode::V_DIV_FIXUP_F16 => h3(|e, s| wh(e, div_fixup(hf(s[0]), hf(s[1]), hf(s[2]), false)), High::Keep),
        Opcode::V_DIV_FIXUP_LEGACY_F16 => h3(|e, s| wh(e, div_fixup(hf(s[0]), hf(s[1]), hf(s[2]), false)), High::Zero),
        _ => return None,
    })
}

fn exponent32(value: f32) -> i32 {
    (value.to_bits() >> 23 & 0xff) as i32
}
fn exponent64(value: f64) -> i32 {
    (value.to_bits() >> 52 & 0x7ff) as i32
}

/// Special cases of a division whose quotient has been computed.
fn div_fixup(quotient: f64, denominator: f64, numerator: f64, underflow: bool) -> f64 {
    let sign = if denominator.is_sign_negative() == numerator.is_sign_negative() { 1.0 } else { -1.0 };
    if numerator.is_nan() {
        numerator
    } else if denominator.is_nan() {
        denominator
    } else if (denominator == 0.0 && numerator == 0.0) || (denominator.is_infinite() && numerator.is_infinite()) {
        -f64::NAN.abs()
    } else if denominator == 0.0 || numerator.is_infinite() {
        sign * f64::INFINITY
    } else if denominator.is_infinite() || numerator == 0.0 || underflow {
        sign * 0.0
    } else if !quotient.is_finite() {
        // The manuals name the denominator's exponent here, whose special cases are done with: the quotient's is meant.
        sign * f64::INFINITY
    } else {
        sign * quotient.abs()
    }
}

/// Scales one operand of a division; the bit says that the quotient is to be scaled back.
fn div_scale32(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    let (value, den, num) = (s32(s[0]), s32(s[1]), s32(s[2]));
    let scaled = |by: i32| w32(to_f32(float::ldexp64(f64::from(value), by), Round::Nearest));
    let denormal = |v: f64| v != 0.0 && v.abs() < f64::from(f32::MIN_POSITIVE);
    let reciprocal_denormal = den.is_finite() && denormal(1.0 / f64::from(den));
    let quotient_denormal = denormal(f64::from(num) / f64::from(den));
    if num == 0.0 || den == 0.0 {
        (w32(f32::NAN), false)
    } else if exponent32(num) - exponent32(den) >= 96 {
        (if s[0] == s[1] { scaled(64) } else { s[0] }, true)
    } else if exponent32(den) == 0 {
        (scaled(64), false)
    } else if reciprocal_denormal && quotient_denormal {
        // The manuals say 2^64 here, which would overflow: the denominator is as large as can be.
        (if s[0] == s[1] { scaled(-64) } else { s[0] }, true)
    } else if reciprocal_denormal {
        (scaled(-64), false)
    } else if quotient_denormal {
        (if s[0] == s[2] { scaled(64) } else { s[0] }, true)
    } else if exponent32(num) <= 23 {
        (scaled(64), false)
    } else {
        (s[0], false)
    }
}

fn div_scale64(_: &Env, s: &[u64; 4]) -> (u64, bool) {
    let (value, den, num) = (d(s[0]), d(s[1]), d(s[2]));
    let scaled = |by: i32| float::ldexp64(value, by).to_bits();
    let denormal = |v: f64| v != 0.0 && v.abs() < f64::MIN_POSITIVE;
    // A quotient that underflows to zero in double precision is denormal to the hardware, which looks at exponents.
    let tiny = |n: f64, q: f64| denormal(q) || (q == 0.0 && n != 0.0);
    let reciprocal_denormal = denormal(1.0 / den);
    let quotient_denormal = tiny(num, num / den) && den.is_finite();
    if num == 0.0 || den == 0.0 {
        (f64::NAN.to_bits(), false)
    } else if exponent64(num) - exponent64(den) >= 768 {
        (if s[0] == s[1] { scaled(128) } else { s[0] }, true)
    } else if exponent64(den) == 0 {
        (scaled(128), false)
    } else if reciprocal_denormal && quotient_denormal {
        (if s[0] == s[1] { scaled(-128) } else { s[0] }, true)
    } else if reciprocal_denormal {
        (scaled(-128), false)
    } else if quotient_denormal {
        (if s[0] == s[2] { scaled(128) } else { s[0] }, true)
    } else if exponent64(num) <= 53 {
        (scaled(128), false)
    } else {
        (s[0], false)
    }
}
