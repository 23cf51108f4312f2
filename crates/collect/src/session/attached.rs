//! One attached object: its control block and the record buffers of its dispatches in flight.

use std::collections::BTreeSet;
use std::sync::Arc;

use wavetap_base::bytes;
use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_profile::control::{self, Control};
use wavetap_profile::launches::LaunchShape;
use wavetap_profile::map::ObjectMap;
use wavetap_profile::record::{DISPATCH, HEADER, Header, KERNEL};

use super::{BeginError, DispatchInfo, Options, Overlap, Records};
use crate::collector::{Collector, EndedDispatch, header};
use crate::memory::DeviceMemory;

/// The fewest records of a buffer with one for each wave.
const FEWEST: u64 = 256;
/// The fewest where dispatches run concurrently: others are to find room beside the first.
const FEWEST_CONCURRENT: u64 = 4096;
/// Dispatches as large as the first one that find room beside it.
const CONCURRENT: u64 = 4;
/// Alignment of a record buffer in bytes.
const ALIGNMENT: u64 = 64;
/// Buffers that are kept for later dispatches.
const MOST_SPARE: usize = 2;

/// An attached object.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) map: Arc<ObjectMap>,
    block: u64,
    stride: u32,
    windows: Vec<Window>,
    /// The ticket whose window the control block describes.
    installed: Option<u64>,
    spare: Vec<Buffer>,
}

/// A record buffer. Records that no wave has taken are zero.
#[derive(Debug, Clone, Copy)]
struct Buffer {
    address: u64,
    capacity: u32,
    /// Size of a record in bytes.
    stride: u32,
}

impl Buffer {
    /// Size of so many records in bytes.
    fn bytes(&self, records: u32) -> u64 {
        u64::from(records.min(self.capacity)) * u64::from(self.stride)
    }
}

/// A dispatch of a window.
#[derive(Debug, Clone, Copy)]
struct Member {
    ticket: u64,
    kernel: u32,
    ordinal: u32,
    state: MemberState,
}

/// What becomes of a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberState {
    InFlight,
    /// It ended, launched in this way where that is known; its records are not in the totals yet.
    Ended(Option<LaunchShape>),
    /// It faulted.
    Abandoned,
    /// Its records are in the totals, or it is known that they are lost.
    Folded,
}

/// Dispatches that use one buffer, from when the first begins to when none is in flight.
#[derive(Debug)]
struct Window {
    /// The first dispatch's ticket.
    id: u64,
    buffer: Buffer,
    shared: bool,
    /// Waves choose their records themselves ([`wavetap_profile::placement`]). All dispatches are of one kernel.
    choose: bool,
    members: Vec<Member>,
    /// Records that the dispatches may take.
    reserved: u64,
    /// The block's counters while it describes another window.
    parked: Option<Parked>,
    /// Records that are in the totals.
    folded: Vec<bool>,
    /// Waves of these.
    waves: u64,
}

/// What the block says of a window while it describes another one.
#[derive(Debug, Clone, Copy)]
struct Parked {
    head: u32,
    dropped: u32,
}

impl Attached {
    /// Reads the block of a loaded object.
    pub(super) fn new<M: DeviceMemory>(memory: &M, map: Arc<ObjectMap>, block: u64) -> Result<Attached> {
        let control = read_block(memory, block)?;
        let stride = control.stride;
        if stride < HEADER || !stride.is_multiple_of(8) || stride != map.stride {
            let found =
                format!("the control block has a record stride of {stride} bytes, the site table of {}", map.stride);
            return Err(Error::malformed(found));
        }
        Ok(Attached { map, block, stride, windows: Vec::new(), installed: None, spare: Vec::new() })
    }

