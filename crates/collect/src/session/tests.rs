//! Sessions on a memory that is a map, with waves that do by hand what inserted code does.

use std::cell::Cell;
use std::collections::BTreeMap;

use wavetap_profile::control::Control;
use wavetap_profile::file::{Backend, KernelTotals};
use wavetap_profile::map::{CounterMode, KernelMap, ObjectMap, Resources, Site, VectorSource};
use wavetap_profile::placement::Placement;
use wavetap_profile::probes::branches;
use wavetap_profile::record;

use super::*;
use crate::memory::{MemoryError, Operation};

const BLOCK: u64 = 0x1000;
/// Records among which waves choose.
const SLOTS: u32 = 4;
/// Work-items of a workgroup: two waves.
const WORKGROUP: u32 = 128;
/// A record of one scalar branch.
const STRIDE: u32 = record::HEADER + 2 * record::COUNTER;

/// Allocations by address.
#[derive(Default)]
struct Mock {
    allocations: BTreeMap<u64, Vec<u8>>,
    next: u64,
    /// How often it was read and written.
    copies: Cell<u32>,
}

impl Mock {
    /// A memory with the control blocks of so many kernels.
    fn new(kernels: u32) -> Mock {
        let mut mock = Mock { next: 0x10_0000, ..Mock::default() };
        mock.allocations.insert(BLOCK, Control::initial(kernels as usize, STRIDE));
        mock
    }

    fn place(&self, operation: Operation, address: u64, size: usize) -> Result<(u64, usize), MemoryError> {
        let error = || MemoryError { operation, address, size: size as u64, reason: "not allocated".to_owned() };
        let (start, bytes) = self.allocations.range(..=address).next_back().ok_or_else(error)?;
        let offset = (address - start) as usize;
        if offset + size <= bytes.len() { Ok((*start, offset)) } else { Err(error()) }
    }

    fn control(&self, kernel: u32) -> Control {
        Control::from_bytes(&self.allocations[&BLOCK][control::offset_of(kernel) as usize..]).unwrap()
    }

    fn add(&mut self, address: u64, value: u32) -> u32 {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes).unwrap();
        let old = u32::from_le_bytes(bytes);
        self.write(address, &old.wrapping_add(value).to_le_bytes()).unwrap();
        old
    }
}

impl DeviceMemory for Mock {
    fn alloc(&mut self, size: u64, align: u64) -> Result<u64, MemoryError> {
        let address = self.next.next_multiple_of(align);
        self.next = address + size;
        self.allocations.insert(address, vec![0xcd; size as usize]);
        Ok(address)
    }

    fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        let error = MemoryError { operation: Operation::Free, address, size: 0, reason: "not allocated".to_owned() };
        self.allocations.remove(&address).map(drop).ok_or(error)
    }

    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        self.copies.set(self.copies.get() + 1);
        let (start, offset) = self.place(Operation::Read, address, into.len())?;
        into.copy_from_slice(&self.allocations[&start][offset..offset + into.len()]);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.copies.set(self.copies.get() + 1);
        let (start, offset) = self.place(Operation::Write, address, bytes.len())?;
        if let Some(to) = self.allocations.get_mut(&start) {
            to[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }
}

/// A wave that has begun.
struct Wave(Option<u64>);

impl Wave {
    /// The prologue where waves choose records by place: finds the record.
    fn at_slot(mock: &Mock, kernel: u32, slot: u32) -> Wave {
        let control = mock.control(kernel);
        Wave((control.buffer != 0).then(|| control.buffer + u64::from(slot % SLOTS * STRIDE)))
    }

