//! One attached object: the control blocks of its kernels and the record buffers of their dispatches in flight.

use std::collections::BTreeMap;
use std::sync::Arc;

use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_profile::control::{self, Control};
use wavetap_profile::map::{KernelMap, ObjectMap};
use wavetap_profile::record::HEADER;

use super::checks::Checks;
use super::sample::Sample;
use super::window::{Buffer, Kind, Member, MemberState, SMALL, Window};
use super::{BeginError, DispatchInfo, Options, Overlap, Records};
use crate::collector::Collector;
use crate::memory::DeviceMemory;

/// Alignment of a record buffer in bytes.
const ALIGNMENT: u64 = 64;
/// Buffers that are kept for later dispatches.
const MOST_SPARE: usize = 2;
/// The smallest buffer in bytes: others are to find room in it later.
const SMALLEST: u64 = 1 << 14;

/// An attached object.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) map: Arc<ObjectMap>,
    blocks: u64,
    /// By the kernel's index.
    kernels: BTreeMap<u32, Windows>,
    spare: Vec<Buffer>,
    /// See [`Session::stay_armed`](super::Session::stay_armed).
    pub(super) stays_armed: bool,
}

/// The windows of a kernel, and which of them its control block describes.
#[derive(Debug, Default)]
struct Windows {
    windows: Vec<Window>,
    /// The first ticket of that window.
    installed: Option<u64>,
    /// Its dispatches, where accesses are recorded.
    dispatches: u64,
    /// The most waves that one of those had.
    most_waves: u64,
    /// A cleared buffer that the block describes while there is no window.
    standing: Option<Buffer>,
}

impl Windows {
    /// Whether accesses of the next dispatch are recorded, which has so many waves.
    fn samples_next(&self, options: &Options, waves: u64) -> bool {
        options.sampled_dispatches.takes(self.dispatches, waves, self.most_waves)
    }
}

impl Attached {
    /// Reads the blocks of a loaded object.
    pub(super) fn new<M: DeviceMemory>(memory: &M, map: Arc<ObjectMap>, blocks: u64) -> Result<Attached> {
        for kernel in 0..map.kernels.len() as u32 {
            let stride = read_block(memory, block_of(blocks, kernel))?.stride;
            if stride < HEADER || !stride.is_multiple_of(8) || stride != map.stride {
                let found =
                    format!("the control block has records of {stride} bytes, the site table of {}", map.stride);
                return Err(Error::malformed(found));
            }
        }
        Ok(Attached { map, blocks, kernels: BTreeMap::new(), spare: Vec::new(), stays_armed: false })
    }

    /// See [`Session::measures_next`](super::Session::measures_next).
    pub(super) fn measures_next(&self, options: &Options, info: &DispatchInfo) -> Result<bool> {
        let kernel = kernel_of(&self.map, info.kernel)?;
        let waves = info.waves(kernel)?;
        let new = Windows::default();
        let of_kernel = self.kernels.get(&info.kernel).unwrap_or(&new);
        Ok(!kernel.records_accesses || of_kernel.samples_next(options, waves))
    }

    /// A dispatch of a kernel measures nothing.
    pub(super) fn add_unmeasured(&mut self, kernel: u32) {
        self.kernels.entry(kernel).or_default().dispatches += 1;
    }

