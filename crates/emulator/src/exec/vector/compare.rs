//! Vector comparisons: `v_cmp_*` and `v_cmpx_*`.

use wavetap_amdgpu::{CompareInfo, NumberFormat, Opcode, OpcodeFlags, Predicate};

use super::float_ops::s32;
use super::run_test;
use crate::float::{from_bf16, from_f16};
use crate::lanes::{Comparison, comparison};
use crate::op::semantics::{Semantics, Ty};
use crate::state::op::Meaning;

fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}
fn h(bits: u64) -> f64 {
    from_f16(bits as u16)
}

/// A bfloat16.
pub(crate) fn bf16_value(bits: u64) -> f64 {
    from_bf16(bits as u16)
}

/// The classes a `v_cmp_class` mask names, by bit (AMD ISA guides): signaling and quiet NaN, then -infinity to
/// +infinity.
fn class(nan: bool, quiet: bool, negative: bool, infinite: bool, zero: bool, denormal: bool, mask: u64) -> bool {
    let bit = if nan {
        u32::from(quiet)
    } else {
        match (negative, infinite, zero, denormal) {
            (true, true, _, _) => 2,
            (true, _, true, _) => 5,
            (true, _, _, true) => 4,
            (true, ..) => 3,
            (false, true, _, _) => 9,
            (false, _, true, _) => 6,
            (false, _, _, true) => 7,
            (false, ..) => 8,
        }
    };
    mask >> bit & 1 != 0
}

fn class64(bits: u64, mask: u64) -> bool {
    let v = d(bits);
    class(v.is_nan(), bits >> 51 & 1 != 0, v.is_sign_negative(), v.is_infinite(), v == 0.0, v.is_subnormal(), mask)
}
fn class32(bits: u64, mask: u64) -> bool {
    let v = s32(bits);
    class(v.is_nan(), bits >> 22 & 1 != 0, v.is_sign_negative(), v.is_infinite(), v == 0.0, v.is_subnormal(), mask)
}
fn class16(bits: u64, mask: u64) -> bool {
    let v = h(bits);
    let denormal = bits & 0x7c00 == 0 && bits & 0x3ff != 0;
    class(v.is_nan(), bits >> 9 & 1 != 0, bits & 0x8000 != 0, v.is_infinite(), v == 0.0, denormal, mask)
}

macro_rules! float_test {
    ($predicate:expr, $from:expr) => {{
        let test: &'static dyn Comparison = match $predicate {
            Predicate::F => comparison(|_, _, _| false),
            Predicate::Lt => comparison(|_, a, b| $from(a) < $from(b)),
            Predicate::Eq => comparison(|_, a, b| $from(a) == $from(b)),
            Predicate::Le => comparison(|_, a, b| $from(a) <= $from(b)),
            Predicate::Gt => comparison(|_, a, b| $from(a) > $from(b)),
            Predicate::Lg => comparison(|_, a, b| $from(a) < $from(b) || $from(a) > $from(b)),
            Predicate::Ge => comparison(|_, a, b| $from(a) >= $from(b)),
            Predicate::O => comparison(|_, a, b| !$from(a).is_nan() && !$from(b).is_nan()),
            Predicate::U => comparison(|_, a, b| $from(a).is_nan() || $from(b).is_nan()),
            Predicate::Nge => comparison(|_, a, b| !($from(a) >= $from(b))),
            Predicate::Nlg => comparison(|_, a, b| !($from(a) < $from(b) || $from(a) > $from(b))),
            Predicate::Ngt => comparison(|_, a, b| !($from(a) > $from(b))),
            Predicate::Nle => comparison(|_, a, b| !($from(a) <= $from(b))),
            Predicate::Neq => comparison(|_, a, b| $from(a) != $from(b)),
            Predicate::Nlt => comparison(|_, a, b| !($from(a) < $from(b))),
            Predicate::T => comparison(|_, _, _| true),
            _ => return None,
        };
        test
    }};
}

macro_rules! integer_test {
    ($predicate:expr, $t:ty) => {{
        let test: &'static dyn Comparison = match $predicate {
            Predicate::F => comparison(|_, _, _| false),
            Predicate::Lt => comparison(|_, a, b| (a as $t) < (b as $t)),
            Predicate::Eq => comparison(|_, a, b| (a as $t) == (b as $t)),
            Predicate::Le => comparison(|_, a, b| (a as $t) <= (b as $t)),
            Predicate::Gt => comparison(|_, a, b| (a as $t) > (b as $t)),
            Predicate::Ne => comparison(|_, a, b| (a as $t) != (b as $t)),
            Predicate::Ge => comparison(|_, a, b| (a as $t) >= (b as $t)),
            Predicate::T => comparison(|_, _, _| true),
            _ => return None,
        };
        test
    }};
}

/// A comparison of floats, in their type.
#[allow(clippy::neg_cmp_op_on_partial_ord)] // The negated comparisons are true for NaN.
pub(crate) fn float(predicate: Predicate, ty: Ty) -> Option<&'static dyn Comparison> {
    Some(match ty {
        Ty::F16 => float_test!(predicate, h),
        Ty::F32 => float_test!(predicate, s32),
        Ty::F64 => float_test!(predicate, d),
        _ => return None,
    })
}

/// The meaning of a vector comparison.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    let CompareInfo { predicate, format } = opcode.compare()?;
    let exec = opcode.is_any(OpcodeFlags::CMPX);
    if predicate == Predicate::Class {
        let (f, ty): (&'static dyn Comparison, Ty) = match format {
            NumberFormat::F16 => (comparison(|_, a, b| class16(a, b)), Ty::B16),
            NumberFormat::F32 => (comparison(|_, a, b| class32(a, b)), Ty::B32),
            NumberFormat::F64 => (comparison(|_, a, b| class64(a, b)), Ty::B64),
            _ => return None,
        };
        let mask = if format == NumberFormat::F16 { Ty::B16 } else { Ty::B32 };
        return Some((run_test, Semantics::Test { f, src: [ty, mask], exec }));
    }
    let (f, ty) = match format {
        NumberFormat::F16 => (float(predicate, Ty::F16)?, Ty::F16),
        NumberFormat::F32 => (float(predicate, Ty::F32)?, Ty::F32),
        NumberFormat::F64 => (float(predicate, Ty::F64)?, Ty::F64),
        NumberFormat::I16 => (integer_test!(predicate, i16), Ty::B16),
        NumberFormat::U16 => (integer_test!(predicate, u16), Ty::B16),
        NumberFormat::I32 => (integer_test!(predicate, i32), Ty::B32),
        NumberFormat::U32 => (integer_test!(predicate, u32), Ty::B32),
        NumberFormat::I64 => (integer_test!(predicate, i64), Ty::B64),
        NumberFormat::U64 => (integer_test!(predicate, u64), Ty::B64),
        _ => return None,
    };
    Some((run_test, Semantics::Test { f, src: [ty, ty], exec }))
}
