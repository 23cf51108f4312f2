//! Undefined bits of loads that transpose: they go with the numbers that they are of.

use wavetap_amdgpu::{Inst, Reg};

use crate::lanes::LANES;
use crate::op::registers::slot;
use crate::op::transpose::{Layout, MOST};
use crate::op::wave_transpose::{WAVE, WORDS, bits_of, exchange};
use crate::shadow::init_shadow::InitShadow;

/// Undefined bits go with the numbers that they are of, once each lane has those that it loaded.
pub(crate) fn exchange_group(shadow: &mut InitShadow, inst: &Inst, dst: Option<Reg>) {
    let (Some(layout), Some(dst)) = (Layout::of(inst.opcode()), dst) else { return };
    let first = slot(dst.file, dst.first);
    let slots = first..first + layout.words();
    if slots.clone().all(|slot| shadow.lanes(slot) == 0) {
        return;
    }
    let mut loaded = [[0; LANES]; MOST];
    for (row, slot) in loaded.iter_mut().zip(slots.clone()) {
        *row = std::array::from_fn(|lane| shadow.vector(slot).get(lane));
    }
    // Whatever is undefined has come with one of the registers.
    let origin = slots.clone().find(|&slot| shadow.lanes(slot) != 0).map(|slot| shadow.origin(slot));
    for (row, slot) in layout.exchange(&loaded, inst.wave_size.into()).iter().zip(slots) {
        (0..usize::from(inst.wave_size)).for_each(|lane| shadow.vector_mut(slot).set(lane, row[lane]));
        if let Some(origin) = origin {
            shadow.set_origin(slot, origin);
        }
    }
}

/// Undefined bits go with the numbers that they are of, once each lane has those that it loaded.
pub(crate) fn exchange_wave(shadow: &mut InitShadow, inst: &Inst, dst: Option<Reg>) {
    let (Some(bits), Some(dst)) = (bits_of(inst.opcode()), dst) else { return };
    let slots: [usize; WORDS] = std::array::from_fn(|n| slot(dst.file, dst.first) + n);
    // Whatever is undefined has come with one of the registers.
    let Some(from) = slots.into_iter().find(|slot| shadow.lanes(*slot) != 0) else { return };
    let origin = shadow.origin(from);
    let loaded = slots.map(|slot| std::array::from_fn(|lane| shadow.vector(slot).get(lane)));
    for (slot, row) in slots.into_iter().zip(exchange(bits, &loaded)) {
        (0..WAVE).for_each(|lane| shadow.vector_mut(slot).set(lane, row[lane]));
        shadow.set_origin(slot, origin);
    }
}
