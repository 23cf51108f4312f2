//! Copies between memory and LDS, operations of LDS on two of its places, accesses at the lane's own place, and blocks
//! of registers.

use wavetap::isa::{Encoding, Inst, Modifier, Operand, RegFile, Role, Target, Variant};

use super::access::{self, Access};
use super::choose::Wishes;
use super::definition::Definition;
use super::memory;
use super::random::Random;
use super::state::State;

fn active(state: &State) -> Vec<usize> {
    (0..state.lanes).filter(|lane| state.is_active(*lane)).collect()
}

/// What goes to LDS: a dword for each lane, or up to four, one after the other from M0 and the offset on; three have
/// a place for four.
fn to_lds(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let Access::Load { bytes, signed, .. } = access::parse(&inst.name().split_once('_')?.1.replace("lds_", ""))? else {
        return None;
    };
    let (width, stride) = (bytes.max(4), if bytes > 4 { 16 } else { 4 });
    let before = state.clone();
    for lane in active(&before) {
        let at = memory::place(inst, &before, lane, bytes, false)??;
        let from = if inst.variant.encoding == Encoding::Scratch { &before.scratch } else { &before.memory };
        let mut value = from.get(at..at + bytes)?.to_vec();
        if bytes < 4 {
            let negative = signed && value[bytes - 1] >> 7 != 0;
            value.resize(4, if negative { 0xff } else { 0 });
        }
        let to = (i64::from(before.sgpr[124] & 0xffff) + i64::from(inst.modifiers.offset)) as usize + lane * stride;
        state.lds.get_mut(to..to + width)?.copy_from_slice(&value);
    }
    Some(())
}

fn from_lds(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    if !memory::plain_soffset(inst) || inst.modifiers.offset != 0 {
        return None;
    }
    let before = state.clone();
    for lane in active(&before) {
        let from = (before.sgpr[124] & 0xffff) as usize + 4 * lane;
        if let Some(to) = memory::buffer(inst, &before, lane, 4)? {
            state.memory.get_mut(to..to + 4)?.copy_from_slice(&before.lds[from..from + 4]);
        }
    }
    Some(())
}

fn prepare_copy(inst: &Inst, state: &mut State, random: &mut Random) {
    memory::prepare(inst, state, random);
    state.sgpr[124] = 64 + random.below(64) as u32 * 16;
}

fn prepare_store(inst: &Inst, state: &mut State, random: &mut Random) {
    let first = random.below(state.lanes as u64);
    memory::prepare_buffer(inst, state, random, 4, first, false);
    state.sgpr[124] = random.below(64) as u32 * 16;
}

/// The register that says where in LDS a lane's bytes are.
fn place_in_lds(inst: &Inst) -> Option<usize> {
    let role = if inst.name().contains("_load_") { Role::Vdst } else { Role::Vdata };
    inst.operand(role)?.reg().map(|reg| usize::from(reg.first))
}

/// How many bytes of a lane are copied.
fn copied_bytes(inst: &Inst) -> Option<usize> {
    let bits: usize = inst.name().rsplit_once("_b")?.1.parse().ok()?;
    Some(bits / 8)
}

/// Each lane's bytes, between an address and a place in LDS that a register has; the offset is for both.
fn beside(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let (bytes, register) = (copied_bytes(inst)?, place_in_lds(inst)?);
    for lane in active(&state.clone()) {
        let far = memory::place(inst, state, lane, bytes, false)??;
        let near = state.vgpr[register][lane].wrapping_add(inst.modifiers.offset as u32) as usize;
        let (far, near) = (far..far + bytes, near..near + bytes);
        if inst.name().contains("_load_") {
            state.lds.get_mut(near)?.copy_from_slice(state.memory.get(far)?);
        } else {
            state.memory.get_mut(far)?.copy_from_slice(state.lds.get(near)?);
        }
    }
    Some(())
}

fn prepare_beside(inst: &Inst, state: &mut State, random: &mut Random) {
    let (Some(bytes), Some(register)) = (copied_bytes(inst), place_in_lds(inst)) else { return };
    memory::prepare_places(inst, state, random, bytes as u64, bytes as u64, false);
    let first = random.below(64) as u32;
    for lane in 0..state.lanes {
        let at = 16 * (first + (13 * lane as u32) % 64);
        state.vgpr[register][lane] = at.wrapping_sub(inst.modifiers.offset as u32);
    }
}

/// Bytes that a lane of a transposing load has, and bits of a number: `ds_read_b96_tr_b6`, `ds_load_tr16_b128`.
fn transposed_sizes(name: &str) -> Option<(usize, usize)> {
    let bytes = [("b64", 8), ("b96", 12), ("b128", 16)].iter().find(|(size, _)| name.contains(size))?.1;
    Some((
        bytes,
        name.rsplit_once("_tr_b")
            .filter(|_| name.starts_with("ds_read"))
            .map_or(Some(16), |(_, bits)| bits.parse().ok())?,
    ))
}

