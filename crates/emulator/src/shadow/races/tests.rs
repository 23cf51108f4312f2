use super::*;

fn operation(wave: u32, id: u32) -> LdsOperation {
    LdsOperation {
        wave,
        id,
        pc: u64::from(id),
        address: u64::from(id),
        name: "ds_test",
        returns: true,
        copies: false,
        copied: [id + 1; 2],
    }
}

/// A wave with its next operation and the first write of LDS that may be in flight.
fn done(wave: u32, next: u32, write: u32) -> WaveProgress {
    WaveProgress { wave, writes: [write, next], reads: [next; 2] }
}

fn go(races: &mut Races, wave: u32, id: u32, how: How) -> bool {
    races.access(&operation(wave, id), 64, (8, 4, how), &|_| false, &mut |_| false).is_ok()
}

#[test]
fn a_barrier_orders_what_was_waited_for() {
    let mut races = Races::default();
    assert!(go(&mut races, 0, 1, How::Write(7)));
    races.barrier([done(0, 2, 2), done(1, 1, 1), done(2, 1, 1)].into_iter());
    assert!(go(&mut races, 1, 1, How::Read));
    assert!(!go(&mut races, 0, 2, How::Write(8)), "the read is not ordered before");
    let mut races = Races::default();
    assert!(go(&mut races, 0, 1, How::Write(7)));
    // The write was in flight at the barrier.
    races.barrier([done(0, 2, 1), done(1, 1, 1), done(2, 1, 1)].into_iter());
    assert!(!go(&mut races, 1, 1, How::Read));
}

