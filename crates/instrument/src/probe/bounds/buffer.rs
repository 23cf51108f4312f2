//! The check of a buffer instruction. `docs/reference/buffer-bounds.md` has the rules by which lanes are in range of a
//! descriptor, on each target, and where they are from: here are those of gfx9 to gfx12.
//!
//! The first test is the same for all lanes: a descriptor that admits the bytes from its base on, as many as it has
//! records, and of which all are in the range of the slot. Where it does not hold, EXEC is set to the lanes that are in
//! range of the descriptor, and their addresses are checked as those of other accesses are. In which lanes the hardware
//! executes a part of several dwords matters for what is found in the table alone.
//!
//! A descriptor of another kind (swizzled, or one that adds the lane's number, or for which no rule is known) has no
//! checked lanes: such executions are counted by themselves.

use super::check::{Pairs, Slot, subtract};
use super::{Access, drops};
use crate::asm::{c, s, s2, v, v2};
use crate::frame::kept_ranges::EXEC_LANE;
use crate::function::ClonedFunction;
use crate::probe::Measurement;
use wavetap_amdgpu::{Encoding, Flags, Inst, Opcode, OpcodeFlags, Target, Value};
use wavetap_analysis::kernel::edit::Label;
use wavetap_analysis::kernel::{AddressForm, AddressOperands};
use wavetap_base::entity::InstId;
use wavetap_base::error::Result;

/// Bytes of a base in the second dword of a descriptor, and its stride there.
const BASE_BITS: u32 = 0xffff;
const STRIDE_BITS: u32 = 0x3fff_0000;
/// The stride as a field: width and first bit, as `s_bfe_u32` has them.
const STRIDE_FIELD: u32 = 14 << 16 | 16;
/// In the last dword: `ADD_TID_ENABLE`, and `OOB_SELECT` (gfx10 to gfx12).
const ADD_LANE: u32 = 1 << 23;
const SELECT_BITS: u32 = 3 << SELECT;
const SELECT: u32 = 28;
const SELECT_FIELD: u32 = 2 << 16 | SELECT;
/// The values of `OOB_SELECT` with which each element has its bytes, and with which records are bytes.
const SELECT_STRUCTURED: u32 = 0;
const SELECT_BYTES: u32 = 3;
/// The bit of `OOB_SELECT` without which elements are counted.
const SELECT_NO_INDEX: u32 = SELECT + 1;
/// What is in range of a buffer by itself.
const UNIT: u32 = 4;
/// The counter of executions that are not checked.
const UNCHECKED: u32 = 2;

/// What the lanes of a buffer instruction access.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffer {
    /// The first of four scalar registers.
    descriptor: u16,
    /// The offset of all lanes.
    scalar: Value,
    /// Vector registers: the index and the offset of each lane.
    index: Option<u16>,
    offset: Option<u16>,
    /// Bytes that are in range or not in one piece: all of them, or those of a dword.
    unit: u32,
}

