//! Which workgroups of a dispatch record their accesses to memory, and where.

use super::{DispatchInfo, WorkgroupSample, lanes};
use crate::memory::DeviceMemory;
use wavetap_base::error::{Error, Result};
use wavetap_profile::accesses::{AllocatedRange, Apertures, CURSOR, slot_bytes};
use wavetap_profile::control::NOT_SAMPLED;
use wavetap_profile::map::KernelMap;

/// The most slots of a wave: more take longer to read than they tell.
const MOST_SLOTS: u64 = 1 << 14;
/// An odd number whose products with small ones are far apart (2^32 by the golden ratio).
const SPREAD: u64 = 0x9e37_79b1;

/// The sampled workgroups of a dispatch, and the records of their waves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sample {
    /// Workgroups of the grid in x, y, z.
    pub(super) groups: [u32; 3],
    /// Work-items of a workgroup that is not partial.
    pub(super) size: [u32; 3],
    /// The numbers of the sampled workgroups, in the order x, y, z; ascending.
    pub(super) sampled: Vec<u32>,
    /// Waves of a workgroup that is not partial.
    pub(super) group_waves: u32,
    /// Waves of the sampled workgroups: the last ones of a row may be smaller than the others.
    pub(super) waves: u64,
    /// Waves of the dispatch.
    pub(super) all_waves: u64,
    /// Slots of a wave.
    pub(super) slots: u32,
    /// Lanes of a wave.
    pub(super) lanes: u32,
    /// Size of a record's header and counters in bytes.
    pub(super) counted: u32,
    /// Size of a record in bytes.
    pub(super) stride: u32,
    /// Which flat addresses are not of global memory.
    pub(super) apertures: Apertures,
    /// What of global memory was allocated when it began; nothing where no workgroup is sampled.
    pub(super) allocations: Vec<AllocatedRange>,
}

impl Sample {
    /// That of a dispatch, in so many bytes; of one of which nothing is recorded, none.
    pub(super) fn of<M: DeviceMemory>(
        memory: &M,
        info: &DispatchInfo,
        kernel: &KernelMap,
        sample: Option<WorkgroupSample>,
        limit: u64,
    ) -> Result<Sample> {
        let unknown = || Error::unsupported("which flat addresses are in LDS or scratch is not known");
        let apertures = memory.apertures().ok_or_else(unknown)?;
        let groups = info.groups();
        let all = groups.iter().fold(1_u64, |all, axis| all.saturating_mul((*axis).into()));
        let all = u32::try_from(all)
            .ok()
            .filter(|all| *all < 1 << 30)
            .ok_or_else(|| Error::limit(format!("a grid of {all} workgroups, of which some are to be sampled")))?;
        let sampled = sample.map(|sample| chosen(groups, all, sample)).unwrap_or_default();
        let (lanes, counted, group_waves) = (lanes(kernel)?, kernel.record_bytes(), info.waves_of_workgroup(kernel)?);
        let records = sampled.len() as u64 * u64::from(group_waves);
        let table = u64::from(all) * size_of::<u32>() as u64;
        let of_wave = limit.saturating_sub(table) / records.max(1);
        let slots = of_wave.saturating_sub((counted + CURSOR).into()) / u64::from(slot_bytes(lanes));
        if slots == 0 {
            let found = format!(
                "{limit} bytes are too few to record the accesses of {records} waves of {} workgroups of kernel {}",
                sampled.len(),
                kernel.name
            );
            return Err(Error::limit(found));
        }
        let slots = slots.min(MOST_SLOTS) as u32;
        let mut found = Sample {
            groups,
            size: info.workgroup,
            sampled,
            group_waves,
            waves: 0,
            all_waves: info.waves(kernel)?,
            slots,
            lanes,
            counted,
            stride: counted + CURSOR + slots * slot_bytes(lanes),
            apertures,
            allocations: Vec::new(),
        };
        if !found.sampled.is_empty() {
            found.allocations = memory.allocations();
        }
        let waves = |number: &u32| info.size_of(found.workgroup(*number)).div_ceil(lanes.into());
        found.waves = found.sampled.iter().map(waves).sum();
        Ok(found)
    }

