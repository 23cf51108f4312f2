//! Programs that end in every manner there is, and programs of several processes: all that was dispatched to its end is
//! in the profile, once.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rewriter_tests::command::{self, Finished};
use rewriter_tests::hip;
use rewriter_tests::place::root;
use wavetap::profile::file::Profile;

/// The program as compiled, and as one that counts.
struct Programs {
    _folder: tempfile::TempDir,
    original: PathBuf,
    counting: PathBuf,
}

fn programs() -> &'static Programs {
    static PROGRAMS: OnceLock<Programs> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let bitcode = folder.path().join("bitcode");
        hip::device_libraries(&bitcode).expect("device libraries");
        let (original, counting) = (folder.path().join("endings"), folder.path().join("endings.counting"));
        let compiled = Command::new("clang++-19")
            .args(["-w", "-x", "hip", "-std=c++17", "-O2", "--offload-arch=gfx90a"])
            .arg(format!("--rocm-device-lib-path={}", bitcode.display()))
            .arg(root().join("rewriter-tests/tests/processes/endings.hip"))
            .arg("-o")
            .args([original.as_os_str(), "-lamdhip64".as_ref()])
            .output()
            .expect("clang++-19 starts");
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let programs = Programs { _folder: folder, original, counting };
        let [original, counting] =
            [&programs.original, &programs.counting].map(|path| path.to_str().expect("a plain path"));
        wavetap(&["rewrite", original, "-o", counting], programs.original.parent().expect("a folder"))
            .exited(0)
            .expect("it is rewritten");
        programs
    })
}

fn wavetap(arguments: &[&str], folder: &Path) -> Finished {
    command::run(&command::wavetap().expect("the command is built"), arguments, &[], folder).expect("it ends")
}

/// Runs the counting program and gives what was written and what was counted.
fn counted(ending: &str, times: u32) -> (Finished, Profile) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = programs().counting.to_str().expect("a plain path");
    let finished =
        wavetap(&["run", "--backend", "emulator", "-o", "p", "--", program, &times.to_string(), ending], folder.path());
    let profile = Profile::from_json(&fs::read(folder.path().join("p")).expect("a profile")).expect("it is one");
    let left: Vec<_> =
        fs::read_dir(folder.path()).expect("the folder").map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(left, ["p"], "{ending}: nothing else is left");
    (finished, profile)
}

#[test]
fn every_dispatch_is_counted_however_the_program_ends() {
    for (ending, code, complete, dispatches, said) in [
        ("return", 0, true, 7, ""),
        ("exit", 0, true, 7, ""),
        ("_exit", 0, true, 7, ""),
        ("quick_exit", 0, true, 7, ""),
        ("atexit", 0, true, 14, ""),
        // Of a thread-local object and of a static one.
        ("destructors", 0, true, 21, ""),
        ("reset", 0, true, 7, ""),
        ("abort", 134, false, 7, "was ended by SIGABRT (signal 6)"),
        ("fault", 139, false, 7, "was ended by SIGSEGV (signal 11)"),
        ("term", 143, false, 7, "was ended by SIGTERM (signal 15)"),
        ("kill", 137, false, 7, "was ended by SIGKILL (signal 9)"),
        // Two programs in one process.
        ("exec", 0, true, 14, ""),
        // 7 before, 14 in the child, 7 more.
        ("fork", 0, true, 28, "the sum of 2 processes"),
        ("idle", 0, true, 7, ""),
    ] {
        let (finished, profile) = counted(ending, 7);
        assert_eq!(finished.code, code, "{}", finished.failure(ending));
        assert_eq!((profile.complete, profile.kernels.len()), (complete, 1), "{ending}");
        let kernel = &profile.kernels[0];
        assert_eq!((kernel.dispatches, kernel.waves, kernel.unfinished), (dispatches, dispatches, 0), "{ending}");
        assert!(
            kernel.sites.iter().all(|site| site.counts.executions() == Some(dispatches)),
            "{ending}: {:?}",
            kernel.sites
        );
        assert_eq!(profile.processes, if ending == "fork" { 2 } else { 1 }, "{ending}");
        let says = if said.is_empty() { finished.err().is_empty() } else { finished.err().contains(said) };
        assert!(says, "{}", finished.failure(ending));
    }
}

