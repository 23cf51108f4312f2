//! Operations on two values in each register, and those that mix precisions.

use rustc_apfloat::Round;
use rustc_apfloat::ieee::{Half, Single};
use wavetap::isa::{Inst, Modifier, Operand, Role, Target};

use super::choose::Wishes;
use super::definition::Definition;
use super::lane::{self, T};
use super::number::{Env, Odd, bf16, convert, f16, f32, flush32};
use super::random::{Bits, Random};
use super::state::{Loose, Place, State};

type Function = fn(&Env, &[u64; 3]) -> u64;

fn h(x: u64) -> i64 {
    i64::from(x as u16 as i16)
}
fn signed(e: &Env, value: i64) -> u64 {
    (if e.clamp { value.clamp(-32768, 32767) } else { value }) as u64 & 0xffff
}
fn unsigned(e: &Env, value: i64) -> u64 {
    (if e.clamp { value.clamp(0, 65535) } else { value }) as u64 & 0xffff
}

fn integers(name: &str) -> Option<Function> {
    Some(match name {
        "v_pk_add_i16" => |e, s| signed(e, h(s[0]) + h(s[1])),
        "v_pk_sub_i16" => |e, s| signed(e, h(s[0]) - h(s[1])),
        "v_pk_mad_i16" => |e, s| signed(e, h(s[0]) * h(s[1]) + h(s[2])),
        "v_pk_add_u16" => |e, s| unsigned(e, (s[0] + s[1]) as i64),
        "v_pk_sub_u16" => |e, s| unsigned(e, s[0] as i64 - s[1] as i64),
        "v_pk_mad_u16" => |e, s| unsigned(e, (s[0] * s[1] + s[2]) as i64),
        "v_pk_mul_lo_u16" => |_, s| (s[0] * s[1]) & 0xffff,
        "v_pk_lshlrev_b16" => |_, s| s[1] << (s[0] % 16) & 0xffff,
        "v_pk_lshrrev_b16" => |_, s| s[1] >> (s[0] % 16),
        "v_pk_ashrrev_i16" => |_, s| (h(s[1]) >> (s[0] % 16)) as u64 & 0xffff,
        "v_pk_max_i16" => |_, s| h(s[0]).max(h(s[1])) as u64 & 0xffff,
        "v_pk_min_i16" => |_, s| h(s[0]).min(h(s[1])) as u64 & 0xffff,
        "v_pk_max_u16" => |_, s| s[0].max(s[1]),
        "v_pk_min_u16" => |_, s| s[0].min(s[1]),
        // The sums saturate without being asked to.
        "v_pk_add_max_i16" => |_, s| (h(s[0]) + h(s[1])).clamp(-32768, 32767).max(h(s[2])) as u64 & 0xffff,
        "v_pk_add_min_i16" => |_, s| (h(s[0]) + h(s[1])).clamp(-32768, 32767).min(h(s[2])) as u64 & 0xffff,
        "v_pk_add_max_u16" => |_, s| (s[0] + s[1]).min(65535).max(s[2]),
        "v_pk_add_min_u16" => |_, s| (s[0] + s[1]).min(65535).min(s[2]),
        "v_pk_max3_i16" => |_, s| h(s[0]).max(h(s[1])).max(h(s[2])) as u64 & 0xffff,
        "v_pk_min3_i16" => |_, s| h(s[0]).min(h(s[1])).min(h(s[2])) as u64 & 0xffff,
        "v_pk_max3_u16" => |_, s| s[0].max(s[1]).max(s[2]),
        "v_pk_min3_u16" => |_, s| s[0].min(s[1]).min(s[2]),
        _ => return None,
    })
}

fn halves(name: &str) -> Option<Function> {
    Some(match name {
        "v_pk_add_f16" => |e, s| f16::add(s[0], s[1], e.round64),
        "v_pk_mul_f16" => |e, s| f16::mul(s[0], s[1], e.round64),
        "v_pk_fma_f16" | "v_pk_fmac_f16" => |e, s| f16::fma(s[0], s[1], s[2], e.round64),
        "v_pk_min_f16" => |e, s| f16::min(e, s[0], s[1]),
        "v_pk_max_f16" => |e, s| f16::max(e, s[0], s[1]),
        _ => return super::ordered::halves(name.strip_prefix("v_pk_")?.strip_suffix("_f16")?),
    })
}

