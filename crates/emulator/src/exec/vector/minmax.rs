//! Minimum, maximum, median and their combinations, of floats of every width.
//!
//! There are three families. The old one (`v_min_f32`) quiets and gives a signaling NaN in IEEE mode and otherwise
//! prefers numbers to NaN; the *num* one (`v_min_num_f32`, gfx12) always prefers numbers; the third (`v_minimum_f32`)
//! always gives NaN. In all of them -0 is less than +0.

use wavetap_amdgpu::{MinMaxInfo, MinMaxOp, NumberFormat, Opcode};

use super::compare::bf16_value;
use super::float_ops::s32;
use super::int_ops::lane;
use crate::float::{Env, from_f16};
use crate::op::semantics::{High, LaneFn, Ty};
use crate::state::op::Meaning;

/// A function of two values: the mode and their bits.
type Pair = fn(&Env, u64, u64) -> u64;

macro_rules! family {
    ($module:ident, $value:expr, $sign:expr, $quiet:expr) => {
        pub(crate) mod $module {
            use super::*;

            fn is_nan(bits: u64) -> bool {
                $value(bits).is_nan()
            }

            fn signaling(bits: u64) -> bool {
                is_nan(bits) && bits & $quiet == 0
            }

            fn is_less(a: u64, b: u64) -> bool {
                let (x, y) = ($value(a), $value(b));
                x < y || (x == 0.0 && y == 0.0 && a & $sign != 0 && b & $sign == 0)
            }

            fn either(e: &Env, a: u64, b: u64, least: bool) -> u64 {
                if e.ieee && signaling(a) {
                    a | $quiet
                } else if e.ieee && signaling(b) {
                    b | $quiet
                } else if is_nan(a) {
                    b
                } else if is_nan(b) {
                    a
                } else if is_less(a, b) == least {
                    a
                } else {
                    b
                }
            }

            /// Of two numbers one; of a number and a NaN the number.
            pub(crate) fn number(a: u64, b: u64, least: bool) -> u64 {
                match (is_nan(a), is_nan(b)) {
                    (true, true) => a | $quiet,
                    (true, false) => b,
                    (false, true) => a,
                    _ if is_less(a, b) == least => a,
                    _ => b,
                }
            }

            fn propagating(a: u64, b: u64, least: bool) -> u64 {
                if signaling(a) {
                    a | $quiet
                } else if signaling(b) {
                    b | $quiet
                } else if is_nan(a) {
                    a
                } else if is_nan(b) {
                    b
                } else if is_less(a, b) == least {
                    a
                } else {
                    b
                }
            }

            fn middle(e: &Env, s: &[u64; 4], min: Pair, max: Pair) -> u64 {
                if s[..3].iter().any(|&bits| is_nan(bits)) {
                    return min(e, min(e, s[0], s[1]), s[2]);
                }
                let top = $value(max(e, max(e, s[0], s[1]), s[2]));
                if top == $value(s[0]) {
                    max(e, s[1], s[2])
                } else if top == $value(s[1]) {
                    max(e, s[0], s[2])
                } else {
                    max(e, s[0], s[1])
                }
            }

            pub(crate) fn triple(operation: MinMaxOp) -> Option<LaneFn> {
                Some(match operation {
                    MinMaxOp::Min3 => |e, s| either(e, either(e, s[0], s[1], true), s[2], true),
                    MinMaxOp::Max3 => |e, s| either(e, either(e, s[0], s[1], false), s[2], false),
                    MinMaxOp::Min3Num => |_, s| number(number(s[0], s[1], true), s[2], true),
                    MinMaxOp::Max3Num => |_, s| number(number(s[0], s[1], false), s[2], false),
                    MinMaxOp::Minimum3 => |_, s| propagating(propagating(s[0], s[1], true), s[2], true),
                    MinMaxOp::Maximum3 => |_, s| propagating(propagating(s[0], s[1], false), s[2], false),
                    MinMaxOp::Minmax => |e, s| either(e, either(e, s[0], s[1], true), s[2], false),
                    MinMaxOp::Maxmin => |e, s| either(e, either(e, s[0], s[1], false), s[2], true),
                    MinMaxOp::MinmaxNum => |_, s| number(number(s[0], s[1], true), s[2], false),
                    MinMaxOp::MaxminNum => |_, s| number(number(s[0], s[1], false), s[2], true),
                    MinMaxOp::Minimummaximum => |_, s| propagating(propagating(s[0], s[1], true), s[2], false),
                    MinMaxOp::Maximumminimum => |_, s| propagating(propagating(s[0], s[1], false), s[2], true),
                    MinMaxOp::Med3 => {
                        |e, s| middle(e, s, |e, a, b| either(e, a, b, true), |e, a, b| either(e, a, b, false))
                    }
                    MinMaxOp::Med3Num => {
                        |e, s| middle(e, s, |_, a, b| number(a, b, true), |_, a, b| number(a, b, false))
                    }
                    _ => return None,
                })
            }

            pub(crate) fn double(operation: MinMaxOp) -> Option<LaneFn> {
                Some(match operation {
                    MinMaxOp::Min => |e, s| either(e, s[0], s[1], true),
                    MinMaxOp::Max => |e, s| either(e, s[0], s[1], false),
                    MinMaxOp::MinNum => |_, s| number(s[0], s[1], true),
                    MinMaxOp::MaxNum => |_, s| number(s[0], s[1], false),
                    MinMaxOp::Minimum => |_, s| propagating(s[0], s[1], true),
                    MinMaxOp::Maximum => |_, s| propagating(s[0], s[1], false),
                    _ => return None,
                })
            }
        }
    };
}