    /// The prologue where each wave has its own record: finds it and writes its header.
    fn own(mock: &mut Mock, kernel: u32, group: [u32; 3], number: u32) -> Wave {
        let control = mock.control(kernel);
        if control.buffer == 0 {
            return Wave(None);
        }
        let [groups_x, groups_y] = control.groups;
        let flat = (group[2] * groups_y + group[1]) * groups_x + group[0];
        let mut index = flat * control.group_waves + number;
        if index >= control.capacity {
            if control.flags & control::FLAG_SHARED == 0 {
                mock.add(BLOCK + control::offset_of(kernel) + control::DROPPED, 1);
                return Wave(None);
            }
            index &= control.capacity - 1;
        }
        let at = control.buffer + u64::from(index * STRIDE);
        let header = [
            (record::KERNEL, kernel),
            (record::DISPATCH, control.dispatch),
            (record::WORKGROUP, group[0]),
            (record::WORKGROUP + 4, group[1]),
            (record::WORKGROUP + 8, group[2]),
            (record::WAVE, number),
        ];
        for (offset, value) in header {
            mock.write(at + u64::from(offset), &value.to_le_bytes()).unwrap();
        }
        mock.add(at + u64::from(record::BEGAN), 1);
        Wave(Some(at))
    }

    /// Counts one execution, taken or not.
    fn count(&self, mock: &mut Mock, taken: bool) {
        let Wave(Some(at)) = self else { return };
        mock.add(at + u64::from(record::HEADER), 1);
        mock.add(at + u64::from(record::HEADER + record::COUNTER), taken.into());
    }

    /// Counts and ends.
    fn end(self, mock: &mut Mock, taken: bool) {
        self.count(mock, taken);
        let Wave(Some(at)) = self else { return };
        mock.add(at + u64::from(record::FINISHED), 1);
    }
}

/// A session and an object of so many kernels, whose waves choose among so many records, or have their own.
fn session(overlap: Overlap, records: Records, slots: Option<u32>, kernels: u32) -> (Mock, Session, ObjectId) {
    placed_session(overlap, records, slots, kernels, None)
}

fn placed_session(
    overlap: Overlap,
    records: Records,
    slots: Option<u32>,
    kernels: u32,
    placement: Option<Placement>,
) -> (Mock, Session, ObjectId) {
    let mock = Mock::new(kernels);
    let options = Options::new(overlap, records);
    let mut session = Session::new(Collector::new(Backend::Gpu, slots.is_none()), options);
    let resources = Resources { wave_size: 64, ..Resources::default() };
    let kernel = |number: u32| KernelMap {
        name: format!("k{number}"),
        demangled: format!("k{number}()"),
        candidates: Vec::new(),
        mode: CounterMode::Global,
        sites: vec![Site {
            address: 0x2000 + u64::from(number),
            instruction: "s_cbranch_scc1 4".to_owned(),
            kind: Arc::clone(&branches::SCALAR),
            source: None,
            offset: record::HEADER,
        }],
        uncounted_callees: Vec::new(),
        vector_registers: VectorSource::default(),
        before: resources,
        after: resources,
        declared: None,
        placement: placement.clone(),
        placement_fallback: None,
        slots: slots.filter(|_| placement.is_none()),
        records_accesses: false,
        addresses: Vec::new(),
    };
    let map = ObjectMap {
        target: "gfx90a".to_owned(),
        original: "00".to_owned(),
        stride: STRIDE,
        kernels: (0..kernels).map(kernel).collect(),
        refused: Vec::new(),
    };
    let object = session.attach_map(&mock, map, BLOCK).unwrap();
    (mock, session, object)
}

/// A dispatch of a row of workgroups, the last of which may be smaller.
fn info(kernel: u32, items: u32, ordinal: u32) -> DispatchInfo {
    DispatchInfo { kernel, grid: [items, 1, 1], workgroup: [WORKGROUP, 1, 1], ordinal, region: None }
}

/// Dispatches, waves, dropped waves, unfinished waves, executions and taken branches.
fn numbers(totals: &KernelTotals) -> [u64; 6] {
    let values = totals.sites[0].counts.values();
    [totals.dispatches, totals.waves, totals.dropped, totals.unfinished, values[0], values[1]]
}

