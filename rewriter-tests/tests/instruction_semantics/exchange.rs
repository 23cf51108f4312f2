//! Values that go from lane to lane: through the crossbar of LDS, by the permutations of the vector ALU, and between
//! registers that M0 names.

use wavetap::isa::{Half, Inst, Modifier, Operand, RegFile, Role, Target};

use super::choose::Wishes;
use super::definition::Definition;
use super::lane::{self, T, fact};
use super::random::Random;
use super::scalars;
use super::state::State;

fn vector(inst: &Inst, role: Role) -> Option<usize> {
    inst.operand(role)?.reg().filter(|reg| reg.file == RegFile::Vector).map(|reg| reg.first.into())
}

/// The row of a vector or AGPR.
fn row(state: &mut State, operand: &Operand) -> Option<[u32; 64]> {
    let reg = operand.reg()?;
    Some(if reg.file == RegFile::Accum {
        state.agpr[usize::from(reg.first)]
    } else {
        state.vgpr[usize::from(reg.first)]
    })
}

fn set(state: &mut State, operand: &Operand, lane: usize, value: u32) -> Option<()> {
    let reg = operand.reg()?;
    let rows = if reg.file == RegFile::Accum { &mut state.agpr } else { &mut state.vgpr };
    rows[usize::from(reg.first)][lane] = value;
    Some(())
}

fn active(state: &State) -> Vec<usize> {
    (0..state.lanes).filter(|lane| state.is_active(*lane)).collect()
}

/// `ds_permute_b32` sends, `ds_bpermute_b32` fetches: the lane is a quarter of the address, within the lanes that can
/// reach each other.
fn crossbar(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let sends = inst.name() == "ds_permute_b32";
    let inactive_too = inst.name() == "ds_bpermute_fi_b32";
    // Waves of 64 lanes of gfx10 and gfx11 are two halves for LDS.
    let group = if matches!(fact(target, "generation"), 10 | 11) { 32 } else { state.lanes };
    let select = row(state, inst.operand(Role::Addr)?)?;
    let values = row(state, inst.operand(Role::Data0)?)?;
    let offset = inst.modifiers.offset as u32;
    let other = |lane: usize| lane / group * group + (select[lane].wrapping_add(offset) / 4) as usize % group;
    let mut moved = [0; 64];
    for lane in 0..state.lanes {
        if sends && state.is_active(lane) {
            moved[other(lane)] = values[lane];
        } else if !sends && (inactive_too || state.is_active(other(lane))) {
            moved[lane] = values[other(lane)];
        }
    }
    for lane in active(state) {
        set(state, inst.operand(Role::Vdst)?, lane, moved[lane])?;
    }
    Some(())
}

/// Every lane another address: which of two that send to one lane wins is not documented.
fn permutation(inst: &Inst, state: &mut State, random: &mut Random) {
    let Some(address) = vector(inst, Role::Addr) else { return };
    let mut lanes: Vec<u32> = (0..32).collect();
    for n in (1..32).rev() {
        lanes.swap(n, random.below(n as u64 + 1) as usize);
    }
    let upper = if random.one_in(2) { 32 } else { 0 };
    let offset = inst.modifiers.offset as u32;
    for lane in 0..64_usize {
        let to = (lanes[lane % 32] + (lane as u32 & 32)) ^ upper;
        // More than the lanes there are, and not a multiple of four.
        let address_of = (4 * (to + 64 * random.below(4) as u32)
            + if offset.is_multiple_of(4) { random.below(4) as u32 } else { 0 })
        .wrapping_sub(offset);
        state.vgpr[address][lane] = address_of;
    }
}

fn swizzle(inst: &Inst, state: &mut State, target: Target) -> Option<()> {
    let pattern = inst.modifiers.offset as usize;
    let values = row(state, inst.operand(Role::Addr)?)?;
    let field = |at: usize| pattern >> at & 31;
    for lane in active(&state.clone()) {
        let (half, n) = (lane & 32, lane & 31);
        let from = if pattern >= 0xc000 {
            // Rotations came with gfx9.
            if fact(target, "generation") < 9 || pattern >= 0xe000 {
                return None;
            }
            let turned = if pattern >> 10 & 1 != 0 { n + 32 - field(5) } else { n + field(5) } % 32;
            half + (n & field(0) | turned & !field(0))
        } else if pattern >= 0x8000 {
            lane - lane % 4 + (pattern >> (2 * (lane % 4)) & 3)
        } else {
            half + (((n & field(0)) | field(5)) ^ field(10))
        };
        let value = if state.is_active(from) { values[from] } else { 0 };
        set(state, inst.operand(Role::Vdst)?, lane, value)?;
    }
    Some(())
}

