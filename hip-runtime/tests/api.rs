//! The entry points, called by a program that is compiled against HIP's own headers.

mod stand_in;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use stand_in::{StandIn, root};

/// Compiles `api.hip`; gives the program and a code object that it loads as a module.
fn build(stand_in: &StandIn) -> (PathBuf, PathBuf) {
    let bitcode = stand_in.file("bitcode");
    std::fs::create_dir(&bitcode).expect("a folder");
    let script = root().join("hip-samples/bitcode.sh");
    assert!(Command::new(script).arg(&bitcode).status().expect("the script starts").success());
    let compile = |arguments: &[&str], source: &Path, out: &Path| {
        let output = Command::new("clang++-19")
            .args(["-w", "-x", "hip", "-std=c++17", "-O2", "--offload-arch=gfx90a"])
            .arg(format!("--rocm-device-lib-path={}", bitcode.display()))
            .args(arguments)
            .arg(source)
            .arg("-o")
            .arg(out)
            .output()
            .expect("clang++-19 starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let (program, module) = (stand_in.file("api"), stand_in.file("vectoradd.co"));
    compile(&["-lamdhip64"], &root().join("hip-runtime/tests/api.hip"), &program);
    compile(&["--offload-device-only", "--no-gpu-bundle-output"], &root().join("hip-samples/src/vectoradd.hip"), &module);
    (program, module)
}

fn run(stand_in: &StandIn, program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env("LD_LIBRARY_PATH", stand_in.folder()).env("WAVETAP_STRICT", "1");
    command.output().expect("the program starts")
}

#[test]
fn entry_points_answer_as_hip_does() {
    let stand_in = StandIn::new();
    let (program, module) = build(&stand_in);
    let module = module.to_str().expect("a plain path");

    let output = run(&stand_in, &program, &[module]);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text == "PASS\n" && errors.is_empty(), "{}\n{text}{errors}", output.status);

    // A fault ends the program, and says which kernel, what and where.
    let output = run(&stand_in, &program, &["fault", module]);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!output.status.success() && text.is_empty(), "{}\n{text}", output.status);
    assert!(errors.starts_with("wavetap: kernel add_one(int*, int): ") && errors.contains("outside every allocation"), "{errors}");

    // What is not implemented says its name and returns hipErrorNotSupported.
    let output = run(&stand_in, &program, &["missing", module]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "801\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "wavetap: hipGraphCreate is not implemented by the built-in runtime\n");
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
    assert_eq!(String::from_utf8_lossy(&output.stderr), "wavetap: WAVETAP_TARGET=gfx1: not a target that can be emulated\n");
}
