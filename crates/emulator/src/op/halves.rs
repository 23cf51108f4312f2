//! Halves of vector registers that an instruction names, two for each register: runs of them are a first one and how
//! many.

use smallvec::SmallVec;

use wavetap_amdgpu::{Access, Half, Inst, RegFile, Role};

/// Halves in a row: the number of the first, and how many.
pub(crate) type HalfRun = (u16, u16);

/// Those of registers, or one half of one.
fn run(register: u16, registers: u16, half: Half) -> HalfRun {
    match half {
        Half::Whole => (2 * register, 2 * registers),
        Half::Low => (2 * register, 1),
        Half::High => (2 * register + 1, 1),
    }
}

/// All of the registers of which any half is in a run.
pub(crate) fn whole((first, count): HalfRun) -> HalfRun {
    let even = first & !1;
    (even, (first + count - even).next_multiple_of(2))
}

/// What an instruction names, but for operands of one access. A memory instruction accesses `data_half` of its data
/// register.
pub(crate) fn named(inst: &Inst, not: Access, data_half: Half) -> SmallVec<[HalfRun; 4]> {
    let operands = inst.operands.iter().filter(|operand| operand.access != not);
    let runs = operands.filter_map(|operand| {
        let reg = operand.reg().filter(|reg| reg.file == RegFile::Vector)?;
        let is_data = matches!(operand.role, Role::Vdata | Role::Data0 | Role::Vdst);
        let half = if operand.half == Half::Whole && is_data { data_half } else { operand.half };
        Some(run(reg.first, reg.dwords.into(), half))
    });
    runs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_numbered() {
        assert_eq!([Half::Low, Half::High].map(|half| run(3, 1, half)), [(6, 1), (7, 1)]);
        assert_eq!(run(2, 3, Half::Whole), (4, 6));
        for (of, all) in [((6, 1), (6, 2)), ((7, 1), (6, 2)), ((4, 6), (4, 6))] {
            assert_eq!(whole(of), all);
        }
    }
}
