//! What HIP offers, on the real one: code that is loaded or compiled while a program runs, kernels that call the host,
//! and what becomes of counts when a kernel ends the program; and calls that both runtimes answer alike.

use std::process::Command;

use super::{command, counts, output, profile, program, run, wavetap};

#[test]
fn modules_are_loaded_and_counted() {
    let object = program(".module.co");
    let arguments = ["load", object.to_str().expect("a plain path")];
    let text = output(run(&[], &program(".modules"), &arguments));
    assert!(text.ends_with("PASS\n"), "{text}");
    for mode in ["lds", "global", "register"] {
        let count = |stack| profile(&["--stack", stack, "--counters", mode], &program(".modules"), &arguments);
        let (finished, real) = count("rocm");
        assert_eq!(finished.out(), text, "{mode}");
        let real = real.expect("a profile");
        let dispatches: Vec<_> = real.kernels.iter().map(|kernel| (kernel.name.as_str(), kernel.dispatches)).collect();
        assert_eq!(dispatches, [("scale", 4), ("_Z3ownPi", 2)], "{mode}: both modules, and the program's own");
        assert!(real.complete, "{mode}");
        // The emulator's own runtime says of what is no code object why.
        assert_eq!(Some(real), count("hip").1, "{mode}");
    }
}

#[test]
fn code_that_hip_compiles_is_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let compiled = folder.path().join("compiled.co").display().to_string();
    let text = output(run(&[], &program(".modules"), &["compile", &compiled]));
    assert!(text.ends_with("PASS\n"), "{text}");
    for mode in ["lds", "global", "register"] {
        let real = counts(&["--stack", "rocm", "--counters", mode], &program(".modules"), &["compile", &compiled]);
        assert_eq!(real.kernels.iter().map(|kernel| kernel.name.as_str()).collect::<Vec<_>>(), ["thirds"], "{mode}");
        // Another compiler's code has other counts: the emulator's own runtime runs what was compiled.
        let own = counts(&["--stack", "hip", "--counters", mode], &program(".modules"), &["run", &compiled]);
        assert_eq!(real, own, "{mode}");
    }
}

#[test]
fn both_runtimes_compile() {
    for stack in ["rocm", "hip"] {
        let finished = wavetap(&["run", "--stack", stack], &program(".compiles"), &[]);
        assert_eq!(output(finished), "PASS\n", "{stack}");
    }
    let missing = [("PATH", "/usr/nowhere".into()), ("ROCM_PATH", "/usr/nowhere".into())];
    let program = program(".compiles");
    let arguments = ["run", "--stack", "hip", "--", program.to_str().expect("a plain path"), "without"];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let wavetap = command::wavetap().expect("the command is built");
    let finished = command::run(&wavetap, &arguments, &missing, folder.path()).expect("it ends");
    assert_eq!(finished.out().to_string(), "PASS\n");
    assert!(finished.err().contains("hiprtcCompileProgram: no Clang was found"), "{}", finished.err());
}

/// Programs for ROCm 6 and 7 name hipRTC's library beside that of HIP.
#[test]
fn hiprtc_is_in_a_library_of_its_own() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["libhiprtc.so.6", "libhiprtc.so.7"] {
        let copy = folder.path().join(name).with_extension("program");
        let of = program(".compiles");
        let made = Command::new("patchelf").args(["--add-needed", name, "--output"]).args([&copy, &of]).status();
        assert!(made.expect("patchelf is installed").success());
        assert_eq!(output(wavetap(&["run", "--stack", "hip"], &copy, &[])), "PASS\n", "{name}");
    }
}

/// Return codes, flags, masks, signal memory, and copies with a pitch.
#[test]
fn both_runtimes_answer_alike() {
    for stack in ["rocm", "hip"] {
        let finished = wavetap(&["run", "--stack", stack], &program(".answers"), &[]);
        assert_eq!(finished.out().to_string(), "PASS\n", "{stack}");
        finished.exited(0).expect("it passes");
    }
}

#[test]
fn kernels_print() {
    let text = output(run(&[], &program(".prints"), &["printf"]));
    let said = ["item 7 of say: 1.75 h", "item 57 of say: 14.25 f", "item 107 of say: 26.75 d"];
    assert!(said.iter().all(|line| text.contains(line)) && text.ends_with("PASS\n"), "{text}");
    for mode in ["lds", "global", "register"] {
        // How often it looks whether the host has answered depends on the host. What comes before does not.
        let count = |stack| {
            let profile = counts(&["--stack", stack, "--counters", mode], &program(".prints"), &["printf"]);
            let [kernel] = &profile.kernels[..] else { panic!("one kernel: {:?}", profile.kernels.len()) };
            (kernel.name.clone(), kernel.dispatches, kernel.waves, kernel.sites[0].clone())
        };
        let real = count("rocm");
        // Of 128 work-items three print.
        assert_eq!(real.3.counts.values(), [2, 0, 128, 3, 0], "{mode}");
        assert_eq!(real, count("hip"), "{mode}");
    }
}

/// What was counted before is there, and that there is not all is said.
#[test]
fn an_assertion_or_a_fault_ends_the_program_and_leaves_what_was_counted() {
    let assertion = "Device-side assertion `values[item] != 70' failed";
    let finished = run(&[], &program(".prints"), &["assert"]);
    let said = finished.out() + &finished.err();
    assert!(said.contains(assertion) && said.contains("HSA_STATUS_ERROR_EXCEPTION"), "{said}");
    assert!(said.contains("wavetap: s_trap 2") && said.contains("in kernel insist"), "{said}");
    finished.exited(134).expect("signal 6");

    for (program, arguments, complaint) in [
        (program(".prints"), "assert", assertion),
        (program(".features"), "fault", "store of 4 bytes at 0x123456789000 is outside every allocation"),
        (program(".features"), "trap", "wavetap: s_trap 2"),
    ] {
        let (finished, profile) = profile(&["--stack", "rocm"], &program, &[arguments]);
        let said = finished.out() + &finished.err();
        assert!(said.contains(complaint) && said.contains("the application was ended by SIGABRT"), "{said}");
        assert!(said.contains("ended before all was collected that its kernels had counted"), "{said}");
        finished.exited(134).expect("signal 6");
        let profile = profile.expect("a profile");
        assert!(!profile.complete, "{profile:?}");
        let counted = profile.kernels.iter().map(|kernel| kernel.name.as_str());
        let expected = if arguments == "assert" { &["say"][..] } else { &[] };
        assert_eq!(counted.collect::<Vec<_>>(), expected);
    }
}
