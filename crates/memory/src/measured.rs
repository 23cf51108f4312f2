//! What each instruction did, of the accesses that were recorded.

use std::collections::{BTreeMap, BTreeSet};

use crate::accesses::{Operation, Space};
use crate::arrays::{Array, Arrays};
use crate::place::count_lines;
use crate::recorded::{Recorded, RecordedKernel};
use wavetap_amdgpu::{LdsCycles, LdsOperation};

/// Lanes whose addresses are taken together to a request.
const QUAD: usize = 4;
/// At most so many different distances from lane to lane are a pattern.
const REGULAR_DISTANCES: usize = 2;

/// A wave of a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wave {
    /// The dispatch.
    pub dispatch: u32,
    /// The workgroup's id.
    pub workgroup: [u32; 3],
    /// Its number in the workgroup.
    pub wave: u32,
}

/// What an instruction did: sums over all its executions that were recorded. Of one that takes two addresses of a lane
/// each counts as an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The instruction.
    pub address: u64,
    /// Which memory. An instruction of flat addresses is measured once for each.
    pub space: Space,
    /// What it does.
    pub operation: Operation,
    /// Bytes at each address of a lane.
    pub bytes: u32,
    /// Executions that were recorded.
    pub executions: u64,
    /// Executions for which there was no room.
    pub dropped: u64,
    /// Active lanes of all executions.
    pub lanes: u64,
    /// Lines of L1; 0 in LDS and scratch.
    pub lines: u64,
    /// Lines that the bytes of each execution would fill if they began where a line does.
    pub ideal_lines: u64,
    /// Requests to L1: of each four lanes the lines that they access.
    pub requests: u64,
    /// As many as there would be if the bytes of each four lanes began where a line does and were next to each other.
    pub least_requests: u64,
    /// What LDS did, with the most ways of a conflict; none elsewhere.
    pub lds: Option<LdsCycles>,
    /// Bytes from each lane to the next, if that was one number in all executions of more than a lane.
    pub stride: Option<i64>,
    /// The arrays that it accessed.
    pub arrays: BTreeSet<Array>,
    /// Executions in which at least two lanes were active, and all had the same address.
    pub uniform: u64,
    /// Executions in which the active lanes lie at most two different distances apart.
    pub regular: u64,
    /// Executions whose lanes lie next to each other or overlap, a constant distance apart.
    pub adjacent: u64,
    /// Executions of half the wave or more whose lanes lie next to each other, but in more lines than they fill.
    pub misaligned: u64,
    /// Executions whose lanes lie next to each other and begin where a line does.
    pub line_starts: u64,
    /// How often each wave executed it.
    pub waves: BTreeMap<Wave, u64>,
}

impl Measured {
    /// Active lanes of an execution on average.
    #[must_use]
    pub fn mean_lanes(&self) -> f64 {
        mean(self.lanes, self.executions)
    }

    /// Lines of an execution on average.
    #[must_use]
    pub fn mean_lines(&self) -> f64 {
        mean(self.lines, self.executions)
    }

    /// Lines of an execution on average, if its bytes began where a line does.
    #[must_use]
    pub fn mean_ideal_lines(&self) -> f64 {
        mean(self.ideal_lines, self.executions)
    }

    /// Bytes that lanes requested.
    #[must_use]
    pub fn requested_bytes(&self) -> u64 {
        self.lanes * u64::from(self.bytes)
    }

    /// Lines, or cycles of LDS, beyond what the bytes need.
    #[must_use]
    pub fn excess(&self) -> u64 {
        self.lds.map_or(self.lines.saturating_sub(self.ideal_lines), |lds| lds.conflicts)
    }
}

fn mean(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}

