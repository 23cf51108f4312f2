//! How kernels were launched, with the occupancy of each kind of workgroup, and what was launched and not counted.

mod table;
#[cfg(test)]
mod table_tests;
mod text;
mod warnings;

use serde::{Deserialize, Serialize};

pub(crate) use table::processor;
pub use table::{BoardOfTarget, CodeOfKernel, LaunchInputs, LaunchRow, LaunchTable, NamedKernel};
pub(crate) use text::{COLUMNS, cells};
pub use warnings::{LaunchWarning, WarningKind};

use super::style::counted;
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
pub(super) fn of(totals: &KernelTotals) -> Vec<Launch> {
    let occupancy = |shape: &LaunchShape| {
        let waves = |resources: Option<Resources>| waves(&resources?, &totals.target, shape);
        Some(LaunchOccupancy { before: waves(totals.before)?, after: waves(totals.after)? })
    };
    totals.launches.iter().map(|shape| Launch { shape: *shape, occupancy: occupancy(shape) }).collect()
}

/// The occupancy of a kernel in a few words: that of its launches, if all have the same. Without launches, that of its
/// resources, which is for the best workgroup size.
pub(super) fn occupancy(launches: &[Launch], at_best: Option<LaunchOccupancy>) -> Option<String> {
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
pub(super) fn lines(launches: &[Launch]) -> Vec<String> {
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
pub(super) fn uncounted_reason(uncounted: &UncountedDispatches) -> String {
    format!(
        "{}: {}: {}",
        counted(uncounted.dispatches, "dispatch", "dispatches"),
        uncounted.why.name(),
        uncounted.detail
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Style, render};
    use crate::{Report, RunInfo, html};
    use wavetap_profile::file::{Backend, Origin, Profile};
    use wavetap_profile::launches::NotCounted;

    fn shape(workgroup: [u32; 3], dynamic_lds: u32, dispatches: u64) -> LaunchShape {
        LaunchShape { grid: Some([1024, 1, 1]), workgroup, dynamic_lds, dispatches }
    }

    /// A kernel whose counters take 2 KiB of LDS on a target with 64 KiB, 4 SIMDs and 8 waves of each.
    fn report(launches: Vec<LaunchShape>) -> Report {
        let before = Resources {
            sgprs: 32,
            vgprs: 16,
            lds_bytes: 512,
            waves_per_simd: 8,
            wave_size: 64,
            ..Resources::default()
        };
        let after = Resources { lds_bytes: 2560, ..before };
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        let totals =
            KernelTotals { demangled: "k()".to_owned(), target: "gfx90a:xnack-".to_owned(), ..KernelTotals::default() };
        profile.kernels.push(KernelTotals { before: Some(before), after: Some(after), launches, ..totals });
        profile.end();
        Report::new(&profile, RunInfo::default())
    }

    fn facts(launches: Vec<LaunchShape>) -> Vec<String> {
        let text = render(&report(launches), Style::default());
        text.lines().skip(3).take_while(|line| !line.contains("no branches")).map(str::to_owned).collect()
    }

    #[test]
    fn occupancy_is_that_of_the_launches() {
        // 64 KiB are 25 workgroups of 2560 bytes: 25 waves on 4 SIMDs. With 256 work-items it is 100 waves, of which 8
        // each have room.
        let one = facts(vec![shape([64, 1, 1], 0, 3)]);
        assert_eq!(one.len(), 1);
        assert!(one[0].ends_with(", occupancy 8 → 7 waves per SIMD"), "{one:?}");
        assert!(facts(vec![shape([16, 16, 1], 0, 1)])[0].ends_with(", occupancy 8 waves per SIMD, unchanged"));
        let several = facts(vec![
            shape([64, 1, 1], 0, 3),
            shape([256, 1, 1], 0, 1),
            shape([8, 8, 1], 8192, 2),
            shape([64, 1, 1], 0, 4),
        ]);
        assert!(several[0].ends_with(", occupancy differs between launches"), "{several:?}");
        assert_eq!(
            several[1..],
            [
                "    7 dispatches of 64×1×1: 8 → 7 waves per SIMD",
                "    1 dispatch of 256×1×1: 8 waves per SIMD, unchanged",
                "    2 dispatches of 8×8×1 with 8192 bytes of dynamic LDS: 2 waves per SIMD, unchanged",
            ]
        );
        let unknown = facts(Vec::new());
        assert!(
            unknown[0]
                .ends_with(", occupancy at best 8 waves per SIMD, unchanged (how it was launched is not recorded)"),
            "{unknown:?}"
        );
    }

    #[test]
    fn what_is_not_counted_is_in_every_form_of_a_report() {
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        let uncounted = |why, name: &str, dispatches| UncountedDispatches {
            name: name.to_owned(),
            demangled: format!("{name}<int>()"),
            target: "gfx90a".to_owned(),
            object: "00".to_owned(),
            why,
            detail: "a sentence".to_owned(),
            dispatches,
        };
        for (why, complete) in
            [(NotCounted::NotSelected, true), (NotCounted::LaunchFailed, true), (NotCounted::LdsDoesNotFit, false)]
        {
            uncounted(why, "k", 2).add_to(&mut profile.uncounted);
            uncounted(why, "k", 1).add_to(&mut profile.uncounted);
            profile.end();
            let report = Report::new(&profile, RunInfo::default());
            assert_eq!((report.complete, report.ended, report.has_gaps()), (complete, true, !complete), "{why:?}");
            let text = render(&report, Style::default());
            assert!(
                text.contains(&format!(
                    "dispatched and not counted\n  k<int>() (gfx90a): 3 dispatches: {}: a sentence\n",
                    why.name()
                )),
                "{text}"
            );
            assert!(!text.contains("the run did not end"), "{text}");
            let page = html::render(&report, &html::PageData::default());
            assert!(
                page.contains("Dispatched and not counted")
                    && page.contains("k&lt;int&gt;()")
                    && page.contains(why.name()),
                "{page}"
            );
            let json = serde_json::to_value(&report).expect("JSON");
            assert_eq!(
                (&json["uncounted"][0]["why"], &json["uncounted"][0]["dispatches"]),
                (&why.name().into(), &3.into())
            );
            profile.uncounted.clear();
        }
        let mut other = Profile::new(Origin::Counters, Backend::Emulator);
        uncounted(NotCounted::Faulted, "k", 1).add_to(&mut other.uncounted);
        other.end();
        profile.end();
        assert!(profile.complete && !other.complete);
        profile.merge(&other).expect("alike");
        assert_eq!((profile.complete, profile.has_ended(), profile.uncounted.len()), (false, true, 1));
    }
}
