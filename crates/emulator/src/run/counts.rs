//! What a worker counts at each instruction.

use std::ops::Range;

use wavetap_profile::probes::branches::ExecCounts;

use super::code::Code;
use crate::op::Site;
use crate::state::op::Op;
use crate::state::wave::Wave;

/// What was counted at an instruction.
#[derive(Clone, Copy, Default)]
pub(crate) struct OpCount {
    /// Executions that were counted one by one, not as a part of a run of instructions.
    pub(super) executed: u64,
    /// Executions of runs of instructions that begin here, less those of runs that ended before.
    pub(super) begun: i64,
    /// Branches only.
    pub(super) taken: u64,
    /// Active lanes before it, where they are traced.
    pub(super) lanes: u64,
    pub(super) exec: ExecCounts,
}

/// The instructions that were counted, and some others, with their counts.
pub(super) fn executed_ops<'c>(
    code: &'c Code,
    counts: &'c [OpCount],
    counted: &Range<usize>,
) -> impl Iterator<Item = (&'c Op, &'c OpCount)> {
    let counts = counts.get(counted.clone()).unwrap_or_default();
    code.ops.get(counted.start..).unwrap_or_default().iter().zip(counts)
}

/// Counts what the instruction did to EXEC or to the program counter.
pub(super) fn tally(count: &mut OpCount, op: &Op, wave: &Wave, before: u64) {
    count.lanes += u64::from(before.count_ones());
    match op.site {
        Site::None => {}
        Site::Branch => count.taken += u64::from(wave.jumped),
        Site::Exec if before == 0 => count.exec.empty += 1,
        Site::Exec => {
            let after = wave.exec();
            count.exec.executions += 1;
            count.exec.agreements += u64::from(after == before || after == 0);
            count.exec.lanes_before += u64::from(before.count_ones());
            count.exec.lanes_after += u64::from(after.count_ones());
        }
    }
}
