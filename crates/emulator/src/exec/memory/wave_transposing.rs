//! Loads of numbers of 8 and 4 bits for matrix instructions of gfx1250: each lane loads a piece of a row of 16 numbers,
//! which all of them then exchange, so that a lane has a part of a column.
//!
//! Of 8 bits a lane has half of a row. In each 16 lanes the first four have the first halves of rows 0 to 3, the next
//! four the second halves, the others rows 4 to 7; lane n gets column n: measured on hardware (a public demo of
//! `ds_load_tr8_b64`), as Triton lays its tiles out for it, and as the CDNA5 ISA guide draws it for
//! `global_load_tr8_b64` (10.9.2). Of 4 bits a lane has a row; lane n gets column n mod 16 of rows 0 to 7 and 16 to 23,
//! or if it is one of the last 16, of the others (the same drawing; AMD's emulator, rocjitsu). Of 6 bits the drawing
//! and that emulator do not agree: they have no meaning here, like those of gfx12.0, of which there is no drawing.
//!
//! With all lanes off a load from memory does nothing (CDNA5 ISA guide); with some of them off it is undefined. Those
//! from LDS ignore EXEC, it says, which others doubt: refused.

use wavetap_amdgpu::{Inst, Opcode, Reg};

use super::lds;
use super::vmem;
use crate::fault::stop::{Step, undefined};
use crate::lanes::LANES;
use crate::op::registers::slot;
use crate::op::{Meaning, Op, Semantics};
use crate::shadow::init_shadow::Known;
use crate::state::core::Core;

/// Lanes of a wave.
const WAVE: usize = 32;
/// Registers that a lane loads.
const WORDS: usize = 2;

/// Bits of a number.
fn bits_of(opcode: Opcode) -> Option<usize> {
    match opcode {
        Opcode::DS_LOAD_TR8_B64 | Opcode::GLOBAL_LOAD_TR8_B64 => Some(8),
        Opcode::DS_LOAD_TR4_B64 | Opcode::GLOBAL_LOAD_TR4_B64 => Some(4),
        _ => None,
    }
}

/// The lane that has loaded a number of another, and which of its own that is.
fn source(bits: usize, lane: usize, n: usize) -> (usize, usize) {
    match bits {
        8 => (lane & 16 | n >> 2 << 3 | lane >> 1 & 4 | n & 3, lane & 7),
        _ => (n >> 3 << 4 | lane >> 1 & 8 | n & 7, lane & 15),
    }
}

/// What the lanes have after the exchange.
fn exchange(bits: usize, loaded: &[[u32; LANES]; WORDS]) -> [[u32; LANES]; WORDS] {
    let mut result = [[0; LANES]; WORDS];
    let each = 32 / bits;
    for (lane, n) in (0..WAVE).flat_map(|lane| (0..WORDS * each).map(move |n| (lane, n))) {
        let (from, which) = source(bits, lane, n);
        let number = loaded[which / each][from] >> (which % each * bits) & ((1 << bits) - 1);
        result[n / each][lane] |= number << (n % each * bits);
    }
    result
}

fn from_lds(core: &mut Core, op: &Op) -> Step {
    if core.wave.exec() == 0 {
        return undefined(format!("{} with all lanes off", op.inst.name()));
    }
    load(core, op, |core, op| lds::read_elements(core, op, &[lds::single_offset(op)], 4 * WORDS))
}

fn from_memory(core: &mut Core, op: &Op) -> Step {
    load(core, op, vmem::load)
}

fn load(core: &mut Core, op: &Op, each: impl Fn(&mut Core, &Op) -> Step) -> Step {
    let (Some(bits), Some(dst)) = (bits_of(op.inst.opcode()), op.dst) else { return undefined("meaning") };
    let exec = core.wave.exec();
    if exec != 0 && exec != u64::MAX >> (LANES - WAVE) {
        return undefined(format!("{} with lanes that are off", op.inst.name()));
    }
    each(core, op)?;
    if exec == 0 {
        return Ok(());
    }
    let Some(registers) =
        core.file(dst.file).get_mut(usize::from(dst.first)..).and_then(|rest| rest.first_chunk_mut::<WORDS>())
    else {
        return undefined("a load without destination");
    };
    let result = exchange(bits, &registers.each_ref().map(|register| register.0));
    for (register, row) in registers.iter_mut().zip(result) {
        register.0 = row;
    }
    Ok(())
}

/// Undefined bits go with the numbers that they are of, once each lane has those that it loaded.
pub(crate) fn exchange_undefined(known: &mut Known, inst: &Inst, dst: Option<Reg>) {
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

/// The meaning of such a load.
pub(crate) fn meaning(opcode: Opcode) -> Option<Meaning> {
    bits_of(opcode)?;
    let semantics = Semantics::Load { bytes: 8, signed: false, d16: None };
    Some((
        if matches!(opcode, Opcode::DS_LOAD_TR8_B64 | Opcode::DS_LOAD_TR4_B64) { from_lds } else { from_memory },
        semantics,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_goes_to_one_place() {
        for (bits, each) in [(8, 8), (4, 16)] {
            let places: std::collections::BTreeSet<_> =
                (0..WAVE).flat_map(|lane| (0..each).map(move |n| source(bits, lane, n))).collect();
            assert_eq!(places.len(), WAVE * each);
            assert!(places.iter().all(|(lane, n)| *lane < WAVE && *n < each));
        }
    }
}