    pub(super) fn begin<M: DeviceMemory>(
        &mut self,
        memory: &mut M,
        options: &Options,
        ticket: u64,
        info: &DispatchInfo,
    ) -> Result<(), BeginError> {
        let DispatchInfo { kernel, waves, ordinal } = *info;
        let member = Member { ticket, kernel, ordinal, state: MemberState::InFlight };
        let chosen = self
            .map
            .kernels
            .get(kernel as usize)
            .and_then(|kernel| kernel.placement.as_ref().filter(|placement| placement.chooses_records()));
        if options.overlap == Overlap::Concurrent
            && let Some(window) = self.windows.last_mut()
        {
            if !window.has_room(options.records, kernel, waves, chosen.is_some()) {
                let in_flight = window.members.iter().filter(|member| member.state == MemberState::InFlight).count();
                return Err(BeginError::Busy { in_flight });
            }
            window.reserved += waves;
            window.members.push(member);
            write_u32(memory, self.block + control::DISPATCH, ordinal)?;
            return Ok(());
        }
        let (wanted, exact, shared) = match chosen {
            Some(placement) => {
                let stride = placement.record_bytes();
                (Buffer { address: 0, capacity: placement.slots, stride }, true, true)
            }
            None => {
                let (capacity, exact, shared) = capacity(options, self.stride, waves);
                (Buffer { address: 0, capacity, stride: self.stride }, exact, shared)
            }
        };
        let choose = chosen.is_some();
        self.suspend(memory)?;
        let buffer = self.take_buffer(memory, wanted, exact)?;
        self.windows.push(Window {
            id: ticket,
            buffer,
            shared,
            choose,
            members: vec![member],
            reserved: waves,
            parked: Some(Parked { head: 0, dropped: 0 }),
            folded: Vec::new(),
            waves: 0,
        });
        self.install(memory, self.windows.len() - 1, ordinal)?;
        Ok(())
    }

    /// A cleared buffer of at least as many records as this one has, or of just as many.
    fn take_buffer<M: DeviceMemory>(&mut self, memory: &mut M, wanted: Buffer, exact: bool) -> Result<Buffer> {
        let Buffer { capacity, stride, .. } = wanted;
        let fits = |buffer: &Buffer| {
            buffer.stride == stride && if exact { buffer.capacity == capacity } else { buffer.capacity >= capacity }
        };
        if let Some(at) = self.spare.iter().position(fits) {
            return Ok(self.spare.swap_remove(at));
        }
        for buffer in self.spare.drain(..) {
            memory.free(buffer.address)?;
        }
        let size = wanted.bytes(capacity);
        let buffer = Buffer { address: memory.alloc(size, ALIGNMENT)?, ..wanted };
        clear(memory, buffer.address, size)?;
        Ok(buffer)
    }

    /// Makes the block describe a window.
    fn install<M: DeviceMemory>(&mut self, memory: &mut M, index: usize, ordinal: u32) -> Result<()> {
        let Some(window) = self.windows.get_mut(index) else { return Ok(()) };
        let parked = window.parked.take().unwrap_or(Parked { head: 0, dropped: 0 });
        for (offset, value) in [
            (control::FLAGS, if window.shared { control::FLAG_SHARED } else { 0 }),
            (control::CAPACITY, window.buffer.capacity),
            (control::HEAD, parked.head),
            (control::DROPPED, parked.dropped),
            (control::DISPATCH, ordinal),
        ] {
            write_u32(memory, self.block + offset, value)?;
        }
        // Last: from here on waves count.
        memory.write(self.block + control::BUFFER, &window.buffer.address.to_le_bytes())?;
        self.installed = Some(window.id);
        Ok(())
    }

    /// Makes the block describe no window: kernels count nothing.
    pub(super) fn suspend<M: DeviceMemory>(&mut self, memory: &mut M) -> Result<()> {
        let Some(id) = self.installed.take() else { return Ok(()) };
        let control = read_block(memory, self.block)?;
        memory.write(self.block + control::BUFFER, &0_u64.to_le_bytes())?;
        if let Some(window) = self.windows.iter_mut().find(|window| window.id == id) {
            window.check(&control, self.stride)?;
            window.parked = Some(Parked { head: control.head, dropped: control.dropped });
        }
        Ok(())
    }

    pub(super) fn resume<M: DeviceMemory>(&mut self, memory: &mut M, ticket: u64) -> Result<()> {
        let index = self.window_of(ticket)?;
        let ordinal = self.windows[index]
            .members
            .iter()
            .find(|member| member.ticket == ticket)
            .map_or(0, |member| member.ordinal);
        if self.installed == Some(self.windows[index].id) {
            return write_u32(memory, self.block + control::DISPATCH, ordinal);
        }
        self.suspend(memory)?;
        self.install(memory, index, ordinal)
    }

