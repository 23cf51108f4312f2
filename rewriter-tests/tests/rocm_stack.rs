//! Programs on AMD's own `libamdhip64` and `libhsa-runtime64`, as Debian has them, with the emulator in place of the
//! kernel driver; and what the HSA tool counts of them.
//!
//! Debian 12's HIP 5.2 takes code objects of version 4, so the samples are compiled for this ([`hip5`]). Without the
//! libraries the tests fail and name the package. With `WAVETAP_ROCM_LIBRARIES` the prebuilt samples run on other
//! versions, too.

#[path = "rocm_stack/faults.rs"]
mod faults;
#[path = "rocm_stack/gpus.rs"]
mod gpus;
#[path = "rocm_stack/hip.rs"]
mod hip;
#[path = "rocm_stack/latency.rs"]
mod latency;
#[path = "rocm_stack/lds.rs"]
mod lds;
#[path = "rocm_stack/memory.rs"]
mod memory;
#[path = "rocm_stack/occupancy.rs"]
mod occupancy;
#[path = "rocm_stack/openmp.rs"]
mod openmp;
#[path = "rocm_stack/ranges.rs"]
mod ranges;
#[path = "rocm_stack/time.rs"]
mod time;
#[path = "rocm_stack/wild.rs"]
mod wild;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rewriter_tests::command::{self, Finished};
use rewriter_tests::full;
use rewriter_tests::hip::device_libraries;
use rewriter_tests::hip5;
use rewriter_tests::place::root;
use wavetap::profile::file::{Origin, Profile};
use wavetap::profile::host::HostActivity;

/// Where Debian has the runtime.
const RUNTIME: &str = "/usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1";

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
            device_libraries(&bitcode).expect("device libraries");
            compile(folder.path(), "features", &["gfx90a", "gfx906", "gfx1030"]);
            for program in
                ["two_gpus", "modules", "prints", "occupancy", "answers", "compiles", "lds_rest", "wild", "no_kernel"]
            {
                compile(folder.path(), program, &["gfx90a"]);
            }
            compile(folder.path(), "bad_store", &["gfx90a", "gfx1030"]);
            ranges::compile(folder.path());
            build_direct(folder.path());
            let mut unfit = Vec::new();
            for entry in
                fs::read_dir(folder.path()).expect("the folder").flatten().filter(|entry| entry.path().is_file())
            {
                if hip5::make_fit(&entry.path()).expect("it is changed") > 0 {
                    unfit.push(entry.file_name().into_string().expect("a plain name"));
                }
            }
            unfit.sort();
            assert_eq!(
                unfit,
                [".prints", "calls", "o0"],
                "programs that HIP 5.2 cannot run as newer compilers have them"
            );
            folder
        })
        .path()
}

