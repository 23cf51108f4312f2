//! The fast path of loads and stores of global memory: all lanes in one allocation.
//!
//! Other accesses, and those that fault, take the slow path of [`super::vmem`]; nothing is changed before that is
//! known. So do loads in strict mode while stores of other waves may not have arrived. A flat address of LDS or scratch
//! is in no allocation, whatever offset is added to it.

use wavetap_amdgpu::{Inst, Operand, Reg, RegFile, Role, Target};

use super::vmem::{extend, kind_in_memory, load, store};
use crate::address::range::Range;
use crate::fault::stop::ExecResult;
use crate::lanes::places::{AddressRows, PlaceSums, places64};
use crate::lanes::runs::Runs;
use crate::lanes::{LANES, Row, active};
use crate::memory::Span;
use crate::memory::lanes::{LanePlaces, load_lanes, store_runs};
use crate::op::global_address::GlobalAddress;
use crate::op::semantics::Semantics;
use crate::shadow::in_flight::Space;
use crate::state::core::Core;
use crate::state::op::{Handler, Op};
use crate::state::wave::Wave;
use crate::state::work::put;
use crate::strict::store_order::{self, order};

impl GlobalAddress {
    /// What is the same for all lanes, after the checks of strict mode.
    fn fixed(self, core: &mut Core, op: &Op) -> ExecResult<u64> {
        core.reading(op, RegFile::Vector, self.vector, if self.base.is_none() { 2 } else { 1 })?;
        let base = match self.base {
            Some(code) => core.scalar64(op, code)?,
            None => 0,
        };
        Ok(base.wrapping_add(self.offset))
    }

    /// What each lane has.
    fn rows(self, wave: &Wave) -> AddressRows<'_> {
        let at = usize::from(self.vector);
        let low = &wave.vgpr[at].0;
        match self.signed {
            _ if self.base.is_none() => AddressRows::Wide(low, &wave.vgpr[at + 1].0),
            Some(size) => AddressRows::Signed(low, u32::from(size)),
            None => AddressRows::Unsigned(low),
        }
    }
}

/// The handler of a load or store, and its address: the short one where the instruction is of that kind.
pub(crate) fn faster(
    target: Target,
    run: Handler,
    semantics: &Semantics,
    inst: &Inst,
) -> (Handler, Option<GlobalAddress>) {
    let Some(address) = GlobalAddress::of(target, inst) else { return (run, None) };
    let is = |handler: Handler| std::ptr::fn_addr_eq(run, handler);
    let vdst = inst.operand(Role::Vdst).or_else(|| inst.operand(Role::Vdata)).and_then(Operand::reg);
    match *semantics {
        Semantics::Load { d16: None, .. } if is(load) && vdst.is_some() => (load_global, Some(address)),
        Semantics::Store { high: false, .. } if is(store) && vdst.is_some() => (store_global, Some(address)),
        _ => (run, None),
    }
}

