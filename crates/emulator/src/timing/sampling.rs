//! Which workgroups of a dispatch are modelled, where not all are, and what the time of all is.
//!
//! A dispatch with many more workgroups than the device holds at once is in a steady state for most of its time. The
//! model is given windows of workgroups in a row: the first ones, with which the device fills, some that are spread
//! over the dispatch, and the last ones, with which it drains. The workgroups between two windows are executed without
//! the model, one after the other; what they access goes into L2, the Infinity Cache and the translations, so that the
//! next window finds these as they would be. (Sampling with functional warming: SMARTS, ISCA 2003.) Time does not pass
//! meanwhile. At the end, the workgroups that were left out are given the mean time of those beside them.
//!
//! The first workgroups of a window find caches of compute units that have other lines than they would have, so that
//! time counts from the second third of a window on. Workgroups that begin together end together: a third is as many as
//! the device holds.

use crate::trace::timing::{Extrapolated, TimedWorkgroups};

/// Windows beside the first one that are modelled unless more or fewer are asked for.
const WINDOWS: u64 = 7;
/// Fewest windows beside the first one: time counts in the one before the last.
const LEAST: u64 = 2;

/// Workgroups in a row that are modelled.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// The workgroup from which on time counts, and one beyond the last.
    counts: u64,
    end: u64,
    /// When there was room for these two.
    times: [Option<u64>; 2],
}

/// The workgroups of a dispatch that are modelled, and when.
#[derive(Debug)]
pub(crate) struct Windows {
    all: Vec<Window>,
    /// By window but the first: its first workgroup.
    starts: Vec<u64>,
    /// The window that is modelled, or was last.
    at: usize,
    workgroups: u64,
}

/// How a dispatch goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next workgroup is modelled.
    Modelled,
    /// It is executed without the model.
    Skipped,
}

impl Windows {
    /// Those of a dispatch of so many workgroups on a device that holds `held` of them; none where all are modelled.
    pub(crate) fn new(wanted: TimedWorkgroups, workgroups: u64, held: u64) -> Option<Windows> {
        let held = held.max(1);
        let (first, each) = (4 * held, 3 * held);
        let count = match wanted {
            TimedWorkgroups::All => return None,
            TimedWorkgroups::Auto => WINDOWS,
            TimedWorkgroups::AtMost(most) => (most.get().saturating_sub(first) / each).max(LEAST),
        };
        // Not worth it where less than half of the workgroups would be left out.
        let modelled = first.saturating_add(each.saturating_mul(count));
        if workgroups / 2 < modelled {
            return None;
        }
        let window = |end: u64| Window { counts: end - 2 * held, end, times: [None; 2] };
        // They are closer to each other at the beginning, when caches are cold.
        let spread = workgroups - first - each;
        let place = |n: u64| (spread as f64 * (n as f64 / count as f64).powf(1.5)) as u64;
        let mut starts = Vec::new();
        let mut least = first;
        for n in 1..count {
            let start = (first + place(n)).clamp(least, workgroups - each * (count - n + 1));
            starts.push(start);
            least = start + each;
        }
        starts.push(workgroups - each);
        let all = std::iter::once(first).chain(starts.iter().map(|start| start + each)).map(window).collect();
        Some(Windows { all, starts, at: 0, workgroups })
    }

    /// Whether it matters when there is room for a workgroup.
    pub(crate) fn asks(&self, workgroup: u64) -> bool {
        let window = &self.all[self.at];
        workgroup == window.counts || workgroup >= window.end
    }

    /// There is room for a workgroup at a cycle.
    pub(crate) fn room(&mut self, workgroup: u64, cycle: u64) -> Next {
        let window = &mut self.all[self.at];
        if workgroup == window.counts {
            window.times[0].get_or_insert(cycle);
        }
        if workgroup < window.end {
            return Next::Modelled;
        }
        window.times[1].get_or_insert(cycle);
        self.skips(workgroup)
    }

