//! What was launched: the shapes of counted dispatches, and dispatches that were not counted, with the reason.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// So many grids of a kernel are listed one by one.
const MOST_GRIDS: usize = 64;

/// Dispatches of one kernel that are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchShape {
    /// Work-items of the grid in x, y, z; none for what was launched with further grids when 64 shapes were listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<[u32; 3]>,
    /// Work-items of a workgroup in x, y, z.
    pub workgroup: [u32; 3],
    /// Bytes of LDS that the launch added to the static LDS.
    pub dynamic_lds: u32,
    /// How many dispatches.
    pub dispatches: u64,
}

/// Workgroups of a grid.
#[must_use]
pub fn workgroups(grid: [u32; 3], workgroup: [u32; 3]) -> u64 {
    let along = |axis: usize| u64::from(grid[axis].div_ceil(workgroup[axis].max(1)));
    (0..3).map(along).fold(1, u64::saturating_mul)
}

/// Waves of a grid, each of so many lanes: the last workgroups of a row may be smaller than the others.
#[must_use]
pub fn waves(grid: [u32; 3], workgroup: [u32; 3], lanes: u32) -> u64 {
    let lanes = u64::from(lanes.max(1));
    // How many workgroups there are of the whole size, and of what is left, along each axis.
    let parts: [[(u64, u64); 2]; 3] = std::array::from_fn(|axis| {
        let (grid, size) = (u64::from(grid[axis]), u64::from(workgroup[axis].max(1)));
        [(grid / size, size), (u64::from(grid % size != 0), grid % size)]
    });
    let mut waves = 0_u64;
    for (count_x, x) in parts[0] {
        for (count_y, y) in parts[1] {
            for (count_z, z) in parts[2] {
                let groups = count_x.saturating_mul(count_y).saturating_mul(count_z);
                let items = x.saturating_mul(y).saturating_mul(z);
                waves = waves.saturating_add(groups.saturating_mul(items.div_ceil(lanes)));
            }
        }
    }
    waves
}

impl LaunchShape {
    /// Work-items of the grid, where it is known.
    #[must_use]
    pub fn work_items(&self) -> Option<u64> {
        Some(self.grid?.iter().fold(1, |items: u64, axis| items.saturating_mul(u64::from(*axis))))
    }

    /// Workgroups of the grid in x, y, z, where all launches have the same.
    #[must_use]
    pub fn workgroups(&self) -> Option<[u32; 3]> {
        self.grid.map(|grid| [0, 1, 2].map(|axis| grid[axis].div_ceil(self.workgroup[axis].max(1))))
    }

    /// Work-items of a workgroup.
    #[must_use]
    pub fn workgroup_size(&self) -> u32 {
        self.workgroup.iter().fold(1, |size, axis| size.saturating_mul(*axis))
    }

    /// Adds these dispatches to a kernel's.
    pub fn add_to(mut self, launches: &mut Vec<LaunchShape>) {
        let place = |shape: &LaunchShape, launches: &[LaunchShape]| {
            let key = |shape: &LaunchShape| (shape.grid, shape.workgroup, shape.dynamic_lds);
            launches.iter().position(|other| key(other) == key(shape))
        };
        let mut at = place(&self, launches);
        if at.is_none() && launches.len() >= MOST_GRIDS {
            self.grid = None;
            at = place(&self, launches);
        }
        match at {
            Some(at) => launches[at].dispatches += self.dispatches,
            None => launches.push(self),
        }
    }
}

/// The launches of lists together, in rising order. Of more than 64 shapes the smallest are listed, which are the same
/// whatever lists were added before: a shape that is not among the smallest of some lists is not among those of all.
/// None if a sum exceeds 64 bits.
pub(crate) fn smallest(lists: &[&[LaunchShape]]) -> Option<Vec<LaunchShape>> {
    let all = || lists.iter().copied().flatten().copied();
    let mut shapes = add_alike(all().filter(|shape| shape.grid.is_some()))?;
    let rest = shapes.split_off(shapes.len().min(MOST_GRIDS));
    let rest = rest.into_iter().map(|shape| LaunchShape { grid: None, ..shape });
    shapes.extend(add_alike(all().filter(|shape| shape.grid.is_none()).chain(rest))?);
    Some(shapes)
}

/// Each shape once, in rising order.
fn add_alike(shapes: impl Iterator<Item = LaunchShape>) -> Option<Vec<LaunchShape>> {
    let mut dispatches: BTreeMap<LaunchShape, u64> = BTreeMap::new();
    for shape in shapes {
        let sum = dispatches.entry(LaunchShape { dispatches: 0, ..shape }).or_default();
        *sum = sum.checked_add(shape.dispatches)?;
    }
    Some(dispatches.into_iter().map(|(shape, dispatches)| LaunchShape { dispatches, ..shape }).collect())
}

