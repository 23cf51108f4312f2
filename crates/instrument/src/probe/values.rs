//! The probe of values: whether the first register that a load writes is the same in all active lanes (a uniform load,
//! for which a scalar load would do), and whether it is what the wave has loaded there before (a redundant one).
//!
//! Inserted code waits for the load, after it or after the clause that it is in, and compares the register in all lanes
//! with that of the first one. The value of an execution stays for the next one in a lane of inserted code's data pair,
//! and whether it was uniform in a bit of another lane. So it is for loads of the kernel itself, as functions have the
//! same lanes, and for as many as there are lanes and bits: those that are predicted to be executed most.

use super::{Emitter, FIRST_KEPT_LANE, FunctionProbe, Measurement, Needs, Probe, ProbeSite, Scc};
use crate::asm::{c, s, v};
use crate::function::ClonedFunction;
use wavetap_amdgpu::{Flags, Memory, Opcode, Reg, RegFile};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::{BodyKind, Stop};
use wavetap_base::entity::{InstId, ProgramPoint, Side};
use wavetap_base::error::{Error, Result};
use wavetap_profile::probes::values::{LOAD, PROBE, TRACKED_LOAD};

/// Lanes of `uniform` and `repeated`; lane 0 (executions) always holds 1.
const UNIFORM: u32 = 1;
const REPEATED: u32 = 2;
/// The lane with a bit for each tracked load: its last execution was uniform. Their values are in the lanes after it.
const FLAGS: u32 = FIRST_KEPT_LANE;
/// Wait states between a vector instruction that writes a scalar register and one that reads it (gfx94x).
const SCALAR_STATES: i64 = 2;
/// Those that a tracked load adds to, and another one.
const COUNTED_TRACKED: u32 = 0b111;
const COUNTED: u32 = 0b011;

/// See the module.
#[derive(Debug)]
pub(super) struct Values;

/// A load that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MeasuredLoad {
    inst: InstId,
    /// Where its register is looked at.
    point: ProgramPoint,
    register: u16,
    /// Its number among tracked loads, if it is one.
    tracked: Option<u32>,
}

/// The loads of a function that are measured, by address.
#[derive(Debug)]
struct ValuesOf {
    loads: Vec<MeasuredLoad>,
    sites: Vec<ProbeSite>,
}

/// The load at an instruction, if its value can be looked at: not where AGPRs or registers above v255 are loaded, or
/// where a later instruction of its clause writes the register again.
fn load(function: &ClonedFunction<'_>, inst: InstId) -> Option<MeasuredLoad> {
    let (body, op) = (function.body(), function.body().inst(inst));
    let is_vector = !matches!(op.variant.memory, Memory::None | Memory::Scalar);
    if !is_vector || !op.variant.flags.contains(Flags::LOAD) || body.may_be_skipped(inst) {
        return None;
    }
    let operand = op.operands.iter().find(|operand| operand.access.writes())?;
    let reg = operand.reg().filter(|reg| reg.file == RegFile::Vector && body.register(inst, operand) == Some(*reg))?;
    let register = Reg::vector(reg.first, 1);
    if !body.writes(inst).any(|written| written.overlaps(register)) {
        // It loads to LDS.
        return None;
    }
    let clause = function.bundling().clauses().iter().find(|clause| (clause.first..=clause.last).contains(&inst));
    let last = clause.map_or(inst, |clause| clause.last);
    let mut later = (inst.0 + 1..=last.0).map(InstId);
    let is_lost = later.any(|other| body.writes(other).any(|written| written.overlaps(register)));
    let point = ProgramPoint { inst: last, side: Side::After };
    (!is_lost).then_some(MeasuredLoad { inst, point, register: reg.first, tracked: None })
}

