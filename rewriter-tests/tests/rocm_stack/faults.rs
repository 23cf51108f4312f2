//! What is known of a kernel that ends the program by a memory access fault.

use super::{profile, program, wavetap};
use rewriter_tests::full;
use wavetap::profile::launches::NotCounted;

/// Line of the store in `bad_store.hip`.
const LINE: u32 = 11;

/// `wavetap check` names the line, and says that the count is not whole.
#[test]
fn a_fault_is_explained_by_the_line_of_its_access() {
    for target in ["gfx90a", "gfx1030"] {
        let command = ["check", "--stack", "rocm", "--instrument", "--target", target];
        let finished = wavetap(&command, &program(".bad_store"), &[]);
        let (said, found) = (finished.err().to_string(), finished.out());
        let line = format!("bad_store.hip:{LINE} in kernel copy(float*, float*): global_store_dword");
        let lanes = if target == "gfx90a" { 64 } else { 32 };
        for part in [
            "wavetap check: 1 error (memory 1)",
            "error: out-of-bounds-store: store of 4 bytes at 0x12345678",
            &line,
            &format!("at least {lanes} times"),
            "the kernel did not go on after this",
            "its counts are lost: a memory access fault at 0x123456780",
        ] {
            assert!(found.contains(part), "{target}: no {part:?} in\n{found}");
        }
        assert!(said.contains("wavetap: memory access fault at 0x123456780"), "{target}: {said}");
        assert!(said.contains(": in kernel copy(float*, float*)\n"), "{target}: {said}");
        finished.exited(1).expect("what was found");
    }
}

/// In strict mode what is stored is seen by others when it was waited for, and by chance before: what a wave found has
/// to be there when its next instruction is a fault.
#[test]
fn what_was_found_is_stored_before_the_access() {
    for seed in 0..if full() { 40 } else { 8 } {
        let options = ["--stack", "rocm", "--probe", "bounds", "--strict", "--seed", &seed.to_string()];
        let (finished, profile) = profile(&options, &program(".bad_store"), &[]);
        let profile = profile.expect("a profile");
        let [bad] = &profile.out_of_bounds[..] else { panic!("seed {seed}: {}", finished.err()) };
        let site = &profile.kernels[bad.kernel as usize].sites[bad.site as usize];
        assert_eq!(site.source.as_ref().map(|source| source.line), Some(LINE), "seed {seed}");
        // If the first wave is stopped while it stores, the address of another one is known.
        let of_wave = |place: u64| 0x1234_5678_0000 + place * 256;
        let place = u64::from(bad.workgroup[0] * 4 + bad.wave);
        let is_known = (bad.address, bad.lanes) == (of_wave(place), u64::MAX);
        assert!(is_known || bad.lanes == 0 && (0..16).map(of_wave).any(|one| one == bad.address), "{seed}: {bad:?}");
        let [lost] = &profile.uncounted[..] else { panic!("seed {seed}: {:?}", profile.uncounted) };
        assert!(lost.why == NotCounted::Faulted && lost.name.contains("copy") && !profile.complete, "seed {seed}");
        finished.exited(134).expect("signal 6");
    }
}

/// With another probe the kernel is named, and how to find out more.
#[test]
fn a_fault_names_the_kernels_in_flight() {
    let (finished, profile) = profile(&["--stack", "rocm"], &program(".bad_store"), &[]);
    let said = finished.err();
    assert!(said.contains("in kernel copy(float*, float*) (wavetap check names the source line)"), "{said}");
    let profile = profile.expect("a profile");
    assert_eq!(profile.kernels.iter().map(|kernel| kernel.demangled.as_str()).collect::<Vec<_>>(), ["fill(float*)"]);
    assert_eq!(profile.uncounted.iter().map(|lost| lost.dispatches).sum::<u64>(), 1);
}

/// Nothing is found by what does not run.
#[test]
fn where_no_kernel_runs_nothing_was_checked() {
    for how in [&["--fail-on", "never"][..], &["--instrument", "--tools", "memory"]] {
        for (argument, code) in [("none", 1), ("kernel", 0)] {
            let command = [&["check", "--stack", "rocm"], how].concat();
            let finished = wavetap(&command, &program(".no_kernel"), &[argument]);
            let is_said = finished.out().contains("not checked: no kernel ran");
            assert_eq!((finished.code, is_said), (code, code == 1), "{}", finished.failure(argument));
        }
    }
}
