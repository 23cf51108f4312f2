//! Programs on AMD's own `libamdhip64` and `libhsa-runtime64`, as Debian has them, with the emulator in place of the
//! kernel driver.
//!
//! Debian 12's HIP 5.2 takes code objects of version 4, so the samples are compiled for this. Without the libraries the
//! tests fail and name the package. With `WAVETAP_ROCM_LIBRARIES` the prebuilt samples run on other versions, too.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rewriter_tests::command::{self, Finished};
use rewriter_tests::place::root;

/// Where Debian has the runtime.
const RUNTIME: &str = "/usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1";

/// What kernels with calls want of HIP 5.2, according to newer compilers than it knows, and do not use: a queue on the
/// device, at which its `hipLaunchKernel` crashes.
const WANTS_QUEUE: &[u8] = b"hidden_default_queue";

/// The samples and the program of this test, compiled for HIP 5.2.
fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<tempfile::TempDir> = OnceLock::new();
    PROGRAMS
        .get_or_init(|| {
            assert!(Path::new(RUNTIME).exists(), "{RUNTIME} is not there: install libamdhip64-dev (./test.sh does)");
            let folder = tempfile::tempdir().expect("a temporary folder");
            let built = Command::new(root().join("hip-samples/build.sh"))
                .arg("-o")
                .arg(folder.path())
                .args(["--", "-mcode-object-version=4"])
                // One target of its three is enough here.
                .args(["--no-offload-arch=gfx906", "--no-offload-arch=gfx942"])
                .status();
            assert!(built.expect("the script starts").success());
            let bitcode = folder.path().join(".bitcode");
            fs::create_dir(&bitcode).expect("a folder");
            let script = Command::new(root().join("hip-samples/bitcode.sh")).arg(&bitcode).status();
            assert!(script.expect("the script starts").success());
            let compiled = Command::new("clang++-19")
                .args(["-w", "-x", "hip", "-std=c++17", "-O2", "-mcode-object-version=4"])
                .args(["gfx90a", "gfx906", "gfx1030"].map(|target| format!("--offload-arch={target}")))
                .arg(format!("--rocm-device-lib-path={}", bitcode.display()))
                .arg(root().join("rewriter-tests/tests/rocm_stack/features.hip"))
                .arg("-o")
                .args([folder.path().join(".features").as_os_str(), "-lamdhip64".as_ref()])
                .output()
                .expect("clang++-19 starts");
            assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
            folder
        })
        .path()
}