impl Probe for Values {
    fn name(&self) -> &'static str {
        PROBE
    }

    fn summary(&self) -> &'static str {
        "Loads whose value is the same in all lanes, or what the wave has loaded there before"
    }

    fn needs(&self) -> Needs {
        Needs { at_each_site: true, keeps_lanes: true, ..Needs::default() }
    }

    fn prepare(&self, function: &ClonedFunction<'_>) -> std::result::Result<Box<dyn FunctionProbe>, Stop> {
        let body = function.body();
        let ids = body.ids().filter(|id| !function.is_before_entry(*id));
        let mut loads: Vec<MeasuredLoad> = ids.filter_map(|id| load(function, id)).collect();
        if body.kind() == BodyKind::Kernel {
            let numbers = 0..u32::BITS.min(body.target().wave_size() - FLAGS - 1);
            let mut by_weight: Vec<&mut MeasuredLoad> = loads.iter_mut().collect();
            by_weight.sort_by(|a, b| function.weight(b.inst).total_cmp(&function.weight(a.inst)));
            by_weight.into_iter().zip(numbers).for_each(|(load, number)| load.tracked = Some(number));
        }
        let kind = |load: &MeasuredLoad| if load.tracked.is_some() { &TRACKED_LOAD } else { &LOAD };
        let sites = loads.iter().map(|load| ProbeSite { inst: load.inst, kind: kind(load) }).collect();
        Ok(Box::new(ValuesOf { loads, sites }))
    }
}

impl ValuesOf {
    fn at(&self, site: &ProbeSite) -> Option<&MeasuredLoad> {
        Some(&self.loads[self.loads.binary_search_by_key(&site.inst, |load| load.inst).ok()?])
    }
}

impl FunctionProbe for ValuesOf {
    fn sites(&self) -> &[ProbeSite] {
        &self.sites
    }

    fn reads(&self, _: &ClonedFunction<'_>, site: &ProbeSite) -> RegSet {
        self.at(site).map(|load| Reg::vector(load.register, 1)).into_iter().collect()
    }

    fn at_site(&self, site: &ProbeSite, emitter: &mut Emitter<'_, '_>) -> std::result::Result<(), Stop> {
        let load = *self.at(site).ok_or_else(|| Error::internal("a measured load is none"))?;
        emitter.measure(load.point, Scc::Preserved, |m| compare(m, &load))
    }
}

/// Compares the register with its value in the first active lane, and that with what was loaded before.
fn compare(m: &mut Measurement<'_>, load: &MeasuredLoad) -> Result<()> {
    let (exec, saved, value, uniform) = (m.exec(), m.saved_exec(), m.r.first, m.r.second);
    let (other, before) = (m.asm.mask(m.r.scratch), m.r.scratch);
    let done = m.asm.new_label();
    m.asm.branch(Opcode::S_CBRANCH_EXECZ, done);
    m.asm.wait_all_loads()?;
    m.asm.op("v_readfirstlane_b32", &[s(value), v(load.register)])?;
    m.asm.states(SCALAR_STATES)?;
    // The lanes with another value: inactive ones are 0.
    m.asm.op("v_cmp_ne_u32_e64", &[other, s(value), v(load.register)])?;
    m.asm.masks("s_cmp_eq_u", &[other, c(0)])?;
    m.asm.op("s_cselect_b32", &[s(uniform), c(1), c(0)])?;
    m.value(UNIFORM, s(uniform))?;
    if let Some(number) = load.tracked {
        let (kept, lane, repeated) = (m.data() + 1, FLAGS + 1 + number, before + 1);
        m.asm.read_lane(before, kept, FLAGS)?;
        m.asm.read_lane(repeated, kept, lane)?;
        m.asm.op("s_cmp_eq_u32", &[s(repeated), s(value)])?;
        m.asm.op("s_cselect_b32", &[s(repeated), s(uniform), c(0)])?;
        m.asm.op("s_bitcmp1_b32", &[s(before), c(number)])?;
        m.asm.op("s_cselect_b32", &[s(repeated), s(repeated), c(0)])?;
        m.value(REPEATED, s(repeated))?;
        m.asm.op("s_andn2_b32", &[s(before), s(before), c(1 << number)])?;
        m.asm.op("s_lshl_b32", &[s(repeated), s(uniform), c(number)])?;
        m.asm.op("s_or_b32", &[s(before), s(before), s(repeated)])?;
        for (lane, register) in [(FLAGS, before), (lane, value)] {
            m.asm.op("v_writelane_b32", &[v(kept), s(register), c(lane)])?;
        }
    }
    m.reach()?;
    m.asm.masks("s_mov_b", &[saved, exec])?;
    m.asm.masks("s_mov_b", &[exec, c(if load.tracked.is_some() { COUNTED_TRACKED } else { COUNTED })])?;
    m.add()?;
    m.asm.bind(done);
    Ok(())
}
