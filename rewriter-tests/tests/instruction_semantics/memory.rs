//! Vector memory and LDS: addresses, and the bytes that loads, stores and atomics move.

use wavetap::isa::{Encoding, EventHazards, Flags, Inst, Modifier, Operand, RegFile, Role, Target, Value, Variant};

use super::access::{self, Access};
use super::choose::Wishes;
use super::definition::Definition;
use super::random::Random;
use super::scalars;
use super::state::{MEMORY, State};

/// The part of memory in which lanes have their places, and the bytes of a place.
const FIRST: u64 = 1024;
const SLOT: u64 = 64;

/// The access of an instruction, and whether it is one of LDS.
fn access(inst: &Inst) -> Option<(Access, bool)> {
    of_name(inst.name(), inst.variant.encoding)
}

fn of_name(name: &str, encoding: Encoding) -> Option<(Access, bool)> {
    let (_, what) = name.split_once('_')?;
    let lds = encoding == Encoding::Ds;
    // Two accesses of one kind.
    let what = what
        .replace("read2st64_", "read_")
        .replace("read2_", "read_")
        .replace("write2st64_", "write_")
        .replace("write2_", "write_");
    let what = what
        .replace("load_2addr_stride64_", "load_")
        .replace("load_2addr_", "load_")
        .replace("store_2addr_stride64_", "store_")
        .replace("store_2addr_", "store_");
    let what = what
        .replace("wrxchg2st64_rtn_", "wrxchg_")
        .replace("wrxchg2_rtn_", "wrxchg_")
        .replace("storexchg_2addr_stride64_rtn_", "storexchg_")
        .replace("storexchg_2addr_rtn_", "storexchg_")
        .replace("load_lds_", "load_");
    access::parse(&what).map(|access| (access, lds))
}

fn is_two(name: &str) -> bool {
    name.contains("2addr") || ["read2", "write2", "wrxchg2"].iter().any(|part| name.contains(part))
}

fn stride(inst: &Inst, bytes: usize) -> u64 {
    let st64 = inst.name().contains("st64") || inst.name().contains("stride64");
    bytes as u64 * if st64 { 64 } else { 1 }
}

fn bytes_of(access: Access) -> usize {
    match access {
        Access::Load { bytes, .. } | Access::Store { bytes, .. } | Access::Atomic { bytes, .. } => bytes,
    }
}

fn words(state: &State, operand: &Operand, lane: usize, first: usize, count: usize) -> Option<Vec<u8>> {
    let reg = operand.reg()?;
    let rows = if reg.file == RegFile::Accum { &state.agpr } else { &state.vgpr };
    Some((0..count).flat_map(|n| rows[usize::from(reg.first) + first + n][lane].to_le_bytes()).collect())
}

fn set_words(state: &mut State, operand: &Operand, lane: usize, first: usize, bytes: &[u8]) -> Option<()> {
    let reg = operand.reg()?;
    let rows = if reg.file == RegFile::Accum { &mut state.agpr } else { &mut state.vgpr };
    for (n, word) in bytes.chunks(4).enumerate() {
        rows[usize::from(reg.first) + first + n][lane] = access::number(word) as u32;
    }
    Some(())
}

fn set_address(state: &mut State, operand: &Operand, lane: usize, value: u64) {
    if let Some(reg) = operand.reg() {
        let first = usize::from(reg.first);
        state.vgpr[first][lane] = value as u32;
        if operand.dwords == 2 {
            state.vgpr[first + 1][lane] = (value >> 32) as u32;
        }
    }
}

fn address_operand(inst: &Inst) -> Option<&Operand> {
    inst.operand(Role::Addr).or_else(|| inst.operand(Role::Vaddr))
}

fn pair(state: &State, operand: &Operand) -> Option<u64> {
    Some(state.pair(operand.reg()?.first.into()))
}

