//! Vector memory: flat, global, scratch and buffer loads, stores and atomics.

use wavetap_amdgpu::{D16, Encoding, Flags, Inst, LoadInfo, Opcode, Operand, Reg, RegFile, Role, StoreInfo, scalar};

use super::{atomic, buffer, direct_lds, scratch_fast};
use crate::address::aperture::{PRIVATE_APERTURE, SHARED_APERTURE, lane_of};
use crate::address::place::LanePlace;
use crate::address::range::ANYWHERE;
use crate::fault::stop::{ExecResult, at_lane, undefined};
use crate::fault::{FaultKind, MemoryAccess};
use crate::lanes::{LANES, active};
use crate::op::semantics::{Semantics, Source, Ty};
use crate::shadow::in_flight::{EffectParts, OperationKind, Space};
use crate::shadow::races::How;
use crate::shadow::races::access::LaneAccess;
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};
use crate::strict::store_order::{self, order, range};

/// The widest access of a lane in bytes.
pub(crate) const MAX_BYTES: usize = 16;

/// The address of every lane.
pub(crate) fn places(core: &mut Core, op: &Op) -> ExecResult<[LanePlace; LANES]> {
    match op.inst.variant.encoding {
        Encoding::Mubuf | Encoding::Mtbuf => buffer::places(core, op),
        Encoding::Scratch => scratch_places(core, op),
        _ => flat_places(core, op),
    }
}

fn flat_places(core: &mut Core, op: &Op) -> ExecResult<[LanePlace; LANES]> {
    let offset = i64::from(op.inst.modifiers.offset) as u64;
    let base = match op.source(Role::Saddr, Ty::B64) {
        Source::Scalar(code) => Some(core.scalar64(op, code)?),
        _ => None,
    };
    let vaddr = op.source(Role::Vaddr, Ty::B64);
    let mut values = core.lanes(op, vaddr, if base.is_some() { Ty::B32 } else { Ty::B64 }, 0)?;
    let flat = op.inst.variant.encoding == Encoding::Flat;
    if vaddr == Source::None && !flat {
        // The `addtid` forms have no address of their own.
        values = std::array::from_fn(|lane| 4 * lane as u64);
    }
    if base.is_some() {
        if core.launch.target.signed_global_offsets() {
            values = values.map(|value| i64::from(value as i32) as u64);
        }
        scale(op, &mut values);
    }
    // Lanes can name each other's scratch.
    let shared = flat && core.launch.target.has_flat_scratch_base();
    let lane_of = |address: u64| if shared { lane_of(address) } else { None };
    let of = |lane: usize| values[lane].wrapping_add(base.unwrap_or(0));
    if shared && active(core.wave.exec()).any(|lane| lane_of(of(lane)).is_some_and(|owner| owner != lane)) {
        return undefined("a flat address in the scratch of another lane");
    }
    Ok(std::array::from_fn(|lane| {
        let address = of(lane);
        if lane_of(address).is_some() {
            return LanePlace::Scratch((address & 0xffff_ffff) as i64 + offset as i64);
        }
        match (address >> 32) as u32 {
            SHARED_APERTURE if flat => LanePlace::Lds((address & 0xffff_ffff).wrapping_add(offset)),
            PRIVATE_APERTURE if flat && !shared => LanePlace::Scratch((address & 0xffff_ffff) as i64 + offset as i64),
            _ => LanePlace::Global(address.wrapping_add(offset)),
        }
    }))
}

/// `scale_offset`: the register of an address with a base counts what is accessed, not bytes.
fn scale(op: &Op, values: &mut [u64; LANES]) {
    let size = if op.inst.modifiers.scale_offset { u64::from(op.inst.variant.memory_bytes).max(1) } else { return };
    values.iter_mut().for_each(|value| *value = value.wrapping_mul(size));
}