    pub(super) fn begin<M: DeviceMemory>(
        &mut self,
        memory: &mut M,
        options: &Options,
        ticket: u64,
        info: &DispatchInfo,
    ) -> Result<(), BeginError> {
        let DispatchInfo { kernel: index, ordinal, .. } = *info;
        let map = Arc::clone(&self.map);
        let kernel = kernel_of(&map, index)?;
        let waves = info.waves(kernel)?;
        let member = Member { ticket, ordinal, state: MemberState::InFlight };
        let checks_bounds = kernel.checks_bounds();
        let buffers: Vec<u64> = if checks_bounds { self.buffers().collect() } else { Vec::new() };
        let of_kernel = self.kernels.entry(index).or_default();
        if options.overlap == Overlap::Concurrent
            && let Some(window) = of_kernel.windows.last_mut()
        {
            // Which record is whose follows from one grid alone where each wave has its own.
            // Records do not say which region they are of, either.
            // What is allocated may not be what it was.
            let is_alone = kernel.records_accesses || checks_bounds;
            if is_alone || kernel.shared_slots().is_none() || window.region != info.region {
                let in_flight = window.in_flight().count();
                return Err(BeginError::Busy { in_flight });
            }
            window.waves = window.waves.saturating_add(waves);
            window.members.push(member);
            return Ok(());
        }
        let checks = if checks_bounds { Some(Checks::begin(memory, kernel, &buffers)?) } else { None };
        let sample = match kernel.records_accesses {
            true => {
                let is_sampled = of_kernel.samples_next(options, waves);
                of_kernel.dispatches += 1;
                if is_sampled {
                    of_kernel.most_waves = of_kernel.most_waves.max(waves);
                }
                Some(Sample::of(memory, info, kernel, is_sampled.then_some(options.sample), options.memory_limit)?)
            }
            false => None,
        };
        let stride = sample.as_ref().map_or_else(|| kernel.record_bytes(), |sample| sample.stride);
        let (kind, records) = match kernel.shared_slots() {
            _ if sample.is_some() => (Kind::Sampled, sample.as_ref().map_or(0, Sample::records)),
            Some(slots) => (Kind::Slots, slots),
            None => {
                let groups = info.groups();
                let group_waves = info.waves_of_workgroup(kernel)?;
                let all = groups.iter().fold(u64::from(group_waves), |all, axis| all.saturating_mul((*axis).into()));
                let (capacity, shared) = capacity(options, stride, all)?;
                let used = u32::try_from(all).unwrap_or(u32::MAX).min(capacity);
                (Kind::Own { groups: [groups[0], groups[1]], group_waves, shared, capacity }, used)
            }
        };
        let size = u64::from(records) * u64::from(stride);
        let table = sample.as_ref().map(Sample::table).unwrap_or_default();
        let standing = of_kernel.standing.take_if(|buffer| kind == Kind::Slots && buffer.size >= size);
        let buffer = match standing {
            Some(buffer) => buffer,
            None => {
                let buffer = match &sample {
                    Some(sample) => sample_buffer(memory, sample, &table)?,
                    None => take_buffer(&mut self.spare, memory, size)?,
                };
                self.suspend_kernel(memory, index)?;
                buffer
            }
        };
        let window = Window {
            id: ticket,
            kernel: index,
            region: info.region,
            buffer,
            records,
            stride,
            kind,
            members: vec![member],
            waves: sample.as_ref().map_or(waves, |sample| sample.waves),
            sample,
            checks,
            parked: if standing.is_some() { None } else { Some(0) },
        };
        if let Some(of_kernel) = self.kernels.get_mut(&index) {
            of_kernel.windows.push(window);
            if standing.is_some() {
                of_kernel.installed = Some(ticket);
                return Ok(());
            }
        }
        self.install(memory, index, ticket)?;
        Ok(())
    }

    /// Makes the kernel's block describe the window that begins with a ticket.
    fn install<M: DeviceMemory>(&mut self, memory: &mut M, kernel: u32, id: u64) -> Result<()> {
        let block = block_of(self.blocks, kernel);
        let Some(of_kernel) = self.kernels.get_mut(&kernel) else { return Ok(()) };
        let Some(window) = of_kernel.windows.iter_mut().find(|window| window.id == id) else { return Ok(()) };
        let dropped = window.parked.take().unwrap_or_default();
        if let Kind::Own { groups, group_waves, shared, capacity } = window.kind {
            let ordinal = window.members.first().map_or(0, |member| member.ordinal);
            for (offset, value) in [
                (control::FLAGS, if shared { control::FLAG_SHARED } else { 0 }),
                (control::CAPACITY, capacity),
                (control::GROUPS, groups[0]),
                (control::GROUPS + 4, groups[1]),
                (control::DISPATCH, ordinal),
                (control::GROUP_WAVES, group_waves),
                (control::DROPPED, dropped),
            ] {
                memory.write(block + offset, &value.to_le_bytes())?;
            }
        }
        if let Some(sample) = &window.sample {
            let ordinal = window.members.first().map_or(0, |member| member.ordinal);
            let table = window.buffer.address + sample.record_bytes();
            for (offset, value) in [
                (control::FLAGS, 0),
                (control::CAPACITY, window.records),
                (control::GROUPS, sample.groups[0]),
                (control::GROUPS + 4, sample.groups[1]),
                (control::DISPATCH, ordinal),
                (control::GROUP_WAVES, sample.group_waves),
                (control::DROPPED, dropped),
                (control::RECORD_STRIDE, sample.stride),
                (control::SLOTS, sample.slots),
            ] {
                memory.write(block + offset, &value.to_le_bytes())?;
            }
            memory.write(block + control::SAMPLE_TABLE, &table.to_le_bytes())?;
        }
        if let Some(checks) = &window.checks {
            memory.write(block + control::SAMPLE_TABLE, &checks.table().to_le_bytes())?;
        }
        // Last: from here on waves count.
        memory.write(block + control::BUFFER, &window.buffer.address.to_le_bytes())?;
        of_kernel.installed = Some(id);
        Ok(())
    }

