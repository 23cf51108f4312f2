//! Derived executions against counted ones on random walks; links and ranking on a hand-built kernel.

use std::collections::BTreeMap;

use super::counts::{BlockCounts, CountSource, KernelCounts};
use super::samples::{KernelSampled, mismatch_of_code};
use super::stall::StallCycles;
use super::*;
use wavetap_amd_code::{CodeInputs, graph, with_code};
use wavetap_amdgpu::{Branch, Counters, Flags, Implicit, Memory, Reg, Role};
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::{Summaries, WaitSummaries};
use wavetap_analysis::kernel::Body;
use wavetap_analysis::kernel::Flow;
use wavetap_analysis::kernel::assembly::{Listing, Op, branch_scc1, end, jump, op};
use wavetap_analysis::kernel::random::{Random, random_kernel};
use wavetap_code::{Code, Entries, Function, SourceLine};
use wavetap_memory::Launched;
use wavetap_profile::file::{KernelTotals, SiteTotals};
use wavetap_profile::pc_samples::{Place, SampleKind, SampledObject};
use wavetap_profile::probes::blocks;
use wavetap_profile::probes::branches::ScalarCounts;

mod samples;

/// What `then` makes of the code of a kernel that calls nothing, launched as was counted.
pub(super) fn of_code<R>(
    body: &Body,
    counted: Option<KernelCounts<'_>>,
    source: impl Fn(u64) -> Option<SourceLine>,
    then: impl FnOnce(&Code<'_>) -> R,
) -> R {
    let (waits, registers) = (WaitSummaries::none(), Summaries::none());
    let launched = Launched::of(None, counted.map(|counted| counted.totals));
    let inputs = CodeInputs { lines: &source, launched, ..CodeInputs::new(body, &waits, &registers) };
    with_code(&inputs, then).expect("code")
}

/// A kernel of this code that calls nothing.
pub(super) fn slice_counted(
    body: &Body,
    counted: Option<KernelCounts<'_>>,
    source: impl Fn(u64) -> Option<SourceLine>,
) -> KernelSlice {
    let slice = |code: &Code<'_>| slice_kernel(&KernelInputs::new(code).with_counts(counted), "test()");
    of_code(body, counted, source, slice)
}

/// The same, with waves known to have stalled.
fn slice_stalled(body: &Body, counted: Option<KernelCounts<'_>>, stalls: &BTreeMap<u64, StallCycles>) -> KernelSlice {
    let slice = |code: &Code<'_>| slice_kernel(&KernelInputs { code, counted, stalls }, "test()");
    of_code(body, counted, |_| None, slice)
}

/// The executions of the blocks of a kernel.
pub(super) fn derive(body: &Body, cfg: &Cfg, counted: Option<KernelCounts<'_>>) -> BlockCounts {
    BlockCounts::derive(&graph(cfg), &|address| body.at(address), counted)
}

pub(super) fn totals(waves: u64, sites: Vec<SiteTotals>) -> KernelTotals {
    KernelTotals {
        name: "test".to_owned(),
        demangled: "test".to_owned(),
        target: "gfx90a".to_owned(),
        dispatches: 1,
        waves,
        sites,
        ..KernelTotals::default()
    }
}

pub(super) fn scalar_site(address: u64, executions: u64, taken: u64) -> SiteTotals {
    let counts = ScalarCounts { executions, taken }.into();
    SiteTotals { address, instruction: String::new(), source: None, counts }
}

#[test]
fn derived_executions_are_those_of_random_walks() {
    let mut random = Random::new(23);
    let (mut derived, mut partly) = (0, 0);
    for round in 0..300 {
        let body = random_kernel(&mut random, 16);
        let cfg = Cfg::build(&body);
        let mut visits = vec![0_u64; body.len()];
        let mut taken = vec![0_u64; body.len()];
        let mut waves = 0;
        for _ in 0..20 {
            // Only waves that end are counted: an endless one never would be.
            let (mut path, mut at) = (Vec::new(), Some(body.entry()));
            while let (Some(id), true) = (at, path.len() < 200) {
                let next: Vec<_> = body.successors(id).collect();
                let choice = if next.is_empty() { 0 } else { random.below(next.len() as u64) as usize };
                path.push((id, matches!(body.flow(id), Flow::Branch(_)) && choice == 0));
                at = next.get(choice).copied();
            }
            if at.is_none() {
                waves += 1;
                for (id, took) in path {
                    visits[id.index()] += 1;
                    taken[id.index()] += u64::from(took);
                }
            }
        }
        let branches: Vec<_> = body.ids().filter(|id| matches!(body.flow(*id), Flow::Branch(_))).collect();
        let all = round % 2 == 0;
        let sites = branches.iter().filter(|_| all || random.below(2) == 0);
        let sites = sites.map(|id| scalar_site(body.address(*id), visits[id.index()], taken[id.index()])).collect();
        let counts = derive(&body, &cfg, Some(KernelCounts::of(&totals(waves, sites))));
        for block in cfg.ids() {
            let (found, source) = counts.of(block);
            assert_eq!(found.is_none(), source == CountSource::Unknown);
            match found {
                Some(found) => assert_eq!(found, visits[cfg.block(block).first.index()], "{block:?}"),
                // A jump to itself has one edge that nobody counted.
                None => assert!(!all || reaches_itself_without_branches(&cfg, block)),
            }
            derived += usize::from(source == CountSource::Derived);
            partly += usize::from(!all && source == CountSource::Unknown);
        }
    }
    assert!(derived > 300 && partly > 50, "{derived} {partly}");
}

/// Whether the block is in, or after, an endless cycle of plain jumps, into which flow conservation cannot look.
fn reaches_itself_without_branches(cfg: &Cfg, from: wavetap_base::entity::BlockId) -> bool {
    let mut at = from;
    for _ in 0..cfg.len() {
        match cfg.block(at).successors.as_slice() {
            [only] => at = only.block,
            _ => return false,
        }
    }
    true
}

#[test]
fn counted_blocks_need_no_branches() {
    let body = Listing::at(0).push(branch_scc1("out")).push(op("s_x")).label("out").push(end()).kernel();
    let cfg = Cfg::build(&body);
    let site = |block: wavetap_base::entity::BlockId, executions| SiteTotals {
        address: body.address(cfg.block(block).first),
        instruction: String::new(),
        source: None,
        counts: blocks::BlockCounts { executions, lanes: 0 }.into(),
    };
    let sites = cfg.ids().zip([10, 6, 9]).map(|(block, executions)| site(block, executions)).collect();
    // Two waves are missing, so nothing is derived: what was counted stays.
    let totals = KernelTotals { unfinished: 2, ..totals(10, sites) };
    let counts = derive(&body, &cfg, Some(KernelCounts::of(&totals)));
    let found: Vec<_> = cfg.ids().map(|block| counts.of(block)).collect();
    assert_eq!(found, [10, 6, 9].map(|executions| (Some(executions), CountSource::Counted)));
}

/// Where arguments are preloaded, waves may begin after the code that loads them: all pass what comes after it.
#[test]
fn waves_that_begin_after_the_entry_pass_what_follows() {
    use CountSource::{Counted, Derived, Unknown};
    let of = |listing: Listing, sites: Vec<SiteTotals>, also_begins: u64| -> Vec<_> {
        let body = listing.kernel();
        let cfg = Cfg::build(&body);
        let totals = totals(10, sites);
        let counted =
            KernelCounts { totals: &totals, entries: Entries { also_begins: Some(also_begins), ..Entries::PLAIN } };
        let counts = derive(&body, &cfg, Some(counted));
        cfg.ids().map(|block| counts.of(block)).collect()
    };
    // Loads, a jump to 12 over padding, and what all waves execute: straight on, or with a branch.
    let begin = || Listing::at(0).push(op("s_load")).push(jump("main")).push(op("s_padding")).label("main");
    assert_eq!(of(begin().push(op("s_x")).push(end()), Vec::new(), 12), [(None, Unknown), (Some(10), Derived)]);
    let branches =
        || begin().push(op("s_x")).push(branch_scc1("out")).push(op("s_y")).label("out").push(op("s_z")).push(end());
    let expected = [(None, Unknown), (Some(10), Counted), (Some(6), Derived), (Some(10), Derived)];
    assert_eq!(of(branches(), vec![scalar_site(16, 10, 4)], 12), expected);
    // What is counted at the branch says that of the way to the end.
    assert_eq!(of(branches(), Vec::new(), 12)[1], (Some(10), Derived));
    // Nothing begins there; waves come there again; some do not come there.
    let unknown = |listing: Listing, at| of(listing, Vec::new(), at).iter().all(|count| *count == (None, Unknown));
    assert!(unknown(begin().push(op("s_x")).push(end()), 16));
    assert!(unknown(begin().push(op("s_x")).push(branch_scc1("main")).push(end()), 12));
    let skips = Listing::at(0).push(branch_scc1("out")).push(jump("main")).label("main").push(op("s_x")).label("out");
    assert!(unknown(skips.push(end()), 8));
}

#[test]
fn contradictions_and_lost_waves_give_no_derived_numbers() {
    let body = Listing::at(0).push(branch_scc1("out")).push(op("s_x")).label("out").push(end()).kernel();
    let cfg = Cfg::build(&body);
    let of = |totals: &KernelTotals| -> Vec<_> {
        let counts = derive(&body, &cfg, Some(KernelCounts::of(totals)));
        cfg.ids().map(|block| counts.of(block)).collect()
    };
    let good = totals(10, vec![scalar_site(0, 10, 4)]);
    use CountSource::{Counted, Derived, Unknown};
    assert_eq!(of(&good), [(Some(10), Counted), (Some(6), Derived), (Some(10), Derived)]);
    let fewer = totals(9, vec![scalar_site(0, 10, 4)]);
    assert_eq!(of(&fewer)[1], (None, Unknown));
    let impossible = totals(10, vec![scalar_site(0, 10, 11)]);
    assert_eq!(of(&impossible)[1], (None, Unknown));
    let dropped = KernelTotals { dropped: 1, ..good.clone() };
    assert_eq!(of(&dropped), [(Some(10), Counted), (None, Unknown), (None, Unknown)]);
    // A call that ends some of the waves.
    let ended =
        derive(&body, &cfg, Some(KernelCounts { totals: &good, entries: Entries { flows: false, ..Entries::PLAIN } }));
    assert_eq!(cfg.ids().map(|block| ended.of(block)).collect::<Vec<_>>(), of(&dropped));
}

fn load(name: &'static str, memory: Memory, counters: Counters) -> Op {
    op(name).memory(memory, counters, Flags::LOAD).writes(Reg::vector(0, 1))
}

#[test]
fn waits_are_ranked_by_executions_times_latency() {
    let body = Listing::at(0x1000)
        .push(load("global_load_dword", Memory::Global, Counters::VM))
        .push(op("s_waitcnt").wait(Some(0), None, None))
        .label("again")
        .push(load("ds_read_b32", Memory::Lds, Counters::LGKM))
        .push(op("s_waitcnt").wait(None, Some(0), None))
        .push(branch_scc1("again"))
        .push(op("s_endpgm").branch(Branch::End))
        .kernel();
    let profile = totals(2, vec![scalar_site(0x1010, 2000, 1998)]);
    let source = |address| (address == 0x1008).then(|| SourceLine { file: "k.hip".to_owned(), line: 7 });
    let slice = slice_counted(&body, Some(KernelCounts::of(&profile)), source);
    let [first, second] = slice.waits.as_slice() else { panic!("two waits: {slice:?}") };
    assert_eq!((first.address, first.counter.as_str(), first.executions), (0x100c, "lgkmcnt", Some(2000)));
    assert_eq!(first.predicted_cycles, 2000 * 48);
    assert_eq!(first.executions_source, CountSource::Counted);
    assert_eq!(first.operations[0].source.as_ref().map(|source| source.line), Some(7));
    assert_eq!((second.address, second.executions, second.predicted_cycles), (0x1004, Some(2), 2 * 320));
    assert_eq!(second.operations[0].address, Some(0x1000));
    // Without a profile the latencies alone rank them.
    let blind = slice_counted(&body, None, |_| None);
    assert_eq!(blind.waits[0].address, 0x1004);
    assert_eq!(blind.waits[0].executions_source, CountSource::Unknown);
}

fn chains_of(body: &Body, totals: Option<&KernelTotals>) -> Vec<Chain> {
    let slice = slice_counted(body, totals.map(KernelCounts::of), |_| None);
    for wait in &slice.waits {
        let of_wait = |chain: &&Chain| chain.address == wait.address;
        let shares: Vec<f64> = slice.chains.iter().filter(of_wait).map(|chain| chain.share).collect();
        assert!(shares.is_empty() || (shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
    }
    slice.chains
}

/// The operations blamed, with their shares in percent.
fn blamed(chains: &[Chain]) -> Vec<(u64, u32)> {
    let blamed = |chain: &Chain| (chain.path[1].address, (100.0 * chain.share).round() as u32);
    chains.iter().map(blamed).collect()
}

fn global(to: u16, address: u16) -> Op {
    op("global_load_dword")
        .memory(Memory::Global, Counters::VM, Flags::LOAD)
        .writes(Reg::vector(to, 1))
        .reads(Reg::vector(address, 2))
}

fn vmcnt0() -> Op {
    op("s_waitcnt").wait(Some(0), None, None)
}

#[test]
fn the_load_that_arrives_last_is_blamed() {
    let body =
        Listing::at(0).push(global(1, 10)).push(op("s_x")).push(global(2, 12)).push(vmcnt0()).push(end()).kernel();
    let chains = chains_of(&body, None);
    // They may take as long as one another: the one that was issued later is a little more to blame.
    let [(0x8, last), (0x0, first)] = blamed(&chains)[..] else { panic!("{chains:?}") };
    assert!(last > first && first > 40, "{last} {first}");
    // One issue interval of gfx90a is what lies between.
    assert_eq!(chains[0].evidence.hidden_cycles, 4);
    assert_eq!(chains.iter().map(|chain| chain.predicted_cycles).sum::<u64>(), 320 - 4);
    assert!(chains[0].evidence.stable);
}

#[test]
fn what_is_hidden_is_not_blamed() {
    let with = |instructions: usize| {
        let mut listing = Listing::at(0).push(global(1, 10));
        for _ in 0..instructions {
            listing = listing.push(op("s_x"));
        }
        listing.push(vmcnt0()).push(end()).kernel()
    };
    assert_eq!(chains_of(&with(78), None)[0].predicted_cycles, 320 - 79 * 4);
    assert!(chains_of(&with(79), None).is_empty());
    // With latencies doubled it would be blamed, and is not: that is said of those that are.
    assert!(chains_of(&with(41), None)[0].evidence.stable);
}

#[test]
fn frequencies_divide_the_blame() {
    // A load on one way only, which 1 of 4 waves takes, after one that all issue.
    let listing = |last: Op| {
        Listing::at(0)
            .push(global(1, 10))
            .push(branch_scc1("join"))
            .push(last)
            .label("join")
            .push(vmcnt0())
            .push(end())
            .kernel()
    };
    let body = listing(global(2, 12));
    let profile = |taken| totals(100, vec![scalar_site(0x4, 100, taken)]);
    // Where both are outstanding they share; where one is, it is that.
    let shared = |taken| blamed(&chains_of(&body, Some(&profile(taken))));
    let [(0x0, always), (0x8, sometimes)] = shared(75)[..] else { panic!("{:?}", shared(75)) };
    assert!((80..=92).contains(&always) && always + sometimes == 100, "{always} {sometimes}");
    assert!(shared(50)[0].1 < always, "the more often, the more to blame");
    assert_eq!(blamed(&chains_of(&body, Some(&profile(100)))), [(0x0, 100)], "what was never executed is no cause");
    assert_eq!(shared(0).iter().map(|(_, share)| *share).collect::<Vec<_>>(), [50, 50], "both are always under way");
    let unknown = chains_of(&body, None);
    assert_eq!(unknown.iter().map(|chain| chain.evidence.executions).collect::<Vec<_>>(), [CountSource::Unknown; 2]);
    let shares: f64 = unknown.iter().map(|chain| chain.kernel_share).sum();
    assert!((shares - 1.0).abs() < 0.01, "{shares}");
}

#[test]
fn paths_lead_to_where_addresses_come_from() {
    let add = |to: u16, from: u16| op("v_add_u32").writes(Reg::vector(to, 1)).reads(Reg::vector(from, 1));
    let body = Listing::at(0)
        .push(global(10, 20))
        .push(vmcnt0())
        .push(add(11, 30))
        .push(add(5, 31))
        .push(global(1, 10))
        .push(vmcnt0())
        .push(end())
        .kernel();
    let chains = chains_of(&body, None);
    let path = |chain: &Chain| chain.path.iter().map(|step| (step.edge, step.address)).collect::<Vec<_>>();
    let second = chains.iter().find(|chain| chain.address == 0x14).expect("the second wait");
    let expected = [(Edge::Stall, 0x14), (Edge::Wait, 0x10), (Edge::Register, 0x0)];
    assert_eq!(path(second), expected, "the load that the address comes from takes longer than the addition");
}

#[test]
fn what_passes_at_one_wait_is_not_waited_for_at_the_next() {
    let vmcnt1 = || op("s_waitcnt").wait(Some(1), None, None);
    let body = Listing::at(0)
        .push(global(1, 10))
        .push(global(2, 12))
        .push(vmcnt1())
        .push(op("s_x"))
        .push(vmcnt0())
        .push(end())
        .kernel();
    let chains = chains_of(&body, None);
    let predicted = |wait: u64| {
        chains.iter().filter(|chain| chain.address == wait).map(|chain| chain.predicted_cycles).sum::<u64>()
    };
    // Two instructions lie between the first load and its wait; the second load comes one slot later, and the next
    // instruction takes that slot.
    assert_eq!((predicted(0x8), predicted(0x10)), (320 - 8, 0));
}

#[test]
fn a_wait_in_a_loop_shortens_the_next_round() {
    // What is loaded in one round is waited for in the next but one: two rounds pass in a latency.
    let body = Listing::at(0)
        .push(global(1, 10))
        .push(global(2, 12))
        .label("again")
        .push(op("s_waitcnt").wait(Some(1), None, None))
        .push(global(3, 14))
        .push(branch_scc1("again"))
        .push(end())
        .kernel();
    let profile = totals(1, vec![scalar_site(0x10, 1000, 999)]);
    let chains = chains_of(&body, Some(&profile));
    let chain = chains.iter().find(|chain| chain.path[1].address == 0xc).expect("the load of the loop is blamed");
    // From a load to the wait that waits for it are 16 cycles of other instructions and one wait: x = 320 - 16 - 4 - x.
    let per_round = chain.predicted_cycles as f64 / chain.share / 1000.0;
    assert!((146.0..=154.0).contains(&per_round), "{per_round}: {chain:?}");
}

#[test]
fn of_two_counters_the_last_arrival_is_blamed() {
    let lds = load("ds_read_b32", Memory::Lds, Counters::LGKM);
    let body = Listing::at(0)
        .push(global(1, 10))
        .push(lds)
        .push(op("s_waitcnt").wait(Some(0), Some(0), None))
        .push(end())
        .kernel();
    let chains = chains_of(&body, None);
    let (most, share) = blamed(&chains)[0];
    assert!(most == 0x0 && share > 90 && chains[0].counter == "vmcnt", "LDS is there long before: {chains:?}");
}

#[test]
fn rounds_of_a_loop_in_between_hide_latency() {
    let body = Listing::at(0)
        .push(global(1, 10))
        .label("again")
        .push(op("s_x"))
        .push(branch_scc1("again"))
        .push(vmcnt0())
        .push(end())
        .kernel();
    let predicted = |rounds: u64| {
        let chains = chains_of(&body, Some(&totals(10, vec![scalar_site(0x8, 10 * rounds, 10 * (rounds - 1))])));
        chains.iter().map(|chain| chain.predicted_cycles / 10).sum::<u64>()
    };
    assert_eq!([predicted(1), predicted(10), predicted(100)], [320 - 12, 320 - 4 - 10 * 8, 0]);
}

#[test]
fn where_waves_stood_unpredicted_the_last_to_arrive_is_blamed() {
    // Two loads, then a loop that outlasts the usual latency.
    let listing = Listing::at(0)
        .push(global(1, 10))
        .push(op("s_x"))
        .push(op("s_x"))
        .push(global(2, 12))
        .label("again")
        .push(op("s_x"));
    let body = listing.push(branch_scc1("again")).push(vmcnt0()).push(end()).kernel();
    let totals = totals(10, vec![scalar_site(0x14, 600, 590)]);
    assert_eq!(chains_of(&body, Some(&totals)), []);
    let at = |address: u64| BTreeMap::from([(address, 1.into())]);
    let slice = slice_stalled(&body, Some(KernelCounts::of(&totals)), &at(0x18));
    assert_eq!(blamed(&slice.chains)[0].0, 0xc, "{:?}", slice.chains);
    for chain in &slice.chains {
        assert_eq!((chain.predicted_cycles, chain.evidence.confidence), (0, Some(Confidence::Low)));
        assert_eq!(chain.cause, Cause::Operation { name: "global_load_dword".into(), likely: false });
    }
    let elsewhere = slice_stalled(&body, Some(KernelCounts::of(&totals)), &at(0x0));
    assert_eq!(elsewhere.chains, []);
}

/// Of a row: an index is loaded, and what it points to.
#[test]
fn an_address_that_is_loaded_in_the_same_round_is_named() {
    let shift = |to: u16, from: u16| op("v_lshlrev_b32").writes(Reg::vector(to, 1)).reads(Reg::vector(from, 1));
    let add = op("v_add_u32").writes(Reg::vector(20, 2)).reads(Reg::vector(5, 1)).reads(Reg::vector(30, 1));
    let body = Listing::at(0)
        .push(global(30, 40))
        .push(vmcnt0())
        .label("again")
        .push(global(4, 10))
        .push(vmcnt0())
        .push(shift(5, 4))
        .push(add)
        .push(global(6, 20))
        .push(vmcnt0())
        .push(branch_scc1("again"))
        .push(end())
        .kernel();
    let chains = chains_of(&body, None);
    let of = |wait: u64| chains.iter().find(|chain| chain.address == wait).expect("a chain");
    assert_eq!(of(0x1c).evidence.address_loaded_by, Some(0x8), "not the base, which is there before the loop");
    assert_eq!(of(0xc).evidence.address_loaded_by, None);
    // The path goes by the index, not by the base that takes as long.
    let expected = [(Edge::Stall, 0x1c), (Edge::Wait, 0x18), (Edge::Register, 0x14), (Edge::Register, 0x10)];
    assert_eq!(steps(of(0x1c))[..4], expected);
}

fn steps(chain: &Chain) -> Vec<(Edge, u64)> {
    chain.path.iter().map(|step| (step.edge, step.address)).collect()
}

fn local(name: &'static str, memory: Memory, flags: Flags) -> Op {
    op(name).memory(memory, if memory == Memory::Lds { Counters::LGKM } else { Counters::VM }, flags).transfers(4)
}

#[test]
fn what_was_spilled_comes_from_where_it_was_stored() {
    let (v, s) = (|n| Reg::vector(n, 1), |n| Reg::scalar(n, 1));
    let spill = |from, at| {
        local("scratch_store_dword", Memory::Scratch, Flags::STORE)
            .reads_as(Role::Vdata, v(from))
            .reads_as(Role::Saddr, s(32))
            .offset(at)
    };
    let reload = |to, at| {
        local("scratch_load_dword", Memory::Scratch, Flags::LOAD).writes(v(to)).reads_as(Role::Saddr, s(32)).offset(at)
    };
    let add = |to, from| op("v_add_u32").writes(v(to)).reads(v(from));
    let kernel = |reloaded_at: i32, moved: bool| {
        let mut listing = Listing::at(0).push(add(10, 40)).push(spill(10, 8)).push(add(10, 41)).push(spill(10, 12));
        if moved {
            listing = listing.push(op("s_add_u32").writes(s(32)).reads(s(33)));
        }
        listing.push(reload(20, reloaded_at)).push(vmcnt0()).push(global(1, 20)).push(vmcnt0()).push(end()).kernel()
    };
    let last = |body: &Body| chains_of(body, None).into_iter().max_by_key(|chain| chain.address).expect("a chain");
    let expected =
        [(Edge::Stall, 0x1c), (Edge::Wait, 0x18), (Edge::Register, 0x10), (Edge::Memory, 0x4), (Edge::Register, 0x0)];
    assert_eq!(steps(&last(&kernel(8, false))), expected);
    assert_eq!(steps(&last(&kernel(12, false)))[3..], [(Edge::Memory, 0xc), (Edge::Register, 0x8)]);
    // Another place, and the same constant after another base.
    for chain in [last(&kernel(16, false)), last(&kernel(8, true))] {
        assert!(chain.through_memory && chain.path.iter().all(|step| step.edge != Edge::Memory), "{chain:?}");
    }
}

#[test]
fn the_store_that_a_path_leads_from_is_meant() {
    let (v, s) = (|n| Reg::vector(n, 1), |n| Reg::scalar(n, 1));
    let slot = |op: Op| op.reads_as(Role::Saddr, s(32)).offset(8);
    let spill = |from| slot(local("scratch_store_dword", Memory::Scratch, Flags::STORE).reads_as(Role::Vdata, v(from)));
    let reload = || slot(local("scratch_load_dword", Memory::Scratch, Flags::LOAD).writes(v(20)));
    let used = |listing: Listing| listing.push(vmcnt0()).push(global(1, 20)).push(vmcnt0()).push(end()).kernel();
    // The store that the last load's address came from, and whether it is certain.
    let stored = |body: &Body| {
        let last = chains_of(body, None).into_iter().max_by_key(|chain| chain.address).expect("a chain");
        let store = last.path.iter().find(|step| step.edge == Edge::Memory).map(|step| step.address);
        (store, !last.through_memory)
    };
    // 0x8 is the last before the reload by address, and no path leads from there.
    let other_path =
        Listing::at(0).push(spill(10)).push(branch_scc1("on")).push(spill(11)).push(end()).label("on").push(reload());
    assert_eq!(stored(&used(other_path)), (Some(0x0), true));
    // One of two paths stores nothing.
    let half = Listing::at(0).push(branch_scc1("on")).push(spill(10)).label("on").push(reload());
    assert_eq!(stored(&used(half)), (Some(0x4), false));
    let either = Listing::at(0).push(spill(10)).push(branch_scc1("on")).push(spill(11)).label("on").push(reload());
    assert_eq!(stored(&used(either)), (Some(0x8), false));
    // The round before stored what this one reloads, the first round what was there before the loop.
    let rounds = |moved: bool| {
        let mut listing = Listing::at(0).label("again").push(reload()).push(op("s_x")).push(spill(11));
        if moved {
            listing = listing.push(op("s_add_u32").writes(s(32)).reads(s(32)));
        }
        used(listing.push(branch_scc1("again")))
    };
    assert_eq!(stored(&rounds(false)), (Some(0x8), false));
    // Each round has a place of its own.
    assert_eq!(stored(&rounds(true)), (None, false));
    // A store of some of the lanes leaves the rest.
    let saved = Reg::scalar(2, 2);
    let narrow = op("s_and_saveexec_b64").writes(saved).reads(Reg::VCC).implicit(Implicit::EXEC, Implicit::EXEC);
    let restore = op("s_or_b64").writes(Reg::EXEC).reads(Reg::EXEC).reads(saved);
    let some = Listing::at(0).push(spill(10)).push(narrow).push(spill(11)).push(restore).push(reload());
    assert_eq!(stored(&used(some)), (Some(0x8), false));
}

#[test]
fn lds_that_one_instruction_writes_comes_from_there() {
    let v = |n| Reg::vector(n, 1);
    let write = |address, data| {
        local("ds_write_b32", Memory::Lds, Flags::STORE).reads_as(Role::Addr, v(address)).reads_as(Role::Data0, v(data))
    };
    let read =
        |to, address| local("ds_read_b32", Memory::Lds, Flags::LOAD).writes(v(to)).reads_as(Role::Addr, v(address));
    let lgkmcnt0 = || op("s_waitcnt").wait(None, Some(0), None);
    let kernel = |more: bool| {
        let mut listing = Listing::at(0).push(global(10, 40)).push(vmcnt0()).push(write(30, 10));
        if more {
            listing = listing.push(write(31, 11));
        }
        listing.push(read(20, 33)).push(lgkmcnt0()).push(global(1, 20)).push(vmcnt0()).push(end()).kernel()
    };
    let last = |body: &Body| chains_of(body, None).into_iter().max_by_key(|chain| chain.address).expect("a chain");
    let expected = [
        (Edge::Stall, 0x18),
        (Edge::Wait, 0x14),
        (Edge::Register, 0xc),
        (Edge::ThroughMemory, 0x8),
        (Edge::Register, 0x0),
    ];
    assert_eq!(steps(&last(&kernel(false))), expected);
    let either = last(&kernel(true));
    assert!(either.through_memory && either.path.iter().all(|step| step.edge != Edge::ThroughMemory), "{either:?}");
}

#[test]
fn the_branch_that_left_the_lanes_is_named() {
    let saved = Reg::scalar(2, 2);
    let body = Listing::at(0)
        .push(op("v_cmp_lt_u32").writes(Reg::VCC).reads(Reg::vector(1, 1)))
        .push(op("s_and_saveexec_b64").writes(saved).reads(Reg::VCC).implicit(Implicit::EXEC, Implicit::EXEC))
        .push(global(1, 10).implicit(Implicit::EXEC, Implicit::empty()))
        .push(vmcnt0())
        .push(op("s_or_b64").writes(Reg::EXEC).reads(Reg::EXEC).reads(saved))
        .push(global(2, 12).implicit(Implicit::EXEC, Implicit::empty()))
        .push(vmcnt0())
        .push(end())
        .kernel();
    let mask = |wait: u64| {
        let chain = chains_of(&body, None).into_iter().find(|chain| chain.address == wait).expect("a chain");
        chain.mask.iter().map(|step| (step.edge, step.address)).collect::<Vec<_>>()
    };
    assert_eq!(mask(0xc), [(Edge::Mask, 0x4), (Edge::Register, 0x0)]);
    assert_eq!(mask(0x18), [], "behind the branch all lanes are back");
}

/// Two loads for one wait, the second of which a branch may leave out, and another load with a wait of its own.
fn two_loads_then_one() -> Body {
    let listing =
        Listing::at(0).push(global(1, 10)).push(branch_scc1("join")).push(global(2, 12)).label("join").push(vmcnt0());
    listing.push(global(3, 1)).push(vmcnt0()).push(end()).kernel()
}

#[test]
fn coverage_is_of_waits_and_what_they_wait_for() {
    let body = two_loads_then_one();
    let profile = totals(100, vec![scalar_site(0x4, 100, 100)]);
    let slice = slice_counted(&body, Some(KernelCounts::of(&profile)), |_| None);
    // Two waits, three loads; the first wait may wait for two, one of which was never executed.
    assert_eq!(slice.coverage, Coverage { nodes: 5, before: 0.8, after: 1.0 });
}

#[test]
fn scattered_lanes_are_named_and_take_longer() {
    let v = |n| Reg::vector(n, 1);
    let kernel = |by: i8| {
        let exec = |op: Op| op.implicit(Implicit::EXEC, Implicit::empty());
        let load = |to| {
            op("global_load_dword")
                .memory(Memory::Global, Counters::VM, Flags::LOAD)
                .transfers(4)
                .writes(v(to))
                .implicit(Implicit::EXEC, Implicit::empty())
        };
        Listing::at(0)
            .push(exec(op("v_lshlrev_b32").writes(v(1)).int(by).reads(v(0))))
            .push(exec(op("v_mov_b32").writes(v(2)).int(0)))
            .push(load(10).reads_as(Role::Vaddr, v(2)))
            .push(load(11).reads_as(Role::Vaddr, v(1)))
            .push(vmcnt0())
            .push(end())
            .kernel()
    };
    let of_last = |by| {
        let chains = chains_of(&kernel(by), None);
        chains.into_iter().find(|chain| chain.path[1].address == 0xc).expect("the last load is blamed")
    };
    let (dense, scattered) = (of_last(2), of_last(8));
    let access = |chain: &Chain| {
        chain.evidence.access.map(|access| (access.bytes, access.stride, access.line, access.used, access.lines))
    };
    assert_eq!(access(&dense), Some((4, Some(4), 64, 64, 4)));
    assert_eq!(access(&scattered), Some((4, Some(256), 64, 4, 64)));
    // 64 lines instead of 4.
    assert_eq!(scattered.evidence.latency.typical - dense.evidence.latency.typical, 60);
    assert!(scattered.share > dense.share + 0.05, "{} {}", scattered.share, dense.share);
    let is_scattered = |chain: &Chain| chain.evidence.access.is_some_and(LaneAccess::scattered);
    assert!(!is_scattered(&dense) && is_scattered(&scattered));
}
