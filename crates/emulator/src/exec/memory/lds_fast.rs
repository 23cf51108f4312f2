//! The fast path of LDS reads and writes: whole dwords at addresses in a vector register.
//!
//! Other accesses, and those that fault, take the slow path of [`super::lds`]; nothing is changed before that is known.

use wavetap_amdgpu::{Operand, Reg, RegFile, Role};

use super::lds::{issue, order};
use crate::fault::stop::ExecResult;
use crate::lanes::elements;
use crate::lanes::places::{PlaceSums, places32};
use crate::lanes::runs::{Run, RunKind, Runs};
use crate::lanes::{LANES, Register, Row, active};
use crate::op::semantics::{Source, Ty};
use crate::shadow::in_flight::Space;
use crate::shadow::races::lds_row::LdsRow;
use crate::state::core::Core;
use crate::state::fp_mode::FpMode;
use crate::state::op::Op;
use crate::state::wave::Wave;
use crate::state::work::put;

/// The places in LDS of the lanes in a mask, at an offset from their addresses, and what they have in common; none if
/// one of them is out of what the dispatch requests.
fn places(core: &Core, register: u16, offset: u64, size: usize, (mask, into): (u64, &mut Row)) -> Option<PlaceSums> {
    let row = core.wave.vgpr.get(usize::from(register))?;
    let last = (core.launch.lds_size as usize).checked_sub(size)?;
    let sums = places32(row, offset as u32, (last as u32, size as u32), (core.launch.lanes, mask), into);
    (sums.outside == 0).then_some(sums)
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
    let (mut found, mut sums) = ([[0; LANES]; 2], [PlaceSums::default(); 2]);
    for ((found, sums), offset) in found.iter_mut().zip(&mut sums).zip(offsets) {
        let Some(of_all) = places(core, address, *offset, size, (mask, found)) else { return Ok(false) };
        *sums = of_all;
    }
    let found = &found[..offsets.len()];
    if core.launch.strict {
        order(core, true)?;
    }
    let total = (words * offsets.len()) as u16;
    core.writing(op, file, first, total)?;
    core.stats.lds_bytes += (size * offsets.len()) as u64 * u64::from(mask.count_ones());
    let Core { lds, wave, work, .. } = core;
    let registers = if file == RegFile::Accum { &mut wave.agpr } else { &mut wave.vgpr };
    for (n, (places, sums)) in found.iter().zip(sums).enumerate() {
        let loaded = &mut work.loaded[..words];
        let runs = match sums {
            PlaceSums { scattered: 0, .. } if mask == wave.lanes => Runs::following(mask),
            PlaceSums { different: 0, .. } if mask != 0 => Runs::same(mask),
            _ => Runs::of(places, size as u32, mask),
        };
        load_runs(lds, loaded, places, runs);
        put(&mut registers[usize::from(first) + n * words..][..words], loaded, mask, wave.lanes);
    }
    if core.launch.strict {
        let lanes = core.launch.lanes;
        let in_a_row = |places: &Row| LdsRow::is_contiguous(places, (mask, lanes), size);
        core.note_row((mask, size), found.iter().map(|places| (places, in_a_row(places))), None);
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
        let mut at = [0; LANES];
        if places(core, address, *offset, size, (mask, &mut at)).is_none() {
            return Ok(false);
        }
        core.reading(op, file, first, words as u16)?;
        *found = (at, file, usize::from(first));
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
    let elements = &elements[..offsets.len()];
    match elements {
        [(places, registers)] => {
            Runs::of(places, size as u32, mask).for_each(|run| store_run(lds, registers, places, run));
        }
        // Where both elements of an instruction go to one place, all of a lane are written before those of the next.
        _ => active(mask).for_each(|lane| {
            let run = Run { first: lane, count: 1, kind: RunKind::Scattered };
            elements.iter().for_each(|(places, registers)| store_run(lds, registers, places, run));
        }),
    }
    Ok(true)
}

/// Loads the lanes of runs, which are in bounds: a row for each dword.
fn load_runs(lds: &[u8], rows: &mut [Box<Register>], places: &Row, runs: Runs) {
    let count = rows.len();
    for run in runs {
        if run.kind == RunKind::Scattered {
            for lane in run.lanes() {
                let Some(bytes) = lds.get(places[lane] as usize..).and_then(|rest| rest.get(..4 * count)) else {
                    return;
                };
                rows.iter_mut()
                    .zip(bytes.as_chunks().0)
                    .for_each(|(row, dword)| row[lane] = u32::from_le_bytes(*dword));
            }
            continue;
        }
        let same = run.kind == RunKind::Same;
        let length = 4 * count * if same { 1 } else { run.count };
        let place = places[run.first] as usize;
        let Some(bytes) = lds.get(place..).and_then(|rest| rest.get(..length)) else { return };
        if same {
            for (row, dword) in rows.iter_mut().zip(bytes.as_chunks().0) {
                row[run.lanes()].fill(u32::from_le_bytes(*dword));
            }
        } else {
            elements::scatter(bytes, rows, run.lanes());
        }
    }
}

/// Stores the lanes of a run, which are in bounds, the lowest first.
fn store_run(lds: &mut [u8], registers: &[Box<Register>], places: &Row, run: Run) {
    let size = 4 * registers.len();
    if run.kind == RunKind::Following {
        let place = places[run.first] as usize;
        let Some(bytes) = lds.get_mut(place..).and_then(|rest| rest.get_mut(..size * run.count)) else { return };
        elements::gather(registers, run.lanes(), bytes);
        return;
    }
    // Of lanes at one place the last one's value stays.
    let lanes = if run.kind == RunKind::Same { run.lanes().end - 1..run.lanes().end } else { run.lanes() };
    for lane in lanes {
        let Some(bytes) = lds.get_mut(places[lane] as usize..).and_then(|rest| rest.get_mut(..size)) else { return };
        let dwords = bytes.as_chunks_mut().0;
        dwords.iter_mut().zip(registers).for_each(|(dword, register)| *dword = register[lane].to_le_bytes());
    }
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