/// The instructions of a kernel, by address.
#[must_use]
pub fn measure(kernel: &RecordedKernel, arrays: &Arrays<'_>) -> Vec<Measured> {
    let mut all: BTreeMap<Site, Measured> = BTreeMap::new();
    let mut strides: BTreeMap<Site, Stride> = BTreeMap::new();
    for record in &kernel.records {
        let site = Site { address: record.address, space: record.space };
        let measured = all.entry(site).or_insert_with(|| Measured::empty(record, kernel));
        measured.add(record, kernel, arrays, strides.entry(site).or_default());
    }
    for (site, measured) in &mut all {
        measured.stride = match strides.get(site) {
            Some(Stride::One(stride)) => Some(*stride),
            _ => None,
        };
    }
    all.into_values().collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Site {
    address: u64,
    space: Space,
}

/// The distance from lane to lane over all executions.
#[derive(Debug, Clone, Copy, Default)]
enum Stride {
    #[default]
    NotSeen,
    One(i64),
    Several,
}

impl Measured {
    fn empty(record: &Recorded, kernel: &RecordedKernel) -> Measured {
        Measured {
            address: record.address,
            space: record.space,
            operation: record.operation,
            bytes: record.bytes,
            executions: 0,
            dropped: kernel.dropped.get(&record.address).copied().unwrap_or(0),
            lanes: 0,
            lines: 0,
            ideal_lines: 0,
            requests: 0,
            least_requests: 0,
            lds: (record.space == Space::Lds).then(LdsCycles::default),
            stride: None,
            arrays: BTreeSet::new(),
            uniform: 0,
            regular: 0,
            adjacent: 0,
            misaligned: 0,
            line_starts: 0,
            waves: BTreeMap::new(),
        }
    }

    fn add(&mut self, record: &Recorded, kernel: &RecordedKernel, arrays: &Arrays<'_>, stride: &mut Stride) {
        self.executions += 1;
        self.lanes += u64::from(record.lanes.count_ones());
        self.bytes = self.bytes.max(record.bytes);
        let wave = Wave { dispatch: record.dispatch, workgroup: record.workgroup, wave: record.wave };
        *self.waves.entry(wave).or_default() += 1;
        if record.space == Space::Scratch {
            return;
        }
        self.arrays.extend(record.addresses.iter().filter_map(|address| arrays.of_address(record, *address)));
        let distances = Distances::of(record);
        let several = record.addresses.len() > 1;
        self.uniform += u64::from(several && distances.constant() == Some(0));
        self.regular += u64::from(distances.distinct.len() <= REGULAR_DISTANCES);
        if several {
            *stride = match (*stride, distances.constant()) {
                (Stride::NotSeen, Some(distance)) => Stride::One(distance),
                (Stride::One(before), Some(distance)) if before == distance => *stride,
                _ => Stride::Several,
            };
        }
        if let Some(lds) = &mut self.lds {
            let cycles = lds_cycles(record, kernel);
            lds.cycles += cycles.cycles;
            lds.conflicts += cycles.conflicts;
            lds.ways = lds.ways.max(cycles.ways);
            return;
        }
        let line = kernel.line_bytes();
        let lines = u64::from(lines_of(&record.addresses, record.bytes, line));
        let ideal = ideal_bytes(record, &distances).div_ceil(line.into());
        self.lines += lines;
        self.ideal_lines += ideal;
        let (requests, least) = requests(record, line);
        self.requests += requests;
        self.least_requests += least;
        let adjacent = distances
            .constant()
            .is_some_and(|distance| distance != 0 && distance.unsigned_abs() <= u64::from(record.bytes));
        if adjacent {
            self.adjacent += 1;
            let half = 2 * record.lanes.count_ones() >= kernel.lanes();
            self.misaligned += u64::from(half && lines > ideal);
            let first = record.addresses.iter().min().copied().unwrap_or(0);
            self.line_starts += u64::from(first.is_multiple_of(line.into()));
        }
    }
}

/// How far apart active lanes lie that follow each other.
struct Distances {
    distinct: BTreeSet<i64>,
    lanes: usize,
}

impl Distances {
    fn of(record: &Recorded) -> Distances {
        // An inactive lane between makes the distance that of two steps: it is divided by the lanes that it spans.
        let lanes = active(record.lanes);
        let mut distinct = BTreeSet::new();
        for (pair, at) in record.addresses.windows(2).zip(lanes.windows(2)) {
            let (distance, steps) = (pair[1].wrapping_sub(pair[0]).cast_signed(), (at[1] - at[0]) as i64);
            distinct.insert(if distance % steps == 0 { distance / steps } else { distance });
        }
        Distances { distinct, lanes: record.addresses.len() }
    }

    /// The one distance; none if there are several, or there is one lane.
    fn constant(&self) -> Option<i64> {
        let mut all = self.distinct.iter();
        all.next().copied().filter(|_| self.lanes > 1 && all.next().is_none())
    }
}

/// The lanes of a mask, from the first on.
pub(crate) fn active(lanes: u64) -> Vec<usize> {
    (0..u64::BITS as usize).filter(|lane| lanes >> lane & 1 != 0).collect()
}

fn lines_of(addresses: &[u64], bytes: u32, line: u32) -> u32 {
    count_lines(addresses.iter().map(|address| address.cast_signed()), bytes, line)
}

/// Bytes that an execution needs: each lane's own, if lanes overlap by a constant distance, and otherwise the distinct
/// ones.
fn ideal_bytes(record: &Recorded, distances: &Distances) -> u64 {
    let bytes = u64::from(record.bytes.max(1));
    if let Some(distance) = distances.constant().filter(|distance| *distance != 0) {
        return record.addresses.len() as u64 * bytes.min(distance.unsigned_abs());
    }
    let mut addresses = record.addresses.clone();
    addresses.sort_unstable();
    let (mut distinct, mut end) = (0, 0);
    for address in addresses {
        let after = address.saturating_add(bytes);
        distinct += after.saturating_sub(address.max(end));
        end = end.max(after);
    }
    distinct
}

/// Of each four lanes in a row the lines that its active ones access, and that their bytes fill.
fn requests(record: &Recorded, line: u32) -> (u64, u64) {
    let mut lanes = active(record.lanes);
    lanes.truncate(record.addresses.len());
    let (mut requests, mut least) = (0, 0);
    let mut at = 0;
    while at < lanes.len() {
        let end = at + lanes[at..].iter().take_while(|lane| **lane / QUAD == lanes[at] / QUAD).count();
        requests += u64::from(lines_of(&record.addresses[at..end], record.bytes, line));
        least += ((end - at) as u64 * u64::from(record.bytes)).div_ceil(line.into()).max(1);
        at = end;
    }
    (requests, least)
}

fn lds_cycles(record: &Recorded, kernel: &RecordedKernel) -> LdsCycles {
    let operation = match record.operation {
        Operation::Load => LdsOperation::Read,
        Operation::Store => LdsOperation::Write,
        Operation::Atomic => LdsOperation::Atomic,
    };
    let mut addresses = [0; u64::BITS as usize];
    for (lane, address) in active(record.lanes).into_iter().zip(&record.addresses) {
        addresses[lane] = *address;
    }
    kernel.target.lds_cycles(operation, record.bytes, &addresses, record.lanes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::testing::{kernel, record};

    fn only(records: Vec<Recorded>) -> Measured {
        let kernel = kernel("gfx90a", records);
        let measured = measure(&kernel, &Arrays::of(&kernel));
        let [one] = measured.as_slice() else { panic!("{measured:?}") };
        one.clone()
    }

    #[test]
    fn lines_of_a_wave() {
        let of = |bytes, place: fn(u64) -> u64| {
            let one = only(vec![record(0, bytes, u64::MAX, place)]);
            (one.lines, one.ideal_lines, one.requests, one.misaligned, one.stride)
        };
        assert_eq!(of(4, |lane| 4 * lane), (4, 4, 16, 0, Some(4)));
        assert_eq!(of(4, |lane| 4 * lane + 8), (5, 4, 20, 1, Some(4)));
        assert_eq!(of(8, |lane| 4 * lane), (5, 4, 20, 1, Some(4)), "lanes overlap: 260 bytes for 256");
        assert_eq!(of(4, |lane| 64 * lane), (64, 4, 64, 0, Some(64)));
        assert_eq!(of(16, |lane| 64 * lane), (64, 16, 64, 0, Some(64)));
        assert_eq!(of(4, |_| 12), (1, 1, 16, 0, Some(0)));
        assert_eq!(of(4, |lane| lane % 16 * 4 + lane / 16 * 4096), (4, 4, 16, 0, None));
    }

    #[test]
    fn executions_add_up() {
        let place: fn(u64) -> u64 = |lane| 4 * lane;
        let few = record(0, 4, 0xff, place);
        let one = only(vec![record(0, 4, u64::MAX, place), few]);
        assert_eq!((one.executions, one.lanes, one.requested_bytes(), one.lines), (2, 72, 288, 5));
        assert_eq!((one.mean_lanes(), one.line_starts, one.excess()), (36.0, 2, 0));
        let gap = only(vec![record(0, 4, 0b1011, place)]);
        assert_eq!((gap.stride, gap.lines, gap.ideal_lines), (Some(4), 1, 1), "an inactive lane is no other distance");
    }

    #[test]
    fn lds_has_cycles_and_no_lines() {
        let in_lds = |place| Recorded { space: Space::Lds, ..record(0, 4, u64::MAX, place) };
        let one = only(vec![in_lds(|lane| 128 * lane)]);
        assert_eq!(one.lds.map(|lds| (lds.cycles, lds.conflicts, lds.ways)), Some((64, 62, 32)));
        assert_eq!((one.lines, one.excess()), (0, 62));
    }
}
