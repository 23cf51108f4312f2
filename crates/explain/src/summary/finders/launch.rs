//! How a kernel was launched.

use super::{LANES, Subject, gain_of};
use crate::Basis;
use crate::launches::{LaunchWarning, WarningKind};
use crate::summary::data::{Finding, FindingKind};

/// Warnings of launches below this weight are in the launch table only.
const LAUNCH_WEIGHT: f64 = 0.1;
/// A SIMD that holds this part of its waves, or less, is a finding.
const OCCUPANCY: f64 = 0.5;
/// What few waves cost depends on what they wait for.
const OCCUPANCY_WEIGHT: f64 = 0.3;

/// The warnings of the launch table that cost more than a little, as one finding: what the worst says, and the names of
/// the others.
pub(super) fn launches(subject: &Subject<'_>) -> Vec<Finding> {
    let warnings = subject.launches.warnings_of(&subject.kernel.object, &subject.kernel.name);
    let counts = |warning: &&LaunchWarning| warning.weight >= LAUNCH_WEIGHT && warning.kind != WarningKind::TailHint;
    let mut warnings: Vec<&LaunchWarning> = warnings.filter(counts).collect();
    warnings.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let Some((worst, others)) = warnings.split_first() else { return Vec::new() };
    let names: Vec<&str> = others.iter().map(|warning| warning.kind.name()).collect();
    let others = if names.is_empty() { String::new() } else { format!("; also {}", names.join(", ")) };
    let basis = match worst.kind {
        WarningKind::LanesLeftOut | WarningKind::Uneven => Basis::Counted,
        WarningKind::Short => Basis::Modelled,
        _ => Basis::Computed,
    };
    let text = format!("{}: {}{others}", worst.kind.name(), worst.text);
    let finding = Finding::new(FindingKind::Launch, basis, text, worst.kind.help(), worst.weight);
    // Full waves are fewer waves, which have as much less to do.
    let of_lanes = (worst.kind == WarningKind::PartialWaves).then_some(worst.weight);
    let modelled_gain = of_lanes.and_then(|lost| gain_of(subject, lost, LANES));
    vec![Finding { source: worst.source.clone(), modelled_gain, ..finding }]
}

/// Few waves on a SIMD, of launches that have more.
pub(super) fn occupancy(subject: &Subject<'_>) -> Vec<Finding> {
    let rows = subject.launches.rows.iter().filter(|row| row.kernel.is(&subject.kernel.object, &subject.kernel.name));
    let few = rows.filter_map(|row| {
        let (waves, most) = (row.occupancy?, row.most_waves?);
        let part = f64::from(waves) / f64::from(most.max(1));
        // Launches that do not fill one round have no use for more.
        (part <= OCCUPANCY && !row.limited_by.is_empty() && row.rounds? > 1.0).then_some((row, waves, most, part))
    });
    let Some((row, waves, most, part)) = few.min_by(|a, b| a.3.total_cmp(&b.3)) else { return Vec::new() };
    let limits: Vec<&str> = row.limited_by.iter().map(|resource| resource.name()).collect();
    let text = format!("occupancy: {waves} of {most} waves per SIMD, limited by {}", limits.join(", "));
    let help = format!(
        "use less of {}; `wavetap inspect --workgroup {}` says how much less",
        limits.join(" and "),
        row.shape.workgroup_size()
    );
    vec![Finding::new(FindingKind::Occupancy, Basis::Computed, text, &help, OCCUPANCY_WEIGHT * (1.0 - part))]
}
