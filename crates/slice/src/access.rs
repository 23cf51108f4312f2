//! How the lanes of an access to memory lie to each other, where the code says so, and what that costs.

use wavetap_memory::{Launched, MOST_WORK_ITEMS, WorkgroupSource};

/// The places that the lanes of a wave access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneAccess {
    /// Bytes that each lane accesses.
    pub bytes: u32,
    /// Bytes from the place of a lane to that of the next one in direction x of the workgroup: 0 where all access the
    /// same, negative where they go downward.
    pub stride: i64,
    /// The same in directions y and z: 0 where lanes of a wave do not differ in it, none where it is a number that is
    /// not in the code.
    pub strides: [Option<i64>; 2],
    /// The workgroup that the lanes are those of: x, y, z.
    pub workgroup: [u32; 3],
    /// How that is known.
    pub workgroup_source: WorkgroupSource,
    /// Bytes of a line of the vector L1 cache: so much is fetched for a lane at least.
    pub line: u32,
    /// How many of these, on average, some lane accesses.
    pub used: u32,
    /// Lines that a wave accesses, on average.
    pub lines: u32,
    /// How many it would be if the bytes were next to each other.
    pub least_lines: u32,
}

/// What the lanes of some waves access together.
#[derive(Debug, Clone, Copy, Default)]
struct Touched {
    bytes: u64,
    lines: u64,
    least_lines: u64,
}

impl Touched {
    /// What lanes access that lie so many bytes after each other, in any order, the first of them at the beginning of a
    /// line.
    fn of(places: &mut [i64], bytes: u32, line: u32) -> Touched {
        places.sort_unstable();
        let (bytes, line) = (i64::from(bytes), i64::from(line));
        let Some(&first) = places.first() else { return Touched::default() };
        let (mut touched, mut end, mut last_line) = (Touched::default(), i64::MIN, -1);
        for place in places.iter().map(|place| place - first) {
            let fresh = place.max(end);
            touched.bytes += (place + bytes - fresh).max(0).unsigned_abs();
            end = end.max(place + bytes);
            let (from, to) = ((place / line).max(last_line + 1), (place + bytes - 1) / line);
            touched.lines += (to - from + 1).max(0).unsigned_abs();
            last_line = last_line.max(to);
        }
        touched.least_lines = touched.bytes.div_ceil(line.unsigned_abs());
        touched
    }

    fn add(&mut self, other: Touched) {
        self.bytes += other.bytes;
        self.lines += other.lines;
        self.least_lines += other.least_lines;
    }
}

