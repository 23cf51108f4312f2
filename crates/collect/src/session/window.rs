//! The dispatches that use one record buffer, and what their records hold.

use wavetap_base::bytes;
use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_profile::accesses::{self, DispatchAccesses, WaveAccesses};
use wavetap_profile::control::Control;
use wavetap_profile::launches::LaunchShape;
use wavetap_profile::map::{CounterMode, KernelMap, ObjectMap};
use wavetap_profile::record::{BEGAN, COUNTER, DISPATCH, HEADER, Header, KERNEL};

use super::checks::Checks;
use super::sample::Sample;
use crate::collector::{Collector, CountedKernel, EndedDispatch, RegionId, header};
use crate::memory::DeviceMemory;

/// Records of so many bytes are copied at once: a copy takes longer than what it copies.
pub(super) const SMALL: u64 = 1 << 20;

/// Device memory for records. Records that no wave has used are zero.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buffer {
    pub(super) address: u64,
    /// Size in bytes.
    pub(super) size: u64,
}

/// A dispatch of a window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) ticket: u64,
    pub(super) ordinal: u32,
    pub(super) state: MemberState,
}

/// What becomes of a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberState {
    InFlight,
    /// It ended, launched in this way where that is known.
    Ended(Option<LaunchShape>),
    /// It faulted.
    Abandoned,
}

/// Which wave has which record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Waves choose by where they run.
    Slots,
    /// Each wave has its own, by its place in the grid: one dispatch.
    Own {
        /// Workgroups in x and y.
        groups: [u32; 2],
        /// Waves of a workgroup.
        group_waves: u32,
        /// Waves beyond the capacity share.
        shared: bool,
        /// In records.
        capacity: u32,
    },
    /// Each wave of a sampled workgroup has its own: one dispatch.
    Sampled,
}

/// Dispatches of one kernel that use one buffer, from when the first begins to when none is in flight.
#[derive(Debug)]
pub(super) struct Window {
    /// The first dispatch's ticket.
    pub(super) id: u64,
    pub(super) kernel: u32,
    /// The region of the program that all its dispatches are in.
    pub(super) region: Option<RegionId>,
    pub(super) buffer: Buffer,
    /// Records that may be used.
    pub(super) records: u32,
    /// Size of a record in bytes.
    pub(super) stride: u32,
    pub(super) kind: Kind,
    pub(super) members: Vec<Member>,
    /// Waves of all dispatches.
    pub(super) waves: u64,
    /// Which workgroups, if they are sampled.
    pub(super) sample: Option<Sample>,
    /// What addresses are compared with, if they are.
    pub(super) checks: Option<Checks>,
    /// The block's count of dropped waves while it does not describe this window.
    pub(super) parked: Option<u32>,
}

