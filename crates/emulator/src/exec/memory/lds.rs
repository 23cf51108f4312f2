//! LDS instructions: reads, writes, atomics, and the exchanges between lanes that use its crossbar.

use wavetap_amdgpu::{Flags, Opcode, OpcodeFlags, Operand, Reg, RegFile, Role, scalar};

use super::vmem::extend;
use super::{atomic, lds_fast};
use crate::fault::FaultKind;
use crate::fault::stop::{ExecResult, at_lane, undefined};
use crate::lanes::{LANES, active};
use crate::op::semantics::{Semantics, Ty};
use crate::shadow::in_flight::{EffectParts, OperationKind, Space};
use crate::shadow::races::access::LaneAccess;
use crate::state::core::Core;
use crate::state::op::{Meaning, Op};

pub(crate) fn addresses(core: &mut Core, op: &Op) -> ExecResult<[u64; LANES]> {
    core.lanes(op, op.source(Role::Addr, Ty::B32), Ty::B32, 0)
}

pub(crate) fn single_offset(op: &Op) -> u64 {
    u64::from(op.inst.modifiers.offset as u32 & 0xffff)
}

fn data(op: &Op, role: Role) -> ExecResult<Reg> {
    match op.inst.operand(role).and_then(Operand::reg) {
        Some(reg) => Ok(reg),
        None => undefined("an LDS instruction without data register"),
    }
}

fn destination(op: &Op) -> ExecResult<Reg> {
    match op.dst {
        Some(reg) => Ok(reg),
        None => undefined("an LDS instruction without destination"),
    }
}

fn check(core: &Core, offset: u64, size: usize, lane: usize) -> ExecResult<usize> {
    // Addresses have 32 bits: a negative one and the instruction's offset may make a good one.
    at_lane(core.lds_place(offset & 0xffff_ffff, size), lane)
}

/// Strict mode takes addresses below this one for a wrong index: fifty times the largest LDS. Kernels of rocBLAS load
/// from 0xf00000 to have zeros in AccVGPRs.
const NO_INDEX: u64 = 8 << 20;
/// The same of addresses that are so little before 0, as numbers of 32 bits.
const NO_NEGATIVE_INDEX: u64 = 1 << 30;

/// Whether an access that is out of bounds is one that the hardware drops, and that is no finding: loads there return
/// 0, stores and atomics do nothing. Compilers mask lanes so, with an address that no LDS has (Triton: 0x7fffffff).
/// `docs/reference/strict-mode.md` has the sources.
///
/// Strict mode takes what is nearer to the allocation than [`NO_INDEX`] after it, or [`NO_NEGATIVE_INDEX`] before it,
/// for a wrong index.
/// Otherwise everything after the last unit of the allocation is dropped; the rest of that unit exists.
pub(crate) fn is_dropped(core: &Core, offset: u64, size: usize) -> bool {
    let (first, last) =
        if core.launch.strict { (NO_INDEX, (1 << 32) - NO_NEGATIVE_INDEX) } else { (core.lds.len() as u64, 1 << 32) };
    (first..=last).contains(&offset) && offset + size as u64 <= last
}

/// [`check`], or none if the access is dropped.
fn find(core: &Core, offset: u64, size: usize, lane: usize) -> ExecResult<Option<usize>> {
    if is_dropped(core, offset & 0xffff_ffff, size) {
        return Ok(None);
    }
    // Addresses have 32 bits: a negative one and the instruction's offset may make a good one.
    core.of_lane(core.lds_place(offset & 0xffff_ffff, size), lane)
}

/// [`find`] of the elements of a lane. Before gfx12 one of several elements that is out of bounds makes the whole
/// instruction do so (RDNA3 ISA guide, for loads of several dwords; nothing says that these two elements count as
/// such): refused.
fn find_all(core: &Core, base: u64, offsets: &[u64], size: usize, lane: usize) -> ExecResult<[Option<usize>; 2]> {
    let mut found = [None; 2];
    for (found, offset) in found.iter_mut().zip(offsets) {
        *found = find(core, base + offset, size, lane)?;
        if found.is_none() && core.wave.checks.has_found_now() {
            return Ok([None; 2]);
        }
    }
    if core.launch.target.generation() < 12 && offsets.len() == 2 && found[0].is_some() != found[1].is_some() {
        let what = "an LDS instruction with one element in bounds and one far out of them";
        return at_lane(Err(FaultKind::Undefined { what: what.into() }), lane);
    }
    Ok(found)
}

