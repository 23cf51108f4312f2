//! The code of points where placed counters are kept in memory or in LDS: all that is counted at a point is added at
//! once.

use super::{Emitter, Scc};
use crate::asm::{c, s};
use crate::placement::{Increment, Job, PointJobs};
use wavetap_analysis::kernel::Stop;

/// Writes the code of one point.
///
/// # Errors
/// Refused if there are no registers for it; failed if an instruction cannot be built.
pub(crate) fn emit(here: &PointJobs, emitter: &mut Emitter<'_, '_>) -> Result<(), Stop> {
    let function = emitter.scavenger.function;
    let counted: Vec<(u32, Job)> = here.lanes().collect();
    if !counted.is_empty() {
        let reads_scc = counted.iter().any(|(_, job)| job.reads_scc(function));
        let scc = if reads_scc { Scc::Read } else { Scc::Preserved };
        emitter.measure(here.point, scc, |m| {
            if counted.iter().any(|(_, job)| matches!(job, Job::AllOn(_, None) | Job::Empty(_, None))) {
                m.load_saved_exec()?;
            }
            let (exec, saved) = (m.exec(), m.saved_exec());
            let (lanes, flag) = (m.r.first, s(m.r.second));
            let mut mask = 0;
            for (lane, job) in &counted {
                mask |= 1 << lane;
                let value = match job.increment(&mut m.asm, function, saved, lanes)? {
                    None | Some(Increment::One) => continue,
                    Some(Increment::OriginalScc) => s(m.r.saved_scc),
                    Some(Increment::Scalar(register)) => s(register),
                    Some(Increment::Scc) => {
                        m.asm.op("s_cselect_b32", &[flag, c(1), c(0)])?;
                        flag
                    }
                };
                m.value(*lane, value)?;
            }
            m.reach()?;
            m.asm.masks("s_mov_b", &[saved, exec])?;
            m.asm.masks("s_mov_b", &[exec, c(mask)])?;
            m.add()
        })?;
    }
    if here.jobs.contains(&Job::SaveExec) { emitter.save_exec(here.point) } else { Ok(()) }
}