impl Buffer {
    /// That of an instruction, or why there is none.
    pub(super) fn of(
        function: &ClonedFunction<'_>,
        id: InstId,
        operands: &AddressOperands,
    ) -> std::result::Result<Buffer, &'static str> {
        let inst: &Inst = function.body.inst(id);
        let bytes = u32::from(inst.variant.memory_bytes);
        if function.body.target().has_wide_buffers() {
            return Err("descriptors of this target are not checked");
        }
        if inst.variant.encoding == Encoding::Mtbuf || bytes == 0 {
            return Err("its format says how many bytes it accesses");
        }
        if inst.modifiers.lds || inst.is_any(OpcodeFlags::TO_LDS) {
            return Err("lanes without a place in LDS do not load");
        }
        let unknown = "its addresses cannot be computed before it";
        let (AddressForm::Buffer, Some(Value::Reg(descriptor))) = (operands.form, operands.scalars.first()) else {
            return Err(unknown);
        };
        let scalar = operands.scalars.get(4).copied().unwrap_or(Value::InlineInt(0));
        if !matches!(scalar, Value::Reg(_) | Value::InlineInt(_) | Value::InlineFloat(_)) {
            return Err(unknown);
        }
        let (idxen, offen) = (inst.modifiers.idxen, inst.modifiers.offen);
        if operands.vectors.len() != usize::from(idxen) + usize::from(offen) {
            return Err(unknown);
        }
        let of = |is_used: bool, place: usize| if is_used { Some(operands.vectors[place].first) } else { None };
        let whole = inst.variant.flags.contains(Flags::ATOMIC);
        Ok(Buffer {
            descriptor: descriptor.first,
            scalar,
            index: of(idxen, 0),
            offset: of(offen, usize::from(idxen)),
            unit: if whole { bytes } else { bytes.min(UNIT) },
        })
    }

    /// A dword of the descriptor.
    fn word(&self, number: u16) -> Value {
        s(self.descriptor + number)
    }

    /// Whether all that is in range is as many bytes from the base on as there are records: SCC is 0 then. Destroys the
    /// pair of the first register.
    fn test_plain(&self, m: &mut Measurement<'_>) -> Result<()> {
        let (first, second, target) = (s(m.r.first), s(m.r.second), m.asm.target());
        let stride = if self.index.is_some() { STRIDE_BITS } else { 0 };
        m.asm.op("s_and_b32", &[first, self.word(1), c(swizzle_bits(target) | stride)])?;
        if has_select(target) {
            m.asm.op("s_and_b32", &[second, self.word(3), c(SELECT_BITS | ADD_LANE)])?;
            m.asm.op("s_xor_b32", &[second, second, c(SELECT_BYTES << SELECT)])?;
        } else {
            m.asm.op("s_and_b32", &[second, self.word(3), c(ADD_LANE)])?;
        }
        m.asm.op("s_or_b32", &[first, first, second])
    }

    /// Goes on to a label if no rule says which lanes are in range. Destroys SCC and the pair of the first register.
    fn leave_if_unknown(&self, m: &mut Measurement<'_>, unknown: Label) -> Result<()> {
        let (first, second, target) = (s(m.r.first), s(m.r.second), m.asm.target());
        m.asm.op("s_and_b32", &[first, self.word(1), c(swizzle_bits(target))])?;
        m.asm.op("s_and_b32", &[second, self.word(3), c(ADD_LANE)])?;
        m.asm.op("s_or_b32", &[first, first, second])?;
        m.asm.branch(Opcode::S_CBRANCH_SCC1, unknown);
        if self.index.is_none() || !has_select(target) {
            return Ok(());
        }
        let is_known = m.asm.new_label();
        m.asm.op("s_and_b32", &[first, self.word(1), c(STRIDE_BITS)])?;
        m.asm.branch(Opcode::S_CBRANCH_SCC0, is_known);
        m.asm.op("s_bfe_u32", &[first, self.word(3), c(SELECT_FIELD)])?;
        m.asm.op("s_cmp_eq_u32", &[first, c(SELECT_BYTES)])?;
        m.asm.branch(Opcode::S_CBRANCH_SCC1, unknown);
        m.asm.bind(is_known);
        Ok(())
    }

    /// Puts into the first register the largest offset of a lane, the instruction's included, at which something is in
    /// range of the buffer; goes on to `all` if there is none, to `none` if nothing is in range. Destroys SCC.
    fn largest_offset(&self, m: &mut Measurement<'_>, all: Label, none: Label) -> Result<()> {
        let (first, target) = (s(m.r.first), m.asm.target());
        let (in_bytes, found) = (m.asm.new_label(), m.asm.new_label());
        if has_select(target) {
            m.asm.op("s_bfe_u32", &[first, self.word(3), c(SELECT_FIELD)])?;
            m.asm.op("s_cmp_eq_u32", &[first, c(SELECT_BYTES)])?;
            m.asm.branch(Opcode::S_CBRANCH_SCC1, in_bytes);
            m.asm.op("s_cmp_eq_u32", &[self.word(2), c(0)])?;
            m.asm.branch(Opcode::S_CBRANCH_SCC1, none);
            m.asm.op("s_cmp_eq_u32", &[first, c(SELECT_STRUCTURED)])?;
            m.asm.branch(Opcode::S_CBRANCH_SCC0, all);
            m.asm.op("s_bfe_u32", &[first, self.word(1), c(STRIDE_FIELD)])?;
            m.asm.op("s_sub_u32", &[first, first, c(self.unit)])?;
            m.asm.branch(Opcode::S_CBRANCH_SCC1, none);
            m.asm.branch(Opcode::S_BRANCH, found);
        } else if self.index.is_some() {
            m.asm.op("s_and_b32", &[first, self.word(1), c(STRIDE_BITS)])?;
            m.asm.branch(Opcode::S_CBRANCH_SCC1, all);
        }
        m.asm.bind(in_bytes);
        for (from, less) in [(self.word(2), self.scalar), (first, c(self.unit))] {
            m.asm.op("s_sub_u32", &[first, from, less])?;
            m.asm.branch(Opcode::S_CBRANCH_SCC1, none);
        }
        m.asm.bind(found);
        Ok(())
    }

    /// Each lane's offset with the instruction's, in 32 bits, without the index and the scalar offset.
    fn lane_offset(&self, m: &mut Measurement<'_>, to: u16, immediate: u32) -> Result<()> {
        match self.offset {
            Some(offset) if immediate != 0 => m.asm.op("v_add_u32_e32", &[v(to), c(immediate), v(offset)]),
            Some(offset) => m.asm.op("v_mov_b32_e32", &[v(to), v(offset)]),
            None => m.asm.op("v_mov_b32_e32", &[v(to), c(immediate)]),
        }
    }

    /// Sets EXEC to the lanes that are in range, by their offsets in a register, and keeps in lanes what it was: SCC
    /// says whether there are any. Goes on to `none` before that if nothing is in range.
    fn select(&self, m: &mut Measurement<'_>, offsets: u16, none: Label) -> Result<()> {
        let (exec, other, within) = (m.exec(), m.saved_exec(), m.asm.mask(m.r.scratch));
        let (all, compared) = (m.asm.new_label(), m.asm.new_label());
        self.largest_offset(m, all, none)?;
        m.asm.op("v_cmp_ge_u32_e64", &[within, s(m.r.first), v(offsets)])?;
        m.asm.branch(Opcode::S_BRANCH, compared);
        m.asm.bind(all);
        m.asm.masks("s_mov_b", &[within, exec])?;
        m.asm.bind(compared);
        if let Some(index) = self.index {
            let counted = m.asm.new_label();
            let records = s(m.r.first);
            if has_select(m.asm.target()) {
                m.asm.op("s_bitcmp1_b32", &[self.word(3), c(SELECT_NO_INDEX)])?;
                m.asm.branch(Opcode::S_CBRANCH_SCC1, counted);
            } else {
                m.asm.op("s_and_b32", &[records, self.word(1), c(STRIDE_BITS)])?;
                m.asm.branch(Opcode::S_CBRANCH_SCC0, counted);
            }
            m.asm.op("s_mov_b32", &[records, self.word(2)])?;
            m.asm.op("v_cmp_gt_u32_e64", &[other, records, v(index)])?;
            m.asm.masks("s_and_b", &[within, within, other])?;
            m.asm.bind(counted);
        }
        m.asm.masks("s_mov_b", &[other, exec])?;
        let kept = v(m.data() + 1);
        for half in 0..halves(m.asm.target()) {
            m.asm.op("v_writelane_b32", &[kept, s(m.r.saved_exec + half), c(EXEC_LANE + u32::from(half))])?;
        }
        m.asm.masks("s_and_b", &[exec, exec, within])
    }

    /// Restores EXEC after [`Buffer::select`].
    fn restore_exec(m: &mut Measurement<'_>) -> Result<()> {
        let (exec, saved, kept) = (m.exec(), m.saved_exec(), m.data() + 1);
        for half in 0..halves(m.asm.target()) {
            m.asm.read_lane(m.r.saved_exec + half, kept, EXEC_LANE + u32::from(half))?;
        }
        m.asm.masks("s_mov_b", &[exec, saved])
    }

    /// Each lane's address, into a pair. Destroys SCC, the pair of the first register, the scratch pair and the saved
    /// pair.
    fn address(&self, m: &mut Measurement<'_>, pair: u16, immediate: u32) -> Result<()> {
        let (carry, stride) = (m.saved_exec(), s(m.r.scratch));
        let base = [s(m.r.first), s(m.r.second)];
        // Once more after EXEC was written: on gfx11.5 no sum may be of results from before and after that.
        self.lane_offset(m, pair, immediate)?;
        if let Some(index) = self.index {
            m.asm.op("s_bfe_u32", &[stride, self.word(1), c(STRIDE_FIELD)])?;
            m.asm.op("v_mul_lo_u32", &[v(pair + 1), v(index), stride])?;
            m.asm.add_with_carry(pair, carry, v(pair + 1), pair)?;
            m.asm.op("v_mul_hi_u32", &[v(pair + 1), v(index), stride])?;
            m.asm.add_carry(pair + 1, carry, pair + 1)?;
        } else {
            m.asm.op("v_mov_b32_e32", &[v(pair + 1), c(0)])?;
        }
        m.asm.op("s_and_b32", &[base[1], self.word(1), c(BASE_BITS)])?;
        m.asm.op("s_add_u32", &[base[0], self.word(0), self.scalar])?;
        m.asm.op("s_addc_u32", &[base[1], base[1], c(0)])?;
        m.asm.add_with_carry(pair, carry, base[0], pair)?;
        m.asm.add_carry(pair + 1, carry, pair + 1)?;
        m.asm.op("v_add_u32_e32", &[v(pair + 1), base[1], v(pair + 1)])
    }

    /// The last byte that each lane accesses, into the pair of the search. Destroys SCC, the pair of the first register
    /// and the scratch pair. Lanes are those of [`Buffer::select`].
    pub(super) fn last_byte(&self, m: &mut Measurement<'_>, pairs: Pairs, access: &Access) -> Result<()> {
        let (to, first) = (pairs.base, s(m.r.first));
        let (all, none, done) = (m.asm.new_label(), m.asm.new_label(), m.asm.new_label());
        if access.bytes > self.unit {
            self.largest_offset(m, all, none)?;
            self.lane_offset(m, to, access.offset as u32)?;
            let difference = [v(to), first, v(to)];
            m.asm.op("v_sub_u32_e32", &difference).or_else(|_| m.asm.op("v_sub_nc_u32_e32", &difference))?;
            m.asm.op("v_and_b32_e32", &[v(to), c(UNIT.wrapping_neg()), v(to)])?;
            m.asm.op("v_min_u32_e32", &[v(to), c(access.bytes - UNIT), v(to)])?;
            m.asm.op("v_add_u32_e32", &[v(to), c(UNIT - 1), v(to)])?;
            m.asm.branch(Opcode::S_BRANCH, done);
        }
        m.asm.bind(all);
        m.asm.bind(none);
        m.asm.op("v_mov_b32_e32", &[v(to), c(access.bytes - 1)])?;
        m.asm.bind(done);
        let carry = m.asm.mask(m.r.scratch);
        m.asm.add_with_carry(to, carry, v(pairs.address), to)?;
        m.asm.add_carry(to + 1, carry, pairs.address + 1)
    }
}

