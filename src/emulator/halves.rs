//! Halves of vector registers that an instruction reads or writes.

use smallvec::SmallVec;

use crate::isa::{Access, Half, Inst, RegFile, Role};

/// Halves in a row: the first, two for each register, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Halves {
    first: u16,
    count: u16,
}

impl Halves {
    /// Of registers, or one half of one.
    pub(super) fn of(register: u16, registers: u16, half: Half) -> Halves {
        match half {
            Half::Whole => Halves { first: 2 * register, count: 2 * registers },
            Half::Low => Halves { first: 2 * register, count: 1 },
            Half::High => Halves { first: 2 * register + 1, count: 1 },
        }
    }

    pub(super) fn range(self) -> std::ops::Range<usize> {
        usize::from(self.first)..usize::from(self.first + self.count)
    }

    /// All of the registers.
    pub(super) fn whole(self) -> Halves {
        let first = self.first & !1;
        Halves { first, count: (self.first + self.count - first).next_multiple_of(2) }
    }

    /// The first register of which both have a half.
    pub(super) fn common(self, other: Halves) -> Option<u16> {
        let first = self.first.max(other.first);
        (first < (self.first + self.count).min(other.first + other.count)).then_some(first / 2)
    }
}

/// What an instruction names of vector registers, but for operands of one access. A memory instruction accesses `data_half` of its data register.
pub(super) fn named(inst: &Inst, not: Access, data_half: Half) -> SmallVec<[Halves; 4]> {
    let operands = inst.operands.iter().filter(|operand| operand.access != not);
    let halves = operands.filter_map(|operand| {
        let reg = operand.reg().filter(|reg| reg.file == RegFile::Vector)?;
        let is_data = matches!(operand.role, Role::Vdata | Role::Data0 | Role::Vdst);
        let half = if operand.half == Half::Whole && is_data { data_half } else { operand.half };
        Some(Halves::of(reg.first, reg.dwords.into(), half))
    });
    halves.collect()
}