/// The names of the samples.
fn samples() -> Vec<String> {
    let entries = fs::read_dir(programs()).expect("the folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().expect("a plain name")).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

fn program(name: &str) -> PathBuf {
    programs().join(name)
}

/// Runs a program with `wavetap run --stack rocm` and these options.
fn run(options: &[&str], program: &Path, arguments: &[&str]) -> Finished {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = program.to_str().expect("a plain path");
    let all = [&["run", "--stack", "rocm"], options, &["--", program], arguments].concat();
    // Nothing is left behind.
    let environment = [("TMPDIR", OsString::from(folder.path()))];
    let wavetap = command::wavetap().expect("the command is built");
    let finished = command::run(&wavetap, &all, &environment, folder.path()).expect("it ends");
    let left: Vec<_> =
        fs::read_dir(folder.path()).expect("the folder").flatten().map(|file| file.file_name()).collect();
    assert!(left.is_empty(), "{program} leaves {left:?}");
    finished
}

/// Output and everything else of a program that must have ended well.
fn output(finished: Finished) -> String {
    let text = finished.out().to_string();
    assert!(finished.err().is_empty(), "{}", finished.err());
    finished.exited(0).expect("it passes");
    text
}

#[test]
fn samples_pass_and_print_what_they_print_on_the_emulators_own_runtime() {
    let wavetap = command::wavetap().expect("the command is built");
    let (mut passed, mut unfit) = (Vec::new(), Vec::new());
    for name in samples() {
        let program = program(&name);
        let code = fs::read(&program).expect("a sample");
        if code.windows(WANTS_QUEUE.len()).any(|window| window == WANTS_QUEUE) {
            unfit.push(name);
            continue;
        }
        let text = output(run(&[], &program, &[]));
        assert!(text.ends_with("PASS\n"), "{name}: {text}");
        let arguments = ["run", "--backend", "emulator", "--", program.to_str().expect("a plain path")];
        let own = command::run(&wavetap, &arguments, &[], programs()).expect("it ends");
        assert_eq!(text, own.out().to_string(), "{name}");
        passed.push(name);
    }
    assert_eq!(unfit, ["calls", "o0"], "samples that HIP 5.2 cannot run");
    assert_eq!(passed.len(), 12);
}

#[test]
fn samples_pass_in_strict_mode() {
    for name in ["divergence", "histogram", "lds_reduce"] {
        for seed in ["0", "1"] {
            let text = output(run(&["--strict", "--seed", seed], &program(name), &[]));
            assert!(text.ends_with("PASS\n"), "{name}: {text}");
        }
    }
}

#[test]
fn what_hip_offers_works_on_several_targets() {
    for target in ["gfx90a", "gfx906", "gfx1030"] {
        let text = output(run(&["--target", target], &program(".features"), &["all"]));
        assert!(text.ends_with("PASS\n"), "{target}: {text}");
    }
}

/// The driver has to be told which GPU it has before a program loads anything.
#[test]
fn the_gpu_is_one_that_the_program_has_code_for() {
    let only = programs().join(".only");
    let built = Command::new(root().join("hip-samples/build.sh"))
        .arg("-o")
        .arg(&only)
        .arg("divergence")
        .args(["--", "-mcode-object-version=4", "--no-offload-arch=gfx90a", "--no-offload-arch=gfx942"])
        .status();
    assert!(built.expect("the script starts").success());
    let text = output(run(&[], &only.join("divergence"), &[]));
    assert!(text.ends_with("PASS\n"), "{text}");
}

#[test]
fn faults_reach_the_real_runtime() {
    let finished = run(&[], &program(".features"), &["fault"]);
    let said = finished.err().to_string();
    assert!(said.contains("store of 4 bytes at 0x123456789000 is outside every allocation"), "{said}");
    assert!(said.contains("in kernel store_at") && said.contains("Memory access fault by GPU"), "{said}");
    // It aborts, as on a GPU.
    finished.exited(134).expect("signal 6");
    let finished = run(&[], &program(".features"), &["trap"]);
    let said = finished.err();
    assert!(said.contains("wavetap: s_trap 2") && said.contains("in kernel give_up"), "{said}");
    assert!(said.contains("HSA_STATUS_ERROR_EXCEPTION"), "{said}");
    finished.exited(134).expect("signal 6");
}

/// Its counters are off: nothing has given it a buffer.
#[test]
fn a_rewritten_program_runs_as_the_original_does() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let wavetap = command::wavetap().expect("the command is built");
    let counting = folder.path().join("counting");
    let original = program("divergence");
    let [from, to] = [&original, &counting].map(|path| path.to_str().expect("a plain path"));
    let rewrite = ["rewrite", from, "-o", to];
    command::run(&wavetap, &rewrite, &[], folder.path()).expect("it ends").exited(0).expect("it is rewritten");
    let text = output(run(&[], &counting, &[]));
    assert!(text.ends_with("PASS\n"), "{text}");
    assert_eq!(text, output(run(&[], &original, &[])));
}

/// The prebuilt samples, unmodified, on libraries that `WAVETAP_ROCM_LIBRARIES` names: folders separated by colons, the
/// first with the loader (`ld-linux-x86-64.so.2`) of a Debian whose packages are unpacked there.
#[test]
fn samples_pass_on_other_versions() {
    let Some(folders) = std::env::var_os("WAVETAP_ROCM_LIBRARIES") else {
        eprintln!("WAVETAP_ROCM_LIBRARIES is not set: only the installed version of ROCm is tested");
        return;
    };
    let loader = std::env::split_paths(&folders).next().expect("a folder").join("ld-linux-x86-64.so.2");
    for entry in fs::read_dir(root().join("hip-samples/bin")).expect("the samples") {
        let sample = entry.expect("an entry").path();
        let arguments = ["--library-path".into(), folders.clone(), sample.clone().into_os_string()];
        let arguments = arguments.map(|argument: OsString| argument.into_string().expect("plain paths"));
        let finished = run(&[], &loader, &arguments.each_ref().map(String::as_str));
        // ROCr 7 says at the end that it has lost signals.
        assert!(finished.out().ends_with("PASS\n"), "{}: {finished:?}", sample.display());
        finished.exited(0).expect("it passes");
    }
}

#[test]
fn what_is_not_collected_is_refused() {
    let wavetap = command::wavetap().expect("the command is built");
    for options in [&["run", "-o", "p"][..], &["run", "--trace", "t"], &["profile"], &["compare"]] {
        let program = program("divergence");
        let arguments = [options, &["--stack", "rocm", "--", program.to_str().expect("a plain path")]].concat();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let finished = command::run(&wavetap, &arguments, &[], folder.path()).expect("it ends");
        assert!(finished.err().contains("--stack rocm"), "{}", finished.err());
        finished.exited(2).expect("refused");
    }
}
