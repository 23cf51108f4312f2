//! The memory probe: each execution of an access to memory, with the addresses of its lanes.
//!
//! Each wave of a sampled workgroup has slots after the counters of its record ([`wavetap_profile::accesses`]). An
//! execution takes one and stores the registers that its addresses are made of as they are: addresses are computed by
//! whoever reads them. Where no slot is free, the site's counter says so. How many are free is in a lane of inserted
//! code's own vector registers, and stored each time; where these are spilled, or addresses take the scalar registers
//! (gfx8), an atomic that no other wave meets counts them in memory.

use super::{Emitter, FunctionProbe, Measurement, Needs, Probe, ProbeSite, Scc};
use crate::asm::{Global, c, s, v, v2};
use crate::frame::prologue::SLOTS_LANE;
use crate::function::ClonedFunction;
use wavetap_amdgpu::{Flags, Opcode, Operand, RegFile, Role, Value};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::edit::Label;
use wavetap_analysis::kernel::{AddressOperands, Stop};
use wavetap_base::entity::{InstId, ProgramPoint, Side};
use wavetap_base::error::{Error, Result};
use wavetap_profile::accesses::{CURSOR, SLOT_HEADER, slot_bytes};
use wavetap_profile::probes::memory::{ACCESS, PROBE};

/// Lanes of the header with the site and EXEC; those of scalar registers follow, two in each.
const HEADER_LANES: u32 = 2;
/// Lanes with a counter of a site: one.
const COUNTED: u32 = 1;

/// See the module.
#[derive(Debug)]
pub(super) struct Memory;

/// The accesses of a function.
#[derive(Debug)]
struct AccessesOf(Vec<ProbeSite>);

/// What the addresses of an instruction are made of, if it is measured.
pub(super) fn measured(function: &ClonedFunction<'_>, id: InstId) -> Option<AddressOperands> {
    let inst = function.body.inst(id);
    if !inst.variant.flags.intersects(Flags::LOAD | Flags::STORE | Flags::ATOMIC) {
        return None;
    }
    let operands = AddressOperands::of(inst)?;
    // Above v255 the high bits of numbers are elsewhere, and inserted code does without.
    let is_low = |operand: &Operand| match operand.reg() {
        Some(reg) if reg.file == RegFile::Vector => function.body.register(id, operand) == Some(reg),
        _ => true,
    };
    let of_address = inst.operands.iter().filter(|operand| matches!(operand.role, Role::Vaddr | Role::Addr));
    let can_be_named = of_address.into_iter().all(is_low);
    (can_be_named && point(function, id, &operands).is_some()).then_some(operands)
}

/// Where code for an access goes: before it, or before the clause that it is in, if nothing in the clause before it
/// writes what its addresses are made of.
pub(super) fn point(function: &ClonedFunction<'_>, id: InstId, operands: &AddressOperands) -> Option<ProgramPoint> {
    let clause = function.neighbours.clauses().iter().find(|clause| (clause.first..=clause.last).contains(&id));
    let Some(clause) = clause else { return Some(ProgramPoint { inst: id, side: Side::Before }) };
    let made_of: RegSet = operands.registers().collect();
    let before = (clause.first.0..id.0).map(InstId);
    let is_written = |other: InstId| function.body.writes(other).any(|reg| made_of.overlaps(reg));
    (!before.into_iter().any(is_written)).then_some(ProgramPoint { inst: clause.start, side: Side::Before })
}

impl Probe for Memory {
    fn name(&self) -> &'static str {
        PROBE
    }

    fn summary(&self) -> &'static str {
        "Addresses of the lanes of each access to memory, in sampled workgroups"
    }

    fn needs(&self) -> Needs {
        Needs {
            alone: Some("it measures sampled workgroups alone, and counts are of all"),
            global_memory: Some("accesses are recorded"),
            records: true,
            ..Needs::default()
        }
    }

    fn prepare(&self, function: &ClonedFunction<'_>) -> Result<Box<dyn FunctionProbe>, Stop> {
        let is_measured = |id: &InstId| !function.is_before_entry(*id) && measured(function, *id).is_some();
        let ids = function.body.ids().filter(is_measured);
        Ok(Box::new(AccessesOf(ids.map(|inst| ProbeSite { inst, kind: &ACCESS }).collect())))
    }
}

impl FunctionProbe for AccessesOf {
    fn sites(&self) -> &[ProbeSite] {
        &self.0
    }

    fn reads(&self, function: &ClonedFunction<'_>, site: &ProbeSite) -> RegSet {
        measured(function, site.inst).iter().flat_map(AddressOperands::registers).collect()
    }