/// The place of a lane in memory or LDS, as an offset; none: out of a buffer's range.
pub fn place(inst: &Inst, state: &State, lane: usize, bytes: usize, second: bool) -> Option<Option<usize>> {
    let m = &inst.modifiers;
    let narrow = |operand: &Operand| words(state, operand, lane, 0, 1).map(|bytes| access::number(&bytes));
    let address = match inst.variant.encoding {
        Encoding::Ds => {
            let offset = match (is_two(inst.name()), second) {
                (false, _) => m.offset as u64,
                (true, false) => m.offset as u64 * stride(inst, bytes),
                (true, true) => u64::from(m.offset1) * stride(inst, bytes),
            };
            return Some(Some((narrow(address_operand(inst)?)? + offset) as usize));
        }
        Encoding::Mubuf => return buffer(inst, state, lane, bytes),
        Encoding::Scratch => return private_place(inst, state, lane, bytes),
        _ => {
            let vaddr = address_operand(inst)?;
            let offset = i64::from(m.offset) as u64;
            match inst.operand(Role::Saddr).filter(|operand| operand.value != Value::Off) {
                Some(saddr) => pair(state, saddr)?.wrapping_add(narrow(vaddr)?).wrapping_add(offset),
                None => access::number(&words(state, vaddr, lane, 0, 2)?).wrapping_add(offset),
            }
        }
    };
    Some(Some(address.wrapping_sub(state.address) as usize))
}

/// Bytes of the private memory of a lane.
pub fn private(state: &State) -> usize {
    MEMORY / state.lanes
}

/// Where an access is in a lane's private memory.
fn private_place(inst: &Inst, state: &State, lane: usize, bytes: usize) -> Option<Option<usize>> {
    // From gfx12 on the registers are signed.
    let extended = |value: u64| if state.generation >= 12 { i64::from(value as i32) as u64 } else { value };
    let vaddr = match inst.operand(Role::Vaddr).filter(|operand| operand.reg().is_some()) {
        Some(operand) => extended(access::number(&words(state, operand, lane, 0, 1)?)),
        None => 0,
    };
    let saddr = match inst.operand(Role::Saddr).and_then(Operand::reg) {
        Some(reg) => extended(u64::from(state.sgpr[usize::from(reg.first)])),
        None => 0,
    };
    let at = vaddr.wrapping_add(saddr).wrapping_add(i64::from(inst.modifiers.offset) as u64) as usize;
    (at.checked_add(bytes)? <= private(state)).then_some(Some(lane * private(state) + at))
}

/// Offsets, scalar or of each lane, that reach somewhere in the lane's memory. Where they may be negative, either may
/// be.
fn prepare_scratch(inst: &Inst, state: &mut State, random: &mut Random, bytes: u64) {
    let align = if bytes >= 4 { 4 } else { bytes };
    // Dwords of a wide access need no more alignment than one.
    let mut left = private(state) as u64 - bytes - inst.modifiers.offset as u64;
    let saddr = inst.operand(Role::Saddr).and_then(Operand::reg).filter(|reg| (16..100).contains(&reg.first));
    let vaddr = inst.operand(Role::Vaddr).and_then(Operand::reg);
    // What one register has more the other has less.
    let moved = if state.generation >= 12 && saddr.is_some() && vaddr.is_some() {
        let distance = (random.below(private(state) as u64) * align) as u32;
        if random.below(2) == 0 { distance } else { distance.wrapping_neg() }
    } else {
        0
    };
    if let Some(saddr) = saddr {
        let offset = random.below(left / align / 2 + 1) * align;
        state.sgpr[usize::from(saddr.first)] = (offset as u32).wrapping_add(moved);
        left -= offset;
    }
    if let Some(vaddr) = vaddr {
        let offset = |_| (random.below(left / align + 1) * align) as u32;
        state.vgpr[usize::from(vaddr.first)] = std::array::from_fn(offset).map(|offset| offset.wrapping_sub(moved));
    }
}

/// Whether the scalar offset of a buffer is one that the definitions know.
pub fn plain_soffset(inst: &Inst) -> bool {
    match inst.operand(Role::Soffset).map(|operand| operand.value) {
        Some(Value::InlineInt(n)) => n >= 0 && n % 16 == 0,
        Some(Value::Reg(reg)) => (16..100).contains(&reg.first),
        _ => true,
    }
}

/// The words of a descriptor: base, stride and number of records, and from which bits of the last word the bounds are
/// chosen.
pub fn descriptor(target: Target, base: u64, stride: u64, records: u64, bounds: u32) -> [u32; 4] {
    if is_wide(target) {
        let number = u128::from(base) | u128::from(records) << 57 | u128::from(stride) << 108;
        return std::array::from_fn(|n| (number >> (32 * n)) as u32);
    }
    [base as u32, (base >> 32) as u32 | (stride as u32) << 16, records as u32, 0x20000 | bounds]
}

