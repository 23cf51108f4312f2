//! LEO's four prunings and factors on hand-built kernels, each with the numbers worked out by hand.

use std::collections::BTreeMap;

use super::*;
use crate::blame::{Blame, BlamedStall, StallCycles, blame_stalls};
use crate::kernel::KernelInputs;
use crate::tests::{of_code, scalar_site, slice_counted, totals};
use wavetap_amdgpu::{Counters, Flags, Memory, Reg};
use wavetap_analysis::kernel::Body;
use wavetap_analysis::kernel::assembly::{Listing, Op, branch_scc1, end, op};
use wavetap_code::SourceLine;
use wavetap_profile::file::KernelTotals;

fn load(to: u16, address: u16) -> Op {
    op("global_load_dword")
        .memory(Memory::Global, Counters::VM, Flags::LOAD)
        .writes(Reg::vector(to, 1))
        .reads(Reg::vector(address, 2))
}

fn vmcnt(count: u8) -> Op {
    op("s_waitcnt").wait(Some(count), None, None)
}

fn add(to: u16, from: u16) -> Op {
    op("v_add_u32").writes(Reg::vector(to, 1)).reads(Reg::vector(from, 1))
}

fn blame(body: &Body, totals: Option<&KernelTotals>, address: u64, stall: StallCycles) -> Vec<(u64, u32)> {
    let stalls = BTreeMap::from([(address, stall)]);
    let counted = totals.map(KernelCounts::of);
    let by_leo = |code: &Code<'_>| blame_stalls(Blame::Leo, &KernelInputs::new(code).with_counts(counted), &stalls);
    let blamed = of_code(body, counted, |_| None, by_leo);
    let [BlamedStall { address: stalled, causes }] = blamed.as_slice() else { panic!("one stall: {blamed:?}") };
    assert_eq!(*stalled, address);
    assert!((causes.iter().map(|cause| cause.share).sum::<f64>() - 1.0).abs() < 1e-9, "{causes:?}");
    causes.iter().map(|cause| (cause.address, (1000.0 * cause.share).round() as u32)).collect()
}

fn because(reasons: &[(&str, u64)]) -> StallCycles {
    let reasons: BTreeMap<String, u64> =
        reasons.iter().map(|(reason, cycles)| ((*reason).to_owned(), *cycles)).collect();
    StallCycles { cycles: reasons.values().sum(), reasons, ..StallCycles::default() }
}

#[test]
fn waits_are_traced_back_by_counting() {
    let three =
        |last: Op| Listing::at(0).push(load(1, 10)).push(load(2, 12)).push(load(3, 14)).push(last).push(end()).kernel();
    // Distances 3, 2 and 1: a third, a half and one, of 11/6.
    assert_eq!(blame(&three(vmcnt(0)), None, 0xc, 1.into()), [(8, 545), (4, 273), (0, 182)]);
    assert_eq!(blame(&three(vmcnt(1)), None, 0xc, 1.into()), [(4, 600), (0, 400)]);
    assert_eq!(blame(&three(vmcnt(2)), None, 0xc, 1.into()), [(0, 1000)]);
    // A wait for three of three has nothing to wait for: it is its own cause.
    assert_eq!(blame(&three(vmcnt(3)), None, 0xc, 1.into()), [(0xc, 1000)]);
}

#[test]
fn earlier_waits_bound_what_is_left() {
    let kernel = |earlier: u8, later: u8| {
        let listing = Listing::at(0).push(load(1, 10)).push(load(2, 12)).push(load(3, 14)).push(vmcnt(earlier));
        listing.push(load(4, 16)).push(vmcnt(later)).push(end()).kernel()
    };
    assert_eq!(blame(&kernel(0, 0), None, 0x14, 1.into()), [(0x10, 1000)]);
    // One of the three is left, and the new one: distances 3 and 1.
    assert_eq!(blame(&kernel(1, 0), None, 0x14, 1.into()), [(0x10, 750), (0x8, 250)]);
    assert_eq!(blame(&kernel(1, 1), None, 0x14, 1.into()), [(0x8, 1000)]);
    // Two are left, and one of the two is allowed to stay: the older one is waited for.
    assert_eq!(blame(&kernel(2, 2), None, 0x14, 1.into()), [(0x4, 1000)]);
    assert_eq!(blame(&kernel(1, 2), None, 0x14, 1.into()), [(0x14, 1000)], "two are outstanding, and two may be");
}

