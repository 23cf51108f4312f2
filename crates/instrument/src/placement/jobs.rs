//! What inserted code does at a point so that measures are taken there: the same wherever counters are.

use std::collections::BTreeMap;

use super::nonzero::saved_exec;
use super::values::Measure;
use crate::asm::{Asm, c, s};
use wavetap_amdgpu::{Reg, Value};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::{InstId, ProgramPoint, Side};
use wavetap_base::error::Result;

/// Something to do at a point; in the order in which it is done there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Job {
    /// Counts if SCC, which the instruction before has set, says that a lane is active, or EXEC does.
    NonZero(Measure, InstId),
    /// Counts if EXEC is what was saved in a register of the original's, or by [`Job::SaveExec`].
    AllOn(Measure, Option<Reg>),
    /// Counts if what was saved there is 0.
    Empty(Measure, Option<Reg>),
    /// Counts.
    Execution(Measure),
    /// Adds the active lanes.
    Lanes(Measure),
    /// Saves EXEC for [`Job::AllOn`] and [`Job::Empty`].
    SaveExec,
}

/// What a job adds to its counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Increment {
    /// 1.
    One,
    /// SCC as the original code left it.
    OriginalScc,
    /// SCC.
    Scc,
    /// What a scalar register holds.
    Scalar(u16),
}

impl Job {
    /// What it counts.
    pub(crate) fn measure(self) -> Option<Measure> {
        match self {
            Job::NonZero(measure, _)
            | Job::AllOn(measure, _)
            | Job::Empty(measure, _)
            | Job::Execution(measure)
            | Job::Lanes(measure) => Some(measure),
            Job::SaveExec => None,
        }
    }

    /// Whether it adds SCC as the original code leaves it.
    pub(crate) fn reads_scc(self, body: &Body) -> bool {
        matches!(self, Job::NonZero(_, inst) if body.inst(inst).opcode().mask().is_some())
    }

    /// Computes what it adds, with EXEC as the original code has it. `saved` is what [`Job::SaveExec`] saved; `lanes`
    /// is a scalar register for a number. Destroys SCC, unless that is what it adds.
    pub(crate) fn increment(self, asm: &mut Asm, body: &Body, saved: Value, lanes: u16) -> Result<Option<Increment>> {
        let exec = asm.exec();
        Ok(Some(match self {
            // Instructions on masks set SCC if their result is not 0.
            Job::NonZero(..) if self.reads_scc(body) => Increment::OriginalScc,
            Job::NonZero(..) => {
                asm.masks("s_cmp_lg_u", &[exec, c(0)])?;
                Increment::Scc
            }
            Job::AllOn(_, original) => {
                asm.masks("s_cmp_eq_u", &[original.map_or(saved, Value::Reg), exec])?;
                Increment::Scc
            }
            Job::Empty(_, original) => {
                asm.masks("s_cmp_eq_u", &[original.map_or(saved, Value::Reg), c(0)])?;
                Increment::Scc
            }
            Job::Execution(_) => Increment::One,
            Job::Lanes(_) => {
                asm.masks("s_bcnt1_i32_b", &[s(lanes), exec])?;
                Increment::Scalar(lanes)
            }
            Job::SaveExec => return Ok(None),
        }))
    }
}

/// What is done at the points of a function, in order.
pub(crate) type Jobs = BTreeMap<ProgramPoint, Vec<Job>>;

/// Where measures are taken, by function of a kernel.
pub(crate) fn jobs(functions: &[&Body], measures: &[Measure]) -> Vec<Jobs> {
    let mut jobs = vec![Jobs::new(); functions.len()];
    let mut add = |function: usize, point, job| {
        let jobs: &mut Vec<Job> = jobs[function].entry(point).or_default();
        if !jobs.contains(&job) {
            jobs.push(job);
        }
    };
    for &measure in measures {
        match measure {
            Measure::EntryLanes | Measure::SameLanes { .. } => {}
            Measure::Executions { function, point, .. } => add(function, point, Job::Execution(measure)),
            Measure::Lanes { function, point, .. } => add(function, point, Job::Lanes(measure)),
            Measure::NonZero { function, inst, .. } => {
                add(function, ProgramPoint { inst, side: Side::After }, Job::NonZero(measure, inst));
            }
            Measure::AllOn { function, inst, .. } | Measure::Empty { function, inst, .. } => {
                let saved = saved_exec(functions[function], inst);
                if saved.is_none() {
                    add(function, ProgramPoint { inst, side: Side::Before }, Job::SaveExec);
                }
                let job = match measure {
                    Measure::Empty { .. } => Job::Empty(measure, saved),
                    _ => Job::AllOn(measure, saved),
                };
                add(function, ProgramPoint { inst, side: Side::After }, job);
            }
        }
    }
    jobs.iter_mut().flat_map(BTreeMap::values_mut).for_each(|jobs| jobs.sort_unstable());
    jobs
}