/// One counter in LDS for the whole wave.
fn count(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    if inst.modifiers.gds {
        return None;
    }
    let at = (state.sgpr[124] & 0xffff) as usize + inst.modifiers.offset as usize;
    let old = super::access::number(&state.lds[at..at + 4]) as u32;
    let lanes = active(state);
    let count = lanes.len() as u32;
    let new = if inst.name() == "ds_append" { old.wrapping_add(count) } else { old.wrapping_sub(count) };
    state.lds[at..at + 4].copy_from_slice(&new.to_le_bytes());
    for lane in lanes {
        set(state, inst.operand(Role::Vdst)?, lane, old)?;
    }
    Some(())
}

/// An address in M0, and that some lane is active.
fn base_in_m0(_: &Inst, state: &mut State, random: &mut Random) {
    state.sgpr[124] = random.below(512) as u32 * 4;
    if state.exec() == 0 {
        state.set_mask(126, 1 << random.below(state.lanes as u64));
    }
}

/// Reads or writes a dword at M0, the offset and four times the lane.
fn by_lane(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    if inst.modifiers.gds {
        return None;
    }
    let base = (state.sgpr[124] & 0xffff) as usize + inst.modifiers.offset as usize;
    for lane in active(state) {
        let at = base + 4 * lane;
        match inst.operand(Role::Data0).copied() {
            Some(data) => {
                let value = row(state, &data)?[lane];
                state.lds[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
            None => {
                let value = super::access::number(&state.lds[at..at + 4]) as u32;
                set(state, inst.operand(Role::Vdst)?, lane, value)?;
            }
        }
    }
    Some(())
}

/// Each half is exchanged if the new value's highest bit, which is not stored, is set.
fn conditional(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    if inst.modifiers.gds {
        return None;
    }
    let before = state.clone();
    let (address, data, to) =
        (vector(inst, Role::Addr)?, inst.operand(Role::Data0)?.reg()?, inst.operand(Role::Vdst)?.reg()?);
    for lane in active(&before) {
        let at = before.vgpr[address][lane] as usize + inst.modifiers.offset as usize;
        for half in 0..2 {
            let rows = if data.file == RegFile::Accum { &before.agpr } else { &before.vgpr };
            let (at, new) = (at + 4 * half, rows[usize::from(data.first) + half][lane]);
            let rows = if to.file == RegFile::Accum { &mut state.agpr } else { &mut state.vgpr };
            rows[usize::from(to.first) + half][lane] = super::access::number(&state.lds[at..at + 4]) as u32;
            if new >> 31 != 0 {
                state.lds[at..at + 4].copy_from_slice(&(new & 0x7fff_ffff).to_le_bytes());
            }
        }
    }
    Some(())
}

fn own_places(inst: &Inst, state: &mut State, random: &mut Random) {
    let first = random.below(64);
    if let Some(address) = vector(inst, Role::Addr) {
        state.vgpr[address] = std::array::from_fn(|lane| ((first + lane as u64) % 64 * 16 + 512) as u32);
    }
}

/// Any lane of the row, or of the other row of the pair.
fn in_row(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let name = inst.name();
    let values = lane::read(state, inst.operand(Role::Src0)?, T::U32)?;
    let low = lane::read(state, inst.operand(Role::Src1)?, T::U32)?;
    let selects: [usize; 64] = if name.contains("_var_") {
        std::array::from_fn(|lane| low[lane] as usize % 16)
    } else {
        let high = scalars::source(state, inst.operand(Role::Src2)?)?;
        let all = u128::from(low[0]) | u128::from(high) << 32;
        std::array::from_fn(|lane| (all >> (lane % 16 * 4)) as usize % 16)
    };
    let to = vector(inst, Role::Vdst)?;
    let (inactive_too, zero) = (inst.modifiers.op_sel & 1 != 0, inst.modifiers.op_sel & 2 != 0);
    let before = state.clone();
    for lane in active(&before) {
        let row = (lane / 16) ^ usize::from(name.contains("permlanex"));
        let from = row * 16 + selects[lane];
        if inactive_too || before.is_active(from) {
            state.vgpr[to][lane] = values[from] as u32;
        } else if zero {
            state.vgpr[to][lane] = 0;
        }
    }
    Some(())
}

fn halves_of_wave(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let (from, to) = (vector(inst, Role::Src0)?, vector(inst, Role::Vdst)?);
    if state.lanes == 32 {
        return Some(());
    }
    let values = state.vgpr[from];
    for lane in active(state) {
        state.vgpr[to][lane] = values[(lane + 32) % 64];
    }
    Some(())
}

/// The odd rows of the first register change places with the even rows of the second; all lanes are active.
fn swap_rows(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let (a, b) = (vector(inst, Role::Vdst)?, vector(inst, Role::Src0)?);
    let rows = if inst.name().contains("16") { 16 } else { 32 };
    for lane in (0..64).filter(|lane| lane / rows % 2 == 1) {
        let (x, y) = (state.vgpr[a][lane], state.vgpr[b][lane - rows]);
        state.vgpr[a][lane] = y;
        state.vgpr[b][lane - rows] = x;
    }
    Some(())
}

/// The lane that a lane of a group of so many lanes fetches from: what HIP's `__shfl` and its relatives do in a group
/// (the HIP headers use these operations for them, and say which lane each reads).
fn in_group(name: &str, lane: usize, select: u32, width: usize) -> usize {
    let (first, at, select) = (lane / width * width, lane % width, select as usize);
    match name {
        "v_permlane_bcast_b32" => first + select % width,
        "v_permlane_up_b32" if select <= at => lane - select,
        "v_permlane_down_b32" if select < width - at => lane + select,
        // Groups below may be read, those above may not.
        "v_permlane_xor_b32" if select < 32 && lane ^ select < first + width => lane ^ select,
        _ => lane,
    }
}

/// Permutations within groups of as many lanes as the last source says.
fn group(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let (name, last) = (inst.name(), inst.operand(Role::Src2).or(inst.operand(Role::Src1))?);
    let width = scalars::source(state, last)? as usize;
    // What other widths mean is not documented.
    if !width.is_power_of_two() || width > state.lanes {
        return None;
    }
    let values = lane::read(state, inst.operand(Role::Src0)?, T::U32)?;
    let to = vector(inst, Role::Vdst)?;
    let select =
        if inst.operand(Role::Src2).is_some() { scalars::source(state, inst.operand(Role::Src1)?)? } else { 0 };
    for lane in active(state) {
        state.vgpr[to][lane] = if name == "v_permlane_idx_gen_b32" {
            // The byte address that `ds_bpermute_b32` takes.
            4 * (lane / width * width + values[lane] as usize % width) as u32
        } else {
            values[in_group(name, lane, select as u32, width)] as u32
        };
    }
    Some(())
}

fn small_groups(inst: &Inst, state: &mut State, random: &mut Random) {
    let mut set = |role: Role, value: u32| {
        if let Some(reg) =
            inst.operand(role).and_then(Operand::reg).filter(|reg| reg.file == RegFile::Scalar && reg.first < 128)
        {
            state.sgpr[usize::from(reg.first)] = value;
        }
    };
    let width = 1 << random.below(6);
    if inst.operand(Role::Src2).is_some() {
        set(Role::Src1, random.below(40) as u32);
        set(Role::Src2, width);
    } else {
        set(Role::Src1, width);
    }
}

fn all_active(_: &Inst, state: &mut State, _: &mut Random) {
    state.set_mask(126, u64::MAX);
}

/// Two halves of registers change places.
fn swap_halves(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let place = |role: Role| {
        let operand = inst.operand(role)?;
        Some((usize::from(operand.reg()?.first), if operand.half == Half::High { 16 } else { 0 }))
    };
    let (a, b) = (place(Role::Vdst)?, place(Role::Src0)?);
    let before = state.clone();
    for lane in active(&before) {
        for ((to, at), (from, shift)) in [(a, b), (b, a)] {
            let value = before.vgpr[from][lane] >> shift & 0xffff;
            state.vgpr[to][lane] = state.vgpr[to][lane] & !(0xffff << at) | value << at;
        }
    }
    Some(())
}

/// The vector registers that relative moves reach.
pub const RELATIVE: std::ops::Range<u16> = 12..44;

/// Moves between registers whose numbers M0 is added to: all of it, or ten bits for each of the two.
fn relative(inst: &Inst, state: &mut State, _: Target) -> Option<()> {
    let (name, m0, m) = (inst.name(), state.sgpr[124] as usize, inst.modifiers);
    // What M0 means to these is not documented.
    if m.dpp.is_some() || m.dpp8.is_some() || m.sdwa.is_some() {
        return None;
    }
    let two = name.contains("_2_") || name.starts_with("v_swaprel");
    let (by_source, by_result) = if two { (m0 & 0x3ff, m0 >> 16 & 0x3ff) } else { (m0, m0) };
    let from_relative = !name.starts_with("v_movreld_");
    let to_relative = !name.starts_with("v_movrels_");
    let reach = |register: usize| RELATIVE.contains(&(register as u16)).then_some(register);
    let to = reach(vector(inst, Role::Vdst)? + if to_relative { by_result } else { 0 })?;
    let operand = inst.operand(Role::Src0)?;
    let from = vector(inst, Role::Src0).map(|first| first + if from_relative { by_source } else { 0 });
    let values: [u32; 64] = match from {
        Some(from) => state.vgpr[reach(from)?],
        None => lane::read(state, operand, T::U32)?.map(|value| value as u32),
    };
    for lane in active(state) {
        let old = state.vgpr[to][lane];
        state.vgpr[to][lane] = values[lane];
        if name.starts_with("v_swaprel") {
            state.vgpr[reach(from?)?][lane] = old;
        }
    }
    Some(())
}

fn small_index(inst: &Inst, state: &mut State, random: &mut Random) {
    let two = inst.name().contains("_2_") || inst.name().starts_with("v_swaprel");
    state.sgpr[124] = (random.below(16) | if two { random.below(16) << 16 } else { 0 }) as u32;
    for register in RELATIVE {
        state.vgpr[usize::from(register)] = std::array::from_fn(|_| random.next() as u32);
    }
}

/// The definition of such an operation.
pub fn definition(name: &str) -> Option<Definition> {
    let apart = Wishes { apart: true, no_float_constants: true, no_literals: true, plain: true, ..Wishes::default() };
    let offset: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Offset => Some(random.below(3) * 20),
        _ => None,
    };
    let pattern: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::Offset => Some(match random.below(3) {
            0 => random.below(0x8000),
            1 => 0x8000 | random.below(256),
            _ => 0xc000 | random.below(0x800),
        }),
        _ => None,
    };
    let fetch: fn(&mut Random, Modifier) -> Option<u64> = |random, modifier| match modifier {
        Modifier::OpSel => Some(random.below(4)),
        _ => None,
    };
    let in_lds = |f| Definition { lds: true, wishes: apart, modifier: Some(offset), ..Definition::whole(f) };
    let moves = |f| Definition { prepare: Some(small_index), wishes: apart, relative: true, ..Definition::whole(f) };
    Some(match name {
        "ds_permute_b32" | "ds_bpermute_b32" | "ds_bpermute_fi_b32" => Definition {
            prepare: Some(permutation),
            wishes: apart,
            modifier: Some(offset),
            ..Definition::whole(crossbar)
        },
        "ds_swizzle_b32" => Definition { wishes: apart, modifier: Some(pattern), ..Definition::whole(swizzle) },
        "ds_append" | "ds_consume" => Definition { prepare: Some(base_in_m0), ..in_lds(count) },
        "ds_read_addtid_b32" | "ds_write_addtid_b32" | "ds_load_addtid_b32" | "ds_store_addtid_b32" => {
            Definition { prepare: Some(base_in_m0), ..in_lds(by_lane) }
        }
        "ds_condxchg32_rtn_b64" => {
            let eights: fn(&mut Random, Modifier) -> Option<u64> =
                |random, modifier| (modifier == Modifier::Offset).then(|| random.below(4) * 8);
            Definition { prepare: Some(own_places), modifier: Some(eights), ..in_lds(conditional) }
        }
        "v_permlane16_b32" | "v_permlanex16_b32" | "v_permlane16_var_b32" | "v_permlanex16_var_b32" => {
            Definition { modifier: Some(fetch), wishes: apart, ..Definition::whole(in_row) }
        }
        "v_permlane64_b32" => Definition { wishes: apart, ..Definition::whole(halves_of_wave) },
        "v_permlane16_swap_b32" | "v_permlane32_swap_b32" => {
            Definition { prepare: Some(all_active), wishes: apart, ..Definition::whole(swap_rows) }
        }
        "v_permlane_bcast_b32"
        | "v_permlane_up_b32"
        | "v_permlane_down_b32"
        | "v_permlane_xor_b32"
        | "v_permlane_idx_gen_b32" => {
            Definition { prepare: Some(small_groups), wishes: apart, ..Definition::whole(group) }
        }
        "v_swap_b16" => Definition { wishes: apart, ..Definition::whole(swap_halves) },
        "v_movreld_b32" | "v_movrels_b32" | "v_movrelsd_b32" | "v_movrelsd_2_b32" | "v_swaprel_b32" => moves(relative),
        _ => return None,
    })
}
