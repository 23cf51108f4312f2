//! Wait states around inserted instructions, rule by rule: one slot too few is found, enough are not, and original
//! pairs are left alone.

mod carried;
mod dropped;
mod event_hazards;
mod expert_scheduling;
mod first_vector;
mod high_registers;
mod listing;
mod preserve;
mod settled_scalars;
mod spill_slots;
mod xcnt_replay;

use crate::alignment::Alignment;
use crate::finding::Finding;
use crate::hazards::wait_states;
use crate::values::compared::{State, Word};
use crate::waits::outstanding;
use wavetap_amdgpu::{Counters, Dpp, Flags, Memory, Reg, Role, Target, scalar};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::{RegSet, WaitSummaries};
use wavetap_analysis::kernel::assembly::{Listing, Op, branch_scc1, end, op};
use wavetap_analysis::kernel::{Body, BodyKind, Image};

fn body(target: &str, listing: Listing) -> Body {
    listing
        .try_body_for(Target::by_name(target).expect("a target"), &Image::new(), BodyKind::Kernel, 0)
        .expect("a body")
}

/// What the checker says of a producer, `between` other instructions, and a consumer, with these inserted.
fn hazards_of(target: &str, producer: Op, between: usize, consumer: Op, inserted: &[u32]) -> Vec<Finding> {
    let mut listing = Listing::at(0).push(producer);
    for _ in 0..between {
        listing = listing.push(op("s_other"));
    }
    let body = body(target, listing.push(consumer).push(end()));
    let mut findings = Vec::new();
    wait_states::check(&body, &Cfg::build(&body), &Alignment::of_inserted(&body, inserted), true, &mut findings);
    findings
}

/// Asserts how many slots a pair needs.
#[track_caller]
fn needs(target: &str, states: usize, producer: impl Fn() -> Op, consumer: impl Fn() -> Op) {
    for between in 0..=states {
        let last = between as u32 + 1;
        for inserted in [vec![0], vec![last], vec![0, last]] {
            let findings = hazards_of(target, producer(), between, consumer(), &inserted);
            assert_eq!(!findings.is_empty(), between < states, "{between} slots on {target}: {findings:?}");
        }
        assert!(
            hazards_of(target, producer(), between, consumer(), &[]).is_empty(),
            "the compiler's own pairs are its business"
        );
    }
}

fn readlane(to: u16) -> Op {
    op("v_readlane_b32").writes(Reg::scalar(to, 1)).reads(Reg::vector(5, 1)).int(3)
}

fn load_from(base: u16) -> Op {
    op("global_load_dword")
        .memory(Memory::Global, Counters::VM, Flags::LOAD)
        .writes(Reg::vector(9, 1))
        .reads_as(Role::Saddr, Reg::scalar(base, 2))
}

#[test]
fn each_rule_asks_for_its_slots() {
    for target in ["gfx900", "gfx90a", "gfx942"] {
        needs(target, 5, || readlane(20), || load_from(20));
        needs(target, 5, || readlane(21), || load_from(20));
        needs(target, 0, || readlane(22), || load_from(20));
        needs(
            target,
            4,
            || readlane(20),
            || op("v_writelane_b32").writes(Reg::vector(7, 1)).int(1).reads_as(Role::Src1, Reg::scalar(20, 1)),
        );
        let dpp = || {
            op("v_mov_b32").writes(Reg::vector(1, 1)).reads(Reg::vector(0, 1)).dpp(Dpp {
                ctrl: 0,
                row_mask: 15,
                bank_mask: 15,
                bound_ctrl: false,
                fetch_inactive: false,
            })
        };
        needs(target, 2, || op("v_mov_b32").writes(Reg::vector(0, 1)), dpp);
        needs(target, 5, || op("v_cmpx_eq_u32").writes(Reg::EXEC), dpp);
        needs(
            target,
            4,
            || op("v_cmp_eq_u32").writes(Reg::VCC),
            || op("v_div_fmas_f32").writes(Reg::vector(0, 1)).reads(Reg::VCC),
        );
        // Scalar instructions may write what vector ones read at once.
        needs(target, 0, || op("s_mov_b64").writes(Reg::scalar(20, 2)), || load_from(20));
    }
    let strict = |states: usize, producer: fn() -> Op, consumer: fn() -> Op| {
        needs("gfx942", states, producer, consumer);
        needs("gfx90a", 0, producer, consumer);
    };
    strict(2, || readlane(20), || op("v_add_u32").writes(Reg::vector(1, 1)).reads(Reg::scalar(20, 1)));
    strict(
        4,
        || op("v_cmpx_eq_u32").writes(Reg::EXEC),
        || op("v_readfirstlane_b32").writes(Reg::scalar(20, 1)).reads(Reg::vector(1, 1)),
    );
    strict(1, || op("v_mov_b32").writes(Reg::vector(5, 1)), || readlane(20));
}

#[test]
fn slots_are_counted_along_the_shortest_path_and_s_nop_fills_several() {
    let nop = |states: i64| op("s_nop").imm(states - 1);
    let listing = |states| {
        Listing::at(0)
            .push(readlane(20))
            .push(branch_scc1("use"))
            .push(nop(states))
            .label("use")
            .push(load_from(20))
            .push(end())
    };
    let found = |listing| {
        let body = body("gfx90a", listing);
        let mut findings = Vec::new();
        wait_states::check(&body, &Cfg::build(&body), &Alignment::of_inserted(&body, &[0]), true, &mut findings);
        findings.len()
    };
    assert!(found(listing(5)) > 0, "the branch goes around the s_nop");
    assert_eq!(found(Listing::at(0).push(readlane(20)).push(nop(5)).push(load_from(20)).push(end())), 0);
    assert!(found(Listing::at(0).push(readlane(20)).push(nop(4)).push(load_from(20)).push(end())) > 0);
}