/// Whether descriptors have 57 bits of base and 45 of records (gfx1250).
pub fn is_wide(target: Target) -> bool {
    target.name().starts_with("gfx125")
}

/// Whether records are bytes where there is a stride, too.
fn counts_bytes(state: &State) -> bool {
    state.generation == 8 || is_wide(state.target)
}

/// The resource of a buffer: base, stride and number of records.
pub fn resource_at(state: &State, first: usize) -> (u64, u64, u64) {
    let words = &state.sgpr[first..first + 4];
    if is_wide(state.target) {
        let number = (0..4).fold(0, |number, n| number | u128::from(words[n]) << (32 * n));
        let field = |at: u32, bits: u32| (number >> at & ((1 << bits) - 1)) as u64;
        return (field(0, 57), field(108, 14), field(57, 45));
    }
    (state.pair(first) & 0xffff_ffff_ffff, u64::from(words[1] >> 16 & 0x3fff), words[2].into())
}

pub fn buffer(inst: &Inst, state: &State, lane: usize, bytes: usize) -> Option<Option<usize>> {
    let m = &inst.modifiers;
    let (base, stride, records) = resource_at(state, usize::from(inst.operand(Role::Srsrc)?.reg()?.first));
    let soffset = inst.operand(Role::Soffset).map_or(Some(0), |operand| scalars::source(state, operand))?;
    let field =
        |n: usize| -> Option<u64> { Some(access::number(&words(state, inst.operand(Role::Vaddr)?, lane, n, 1)?)) };
    let index = if m.idxen { field(0)? } else { 0 };
    let offset = if m.offen { field(usize::from(m.idxen))? } else { 0 } + m.offset as u64;
    // Raw buffers count bytes, structured ones records; some count bytes anyway. The scalar offset counts where bytes
    // do.
    let end = offset + bytes as u64;
    let inside = match stride {
        _ if counts_bytes(state) => stride * index + end + soffset <= records,
        0 => end + soffset <= records,
        _ if state.generation == 9 => index < records,
        _ => index < records && end <= stride,
    };
    let address = base + soffset + index * stride + offset;
    Some(inside.then(|| address.wrapping_sub(state.address) as usize))
}

/// Chooses addresses, so that no two lanes change the same bytes.
pub fn prepare(inst: &Inst, state: &mut State, random: &mut Random) {
    let Some((access, _)) = access(inst) else { return };
    let bytes = bytes_of(access) as u64;
    // Of two addresses the second is a number of elements away.
    let two = is_two(inst.name());
    let align = match bytes {
        12 => 16,
        bytes => bytes,
    };
    if let Access::Atomic { operation, bytes } = access
        && operation.float()
    {
        floats(inst, state, random, operation, bytes);
    }
    prepare_places(inst, state, random, bytes, align, two);
}

/// Addresses for accesses of so many bytes.
pub fn prepare_places(inst: &Inst, state: &mut State, random: &mut Random, bytes: u64, align: u64, two: bool) {
    state.sgpr[124] = u32::MAX;
    let base = state.address;
    let first_lane = random.below(state.lanes as u64);
    match inst.variant.encoding {
        Encoding::Mubuf => prepare_buffer(inst, state, random, align, first_lane, false),
        Encoding::Scratch => prepare_scratch(inst, state, random, bytes),
        _ => {
            if let Some(saddr) = inst.operand(Role::Saddr).and_then(Operand::reg) {
                let first = usize::from(saddr.first);
                state.sgpr[first] = base as u32;
                state.sgpr[first + 1] = (base >> 32) as u32;
            }
            let has_base = inst.operand(Role::Saddr).is_some_and(|operand| operand.reg().is_some());
            let Some(operand) = address_operand(inst).copied() else { return };
            for lane in 0..state.lanes {
                let slot = (lane as u64 + first_lane) % state.lanes as u64;
                let at = if two {
                    FIRST
                        + slot * stride(inst, bytes as usize).max(8 * bytes)
                            / if stride(inst, bytes as usize) > bytes { 64 } else { 1 }
                } else {
                    FIRST + slot * SLOT + random.below(SLOT.saturating_sub(16.max(bytes)) / align + 1) * align
                };
                let offset = if two { 0 } else { i64::from(inst.modifiers.offset) as u64 };
                let from = if inst.variant.encoding == Encoding::Ds || has_base { 0 } else { base };
                set_address(state, &operand, lane, from.wrapping_add(at).wrapping_sub(offset));
            }
        }
    }
}

