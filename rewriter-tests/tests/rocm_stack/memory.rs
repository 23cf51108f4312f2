//! What the memory probe records on the real libraries: what it records on the emulator's own runtime, but for where
//! these allocate.

use super::{counts, output, profile, program, samples, wavetap};
use rewriter_tests::full;
use wavetap::profile::accesses::{AllocatedRange, DispatchAccesses};
use wavetap::profile::file::Profile;

/// What was recorded, and totals. Addresses in allocations are as from their beginnings.
fn recorded(stack: &str, name: &str, options: &[&str]) -> (Profile, Vec<DispatchAccesses>) {
    let options =
        [&["--stack", stack, "--probe", "memory", "--workgroups", "3", "--memory-limit", "1"], options].concat();
    let mut profile = counts(&options, &program(name), &[]);
    let mut dispatches = std::mem::take(&mut profile.accesses);
    for (ordinal, dispatch) in (0..).zip(&mut dispatches) {
        assert!(!dispatch.allocations.is_empty(), "{name} on {stack}: what is allocated is known");
        dispatch.dispatch = ordinal;
        let allocations = std::mem::take(&mut dispatch.allocations);
        for access in dispatch.waves.iter_mut().flat_map(|wave| &mut wave.accesses) {
            access.values.iter_mut().for_each(|value| *value = from_its_beginning(&allocations, *value));
            for pair in access.scalars.chunks_exact_mut(2) {
                let address = u64::from(pair[0]) | u64::from(pair[1]) << u32::BITS;
                let place = from_its_beginning(&allocations, address);
                pair.copy_from_slice(&[place as u32, (place >> u32::BITS) as u32]);
            }
        }
    }
    // They run the same code under the same names; which allocations there are beside is theirs.
    (profile, dispatches)
}

fn from_its_beginning(allocations: &[AllocatedRange], address: u64) -> u64 {
    let holds = |range: &&AllocatedRange| address.checked_sub(range.address).is_some_and(|offset| offset < range.size);
    match allocations.iter().find(holds) {
        Some(range) => address - range.address,
        // Arguments and packets, which are the runtime's; below are offsets, and addresses of LDS.
        None if address >> u32::BITS != 0 => u64::MAX,
        None => address,
    }
}

/// What was recorded on the real libraries, which is what was recorded on the emulator's own runtime.
fn same_on_both(name: &str, options: &[&str]) -> (Profile, Vec<DispatchAccesses>) {
    let (real, own) = (recorded("rocm", name, options), recorded("hip", name, options));
    assert!(real.0 == own.0, "{name}: totals differ: {:?} and {:?}", real.0.kernels, own.0.kernels);
    assert_eq!(real.1.len(), own.1.len(), "{name}");
    for (real, own) in real.1.iter().zip(&own.1) {
        for (real, own) in real.waves.iter().zip(&own.waves) {
            let differs = real.accesses.iter().zip(&own.accesses).find(|(real, own)| real != own);
            assert!(differs.is_none(), "{name}, workgroup {:?}, wave {}: {differs:?}", real.workgroup, real.wave);
        }
        assert!(real == own, "{name}, dispatch {}", real.dispatch);
    }
    real
}

#[test]
fn accesses_are_recorded_as_on_the_emulators_own_runtime() {
    let mut accesses = 0;
    let quick = ["calls", "dynamic_lds", "lds_reduce", "o0", "spmv"];
    for name in samples().into_iter().filter(|name| full() || quick.contains(&&**name)) {
        let real = same_on_both(&name, &[]);
        accesses += real.1.iter().flat_map(|dispatch| &dispatch.waves).map(|wave| wave.accesses.len()).sum::<usize>();
    }
    assert!(accesses > 800, "{accesses} accesses were recorded");
}

/// The original runs the dispatches that are not sampled; they are in the totals.
#[test]
fn dispatches_after_the_sampled_ones_run_the_original() {
    let real = same_on_both("two_kernels", &["--dispatches", "1"]);
    let dispatched: u64 = real.0.kernels.iter().map(|kernel| kernel.dispatches).sum();
    assert_eq!(real.1.len(), real.0.kernels.len(), "one dispatch of each kernel");
    assert!(dispatched > real.1.len() as u64, "{dispatched} dispatches");
}

/// One after the other: what is in flight on other queues has to end first.
#[test]
fn dispatches_on_several_queues_are_recorded() {
    let object = program(".direct.co");
    let arguments = [object.to_str().expect("a plain path"), "3", "2", "return"];
    let options = ["--stack", "rocm", "--probe", "memory", "--dispatches", "1000", "--memory-limit", "1"];
    let (finished, profile) = profile(&options, &program(".direct"), &arguments);
    assert!(finished.out().ends_with("PASS\n") && finished.err().is_empty(), "{finished:?}");
    finished.exited(0).expect("it passes");
    let profile = profile.expect("a profile");
    assert!(profile.complete && profile.uncounted.is_empty(), "{profile:?}");
    let dispatched: u64 = profile.kernels.iter().map(|kernel| kernel.dispatches).sum();
    assert_eq!((profile.accesses.len() as u64, dispatched), (12, 12));
    let waves = |dispatch: &DispatchAccesses| dispatch.waves.iter().map(|wave| wave.accesses.len()).collect::<Vec<_>>();
    for dispatch in &profile.accesses {
        let first = profile.accesses.iter().find(|other| other.kernel == dispatch.kernel).expect("one");
        assert_eq!(waves(dispatch), waves(first), "all dispatches do the same");
    }
}

#[test]
fn what_was_recorded_is_explained() {
    let text = output(wavetap(&["profile", "--stack", "rocm", "--probe", "memory"], &program("spmv"), &[]));
    assert!(text.contains("uncoalesced") && text.contains("spmv.hip:11"), "{text}");
    assert!(!text.contains("no known allocation"), "{text}");
}
