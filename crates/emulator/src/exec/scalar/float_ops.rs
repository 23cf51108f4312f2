//! Floating-point instructions of the scalar ALU (gfx11.5 and later): rounding and denormals as MODE says, like those
//! of the vector ALU.

use wavetap_amdgpu::{CompareInfo, NumberFormat, Opcode, Role};

use super::result;
use crate::exec::vector::{compare, float_ops};
use crate::fault::stop::{ExecResult, undefined};
use crate::float::{self, Env, Round, from_f16, to_f16, to_f32};
use crate::lanes::{Comparison, Operation, operation};
use crate::op::semantics::{Semantics, Source, Ty};
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};

/// A source in a type, denormals flushed where MODE says so.
fn source(core: &mut Core, op: &Op, role: Role, ty: Ty) -> ExecResult<u64> {
    let bits = match op.source(role, ty) {
        Source::Scalar(code) => u64::from(core.scalar(op, code)?),
        Source::Const(bits) => bits,
        _ => return undefined("a scalar instruction without that source"),
    };
    Ok(flushed(&core.wave.env, ty, bits, true))
}

fn flushed(env: &Env, ty: Ty, bits: u64, input: bool) -> u64 {
    let (single, half) = if input { (env.flush_in32, env.flush_in64) } else { (env.flush_out32, env.flush_out64) };
    match ty {
        Ty::F32 if single => float::flush32(bits as u32).into(),
        Ty::F16 if half => float::flush16(bits as u16).into(),
        Ty::F16 | Ty::B16 => bits & 0xffff,
        _ => bits,
    }
}

/// The roles that an operation takes its sources from; `Sdst` is the old value of the destination.
type Sources = &'static [Role];
const ONE: Sources = &[Role::Src0];
const TWO: Sources = &[Role::Src0, Role::Src1];
const ACCUMULATE: Sources = &[Role::Src0, Role::Src1, Role::Sdst];
/// D = S0 * K + S1.
const LITERAL_FACTOR: Sources = &[Role::Src0, Role::Imm, Role::Src1];
/// D = S0 * S1 + K.
const LITERAL_SUMMAND: Sources = &[Role::Src0, Role::Src1, Role::Imm];

