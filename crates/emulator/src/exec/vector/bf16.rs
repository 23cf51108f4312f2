//! Arithmetic on bfloat16 and on pairs of it (gfx1250).
//!
//! Results are rounded once, to nearest even, and denormals are kept; what the other rounding and denormal modes and
//! output modifiers do to bfloat16 is not documented, so they are refused.

use wavetap_amdgpu::{Opcode, Role, Value};

use super::float_ops::turn;
use super::{moved, run_lane};
use crate::fault::stop::{ExecResult, undefined};
use crate::float::small_float::round_bf16;
use crate::float::{Env, Round, add_odd, fma_odd, from_bf16};
use crate::lanes::{LANES, active, operation};
use crate::op::semantics::{High, Semantics, Source, Ty};
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};

fn value(bits: u64) -> f64 {
    from_bf16(bits as u16)
}

fn rounded(value: f64) -> u64 {
    round_bf16(value, Round::Nearest).into()
}

/// IEEE 754-2019 `minimumNumber` and `maximumNumber`: of a number and a NaN the number, and -0 below +0.
fn choose(a: u64, b: u64, larger: bool) -> u64 {
    let (x, y) = (value(a), value(b));
    match (x.is_nan(), y.is_nan()) {
        (true, true) => a | 0x40,
        (true, false) => b,
        (false, true) => a,
        _ if x == y => {
            if larger {
                a & b
            } else {
                a | b
            }
        }
        _ if (x > y) == larger => a,
        _ => b,
    }
}

/// The environment, if it is documented what it does to bfloat16.
fn usual(core: &Core, op: &Op) -> ExecResult<Env> {
    let (env, modifiers) = (core.wave.env, op.inst.modifiers);
    if modifiers.clamp || modifiers.omod != 0 || env.flush_in64 || env.flush_out64 || env.round64 != Round::Nearest {
        return undefined(
            "bfloat16 with an output modifier, or under a MODE that flushes or rounds otherwise than to nearest",
        );
    }
    Ok(env)
}

fn run_function(core: &mut Core, op: &Op) -> ExecResult {
    usual(core, op)?;
    run_lane(core, op)
}

fn run(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Packed { f, .. } = op.semantics else { return undefined("meaning") };
    let modifiers = op.inst.modifiers;
    let env = usual(core, op)?;
    let mut all = [[0; LANES]; 3];
    for (at, role) in [Role::Src0, Role::Src1, Role::Src2].into_iter().enumerate() {
        let Some(operand) = op.inst.operand(role) else { continue };
        all[at] = match op.source(role, Ty::B32) {
            // An inline float is one of this format.
            Source::Const(bits) if matches!(operand.value, Value::InlineFloat(_)) => [bits >> 16; LANES],
            source => core.lanes(op, source, Ty::B32, at as u8)?,
        };
    }
    let mask = moved(core, op, &mut all[0])?;
    let mut values = [0; LANES];
    for lane in active(mask) {
        for (half, (select, negate)) in
            [(modifiers.op_sel, modifiers.neg), (modifiers.op_sel_hi, modifiers.neg_hi)].into_iter().enumerate()
        {
            let mut s = [0; 4];
            for (at, source) in all.iter().enumerate() {
                let sign = u64::from(negate >> at & 1) << 15;
                s[at] = (source[lane] >> (16 * (select >> at & 1)) & 0xffff) ^ sign;
            }
            values[lane] |= (f.lane(&env, &s) & 0xffff) << (16 * half);
        }
    }
    let Some(dst) = op.dst else { return undefined("no destination") };
    core.set_lanes(op, dst.first, false, &values, mask)
}

/// The meaning of such an operation.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    let f = match opcode {
        Opcode::V_PK_ADD_BF16 => operation(|_, s| rounded(add_odd(value(s[0]), value(s[1])))),
        Opcode::V_PK_MUL_BF16 => operation(|_, s| rounded(value(s[0]) * value(s[1]))),
        Opcode::V_PK_FMA_BF16 => operation(|_, s| rounded(fma_odd(value(s[0]), value(s[1]), value(s[2])))),
        Opcode::V_PK_MIN_NUM_BF16 => operation(|_, s| choose(s[0], s[1], false)),
        Opcode::V_PK_MAX_NUM_BF16 => operation(|_, s| choose(s[0], s[1], true)),
        _ => return function(opcode),
    };
    Some((run, Semantics::Packed { f, float: false, short: false }))
}

/// The meaning of a transcendental one.
fn function(opcode: Opcode) -> Option<Meaning> {
    let f = match opcode {
        Opcode::V_EXP_BF16 => operation(|_, s| rounded(value(s[0]).exp2())),
        Opcode::V_LOG_BF16 => operation(|_, s| rounded(value(s[0]).log2())),
        Opcode::V_RCP_BF16 => operation(|_, s| rounded(1.0 / value(s[0]))),
        Opcode::V_RSQ_BF16 => operation(|_, s| match value(s[0]) {
            zero if zero == 0.0 => rounded(f64::INFINITY.copysign(zero)),
            value => rounded(1.0 / value.sqrt()),
        }),
        Opcode::V_SQRT_BF16 => operation(|_, s| rounded(value(s[0]).sqrt())),
        Opcode::V_TANH_BF16 => operation(|_, s| rounded(value(s[0]).tanh())),
        Opcode::V_SIN_BF16 => operation(|_, s| rounded(turn(value(s[0]), f64::sin))),
        Opcode::V_COS_BF16 => operation(|_, s| rounded(turn(value(s[0]), f64::cos))),
        _ => return None,
    };
    Some((
        run_function,
        Semantics::Lane { f, dst: Ty::B16, src: [Ty::B16, Ty::None, Ty::None, Ty::None], high: High::Zero },
    ))
}
