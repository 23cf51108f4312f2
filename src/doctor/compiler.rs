//! What compiles HIP programs. Nothing but compiling needs it.

use std::path::PathBuf;

use super::System;
use wavetap_report::doctor::{Check, Subject};

/// Compilers of HIP, those that find the device libraries by themselves first.
const COMPILERS: [&str; 5] = ["hipcc", "amdclang++", "clang++-19", "clang++", "clang++-20"];
/// What puts code objects into executables, beside Clang.
const BUNDLERS: [&str; 3] = ["clang-offload-bundler-19", "clang-offload-bundler", "clang-offload-bundler-20"];

/// What there is.
pub(super) fn checks(system: &System) -> Vec<Check> {
    const NAME: &str = "compiler";
    let mut folders = system.folders("PATH");
    let rocm = system.variable("ROCM_PATH").unwrap_or_else(|| "/opt/rocm".to_owned());
    folders.extend(system.folders("HIP_CLANG_PATH"));
    folders.extend(["bin", "llvm/bin"].map(|folder| PathBuf::from(&rocm).join(folder)));
    let find = |names: &[&str]| {
        let places = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        places.into_iter().find(|place| system.path(place).is_file())
    };
    let bundler = find(&BUNDLERS);
    let check = match (find(&COMPILERS), bundler) {
        (Some(compiler), Some(_)) => Check::ok(Subject::Compiler, NAME, format!("{} compiles HIP", compiler.display())),
        // ROCm's compiler has its own.
        (Some(compiler), None) if compiler.starts_with(&rocm) => {
            Check::ok(Subject::Compiler, NAME, format!("{} compiles HIP", compiler.display()))
        }
        (Some(compiler), None) => Check::note(
            Subject::Compiler,
            NAME,
            format!("{} is there, clang-offload-bundler is not", compiler.display()),
            "it cannot link HIP programs: Debian has it in clang-tools-19 (docs/guide/compile.md)",
        ),
        (None, _) => Check::note(
            Subject::Compiler,
            NAME,
            "no compiler of HIP on the PATH",
            "programs that are compiled need none; to compile: docs/guide/compile.md. hipRTC needs a Clang",
        ),
    };
    vec![check]
}