fn singles(name: &str) -> Option<Function> {
    Some(match name {
        "v_pk_add_f32" => |e, s| f32::add(s[0], s[1], e.round32),
        "v_pk_mul_f32" => |e, s| f32::mul(s[0], s[1], e.round32),
        "v_pk_fma_f32" => |e, s| f32::fma(s[0], s[1], s[2], e.round32),
        _ => return None,
    })
}

fn vector_destination(inst: &Inst) -> Option<usize> {
    inst.operand(Role::Vdst).and_then(Operand::reg).map(|reg| reg.first.into())
}

/// Two values at once: for each result, `op_sel` or `op_sel_hi` says which value of each source is used, and `neg` or
/// `neg_hi` whether it is negated.
fn execute(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let name = inst.name();
    if inst.modifiers.dpp.is_some() || inst.modifiers.dpp8.is_some() {
        return None;
    }
    let single = singles(name);
    let (f, ty) = match (integers(name), halves(name)) {
        (Some(f), _) => (f, T::U16),
        (_, Some(f)) => (f, T::F16),
        _ => (single?, T::F32),
    };
    let width = if ty == T::F32 { 32 } else { 16 };
    let whole = if ty == T::F32 { T::U64 } else { T::U32 };
    let env = Env::of(inst, state);
    let m = inst.modifiers;
    let short = name == "v_pk_fmac_f16";
    let mut all = Vec::new();
    for (at, operand) in lane::sources(
        inst,
        if ["_fma", "_mad", "imum3", "max3", "min3", "add_max", "add_min"].iter().any(|part| name.contains(part)) {
            &[T::U32; 3]
        } else {
            &[T::U32; 2]
        },
    )
    .into_iter()
    .enumerate()
    {
        let operand = operand?;
        // Only the low half of a constant is documented.
        if operand.reg().is_none() && (short || m.op_sel >> at & 1 != 0 || m.op_sel_hi >> at & 1 != 0) {
            return None;
        }
        all.push(lane::read(state, &operand, if operand.reg().is_some() { whole } else { ty })?);
    }
    let first = vector_destination(inst)?;
    for lane in (0..state.lanes).filter(|lane| state.exec() >> lane & 1 != 0).collect::<Vec<_>>() {
        let mut result = 0_u64;
        for half in 0..2 {
            let mut s = [0; 3];
            for (at, values) in all.iter().enumerate() {
                let (select, negate) = if half == 0 { (m.op_sel, m.neg) } else { (m.op_sel_hi, m.neg_hi) };
                let high = if short { half == 1 } else { select >> at & 1 != 0 };
                let mut value = values[lane] >> if high { width } else { 0 } & ((1 << width) - 1);
                if negate >> at & 1 != 0 {
                    value ^= 1 << (width - 1);
                }
                s[at] = env.flush_in(ty, value);
            }
            result |= env.finish(ty, f(&env, &s)) << (width * half);
        }
        state.vgpr[first][lane] = result as u32;
        if ty == T::F32 {
            state.vgpr[first + 1][lane] = (result >> 32) as u32;
        }
    }
    match ty {
        T::F16 => state.loose.push((Place::Vector(first), Loose::NanPair)),
        T::F32 => state.loose.extend([(Place::Vector(first), Loose::Nan32), (Place::Vector(first + 1), Loose::Nan32)]),
        _ => {}
    }
    Some(())
}

fn brains(name: &str) -> Option<fn(&[u64; 3]) -> u64> {
    const NEAREST: Round = Round::NearestTiesToEven;
    Some(match name {
        "v_pk_add_bf16" => |s| bf16::add(s[0], s[1], NEAREST),
        "v_pk_mul_bf16" => |s| bf16::mul(s[0], s[1], NEAREST),
        "v_pk_fma_bf16" => |s| bf16::fma(s[0], s[1], s[2], NEAREST),
        _ => return super::ordered::brains(name.strip_prefix("v_pk_")?.strip_suffix("_bf16")?),
    })
}

/// What rounding otherwise than to nearest and flushing denormals do to bfloat16 is not documented.
fn plain_brains(inst: &Inst, state: &State) -> bool {
    state.mode & 0xcc == 0xc0 && !inst.modifiers.clamp
}