    fn window_of(&self, ticket: u64) -> Result<usize> {
        let has = |window: &Window| {
            window.members.iter().any(|member| member.ticket == ticket && member.state == MemberState::InFlight)
        };
        self.windows.iter().position(has).ok_or_else(|| Error::internal(format!("dispatch {ticket} is not in flight")))
    }

    /// Ends a dispatch, which is in this state from here on.
    pub(super) fn end<M: DeviceMemory>(
        &mut self,
        memory: &mut M,
        collector: &mut Collector,
        ticket: u64,
        state: MemberState,
    ) -> Result<Vec<usize>> {
        let index = self.window_of(ticket)?;
        let is_installed = self.installed == Some(self.windows[index].id);
        let window = &mut self.windows[index];
        let Some(member) = window.members.iter_mut().find(|member| member.ticket == ticket) else {
            return Ok(Vec::new());
        };
        member.state = state;
        let kernel = member.kernel;
        let in_flight = |member: &Member| member.state == MemberState::InFlight;
        let is_last = !window.members.iter().any(in_flight);
        if !is_last && window.members.iter().any(|member| in_flight(member) && member.kernel == kernel) {
            return Ok(Vec::new());
        }
        let counters = if is_installed {
            let control = read_block(memory, self.block)?;
            window.check(&control, self.stride)?;
            Parked { head: control.head, dropped: control.dropped }
        } else {
            window.parked.ok_or_else(|| Error::internal("the counters of a window are not known"))?
        };
        if !is_last {
            return window.fold(memory, collector, &self.map, counters, Some(kernel));
        }
        let folded = window.fold(memory, collector, &self.map, counters, None);
        // Nothing is in flight: whatever begins next finds the buffer as it was.
        let buffer = window.buffer;
        if is_installed {
            memory.write(self.block + control::BUFFER, &0_u64.to_le_bytes())?;
            self.installed = None;
        }
        let used = if window.choose { buffer.capacity } else { counters.head };
        clear(memory, buffer.address, buffer.bytes(used))?;
        self.windows.remove(index);
        if self.spare.len() < MOST_SPARE {
            self.spare.push(buffer);
        } else {
            memory.free(buffer.address)?;
        }
        folded
    }

    pub(super) fn free<M: DeviceMemory>(self, memory: &mut M) -> Result<()> {
        for buffer in self.windows.iter().map(|window| window.buffer).chain(self.spare) {
            memory.free(buffer.address)?;
        }
        Ok(())
    }
}

impl Window {
    /// Whether a further dispatch finds its records, so that no wave is dropped that the options do not drop, and no
    /// record is shared by waves of different kernels.
    fn has_room(&self, records: Records, kernel: u32, waves: u64, choose: bool) -> bool {
        let reserved = self.reserved.saturating_add(waves);
        if self.choose || choose {
            return self.members.iter().all(|member| member.kernel == kernel);
        }
        if !self.shared && reserved <= self.buffer.capacity.into() {
            return true;
        }
        // The head must not wrap.
        let same = self.members.iter().all(|member| member.kernel == kernel) && reserved <= u32::MAX.into();
        same && (self.shared || matches!(records, Records::Dropping(_)))
    }

    fn check(&self, control: &Control, stride: u32) -> Result<()> {
        if (control.buffer, control.capacity, control.stride) == (self.buffer.address, self.buffer.capacity, stride) {
            return Ok(());
        }
        Err(Error::malformed(format!("the control block was overwritten: {control:x?}")))
    }

    /// Adds records to the totals: those of waves of one kernel that have ended, or all that are left.
    fn fold<M: DeviceMemory>(
        &mut self,
        memory: &M,
        collector: &mut Collector,
        map: &ObjectMap,
        counters: Parked,
        only: Option<u32>,
    ) -> Result<Vec<usize>> {
        let Parked { head, dropped } = counters;
        if self.choose {
            self.fold_chosen(memory, collector, map)?;
            return self.end_dispatches(collector, map, only);
        }
        let stride = self.buffer.stride;
        let used = head.min(self.buffer.capacity) as usize;
        let shared = self.shared && head > self.buffer.capacity;
        self.folded.resize(used, false);
        let first = self.folded.iter().position(|folded| !folded).unwrap_or(used);
        let mut records = vec![0; (used - first) * stride as usize];
        memory.read(self.buffer.address + first as u64 * u64::from(stride), &mut records)?;
        for number in first..used {
            if self.folded[number] {
                continue;
            }
            let at = (number - first) as u64 * u64::from(stride);
            let record = bytes::slice(&records, at, stride.into(), "record")?;
            self.fold_record(collector, map, record, number, shared, only).within(|| format!("record {number}"))?;
        }
        if only.is_none() {
            self.account(collector, map, head, dropped)?;
        }
        self.end_dispatches(collector, map, only)
    }

