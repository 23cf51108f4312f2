//! Floating-point arithmetic with rounding modes and denormal modes, on the bits of numbers: a library's, none of the
//! emulator's.

use rustc_apfloat::ieee::{BFloat, Double, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round};
use wavetap::isa::Inst;

use super::lane::T;
use super::state::State;

/// What arithmetic depends on beside its operands.
#[derive(Clone, Copy)]
pub struct Env {
    pub round32: Round,
    /// Of half and double precision.
    pub round64: Round,
    in32: bool,
    out32: bool,
    in64: bool,
    out64: bool,
    pub dx10_clamp: bool,
    pub ieee: bool,
    pub clamp: bool,
    pub omod: u8,
}

fn round(bits: u32) -> Round {
    [Round::NearestTiesToEven, Round::TowardPositive, Round::TowardNegative, Round::TowardZero][(bits & 3) as usize]
}

fn flush(bits: u64, width: u32, fraction: u32) -> u64 {
    let sign = 1 << (width - 1);
    if (bits & (sign - 1)) >> fraction == 0 { bits & sign } else { bits }
}

pub fn flush16(bits: u64) -> u64 {
    flush(bits & 0xffff, 16, 10)
}

pub fn flush32(bits: u64) -> u64 {
    flush(bits & 0xffff_ffff, 32, 23)
}

pub fn flush64(bits: u64) -> u64 {
    flush(bits, 64, 52)
}

impl Env {
    /// MODE, and the modifiers of the instruction (AMD ISA guides, "Mode register").
    pub fn of(inst: &Inst, state: &State) -> Env {
        let mode = state.mode;
        Env {
            round32: round(mode),
            round64: round(mode >> 2),
            in32: mode & 0x10 == 0,
            out32: mode & 0x20 == 0,
            in64: mode & 0x40 == 0,
            out64: mode & 0x80 == 0,
            dx10_clamp: mode & 0x100 != 0,
            ieee: mode & 0x200 != 0,
            clamp: inst.modifiers.clamp,
            omod: inst.modifiers.omod,
        }
    }

    /// A source with denormals as MODE says.
    pub fn flush_in(&self, ty: T, bits: u64) -> u64 {
        match ty {
            T::F32 if self.in32 => flush32(bits),
            T::F64 if self.in64 => flush64(bits),
            T::F16 if self.in64 => flush16(bits),
            T::H16 if self.in64 => flush16(bits) | flush16(bits >> 16) << 16,
            _ => bits,
        }
    }

    /// A result with denormals as MODE says, with output modifier and clamp.
    pub fn finish(&self, ty: T, bits: u64) -> u64 {
        match ty {
            T::F32 => self.finish_as::<Single>(bits, self.out32, self.round32),
            T::F64 => self.finish_as::<Double>(bits, self.out64, self.round64),
            T::F16 => self.finish_as::<Half>(bits, self.out64, self.round64),
            _ => bits,
        }
    }

    fn finish_as<F: Float>(&self, bits: u64, flushes: bool, round: Round) -> u64 {
        let mut value = F::from_bits(bits.into());
        let flushed = |value: F| if flushes && value.is_denormal() { F::ZERO.copy_sign(value) } else { value };
        value = flushed(value);
        // "Ignored if output denormals are enabled", "ignored if the IEEE mode bit is set".
        if self.omod != 0 && flushes && !self.ieee && !value.is_nan() {
            value = value.scalbn_r([0, 1, 2, -1][usize::from(self.omod)], round);
            // "-0 is flushed to +0": whether what becomes zero as a denormal is meant, too, is not documented.
            value = if value.is_zero() { F::ZERO } else { flushed(value) };
        }
        if self.clamp {
            let one = F::from_u128(1).value;
            if value.is_nan() {
                value = if self.dx10_clamp { F::ZERO } else { value };
            } else if value.is_negative() || value.is_zero() {
                value = F::ZERO;
            } else if value > one {
                value = one;
            }
        }
        value.to_bits() as u64
    }
}

/// The half-precision bits of a number.
pub fn half_of(value: f64) -> u64 {
    convert::<Double, Half>(value.to_bits(), Round::NearestTiesToEven)
}

pub fn convert<F: FloatConvert<G>, G: Float>(bits: u64, round: Round) -> u64 {
    let mut loses = false;
    F::from_bits(bits.into()).convert_r(round, &mut loses).value.to_bits() as u64
}