/// Two bfloat16 numbers at once.
fn pair_of_brains(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let (f, m) = (brains(inst.name())?, inst.modifiers);
    let operands: Vec<&Operand> =
        [Role::Src0, Role::Src1, Role::Src2].into_iter().filter_map(|role| inst.operand(role)).collect();
    // What the other half of a constant is, is not documented.
    if operands.iter().any(|operand| operand.reg().is_none()) || !plain_brains(inst, state) {
        return None;
    }
    // DPP moves the lanes; the signs are those of the halves.
    let whole = Inst { modifiers: wavetap::isa::Modifiers { neg: 0, abs: 0, ..m }, ..inst.clone() };
    let (sources, written) =
        lane::gather(&whole, state, target, &Env::of(inst, state), &[T::U32; 3][..operands.len()])?;
    let first = vector_destination(inst)?;
    for lane in (0..state.lanes).filter(|lane| written >> lane & 1 != 0) {
        let half = |select: u8, negate: u8| {
            let mut s = [0; 3];
            for (at, values) in sources.iter().enumerate() {
                s[at] = values[lane] >> (16 * (select >> at & 1)) & 0xffff ^ u64::from(negate >> at & 1) << 15;
            }
            f(&s) as u32
        };
        state.vgpr[first][lane] = half(m.op_sel, m.neg) | half(m.op_sel_hi, m.neg_hi) << 16;
    }
    state.loose.push((Place::Vector(first), Loose::NanBrain));
    Some(())
}

/// The low result from the first source, the high one from the second.
fn move_pair(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let mut results = Vec::new();
    for (at, role) in [Role::Src0, Role::Src1].into_iter().enumerate() {
        let operand = inst.operand(role).filter(|operand| operand.reg().is_some())?;
        let values = lane::read(state, operand, T::U64)?;
        let shift = if inst.modifiers.op_sel >> at & 1 != 0 { 32 } else { 0 };
        results.push(values.map(|value| (value >> shift) as u32));
    }
    let first = vector_destination(inst)?;
    for lane in (0..state.lanes).filter(|lane| state.exec() >> lane & 1 != 0).collect::<Vec<_>>() {
        state.vgpr[first][lane] = results[0][lane];
        state.vgpr[first + 1][lane] = results[1][lane];
    }
    Some(())
}

/// Multiply-add of sources that are single precision, or half precision where `op_sel_hi` says so; `neg_hi` is the
/// absolute value.
fn mix(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let name = inst.name();
    let (fused, brain) = (name.starts_with("v_fma"), name.ends_with("bf16"));
    // Of bfloat16 only this is documented.
    if brain && (state.mode & 0xfc != 0xf0 || inst.modifiers.clamp && name != "v_fma_mix_f32_bf16") {
        return None;
    }
    if inst.modifiers.dpp.is_some() || inst.modifiers.dpp8.is_some() {
        return None;
    }
    let env = Env::of(inst, state);
    let m = inst.modifiers;
    let mut all = Vec::new();
    for (at, role) in [Role::Src0, Role::Src1, Role::Src2].into_iter().enumerate() {
        let operand = inst.operand(role)?;
        let half = m.op_sel_hi >> at & 1 != 0;
        let is_register = operand.reg().is_some();
        if !is_register {
            return None;
        }
        let values = lane::read(state, operand, T::U32)?;
        all.push(values.map(|word| {
            let short = word >> if m.op_sel >> at & 1 != 0 { 16 } else { 0 } & 0xffff;
            let mut bits = if half && brain {
                short << 16
            } else if half {
                convert::<Half, Single>(short, Round::NearestTiesToEven)
            } else {
                word
            };
            if m.neg_hi >> at & 1 != 0 {
                bits &= 0x7fff_ffff;
            }
            if m.neg >> at & 1 != 0 {
                bits ^= 0x8000_0000;
            }
            // The unfused one has no single-precision denormals.
            if fused || half { bits } else { flush32(bits) }
        }));
    }
    let first = vector_destination(inst)?;
    for lane in (0..state.lanes).filter(|lane| state.exec() >> lane & 1 != 0).collect::<Vec<_>>() {
        let [a, b, c] = [all[0][lane], all[1][lane], all[2][lane]];
        let old = state.vgpr[first][lane];
        state.vgpr[first][lane] = if name.contains("mix_f32") {
            let sum = if fused {
                f32::fma(a, b, c, env.round32)
            } else {
                flush32(f32::add(flush32(f32::mul(a, b, env.round32)), c, env.round32))
            };
            env.finish(T::F32, sum) as u32
        } else if brain {
            let nearest = Round::NearestTiesToEven;
            let bits = bf16::of_quad(f32::quad(a).mul_add_odd(f32::quad(b), f32::quad(c), nearest), nearest) as u32;
            if name.contains("mixhi") { old & 0xffff | bits << 16 } else { old & 0xffff_0000 | bits }
        } else {
            let sum = if fused {
                let wide = f32::quad(a).mul_add_odd(f32::quad(b), f32::quad(c), env.round64);
                f16::of_quad(wide, env.round64)
            } else {
                let product = flush32(f32::mul(a, b, env.round32));
                f16::of_quad(f32::quad(product).add_odd(f32::quad(c), env.round64), env.round64)
            };
            let bits = env.finish(T::F16, sum) as u32;
            if name.ends_with("mixhi_f16") { old & 0xffff | bits << 16 } else { old & 0xffff_0000 | bits }
        };
    }
    // How the short result is rounded is not documented: by way of single precision or at once.
    let loose = match (name.contains("mix_f32"), brain) {
        (true, _) => Loose::Nan32,
        (_, true) => Loose::NanBrain,
        _ => Loose::NearPair,
    };
    state.loose.push((Place::Vector(first), loose));
    Some(())
}

