//! The probe of bounds: accesses to global memory whose address is in nothing that is allocated.
//!
//! The range that a wave found last stays in lanes of inserted code's data pair. A site compares the addresses of all
//! active lanes with it: two comparisons of 64 bits, with what is the same for all lanes (the instruction's offset
//! and size) subtracted from the range. Only if a lane is outside, all lanes search for theirs in the table of what is
//! allocated ([`wavetap_profile::bounds`]), and the range of the first one that was outside is the next to compare
//! with.
//! Inserted code has no loops: the search is one of a fixed number of steps, of which those are skipped that a table of
//! this size does not need.
//!
//! A search costs much more than a comparison. It is right whatever the lanes hold: the range that it leaves is always
//! one of the table, or one that no address is in.

use super::{Emitter, FIRST_KEPT_LANE, FunctionProbe, Measurement, Needs, Probe, ProbeSite, Scc, memory};
use crate::asm::{Global, c, s, s2, v, v2};
use crate::frame::prologue::{NO_RANGE, PLACE_LANE, START_LANE};
use crate::function::ClonedFunction;
use wavetap_amdgpu::{Flags, Memory, Opcode, Reg, Value, has_operation};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::{AddressForm, AddressOperands, Reason, Refusal, Stop};
use wavetap_base::entity::InstId;
use wavetap_base::error::{Error, Result};
use wavetap_profile::bounds::{ENTRY, PRIVATE, SHARED, STEPS, TABLE, slot};
use wavetap_profile::probes::bounds::{ACCESS, PROBE};

/// Lanes of where the last range ends.
const END_LANE: u32 = START_LANE + 2;
/// Lanes of a mask of bad lanes while EXEC is saved.
const BAD_LANE: u32 = END_LANE + 2;
const _: () = assert!(PLACE_LANE == BAD_LANE + 2);
const _: () = assert!(START_LANE == FIRST_KEPT_LANE);
/// Lanes with counters of a site: executions and lanes.
const COUNTED: u32 = 0b11;
/// The counter of lanes.
const LANES: u32 = 1;
/// Lanes that store what is known of a bad access; the first one's is the count.
const STORED: u32 = 0b11_1110;
/// Wait states between a vector instruction that writes a scalar register and one that reads it (gfx94x).
const SCALAR_STATES: i64 = 2;
/// Bits of an address in scratch that name the lane, above bit 32 (as in the emulator and `resolve`).
const LANE_BITS: u32 = 26;

/// See the module.
#[derive(Debug)]
pub(super) struct Bounds;

/// The accesses of a function.
#[derive(Debug)]
struct AccessesOf(Vec<ProbeSite>);

/// An access that is checked.
#[derive(Debug)]
struct Access {
    operands: AddressOperands,
    is_flat: bool,
    /// Bytes that each lane accesses.
    bytes: u32,
    /// The offset in the instruction.
    offset: i32,
    /// What the offset of a lane is multiplied by.
    scale: u32,
}

/// Whether an instruction accesses global memory at addresses of its lanes, or might.
fn is_access(function: &ClonedFunction<'_>, id: InstId) -> bool {
    let inst = function.body.inst(id);
    inst.variant.flags.intersects(Flags::LOAD | Flags::STORE | Flags::ATOMIC)
        && matches!(inst.variant.memory, Memory::Global | Memory::Flat | Memory::Buffer)
}

/// An access, if its addresses can be computed.
fn access(function: &ClonedFunction<'_>, id: InstId) -> Option<Access> {
    let inst = function.body.inst(id);
    let operands = memory::measured(function, id)?;
    let bytes = u32::from(inst.variant.memory_bytes);
    if !matches!(operands.form, AddressForm::Lanes | AddressForm::BaseAndLanes) || bytes == 0 {
        return None;
    }
    Some(Access {
        operands,
        is_flat: inst.variant.memory == Memory::Flat,
        bytes,
        offset: inst.modifiers.offset,
        scale: if inst.modifiers.scale_offset { bytes } else { 1 },
    })
}

