//! Undefined bytes of global memory.
//!
//! Memory that the program has marked ([`Device::mark_undefined`](crate::Device::mark_undefined)) has a shadow bit for
//! each byte, where LDS and scratch have one for each bit: a byte is defined as soon as one of its bits is. A load
//! makes the bits of undefined bytes undefined in its registers, a store makes bytes what its data are. Data that were
//! only moved, from memory to registers and on, are stored without a report: structures are copied with their padding.
//! Data that were computed from undefined bits are reported when they are stored, as everywhere. An atomic computes
//! with what is in memory, so that undefined bytes there are reported at once.

use wavetap_amdgpu::{AtomicOp, OpcodeFlags, Operand, RegFile, Role};

use super::undefined::uninitialised;
use crate::fault::stop::ExecResult;
use crate::lanes::active;
use crate::op::Class;
use crate::op::registers::slot;
use crate::op::semantics::Semantics;
use crate::shadow::global::note::{GlobalNote, GlobalRow};
use crate::shadow::init_shadow::{Since, UndefinedOrigin, scalar_slot};
use crate::shadow::races::How;
use crate::state::core::Core;
use crate::state::op::Op;

/// An instruction has accessed global memory.
pub(crate) fn after(core: &mut Core, op: &Op, row: Option<&GlobalRow>, lanes: &[GlobalNote]) -> ExecResult {
    if !core.memory.follows_undefined() {
        return Ok(());
    }
    if op.inst.variant.image.is_some() || op.inst.is_any(OpcodeFlags::BLOCK) {
        return define(core, lanes);
    }
    match (op.class, op.semantics) {
        (Class::Smem, Semantics::Load { .. }) => scalar_load(core, op, lanes),
        (Class::Vmem, Semantics::Load { .. }) => match row {
            Some(row) if row.follows && core.memory.is_defined(row.addresses[0], row.bytes()) => {}
            Some(row) => active(row.mask).for_each(|lane| load(core, op, lane, row.address(lane), row.size)),
            None => lanes.iter().for_each(|note| load(core, op, note.lane.into(), note.address, note.size.into())),
        },
        (Class::Vmem, Semantics::Store { high, .. }) => match row {
            Some(row) if row.follows && has_defined_data(core, row) => {
                core.memory.define(row.addresses[0], row.bytes());
            }
            Some(row) => active(row.mask).for_each(|lane| store(core, op, lane, row.address(lane), (row.size, high))),
            None => lanes.iter().for_each(|note| {
                store(core, op, note.lane.into(), note.address, (note.size.into(), high));
            }),
        },
        (_, Semantics::Atomic { .. }) => return lanes.iter().try_for_each(|note| atomic(core, op, note)),
        _ => return define(core, lanes),
    }
    Ok(())
}

/// Whether nothing of what a row stores is undefined.
fn has_defined_data(core: &Core, row: &GlobalRow) -> bool {
    let Some((file, first)) = row.from else { return false };
    let first = slot(file, first);
    let shadow = &core.wave.checks.init_shadow;
    (first..first + row.size.div_ceil(4)).all(|at| shadow.lanes(at) & row.mask == 0)
}

/// What other instructions write is defined, and what they read is taken to be.
fn define(core: &mut Core, lanes: &[GlobalNote]) -> ExecResult {
    for note in lanes.iter().filter(|note| !matches!(note.how, How::Read)) {
        core.memory.set_undefined(note.address, note.size.into(), 0);
    }
    Ok(())
}

/// The undefined bits of a dword, of four bytes of a mask.
fn bits_of(bytes: u64, word: usize) -> u32 {
    (0..4).filter(|n| bytes >> (4 * word + n) & 1 != 0).fold(0, |bits, n| bits | 0xff << (8 * n))
}

