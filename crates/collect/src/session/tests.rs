//! Sessions on a memory that is a map, with waves that do by hand what inserted code does.

use std::collections::BTreeMap;

use wavetap_profile::control::Control;
use wavetap_profile::file::{Backend, KernelTotals};
use wavetap_profile::map::{CounterMode, KernelMap, ObjectMap, Resources, Site, VectorSource};
use wavetap_profile::probes::branches;
use wavetap_profile::record;

use super::*;
use crate::memory::{MemoryError, Operation};

const BLOCK: u64 = 0x1000;
/// A record of one scalar branch.
const STRIDE: u32 = record::HEADER + 2 * record::COUNTER;

/// Allocations by address.
#[derive(Default)]
struct Mock {
    allocations: BTreeMap<u64, Vec<u8>>,
    next: u64,
}

impl Mock {
    /// A memory with a control block.
    fn new() -> Mock {
        let mut mock = Mock { next: 0x10_0000, ..Mock::default() };
        let control = Control { stride: STRIDE, ..Control::default() };
        mock.allocations.insert(BLOCK, control.to_bytes().to_vec());
        mock
    }

    fn place(&self, operation: Operation, address: u64, size: usize) -> Result<(u64, usize), MemoryError> {
        let error = || MemoryError { operation, address, size: size as u64, reason: "not allocated".to_owned() };
        let (start, bytes) = self.allocations.range(..=address).next_back().ok_or_else(error)?;
        let offset = (address - start) as usize;
        if offset + size <= bytes.len() { Ok((*start, offset)) } else { Err(error()) }
    }

