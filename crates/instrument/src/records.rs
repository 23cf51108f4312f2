//! Which record a wave adds its counters to.

use crate::asm::{Asm, c, s};
use wavetap_amdgpu::{HwregField, Target, Value};
use wavetap_base::error::Result;

/// The most bytes that the records have among which the waves of a kernel choose: the host reads and clears them for
/// each dispatch.
const MOST_BYTES: u64 = 1 << 20;

/// Which record a wave has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordChoice {
    /// One that follows from where on the machine it runs, so that waves seldom meet at one address: these bits of a
    /// hardware register are its number. The first record where there are none.
    Slot(Option<HwregField>),
    /// Its own, by its place in the grid.
    Own,
}

impl RecordChoice {
    /// The choice of kernels whose records have so many bytes.
    pub(crate) fn of(target: Target, per_wave: bool, record_bytes: u32) -> RecordChoice {
        if per_wave {
            return RecordChoice::Own;
        }
        let fits = |bits: u8| u64::from(record_bytes) << bits <= MOST_BYTES;
        let place = target.wave_place().and_then(|place| {
            let bits = (1..=place.bits).rev().find(|bits| fits(*bits))?;
            Some(HwregField { bits, ..place })
        });
        RecordChoice::Slot(place)
    }

    /// How many records a dispatch has; none where each wave has its own.
    pub(crate) fn slots(self) -> Option<u32> {
        match self {
            RecordChoice::Slot(place) => Some(place.map_or(1, |place| 1 << place.bits)),
            RecordChoice::Own => None,
        }
    }

    /// Whether a wave finds its record at an offset that it computes without the control block.
    pub(crate) fn has_offset(self) -> bool {
        matches!(self, RecordChoice::Slot(Some(_)))
    }
}

/// Puts the offset of the wave's record among those that waves share into a scalar register; nothing where it is 0.
pub(crate) fn slot_offset(records: RecordChoice, record_bytes: u32, asm: &mut Asm, into: u16) -> Result<bool> {
    let RecordChoice::Slot(Some(place)) = records else { return Ok(false) };
    asm.op("s_getreg_b32", &[s(into), Value::Imm(place.operand())])?;
    asm.op("s_mul_i32", &[s(into), s(into), c(record_bytes)])?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_few_and_small_together() {
        let slots = |target: &str, per_wave, bytes| {
            RecordChoice::of(Target::by_name(target).expect("a target"), per_wave, bytes).slots()
        };
        assert_eq!(slots("gfx90a", false, 112), Some(256));
        assert_eq!(slots("gfx1100", false, 112), Some(64));
        assert_eq!(slots("gfx90a", false, 1 << 12), Some(256));
        assert_eq!(slots("gfx90a", false, (1 << 12) + 8), Some(128));
        assert_eq!(slots("gfx90a", false, 1 << 30), Some(1));
        assert_eq!(slots("gfx90a", true, 112), None);
    }
}