#[test]
fn waves_follow_from_the_grid() {
    let (_, session, object) = session(Overlap::Concurrent, Records::PerWave, None, 1);
    let kernel = &session.map(object).unwrap().kernels[0];
    let waves = |grid, workgroup| {
        let info = DispatchInfo { kernel: 0, grid, workgroup, ordinal: 0, region: None };
        // Workgroup by workgroup.
        let groups = info.groups();
        let mut counted = 0;
        for x in 0..groups[0] {
            for y in 0..groups[1] {
                for z in 0..groups[2] {
                    let at = [x, y, z];
                    let size = |axis: usize| workgroup[axis].min(grid[axis] - at[axis] * workgroup[axis]);
                    counted += u64::from((size(0) * size(1) * size(2)).div_ceil(64));
                }
            }
        }
        assert_eq!(info.waves(kernel).unwrap(), counted, "{grid:?} {workgroup:?}");
        counted
    };
    assert_eq!(waves([256, 1, 1], [64, 1, 1]), 4);
    assert_eq!(waves([257, 1, 1], [100, 1, 1]), 5);
    assert_eq!(waves([33, 9, 5], [16, 8, 2]), 32);
    assert_eq!(waves([7, 7, 7], [8, 8, 8]), 6);
}

#[test]
fn concurrent_dispatches_add_to_the_same_records() {
    let (mut mock, mut session, object) = session(Overlap::Concurrent, Records::PerWave, Some(SLOTS), 2);
    let first = session.begin_dispatch(&mut mock, object, &info(0, 192, 10)).unwrap();
    let early = Wave::at_slot(&mock, 0, 0);
    let other = session.begin_dispatch(&mut mock, object, &info(1, 128, 11)).unwrap();
    let second = session.begin_dispatch(&mut mock, object, &info(0, 64, 12)).unwrap();
    let waves = [(1, 0), (0, 1), (1, 1), (0, 1), (0, 5)].map(|(kernel, slot)| Wave::at_slot(&mock, kernel, slot));
    early.end(&mut mock, true);
    let [b0, a1, b1, a2, a3] = waves;
    b0.end(&mut mock, true);
    a1.end(&mut mock, false);
    a2.end(&mut mock, false);
    let changed = session.end_dispatch(&mut mock, first, None).unwrap();
    assert!(changed.is_empty(), "its records are those of the second, too");
    a3.end(&mut mock, true);
    assert_eq!(session.end_dispatch(&mut mock, second, None).unwrap(), [0]);
    // Its kernel is in the profile although the other is in flight, of which nothing is yet.
    let kernels = &session.collector().profile().kernels;
    assert_eq!((numbers(&kernels[0]), numbers(&kernels[1])), ([2, 4, 0, 0, 4, 2], [0; 6]));
    assert_eq!(mock.control(0).buffer, 0, "nothing counts any more");
    b1.end(&mut mock, true);
    assert_eq!(session.end_dispatch(&mut mock, other, None).unwrap(), [1]);
    let profile = session.finish();
    assert_eq!(numbers(&profile.kernels[0]), [2, 4, 0, 0, 4, 2], "counted once");
    assert_eq!(numbers(&profile.kernels[1]), [1, 2, 0, 0, 2, 2]);
    assert!(profile.waves.is_empty() && !profile.kernels[0].shared_records);
}