    fn control(&self) -> Control {
        Control::from_bytes(&self.allocations[&BLOCK]).unwrap()
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
        let (start, offset) = self.place(Operation::Read, address, into.len())?;
        into.copy_from_slice(&self.allocations[&start][offset..offset + into.len()]);
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
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
    /// The prologue: reads the block, takes a record, writes its header.
    fn begin(mock: &mut Mock, kernel: u32, number: u32) -> Wave {
        let control = mock.control();
        if control.buffer == 0 {
            return Wave(None);
        }
        let mut index = mock.add(BLOCK + control::HEAD, 1);
        if index >= control.capacity {
            if control.flags & control::FLAG_SHARED == 0 {
                mock.add(BLOCK + control::DROPPED, 1);
                return Wave(None);
            }
            index &= control.capacity - 1;
        }
        let at = control.buffer + u64::from(index * STRIDE);
        let header = [(record::KERNEL, kernel), (record::DISPATCH, control.dispatch), (record::WAVE, number)];
        header
            .into_iter()
            .for_each(|(offset, value)| mock.write(at + u64::from(offset), &value.to_le_bytes()).unwrap());
        mock.add(at + u64::from(record::BEGAN), 1);
        Wave(Some(at))
    }

    /// Counts one execution, taken or not, and ends.
    fn end(self, mock: &mut Mock, taken: bool) {
        let Wave(Some(at)) = self else { return };
        mock.add(at + u64::from(record::HEADER), 1);
        mock.add(at + u64::from(record::HEADER + record::COUNTER), taken.into());
        mock.add(at + u64::from(record::FINISHED), 1);
    }
}

fn session(overlap: Overlap, records: Records, kernels: u32) -> (Mock, Session, ObjectId) {
    let mock = Mock::new();
    let options = Options { overlap, records, memory_limit: MEMORY_LIMIT };
    let mut session = Session::new(Collector::new(Backend::Gpu, true), options);
    let resources = Resources::default();
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
        placement: None,
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

fn info(kernel: u32, waves: u64, ordinal: u32) -> DispatchInfo {
    DispatchInfo { kernel, waves, ordinal }
}

/// Dispatches, waves, dropped waves, unfinished waves, executions and taken branches.
fn numbers(totals: &KernelTotals) -> [u64; 6] {
    let values = totals.sites[0].counts.values();
    [totals.dispatches, totals.waves, totals.dropped, totals.unfinished, values[0], values[1]]
}

#[test]
fn concurrent_dispatches_of_two_kernels_are_told_apart() {
    let (mut mock, mut session, object) = session(Overlap::Concurrent, Records::PerWave, 2);
    let first = session.begin_dispatch(&mut mock, object, &info(0, 3, 10)).unwrap();
    let early = Wave::begin(&mut mock, 0, 0);
    let second = session.begin_dispatch(&mut mock, object, &info(1, 2, 11)).unwrap();
    // Waves of both interleave; late ones of the first read the ordinal of the second.
    let others = [
        Wave::begin(&mut mock, 1, 0),
        Wave::begin(&mut mock, 0, 1),
        Wave::begin(&mut mock, 1, 1),
        Wave::begin(&mut mock, 0, 2),
    ];
    let [b0, a1, b1, a2] = others;
    early.end(&mut mock, true);
    b0.end(&mut mock, true);
    a1.end(&mut mock, false);
    a2.end(&mut mock, false);
    assert_eq!(session.end_dispatch(&mut mock, first, None).unwrap(), [0]);
    // The first is in the profile although the second is in flight, of which nothing is yet.
    let kernels = &session.collector().profile().kernels;
    assert_eq!(numbers(&kernels[0]), [1, 3, 0, 0, 3, 1]);
    assert_eq!(numbers(&kernels[1]), [0; 6]);
    b1.end(&mut mock, true);
    session.end_dispatch(&mut mock, second, None).unwrap();
    assert_eq!(mock.control().buffer, 0, "nothing counts any more");
    let profile = session.finish();
    assert_eq!(numbers(&profile.kernels[0]), [1, 3, 0, 0, 3, 1], "counted once");
    assert_eq!(numbers(&profile.kernels[1]), [1, 2, 0, 0, 2, 2]);
    let ordinals: Vec<_> = profile.waves.iter().map(|wave| (wave.kernel, wave.dispatch)).collect();
    let expected = [(0, Some(10)), (0, Some(10)), (0, Some(10)), (1, Some(11)), (1, Some(11))];
    assert_eq!(ordinals, expected, "the kernel says which dispatch it was");
}

#[test]
fn concurrent_dispatches_of_one_kernel_have_no_ordinals() {
    let (mut mock, mut session, object) = session(Overlap::Concurrent, Records::PerWave, 1);
    let first = session.begin_dispatch(&mut mock, object, &info(0, 1, 1)).unwrap();
    let second = session.begin_dispatch(&mut mock, object, &info(0, 1, 2)).unwrap();
    let (a, b) = (Wave::begin(&mut mock, 0, 0), Wave::begin(&mut mock, 0, 0));
    a.end(&mut mock, true);
    assert!(
        session.end_dispatch(&mut mock, first, None).unwrap().is_empty(),
        "its records cannot be told from those of the other"
    );
    b.end(&mut mock, false);
    session.end_dispatch(&mut mock, second, None).unwrap();
    let profile = session.finish();
    assert_eq!(numbers(&profile.kernels[0]), [2, 2, 0, 0, 2, 1]);
    assert_eq!(profile.waves.iter().map(|wave| wave.dispatch).collect::<Vec<_>>(), [None, None]);
}

#[test]
fn no_record_is_shared_by_two_kernels() {
    // Waves of one kernel share.
    let (mut mock, mut session, object) = session(Overlap::Concurrent, Records::Shared(2), 2);
    let first = session.begin_dispatch(&mut mock, object, &info(0, 5, 1)).unwrap();
    let second = session.begin_dispatch(&mut mock, object, &info(0, 1, 2)).unwrap();
    let busy = session.begin_dispatch(&mut mock, object, &info(1, 1, 3)).unwrap_err();
    assert!(matches!(busy, BeginError::Busy { in_flight: 2 }), "{busy}");
    for number in 0..6 {
        Wave::begin(&mut mock, 0, number).end(&mut mock, true);
    }
    session.end_dispatch(&mut mock, first, None).unwrap();
    session.end_dispatch(&mut mock, second, None).unwrap();
    // Once they have ended, the other kernel can begin, and finds the buffer empty.
    let third = session.begin_dispatch(&mut mock, object, &info(1, 1, 3)).unwrap();
    Wave::begin(&mut mock, 1, 0).end(&mut mock, false);
    session.end_dispatch(&mut mock, third, None).unwrap();
    let profile = session.finish();
    assert_eq!(numbers(&profile.kernels[0]), [2, 6, 0, 0, 6, 6]);
    assert_eq!(numbers(&profile.kernels[1]), [1, 1, 0, 0, 1, 0]);
    assert!(profile.kernels[0].shared_records && !profile.kernels[1].shared_records);
    assert_eq!(profile.waves.len(), 1, "shared records are none of single waves");
}

#[test]
fn a_dispatch_without_room_waits_and_dropped_waves_are_counted() {
    let (mut mock, mut session, object) = session(Overlap::Concurrent, Records::Dropping(4), 2);
    let first = session.begin_dispatch(&mut mock, object, &info(0, 3, 1)).unwrap();
    assert!(matches!(
        session.begin_dispatch(&mut mock, object, &info(1, 2, 2)),
        Err(BeginError::Busy { in_flight: 1 })
    ));
    let second = session.begin_dispatch(&mut mock, object, &info(1, 1, 2)).unwrap();
    for kernel in [0, 1, 0, 0] {
        Wave::begin(&mut mock, kernel, 0).end(&mut mock, true);
    }
    session.end_dispatch(&mut mock, second, None).unwrap();
    session.end_dispatch(&mut mock, first, None).unwrap();
    let third = session.begin_dispatch(&mut mock, object, &info(1, 7, 3)).unwrap();
    for _ in 0..7 {
        Wave::begin(&mut mock, 1, 0).end(&mut mock, true);
    }
    session.end_dispatch(&mut mock, third, None).unwrap();
    let profile = session.finish();
    assert_eq!(numbers(&profile.kernels[0]), [1, 3, 0, 0, 3, 3]);
    assert_eq!(numbers(&profile.kernels[1]), [2, 8, 3, 0, 5, 5]);
}

#[test]
fn time_slices_have_blocks_of_their_own() {
    let (mut mock, mut session, object) = session(Overlap::TimeSliced, Records::PerWave, 2);
    let first = session.begin_dispatch(&mut mock, object, &info(0, 2, 1)).unwrap();
    let a0 = Wave::begin(&mut mock, 0, 0);
    let second = session.begin_dispatch(&mut mock, object, &info(0, 300, 2)).unwrap();
    (0..300).for_each(|number| Wave::begin(&mut mock, 0, number).end(&mut mock, true));
    session.suspend(&mut mock, object).unwrap();
    Wave::begin(&mut mock, 1, 0).end(&mut mock, true);
    session.resume(&mut mock, &first).unwrap();
    let a1 = Wave::begin(&mut mock, 0, 1);
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
    let (mut mock, mut session, object) = session(Overlap::TimeSliced, Records::PerWave, 2);
    let first = session.begin_dispatch(&mut mock, object, &info(0, 2, 1)).unwrap();
    Wave::begin(&mut mock, 0, 0).end(&mut mock, true);
    mock.add(BLOCK + control::HEAD, 1); // A wave that faulted before it wrote its header.
    session.abandon(&mut mock, first).unwrap();
    let second = session.begin_dispatch(&mut mock, object, &info(0, 2, 2)).unwrap();
    Wave::begin(&mut mock, 0, 0).end(&mut mock, false);
    let _unfinished = Wave::begin(&mut mock, 0, 1);
    session.end_dispatch(&mut mock, second, None).unwrap();
    assert_eq!(numbers(&session.collector().profile().kernels[0]), [1, 2, 0, 1, 1, 0]);
    // The memory of the records is freed with the object.
    session.detach(&mut mock, object).unwrap();
    assert_eq!(mock.allocations.keys().collect::<Vec<_>>(), [&BLOCK]);
    assert!(session.map(object).is_err());
}

#[test]
fn a_fault_takes_overlapping_dispatches_of_its_kernel_with_it() {
    let (mut mock, mut session, object) = session(Overlap::Concurrent, Records::PerWave, 2);
    let tickets = [(0, 1), (0, 2), (1, 3)]
        .map(|(kernel, ordinal)| session.begin_dispatch(&mut mock, object, &info(kernel, 1, ordinal)).unwrap());
    for kernel in [0, 0, 1] {
        Wave::begin(&mut mock, kernel, 0).end(&mut mock, true);
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
        let (mut mock, mut session, object) = session(Overlap::Concurrent, Records::PerWave, 2);
        let ticket = session.begin_dispatch(&mut mock, object, &info(0, 1, 1)).unwrap();
        (mock, session, ticket)
    };
    let fault = |(mut mock, mut session, ticket): (Mock, Session, Ticket)| {
        session.end_dispatch(&mut mock, ticket, None).unwrap_err().to_string()
    };
    let (mut mock, session, ticket) = begin();
    Wave::begin(&mut mock, 1, 0).end(&mut mock, true);
    let found = fault((mock, session, ticket));
    assert!(
        found.contains("it belongs to kernel 1 of the object, dispatched were kernels {0}, in record 0"),
        "{found}"
    );
    let (mut mock, session, ticket) = begin();
    mock.add(BLOCK + control::HEAD, 1);
    let found = fault((mock, session, ticket));
    assert!(found.contains("which was not in flight") || found.contains("1 waves asked for a record"), "{found}");
    let (mut mock, session, ticket) = begin();
    mock.write(BLOCK + control::CAPACITY, &9_u32.to_le_bytes()).unwrap();
    assert!(fault((mock, session, ticket)).contains("the control block was overwritten"));
    let (mut mock, mut session, object) = self::session(Overlap::Concurrent, Records::PerWave, 2);
    assert!(
        session.begin_dispatch(&mut mock, object, &info(2, 1, 1)).unwrap_err().to_string().contains("kernel index 2")
    );
    let mut other = (**session.map(object).unwrap()).clone();
    other.stride += 8;
    assert!(
        session
            .attach_map(&mock, other, BLOCK)
            .unwrap_err()
            .to_string()
            .contains("record stride of 48 bytes, the site table of 56")
    );
    mock.write(BLOCK, &9_u32.to_le_bytes()).unwrap();
    let map = (**session.map(object).unwrap()).clone();
    assert!(session.attach_map(&mock, map, BLOCK).unwrap_err().to_string().contains("control block version 9"));
}
