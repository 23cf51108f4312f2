//! Loops that OpenMP runs on the GPU.

use std::process::Command;

use rewriter_tests::place::root;

use super::{counts, output, program, programs, run};

/// Where Debian has OpenMP's runtime for GPUs.
const RUNTIME: &str = "/usr/lib/llvm-19/lib";

/// How many steps the iterations of the loop take.
const STEPS: u64 = 78_539;

/// Builds it.
fn offload() {
    let library = format!("{RUNTIME}/libomptarget.so");
    assert!(std::path::Path::new(&library).exists(), "{library} is not there: install libomp-19-dev (./test.sh does)");
    let built = Command::new("clang-19")
        .args(["-O2", "-Wall", "-Werror", "-fopenmp", "--offload-arch=gfx90a", &format!("-Wl,-rpath,{RUNTIME}")])
        .arg(format!("--rocm-device-lib-path={}", programs().join(".bitcode").display()))
        .arg(root().join("rewriter-tests/tests/rocm_stack/offload.c"))
        .arg("-o")
        .arg(program(".offload"))
        .output()
        .expect("clang-19 starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

#[test]
fn loops_that_openmp_runs_on_the_gpu_are_counted() {
    offload();
    let text = output(run(&["--target", "gfx90a"], &program(".offload"), &[]));
    assert!(text.contains("devices: 1") && text.ends_with("PASS\n"), "{text}");
    for mode in ["lds", "global", "register"] {
        let profile = counts(&["--stack", "rocm", "--counters", mode], &program(".offload"), &[]);
        let dispatches: Vec<_> = profile.kernels.iter().map(|kernel| kernel.dispatches).collect();
        assert!(profile.complete && profile.uncounted.is_empty(), "{mode}: {:?}", profile.uncounted);
        // One that asks where it is, the loop three times, the sum.
        assert_eq!(dispatches, [1, 3, 1], "{mode}");
        // The loop's exit: a lane is there once for each step.
        let steps = 3 * STEPS;
        let sites = profile.kernels[1].sites.iter().flat_map(|site| site.counts.values());
        assert!(sites.clone().any(|value| *value == steps), "{mode}: {:?}", sites.collect::<Vec<_>>());
    }
}