/// In which region a wave was, its record does not say.
#[test]
fn regions_are_counted_by_themselves() {
    for overlap in [Overlap::Concurrent, Overlap::TimeSliced] {
        let (mut mock, mut session, object) = session(overlap, Records::PerWave, Some(SLOTS), 1);
        let [outer, inner] = ["step", "step/decode"].map(|name| session.collector_mut().region(name));
        assert_eq!(session.collector_mut().region("step"), outer);
        let of = |ordinal, region| DispatchInfo { region, ..info(0, 64, ordinal) };
        let begin = |mock: &mut Mock, session: &mut Session, info: &DispatchInfo, taken| {
            let ticket = session.begin_dispatch(mock, object, info).unwrap();
            Wave::at_slot(mock, 0, 0).end(mock, taken);
            ticket
        };
        let first = begin(&mut mock, &mut session, &of(0, Some(outer)), true);
        let second = begin(&mut mock, &mut session, &of(1, Some(outer)), false);
        if overlap == Overlap::Concurrent {
            let busy = session.begin_dispatch(&mut mock, object, &of(2, None)).unwrap_err();
            assert!(matches!(busy, BeginError::Busy { in_flight: 2 }), "{busy}");
        }
        session.end_dispatch(&mut mock, first, None).unwrap();
        session.end_dispatch(&mut mock, second, None).unwrap();
        for (ordinal, region) in [(3, None), (4, Some(inner)), (5, Some(outer))] {
            let ticket = begin(&mut mock, &mut session, &of(ordinal, region), true);
            session.end_dispatch(&mut mock, ticket, None).unwrap();
        }
        let profile = session.finish();
        assert_eq!(numbers(&profile.kernels[0]), [5, 5, 0, 0, 5, 4], "{overlap:?}");
        let regions: Vec<_> = profile.regions.iter().map(|of| (of.region.as_deref(), numbers(of))).collect();
        let expected = [(Some("step"), [3, 3, 0, 0, 3, 2]), (Some("step/decode"), [1, 1, 0, 0, 1, 1])];
        assert_eq!(regions, expected, "{overlap:?}");
    }
}

/// One dispatch after the other, as most programs have them.
#[test]
fn what_stays_armed_needs_fewer_copies() {
    let run = |stays: bool| {
        let (mut mock, mut session, object) = session(Overlap::Concurrent, Records::PerWave, Some(SLOTS), 1);
        if stays {
            session.stay_armed(object).unwrap();
        }
        let mut copies = Vec::new();
        for ordinal in 0..3 {
            mock.copies.set(0);
            let ticket = session.begin_dispatch(&mut mock, object, &info(0, 128, ordinal)).unwrap();
            let begun = mock.copies.get();
            for slot in [0, 1] {
                Wave::at_slot(&mock, 0, slot).end(&mut mock, true);
            }
            mock.copies.set(begun);
            session.end_dispatch(&mut mock, ticket, None).unwrap();
            copies.push(mock.copies.get());
            assert_eq!(mock.control(0).buffer != 0, stays);
        }
        // A fault ends that: waves may be left that have begun.
        let ticket = session.begin_dispatch(&mut mock, object, &info(0, 128, 4)).unwrap();
        session.abandon(&mut mock, ticket).unwrap();
        assert_eq!(mock.control(0).buffer, 0);
        let ticket = session.begin_dispatch(&mut mock, object, &info(0, 64, 5)).unwrap();
        Wave::at_slot(&mock, 0, 0).end(&mut mock, true);
        session.end_dispatch(&mut mock, ticket, None).unwrap();
        let totals = numbers(&session.collector().profile().kernels[0]);
        session.detach(&mut mock, object).unwrap();
        assert_eq!(mock.allocations.keys().collect::<Vec<_>>(), [&BLOCK], "its buffers are freed");
        (copies, totals)
    };
    let (usual, totals) = run(false);
    // The buffer of the first dispatch is cleared when it is allocated.
    assert_eq!(usual, [6, 5, 5]);
    assert_eq!(run(true), (vec![5, 3, 3], totals));
    assert_eq!(totals, [4, 7, 0, 0, 7, 7]);
}

#[test]
fn waves_that_do_not_finish_are_counted_and_too_many_are_an_error() {
    let (mut mock, mut session, object) = session(Overlap::TimeSliced, Records::PerWave, Some(SLOTS), 1);
    let ticket = session.begin_dispatch(&mut mock, object, &info(0, 192, 1)).unwrap();
    Wave::at_slot(&mock, 0, 1).end(&mut mock, true);
    // What this one has counted is there, in a record in which no wave has finished.
    Wave::at_slot(&mock, 0, 2).count(&mut mock, true);
    session.end_dispatch(&mut mock, ticket, None).unwrap();
    assert_eq!(numbers(&session.collector().profile().kernels[0]), [1, 3, 0, 2, 2, 2]);
    let ticket = session.begin_dispatch(&mut mock, object, &info(0, 64, 2)).unwrap();
    (0..2).for_each(|slot| Wave::at_slot(&mock, 0, slot).end(&mut mock, true));
    let found = session.end_dispatch(&mut mock, ticket, None).unwrap_err().to_string();
    assert!(found.contains("2 waves left counters of kernel k0, 1 were dispatched"), "{found}");
}