#[test]
fn distances_are_means_over_paths_and_loops_are_entered() {
    // load; branch over two additions; wait: 2 or 4 instructions.
    let body = Listing::at(0)
        .push(load(1, 10))
        .push(branch_scc1("join"))
        .push(add(5, 6))
        .push(add(7, 8))
        .label("join")
        .push(load(2, 12))
        .push(vmcnt(0))
        .push(end());
    let body = body.kernel();
    // Means 4 and 1.
    assert_eq!(blame(&body, None, 0x14, 1.into()), [(0x10, 800), (0x0, 200)]);
    // The load at the end of a loop is waited for at its head.
    let body = Listing::at(0)
        .push(load(1, 10))
        .label("head")
        .push(vmcnt(0))
        .push(add(5, 1))
        .push(load(1, 10))
        .push(branch_scc1("head"))
        .push(end())
        .kernel();
    // One instruction from before the loop, two round it.
    assert_eq!(blame(&body, None, 0x4, 1.into()), [(0x0, 667), (0xc, 333)]);
}

#[test]
fn path_counts_do_not_overflow() {
    let mut listing = Listing::at(0).push(load(1, 10));
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let labels: Vec<&'static str> =
        (0..1500).map(|n| &*Box::leak(format!("{}{n}", NAMES[n % 4]).into_boxed_str())).collect();
    for label in &labels {
        listing = listing.push(branch_scc1(label)).push(add(5, 6)).label(label).push(op("s_x"));
    }
    let body = listing.push(load(2, 12)).push(vmcnt(0)).push(end()).kernel();
    let (first, wait) = (body.at(0).expect("the load"), InstId(body.len() as u32 - 2));
    // Each diamond is 2 or 3 instructions: 2.5 on average, 1500 times; then the load and the wait.
    let mean = |code: &Code<'_>| Distances::new(Graph { code }).mean(&[first], wait)[0];
    let mean = of_code(&body, None, |_| None, mean);
    assert!((mean - (1500.0 * 2.5 + 2.0)).abs() < 1e-6, "{mean}");
}

#[test]
fn issue_counts_weigh_and_what_never_ran_is_pruned() {
    let body = Listing::at(0)
        .push(load(1, 10))
        .push(branch_scc1("join"))
        .push(load(2, 12))
        .label("join")
        .push(vmcnt(0))
        .push(end())
        .kernel();
    // Distances 2.5 and 1: 2/7 and 5/7.
    assert_eq!(blame(&body, None, 0xc, 1.into()), [(0x8, 714), (0x0, 286)]);
    // 100 and 25 issues: 2/7 × 4/5 and 5/7 × 1/5.
    let profile = totals(100, vec![scalar_site(0x4, 100, 75)]);
    assert_eq!(blame(&body, Some(&profile), 0xc, 1.into()), [(0x0, 615), (0x8, 385)]);
    let never = totals(100, vec![scalar_site(0x4, 100, 100)]);
    assert_eq!(blame(&body, Some(&never), 0xc, 1.into()), [(0x0, 1000)]);
}

#[test]
fn categories_prune_and_weigh() {
    // v3 is an addition's, v1 a load's, and the last addition reads both.
    let use_both = op("v_add_u32").writes(Reg::vector(4, 1)).reads(Reg::vector(1, 1)).reads(Reg::vector(3, 1));
    let body = Listing::at(0).push(load(1, 10)).push(add(3, 9)).push(use_both).push(end()).kernel();
    assert_eq!(blame(&body, None, 0x8, 10.into()), [(0x4, 667), (0x0, 333)]);
    assert_eq!(blame(&body, None, 0x8, because(&[("ALU_DEPENDENCY", 10)])), [(0x4, 1000)]);
    assert_eq!(blame(&body, None, 0x8, because(&[("WAITCNT", 10)])), [(0x0, 1000)]);
    // Distance 1/3 and 2/3, match 3/4 and 1/4.
    assert_eq!(blame(&body, None, 0x8, because(&[("WAITCNT", 30), ("ALU_DEPENDENCY", 10)])), [(0x0, 600), (0x4, 400)]);
    // Reasons of no category prune nothing, and weigh equally.
    assert_eq!(blame(&body, None, 0x8, because(&[("SLEEP_WAIT", 5)])), [(0x4, 667), (0x0, 333)]);
}

#[test]
fn latency_that_has_passed_prunes_on_all_paths() {
    // The greatest latency of a vector operation on gfx90a is 8 cycles, two issue slots of 4.
    let between = |instructions: usize| {
        let listing = (0..instructions).fold(Listing::at(0).push(add(3, 9)), |listing, _| listing.push(op("s_x")));
        listing.push(add(4, 3)).push(end()).kernel()
    };
    let stalled = |instructions: u64| 4 * (instructions + 1);
    assert_eq!(blame(&between(1), None, stalled(1), 1.into()), [(0, 1000)]);
    assert_eq!(blame(&between(2), None, stalled(2), 1.into()), [(stalled(2), 1000)], "hidden: the stall is its own");
    // One way is short enough.
    let body = Listing::at(0)
        .push(add(3, 9))
        .push(branch_scc1("use"))
        .push(op("s_x"))
        .push(op("s_x"))
        .label("use")
        .push(add(4, 3))
        .push(end())
        .kernel();
    assert_eq!(blame(&body, None, 0x10, 1.into()), [(0, 1000)]);
    // Waits are not pruned by it.
    let mut listing = Listing::at(0).push(load(1, 10));
    for _ in 0..600 {
        listing = listing.push(op("s_x"));
    }
    assert_eq!(blame(&listing.push(vmcnt(0)).push(end()).kernel(), None, 4 * 601, 1.into()), [(0, 1000)]);
}