fn scratch_places(core: &mut Core, op: &Op) -> ExecResult<[LanePlace; LANES]> {
    check_flat_scratch(core)?;
    let signed = core.launch.target.signed_scratch_offsets();
    let extended = |value: u32| if signed { i64::from(value as i32) } else { i64::from(value) };
    let scalar = match op.source(Role::Saddr, Ty::B32) {
        Source::Scalar(code) => extended(core.scalar(op, code)?),
        _ => 0,
    };
    let vaddr = op.source(Role::Vaddr, Ty::B32);
    let mut values = core.lanes(op, vaddr, Ty::B32, 0)?;
    scale(op, &mut values);
    let fixed = i64::from(op.inst.modifiers.offset) + scalar;
    Ok(std::array::from_fn(|lane| LanePlace::Scratch(extended(values[lane] as u32) + fixed)))
}

/// Where software sets FLAT_SCRATCH, a wrong value would reach another wave's scratch.
fn check_flat_scratch(core: &Core) -> ExecResult {
    let wave = &core.wave;
    let found = match core.launch {
        launch if launch.architected_scratch => wave.scratch,
        launch if launch.flat_scratch_hidden => wave.flat_scratch,
        // The offset is in the high half, in units of 256 bytes.
        launch if launch.offset_scratch => launch.scratch_arena.0 + (wave.pair(scalar::FLAT_SCRATCH) >> 32 << 8),
        _ => wave.pair(scalar::FLAT_SCRATCH),
    };
    if found == wave.scratch {
        return Ok(());
    }
    undefined(format!("FLAT_SCRATCH is {found:#x}, the wave's scratch is at {:#x}", wave.scratch))
}

/// The device address of a byte of a lane's private segment: dwords of the lanes are interleaved.
pub(crate) fn swizzled(core: &Core, lane: usize, offset: u64) -> u64 {
    core.wave.scratch + (offset / 4) * (4 * core.launch.lanes as u64) + 4 * lane as u64 + offset % 4
}

fn check_scratch(core: &Core, offset: i64, size: usize, access: MemoryAccess) -> Result<u64, FaultKind> {
    let allocated = core.launch.private_size;
    match u64::try_from(offset) {
        Ok(at) if at + size as u64 <= u64::from(allocated) => Ok(at),
        _ => Err(FaultKind::ScratchBounds { offset, size: size as u32, access, allocated }),
    }
}

/// What a check of a lane has found, if it stops the wave.
fn pass(core: &Core, lane: usize, checked: Result<(), FaultKind>) -> Result<(), FaultKind> {
    core.passed(at_lane(checked, lane)).map_err(|stop| stop.kind)
}

/// What an access of a lane gave; none where it is out of bounds and the dispatch goes on without it.
fn inside<T>(core: &Core, lane: usize, result: Result<T, FaultKind>) -> Result<Option<T>, FaultKind> {
    core.of_lane(result, lane).map_err(|stop| stop.kind)
}

pub(crate) fn read_place(
    core: &mut Core,
    lane: usize,
    place: LanePlace,
    into: &mut [u8],
    access: MemoryAccess,
) -> Result<(), FaultKind> {
    match place {
        LanePlace::Global(address) => {
            let arrived = core.barrier.checks.check_load(core.wave.index, address, into.len());
            pass(core, lane, arrived)?;
            if access != MemoryAccess::Atomic {
                core.note_global(lane, address, into.len(), How::Read);
            }
            core.memory.read(address, into, access).or_else(|kind| {
                pass(core, lane, Err(kind))?;
                // What is there, and zeros after it.
                into.fill(0);
                let bytes = into.chunks_mut(1).zip(0..);
                bytes.for_each(|(byte, n)| {
                    core.memory.read(address.wrapping_add(n), byte, access).unwrap_or_default();
                });
                Ok(())
            })
        }
        LanePlace::Head(address, bytes) => {
            let (head, rest) = into.split_at_mut(usize::from(bytes).min(into.len()));
            rest.fill(0);
            read_place(core, lane, LanePlace::Global(address), head, access)
        }
        LanePlace::Lds(offset) => {
            let Some(at) = inside(core, lane, core.lds_place(offset, into.len()))? else {
                into.fill(0);
                return Ok(());
            };
            if access != MemoryAccess::Atomic {
                core.note(LaneAccess::read(lane, at, into.len(), 0));
            }
            into.copy_from_slice(&core.lds[at..at + into.len()]);
            Ok(())
        }
        LanePlace::Scratch(offset) => {
            let Some(offset) = inside(core, lane, check_scratch(core, offset, into.len(), access))? else {
                into.fill(0);
                return Ok(());
            };
            core.note(LaneAccess::read(lane, offset as usize, into.len(), 0).of_scratch());
            for (n, byte) in scratch_pieces(offset, into.len()) {
                let address = swizzled(core, lane, offset + n as u64);
                core.memory.read(address, &mut into[n..n + byte], access)?;
            }
            Ok(())
        }
        LanePlace::Nowhere => {
            into.fill(0);
            Ok(())
        }
    }
}