impl Window {
    /// Size of its records in bytes.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.records) * u64::from(self.stride)
    }

    /// Its dispatches in flight.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.state == MemberState::InFlight)
    }

    /// Whether each of its dispatches has ended, and none faulted.
    pub(super) fn all_ended(&self) -> bool {
        self.members.iter().all(|member| matches!(member.state, MemberState::Ended(_)))
    }

    /// Finds a block that describes this window and is not as it was written.
    pub(super) fn check(&self, control: &Control) -> Result<()> {
        let is_ours = control.buffer == self.buffer.address
            && match self.kind {
                Kind::Slots | Kind::Sampled => true,
                Kind::Own { groups, group_waves, capacity, .. } => {
                    (control.groups, control.group_waves, control.capacity) == (groups, group_waves, capacity)
                }
            };
        if is_ours { Ok(()) } else { Err(Error::malformed(format!("the control block was overwritten: {control:x?}"))) }
    }

    /// Adds the accesses out of bounds that waves have found, if they look for them; then it gives the place of the
    /// kernel in the profile. `ended`: as [`Checks::found`] has it.
    pub(super) fn find<M: DeviceMemory>(
        &self,
        memory: &M,
        collector: &mut Collector,
        map: &ObjectMap,
        ended: bool,
    ) -> Result<Option<usize>> {
        let Some(checks) = &self.checks else { return Ok(None) };
        let place = collector.place(map, self.kernel)?;
        let ordinal = self.members.first().map_or(0, |member| member.ordinal);
        let found = checks.found(memory, (place as u32, ordinal), ended)?;
        collector.add_out_of_bounds(self.region, found);
        Ok(Some(place))
    }

    /// Adds all records to the totals of the kernel, none of whose dispatches here is in flight any more; gives its
    /// place in the profile.
    pub(super) fn fold<M: DeviceMemory>(
        &self,
        memory: &M,
        collector: &mut Collector,
        map: &ObjectMap,
        dropped: u32,
    ) -> Result<usize> {
        self.find(memory, collector, map, true)?;
        let ended = self.ended();
        if ended.len() < self.members.len() {
            // One has faulted: nothing tells its records from those of the others.
            collector.add_lost(self.counted(map), ended.len() as u64)?;
            return collector.place(map, self.kernel);
        }
        let name = &self.map_of(map)?.name;
        match self.kind {
            Kind::Slots => self.fold_slots(memory, collector, map)?,
            Kind::Own { shared, .. } => self.fold_own(memory, collector, map, shared, dropped)?,
            Kind::Sampled => self.fold_sampled(memory, collector, map)?,
        }
        collector.add_dispatches(self.counted(map), &ended).within(|| format!("kernel {name}"))?;
        collector.place(map, self.kernel)
    }

    fn counted<'m>(&self, map: &'m ObjectMap) -> CountedKernel<'m> {
        CountedKernel { map, kernel: self.kernel, region: self.region }
    }

    fn map_of<'m>(&self, map: &'m ObjectMap) -> Result<&'m KernelMap> {
        map.kernels.get(self.kernel as usize).ok_or_else(|| Error::internal("a window of no kernel"))
    }

    fn read<M: DeviceMemory>(&self, memory: &M) -> Result<Vec<u8>> {
        let size =
            usize::try_from(self.bytes()).map_err(|_| Error::limit("the records are too large for this machine"))?;
        let mut records = vec![0; size];
        memory.read(self.buffer.address, &mut records)?;
        Ok(records)
    }

    /// Adds records that waves chose by where they ran.
    fn fold_slots<M: DeviceMemory>(&self, memory: &M, collector: &mut Collector, map: &ObjectMap) -> Result<()> {
        let kernel = self.map_of(map)?;
        let ordinal = self.members.first().map_or(0, |member| member.ordinal);
        let keeps_waves = collector.keeps_waves();
        let mut records = self.read(memory)?;
        let mut finished = 0;
        for record in records.chunks_exact(self.stride as usize) {
            finished += u64::from(Header::from_bytes(record)?.finished);
        }
        let unfinished = self.waves.checked_sub(finished).ok_or_else(|| {
            let found =
                format!("{finished} waves left counters of kernel {}, {} were dispatched", kernel.name, self.waves);
            Error::malformed(found)
        })?;
        if kernel.placement.is_some() && kernel.mode != CounterMode::Register && unfinished > 0 {
            // No counter follows from those of a wave that did not end, which may be in any record. Counters in
            // registers leave a wave only when it ends.
            return collector.add_unfinished(self.counted(map), self.waves);
        }
        for (number, record) in records.chunks_exact_mut(self.stride as usize).enumerate() {
            let place = || format!("record {number} of kernel {}", kernel.name);
            if record.iter().all(|byte| *byte == 0) {
                continue;
            }
            let waves = Header::from_bytes(record)?.finished;
            // How many began is known of all together.
            for (field, value) in [(KERNEL, self.kernel), (DISPATCH, ordinal), (BEGAN, waves)] {
                record[field as usize..][..size_of::<u32>()].copy_from_slice(&value.to_le_bytes());
            }
            match &kernel.placement {
                Some(_) if waves == 0 => return Err(Error::malformed("counters of no wave")).within(place),
                Some(placement) => {
                    let solved = placement.solve(record).within(place)?;
                    collector.fold(self.counted(map), &solved, None, keeps_waves).within(place)?;
                }
                None => drop(collector.fold(self.counted(map), record, None, keeps_waves).within(place)?),
            }
        }
        collector.add_unfinished(self.counted(map), unfinished)
    }

    /// Adds records of single waves, or of waves of one dispatch that shared what there was.
    fn fold_own<M: DeviceMemory>(
        &self,
        memory: &M,
        collector: &mut Collector,
        map: &ObjectMap,
        shared: bool,
        dropped: u32,
    ) -> Result<()> {
        let KernelMap { name, placement, .. } = self.map_of(map)?;
        let ordinal = self.members.first().map(|member| member.ordinal);
        let records = self.read(memory)?;
        let mut waves = 0;
        for number in 0..self.records {
            let place = || format!("record {number} of kernel {name}");
            let record =
                bytes::slice(&records, u64::from(number) * u64::from(self.stride), self.stride.into(), "record")?;
            // Partial workgroups have fewer waves.
            if record.iter().all(|byte| *byte == 0) {
                continue;
            }
            let header = header(map, record).within(place)?;
            if header.kernel != self.kernel || Some(header.dispatch) != ordinal {
                let found = format!(
                    "it belongs to kernel {} and dispatch {}, dispatched was kernel {} as {ordinal:?}",
                    header.kernel, header.dispatch, self.kernel
                );
                return Err(Error::malformed(found)).within(place);
            }
            if !shared && header.began != 1 {
                return Err(Error::malformed(format!("{} waves began with it, 1 expected", header.began)))
                    .within(place);
            }
            waves += u64::from(header.began);
            match placement {
                // No counter follows from those of a wave that did not end, nor from a sum with them.
                Some(_) if header.began != header.finished => {
                    collector.add_unfinished(self.counted(map), header.began.into()).within(place)?;
                }
                Some(placement) => {
                    let solved = placement.solve(record).within(place)?;
                    collector.fold(self.counted(map), &solved, ordinal, shared).within(place)?;
                }
                None => drop(collector.fold(self.counted(map), record, ordinal, shared).within(place)?),
            }
        }
        if waves + u64::from(dropped) != self.waves {
            let found = format!(
                "{} waves of kernel {name} were dispatched, {waves} have a record and {dropped} were dropped",
                self.waves
            );
            return Err(Error::malformed(found));
        }
        if dropped == 0 { Ok(()) } else { collector.add_dropped(self.counted(map), dropped.into()) }
    }

    /// Adds the records of the waves of sampled workgroups: counters, and accesses.
    fn fold_sampled<M: DeviceMemory>(&self, memory: &M, collector: &mut Collector, map: &ObjectMap) -> Result<()> {
        let kernel = self.map_of(map)?;
        let missing = || Error::internal("a window of sampled workgroups has no sample");
        let sample = self.sample.as_ref().ok_or_else(missing)?;
        let ordinal = self.members.first().map_or(0, |member| member.ordinal);
        let (counted, stride) = (sample.counted as usize, sample.stride as usize);
        let (mut waves, mut began) = (Vec::new(), 0);
        let mut record = vec![0; stride];
        let all = if self.bytes() <= SMALL { Some(self.read(memory)?) } else { None };
        for number in 0..self.records {
            let place = || format!("record {number} of kernel {}", kernel.name);
            let offset = u64::from(number) * u64::from(self.stride);
            let head = counted + accesses::CURSOR as usize;
            match &all {
                Some(all) => record.copy_from_slice(bytes::slice(all, offset, self.stride.into(), "record")?),
                None => memory.read(self.buffer.address + offset, &mut record[..head])?,
            }
            // Partial workgroups have fewer waves.
            if record[..counted].iter().all(|byte| *byte == 0) {
                continue;
            }
            let header = header(map, &record).within(place)?;
            let workgroup = sample.sampled.get((number / sample.group_waves) as usize);
            let workgroup = workgroup.map(|workgroup| sample.workgroup(*workgroup));
            let is_ours = header.kernel == self.kernel
                && header.dispatch == ordinal
                && header.began == 1
                && Some(header.workgroup) == workgroup
                && header.wave == number % sample.group_waves;
            if !is_ours {
                return Err(Error::malformed(format!("the header is that of another wave: {header:?}"))).within(place);
            }
            // Slots are taken from the last to the first.
            let free = bytes::u64_at(&record, counted as u64, "free slots")?.cast_signed().max(0);
            let free = usize::try_from(free).unwrap_or(usize::MAX).min(sample.slots as usize);
            let first = head + free * accesses::slot_bytes(sample.lanes) as usize;
            if all.is_none() {
                memory.read(self.buffer.address + offset + first as u64, &mut record[first..])?;
            }
            let recorded = accesses::recorded(&record[counted..], sample.lanes, |offset| kernel.access_at(offset));
            let accesses = recorded.within(place)?;
            // There is a counter for each site, of what had no room.
            let counter = |at| bytes::u64_at(&record, at as u64, "counter");
            let counters = (HEADER as usize..counted).step_by(COUNTER as usize).map(counter);
            let dropped = counters.sum::<Result<u64>>().within(place)?;
            collector.fold(self.counted(map), &record[..counted], Some(ordinal), false).within(place)?;
            began += 1;
            waves.push(WaveAccesses { workgroup: header.workgroup, wave: header.wave, accesses, dropped });
        }
        if began != self.waves {
            let found = format!("{} waves of kernel {} were sampled, {began} have a record", self.waves, kernel.name);
            return Err(Error::malformed(found));
        }
        // The others ran, too: how many waves a kernel had is known of all.
        collector.add_unsampled(self.counted(map), sample.all_waves.saturating_sub(began))?;
        if sample.sampled.is_empty() {
            return Ok(());
        }
        let (workgroups, sampled) = (sample.groups, sample.sampled.len() as u32);
        let kernel = collector.place(map, self.kernel)? as u32;
        collector.add_accesses(
            self.region,
            DispatchAccesses {
                kernel,
                dispatch: ordinal,
                region: None,
                workgroups,
                workgroup_size: sample.size,
                sampled,
                apertures: sample.apertures,
                allocations: sample.allocations.clone(),
                waves,
            },
        );
        Ok(())
    }

    /// The dispatches that have ended without a fault.
    fn ended(&self) -> Vec<EndedDispatch> {
        let ended = self.members.iter().filter_map(|member| match member.state {
            MemberState::Ended(shape) => Some(EndedDispatch { kernel: self.kernel, ordinal: member.ordinal, shape }),
            MemberState::InFlight | MemberState::Abandoned => None,
        });
        ended.collect()
    }
}