    /// The id of a workgroup by its number.
    pub(super) fn workgroup(&self, number: u32) -> [u32; 3] {
        let [x, y, _] = self.groups.map(|axis| axis.max(1));
        [number % x, number / x % y, number / x / y]
    }

    /// Records: one for each wave that a workgroup may have.
    pub(super) fn records(&self) -> u32 {
        self.sampled.len() as u32 * self.group_waves
    }

    /// Size of all records in bytes.
    pub(super) fn record_bytes(&self) -> u64 {
        u64::from(self.records()) * u64::from(self.stride)
    }

    /// The sample table.
    pub(super) fn table(&self) -> Vec<u8> {
        let mut table = vec![NOT_SAMPLED; self.groups.iter().map(|axis| *axis as usize).product()];
        for (number, workgroup) in (0..).zip(&self.sampled) {
            table[*workgroup as usize] = number;
        }
        table.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    /// The counters and the count of free slots of each record, before the waves begin.
    pub(super) fn fresh_record(&self) -> Vec<u8> {
        let mut record = vec![0; self.counted as usize];
        record.extend(u64::from(self.slots).to_le_bytes());
        record
    }
}

/// The workgroups of a grid of so many that are sampled; ascending. Lines of memory may be shared by workgroups that
/// are neighbours: those of the first one are sampled before others, and then, in x, those of the one in the middle.
fn chosen(groups: [u32; 3], all: u32, sample: WorkgroupSample) -> Vec<u32> {
    match sample {
        WorkgroupSample::All => (0..all).collect(),
        WorkgroupSample::EachNth(step) => (0..all).step_by(step.max(1) as usize).collect(),
        WorkgroupSample::Some(most) if most >= all => (0..all).collect(),
        WorkgroupSample::Some(most) => {
            let [x, y, _] = groups.map(|axis| axis.max(1));
            let steps = [(groups[0], 1), (groups[1], x), (groups[2], x.saturating_mul(y))];
            let beside_first = steps.into_iter().filter(|(axis, _)| *axis > 1).map(|(_, step)| step);
            let beside_middle =
                [(all / 2).saturating_sub(1), all / 2 + 1].into_iter().filter(|number| number / x == all / 2 / x);
            let first = [0, all / 2, all - 1].into_iter().chain(beside_first).chain(beside_middle);
            let others = (1..).map(|number: u64| (number * SPREAD % u64::from(all)) as u32);
            let mut chosen: Vec<u32> = Vec::new();
            for number in first.chain(others) {
                if chosen.len() as u32 == most.max(1) {
                    break;
                }
                if !chosen.contains(&number) {
                    chosen.push(number);
                }
            }
            chosen.sort_unstable();
            chosen
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_the_middle_and_the_last_are_sampled() {
        let row = |all| move |sample| chosen([all, 1, 1], all, sample);
        assert_eq!(row(100)(WorkgroupSample::Some(3)), [0, 50, 99]);
        assert_eq!(row(3)(WorkgroupSample::Some(8)), [0, 1, 2]);
        assert_eq!(row(2)(WorkgroupSample::Some(1)), [0]);
        assert_eq!(row(130)(WorkgroupSample::EachNth(64)), [0, 64, 128]);
        assert_eq!(row(3)(WorkgroupSample::All), [0, 1, 2]);
    }

    /// A grid of 10 × 6 × 4 workgroups: those beside the first one are 1, 10 and 60, the middle one is 120, at the
    /// begin of a row, so that it has one beside it in x.
    #[test]
    fn neighbours_are_sampled() {
        assert_eq!(chosen([100, 1, 1], 100, WorkgroupSample::Some(6)), [0, 1, 49, 50, 51, 99]);
        assert_eq!(chosen([10, 6, 4], 240, WorkgroupSample::Some(7)), [0, 1, 10, 60, 120, 121, 239]);
        assert_eq!(chosen([1, 100, 1], 100, WorkgroupSample::Some(4)), [0, 1, 50, 99]);
    }

    /// Multiplying by the odd number may meet few of the workgroups only where their number shares a factor with it; it
    /// is prime to all small ones.
    #[test]
    fn as_many_are_chosen_as_there_may_be() {
        for all in 1..300 {
            let most = 17.min(all);
            assert_eq!(chosen([all, 1, 1], all, WorkgroupSample::Some(17)).len() as u32, most, "{all}");
        }
    }
}
