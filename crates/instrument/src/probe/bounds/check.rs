//! The check of an access: what is executed as long as all lanes are in the range of the slot, and what follows if not.

use super::{Access, drops, search};
use crate::asm::{c, s, s2, v, v2};
use crate::frame::kept_ranges::{ENTRY_REGISTER, LAST, SLOT_LANE, SLOT_LANES};
use crate::probe::Measurement;
use rustc_hash::FxHashMap;
use wavetap_amdgpu::{Opcode, Reg, Value};
use wavetap_analysis::kernel::AddressForm;
use wavetap_analysis::kernel::edit::Label;
use wavetap_base::error::{Error, Result};
use wavetap_profile::bounds::{PRIVATE, SHARED};

use super::pointers::Pointer;

/// Wait states between a vector instruction that writes a scalar register and one that reads it (gfx94x).
pub(super) const SCALAR_STATES: i64 = 2;
/// Bits of an address in scratch that name the lane, above bit 32 (as in the emulator and `resolve`).
const LANE_BITS: u32 = 26;

/// The vector registers of a search, pairs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pairs {
    /// Where the search is, and the entry that it looks at.
    pub(super) base: u16,
    pub(super) address: u16,
    /// What is loaded.
    pub(super) loaded: u16,
}

/// Where a range is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    /// The first lane.
    pub(super) lane: u32,
    /// Bytes of an access for which its last address is.
    pub(super) bytes: u32,
}

impl Slot {
    /// The slot of each access, by its pointer and its bytes: one of so many.
    pub(super) fn choose(accesses: impl Iterator<Item = (Pointer, u32)>, most: u32) -> Vec<Slot> {
        let mut chosen: Vec<u32> = Vec::new();
        let mut numbers: FxHashMap<(Pointer, u32), u32> = FxHashMap::default();
        let slot = |access: (Pointer, u32)| {
            let next = numbers.len() as u32;
            let number = *numbers.entry(access).or_insert(next) % most;
            if number == chosen.len() as u32 {
                chosen.push(access.1);
            }
            Slot { lane: SLOT_LANE + number * SLOT_LANES, bytes: chosen[number as usize] }
        };
        accesses.map(slot).collect()
    }

    /// Turns the end of a range, in a pair, into what the slot keeps of it. Destroys SCC.
    pub(super) fn last(self, m: &mut Measurement<'_>, pair: u16) -> Result<()> {
        subtract(m, pair, self.bytes.into())
    }

    /// Reads what it keeps: the first address of the range, and the last one.
    pub(super) fn read(self, m: &mut Measurement<'_>, registers: [u16; 4]) -> Result<()> {
        let kept = m.data() + 1;
        (self.lane..).zip(registers).try_for_each(|(lane, register)| m.asm.read_lane(register, kept, lane))
    }
}

/// Subtracts from a pair of scalar registers. Destroys SCC.
pub(super) fn subtract(m: &mut Measurement<'_>, pair: u16, number: i64) -> Result<()> {
    if number == 0 {
        return Ok(());
    }
    m.asm.op("s_sub_u32", &[s(pair), s(pair), c(number as u32)])?;
    m.asm.op("s_subb_u32", &[s(pair + 1), s(pair + 1), c((number >> u32::BITS) as u32)])
}

impl Access {
    /// Checks it; if it is dropped, lanes that are out of bounds are taken out of EXEC.
    pub(super) fn check(&self, m: &mut Measurement<'_>, slot: Slot) -> Result<()> {
        if let Some(buffer) = &self.buffer {
            return self.check_buffer(buffer, m, slot);
        }
        let payload = m.payload()?;
        let (outside, done) = (m.saved_exec(), m.asm.new_label());
        let (start, last) = (m.r.first, m.r.scratch);
        let address = self.address(m, payload)?;
        slot.read(m, [start, start + 1, last, last + 1])?;
        let less = self.less(slot);
        subtract(m, last, less)?;
        m.asm.op("v_cmp_gt_u64_e64", &[outside, s2(start), v2(address)])?;
        if less == 0 {
            m.asm.states_of_scalars(1)?;
        }
        self.join(m, outside, last, address)?;
        let missed = m.asm.new_label();
        m.asm.branch(Opcode::S_CBRANCH_SCC1, missed);
        m.asm.aside();
        m.asm.bind(missed);
        m.leave_if_disabled()?;
        if self.is_flat {
            m.allocations()?;
            self.leave_out_other_memory(m, address)?;
            m.asm.branch(Opcode::S_CBRANCH_SCC0, done);
        }
        self.find(m, slot, address, done)?;
        m.asm.bind(done);
        m.asm.aside_end();
        Ok(())
    }