#[test]
fn one_dispatch_at_a_time_has_records_of_single_waves() {
    let (mut mock, mut session, object) = session(Overlap::Concurrent, Records::PerWave, None, 2);
    let grid = DispatchInfo { kernel: 0, grid: [200, 2, 2], workgroup: [WORKGROUP, 1, 1], ordinal: 1, region: None };
    let first = session.begin_dispatch(&mut mock, object, &grid).unwrap();
    let busy = session.begin_dispatch(&mut mock, object, &info(0, 64, 2)).unwrap_err();
    assert!(matches!(busy, BeginError::Busy { in_flight: 1 }), "{busy}");
    // Another kernel has a block and records of its own.
    let other = session.begin_dispatch(&mut mock, object, &info(1, 64, 3)).unwrap();
    Wave::own(&mut mock, 1, [0; 3], 0).end(&mut mock, true);
    let mut expected = Vec::new();
    for (x, waves) in [(0, 2), (1, 2)] {
        for (y, z) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            for wave in 0..waves {
                Wave::own(&mut mock, 0, [x, y, z], wave).end(&mut mock, wave == 0);
                expected.push((0, Some(1), [x, y, z], wave));
            }
        }
    }
    session.end_dispatch(&mut mock, first, None).unwrap();
    session.end_dispatch(&mut mock, other, None).unwrap();
    let again = session.begin_dispatch(&mut mock, object, &info(0, 64, 4)).unwrap();
    Wave::own(&mut mock, 0, [0; 3], 0).end(&mut mock, true);
    session.end_dispatch(&mut mock, again, None).unwrap();
    let profile = session.finish();
    assert_eq!(numbers(&profile.kernels[0]), [2, 17, 0, 0, 17, 9]);
    assert_eq!(numbers(&profile.kernels[1]), [1, 1, 0, 0, 1, 1]);
    expected.extend([(1, Some(3), [0; 3], 0), (0, Some(4), [0; 3], 0)]);
    expected.sort_unstable();
    let waves = profile.waves.iter().map(|wave| (wave.kernel, wave.dispatch, wave.workgroup, wave.wave));
    let mut waves: Vec<_> = waves.collect();
    waves.sort_unstable();
    assert_eq!(waves, expected);
}

#[test]
fn waves_share_or_are_dropped_and_counted() {
    for (records, expected, shared) in [
        (Records::Shared(3), [1, 6, 0, 0, 6, 6], true),
        (Records::Dropping(4), [1, 6, 2, 0, 4, 4], false),
        (Records::Dropping(100), [1, 6, 0, 0, 6, 6], false),
    ] {
        let (mut mock, mut session, object) = session(Overlap::Concurrent, records, None, 1);
        let ticket = session.begin_dispatch(&mut mock, object, &info(0, 384, 1)).unwrap();
        for (group, wave) in [(2, 1), (2, 0), (0, 0), (0, 1), (1, 0), (1, 1)] {
            Wave::own(&mut mock, 0, [group, 0, 0], wave).end(&mut mock, true);
        }
        session.end_dispatch(&mut mock, ticket, None).unwrap();
        let profile = session.finish();
        assert_eq!(numbers(&profile.kernels[0]), expected, "{records:?}");
        assert_eq!(profile.kernels[0].shared_records, shared, "{records:?}");
        assert_eq!(profile.waves.len(), if shared { 0 } else { expected[4] as usize }, "{records:?}");
    }
}

