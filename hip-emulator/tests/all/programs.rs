//! The programs of `tests/programs`: each calls a group of entry points, checks what they answer and ends with PASS.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use crate::stand_in::{Compiler, StandIn, root};
use wavetap::profile::file::Profile;

/// The compiler's own files, made once for all tests of this file.
fn compiler() -> &'static Compiler {
    static COMPILER: OnceLock<Compiler> = OnceLock::new();
    COMPILER.get_or_init(Compiler::new)
}

/// Compiles one of the programs for a target, linked with the library that is tested under its name of HIP 5.
pub fn build(stand_in: &StandIn, name: &str, target: &str, arguments: &[&str]) -> PathBuf {
    build_for(stand_in, 5, name, target, arguments)
}

/// Compiles one of the programs for a target, linked with the library that is tested under its name of a version of
/// HIP.
fn build_for(stand_in: &StandIn, version: u32, name: &str, target: &str, arguments: &[&str]) -> PathBuf {
    let program = stand_in.file(&format!("{name}-{target}-{version}{}", arguments.concat()));
    // The C library's loader finds the library by its name when the program runs.
    let search = format!("-L{}", stand_in.folder().display());
    let library = format!("-l:libamdhip64.so.{version}");
    let mut all = vec![search.as_str(), library.as_str()];
    all.extend(arguments);
    compiler().compile(target, &all, &root().join(format!("hip-emulator/tests/programs/{name}.hip")), &program);
    program
}

pub fn text(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn kernels_are_launched_described_and_refused() {
    let stand_in = StandIn::new();
    let module = stand_in.file("vectoradd.co");
    let alone = ["--offload-device-only", "--no-gpu-bundle-output"];
    compiler().compile("gfx90a", &alone, &root().join("hip-samples/src/vectoradd.hip"), &module);
    for (version, arguments) in [(5, &[] as &[&str]), (6, &["-DNEWER"]), (7, &["-DNEWER"])] {
        let program = build_for(&stand_in, version, "launches", "gfx90a", arguments);
        let output = stand_in.run_with(&program, &[module.to_str().expect("a plain path")], &[("WAVETAP_STRICT", "1")]);
        let (text, errors) = text(&output);
        assert!(output.status.success() && text == "PASS\n", "{version}: {}\n{text}{errors}", output.status);
    }
}

#[test]
fn graphs_do_what_was_captured_or_added() {
    let stand_in = StandIn::new();
    let program = build(&stand_in, "graphs", "gfx90a", &[]);
    // Strict mode instantiates the graphs in the other order that their edges allow.
    stand_in.passes(&program, &[]);
    stand_in.passes(&program, &[("WAVETAP_STRICT", "1")]);
}

#[test]
fn memory_of_every_kind_is_copied_filled_and_described() {
    let stand_in = StandIn::new();
    let program = build(&stand_in, "memory", "gfx90a", &[]);
    stand_in.passes(&program, &[("WAVETAP_STRICT", "1")]);
    // The program expects zeros when it sees this variable.
    stand_in.passes(&program, &[("WAVETAP_POISON", "0")]);
}

#[test]
fn memory_is_mapped_to_reserved_addresses() {
    let stand_in = StandIn::new();
    let module = stand_in.file("vectoradd.co");
    let alone = ["--offload-device-only", "--no-gpu-bundle-output"];
    compiler().compile("gfx90a", &alone, &root().join("hip-samples/src/vectoradd.hip"), &module);
    let program = build(&stand_in, "virtual_memory", "gfx90a", &[]);
    let output = stand_in.run_with(&program, &[module.to_str().expect("a plain path")], &[]);
    let (found, errors) = text(&output);
    assert!(output.status.success() && found == "PASS\n", "{}\n{found}{errors}", output.status);
    let output = stand_in.run_with(&program, &["fault"], &[]);
    let (found, errors) = text(&output);
    assert!(output.status.success() && found == "PASS\n", "{}\n{found}{errors}", output.status);
    assert!(errors.contains("is outside every allocation"), "{errors}");
}

fn sorted<'t>(lines: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn kernels_print_through_the_programs_standard_output() {
    let stand_in = StandIn::new();
    // Waves of 64 and of 32.
    for (target, version, strict) in [
        ("gfx90a", "-mcode-object-version=5", "1"),
        ("gfx90a", "-mcode-object-version=4", "0"),
        ("gfx1030", "-mcode-object-version=5", "1"),
    ] {
        let program = build(&stand_in, "host_calls", target, &[version]);
        let output = stand_in.passes(&program, &[("WAVETAP_STRICT", strict)]);
        let lines: Vec<&str> = output.lines().collect();
        let between = lines.iter().position(|line| *line == "between").expect("the host's line");
        assert_eq!(lines[0], "before");
        let (expected, _) = text(&stand_in.run_with(&program, &["host"], &[]));
        assert_eq!(expected.lines().count(), 94);
        assert_eq!(sorted(lines[1..between].iter().copied()), sorted(expected.lines()));
        assert_eq!(lines[between + 1..], ["    0", "     0", "      0", "       0", "PASS"]);
    }
}