    /// Looks up where the lanes in the saved pair are, of which EXEC has all, and counts those that are in no range.
    /// Goes on to `done` if all are in the range that the slot keeps now.
    pub(super) fn find(&self, m: &mut Measurement<'_>, slot: Slot, address: u16, done: Label) -> Result<()> {
        let payload = m.payload()?;
        let keeps_entries = m.keeps_payload();
        if keeps_entries {
            self.look_up(m, slot, address, done)?;
        }
        let pairs = Pairs { base: payload, address: payload + 2, loaded: payload + 4 };
        for half in 0..2 {
            m.asm.op("v_mov_b32_e32", &[v(pairs.address + half), v(address + half)])?;
        }
        m.allocations()?;
        search::search(m, pairs, slot)?;
        self.compare(m, pairs)?;
        let searched = m.asm.new_label();
        m.asm.branch(Opcode::S_CBRANCH_SCC0, searched);
        search::found(m, pairs)?;
        // Of a buffer, EXEC is restored first.
        if self.is_dropped && self.buffer.is_none() {
            drops::narrow(m)?;
        }
        m.asm.bind(searched);
        if keeps_entries {
            let (exec, saved) = (m.exec(), m.saved_exec());
            m.allocations()?;
            m.asm.masks("s_mov_b", &[saved, exec])?;
            m.asm.exec_lanes(u32::MAX)?;
            m.load_entries()?;
            m.asm.wait_vector_loads(false)?;
            m.asm.masks("s_mov_b", &[exec, saved])?;
        }
        Ok(())
    }

    /// How much less than what the slot keeps the last address is from which on this access is inside.
    pub(super) fn less(&self, slot: Slot) -> i64 {
        i64::from(self.bytes) - i64::from(slot.bytes)
    }

    /// Each lane's address: the pair that holds it. Destroys SCC, the pair of the first register and the saved pair.
    fn address(&self, m: &mut Measurement<'_>, into: u16) -> Result<u16> {
        let vector = self.operands.vectors.first().ok_or_else(|| Error::internal("an address of no register"))?.first;
        let (carry, sum, offset) = (m.saved_exec(), m.r.first, self.offset as u32);
        if self.operands.form == AddressForm::Lanes {
            if offset == 0 {
                return Ok(vector);
            }
            m.asm.op("s_mov_b32", &[s(sum), c(offset)])?;
            m.asm.multiply_add(true, into, carry, [s(sum), c(1)], v2(vector))?;
            return Ok(into);
        }
        let Some(Value::Reg(base)) = self.operands.scalars.first() else {
            return Err(Error::internal("an address of no scalar register"));
        };
        let mut pair = Reg { dwords: 2, ..*base };
        if offset != 0 {
            m.asm.op("s_add_u32", &[s(sum), s(pair.first), c(offset)])?;
            m.asm.op("s_addc_u32", &[s(sum + 1), s(pair.first + 1), c((self.offset >> 31) as u32)])?;
            pair.first = sum;
        }
        let signed = m.asm.target().signed_global_offsets();
        m.asm.multiply_add(signed, into, carry, [v(vector), c(self.scale)], Value::Reg(pair))?;
        Ok(into)
    }

    /// Adds the lanes to a mask whose address is after the last one in a pair, which is destroyed: SCC says whether
    /// there are any in the mask.
    pub(super) fn join(&self, m: &mut Measurement<'_>, mask: Value, last: u16, address: u16) -> Result<()> {
        let after = m.asm.mask(last);
        m.asm.op("v_cmp_lt_u64_e64", &[after, s2(last), v2(address)])?;
        m.asm.masks("s_or_b", &[mask, mask, after])
    }

    /// Lanes whose flat addresses are in LDS or scratch are not outside: SCC says whether others are. The table's
    /// address is in the scratch pair, which is destroyed.
    fn leave_out_other_memory(&self, m: &mut Measurement<'_>, address: u16) -> Result<()> {
        let (outside, register, mask) = (m.saved_exec(), m.r.first, m.asm.mask(m.r.first));
        let (table, high) = (m.r.scratch, v(address + 1));
        m.asm.scalar_load("s_load_dword", register, 1, table, SHARED)?;
        m.asm.wait_scalar_loads()?;
        m.asm.op("v_cmp_ne_u32_e64", &[mask, s(register), high])?;
        m.asm.masks("s_and_b", &[outside, outside, mask])?;
        m.asm.scalar_load("s_load_dword", register, 1, table, PRIVATE)?;
        m.asm.wait_scalar_loads()?;
        if !m.asm.target().has_flat_scratch_base() {
            m.asm.op("v_cmp_ne_u32_e64", &[mask, s(register), high])?;
            return m.asm.masks("s_and_b", &[outside, outside, mask]);
        }
        let (lanes, below) = ((1 << LANE_BITS) - 1, m.asm.mask(table));
        m.asm.op("s_andn2_b32", &[s(register), s(register), c(lanes)])?;
        m.asm.op("v_cmp_gt_u32_e64", &[below, s(register), high])?;
        m.asm.op("s_or_b32", &[s(register), s(register), c(lanes)])?;
        m.asm.op("v_cmp_lt_u32_e64", &[mask, s(register), high])?;
        m.asm.masks("s_or_b", &[mask, mask, below])?;
        m.asm.masks("s_and_b", &[outside, outside, mask])
    }

