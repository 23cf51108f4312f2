//! What was dispatched where, in the program's own ranges (roctx).

use serde::{Deserialize, Serialize};
use wavetap_profile::file::{KernelTotals, Profile};
use wavetap_profile::time::TimeProfile;

/// A kernel in a region of the program, or outside of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegionRow {
    /// The ranges that were open, outermost first, separated by `/`; null for what was dispatched outside of all.
    pub region: Option<String>,
    /// The kernel's mangled name.
    pub name: String,
    /// Its demangled name.
    pub demangled: String,
    /// MD5 of its original code object.
    pub object: String,
    /// Dispatches of it there.
    pub dispatches: u64,
    /// Their waves.
    pub waves: u64,
    /// Modelled cycles of them, where time was modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled_cycles: Option<u64>,
}

impl RegionRow {
    fn of(kernel: &KernelTotals) -> RegionRow {
        RegionRow {
            region: kernel.region.clone(),
            name: kernel.name.clone(),
            demangled: kernel.demangled.clone(),
            object: kernel.object.clone(),
            dispatches: kernel.dispatches,
            waves: kernel.waves,
            modelled_cycles: None,
        }
    }
}

/// The kernels of each region, regions in order of first dispatch, then what was dispatched outside of all; nothing if
/// the program has marked no range.
#[must_use]
pub fn rows(profile: &Profile) -> Vec<RegionRow> {
    if profile.regions.is_empty() {
        return Vec::new();
    }
    let names = profile.region_names();
    let of_region = |name: &&str| {
        let inside = profile.regions.iter().filter(|kernel| kernel.region.as_deref() == Some(*name));
        inside.map(RegionRow::of).collect::<Vec<_>>()
    };
    let mut rows: Vec<RegionRow> = names.iter().flat_map(of_region).collect();
    for kernel in &profile.kernels {
        let inside = profile.regions.iter().filter(|inside| inside.is_same_kernel(kernel));
        let (dispatches, waves) = inside.fold((0, 0), |(d, w), inside| (d + inside.dispatches, w + inside.waves));
        if kernel.dispatches > dispatches {
            let (dispatches, waves) = (kernel.dispatches - dispatches, kernel.waves.saturating_sub(waves));
            rows.push(RegionRow { dispatches, waves, ..RegionRow::of(kernel) });
        }
    }
    rows
}

/// Gives rows their modelled time.
pub fn set_time(rows: &mut [RegionRow], time: Option<&TimeProfile>) {
    for row in rows {
        row.modelled_cycles = time.map(|time| {
            let of_kernel = time.kernels.iter().filter(|kernel| kernel.object == row.object && kernel.name == row.name);
            let dispatches = of_kernel.flat_map(|kernel| &kernel.dispatches);
            let inside = dispatches.filter(|dispatch| dispatch.region == row.region);
            inside.map(|dispatch| dispatch.modelled_cycles).sum()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::file::{Backend, Origin};
    use wavetap_profile::time::{DispatchTime, KernelTime};

    #[test]
    fn regions_and_what_is_outside_of_them_are_all() {
        let kernel = |name: &str, region: Option<&str>, dispatches| KernelTotals {
            name: name.to_owned(),
            region: region.map(str::to_owned),
            dispatches,
            waves: 4 * dispatches,
            ..KernelTotals::default()
        };
        let profile = Profile {
            kernels: vec![kernel("a", None, 6), kernel("b", None, 2)],
            regions: vec![kernel("a", Some("step"), 1), kernel("b", Some("decode"), 2), kernel("a", Some("decode"), 3)],
            ..Profile::new(Origin::Counters, Backend::Emulator)
        };
        let mut rows = rows(&profile);
        let times = [(0, None), (1, Some("step")), (2, Some("decode")), (3, Some("decode"))];
        let dispatch = |(dispatch, region): (u64, Option<&str>)| DispatchTime {
            dispatch,
            modelled_cycles: 100 + dispatch,
            modelled_start: None,
            region: region.map(str::to_owned),
            extrapolated: None,
        };
        let mut time = TimeProfile::new(Vec::new());
        let dispatches = times.map(dispatch).to_vec();
        time.kernels.push(KernelTime { dispatches, ..KernelTime::new("a", "a", "", "") });
        set_time(&mut rows, Some(&time));
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.region.as_deref(), &*row.name, row.dispatches, row.waves, row.modelled_cycles))
            .collect();
        let expected = [
            (Some("step"), "a", 1, 4, Some(101)),
            (Some("decode"), "b", 2, 8, Some(0)),
            (Some("decode"), "a", 3, 12, Some(205)),
            (None, "a", 2, 8, Some(100)),
        ];
        assert_eq!(found, expected);
    }
}
