//! How the lanes of an access to memory lie to each other, where the code says so, and what that costs.

use wavetap_analysis::dataflow::WaveShape;
use wavetap_code::LaneAccess;
use wavetap_memory::{Category, Launched, Place};

/// Bytes between lanes whose ids differ by one in a direction and in no other: 0 where lanes of a wave do not differ
/// in it; none if that is not one number, or no two lanes differ in it alone.
fn stride(places: &[(&WaveShape, &Place)], launched: &Launched, axis: usize) -> Option<i64> {
    let next: usize = launched.workgroup[..axis].iter().map(|size| *size as usize).product();
    let mut strides = Vec::new();
    let mut varies = false;
    for (shape, place) in places {
        let lanes = shape.active() as usize;
        let ids = |lane| shape.ids(lane);
        varies |= (1..lanes).any(|lane| ids(lane)[axis] != ids(0)[axis]);
        for (from, to) in (0..lanes).map(|lane| (lane, lane + next)).take_while(|(_, to)| *to < lanes) {
            let differ = std::array::from_fn::<i32, 3, _>(|of| ids(to)[of] - ids(from)[of]);
            if differ == std::array::from_fn(|of| i32::from(of == axis)) {
                strides.push(place.between(from, to));
            }
        }
    }
    match strides.split_first() {
        None => (!varies).then_some(0),
        Some((first, rest)) => first.filter(|_| rest.iter().all(|other| other == first)).map(i64::from),
    }
}

/// Of an access with one address a lane, by wave. Nothing if it is not known how the lanes lie to each other.
pub(crate) fn lane_access(waves: &[(&WaveShape, Vec<Place>)], launched: &Launched, line: u32) -> Option<LaneAccess> {
    let places: Vec<(&WaveShape, &Place)> =
        waves.iter().map(|(shape, places)| Some((*shape, places.first()?))).collect::<Option<_>>()?;
    let (mut lines, mut least_lines, mut distinct) = (0_u64, 0_u64, 0_u64);
    for (_, place) in &places {
        let of_wave = place.lines(line)?;
        lines += u64::from(of_wave.likely);
        least_lines += u64::from(of_wave.ideal);
        distinct += place.distinct_bytes()?;
    }
    let bytes = places.first()?.1.bytes;
    let average = |sum: u64| u32::try_from(sum.div_ceil(places.len() as u64)).unwrap_or(u32::MAX);
    let used = match () {
        () if places.iter().all(|(_, place)| place.category(line) == Category::Uniform) => bytes.min(line),
        () if lines <= least_lines => line,
        () => u32::try_from(distinct / lines.max(1)).unwrap_or(line),
    };
    let [x, y, z] = [0, 1, 2].map(|axis| stride(&places, launched, axis));
    Some(LaneAccess {
        bytes,
        stride: x,
        strides: [y, z],
        workgroup: launched.workgroup,
        workgroup_source: launched.source,
        line,
        used,
        lines: average(lines),
        least_lines: average(least_lines),
    })
}

/// What it takes longer than if the lanes were next to each other, in cycles: the L1 cache gives so many bytes in
/// one.
pub(crate) fn extra(access: LaneAccess, bandwidth: u64) -> u64 {
    u64::from(access.lines.saturating_sub(access.least_lines)) * u64::from(access.line) / bandwidth.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_analysis::dataflow::LaneSum;
    use wavetap_code::WorkgroupSource;

    /// Of lanes whose places differ by these factors for each direction.
    fn in_workgroups(workgroup: [u32; 3], bytes: u32, factors: [i32; 3], line: u32) -> Option<LaneAccess> {
        const LANES: u32 = 64;
        let launched = Launched { workgroup, source: WorkgroupSource::Launched, ..Launched::default() };
        let waves: Vec<WaveShape> =
            (0..).map_while(|wave| WaveShape::new(workgroup, LANES, wave, launched.given)).collect();
        let place = |shape: &WaveShape| {
            let offset = |lane: u32| shape.ids(lane as usize).iter().zip(factors).map(|(id, factor)| id * factor).sum();
            let address = Ok(LaneSum::lanes((0..LANES).map(offset)));
            Place { address, bytes, lanes: u64::MAX, step: None, argument: None }
        };
        let places: Vec<(&WaveShape, Vec<Place>)> = waves.iter().map(|shape| (shape, vec![place(shape)])).collect();
        lane_access(&places, &launched, line)
    }

    #[test]
    fn what_is_used_of_a_line_and_what_the_rest_costs() {
        let of = |bytes, stride| in_workgroups([256, 1, 1], bytes, [stride, 0, 0], 64).expect("known");
        let cases = [
            ((4, 4), 64, 0),
            ((4, 0), 4, 0),
            ((4, 8), 32, 4),
            ((8, 24), 21, 16),
            ((4, 64), 4, 60),
            ((4, 400), 4, 60),
            ((16, 4096), 16, 48),
            // Lanes overlap: 260 bytes in 5 lines.
            ((8, 4), 64, 0),
        ];
        for ((bytes, stride), used, cycles) in cases {
            let access = of(bytes, stride);
            assert_eq!((access.used, extra(access, 64)), (used, cycles), "{access:?}");
            assert_eq!((access.stride, access.strides), (Some(stride.into()), [Some(0); 2]));
        }
    }

    #[test]
    fn lanes_have_two_dimensions_where_the_workgroup_has() {
        let of = |access: Option<LaneAccess>| {
            access.map(|access| (access.used, access.lines, access.least_lines, access.stride, access.strides))
        };
        // A wave is 16 x 4 lanes. `a[x * 64 + y]`: 16 lines, 16 bytes of each; `a[y * 64 + x]`: four rows of 64 bytes.
        let (column, row) = ([256, 4, 0], [4, 256, 0]);
        let column_of = |z| (Some(256), [Some(4), z]);
        let expected = |used, lines, least, (x, strides)| Some((used, lines, least, x, strides));
        assert_eq!(of(in_workgroups([16, 16, 1], 4, column, 64)), expected(16, 16, 4, column_of(Some(0))));
        assert_eq!(of(in_workgroups([16, 16, 1], 4, row, 64)), expected(64, 4, 4, (Some(4), [Some(256), Some(0)])));
        // Half a line of each row.
        assert_eq!(of(in_workgroups([16, 16, 1], 4, row, 128)), expected(64, 4, 2, (Some(4), [Some(256), Some(0)])));
        assert_eq!(of(in_workgroups([256, 1, 1], 4, column, 64)), expected(4, 64, 4, (Some(256), [Some(0); 2])));
        assert_eq!(of(in_workgroups([8, 8, 1], 4, column, 64)), expected(32, 8, 4, column_of(Some(0))));
        let cube = in_workgroups([4, 4, 4], 4, [4, 16, 1024], 64);
        assert_eq!(of(cube), expected(64, 4, 4, (Some(4), [Some(16), Some(1024)])));
        // Of 100 in a row a wave has the end of one and the begin of the next: no two lanes differ in y alone.
        let wide = in_workgroups([100, 2, 1], 4, [4, 1024, 0], 64);
        assert_eq!(wide.map(|access| (access.stride, access.strides)), Some((Some(4), [None, Some(0)])));
    }
}
