//! The short way of LDS reads and writes, outside the strict mode: whole dwords at addresses in a vector register.
//!
//! What is not so, faults included, goes the general way of [`super::lds`]; nothing is changed before that is known.

use crate::isa::{Operand, Reg, RegFile, Role};

use super::core::{Core, LANES, Step, active};
use super::op::{Op, Source, Ty};

/// The places in LDS of the lanes in a mask, an offset behind their addresses; none if one of them is out of bounds.
fn places(core: &Core, op: &Op, offset: u64, size: usize, mask: u64) -> Option<[u32; LANES]> {
    let Source::Vector(register) = op.source(Role::Addr, Ty::B32) else { return None };
    let row = core.wave.vgpr.get(usize::from(register))?;
    let last = core.lds.len().checked_sub(size)?;
    let places: [u32; LANES] = std::array::from_fn(|lane| row[lane].wrapping_add(offset as u32));
    let outside = |lane: usize| usize::from(places[lane] > last as u32);
    let all = if mask == u64::MAX { (0..LANES).map(outside).sum() } else { active(mask).map(outside).sum::<usize>() };
    (all == 0).then_some(places)
}

/// Does something for each lane of a mask.
#[inline(always)]
fn each(mask: u64, mut f: impl FnMut(usize)) {
    if mask == u64::MAX { (0..LANES).for_each(f) } else { active(mask).for_each(&mut f) }
}

fn is_open(core: &Core) -> bool {
    core.wave.quick && !core.launch.strict
}

/// Reads elements of `size` bytes, a multiple of 4, into consecutive registers; false if the general way must be gone.
pub(super) fn read(core: &mut Core, op: &Op, offsets: &[u64], size: usize) -> Step<bool> {
    let (Some(Reg { file, first, .. }), true) = (op.dst, is_open(core)) else { return Ok(false) };
    let (words, mask) = (size / 4, core.wave.exec());
    let mut found = [[0; LANES]; 2];
    for (found, offset) in found.iter_mut().zip(offsets) {
        let Some(places) = places(core, op, *offset, size, mask) else { return Ok(false) };
        *found = places;
    }
    core.writing(op, file, first, (words * offsets.len()) as u16)?;
    core.stats.lds_bytes += (size * offsets.len()) as u64 * u64::from(mask.count_ones());
    let Core { lds, wave, .. } = core;
    let registers = if file == RegFile::Accum { &mut wave.agpr } else { &mut wave.vgpr };
    for (n, places) in found.iter().take(offsets.len()).enumerate() {
        for (word, register) in registers[usize::from(first) + n * words..][..words].iter_mut().enumerate() {
            each(mask, |lane| {
                let at = places[lane] as usize + 4 * word;
                if let Some(bytes) = lds.get(at..).and_then(|rest| rest.first_chunk()) {
                    register[lane] = u32::from_le_bytes(*bytes);
                }
            });
        }
    }
    Ok(true)
}

/// Writes elements of `size` bytes, a multiple of 4, from registers; false if the general way must be gone.
pub(super) fn write(core: &mut Core, op: &Op, offsets: &[u64], size: usize) -> Step<bool> {
    if !is_open(core) || !size.is_multiple_of(4) {
        return Ok(false);
    }
    let (words, mask) = (size / 4, core.wave.exec());
    let mut found = [([0; LANES], RegFile::Vector, 0); 2];
    for ((found, offset), role) in found.iter_mut().zip(offsets).zip([Role::Data0, Role::Data1]) {
        let Some(Reg { file, first, .. }) = op.inst.operand(role).and_then(Operand::reg) else { return Ok(false) };
        let Some(places) = places(core, op, *offset, size, mask) else { return Ok(false) };
        core.reading(op, file, first, words as u16)?;
        *found = (places, file, usize::from(first));
    }
    core.stats.lds_bytes += (size * offsets.len()) as u64 * u64::from(mask.count_ones());
    let Core { lds, wave, .. } = core;
    let elements = found.each_ref().map(|(places, file, first)| {
        let registers = if *file == RegFile::Accum { &wave.agpr } else { &wave.vgpr };
        (places, registers.get(*first..).and_then(|rest| rest.get(..words)).unwrap_or(&[]))
    });
    each(mask, |lane| {
        for (places, registers) in &elements[..offsets.len()] {
            for (word, register) in registers.iter().enumerate() {
                let at = places[lane] as usize + 4 * word;
                if let Some(bytes) = lds.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                    *bytes = register[lane].to_le_bytes();
                }
            }
        }
    });
    Ok(true)
}