impl Access {
    /// Checks the access of a buffer.
    pub(super) fn check_buffer(&self, buffer: &Buffer, m: &mut Measurement<'_>, slot: Slot) -> Result<()> {
        let address = m.payload()?;
        let (exec, outside) = (m.exec(), m.saved_exec());
        let (first, last) = (m.r.first, m.r.scratch);
        let (missed, unknown, restore, done) =
            (m.asm.new_label(), m.asm.new_label(), m.asm.new_label(), m.asm.new_label());
        buffer.test_plain(m)?;
        m.asm.branch(Opcode::S_CBRANCH_SCC1, missed);
        slot.read(m, [first, first + 1, last, last + 1])?;
        let end = m.r.saved_exec;
        m.asm.op("s_and_b32", &[s(end + 1), buffer.word(1), c(BASE_BITS)])?;
        m.asm.op("s_sub_u32", &[s(first), buffer.word(0), s(first)])?;
        m.asm.op("s_subb_u32", &[s(first + 1), s(end + 1), s(first + 1)])?;
        m.asm.branch(Opcode::S_CBRANCH_SCC1, missed);
        m.asm.op("s_add_u32", &[s(end), buffer.word(0), buffer.word(2)])?;
        m.asm.op("s_addc_u32", &[s(end + 1), s(end + 1), c(0)])?;
        subtract(m, end, slot.bytes.into())?;
        m.asm.op("s_sub_u32", &[s(last), s(last), s(end)])?;
        m.asm.op("s_subb_u32", &[s(last), s(last + 1), s(end + 1)])?;
        m.asm.branch(Opcode::S_CBRANCH_SCC1, missed);
        m.asm.aside();
        m.asm.bind(missed);
        m.leave_if_disabled()?;
        m.asm.branch(Opcode::S_CBRANCH_EXECZ, done);
        buffer.leave_if_unknown(m, unknown)?;
        if self.is_dropped {
            drops::none_bad(m)?;
        }
        buffer.lane_offset(m, address, self.offset as u32)?;
        buffer.select(m, address, done)?;
        m.asm.branch(Opcode::S_CBRANCH_SCC0, restore);
        buffer.address(m, address, self.offset as u32)?;
        slot.read(m, [first, first + 1, last, last + 1])?;
        let less = self.less(slot);
        subtract(m, last, less)?;
        m.asm.op("v_cmp_gt_u64_e64", &[outside, s2(first), v2(address)])?;
        if less == 0 {
            m.asm.states_of_scalars(1)?;
        }
        self.join(m, outside, last, address)?;
        m.asm.branch(Opcode::S_CBRANCH_SCC0, restore);
        // Four wait states between what vector instructions wrote there and a lane that it selects (gfx9).
        m.asm.states(1)?;
        self.find(m, slot, address, restore)?;
        m.asm.bind(restore);
        Buffer::restore_exec(m)?;
        if self.is_dropped {
            drops::narrow(m)?;
        }
        m.asm.branch(Opcode::S_BRANCH, done);
        m.asm.bind(unknown);
        m.value(UNCHECKED, c(1))?;
        m.reach()?;
        m.asm.masks("s_mov_b", &[outside, exec])?;
        m.asm.masks("s_mov_b", &[exec, c(1 << UNCHECKED)])?;
        m.add()?;
        m.asm.bind(done);
        m.asm.aside_end();
        Ok(())
    }
}

/// Bits of the second dword of which none is set in a buffer that is not swizzled.
fn swizzle_bits(target: Target) -> u32 {
    if target.generation() >= 11 { 3 << 30 } else { 1 << 31 }
}

/// Whether descriptors choose how they are checked.
fn has_select(target: Target) -> bool {
    target.generation() >= 10
}

/// Scalar registers of a mask of lanes.
fn halves(target: Target) -> u16 {
    (target.wave_size() / u32::BITS) as u16
}
