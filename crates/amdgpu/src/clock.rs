//! The clocks that a wave can read, by target.
//!
//! | targets | shader cycles | bits | constant clock |
//! |---|---|---|---|
//! | gfx8, gfx9, gfx10 | `s_memtime` | 64 | `s_memrealtime` |
//! | gfx11 | `s_getreg_b32` of `HW_REG_SHADER_CYCLES` | 20 | message `MSG_RTN_GET_REALTIME` |
//! | gfx12 | the same of `HW_REG_SHADER_CYCLES_LO` and `_HI` | 64 | message |
//! | gfx125x | `s_get_shader_cycles_u64` | 64 | message |
//!
//! gfx10.3 has both the first and the second; the first does not wrap around. Sources: AMDGPUUsage, "s_memtime" and
//! `llvm.readcyclecounter`; LLVM's SMInstructions.td and SOPInstructions.td (`readcyclecounter`, `readsteadycounter`);
//! RDNA3 ISA guide, "SHADER_CYCLES".

use super::names::HwregField;
use super::opcode::Opcode;
use super::spelling::has_operation;
use super::target::Target;
use super::vocabulary::NameList;

/// Bits of `HW_REG_SHADER_CYCLES` (RDNA3 ISA guide, "Hardware Registers").
const CYCLES_BITS: u8 = 20;

/// What counts the cycles of the shader's clock, which runs as fast as the compute units do at the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShaderClock {
    /// `s_memtime`: 64 bits, which come like what a scalar load loads.
    Memory,
    /// A field of a hardware register, which wraps around.
    Register(HwregField),
    /// Two hardware registers with the halves of 64 bits. They are not read at once.
    Halves {
        /// The low half.
        low: HwregField,
        /// The high half.
        high: HwregField,
    },
    /// `s_get_shader_cycles_u64`.
    Instruction,
}

impl ShaderClock {
    /// How many bits it has.
    #[must_use]
    pub fn bits(self) -> u8 {
        match self {
            ShaderClock::Register(field) => field.bits,
            ShaderClock::Memory | ShaderClock::Halves { .. } | ShaderClock::Instruction => 64,
        }
    }
}

/// What counts the ticks of the clock whose frequency is constant and the same for all waves of a device: 64 bits,
/// which come later. 100 MHz from gfx10 on; of older ones the runtime knows it (`hipDeviceAttributeWallClockRate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConstantClock {
    /// `s_memrealtime`.
    Memory,
    /// The answer of `s_sendmsg_rtn_b64` to this message.
    Message(u8),
}

impl Target {
    /// The clock that counts shader cycles; none where no instruction is known that reads it. Of several the one that
    /// has most bits.
    ///
    /// ```
    /// use wavetap_amdgpu::{ShaderClock, Target};
    /// let bits = |name| Target::by_name(name).unwrap().shader_clock().map(ShaderClock::bits);
    /// assert_eq!(["gfx90a", "gfx1030", "gfx1100", "gfx1200"].map(bits), [64, 64, 20, 64].map(Some));
    /// ```
    #[must_use]
    pub fn shader_clock(self) -> Option<ShaderClock> {
        if has_operation(self, Opcode::S_GET_SHADER_CYCLES_U64) {
            return Some(ShaderClock::Instruction);
        }
        if has_operation(self, Opcode::S_MEMTIME) {
            return Some(ShaderClock::Memory);
        }
        let field = |name: &str, bits| {
            let register = numbered(self.names(NameList::HardwareRegisters), name)?;
            Some(HwregField { register, first: 0, bits })
        };
        let halves = || {
            let (low, high) = (field("HW_REG_SHADER_CYCLES_LO", 32)?, field("HW_REG_SHADER_CYCLES_HI", 32)?);
            Some(ShaderClock::Halves { low, high })
        };
        halves().or_else(|| field("HW_REG_SHADER_CYCLES", CYCLES_BITS).map(ShaderClock::Register))
    }

    /// The clock of constant frequency; none where no instruction is known that reads it.
    #[must_use]
    pub fn constant_clock(self) -> Option<ConstantClock> {
        if has_operation(self, Opcode::S_MEMREALTIME) {
            return Some(ConstantClock::Memory);
        }
        numbered(self.names(NameList::Messages), "MSG_RTN_GET_REALTIME").map(ConstantClock::Message)
    }
}

/// The number that has this name.
fn numbered(names: &[(u8, &str)], name: &str) -> Option<u8> {
    names.iter().find(|(_, known)| *known == name).map(|(number, _)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_with_instructions_has_both_clocks() {
        for target in Target::all().filter(|target| target.has_instructions()) {
            let (shader, constant) = (target.shader_clock(), target.constant_clock());
            assert!(shader.is_some() && constant.is_some(), "{}", target.name());
            let memory = target.generation() <= 10;
            assert_eq!(shader == Some(ShaderClock::Memory), memory, "{}", target.name());
            assert_eq!(constant == Some(ConstantClock::Memory), memory, "{}", target.name());
            assert_eq!(shader.is_some_and(|clock| clock.bits() < 64), target.generation() == 11, "{}", target.name());
            let message = target.message(131);
            assert_eq!(message == Some("MSG_RTN_GET_REALTIME"), !memory, "{}", target.name());
        }
    }
}
