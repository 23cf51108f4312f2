//! Scalar memory: loads, stores and atomics through SGPR addresses, and the clocks.

use wavetap_amdgpu::{Flags, Inst, Opcode, OpcodeFlags, Operand, Reg, RegFile, Role, StoreInfo};

use super::vmem::{extend, loading};
use super::{atomic, buffer};
use crate::fault::stop::{ExecResult, undefined};
use crate::fault::{FaultKind, MemoryAccess};
use crate::op::semantics::{Semantics, Source, Ty};
use crate::shadow::in_flight::OperationKind;
use crate::shadow::races::How;
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};

/// The address of an access and how many bytes of it are in range (all of them but for buffers).
pub(crate) fn address(core: &mut Core, op: &Op, size: u64) -> ExecResult<(u64, u64)> {
    let Some(base) = op.inst.operand(Role::Sbase).and_then(Operand::reg) else {
        return undefined("scalar memory without base");
    };
    let soffset = match op.source(Role::Soffset, Ty::B32) {
        Source::Scalar(code) => u64::from(core.scalar(op, code)?),
        Source::Const(bits) => bits,
        _ => 0,
    };
    let scratch = op.inst.is_any(OpcodeFlags::SCALAR_SCRATCH);
    // The offset in a register counts dwords of 16 lanes in scratch memory (Vega ISA guide, "Scalar memory
    // addressing").
    let scale = match op.inst.modifiers.scale_offset {
        true => size,
        false if scratch => 64,
        false => 1,
    };
    let offset = (i64::from(op.inst.modifiers.offset) as u64).wrapping_add(soffset.wrapping_mul(scale));
    let start = core.scalar64(op, base.first)?;
    // Loads of less than a dword are the only ones that see the low bits.
    let low = if size < 4 { size - 1 } else { 3 };
    if !op.scalar_buffer {
        return Ok((start.wrapping_add(offset) & !low, size));
    }
    core.reading(op, RegFile::Scalar, base.first, 4)?;
    let words = std::array::from_fn(|n| core.wave.sgpr[usize::from(base.first) + n]);
    let (start, records, stride) = buffer::extent_of(core.launch.target, words);
    let length = records.saturating_mul(stride.max(1));
    let offset = offset & !low;
    if core.launch.target.has_wide_buffers() && stride > 1 && offset < length && offset.saturating_add(size) > records {
        // The CDNA5 ISA guide multiplies by the stride in one place (8.1.2), and not in another (9.4.1.4).
        return undefined("scalar memory beyond the records of a buffer with a stride on gfx125x");
    }
    // The first byte of a dword decides for all of it (ISA guides, scalar memory, "Address range checking").
    let valid = length.saturating_sub(offset).checked_next_multiple_of(low + 1).unwrap_or(u64::MAX).min(size);
    Ok((start.wrapping_add(offset), valid))
}

fn issue(core: &mut Core, op: &Op, written: Option<(u16, u16)>) {
    if core.launch.strict {
        match written {
            Some((first, count)) => {
                core.wave.in_flight.issue(op, OperationKind::Smem, &[(RegFile::Scalar, first, count)])
            }
            None => core.wave.in_flight.issue(op, OperationKind::Smem, &[]),
        };
    }
}

fn destination(op: &Op) -> ExecResult<Reg> {
    match op.dst {
        Some(reg) => Ok(reg),
        None => undefined("a scalar load without destination"),
    }
}

fn load(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Load { bytes, signed, .. } = op.semantics else { return undefined("meaning") };
    let size = usize::from(bytes);
    let (address, valid) = address(core, op, size as u64)?;
    let dst = destination(op)?;
    let words = size.div_ceil(4) as u16;
    core.writing(op, RegFile::Scalar, dst.first, words)?;
    let mut buffer = [0; 64];
    if valid > 0 {
        let read = core.memory.read(address, &mut buffer[..valid as usize], MemoryAccess::Load);
        if core.of_lane(read, 0)?.is_some() {
            core.note_global(0, address, valid as usize, How::Read);
        }
    }
    if size < 4 {
        let value = extend(&buffer[..size], signed);
        buffer[..4].copy_from_slice(&value.to_le_bytes());
    }
    for n in 0..usize::from(words) {
        let word = [buffer[4 * n], buffer[4 * n + 1], buffer[4 * n + 2], buffer[4 * n + 3]];
        core.wave.sgpr[usize::from(dst.first) + n] = u32::from_le_bytes(word);
    }
    core.stats.global_bytes += size as u64;
    issue(core, op, Some((dst.first, words)));
    Ok(())
}

