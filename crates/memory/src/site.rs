//! What an access looks like in the waves of a workgroup, and how bad that is.

use serde::{Deserialize, Serialize};

use crate::accesses::{Access, Accesses, Operation, Space};
use crate::launched::Launched;
use crate::place::{Category, Lines, Place, Unknown};
use wavetap_amdgpu::{LdsCycles, LdsOperation, Target};
use wavetap_analysis::dataflow::{LaneValues, WaveShape};

/// So many lines of a wave are many.
const MANY: u32 = 4;

/// How much more an access costs than its bytes need: lines of the cache, or cycles of LDS. An access of fewer than
/// four lines costs nothing, or, if it is misaligned, little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// At most a quarter more, or it is not known.
    None,
    /// Less than twice as much.
    Low,
    /// Less than eight times as much.
    Medium,
    /// Eight times as much or more.
    High,
}

impl Severity {
    /// Of a cost and of what it would be at best.
    #[must_use]
    pub fn of(cost: u64, ideal: u64) -> Severity {
        match () {
            () if ideal == 0 || 4 * cost <= 5 * ideal => Severity::None,
            () if cost < 2 * ideal => Severity::Low,
            () if cost < 8 * ideal => Severity::Medium,
            () => Severity::High,
        }
    }
}

/// An access, as the waves of a workgroup make it that were looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The access.
    pub access: Access,
    /// What it looks like, in the wave where it is worst.
    pub category: Category,
    /// How much more it costs than its bytes need.
    pub severity: Severity,
    /// Bytes from each lane to the next, if that is one number.
    pub stride: Option<i64>,
    /// Bytes by which it moves in each round of a loop, if that is a number in the code.
    pub step: Option<i64>,
    /// The pointer among the arguments that it is an offset from: its place in bytes.
    pub argument: Option<u32>,
    /// Why nothing is known of the lanes' addresses.
    pub unknown: Option<Unknown>,
    /// Waves that were looked at.
    pub waves: u32,
    /// Lines that these access, together; none in LDS, and where nothing is known.
    pub lines: Option<Lines>,
    /// Whether the lines are known, not only between which numbers they are.
    pub exact: bool,
    /// What LDS does for these waves, together, with the most ways of a conflict; none elsewhere, and where nothing is
    /// known.
    pub lds: Option<LdsCycles>,
}

impl Site {
    /// What a wave costs more than its bytes need, in lines or cycles of LDS; none if that is not known.
    #[must_use]
    pub fn excess(&self) -> Option<f64> {
        let waves = f64::from(self.waves.max(1));
        let lines = self.lines.map(|lines| f64::from(lines.likely.saturating_sub(lines.ideal)));
        let lds = self.lds.map(|lds| lds.conflicts as f64);
        lines.or(lds).map(|excess| excess / waves)
    }
}

/// The accesses of a kernel in the waves of its workgroups, looked at one by one.
#[derive(Debug)]
pub struct WaveAccesses<'a> {
    accesses: &'a Accesses<'a, 'a>,
    waves: Vec<LaneValues<'a, 'a>>,
    target: Target,
}

