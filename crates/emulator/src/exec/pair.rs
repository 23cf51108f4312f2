//! Instructions that are two operations (VOPD): both read before either writes.

use wavetap_amdgpu::{HalfOperation, Inst, Modifiers, Opcode, Operand, Reg, Role, Target, Value, Variant};

use super::prepare::{self, OpcodeCache};
use crate::exec;
use crate::fault::stop::{ExecResult, undefined};
use crate::op::InstLocation;
use crate::op::opcode_info::OpcodeInfo;
use crate::op::pair::{alone, alone_rows, row_elsewhere};
use crate::op::semantics::{Semantics, Source};
use crate::state::core::Core;
use crate::state::op::Op;

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
        !rows.any(|row| exec::meaning(target, &inst(row)).is_some())
    })
}

/// An operation of a pair, given its row where it is alone.
fn half(
    (target, opcodes): (Target, &mut OpcodeCache),
    inst: &Inst,
    (variant, half): (&'static Variant, &HalfOperation<'_>),
    modifiers: Modifiers,
    location: InstLocation,
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
    let (info, meaning) = opcodes.of(target, &alone);
    Some(prepare::op(target, alone, meaning?, &info, location))
}

/// The operation of an instruction that is two.
pub(crate) fn op(
    target: Target,
    inst: &Inst,
    info: &OpcodeInfo,
    opcodes: &mut OpcodeCache,
    location: InstLocation,
) -> Option<Op> {
    let ([first, second], rows) = (inst.halves()?, info.halves?);
    // The signs of the sources, from bit 4 those of the second operation.
    let Modifiers { neg, bitop3, .. } = inst.modifiers;
    if inst.modifiers != (Modifiers { neg, bitop3, ..Modifiers::default() }) {
        return None;
    }
    let of_first = Modifiers { neg: neg & 7, ..Modifiers::default() };
    // Only the second operation may be one of a truth table.
    let of_second = Modifiers { neg: neg >> 4, bitop3, ..Modifiers::default() };
    let pair = [
        half((target, opcodes), inst, (rows[0], &first), of_first, location)?,
        half((target, opcodes), inst, (rows[1], &second), of_second, location)?,
    ];
    let whole = prepare::op(target, inst.clone(), (run, Semantics::Own), info, location);
    Some(Op { pair: Some(Box::new(pair)), ..whole })
}

fn run(core: &mut Core, op: &Op) -> ExecResult {
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