/// What lanes load and then exchange. Each group of lanes has loaded, one lane after the other, the rows of a matrix
/// with as many columns as there are lanes, and each gets a column.
fn transposed(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let dst = usize::from(inst.operand(Role::Vdst)?.reg()?.first);
    let local = inst.variant.encoding == Encoding::Ds;
    let (bytes, size) = transposed_sizes(inst.name())?;
    if state.exec() != u64::MAX >> (64 - state.lanes) || bytes == 16 && state.lanes == 64 {
        return None;
    }
    let mut numbers: Vec<u8> = Vec::new();
    for lane in 0..state.lanes {
        let at = memory::place(inst, state, lane, bytes, false)??;
        let from = if local { &state.lds } else { &state.memory };
        let bit = |n: usize| from.get(at + n / 8).map(|byte| byte >> (n % 8) & 1);
        numbers.extend((0..8 * bytes).map(bit).collect::<Option<Vec<_>>>()?);
    }
    let columns = if bytes == 16 { 8 } else { 16 };
    for (group, matrix) in numbers.chunks(columns * 8 * bytes).enumerate() {
        let rows: Vec<&[u8]> = matrix.chunks(columns * size).collect();
        for column in 0..columns {
            let of_column = rows.iter().flat_map(|row| &row[column * size..][..size]);
            for (n, bit) in of_column.enumerate() {
                let word = &mut state.vgpr[dst + n / 32][columns * group + column];
                *word = *word & !(1 << (n % 32)) | u32::from(*bit) << (n % 32);
            }
        }
    }
    Some(())
}

fn prepare_transposed(inst: &Inst, state: &mut State, random: &mut Random) {
    let Some((bytes, _)) = transposed_sizes(inst.name()) else { return };
    let bytes = bytes as u64;
    memory::prepare_places(inst, state, random, bytes, bytes.next_power_of_two(), false);
    state.set_mask(126, u64::MAX);
}

/// The distance of the second place in dwords: a number of fifteen bits with sign in the offset.
fn distance(inst: &Inst) -> i64 {
    let raw = i64::from(inst.modifiers.offset) & 0x7fff;
    4 * if raw >= 0x4000 { raw - 0x8000 } else { raw }
}

fn two_places(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    if inst.modifiers.gds || inst.modifiers.offset & 0x8000 != 0 {
        return None;
    }
    let name = inst.name().strip_prefix("ds_")?.replace("_src2", "");
    let Access::Atomic { operation, bytes } = access::parse(&name.replace("write_", "wrxchg_"))? else { return None };
    let address = usize::from(inst.operand(Role::Addr)?.reg()?.first);
    for lane in active(&state.clone()) {
        let at = state.vgpr[address][lane] as usize;
        let from = (at as i64 + distance(inst)) as usize;
        let value = |state: &State, at: usize| state.lds.get(at..at + bytes).map(access::number);
        let (old, data) = (value(state, at)?, value(state, from)?);
        state.lds[at..at + bytes].copy_from_slice(&operation.apply(bytes, old, data, 0).to_le_bytes()[..bytes]);
    }
    Some(())
}