#[test]
fn textures_and_surfaces_hold_what_the_host_computes() {
    let stand_in = StandIn::new();
    // Each has descriptors of its own.
    for target in ["gfx906", "gfx1030", "gfx1100", "gfx1200"] {
        let program = build(&stand_in, "textures", target, &[]);
        stand_in.passes(&program, &[("WAVETAP_STRICT", "1")]);
        let output = stand_in.run(&program, &[("WAVETAP_SKIP_KERNELS", "1")]);
        assert!(text(&output).0.ends_with("FAIL\n"), "{target}: it passes without its kernels");
    }
    let references = build(&stand_in, "texture_references", "gfx1030", &[]);
    stand_in.passes(&references, &[("WAVETAP_STRICT", "1")]);
}

#[test]
fn kernels_allocate_and_free() {
    let stand_in = StandIn::new();
    // Before version 5 the heap is a variable of the code object. The compiler's device libraries wait for a clock that
    // gfx11 does not have, so later targets are not among these.
    for (target, version, strict) in [
        ("gfx90a", "-mcode-object-version=5", "1"),
        ("gfx90a", "-mcode-object-version=4", "0"),
        ("gfx1030", "-mcode-object-version=5", "1"),
        ("gfx1030", "-mcode-object-version=5", "0"),
    ] {
        let program = build(&stand_in, "heap", target, &[version]);
        stand_in.passes(&program, &[("WAVETAP_STRICT", strict)]);
        let output = stand_in.run_with(&program, &["impossible"], &[]);
        let (text, errors) = text(&output);
        assert!(text == "PASS\n" && errors.contains("no room for 1099511627776 bytes"), "{target}: {text}{errors}");
    }
}

#[test]
fn what_runs_into_the_rest_of_a_page_is_told_once_or_stopped() {
    let stand_in = StandIn::new();
    let program = build(&stand_in, "overrun", "gfx90a", &[]);
    let says = "wavetap: store of 4 bytes at 0x200000000008 runs past the end of its allocation, \
        0x200000000000..0x200000000008, in `global_store";
    let (out, errors) = text(&stand_in.run(&program, &[]));
    assert_eq!(out, "status 0\nPASS\n", "{errors}");
    assert!(errors.contains(says) && errors.lines().count() == 1, "{errors}");
    let (out, errors) = text(&stand_in.run(&program, &[("WAVETAP_STRICT", "1")]));
    assert_eq!(out, "status 700\nPASS\n", "{errors}");
    assert!(errors.contains("is outside every allocation"), "{errors}");
}

#[test]
fn variables_may_be_gigabytes_apart() {
    let stand_in = StandIn::new();
    stand_in.passes(
        &build(&stand_in, "large_variables", "gfx90a", &["-Xarch_host", "-mcmodel=large"]),
        &[("WAVETAP_STRICT", "1")],
    );
}

#[test]
fn a_fault_is_described_and_stays() {
    let stand_in = StandIn::new();
    let program = build(&stand_in, "faults", "gfx90a", &[]);
    for (kind, says) in [
        (
            "far",
            "wavetap: store of 4 bytes at 0x200000000100 is outside every allocation (nearest: \
                0x200000000000..0x200000000100), in `global_store",
        ),
        ("wild", "store of 4 bytes at 0x10 is outside every allocation"),
        ("freed", "store of 4 bytes at 0x200000010100 is outside every allocation"),
        ("lds", "LDS access of 4 bytes at offset 0x400000 is outside the 256 bytes of the workgroup"),
        ("stack", "wavetap: stack overflow: store of 4 bytes at offset 0x"),
        ("stack", "hipDeviceSetLimit(hipLimitStackSize"),
        (
            "across",
            "store of 4 bytes at 0x2000000000fe runs past the end of its allocation, 0x200000000000..0x200000000100, \
                in `global_store",
        ),
        (
            "assert",
            "void claim(int): Device-side assertion `int(threadIdx.x) < limit && \"lanes have a limit\"' failed.",
        ),
        ("trap", ", in kernel trap()"),
    ] {
        let output = stand_in.run_with(&program, &[kind], &[("WAVETAP_STRICT", "1")]);
        let (text, errors) = text(&output);
        assert!(output.status.success() && text == "PASS\n", "{kind}: {}\n{text}{errors}", output.status);
        assert!(errors.contains(says), "{kind}: {errors}");
        assert!(!kind.starts_with('f') || errors.contains(" lane "), "{kind}: {errors}");
        // Two lanes are outside the limit.
        assert_eq!(errors.matches("Device-side assertion").count(), if kind == "assert" { 2 } else { 0 }, "{errors}");
    }
}