    /// Finds the range of the first lane that is outside among the entries in registers, and puts it into the slot.
    /// Goes on to `done` if no lane is outside of it, too. Where the table has more entries than a wave has lanes,
    /// those in registers are all 0.
    fn look_up(&self, m: &mut Measurement<'_>, slot: Slot, address: u16, done: Label) -> Result<()> {
        let (exec, outside) = (m.exec(), m.saved_exec());
        let (first, second, scratch) = (m.r.first, m.r.second, m.r.scratch);
        let (entries, kept) = (m.payload()? + ENTRY_REGISTER, v(m.data() + 1));
        let (found, searched) = (m.asm.mask(first), m.asm.new_label());
        m.asm.first_lane(scratch, outside)?;
        for half in 0..2 {
            m.asm.op("v_readlane_b32", &[s(first + half), v(address + half), s(scratch)])?;
        }
        let saved = m.asm.mask(scratch);
        m.asm.masks("s_mov_b", &[saved, exec])?;
        m.asm.exec_lanes(u32::MAX)?;
        m.asm.op("v_cmp_ge_u64_e64", &[found, s2(first), v2(entries)])?;
        m.asm.masks("s_mov_b", &[exec, saved])?;
        m.asm.masks("s_bcnt1_i32_b", &[s(second), found])?;
        m.asm.op("s_sub_u32", &[s(second), s(second), c(1)])?;
        // Four wait states between what vector instructions wrote there and a lane that it selects (gfx9).
        m.asm.states(1)?;
        let (start, end) = (scratch, first);
        // The second register, which has the number of the lane, is the last to be written.
        for (dword, register) in (0..).zip([start, start + 1, end, end + 1]) {
            m.asm.op("v_readlane_b32", &[s(register), v(entries + dword), s(second)])?;
        }
        m.asm.op("s_cmp_eq_u32", &[s(start + 1), c(0)])?;
        m.asm.branch(Opcode::S_CBRANCH_SCC1, searched);
        slot.last(m, end)?;
        for (lane, register) in (slot.lane..).zip([start, start + 1]) {
            m.asm.op("v_writelane_b32", &[kept, s(register), c(lane)])?;
        }
        for (lane, register) in (slot.lane + LAST..).zip([end, end + 1]) {
            m.asm.op("v_writelane_b32", &[kept, s(register), c(lane)])?;
        }
        subtract(m, end, self.less(slot))?;
        let mask = m.asm.mask(start);
        m.asm.op("v_cmp_gt_u64_e64", &[mask, s2(start), v2(address)])?;
        self.join(m, mask, end, address)?;
        m.asm.masks("s_and_b", &[outside, outside, mask])?;
        m.asm.branch(Opcode::S_CBRANCH_SCC0, done);
        m.asm.bind(searched);
        Ok(())
    }

    /// Leaves the lanes in the saved pair that were outside and are outside of their range in the table: SCC says
    /// whether there are such.
    fn compare(&self, m: &mut Measurement<'_>, pairs: Pairs) -> Result<()> {
        let (outside, [one, other]) = (m.saved_exec(), [m.r.first, m.r.scratch].map(|first| m.asm.mask(first)));
        if let Some(buffer) = &self.buffer {
            buffer.last_byte(m, pairs, self)?;
        }
        m.asm.op("v_cmp_le_u64_e64", &[one, v2(pairs.loaded), v2(pairs.address)])?;
        if self.buffer.is_none() {
            m.asm.multiply_add(false, pairs.base, other, [c(self.bytes - 1), c(1)], v2(pairs.address))?;
        }
        m.asm.op("v_cmp_le_u64_e64", &[other, v2(pairs.loaded), v2(pairs.base)])?;
        m.asm.masks("s_or_b", &[one, one, other])?;
        m.asm.masks("s_and_b", &[outside, outside, one])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_base::entity::InstId;

    #[test]
    fn accesses_by_one_pointer_and_of_one_size_share_a_slot() {
        let loaded = |inst, dword| Pointer::Loaded(InstId(inst), dword);
        let accesses = [
            (loaded(1, 0), 4),
            (loaded(1, 2), 4),
            (loaded(1, 0), 4),
            (loaded(1, 0), 8),
            (Pointer::Access(InstId(1)), 4),
            (loaded(2, 0), 16),
        ];
        let slots = Slot::choose(accesses.into_iter(), 4);
        let lanes: Vec<u32> = slots.iter().map(|slot| (slot.lane - SLOT_LANE) / SLOT_LANES).collect();
        assert_eq!(lanes, [0, 1, 0, 2, 3, 0]);
        // The last one has to share a slot, which stays that of 4 bytes.
        assert_eq!(slots.iter().map(|slot| slot.bytes).collect::<Vec<_>>(), [4, 4, 4, 8, 4, 4]);
    }
}