fn data(op: &Op) -> ExecResult<Reg> {
    match op.inst.operand(Role::Sdata).and_then(Operand::reg) {
        Some(reg) => Ok(reg),
        None => undefined("a scalar store without data"),
    }
}

fn store(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Store { bytes, .. } = op.semantics else { return undefined("meaning") };
    let size = usize::from(bytes);
    let (address, valid) = address(core, op, size as u64)?;
    let data = data(op)?;
    core.reading(op, RegFile::Scalar, data.first, (size / 4) as u16)?;
    let mut buffer = [0; 16];
    for n in 0..size / 4 {
        buffer[4 * n..4 * n + 4].copy_from_slice(&core.wave.sgpr[usize::from(data.first) + n].to_le_bytes());
    }
    if valid > 0 {
        let written = core.memory.write(address, &buffer[..valid as usize], MemoryAccess::Store);
        if core.of_lane(written, 0)?.is_some() {
            core.note_global_store(0, address, &buffer[..valid as usize]);
        }
    }
    core.stats.global_bytes += size as u64;
    issue(core, op, None);
    Ok(())
}

fn run_atomic(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Atomic { f, bytes, compare, returns } = op.semantics else { return undefined("meaning") };
    let size = usize::from(bytes);
    let words = u16::from(bytes / 4);
    let (address, valid) = address(core, op, size as u64)?;
    let data = data(op)?;
    core.reading(op, RegFile::Scalar, data.first, if compare { 2 * words } else { words })?;
    let value = |first: u16| {
        let low = u64::from(core.wave.sgpr[usize::from(first)]);
        if words == 2 { low | u64::from(core.wave.sgpr[usize::from(first) + 1]) << 32 } else { low }
    };
    let (new, comparison) = (value(data.first), if compare { value(data.first + words) } else { 0 });
    let aligned = match address.is_multiple_of(size as u64) {
        true => Ok(()),
        false => Err(FaultKind::Misaligned { address, align: size as u32 }),
    };
    let aligned = core.of_lane(aligned, 0)?.is_some();
    let mut old = 0;
    if aligned && valid as usize >= size {
        core.note_global(0, address, size, How::Atomic);
        let updated = core.memory.update(address, size, |old| f(old, new, comparison));
        old = core.of_lane(updated, 0)?.unwrap_or_default();
    }
    core.stats.global_bytes += 2 * size as u64;
    if returns {
        core.writing(op, RegFile::Scalar, data.first, words)?;
        core.wave.sgpr[usize::from(data.first)] = old as u32;
        if words == 2 {
            core.wave.sgpr[usize::from(data.first) + 1] = (old >> 32) as u32;
        }
    }
    issue(core, op, returns.then_some((data.first, words)));
    Ok(())
}

/// `s_memtime` and `s_memrealtime`: what the clock shows.
fn time(core: &mut Core, op: &Op, now: u64) -> ExecResult {
    let dst = destination(op)?;
    core.set_scalar64(op, dst.first, now)?;
    issue(core, op, Some((dst.first, 2)));
    Ok(())
}

/// `s_get_waveid_in_workgroup`.
fn wave_id(core: &mut Core, op: &Op) -> ExecResult {
    let dst = destination(op)?;
    core.set_scalar(op, dst.first, core.wave.index)?;
    issue(core, op, Some((dst.first, 1)));
    Ok(())
}

/// The meaning of a scalar memory instruction.
pub(crate) fn meaning(opcode: Opcode, inst: &Inst) -> Option<Meaning> {
    match opcode {
        Opcode::S_MEMTIME => return Some((|core, op| time(core, op, *core.clock), Semantics::Own)),
        Opcode::S_MEMREALTIME => return Some((|core, op| time(core, op, core.constant_clock()), Semantics::Own)),
        _ => {}
    }
    if opcode == Opcode::S_GET_WAVEID_IN_WORKGROUP {
        return Some((wave_id, Semantics::Own));
    }
    if let Some(info) = opcode.load() {
        return Some((load, loading(info)));
    }
    if let Some(StoreInfo { bytes, .. }) = opcode.store() {
        return Some((store, Semantics::Store { bytes, high: false }));
    }
    let found = atomic::of(opcode)?;
    let returns = inst.variant.flags.contains(Flags::RETURNS);
    Some((run_atomic, Semantics::Atomic { f: found.f, bytes: found.bytes, compare: found.compare, returns }))
}