#[test]
fn the_report_says_how_a_run_was_cut_short() {
    let program = programs().original.to_str().expect("a plain path");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let profile = |ending| wavetap(&["profile", "--backend", "emulator", "--", program, "3", ending], folder.path());
    let killed = profile("kill");
    assert!(
        killed.code == 137 && killed.out().contains("the run was ended by SIGKILL (signal 9)"),
        "{}",
        killed.failure("kill")
    );
    assert!(killed.out().contains("3 dispatches"), "{}", killed.failure("kill"));
    // The name that it executes is the original's, whose code is rewritten when it is loaded.
    let original = profile("exec");
    assert!(original.code == 0 && original.out().contains("6 dispatches"), "{}", original.failure("exec"));
    for ending in ["_exit", "quick_exit", "return"] {
        let ended = profile(ending);
        assert!(ended.code == 0 && ended.out().contains("3 dispatches"), "{}", ended.failure(ending));
        assert!(!ended.out().contains("did not end") && !ended.out().contains("ended by"), "{}", ended.failure(ending));
    }
}

#[test]
fn a_script_of_several_programs_adds_up_or_gives_each_its_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = programs().counting.to_str().expect("a plain path");
    let script = folder.path().join("all.sh");
    let lines = format!(
        "#!/bin/sh\n'{program}' 1 return\n'{program}' 2 _exit & '{program}' 4 exit; wait\n'{program}' 8 kill\nexit 0\n"
    );
    fs::write(&script, lines).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a script that runs");
    let run = |output: &str| {
        wavetap(&["run", "--backend", "emulator", "-o", output, "--trace", "trace%p", "--", "./all.sh"], folder.path())
    };
    let sum = run("sum");
    assert!(sum.code == 0 && sum.err().contains("the sum of 4 processes"), "{}", sum.failure("sum"));
    let read = |path: &Path| Profile::from_json(&fs::read(path).expect("a file")).expect("a profile");
    let profile = read(&folder.path().join("sum"));
    assert_eq!((profile.kernels[0].dispatches, profile.processes), (15, 4));
    let mut each = Vec::new();
    run("each%p").exited(0).expect("it ends with 0");
    for entry in fs::read_dir(folder.path()).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("each")) {
            each.push(read(&path).kernels[0].dispatches);
        }
    }
    each.sort_unstable();
    assert_eq!(each, [1, 2, 4, 8]);
    // What a script runs is counted by `profile`, too; a script itself has no code to be rewritten.
    let profiled = wavetap(&["profile", "--backend", "emulator", "./all.sh"], folder.path());
    let counted = profiled.out().contains("15 dispatches") && profiled.out().contains("the sum of 4 processes");
    assert!(profiled.code == 0 && counted, "{}", profiled.failure("script"));
    let refused = wavetap(&["rewrite", "./all.sh", "-o", "rewritten"], folder.path());
    assert!(refused.code == 2, "{}", refused.failure("rewrite"));
}

