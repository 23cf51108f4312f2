//! Dispatches that are captured and run again: on the same memory they leave the same bytes, whatever they reach and
//! however they are counted; what is damaged is refused.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rewriter_tests::command::{self, Finished};
use rewriter_tests::hip;
use rewriter_tests::hip5;
use rewriter_tests::place::root;
use serde_json::{Value, json};
use wavetap::profile::file::Profile;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// A folder with the program of these tests: `reach` as it is compiled, `changed`, in which one kernel is another, and
/// `hip5` for AMD's own libraries.
fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<tempfile::TempDir> = OnceLock::new();
    PROGRAMS
        .get_or_init(|| {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let bitcode = folder.path().join("bitcode");
            hip::device_libraries(&bitcode).expect("device libraries");
            let source = root().join("rewriter-tests/tests/captures/reach.hip");
            let changed = folder.path().join("changed.hip");
            let text = fs::read_to_string(&source).expect("the source");
            let other = text.replace("of.data[i] += add;", "of.data[i] += i == 42 ? add + 1 : add;");
            assert_ne!(text, other);
            fs::write(&changed, other).expect("a file");
            for (name, source, version) in [("reach", &source, 5), ("changed", &changed, 5), ("hip5", &source, 4)] {
                let compiled = Command::new("clang++-19")
                    .args(["-w", "-x", "hip", "-std=c++17", "-O2"])
                    .args(["--offload-arch=gfx90a", "--offload-arch=gfx1100"])
                    .arg(format!("-mcode-object-version={version}"))
                    .arg(format!("--rocm-device-lib-path={}", bitcode.display()))
                    .arg(source)
                    .arg("-o")
                    .args([folder.path().join(name).as_os_str(), "-lamdhip64".as_ref()])
                    .output()
                    .expect("clang++-19 starts");
                assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
            }
            hip5::make_fit(&folder.path().join("hip5")).expect("it is made fit");
            folder
        })
        .path()
}

fn wavetap(arguments: &[&str], folder: &Path) -> Finished {
    command::run(&command::wavetap().expect("the command is built"), arguments, &[], folder).expect("it ends")
}

fn program(name: &str) -> String {
    programs().join(name).display().to_string()
}

/// Captures a dispatch of the program of these tests.
fn capture(kernel: &str, number: &str, folder: &Path) -> PathBuf {
    let name = format!("{kernel}.{number}.capture");
    let arguments = ["capture", "--kernel", kernel, "--dispatch", number, "-o", &name, "--", &program("reach")];
    wavetap(&arguments, folder).exited(0).expect("it is captured");
    folder.join(name)
}

/// The outcome of a replay as JSON.
fn replayed(capture: &Path, options: &[&str], code: i32) -> Value {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = capture.display().to_string();
    let finished = wavetap(&[&["replay", &path, "--format", "json"], options].concat(), folder.path());
    let finished = finished.exited(code).expect("it is replayed");
    serde_json::from_slice(&finished.stdout).expect("an outcome")
}

/// Bytes that each kernel changes, by its source.
const CHANGES: [(&str, &str, u64); 8] = [
    // 10 + 11, 11 + 12 and 12: one byte each.
    ("list", "1", 3),
    ("variables", "1", 0),
    ("variables", "2", 0),
    ("packed", "1", 100),
    ("backwards", "1", 100),
    ("first_function", "1", 0),
    ("calls", "1", 0),
    ("reads", "1", 0),
];