#[test]
fn time_slices_have_records_of_their_own() {
    let (mut mock, mut session, object) = session(Overlap::TimeSliced, Records::PerWave, None, 2);
    let first = session.begin_dispatch(&mut mock, object, &info(0, 128, 1)).unwrap();
    let a0 = Wave::own(&mut mock, 0, [0; 3], 0);
    let second = session.begin_dispatch(&mut mock, object, &info(0, 128 * 150, 2)).unwrap();
    for group in 0..150 {
        (0..2).for_each(|number| Wave::own(&mut mock, 0, [group, 0, 0], number).end(&mut mock, true));
    }
    session.suspend(&mut mock, object).unwrap();
    assert!(Wave::own(&mut mock, 0, [0; 3], 0).0.is_none() && Wave::own(&mut mock, 1, [0; 3], 0).0.is_none());
    session.resume(&mut mock, &first).unwrap();
    let a1 = Wave::own(&mut mock, 0, [0; 3], 1);
    a0.end(&mut mock, false);
    a1.end(&mut mock, false);
    session.end_dispatch(&mut mock, first, None).unwrap();
    session.end_dispatch(&mut mock, second, None).unwrap();
    let profile = session.finish();
    assert_eq!(numbers(&profile.kernels[0]), [2, 302, 0, 0, 302, 300]);
    let of = |ordinal| profile.waves.iter().filter(|wave| wave.dispatch == Some(ordinal)).count();
    assert_eq!((of(1), of(2), profile.kernels.len()), (2, 300, 1));
}

#[test]
fn faults_leave_nothing_behind() {
    let (mut mock, mut session, object) = session(Overlap::TimeSliced, Records::PerWave, None, 2);
    let first = session.begin_dispatch(&mut mock, object, &info(0, 128, 1)).unwrap();
    Wave::own(&mut mock, 0, [0; 3], 0).end(&mut mock, true);
    session.abandon(&mut mock, first).unwrap();
    let second = session.begin_dispatch(&mut mock, object, &info(0, 128, 2)).unwrap();
    Wave::own(&mut mock, 0, [0; 3], 0).end(&mut mock, false);
    let _unfinished = Wave::own(&mut mock, 0, [0; 3], 1);
    session.end_dispatch(&mut mock, second, None).unwrap();
    assert_eq!(numbers(&session.collector().profile().kernels[0]), [1, 2, 0, 1, 1, 0]);
    // The memory of the records is freed with the object.
    session.detach(&mut mock, object).unwrap();
    assert_eq!(mock.allocations.keys().collect::<Vec<_>>(), [&BLOCK]);
    assert!(session.map(object).is_err());
}

#[test]
fn a_fault_takes_overlapping_dispatches_of_its_kernel_with_it() {
    let (mut mock, mut session, object) = session(Overlap::Concurrent, Records::PerWave, Some(SLOTS), 2);
    let tickets = [(0, 1), (0, 2), (1, 3)]
        .map(|(kernel, ordinal)| session.begin_dispatch(&mut mock, object, &info(kernel, 64, ordinal)).unwrap());
    for kernel in [0, 0, 1] {
        Wave::at_slot(&mock, kernel, 0).end(&mut mock, true);
    }
    let [faulted, same, other] = tickets;
    session.abandon(&mut mock, faulted).unwrap();
    session.end_dispatch(&mut mock, same, None).unwrap();
    session.end_dispatch(&mut mock, other, None).unwrap();
    let profile = session.finish();
    assert_eq!((numbers(&profile.kernels[0]), numbers(&profile.kernels[1])), ([0; 6], [1, 1, 0, 0, 1, 1]));
    assert_eq!(profile.uncounted.iter().map(|lost| lost.dispatches).collect::<Vec<_>>(), [1]);
    assert!(!profile.complete);
}