#[test]
fn chains_have_the_same_structure_and_stalls_as_ours() {
    let body = Listing::at(0)
        .push(load(10, 20))
        .push(vmcnt(0))
        .push(op("v_lshl_add_u32").writes(Reg::vector(12, 2)).reads(Reg::vector(10, 1)))
        .push(load(1, 12))
        .push(vmcnt(0))
        .push(end())
        .kernel();
    let slice = slice_counted(&body, None, |_| None);
    let cycles: u64 = slice.chains.iter().map(|chain| chain.predicted_cycles).sum();
    let source = |address| (address == 0xc).then(|| SourceLine { file: "dir/k.hip".to_owned(), line: 7 });
    let slice = of_code(&body, None, source, |code| slice.blamed_as_leo(code, None));
    assert_eq!(slice.chains.iter().map(|chain| chain.predicted_cycles).sum::<u64>(), cycles);
    let second = slice.chains.iter().find(|chain| chain.address == 0x10).expect("the second wait");
    assert_eq!((second.counter.as_str(), second.share, second.evidence.stable), ("vmcnt", 1.0, true));
    assert_eq!(second.cause, Cause::Leo { name: "global_load_dword".into() });
    assert_eq!(second.path[1].source.as_ref().map(|source| source.line), Some(7));
    let path: Vec<_> = second.path.iter().map(|step| (step.edge, step.address)).collect();
    // The addition is adjacent; to the first load its latency is far longer than what lies between.
    assert_eq!(
        path,
        [(StepEdge::Stall, 0x10), (StepEdge::Wait, 0xc), (StepEdge::Register, 0x8), (StepEdge::Register, 0x0)]
    );
}

#[test]
fn stalls_without_a_cause_have_a_class() {
    let body = Listing::at(0).push(op("s_barrier")).push(end()).kernel();
    let class = |reasons: &[(&str, u64)]| {
        let class =
            |code: &Code<'_>| Blamer::new(code, &BlockCounts::of_code(code, None)).class(InstId(0), &because(reasons));
        of_code(&body, None, |_| None, class)
    };
    assert_eq!(class(&[("BARRIER_WAIT", 5), ("NO_INSTRUCTION_AVAILABLE", 2)]), StallClass::Synchronisation);
    assert_eq!(class(&[("NO_INSTRUCTION_AVAILABLE", 2)]), StallClass::InstructionFetch);
    assert_eq!(class(&[]), StallClass::Scheduler);
    assert_eq!(blame(&body, None, 0, because(&[("BARRIER_WAIT", 5)])), [(0, 1000)]);
}

#[test]
fn rules_by_themselves_say_what_slices_say() {
    let listing = Listing::at(0).push(load(1, 10)).push(branch_scc1("join")).push(op("s_x")).push(load(2, 12));
    let body = listing.label("join").push(vmcnt(0)).push(end()).kernel();
    let profile = totals(100, vec![scalar_site(0x4, 100, 75)]);
    let counted = Some(KernelCounts::of(&profile));
    let stalls = BTreeMap::from([(0x10, 7.into()), (0x14, 0.into()), (0x6, 9.into())]);
    for rule in [Blame::Exposed, Blame::Leo] {
        let mut slice = slice_counted(&body, counted, |_| None);
        if rule == Blame::Leo {
            slice = of_code(&body, counted, |_| None, |code| slice.blamed_as_leo(code, counted));
        }
        let shown: BTreeMap<u64, f64> = slice.chains.iter().map(|chain| (chain.path[1].address, chain.share)).collect();
        // What did not last, and where no instruction begins, is left out.
        let by_rule = |code: &Code<'_>| blame_stalls(rule, &KernelInputs::new(code).with_counts(counted), &stalls);
        let blamed = of_code(&body, counted, |_| None, by_rule);
        let [BlamedStall { address: 0x10, causes }] = blamed.as_slice() else { panic!("{blamed:?}") };
        assert_eq!(causes.len(), 2);
        assert!(
            causes.iter().all(|cause| (shown[&cause.address] - cause.share).abs() < 1e-9),
            "{rule:?}: {causes:?} and {shown:?}"
        );
        assert!(causes[0].share >= causes[1].share);
    }
}
