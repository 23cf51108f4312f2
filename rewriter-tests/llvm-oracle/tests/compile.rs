//! The compiler: an object of a module, and what is said where there can be none.

use std::fs;
use std::process::{Command, Output};

/// A kernel that only processors with this instruction can have (gfx10 and later).
const MODULE: &str = "target triple = \"amdgcn-amd-amdhsa\"
define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %x) {
  %v = call i32 @llvm.amdgcn.permlane16(i32 %x, i32 %x, i32 1, i32 2, i1 false, i1 false)
  store i32 %v, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.amdgcn.permlane16(i32, i32, i32, i32, i1, i1)
";

/// What the program says, and the object if it has made one.
fn compiled(name: &str, processor: &str, level: &str, module: &str) -> (Output, Option<Vec<u8>>) {
    let folder = std::env::temp_dir().join(format!("llvm-oracle-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (input, object) = (folder.join("module.ll"), folder.join("object.o"));
    fs::write(&input, module).unwrap();
    let program = env!("CARGO_BIN_EXE_llvm-oracle");
    let output =
        Command::new(program).args(["compile", processor, level]).arg(&input).arg("-o").arg(&object).output().unwrap();
    let made = output.status.success().then(|| fs::read(&object).unwrap());
    fs::remove_dir_all(&folder).unwrap();
    (output, made)
}

#[test]
fn compiles_for_processors_that_clang_19_does_not_know() {
    // The low byte of `e_flags` is the processor (AMDGPUUsage, ELF header).
    for (processor, machine) in [("gfx1250", 0x49), ("gfx1251", 0x5a), ("gfx1030", 0x36)] {
        for level in ["O0", "O1", "O2", "O3"] {
            let (output, object) = compiled(&format!("{processor}-{level}"), processor, level, MODULE);
            let object =
                object.unwrap_or_else(|| panic!("{processor} {level}: {}", String::from_utf8_lossy(&output.stderr)));
            assert_eq!((&object[..4], object[0x30]), (&b"\x7fELF"[..], machine), "{processor} {level}");
        }
    }
}

#[test]
fn says_why_there_is_no_object() {
    for (name, processor, level, module, said) in [
        ("intrinsic", "gfx950", "O2", MODULE, "Cannot select"),
        ("language", "gfx950", "O2", "nothing of LLVM's language", "expected top-level entity"),
        ("level", "gfx950", "O7", MODULE, "usage"),
    ] {
        let (output, object) = compiled(name, processor, level, module);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(object.is_none() && error.contains(said), "{name}: {:?} {error}", output.status);
    }
}
