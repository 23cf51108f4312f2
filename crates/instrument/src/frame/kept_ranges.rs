//! What bounds checks keep of a wave from one site to the next: ranges in lanes of the data pair's high half, and the
//! first entries of the table of allocations, one for each lane, in registers for what is checked.
//!
//! A slot has four lanes: the first address of a range, and the last one at which so many bytes as the slot's sites
//! access are inside. What is in a slot is a range of the table, or one that no address is in ([`clear`]).

use super::Frame;
use crate::asm::{Asm, c, s, v};
use crate::scavenge::registers::Vectors;
use wavetap_amdgpu::{Value, scalar};
use wavetap_base::error::{Error, Result};
use wavetap_profile::bounds::{ENTRY, KEPT};

use super::prologue::Scratch;

/// The first lane of the data pair's high half that bounds checks keep something in.
pub(crate) const FIRST_LANE: u32 = 8;
/// Lanes of a mask of bad lanes while EXEC is saved.
pub(crate) const BAD_LANE: u32 = FIRST_LANE;
/// Those of workgroup x, y, z and the wave.
pub(crate) const PLACE_LANE: u32 = BAD_LANE + 2;
/// Those of EXEC while a check has fewer lanes.
pub(crate) const EXEC_LANE: u32 = PLACE_LANE + 4;
/// Lanes of a slot.
pub(crate) const SLOT_LANES: u32 = 4;
/// The first lane of the first slot: where its range starts. Whole slots are from here to the last lane.
pub(crate) const SLOT_LANE: u32 = 16;
const _: () = assert!(SLOT_LANE >= EXEC_LANE + 2 && SLOT_LANE.is_multiple_of(SLOT_LANES));
/// Lanes from there to the last address inside.
pub(crate) const LAST: u32 = 2;
/// Registers for an entry of the table.
pub(crate) const ENTRY_REGISTERS: u16 = 4;
/// The first of these among the registers for what is checked.
pub(crate) const ENTRY_REGISTER: u16 = 2;

/// Halves of where a range starts that no address is in, and of its last address: at no number of bytes that a site
/// may subtract from the latter does it become an address that is not before the start.
const NO_START: Value = Value::InlineInt(-1);
const NO_LAST: Value = Value::InlineInt(64);

/// How many slots a wave has.
pub(crate) fn slots(lanes: u32) -> u32 {
    (lanes - SLOT_LANE) / SLOT_LANES
}

/// Leaves in lanes where the wave is in the grid, that no range is known to be allocated, and the table's first entries
/// in their registers. The pair `table` holds the address of the table's header. All lanes are active.
pub(super) fn begin(frame: &Frame<'_>, asm: &mut Asm, t: &Scratch, place: [u16; 4], table: u16) -> Result<()> {
    let vectors = frame.own.vectors;
    if frame.spill_slots.is_none() {
        load_entries(asm, vectors, table)?;
    }
    clear(asm, vectors)?;
    for (lane, register) in (PLACE_LANE..).zip(place) {
        let value = asm.vector_source(register, t.through)?;
        asm.op("v_writelane_b32", &[v(vectors.data + 1), value, c(lane)])?;
    }
    if frame.spill_slots.is_none() { asm.wait_vector_loads(false) } else { Ok(()) }
}

/// Lets every address be inside of what each slot holds, in waves that do not count: nearly always, they have to look
/// no further. All lanes are active afterwards, and the lanes before the slots hold 0.
pub(super) fn disable(asm: &mut Asm, vectors: Vectors) -> Result<()> {
    let lanes = asm.target().wave_size();
    asm.exec_lanes(lanes)?;
    asm.op("v_mov_b32_e32", &[v(vectors.data + 1), c(0)])?;
    select(asm, LAST)?;
    asm.op("v_mov_b32_e32", &[v(vectors.data + 1), Value::InlineInt(-1)])?;
    asm.exec_lanes(lanes)
}

/// Puts a range that no address is in into each slot.
fn clear(asm: &mut Asm, vectors: Vectors) -> Result<()> {
    for (value, first) in [(NO_START, 0), (NO_LAST, LAST)] {
        select(asm, first)?;
        asm.op("v_mov_b32_e32", &[v(vectors.data + 1), value])?;
    }
    asm.exec_lanes(u32::MAX)
}

/// Sets EXEC to the lanes of all slots with one of their addresses.
fn select(asm: &mut Asm, first: u32) -> Result<()> {
    let lanes = asm.target().wave_size();
    let slots = (SLOT_LANE..lanes).step_by(SLOT_LANES as usize);
    let mask: u64 = slots.map(|lane| 0b11 << (lane + first)).sum();
    (0..lanes / u32::BITS).try_for_each(|half| {
        let bits = (mask >> (half * u32::BITS)) as u32;
        asm.op("s_mov_b32", &[s(scalar::EXEC + half as u16), Value::Literal(bits)])
    })
}

/// Loads the table's first entries, which is not at once. All lanes are active; the pair `table` holds the address of
/// the table's header. Destroys the first register for what is checked.
pub(crate) fn load_entries(asm: &mut Asm, vectors: Vectors, table: u16) -> Result<()> {
    let payload = vectors.payload.ok_or_else(|| Error::internal("no registers for what is checked"))?;
    asm.lane_number(payload)?;
    asm.op("v_lshlrev_b32_e32", &[v(payload), c(ENTRY.ilog2()), v(payload)])?;
    asm.global_load(payload + ENTRY_REGISTER, ENTRY_REGISTERS as u8, payload, table, KEPT)
}
