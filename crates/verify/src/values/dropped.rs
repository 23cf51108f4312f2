//! Accesses that lanes out of bounds do not execute.
//!
//! The site table says which original accesses may be executed in a subset of the original's lanes. It is believed as
//! far as this: EXEC is the original's EXEC and something there, inserted code made it so, and EXEC is the original's
//! again before any other original instruction. What such an access does in the other lanes is defined to be nothing,
//! or that a load gives 0: inserted code may put 0 into the registers that it writes, in these lanes alone. That these
//! are the lanes that were active is known as long as EXEC is `Executed` since the access, and the exclusive or of that
//! and the original's EXEC.

use crate::values::compared::{State, Word};
use wavetap_amdgpu::{D16, Flags, Inst, Memory, Opcode, Reg, RegFile, Role, Value, scalar};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;

/// A half of EXEC after an instruction that combines it with a mask: a subset of the original's EXEC, or the lanes that
/// did not execute the access before.
pub(super) fn lanes(state: &State, inst: &Inst, half: u8) -> Option<Word> {
    let code = scalar::EXEC + u16::from(half);
    let [a, b] = [Role::Src0, Role::Src1].map(|role| state.source(inst, role, half));
    let is_subset = |word: Word| matches!(word, Word::Original(of) | Word::Subset(of) if of == code);
    let subset = |is: bool| is.then_some(Word::Subset(code));
    match inst.opcode() {
        Opcode::S_AND_B32 | Opcode::S_AND_B64 => subset(is_subset(a) || is_subset(b)),
        // gfx11 has new names.
        Opcode::S_ANDN2_B32 | Opcode::S_ANDN2_B64 | Opcode::S_AND_NOT1_B32 | Opcode::S_AND_NOT1_B64 => {
            subset(is_subset(a))
        }
        Opcode::S_XOR_B32 | Opcode::S_XOR_B64 => {
            let both = [(a, b), (b, a)];
            both.contains(&(Word::Executed, Word::Original(code))).then_some(Word::Dropped)
        }
        _ => None,
    }
}

/// Whether each lane executes an instruction for itself, as an access to global memory, and what it writes is data.
pub(crate) fn is_access(inst: &Inst) -> bool {
    let (opcode, flags) = (inst.opcode(), inst.variant.flags);
    matches!(inst.variant.memory, Memory::Global | Memory::Flat | Memory::Buffer)
        && !inst.modifiers.tfe
        && (opcode.load().is_some() || opcode.store().is_some() || flags.contains(Flags::ATOMIC))
}

/// The half of a register that a load of the other half keeps.
fn kept_half(d16: D16) -> Option<u32> {
    match d16 {
        D16::Whole => None,
        D16::Low => Some(0xffff_0000),
        D16::High => Some(0xffff),
    }
}

/// The vector register that an inserted instruction sets to 0 in its active lanes, if it is one that the access
/// writes; or the half of it that the access writes, with the other half kept.
pub(super) fn zeroed(original: &Body, access: InstId, new: &Body, id: InstId) -> Option<Reg> {
    let inst = new.inst(id);
    if inst.modifiers.sdwa.is_some() || inst.modifiers.dpp.is_some() {
        return None;
    }
    let zeroed = new.writes(id).next()?;
    let source = |role| inst.operand(role).map(|operand| operand.value);
    let kept = original.inst(access).opcode().load().and_then(|load| kept_half(load.d16));
    let is_zeroed = match (inst.opcode(), kept) {
        (Opcode::V_MOV_B32, None) => zeroed.file == RegFile::Vector && source(Role::Src0) == Some(Value::InlineInt(0)),
        (Opcode::V_AND_B32, Some(kept)) => {
            source(Role::Src0) == Some(Value::Literal(kept)) && source(Role::Src1) == Some(Value::Reg(zeroed))
        }
        _ => false,
    };
    // A comparing atomic of a buffer has its data where it returns its result, which is half as wide.
    let result = original.inst(access).variant.memory_bytes.div_ceil(4) as u16;
    let is_written = original.writes(access).any(|reg| {
        let end = |reg: Reg| reg.first + u16::from(reg.dwords).min(result);
        reg.file == zeroed.file && reg.first <= zeroed.first && end(zeroed) <= end(reg)
    });
    (is_zeroed && is_written).then_some(zeroed)
}
