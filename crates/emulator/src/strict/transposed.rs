//! Undefined bits of loads that transpose: they go with the numbers that they are of.

use wavetap_amdgpu::{Inst, Reg};

use crate::lanes::LANES;
use crate::op::registers::slot;
use crate::op::transpose::{Layout, MOST};
use crate::op::wave_transpose::{WAVE, WORDS, bits_of, exchange};
use crate::shadow::init_shadow::InitShadow;

/// Undefined bits go with the numbers that they are of, once each lane has those that it loaded.
pub(crate) fn exchange_group(known: &mut InitShadow, inst: &Inst, dst: Option<Reg>) {
    let (Some(layout), Some(dst)) = (Layout::of(inst.opcode()), dst) else { return };
    let first = slot(dst.file, dst.first);
    let slots = first..first + layout.words();
    if slots.clone().all(|slot| known.lanes(slot) == 0) {
        return;
    }
    let mut loaded = [[0; LANES]; MOST];
    for (row, slot) in loaded.iter_mut().zip(slots.clone()) {
        *row = std::array::from_fn(|lane| known.vector(slot).get(lane));
    }
    // Whatever is undefined has come with one of the registers.
    let origin = slots.clone().find(|&slot| known.lanes(slot) != 0).map(|slot| known.origin(slot));
    for (row, slot) in layout.exchange(&loaded, inst.wave_size.into()).iter().zip(slots) {
        (0..usize::from(inst.wave_size)).for_each(|lane| known.vector_mut(slot).set(lane, row[lane]));
        if let Some(origin) = origin {
            known.set_origin(slot, origin);
        }
    }
}

/// Undefined bits go with the numbers that they are of, once each lane has those that it loaded.
pub(crate) fn exchange_wave(known: &mut InitShadow, inst: &Inst, dst: Option<Reg>) {
    let (Some(bits), Some(dst)) = (bits_of(inst.opcode()), dst) else { return };
    let slots: [usize; WORDS] = std::array::from_fn(|n| slot(dst.file, dst.first) + n);
    // Whatever is undefined has come with one of the registers.
    let Some(from) = slots.into_iter().find(|slot| known.lanes(*slot) != 0) else { return };
    let origin = known.origin(from);
    let loaded = slots.map(|slot| std::array::from_fn(|lane| known.vector(slot).get(lane)));
    for (slot, row) in slots.into_iter().zip(exchange(bits, &loaded)) {
        (0..WAVE).for_each(|lane| known.vector_mut(slot).set(lane, row[lane]));
        known.set_origin(slot, origin);
    }
}
