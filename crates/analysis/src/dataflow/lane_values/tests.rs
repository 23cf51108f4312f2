use super::*;
use crate::cfg::Cfg;
use crate::dataflow::Summaries;
use crate::kernel::Body;
use crate::kernel::assembly::{Listing, Op, branch_scc1, end, jump, op};
use wavetap_amdgpu::{Access, Implicit};

fn v(n: u16) -> Reg {
    Reg::vector(n, 1)
}

fn s(n: u16) -> Reg {
    Reg::scalar(n, 1)
}

fn make(name: &'static str, to: u16) -> Op {
    op(name).writes(v(to)).implicit(Implicit::EXEC, Implicit::empty())
}

/// What the last instruction that is named so reads in its first register, in a wave of a workgroup, and by how much
/// the only symbol moves in a loop.
fn value_in(body: &Body, workgroup: [u32; 3], wave: u32) -> (LaneValue, Option<i32>) {
    let cfg = Cfg::build(body);
    let summaries = Summaries::none();
    let definitions = Definitions::new(body, &cfg, &summaries);
    let used = body.ids().rfind(|id| body.inst(*id).name() == "use").expect("a use");
    let address = body.inst(used).operands.iter().find(|operand| operand.access == Access::Read).expect("an operand");
    let given = if workgroup[1] > 1 { 3 } else { 1 };
    let shape = WaveShape::new(workgroup, 64, wave, given).expect("such a wave");
    let mut values = LaneValues::new(&definitions, shape);
    let value = values.operand(used, address);
    let step = match &value {
        LaneValue::Sum(sum) => sum.terms.first().and_then(|term| values.step(term.symbol)),
        LaneValue::Opaque(_) => None,
    };
    (value, step)
}

fn using(listing: Listing, reg: u16) -> Body {
    listing.push(op("use").reads(v(reg)).implicit(Implicit::EXEC, Implicit::empty())).push(end()).kernel()
}

fn used(listing: Listing, reg: u16) -> LaneValue {
    value_in(&using(listing, reg), [256, 1, 1], 1).0
}

/// The lanes' numbers of what has no symbols.
fn numbers(value: &LaneValue) -> Option<Vec<i32>> {
    match value {
        LaneValue::Sum(sum) if sum.is_known() => Some((0..64).map(|lane| sum.offsets.lane(lane)).collect()),
        _ => None,
    }
}

fn lanes(function: impl Fn(i32) -> i32) -> Option<Vec<i32>> {
    Some((0..64).map(function).collect())
}

#[test]
fn ids_are_those_of_the_wave() {
    let id = |workgroup, wave, listing: Listing, reg| numbers(&value_in(&using(listing, reg), workgroup, wave).0);
    assert_eq!(id([256, 1, 1], 2, Listing::at(0), 0), lanes(|lane| 128 + lane));
    let y = || Listing::at(0).push(make("v_bfe_u32", 1).reads(v(0)).int(10).int(10));
    assert_eq!(id([16, 16, 1], 1, y(), 1), lanes(|lane| 4 + lane / 16));
    let x = || Listing::at(0).push(make("v_and_b32", 1).literal(0x3ff).reads(v(0)));
    assert_eq!(id([16, 16, 1], 1, x(), 1), lanes(|lane| lane % 16));
    assert_eq!(id([5, 3, 2], 0, x(), 1).map(|lanes| lanes[..7].to_vec()), Some(vec![0, 1, 2, 3, 4, 0, 1]));
    assert_eq!(WaveShape::new([5, 3, 2], 64, 0, 3).map(|shape| shape.active()), Some(30));
    assert_eq!(WaveShape::new([5, 3, 2], 64, 1, 3), None);
}

#[test]
fn known_numbers_are_computed() {
    let of = |op: Op| numbers(&used(Listing::at(0).push(op), 1));
    assert_eq!(of(make("v_and_b32", 1).int(31).reads(v(0))), lanes(|lane| lane % 32), "x modulo 32");
    assert_eq!(of(make("v_lshrrev_b32", 1).int(5).reads(v(0))), lanes(|lane| (64 + lane) / 32));
    assert_eq!(of(make("v_xor_b32", 1).int(3).reads(v(0))), lanes(|lane| (64 + lane) ^ 3));
    assert_eq!(of(make("v_mul_lo_u32", 1).reads(v(0)).reads(v(0))), lanes(|lane| (64 + lane) * (64 + lane)));
    assert_eq!(of(make("v_min_u32", 1).literal(100).reads(v(0))), lanes(|lane| (64 + lane).min(100)));
    // A quotient by 3.
    let third = make("v_mul_hi_u32", 1).reads(v(0)).literal(0xaaaa_aaab);
    let listing = Listing::at(0).push(third).push(make("v_lshrrev_b32", 2).int(1).reads(v(1)));
    assert_eq!(numbers(&used(listing, 2)), lanes(|lane| (64 + lane) / 3));
    let listing = Listing::at(0)
        .push(make("v_mbcnt_lo_u32_b32", 1).int(-1).int(0))
        .push(make("v_mbcnt_hi_u32_b32", 2).int(-1).reads(v(1)));
    assert_eq!(numbers(&used(listing, 2)), lanes(|lane| lane));
}