#[test]
fn a_replay_leaves_what_the_dispatch_left() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (kernel, number, bytes) in CHANGES {
        let capture = capture(kernel, number, folder.path());
        for options in [&[][..], &["--strict", "--seed", "5"], &["--threads", "1"], &["--timing"]] {
            let outcome = replayed(&capture, options, 0);
            assert_eq!(outcome["same"], json!(true), "{kernel} {options:?}: {outcome}");
            let changed = outcome["changed"].as_array().expect("ranges");
            let sum: u64 = changed.iter().filter_map(|range| range["changed_bytes"].as_u64()).sum();
            assert!(bytes == 0 || sum == bytes, "{kernel}: {sum} bytes of {bytes}");
            assert_eq!(changed.is_empty(), kernel == "reads", "{kernel}: {outcome}");
            assert_eq!(outcome["time"].is_object(), options == ["--timing"]);
        }
        // Variables are memory, too: one that counts dispatches, and tables that the host has written.
        let kinds: Vec<Value> = replayed(&capture, &[], 0)["changed"].as_array().expect("ranges").clone();
        let variables = kinds.iter().filter(|range| range["kind"] == "variables").count();
        assert_eq!(variables > 0, kernel == "variables", "{kernel}");
    }
}

#[test]
fn counts_of_a_replay_are_those_of_the_dispatch() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let report = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.path().join(name)).expect("a report")).expect("a report")
    };
    for kernel in ["list", "packed", "backwards", "first_function", "calls", "reads"] {
        let program = program("reach");
        let common = ["--probe", "branches,blocks", "--format", "json", "--force"];
        let whole = ["profile", "--kernel", kernel, "--target", "gfx90a", "--report", "whole.json", "--", &program];
        wavetap(&[&whole[..1], &common[..], &whole[1..]].concat(), folder.path()).exited(0).expect("it is counted");
        let whole = report("whole.json");
        let capture = capture(kernel, "1", folder.path()).display().to_string();
        wavetap(&["replay", &capture, "--trace", "trace", "--force"], folder.path()).exited(0).expect("it is traced");
        let trace = Profile::from_json(&fs::read(folder.path().join("trace")).expect("a trace")).expect("a trace");
        for counters in ["lds", "global", "register"] {
            let profiled =
                ["replay", &capture, "--counters", counters, "--probe", "branches", "-o", "counts", "--force"];
            wavetap(&profiled, folder.path()).exited(0).expect("it is counted");
            let counts = Profile::from_json(&fs::read(folder.path().join("counts")).expect("a profile")).expect("one");
            let sites = |profile: &Profile| -> BTreeMap<u64, Vec<u64>> {
                let sites = profile.kernels.iter().flat_map(|kernel| &kernel.sites);
                let counted = sites.filter(|site| site.counts.values().iter().any(|value| *value > 0));
                counted.map(|site| (site.address, site.counts.values().to_vec())).collect()
            };
            assert_eq!(sites(&counts), sites(&trace), "{kernel} {counters}: the emulator's own counts");
            let options = ["replay", &capture, "--counters", counters, "--report", "one.json"];
            let finished = wavetap(&[&options[..], &common[..]].concat(), folder.path()).exited(0).expect("counted");
            assert!(finished.err().contains("memory: "), "{}", finished.failure("it says how memory compares"));
            let one = report("one.json");
            // All but what says where the counters were.
            for field in ["name", "target", "object", "dispatches", "waves", "sites", "blocks", "branches", "launches"]
            {
                assert_eq!(one["kernels"][0][field], whole["kernels"][0][field], "{kernel} {counters}: {field}");
            }
            assert_eq!(one["kernels"].as_array().map(Vec::len), Some(1));
        }
    }
}

#[test]
fn what_is_captured_below_amds_libraries_is_replayed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = program("hip5");
    for (kernel, number, bytes) in CHANGES {
        let arguments = ["capture", "--stack", "rocm", "--kernel", kernel, "--dispatch", number, "--force", "-o", "c"];
        let finished = wavetap(&[&arguments[..], &["--", &program]].concat(), folder.path());
        let finished = finished.exited(0).expect("it is captured");
        assert!(!finished.err().contains("not alone"), "{}", finished.failure("one queue"));
        let outcome = replayed(&folder.path().join("c"), &["--strict"], 0);
        let changed = outcome["changed"].as_array().expect("ranges");
        let sum: u64 = changed.iter().filter_map(|range| range["changed_bytes"].as_u64()).sum();
        assert!(outcome["same"] == json!(true) && (bytes == 0 || sum == bytes), "{kernel}: {outcome}");
        assert_eq!(changed.is_empty(), kernel == "reads", "{kernel}: {outcome}");
    }
    let none = ["capture", "--stack", "rocm", "--kernel", "nosuch", "-o", "none", "--", &program];
    let none = wavetap(&none, folder.path()).exited(2).expect("there is none");
    assert!(none.err().contains("0 dispatches of kernels that match nosuch"), "{}", none.failure("it says how many"));
}

