//! Minimum and maximum as IEEE 754-2019 has them (`v_min_num_f32`, `v_minimum_f32`), combinations of two of them, and
//! the middle of three numbers.

use rustc_apfloat::Float;
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};

use super::lane::{Lane, T};
use super::number::{Env, f16, f32};
use super::state::Loose;

/// The smaller or the greater of two numbers; -0 is less than +0.
fn pick<F: Float>(a: u64, b: u64, greatest: bool) -> u64 {
    let (x, y) = (F::from_bits(a.into()), F::from_bits(b.into()));
    let first_is_less = if x.is_zero() && y.is_zero() { x.is_negative() } else { x < y };
    if first_is_less != greatest { a } else { b }
}

/// A number rather than a NaN: `minimumNumber` and `maximumNumber`.
fn number<F: Float>(a: u64, b: u64, greatest: bool) -> u64 {
    match (F::from_bits(a.into()).is_nan(), F::from_bits(b.into()).is_nan()) {
        (true, _) => b,
        (false, true) => a,
        _ => pick::<F>(a, b, greatest),
    }
}

/// A NaN rather than a number: `minimum` and `maximum`.
fn strict<F: Float>(a: u64, b: u64, greatest: bool) -> u64 {
    let nan = [a, b].iter().any(|&bits| F::from_bits(bits.into()).is_nan());
    if nan { F::NAN.to_bits() as u64 } else { pick::<F>(a, b, greatest) }
}

/// The middle one as the manuals write it down, where the comparison takes zeros of either sign for the same; with a
/// NaN, the least number.
fn middle<F: Float>(s: &[u64]) -> u64 {
    if s.iter().any(|&bits| F::from_bits(bits.into()).is_nan()) {
        return number::<F>(number::<F>(s[0], s[1], false), s[2], false);
    }
    let top = F::from_bits(pick::<F>(pick::<F>(s[0], s[1], true), s[2], true).into());
    match s.iter().position(|&bits| F::from_bits(bits.into()) == top) {
        Some(0) => pick::<F>(s[1], s[2], true),
        Some(1) => pick::<F>(s[0], s[2], true),
        _ => pick::<F>(s[0], s[1], true),
    }
}

/// Two bfloat16 numbers, for the packed forms.
pub fn brains(operation: &str) -> Option<fn(&[u64; 3]) -> u64> {
    Some(match operation {
        "min_num" => |s| number::<BFloat>(s[0], s[1], false),
        "max_num" => |s| number::<BFloat>(s[0], s[1], true),
        _ => return None,
    })
}

/// Two and three halves, for the packed forms.
pub fn halves(operation: &str) -> Option<fn(&Env, &[u64; 3]) -> u64> {
    Some(match operation {
        "min_num" => |_, s| number::<Half>(s[0], s[1], false),
        "max_num" => |_, s| number::<Half>(s[0], s[1], true),
        "min3_num" => |_, s| number::<Half>(number::<Half>(s[0], s[1], false), s[2], false),
        "max3_num" => |_, s| number::<Half>(number::<Half>(s[0], s[1], true), s[2], true),
        "minimum" => |_, s| strict::<Half>(s[0], s[1], false),
        "maximum" => |_, s| strict::<Half>(s[0], s[1], true),
        "minimum3" => |_, s| strict::<Half>(strict::<Half>(s[0], s[1], false), s[2], false),
        "maximum3" => |_, s| strict::<Half>(strict::<Half>(s[0], s[1], true), s[2], true),
        _ => return None,
    })
}

