//! The fast path of scratch accesses: whole dwords at the same offset in all lanes, which lie side by side.

use wavetap_amdgpu::{Reg, RegFile};

use crate::address::place::LanePlace;
use crate::lanes::{LANES, active};
use crate::op::registers::slot;
use crate::state::core::Core;
use crate::state::op::Op;

/// The offset, if it is the same in all lanes of a mask, and in order.
fn common(core: &Core, places: &[LanePlace; LANES], mask: u64, size: usize) -> Option<u64> {
    let mut lanes = active(mask);
    let first = places[lanes.next()?];
    let LanePlace::Scratch(offset) = first else { return None };
    let offset = u64::try_from(offset).ok()?;
    let simple = offset.is_multiple_of(4) && size.is_multiple_of(4);
    let inside = offset.checked_add(size as u64)? <= u64::from(core.launch.private_size);
    (simple && inside && lanes.all(|lane| places[lane] == first)).then_some(offset)
}

/// The device address of a dword of the first lane.
fn address(core: &Core, offset: u64) -> u64 {
    core.wave.scratch + offset * core.launch.lanes as u64
}

/// Loads `size` bytes of each lane into registers; none if the slow path must be taken, with nothing changed. The
/// strict mode has no more to do for it than to note the operation.
pub(crate) fn load(
    core: &mut Core,
    op: &Op,
    places: &[LanePlace; LANES],
    mask: u64,
    size: usize,
    dst: Reg,
) -> Option<()> {
    let offset = common(core, places, mask, size)?;
    let start = address(core, offset);
    let (span, words) = (core.memory.span(start)?, size / 4);
    let (lanes, all) = (core.launch.lanes, core.wave.lanes);
    let row = 4 * lanes;
    let at = (start - span.start) as usize;
    if at + words * row > span.len() {
        return None;
    }
    let registers = if dst.file == RegFile::Accum { &mut core.wave.agpr } else { &mut core.wave.vgpr };
    for (n, register) in registers.get_mut(usize::from(dst.first)..)?.get_mut(..words)?.iter_mut().enumerate() {
        if mask == all {
            span.load_rows(at + n * row, std::slice::from_mut(register), lanes)?;
        } else {
            for lane in active(mask) {
                register[lane] = span.load32(at + n * row + 4 * lane)?;
            }
        }
    }
    if core.launch.strict {
        core.wave.checks.note_scratch(op, (mask, offset as u32, words), slot(dst.file, dst.first), false);
    }
    core.stats.global_bytes += size as u64 * u64::from(mask.count_ones());
    Some(())
}

/// Stores `size` bytes of each lane from registers; see [`load`].
pub(crate) fn store(
    core: &mut Core,
    op: &Op,
    places: &[LanePlace; LANES],
    mask: u64,
    size: usize,
    data: Reg,
) -> Option<()> {
    let offset = common(core, places, mask, size)?;
    let start = address(core, offset);
    let (span, words) = (core.memory.span_to_write(start)?, size / 4);
    let (lanes, all) = (core.launch.lanes, core.wave.lanes);
    let row = 4 * lanes;
    let at = (start - span.start) as usize;
    if at + words * row > span.len() {
        return None;
    }
    let registers = if data.file == RegFile::Accum { &core.wave.agpr } else { &core.wave.vgpr };
    for (n, register) in registers.get(usize::from(data.first)..)?.get(..words)?.iter().enumerate() {
        if mask == all {
            span.store_rows(at + n * row, std::slice::from_ref(register), lanes)?;
        } else {
            for lane in active(mask) {
                span.store32(at + n * row + 4 * lane, register[lane])?;
            }
        }
    }
    if core.launch.strict {
        core.wave.checks.note_scratch(op, (mask, offset as u32, words), slot(data.file, data.first), true);
    }
    core.stats.global_bytes += size as u64 * u64::from(mask.count_ones());
    Some(())
}
