//! The fast path of loads and stores of global memory: all lanes in one allocation.
//!
//! Other accesses, and those that fault, take the slow path of [`super::vmem`]; nothing is changed before that is
//! known. So do loads in strict mode while stores of other waves may not have arrived. A flat address of LDS or scratch
//! is in no allocation, whatever offset is added to it.

use wavetap_amdgpu::{Inst, Operand, Reg, RegFile, Role, Target};

use super::vmem::{extend, kind_in_memory, load, store};
use crate::address::range::Range;
use crate::fault::stop::ExecResult;
use crate::lanes::{LANES, Row, active, blend};
use crate::memory::Span;
use crate::memory::lanes::store_lanes;
use crate::op::global_address::GlobalAddress;
use crate::op::semantics::Semantics;
use crate::shadow::in_flight::Space;
use crate::state::core::Core;
use crate::state::op::{Handler, Op};
use crate::state::wave::Wave;
use crate::strict::store_order::{self, order};

impl GlobalAddress {
    fn lanes(self, core: &mut Core, op: &Op) -> ExecResult<[u64; LANES]> {
        let wide = self.base.is_none();
        core.reading(op, RegFile::Vector, self.vector, if wide { 2 } else { 1 })?;
        let base = match self.base {
            Some(code) => core.scalar64(op, code)?,
            None => 0,
        };
        let fixed = base.wrapping_add(self.offset);
        let at = usize::from(self.vector);
        let low = &core.wave.vgpr[at];
        let mut addresses = [0; LANES];
        if wide {
            let high = &core.wave.vgpr[at + 1];
            for lane in 0..LANES {
                addresses[lane] = (u64::from(low[lane]) | u64::from(high[lane]) << 32).wrapping_add(fixed);
            }
        } else if let Some(size) = self.signed {
            for lane in 0..LANES {
                addresses[lane] = (i64::from(low[lane] as i32) * i64::from(size)).wrapping_add(fixed as i64) as u64;
            }
        } else {
            for lane in 0..LANES {
                addresses[lane] = u64::from(low[lane]).wrapping_add(fixed);
            }
        }
        Ok(addresses)
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

/// How many lanes there are, if all of them are active, have whole dwords, and their addresses follow each other.
fn in_a_row(core: &Core, addresses: &[u64; LANES], mask: u64, size: usize) -> Option<usize> {
    let (first, lanes) = (addresses[0], core.launch.lanes);
    let follow = || {
        addresses[..lanes]
            .iter()
            .zip(0..)
            .fold(true, |all, (&at, lane)| all & (at == first.wrapping_add(size as u64 * lane)))
    };
    (mask == core.wave.lanes && size.is_multiple_of(4) && follow()).then_some(lanes)
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
    let addresses = address.lanes(core, op)?;
    let Some(memory) = core.memory.span(addresses[mask.trailing_zeros() as usize]) else { return load(core, op) };
    let size = usize::from(bytes);
    let dwords = size.div_ceil(4);
    if strict {
        order(core, op, true, range(&addresses, (mask, size)))?;
    }
    core.writing(op, dst.file, dst.first, dwords as u16)?;
    let mut rows: [Row; 4] = [[0; LANES]; 4];
    let at = |lane: usize| addresses[lane].wrapping_sub(memory.start) as usize;
    let found = match in_a_row(core, &addresses, mask, size) {
        Some(lanes) => memory.load_rows(at(0), &mut rows[..dwords], lanes),
        None => load_lanes(&memory, &mut rows, (mask, size, signed), at),
    };
    if found.is_none() {
        return load(core, op);
    }
    core.stats.global_bytes += size as u64 * u64::from(mask.count_ones());
    let registers = core.file(dst.file);
    for (row, register) in rows.iter().zip(&mut registers[usize::from(dst.first)..][..dwords]) {
        blend(register, row, mask);
    }
    if strict {
        let kind = kind_in_memory(core, op);
        core.wave.in_flight.issue(op, kind, &[(dst.file, dst.first, dwords as u16)]);
    }
    Ok(())
}

/// The elements of the lanes in a mask, each from its place; none if one is out of bounds.
#[inline]
fn load_lanes(
    memory: &Span,
    rows: &mut [Row; 4],
    (mask, size, signed): (u64, usize, bool),
    at: impl Fn(usize) -> usize,
) -> Option<()> {
    if size == 4 {
        for lane in active(mask) {
            rows[0][lane] = memory.load32(at(lane))?;
        }
        return Some(());
    }
    for lane in active(mask) {
        if size < 4 {
            let mut bytes = [0; 2];
            memory.read(at(lane), &mut bytes[..size])?;
            rows[0][lane] = extend(&bytes[..size], signed);
            continue;
        }
        for n in (0..size / 4).step_by(2) {
            let place = at(lane).checked_add(4 * n)?;
            if 4 * n + 4 < size {
                let value = memory.load64(place)?;
                (rows[n][lane], rows[n + 1][lane]) = (value as u32, (value >> 32) as u32);
            } else {
                rows[n][lane] = memory.load32(place)?;
            }
        }
    }
    Some(())
}

fn store_global(core: &mut Core, op: &Op) -> ExecResult {
    let (Semantics::Store { bytes, .. }, Some(address)) = (op.semantics, op.global_address) else {
        return store(core, op);
    };
    let mask = core.wave.exec();
    let data = op.inst.operand(Role::Vdata).and_then(Operand::reg);
    let strict = core.launch.strict;
    let (Some(Reg { file, first, .. }), false) = (data, mask == 0) else { return store(core, op) };
    let addresses = address.lanes(core, op)?;
    let size = usize::from(bytes);
    let dwords = size.div_ceil(4);
    core.reading_data(op, file, first, dwords as u16)?;
    let in_a_row = in_a_row(core, &addresses, mask, size);
    let Core { memory, wave, .. } = core;
    let registers = &(if file == RegFile::Accum { &wave.agpr } else { &wave.vgpr })[usize::from(first)..][..dwords];
    let Some(memory) = memory.span_to_write(addresses[mask.trailing_zeros() as usize]) else { return store(core, op) };
    let at = |lane: usize| addresses[lane].wrapping_sub(memory.start) as usize;
    if !active(mask).all(|lane| at(lane).checked_add(size).is_some_and(|end| end <= memory.len())) {
        return store(core, op);
    }
    // All of it lies within the allocation: nothing below gives none.
    if strict {
        return buffer_lanes(core, op, (file, first), (mask, size, in_a_row), &addresses);
    }
    let stored = match in_a_row {
        Some(lanes) => memory.store_rows(at(0), registers, lanes),
        None => store_lanes(&memory, registers, mask, size, at),
    };
    if stored.is_none() {
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
    (mask, size, in_a_row): (u64, usize, Option<usize>),
    addresses: &[u64; LANES],
) -> ExecResult {
    order(core, op, false, range(addresses, (mask, size)))?;
    let dwords = size.div_ceil(4);
    if size > 8 {
        core.wave.hazards.note_wide_store(file, first, dwords as u16);
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