impl LaneAccess {
    /// Of lanes whose places differ by these factors for each direction. Nothing if that does not say how many lines
    /// they are in.
    pub(crate) fn new(
        bytes: u32,
        factors: [Option<i64>; 3],
        launched: &Launched,
        wave: u32,
        line: u32,
    ) -> Option<LaneAccess> {
        let Launched { workgroup, source, .. } = *launched;
        let size = workgroup.iter().fold(1_u32, |size, axis| size.saturating_mul(*axis)).clamp(1, MOST_WORK_ITEMS);
        let ids =
            |flat: u32| [flat % workgroup[0], flat / workgroup[0] % workgroup[1], flat / (workgroup[0] * workgroup[1])];
        let mut all = Touched::default();
        let mut varies = [false; 3];
        let mut uniform = true;
        for first in (0..size).step_by(wave.max(1) as usize) {
            // Lanes whose distance is not known are looked at apart from each other.
            let mut apart: Vec<([u32; 3], Vec<i64>)> = Vec::new();
            for flat in first..size.min(first + wave) {
                let (id, of_first) = (ids(flat), ids(first));
                varies = std::array::from_fn(|axis| varies[axis] || id[axis] != of_first[axis]);
                let key = std::array::from_fn(|axis| if factors[axis].is_none() { id[axis] } else { 0 });
                let place = id.iter().zip(factors).map(|(id, factor)| i64::from(*id) * factor.unwrap_or(0)).sum();
                match apart.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, places)) => places.push(place),
                    None => apart.push((key, vec![place])),
                }
            }
            uniform &= apart.len() == 1 && apart[0].1.iter().all(|place| *place == apart[0].1[0]);
            let several = apart.len() > 1;
            for (_, places) in &mut apart {
                let touched = Touched::of(places, bytes, line);
                // Wherever whole lines are, they are whole lines.
                if several && touched.bytes != touched.lines * u64::from(line) {
                    return None;
                }
                all.add(touched);
            }
        }
        let waves = u64::from(size.div_ceil(wave.max(1)));
        let average = |sum: u64| u32::try_from(sum.div_ceil(waves)).unwrap_or(u32::MAX);
        let used = match () {
            () if uniform => bytes.min(line),
            () if all.lines <= all.least_lines => line,
            () => u32::try_from(all.bytes / all.lines.max(1)).unwrap_or(line),
        };
        let stride = |axis: usize| if varies[axis] { factors[axis] } else { Some(0) };
        Some(LaneAccess {
            bytes,
            stride: stride(0)?,
            strides: [stride(1), stride(2)],
            workgroup,
            workgroup_source: source,
            line,
            used,
            lines: average(all.lines),
            least_lines: average(all.least_lines),
        })
    }

    /// Whether more is fetched than if the lanes were next to each other.
    #[must_use]
    pub fn scattered(self) -> bool {
        self.lines > self.least_lines
    }

    /// What it takes longer than if the lanes were next to each other, in cycles: the L1 cache gives so many bytes in
    /// one.
    pub(crate) fn extra(self, bandwidth: u64) -> u64 {
        u64::from(self.lines.saturating_sub(self.least_lines)) * u64::from(self.line) / bandwidth.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_workgroups(workgroup: [u32; 3], bytes: u32, factors: [Option<i64>; 3], line: u32) -> Option<LaneAccess> {
        let launched = Launched { workgroup, source: WorkgroupSource::Launched, ..Launched::default() };
        LaneAccess::new(bytes, factors, &launched, 64, line)
    }

    #[test]
    fn what_is_used_of_a_line_and_what_the_rest_costs() {
        let of =
            |bytes, stride| in_workgroups([256, 1, 1], bytes, [Some(stride), Some(0), Some(0)], 64).expect("known");
        let cases = [
            ((4, 4), 64, 0),
            ((4, -4), 64, 0),
            ((4, 0), 4, 0),
            ((4, 8), 32, 4),
            ((8, 24), 21, 16),
            ((4, 64), 4, 60),
            ((4, 400), 4, 60),
            ((16, 4096), 16, 48),
            // Lanes overlap: 260 bytes in 5 lines.
            ((8, 4), 64, 0),
        ];
        for ((bytes, stride), used, extra) in cases {
            let access = of(bytes, stride);
            assert_eq!((access.used, access.extra(64)), (used, extra), "{access:?}");
        }
    }

    #[test]
    fn lanes_have_two_dimensions_where_the_workgroup_has() {
        let lines = |access: Option<LaneAccess>| access.map(|access| (access.used, access.lines, access.least_lines));
        // A wave is 16 x 4 lanes. `a[x * 64 + y]`: 16 lines, 16 bytes of each; `a[y * 64 + x]`: four rows of 64 bytes.
        let (column, row) = ([Some(256), Some(4), Some(0)], [Some(4), Some(256), Some(0)]);
        assert_eq!(lines(in_workgroups([16, 16, 1], 4, column, 64)), Some((16, 16, 4)));
        assert_eq!(lines(in_workgroups([16, 16, 1], 4, row, 64)), Some((64, 4, 4)));
        assert_eq!(lines(in_workgroups([16, 16, 1], 4, row, 128)), Some((64, 4, 2)), "half a line of each row");
        assert_eq!(lines(in_workgroups([256, 1, 1], 4, column, 64)), Some((4, 64, 4)));
        assert_eq!(lines(in_workgroups([8, 8, 1], 4, column, 64)), Some((32, 8, 4)));
        // Rows that are anywhere: whole lines stay whole, of others it is not known.
        let somewhere = [Some(4), None, Some(0)];
        assert_eq!(lines(in_workgroups([16, 16, 1], 4, somewhere, 64)), Some((64, 4, 4)));
        assert_eq!(lines(in_workgroups([16, 16, 1], 4, somewhere, 128)), None);
        assert_eq!(
            lines(in_workgroups([64, 4, 1], 4, somewhere, 128)),
            Some((128, 2, 2)),
            "all lanes of a wave are in one row"
        );
        assert_eq!(lines(in_workgroups([4, 4, 4], 4, [Some(4), Some(16), Some(1024)], 64)), Some((64, 4, 4)));
    }
}