/// Finds the places of the lanes in a mask, what they count from, and what they have in common; none if one is out of
/// bounds.
fn places(
    memory: &Span,
    (rows, fixed): (AddressRows<'_>, u64),
    (lanes, mask): (usize, u64),
    size: usize,
    into: &mut Row,
) -> Option<(usize, PlaceSums)> {
    const HALF: usize = 1 << 31;
    let mut origin = 0;
    if memory.len() > u32::MAX as usize {
        // Lanes that are far from the first one make it the slow path.
        let first = rows.of_lane(fixed, first_lane(mask)).wrapping_sub(memory.start) as usize;
        origin = first.saturating_sub(HALF) & !0xfff;
    }
    let last = memory.len().checked_sub(origin)?.checked_sub(size)?.min(u32::MAX as usize - size);
    let from_start = fixed.wrapping_sub(memory.start.wrapping_add(origin as u64));
    let sums = places64(rows, from_start, (last as u32, size as u32), (lanes, mask), into);
    (sums.outside == 0).then_some((origin, sums))
}

fn first_lane(mask: u64) -> usize {
    mask.trailing_zeros() as usize % LANES
}

/// Where all of what the lanes in a mask access is.
fn range(addresses: &[u64; LANES], (mask, size): (u64, usize)) -> Range {
    active(mask).fold((u64::MAX, 0), |(from, to), lane| {
        (from.min(addresses[lane]), to.max(addresses[lane].saturating_add(size as u64)))
    })
}

fn load_global(core: &mut Core, op: &Op) -> ExecResult {
    let (Semantics::Load { bytes, signed, .. }, Some(address), Some(dst)) = (op.semantics, op.global_address, op.dst)
    else {
        return load(core, op);
    };
    let mask = core.wave.exec();
    let strict = core.launch.strict;
    if mask == 0 || (strict && core.barrier.checks.has_late_stores()) {
        return load(core, op);
    }
    let fixed = address.fixed(core, op)?;
    let rows = address.rows(core.wave);
    let Some(memory) = core.memory.span(rows.of_lane(fixed, first_lane(mask))) else { return load(core, op) };
    let size = usize::from(bytes);
    let dwords = size.div_ceil(4);
    let (width, mut at) = ((core.launch.lanes, mask), [0; LANES]);
    let Some((origin, sums)) = places(&memory, (rows, fixed), width, size, &mut at) else { return load(core, op) };
    let mut addresses = [0; LANES];
    if strict {
        addresses = rows.of_all(fixed);
        order(core, op, true, range(&addresses, (mask, size)))?;
    }
    core.writing(op, dst.file, dst.first, dwords as u16)?;
    let Core { wave, work, stats, .. } = core;
    let follows = matches!(sums, PlaceSums { scattered: 0, .. }) && mask == wave.lanes;
    let runs = match sums {
        _ if follows => Runs::following(mask),
        PlaceSums { different: 0, .. } => Runs::same(mask),
        _ => Runs::of(&at, u32::from(bytes), mask),
    };
    let lanes = LanePlaces { origin, places: &at, runs, size };
    let loaded = &mut work.loaded[..dwords];
    if load_lanes(&memory, loaded, &lanes, |bytes| extend(bytes, signed)).is_none() {
        return load(core, op);
    }
    stats.global_bytes += size as u64 * u64::from(mask.count_ones());
    let registers = if dst.file == RegFile::Accum { &mut wave.agpr } else { &mut wave.vgpr };
    put(&mut registers[usize::from(dst.first)..][..dwords], loaded, mask, wave.lanes);
    if strict {
        let kind = kind_in_memory(core, op);
        if core.races.is_some() {
            core.wave.checks.global.set_row((mask, size, follows), &addresses, None);
        }
        core.wave.in_flight.issue(op, kind, &[(dst.file, dst.first, dwords as u16)]);
    }
    Ok(())
}

fn store_global(core: &mut Core, op: &Op) -> ExecResult {
    let (Semantics::Store { bytes, .. }, Some(address)) = (op.semantics, op.global_address) else {
        return store(core, op);
    };
    let mask = core.wave.exec();
    let data = op.inst.operand(Role::Vdata).and_then(Operand::reg);
    let strict = core.launch.strict;
    let (Some(Reg { file, first, .. }), false) = (data, mask == 0) else { return store(core, op) };
    let fixed = address.fixed(core, op)?;
    let size = usize::from(bytes);
    let dwords = size.div_ceil(4);
    core.reading_data(op, file, first, dwords as u16)?;
    let all = core.wave.lanes;
    let Core { memory, wave, .. } = core;
    let registers = &(if file == RegFile::Accum { &wave.agpr } else { &wave.vgpr })[usize::from(first)..][..dwords];
    let rows = address.rows(wave);
    let Some(memory) = memory.span_to_write(rows.of_lane(fixed, first_lane(mask))) else { return store(core, op) };
    let (width, mut at) = ((core.launch.lanes, mask), [0; LANES]);
    let Some((origin, sums)) = places(&memory, (rows, fixed), width, size, &mut at) else { return store(core, op) };
    // All of it lies within the allocation: nothing below gives none.
    let runs = match sums {
        PlaceSums { scattered: 0, .. } if mask == all => Runs::following(mask),
        _ => Runs::of(&at, u32::from(bytes), mask),
    };
    if strict {
        let in_a_row = (runs.is_one(all) && size.is_multiple_of(4)).then_some(core.launch.lanes);
        let addresses = rows.of_all(fixed);
        let follows = matches!(sums, PlaceSums { scattered: 0, .. }) && mask == all;
        return buffer_lanes(core, op, (file, first), (mask, size, in_a_row, follows), &addresses);
    }
    if store_runs(&memory, registers, &LanePlaces { origin, places: &at, runs, size }).is_none() {
        return store(core, op);
    }
    core.stats.global_bytes += size as u64 * u64::from(mask.count_ones());
    Ok(())
}

/// Notes a store that other waves see when it has been waited for.
fn buffer_lanes(
    core: &mut Core,
    op: &Op,
    (file, first): (RegFile, u16),
    (mask, size, in_a_row, follows): (u64, usize, Option<usize>, bool),
    addresses: &[u64; LANES],
) -> ExecResult {
    order(core, op, false, range(addresses, (mask, size)))?;
    let dwords = size.div_ceil(4);
    if size > 8 {
        core.wave.hazards.note_wide_store(file, first, dwords as u16);
    }
    if core.races.is_some() {
        core.wave.checks.global.set_row((mask, size, follows), addresses, Some((file, first)));
    }
    let id = core.wave.in_flight.issue(op, kind_in_memory(core, op), &[]);
    let Wave { vgpr, agpr, in_flight, .. } = &mut *core.wave;
    let stores = in_flight.buffer_lanes(id, Space::Global, (mask, size));
    stores.in_a_row = in_a_row;
    match in_a_row {
        Some(_) => stores.places[0][0] = addresses[0],
        None => stores.places[0] = *addresses,
    }
    stores.set_range();
    stores.put(&(if file == RegFile::Accum { agpr } else { vgpr })[usize::from(first)..]);
    core.stats.global_bytes += size as u64 * u64::from(mask.count_ones());
    store_order::after_store(core)
}
