//! The high bits of vector register numbers (gfx1250): an instruction names v0 to v255, `s_set_vgpr_msb` says which 256
//! of up to 1024 are meant.
//!
//! There are two bits for each of four operand places (LLVM, AMDGPULowerVGPREncoding): the first, second and third
//! source in bits 1:0, 3:2 and 5:4 of the instruction's immediate, the destination in bits 7:6. MODE has them in bits
//! 19:12 (LLVM, SIDefines), the destination's lowest.

use super::{Encoding, Flags, Inst, Opcode, OpcodeFlags, Reg, RegFile, Role};

/// The high bits of vector register numbers, as in the low byte of the immediate of `s_set_vgpr_msb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct VgprMsb(pub u8);

impl VgprMsb {
    /// The lowest of the bits of MODE that are the same.
    pub const MODE_FIRST: u32 = 12;
    /// The highest of them.
    pub const MODE_LAST: u32 = 19;

    /// Those that MODE holds.
    #[must_use]
    pub fn of_mode(mode: u32) -> VgprMsb {
        VgprMsb(((mode >> Self::MODE_FIRST) as u8).rotate_right(2))
    }

    /// MODE with these instead of its own.
    #[must_use]
    pub fn in_mode(self, mode: u32) -> u32 {
        mode & !(0xff << Self::MODE_FIRST) | u32::from(self.0.rotate_left(2)) << Self::MODE_FIRST
    }

    /// The registers that `reg` means, an operand of this role; none if it is not known which bits concern a vector
    /// register of this role, or if they end past the last one.
    #[must_use]
    pub fn actual(self, inst: &Inst, role: Role, reg: Reg) -> Option<Reg> {
        if reg.file != RegFile::Vector {
            return Some(reg);
        }
        Some(match place(inst, role)? {
            NOWHERE => reg,
            place => {
                let first = reg.first + 256 * u16::from(self.0 >> (2 * place) & 3);
                (first + u16::from(reg.dwords) <= REGISTERS).then_some(Reg { first, ..reg })?
            }
        })
    }
}

/// Vector registers that a wave can have.
const REGISTERS: u16 = 1024;

/// The place of an operand that has no high bits.
const NOWHERE: u8 = 4;

/// The operand place whose bits concern the vector register of this role: 0 to 2 the sources, 3 the destination,
/// [`NOWHERE`] none of them.
fn place(inst: &Inst, role: Role) -> Option<u8> {
    match inst.variant.encoding {
        Encoding::Ds => match role {
            Role::Addr | Role::Vaddr => Some(0),
            Role::Data0 | Role::Vdata => Some(1),
            Role::Data1 => Some(2),
            Role::Vdst => Some(3),
            _ => None,
        },
        Encoding::Flat | Encoding::Global | Encoding::Scratch => match role {
            Role::Vaddr | Role::Addr => Some(0),
            Role::Vdata | Role::Data0 => Some(1),
            Role::Vdst => Some(3),
            _ => None,
        },
        Encoding::Mubuf | Encoding::Mtbuf => match role {
            Role::Vaddr => Some(0),
            Role::Vdata => Some(3),
            _ => None,
        },
        Encoding::Vimage => match role {
            Role::Vaddr => Some(0),
            Role::Vaddr1 => Some(1),
            Role::Vaddr2 => Some(2),
            Role::Vdata => Some(3),
            _ => None,
        },
        _ if inst.variant.flags.contains(Flags::VALU) => match role {
            // Scales have no high bits.
            Role::Scale0 | Role::Scale1 => Some(NOWHERE),
            _ if matches!(inst.opcode(), Opcode::V_WMMA_LD_SCALE_PAIRED_B32 | Opcode::V_WMMA_LD_SCALE16_PAIRED_B64) => {
                Some(NOWHERE)
            }
            Role::Src0Y => Some(0),
            Role::Src1Y if inst.variant.second == Some(Opcode::V_DUAL_FMAMK_F32) => Some(2),
            Role::Src1Y => Some(1),
            Role::Src2Y => Some(2),
            Role::VdstY => Some(3),
            Role::Src0 => Some(0),
            // `v_fmamk`: the literal has the second place.
            Role::Src1
                if inst.opcode().is_any(OpcodeFlags::LITERAL_FACTOR) || inst.opcode() == Opcode::V_DUAL_FMAMK_F32 =>
            {
                Some(2)
            }
            Role::Src1 => Some(1),
            Role::Src2 => Some(2),
            Role::Vdst | Role::Old => Some(3),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_has_the_destination_lowest() {
        let msb = VgprMsb(0b11_00_10_01);
        assert_eq!(msb.in_mode(0), 0b00_10_01_11 << 12);
        assert_eq!(msb.in_mode(u32::MAX) & 0xfff, 0xfff);
        assert_eq!(VgprMsb::of_mode(msb.in_mode(0xfff0_0fff)), msb);
    }
}