#[test]
fn what_does_not_fit_is_refused() {
    let begin = || {
        let (mut mock, mut session, object) = session(Overlap::Concurrent, Records::PerWave, None, 2);
        let ticket = session.begin_dispatch(&mut mock, object, &info(0, 64, 1)).unwrap();
        (mock, session, ticket)
    };
    let fault = |(mut mock, mut session, ticket): (Mock, Session, Ticket)| {
        session.end_dispatch(&mut mock, ticket, None).unwrap_err().to_string()
    };
    let (mut mock, session, ticket) = begin();
    Wave::own(&mut mock, 0, [0; 3], 0).end(&mut mock, true);
    let at = mock.control(0).buffer;
    mock.write(at, &1_u32.to_le_bytes()).unwrap();
    let found = fault((mock, session, ticket));
    assert!(found.contains("it belongs to kernel 1 and dispatch 1, dispatched was kernel 0"), "{found}");
    assert!(found.contains("record 0 of kernel k0"), "{found}");
    let found = fault(begin());
    assert!(found.contains("1 waves of kernel k0 were dispatched, 0 have a record and 0 were dropped"), "{found}");
    let (mut mock, session, ticket) = begin();
    (0..2).for_each(|_| Wave::own(&mut mock, 0, [0; 3], 0).end(&mut mock, true));
    let found = fault((mock, session, ticket));
    assert!(found.contains("2 waves began with it, 1 expected"), "{found}");
    let (mut mock, session, ticket) = begin();
    mock.write(BLOCK + control::CAPACITY, &9_u32.to_le_bytes()).unwrap();
    assert!(fault((mock, session, ticket)).contains("the control block was overwritten"));
    let (mut mock, mut session, object) = self::session(Overlap::Concurrent, Records::PerWave, None, 2);
    assert!(
        session.begin_dispatch(&mut mock, object, &info(2, 64, 1)).unwrap_err().to_string().contains("kernel index 2")
    );
    let mut other = (**session.map(object).unwrap()).clone();
    other.stride += 8;
    assert!(
        session
            .attach_map(&mock, other, BLOCK)
            .unwrap_err()
            .to_string()
            .contains("records of 48 bytes, the site table of 56")
    );
    let mut other = (**session.map(object).unwrap()).clone();
    other.kernels[0].after.wave_size = 0;
    let other = session.attach_map(&mock, other, BLOCK).unwrap();
    let found = session.begin_dispatch(&mut mock, other, &info(0, 64, 1)).unwrap_err().to_string();
    assert!(found.contains("waves of kernel k0 have 0 lanes, expected 32 or 64"), "{found}");
    // The block of the second kernel is looked at, too.
    mock.write(BLOCK + control::offset_of(1), &9_u32.to_le_bytes()).unwrap();
    let map = (**session.map(object).unwrap()).clone();
    assert!(session.attach_map(&mock, map, BLOCK).unwrap_err().to_string().contains("control block version 9"));
}

/// Executions are the waves, and taken branches those without the second counter that is kept. Waves choose among so
/// many records, or have their own.
fn not_taken(slots: Option<u32>) -> (Mock, Session, ObjectId) {
    let sums = vec![vec![(1, 0), (-1, 2)]];
    let placement = Placement { slots: slots.unwrap_or(0), kept: 2, sums, counters: vec![0, 3] };
    placed_session(Overlap::TimeSliced, Records::PerWave, slots, 1, Some(placement))
}

#[test]
fn placed_counters_of_single_waves_are_solved() {
    let (mut mock, mut session, object) = not_taken(None);
    let dispatch = session.begin_dispatch(&mut mock, object, &info(0, 320, 1)).unwrap();
    for (group, number, falls_through) in [(0, 0, true), (0, 1, false), (1, 0, false), (1, 1, false), (2, 0, true)] {
        Wave::own(&mut mock, 0, [group, 0, 0], number).end(&mut mock, falls_through);
    }
    session.end_dispatch(&mut mock, dispatch, None).unwrap();
    let profile = session.finish();
    assert_eq!(numbers(&profile.kernels[0]), [1, 5, 0, 0, 5, 3]);
    let waves: Vec<_> = profile.waves.iter().map(|wave| wave.counters.clone()).collect();
    assert_eq!(waves, [[1, 0], [1, 1], [1, 1], [1, 1], [1, 0]]);
}