impl Probe for Bounds {
    fn name(&self) -> &'static str {
        PROBE
    }

    fn summary(&self) -> &'static str {
        "Accesses to global memory outside of what is allocated"
    }

    fn needs(&self) -> Needs {
        Needs {
            alone: Some("its checks take registers that others need"),
            global_memory: Some("addresses are compared with a table"),
            allocations: true,
            keeps_lanes: true,
            ..Needs::default()
        }
    }

    fn prepare(&self, function: &ClonedFunction<'_>) -> std::result::Result<Box<dyn FunctionProbe>, Stop> {
        let mut sites = Vec::new();
        for id in function.body.ids().filter(|id| !function.is_before_entry(*id) && is_access(function, *id)) {
            let refuse = |detail: String| Refusal::at(Reason::UncheckedAccess, function.body.address(id), detail);
            let name = function.body.inst(id).name();
            if !has_operation(function.body.target(), Opcode::GLOBAL_ATOMIC_ADD) {
                return Err(refuse(format!("{name}: the target has FLAT memory instructions alone")).into());
            }
            if access(function, id).is_none() {
                return Err(refuse(format!("{name}: its addresses cannot be computed before it")).into());
            }
            sites.push(ProbeSite { inst: id, kind: &ACCESS });
        }
        Ok(Box::new(AccessesOf(sites)))
    }
}

impl FunctionProbe for AccessesOf {
    fn sites(&self) -> &[ProbeSite] {
        &self.0
    }

    fn reads(&self, function: &ClonedFunction<'_>, site: &ProbeSite) -> RegSet {
        memory::measured(function, site.inst).iter().flat_map(AddressOperands::registers).collect()
    }

    fn at_site(&self, site: &ProbeSite, emitter: &mut Emitter<'_, '_>) -> std::result::Result<(), Stop> {
        let function = emitter.function();
        let lost = || Error::internal("a checked access is none");
        let access = access(function, site.inst).ok_or_else(lost)?;
        let point = memory::point(function, site.inst, &access.operands).ok_or_else(lost)?;
        emitter.measure(point, Scc::Preserved, |m| access.check(m))
    }
}

/// The vector registers of a check, pairs.
#[derive(Debug, Clone, Copy)]
struct Pairs {
    /// The base of an address; where the search is, and the entry that it looks at.
    base: u16,
    address: u16,
    /// What is loaded.
    loaded: u16,
}

impl Access {
    /// Each lane's address without the offset in the instruction: the registers that hold it.
    fn base(&self, m: &mut Measurement<'_>, into: u16) -> Result<u16> {
        let vector = self.operands.vectors.first().ok_or_else(|| Error::internal("an address of no register"))?.first;
        if self.operands.form == AddressForm::Lanes {
            return Ok(vector);
        }
        let Some(Value::Reg(base)) = self.operands.scalars.first() else {
            return Err(Error::internal("an address of no scalar register"));
        };
        let signed = m.asm.target().signed_global_offsets();
        let (carry, pair) = (m.asm.mask(m.r.scratch), Value::Reg(Reg { dwords: 2, ..*base }));
        m.asm.multiply_add(signed, into, carry, [v(vector), c(self.scale)], pair)?;
        Ok(into)
    }

    /// Reads a part of the last range into the pair of the first register, less a number.
    fn bound(m: &mut Measurement<'_>, lane: u32, less: i64) -> Result<()> {
        let (low, high, kept) = (m.r.first, m.r.second, m.data() + 1);
        m.asm.read_lane(low, kept, lane)?;
        m.asm.read_lane(high, kept, lane + 1)?;
        if less == 0 {
            return m.asm.states(SCALAR_STATES);
        }
        m.asm.op("s_sub_u32", &[s(low), s(low), c(less as u32)])?;
        m.asm.op("s_subb_u32", &[s(high), s(high), c((less >> u32::BITS) as u32)])
    }

