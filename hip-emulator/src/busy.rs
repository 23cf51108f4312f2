//! How much of a part of the machine is in use at which modelled time, and when what is submitted gets its share.

use std::collections::BTreeMap;
use std::ops::Bound;

/// A part of the machine that several operations may use at once, as long as there is enough of it.
///
/// What was added before keeps what it has: a later operation gets what is left. So nothing that has ended ends later
/// than was said, and no more than all of it is in use at any time.
#[derive(Debug)]
pub(crate) struct Busy {
    size: u64,
    /// How much is in use from each of these times on; 0 before the first.
    steps: BTreeMap<u64, u64>,
}

impl Busy {
    /// Nothing of `size` is in use, which is not 0.
    pub(crate) fn new(size: u64) -> Busy {
        Busy { size: size.max(1), steps: BTreeMap::new() }
    }

    fn used(&self, at: u64) -> u64 {
        self.steps.range(..=at).next_back().map_or(0, |(_, used)| *used)
    }

    fn next_step(&self, at: u64) -> Option<u64> {
        self.steps.range((Bound::Excluded(at), Bound::Unbounded)).next().map(|(at, _)| *at)
    }

    /// The first time from `at` on at which not all is in use.
    pub(crate) fn free_from(&self, mut at: u64) -> u64 {
        while self.used(at) >= self.size {
            match self.next_step(at) {
                Some(next) => at = next,
                None => break,
            }
        }
        at
    }

    /// Adds an operation that begins at `at` and takes so many cycles if it has as much as it wants; gives its end,
    /// which is later where others have too much.
    pub(crate) fn add(&mut self, at: u64, cycles: u64, wanted: u64) -> u64 {
        let wanted = wanted.clamp(1, self.size);
        // What is left to do, in cycles of one part of the size.
        let mut work = u128::from(cycles) * u128::from(wanted);
        let mut now = at;
        while work > 0 {
            let used = self.used(now);
            let given = wanted.min(self.size - used);
            let next = self.next_step(now);
            if given == 0 {
                match next {
                    Some(next) => now = next,
                    // The last step is of nothing in use.
                    None => break,
                }
                continue;
            }
            let needed = u64::try_from(work.div_ceil(given.into())).unwrap_or(u64::MAX);
            let end = next.map_or(u64::MAX, |next| next).min(now.saturating_add(needed));
            work = work.saturating_sub(u128::from(end - now) * u128::from(given));
            self.steps.insert(now, used + given);
            self.steps.entry(end).or_insert(used);
            now = end;
        }
        now
    }

    /// Forgets what was before a time at which nothing will be added any more.
    pub(crate) fn forget_before(&mut self, at: u64) {
        let used = self.used(at);
        self.steps = self.steps.split_off(&at);
        if used > 0 {
            self.steps.entry(at).or_insert(used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_runs_at_once() {
        let mut busy = Busy::new(10);
        assert_eq!(busy.add(0, 100, 4), 100);
        assert_eq!(busy.add(50, 100, 6), 150);
        assert_eq!(busy.free_from(60), 100);
        assert_eq!(busy.free_from(10), 10);
    }

    #[test]
    fn what_does_not_fit_gets_what_is_left() {
        let mut busy = Busy::new(10);
        assert_eq!(busy.add(0, 100, 8), 100);
        // 2 of 8 for 100 cycles are 25 of 100; the other 75 are done at full speed.
        assert_eq!(busy.add(0, 100, 8), 175);
        // The whole machine: nothing up to 100, 2 of 10 up to 175 (15 cycles' worth), the rest alone.
        assert_eq!(busy.free_from(0), 100);
        assert_eq!(busy.add(100, 100, 10), 175 + 85);
    }

    #[test]
    fn gaps_are_used_and_ends_do_not_change() {
        let mut busy = Busy::new(1);
        assert_eq!(busy.add(0, 10, 1), 10);
        assert_eq!(busy.add(20, 10, 1), 30);
        // 10 in the gap, 5 after the second.
        assert_eq!(busy.add(0, 15, 1), 35);
        assert_eq!(busy.free_from(0), 35);
        assert_eq!(busy.add(0, 0, 1), 0);
    }

    #[test]
    fn the_past_is_forgotten() {
        let mut busy = Busy::new(4);
        busy.add(0, 100, 3);
        busy.add(200, 100, 3);
        busy.forget_before(50);
        // A quarter of the machine up to 100, and all of it for the other 150 of 200 parts.
        assert_eq!(busy.add(50, 50, 4), 138);
        busy.forget_before(1000);
        assert!(busy.steps.is_empty() || busy.steps.values().all(|used| *used == 0));
    }
}