    /// Whether a workgroup is between two windows.
    pub(crate) fn skips(&mut self, workgroup: u64) -> Next {
        match self.starts.get(self.at) {
            Some(start) if workgroup < *start => Next::Skipped,
            Some(_) => {
                self.at += 1;
                Next::Modelled
            }
            None => Next::Modelled,
        }
    }

    /// The cycles of the workgroups that were left out, and how exact that is where the others took `cycles`.
    pub(crate) fn extrapolate(&self, cycles: u64) -> (u64, Extrapolated) {
        // Of each window but the last, in which there is no room for one more.
        let means: Vec<f64> = self
            .all
            .iter()
            .filter_map(|window| match window.times {
                [Some(from), Some(to)] => Some((to - from.min(to)) as f64 / (window.end - window.counts) as f64),
                _ => None,
            })
            .collect();
        let mut left_out = 0.0;
        let mut skipped = 0;
        for (n, start) in self.starts.iter().enumerate() {
            let (Some(before), gap) = (means.get(n), start - self.all[n].end) else { continue };
            let after = means.get(n + 1).unwrap_or(before);
            left_out += gap as f64 * (before + after) / 2.0;
            skipped += gap;
        }
        // What grows or falls steadily is no error: the variance is that of neighbours.
        let count = means.len().max(1) as f64;
        let differences: f64 = means.windows(2).map(|pair| (pair[0] - pair[1]).powi(2)).sum();
        let variance = differences / (2.0 * (count - 1.0).max(1.0));
        // Of a normal distribution, 95 percent are within so many standard deviations.
        let error = 1.96 * (variance / count).sqrt() * skipped as f64 / (left_out + cycles as f64).max(1.0);
        let modelled = self.workgroups - skipped;
        let error_permille = (error * 1000.0).ceil() as u32;
        (left_out.round() as u64, Extrapolated { modelled, workgroups: self.workgroups, error_permille })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;

    /// Workgroups that begin at the times of a function, of a device that holds ten of them.
    fn run(workgroups: u64, wanted: TimedWorkgroups, time: impl Fn(u64) -> u64) -> Option<(u64, Extrapolated)> {
        let mut windows = Windows::new(wanted, workgroups, 10)?;
        let (mut skipped, mut clock, mut n) = (0, 0, 10);
        while n < workgroups {
            let mut next = if windows.asks(n) { windows.room(n, clock) } else { Next::Modelled };
            while next == Next::Skipped {
                n += 1;
                skipped += 1;
                next = windows.skips(n);
            }
            clock += time(n);
            n += 1;
        }
        let (left_out, how) = windows.extrapolate(clock);
        assert_eq!(how.modelled + skipped, workgroups);
        Some((clock + left_out, how))
    }

    #[test]
    fn what_is_left_out_takes_what_its_neighbours_take() {
        assert!(run(100_000, TimedWorkgroups::All, |_| 7).is_none());
        assert!(run(400, TimedWorkgroups::Auto, |_| 7).is_none(), "too few");
        let (cycles, how) = run(100_000, TimedWorkgroups::Auto, |_| 7).expect("sampled");
        assert_eq!(cycles, 7 * (100_000 - 10));
        assert_eq!(how, Extrapolated { modelled: 40 + 7 * 30, workgroups: 100_000, error_permille: 0 });
        // What changes from the first to the last one.
        let grows = |n: u64| 50 + n / 1000;
        let exact: u64 = (10..100_000).map(grows).sum();
        let (cycles, how) = run(100_000, TimedWorkgroups::Auto, grows).expect("sampled");
        assert!(cycles.abs_diff(exact) * 40 < exact, "{cycles} {exact}");
        assert!((1..100).contains(&how.error_permille), "{how:?}");
        let most = TimedWorkgroups::AtMost(NonZero::new(1).expect("not 0"));
        assert_eq!(run(100_000, most, |_| 3).map(|(_, how)| how.modelled), Some(40 + 2 * 30));
    }
}