/// A buffer and places in it, with `inside` none out of its range.
pub fn prepare_buffer(inst: &Inst, state: &mut State, random: &mut Random, align: u64, first_lane: u64, inside: bool) {
    let m = inst.modifiers;
    let Some(first) = inst.operand(Role::Srsrc).and_then(Operand::reg).map(|reg| usize::from(reg.first)) else {
        return;
    };
    let soffset = inst.operand(Role::Soffset).copied();
    if let Some(reg) = soffset.and_then(|operand| operand.reg())
        && (16..100).contains(&reg.first)
    {
        state.sgpr[usize::from(reg.first)] = random.below(4) as u32 * 16;
    }
    let base = state.address;
    let stride = if m.idxen { SLOT } else { 0 };
    // The last lanes of some are out of range.
    let missing = if !inside && random.one_in(2) { random.below(8) } else { 0 };
    let slots = state.lanes as u64 - missing;
    // A lane is in range or not as a whole, whatever the scalar offset.
    let moved = soffset.and_then(|operand| scalars::source(state, &operand)).unwrap_or(0);
    let records = match m.idxen {
        true if counts_bytes(state) => slots * SLOT + moved,
        true => slots,
        false => FIRST + slots * SLOT + moved,
    };
    let start = if m.idxen { base + FIRST } else { base };
    // From gfx10 on the range check of raw buffers is asked for (OOB_SELECT).
    let bounds = if m.idxen { 0 } else { 3 << 28 };
    state.sgpr[first..first + 4].copy_from_slice(&descriptor(state.target, start, stride, records, bounds));
    let Some(vaddr) = inst.operand(Role::Vaddr).and_then(Operand::reg).map(|reg| usize::from(reg.first)) else {
        // All lanes go to one place: one of them may change it.
        if !inst.name().contains("load") {
            state.set_mask(126, 1 << first_lane);
        }
        return;
    };
    for lane in 0..state.lanes {
        let slot = (lane as u64 + first_lane) % state.lanes as u64;
        let within = random.below((SLOT - 48) / align.max(4) + 1) * align.max(4);
        let (index, offset) =
            if m.idxen { (slot, within) } else { (0, FIRST + slot * SLOT + within - m.offset as u64) };
        let at = usize::from(m.idxen);
        if m.idxen {
            state.vgpr[vaddr][lane] = index as u32;
        }
        if m.offen {
            state.vgpr[vaddr + at][lane] = offset as u32;
        }
    }
}

/// Numbers whose sums and comparisons are plain.
fn floats(inst: &Inst, state: &mut State, random: &mut Random, operation: access::Operation, bytes: usize) {
    let mut next = || operation.float_value(bytes, random.below(512) as i64 - 256);
    for memory in [&mut state.memory, &mut state.lds] {
        for at in (0..memory.len()).step_by(bytes) {
            memory[at..at + bytes].copy_from_slice(&next().to_le_bytes()[..bytes]);
        }
    }
    for role in [Role::Vdata, Role::Data0, Role::Data1] {
        let Some(operand) = inst.operand(role).copied() else { continue };
        for lane in 0..state.lanes {
            for n in 0..usize::from(operand.dwords) * 4 / bytes {
                set_words(state, &operand, lane, n * bytes / 4, &next().to_le_bytes()[..bytes]);
            }
        }
    }
}