#[test]
fn other_code_runs_on_the_same_memory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let capture = capture("packed", "1", folder.path());
    let (reach, changed) = (program("reach"), program("changed"));
    let same = replayed(&capture, &["--code", &reach], 0);
    assert_eq!((&same["same"], &same["captured_code"]), (&json!(true), &json!(false)));
    let other_target = replayed(&capture, &["--code", &reach, "--target", "gfx1100"], 0);
    assert_eq!((&other_target["same"], &other_target["target"]), (&json!(true), &json!("gfx1100")));
    let different = replayed(&capture, &["--code", &changed], 1);
    let range = &different["changed"][0];
    assert_eq!((&different["same"], &range["different_bytes"]), (&json!(false), &json!(1)));
    assert_eq!(range["first"]["offset"], json!(42 * 4));
    assert_eq!((&range["first"]["captured"][0], &range["first"]["replayed"][0]), (&json!(51), &json!(52)));
    let path = capture.display().to_string();
    let text = wavetap(&["replay", &path, "--code", &changed], folder.path()).exited(1).expect("it differs");
    assert!(text.out().contains("memory: 1 bytes differ"), "{}", text.failure("the text"));
    let missing = wavetap(&["replay", &path, "--code", &reach, "--target", "gfx942"], folder.path());
    let missing = missing.exited(2).expect("no code");
    assert!(missing.err().contains("gfx942"), "{}", missing.failure("it names the target"));
    let sample = root().join("hip-samples/bin/divergence").display().to_string();
    let other = wavetap(&["replay", &path, "--code", &sample], folder.path()).exited(2).expect("no such kernel");
    assert!(other.err().contains("has the kernel packed"), "{}", other.failure("it names the kernel"));
}

#[test]
fn what_cannot_be_captured_is_said() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let reach = program("reach");
    for (options, said) in [
        (&["--kernel", "nosuch*"][..], "0 dispatches of kernels that match nosuch* were launched"),
        (&["--kernel", "variables", "--dispatch", "3"], "2 dispatches of kernels that match variables were launched"),
        (&["--per-wave"], "--per-wave: a capture collects nothing"),
        (&["--dispatch", "0"], "0 is not in 1.."),
    ] {
        let arguments = [&["capture", "-o", "c"], options, &["--", &reach]].concat();
        let finished = wavetap(&arguments, folder.path()).exited(2).expect("refused");
        assert!(finished.err().contains(said), "{}", finished.failure(said));
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0, "nothing is left");
    }
    let c = capture("list", "1", folder.path());
    let name = c.file_name().and_then(|name| name.to_str()).expect("a name");
    let again = wavetap(&["capture", "-o", name, "--", &reach], folder.path()).exited(2).expect("it is there");
    assert!(again.err().contains(name), "{}", again.failure("it names the file"));
    let gpu = wavetap(&["replay", name, "--stack", "rocm"], folder.path()).exited(2).expect("refused");
    assert!(gpu.err().contains("replayed on the built-in emulator"), "{}", gpu.failure("why"));
}

/// The entries of an archive.
type Entries = BTreeMap<String, Vec<u8>>;

fn entries(capture: &Path) -> Entries {
    let mut archive = ZipArchive::new(Cursor::new(fs::read(capture).expect("a capture"))).expect("an archive");
    (0..archive.len())
        .map(|index| {
            let mut entry = archive.by_index(index).expect("an entry");
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("its bytes");
            (entry.name().expect("a name").into_owned(), bytes)
        })
        .collect()
}

fn archive(entries: &Entries) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        archive.start_file(name, SimpleFileOptions::default()).expect("an entry");
        archive.write_all(bytes).expect("its bytes");
    }
    archive.finish().expect("an archive").into_inner()
}