#[test]
fn each_rank_has_a_file_and_a_name_that_is_unknown_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [original, program] =
        [&programs().original, &programs().counting].map(|path| path.to_str().expect("a plain path"));
    let script = folder.path().join("ranks.sh");
    // Rank 1 has two processes.
    let lines = format!(
        "#!/bin/sh\nPMI_RANK=0 '{program}' 1 return\nexport OMPI_COMM_WORLD_RANK=1\n'{program}' 2 return\n\
            PMI_RANK=7 '{program}' 4 return\n"
    );
    fs::write(&script, lines).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a script that runs");
    let run =
        |output: &str| wavetap(&["run", "--backend", "emulator", "-o", output, "--", "./ranks.sh"], folder.path());
    run("%%%h-rank%r").exited(0).expect("it ends with 0");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("the host's name");
    let read = |rank: u32| {
        let file = fs::read(folder.path().join(format!("%{}-rank{rank}", host.trim()))).expect("a file of each rank");
        let profile = Profile::from_json(&file).expect("a profile");
        assert_eq!((profile.rank, profile.hostname.as_deref()), (Some(rank), Some(host.trim())));
        (profile.kernels[0].dispatches, profile.processes)
    };
    assert_eq!([read(0), read(1)], [(1, 1), (6, 2)]);
    run("all").exited(0).expect("it ends with 0");
    let all = Profile::from_json(&fs::read(folder.path().join("all")).expect("a file")).expect("a profile");
    assert_eq!((all.rank, all.hostname.as_deref()), (None, Some(host.trim())), "several ranks on one host");
    assert!(run("%r").err().is_empty(), "all have one");
    let again = run("%r");
    assert!(again.code == 2 && again.err().contains("use --force"), "{}", again.failure("it would replace files"));

    let single =
        wavetap(&["profile", "--backend", "emulator", "-o", "only%r", "--", original, "1", "return"], folder.path());
    assert!(single.err().contains("has no rank (OMPI_COMM_WORLD_RANK"), "{}", single.failure("no rank"));
    let only = Profile::from_json(&fs::read(folder.path().join("only0")).expect("a file")).expect("a profile");
    assert_eq!((only.rank, only.hostname), (None, None));
    for option in ["-o", "--trace", "--samples"] {
        let refused = wavetap(&["run", option, "file%x", "--", program, "1"], folder.path());
        assert!(refused.code == 2 && refused.err().contains("%x in the name: %p (process)"), "{}", refused.err());
    }
}

#[test]
fn a_process_that_goes_on_is_named() {
    programs();
    let start = Instant::now();
    let (finished, profile) = counted("daemon", 3);
    assert!(finished.code == 1 && finished.err().contains("is still running"), "{}", finished.failure("daemon"));
    assert!(
        !profile.complete && (3..=6).contains(&profile.kernels[0].dispatches),
        "{:?}",
        profile.kernels[0].dispatches
    );
    // Not as long as the process.
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn outputs_are_tried_before_the_application_runs_and_devices_stay() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = programs().counting.to_str().expect("a plain path");
    let run = |arguments: &[&str]| {
        let arguments: Vec<&str> = ["run", "--backend", "emulator"]
            .iter()
            .chain(arguments)
            .chain(&["--", program, "1", "return"])
            .copied()
            .collect();
        wavetap(&arguments, folder.path())
    };
    fs::create_dir(folder.path().join("directory")).expect("a folder");
    fs::write(folder.path().join("file"), "old").expect("a file");
    for (arguments, said) in [
        (&["-o", "nowhere/p"][..], "there is no folder nowhere"),
        (&["-o", "directory", "--force"], "is a directory"),
        (&["-o", "file"], "use --force"),
        (&["-o", "file/p"], "file/p"),
        (&["-o", "p", "--trace", "p"], "two outputs"),
        (&["-o", "/proc/p"], "/proc/p: cannot be written"),
        (&["--timing", "--report", "nowhere/r"], "there is no folder nowhere"),
    ] {
        let refused = run(arguments);
        assert!(
            refused.code == 2 && refused.err().contains(said) && refused.out().is_empty(),
            "{}",
            refused.failure(said)
        );
    }
    // Devices, FIFOs and the targets of links are written to.
    std::os::unix::fs::symlink("file", folder.path().join("link")).expect("a link");
    run(&["-o", "link", "--force"]).exited(0).expect("it is written");
    assert!(folder.path().join("link").is_symlink());
    assert!(fs::read_to_string(folder.path().join("file")).expect("the file").contains("wavetap.profile/2"));
    for force in [&["-o", "/dev/null"][..], &["-o", "/dev/null", "--force"]] {
        run(force).exited(0).expect("it is written");
        assert!(fs::metadata("/dev/null").expect("the device").file_type().is_char_device());
    }
    let full = run(&["-o", "/dev/full"]);
    assert!(full.code == 2 && full.err().contains("No space left"), "{}", full.failure("/dev/full"));
    assert_eq!(full.out(), "return\n", "the application is unharmed");
    let shown = run(&["--timing", "--format", "json", "--report", "/dev/stdout", "--force"]);
    assert!(shown.code == 0 && shown.out().starts_with("return\n{"), "{}", shown.failure("/dev/stdout"));
    assert!(shown.err().contains("without -o it counts nothing"), "{}", shown.failure("counting is off"));
    assert!(fs::symlink_metadata("/dev/stdout").expect("the link").is_symlink());
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo starts").success());
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || fs::read_to_string(fifo).expect("what is written")
    });
    run(&["-o", "fifo"]).exited(0).expect("it is written");
    assert!(reader.join().expect("the reader").contains("wavetap.profile/2"));
    assert!(fs::metadata(&fifo).expect("the FIFO").file_type().is_fifo());
}

