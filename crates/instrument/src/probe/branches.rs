//! The branch probe. It counts, of an instruction that narrows EXEC, how many lanes were active before and after it and
//! whether they agreed; of a uniform branch, how often it was reached and how often it was taken.
//!
//! At an instruction that narrows EXEC, lanes 0 to 4 of the data register hold what is added to the five counters;
//! lanes 0 (executions) and 4 (empty) are always 1, and EXEC chooses between lanes 0 to 3 and lane 4, so that a wave
//! that arrives with EXEC = 0 counts in `empty` alone.

use std::sync::Arc;

use super::{Emitter, FunctionProbe, Measurement, Probe, ProbeSite, Scc};
use crate::asm::{c, s};
use crate::function::ClonedFunction;
use crate::placement::Quantity;
use wavetap_amdgpu::{Branch, Condition, Inst, MaskOp, OpcodeFlags, Reg, Role, Value, scalar};
use wavetap_analysis::kernel::{Body, Reason, Refusal, Stop};
use wavetap_base::entity::{InstId, ProgramPoint, Side};
use wavetap_base::error::{Error, Result};
use wavetap_profile::probes::branches::{EXEC, PROBE, SCALAR};
use wavetap_profile::schema::KindSchema;

/// Lane of `agreements`.
const AGREEMENTS: u32 = 1;
/// Lane of `lanes_before`.
const LANES_BEFORE: u32 = 2;
/// Lane of `lanes_after`.
const LANES_AFTER: u32 = 3;
/// Lanes of executions, agreements, lanes_before and lanes_after.
const COUNTED: u32 = 0b01111;
/// Lane of `empty`.
const EMPTY: u32 = 0b10000;
/// Lane of `taken`; lane 0 (executions) always holds 1.
const TAKEN: u32 = 1;
/// Lanes of executions and taken.
const BRANCH_COUNTED: u32 = 0b11;

/// See the module.
#[derive(Debug)]
pub(super) struct Branches;

/// The branches of a function.
#[derive(Debug)]
struct BranchesOf(Vec<ProbeSite>);

/// What an instruction does to lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Narrowing {
    /// EXEC becomes `EXEC & mask` (or `EXEC & ~mask`), by a scalar instruction.
    Mask { mask: Value, complemented: bool },
    /// EXEC becomes the lanes for which a comparison holds.
    Compare,
    /// A uniform branch.
    Branch(Condition),
}

impl Narrowing {
    /// What the instruction does, if it is a site.
    fn of(inst: &Inst, lanes: u32) -> Option<Narrowing> {
        let value = |role| inst.operand(role).map(|operand| operand.value);
        // In wave32 EXEC is its low half, and the instructions on masks are those of 32 bits.
        let exec = Some(Value::Reg(Reg::scalar(scalar::EXEC, (lanes / 32) as u8)));
        let (src0, src1) = (value(Role::Src0), value(Role::Src1));
        let mask = |mask: Option<Value>, complemented| Some(Narrowing::Mask { mask: mask?, complemented });
        let on_masks =
            inst.opcode().mask().filter(|mask| u32::from(mask.dwords) * 32 == lanes).map(|mask| mask.operation);
        match on_masks {
            Some(MaskOp::AndSaveexec) => mask(src0, false),
            Some(MaskOp::Andn1Saveexec | MaskOp::Andn1Wrexec) => mask(src0, true),
            Some(MaskOp::And) if value(Role::Sdst) == exec && src0 == exec => mask(src1, false),
            Some(MaskOp::And) if value(Role::Sdst) == exec && src1 == exec => mask(src0, false),
            Some(MaskOp::Andn2) if value(Role::Sdst) == exec && src0 == exec => mask(src1, true),
            _ if inst.is_any(OpcodeFlags::CMPX) => Some(Narrowing::Compare),
            _ => match inst.variant.branch {
                Branch::Conditional(Condition::Debug) => None,
                Branch::Conditional(condition) => Some(Narrowing::Branch(condition)),
                _ => None,
            },
        }
    }

    fn kind(self) -> &'static Arc<KindSchema> {
        match self {
            Narrowing::Mask { .. } | Narrowing::Compare => &EXEC,
            Narrowing::Branch(_) => &SCALAR,
        }
    }
}

/// The instructions of a body that do something to lanes, by address.
fn narrowings(body: &Body) -> impl Iterator<Item = (InstId, Narrowing)> + '_ {
    let lanes = body.target().wave_size();
    body.ids().filter_map(move |id| Some((id, Narrowing::of(body.inst(id), lanes)?)))
}

/// What this probe counts in a body, by address, if the body is instrumented.
#[must_use]
pub fn branch_sites(body: &Body) -> Vec<ProbeSite> {
    narrowings(body).map(|(inst, narrowing)| ProbeSite { inst, kind: narrowing.kind() }).collect()
}

impl Probe for Branches {
    fn name(&self) -> &'static str {
        PROBE
    }

    fn summary(&self) -> &'static str {
        "Divergent branches, with the lanes that stay active; uniform branches, and how often they are taken"
    }

    fn prepare(&self, function: &ClonedFunction<'_>) -> Result<Box<dyn FunctionProbe>, Stop> {
        let body = function.body;
        let mut sites = Vec::new();
        for (id, narrowing) in narrowings(body) {
            let inst = body.inst(id);
            if let Narrowing::Mask { mask: Value::Reg(mask), .. } = narrowing
                && matches!(mask.first, scalar::SCC | scalar::VCCZ | scalar::EXECZ)
            {
                let detail = format!("{} takes its mask from a status bit", inst.name());
                return Err(Refusal::at(Reason::MaskOperand, body.address(id), detail).into());
            }
            sites.push(ProbeSite { inst: id, kind: narrowing.kind() });
        }
        Ok(Box::new(BranchesOf(sites)))
    }
}

