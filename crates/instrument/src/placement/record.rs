//! Records of counters that are kept in memory or in LDS: which counters a record has, and what is done at each point
//! of the code. What is counted at one point lies next to each other, so that one instruction adds to all of it.

use rustc_hash::FxHashMap;

use super::jobs::{Job, jobs};
use super::values::{Measure, ValueId, Values};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::ProgramPoint;
use wavetap_base::error::{Error, Result};
use wavetap_profile::placement::Placement;
use wavetap_profile::record::{COUNTER, HEADER};

/// How many records waves choose among is not known before their size.
const UNKNOWN_SLOTS: u32 = 0;

/// What is done at a point.
#[derive(Debug)]
pub(crate) struct PointJobs {
    pub(crate) point: ProgramPoint,
    /// In order.
    pub(crate) jobs: Vec<Job>,
    /// Offset in the record of the counter of lane 0.
    pub(crate) offset: u32,
    /// One more than the highest lane.
    pub(crate) count: u32,
}

impl PointJobs {
    /// The lane of each job that counts, of 0 to 4. Lane 0 adds 1 from the start, and nothing else may.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = (u32, Job)> + '_ {
        let mut next = 1;
        self.jobs.iter().filter(|job| job.measure().is_some()).map(move |job| match job {
            Job::Execution(_) => (0, *job),
            _ => {
                next += 1;
                (next - 1, *job)
            }
        })
    }
}

/// The record of a kernel whose counters are placed.
#[derive(Debug)]
pub(crate) struct PlacedRecord {
    /// By function, in the order of the code.
    pub(crate) functions: Vec<Vec<PointJobs>>,
    /// Offset in the record of the counter of the lanes with which a wave begins, if there is one.
    pub(crate) entry_lanes: Option<u32>,
    /// Where the counters of each point end, in bytes after the record's header.
    pub(crate) ends: Vec<u32>,
    pub(crate) placement: Placement,
}

impl PlacedRecord {
    /// Gives the measures from which counters of a kernel follow their places.
    ///
    /// # Errors
    /// Internal if a measure finds none.
    pub(crate) fn of(functions: &[&Body], values: &Values, wanted: &[ValueId]) -> Result<PlacedRecord> {
        let measures = values.needed(wanted);
        let mut numbers: FxHashMap<Measure, u32> = FxHashMap::default();
        let mut next = 0;
        let mut ends = Vec::new();
        let has_entry_lanes = measures.contains(&Measure::EntryLanes);
        let entry_lanes = has_entry_lanes.then_some(HEADER);
        if has_entry_lanes {
            numbers.insert(Measure::EntryLanes, next);
            next += 1;
            ends.push(next * COUNTER);
        }
        let mut placed = Vec::new();
        for jobs in jobs(functions, &measures) {
            let mut points = Vec::new();
            for (point, jobs) in jobs {
                // Where lane 0 does not count, its counter is that before, which then must be there.
                let counts_one = jobs.iter().any(|job| matches!(job, Job::Execution(_)));
                let first = if counts_one { next } else { next.max(1) - 1 };
                let here = PointJobs { point, jobs, offset: HEADER + first * COUNTER, count: 0 };
                let mut count = 0;
                for (lane, job) in here.lanes() {
                    count = count.max(lane + 1);
                    numbers.extend(job.measure().map(|measure| (measure, first + lane)));
                }
                if count > 0 {
                    next = first + count;
                    ends.push(next * COUNTER);
                }
                points.push(PointJobs { count, ..here });
            }
            placed.push(points);
        }
        let placement = values
            .placement(wanted, next, UNKNOWN_SLOTS, |measure| Some((*numbers.get(measure)?, None)))
            .ok_or_else(|| Error::internal("a counter has no place"))?;
        Ok(PlacedRecord { functions: placed, entry_lanes, ends, placement })
    }
}