/// The pieces of a scratch access that lie within one dword each: start and length.
fn scratch_pieces(offset: u64, len: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < len).then(|| {
            let within = ((offset + at as u64) % 4) as usize;
            let piece = (4 - within).min(len - at);
            let start = at;
            at += piece;
            (start, piece)
        })
    })
}

pub(crate) fn write_place(
    core: &mut Core,
    lane: usize,
    place: LanePlace,
    from: &[u8],
    access: MemoryAccess,
) -> Result<(), FaultKind> {
    match place {
        LanePlace::Global(address) => {
            core.note_global_store(lane, address, from);
            inside(core, lane, core.memory.write(address, from, access)).map(Option::unwrap_or_default)
        }
        LanePlace::Head(address, bytes) => {
            let from = &from[..usize::from(bytes).min(from.len())];
            write_place(core, lane, LanePlace::Global(address), from, access)
        }
        LanePlace::Lds(offset) => {
            let Some(at) = inside(core, lane, core.lds_place(offset, from.len()))? else { return Ok(()) };
            let atomic = access == MemoryAccess::Atomic;
            core.note(if atomic {
                LaneAccess::atomic(lane, at, from.len(), 0)
            } else {
                LaneAccess::write(lane, at, from, 0)
            });
            core.lds[at..at + from.len()].copy_from_slice(from);
            Ok(())
        }
        LanePlace::Scratch(offset) => {
            let checked = check_scratch(core, offset, from.len(), access);
            let Some(offset) = inside(core, lane, checked)? else { return Ok(()) };
            core.note(LaneAccess::write(lane, offset as usize, from, 0).of_scratch());
            for (n, piece) in scratch_pieces(offset, from.len()) {
                let address = swizzled(core, lane, offset + n as u64);
                core.memory.write(address, &from[n..n + piece], access)?;
            }
            Ok(())
        }
        LanePlace::Nowhere => Ok(()),
    }
}

fn kind(op: &Op) -> OperationKind {
    if op.inst.variant.encoding == Encoding::Flat { OperationKind::Flat } else { OperationKind::Vmem }
}

/// [`kind`] where it is known where the lanes went.
pub(crate) fn kind_at(core: &Core, op: &Op, places: &[LanePlace; LANES], mask: u64) -> OperationKind {
    if active(mask).any(|lane| matches!(places[lane], LanePlace::Lds(_))) { kind(op) } else { kind_in_memory(core, op) }
}

/// [`kind`] of what no lane went to LDS with.
pub(crate) fn kind_in_memory(core: &Core, op: &Op) -> OperationKind {
    // gfx8 has no other instructions for global memory, and compilers count on the order of these (LLVM's
    // SIInsertWaitcnts).
    let kind = kind(op);
    if kind == OperationKind::Flat && core.launch.target.generation() < 9 { OperationKind::FlatMemory } else { kind }
}

/// The operand that holds data: `vdst` of flat loads, `vdata` of everything else.
fn data_register(op: &Op, role: Role) -> ExecResult<Reg> {
    match op.inst.operand(role).and_then(Operand::reg) {
        Some(reg) => Ok(reg),
        None => undefined("a memory instruction without data register"),
    }
}

fn result_register(op: &Op) -> ExecResult<Reg> {
    match op.dst {
        Some(reg) => Ok(reg),
        None => undefined("a load without destination"),
    }
}