    /// Adds the records of waves that chose them themselves: none of the window's dispatches is in flight any more.
    fn fold_chosen<M: DeviceMemory>(&mut self, memory: &M, collector: &mut Collector, map: &ObjectMap) -> Result<()> {
        let Buffer { address, capacity, stride } = self.buffer;
        let Some(first) = self.members.first().copied().filter(|_| !self.has_fault()) else { return Ok(()) };
        let kernel = map.kernels.get(first.kernel as usize);
        let (name, placement) = kernel
            .and_then(|kernel| Some((&kernel.name, kernel.placement.as_ref()?)))
            .ok_or_else(|| Error::internal("a kernel without placed counters"))?;
        let mut records = vec![0; self.buffer.bytes(capacity) as usize];
        memory.read(address, &mut records)?;
        for (number, record) in records.chunks_exact_mut(stride as usize).enumerate() {
            let place = || format!("record {number} of kernel {name}");
            let waves = Header::from_bytes(record)?.began;
            if waves == 0 {
                if record.iter().any(|byte| *byte != 0) {
                    return Err(Error::malformed("counters of no wave")).within(place);
                }
                continue;
            }
            record[KERNEL as usize..][..4].copy_from_slice(&first.kernel.to_le_bytes());
            record[DISPATCH as usize..][..4].copy_from_slice(&first.ordinal.to_le_bytes());
            let solved = placement.solve(record).within(place)?;
            self.waves += u64::from(waves);
            collector.fold(map, &solved, None, true).within(place)?;
        }
        if self.waves > self.reserved {
            let found =
                format!("{} waves left counters of kernel {name}, {} were dispatched", self.waves, self.reserved);
            return Err(Error::malformed(found));
        }
        Ok(())
    }

    /// Adds dispatches of one kernel that have ended to its totals, or those of all; returns the kernels' places.
    fn end_dispatches(&mut self, collector: &mut Collector, map: &ObjectMap, only: Option<u32>) -> Result<Vec<usize>> {
        let kernels: BTreeSet<u32> = match only {
            Some(kernel) => [kernel].into(),
            None => self.members.iter().map(|member| member.kernel).collect(),
        };
        let mut changed = Vec::new();
        for kernel in kernels {
            let ended = self.take_ended(kernel);
            if self.members.iter().any(|member| member.kernel == kernel && member.state == MemberState::Abandoned) {
                collector.add_lost(map, kernel, ended.len() as u64)?;
            } else {
                collector.add_dispatches(map, kernel, &ended)?;
            }
            changed.push(collector.place(map, kernel)?);
        }
        Ok(changed)
    }

    fn fold_record(
        &mut self,
        collector: &mut Collector,
        map: &ObjectMap,
        record: &[u8],
        number: usize,
        shared: bool,
        only: Option<u32>,
    ) -> Result<()> {
        let header = header(map, record)?;
        if only.is_some_and(|kernel| header.kernel != kernel || header.began == 0 || header.began != header.finished) {
            return Ok(());
        }
        // A wave that faulted may have taken a record and written nothing.
        if header.began == 0 && self.has_fault() {
            return Ok(());
        }
        let of_kernel = || self.members.iter().filter(|member| member.kernel == header.kernel);
        if of_kernel().next().is_none() {
            let expected: BTreeSet<u32> = self.members.iter().map(|member| member.kernel).collect();
            let found =
                format!("it belongs to kernel {} of the object, dispatched were kernels {expected:?}", header.kernel);
            return Err(Error::malformed(found));
        }
        if !self.members.iter().any(|member| member.ordinal == header.dispatch) {
            return Err(Error::malformed(format!(
                "it belongs to dispatch {}, which was not in flight",
                header.dispatch
            )));
        }
        self.folded[number] = true;
        self.waves += u64::from(header.began);
        if of_kernel().any(|member| member.state == MemberState::Abandoned) {
            return Ok(());
        }
        let mut ordinals = of_kernel().map(|member| member.ordinal);
        let dispatch = ordinals.next().filter(|_| ordinals.next().is_none());
        let Some(placement) = map.kernels.get(header.kernel as usize).and_then(|kernel| kernel.placement.as_ref())
        else {
            return collector.fold(map, record, dispatch, shared).map(drop);
        };
        if header.began != header.finished {
            // No counter follows from those of a wave that did not end, nor from a sum with them.
            return collector.add_unfinished(map, header.kernel, header.began.into());
        }
        collector.fold(map, &placement.solve(record)?, dispatch, shared).map(drop)
    }