/// Why a dispatch was not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NotCounted {
    /// The kernel was refused when the file was rewritten.
    Refused,
    /// The kernel was not selected when the file was rewritten.
    NotSelected,
    /// Its code object has no counters: the file that it came from was not rewritten, or none of its kernels could be.
    NotRewritten,
    /// Its counters and the dynamic LDS of the launch do not fit in LDS together.
    LdsDoesNotFit,
    /// Its workgroups wait for each other, and fewer of them run at the same time with counters: the original ran.
    FewerWorkgroups,
    /// The launch was refused, with counters or without.
    LaunchFailed,
    /// The kernel ended with a fault.
    Faulted,
    /// There is no code for the device.
    NoCode,
    /// It was launched outside of the ranges that are counted, or while the program had counting paused.
    OutsideRegion,
    /// It is not one of the dispatches of its kernel that are counted.
    OtherDispatch,
}

impl NotCounted {
    /// Its fixed name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            NotCounted::Refused => "refused",
            NotCounted::NotSelected => "not_selected",
            NotCounted::NotRewritten => "not_rewritten",
            NotCounted::LdsDoesNotFit => "lds_does_not_fit",
            NotCounted::FewerWorkgroups => "fewer_workgroups",
            NotCounted::LaunchFailed => "launch_failed",
            NotCounted::Faulted => "faulted",
            NotCounted::NoCode => "no_code",
            NotCounted::OutsideRegion => "outside_region",
            NotCounted::OtherDispatch => "other_dispatch",
        }
    }

    /// Whether it ran as it was and was left out by choice.
    #[must_use]
    pub fn is_chosen(self) -> bool {
        matches!(self, NotCounted::OutsideRegion | NotCounted::OtherDispatch)
    }

    /// Whether something ran, or was to run, that the counts should have and do not. What was not to be counted, and
    /// what ran nowhere, is missing from nothing.
    #[must_use]
    pub fn is_gap(self) -> bool {
        match self {
            NotCounted::Refused
            | NotCounted::LdsDoesNotFit
            | NotCounted::FewerWorkgroups
            | NotCounted::Faulted
            | NotCounted::NoCode => true,
            NotCounted::NotSelected
            | NotCounted::NotRewritten
            | NotCounted::LaunchFailed
            | NotCounted::OutsideRegion
            | NotCounted::OtherDispatch => false,
        }
    }
}

/// Dispatches of a kernel that were not counted, all for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UncountedDispatches {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Target id of its code object; empty where there is none.
    pub target: String,
    /// MD5 of the original code object; empty where there is none.
    pub object: String,
    /// The ranges of the program in which they were launched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Why.
    pub why: NotCounted,
    /// The same in a sentence.
    pub detail: String,
    /// How many dispatches.
    pub dispatches: u64,
}

impl UncountedDispatches {
    /// Adds these dispatches to a profile's.
    pub fn add_to(self, all: &mut Vec<UncountedDispatches>) {
        let same = |other: &&mut UncountedDispatches| {
            (&other.name, &other.target, &other.object, &other.region, other.why, &other.detail)
                == (&self.name, &self.target, &self.object, &self.region, self.why, &self.detail)
        };
        match all.iter_mut().find(same) {
            Some(known) => known.dispatches += self.dispatches,
            None => all.push(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_dispatches_add_up_and_many_grids_do_not_make_a_long_list() {
        let mut launches = Vec::new();
        let shape = |grid: u32, workgroup: u32| LaunchShape {
            grid: Some([grid, 1, 1]),
            workgroup: [workgroup, 1, 1],
            dynamic_lds: 0,
            dispatches: 1,
        };
        for grid in 1..=1000 {
            shape(grid, 64).add_to(&mut launches);
        }
        shape(3, 64).add_to(&mut launches);
        shape(5000, 128).add_to(&mut launches);
        assert_eq!(launches.len(), MOST_GRIDS + 2);
        assert_eq!(launches[2], LaunchShape { dispatches: 2, ..shape(3, 64) });
        assert_eq!(
            launches[MOST_GRIDS],
            LaunchShape { grid: None, dispatches: 1000 - MOST_GRIDS as u64, ..shape(0, 64) }
        );
        assert_eq!(launches[MOST_GRIDS + 1], LaunchShape { grid: None, ..shape(0, 128) });
        assert_eq!(launches.iter().map(|shape| shape.dispatches).sum::<u64>(), 1002);
    }
}