pub(crate) fn count(core: &mut Core, places: &[LanePlace; LANES], mask: u64, bytes: usize) {
    for lane in active(mask) {
        match places[lane] {
            LanePlace::Global(_) | LanePlace::Scratch(_) => core.stats.global_bytes += bytes as u64,
            LanePlace::Head(_, bytes) => core.stats.global_bytes += u64::from(bytes),
            LanePlace::Lds(_) => core.stats.lds_bytes += bytes as u64,
            LanePlace::Nowhere => {}
        }
    }
}

/// Runs [`Semantics::Load`].
pub(crate) fn load(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Load { bytes, signed, d16 } = op.semantics else { return undefined("meaning") };
    let size = usize::from(bytes);
    let places = places(core, op)?;
    let mask = core.wave.exec();
    order(core, op, true, range(&places, mask, size))?;
    if op.dst.is_none() {
        return direct_lds::load(core, op, &places, size, signed);
    }
    let dst = result_register(op)?;
    let dwords = size.div_ceil(4) as u16;
    core.writing_data(op, dst.file, dst.first, dwords)?;
    if scratch_fast::load(core, op, &places, mask, size, dst).is_some() {
        if core.launch.strict {
            let kind = kind_at(core, op, &places, mask);
            core.wave.in_flight.issue(op, kind, &[(dst.file, dst.first, dwords)]);
        }
        return Ok(());
    }
    count(core, &places, mask, size);
    for lane in active(mask) {
        let mut buffer = [0; MAX_BYTES];
        at_lane(read_place(core, lane, places[lane], &mut buffer[..size], MemoryAccess::Load), lane)?;
        let registers = core.file(dst.file);
        if size >= 4 {
            for n in 0..usize::from(dwords) {
                let word = [buffer[4 * n], buffer[4 * n + 1], buffer[4 * n + 2], buffer[4 * n + 3]];
                registers[usize::from(dst.first) + n][lane] = u32::from_le_bytes(word);
            }
        } else {
            let value = extend(&buffer[..size], signed);
            let cell = &mut registers[usize::from(dst.first)][lane];
            *cell = op.with_half(*cell, value, d16);
        }
    }
    if core.launch.strict {
        let owned = if mask == 0 { 0 } else { dwords };
        let kind = kind_at(core, op, &places, mask);
        core.wave.in_flight.issue(op, kind, &[(dst.file, dst.first, owned)]);
    }
    Ok(())
}

pub(crate) fn extend(bytes: &[u8], signed: bool) -> u32 {
    match (bytes, signed) {
        (&[a], false) => u32::from(a),
        (&[a], true) => a as i8 as u32,
        (&[a, b], false) => u32::from(u16::from_le_bytes([a, b])),
        (&[a, b], true) => i16::from_le_bytes([a, b]) as u32,
        _ => 0,
    }
}

/// Runs [`Semantics::Store`].
pub(crate) fn store(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Store { bytes, high } = op.semantics else { return undefined("meaning") };
    let size = usize::from(bytes);
    let places = places(core, op)?;
    let data = data_register(op, Role::Vdata)?;
    let dwords = size.div_ceil(4) as u16;
    core.reading_data(op, data.file, data.first, dwords)?;
    let mask = core.wave.exec();
    order(core, op, false, range(&places, mask, size))?;
    let mut id = 0;
    if core.launch.strict {
        let soffset_is_register = matches!(op.source(Role::Soffset, Ty::B32), Source::Scalar(_));
        if size > 8 && !soffset_is_register {
            core.wave.hazards.note_wide_store(data.file, data.first, dwords);
        }
        let kind = kind_at(core, op, &places, mask);
        id = core.wave.in_flight.issue(op, kind, &[]);
    }
    if !high && scratch_fast::store(core, op, &places, mask, size, data).is_some() {
        return Ok(());
    }
    count(core, &places, mask, size);
    for lane in active(mask) {
        let mut buffer = [0; MAX_BYTES];
        for n in 0..usize::from(dwords) {
            let word = core.file(data.file)[usize::from(data.first) + n][lane];
            let word = if high { word >> 16 } else { word };
            buffer[4 * n..4 * n + 4].copy_from_slice(&word.to_le_bytes());
        }
        let inside = if let LanePlace::Head(_, bytes) = places[lane] { usize::from(bytes) } else { size };
        match places[lane] {
            LanePlace::Global(address) | LanePlace::Head(address, _) if core.launch.strict => {
                if core.of_lane(core.memory.check_store(address, inside), lane)?.is_some() {
                    buffer_store(core, (lane, id), address, &buffer[..inside]);
                }
            }
            place => at_lane(write_place(core, lane, place, &buffer[..size], MemoryAccess::Store), lane)?,
        }
    }
    store_order::after_store(core)
}

