//! Vector registers for inserted code where the original code names all of them: borrowed at each place for the length of a snippet.
//!
//! A probe uses few lanes of them. Of registers that are live there, those lanes go to scalar registers that no original code names, and back;
//! the other lanes are never touched. Registers into which a load is under way are not borrowed before it has arrived, and ones that the kernel's matrix or
//! transcendental instructions write not at all: their results take longer than other vector instructions'.

use super::asm::{Asm, c, s, v};
use super::parts::Part;
use super::plan::Plan;
use super::registers::{Scalars, Vectors};
use super::settle;
use wavetap_amdgpu::{EventHazards, Flags, Reg, Value};
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::{Reason, Refusal};
use wavetap_base::entity::ProgramPoint;
use wavetap_base::error::Result;

/// Lanes of the counters of a site that narrows EXEC, and of whatever else a probe counts.
const LANES: u32 = 5;
/// Scalar registers that lanes of three vector registers take.
pub(super) const MOST_SLOTS: usize = 15;
/// The lanes that always add 1.
const ONES: [u32; 2] = [0, 4];
/// Wait states before the first lane is read: the original code may just have written EXEC or the register (4, gfx94x).
const ENTER_STATES: i64 = 4;
/// Wait states behind the last lane that is written: the original code may read it by DPP or in a matrix instruction (2).
const LEAVE_STATES: i64 = 2;
/// Wait states until the results of every matrix instruction are there (19, gfx950), in two instructions.
const MATRIX_STATES: [i64; 2] = [16, 4];

/// Where vector registers are borrowed, for all snippets of a kernel.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    /// Scalar registers that lanes can be kept in.
    pub(super) slots: Vec<u16>,
    /// One more than the highest vector register of the allocation.
    pub(super) end: u16,
}

/// Vector registers of one snippet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Loan {
    /// What is kept: vector register, lane, scalar register.
    kept: Vec<(u16, u32, u16)>,
    /// Loads have to arrive first.
    wait: bool,
}

impl Terms {
    /// Borrows registers at a place. What has not been assigned need not be given back.
    pub(super) fn lend(
        &self,
        part: &Part<'_>,
        assigned: &RegSet,
        pending: &RegSet,
        point: ProgramPoint,
    ) -> Result<(Vectors, Loan), Refusal> {
        let mut excluded: RegSet = part.body.reads(point.inst).chain(part.body.writes(point.inst)).collect();
        excluded = excluded.union(slow_results(part));
        let live = part.liveness.at(point).intersection(*assigned);
        let choose = |pending: &RegSet, wait| {
            let mut taken: Vec<u16> = Vec::new();
            let mut needed_again: Vec<u16> = Vec::new();
            let vectors = Vectors::take(part.body.target(), |count, align| {
                let price = |first: &u16| {
                    let free = |number: &u16| {
                        let reg = Reg::vector(*number, 1);
                        !taken.contains(number) && !excluded.overlaps(reg) && !pending.overlaps(reg)
                    };
                    let run = *first..*first + count;
                    run.clone().all(|number| free(&number)).then(|| run.filter(|number| live.overlaps(Reg::vector(*number, 1))).count())
                };
                let best = (0..self.end.saturating_sub(count - 1))
                    .step_by(usize::from(align))
                    .filter_map(|first| Some((price(&first)?, first)))
                    .min();
                let (_, first) = best?;
                taken.extend(first..first + count);
                needed_again.extend((first..first + count).filter(|number| live.overlaps(Reg::vector(*number, 1))));
                Some(first)
            })?;
            let lanes = needed_again.iter().flat_map(|register| (0..LANES).map(move |lane| (*register, lane)));
            let kept: Vec<_> = lanes.zip(&self.slots).map(|((register, lane), slot)| (register, lane, *slot)).collect();
            (kept.len() == needed_again.len() * LANES as usize).then_some((vectors, Loan { kept, wait }))
        };
        choose(pending, false).or_else(|| choose(&RegSet::EMPTY, true)).ok_or_else(|| {
            let detail = "no vector registers can be borrowed: too few scalar registers are free to keep their lanes in";
            Refusal::at(Reason::VectorRegisters, part.body.address(point.inst), detail)
        })
    }
}

/// Registers that hold results of instructions that take longer than others.
fn slow_results(part: &Part<'_>) -> RegSet {
    let slow = part.body.ids().filter(|id| part.body.inst(*id).variant.flags.intersects(Flags::MFMA | Flags::TRANS));
    slow.flat_map(|id| part.body.writes(id)).collect()
}

impl Loan {
    /// Makes the registers what probes expect. Destroys SCC and the first scalar register.
    pub(super) fn enter(&self, asm: &mut Asm, plan: &Plan, r: Scalars) -> Result<()> {
        let Vectors { data, address, .. } = plan.vectors;
        if self.wait {
            asm.wait_all_loads()?;
        }
        asm.states(ENTER_STATES)?;
        for (register, lane, slot) in &self.kept {
            asm.op("v_readlane_b32", &[s(*slot), v(*register), c(*lane)])?;
        }
        for lane in 0..LANES {
            if ONES.contains(&lane) {
                asm.op("v_writelane_b32", &[v(data), c(1), c(lane)])?;
            }
            asm.op("v_writelane_b32", &[v(data + 1), c(0), c(lane)])?;
            let offset = lane * wavetap_profile::record::COUNTER;
            let place = match plan.slice_start {
                Some(start) => {
                    asm.op("s_add_u32", &[s(r.first), s(start), c(offset)])?;
                    s(r.first)
                }
                None => c(offset),
            };
            asm.op("v_writelane_b32", &[v(address), place, c(lane)])?;
        }
        Ok(())
    }

    /// Gives the registers back.
    pub(super) fn leave(&self, asm: &mut Asm) -> Result<()> {
        if self.kept.is_empty() {
            return Ok(());
        }
        for (register, lane, slot) in &self.kept {
            asm.op("v_writelane_b32", &[v(*register), s(*slot), c(*lane)])?;
        }
        let target = asm.target();
        if target.event_hazards().contains(EventHazards::VALU_PARTIAL_FORWARD) && target.wave_size() == 64 {
            // EXEC is written next. Original code that used the register behind that together with one that it has just written would have too old a value.
            asm.op("s_waitcnt_depctr", &[Value::Imm(settle::VECTOR_REGISTERS.bits().into())])?;
        }
        asm.states(LEAVE_STATES)
    }
}

/// Makes registers that nothing needs any more what the end of a wave expects: all lanes of them.
pub(super) fn at_end(asm: &mut Asm, plan: &Plan) -> Result<()> {
    let Vectors { data, address, .. } = plan.vectors;
    asm.wait_all_loads()?;
    for states in MATRIX_STATES {
        asm.states(states)?;
    }
    asm.exec_lanes(plan.target.wave_size())?;
    asm.op("v_mov_b32_e32", &[v(data + 1), c(0)])?;
    super::prologue::lane_offsets(plan, asm, address)?;
    match plan.slice_start {
        Some(start) => asm.op("v_add_u32_e32", &[v(address), s(start), v(address)]),
        None => Ok(()),
    }
}
