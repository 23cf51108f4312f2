//! Vector registers for inserted code where the original code names all of them: scavenged at each place for the length
//! of a snippet.
//!
//! A probe uses few lanes of them. Of registers that are live there, those lanes are spilled to scalar registers that
//! no original code names, and restored; the other lanes are never touched. Registers into which a load is outstanding
//! are not scavenged before it is complete, and ones that the kernel's matrix or transcendental instructions write not
//! at all: their results take longer than other vector instructions'.

use super::Scavenger;
use super::registers::{OwnRegisters, Scalars, Vectors};
use crate::asm::{Asm, c, s, v};
use wavetap_amdgpu::Reg;
use wavetap_analysis::dataflow::RegSet;
use wavetap_analysis::kernel::{Reason, Refusal};
use wavetap_base::entity::ProgramPoint;
use wavetap_base::error::Result;

/// Lanes of the counters of a site that narrows EXEC, and of whatever else a probe counts.
const LANES: u32 = 5;
/// Scalar registers that lanes of three vector registers take.
pub(crate) const MOST_SLOTS: usize = 15;
/// The lanes that always add 1.
const ONES: [u32; 2] = [0, 4];
/// Wait states before the first lane is read: the original code may just have written EXEC or the register (4, gfx94x).
const ENTER_STATES: i64 = 4;
/// Wait states after the last lane that is written: the original code may read it by DPP or in a matrix instruction
/// (2).
const LEAVE_STATES: i64 = 2;
/// Wait states until the results of every matrix instruction are there (19, gfx950), in two instructions.
const MATRIX_STATES: [i64; 2] = [16, 4];

/// Scalar registers to spill lanes to, for all snippets of a kernel.
#[derive(Debug, Clone)]
pub(crate) struct LaneBudget {
    /// Scalar registers that lanes can be spilled to.
    pub(crate) slots: Vec<u16>,
    /// One more than the highest vector register of the allocation.
    pub(crate) end: u16,
}

/// Vector registers of one snippet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LaneSpills {
    /// What is spilled: vector register, lane, scalar register.
    spilled: Vec<(u16, u32, u16)>,
    /// Loads must complete first.
    wait: bool,
}

impl LaneBudget {
    /// Scavenges registers at a place. What has not been assigned need not be restored.
    pub(crate) fn scavenge(
        &self,
        scavenger: &Scavenger<'_>,
        assigned: &RegSet,
        pending: &RegSet,
        point: ProgramPoint,
    ) -> Result<(Vectors, LaneSpills), Refusal> {
        let body = scavenger.function.body;
        let mut excluded: RegSet = body.reads(point.inst).chain(body.writes(point.inst)).collect();
        excluded = excluded.union(*scavenger.function.slow_results());
        let live = scavenger.liveness.at(point).intersection(*assigned);
        let choose = |pending: &RegSet, wait| {
            let mut taken: Vec<u16> = Vec::new();
            let mut needed_again: Vec<u16> = Vec::new();
            let vectors = Vectors::take(body.target(), 0, |count, align| {
                let price = |first: &u16| {
                    let free = |number: &u16| {
                        let reg = Reg::vector(*number, 1);
                        !taken.contains(number) && !excluded.overlaps(reg) && !pending.overlaps(reg)
                    };
                    let run = *first..*first + count;
                    run.clone()
                        .all(|number| free(&number))
                        .then(|| run.filter(|number| live.overlaps(Reg::vector(*number, 1))).count())
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
            let spilled: Vec<_> =
                lanes.zip(&self.slots).map(|((register, lane), slot)| (register, lane, *slot)).collect();
            (spilled.len() == needed_again.len() * LANES as usize).then_some((vectors, LaneSpills { spilled, wait }))
        };
        choose(pending, false).or_else(|| choose(&RegSet::EMPTY, true)).ok_or_else(|| {
            let detail =
                "no vector registers can be scavenged: too few scalar registers are free to keep their lanes in";
            Refusal::at(Reason::VectorRegisters, body.address(point.inst), detail)
        })
    }
}

impl LaneSpills {
    /// Makes the registers what probes expect. Destroys SCC and the first scalar register.
    pub(crate) fn enter(&self, asm: &mut Asm, own: &OwnRegisters, r: Scalars) -> Result<()> {
        let Vectors { data, address, .. } = own.vectors;
        if self.wait {
            asm.wait_all_loads()?;
        }
        asm.states(ENTER_STATES)?;
        for (register, lane, slot) in &self.spilled {
            asm.op("v_readlane_b32", &[s(*slot), v(*register), c(*lane)])?;
        }
        for lane in 0..LANES {
            if ONES.contains(&lane) {
                asm.op("v_writelane_b32", &[v(data), c(1), c(lane)])?;
            }
            asm.op("v_writelane_b32", &[v(data + 1), c(0), c(lane)])?;
            let offset = lane * wavetap_profile::record::COUNTER;
            let place = match own.counter_base {
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

    /// Restores the registers.
    pub(crate) fn leave(&self, asm: &mut Asm) -> Result<()> {
        if self.spilled.is_empty() {
            return Ok(());
        }
        for (register, lane, slot) in &self.spilled {
            asm.op("v_writelane_b32", &[v(*register), s(*slot), c(*lane)])?;
        }
        asm.wait_before_exec()?;
        asm.states(LEAVE_STATES)
    }
}

/// Makes registers that nothing needs any more what the end of a wave expects: all lanes of them.
pub(crate) fn at_end(asm: &mut Asm, own: &OwnRegisters) -> Result<()> {
    let Vectors { data, address, .. } = own.vectors;
    asm.wait_all_loads()?;
    for states in MATRIX_STATES {
        asm.states(states)?;
    }
    asm.exec_lanes(own.target.wave_size())?;
    asm.op("v_mov_b32_e32", &[v(data + 1), c(0)])?;
    asm.lane_offsets(address)?;
    match own.counter_base {
        Some(start) => asm.op("v_add_u32_e32", &[v(address), s(start), v(address)]),
        None => Ok(()),
    }
}