/// Own earlier writes become visible before a read; now and then all waves see them early.
pub(crate) fn order(core: &mut Core, reads: bool) -> ExecResult {
    if core.wave.in_flight.has_effects() && (reads || core.random.one_in(8)) {
        at_lane(core.wave.in_flight.publish(Some(Space::Lds), false, core.memory, core.lds), 0)?;
    }
    Ok(())
}

pub(crate) fn issue(core: &mut Core, op: &Op, written: Option<(RegFile, u16, u16)>) -> u32 {
    if !core.launch.strict {
        return 0;
    }
    match written {
        Some(written) if core.wave.exec() != 0 => core.wave.in_flight.issue(op, OperationKind::Lds, &[written]),
        _ => core.wave.in_flight.issue(op, OperationKind::Lds, &[]),
    }
}

/// A write that is visible to its own wave at once and to others late.
pub(crate) fn put(core: &mut Core, id: u32, at: usize, bytes: &[u8]) {
    if core.launch.strict {
        for (n, piece) in bytes.chunks(8).enumerate() {
            let mut data = [0; 8];
            data[..piece.len()].copy_from_slice(piece);
            let address = (at + 8 * n) as u64;
            let data = u64::from_le_bytes(data);
            core.wave.in_flight.buffer(
                id,
                EffectParts { space: Space::Lds, address, bytes: piece.len() as u8, data, compare: 0, atomic: None },
            );
        }
    } else {
        core.lds[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// The two byte offsets of a `2` form.
pub(crate) fn two_offsets(op: &Op, element: u64, stride: u64) -> [u64; 2] {
    let m = op.inst.modifiers;
    [u64::from(m.offset as u32 & 0xff) * element * stride, u64::from(m.offset1) * element * stride]
}

/// `count` elements of `size` bytes at the offsets, into consecutive registers.
pub(crate) fn read_elements(core: &mut Core, op: &Op, offsets: &[u64], size: usize) -> ExecResult {
    if lds_fast::read(core, op, offsets, size)? {
        return Ok(());
    }
    let base = addresses(core, op)?;
    order(core, true)?;
    let dst = destination(op)?;
    let words = size / 4;
    let total = (words * offsets.len()) as u16;
    core.writing(op, dst.file, dst.first, total)?;
    for lane in active(core.wave.exec()) {
        let found = find_all(core, base[lane], offsets, size, lane)?;
        for (n, at) in found.into_iter().enumerate().take(offsets.len()) {
            let first = usize::from(dst.first) + n * words;
            let Some(at) = at else {
                (first..first + words).for_each(|register| core.file(dst.file)[register][lane] = 0);
                continue;
            };
            core.note(LaneAccess::read(lane, at, size, n));
            for word in 0..words {
                let bytes = &core.lds[at + 4 * word..at + 4 * word + 4];
                let value = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                core.file(dst.file)[first + word][lane] = value;
            }
            core.stats.lds_bytes += size as u64;
        }
    }
    issue(core, op, Some((dst.file, dst.first, total)));
    Ok(())
}

fn write_elements(core: &mut Core, op: &Op, offsets: &[u64], size: usize, high: bool) -> ExecResult {
    if !high && lds_fast::write(core, op, offsets, size)? {
        return Ok(());
    }
    let base = addresses(core, op)?;
    let words = size.div_ceil(4);
    let mut registers = vec![data(op, Role::Data0)?];
    if offsets.len() == 2 {
        registers.push(data(op, Role::Data1)?);
    }
    for reg in &registers {
        core.reading_data(op, reg.file, reg.first, words as u16)?;
    }
    order(core, false)?;
    let id = issue(core, op, None);
    for lane in active(core.wave.exec()) {
        let found = find_all(core, base[lane], offsets, size, lane)?;
        for (n, (at, reg)) in found.into_iter().zip(&registers).enumerate() {
            let Some(at) = at else { continue };
            let mut buffer = [0; 16];
            for word in 0..words {
                let value = core.file(reg.file)[usize::from(reg.first) + word][lane];
                let value = if high { value >> 16 } else { value };
                buffer[4 * word..4 * word + 4].copy_from_slice(&value.to_le_bytes());
            }
            core.note(LaneAccess::write(lane, at, &buffer[..size], n));
            put(core, id, at, &buffer[..size]);
            core.stats.lds_bytes += size as u64;
        }
    }
    Ok(())
}

/// Reads of one or two bytes.
fn read_narrow(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Load { bytes, signed, d16 } = op.semantics else { return undefined("meaning") };
    let size = usize::from(bytes);
    let base = addresses(core, op)?;
    order(core, true)?;
    let dst = destination(op)?;
    core.writing_data(op, dst.file, dst.first, 1)?;
    let offset = single_offset(op);
    for lane in active(core.wave.exec()) {
        let value = match find(core, base[lane] + offset, size, lane)? {
            Some(at) => {
                core.note(LaneAccess::read(lane, at, size, 0));
                core.stats.lds_bytes += size as u64;
                extend(&core.lds[at..at + size], signed)
            }
            None => 0,
        };
        let cell = &mut core.file(dst.file)[usize::from(dst.first)][lane];
        *cell = op.with_half(*cell, value, d16);
    }
    issue(core, op, Some((dst.file, dst.first, 1)));
    Ok(())
}

fn run_atomic(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Atomic { f, bytes, compare, returns } = op.semantics else { return undefined("meaning") };
    let size = usize::from(bytes);
    let words = u16::from(bytes / 4);
    let base = addresses(core, op)?;
    let first = data(op, Role::Data0)?;
    core.reading(op, first.file, first.first, words)?;
    let second = if compare { Some(data(op, Role::Data1)?) } else { None };
    if let Some(second) = second {
        core.reading(op, second.file, second.first, words)?;
    }
    order(core, returns)?;
    let dst = if returns { Some(destination(op)?) } else { None };
    if let Some(dst) = dst {
        core.writing(op, dst.file, dst.first, words)?;
    }
    let id = issue(core, op, dst.map(|dst| (dst.file, dst.first, words)));
    let offset = single_offset(op);
    for lane in active(core.wave.exec()) {
        let Some(at) = find(core, base[lane] + offset, size, lane)? else {
            if let Some(dst) = dst {
                (dst.first..dst.first + words)
                    .for_each(|register| core.file(dst.file)[usize::from(register)][lane] = 0);
            }
            continue;
        };
        if !at.is_multiple_of(size) {
            core.of_lane::<()>(Err(FaultKind::Misaligned { address: at as u64, align: size as u32 }), lane)?;
            continue;
        }
        core.note(LaneAccess::atomic(lane, at, size, 0));
        let value = |core: &mut Core, reg: Reg| {
            let file = core.file(reg.file);
            let low = u64::from(file[usize::from(reg.first)][lane]);
            if words == 2 { low | u64::from(file[usize::from(reg.first) + 1][lane]) << 32 } else { low }
        };
        let one = value(core, first);
        // With two data operands the first is what is compared with, the second what is stored.
        let (new_value, comparison) = match second {
            Some(second) => (value(core, second), one),
            None => (one, 0),
        };
        core.stats.lds_bytes += 2 * size as u64;
        if dst.is_none() && core.launch.strict {
            let effect = EffectParts {
                space: Space::Lds,
                address: at as u64,
                bytes,
                data: new_value,
                compare: comparison,
                atomic: Some(f),
            };
            core.wave.in_flight.buffer(id, effect);
            continue;
        }
        let mut buffer = [0; 8];
        buffer[..size].copy_from_slice(&core.lds[at..at + size]);
        let old = u64::from_le_bytes(buffer);
        core.lds[at..at + size].copy_from_slice(&f(old, new_value, comparison).to_le_bytes()[..size]);
        if let Some(dst) = dst {
            let file = core.file(dst.file);
            file[usize::from(dst.first)][lane] = old as u32;
            if words == 2 {
                file[usize::from(dst.first) + 1][lane] = (old >> 32) as u32;
            }
        }
    }
    Ok(())
}

/// The `src2` forms: the data of the atomic is in LDS, too, as many dwords from the address as the offset says, which
/// is signed (Vega ISA guide, "SRC2 ops").
fn second_in_lds(core: &mut Core, op: &Op) -> ExecResult {
    let Semantics::Atomic { f, bytes, .. } = op.semantics else { return undefined("meaning") };
    let size = usize::from(bytes);
    let base = addresses(core, op)?;
    let offset = single_offset(op);
    if offset & 0x8000 != 0 {
        return undefined("an LDS operation on two places whose distance is in the address");
    }
    // Bit 14 is the sign.
    let distance = 4 * ((offset as i64) << 49 >> 49);
    order(core, true)?;
    for lane in active(core.wave.exec()) {
        let at = check(core, base[lane], size, lane)?;
        let from = check(core, base[lane].wrapping_add_signed(distance) & 0xffff_ffff, size, lane)?;
        core.note(LaneAccess::read(lane, from, size, 0));
        core.note(LaneAccess::atomic(lane, at, size, 0));
        let value = |lds: &[u8], at: usize| {
            let mut buffer = [0; 8];
            buffer[..size].copy_from_slice(&lds[at..at + size]);
            u64::from_le_bytes(buffer)
        };
        let new = f(value(core.lds, at), value(core.lds, from), 0);
        core.lds[at..at + size].copy_from_slice(&new.to_le_bytes()[..size]);
        core.stats.lds_bytes += 3 * size as u64;
    }
    issue(core, op, None);
    Ok(())
}

/// `ds_wrxchg2*`: two exchanges at once.
fn exchange_two(core: &mut Core, op: &Op, offsets: &[u64; 2], size: usize) -> ExecResult {
    let words = (size / 4) as u16;
    let base = addresses(core, op)?;
    let sources = [data(op, Role::Data0)?, data(op, Role::Data1)?];
    for reg in sources {
        core.reading(op, reg.file, reg.first, words)?;
    }
    order(core, true)?;
    let dst = destination(op)?;
    core.writing(op, dst.file, dst.first, 2 * words)?;
    for lane in active(core.wave.exec()) {
        let places =
            [check(core, base[lane] + offsets[0], size, lane)?, check(core, base[lane] + offsets[1], size, lane)?];
        for (n, at) in places.into_iter().enumerate() {
            core.note(LaneAccess::atomic(lane, at, size, n));
        }
        let news = sources.map(|reg| {
            std::array::from_fn::<u32, 2, _>(|n| {
                core.file(reg.file).get(usize::from(reg.first) + n).map_or(0, |r| r[lane])
            })
        });
        let olds = places.map(|at| {
            let mut buffer = [0; 8];
            buffer[..size].copy_from_slice(&core.lds[at..at + size]);
            u64::from_le_bytes(buffer)
        });
        for n in 0..2 {
            for (word, new) in news[n].iter().enumerate().take(usize::from(words)) {
                core.lds[places[n] + 4 * word..places[n] + 4 * word + 4].copy_from_slice(&new.to_le_bytes());
                core.file(dst.file)[usize::from(dst.first) + n * usize::from(words) + word][lane] =
                    (olds[n] >> (32 * word)) as u32;
            }
        }
        core.stats.lds_bytes += 4 * size as u64;
    }
    issue(core, op, Some((dst.file, dst.first, 2 * words)));
    Ok(())
}

/// `ds_append` and `ds_consume`: one counter for the whole wave.
fn append(core: &mut Core, op: &Op, sign: i64) -> ExecResult {
    let m0 = u64::from(core.scalar(op, scalar::M0)?);
    order(core, true)?;
    let dst = destination(op)?;
    core.writing(op, dst.file, dst.first, 1)?;
    let exec = core.wave.exec();
    if m0 > 0xffff && core.launch.target.lds_offset_mask() > 0xffff {
        return undefined("a counter in LDS above 64 KB: how many bits of M0 count is not documented");
    }
    let at = check(core, (m0 & 0xffff) + single_offset(op), 4, 0)?;
    if let Some(lane) = active(exec).next() {
        core.note(LaneAccess::atomic(lane, at, 4, 0));
    }
    let old = u32::from_le_bytes([core.lds[at], core.lds[at + 1], core.lds[at + 2], core.lds[at + 3]]);
    let new = (i64::from(old) + sign * i64::from(exec.count_ones())) as u32;
    core.lds[at..at + 4].copy_from_slice(&new.to_le_bytes());
    for lane in active(exec) {
        core.file(dst.file)[usize::from(dst.first)][lane] = old;
    }
    core.stats.lds_bytes += 8;
    issue(core, op, Some((dst.file, dst.first, 1)));
    Ok(())
}

/// The `addtid` forms: M0 and the lane make the address.
fn add_lane(core: &mut Core, op: &Op, read: bool) -> ExecResult {
    if core.launch.strict {
        core.passed(core.wave.hazards.check_m0())?;
    }
    let base = u64::from(core.scalar(op, scalar::M0)? & core.launch.target.lane_address_mask()) + single_offset(op);
    order(core, true)?;
    let reg = if read { destination(op)? } else { data(op, Role::Data0)? };
    if read {
        core.writing(op, reg.file, reg.first, 1)?;
    } else {
        core.reading(op, reg.file, reg.first, 1)?;
    }
    for lane in active(core.wave.exec()) {
        let at = check(core, base + 4 * lane as u64, 4, lane)?;
        if read {
            let value = u32::from_le_bytes([core.lds[at], core.lds[at + 1], core.lds[at + 2], core.lds[at + 3]]);
            core.file(reg.file)[usize::from(reg.first)][lane] = value;
            core.note(LaneAccess::read(lane, at, 4, 0));
        } else {
            let value = core.file(reg.file)[usize::from(reg.first)][lane];
            core.note(LaneAccess::write(lane, at, &value.to_le_bytes(), 0));
            core.lds[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        core.stats.lds_bytes += 4;
    }
    issue(core, op, read.then_some((reg.file, reg.first, 1)));
    Ok(())
}

/// How values move between lanes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Permute {
    /// `ds_permute_b32` sends to a lane.
    Send,
    /// `ds_bpermute_b32` fetches from one, 0 if it is inactive.
    Fetch,
    /// `ds_bpermute_fi_b32` fetches from inactive ones, too.
    FetchAny,
}

fn permute(core: &mut Core, op: &Op, how: Permute) -> ExecResult {
    let select = addresses(core, op)?;
    let source = data(op, Role::Data0)?;
    core.reading(op, source.file, source.first, 1)?;
    let dst = destination(op)?;
    core.writing(op, dst.file, dst.first, 1)?;
    let exec = core.wave.exec();
    let offset = single_offset(op);
    let values = core.file(source.file)[usize::from(source.first)].0;
    let mut moved = [0; LANES];
    let group = if core.launch.target.halves_permute_apart() { 32 } else { core.launch.lanes };
    for lane in 0..LANES {
        let other = lane & !(group - 1) | ((select[lane] + offset) as usize / 4 % group);
        if how == Permute::Send {
            if exec >> lane & 1 != 0 {
                moved[other] = values[lane];
            }
        } else if how == Permute::FetchAny || exec >> other & 1 != 0 {
            moved[lane] = values[other];
        }
    }
    for lane in active(exec) {
        core.file(dst.file)[usize::from(dst.first)][lane] = moved[lane];
    }
    issue(core, op, Some((dst.file, dst.first, 1)));
    Ok(())
}

/// The lane that `ds_swizzle_b32` fetches from.
fn swizzled_lane(pattern: u32, lane: usize) -> Option<usize> {
    let within = lane & 31;
    let base = lane & 32;
    if pattern >= 0xe000 {
        return None;
    }
    Some(if pattern >= 0xc000 {
        let rotate = (pattern >> 5 & 0x1f) as usize;
        let keep = (pattern & 0x1f) as usize;
        let turned = if pattern >> 10 & 1 != 0 { within + 32 - rotate } else { within + rotate };
        base | (within & keep) | (turned & !keep & 31)
    } else if pattern & 0x8000 != 0 {
        (lane & !3) | (pattern >> (2 * (lane & 3)) & 3) as usize
    } else {
        let (and, or, xor) = (pattern & 0x1f, pattern >> 5 & 0x1f, pattern >> 10 & 0x1f);
        base | ((((within as u32) & and) | or) ^ xor) as usize
    })
}

fn swizzle(core: &mut Core, op: &Op) -> ExecResult {
    let pattern = op.inst.modifiers.offset as u32 & 0xffff;
    let values = addresses(core, op)?;
    let dst = destination(op)?;
    core.writing(op, dst.file, dst.first, 1)?;
    let exec = core.wave.exec();
    for lane in active(exec) {
        let Some(from) = swizzled_lane(pattern, lane) else {
            return undefined(format!("ds_swizzle pattern {pattern:#x}"));
        };
        let value = if exec >> from & 1 != 0 { values[from] as u32 } else { 0 };
        core.file(dst.file)[usize::from(dst.first)][lane] = value;
    }
    issue(core, op, Some((dst.file, dst.first, 1)));
    Ok(())
}

/// `ds_condxchg32_rtn_b64`: exchanges each half whose new value has its top bit set.
fn conditional_exchange(core: &mut Core, op: &Op) -> ExecResult {
    let base = addresses(core, op)?;
    let source = data(op, Role::Data0)?;
    core.reading(op, source.file, source.first, 2)?;
    order(core, true)?;
    let dst = destination(op)?;
    core.writing(op, dst.file, dst.first, 2)?;
    for lane in active(core.wave.exec()) {
        let start = check(core, (base[lane] + single_offset(op)) & !7, 8, lane)?;
        for half in 0..2 {
            let at = start + 4 * half;
            core.note(LaneAccess::atomic(lane, at, 4, half));
            let old = u32::from_le_bytes([core.lds[at], core.lds[at + 1], core.lds[at + 2], core.lds[at + 3]]);
            let new = core.file(source.file)[usize::from(source.first) + half][lane];
            if new >> 31 != 0 {
                core.lds[at..at + 4].copy_from_slice(&(new & 0x7fff_ffff).to_le_bytes());
            }
            core.file(dst.file)[usize::from(dst.first) + half][lane] = old;
        }
        core.stats.lds_bytes += 16;
    }
    issue(core, op, Some((dst.file, dst.first, 2)));
    Ok(())
}

macro_rules! read {
    ($size:expr) => {
        (|core: &mut Core, op: &Op| read_elements(core, op, &[single_offset(op)], $size), Semantics::Own)
    };
}
macro_rules! write {
    ($size:expr, $high:expr) => {
        (
            |core: &mut Core, op: &Op| write_elements(core, op, &[single_offset(op)], $size, $high),
            Semantics::Store { bytes: $size, high: $high },
        )
    };
}
/// Two elements of a size, their offsets in units of it or of 64 times it.
macro_rules! two {
    (read, $size:expr, $stride:expr) => {
        (|core: &mut Core, op: &Op| read_elements(core, op, &two_offsets(op, $size, $stride), $size), Semantics::Own)
    };
    (write, $size:expr, $stride:expr) => {
        (
            |core: &mut Core, op: &Op| write_elements(core, op, &two_offsets(op, $size, $stride), $size, false),
            Semantics::Own,
        )
    };
    (exchange, $size:expr, $stride:expr) => {
        (|core: &mut Core, op: &Op| exchange_two(core, op, &two_offsets(op, $size, $stride), $size), Semantics::Own)
    };
}

fn narrow(bytes: u8, signed: bool, d16: Option<bool>) -> Meaning {
    (read_narrow, Semantics::Load { bytes, signed, d16 })
}

/// The meaning of an LDS instruction.
pub(crate) fn meaning(opcode: Opcode, inst: &wavetap_amdgpu::Inst) -> Option<Meaning> {
    if inst.modifiers.gds {
        return None;
    }
    Some(match opcode {
        Opcode::DS_NOP => (|_, _| Ok(()), Semantics::Own),
        Opcode::DS_READ_B32 | Opcode::DS_LOAD_B32 => read!(4),
        Opcode::DS_READ_B64 | Opcode::DS_LOAD_B64 => read!(8),
        Opcode::DS_READ_B96 | Opcode::DS_LOAD_B96 => read!(12),
        Opcode::DS_READ_B128 | Opcode::DS_LOAD_B128 => read!(16),
        Opcode::DS_READ2_B32 | Opcode::DS_LOAD_2ADDR_B32 => two!(read, 4, 1),
        Opcode::DS_READ2ST64_B32 | Opcode::DS_LOAD_2ADDR_STRIDE64_B32 => two!(read, 4, 64),
        Opcode::DS_READ2_B64 | Opcode::DS_LOAD_2ADDR_B64 => two!(read, 8, 1),
        Opcode::DS_READ2ST64_B64 | Opcode::DS_LOAD_2ADDR_STRIDE64_B64 => two!(read, 8, 64),
        Opcode::DS_READ_U8 | Opcode::DS_LOAD_U8 => narrow(1, false, None),
        Opcode::DS_READ_I8 | Opcode::DS_LOAD_I8 => narrow(1, true, None),
        Opcode::DS_READ_U16 | Opcode::DS_LOAD_U16 => narrow(2, false, None),
        Opcode::DS_READ_I16 | Opcode::DS_LOAD_I16 => narrow(2, true, None),
        Opcode::DS_READ_U8_D16 | Opcode::DS_LOAD_U8_D16 => narrow(1, false, Some(false)),
        Opcode::DS_READ_U8_D16_HI | Opcode::DS_LOAD_U8_D16_HI => narrow(1, false, Some(true)),
        Opcode::DS_READ_I8_D16 | Opcode::DS_LOAD_I8_D16 => narrow(1, true, Some(false)),
        Opcode::DS_READ_I8_D16_HI | Opcode::DS_LOAD_I8_D16_HI => narrow(1, true, Some(true)),
        Opcode::DS_READ_U16_D16 | Opcode::DS_LOAD_U16_D16 => narrow(2, false, Some(false)),
        Opcode::DS_READ_U16_D16_HI | Opcode::DS_LOAD_U16_D16_HI => narrow(2, false, Some(true)),
        Opcode::DS_WRITE_B8 | Opcode::DS_STORE_B8 => write!(1, false),
        Opcode::DS_WRITE_B8_D16_HI | Opcode::DS_STORE_B8_D16_HI => write!(1, true),
        Opcode::DS_WRITE_B16 | Opcode::DS_STORE_B16 => write!(2, false),
        Opcode::DS_WRITE_B16_D16_HI | Opcode::DS_STORE_B16_D16_HI => write!(2, true),
        Opcode::DS_WRITE_B32 | Opcode::DS_STORE_B32 => write!(4, false),
        Opcode::DS_WRITE_B64 | Opcode::DS_STORE_B64 => write!(8, false),
        Opcode::DS_WRITE_B96 | Opcode::DS_STORE_B96 => write!(12, false),
        Opcode::DS_WRITE_B128 | Opcode::DS_STORE_B128 => write!(16, false),
        Opcode::DS_WRITE2_B32 | Opcode::DS_STORE_2ADDR_B32 => two!(write, 4, 1),
        Opcode::DS_WRITE2ST64_B32 | Opcode::DS_STORE_2ADDR_STRIDE64_B32 => two!(write, 4, 64),
        Opcode::DS_WRITE2_B64 | Opcode::DS_STORE_2ADDR_B64 => two!(write, 8, 1),
        Opcode::DS_WRITE2ST64_B64 | Opcode::DS_STORE_2ADDR_STRIDE64_B64 => two!(write, 8, 64),
        Opcode::DS_WRXCHG2_RTN_B32 | Opcode::DS_STOREXCHG_2ADDR_RTN_B32 => two!(exchange, 4, 1),
        Opcode::DS_WRXCHG2_RTN_B64 | Opcode::DS_STOREXCHG_2ADDR_RTN_B64 => two!(exchange, 8, 1),
        Opcode::DS_WRXCHG2ST64_RTN_B32 | Opcode::DS_STOREXCHG_2ADDR_STRIDE64_RTN_B32 => two!(exchange, 4, 64),
        Opcode::DS_WRXCHG2ST64_RTN_B64 | Opcode::DS_STOREXCHG_2ADDR_STRIDE64_RTN_B64 => two!(exchange, 8, 64),
        Opcode::DS_APPEND => (|core, op| append(core, op, 1), Semantics::Own),
        Opcode::DS_CONSUME => (|core, op| append(core, op, -1), Semantics::Own),
        Opcode::DS_READ_ADDTID_B32 | Opcode::DS_LOAD_ADDTID_B32 => {
            (|core, op| add_lane(core, op, true), Semantics::Own)
        }
        Opcode::DS_WRITE_ADDTID_B32 | Opcode::DS_STORE_ADDTID_B32 => {
            (|core, op| add_lane(core, op, false), Semantics::Own)
        }
        Opcode::DS_PERMUTE_B32 => (|core, op| permute(core, op, Permute::Send), Semantics::Own),
        Opcode::DS_BPERMUTE_B32 => (|core, op| permute(core, op, Permute::Fetch), Semantics::Own),
        Opcode::DS_BPERMUTE_FI_B32 => (|core, op| permute(core, op, Permute::FetchAny), Semantics::Own),
        Opcode::DS_SWIZZLE_B32 => (swizzle, Semantics::Own),
        Opcode::DS_CONDXCHG32_RTN_B64 => (conditional_exchange, Semantics::Own),
        _ if opcode.is_any(OpcodeFlags::LDS_SRC2) => {
            let found = atomic::of(opcode)?;
            (second_in_lds, Semantics::Atomic { f: found.f, bytes: found.bytes, compare: false, returns: false })
        }
        _ => {
            let found = atomic::of(opcode)?;
            let returns = inst.variant.flags.contains(Flags::RETURNS);
            (run_atomic, Semantics::Atomic { f: found.f, bytes: found.bytes, compare: found.compare, returns })
        }
    })
}