    /// Makes all blocks describe no window: kernels count nothing.
    pub(super) fn suspend<M: DeviceMemory>(&mut self, memory: &mut M) -> Result<()> {
        let kernels: Vec<u32> = self.kernels.keys().copied().collect();
        kernels.into_iter().try_for_each(|kernel| self.suspend_kernel(memory, kernel))
    }

    fn suspend_kernel<M: DeviceMemory>(&mut self, memory: &mut M, kernel: u32) -> Result<()> {
        let block = block_of(self.blocks, kernel);
        let Some(of_kernel) = self.kernels.get_mut(&kernel) else { return Ok(()) };
        let Some(id) = of_kernel.installed.take() else { return Ok(()) };
        let control = read_block(memory, block)?;
        memory.write(block + control::BUFFER, &0_u64.to_le_bytes())?;
        if let Some(window) = of_kernel.windows.iter_mut().find(|window| window.id == id) {
            window.check(&control)?;
            window.parked = Some(control.dropped);
        }
        Ok(())
    }

    pub(super) fn resume<M: DeviceMemory>(&mut self, memory: &mut M, ticket: u64) -> Result<()> {
        let (kernel, id) = self.window_of(ticket)?;
        if self.kernels.get(&kernel).and_then(|of_kernel| of_kernel.installed) == Some(id) {
            return Ok(());
        }
        self.suspend_kernel(memory, kernel)?;
        self.install(memory, kernel, id)
    }

    /// The kernel and the window of a dispatch in flight.
    fn window_of(&self, ticket: u64) -> Result<(u32, u64)> {
        let windows = self.kernels.values().flat_map(|of_kernel| &of_kernel.windows);
        windows
            .filter(|window| window.in_flight().any(|member| member.ticket == ticket))
            .map(|window| (window.kernel, window.id))
            .next()
            .ok_or_else(|| Error::internal(format!("dispatch {ticket} is not in flight")))
    }

    /// Adds what a dispatch in flight has found so far, which will not end: nothing is written, and the device not
    /// asked. Gives the place in the profile of its kernel if that looks for something.
    pub(super) fn find<M: DeviceMemory>(
        &self,
        memory: &M,
        collector: &mut Collector,
        ticket: u64,
    ) -> Result<Option<usize>> {
        let (kernel, id) = self.window_of(ticket)?;
        let windows = self.kernels.get(&kernel).map_or(&[][..], |of_kernel| &of_kernel.windows);
        let window = windows.iter().find(|window| window.id == id);
        let window = window.ok_or_else(|| Error::internal(format!("dispatch {ticket} is not in flight")))?;
        window.find(memory, collector, &self.map, false)
    }

    /// Ends a dispatch, which is in this state from here on. Gives the place in the profile of a kernel whose totals
    /// have changed.
    pub(super) fn end<M: DeviceMemory>(
        &mut self,
        memory: &mut M,
        collector: &mut Collector,
        ticket: u64,
        state: MemberState,
    ) -> Result<Option<usize>> {
        let (kernel, id) = self.window_of(ticket)?;
        let block = block_of(self.blocks, kernel);
        let Some(of_kernel) = self.kernels.get_mut(&kernel) else { return Ok(None) };
        let Some(at) = of_kernel.windows.iter().position(|window| window.id == id) else { return Ok(None) };
        let window = &mut of_kernel.windows[at];
        for member in window.members.iter_mut().filter(|member| member.ticket == ticket) {
            member.state = state;
        }
        if window.in_flight().next().is_some() {
            return Ok(None);
        }
        let is_installed = of_kernel.installed == Some(id);
        let dropped = if is_installed {
            let control = read_block(memory, block)?;
            window.check(&control)?;
            control.dropped
        } else {
            window.parked.ok_or_else(|| Error::internal("the counters of a window are not known"))?
        };
        let folded = window.fold(memory, collector, &self.map, dropped);
        // Nothing is in flight: whatever begins next finds the buffer as it was. Of a dispatch that faulted waves may
        // begin yet.
        let stays = window.checks.is_none()
            && self.stays_armed
            && is_installed
            && window.kind == Kind::Slots
            && folded.is_ok()
            && window.all_ended();
        if is_installed {
            of_kernel.installed = None;
            if !stays {
                memory.write(block + control::BUFFER, &0_u64.to_le_bytes())?;
            }
        }
        let window = of_kernel.windows.remove(at);
        if let Some(checks) = &window.checks {
            checks.free(memory)?;
        }
        if window.kind == Kind::Sampled {
            // It is not as others expect theirs.
            memory.free(window.buffer.address)?;
            return folded.map(Some);
        }
        clear(memory, window.buffer.address, window.bytes())?;
        if stays {
            of_kernel.standing = Some(window.buffer);
            return folded.map(Some);
        }
        if self.spare.len() < MOST_SPARE {
            self.spare.push(window.buffer);
        } else {
            memory.free(window.buffer.address)?;
        }
        folded.map(Some)
    }

