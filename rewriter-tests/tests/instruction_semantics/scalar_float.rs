//! Floating-point operations on scalars: those of the scalar ALU, and the functions that the vector ALU computes of
//! scalars. What they compute is what the vector operation of that name does in a lane.

use wavetap::isa::{Inst, Role, Target};

use super::choose::Wishes;
use super::definition::Definition;
use super::lane::{self, Lane, T};
use super::number::Env;
use super::random::Bits;
use super::scalars;
use super::state::{Loose, Place, State};
use super::{compare, convert, float, ordered};

/// The vector operation that says what a scalar one does.
fn vector(name: &str) -> Option<Lane> {
    let rest = name.strip_prefix("v_s_").or_else(|| name.strip_prefix("s_"))?;
    let name = format!("v_{}", if rest == "cvt_hi_f32_f16" { "cvt_f32_f16" } else { rest });
    float::definition(&name).or_else(|| ordered::definition(&name)).or_else(|| convert::definition(&name))
}

fn loosely(state: &mut State, lane: &Lane, at: usize) {
    let default = match lane.dst {
        T::F16 => Some(Loose::Nan16),
        T::F32 => Some(Loose::Nan32),
        T::H16 => Some(Loose::NanPair),
        _ => None,
    };
    state.loose.extend(lane.loose.or(default).map(|loose| (Place::Scalar(at), loose)));
}

fn execute(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let (name, env) = (inst.name(), Env::of(inst, state));
    let lane = vector(name)?;
    let roles: [Role; 3] = if name.starts_with("s_fmamk") {
        [Role::Src0, Role::Imm, Role::Src1]
    } else if name.starts_with("s_fmaak") {
        [Role::Src0, Role::Src1, Role::Imm]
    } else {
        [Role::Src0, Role::Src1, Role::Sdst]
    };
    let mut sources = Vec::new();
    for (&ty, role) in lane.src.iter().zip(roles) {
        let operand = inst.operand(role)?;
        // The other half of a constant is not documented.
        let high = name == "s_cvt_hi_f32_f16";
        if high && operand.reg().is_none() {
            return None;
        }
        let mut value = lane::read(state, operand, if high { T::U32 } else { ty })?[0];
        if high {
            value >>= 16;
        }
        let width = if ty.narrow() { 0xffff } else { u64::MAX };
        sources.push(env.flush_in(ty, value & width));
    }
    let value = env.finish(lane.dst, (lane.f)(&env, &sources));
    // The two halves of a pair, each without denormals where MODE says so.
    let value = if lane.dst == T::H16 {
        env.finish(T::F16, value & 0xffff) | env.finish(T::F16, value >> 16) << 16
    } else {
        value
    };
    let to = inst.operand(Role::Sdst)?;
    scalars::set(state, to, value)?;
    loosely(state, &lane, to.reg()?.first.into());
    Some(())
}

/// `v_s_exp_f32`: with the modifiers of a vector operation, whatever lanes are active.
fn function(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let env = Env::of(inst, state);
    let lane = vector(inst.name())?;
    let (sources, _) = lane::gather(inst, state, target, &env, lane.src)?;
    let value = env.finish(lane.dst, (lane.f)(&env, &[sources[0][0]]));
    let to = inst.operand(Role::Vdst).or_else(|| inst.operand(Role::Sdst))?;
    scalars::set(state, to, value)?;
    loosely(state, &lane, to.reg()?.first.into());
    Some(())
}

fn test(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let (relation, kind) = inst.name().strip_prefix("s_cmp_")?.rsplit_once('_')?;
    let env = Env::of(inst, state);
    let ty = if kind == "f16" { T::F16 } else { T::F32 };
    let source = |role| -> Option<u64> {
        let value = lane::read(state, inst.operand(role)?, ty)?[0];
        Some(env.flush_in(ty, if ty == T::F16 { value & 0xffff } else { value }))
    };
    let (a, b) = (source(Role::Src0)?, source(Role::Src1)?);
    state.scc = compare::holds(relation, compare::order(kind, a, b))?;
    Some(())
}

/// The definition of such an operation.
pub fn definition(name: &str) -> Option<Definition> {
    let types: &'static [Bits] = if name.ends_with("f16") {
        &[Bits::Half, Bits::Half, Bits::Half]
    } else {
        &[Bits::Single, Bits::Single, Bits::Single]
    };
    if name.starts_with("v_s_") {
        vector(name)?;
        let modifier = float::modifiers(&vector(name)?);
        let wishes = Wishes { plain: name.ends_with("16"), ..Wishes::default() };
        return Some(Definition { types, modifier, wishes, ..Definition::whole(function) });
    }
    if name.starts_with("s_cmp_") && (name.ends_with("_f32") || name.ends_with("_f16")) {
        return Some(Definition { types, ..Definition::whole(test) });
    }
    vector(name).filter(|_| name.starts_with("s_") && name.contains("_f"))?;
    let types: &'static [Bits] = match name {
        "s_cvt_f32_i32" | "s_cvt_f32_u32" => &[Bits::Word32],
        "s_cvt_f32_f16" | "s_cvt_hi_f32_f16" => &[Bits::PairHalf],
        _ if name.starts_with("s_cvt_") => &[Bits::Single, Bits::Single],
        _ => types,
    };
    Some(Definition { types, ..Definition::whole(execute) })
}
