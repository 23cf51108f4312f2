//! Inserted code moves whole vector registers away and back: into AGPRs, and into scratch memory that
//! is there for it alone, by scratch instructions or by buffer instructions with four registers that describe the
//! wave's.
//!
//! What comes back is what went out if all lanes went and all came, and neither the slot nor the original's register
//! was written in between.

use std::ops::Range;

use crate::finding::{Finding, Rule};
use crate::values::compared::{SpillSlot, State, Word};
use crate::values::scratch;
use wavetap_amdgpu::{Flags, Inst, Memory, Opcode, Reg, RegFile, Role, Value};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;

/// Bytes of a lane's register.
const LANE: i64 = 4;

/// Does what an inserted instruction does if it moves a vector register, and tells whether it was one. `scratch` is the
/// part of scratch memory that inserted code may use.
pub(crate) fn moved(
    state: &mut State,
    body: &Body,
    id: InstId,
    scratch: &Range<u64>,
    mut report: impl FnMut(&dyn Fn() -> Finding),
) -> bool {
    let inst = body.inst(id);
    let all = state.all_lanes(body.target().wave_size());
    match (inst.opcode(), inst.variant.memory) {
        (Opcode::V_ACCVGPR_WRITE_B32, _) => {
            if let (Some(to), Some(from)) =
                (single(inst, Role::Vdst, RegFile::Accum), single(inst, Role::Src0, RegFile::Vector))
            {
                state.clobber_vector(Reg::accum(to, 1));
                state.spill(from, SpillSlot::Accum(to), all);
                return true;
            }
            false
        }
        (Opcode::V_ACCVGPR_READ_B32, _) => {
            if let (Some(to), Some(from)) =
                (single(inst, Role::Vdst, RegFile::Vector), single(inst, Role::Src0, RegFile::Accum))
            {
                state.restore(to, SpillSlot::Accum(from), all);
                return true;
            }
            false
        }
        (_, Memory::Scratch | Memory::Buffer) => {
            let is_buffer = inst.variant.memory == Memory::Buffer;
            let offset = if is_buffer { buffer_offset(state, body, id, &mut report) } else { offset(state, inst) };
            let is_inside = |offset: i64| offset >= scratch.start as i64 && offset + LANE <= scratch.end as i64;
            if !offset.is_some_and(is_inside) {
                let place = offset.map_or_else(|| "an unknown place".to_owned(), |offset| format!("byte {offset}"));
                let (start, end) = (scratch.start, scratch.end);
                let message = || {
                    format!(
                        "{} accesses {place} of scratch memory; {start} to {end} are there for inserted code",
                        inst.name()
                    )
                };
                report(&|| Finding::new(Rule::Scratch, message()).at(body.address(id)));
            }
            let is_word = match inst.opcode() {
                Opcode::SCRATCH_STORE_DWORD
                | Opcode::SCRATCH_STORE_B32
                | Opcode::SCRATCH_LOAD_DWORD
                | Opcode::SCRATCH_LOAD_B32 => true,
                // In another form it takes or gives more.
                Opcode::BUFFER_STORE_DWORD | Opcode::BUFFER_LOAD_DWORD => !inst.modifiers.tfe && !inst.modifiers.lds,
                _ => false,
            };
            match (offset.filter(|_| is_word), inst.variant.flags.intersects(Flags::STORE | Flags::ATOMIC)) {
                (Some(offset), true) => match single(inst, Role::Vdata, RegFile::Vector) {
                    Some(from) => state.spill(from, SpillSlot::Scratch(offset), all),
                    None => state.forget_scratch(),
                },
                (Some(offset), false) => {
                    match single(inst, if is_buffer { Role::Vdata } else { Role::Vdst }, RegFile::Vector) {
                        Some(to) => state.restore(to, SpillSlot::Scratch(offset), all),
                        None => return false,
                    }
                }
                (None, is_store) => {
                    if is_store {
                        state.forget_scratch();
                    }
                    return false;
                }
            }
            true
        }
        _ => false,
    }
}

/// A register of one dword that is an operand.
fn single(inst: &Inst, role: Role, file: RegFile) -> Option<u16> {
    inst.operand(role)?.reg().filter(|reg| reg.file == file && reg.dwords == 1).map(|reg| reg.first)
}

/// The offset of a scratch instruction, where it is the same for all lanes and known. Slots are a dword each, at
/// multiples of one.
fn offset(state: &State, inst: &Inst) -> Option<i64> {
    if inst.operand(Role::Vaddr).is_some_and(|operand| operand.value != Value::Off) {
        return None;
    }
    let base = match inst.operand(Role::Saddr).map(|operand| operand.value) {
        None | Some(Value::Off) => 0,
        Some(_) => match state.source(inst, Role::Saddr, 0) {
            Word::Constant(base) => i64::from(base),
            _ => return None,
        },
    };
    Some(base + i64::from(inst.modifiers.offset)).filter(|offset| offset % LANE == 0)
}

/// Each lane's offset of a buffer instruction that goes by what describes the wave's scratch memory, where it is the
/// same for all lanes and known. Dwords of the lanes take turns there: a dword of each lane is as far from the next as
/// all lanes have dwords, and that is what the register of the instruction counts, while its immediate counts the bytes
/// of a lane (AMD ISA guides, "Buffer addressing", swizzled). Inserted code has buffer instructions for nothing else.
fn buffer_offset(state: &State, body: &Body, id: InstId, report: &mut impl FnMut(&dyn Fn() -> Finding)) -> Option<i64> {
    let inst = body.inst(id);
    let resource = inst.operand(Role::Srsrc).and_then(|operand| operand.reg());
    if !resource.is_some_and(|registers| scratch::is_described(state, registers)) {
        let message = || format!("{}: its registers are not known to describe the wave's scratch memory", inst.name());
        report(&|| Finding::new(Rule::Scratch, message()).at(body.address(id)));
        return None;
    }
    let modifiers = &inst.modifiers;
    if modifiers.offen
        || modifiers.idxen
        || inst.operand(Role::Vaddr).is_some_and(|operand| operand.value != Value::Off)
    {
        return None;
    }
    let row = i64::from(body.target().wave_size()) * LANE;
    match state.source(inst, Role::Soffset, 0) {
        Word::Constant(bytes) if i64::from(bytes) % row == 0 => {
            Some(i64::from(bytes) / row * LANE + i64::from(modifiers.offset))
        }
        _ => None,
    }
    .filter(|offset| offset % LANE == 0)
}