fn load(core: &mut Core, op: &Op, lane: usize, address: u64, size: usize) {
    let bytes = core.memory.undefined(address, size);
    let Some(dst) = op.dst.filter(|_| bytes != 0) else { return };
    let Semantics::Load { signed, d16, .. } = op.semantics else { return };
    let first = slot(dst.file, dst.first);
    for word in 0..size.div_ceil(4) {
        let mut bits = bits_of(bytes, word);
        if bits == 0 {
            continue;
        }
        if signed && size < 4 && bits >> (8 * size - 1) & 1 != 0 {
            bits |= u32::MAX << (8 * size);
        }
        let shadow = &mut core.wave.checks.init_shadow;
        let old = shadow.vector(first + word).get(lane);
        let new = match d16 {
            None => bits,
            Some(false) => old & 0xffff_0000 | bits & 0xffff,
            Some(true) => old & 0xffff | bits << 16,
        };
        shadow.vector_mut(first + word).set(lane, new);
        shadow.set_origin(first + word, UndefinedOrigin::Global { at: address, by: op.address, since: Since::Moved });
    }
}

fn scalar_load(core: &mut Core, op: &Op, lanes: &[GlobalNote]) {
    let (Some(note), Some(dst)) = (lanes.first(), op.dst) else { return };
    let bytes = core.memory.undefined(note.address, note.size.into());
    for word in 0..usize::from(note.size).div_ceil(4) {
        let bits = bits_of(bytes, word);
        if bits != 0 {
            let code = dst.first + word as u16;
            let shadow = &mut core.wave.checks.init_shadow;
            shadow.set_scalar(code, bits);
            let origin = UndefinedOrigin::Global { at: note.address, by: op.address, since: Since::Moved };
            shadow.set_origin(scalar_slot(code), origin);
        }
    }
}

fn store(core: &mut Core, op: &Op, lane: usize, address: u64, (size, high): (usize, bool)) {
    let reg = op.inst.operand(Role::Vdata).and_then(Operand::reg).filter(|reg| reg.file != RegFile::Scalar);
    let shadow = &core.wave.checks.init_shadow;
    // What is computed is reported when it is stored; once is enough.
    let is_moved = |first: usize| {
        let words = first..first + size.div_ceil(4);
        words.clone().any(|at| shadow.lanes(at) >> lane & 1 != 0)
            && words.clone().all(|at| shadow.lanes(at) >> lane & 1 == 0 || shadow.origin(at).is_moved_from_memory())
    };
    let first = reg.map(|reg| slot(reg.file, reg.first)).filter(|first| is_moved(*first));
    let undefined = first.map_or(0, |first| {
        let byte =
            |n: usize| shadow.vector(first + n / 4).get(lane) >> (8 * (n % 4) + if high { 16 } else { 0 }) & 0xff;
        (0..size).filter(|n| byte(*n) == 0xff).fold(0, |bytes, n| bytes | 1 << n)
    });
    core.memory.set_undefined(address, size, undefined);
}

fn atomic(core: &mut Core, op: &Op, note: &GlobalNote) -> ExecResult {
    let (lane, size) = (usize::from(note.lane), usize::from(note.size));
    let undefined = core.memory.undefined(note.address, size);
    if undefined == 0 {
        return Ok(());
    }
    core.memory.set_undefined(note.address, size, 0);
    if op.inst.opcode().atomic().is_some_and(|info| matches!(info.operation, AtomicOp::Swap)) {
        if matches!(op.semantics, Semantics::Atomic { returns: true, .. })
            && let Some(dst) = op.dst.filter(|dst| dst.file != RegFile::Scalar)
        {
            let first = slot(dst.file, dst.first);
            for word in 0..size / 4 {
                let shadow = &mut core.wave.checks.init_shadow;
                shadow.vector_mut(first + word).set(lane, bits_of(undefined, word));
                let origin = UndefinedOrigin::Global { at: note.address, by: op.address, since: Since::Moved };
                shadow.set_origin(first + word, origin);
            }
        }
        return Ok(());
    }
    let origin = UndefinedOrigin::Global { at: note.address, by: op.address, since: Since::Computed };
    core.passed(uninitialised("memory".into(), origin, "what an atomic computes with", Some(note.lane)))
}