#[test]
fn a_disk_that_is_full_harms_no_application() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (program, wavetap) = (programs().counting.display(), command::wavetap().expect("the command is built"));
    // 2 KiB: less than the counts of 2000 dispatches.
    let line = format!("ulimit -f 4; {} run --backend emulator -o p -- {program} 2000 return", wavetap.display());
    let full = command::run("/bin/sh".as_ref(), &["-c", &line], &[], folder.path()).expect("it ends");
    assert!(
        full.code != 0 && full.out() == "return\n" && full.err().contains("could not be written"),
        "{}",
        full.failure("a full disk")
    );
    assert!(full.err().contains("could not write all that it collected"), "{}", full.failure("a full disk"));
    let left = fs::read_dir(folder.path())
        .expect("the folder")
        .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name() != "p"));
    assert_eq!(left.count(), 0);
}

#[test]
fn an_interrupt_to_the_command_alone_reaches_the_application() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut child = Command::new(command::wavetap().expect("the command is built"))
        // A shell lets what it starts in the background ignore interrupts.
        .args(["run", "--backend", "emulator", "--", "/usr/bin/env", "--default-signal=INT", "/bin/sleep", "600"])
        .current_dir(folder.path())
        .spawn()
        .expect("it starts");
    // It needs a moment to start the application.
    std::thread::sleep(Duration::from_secs(2));
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill starts").success());
    let start = Instant::now();
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    assert!(start.elapsed() < Duration::from_secs(60));
}

/// Counts of a dispatch are there when it has ended: what runs until then is named, and is not said to be nothing.
#[test]
fn an_interrupt_during_the_first_kernel_names_it() {
    let program = programs().counting.to_str().expect("a plain path");
    for arguments in
        [&["profile"][..], &["profile", "--probe", "none"], &["profile", "--probe", "memory"], &["run", "-o", "p"]]
    {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = |name: &str| folder.path().join(name);
        let create = |name: &str| fs::File::create(file(name)).expect("a file");
        let original = programs().original.to_str().expect("a plain path");
        let program = if arguments[0] == "run" { program } else { original };
        let mut child = Command::new(command::wavetap().expect("the command is built"))
            .args(arguments)
            // A shell lets what it starts in the background ignore interrupts.
            .args(["--backend", "emulator", "--", "/usr/bin/env", "--default-signal=INT", program, "1", "goes_on"])
            .current_dir(folder.path())
            .stdout(create("out"))
            .stderr(create("err"))
            .spawn()
            .expect("it starts");
        let read = |name: &str| fs::read_to_string(file(name)).expect("text");
        let start = Instant::now();
        while !read("out").contains("goes on") && start.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(20));
        }
        // What a kernel executes at once is some milliseconds.
        std::thread::sleep(Duration::from_secs(3));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill starts").success());
        let status = child.wait().expect("it ends");
        let (out, err) = (read("out"), read("err"));
        assert_eq!(status.code(), Some(130), "{arguments:?}: {out}{err}");
        let named = "was ended by SIGINT (signal 2) while goes_on(unsigned int volatile*) ran";
        assert!(err.contains(named), "{arguments:?}: {out}{err}");
        for wrong in ["kernel was dispatched", "no kernel ran", "no instrumented kernel ran", "no kernel selected"] {
            assert!(!out.contains(wrong) && !err.contains(wrong), "{arguments:?}: {out}{err}");
        }
    }
}

/// How a command ends; none if that takes more than a minute, after which it is ended.
fn status_of(child: &mut Child) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("it is ended");
    None
}

