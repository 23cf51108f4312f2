//! Vector comparisons.

use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert};
use std::cmp::Ordering;
use wavetap::isa::{Inst, Operand, Role, Target};

use super::choose::Wishes;
use super::definition::Definition;
use super::lane::{self, T};
use super::number::Env;
use super::random::Bits;
use super::state::State;

/// The kind of number at the end of a name.
fn kind(name: &str) -> Option<(T, Bits)> {
    Some(match name.rsplit_once('_')?.1 {
        "f16" => (T::F16, Bits::Half),
        "f32" => (T::F32, Bits::Single),
        "f64" => (T::F64, Bits::Double),
        "i16" | "u16" => (T::U16, Bits::Word16),
        "i32" | "u32" => (T::U32, Bits::Word32),
        "i64" | "u64" => (T::U64, Bits::Word64),
        _ => return None,
    })
}

fn float_order<F: Float>(a: u64, b: u64) -> Option<Ordering> {
    F::from_bits(a.into()).partial_cmp(&F::from_bits(b.into()))
}

pub fn order(kind: &str, a: u64, b: u64) -> Option<Ordering> {
    match kind {
        "f16" => float_order::<Half>(a, b),
        "f32" => float_order::<Single>(a, b),
        "f64" => float_order::<Double>(a, b),
        "i16" => Some((a as i16).cmp(&(b as i16))),
        "i32" => Some((a as i32).cmp(&(b as i32))),
        "i64" => Some((a as i64).cmp(&(b as i64))),
        _ => Some(a.cmp(&b)),
    }
}

/// What an ordering is called; none: the numbers are unordered.
pub fn holds(relation: &str, order: Option<Ordering>) -> Option<bool> {
    let (less, equal, greater) =
        (order == Some(Ordering::Less), order == Some(Ordering::Equal), order == Some(Ordering::Greater));
    Some(match relation {
        "f" => false,
        "t" | "tru" => true,
        "lt" => less,
        "eq" => equal,
        "le" => less || equal,
        "gt" => greater,
        "ne" => !equal,
        "lg" => less || greater,
        "ge" => greater || equal,
        "o" => order.is_some(),
        "u" => order.is_none(),
        "nge" => !(greater || equal),
        "nlg" => !(less || greater),
        "ngt" => !greater,
        "nle" => !(less || equal),
        "neq" => !equal,
        "nlt" => !less,
        _ => return None,
    })
}

/// Whether a number is of one of the classes that a mask names.
fn class<F: Float + FloatConvert<Double>>(bits: u64, mask: u64) -> bool {
    let value = F::from_bits(bits.into());
    // Signalling NaN, quiet NaN, then from -infinity to +infinity.
    let magnitude = if value.is_infinite() {
        0
    } else if value.is_zero() {
        3
    } else if value.is_denormal() {
        2
    } else {
        1
    };
    let bit = if value.is_nan() {
        u32::from(!value.is_signaling())
    } else if value.is_negative() {
        2 + magnitude
    } else {
        9 - magnitude
    };
    mask >> bit & 1 != 0
}

fn compare(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let name = inst.name();
    let exec = name.starts_with("v_cmpx_");
    let (relation, kind_name) = name.trim_start_matches("v_cmpx_").trim_start_matches("v_cmp_").rsplit_once('_')?;
    let env = Env::of(inst, state);
    let ty = kind(name)?.0;
    let is_class = relation == "class";
    let class_types = match ty {
        T::F16 => [T::B16, T::U16],
        T::F32 => [T::B32, T::U32],
        _ => [T::B64, T::U32],
    };
    let both = [ty, ty];
    let (sources, written) = lane::gather(inst, state, target, &env, if is_class { &class_types } else { &both })?;
    let mut result = 0;
    for lane in (0..state.lanes).filter(|lane| written >> lane & 1 != 0) {
        let (a, b) = (sources[0][lane], sources[1][lane]);
        let bit = match (is_class, ty) {
            (true, T::F16) => class::<Half>(a, b),
            (true, T::F32) => class::<Single>(a, b),
            (true, _) => class::<Double>(a, b),
            _ => holds(relation, order(kind_name, a, b))?,
        };
        result |= u64::from(bit) << lane;
    }
    // On gfx10 and later v_cmpx writes EXEC alone.
    let only_exec = exec && lane::fact(target, "generation") >= 10;
    if !only_exec {
        let to = inst
            .operand(Role::Sdst)
            .or_else(|| inst.operand(Role::Vdst))
            .and_then(Operand::reg)
            .map_or(106, |reg| reg.first.into());
        state.set_mask(to, result);
    }
    if exec {
        state.set_mask(126, result);
    }
    Some(())
}

/// The definition of a comparison.
pub fn definition(name: &str) -> Option<Definition> {
    let rest = name.strip_prefix("v_cmpx_").or_else(|| name.strip_prefix("v_cmp_"))?;
    let relation = rest.rsplit_once('_')?.0;
    if relation != "class" {
        holds(relation, None)?;
    }
    let (ty, bits) = kind(name)?;
    let types: &'static [Bits] = match (relation, bits) {
        ("class", Bits::Half) => &[Bits::Half, Bits::Word16],
        ("class", Bits::Single) => &[Bits::Single, Bits::Word32],
        ("class", _) => &[Bits::Double, Bits::Word32],
        (_, Bits::Half) => &[Bits::Half, Bits::Half],
        (_, Bits::Single) => &[Bits::Single, Bits::Single],
        (_, Bits::Double) => &[Bits::Double, Bits::Double],
        (_, Bits::Word16) => &[Bits::Word16, Bits::Word16],
        (_, Bits::Word64) => &[Bits::Word64, Bits::Word64],
        _ => &[Bits::Word32, Bits::Word32],
    };
    let integer = matches!(ty, T::U16 | T::U64);
    let wishes =
        Wishes { no_float_constants: integer || relation == "class", no_literals: ty == T::U64, ..Wishes::default() };
    Some(Definition { wishes, types, ..Definition::whole(compare) })
}
