//! LDS past the end of what a kernel requests.

use super::{output, program, run, wavetap};

#[test]
fn the_rest_of_the_last_unit_of_lds_is_told_once_for_a_kernel_and_is_a_fault_in_strict_mode() {
    let program = program(".lds_rest");
    for stack in ["hip", "rocm"] {
        let run = |options: &[&str], arguments: &[&str]| {
            wavetap(&[&["run", "--stack", stack], options].concat(), &program, arguments)
        };
        let finished = run(&[], &[]);
        let said = finished.err().to_string();
        let mut parts = vec![
            "wavetap: LDS access of 4 bytes at offset 0x104 is outside the 260 bytes of the workgroup, for which 512 \
                are allocated, in `ds_write_b32",
            " at 0x",
            ": a GPU lets that be up to the end of its allocation unit, and so does this run; with --strict it ends \
                the program, in kernel ",
            "past_the_end",
        ];
        parts.retain(|part| !said.contains(part));
        assert!(parts.is_empty() && said.lines().count() == 1, "{stack}: {said} lacks {parts:?}");
        assert_eq!(finished.out(), "PASS\n", "{stack}");
        finished.exited(0).expect("it passes");
        let finished = run(&["--strict"], &[]);
        let said = finished.err();
        assert!(
            said.contains("LDS access of 4 bytes at offset 0x104 is outside the 260 bytes of the workgroup, in `ds_"),
            "{stack}: {said}"
        );
        assert!(!finished.out().contains("PASS") && finished.exited(0).is_err(), "{stack}");
    }
    // After the unit accesses are dropped.
    assert_eq!(output(run(&[], &program, &["beyond"])), "PASS\n");
}
