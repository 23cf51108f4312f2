//! In which order workgroups begin and waves run.
//!
//! Strict mode chooses at random. [`Options::schedule`] has it choose in another manner, so that programs meet orders
//! that differ more than two seeds of the usual one: all of them are orders that a GPU may have, which begins as many
//! workgroups as it has room for and runs their waves in any order. Progress is certain in each: a wave is preferred to
//! others, but never the only one to run.

use super::plan::Plan;
use crate::launch::options::Options;
use crate::state::random::Random;

/// Workgroups that strict mode runs side by side at first; more are let in when none of them gets done.
const RESIDENT: usize = 4;
/// In strict mode the next workgroup is any of the first few that are left.
const WINDOW: usize = 16;
/// The most of these where the order is chosen, and of workgroups side by side.
const MOST_WINDOW: u64 = 1024;
const MOST_RESIDENT: usize = 64;
/// Where the room of a GPU is not known.
const ROOM: u64 = 64;
/// Instructions that a wave runs before another has its turn: less than two to the power of this.
const TURN_BITS: usize = 9;
/// How often in so many times what is preferred is not chosen.
const OTHERS: u32 = 8;

/// What is chosen of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Any,
    First,
    Last,
}

/// The order of a dispatch.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    /// What chooses, if it is not what chooses everything else that is random.
    random: Option<Random>,
    /// The next workgroup is one of so many that are left.
    pub window: usize,
    /// Workgroups that run side by side at first.
    pub resident: usize,
    /// A turn has less instructions than two to the power of this.
    turn_bits: usize,
    /// Which workgroup begins.
    begins: Choice,
    /// Which wave of a workgroup, and which workgroup, is preferred.
    preferred: Choice,
}

impl Schedule {
    /// The order that the options ask for.
    pub(crate) fn new(options: &Options, plan: &Plan) -> Schedule {
        let room = plan.room.as_ref().map_or(ROOM, |room| room.workgroups).clamp(1, MOST_WINDOW) as usize;
        let usual = Schedule {
            random: None,
            window: WINDOW,
            resident: RESIDENT,
            turn_bits: TURN_BITS,
            begins: Choice::Any,
            preferred: Choice::Any,
        };
        match options.schedule {
            _ if !options.strict => Schedule { window: 1, resident: 1, ..usual },
            None | Some(0) => usual,
            // The one that differs most from that in which workgroups are usually begun.
            Some(1) => Schedule {
                random: Some(Random::new(1)),
                window: room,
                resident: 1,
                turn_bits: 2 * TURN_BITS,
                begins: Choice::Last,
                preferred: Choice::Last,
            },
            Some(seed) => Schedule::chosen(Random::new(seed ^ plan.dispatch.dispatch_id.rotate_left(32)), room),
        }
    }

    fn chosen(mut random: Random, room: usize) -> Schedule {
        let mut any = || [Choice::Any, Choice::First, Choice::Last][random.below(3)];
        let (begins, preferred) = (any(), any());
        let window = [1, WINDOW, room][random.below(3)];
        let resident = [1, 2, RESIDENT, 4 * RESIDENT, MOST_RESIDENT][random.below(5)].min(room);
        let turn_bits = [1, TURN_BITS, 2 * TURN_BITS][random.below(3)];
        Schedule { random: Some(random), window, resident, turn_bits, begins, preferred }
    }

    fn choose(&mut self, choice: Choice, count: usize, usual: &mut Random) -> usize {
        let random = self.random.as_mut().unwrap_or(usual);
        match choice {
            Choice::First => 0,
            Choice::Last => count - 1,
            Choice::Any => random.below(count),
        }
    }

    /// The workgroup of the window that begins; there are `count` of them, which is at least 1.
    pub(crate) fn begins(&mut self, count: usize, usual: &mut Random) -> usize {
        self.choose(self.begins, count, usual)
    }

    /// Which of several that could run has its turn; there is at least one.
    pub(crate) fn runs(&mut self, count: usize, usual: &mut Random) -> usize {
        let others = self.preferred == Choice::Any || self.random.as_mut().is_some_and(|random| random.one_in(OTHERS));
        self.choose(if others { Choice::Any } else { self.preferred }, count, usual)
    }

    /// Instructions of a turn.
    pub(crate) fn turn(&mut self, usual: &mut Random) -> u64 {
        1 << self.random.as_mut().unwrap_or(usual).below(self.turn_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_met_and_none_is_the_only_one() {
        let mut usual = Random::new(0);
        let (mut windows, mut residents) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
        for seed in 2..100 {
            let mut schedule = Schedule::chosen(Random::new(seed), 40);
            windows.insert(schedule.window);
            residents.insert(schedule.resident);
            let met: std::collections::BTreeSet<usize> = (0..200).map(|_| schedule.runs(3, &mut usual)).collect();
            assert_eq!(met.len(), 3, "{schedule:?}");
            assert!(schedule.begins(5, &mut usual) < 5 && schedule.turn(&mut usual) > 0);
        }
        assert_eq!(windows.into_iter().collect::<Vec<_>>(), [1, 16, 40]);
        assert_eq!(residents.into_iter().collect::<Vec<_>>(), [1, 2, 4, 16, 40]);
    }
}