#[test]
fn inserted_code_waits_for_its_own_and_for_original_loads() {
    let load = || op("s_load_dword").memory(Memory::Scalar, Counters::LGKM, Flags::LOAD).writes(Reg::scalar(20, 1));
    let add = || op("s_add_u32").writes(Reg::scalar(21, 1)).reads(Reg::scalar(20, 1)).int(1);
    let found = |listing: Listing, inserted: &[u32]| {
        let body = body("gfx90a", listing);
        let mut findings = Vec::new();
        outstanding::check(
            &body,
            &Cfg::build(&body),
            &Alignment::of_inserted(&body, inserted),
            &WaitSummaries::none(),
            RegSet::ALL,
            &mut findings,
        );
        findings.len()
    };
    let without = || Listing::at(0).push(load()).push(add()).push(end());
    let with =
        |count| Listing::at(0).push(load()).push(op("s_waitcnt").wait(None, Some(count), None)).push(add()).push(end());
    for inserted in [&[0][..], &[1], &[0, 1]] {
        assert_eq!(found(without(), inserted), 1, "{inserted:?}");
    }
    assert_eq!(found(without(), &[]), 0);
    assert_eq!(found(with(0), &[0, 1, 2]), 0);
    assert_eq!(found(with(1), &[0, 1, 2]), 1, "scalar loads return out of order: only 0 is enough");
}

#[test]
fn states_agree_only_on_what_is_the_same_on_both_paths() {
    let s4 = Reg::scalar(4, 1);
    let mut state = State::same();
    let mut other = State::same();
    other.set(s4, 0, Word::Other(7));
    assert!(state.join(&other, 9));
    assert_eq!(state.differing(s4), Some((s4, Some(7))));
    assert!(!state.join(&other, 9), "nothing changes any more");
    // Inserted code keeps something in a register that the original sets on one way: it is still there on both.
    let mut unset = State::same();
    unset.undefined = RegSet::from_iter([s4]);
    unset.set(s4, 0, Word::Flag(1));
    let mut set = State::same();
    set.set(s4, 0, Word::Flag(1));
    unset.join(&set, 9);
    assert_eq!(unset.word(s4, 0), Word::Flag(1));
    // Both machines write it: it is the same again. A copy of what it was is not.
    let mut state = State::same();
    state.set(Reg::scalar(5, 1), 0, Word::Original(4));
    state.both_write(&RegSet::from_iter([s4]), &RegSet::from_iter([s4]), 3);
    assert_eq!(state.word(Reg::scalar(5, 1), 0), Word::Other(3));
    assert_eq!(state.differing(s4), None);
    // SCC as a flag is stale as soon as SCC changes.
    let mut state = State::same();
    state.set(Reg::scalar(5, 1), 0, Word::Flag(1));
    state.both_write(&RegSet::from_iter([Reg::SCC]), &RegSet::from_iter([Reg::SCC]), 3);
    assert_eq!(state.word(Reg::scalar(5, 1), 0), Word::Other(3));
    // Program counters differ by a constant until it is added.
    let mut state = State::same();
    let pair = Reg::scalar(4, 2);
    state.both_write(&RegSet::from_iter([pair]), &RegSet::from_iter([pair]), 1);
    state.both_read_counter(pair, 0x1004, 0x9004);
    assert_eq!(state.differing(pair).map(|(part, _)| part), Some(s4));
    state.set(s4, 0, Word::Constant(0x1004));
    assert_eq!(state.differing(pair), None);
    assert!(state.differing(Reg::scalar(scalar::MODE, 1)).is_none());
}

#[test]
fn lanes_hold_what_was_put_there_until_the_register_is_written() {
    let s4 = Reg::scalar(4, 1);
    let mut state = State::same();
    state.write_lane(7, 3, Word::Original(4));
    state.write_lane(7, 4, Word::Original(5));
    let lane = |vector, lane| Some(Word::Lane(vector, lane));
    assert_eq!(
        (state.lane(7, 3), state.lane(7, 4), state.lane(8, 3)),
        (Some(Word::Original(4)), Some(Word::Original(5)), lane(8, 3))
    );
    let mut other = state.clone();
    other.write_lane(7, 4, Word::Other(1));
    state.join(&other, 2);
    assert_eq!((state.lane(7, 3), state.lane(7, 4)), (Some(Word::Original(4)), None));
    state.clobber_vector(Reg::vector(6, 2));
    assert_eq!(state.lane(7, 3), None);
    // A lane that was kept and put back makes the register what it was; of another register or lane, or from before a
    // write, it does not.
    let (v8, mut state) = (Reg::vector(8, 1), State::same());
    state.set(s4, 0, lane(8, 3).expect("a lane"));
    state.write_lane(8, 3, Word::Constant(1));
    assert_eq!(state.differing(v8), Some((v8, None)));
    let mut elsewhere = state.clone();
    elsewhere.write_lane(8, 4, elsewhere.word(s4, 0));
    elsewhere.write_lane(8, 3, elsewhere.word(s4, 0));
    assert!(elsewhere.differing(v8).is_some());
    let mut written = state.clone();
    written.both_write(&RegSet::from_iter([v8]), &RegSet::EMPTY, 5);
    written.write_lane(8, 3, written.word(s4, 0));
    assert!(written.differing(v8).is_some());
    state.write_lane(8, 3, state.word(s4, 0));
    assert_eq!(state.differing(v8), None);
}