/// The command, which ignores no signal: a shell lets what it starts in the background ignore interrupts, and so would
/// all that tests start there.
fn with_default_signals() -> Command {
    let mut command = Command::new("/usr/bin/env");
    command.arg("--default-signal=INT,QUIT,TERM,HUP").arg(command::wavetap().expect("the command is built"));
    command
}

/// Sends a signal to a command whose application has ended, and which cannot go on since its output is not read.
#[test]
fn a_signal_ends_the_command_after_its_application_and_leaves_nothing() {
    let sample = root().join("hip-samples/bin/divergence");
    for (name, number) in [("TERM", 15), ("HUP", 1), ("QUIT", 3)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // As much as a pipe holds, after something to report.
        let application =
            format!("{} > /dev/null; head -c 65536 /dev/zero; : > ended", sample.to_str().expect("a plain path"));
        let mut child = with_default_signals()
            .args(["profile", "--backend", "emulator", "--", "/bin/sh", "-c", &application])
            .current_dir(folder.path())
            .env("TMPDIR", folder.path())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("it starts");
        let start = Instant::now();
        let ended = folder.path().join("ended");
        while !ended.exists() && start.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(fs::remove_file(&ended).is_ok(), "the application did not end");
        let temporary = || fs::read_dir(folder.path()).expect("the folder").count();
        // It is about to be waited for.
        std::thread::sleep(Duration::from_secs(1));
        let is_running = child.try_wait().expect("it can be waited for").is_none();
        assert!(is_running && temporary() > 0, "the command has its temporary folders while it reports");
        let signal = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
        assert!(signal.expect("kill starts").success());
        let status = status_of(&mut child);
        assert_eq!(status.and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status)), Some(number));
        assert_eq!(temporary(), 0, "nothing is left after SIG{name}");
    }
}

/// The first order ends, and a kernel of the second one goes on for ever.
#[test]
fn a_signal_ends_the_orders_that_are_tried() {
    let program = programs().original.to_str().expect("a plain path");
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = format!("echo >> begun; [ $(wc -l < begun) = 1 ] || exec {program} 1 goes_on; {program} 1 return");
        let report = folder.path().join("report.json");
        let mut child = with_default_signals()
            .args(["check", "--schedules", "5", "--format", "json", "--report", "report.json", "--"])
            .args(["/bin/sh", "-c", &script])
            .current_dir(folder.path())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("it starts");
        let begun = || fs::read_to_string(folder.path().join("begun")).unwrap_or_default().len();
        let start = Instant::now();
        while begun() < 2 && start.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_secs(3));
        let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
        assert!(sent.expect("kill starts").success());
        let status = status_of(&mut child);
        assert_eq!(status.and_then(|status| status.code()), Some(code), "SIG{name}");
        assert_eq!(begun(), 2, "SIG{name}: no further order is begun");
        let report = fs::read_to_string(&report).expect("a report");
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        assert_eq!(report["schedule_seeds"], serde_json::json!([0]), "SIG{name}: {report:#}");
        let not_checked: Vec<&str> =
            report["not_checked"].as_array().expect("a list").iter().filter_map(serde_json::Value::as_str).collect();
        let interrupted = "interrupted in order 2 of 5: the rest of this order, and the orders after it";
        assert!(not_checked.contains(&interrupted), "SIG{name}: {not_checked:?}");
        assert!(not_checked.iter().all(|what| !what.contains("differs")), "SIG{name}: {not_checked:?}");
        let leaks = report["findings"].as_array().expect("a list").iter().filter(|found| found["class"] == "leak");
        assert_eq!(leaks.count(), 1, "SIG{name}: what the first order found is there: {report:#}");
    }
}

/// As every command does.
#[test]
fn a_target_without_code_is_refused_before_the_application_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sample = root().join("hip-samples/bin/divergence");
    let sample = sample.to_str().expect("a plain path");
    for command in ["check", "run", "profile"] {
        let finished = wavetap(&[command, "--target", "gfx803", "--", sample], folder.path());
        assert_eq!((finished.code, finished.out().as_str()), (2, ""), "{}", finished.failure(command));
        let error = finished.err();
        let is_said = error.contains("no code for \"gfx803\"; there is code for gfx") && error.lines().count() == 1;
        assert!(is_said, "{}", finished.failure(command));
    }
}
