//! The barrier of a workgroup.

use super::wave::Wave;
use crate::shadow::group_checks::GroupChecks;

/// The barrier of a workgroup that waves signal and wait for in two steps (gfx12).
#[derive(Default)]
pub(crate) struct Barrier {
    /// Waves that have not ended.
    pub members: u32,
    /// Those that have signalled.
    pub arrived: u32,
    /// How often all have.
    pub phase: u64,
    /// What strict mode keeps of the workgroup.
    pub checks: GroupChecks,
}

impl Barrier {
    /// A wave is about to run: the stores of the others that no wait has guaranteed are held here while it does.
    pub(crate) fn hold_stores_of_others(&mut self, waves: &mut [Wave], running: usize) {
        self.checks.neighbours.swap(waves.iter_mut().map(|wave| wave.in_flight.effects()), running);
    }

    /// The wave has run: each wave has its stores again.
    pub(crate) fn return_stores_to_others(&mut self, waves: &mut [Wave], running: usize) {
        self.hold_stores_of_others(waves, running);
    }

    /// Begins the next phase when all waves have signalled.
    pub(crate) fn settle(&mut self) {
        if self.arrived >= self.members {
            self.arrived = 0;
            self.phase += 1;
        }
    }
}