/// Sums of products in which every order of additions gives the same.
fn exact_halves(inst: &Inst, state: &mut State, random: &mut Random) {
    for role in [Role::Src0, Role::Src1, Role::Src2, Role::Vdst] {
        let Some(reg) = inst.operand(role).and_then(Operand::reg) else { continue };
        let mut small = || {
            let half = |n: u64| {
                convert::<Single, Half>(
                    f32::from_signed(n as i64 - 64, Round::NearestTiesToEven),
                    Round::NearestTiesToEven,
                )
            };
            if matches!(role, Role::Src2 | Role::Vdst) {
                f32::from_signed(random.below(4096) as i64 - 2048, Round::NearestTiesToEven) as u32
            } else {
                (half(random.below(129)) | half(random.below(129)) << 16) as u32
            }
        };
        let n = usize::from(reg.first);
        match reg.file {
            wavetap::isa::RegFile::Vector => state.vgpr[n] = std::array::from_fn(|_| small()),
            _ if (16..100).contains(&n) => state.sgpr[n] = small(),
            _ => {}
        }
    }
}

/// Dot products of two halves.
fn dot2(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let name = inst.name();
    let env = Env::of(inst, state);
    let float = name.contains("f32");
    let constants = [Role::Src0, Role::Src1, Role::Src2]
        .iter()
        .any(|role| inst.operand(*role).is_some_and(|operand| operand.reg().is_none()));
    let scalars = inst
        .operands
        .iter()
        .any(|operand| operand.reg().is_some_and(|reg| reg.file == wavetap::isa::RegFile::Scalar && reg.first >= 100));
    let overlapping = inst.operand(Role::Src2).is_some_and(|c| {
        [Role::Src0, Role::Src1].iter().any(|role| inst.operand(*role).is_some_and(|ab| ab.reg() == c.reg()))
    });
    let destination = vector_destination(inst)?;
    let accumulates = inst.operand(Role::Src2).is_none()
        && inst.operands.iter().skip(1).any(|o| o.reg().is_some_and(|reg| usize::from(reg.first) == destination));
    if float && (constants || scalars || overlapping || accumulates) {
        return None;
    }
    if constants {
        return None;
    }
    let (sources, written) = lane::gather(inst, state, target, &env, &[T::U32, T::U32, T::U32])?;
    for lane in (0..state.lanes).filter(|lane| written >> lane & 1 != 0) {
        let [a, b, c] = [sources[0][lane], sources[1][lane], sources[2][lane]];
        let value = if float {
            let half = |x: u64| super::state::half((x & 0xffff) as u32);
            let sum = half(a) * half(b)
                + half(a >> 16) * half(b >> 16)
                + f64::from(core::primitive::f32::from_bits(c as u32));
            env.finish(T::F32, (sum as core::primitive::f32).to_bits().into())
        } else {
            let product = |shift: u32| {
                let (x, y) = (a >> shift & 0xffff, b >> shift & 0xffff);
                i128::from(if name.ends_with("i16") { h(x) * h(y) } else { (x * y) as i64 })
            };
            let sum =
                product(0) + product(16) + if name.ends_with("i16") { i128::from(c as u32 as i32) } else { c.into() };
            let (low, high) = if name.ends_with("i16") { (-(1 << 31), (1 << 31) - 1) } else { (0, (1 << 32) - 1) };
            (if env.clamp { sum.clamp(low, high) } else { sum }) as u64 & 0xffff_ffff
        };
        state.vgpr[destination][lane] = value as u32;
    }
    Some(())
}