#[test]
fn what_is_the_same_in_all_lanes_is_a_symbol() {
    // s4 << 8 | x, and the lower bits of that.
    let index = || Listing::at(0).push(make("v_lshl_or_b32", 1).reads(s(4)).int(8).reads(v(0)));
    let LaneValue::Sum(sum) = used(index(), 1) else { panic!("a sum") };
    assert_eq!((sum.offsets.lane(5), sum.terms.len(), sum.unknown_zeros()), (69, 1, 8));
    let row = index().push(make("v_and_b32", 2).int(31).reads(v(1)));
    assert_eq!(numbers(&used(row, 2)), lanes(|lane| lane % 32));
    let column = index().push(make("v_lshrrev_b32", 2).int(5).reads(v(1)));
    let LaneValue::Sum(sum) = used(column, 2) else { panic!("a sum") };
    assert_eq!((sum.offsets.lane(40), &sum.terms[0].factor), (3, &Offsets::Same(8)));
    // Times a number that is not in the code.
    let times = || Listing::at(0).push(make("v_mul_lo_u32", 1).reads(v(0)).reads(s(4)));
    let LaneValue::Sum(sum) = used(times(), 1) else { panic!("a sum") };
    assert_eq!((sum.terms[0].factor.lane(5), sum.is_uniform()), (69, false));
    let squared = times().push(make("v_mul_lo_u32", 2).reads(v(1)).reads(v(1)));
    assert_eq!(used(squared, 2), LaneValue::Opaque(Opaque::Stride));
    // A shift by what is not known, with the lanes' numbers below or above that.
    let or = Listing::at(0).push(make("v_lshl_or_b32", 1).reads(s(4)).reads(s(5)).reads(v(0)));
    assert_eq!(used(or, 1), LaneValue::Opaque(Opaque::Operation), "bits may be set in both");
    let add = Listing::at(0).push(make("v_lshl_add_u32", 1).reads(s(4)).reads(s(5)).reads(v(0)));
    let LaneValue::Sum(sum) = used(add, 1) else { panic!("a sum") };
    assert_eq!((sum.offsets.lane(5), sum.terms.len()), (69, 1));
    assert_eq!(
        used(Listing::at(0).push(make("v_add_u32", 1).reads(v(0)).reads(v(9))), 1),
        LaneValue::Opaque(Opaque::Operation)
    );
}

#[test]
fn loops_move_all_lanes_by_a_step() {
    let rounds = |more: Op| {
        Listing::at(0)
            .push(make("v_lshlrev_b32", 1).int(2).reads(v(0)))
            .label("again")
            .push(op("use").reads(v(1)).implicit(Implicit::EXEC, Implicit::empty()))
            .push(more)
            .push(branch_scc1("again"))
            .push(end())
            .kernel()
    };
    let of = |more: Op| value_in(&rounds(more), [256, 1, 1], 0);
    let (value, step) = of(make("v_add_u32", 1).literal(4096).reads(v(1)));
    let LaneValue::Sum(sum) = value else { panic!("a sum") };
    assert_eq!((sum.offsets.lane(3), sum.unknown_zeros(), step), (12, 12, Some(4096)));
    let (value, step) = of(make("v_add_u32", 1).reads(v(1)).reads(s(4)));
    let LaneValue::Sum(sum) = value else { panic!("a sum") };
    assert_eq!((sum.offsets.lane(3), sum.unknown_zeros(), step), (12, 0, None), "by something");
    assert_eq!(of(make("v_add_u32", 1).reads(v(1)).reads(v(0))).0, LaneValue::Opaque(Opaque::Paths), "each its own");
    assert_eq!(of(make("v_lshlrev_b32", 1).int(1).reads(v(1))).0, LaneValue::Opaque(Opaque::Paths));
}

#[test]
fn lanes_that_went_other_ways_have_other_values() {
    let saved = Reg::scalar(2, 2);
    let narrow = || op("s_and_saveexec_b64").writes(saved).reads(Reg::VCC).implicit(Implicit::EXEC, Implicit::EXEC);
    let restore = || op("s_or_b64").writes(Reg::EXEC).reads(Reg::EXEC).reads(saved);
    let shift = |by: i8| make("v_lshlrev_b32", 1).int(by).reads(v(0));
    let some = || Listing::at(0).push(shift(2)).push(narrow()).push(make("v_mov_b32", 1).int(7));
    assert_eq!(numbers(&used(some(), 1)), lanes(|_| 7), "in those lanes");
    assert_eq!(used(some().push(restore()), 1), LaneValue::Opaque(Opaque::Paths));
    // A branch of the whole wave leaves all lanes alike, if both ways do.
    let either = |by| {
        let listing = Listing::at(0).push(branch_scc1("other")).push(shift(2)).push(jump("on"));
        used(listing.label("other").push(shift(by)).label("on"), 1)
    };
    assert_eq!(numbers(&either(2)), lanes(|lane| 4 * (64 + lane)));
    assert_eq!(either(3), LaneValue::Opaque(Opaque::Paths));
}