impl<'a> WaveAccesses<'a> {
    /// Of a kernel that is launched with such workgroups.
    #[must_use]
    pub fn new(accesses: &'a Accesses<'a, 'a>, launched: &Launched) -> WaveAccesses<'a> {
        let waves = accesses.waves(launched).into_iter().map(|shape| accesses.values(shape)).collect();
        WaveAccesses { accesses, waves, target: accesses.target() }
    }

    /// Where each wave goes: the wave, and a place for each address of a lane.
    pub fn places(&mut self, access: &Access) -> Vec<(&WaveShape, Vec<Place>)> {
        let accesses = self.accesses;
        let of_wave = |values: &'_ mut LaneValues<'a, 'a>| accesses.places(values, access);
        let places: Vec<Vec<Place>> = self.waves.iter_mut().map(of_wave).collect();
        self.waves.iter().map(LaneValues::shape).zip(places).collect()
    }

    /// What it looks like.
    pub fn site(&mut self, access: &Access) -> Site {
        let (count, target) = (self.waves.len() as u32, self.target);
        let places = self.places(access);
        let places: Vec<&Place> = places.iter().flat_map(|(_, places)| places).collect();
        site(Access { space: space(access, &places), ..*access }, &places, count, target)
    }
}

/// Which memory an access is of: a FLAT one at an offset from an argument that points to global memory is of that.
#[must_use]
pub fn space(access: &Access, places: &[&Place]) -> Space {
    let is_of_argument = !places.is_empty() && places.iter().all(|place| place.argument.is_some());
    if access.space == Space::Flat && is_of_argument { Space::Global } else { access.space }
}

fn site(access: Access, places: &[&Place], waves: u32, target: Target) -> Site {
    let line = target.l1_line_bytes();
    let in_lds = access.space == Space::Lds;
    // Nothing has lines that may as well be in LDS.
    let has_no_lines = in_lds || access.space == Space::Flat;
    let each: Vec<Option<Lines>> = places.iter().map(|place| place.lines(line)).collect();
    let lines: Option<Vec<Lines>> = each.iter().copied().collect();
    let operation = match access.operation {
        Operation::Load => LdsOperation::Read,
        Operation::Store => LdsOperation::Write,
        Operation::Atomic => LdsOperation::Atomic,
    };
    let lds: Option<Vec<LdsCycles>> = places.iter().map(|place| place.banks(target, operation)).collect();
    let lines = lines.filter(|_| !has_no_lines);
    let lds = lds.filter(|_| in_lds);
    // The wave, and of it the address, where it is worst.
    let excess = |lines: &Option<Lines>| lines.map_or(u32::MAX, |lines| 100 * lines.likely / lines.ideal.max(1));
    let worst = places.iter().zip(&each).rev().max_by_key(|(_, lines)| excess(lines)).map(|(place, _)| place);
    let category = worst.map_or(Category::Unknown, |place| match has_no_lines {
        true => place.category(1),
        false => place.category(line),
    });
    let sum = |lines: &[Lines]| {
        let all = |of: fn(&Lines) -> u32| lines.iter().map(of).sum();
        Lines {
            least: all(|lines| lines.least),
            most: all(|lines| lines.most),
            likely: all(|lines| lines.likely),
            ideal: all(|lines| lines.ideal),
        }
    };
    let sum_lds = |cycles: &[LdsCycles]| LdsCycles {
        cycles: cycles.iter().map(|lds| lds.cycles).sum(),
        conflicts: cycles.iter().map(|lds| lds.conflicts).sum(),
        ways: cycles.iter().map(|lds| lds.ways).max().unwrap_or(0),
    };
    let (lines, lds) = (lines.as_deref().map(sum), lds.as_deref().map(sum_lds));
    let severity = match (lines, lds) {
        (Some(lines), _) if access.space != Space::Scalar => {
            let severity = Severity::of(lines.likely.into(), lines.ideal.into());
            // Two or three lines are nothing to mend, unless lanes next to each other begin at the wrong place.
            let most = match () {
                () if lines.likely >= MANY * waves * access.addresses => Severity::High,
                () if category == Category::Misaligned => Severity::Low,
                () => Severity::None,
            };
            severity.min(most)
        }
        (_, Some(lds)) => Severity::of(lds.cycles, lds.cycles - lds.conflicts),
        _ => Severity::None,
    };
    Site {
        access,
        category,
        severity,
        stride: worst.and_then(|place| place.stride()),
        step: worst.and_then(|place| place.step),
        argument: worst.and_then(|place| place.argument),
        unknown: places.iter().find_map(|place| place.address.as_ref().err().copied()),
        waves,
        exact: places.iter().all(|place| place.is_exact(line)),
        lines,
        lds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_bad_it_is() {
        let of = |cost| Severity::of(cost, 4);
        assert_eq!(
            [of(4), of(5), of(6), of(8), of(31), of(32), Severity::of(3, 0)],
            [
                Severity::None,
                Severity::None,
                Severity::Low,
                Severity::Medium,
                Severity::Medium,
                Severity::High,
                Severity::None
            ]
        );
    }
}