/// The barrier is there, the wait before it is not; or neither is.
#[test]
fn what_is_missing_is_said() {
    let missing = |meets: bool| {
        let mut races = Races::default();
        assert!(go(&mut races, 0, 1, How::Write(7)));
        if meets {
            races.barrier([done(0, 2, 1), done(1, 1, 1)].into_iter());
        }
        match races.access(&operation(1, 1), 64, (8, 4, How::Read), &|_| false, &mut |_| false) {
            Err(FaultKind::LdsRace { other, .. }) => other.missing,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([missing(true), missing(false)], [MissingOrder::Wait, MissingOrder::Barrier]);
}

/// A copy into LDS, operation 1, may be in flight; an LDS instruction, operation 2, is done. The other way round as
/// well.
#[test]
fn copies_have_an_order_of_their_own() {
    for (copied, writes) in [(true, [3, 1]), (false, [1, 3])] {
        let mut races = Races::default();
        let first = LdsOperation { copies: copied, ..operation(0, 1) };
        let second = LdsOperation { copies: !copied, ..operation(0, 2) };
        for (operation, at) in [(first, 8), (second, 16)] {
            races.access(&operation, 64, (at, 4, How::Write(7)), &|_| false, &mut |_| false).unwrap();
        }
        races.barrier([WaveProgress { writes, ..done(0, 3, 3) }, done(1, 1, 1)].into_iter());
        let mut read = |at| races.access(&operation(1, 1), 64, (at, 4, How::Read), &|_| false, &mut |_| false);
        assert!(read(8).is_err(), "in flight: {copied}");
        assert!(read(16).is_ok(), "done: {copied}");
    }
}

/// A copy from LDS has yet to read when its wave comes to the barrier: no wave may write there.
#[test]
fn a_copy_from_lds_reads_late() {
    let mut races = Races::default();
    let copy = LdsOperation { copies: true, ..operation(0, 1) };
    let write = |races: &mut Races, wave, in_flight: bool| {
        races.access(&operation(wave, 2), 64, (8, 4, How::Write(9)), &|_| in_flight, &mut |_| false).is_ok()
    };
    races.access(&copy, 64, (8, 4, How::Read), &|_| true, &mut |_| false).unwrap();
    assert!(!write(&mut races, 0, true), "its own wave");
    let mut races = Races::default();
    races.access(&copy, 64, (8, 4, How::Read), &|_| true, &mut |_| false).unwrap();
    races.barrier([WaveProgress { reads: [2, 1], ..done(0, 2, 2) }, done(1, 1, 1)].into_iter());
    assert!(!write(&mut races, 1, false), "another wave");
    let mut races = Races::default();
    races.access(&copy, 64, (8, 4, How::Read), &|_| true, &mut |_| false).unwrap();
    races.barrier([done(0, 2, 2), done(1, 1, 1)].into_iter());
    assert!(write(&mut races, 1, false) && write(&mut races, 0, false), "it was waited for");
}

#[test]
fn the_same_value_is_no_race_and_another_is() {
    let mut races = Races::default();
    assert!(go(&mut races, 0, 1, How::Write(7)));
    assert!(go(&mut races, 1, 1, How::Write(7)));
    assert!(!go(&mut races, 2, 1, How::Write(9)));
}

#[test]
fn atomics_order_and_plain_reads_of_them_do_not() {
    let mut races = Races::default();
    races.access(&operation(0, 1), 64, (16, 4, How::Write(1)), &|_| false, &mut |_| false).unwrap();
    assert!(go(&mut races, 0, 2, How::Atomic));
    assert!(go(&mut races, 1, 1, How::Atomic));
    assert!(races.access(&operation(1, 2), 64, (16, 4, How::Read), &|_| false, &mut |_| false).is_ok());
    assert!(races.access(&operation(2, 1), 64, (16, 4, How::Read), &|_| false, &mut |_| false).is_err());
    let count = LdsOperation { returns: false, ..operation(0, 3) };
    races.access(&count, 64, (32, 4, How::Atomic), &|_| false, &mut |_| false).unwrap();
    assert!(races.access(&operation(1, 3), 64, (32, 4, How::Read), &|_| false, &mut |_| false).is_err(), "a histogram");
}

#[test]
fn a_lock_is_let_go_by_a_plain_write() {
    let mut races = Races::default();
    assert!(go(&mut races, 0, 1, How::Atomic));
    assert!(go(&mut races, 1, 1, How::Atomic), "refused");
    assert!(go(&mut races, 2, 1, How::Atomic), "refused");
    let data = |races: &mut Races, wave, id| {
        races.access(
            &operation(wave, id),
            64,
            (16, 4, How::Write(u128::from(100 * wave + id))),
            &|_| false,
            &mut |_| false,
        )
    };
    assert!(data(&mut races, 0, 2).is_ok());
    assert!(go(&mut races, 0, 3, How::Write(0)));
    assert!(go(&mut races, 1, 2, How::Atomic));
    assert!(data(&mut races, 1, 3).is_ok());
    assert!(data(&mut races, 2, 3).is_err(), "without the lock");
}

#[test]
fn a_polled_flag_orders() {
    let mut races = Races::default();
    races.access(&operation(0, 1), 64, (16, 4, How::Write(1)), &|_| false, &mut |_| false).unwrap();
    assert!(go(&mut races, 0, 2, How::Write(1)));
    assert!(races.access(&operation(1, 1), 64, (8, 4, How::Read), &|_| false, &mut |_| true).is_ok());
    assert!(races.access(&operation(1, 2), 64, (16, 4, How::Read), &|_| false, &mut |_| false).is_ok());
}

#[test]
fn a_load_into_lds_races_with_its_own_wave_until_it_is_waited_for() {
    let mut races = Races::default();
    let load = LdsOperation { copies: true, ..operation(0, 1) };
    races.access(&load, 64, (8, 4, How::Write(1)), &|_| true, &mut |_| false).unwrap();
    assert!(races.access(&operation(0, 2), 64, (8, 4, How::Read), &|_| true, &mut |_| false).is_err());
    assert!(races.access(&operation(0, 3), 64, (8, 4, How::Read), &|_| false, &mut |_| false).is_ok());
}