#[test]
fn placed_counters_of_waves_that_share_a_record_are_solved() {
    let (mut mock, mut session, object) = not_taken(Some(SLOTS));
    let dispatch = session.begin_dispatch(&mut mock, object, &info(0, 320, 1)).unwrap();
    for (slot, falls_through) in [(0, true), (0, false), (3, false), (3, false), (1, true)] {
        Wave::at_slot(&mock, 0, slot).end(&mut mock, falls_through);
    }
    session.end_dispatch(&mut mock, dispatch, None).unwrap();
    assert_eq!(numbers(&session.finish().kernels[0]), [1, 5, 0, 0, 5, 3]);
}

/// What follows from the counters of a wave that never ended is not known, nor of those that may share its record.
#[test]
fn waves_beside_unfinished_ones_are_not_counted_where_counters_are_placed() {
    for (slots, uncounted) in [(None, 1), (Some(SLOTS), 4)] {
        let (mut mock, mut session, object) = not_taken(slots);
        let dispatch = session.begin_dispatch(&mut mock, object, &info(0, 256, 1)).unwrap();
        let waves = [0, 1, 2, 3].map(|number| match slots {
            None => Wave::own(&mut mock, 0, [number / 2, 0, 0], number % 2),
            Some(_) => Wave::at_slot(&mock, 0, number % 2),
        });
        let [lost, ended @ ..] = waves;
        lost.count(&mut mock, true);
        ended.into_iter().for_each(|wave| wave.end(&mut mock, false));
        session.end_dispatch(&mut mock, dispatch, None).unwrap();
        let counted = 4 - uncounted;
        let profile = session.finish();
        assert_eq!(numbers(&profile.kernels[0]), [1, 4, 0, uncounted, counted, counted], "{slots:?}");
        assert_eq!(profile.waves.len() as u64, counted, "{slots:?}");
    }
}

/// Counters that no control flow leaves are an error that says where.
#[test]
fn placed_counters_that_contradict_each_other_are_an_error() {
    for slots in [None, Some(SLOTS)] {
        let (mut mock, mut session, object) = not_taken(slots);
        let dispatch = session.begin_dispatch(&mut mock, object, &info(0, 64, 1)).unwrap();
        let wave = match slots {
            None => Wave::own(&mut mock, 0, [0; 3], 0),
            Some(_) => Wave::at_slot(&mock, 0, 0),
        };
        wave.count(&mut mock, true);
        wave.end(&mut mock, true);
        let error = session.end_dispatch(&mut mock, dispatch, None).unwrap_err().to_string();
        assert!(error.contains("record 0") && error.contains("no control flow leaves such counters"), "{error}");
    }
}

#[test]
fn dispatches_that_carry_the_traffic_are_sampled() {
    // Which of these launches are recorded, by their waves.
    let recorded = |sample: DispatchSample, launches: &[u64]| {
        let mut most = 0;
        let mut found = Vec::new();
        for (before, waves) in (0..).zip(launches) {
            if sample.takes(before, *waves, most) {
                most = most.max(*waves);
                found.push(before + 1);
            }
        }
        found
    };
    assert_eq!(recorded(DispatchSample::Spread, &[4; 20]), [1, 2, 4, 8, 16]);
    assert_eq!(recorded(DispatchSample::Spread, &[4, 4, 4, 4, 9, 9, 16, 9, 9]), [1, 2, 4, 5, 8], "more than twice");
    let numbers = |text: &str| DispatchSample::Numbers(text.parse().expect("numbers"));
    assert_eq!(recorded(numbers("3"), &[4, 900, 4, 9000]), [1, 2, 3]);
    assert_eq!(recorded(numbers("2-3"), &[4, 900, 4, 9000]), [2, 3]);
}
