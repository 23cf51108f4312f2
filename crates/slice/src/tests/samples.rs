//! What samples say of waits, and of which code they are.

use super::*;

#[test]
fn samples_that_tell_for_what_waves_waited_divide_a_wait() {
    // Two loads alike, of which the first was what waves waited for three times of four.
    let body = Listing::at(0).push(global(1, 10)).push(global(2, 12)).push(vmcnt0()).push(end()).kernel();
    let slice = |operations: &[(u64, u64)]| {
        let operations: BTreeMap<u64, u64> = operations.iter().copied().collect();
        let stall = StallCycles { cycles: 5000, waits_for: operations, ..StallCycles::default() };
        slice_stalled(&body, None, &BTreeMap::from([(8, stall)])).chains
    };
    let chains = slice(&[(0, 3000), (4, 1000)]);
    assert_eq!(blamed(&chains), [(0, 75), (4, 25)]);
    let evidence = |chain: &Chain| (chain.evidence.observed, chain.evidence.confidence);
    assert!(chains.iter().all(|chain| evidence(chain) == (Some(4000), Some(Confidence::High))), "{chains:?}");
    // One sample is as good as the prediction.
    let few = slice(&[(0, 1)]);
    let [(0, first), (4, second)] = blamed(&few)[..] else { panic!("{few:?}") };
    assert!((70..=76).contains(&first) && first + second == 100, "{first} {second}");
    // What is no operation of the wait says nothing of it.
    assert_eq!(blamed(&slice(&[(0x40, 1000)])), blamed(&chains_of(&body, None)));
}

fn sampled(places: &[(u64, &str, u64, u64)]) -> SampledObject {
    let place = |&(offset, text, samples, issued): &(u64, &str, u64, u64)| {
        let stalled = BTreeMap::from([("WAITCNT".to_owned(), samples - issued)]);
        (
            offset,
            Place {
                instruction: (!text.is_empty()).then(|| text.to_owned()),
                samples,
                issued,
                stalled,
                ..Place::default()
            },
        )
    };
    SampledObject { id: 1, places: places.iter().map(place).collect(), ..SampledObject::default() }
}

fn with_samples(slice: KernelSlice, body: &Body, sampled: &SampledObject) -> KernelSlice {
    let sampled = KernelSampled { sampled, kind: SampleKind::Stochastic, modelled: false };
    of_code(body, None, |_| None, |code| slice.with_samples(code, &sampled))
}

fn mismatch(body: &Body, sampled: &SampledObject, kind: SampleKind) -> Option<String> {
    let of = |code: &Code<'_>| mismatch_of_code(std::iter::once(code as &dyn Function), sampled, kind);
    of_code(body, None, |_| None, of).map(|at| at.mismatch.to_string())
}

#[test]
fn samples_are_divided_among_causes_and_those_of_other_code_are_refused() {
    // Two causes of one wait, 75 and 25 %, and another wait.
    let body = two_loads_then_one();
    let profile = totals(100, vec![scalar_site(0x4, 100, 75)]);
    let mut slice = slice_counted(&body, Some(KernelCounts::of(&profile)), |_| None);
    let samples =
        sampled(&[(0xc, "s_waitcnt vmcnt(0)", 90, 10), (0x10, "", 7, 7), (0x14, "s_waitcnt vmcnt(0)", 20, 0)]);
    assert_eq!(mismatch(&body, &samples, SampleKind::Stochastic), None);
    slice = with_samples(slice, &body, &samples);
    let of = |address: u64| slice.chains.iter().filter(move |chain| chain.address == address);
    assert!(
        (of(0xc).filter_map(|chain| chain.samples).sum::<f64>() - 80.0).abs() < 1e-9,
        "what was issued is no stall"
    );
    assert!((of(0x14).filter_map(|chain| chain.samples).sum::<f64>() - 20.0).abs() < 1e-9);
    assert!((slice.chains.iter().map(|chain| chain.kernel_share).sum::<f64>() - 1.0).abs() < 1e-9);
    assert!(slice.chains.is_sorted_by(|a, b| a.samples >= b.samples));
    let seen = slice.samples.as_ref().expect("samples");
    assert_eq!((seen.samples, seen.modelled), (117, false));
    assert_eq!(seen.places.iter().map(|place| place.address).collect::<Vec<_>>(), [0xc, 0x14, 0x10]);

    // What no chain explains is said to be so.
    let mut slice = slice_counted(&body, Some(KernelCounts::of(&profile)), |_| None);
    slice = with_samples(slice, &body, &sampled(&[(0xc, "", 60, 0), (0x10, "", 30, 0), (0x18, "", 10, 0)]));
    let alone: Vec<_> = slice
        .chains
        .iter()
        .filter(|chain| matches!(chain.cause, Cause::Itself(_)))
        .map(|chain| (chain.address, chain.path.len()))
        .collect();
    assert_eq!(alone, [(0x10, 1), (0x18, 1)]);
    assert!((slice.chains.iter().filter_map(|chain| chain.samples).sum::<f64>() - 100.0).abs() < 1e-9);

    let wrong_of = |kind: SampleKind, places: &[(u64, &str, u64, u64)]| mismatch(&body, &sampled(places), kind);
    let wrong = |places: &[(u64, &str, u64, u64)]| wrong_of(SampleKind::Stochastic, places);
    assert_eq!(wrong(&[(0x0, "global_load_dword v1, v[10:11], off", 1, 0)]), None);
    let operands = wrong_of(SampleKind::ThreadTrace, &[(0x0, "global_load_dword v1, v[98:99], off", 1, 0)]);
    assert!(operands.is_some_and(|why| why.contains("saw `global_load_dword v1, v[98:99], off` at 0x0")));
    assert!(wrong(&[(0x0, "s_nop 0", 1, 0)]).is_some_and(|why| why.contains("saw `s_nop 0` at 0x0")));
    assert!(wrong(&[(0x2, "", 1, 0)]).is_some_and(|why| why.contains("0x2, where none begins")));
}

#[test]
fn stalls_for_results_of_the_alu_are_chains() {
    let add = |to: u16, from: u16| op("v_add_u32").writes(Reg::vector(to, 1)).reads(Reg::vector(from, 1));
    let body = Listing::at(0).push(global(1, 10)).push(vmcnt0()).push(add(2, 1)).push(add(3, 2)).push(add(4, 3));
    let body = body.push(end()).kernel();
    let place = Place { samples: 9, stalled: BTreeMap::from([("ALU_DEPENDENCY".to_owned(), 9)]), ..Place::default() };
    let samples = SampledObject { id: 1, places: BTreeMap::from([(0x10, place)]), ..SampledObject::default() };
    let slice = with_samples(slice_counted(&body, None, |_| None), &body, &samples);
    let chain = slice.chains.iter().find(|chain| chain.address == 0x10).expect("a chain");
    assert_eq!(chain.cause, Cause::Itself(SelfBlame::Dependency));
    // Not the load, for which the wait is.
    assert_eq!(steps(chain), [(Edge::Stall, 0x10), (Edge::Register, 0xc), (Edge::Register, 0x8)]);
}