    /// Where it has allocated something.
    fn buffers(&self) -> impl Iterator<Item = u64> + '_ {
        let of_window = |window: &Window| {
            let checks = window.checks.as_ref().map(Checks::addresses).into_iter().flatten();
            std::iter::once(window.buffer.address).chain(checks)
        };
        let of_kernel = move |of_kernel: &'_ Windows| {
            let standing = of_kernel.standing.map(|buffer| buffer.address);
            of_kernel.windows.iter().flat_map(of_window).chain(standing).collect::<Vec<_>>()
        };
        self.kernels.values().flat_map(of_kernel).chain(self.spare.iter().map(|buffer| buffer.address))
    }

    pub(super) fn free<M: DeviceMemory>(self, memory: &mut M) -> Result<()> {
        self.buffers().try_for_each(|address| Ok(memory.free(address)?))
    }
}

/// A cleared buffer of at least so many bytes.
fn take_buffer<M: DeviceMemory>(spare: &mut Vec<Buffer>, memory: &mut M, size: u64) -> Result<Buffer> {
    if let Some(at) = spare.iter().position(|buffer| buffer.size >= size) {
        return Ok(spare.swap_remove(at));
    }
    for buffer in spare.drain(..) {
        memory.free(buffer.address)?;
    }
    let size = size.max(SMALLEST);
    let buffer = Buffer { address: memory.alloc(size, ALIGNMENT)?, size };
    clear(memory, buffer.address, size)?;
    Ok(buffer)
}

/// A buffer for the records of sampled workgroups, and the sample table after them.
fn sample_buffer<M: DeviceMemory>(memory: &mut M, sample: &Sample, table: &[u8]) -> Result<Buffer> {
    let size = sample.record_bytes() + table.len() as u64;
    let buffer = Buffer { address: memory.alloc(size, ALIGNMENT)?, size };
    let fresh = sample.fresh_record();
    if size <= SMALL {
        let mut all = vec![0; sample.record_bytes() as usize];
        all.chunks_mut(sample.stride as usize).for_each(|record| record[..fresh.len()].copy_from_slice(&fresh));
        all.extend(table);
        memory.write(buffer.address, &all)?;
        return Ok(buffer);
    }
    for number in 0..u64::from(sample.records()) {
        memory.write(buffer.address + number * u64::from(sample.stride), &fresh)?;
    }
    memory.write(buffer.address + sample.record_bytes(), table)?;
    Ok(buffer)
}

/// How many records a dispatch gets that has use for so many, one for each wave; and whether waves share them beyond
/// that.
fn capacity(options: &Options, stride: u32, all: u64) -> Result<(u32, bool)> {
    let most = u32::try_from(options.memory_limit / u64::from(stride)).unwrap_or(u32::MAX).max(1);
    let power_below = |count: u32| 1 << count.ilog2();
    match options.records {
        Records::Shared(count) => {
            Ok((count.checked_next_power_of_two().unwrap_or(1 << 31).min(power_below(most)), true))
        }
        Records::Dropping(_) if all > u64::from(u32::MAX) => {
            Err(Error::limit(format!("a grid with records for {all} waves, of which some are to be dropped")))
        }
        Records::Dropping(count) => Ok((count.clamp(1, most), false)),
        Records::PerWave if all > u64::from(most) => Ok((power_below(most), true)),
        Records::PerWave => Ok((u32::try_from(all).unwrap_or(u32::MAX), false)),
    }
}

fn kernel_of(map: &ObjectMap, index: u32) -> Result<&KernelMap> {
    map.kernels.get(index as usize).ok_or_else(|| Error::internal(format!("the object has no kernel {index}")))
}

fn block_of(blocks: u64, kernel: u32) -> u64 {
    blocks + control::offset_of(kernel)
}

fn read_block<M: DeviceMemory>(memory: &M, address: u64) -> Result<Control> {
    let mut block = [0; control::SIZE as usize];
    memory.read(address, &mut block)?;
    Control::from_bytes(&block).within(|| control::SYMBOL.into())
}

fn clear<M: DeviceMemory>(memory: &mut M, address: u64, size: u64) -> Result<()> {
    let size = usize::try_from(size).map_err(|_| Error::limit("the record buffer is too large for this machine"))?;
    if size > 0 {
        memory.write(address, &vec![0; size])?;
    }
    Ok(())
}
