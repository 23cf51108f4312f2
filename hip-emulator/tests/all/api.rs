//! The entry points, called by a program that is compiled against HIP's own headers.

use std::path::PathBuf;

use crate::stand_in::{Compiler, StandIn, root};

/// Compiles `api.hip`; gives the program and a code object that it loads as a module.
fn build(stand_in: &StandIn) -> (PathBuf, PathBuf) {
    let compiler = Compiler::new();
    let (program, module) = (stand_in.file("api"), stand_in.file("vectoradd.co"));
    compiler.compile("gfx90a", &["-lamdhip64"], &root().join("hip-emulator/tests/api.hip"), &program);
    let alone = ["--offload-device-only", "--no-gpu-bundle-output"];
    compiler.compile("gfx90a", &alone, &root().join("hip-samples/src/vectoradd.hip"), &module);
    (program, module)
}

#[test]
fn entry_points_answer_as_hip_does() {
    let stand_in = StandIn::new();
    let (program, module) = build(&stand_in);
    let module = module.to_str().expect("a plain path");

    let output = stand_in.run_with(&program, &[module], &[("WAVETAP_STRICT", "1")]);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text == "PASS\n" && errors.is_empty(), "{}\n{text}{errors}", output.status);

    // What is not implemented says its name and returns hipErrorNotSupported.
    let output = stand_in.run_with(&program, &["missing", module], &[]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "801\n");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "wavetap: hipIpcGetMemHandle is not implemented by the built-in runtime\n"
    );

    // So do launches in clusters.
    let output = stand_in.run_with(&program, &["cluster", module], &[]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "801\n");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "wavetap: a launch in clusters of 2×1×1 workgroups is not implemented by the built-in runtime\n"
    );
}

#[test]
fn a_target_without_code_is_refused() {
    let stand_in = StandIn::new();
    let program = root().join("hip-samples/bin/vectoradd");
    let output = stand_in.run(&program, &[("WAVETAP_TARGET", "gfx908")]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "the sample reports the error that it gets");
    assert!(errors.contains("no code object for gfx908") && errors.contains("gfx906, gfx90a, gfx942"), "{errors}");
    let output = stand_in.run(&program, &[("WAVETAP_TARGET", "gfx1")]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "wavetap: WAVETAP_TARGET=gfx1: not a target that can be emulated\n"
    );
}
