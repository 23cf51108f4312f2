//! The names that assemblers write for numbers, by target (`isa-tables/names.yaml`).

use super::target::Target;
use super::vocabulary::NameList;

/// A named field of an immediate operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// What assemblers call it.
    pub name: &'static str,
    /// Its lowest bit.
    pub bit: u8,
    /// Its number of bits.
    pub width: u8,
}

impl Field {
    /// Its value in `word`.
    #[must_use]
    pub fn of(self, word: u16) -> u16 {
        word >> self.bit & self.most()
    }

    /// Its largest value: for `s_waitcnt_depctr` and `s_wait_alu` the one that waits for nothing.
    #[must_use]
    pub fn most(self) -> u16 {
        (1 << self.width) - 1
    }
}

/// Some bits of a hardware register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HwregField {
    /// The register's number.
    pub register: u8,
    /// The lowest bit.
    pub first: u8,
    /// How many bits: 1 to 32.
    pub bits: u8,
}

impl HwregField {
    /// The operand of `s_getreg_b32` and `s_setreg_b32`: the register in bits 5:0, the lowest bit in 10:6, one less
    /// than the number of bits in 15:11.
    #[must_use]
    pub const fn operand(self) -> i64 {
        self.register as i64 | (self.first as i64) << 6 | (self.bits as i64 - 1) << 11
    }
}

impl Target {
    /// What assemblers write for a number, if the target has a name for it.
    ///
    /// ```
    /// use wavetap_amdgpu::{NameList, Target};
    /// let target = Target::by_name("gfx1200").unwrap();
    /// assert_eq!(target.name_of(NameList::HardwareRegisters, 1), Some("HW_REG_WAVE_MODE"));
    /// assert_eq!(target.name_of(NameList::HardwareRegisters, 3), None);
    /// ```
    #[must_use]
    pub fn name_of(self, list: NameList, number: u8) -> Option<&'static str> {
        let names = self.data.names[list as usize];
        names.binary_search_by_key(&number, |(known, _)| *known).ok().map(|place| names[place].1)
    }

    /// All numbers of a kind that have names, ascending.
    #[must_use]
    pub fn names(self, list: NameList) -> &'static [(u8, &'static str)] {
        self.data.names[list as usize]
    }

    /// The name of a hardware register (`s_getreg`, `s_setreg`).
    #[must_use]
    pub fn hardware_register(self, number: u8) -> Option<&'static str> {
        self.name_of(NameList::HardwareRegisters, number)
    }

    /// The bits of a hardware register that say on which SIMD of which compute unit a wave runs (Vega ISA guide, "HW_ID
    /// register": SIMD_ID, PIPE_ID, CU_ID; RDNA ISA guides, "HW_ID1": SIMD_ID, WGP_ID). Waves that run at the same time
    /// may have the same. None where no such register is known.
    #[must_use]
    pub fn wave_place(self) -> Option<HwregField> {
        let find = |name: &str| self.names(NameList::HardwareRegisters).iter().find(|(_, known)| *known == name);
        let field = |(register, _): &(u8, _), first, bits| HwregField { register: *register, first, bits };
        let newer = || find("HW_REG_HW_ID1").or_else(|| find("HW_REG_WAVE_HW_ID1")).map(|found| field(found, 8, 6));
        find("HW_REG_HW_ID").map(|found| field(found, 4, 8)).or_else(newer)
    }

    /// The hardware register with the low half of FLAT_SCRATCH, where code sets it by `s_setreg`; the high half's
    /// follows. None where it is a scalar register.
    #[must_use]
    pub fn flat_scratch_hwreg(self) -> Option<u8> {
        self.names(NameList::HardwareRegisters)
            .iter()
            .find(|(_, name)| *name == "HW_REG_FLAT_SCR_LO")
            .map(|(number, _)| *number)
    }

    /// The hardware register with the scheduling mode, of which bits 1:0 say whether dependences of vector registers
    /// are left to code: 0 no, 2 those of [`EventHazards::EXPERT_SCHEDULING`](super::EventHazards::EXPERT_SCHEDULING).
    /// None where there is no such mode, or what it leaves to code is not known well enough.
    #[must_use]
    pub fn scheduling_mode_hwreg(self) -> Option<u8> {
        let register =
            || self.names(NameList::HardwareRegisters).iter().find(|(_, name)| *name == "HW_REG_WAVE_SCHED_MODE");
        if !self.event_hazards().contains(super::EventHazards::EXPERT_SCHEDULING) {
            return None;
        }
        register().map(|(number, _)| *number)
    }

    /// The name of a message (`s_sendmsg`).
    #[must_use]
    pub fn message(self, number: u8) -> Option<&'static str> {
        self.name_of(NameList::Messages, number)
    }

    /// The fields of `s_waitcnt_depctr` and `s_wait_alu`, in the order in which they are written. A word with a bit in
    /// none of them is written as a number.
    pub fn dependency_fields(self) -> impl Iterator<Item = Field> {
        self.data.dependency_fields.iter().map(|&(bit, width, name)| Field { name, bit, width })
    }
}