/// Compiles a program of this test, whose file's name begins with a dot: it is no sample.
fn compile(folder: &Path, name: &str, targets: &[&str]) {
    let compiled = Command::new("clang++-19")
        .args(["-w", "-x", "hip", "-std=c++17", "-O2", "-gline-tables-only", "-mcode-object-version=4", "-pthread"])
        .args(targets.iter().map(|target| format!("--offload-arch={target}")))
        .arg(format!("--rocm-device-lib-path={}", folder.join(".bitcode").display()))
        .arg(root().join(format!("rewriter-tests/tests/rocm_stack/{name}.hip")))
        .arg("-o")
        .args([folder.join(format!(".{name}")).as_os_str(), "-lamdhip64".as_ref()])
        .output()
        .expect("clang++-19 starts");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

/// Builds the program that uses HSA without HIP, its kernels, and those of a module.
fn build_direct(folder: &Path) {
    let sources = root().join("rewriter-tests/tests/rocm_stack");
    let kernels = [("direct_kernel", ".direct.co"), ("module_kernel", ".module.co")].map(|(source, object)| {
        Command::new("clang++-19")
            .args(["-w", "-x", "hip", "-O2", "-mcode-object-version=4", "--offload-arch=gfx90a"])
            .args(["--offload-device-only", "--no-gpu-bundle-output"])
            .arg(format!("--rocm-device-lib-path={}", folder.join(".bitcode").display()))
            .arg(sources.join(source).with_extension("hip"))
            .arg("-o")
            .arg(folder.join(object))
            .output()
    });
    let program = Command::new("clang-19")
        .args(["-O1", "-Wall", "-Werror"])
        .arg(sources.join("direct.c"))
        .arg("-o")
        .args([folder.join(".direct").as_os_str(), "-lhsa-runtime64".as_ref()])
        .output();
    for built in kernels.into_iter().chain([program]) {
        let built = built.expect("the compiler starts");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
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
    wavetap(&[&["run", "--stack", "rocm"], options].concat(), program, arguments)
}

/// Runs a program with a command of `wavetap` and its options.
fn wavetap(command: &[&str], program: &Path, arguments: &[&str]) -> Finished {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = program.to_str().expect("a plain path");
    let all = [command, &["--", program], arguments].concat();
    // Nothing is left behind.
    let environment = [("TMPDIR", OsString::from(folder.path()))];
    let wavetap = command::wavetap().expect("the command is built");
    let finished = command::run(&wavetap, &all, &environment, folder.path()).expect("it ends");
    let left: Vec<_> =
        fs::read_dir(folder.path()).expect("the folder").flatten().map(|file| file.file_name()).collect();
    assert!(left.is_empty(), "{program} leaves {left:?}");
    finished
}

/// Profiles a program with these options; what was counted, without what only one of the two stacks has.
fn profile(options: &[&str], program: &Path, arguments: &[&str]) -> (Finished, Option<Profile>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [profile, report] = ["profile", "report"].map(|name| folder.path().join(name).display().to_string());
    let command = [&["profile", "--target", "gfx90a", "-o", &profile, "--report", &report], options].concat();
    let finished = wavetap(&command, program, arguments);
    let profile = fs::read(&profile).ok().map(|json| Profile::from_json(&json).expect("a profile"));
    let profile = profile.map(|mut profile| {
        profile.kernels.iter_mut().chain(&mut profile.regions).for_each(|kernel| kernel.work = None);
        // The emulator's own runtime is asked for copies, the HSA tool is not.
        profile.host = HostActivity::default();
        profile
    });
    (finished, profile)
}

/// What a program counts that must have ended well.
fn counts(options: &[&str], program: &Path, arguments: &[&str]) -> Profile {
    let (finished, profile) = profile(options, program, arguments);
    assert!(finished.out().ends_with("PASS\n") && finished.err().is_empty(), "{finished:?}");
    finished.exited(0).expect("it passes");
    profile.expect("a profile was written")
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
    let command = command::wavetap().expect("the command is built");
    let mut passed = 0;
    for name in samples() {
        let program = program(&name);
        let text = output(run(&[], &program, &[]));
        assert!(text.ends_with("PASS\n"), "{name}: {text}");
        let arguments = ["run", "--backend", "emulator", "--", program.to_str().expect("a plain path")];
        let own = command::run(&command, &arguments, &[], programs()).expect("it ends");
        assert_eq!(text, own.out().to_string(), "{name}");
        passed += 1;
    }
    assert_eq!(passed, 14);
}

#[test]
fn samples_pass_and_count_in_strict_mode() {
    for name in ["divergence", "histogram", "lds_reduce", "nested_loops", "two_kernels"] {
        let expected = counts(&["--stack", "hip"], &program(name), &[]);
        for seed in ["0", "1"] {
            let strict = ["--strict", "--seed", seed];
            let text = output(run(&strict, &program(name), &[]));
            assert!(text.ends_with("PASS\n"), "{name}: {text}");
            let counted = counts(&[&["--stack", "rocm"], &strict[..]].concat(), &program(name), &[]);
            assert_eq!(counted, expected, "{name}, seed {seed}");
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

/// Without -o its counters are off: nothing has given it a buffer.
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
        let arguments = arguments.each_ref().map(String::as_str);
        let (finished, real) = profile(&["--stack", "rocm"], &loader, &arguments);
        assert!(finished.out().ends_with("PASS\n"), "{}: {finished:?}", sample.display());
        assert_eq!(real.expect("a profile"), counts(&["--stack", "hip"], &sample, &[]), "{}", sample.display());
    }
}

#[test]
fn samples_count_what_they_count_on_the_emulators_own_runtime() {
    let mut dispatches = 0;
    for (number, name) in samples().into_iter().enumerate() {
        let program = program(&name);
        let modes = ["lds", "global", "register"];
        // Quick: one after the other.
        let modes = if full() { &modes[..] } else { &modes[number % 3..][..1] };
        for mode in modes {
            let real = counts(&["--stack", "rocm", "--counters", mode], &program, &[]);
            assert_eq!(real, counts(&["--stack", "hip", "--counters", mode], &program, &[]), "{name}, {mode}");
            assert!(real.complete && real.kernels.iter().all(|kernel| kernel.waves > 0), "{name}, {mode}");
            dispatches += real.kernels.iter().map(|kernel| kernel.dispatches).sum::<u64>();
        }
    }
    assert_eq!(dispatches, 23 * if full() { 3 } else { 1 }, "dispatches of the samples");
}

/// With nothing rewritten: HIP's own kernels are not among them.
#[test]
fn launches_are_those_of_the_emulators_own_runtime() {
    let mut launches = 0;
    for name in samples() {
        let [real, own] = ["rocm", "hip"].map(|s| counts(&["--stack", s, "--probe", "none"], &program(&name), &[]));
        assert_eq!(real, own, "{name}");
        assert!(real.complete && real.origin == Origin::Launches, "{name}");
        launches += real.kernels.iter().flat_map(|kernel| &kernel.launches).map(|shape| shape.dispatches).sum::<u64>();
    }
    assert_eq!(launches, 23, "dispatches of the samples");
}

/// One that was rewritten before is armed, and one that is rewritten when it is loaded counts the same.
#[test]
fn a_rewritten_program_is_armed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["divergence", "dynamic_lds"] {
        let original = program(name);
        let [counting, profile] = ["counting", "profile"].map(|name| folder.path().join(name));
        let [from, to, profile] = [&original, &counting, &profile].map(|path| path.to_str().expect("a plain path"));
        let rewrite = ["rewrite", from, "-o", to, "--force", "--counters", "lds"];
        let rewritten = command::run(&command::wavetap().expect("the command is built"), &rewrite, &[], folder.path());
        rewritten.expect("it ends").exited(0).expect("it is rewritten");
        let target = ["--target", "gfx90a", "-o", profile, "--force"];
        let text = output(run(&target, &counting, &[]));
        assert_eq!(text, output(run(&[], &original, &[])), "{name}");
        let mut found = Profile::from_json(&fs::read(profile).expect("a profile")).expect("a profile");
        found.kernels.iter_mut().for_each(|kernel| kernel.work = None);
        assert_eq!(found, counts(&["--stack", "rocm", "--counters", "lds"], &original, &[]), "{name}");
    }
}

/// Streams, events, graphs, pinned memory, cooperative launches, `fork`: all but the kernel that waits for another one,
/// for as long as that takes, counts what it counts on the emulator's own runtime.
#[test]
fn what_hip_offers_is_counted() {
    let count = |stack| {
        let mut profile = counts(&["--stack", stack], &program(".features"), &["all"]);
        profile.kernels.retain(|kernel| kernel.name != "meet");
        profile
    };
    let real = count("rocm");
    assert!(real.kernels.len() >= 2, "{real:?}");
    assert_eq!(real, count("hip"));
}

/// A program without HIP. Dispatches overlap on several queues; whatever way it ends, what was collected is there, and
/// what was not is mentioned.
#[test]
fn a_program_that_uses_hsa_directly_is_counted() {
    let object = program(".direct.co");
    let direct = |mode: &str, queues: &str, rounds: &str, end: &str| {
        let arguments = [object.to_str().expect("a plain path"), queues, rounds, end];
        profile(&["--stack", "rocm", "--counters", mode], &program(".direct"), &arguments)
    };
    let complete = |mode, queues, rounds, end| {
        let (finished, profile) = direct(mode, queues, rounds, end);
        assert!(finished.out().ends_with("PASS\n") && finished.err().is_empty(), "{end}: {finished:?}");
        finished.exited(0).expect("it passes");
        profile.expect("a profile")
    };
    for mode in ["lds", "register"] {
        let once = complete(mode, "1", "1", "return");
        let mut expected = once.clone();
        for _ in 1..20 {
            expected.merge(&once).expect("profiles of one program");
        }
        expected.processes = 1;
        assert_eq!(expected.kernels.iter().map(|kernel| kernel.waves).collect::<Vec<_>>(), [320, 320]);
        for (queues, rounds, end) in [("4", "5", "return"), ("5", "4", "shutdown"), ("2", "10", "fork")] {
            assert_eq!(complete(mode, queues, rounds, end), expected, "{mode}, {queues} queues, {end}");
        }
    }
    // The stack that it needs is found without being named.
    let arguments = [object.to_str().expect("a plain path"), "1", "1", "return"];
    let (chosen, counted) = profile(&["--counters", "lds"], &program(".direct"), &arguments);
    let said = "wavetap: the application is linked with libhsa-runtime64.so.1, not with HIP: running it with --stack \
                rocm\n";
    assert_eq!((chosen.err(), counted), (said.into(), Some(complete("lds", "1", "1", "return"))));
    let once = complete("lds", "1", "1", "_exit");
    assert_eq!(once, complete("lds", "1", "1", "return"));
    let (finished, profile) = direct("lds", "1", "1", "abort");
    let said = finished.err();
    assert!(said.contains("SIGABRT") && !said.contains("before all was collected"), "{said}");
    let aborted = profile.expect("a profile");
    assert_eq!(aborted.kernels, once.kernels);
    assert!(!aborted.complete);
    let (finished, profile) = direct("lds", "2", "10", "early");
    assert!(finished.err().contains("ended before all was collected"), "{}", finished.err());
    finished.exited(1).expect("something is missing");
    assert!(!profile.expect("a profile").complete);
}

#[test]
fn ranks_have_their_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = folder.path().join("rank%r.profile");
    let arguments =
        ["run", "--stack", "rocm", "-o", output.to_str().expect("a plain path"), "--", "/bin/sh", "-c", "$0 && $0"];
    let program = program("vectoradd").into_os_string().into_string().expect("a plain path");
    let environment = [("MV2_COMM_WORLD_RANK", OsString::from("5"))];
    let wavetap = command::wavetap().expect("the command is built");
    let ended = command::run(&wavetap, &[&arguments[..], &[&program]].concat(), &environment, folder.path());
    // Nothing was counted, which was asked for.
    ended.expect("it ends").exited(1).expect("it passes");
    let profile =
        Profile::from_json(&fs::read(folder.path().join("rank5.profile")).expect("a file")).expect("a profile");
    // It was not rewritten: both processes loaded the tool, which lists what it did not count.
    assert!(profile.kernels.is_empty() && !profile.uncounted.is_empty(), "{profile:?}");
}

#[test]
fn modes_are_compared() {
    let finished = wavetap(&["compare", "--stack", "rocm", "--target", "gfx90a"], &program("dynamic_lds"), &[]);
    assert!(finished.out().contains("counts: the same in all modes"), "{finished:?}");
    finished.exited(0).expect("they agree");
}

/// What someone with a GPU is asked to run, here with the emulated driver.
#[test]
fn the_script_for_gpus_finds_what_differs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::copy(program("vectoradd"), folder.path().join("vectoradd")).expect("a copy");
    let report = tempfile::NamedTempFile::new().expect("a file");
    let check = |options: &str| {
        let ended = Command::new(root().join("hip-samples/gpu-check.sh"))
            .arg(report.path())
            .env("WAVETAP", command::wavetap().expect("the command is built"))
            .env("WAVETAP_CHECK_OPTIONS", options)
            .env("WAVETAP_CHECK_TARGET", "gfx90a")
            .env("WAVETAP_CHECK_SAMPLES", folder.path())
            .output();
        let text = fs::read_to_string(report.path()).expect("a report");
        (ended.expect("bash starts").status.success(), text)
    };
    let (same, text) = check("--stack rocm --target gfx90a");
    assert!(same && text.matches(": the same").count() == 15 && text.contains("\n0 different\n"), "{text}");
    let (same, text) = check("--backend gpu");
    assert!(!same && text.contains("DIFFERENT") && text.contains("no AMD GPU here"), "{text}");
}

