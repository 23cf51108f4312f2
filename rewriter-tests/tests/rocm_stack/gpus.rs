//! Several emulated GPUs in one process.

use super::{counts, output, profile, program, run};

#[test]
fn samples_run_on_two_gpus_at_the_same_time_and_count_twice() {
    let on = |gpus: &str| {
        counts(&["--stack", "rocm", "--gpus", "2", "--counters", "lds"], &program(".two_gpus"), &["samples", gpus])
    };
    let (one, two) = (on("1"), on("2"));
    assert_eq!(one.kernels.iter().map(|kernel| kernel.dispatches).collect::<Vec<_>>(), [3; 4]);
    let mut twice = one.clone();
    twice.merge(&one).expect("profiles of one program");
    twice.processes = 1;
    assert_eq!(two, twice);
    // And as many as without AMD's libraries, which emulate one.
    assert_eq!(one, counts(&["--stack", "hip", "--counters", "lds"], &program(".two_gpus"), &["samples", "1"]));
}

#[test]
fn a_gpu_uses_what_another_one_has() {
    let finished = run(&["--gpus", "2"], &program(".two_gpus"), &["peer"]);
    assert!(finished.out().ends_with("PASS\n"), "{finished:?}");
    finished.exited(0).expect("it passes");
    // A copy that is a kernel of HIP's is not counted.
    let (finished, profile) = profile(&["--stack", "rocm", "--gpus", "2"], &program(".two_gpus"), &["peer"]);
    assert!(finished.out().ends_with("PASS\n"), "{finished:?}");
    let profile = profile.expect("a profile");
    let mut dispatched: Vec<_> =
        profile.kernels.iter().map(|kernel| (kernel.name.as_str(), kernel.dispatches)).collect();
    dispatched.sort_unstable();
    let expected = [("_Z3addPiPKi", 1), ("_Z4meetPViS0_", 2), ("_Z5countPj", 2), ("_Z6numberPii", 2)];
    assert!(profile.complete && dispatched == expected, "{profile:?}");
}

#[test]
fn faults_name_the_gpu() {
    for (what, address) in [("fault", "load of 4 bytes at 0x123456789"), ("stranger", "load of 4 bytes at 0x")] {
        let finished = run(&["--gpus", "2"], &program(".two_gpus"), &[what]);
        let said = finished.err().to_string();
        assert!(said.contains(address) && said.contains("in kernel _Z3addPiPKi, on GPU 1 (node 2)"), "{said}");
        assert!(said.contains("Memory access fault by GPU node-2"), "{said}");
        finished.exited(134).expect("signal 6");
    }
}

#[test]
fn there_are_several_gpus_only_where_they_are_emulated_below_rocm() {
    // Not said to be there: one.
    let finished = run(&[], &program(".two_gpus"), &["peer"]);
    assert!(finished.out().contains("two devices: wrong result"), "{finished:?}");
    // The second one by itself.
    let wavetap = rewriter_tests::command::wavetap().expect("the command is built");
    let sample = program("divergence").into_os_string().into_string().expect("a plain path");
    let arguments = ["run", "--stack", "rocm", "--gpus", "2", "--", &sample];
    let second = [("ROCR_VISIBLE_DEVICES", "1".into())];
    let finished = rewriter_tests::command::run(&wavetap, &arguments, &second, super::programs()).expect("it ends");
    assert_eq!(output(finished), output(run(&[], &program("divergence"), &[])));

    for command in ["run", "profile", "compare"] {
        for (options, code, said) in [
            (&["--stack", "hip", "--gpus", "2"][..], 2, "--gpus: not available with --stack hip; use --stack rocm"),
            (&["--gpus", "0"], 2, "1..=16"),
            (&["--gpus", "17", "--stack", "rocm"], 2, "1..=16"),
        ] {
            let finished = super::wavetap(&[&[command], options].concat(), &program("divergence"), &[]);
            assert!(finished.err().contains(said) && finished.out().is_empty(), "{finished:?}");
            finished.exited(code).expect("refused");
        }
    }
}
