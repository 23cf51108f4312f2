//! Arguments that the original finds in registers because the hardware has preloaded them, and that inserted code loads
//! at the entry instead.
//!
//! The original's register holds a certain dword of the arguments then (AMDGPUUsage, "Preloaded Kernel Arguments"), and
//! so does the register that a scalar load from their address and the dword's offset writes. Nothing stores to them
//! while a kernel runs. Whether the load is waited for is another rule (`waits`).

use crate::values::compared::{State, Word};
use wavetap_amdgpu::{Inst, Opcode, Reg, RegFile, Role, Value};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;

/// Bytes of an argument that a register holds.
const DWORD: i64 = 4;

/// What loads dwords from an address in two registers.
const LOADS: [Opcode; 5] = [
    Opcode::S_LOAD_DWORD,
    Opcode::S_LOAD_DWORDX2,
    Opcode::S_LOAD_DWORDX4,
    Opcode::S_LOAD_DWORDX8,
    Opcode::S_LOAD_DWORDX16,
];

/// The bytes that a scalar load adds to its address, if no register says how many.
pub(crate) fn constant_offset(inst: &Inst) -> Option<i64> {
    match inst.operand(Role::Soffset).map(|operand| operand.value) {
        None | Some(Value::Off) => Some(i64::from(inst.modifiers.offset)),
        Some(Value::Imm(offset)) => Some(offset),
        Some(_) => None,
    }
}

/// The registers in which an inserted instruction puts what the original's hold, by loading preloaded arguments.
pub(crate) fn loaded(state: &State, new: &Body, id: InstId) -> Vec<Reg> {
    let (Some((preload, pointer)), inst) = (state.preloaded, new.inst(id)) else { return Vec::new() };
    let base = inst.operand(Role::Sbase).and_then(|operand| operand.reg());
    let Some(base) = base.filter(|_| LOADS.contains(&inst.opcode())) else { return Vec::new() };
    let is_pointer = (0..2).all(|half| state.word(base, half) == Word::Original(pointer + u16::from(half)));
    let (Some(offset), true) = (constant_offset(inst).filter(|offset| offset % DWORD == 0), is_pointer) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for written in new.writes(id).filter(|reg| reg.file == RegFile::Scalar) {
        for index in 0..u16::from(written.dwords) {
            let register = written.first + index;
            let dword = offset / DWORD + i64::from(index);
            let preloaded = i64::from(preload.offset) + i64::from(register) - i64::from(preload.first);
            let is_one = (preload.first..preload.first + preload.length).contains(&register);
            if is_one && dword == preloaded {
                found.push(Reg::scalar(register, 1));
            }
        }
    }
    found
}