    fn check(&self, m: &mut Measurement<'_>) -> Result<()> {
        let payload = m.payload()?;
        let pairs = Pairs { base: payload, address: payload + 2, loaded: payload + 4 };
        let (outside, other) = (m.saved_exec(), m.asm.mask(m.r.scratch));
        let (offset, done) = (i64::from(self.offset), m.asm.new_label());
        let base = self.base(m, pairs.base)?;
        Self::bound(m, START_LANE, offset)?;
        m.asm.op("v_cmp_gt_u64_e64", &[outside, s2(m.r.first), v2(base)])?;
        Self::bound(m, END_LANE, offset + i64::from(self.bytes))?;
        m.asm.op("v_cmp_lt_u64_e64", &[other, s2(m.r.first), v2(base)])?;
        m.asm.masks("s_or_b", &[outside, outside, other])?;
        m.asm.branch(Opcode::S_CBRANCH_SCC0, done);
        m.allocations()?;
        if self.is_flat {
            self.leave_out_other_memory(m, pairs, base)?;
            m.asm.branch(Opcode::S_CBRANCH_SCC0, done);
        }
        self.address(m, pairs, base)?;
        search(m, pairs)?;
        self.compare(m, pairs)?;
        m.asm.branch(Opcode::S_CBRANCH_SCC0, done);
        found(m, pairs)?;
        m.asm.bind(done);
        Ok(())
    }

    /// Lanes whose flat addresses are in LDS or scratch are not outside: SCC says whether others are.
    fn leave_out_other_memory(&self, m: &mut Measurement<'_>, pairs: Pairs, base: u16) -> Result<()> {
        let (outside, register, mask) = (m.saved_exec(), m.r.first, m.asm.mask(m.r.first));
        let below = if m.asm.target().has_flat_scratch_base() { LANE_BITS } else { 0 };
        m.asm.scalar_load("s_load_dword", register, 1, m.r.scratch, SHARED)?;
        m.asm.wait_scalar_loads()?;
        m.asm.op("v_cmp_ne_u32_e64", &[mask, s(register), v(base + 1)])?;
        m.asm.masks("s_and_b", &[outside, outside, mask])?;
        m.asm.scalar_load("s_load_dword", register, 1, m.r.scratch, PRIVATE)?;
        m.asm.wait_scalar_loads()?;
        let high = v(pairs.loaded);
        m.asm.op("v_xor_b32_e32", &[high, s(register), v(base + 1)])?;
        m.asm.op("v_lshrrev_b32_e32", &[high, c(below), high])?;
        m.asm.op("v_cmp_ne_u32_e64", &[mask, c(0), high])?;
        m.asm.masks("s_and_b", &[outside, outside, mask])
    }

    /// Each lane's address.
    fn address(&self, m: &mut Measurement<'_>, pairs: Pairs, base: u16) -> Result<()> {
        let register = m.r.first;
        m.asm.op("s_mov_b32", &[s(register), c(self.offset as u32)])?;
        let carry = m.asm.mask(register);
        m.asm.multiply_add(true, pairs.address, carry, [s(register), c(1)], v2(base))
    }

    /// Leaves the lanes in the saved pair that were outside and are outside of their range in the table: SCC says
    /// whether there are such.
    fn compare(&self, m: &mut Measurement<'_>, pairs: Pairs) -> Result<()> {
        let (outside, [one, other]) = (m.saved_exec(), [m.r.first, m.r.scratch].map(|first| m.asm.mask(first)));
        m.asm.op("v_cmp_le_u64_e64", &[one, v2(pairs.loaded), v2(pairs.address)])?;
        m.asm.multiply_add(false, pairs.base, other, [c(self.bytes - 1), c(1)], v2(pairs.address))?;
        m.asm.op("v_cmp_le_u64_e64", &[other, v2(pairs.loaded), v2(pairs.base)])?;
        m.asm.masks("s_or_b", &[one, one, other])?;
        m.asm.masks("s_and_b", &[outside, outside, one])
    }
}

/// Searches for each lane's range: the last one that starts at its address or before. Its end is loaded then, and the
/// range of the first lane that was outside is kept.
fn search(m: &mut Measurement<'_>, pairs: Pairs) -> Result<()> {
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
            m.asm.states(SCALAR_STATES)?;
            m.asm.op("v_cndmask_b32_e64", &[v(at), v(at), v(next), is_after])?;
        }
        m.asm.bind(skip);
    }
    m.asm.global_load_wide(loaded, at, table, TABLE)?;
    m.asm.wait_vector_loads(false)?;
    keep(m, loaded, START_LANE)?;
    m.asm.global_load_wide(loaded, at, table, TABLE + ENTRY / 2)?;
    m.asm.wait_vector_loads(false)?;
    keep(m, loaded, END_LANE)
}

