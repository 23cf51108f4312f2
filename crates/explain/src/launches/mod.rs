//! How kernels were launched, with the occupancy of each kind of workgroup, and what was launched and not counted.

mod table;
mod warnings;

use serde::{Deserialize, Serialize};

pub use table::{BoardOfTarget, CodeOfKernel, LaunchInputs, LaunchRow, LaunchTable, NamedKernel, processor};
pub use warnings::{LaunchWarning, WarningKind};

use crate::words::counted;
use wavetap_amdgpu::{Demand, Target};
use wavetap_profile::file::KernelTotals;
use wavetap_profile::launches::{LaunchShape, UncountedDispatches};
use wavetap_profile::map::Resources;

/// Kinds of workgroups named in text; JSON has all.
const SHOWN: usize = 6;

/// Dispatches of a kernel that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Launch {
    /// How they were launched, and how many there were.
    #[serde(flatten)]
    pub shape: LaunchShape,
    /// Waves that a SIMD holds of such workgroups; null where the profile does not say enough.
    pub occupancy: Option<LaunchOccupancy>,
}

/// Waves of a SIMD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaunchOccupancy {
    /// Of the kernel as it was.
    pub before: u32,
    /// With counters.
    pub after: u32,
}

impl LaunchOccupancy {
    /// `8 waves per SIMD, unchanged`, or `8 → 6 waves per SIMD`.
    #[must_use]
    pub fn text(self) -> String {
        let LaunchOccupancy { before, after } = self;
        if before == after {
            format!("{after} waves per SIMD, unchanged")
        } else {
            format!("{before} → {after} waves per SIMD")
        }
    }
}

/// Waves that a SIMD holds of such workgroups of a kernel; nothing where the target or the size of its waves is not
/// known.
fn waves(resources: &Resources, target_id: &str, shape: &LaunchShape) -> Option<u32> {
    let Resources { vgprs, sgprs, wgp_mode, wave_size, .. } = *resources;
    let target = Target::by_name(target_id.split(':').next().unwrap_or_default())?.with_wave_size(wave_size)?;
    let lds_bytes = resources.lds_bytes.saturating_add(shape.dynamic_lds);
    Some(target.occupancy(&Demand { vgprs, sgprs, lds_bytes, workgroup_size: shape.workgroup_size(), wgp_mode }).waves)
}

/// The launches of a kernel.
pub fn of(totals: &KernelTotals) -> Vec<Launch> {
    let occupancy = |shape: &LaunchShape| {
        let waves = |resources: Option<Resources>| waves(&resources?, &totals.target, shape);
        Some(LaunchOccupancy { before: waves(totals.before)?, after: waves(totals.after)? })
    };
    totals.launches.iter().map(|shape| Launch { shape: *shape, occupancy: occupancy(shape) }).collect()
}

/// The occupancy of a kernel in a few words: that of its launches, if all have the same. Without launches, that of its
/// resources, which is for the best workgroup size.
pub fn occupancy(launches: &[Launch], at_best: Option<LaunchOccupancy>) -> Option<String> {
    let Some(first) = launches.first() else {
        return at_best.map(|best| format!("occupancy at best {} (how it was launched is not recorded)", best.text()));
    };
    let same = launches.iter().all(|launch| launch.occupancy == first.occupancy);
    match first.occupancy {
        Some(occupancy) if same => Some(format!("occupancy {}", occupancy.text())),
        Some(_) => Some("occupancy differs between launches".to_owned()),
        None => at_best.map(|best| format!("occupancy at best {}", best.text())),
    }
}

/// A line for each kind of workgroup, if they differ in occupancy.
pub fn lines(launches: &[Launch]) -> Vec<String> {
    let mut kinds: Vec<Launch> = Vec::new();
    for launch in launches {
        let kind = |other: &&mut Launch| {
            (other.shape.workgroup, other.shape.dynamic_lds, other.occupancy)
                == (launch.shape.workgroup, launch.shape.dynamic_lds, launch.occupancy)
        };
        match kinds.iter_mut().find(kind) {
            Some(known) => known.shape.dispatches += launch.shape.dispatches,
            None => kinds.push(launch.clone()),
        }
    }
    if kinds.iter().all(|kind| Some(kind.occupancy) == kinds.first().map(|first| first.occupancy)) {
        return Vec::new();
    }
    let mut lines: Vec<String> = kinds.iter().take(SHOWN).map(line).collect();
    if kinds.len() > SHOWN {
        lines.push(format!("and {} more kinds of workgroups: --format json has all", kinds.len() - SHOWN));
    }
    lines
}

fn line(kind: &Launch) -> String {
    let [x, y, z] = kind.shape.workgroup;
    let lds = if kind.shape.dynamic_lds > 0 {
        format!(" with {} bytes of dynamic LDS", kind.shape.dynamic_lds)
    } else {
        String::new()
    };
    let occupancy = kind.occupancy.map_or_else(|| "occupancy not known".to_owned(), |occupancy| occupancy.text());
    format!("{} of {x}×{y}×{z}{lds}: {occupancy}", counted(kind.shape.dispatches, "dispatch", "dispatches"))
}

/// Dispatches that were not counted in one line, with their code object if there is one to be named.
#[must_use]
pub fn uncounted_line(uncounted: &UncountedDispatches, object: Option<&str>) -> String {
    let UncountedDispatches { demangled, target, .. } = uncounted;
    let object = object.map_or_else(String::new, |object| format!(", code object {object}"));
    let place = if target.is_empty() { String::new() } else { format!(" ({target}{object})") };
    format!("  {demangled}{place}: {}", uncounted_reason(uncounted))
}

/// How many dispatches were not counted, and why.
pub fn uncounted_reason(uncounted: &UncountedDispatches) -> String {
    format!(
        "{}: {}: {}",
        counted(uncounted.dispatches, "dispatch", "dispatches"),
        uncounted.why.name(),
        uncounted.detail
    )
}