/// Runs a part of `streams.hip` that never ends until it has said enough on standard error, and gives that.
fn said_before_it_is_ended(
    stand_in: &StandIn,
    program: &Path,
    part: &str,
    enough: &str,
    variables: &[(&str, &str)],
) -> String {
    let mut command = Command::new(program);
    command.arg(part).env("LD_LIBRARY_PATH", stand_in.folder()).envs(variables.iter().copied()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut said = String::new();
    for line in BufReader::new(child.stderr.take().expect("piped")).lines() {
        said += &line.expect("text");
        if said.contains(enough) {
            break;
        }
    }
    let _ = child.kill();
    child.wait().expect("ended");
    said
}

#[test]
fn streams_and_the_program_make_progress_together() {
    let stand_in = StandIn::new();
    let program = build(&stand_in, "streams", "gfx90a", &[]);
    stand_in.passes(&program, &[]);
    stand_in.passes(&program, &[("WAVETAP_THREADS", "1")]);
    let timing = stand_in.file("time");
    for variables in
        [&[("WAVETAP_STRICT", "1")] as &[(&str, &str)], &[("WAVETAP_TIMING", timing.to_str().expect("plain"))]]
    {
        for part in ["persistent", "two_streams", "events", "default_stream", "callbacks", "copies", "graphs", "values"]
        {
            let output = stand_in.run_with(&program, &[part], variables);
            let (text, errors) = text(&output);
            let said = errors.lines().all(|line| line.starts_with("wavetap: times of events are modelled for "));
            assert!(
                output.status.success() && text == "PASS\n" && said,
                "{part} {variables:?}: {}\n{text}{errors}",
                output.status
            );
        }
    }
    // Waves of 32.
    let program = build(&stand_in, "streams", "gfx1100", &[]);
    stand_in.passes(&program, &[]);
    let output = stand_in.run_with(&program, &["fault"], &[]);
    let (text, errors) = text(&output);
    assert!(output.status.success() && text == "PASS\n", "{}\n{text}{errors}", output.status);
    let fault =
        errors.lines().find(|line| line.starts_with("wavetap: store of 4 bytes at 0x10 is outside every allocation"));
    assert!(fault.is_some_and(|line| line.ends_with("in kernel wait_and_store(int*, int*)")), "{errors}");
}

#[test]
fn what_waits_for_ever_is_said_and_ended() {
    let stand_in = StandIn::new();
    let program = build(&stand_in, "streams", "gfx90a", &[]);
    let said = said_before_it_is_ended(&stand_in, &program, "forever", "(--fuel)", &[]);
    for part in [
        "wavetap: kernel wait_for(int*, int) of stream 0x",
        "its waves go round in loops: they wait for what has not come",
        "the program waits in hipStreamSynchronize",
        "no other kernel is in flight; 1 operation cannot begin before others have ended",
        "ended when it has executed 50000000000 (--fuel)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = said_before_it_is_ended(&stand_in, &program, "forever_value", "in flight", &[]);
    assert!(said.contains("to be at least 0x3, which are 0x0; the program waits in hipDeviceSynchronize"), "{said}");
    let output = stand_in.run_with(&program, &["forever"], &[("WAVETAP_FUEL", "5000000")]);
    let (text, errors) = text(&output);
    assert!(
        !output.status.success()
            && text.is_empty()
            && errors.contains("kernel wait_for(int*, int)")
            && errors.contains("fuel"),
        "{errors}"
    );
}

#[test]
fn a_kernel_that_nothing_waits_for_ends_before_the_program_does() {
    let stand_in = StandIn::new();
    let program = build(&stand_in, "streams", "gfx90a", &[]);
    let trace = stand_in.file("trace");
    let output = stand_in.run_with(&program, &["unfinished"], &[("WAVETAP_TRACE", trace.to_str().expect("plain"))]);
    assert!(output.status.success(), "{}", text(&output).1);
    let trace = Profile::from_json(&std::fs::read(trace).expect("a trace")).expect("a profile");
    assert_eq!((trace.kernels.len(), trace.kernels[0].dispatches, trace.kernels[0].waves), (1, 1, 64));
    assert!(trace.complete);
}
