//! Floating-point instructions of the scalar ALU (gfx11.5 and later): rounding and denormals as MODE says, like those of the vector ALU.

use wavetap_amdgpu::Role;

use super::core::{Core, Step, undefined};
use super::float::{self, Env, Round, from_f16, to_f16, to_f32};
use super::lanes::{Comparison, Operation, operation};
use super::op::{Meaning, Op, Semantics, Source, Ty};
use super::scalar::result;
use super::{compare, vector_float};

/// A source in a type, denormals flushed where MODE says so.
fn source(core: &mut Core, op: &Op, role: Role, ty: Ty) -> Step<u64> {
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

fn float(name: &str) -> Option<(Sources, Ty, Ty, &'static dyn Operation)> {
    use Ty::{B32, F16, F32};
    let single = |name: &str, sources: Sources| vector_float::lane_fn(name).map(|f| (sources, F32, F32, f));
    let half = |name: &str, sources: Sources| vector_float::lane_fn(name).map(|f| (sources, F16, F16, f));
    match name {
        "s_add_f32" => single("v_add_f32", TWO),
        "s_sub_f32" => single("v_sub_f32", TWO),
        "s_mul_f32" => single("v_mul_f32", TWO),
        "s_min_f32" => single("v_min_f32", TWO),
        "s_max_f32" => single("v_max_f32", TWO),
        "s_min_num_f32" => single("v_min_num_f32", TWO),
        "s_max_num_f32" => single("v_max_num_f32", TWO),
        "s_minimum_f32" => single("v_minimum_f32", TWO),
        "s_maximum_f32" => single("v_maximum_f32", TWO),
        "s_fmac_f32" => single("v_fma_f32", ACCUMULATE),
        "s_fmamk_f32" => single("v_fma_f32", LITERAL_FACTOR),
        "s_fmaak_f32" => single("v_fma_f32", LITERAL_SUMMAND),
        "s_ceil_f32" => single("v_ceil_f32", ONE),
        "s_floor_f32" => single("v_floor_f32", ONE),
        "s_trunc_f32" => single("v_trunc_f32", ONE),
        "s_rndne_f32" => single("v_rndne_f32", ONE),
        "s_add_f16" => half("v_add_f16", TWO),
        "s_sub_f16" => half("v_sub_f16", TWO),
        "s_mul_f16" => half("v_mul_f16", TWO),
        "s_min_f16" => half("v_min_f16", TWO),
        "s_max_f16" => half("v_max_f16", TWO),
        "s_min_num_f16" => half("v_min_num_f16", TWO),
        "s_max_num_f16" => half("v_max_num_f16", TWO),
        "s_minimum_f16" => half("v_minimum_f16", TWO),
        "s_maximum_f16" => half("v_maximum_f16", TWO),
        "s_fmac_f16" => half("v_fma_f16", ACCUMULATE),
        "s_ceil_f16" => half("v_ceil_f16", ONE),
        "s_floor_f16" => half("v_floor_f16", ONE),
        "s_trunc_f16" => half("v_trunc_f16", ONE),
        "s_rndne_f16" => half("v_rndne_f16", ONE),
        "s_cvt_f32_i32" => Some((ONE, B32, F32, operation(|e, s| rounded(e, f64::from(s[0] as u32 as i32))))),
        "s_cvt_f32_u32" => Some((ONE, B32, F32, operation(|e, s| rounded(e, f64::from(s[0] as u32))))),
        "s_cvt_i32_f32" => Some((ONE, F32, B32, operation(|_, s| (f32::from_bits(s[0] as u32) as i32 as u32).into()))),
        "s_cvt_u32_f32" => Some((ONE, F32, B32, operation(|_, s| (f32::from_bits(s[0] as u32) as u32).into()))),
        "s_cvt_f16_f32" => Some((ONE, F32, F16, operation(|e, s| to_f16(single_value(s[0]), e.round64).into()))),
        "s_cvt_f32_f16" => Some((ONE, F16, F32, operation(|e, s| rounded(e, from_f16(s[0] as u16))))),
        // The high half of its source.
        "s_cvt_hi_f32_f16" => Some((
            ONE,
            B32,
            F32,
            operation(|e, s| {
                let bits = flushed(e, F16, s[0] >> 16, true);
                rounded(e, from_f16(bits as u16))
            }),
        )),
        "s_cvt_pk_rtz_f16_f32" => Some((
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

fn run(core: &mut Core, op: &Op) -> Step {
    let Semantics::ScalarFloat { f, sources, from, to } = op.semantics else { return undefined("meaning") };
    let mut s = [0; 4];
    for (value, role) in s.iter_mut().zip(sources) {
        *value = source(core, op, *role, from)?;
    }
    let env = core.wave.env;
    let value = flushed(&env, to, f.lane(&env, &s), false);
    core.set_scalar(op, result(op)?, value as u32)
}

fn test(core: &mut Core, op: &Op) -> Step {
    let Semantics::ScalarTest { f, ty } = op.semantics else { return undefined("meaning") };
    let (a, b) = (source(core, op, Role::Src0, ty)?, source(core, op, Role::Src1, ty)?);
    core.wave.scc = f.lane(&core.wave.env, a, b);
    Ok(())
}

/// The type and the test of `s_cmp_<operation>_<type>`.
fn comparison(name: &str) -> Option<(Ty, &'static dyn Comparison)> {
    let (operation, kind) = name.strip_prefix("s_cmp_")?.rsplit_once('_')?;
    let ty = match kind {
        "f32" => Ty::F32,
        "f16" => Ty::F16,
        _ => return None,
    };
    Some((ty, compare::float(operation, ty)?))
}

/// The meaning of a floating-point scalar instruction.
pub(super) fn meaning(name: &str) -> Option<Meaning> {
    if let Some((sources, from, to, f)) = float(name) {
        return Some((run, Semantics::ScalarFloat { f, sources, from, to }));
    }
    let (ty, f) = comparison(name)?;
    Some((test, Semantics::ScalarTest { f, ty }))
}
