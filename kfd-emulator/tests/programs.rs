//! Programs in C that use the driver as its clients do, with the library loaded before all others. This test compiles
//! them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The library, which cargo builds beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let library = test.parent().expect("a folder").join("libwavetap_kfd.so");
    assert!(library.is_file(), "{} is not built", library.display());
    library
}

/// Compiles a program of the folder `programs`.
fn compile(folder: &Path, name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c");
    let program = folder.join(name);
    // The driver's header includes the graphics drivers', which not every machine has, and whose types it uses.
    let headers = folder.join("headers");
    std::fs::create_dir_all(headers.join("drm")).expect("a folder");
    std::fs::write(headers.join("drm/drm.h"), "#include <linux/types.h>\n").expect("a file");
    let output = Command::new("clang-19")
        .args(["-O1", "-Wall", "-Werror", "-D_GNU_SOURCE", "-D_FORTIFY_SOURCE=2", "-idirafter"])
        .arg(headers)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("clang-19 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs a program with an emulated GPU; its files are made in the folder.
fn run(folder: &Path, program: &Path, target: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("WAVETAP_")) {
        command.env_remove(name);
    }
    let output = command
        .args(arguments)
        .env("LD_PRELOAD", library())
        .env("WAVETAP_TARGET", target)
        .env("WAVETAP_GPUS", "2")
        .env("TMPDIR", folder)
        .output();
    output.expect("it starts")
}

fn passes(output: &Output, what: &str) {
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success() && out == "PASS\n" && errors.is_empty(), "{what}: {out}{errors}");
}

#[test]
fn files_are_found_by_every_function_that_looks_at_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "files");
    passes(&run(folder.path(), &program, "gfx942", &[]), "gfx942");
    let names = std::fs::read_dir(folder.path()).expect("the folder").flatten().map(|entry| entry.file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("wavetap")).collect();
    assert!(left.is_empty(), "the driver's files are removed: {left:?}");
}

#[test]
fn commands_do_what_the_hardware_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "commands");
    for target in ["gfx942", "gfx1100"] {
        for way in ["queue", "packet"] {
            passes(&run(folder.path(), &program, target, &[target, way]), &format!("{target} {way}"));
        }
    }
}

/// Nothing is dropped, and nothing waits for ever.
#[test]
fn unknown_commands_end_the_program_with_a_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "commands");
    for (way, says) in [
        ("unknown", "PM4 packet 0x50 (DMA_DATA) at 0x"),
        ("register", "of register 0x3000, which is none of a compute queue: 0xc0017600 0x00000400 0x00000001"),
        ("initiator", "with an initiator 0x3 that the emulated device does not have"),
        ("uconfig", "PM4 packet 0x79 (SET_UCONFIG_REG) at 0x"),
        ("wait", "for a register that the emulated device does not have"),
        ("type0", "(not of type 3) at 0x"),
        ("short", "that is longer than its buffer, of which 2 words are left"),
        ("notbuffer", "whose PM4 packet is no INDIRECT_BUFFER: 0xc0004600"),
    ] {
        let output = run(folder.path(), &program, "gfx942", &["gfx942", way]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.starts_with("wavetap: ") && errors.contains(says), "{way}: {errors}");
        assert!(!output.status.success() && output.stdout.is_empty(), "{way}");
    }
}