/// Keeps what the first lane that was outside has loaded.
fn keep(m: &mut Measurement<'_>, loaded: u16, lane: u32) -> Result<()> {
    let (outside, kept) = (m.saved_exec(), v(m.data() + 1));
    let (value, first) = (m.r.first, s(m.r.second));
    m.asm.first_lane(m.r.second, outside)?;
    for half in 0..2 {
        m.asm.op("v_readlane_b32", &[s(value), v(loaded + half), first])?;
        if (lane, half as u32) == (START_LANE, 1) {
            // Numbers that are subtracted are smaller than where such a range starts; others are not kept.
            m.asm.op("s_cmp_eq_u32", &[s(value), c(0)])?;
            m.asm.op("s_cselect_b32", &[s(value), NO_RANGE, s(value)])?;
        } else {
            m.asm.states(SCALAR_STATES)?;
        }
        m.asm.op("v_writelane_b32", &[kept, s(value), c(lane + u32::from(half))])?;
    }
    Ok(())
}

/// Counts a bad access, and stores what is known of it if it is the first one of the site.
fn found(m: &mut Measurement<'_>, pairs: Pairs) -> Result<()> {
    let Pairs { base: offsets, address, loaded } = pairs;
    let (exec, saved, kept) = (m.exec(), m.saved_exec(), m.data() + 1);
    let (first, second, lanes) = (m.r.first, m.r.second, m.asm.target().wave_size());
    let counted = m.asm.new_label();
    let halves = (lanes / u32::BITS) as u16;
    for half in 0..halves {
        let mask = s(m.r.saved_exec + half);
        m.asm.op("v_writelane_b32", &[v(kept), mask, c(BAD_LANE + u32::from(half))])?;
    }
    m.asm.masks("s_bcnt1_i32_b", &[s(first), saved])?;
    m.value(LANES, s(first))?;
    m.asm.masks("s_mov_b", &[saved, exec])?;
    m.allocations()?;
    let slot = m.r.scratch;
    m.asm.op("s_sub_u32", &[s(slot), s(slot), c(self::slot(m.site()))])?;
    m.asm.op("s_subb_u32", &[s(slot + 1), s(slot + 1), c(0)])?;
    m.asm.exec_lanes(lanes)?;
    m.asm.lane_number(offsets)?;
    m.asm.op("v_lshlrev_b32_e32", &[v(offsets), c(3), v(offsets)])?;
    m.asm.exec_lanes(1)?;
    let place = Global { base: slot, offsets, flat: None, scratch: first };
    // The data register of lane 0 holds 1.
    m.asm.global_returning("atomic_add", v(loaded), place, v(m.data()))?;
    m.asm.wait_global_results()?;
    m.asm.op("v_readfirstlane_b32", &[s(first), v(loaded)])?;
    m.asm.op("s_cmp_lg_u32", &[s(first), c(0)])?;
    m.asm.branch(Opcode::S_CBRANCH_SCC1, counted);
    let write = |m: &mut Measurement<'_>, dword: u32, from: u16| {
        m.asm.op("v_writelane_b32", &[v(loaded + (dword % 2) as u16), s(from), c(dword / 2)])
    };
    m.asm.op("s_mov_b32", &[s(second), c(0)])?;
    for half in 0..halves {
        m.asm.read_lane(first + half, kept, BAD_LANE + u32::from(half))?;
    }
    m.asm.states(SCALAR_STATES)?;
    for half in 0..2 {
        write(m, 4 + u32::from(half), first + half)?;
    }
    let bad = m.asm.mask(first);
    m.asm.first_lane(first, bad)?;
    write(m, 10, first)?;
    for half in 0..2 {
        m.asm.op("v_readlane_b32", &[s(second), v(address + half), s(first)])?;
        m.asm.states(SCALAR_STATES)?;
        write(m, 2 + u32::from(half), second)?;
    }
    for dword in 0..4 {
        m.asm.read_lane(second, kept, PLACE_LANE + dword)?;
        m.asm.states(SCALAR_STATES)?;
        write(m, 6 + dword, second)?;
    }
    m.asm.masks("s_mov_b", &[exec, c(STORED)])?;
    m.asm.global("store_dwordx2", place, v2(loaded), 0)?;
    m.asm.bind(counted);
    m.reach()?;
    m.asm.masks("s_mov_b", &[exec, c(COUNTED)])?;
    m.add()
}
