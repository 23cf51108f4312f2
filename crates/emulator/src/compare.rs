//! Vector comparisons: `v_cmp_*` and `v_cmpx_*`.

use super::float::from_f16;
use super::lanes::{Comparison, comparison};
use super::op::{Meaning, Semantics, Ty};
use super::vector::run_test;
use super::vector_float::s32;

fn d(bits: u64) -> f64 {
    f64::from_bits(bits)
}
fn h(bits: u64) -> f64 {
    from_f16(bits as u16)
}

/// A bfloat16.
pub(super) fn bf16_value(bits: u64) -> f64 {
    super::float::from_bf16(bits as u16)
}

/// The classes a `v_cmp_class` mask names, by bit (AMD ISA guides): signaling and quiet NaN, then -infinity to +infinity.
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
    ($operation:expr, $from:expr) => {{
        let test: &'static dyn Comparison = match $operation {
            "f" => comparison(|_, _, _| false),
            "lt" => comparison(|_, a, b| $from(a) < $from(b)),
            "eq" => comparison(|_, a, b| $from(a) == $from(b)),
            "le" => comparison(|_, a, b| $from(a) <= $from(b)),
            "gt" => comparison(|_, a, b| $from(a) > $from(b)),
            "lg" => comparison(|_, a, b| $from(a) < $from(b) || $from(a) > $from(b)),
            "ge" => comparison(|_, a, b| $from(a) >= $from(b)),
            "o" => comparison(|_, a, b| !$from(a).is_nan() && !$from(b).is_nan()),
            "u" => comparison(|_, a, b| $from(a).is_nan() || $from(b).is_nan()),
            "nge" => comparison(|_, a, b| !($from(a) >= $from(b))),
            "nlg" => comparison(|_, a, b| !($from(a) < $from(b) || $from(a) > $from(b))),
            "ngt" => comparison(|_, a, b| !($from(a) > $from(b))),
            "nle" => comparison(|_, a, b| !($from(a) <= $from(b))),
            "neq" => comparison(|_, a, b| $from(a) != $from(b)),
            "nlt" => comparison(|_, a, b| !($from(a) < $from(b))),
            "tru" | "t" => comparison(|_, _, _| true),
            _ => return None,
        };
        test
    }};
}

macro_rules! integer_test {
    ($operation:expr, $t:ty) => {{
        let test: &'static dyn Comparison = match $operation {
            "f" => comparison(|_, _, _| false),
            "lt" => comparison(|_, a, b| (a as $t) < (b as $t)),
            "eq" => comparison(|_, a, b| (a as $t) == (b as $t)),
            "le" => comparison(|_, a, b| (a as $t) <= (b as $t)),
            "gt" => comparison(|_, a, b| (a as $t) > (b as $t)),
            "ne" => comparison(|_, a, b| (a as $t) != (b as $t)),
            "ge" => comparison(|_, a, b| (a as $t) >= (b as $t)),
            "t" => comparison(|_, _, _| true),
            _ => return None,
        };
        test
    }};
}

/// A comparison of floats by its name, in their type.
#[allow(clippy::neg_cmp_op_on_partial_ord)] // The negated comparisons are true for NaN.
pub(super) fn float(operation: &str, ty: Ty) -> Option<&'static dyn Comparison> {
    Some(match ty {
        Ty::F16 => float_test!(operation, h),
        Ty::F32 => float_test!(operation, s32),
        Ty::F64 => float_test!(operation, d),
        _ => return None,
    })
}

/// The meaning of a vector comparison.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    let (exec, rest) = match name.strip_prefix("v_cmpx_") {
        Some(rest) => (true, rest),
        None => (false, name.strip_prefix("v_cmp_")?),
    };
    let (operation, kind) = rest.rsplit_once('_')?;
    if operation == "class" {
        let (f, ty): (&'static dyn Comparison, Ty) = match kind {
            "f16" => (comparison(|_, a, b| class16(a, b)), Ty::B16),
            "f32" => (comparison(|_, a, b| class32(a, b)), Ty::B32),
            "f64" => (comparison(|_, a, b| class64(a, b)), Ty::B64),
            _ => return None,
        };
        let mask = if kind == "f16" { Ty::B16 } else { Ty::B32 };
        return Some((run_test, Semantics::Test { f, src: [ty, mask], exec }));
    }
    let (f, ty) = match kind {
        "f16" => (float(operation, Ty::F16)?, Ty::F16),
        "f32" => (float(operation, Ty::F32)?, Ty::F32),
        "f64" => (float(operation, Ty::F64)?, Ty::F64),
        "i16" => (integer_test!(operation, i16), Ty::B16),
        "u16" => (integer_test!(operation, u16), Ty::B16),
        "i32" => (integer_test!(operation, i32), Ty::B32),
        "u32" => (integer_test!(operation, u32), Ty::B32),
        "i64" => (integer_test!(operation, i64), Ty::B64),
        "u64" => (integer_test!(operation, u64), Ty::B64),
        _ => return None,
    };
    Some((run_test, Semantics::Test { f, src: [ty, ty], exec }))
}
