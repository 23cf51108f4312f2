//! Which barriers the waves of a workgroup come to in one round.
//!
//! A barrier of the hardware counts waves, and takes one that has ended for one that has come. It knows neither at
//! which instruction a wave waits nor which lanes are active, so that code with such a mistake goes on, with an order
//! that is not the one in the source.

use crate::fault::BarrierProblem;

/// The waves that have come to a barrier, and to which one.
#[derive(Default)]
pub(crate) struct BarrierSites {
    /// Of a split barrier: its phase.
    phase: u64,
    /// The first that a wave came to, by its code address, and that wave.
    first: Option<(u64, u32)>,
    /// The waves that have come, a bit for each.
    arrived: u32,
    /// Most waves that have not ended, of all rounds.
    waves: u32,
}

impl BarrierSites {
    /// A workgroup of so many waves begins.
    pub(crate) fn begin(&mut self, waves: u32) {
        self.waves = waves;
    }

    /// The next round begins.
    pub(crate) fn clear(&mut self) {
        (self.first, self.arrived) = (None, 0);
    }

    fn follow(&mut self, phase: u64) {
        if self.phase != phase {
            self.phase = phase;
            self.clear();
        }
    }

    /// A wave comes to the barrier at a code address, while `members` waves have not ended. What is wrong with that.
    pub(crate) fn arrive(&mut self, (at, wave): (u64, u32), phase: u64, members: u32) -> Option<BarrierProblem> {
        self.follow(phase);
        self.arrived |= 1_u32.checked_shl(wave).unwrap_or(0);
        let (other, other_wave) = *self.first.get_or_insert((at, wave));
        if other != at {
            return Some(BarrierProblem::Different { at, other, wave: other_wave });
        }
        (members < self.waves).then(|| BarrierProblem::Ended { at, waves: self.waves - members })
    }

    /// A wave ends. That others wait for it at a barrier, if they do.
    pub(crate) fn end(&mut self, wave: u32, phase: u64) -> Option<BarrierProblem> {
        self.follow(phase);
        let (at, _) = self.first?;
        (self.arrived >> wave & 1 == 0).then_some(BarrierProblem::Ended { at, waves: 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_come_to_one_barrier() {
        let mut sites = BarrierSites::default();
        sites.begin(2);
        assert_eq!(sites.arrive((0x10, 0), 0, 2), None);
        assert_eq!(sites.arrive((0x20, 1), 0, 2), Some(BarrierProblem::Different { at: 0x20, other: 0x10, wave: 0 }));
        sites.clear();
        assert_eq!(sites.arrive((0x20, 1), 0, 2), None);
        assert_eq!(sites.end(1, 0), None, "it has come");
        assert_eq!(sites.end(0, 0), Some(BarrierProblem::Ended { at: 0x20, waves: 1 }));
        assert_eq!(sites.arrive((0x30, 1), 1, 1), Some(BarrierProblem::Ended { at: 0x30, waves: 1 }));
        assert_eq!(sites.end(0, 2), None, "the next phase");
    }
}