fn half(bits: u64) -> f64 {
    from_f16(bits as u16)
}

family!(single, s32, 1 << 31, 1 << 22);
family!(wide, f64::from_bits, 1 << 63, 1 << 51);
family!(narrow, half, 1 << 15, 1 << 9);
family!(brain, bf16_value, 1 << 15, 1 << 6);

/// The meaning of a minimum, a maximum or one of their relatives.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    let MinMaxInfo { operation, format } = opcode.minmax()?;
    let (two, three, ty) = match format {
        NumberFormat::F16 => (narrow::double(operation), narrow::triple(operation), Ty::F16),
        NumberFormat::Bf16 => (brain::double(operation), brain::triple(operation), Ty::B16),
        NumberFormat::F32 => (single::double(operation), single::triple(operation), Ty::F32),
        NumberFormat::F64 => (wide::double(operation), wide::triple(operation), Ty::F64),
        _ => return None,
    };
    match (two, three) {
        (Some(f), _) => Some(lane(f, ty, [ty, ty, Ty::None, Ty::None], High::Zero)),
        // Three operands are newer: they keep the other half of the register.
        (None, Some(f)) => Some(lane(f, ty, [ty, ty, ty, Ty::None], High::Keep)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: u64 = 0x7fc0_0000;
    const SIGNALING: u64 = 0x7f80_0001;
    const ONE: u64 = 0x3f80_0000;
    const MINUS_ZERO: u64 = 0x8000_0000;

    #[test]
    fn families_differ_in_nan() {
        let env = |ieee: bool| Env { ieee, ..Env::from_mode(0xf0) };
        let two = |operation: MinMaxOp, ieee: bool, a: u64, b: u64| {
            single::double(operation).unwrap()(&env(ieee), &[a, b, 0, 0])
        };
        assert_eq!(two(MinMaxOp::Min, true, SIGNALING, ONE), SIGNALING | 1 << 22);
        assert_eq!(two(MinMaxOp::Min, false, SIGNALING, ONE), ONE);
        assert_eq!(two(MinMaxOp::MinNum, true, SIGNALING, ONE), ONE);
        assert_eq!(two(MinMaxOp::MinNum, true, SIGNALING, QUIET), SIGNALING | 1 << 22);
        assert_eq!(two(MinMaxOp::Minimum, true, ONE, QUIET), QUIET);
        assert_eq!(two(MinMaxOp::Maximum, true, QUIET, SIGNALING), SIGNALING | 1 << 22);
        for name in [MinMaxOp::Min, MinMaxOp::MinNum, MinMaxOp::Minimum] {
            assert_eq!(
                (two(name, true, 0, MINUS_ZERO), two(name, true, MINUS_ZERO, 0)),
                (MINUS_ZERO, MINUS_ZERO),
                "{name:?}"
            );
        }
        for name in [MinMaxOp::Max, MinMaxOp::MaxNum, MinMaxOp::Maximum] {
            assert_eq!((two(name, true, 0, MINUS_ZERO), two(name, true, MINUS_ZERO, 0)), (0, 0), "{name:?}");
        }
    }
}