/// Each lane has two places of its own, in LDS full of small floats where the operation is one of floats.
fn prepare_two(inst: &Inst, state: &mut State, random: &mut Random) {
    let Some(address) = inst.operand(Role::Addr).and_then(Operand::reg) else { return };
    let first = random.below(64);
    state.vgpr[usize::from(address.first)] =
        std::array::from_fn(|lane| (2048 + (lane as u64 + first) % 64 * 32) as u32);
    let name = inst.name().trim_start_matches("ds_").replace("_src2", "");
    if let Some(Access::Atomic { operation, bytes }) =
        access::parse(&name.replace("write_", "wrxchg_")).filter(|_| name.contains("_f"))
    {
        for at in (0..state.lds.len()).step_by(bytes) {
            let value = operation.float_value(bytes, random.below(512) as i64 - 256);
            state.lds[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
    }
}

/// A dword at a scalar base, the offset and four times the lane.
fn at_lane(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let base = state.pair(inst.operand(Role::Saddr)?.reg()?.first.into());
    let start = base.wrapping_add(i64::from(inst.modifiers.offset) as u64).wrapping_sub(state.address) as usize;
    let loads = inst.name().contains("load");
    let data = inst.operand(if loads { Role::Vdst } else { Role::Vdata })?.reg()?;
    for lane in active(state) {
        let at = start + 4 * lane;
        let rows = if data.file == RegFile::Accum { &mut state.agpr } else { &mut state.vgpr };
        let cell = &mut rows[usize::from(data.first)][lane];
        let place = state.memory.get_mut(at..at + 4)?;
        if loads {
            *cell = access::number(place) as u32;
        } else {
            place.copy_from_slice(&cell.to_le_bytes());
        }
    }
    Some(())
}

fn prepare_at_lane(inst: &Inst, state: &mut State, random: &mut Random) {
    let base = state.address + 1024 + random.below(256) * 4;
    if let Some(reg) = inst.operand(Role::Saddr).and_then(Operand::reg).filter(|reg| (16..99).contains(&reg.first)) {
        state.sgpr[usize::from(reg.first)] = base as u32;
        state.sgpr[usize::from(reg.first) + 1] = (base >> 32) as u32;
    }
}

/// Those of up to 32 registers, and of as many dwords of memory, whose bit in M0 is set.
fn block(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let loads = inst.name().contains("load");
    let data = usize::from(inst.operand(Role::Vdst).or_else(|| inst.operand(Role::Vdata))?.reg()?.first);
    let before = state.clone();
    let size = if inst.variant.encoding == Encoding::Scratch { 64 } else { 128 };
    for lane in active(&before) {
        let at = memory::place(inst, &before, lane, size, false)??;
        let memory = if inst.variant.encoding == Encoding::Scratch { &mut state.scratch } else { &mut state.memory };
        for n in (0..32).filter(|n| before.sgpr[124] >> n & 1 != 0) {
            let place = memory.get_mut(at + 4 * n..at + 4 * n + 4)?;
            if loads {
                state.vgpr[data + n][lane] = access::number(place) as u32;
            } else {
                place.copy_from_slice(&before.vgpr[data + n][lane].to_le_bytes());
            }
        }
    }
    Some(())
}

fn prepare_block(inst: &Inst, state: &mut State, random: &mut Random) {
    memory::prepare_places(inst, state, random, 64, 4, false);
    // Blocks of neighbouring lanes overlap.
    state.set_mask(126, state.exec() & 0x5555_5555_5555_5555);
    state.sgpr[124] = (random.next() & random.next()) as u32;
    if inst.variant.encoding == Encoding::Scratch {
        state.sgpr[124] &= 0xffff;
    }
}

/// The definition of such an operation.
pub fn definition(variant: &Variant) -> Option<Definition> {
    let name = variant.name;
    let scratch = variant.encoding == Encoding::Scratch;
    let small: fn(&mut Random, Modifier) -> Option<u64> =
        |random, modifier| (modifier == Modifier::Offset).then(|| random.below(8) * 4);
    let far: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| {
        (modifier == Modifier::Offset).then(|| random.pick(&[2, 4, 256, 510, 0x7ffe, 0x7ffc, 0x7f00, 0x7e04]))
    };
    let none: fn(&mut Random, Modifier) -> Option<u64> = |_, modifier| (modifier == Modifier::Offset).then_some(0);
    let wishes = Wishes { apart: true, no_float_constants: true, no_literals: true, ..Wishes::default() };
    let of = |f, prepare| Definition { wishes, prepare: Some(prepare), modifier: Some(small), ..Definition::whole(f) };
    Some(match name {
        _ if name.contains("_load_lds_") => {
            Definition { memory: !scratch, lds: true, scratch, ..of(to_lds, prepare_copy) }
        }
        "buffer_store_lds_dword" => {
            Definition { memory: true, lds: true, modifier: Some(none), ..of(from_lds, prepare_store) }
        }
        _ if name.starts_with("global_") && name.contains("_async_") => {
            Definition { memory: true, lds: true, ..of(beside, prepare_beside) }
        }
        "ds_load_tr16_b128" => Definition { lds: true, ..of(transposed, prepare_transposed) },
        _ if name.starts_with("ds_read_b") && name.contains("_tr_") => {
            Definition { lds: true, ..of(transposed, prepare_transposed) }
        }
        "global_load_tr16_b128" | "global_load_tr_b128" => {
            Definition { memory: true, ..of(transposed, prepare_transposed) }
        }
        "global_load_addtid_b32"
        | "global_store_addtid_b32"
        | "global_load_dword_addtid"
        | "global_store_dword_addtid" => Definition { memory: true, ..of(at_lane, prepare_at_lane) },
        "global_load_block" | "global_store_block" | "scratch_load_block" | "scratch_store_block" => {
            Definition { memory: !scratch, scratch, ..of(block, prepare_block) }
        }
        _ if name.starts_with("ds_") && name.contains("_src2_") => {
            Definition { lds: true, modifier: Some(far), ..of(two_places, prepare_two) }
        }
        _ => return None,
    })
}