/// An archive whose header has another value at a pointer.
fn with_header(entries: &Entries, pointer: &str, value: Value) -> Vec<u8> {
    let mut header: Value = serde_json::from_slice(&entries["capture.json"]).expect("a header");
    *header.pointer_mut(pointer).expect("a field") = value;
    let mut entries = entries.clone();
    entries.insert("capture.json".to_owned(), serde_json::to_vec(&header).expect("JSON"));
    archive(&entries)
}

#[test]
fn damaged_captures_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let whole = capture("packed", "1", folder.path());
    let entries = entries(&whole);
    let bytes = fs::read(&whole).expect("a capture");
    let without = |name: &str| {
        let mut entries = entries.clone();
        entries.retain(|entry, _| !entry.contains(name));
        archive(&entries)
    };
    let with = |name: &str, contents: &[u8]| {
        let mut entries = entries.clone();
        let name = entries.keys().find(|entry| entry.contains(name)).expect("an entry").clone();
        entries.insert(name, contents.to_vec());
        archive(&entries)
    };
    let header = |pointer: &str, value: Value| with_header(&entries, pointer, value);
    let address = json!("0xfffffffffff0");
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("empty", Vec::new(), "not a capture"),
        ("text", b"no archive".to_vec(), "not a capture"),
        ("a half", bytes[..bytes.len() / 2].to_vec(), "not a capture"),
        ("no header", without("capture.json"), "capture.json"),
        ("header", with("capture.json", b"{}"), "missing field"),
        ("no code", without("code.co"), "code.co"),
        ("other code", with("code.co", b"\x7fELF"), "code.co: its MD5 is"),
        ("no memory", without("before/"), "before/"),
        ("short memory", with("before/", b"1234"), "4 bytes,"),
        ("long memory", with("before/", &[0; 5000]), "more bytes,"),
        ("no arguments", without("arguments"), "arguments.bin"),
        ("version", header("/schema", json!("wavetap.capture/2")), "\"wavetap.capture/1\" was expected"),
        ("grid", header("/grid", json!([0, 1, 1])), "a grid of [0, 1, 1]"),
        ("workgroup", header("/workgroup", json!([4096, 1, 1])), "it cannot be launched"),
        ("kernel", header("/kernel", json!("nosuch")), "no kernel nosuch"),
        ("kernel", header("/kernel", json!("a\nb")), "printable text"),
        ("name", header("/demangled", json!("\u{1b}[31m")), "printable text"),
        ("lds", header("/group_segment_size", json!(1 << 20)), "it cannot be launched"),
        ("address", header("/memory/0/address", address), "bytes of memory at 0xfffffffffff0"),
        ("size", header("/memory/0/size", json!(u64::MAX)), "at most"),
        ("no size", header("/memory/0/size", json!(0)), "0 bytes of memory at"),
        ("place", header("/code/address", json!("0xffffffffffffffff")), "code of"),
        ("unknown", with("capture.json", br#"{"schema": "wavetap.capture/1", "more": 1}"#), "unknown field"),
    ];
    for (what, bytes, said) in cases {
        fs::write(folder.path().join("damaged"), bytes).expect("a file");
        let finished = wavetap(&["replay", "damaged"], folder.path());
        let finished = finished.exited(2).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(finished.err().contains(said), "{}", finished.failure(&format!("{what}: {said}")));
        assert_eq!(finished.err().lines().count(), 1, "{}", finished.failure(what));
    }
    // Every byte may be wrong: an error or an outcome, never a panic.
    let mut random = rewriter_tests::random::Random::new(7);
    for _ in 0..20 {
        let mut bytes = bytes.clone();
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
        fs::write(folder.path().join("damaged"), &bytes).expect("a file");
        let finished = wavetap(&["replay", "damaged"], folder.path());
        assert!(
            [0, 1, 2].contains(&finished.code) && !finished.err().contains("panicked"),
            "{}",
            finished.failure("?")
        );
    }
}
