//! All that follows from what was recorded of a kernel.

use crate::accesses::Space;
use crate::arrays::{Array, Arrays};
use crate::heat::Heat;
use crate::measured::{Measured, measure};
use crate::recorded::RecordedKernel;
use crate::site::Site;

/// What was recorded of a kernel, and what follows from it: [`findings`](crate::findings()) says what of that is worth
/// a change.
#[derive(Debug)]
pub struct Analysis<'k> {
    /// The kernel.
    pub kernel: &'k RecordedKernel,
    /// The arrays that accesses are of.
    pub arrays: Arrays<'k>,
    /// What each instruction did, by address.
    pub measured: Vec<Measured>,
    /// Which words how many waves access.
    pub heat: Heat,
}

impl<'k> Analysis<'k> {
    /// Of a kernel.
    #[must_use]
    pub fn of(kernel: &'k RecordedKernel) -> Analysis<'k> {
        let arrays = Arrays::of(kernel);
        let (measured, heat) = (measure(kernel, &arrays), Heat::of(kernel, &arrays));
        Analysis { kernel, arrays, measured, heat }
    }

    /// The instructions that access an array.
    pub fn sites_of(&self, array: Array) -> impl Iterator<Item = &Measured> {
        self.measured.iter().filter(move |measured| measured.arrays.contains(&array))
    }

    /// Whether the lines that an instruction accessed, or the cycles that it kept LDS, are those that the code says of
    /// it. None if the code does not say, or says it of some waves only, and if lanes were not active.
    #[must_use]
    pub fn as_predicted(&self, measured: &Measured, site: &Site) -> Option<bool> {
        let waves = u64::from(site.waves);
        let is_full = measured.lanes == measured.executions * u64::from(self.kernel.lanes());
        if !is_full
            || site.waves != self.kernel.waves
            || measured.executions == 0
            || !is_even(measured, self.kernel.waves)
        {
            return None;
        }
        let agree = |predicted: u64, recorded: u64| predicted * measured.executions == recorded * waves;
        let addresses = u64::from(site.access.addresses);
        match measured.lds {
            Some(lds) => site.lds.map(|of_code| agree(of_code.cycles, lds.cycles * addresses)),
            None => site
                .lines
                .filter(|_| site.exact && measured.space != Space::Scratch)
                .map(|of_code| agree(of_code.likely.into(), measured.lines * addresses)),
        }
    }

    /// Workgroups that were recorded.
    #[must_use]
    pub fn recorded_workgroups(&self) -> u64 {
        let mut workgroups: Vec<(u32, [u32; 3])> =
            self.kernel.records.iter().map(|record| (record.dispatch, record.workgroup)).collect();
        workgroups.sort_unstable();
        workgroups.dedup();
        workgroups.len() as u64
    }

    /// Whether everything that the kernel accessed was recorded. Workgroups that access nothing are not known of: where
    /// some do not, this is false.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let dropped = self.kernel.dropped.values().any(|dropped| *dropped > 0);
        !dropped && self.recorded_workgroups() >= self.kernel.workgroups
    }
}

/// Whether each wave of a workgroup executed it as often as the others, over all workgroups.
fn is_even(measured: &Measured, waves: u32) -> bool {
    let mut of_wave = vec![0; waves as usize];
    for (wave, executions) in &measured.waves {
        let Some(of_number) = of_wave.get_mut(wave.wave as usize) else { return false };
        *of_number += executions;
    }
    of_wave.iter().all(|executions| *executions == of_wave[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accesses::{Access, Operation};
    use crate::place::{Category, Lines};
    use crate::recorded::Recorded;
    use crate::recorded::testing::{kernel, record};
    use crate::site::Severity;
    use wavetap_base::entity::InstId;

    /// Two waves of which each accesses four lines and a fifth: by the code, so many in all.
    fn site(lines: u32) -> Site {
        let access =
            Access { inst: InstId(0), space: Space::Global, operation: Operation::Load, bytes: 4, addresses: 1 };
        Site {
            access,
            category: Category::Misaligned,
            severity: Severity::None,
            stride: Some(4),
            step: None,
            argument: None,
            unknown: None,
            waves: 2,
            lines: Some(Lines { least: lines, most: lines, likely: lines, ideal: 8 }),
            exact: true,
            lds: None,
        }
    }

    #[test]
    fn recorded_lines_are_those_of_the_code_or_not() {
        let wave = |wave| Recorded { wave, ..record(0, 4, u64::MAX, |lane| 4 * lane + 4) };
        let of = |records: Vec<Recorded>, site: Site| {
            let kernel = kernel("gfx90a", records);
            let analysis = Analysis::of(&kernel);
            analysis.as_predicted(&analysis.measured[0], &site)
        };
        assert_eq!(of(vec![wave(0), wave(1)], site(10)), Some(true));
        assert_eq!(of(vec![wave(0), wave(1)], site(8)), Some(false));
        assert_eq!(of(vec![wave(0), wave(1)], Site { exact: false, ..site(10) }), None);
        assert_eq!(of(vec![wave(0), wave(1), wave(1)], site(10)), None, "one wave executed it more often");
        let few = Recorded { lanes: 1, addresses: vec![0], ..wave(0) };
        assert_eq!(of(vec![few, wave(1)], site(10)), None, "some lanes were not active");
    }
}