pub(crate) fn buffer_store(core: &mut Core, (lane, id): (usize, u32), address: u64, bytes: &[u8]) {
    core.note_global_store(lane, address, bytes);
    for (n, piece) in bytes.chunks(8).enumerate() {
        let mut data = [0; 8];
        data[..piece.len()].copy_from_slice(piece);
        let address = address + 8 * n as u64;
        let data = u64::from_le_bytes(data);
        core.wave.in_flight.buffer(
            id,
            EffectParts { space: Space::Global, address, bytes: piece.len() as u8, data, compare: 0, atomic: None },
        );
    }
}

/// Runs [`Semantics::Atomic`].
fn run_atomic(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Atomic { f, bytes, compare, returns } = op.semantics else { return undefined("meaning") };
    let size = usize::from(bytes);
    let places = places(core, op)?;
    let data = data_register(op, Role::Vdata)?;
    let words = u16::from(bytes / 4);
    core.reading(op, data.file, data.first, if compare { 2 * words } else { words })?;
    let mask = core.wave.exec();
    order(core, op, true, range(&places, mask, size))?;
    let dst = if returns { Some(result_register(op)?) } else { None };
    if let Some(dst) = dst {
        core.writing(op, dst.file, dst.first, words)?;
    }
    if core.launch.strict && compare && size == 8 {
        core.wave.hazards.note_wide_store(data.file, data.first, 4);
    }
    count(core, &places, mask, 2 * size);
    for lane in active(mask) {
        let file = core.file(data.file);
        let word = |n: u16| u64::from(file[usize::from(data.first + n)][lane]);
        let wide = |n: u16| if words == 2 { word(n) | word(n + 1) << 32 } else { word(n) };
        let (value, comparison) = (wide(0), if compare { wide(words) } else { 0 });
        if let LanePlace::Global(address) = places[lane]
            && !address.is_multiple_of(size as u64)
        {
            core.of_lane::<()>(Err(FaultKind::Misaligned { address, align: size as u32 }), lane)?;
            continue;
        }
        let old = if let LanePlace::Global(address) = places[lane] {
            core.note_global(lane, address, size, How::Atomic);
            let updated = core.memory.update(address, size, |old| f(old, value, comparison));
            core.of_lane(updated, lane)?.unwrap_or_default()
        } else {
            let mut buffer = [0; 8];
            at_lane(read_place(core, lane, places[lane], &mut buffer[..size], MemoryAccess::Atomic), lane)?;
            let old = u64::from_le_bytes(buffer);
            let new = f(old, value, comparison);
            at_lane(write_place(core, lane, places[lane], &new.to_le_bytes()[..size], MemoryAccess::Atomic), lane)?;
            old
        };
        if let Some(dst) = dst {
            let registers = core.file(dst.file);
            registers[usize::from(dst.first)][lane] = old as u32;
            if words == 2 {
                registers[usize::from(dst.first) + 1][lane] = (old >> 32) as u32;
            }
        }
    }
    if core.launch.strict {
        let written = match dst {
            Some(dst) if mask != 0 => (dst.file, dst.first, words),
            _ => (RegFile::Vector, 0, 0),
        };
        let kind = kind_at(core, op, &places, mask);
        core.wave.in_flight.issue(op, kind, &[written]);
    }
    store_order::after_atomic(core, range(&places, mask, size));
    Ok(())
}

