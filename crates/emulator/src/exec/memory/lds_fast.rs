//! The fast path of LDS reads and writes: whole dwords at addresses in a vector register.
//!
//! Other accesses, and those that fault, take the slow path of [`super::lds`]; nothing is changed before that is known.

use wavetap_amdgpu::{Operand, Reg, RegFile, Role};

use super::lds::{issue, order};
use crate::fault::stop::ExecResult;
use crate::lanes::{LANES, active};
use crate::op::semantics::{Source, Ty};
use crate::shadow::in_flight::Space;
use crate::shadow::races::lds_row::LdsRow;
use crate::state::core::Core;
use crate::state::fp_mode::FpMode;
use crate::state::op::Op;
use crate::state::wave::Wave;

/// The places in LDS of the lanes in a mask, at an offset from their addresses; none if one of them is out of bounds.
fn places(core: &Core, register: u16, offset: u64, size: usize, mask: u64) -> Option<[u32; LANES]> {
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

/// The register with the addresses, where the fast path applies.
fn address(core: &mut Core, op: &Op) -> ExecResult<Option<u16>> {
    let Source::Vector(register) = op.source(Role::Addr, Ty::B32) else { return Ok(None) };
    if core.wave.fp_mode == FpMode::Closed {
        return Ok(None);
    }
    core.reading(op, RegFile::Vector, register, 1)?;
    Ok(Some(register))
}

/// Reads elements of `size` bytes, a multiple of 4, into consecutive registers; false if the slow path must be taken.
pub(crate) fn read(core: &mut Core, op: &Op, offsets: &[u64], size: usize) -> ExecResult<bool> {
    let (Some(Reg { file, first, .. }), Some(address)) = (op.dst, address(core, op)?) else { return Ok(false) };
    let (words, mask) = (size / 4, core.wave.exec());
    let mut found = [([0; LANES], false); 2];
    for (found, offset) in found.iter_mut().zip(offsets) {
        let Some(places) = places(core, address, *offset, size, mask) else { return Ok(false) };
        *found = (places, LdsRow::is_contiguous(&places, (mask, core.launch.lanes), size));
    }
    if core.launch.strict {
        order(core, true)?;
    }
    let total = (words * offsets.len()) as u16;
    core.writing(op, file, first, total)?;
    core.stats.lds_bytes += (size * offsets.len()) as u64 * u64::from(mask.count_ones());
    let Core { lds, wave, .. } = core;
    let registers = if file == RegFile::Accum { &mut wave.agpr } else { &mut wave.vgpr };
    for (n, (places, in_a_row)) in found.iter().take(offsets.len()).enumerate() {
        let registers = &mut registers[usize::from(first) + n * words..][..words];
        if *in_a_row
            && let Some(bytes) = lds.get(places[0] as usize..).and_then(|rest| rest.get(..core.launch.lanes * size))
        {
            for (word, register) in registers.iter_mut().enumerate() {
                let dwords = bytes.as_chunks().0.iter().skip(word).step_by(words);
                register.iter_mut().zip(dwords).for_each(|(cell, bytes)| *cell = u32::from_le_bytes(*bytes));
            }
            continue;
        }
        for (word, register) in registers.iter_mut().enumerate() {
            each(mask, |lane| {
                let at = places[lane] as usize + 4 * word;
                if let Some(bytes) = lds.get(at..).and_then(|rest| rest.first_chunk()) {
                    register[lane] = u32::from_le_bytes(*bytes);
                }
            });
        }
    }
    if core.launch.strict {
        core.note_row((mask, size), found[..offsets.len()].iter().map(|(places, in_a_row)| (places, *in_a_row)), None);
        issue(core, op, Some((file, first, total)));
    }
    Ok(true)
}

/// Writes elements of `size` bytes, a multiple of 4, from registers; false if the slow path must be taken.
pub(crate) fn write(core: &mut Core, op: &Op, offsets: &[u64], size: usize) -> ExecResult<bool> {
    if !size.is_multiple_of(4) {
        return Ok(false);
    }
    let Some(address) = address(core, op)? else { return Ok(false) };
    let (words, mask) = (size / 4, core.wave.exec());
    let mut found = [([0; LANES], RegFile::Vector, 0); 2];
    for ((found, offset), role) in found.iter_mut().zip(offsets).zip([Role::Data0, Role::Data1]) {
        let Some(Reg { file, first, .. }) = op.inst.operand(role).and_then(Operand::reg) else { return Ok(false) };
        let Some(places) = places(core, address, *offset, size, mask) else { return Ok(false) };
        core.reading(op, file, first, words as u16)?;
        *found = (places, file, usize::from(first));
    }
    core.stats.lds_bytes += (size * offsets.len()) as u64 * u64::from(mask.count_ones());
    if core.launch.strict {
        return write_late(core, op, &found[..offsets.len()], (mask, size)).map(|()| true);
    }
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

/// Notes a write that other waves see when it has been waited for: the places, the file and the first register of each
/// element.
fn write_late(
    core: &mut Core,
    op: &Op,
    elements: &[([u32; LANES], RegFile, usize)],
    (mask, size): (u64, usize),
) -> ExecResult {
    order(core, false)?;
    let id = issue(core, op, None);
    if mask == 0 {
        return Ok(());
    }
    // Of one element both are the same.
    let [first, second] = [&elements[0], elements.last().unwrap_or(&elements[0])];
    let from = [first, second].map(|&(_, file, first)| (file, first as u16));
    let lanes = core.launch.lanes;
    let in_a_row = |places: &[u32; LANES]| LdsRow::is_contiguous(places, (mask, lanes), size);
    core.note_row((mask, size), elements.iter().map(|(places, ..)| (places, in_a_row(places))), Some(from));
    let Wave { vgpr, agpr, in_flight, .. } = &mut *core.wave;
    let stores = in_flight.buffer_lanes(id, Space::Lds, (mask, size));
    for (n, (places, file, first)) in elements.iter().enumerate() {
        stores.places[n] = places.map(u64::from);
        let registers = if *file == RegFile::Accum { &*agpr } else { &*vgpr };
        stores.put(&registers[*first..]);
    }
    stores.in_a_row = in_a_row(&first.0).then_some(lanes);
    Ok(())
}