#[test]
fn a_program_without_rocm_is_said_to_be_one() {
    let finished = wavetap(&["profile", "--stack", "rocm"], Path::new("/bin/true"), &[]);
    assert!(finished.err().contains("the HSA tool was loaded into no process"), "{}", finished.err());
    finished.exited(2).expect("nothing to count");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let profile = folder.path().join("profile").display().to_string();
    let finished = run(&["-o", &profile], Path::new("/bin/true"), &[]);
    assert!(finished.err().contains("the HSA tool was loaded into no process"), "{}", finished.err());
    finished.exited(0).expect("it ran");
}

#[test]
fn what_the_real_stack_lacks_is_refused_by_name() {
    for (command, name) in [
        (&["run", "--trace", "t"][..], "the emulator's trace"),
        (&["run", "--timing"], "--timing"),
        (&["profile", "--timing"], "--timing"),
        (&["profile", "--per-wave"], "--per-wave"),
        (&["profile", "--strict-continue"], "--strict-continue"),
        (&["compare", "--timing"], "--timing"),
    ] {
        let finished = wavetap(&[command, &["--stack", "rocm"]].concat(), &program("divergence"), &[]);
        let said = finished.err();
        assert!(said.contains(name) && said.contains("--stack rocm"), "{said}");
        finished.exited(2).expect("refused");
    }
}
