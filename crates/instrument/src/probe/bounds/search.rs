//! The search for the range of each lane's address in memory, and what is said of a lane that has none.
//!
//! Inserted code has no loops: the search is one of a fixed number of steps, of which those are skipped that a table of
//! this size does not need.

use super::check::{Pairs, SCALAR_STATES, Slot};
use crate::asm::{Global, c, s, v, v2};
use crate::frame::kept_ranges::{BAD_LANE, LAST, PLACE_LANE};
use crate::probe::Measurement;
use wavetap_amdgpu::{Opcode, Value};
use wavetap_base::error::Result;
use wavetap_profile::bounds::{ENTRY, SLOTS, STEPS, TABLE, claim, slot as slot_of_site};

/// Lanes with counters of a site: executions and lanes.
const COUNTED: u32 = 0b11;
/// The counter of lanes.
const LANES: u32 = 1;
/// Lanes that store an address, those that store what is known of the first bad access, too, and the one that then says
/// that it is there.
const STORED: u32 = 0b11;
const STORED_FIRST: u32 = 0b111_1111;
const STORED_ALL: u32 = 0b1000_0000;
/// Both halves of the end of a range that is not kept: before its start, whose high half has all bits.
const LOW_LAST: u32 = 64;

/// Searches for each lane's range in the table, whose address is in the scratch pair: the last one that starts at its
/// address or before. Its end is loaded then, and the range of the first lane that was outside is kept in the slot.
pub(super) fn search(m: &mut Measurement<'_>, pairs: Pairs, slot: Slot) -> Result<()> {
    let Pairs { base: at, address, loaded } = pairs;
    let (table, steps, next) = (m.r.scratch, m.r.first, at + 1);
    m.asm.op("v_mov_b32_e32", &[v(at), c(0)])?;
    let mut step = STEPS[STEPS.len() - 1];
    for below in STEPS.iter().rev().skip(1).chain(&[0]) {
        let skip = m.asm.new_label();
        if *below > 0 {
            m.asm.scalar_load("s_load_dword", steps, 1, table, 0)?;
            m.asm.wait_scalar_loads()?;
            m.asm.op("s_cmp_le_u32", &[s(steps), c(*below)])?;
            m.asm.branch(Opcode::S_CBRANCH_SCC1, skip);
        }
        while step > *below {
            step -= 1;
            let is_after = m.asm.mask(steps);
            m.asm.op("v_add_u32_e32", &[v(next), c(ENTRY << step), v(at)])?;
            m.asm.global_load_wide(loaded, next, table, TABLE)?;
            m.asm.wait_vector_loads(false)?;
            m.asm.op("v_cmp_le_u64_e64", &[is_after, v2(loaded), v2(address)])?;
            m.asm.states_of_scalars(SCALAR_STATES)?;
            m.asm.op("v_cndmask_b32_e64", &[v(at), v(at), v(next), is_after])?;
        }
        m.asm.bind(skip);
    }
    m.asm.global_load_wide(loaded, at, table, TABLE)?;
    m.asm.wait_vector_loads(false)?;
    keep_start(m, loaded, slot)?;
    m.asm.global_load_wide(loaded, at, table, TABLE + ENTRY / 2)?;
    m.asm.wait_vector_loads(false)?;
    keep_end(m, loaded, slot)
}

/// Keeps where the range starts that the first lane which was outside has loaded: SCC says whether that is below
/// 4 GiB. No such range is kept, as its end less a number may be below 0.
fn keep_start(m: &mut Measurement<'_>, loaded: u16, slot: Slot) -> Result<()> {
    let (outside, kept) = (m.saved_exec(), v(m.data() + 1));
    let (value, first) = (s(m.r.first), s(m.r.second));
    m.asm.first_lane(m.r.second, outside)?;
    m.asm.op("v_readlane_b32", &[value, v(loaded), first])?;
    m.asm.states_of_scalars(SCALAR_STATES)?;
    m.asm.op("v_writelane_b32", &[kept, value, c(slot.lane)])?;
    m.asm.op("v_readlane_b32", &[value, v(loaded + 1), first])?;
    m.asm.op("s_cmp_eq_u32", &[value, c(0)])?;
    m.asm.op("s_cselect_b32", &[value, Value::InlineInt(-1), value])?;
    m.asm.op("v_writelane_b32", &[kept, value, c(slot.lane + 1)])
}

/// Keeps the last address of that range from which on the bytes of an access are inside. SCC is as
/// [`keep_start`] has left it.
fn keep_end(m: &mut Measurement<'_>, loaded: u16, slot: Slot) -> Result<()> {
    let (outside, kept) = (m.saved_exec(), v(m.data() + 1));
    let halves = [s(m.r.first), s(m.r.second)];
    m.asm.first_lane(m.r.second, outside)?;
    for (half, value) in (0..).zip(halves) {
        m.asm.op("v_readlane_b32", &[value, v(loaded + half), halves[1]])?;
    }
    for value in halves {
        m.asm.op("s_cselect_b32", &[value, c(LOW_LAST), value])?;
    }
    slot.last(m, m.r.first)?;
    for (lane, value) in (slot.lane + LAST..).zip(halves) {
        m.asm.op("v_writelane_b32", &[kept, value, c(lane)])?;
    }
    Ok(())
}

