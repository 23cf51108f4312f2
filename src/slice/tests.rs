//! Derived executions against counted ones on random walks; links and ranking on a hand-built kernel.

use std::collections::BTreeMap;

use super::chains::{Chain, Edge};
use super::counts::{BlockCounts, CountSource};
use super::*;
use crate::isa::{Branch, Counters, Flags, Memory, Reg};
use crate::kernel::Flow;
use crate::kernel::assembly::{Listing, Op, branch_scc1, end, op};
use crate::kernel::random::{Random, random_kernel};
use crate::profile::file::{Counts, ScalarCounts, SiteTotals};
use crate::profile::pc_samples::{Place, SampledObject};

fn totals(waves: u64, branches: Vec<SiteTotals>) -> KernelTotals {
    KernelTotals {
        name: "test".to_owned(),
        demangled: "test".to_owned(),
        target: "gfx90a".to_owned(),
        object: String::new(),
        mode: None,
        dispatches: 1,
        waves,
        dropped: 0,
        unfinished: 0,
        shared_records: false,
        before: None,
        after: None,
        uncounted_callees: Vec::new(),
        work: None,
        branches,
    }
}

fn scalar_site(address: u64, executions: u64, taken: u64) -> SiteTotals {
    let counts = Counts::Scalar(ScalarCounts { executions, taken });
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
        let counts = BlockCounts::derive(&body, &cfg, Some(&totals(waves, sites)));
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

/// Whether the block is in, or behind, an endless cycle of plain jumps, into which flow conservation cannot look.
fn reaches_itself_without_branches(cfg: &Cfg, from: crate::entity::BlockId) -> bool {
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
fn contradictions_and_lost_waves_give_no_derived_numbers() {
    let body = Listing::at(0).push(branch_scc1("out")).push(op("s_x")).label("out").push(end()).kernel();
    let cfg = Cfg::build(&body);
    let of = |totals: &KernelTotals| -> Vec<_> {
        let counts = BlockCounts::derive(&body, &cfg, Some(totals));
        cfg.ids().map(|block| counts.of(block)).collect()
    };
    let good = totals(10, vec![scalar_site(0, 10, 4)]);
    use CountSource::{Counted, Derived, Unknown};
    assert_eq!(of(&good), [(Some(10), Counted), (Some(6), Derived), (Some(10), Derived)]);
    let fewer = totals(9, vec![scalar_site(0, 10, 4)]);
    assert_eq!(of(&fewer)[1], (None, Unknown));
    let impossible = totals(10, vec![scalar_site(0, 10, 11)]);
    assert_eq!(of(&impossible)[1], (None, Unknown));
    let dropped = KernelTotals { dropped: 1, ..good };
    assert_eq!(of(&dropped), [(Some(10), Counted), (None, Unknown), (None, Unknown)]);
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
    let source = |address| (address == 0x1008).then(|| Source { file: "k.hip".to_owned(), line: 7 });
    let slice = slice_kernel(&body, "test()", (&WaitSummaries::none(), &Summaries::none()), Some(&profile), source);
    let [first, second] = slice.waits.as_slice() else { panic!("two waits: {slice:?}") };
    assert_eq!((first.address, first.counter.as_str(), first.executions), (0x100c, "lgkmcnt", Some(2000)));
    assert_eq!(first.predicted_cycles, 2000 * 64);
    assert_eq!(first.executions_source, CountSource::Counted);
    assert_eq!(first.operations[0].source.as_ref().map(|source| source.line), Some(7));
    assert_eq!((second.address, second.executions, second.predicted_cycles), (0x1004, Some(2), 2 * 320));
    assert_eq!(second.operations[0].address, Some(0x1000));
    // Without a profile the latencies alone rank them.
    let blind = slice_kernel(&body, "test()", (&WaitSummaries::none(), &Summaries::none()), None, |_| None);
    assert_eq!(blind.waits[0].address, 0x1004);
    assert_eq!(blind.waits[0].executions_source, CountSource::Unknown);

    let json = serde_json::to_value(Slice::new(vec![slice.clone()])).expect("json");
    assert_eq!(json["schema"], "wavetap.slice/1");
    assert_eq!(json["predicted"], true);
    assert_eq!(json["kernels"][0]["waits"][0]["address"], "0x100c");
    assert_eq!(json["kernels"][0]["waits"][0]["operations"][0]["address"], "0x1008");
    assert_eq!(json["kernels"][0]["waits"][0]["operations"][0]["certainty"], "must");
    let back: Slice = serde_json::from_value(json).expect("the same");
    assert_eq!(back.kernels, [slice]);
}

fn chains_of(body: &Body, totals: Option<&KernelTotals>) -> Vec<Chain> {
    let slice = slice_kernel(body, "test()", (&WaitSummaries::none(), &Summaries::none()), totals, |_| None);
    for wait in &slice.waits {
        let of_wait = |chain: &&Chain| chain.address == wait.address && chain.counter == wait.counter;
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
    op("global_load_dword").memory(Memory::Global, Counters::VM, Flags::LOAD).writes(Reg::vector(to, 1)).reads(Reg::vector(address, 2))
}

fn vmcnt0() -> Op {
    op("s_waitcnt").wait(Some(0), None, None)
}

#[test]
fn the_load_that_arrives_last_is_blamed() {
    let body = Listing::at(0).push(global(1, 10)).push(op("s_x")).push(global(2, 12)).push(vmcnt0()).push(end()).kernel();
    let chains = chains_of(&body, None);
    assert_eq!(blamed(&chains), [(0x8, 100)]);
    // One issue interval of gfx90a is what lies between.
    assert_eq!((chains[0].evidence.hidden_cycles, chains[0].predicted_cycles), (4, 320 - 4));
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
    // A load on one way only, which 1 of 4 waves takes, behind one that all issue.
    let listing = |last: Op| {
        Listing::at(0).push(global(1, 10)).push(branch_scc1("join")).push(last).label("join").push(vmcnt0()).push(end()).kernel()
    };
    let body = listing(global(2, 12));
    let profile = |taken| totals(100, vec![scalar_site(0x4, 100, taken)]);
    assert_eq!(blamed(&chains_of(&body, Some(&profile(75)))), [(0x0, 75), (0x8, 25)]);
    assert_eq!(blamed(&chains_of(&body, Some(&profile(100)))), [(0x0, 100)], "what was never executed is no cause");
    assert_eq!(blamed(&chains_of(&body, Some(&profile(0)))), [(0x8, 100)]);
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

fn sampled(places: &[(u64, &str, u64, u64)]) -> SampledObject {
    let place = |&(offset, text, samples, issued): &(u64, &str, u64, u64)| {
        let stalled = BTreeMap::from([("WAITCNT".to_owned(), samples - issued)]);
        (offset, Place { instruction: (!text.is_empty()).then(|| text.to_owned()), samples, issued, stalled })
    };
    SampledObject { id: 1, places: places.iter().map(place).collect(), ..SampledObject::default() }
}

#[test]
fn samples_are_divided_among_causes_and_those_of_other_code_are_refused() {
    // Two causes of one wait, 75 and 25 %, and another wait.
    let body = Listing::at(0)
        .push(global(1, 10))
        .push(branch_scc1("join"))
        .push(global(2, 12))
        .label("join")
        .push(vmcnt0())
        .push(global(3, 1))
        .push(vmcnt0())
        .push(end())
        .kernel();
    let profile = totals(100, vec![scalar_site(0x4, 100, 75)]);
    let mut slice = slice_kernel(&body, "test()", (&WaitSummaries::none(), &Summaries::none()), Some(&profile), |_| None);
    let samples = sampled(&[(0xc, "s_waitcnt vmcnt(0)", 90, 10), (0x10, "", 7, 7), (0x14, "s_waitcnt vmcnt(0)", 20, 0)]);
    assert_eq!(evidence::misfit(std::slice::from_ref(&body), &samples), None);
    slice.add_samples(&body, &samples, false, |_| None);
    let of = |address: u64| slice.chains.iter().filter(move |chain| chain.address == address);
    assert!((of(0xc).filter_map(|chain| chain.samples).sum::<f64>() - 80.0).abs() < 1e-9, "what was issued is no stall");
    assert!((of(0x14).filter_map(|chain| chain.samples).sum::<f64>() - 20.0).abs() < 1e-9);
    assert!((slice.chains.iter().map(|chain| chain.kernel_share).sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(slice.chains.is_sorted_by(|a, b| a.samples >= b.samples));
    let seen = slice.samples.as_ref().expect("samples");
    assert_eq!((seen.samples, seen.modelled), (117, false));
    assert_eq!(seen.places.iter().map(|place| place.address).collect::<Vec<_>>(), [0xc, 0x14, 0x10]);

    let wrong = |places: &[(u64, &str, u64, u64)]| evidence::misfit(std::slice::from_ref(&body), &sampled(places)).map(|(_, why)| why);
    assert_eq!(wrong(&[(0x0, "global_load_dword v1, v[10:11], off", 1, 0)]), None);
    assert!(wrong(&[(0x0, "s_nop 0", 1, 0)]).is_some_and(|why| why.contains("saw `s_nop 0` at 0x0")));
    assert!(wrong(&[(0x2, "", 1, 0)]).is_some_and(|why| why.contains("0x2, where none begins")));
}
