//! Instructions that read a clock (`wavetap_amdgpu::ShaderClock`, `wavetap_amdgpu::ConstantClock`) or let time pass.

use wavetap_amdgpu::{Inst, Opcode, Value};

/// The hardware register of the shader clock: since gfx10.3; 64 bits in two registers from gfx12 on (AMDGPU assembler,
/// `hwreg`).
pub(crate) const SHADER_CYCLES: usize = 29;
pub(crate) const SHADER_CYCLES_HI: usize = 30;
/// The message that asks for the time (AMDGPUUsage, "s_sendmsg_rtn").
pub(crate) const GET_REALTIME: i64 = 131;
/// Shader cycles of a count of `s_sleep` (RDNA ISA guides).
pub(crate) const SLEEP: u64 = 64;

/// The first immediate among an instruction's operands.
pub(crate) fn immediate(inst: &Inst) -> Option<i64> {
    inst.operands.iter().find_map(|operand| match operand.value {
        Value::Imm(value) => Some(value),
        _ => None,
    })
}

/// Whether an instruction reads a clock; `imm` is its immediate.
pub(crate) fn reads_clock(inst: &Inst, imm: i64) -> bool {
    match inst.opcode() {
        Opcode::S_MEMTIME | Opcode::S_MEMREALTIME | Opcode::S_GET_SHADER_CYCLES_U64 => true,
        Opcode::S_GETREG_B32 => {
            inst.hardware_register().is_some_and(|(id, _)| matches!(usize::from(id), SHADER_CYCLES | SHADER_CYCLES_HI))
        }
        Opcode::S_SENDMSG_RTN_B32 | Opcode::S_SENDMSG_RTN_B64 => imm & 0xff == GET_REALTIME,
        _ => false,
    }
}

/// The shader cycles that an instruction sleeps.
pub(crate) fn sleeps(inst: &Inst, imm: i64) -> u64 {
    // Seven bits count (RDNA ISA guides; GCN has as many).
    if inst.opcode() == Opcode::S_SLEEP { SLEEP * (imm as u64 & 0x7f) } else { 0 }
}