/// The definition of a packed operation.
pub fn definition(name: &str) -> Option<Definition> {
    let pairs: &'static [Bits] = &[Bits::PairHalf, Bits::PairHalf, Bits::PairHalf];
    if integers(name).is_some() {
        let wishes = Wishes { no_float_constants: true, no_literals: true, ..Wishes::default() };
        return Some(Definition {
            wishes,
            types: &[Bits::Pair16, Bits::Pair16, Bits::Pair16],
            ..Definition::whole(execute)
        });
    }
    if halves(name).is_some() {
        let modifier: Option<fn(&mut Random, Modifier) -> Option<u64>> = None;
        return Some(Definition {
            // Where it has the modifiers of one number, it is not documented what they do to two.
            wishes: Wishes { no_literals: true, plain: name == "v_pk_fmac_f16", ..Wishes::default() },
            types: pairs,
            modifier,
            ..Definition::whole(execute)
        });
    }
    if singles(name).is_some() {
        let wishes = Wishes { no_literals: true, ..Wishes::default() };
        return Some(Definition {
            wishes,
            types: &[Bits::PairSingle, Bits::PairSingle, Bits::PairSingle],
            ..Definition::whole(execute)
        });
    }
    if brains(name).is_some() {
        let wishes = Wishes { no_literals: true, denormals: true, no_inline: true, ..Wishes::default() };
        let modifier: fn(&mut Random, Modifier) -> Option<u64> =
            |_, modifier| (modifier == Modifier::Clamp).then_some(0);
        return Some(Definition {
            wishes,
            types: pairs,
            modifier: Some(modifier),
            ..Definition::whole(pair_of_brains)
        });
    }
    match name {
        "v_pk_mov_b32" => Some(Definition::whole(move_pair)),
        "v_mad_mix_f32" | "v_mad_mixlo_f16" | "v_mad_mixhi_f16" | "v_fma_mix_f32" | "v_fma_mixlo_f16"
        | "v_fma_mixhi_f16" | "v_fma_mix_f32_bf16" | "v_fma_mixlo_bf16" | "v_fma_mixhi_bf16" => {
            let wishes = Wishes { denormals: true, ..Wishes::default() };
            Some(Definition { wishes, types: &[Bits::Single, Bits::Single, Bits::Single], ..Definition::whole(mix) })
        }
        "v_dot2_f32_f16" | "v_dot2c_f32_f16" => {
            let wishes = Wishes { plain: true, apart: true, ..Wishes::default() };
            let modifier: fn(&mut Random, Modifier) -> Option<u64> =
                |_, modifier| (modifier == Modifier::OpSelHi).then_some(7);
            Some(Definition {
                wishes,
                prepare: Some(exact_halves),
                modifier: Some(modifier),
                ..Definition::whole(dot2)
            })
        }
        "v_dot2_i32_i16" | "v_dot2_u32_u16" => {
            let modifier: fn(&mut Random, Modifier) -> Option<u64> =
                |_, modifier| (modifier == Modifier::OpSelHi).then_some(7);
            Some(Definition {
                wishes: Wishes { plain: true, ..Wishes::default() },
                modifier: Some(modifier),
                ..Definition::whole(dot2)
            })
        }
        _ => None,
    }
}