macro_rules! operations {
    ($module:ident, $float:ty) => {
        #[allow(dead_code)] // Not every format needs every operation.
        pub mod $module {
            use super::*;

            pub type F = $float;

            pub fn from(bits: u64) -> F {
                F::from_bits(bits.into())
            }
            pub fn add(a: u64, b: u64, round: Round) -> u64 {
                from(a).add_r(from(b), round).value.to_bits() as u64
            }
            pub fn sub(a: u64, b: u64, round: Round) -> u64 {
                from(a).sub_r(from(b), round).value.to_bits() as u64
            }
            pub fn mul(a: u64, b: u64, round: Round) -> u64 {
                from(a).mul_r(from(b), round).value.to_bits() as u64
            }
            pub fn fma(a: u64, b: u64, c: u64, round: Round) -> u64 {
                from(a).mul_add_r(from(b), from(c), round).value.to_bits() as u64
            }
            pub fn integral(a: u64, round: Round) -> u64 {
                let value = from(a).round_to_integral(round).value;
                value.to_bits() as u64
            }
            pub fn negate(a: u64) -> u64 {
                (-from(a)).to_bits() as u64
            }
            /// Minimum as the manuals write it down.
            pub fn min(e: &Env, a: u64, b: u64) -> u64 {
                least(e, a, b, false)
            }
            pub fn max(e: &Env, a: u64, b: u64) -> u64 {
                least(e, a, b, true)
            }
            fn least(e: &Env, a: u64, b: u64, greatest: bool) -> u64 {
                let (x, y) = (from(a), from(b));
                // The highest bit of the fraction makes a NaN quiet.
                let quiet = |bits: u64| bits | 1 << (<F as Float>::PRECISION - 2);
                if e.ieee && x.is_signaling() {
                    quiet(a)
                } else if e.ieee && y.is_signaling() {
                    quiet(b)
                } else if x.is_nan() {
                    b
                } else if y.is_nan() {
                    a
                } else if x.is_zero() && y.is_zero() {
                    if x.is_negative() != greatest { a } else { b }
                } else if (x < y) != greatest {
                    a
                } else {
                    b
                }
            }
            /// The middle one as the manuals write it down.
            pub fn median(e: &Env, s: &[u64]) -> u64 {
                if s.iter().any(|&bits| from(bits).is_nan()) {
                    return min(e, min(e, s[0], s[1]), s[2]);
                }
                let top = from(max(e, max(e, s[0], s[1]), s[2]));
                if top == from(s[0]) {
                    max(e, s[1], s[2])
                } else if top == from(s[1]) {
                    max(e, s[0], s[2])
                } else {
                    max(e, s[0], s[1])
                }
            }
            /// Significand in [0.5, 1); infinities and NaN stay.
            pub fn mantissa(a: u64) -> u64 {
                let value = from(a);
                if !value.is_finite() || value.is_zero() {
                    return a;
                }
                let mut exponent = 0;
                value.frexp(&mut exponent).to_bits() as u64
            }
            pub fn exponent(a: u64) -> i32 {
                let value = from(a);
                if !value.is_finite() || value.is_zero() {
                    return 0;
                }
                value.ilogb() + 1
            }
            pub fn scale(a: u64, exponent: i32, round: Round) -> u64 {
                let value = from(a);
                if value.is_nan() { a } else { value.scalbn_r(exponent, round).to_bits() as u64 }
            }
            /// `x - floor(x)`, less than one.
            pub fn fraction(a: u64) -> u64 {
                let value = from(a);
                if !value.is_finite() {
                    return F::NAN.to_bits() as u64;
                }
                let floor = value.round_to_integral(Round::TowardNegative).value;
                let below = F::from_u128(1).value.next_down().value;
                let fraction = value.sub_r(floor, Round::NearestTiesToEven).value;
                if fraction > below { below } else { fraction }.to_bits() as u64
            }
            /// To an integer, saturated; NaN gives 0.
            pub fn to_integer(a: u64, width: usize, signed: bool, round: Round) -> u64 {
                let value = from(a);
                let mut exact = false;
                if value.is_nan() {
                    0
                } else if signed {
                    value.to_i128_r(width, round, &mut exact).value as u64 & (u64::MAX >> (64 - width))
                } else {
                    value.to_u128_r(width, round, &mut exact).value as u64
                }
            }
            pub fn from_signed(value: i64, round: Round) -> u64 {
                F::from_i128_r(value.into(), round).value.to_bits() as u64
            }
            pub fn is_nan(a: u64) -> bool {
                from(a).is_nan()
            }
            /// A number of any size in the format, by way of one with a longer fraction.
            pub fn of_quad(value: Quad, round: Round) -> u64 {
                let mut loses = false;
                let narrow: F = value.convert_r(round, &mut loses).value;
                narrow.to_bits() as u64
            }
            pub fn quad(a: u64) -> Quad {
                let mut loses = false;
                from(a).convert(&mut loses).value
            }
        }
    };
}

operations!(f16, Half);
operations!(f32, Single);
operations!(f64, Double);
operations!(bf16, BFloat);

/// Rounding to odd: what is lost shows in the last bit, so that rounding again to a shorter format is right in every
/// mode. Of the mode itself only the sign of an exact zero depends.
pub trait Odd: Sized {
    fn add_odd(self, other: Self, round: Round) -> Self;
    fn mul_add_odd(self, factor: Self, other: Self, round: Round) -> Self;
}

fn odd(sum: impl Fn(Round) -> rustc_apfloat::StatusAnd<Quad>, round: Round) -> Quad {
    let cut = sum(Round::TowardZero);
    if cut.value.is_zero() {
        return sum(round).value;
    }
    let inexact = cut.status.contains(rustc_apfloat::Status::INEXACT) && cut.value.is_finite();
    if inexact { Quad::from_bits(cut.value.to_bits() | 1) } else { cut.value }
}

impl Odd for Quad {
    fn add_odd(self, other: Quad, round: Round) -> Quad {
        odd(|mode| self.add_r(other, mode), round)
    }

    fn mul_add_odd(self, factor: Quad, other: Quad, round: Round) -> Quad {
        odd(|mode| self.mul_add_r(factor, other, mode), round)
    }
}
