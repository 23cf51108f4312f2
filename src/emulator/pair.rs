//! Instructions that are two operations (VOPD): both read before either writes.

use crate::isa::{Encoding, HalfOperation, Inst, Modifiers, Operand, Reg, Role, Target, Variant, variants};

use super::code;
use super::core::{Core, Step, undefined};
use super::op::{Op, Place, Semantics, Source};

/// The row of an operation where it is alone, for its meaning: forms differ in nothing that matters here. Some are alone on other targets only, or under the
/// name that they had before.
fn row(target: Target, alone: &str) -> Option<&'static Variant> {
    let older = alone.replacen("_dot2acc_", "_dot2c_", 1);
    let elsewhere = || Target::all().flat_map(alone_rows).find(|variant| variant.name == alone || variant.name == older);
    alone_rows(target).find(|variant| variant.name == alone).or_else(elsewhere)
}

fn alone_rows(target: Target) -> impl Iterator<Item = &'static Variant> {
    variants(target).filter(|variant| matches!(variant.encoding, Encoding::Vop1 | Encoding::Vop2 | Encoding::Vop3 | Encoding::Vop3p))
}

/// The role that an operand of the second operation has where it is alone.
fn role(role: Role) -> Role {
    match role {
        Role::VdstY => Role::Vdst,
        Role::Src0Y => Role::Src0,
        Role::Src1Y => Role::Src1,
        Role::Src2Y => Role::Src2,
        other => other,
    }
}

/// The names of the operations of a pair whose meaning is not known.
pub(super) fn unknown(target: Target, variant: &'static Variant) -> impl Iterator<Item = &'static str> {
    variant.mnemonic.split("::").map(str::trim).filter(move |name| {
        let alone = name.replacen("_dual_", "_", 1);
        let inst = |variant| Inst { variant, wave_size: target.wave_size() as u8, ..Inst::blank() };
        row(target, &alone).is_none_or(|row| code::meaning(target, &inst(row)).is_none())
    })
}

fn half(target: Target, inst: &Inst, half: &HalfOperation<'_>, place: Place) -> Option<Op> {
    let operands = half.operands().map(|operand| Operand { role: role(operand.role), ..*operand }).collect();
    let alone = Inst { variant: row(target, &half.alone())?, operands, ..inst.clone() };
    Some(Op::new(target, alone.clone(), code::meaning(target, &alone)?, place))
}

/// The operation of an instruction that is two.
pub(super) fn op(target: Target, inst: &Inst, place: Place) -> Option<Op> {
    let [first, second] = inst.halves()?;
    // Those with negations (gfx1250) would need them dealt out.
    if inst.modifiers != Modifiers::default() {
        return None;
    }
    let pair = [half(target, inst, &first, place)?, half(target, inst, &second, place)?];
    let whole = Op::new(target, inst.clone(), (run, Semantics::Own), place);
    Some(Op { pair: Some(Box::new(pair)), ..whole })
}

fn run(core: &mut Core, op: &Op) -> Step {
    let Some([first, second]) = op.pair.as_deref() else { return undefined("two operations") };
    let Some(Reg { first: at, .. }) = first.dst else { return undefined("an operation without destination") };
    if !second.src.contains(&Source::Vector(at)) {
        (first.run)(core, first)?;
        return (second.run)(core, second);
    }
    let Some(before) = core.wave.vgpr.get(usize::from(at)).cloned() else {
        return core.writing(op, crate::isa::RegFile::Vector, at, 1);
    };
    (first.run)(core, first)?;
    // The second operation reads what was there before the first.
    let result = std::mem::replace(&mut core.wave.vgpr[usize::from(at)], before);
    (second.run)(core, second)?;
    core.wave.vgpr[usize::from(at)] = result;
    Ok(())
}