/// Notes a load into registers.
pub(crate) fn issue_load(core: &mut Core, op: &Op, (file, first, words): (RegFile, u16, u16)) {
    if core.launch.strict {
        let owned = if core.wave.exec() == 0 { 0 } else { words };
        core.wave.in_flight.issue(op, kind(op), &[(file, first, owned)]);
    }
}

/// Notes a load through a sampler.
pub(crate) fn issue_sample(core: &mut Core, op: &Op, (file, first, words): (RegFile, u16, u16)) {
    if core.launch.strict {
        let owned = if core.wave.exec() == 0 { 0 } else { words };
        core.wave.in_flight.issue(op, OperationKind::Sample, &[(file, first, owned)]);
    }
}

/// Notes a store.
pub(crate) fn issue_store(core: &mut Core, op: &Op) {
    if core.launch.strict {
        core.wave.in_flight.issue(op, kind(op), &[]);
    }
}

/// `global_load_block` and its relatives: of 32 registers and dwords those whose bit is set in M0 (RDNA4 ISA guide).
fn block(core: &mut Core, op: &Op, loads: bool) -> ExecResult {
    let m0 = core.scalar(op, scalar::M0)?;
    let places = places(core, op)?;
    order(core, op, true, ANYWHERE)?;
    let data = if loads { result_register(op)? } else { data_register(op, Role::Vdata)? };
    let mask = core.wave.exec();
    let mut written = Vec::new();
    for n in (0..32_u16).filter(|n| m0 >> n & 1 != 0) {
        let register = data.first + n;
        if loads {
            core.writing(op, data.file, register, 1)?;
            written.push((data.file, register, u16::from(mask != 0)));
        } else {
            core.reading(op, data.file, register, 1)?;
        }
        for lane in active(mask) {
            let place = match places[lane] {
                LanePlace::Global(address) => LanePlace::Global(address + 4 * u64::from(n)),
                LanePlace::Scratch(offset) => LanePlace::Scratch(offset + 4 * i64::from(n)),
                other => other,
            };
            let mut bytes = core.file(data.file)[usize::from(register)][lane].to_le_bytes();
            if loads {
                at_lane(read_place(core, lane, place, &mut bytes, MemoryAccess::Load), lane)?;
                core.file(data.file)[usize::from(register)][lane] = u32::from_le_bytes(bytes);
            } else {
                at_lane(write_place(core, lane, place, &bytes, MemoryAccess::Store), lane)?;
            }
            core.stats.global_bytes += 4;
        }
    }
    if core.launch.strict {
        core.wave.in_flight.issue(op, kind(op), &written);
    }
    Ok(())
}

/// The semantics of a load.
pub(crate) fn loading(info: LoadInfo) -> Semantics {
    let LoadInfo { bytes, signed, d16 } = info;
    let d16 = match d16 {
        D16::Whole => None,
        D16::Low => Some(false),
        D16::High => Some(true),
    };
    Semantics::Load { bytes, signed, d16 }
}

/// The meaning of a vector memory instruction.
pub(crate) fn meaning(opcode: Opcode, inst: &Inst) -> Option<Meaning> {
    if inst.modifiers.tfe {
        return None;
    }
    match opcode {
        Opcode::GLOBAL_LOAD_BLOCK | Opcode::SCRATCH_LOAD_BLOCK => {
            return Some((|core, op| block(core, op, true), Semantics::Own));
        }
        Opcode::GLOBAL_STORE_BLOCK | Opcode::SCRATCH_STORE_BLOCK => {
            return Some((|core, op| block(core, op, false), Semantics::Own));
        }
        Opcode::BUFFER_STORE_LDS_DWORD => return Some((direct_lds::store, Semantics::Own)),
        _ => {}
    }
    if let Some(info) = opcode.load() {
        return Some((load, loading(info)));
    }
    if let Some(StoreInfo { bytes, d16 }) = opcode.store() {
        return Some((store, Semantics::Store { bytes, high: d16 == D16::High }));
    }
    let found = atomic::of(opcode)?;
    let returns = inst.variant.flags.contains(Flags::RETURNS);
    Some((run_atomic, Semantics::Atomic { f: found.f, bytes: found.bytes, compare: found.compare, returns }))
}
