use super::cells::DWORDS;
use super::clock::Progress;
use super::order::Site;
use super::*;

const AT: u64 = 0x10_0000;

/// Workgroups of two waves that execute one instruction after another.
struct Machine {
    races: GlobalRaces,
    groups: Vec<u32>,
    /// The next operation, by workgroup and wave.
    next: Vec<[u32; 2]>,
}

impl Machine {
    fn new(groups: usize) -> Machine {
        let mut races = GlobalRaces::default();
        let dispatch = races.begin(DispatchOrder::everything());
        let groups = (0..groups).map(|n| races.order.start(dispatch, [n as u32, 0, 0], 2).expect("room")).collect();
        Machine { races, groups, next: vec![[1; 2]; 8] }
    }

    /// A wave accesses a range; whether that is a race, and whether of the same value.
    fn access(
        &mut self,
        (group, wave): (usize, usize),
        how: MemoryAccess,
        (at, size): (u64, usize),
        value: Option<&[u8]>,
    ) -> Option<bool> {
        let id = self.next[group][wave];
        self.next[group][wave] += 1;
        let pc = how as u64;
        let (returns, coherent, polls) = (true, false, None);
        let site =
            Site { pc, object: Some(crate::ObjectId(0)), address: pc, name: "", how, returns, coherent, size, polls };
        let site = self.races.order.site(pc, || site).expect("room");
        let mut now = Now {
            access: Access::new(self.groups[group], wave as u32, id, site),
            done: Released { wave: wave as u32, next: id + 1, oldest_write: id + 1, apart: false },
            polls: &mut |_| false,
            is_ignored: &|_| false,
            handed: None,
            seen: None,
            found: None,
        };
        self.races.access(&mut now, at, size, value);
        now.found.map(|race| race.same_value)
    }

    fn barrier(&mut self, group: usize) {
        let next = self.next[group];
        let waves =
            [0, 1].map(|wave| Released { wave: wave as u32, next: next[wave], oldest_write: next[wave], apart: false });
        self.races.order.barrier(self.groups[group], waves.into_iter());
    }
}

use MemoryAccess::{Atomic, Load, Store};

#[test]
fn a_barrier_orders_the_waves_of_a_workgroup_only() {
    let mut machine = Machine::new(2);
    let chunk = (AT, CHUNK);
    assert_eq!(machine.access((0, 0), Store, chunk, Some(&[1; CHUNK])), None);
    assert_eq!(machine.access((0, 0), Load, chunk, None), None, "its own");
    machine.barrier(0);
    assert_eq!(machine.access((0, 1), Load, chunk, None), None);
    assert_eq!(machine.access((1, 0), Load, chunk, None), Some(false));
    machine.barrier(1);
    assert_eq!(machine.access((1, 1), Store, (AT + 4, 4), Some(&[2; 4])), Some(false), "no barrier of both");
}

#[test]
fn bytes_and_dwords_of_a_chunk_are_apart() {
    let mut machine = Machine::new(2);
    for n in 0..CHUNK as u64 {
        assert_eq!(machine.access((0, n as usize % 2), Store, (AT + n, 1), Some(&[n as u8])), None);
    }
    assert_eq!(machine.access((0, 0), Load, (AT, 1), None), None);
    assert_eq!(machine.access((0, 0), Load, (AT + 1, 1), None), Some(false));
    assert_eq!(machine.access((0, 0), Load, (AT + 2, 4), None), Some(false));
    machine.barrier(0);
    assert_eq!(machine.access((0, 1), Store, (AT, CHUNK), Some(&[0; CHUNK])), None);
    for n in 0..DWORDS as u64 {
        assert_eq!(machine.access((0, 1), Load, (AT + 4 * n, 4), None), None);
    }
    assert_eq!(machine.access((1, 0), Store, (AT + CHUNK as u64 - 4, 8), Some(&[9; 8])), Some(false));
}

#[test]
fn a_store_of_the_same_value_is_told_apart() {
    let mut machine = Machine::new(2);
    assert_eq!(machine.access((0, 0), Store, (AT, 4), Some(&[5, 0, 0, 0])), None);
    assert_eq!(machine.access((1, 0), Store, (AT, 4), Some(&[5, 0, 0, 0])), Some(true));
    assert_eq!(machine.access((1, 1), Store, (AT, 4), Some(&[5, 1, 0, 0])), Some(false));
}

#[test]
fn atomics_hand_over_what_was_done_before() {
    let mut machine = Machine::new(3);
    let (data, counter) = ((AT, CHUNK), (AT + 4096, 4));
    assert_eq!(machine.access((0, 0), Store, data, Some(&[1; CHUNK])), None);
    assert_eq!(machine.access((0, 0), Atomic, counter, None), None);
    assert_eq!(machine.access((0, 0), Store, (AT + 512, 4), Some(&[1; 4])), None);
    assert_eq!(machine.access((1, 0), Atomic, counter, None), None);
    assert_eq!(machine.access((1, 0), Load, data, None), None);
    assert_eq!(machine.access((1, 0), Load, (AT + 512, 4), None), Some(false), "stored after the atomic");
    assert_eq!(machine.access((2, 0), Load, data, None), Some(false), "without the atomic");
    // Through another workgroup.
    assert_eq!(machine.access((2, 1), Atomic, counter, None), None);
    assert_eq!(machine.access((2, 1), Store, data, Some(&[2; CHUNK])), Some(false), "the load of wave 0");
}

#[test]
fn what_is_freed_is_forgotten() {
    let mut machine = Machine::new(2);
    assert_eq!(machine.access((0, 0), Store, (AT, 8192), Some(&[1; 8192])), None);
    machine.races.forget(AT + 64, AT + 8192);
    assert_eq!(machine.access((1, 0), Load, (AT + 64, 8192 - 64), None), None);
    assert_eq!(machine.access((1, 0), Load, (AT + 60, 4), None), Some(false));
}

#[test]
fn a_clock_with_too_many_workgroups_is_after_everything() {
    let mut clock = Clock::default();
    let row = Arc::new(vec![Progress { issued: 1, complete: 1, read: 1 }; 2]);
    (0..1 << 12).for_each(|group| clock.add(group, &row));
    assert!(!clock.is_all() && clock.row(5).is_some() && clock.row(1 << 12).is_none());
    (0..1 << 14).for_each(|group| clock.add(group, &row));
    assert!(clock.is_all());
}

#[test]
fn an_atomic_does_not_hide_a_store_of_its_wave() {
    let mut machine = Machine::new(3);
    let total = (AT, 4);
    assert_eq!(machine.access((2, 1), Atomic, (AT + 4096, 4), None), None);
    machine.races.order.sites.iter_mut().for_each(|site| site.returns = false);
    assert_eq!(machine.access((0, 0), Store, total, Some(&[0; 4])), None);
    assert_eq!(machine.access((0, 0), Atomic, total, None), None, "its own");
    assert_eq!(machine.access((1, 0), Atomic, total, None), Some(false));
    assert_eq!(machine.access((2, 0), Store, total, Some(&[0; 4])), Some(false), "not the same value any more");
}