    fn at_site(&self, site: &ProbeSite, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop> {
        let function = emitter.function();
        let lost = || Error::internal("a measured access is none");
        let operands = measured(function, site.inst).ok_or_else(lost)?;
        let point = point(function, site.inst, &operands).ok_or_else(lost)?;
        emitter.measure(point, Scc::Preserved, |m| record(m, &operands))
    }
}

/// Puts the number of the last free slot into the first register, or goes on to `full`. EXEC is in the saved pair.
fn take_slot(m: &mut Measurement<'_>, payload: u16, full: Label) -> Result<()> {
    let (exec, saved, free, high) = (m.exec(), m.saved_exec(), m.r.first, m.r.second);
    if m.counts_slots() {
        let count = v(m.data() + 1);
        m.asm.read_lane(free, m.data() + 1, SLOTS_LANE)?;
        m.asm.op("s_cmp_eq_u32", &[s(free), c(0)])?;
        m.asm.branch(Opcode::S_CBRANCH_SCC1, full);
        m.asm.op("s_sub_u32", &[s(free), s(free), c(1)])?;
        return m.asm.op("v_writelane_b32", &[count, s(free), c(SLOTS_LANE)]);
    }
    m.asm.exec_lanes(1)?;
    // The data register of lane 0 holds 1.
    let count = m.beyond_record(m.record_bytes())?;
    m.asm.global_returning("atomic_sub_x2", v2(payload), count, v2(m.data()))?;
    m.asm.wait_global_results()?;
    m.asm.op("v_readfirstlane_b32", &[s(high), v(payload + 1)])?;
    m.asm.op("v_readfirstlane_b32", &[s(free), v(payload)])?;
    m.asm.masks("s_mov_b", &[exec, saved])?;
    m.asm.op("s_cmp_lg_u32", &[s(high), c(0)])?;
    m.asm.branch(Opcode::S_CBRANCH_SCC1, full);
    m.asm.op("s_cmp_eq_u32", &[s(free), c(0)])?;
    m.asm.branch(Opcode::S_CBRANCH_SCC1, full);
    m.asm.op("s_sub_u32", &[s(free), s(free), c(1)])
}

/// Takes a slot and stores what the addresses are made of.
fn record(m: &mut Measurement<'_>, operands: &AddressOperands) -> Result<()> {
    let payload = m.payload()?;
    let (exec, saved, lanes) = (m.exec(), m.saved_exec(), m.asm.target().wave_size());
    let (free, number, site, slots) = (m.r.first, m.r.second, m.site(), m.record_bytes());
    let (full, done) = (m.asm.new_label(), m.asm.new_label());
    m.asm.branch(Opcode::S_CBRANCH_EXECZ, done);
    m.asm.masks("s_mov_b", &[saved, exec])?;
    take_slot(m, payload, full)?;
    m.asm.op("s_mul_i32", &[s(number), s(free), c(slot_bytes(lanes))])?;
    let slot = m.r.scratch;
    for (from, offset) in [(m.r.record, s(number)), (slot, c(slots + CURSOR))] {
        m.asm.op("s_add_u32", &[s(slot), s(from), offset])?;
        m.asm.op("s_addc_u32", &[s(slot + 1), s(from + 1), c(0)])?;
    }
    let place: Global = m.at(slot);
    for half in 0..2 {
        let value = operands.vectors.get(usize::from(half)).map_or(c(0), |reg| v(reg.first));
        m.asm.op("v_mov_b32_e32", &[v(payload + half), value])?;
    }
    m.asm.global("store_dwordx2", place, v2(payload), SLOT_HEADER)?;
    let through = m.r.second;
    let write = |m: &mut Measurement<'_>, dword: u32, value: Value| -> Result<()> {
        m.asm.op("s_mov_b32", &[s(through), value])?;
        m.asm.op("v_writelane_b32", &[v(payload + (dword % 2) as u16), s(through), c(dword / 2)])
    };
    write(m, 0, c(site))?;
    write(m, 2, s(m.r.saved_exec))?;
    write(m, 3, if lanes == 32 { c(0) } else { s(m.r.saved_exec + 1) })?;
    let scalars = operands.scalars.len() as u32;
    write(m, 1, c(scalars))?;
    for (dword, value) in (2 * HEADER_LANES..).zip(&operands.scalars) {
        write(m, dword, *value)?;
    }
    if scalars % 2 == 1 {
        write(m, 2 * HEADER_LANES + scalars, c(0))?;
    }
    m.asm.exec_lanes(HEADER_LANES + scalars.div_ceil(2))?;
    m.asm.global("store_dwordx2", place, v2(payload), 0)?;
    if m.counts_slots() {
        m.asm.exec_lanes(1)?;
        for (half, value) in [(0, s(free)), (1, c(0))] {
            m.asm.op("v_mov_b32_e32", &[v(payload + half), value])?;
        }
        let count = m.beyond_record(slots)?;
        m.asm.global("store_dwordx2", count, v2(payload), 0)?;
    }
    m.asm.masks("s_mov_b", &[exec, saved])?;
    m.asm.branch(Opcode::S_BRANCH, done);
    m.asm.bind(full);
    m.reach()?;
    m.asm.exec_lanes(COUNTED)?;
    m.add()?;
    m.asm.bind(done);
    Ok(())
}
