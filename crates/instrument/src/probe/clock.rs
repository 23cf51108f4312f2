//! Reading the shader's clock and the constant one, and the 64-bit values that are made of the readings.

use crate::asm::{Asm, c, s, s2};
use crate::scavenge::registers::Scalars;
use wavetap_amdgpu::{ConstantClock, HwregField, ShaderClock, Target, Value};
use wavetap_base::error::{Error, Result};

/// The clocks of a target.
pub(super) struct Clocks {
    pub(super) shader: ShaderClock,
    constant: ConstantClock,
}

impl Clocks {
    /// # Errors
    /// Unsupported if one is not known.
    pub(super) fn of(target: Target) -> Result<Clocks> {
        let clocks = target.shader_clock().zip(target.constant_clock());
        let (shader, constant) =
            clocks.ok_or_else(|| Error::unsupported(format!("no clock of {} is known", target.name())))?;
        Ok(Clocks { shader, constant })
    }

    /// Whether the shader's clock wraps around.
    pub(super) fn wraps(&self) -> bool {
        self.shader.bits() < 64
    }

    /// Whether readings wait for outstanding scalar loads, and for all that counts with these.
    pub(super) fn wait(&self) -> bool {
        matches!(self.shader, ShaderClock::Memory | ShaderClock::Register(_))
    }

    /// Puts what the shader's clock shows into the first register, and into the second one if it has 64 bits. May
    /// destroy SCC and the scratch pair.
    pub(super) fn read(&self, asm: &mut Asm, r: Scalars) -> Result<()> {
        let (low, high, scratch) = (r.first, r.second, r.scratch);
        let field = |field: HwregField| Value::Imm(field.operand());
        match self.shader {
            ShaderClock::Memory => {
                asm.op("s_memtime", &[s2(low)])?;
                asm.wait_scalar_loads()
            }
            ShaderClock::Instruction => asm.op("s_get_shader_cycles_u64", &[s2(low)]),
            ShaderClock::Halves { low: low_half, high: high_half } => {
                asm.op("s_getreg_b32", &[s(high), field(high_half)])?;
                asm.op("s_getreg_b32", &[s(low), field(low_half)])?;
                asm.op("s_getreg_b32", &[s(scratch), field(high_half)])?;
                // If the high half has changed, the low one was 0 meanwhile.
                asm.op("s_cmp_eq_u32", &[s(high), s(scratch)])?;
                asm.op("s_cselect_b32", &[s(low), s(low), c(0)])?;
                asm.op("s_mov_b32", &[s(high), s(scratch)])
            }
            ShaderClock::Register(register) => asm.op("s_getreg_b32", &[s(low), field(register)]),
        }
    }

    /// Puts the constant clock's ticks into the pair of the first register.
    pub(super) fn ticks(&self, asm: &mut Asm, r: Scalars) -> Result<()> {
        let pair = s2(r.first);
        match self.constant {
            ConstantClock::Memory => asm.op("s_memrealtime", &[pair])?,
            ConstantClock::Message(message) => asm.op("s_sendmsg_rtn_b64", &[pair, Value::Imm(message.into())])?,
        }
        asm.wait_scalar_loads()
    }
}

/// 64 bits. Destroys SCC.
pub(super) fn subtract(asm: &mut Asm, to: u16, from: u16, what: u16) -> Result<()> {
    asm.op("s_sub_u32", &[s(to), s(from), s(what)])?;
    asm.op("s_subb_u32", &[s(to + 1), s(from + 1), s(what + 1)])
}