fn float(opcode: Opcode) -> Option<(Sources, Ty, Ty, &'static dyn Operation)> {
    use Ty::{B32, F16, F32};
    let single = |opcode: Opcode, sources: Sources| float_ops::lane_fn(opcode).map(|f| (sources, F32, F32, f));
    let half = |opcode: Opcode, sources: Sources| float_ops::lane_fn(opcode).map(|f| (sources, F16, F16, f));
    match opcode {
        Opcode::S_ADD_F32 => single(Opcode::V_ADD_F32, TWO),
        Opcode::S_SUB_F32 => single(Opcode::V_SUB_F32, TWO),
        Opcode::S_MUL_F32 => single(Opcode::V_MUL_F32, TWO),
        Opcode::S_MIN_F32 => single(Opcode::V_MIN_F32, TWO),
        Opcode::S_MAX_F32 => single(Opcode::V_MAX_F32, TWO),
        Opcode::S_MIN_NUM_F32 => single(Opcode::V_MIN_NUM_F32, TWO),
        Opcode::S_MAX_NUM_F32 => single(Opcode::V_MAX_NUM_F32, TWO),
        Opcode::S_MINIMUM_F32 => single(Opcode::V_MINIMUM_F32, TWO),
        Opcode::S_MAXIMUM_F32 => single(Opcode::V_MAXIMUM_F32, TWO),
        Opcode::S_FMAC_F32 => single(Opcode::V_FMA_F32, ACCUMULATE),
        Opcode::S_FMAMK_F32 => single(Opcode::V_FMA_F32, LITERAL_FACTOR),
        Opcode::S_FMAAK_F32 => single(Opcode::V_FMA_F32, LITERAL_SUMMAND),
        Opcode::S_CEIL_F32 => single(Opcode::V_CEIL_F32, ONE),
        Opcode::S_FLOOR_F32 => single(Opcode::V_FLOOR_F32, ONE),
        Opcode::S_TRUNC_F32 => single(Opcode::V_TRUNC_F32, ONE),
        Opcode::S_RNDNE_F32 => single(Opcode::V_RNDNE_F32, ONE),
        Opcode::S_ADD_F16 => half(Opcode::V_ADD_F16, TWO),
        Opcode::S_SUB_F16 => half(Opcode::V_SUB_F16, TWO),
        Opcode::S_MUL_F16 => half(Opcode::V_MUL_F16, TWO),
        Opcode::S_MIN_F16 => half(Opcode::V_MIN_F16, TWO),
        Opcode::S_MAX_F16 => half(Opcode::V_MAX_F16, TWO),
        Opcode::S_MIN_NUM_F16 => half(Opcode::V_MIN_NUM_F16, TWO),
        Opcode::S_MAX_NUM_F16 => half(Opcode::V_MAX_NUM_F16, TWO),
        Opcode::S_MINIMUM_F16 => half(Opcode::V_MINIMUM_F16, TWO),
        Opcode::S_MAXIMUM_F16 => half(Opcode::V_MAXIMUM_F16, TWO),
        Opcode::S_FMAC_F16 => half(Opcode::V_FMA_F16, ACCUMULATE),
        Opcode::S_CEIL_F16 => half(Opcode::V_CEIL_F16, ONE),
        Opcode::S_FLOOR_F16 => half(Opcode::V_FLOOR_F16, ONE),
        Opcode::S_TRUNC_F16 => half(Opcode::V_TRUNC_F16, ONE),
        Opcode::S_RNDNE_F16 => half(Opcode::V_RNDNE_F16, ONE),
        Opcode::S_CVT_F32_I32 => Some((ONE, B32, F32, operation(|e, s| rounded(e, f64::from(s[0] as u32 as i32))))),
        Opcode::S_CVT_F32_U32 => Some((ONE, B32, F32, operation(|e, s| rounded(e, f64::from(s[0] as u32))))),
        Opcode::S_CVT_I32_F32 => {
            Some((ONE, F32, B32, operation(|_, s| (f32::from_bits(s[0] as u32) as i32 as u32).into())))
        }
        Opcode::S_CVT_U32_F32 => Some((ONE, F32, B32, operation(|_, s| (f32::from_bits(s[0] as u32) as u32).into()))),
        Opcode::S_CVT_F16_F32 => Some((ONE, F32, F16, operation(|e, s| to_f16(single_value(s[0]), e.round64).into()))),
        Opcode::S_CVT_F32_F16 => Some((ONE, F16, F32, operation(|e, s| rounded(e, from_f16(s[0] as u16))))),
        // The high half of its source.
        Opcode::S_CVT_HI_F32_F16 => Some((
            ONE,
            B32,
            F32,
            operation(|e, s| {
                let bits = flushed(e, F16, s[0] >> 16, true);
                rounded(e, from_f16(bits as u16))
            }),
        )),
        Opcode::S_CVT_PK_RTZ_F16_F32 => Some((
            TWO,
            F32,
            B32,
            operation(|e, s| {
                let half = |bits: u64| flushed(e, F16, to_f16(single_value(bits), Round::Zero).into(), false);
                half(s[0]) | half(s[1]) << 16
            }),
        )),
        _ => None,
    }
}

fn single_value(bits: u64) -> f64 {
    f32::from_bits(bits as u32).into()
}

fn rounded(env: &Env, value: f64) -> u64 {
    to_f32(value, env.round32).to_bits().into()
}

fn run(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::ScalarFloat { f, sources, from, to } = op.semantics else { return undefined("meaning") };
    let mut s = [0; 4];
    for (value, role) in s.iter_mut().zip(sources) {
        *value = source(core, op, *role, from)?;
    }
    let env = core.wave.env;
    let value = flushed(&env, to, f.lane(&env, &s), false);
    core.set_scalar(op, result(op)?, value as u32)
}

fn test(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::ScalarTest { f, ty } = op.semantics else { return undefined("meaning") };
    let (a, b) = (source(core, op, Role::Src0, ty)?, source(core, op, Role::Src1, ty)?);
    core.wave.scc = f.lane(&core.wave.env, a, b);
    Ok(())
}

/// The type and the test of a comparison of floats.
fn comparison(opcode: Opcode) -> Option<(Ty, &'static dyn Comparison)> {
    let CompareInfo { predicate, format } = opcode.compare()?;
    let ty = match format {
        NumberFormat::F32 => Ty::F32,
        NumberFormat::F16 => Ty::F16,
        _ => return None,
    };
    Some((ty, compare::float(predicate, ty)?))
}

/// The meaning of a floating-point scalar instruction.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    if let Some((sources, from, to, f)) = float(opcode) {
        return Some((run, Semantics::ScalarFloat { f, sources, from, to }));
    }
    let (ty, f) = comparison(opcode)?;
    Some((test, Semantics::ScalarTest { f, ty }))
}