fn of<F: Float>(ty: T, operation: &str) -> Option<Lane> {
    type Function = fn(&Env, &[u64]) -> u64;
    let two = |f: Function| Some((2, f));
    let three = |f: Function| Some((3, f));
    let (count, f) = match operation {
        "min_num" => two(|_, s| number::<F>(s[0], s[1], false)),
        "max_num" => two(|_, s| number::<F>(s[0], s[1], true)),
        "minimum" => two(|_, s| strict::<F>(s[0], s[1], false)),
        "maximum" => two(|_, s| strict::<F>(s[0], s[1], true)),
        "min3_num" => three(|_, s| number::<F>(number::<F>(s[0], s[1], false), s[2], false)),
        "max3_num" => three(|_, s| number::<F>(number::<F>(s[0], s[1], true), s[2], true)),
        "minimum3" => three(|_, s| strict::<F>(strict::<F>(s[0], s[1], false), s[2], false)),
        "maximum3" => three(|_, s| strict::<F>(strict::<F>(s[0], s[1], true), s[2], true)),
        "minmax_num" => three(|_, s| number::<F>(number::<F>(s[0], s[1], false), s[2], true)),
        "maxmin_num" => three(|_, s| number::<F>(number::<F>(s[0], s[1], true), s[2], false)),
        "minimummaximum" => three(|_, s| strict::<F>(strict::<F>(s[0], s[1], false), s[2], true)),
        "maximumminimum" => three(|_, s| strict::<F>(strict::<F>(s[0], s[1], true), s[2], false)),
        "med3_num" => three(|_, s| middle::<F>(s)),
        _ => None,
    }?;
    let src: &'static [T] = match (ty, count) {
        (T::F16, 2) => &[T::F16, T::F16],
        (T::F16, _) => &[T::F16, T::F16, T::F16],
        (T::F32, 2) => &[T::F32, T::F32],
        (T::F32, _) => &[T::F32, T::F32, T::F32],
        (_, 2) => &[T::F64, T::F64],
        _ => &[T::F64, T::F64, T::F64],
    };
    let loose = match ty {
        T::F16 => Loose::Nan16,
        T::F32 => Loose::Nan32,
        _ => Loose::Nan64,
    };
    Some(Lane { dst: ty, src, f, loose: Some(loose), carry: None })
}

/// Combinations of the older minimum and maximum, which depend on the IEEE mode.
fn older(name: &str) -> Option<Lane> {
    let op = |ty, src, f| Some(Lane { dst: ty, src, f, loose: None, carry: None });
    let (singles, halves): (&'static [T], &'static [T]) = (&[T::F32, T::F32, T::F32], &[T::F16, T::F16, T::F16]);
    match name {
        "v_minmax_f32" => op(T::F32, singles, |e: &Env, s: &[u64]| f32::max(e, f32::min(e, s[0], s[1]), s[2])),
        "v_maxmin_f32" => op(T::F32, singles, |e, s| f32::min(e, f32::max(e, s[0], s[1]), s[2])),
        "v_minmax_f16" => op(T::F16, halves, |e, s| f16::max(e, f16::min(e, s[0], s[1]), s[2])),
        "v_maxmin_f16" => op(T::F16, halves, |e, s| f16::min(e, f16::max(e, s[0], s[1]), s[2])),
        _ => None,
    }
}

fn integers(name: &str) -> Option<Lane> {
    let op = |f| Some(Lane { dst: T::U32, src: &[T::U32, T::U32, T::U32], f, loose: None, carry: None });
    match name {
        "v_minmax_u32" => op(|_: &Env, s: &[u64]| s[0].min(s[1]).max(s[2])),
        "v_maxmin_u32" => op(|_, s| s[0].max(s[1]).min(s[2])),
        "v_minmax_i32" => op(|_, s| (s[0] as i32).min(s[1] as i32).max(s[2] as i32) as u32 as u64),
        "v_maxmin_i32" => op(|_, s| (s[0] as i32).max(s[1] as i32).min(s[2] as i32) as u32 as u64),
        _ => None,
    }
}

/// The definition of such an operation.
pub fn definition(name: &str) -> Option<Lane> {
    if let Some(lane) = older(name).or_else(|| integers(name)) {
        return Some(lane);
    }
    let (operation, ty) = name.strip_prefix("v_")?.rsplit_once('_')?;
    match ty {
        "f16" => of::<Half>(T::F16, operation),
        "f32" => of::<Single>(T::F32, operation),
        "f64" => of::<Double>(T::F64, operation),
        _ => None,
    }
}