fn execute(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let (access, lds) = access(inst)?;
    let m = &inst.modifiers;
    if m.lds || m.tfe || m.gds {
        return None;
    }
    if !plain_soffset(inst) {
        return None;
    }
    let before = state.clone();
    let parts = if is_two(inst.name()) { 2 } else { 1 };
    let returns = inst.variant.flags.contains(Flags::RETURNS);
    let result = inst.operand(Role::Vdst).or_else(|| inst.operand(Role::Vdata)).copied();
    // The order of the two values of a comparison in LDS changed its side with gfx11 and the name.
    let reversed = inst.name().starts_with("ds_cmpst_");
    for lane in (0..before.lanes).filter(|lane| before.is_active(*lane)) {
        for part in 0..parts {
            let bytes = bytes_of(access);
            let count = bytes.div_ceil(4);
            let at = place(inst, &before, lane, bytes, part == 1)?;
            let memory = match inst.variant.encoding {
                _ if lds => &mut state.lds,
                Encoding::Scratch => &mut state.scratch,
                _ => &mut state.memory,
            };
            if at.is_some_and(|at| at + bytes > memory.len()) {
                return None;
            }
            let data = |role: Role| inst.operand(role);
            match access {
                Access::Load { signed, part: half, .. } => {
                    let mut value = at.map_or(vec![0; bytes], |at| memory[at..at + bytes].to_vec());
                    if bytes < 4 {
                        let raw = access::number(&value);
                        let shift = 64 - 8 * bytes as u32;
                        let extended = if signed { ((raw << shift) as i64 >> shift) as u64 } else { raw } as u32;
                        let old = access::number(&words(&before, &result?, lane, 0, 1)?) as u32;
                        // Error correction of registers writes all of one (CDNA5 ISA guide, D16 loads).
                        let old = if target.supports_sramecc() { 0 } else { old };
                        value = match half {
                            None => extended,
                            Some(false) => old & 0xffff_0000 | extended & 0xffff,
                            Some(true) => old & 0xffff | extended << 16,
                        }
                        .to_le_bytes()
                        .to_vec();
                    }
                    set_words(state, &result?, lane, part * count, &value)?;
                }
                Access::Store { high, .. } => {
                    let role = [Role::Data0, Role::Data1][part];
                    let operand = data(role).or_else(|| data(Role::Vdata))?;
                    let value = words(&before, operand, lane, 0, count)?;
                    let from = if high { 2 } else { 0 };
                    if let Some(at) = at {
                        memory[at..at + bytes].copy_from_slice(&value[from..from + bytes]);
                    }
                }
                Access::Atomic { operation, .. } => {
                    let role = [Role::Data0, Role::Data1][part];
                    let operand = data(role).or_else(|| data(Role::Vdata))?;
                    let value = access::number(&words(&before, operand, lane, 0, count)?);
                    let second = match data(Role::Data1) {
                        _ if !operation.has_second() => 0,
                        Some(operand) => access::number(&words(&before, operand, lane, 0, count)?),
                        None => access::number(&words(&before, operand, lane, count, count)?),
                    };
                    let (value, second) = if reversed { (second, value) } else { (value, second) };
                    let old = at.map(|at| access::number(&memory[at..at + bytes]));
                    if let (Some(at), Some(old)) = (at, old) {
                        memory[at..at + bytes]
                            .copy_from_slice(&operation.apply(bytes, old, value, second).to_le_bytes()[..bytes]);
                    }
                    if returns {
                        // What is returned out of range is not documented for atomics.
                        set_words(state, &result?, lane, part * count, &old?.to_le_bytes()[..bytes])?;
                    }
                }
            }
        }
    }
    Some(())
}

/// The definition of a memory operation.
pub fn definition(variant: &Variant, target: Target) -> Option<Definition> {
    let name = variant.name;
    if !matches!(
        variant.encoding,
        Encoding::Ds | Encoding::Flat | Encoding::Global | Encoding::Mubuf | Encoding::Scratch
    ) || name.contains("_lds_")
    {
        return None;
    }
    let (_, lds) = of_name(name, variant.encoding)?;
    let modifier: fn(&mut Random, Modifier) -> Option<u64> =
        match (is_two(name), name.contains("st64") || name.contains("stride64"), variant.encoding) {
            (true, ..) => |random, modifier| match modifier {
                // Different elements: the order of two accesses to one is not documented.
                Modifier::Offset => Some(random.below(4)),
                Modifier::Offset1 => Some(4 + random.below(3)),
                _ => None,
            },
            (_, _, Encoding::Global) => {
                |random, modifier| (modifier == Modifier::Offset).then(|| (random.below(128) as i64 - 64) as u64)
            }
            // Where an offset in such an access fails, the emulator refuses it.
            (_, _, Encoding::Flat) if target.event_hazards().contains(EventHazards::FLAT_OFFSET) => {
                |_, modifier| (modifier == Modifier::Offset).then_some(0)
            }
            _ => |random, modifier| (modifier == Modifier::Offset).then(|| random.below(3) * 16),
        };
    let wishes = Wishes { apart: true, no_float_constants: true, no_literals: true, ..Wishes::default() };
    let scratch = variant.encoding == Encoding::Scratch;
    let memory = !lds && !scratch;
    Some(Definition {
        wishes,
        prepare: Some(prepare),
        modifier: Some(modifier),
        memory,
        lds,
        scratch,
        ..Definition::whole(execute)
    })
}