    /// Whether a dispatch faulted.
    fn has_fault(&self) -> bool {
        self.members.iter().any(|member| member.state == MemberState::Abandoned)
    }

    /// Checks that every wave that took a record has left one, and adds those that found none.
    fn account(&self, collector: &mut Collector, map: &ObjectMap, head: u32, dropped: u32) -> Result<()> {
        if self.has_fault() {
            return Ok(());
        }
        if self.waves + u64::from(dropped) != u64::from(head) {
            let found = format!("{head} waves asked for a record, {} have one and {dropped} were dropped", self.waves);
            return Err(Error::malformed(found));
        }
        if dropped == 0 {
            return Ok(());
        }
        let (first, rest) = self.members.split_first().ok_or_else(|| Error::internal("a window without dispatches"))?;
        if rest.iter().any(|member| member.kernel != first.kernel) {
            let found = format!(
                "{dropped} waves found no record although there was one for each; of which kernel is not known"
            );
            return Err(Error::malformed(found));
        }
        collector.add_dropped(map, first.kernel, dropped.into())
    }

    /// The dispatches of a kernel that have ended since the last call.
    fn take_ended(&mut self, kernel: u32) -> Vec<EndedDispatch> {
        let mut ended = Vec::new();
        for member in self.members.iter_mut().filter(|member| member.kernel == kernel) {
            if let MemberState::Ended(shape) = member.state {
                ended.push(EndedDispatch { kernel, ordinal: member.ordinal, shape });
                member.state = MemberState::Folded;
            }
        }
        ended
    }
}

/// The capacity of a buffer, whether it has to be just that, and whether waves share records beyond it.
fn capacity(options: &Options, stride: u32, waves: u64) -> (u32, bool, bool) {
    let most = u32::try_from(options.memory_limit / u64::from(stride)).unwrap_or(u32::MAX).max(1);
    let power_below = |count: u32| 1 << count.ilog2();
    match options.records {
        Records::Shared(count) => {
            (count.checked_next_power_of_two().unwrap_or(1 << 31).min(power_below(most)), true, true)
        }
        Records::Dropping(count) => (count.clamp(1, most), true, false),
        Records::PerWave if waves > u64::from(most) => (power_below(most), true, true),
        Records::PerWave => {
            let wanted = match options.overlap {
                Overlap::TimeSliced => waves.max(FEWEST),
                Overlap::Concurrent => waves.saturating_mul(CONCURRENT).max(FEWEST_CONCURRENT),
            };
            let capacity =
                u32::try_from(wanted.checked_next_power_of_two().unwrap_or(wanted)).unwrap_or(u32::MAX).min(most);
            (capacity, false, false)
        }
    }
}

fn read_block<M: DeviceMemory>(memory: &M, address: u64) -> Result<Control> {
    let mut block = [0; control::SIZE as usize];
    memory.read(address, &mut block)?;
    Control::from_bytes(&block).within(|| control::SYMBOL.into())
}

fn write_u32<M: DeviceMemory>(memory: &mut M, address: u64, value: u32) -> Result<()> {
    Ok(memory.write(address, &value.to_le_bytes())?)
}

fn clear<M: DeviceMemory>(memory: &mut M, address: u64, size: u64) -> Result<()> {
    let size = usize::try_from(size).map_err(|_| Error::limit("the record buffer is too large for this machine"))?;
    if size > 0 {
        memory.write(address, &vec![0; size])?;
    }
    Ok(())
}