/// Counts a bad access, and stores its address; of the first one of the site also what else is known. The host can see
/// it before the access is executed, which may end the program.
pub(super) fn found(m: &mut Measurement<'_>, pairs: Pairs) -> Result<()> {
    let Pairs { base: offsets, address, loaded } = pairs;
    let (exec, saved, kept) = (m.exec(), m.saved_exec(), m.data() + 1);
    let (first, second, lanes) = (m.r.first, m.r.second, m.asm.target().wave_size());
    let halves = (lanes / u32::BITS) as u16;
    for half in 0..halves {
        let mask = s(m.r.saved_exec + half);
        m.asm.op("v_writelane_b32", &[v(kept), mask, c(BAD_LANE + u32::from(half))])?;
    }
    m.asm.masks("s_bcnt1_i32_b", &[s(first), saved])?;
    m.value(LANES, s(first))?;
    m.asm.masks("s_mov_b", &[saved, exec])?;
    let write = |m: &mut Measurement<'_>, dword: u32, value: Value| {
        m.asm.op("v_writelane_b32", &[v(loaded + (dword % 2) as u16), value, c(dword / 2)])
    };
    m.asm.op("s_mov_b32", &[s(second), c(0)])?;
    for half in 0..halves {
        m.asm.read_lane(first + half, kept, BAD_LANE + u32::from(half))?;
    }
    m.asm.states_of_scalars(SCALAR_STATES)?;
    for half in 0..2 {
        write(m, 6 + u32::from(half), s(first + half))?;
    }
    let bad = m.asm.mask(first);
    m.asm.first_lane(first, bad)?;
    write(m, 12, s(first))?;
    for half in 0..2 {
        m.asm.op("v_readlane_b32", &[s(second), v(address + half), s(first)])?;
        m.asm.states_of_scalars(SCALAR_STATES)?;
        for dword in [0, 4] {
            write(m, dword + u32::from(half), s(second))?;
        }
    }
    for dword in 0..4 {
        m.asm.read_lane(second, kept, PLACE_LANE + dword)?;
        m.asm.states_of_scalars(SCALAR_STATES)?;
        write(m, 8 + dword, s(second))?;
    }
    for (dword, value) in [(2, 1), (3, 0), (13, 0), (14, 1), (15, 0)] {
        write(m, dword, c(value))?;
    }
    m.asm.exec_lanes(lanes)?;
    m.asm.lane_number(offsets)?;
    m.asm.op("v_lshlrev_b32_e32", &[v(offsets), c(3), v(offsets)])?;
    m.asm.exec_lanes(1)?;
    m.allocations()?;
    let (claims, slots) = (m.r.scratch, first);
    m.asm.scalar_load("s_load_dwordx2", slots, 2, claims, SLOTS)?;
    m.asm.wait_scalar_loads()?;
    m.asm.op("s_add_u32", &[s(slots), s(slots), c(slot_of_site(m.site()))])?;
    m.asm.op("s_addc_u32", &[s(slots + 1), s(slots + 1), c(0)])?;
    m.asm.op("s_sub_u32", &[s(claims), s(claims), c(claim(m.site()))])?;
    m.asm.op("s_subb_u32", &[s(claims + 1), s(claims + 1), c(0)])?;
    let place = |base| Global { base, offsets, flat: None, scratch: claims };
    // The data register of lane 0 holds 1.
    m.asm.global_returning("atomic_add", v(address), place(claims), v(m.data()))?;
    m.asm.wait_global_results()?;
    m.asm.op("v_readfirstlane_b32", &[s(claims), v(address)])?;
    m.asm.op("s_cmp_eq_u32", &[s(claims), c(0)])?;
    m.asm.masks("s_cselect_b", &[exec, c(STORED_FIRST), c(STORED)])?;
    m.asm.global("store_dwordx2", place(slots), v2(loaded), 0)?;
    m.asm.release_to_host()?;
    let stored = m.asm.new_label();
    m.asm.branch(Opcode::S_CBRANCH_SCC0, stored);
    m.asm.masks("s_mov_b", &[exec, c(STORED_ALL)])?;
    m.asm.global("store_dwordx2", place(slots), v2(loaded), 0)?;
    m.asm.release_to_host()?;
    m.asm.bind(stored);
    m.reach()?;
    m.asm.masks("s_mov_b", &[exec, c(COUNTED)])?;
    m.add()
}