/// What a register holds at the end of a kernel, and how many definitions were looked at for that.
fn value_and_work(listing: Listing, reg: u16) -> (LaneValue, u64) {
    let body = using(listing, reg);
    let cfg = Cfg::build(&body);
    let summaries = Summaries::none();
    let definitions = Definitions::new(&body, &cfg, &summaries);
    let used = body.ids().rfind(|id| body.inst(*id).name() == "use").expect("a use");
    let operand = body.inst(used).operands.iter().find(|operand| operand.access == Access::Read).expect("an operand");
    let mut values = LaneValues::new(&definitions, WaveShape::new([256, 1, 1], 64, 0, 1).expect("such a wave"));
    let before = values.work;
    let value = values.operand(used, operand);
    (value, before - values.work)
}

fn label(name: &str, number: usize) -> &'static str {
    format!("{name}{number}").leak()
}

/// So many places where the wave goes one of two ways, each of which adds to all lanes.
fn diamonds(count: usize) -> Listing {
    let add = |by| make("v_add_u32", 1).int(by).reads(v(1));
    (0..count).fold(Listing::at(0).push(make("v_lshlrev_b32", 1).int(2).reads(v(0))), |listing, n| {
        let (other, on) = (label("other", n), label("on", n));
        listing.push(branch_scc1(other)).push(add(4)).push(jump(on)).label(other).push(add(8)).label(on)
    })
}

#[test]
fn a_row_of_diamonds_costs_each_of_them_once() {
    // 4 x, and something that is the same in all lanes and a multiple of 4.
    let expected = |value: &LaneValue| match value {
        LaneValue::Sum(sum) => (sum.offsets.lane(5), sum.unknown_zeros()) == (20, 2),
        LaneValue::Opaque(_) => false,
    };
    let ((value, short), (longer, work)) = (value_and_work(diamonds(10), 1), value_and_work(diamonds(40), 1));
    assert!(expected(&value) && expected(&longer), "{value:?}, {longer:?}");
    assert!(work <= 5 * short, "{short} and {work}");
    // Deeper than is looked, nothing is known, and that is known soon.
    let ((value, short), (longer, work)) = (value_and_work(diamonds(100), 1), value_and_work(diamonds(400), 1));
    assert_eq!((value, longer), (LaneValue::Opaque(Opaque::Operation), LaneValue::Opaque(Opaque::Operation)));
    assert!(work <= 5 * short, "{short} and {work}");
}

/// Two paths that cross so many times: each place where they meet again has what both had.
fn braid(count: usize) -> Listing {
    let first = Listing::at(0).push(make("v_lshlrev_b32", 1).int(2).reads(v(0))).push(branch_scc1("left0"));
    let first = first.push(make("v_add_u32", 1).int(4).reads(v(1))).push(jump("right0"));
    let crossed = (0..count).fold(first, |listing, n| {
        let next = |listing: Listing| listing.push(branch_scc1(label("left", n + 1))).push(jump(label("right", n + 1)));
        next(next(listing.label(label("left", n))).label(label("right", n)))
    });
    crossed.label(label("left", count)).push(jump("last")).label(label("right", count)).label("last")
}

#[test]
fn paths_that_cross_cost_each_place_once() {
    let ((value, short), (longer, work)) = (value_and_work(braid(20), 1), value_and_work(braid(80), 1));
    for value in [value, longer] {
        let LaneValue::Sum(sum) = value else { panic!("{value:?}") };
        assert_eq!((sum.offsets.lane(5), sum.unknown_zeros()), (20, 2));
    }
    assert!(work <= 5 * short, "{short} and {work}");
}

#[test]
fn loops_in_each_other_are_looked_at_within_a_bound() {
    // Each loop moves by what is not a multiple of what the one around it moves by, so that all are looked at again.
    let nest = |depth: usize| {
        let first = Listing::at(0).push(make("v_lshlrev_b32", 1).int(8).reads(v(0)));
        let entered = (0..depth).fold(first, |listing, n| {
            listing.label(label("head", n)).push(make("v_add_u32", 1).int(1 << (6 - n.min(6))).reads(v(1)))
        });
        (0..depth).rev().fold(entered, |listing, n| listing.push(branch_scc1(label("head", n))))
    };
    for depth in [3, 30, 90] {
        let (_, work) = value_and_work(nest(depth), 1);
        assert!(work < 4 * WORK, "{work} at depth {depth}");
    }
}
