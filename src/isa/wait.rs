//! The wait counters of `s_waitcnt`.

use super::inst::{Inst, Role, Value};

/// How many operations may still be outstanding, per counter; `None`: any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct WaitCount {
    /// Vector memory.
    pub vm: Option<u8>,
    /// LDS, scalar memory, messages.
    pub lgkm: Option<u8>,
    /// Exports and GDS.
    pub exp: Option<u8>,
}

/// The largest counts, which wait for nothing (gfx9 ISA guides, "S_WAITCNT").
const MAX_VM: u8 = 63;
const MAX_LGKM: u8 = 15;
const MAX_EXP: u8 = 7;

impl WaitCount {
    /// The counts in the immediate of a gfx9 `s_waitcnt`: vm\[3:0\], exp\[6:4\], lgkm\[11:8\], vm\[5:4\] in bits 15:14.
    #[must_use]
    pub fn from_bits(bits: u16) -> Self {
        let vm = (bits & 15 | (bits >> 14) << 4) as u8;
        let (exp, lgkm) = ((bits >> 4 & 7) as u8, (bits >> 8 & 15) as u8);
        let below = |count: u8, max: u8| (count < max).then_some(count);
        WaitCount { vm: below(vm, MAX_VM), lgkm: below(lgkm, MAX_LGKM), exp: below(exp, MAX_EXP) }
    }

    /// The immediate of a gfx9 `s_waitcnt`; a count beyond the field is the largest, which waits for nothing.
    ///
    /// ```
    /// use wavetap::isa::WaitCount;
    /// assert_eq!(WaitCount { vm: Some(0), ..WaitCount::default() }.bits(), 0x0f70);
    /// assert_eq!(WaitCount { lgkm: Some(0), ..WaitCount::default() }.bits(), 0xc07f);
    /// ```
    #[must_use]
    pub fn bits(self) -> u16 {
        let vm = u16::from(self.vm.map_or(MAX_VM, |count| count.min(MAX_VM)));
        let lgkm = u16::from(self.lgkm.map_or(MAX_LGKM, |count| count.min(MAX_LGKM)));
        let exp = u16::from(self.exp.map_or(MAX_EXP, |count| count.min(MAX_EXP)));
        vm & 15 | exp << 4 | lgkm << 8 | (vm >> 4) << 14
    }
}

/// What an `s_waitcnt` waits for; `None` if the instruction is another one.
#[must_use]
pub fn wait_count(inst: &Inst) -> Option<WaitCount> {
    match inst.operand(Role::WaitCount)?.value {
        Value::Imm(bits) => Some(WaitCount::from_bits(bits as u16)),
        _ => None,
    }
}
