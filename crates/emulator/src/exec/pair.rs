//! Instructions that are two operations (VOPD): both read before either writes.

use wavetap_amdgpu::{
    Encoding, HalfOperation, Inst, Modifiers, Opcode, Operand, Reg, Role, Target, Value, Variant, variants,
};

use crate::fault::stop::{Step, undefined};
use crate::op::opcode_info::{Named, Names};
use crate::op::{Op, Place, Semantics, Source};
use crate::run::code;
use crate::state::core::Core;

/// The rows of both operations of a pair where they are alone, if it is one.
pub(crate) fn rows(target: Target, inst: &Inst) -> Option<[&'static Variant; 2]> {
    let [first, second] = inst.halves()?;
    Some([row(target, &first)?, row(target, &second)?])
}

/// The row of an operation where it is alone, for its meaning: forms differ in nothing that matters here.
fn row(target: Target, half: &HalfOperation<'_>) -> Option<&'static Variant> {
    alone_rows(target)
        .find(|variant| Some(variant.opcode) == alone(half.opcode()))
        .or_else(|| row_elsewhere(half.opcode()))
}

/// Dot products that are in pairs only on some targets, and with a row of their own, by this or another name, on
/// others.
fn row_elsewhere(half: Opcode) -> Option<&'static Variant> {
    let opcode = match half {
        Opcode::V_DUAL_DOT2ACC_F32_F16 => Opcode::V_DOT2ACC_F32_F16,
        Opcode::V_DUAL_DOT2ACC_F32_BF16 => Opcode::V_DOT2C_F32_BF16,
        _ => return None,
    };
    Target::all().flat_map(alone_rows).find(|variant| variant.opcode == opcode && variant.encoding == Encoding::Vop2)
}

/// The operation alone. `v_dual_bitop2_b32` is in pairs only: it is `v_bitop3_b32` whose third source is 0 (LLVM,
/// GCNVOPDUtils).
fn alone(half: Opcode) -> Option<Opcode> {
    if half == Opcode::V_DUAL_BITOP2_B32 { Some(Opcode::V_BITOP3_B32) } else { half.alone() }
}

fn alone_rows(target: Target) -> impl Iterator<Item = &'static Variant> {
    variants(target).filter(|variant| {
        matches!(variant.encoding, Encoding::Vop1 | Encoding::Vop2 | Encoding::Vop3 | Encoding::Vop3p)
    })
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

/// The operations of a pair whose meaning is not known.
pub(crate) fn unknown(target: Target, variant: &'static Variant) -> impl Iterator<Item = Opcode> {
    [Some(variant.opcode), variant.second].into_iter().flatten().filter(move |half| {
        let inst = |variant| Inst { variant, wave_size: target.wave_size() as u8, ..Inst::blank() };
        let mut rows = alone_rows(target).filter(|row| Some(row.opcode) == alone(*half)).chain(row_elsewhere(*half));
        !rows.any(|row| code::meaning(target, &inst(row)).is_some())
    })
}

/// An operation of a pair, given its row where it is alone.
fn half(
    (target, names): (Target, &mut Names),
    inst: &Inst,
    (variant, half): (&'static Variant, &HalfOperation<'_>),
    modifiers: Modifiers,
    place: Place,
) -> Option<Op> {
    let mut operands: Vec<Operand> =
        half.operands().map(|operand| Operand { role: role(operand.role), ..*operand }).collect();
    let constant =
        |operand: &Operand| matches!(operand.value, Value::InlineInt(_) | Value::InlineFloat(_) | Value::Literal(_));
    if half.opcode() == Opcode::V_DUAL_DOT2ACC_F32_BF16 && operands.iter().any(constant) {
        // What a constant is to a pair of bfloat16 is not documented.
        return None;
    }
    if half.opcode() == Opcode::V_DUAL_BITOP2_B32 {
        // See `alone`.
        let zero = operands.iter().find(|operand| operand.role == Role::Src1).map(|second| Operand {
            role: Role::Src2,
            value: Value::InlineInt(0),
            ..*second
        });
        operands.extend(zero);
    }
    let operands = operands.into_iter().collect();
    let alone = Inst { variant, operands, modifiers, ..inst.clone() };
    let named = names.of(target, &alone);
    Some(Op::new(target, alone, named.meaning?, &named, place))
}

/// The operation of an instruction that is two.
pub(crate) fn op(target: Target, inst: &Inst, named: &Named, names: &mut Names, place: Place) -> Option<Op> {
    let ([first, second], rows) = (inst.halves()?, named.halves?);
    // The signs of the sources, from bit 4 those of the second operation.
    let Modifiers { neg, bitop3, .. } = inst.modifiers;
    if inst.modifiers != (Modifiers { neg, bitop3, ..Modifiers::default() }) {
        return None;
    }
    let of_first = Modifiers { neg: neg & 7, ..Modifiers::default() };
    // Only the second operation may be one of a truth table.
    let of_second = Modifiers { neg: neg >> 4, bitop3, ..Modifiers::default() };
    let pair = [
        half((target, names), inst, (rows[0], &first), of_first, place)?,
        half((target, names), inst, (rows[1], &second), of_second, place)?,
    ];
    let whole = Op::new(target, inst.clone(), (run, Semantics::Own), named, place);
    Some(Op { pair: Some(Box::new(pair)), ..whole })
}

fn run(core: &mut Core, op: &Op) -> Step {
    let Some([first, second]) = op.pair.as_deref() else { return undefined("two operations") };
    let Some(Reg { first: at, dwords, .. }) = first.dst else { return undefined("an operation without destination") };
    let (from, to) = (usize::from(at), usize::from(at) + usize::from(dwords));
    // A source may be two registers.
    let read = |source: &Source| {
        let Source::Vector(n) = source else { return false };
        (usize::from(*n)..usize::from(*n) + 2).any(|n| (from..to).contains(&n))
    };
    if !second.src.iter().any(read) {
        (first.run)(core, first)?;
        return (second.run)(core, second);
    }
    let Some(mut before) = core.wave.vgpr.get(from..to).map(<[_]>::to_vec) else {
        return core.writing(op, wavetap_amdgpu::RegFile::Vector, at, dwords.into());
    };
    (first.run)(core, first)?;
    // The second operation reads what was there before the first.
    core.wave.vgpr[from..to].swap_with_slice(&mut before);
    (second.run)(core, second)?;
    for (register, result) in core.wave.vgpr[from..to].iter_mut().zip(before) {
        *register = result;
    }
    Ok(())
}