impl FunctionProbe for BranchesOf {
    fn sites(&self) -> &[ProbeSite] {
        &self.0
    }

    fn counters(&self, function: &ClonedFunction<'_>, site: &ProbeSite) -> Vec<Vec<(i64, Quantity)>> {
        let inst = site.inst;
        let executions = Quantity::Executions(inst);
        if matches!(function.body.inst(inst).variant.branch, Branch::Conditional(_)) {
            return vec![vec![(1, executions)], vec![(1, Quantity::Taken(inst))]];
        }
        let lanes = |side| vec![(1, Quantity::Lanes(ProgramPoint { inst, side }))];
        // Arrivals with no lane are in all three.
        let empty = Quantity::Empty(inst);
        vec![
            vec![(1, executions), (-1, empty)],
            vec![(1, Quantity::AllOn(inst)), (1, Quantity::AllOff(inst)), (-2, empty)],
            lanes(Side::Before),
            lanes(Side::After),
            vec![(1, empty)],
        ]
    }

    fn at_site(&self, site: &ProbeSite, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop> {
        let body = emitter.function().body;
        let narrowing = Narrowing::of(body.inst(site.inst), body.target().wave_size());
        let narrowing = narrowing.ok_or_else(|| Error::internal("a site that narrows nothing"))?;
        let before = ProgramPoint { inst: site.inst, side: Side::Before };
        let after = ProgramPoint { inst: site.inst, side: Side::After };
        match narrowing {
            // All such instructions write SCC.
            Narrowing::Mask { mask, complemented } => emitter.measure(before, Scc::Overwritten, |m| {
                let (exec, saved, narrowed) = (m.exec(), m.saved_exec(), m.asm.mask(m.r.scratch));
                m.asm.masks("s_mov_b", &[saved, exec])?;
                m.asm.masks(if complemented { "s_andn2_b" } else { "s_and_b" }, &[narrowed, exec, mask])?;
                count(m, narrowed)
            }),
            Narrowing::Compare => {
                emitter.save_exec(before)?;
                emitter.measure(after, Scc::Preserved, |m| {
                    m.load_saved_exec()?;
                    let exec = m.exec();
                    count(m, exec)
                })
            }
            Narrowing::Branch(condition) => {
                let reads_scc = matches!(condition, Condition::Scc0 | Condition::Scc1);
                emitter.measure(before, if reads_scc { Scc::Read } else { Scc::Preserved }, |m| branch(m, condition))
            }
        }
    }
}

/// Counts, with the old mask in the saved-EXEC pair and the new one in `after`; leaves EXEC as it was.
fn count(m: &mut Measurement<'_>, after: Value) -> Result<()> {
    let (lanes_after, lanes_before, agreed) = (s(m.r.first), s(m.r.second), s(m.r.scratch));
    // SCC is whether any lane goes on: if none does, they agree. With no lane there at all the answer is not used.
    let (exec, saved) = (m.exec(), m.saved_exec());
    m.asm.masks("s_bcnt1_i32_b", &[lanes_after, after])?;
    m.asm.op("s_cselect_b32", &[agreed, c(0), c(1)])?;
    m.asm.masks("s_bcnt1_i32_b", &[lanes_before, saved])?;
    if after == exec {
        // From here on the saved pair is what EXEC must be again.
        m.asm.masks("s_mov_b", &[saved, exec])?;
    }
    // The new mask is part of the old one, so the same number of lanes is the same mask.
    m.asm.op("s_cmp_eq_u32", &[lanes_after, lanes_before])?;
    m.asm.op("s_cselect_b32", &[agreed, c(1), agreed])?;
    m.value(AGREEMENTS, agreed)?;
    m.value(LANES_BEFORE, lanes_before)?;
    m.value(LANES_AFTER, lanes_after)?;
    m.reach()?;
    m.asm.op("s_cmp_lg_u32", &[lanes_before, c(0)])?;
    m.asm.masks("s_cselect_b", &[exec, c(COUNTED), c(EMPTY)])?;
    m.add()
}

/// Counts a uniform branch. It works with EXEC = 0 too.
fn branch(m: &mut Measurement<'_>, condition: Condition) -> Result<()> {
    let taken = s(m.r.first);
    match condition {
        Condition::Scc1 => m.asm.op("s_mov_b32", &[taken, s(m.r.saved_scc)])?,
        Condition::Scc0 => m.asm.op("s_xor_b32", &[taken, s(m.r.saved_scc), c(1)])?,
        Condition::VccZ | Condition::VccNz | Condition::ExecZ | Condition::ExecNz => {
            let register = if matches!(condition, Condition::VccZ | Condition::VccNz) { m.asm.vcc() } else { m.exec() };
            let if_zero = matches!(condition, Condition::VccZ | Condition::ExecZ);
            m.asm.masks("s_cmp_eq_u", &[register, c(0)])?;
            m.asm.op("s_cselect_b32", &[taken, c(if_zero.into()), c((!if_zero).into())])?;
        }
        Condition::Debug => return Err(Error::internal("a debugger's branch is no site")),
    }
    m.reach()?;
    let (exec, saved) = (m.exec(), m.saved_exec());
    m.asm.masks("s_mov_b", &[saved, exec])?;
    m.value(TAKEN, taken)?;
    m.asm.masks("s_mov_b", &[exec, c(BRANCH_COUNTED)])?;
    m.add()
}
