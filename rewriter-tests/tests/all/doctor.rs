//! `wavetap doctor` on made-up systems: each has one thing that is wrong, and the diagnosis names it, what it stops,
//! and what to do.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rewriter_tests::command;
use serde_json::Value;
use tempfile::TempDir;

const KFD: &str = "dev/kfd";
const RENDER: &str = "dev/dri/renderD128";
const PROPERTIES: &str = "sys/class/kfd/kfd/topology/nodes/1/properties";

/// A system: files below a folder.
struct System {
    root: TempDir,
    variables: Vec<(&'static str, OsString)>,
}

impl System {
    /// A machine without a GPU and without anything of AMD's.
    fn empty() -> System {
        let root = tempfile::tempdir().expect("a folder");
        let system = System { root, variables: Vec::new() };
        let user = "Name:\twavetap\nUid:\t4242\t4242\t4242\t4242\nGid:\t4242\t4242\t4242\t4242\nGroups:\t4242 4243\n";
        system.write("proc/self/status", user);
        let unlimited = "unlimited            unlimited            bytes";
        system.write(
            "proc/self/limits",
            &format!("Max file size             {unlimited}\nMax address space         {unlimited}\n"),
        );
        system
    }

    /// A machine with a GPU that this user may use, and ROCm.
    fn with_gpu() -> System {
        let system = System::empty();
        system.write("sys/class/kfd/kfd/topology/nodes/0/properties", "simd_count 0\ngfx_target_version 0\n");
        system.write(PROPERTIES, "simd_count 416\ngfx_target_version 90010\ndrm_render_minor 128\n");
        system.write("sys/module/amdgpu/version", "6.8.5\n");
        system.write("proc/sys/kernel/osrelease", "6.1.0-test\n");
        system.write("opt/rocm-6.4.3/.info/version", "6.4.3-128\n");
        symlink("rocm-6.4.3", system.root.path().join("opt/rocm")).expect("a link");
        system.write("opt/rocm-6.4.3/lib/libamdhip64.so.6.4.60403", "");
        system.link("libamdhip64.so.6", "libamdhip64.so.6.4.60403");
        system.write("opt/rocm-6.4.3/lib/libhsa-runtime64.so.1.15.0", "");
        system.link("libhsa-runtime64.so.1", "libhsa-runtime64.so.1.15.0");
        for device in [KFD, RENDER] {
            system.write(device, "");
            system.mode(device, 0o666);
        }
        system
    }

    fn link(&self, name: &str, to: &str) {
        symlink(to, self.root.path().join("opt/rocm-6.4.3/lib").join(name)).expect("a link");
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.root.path().join(path), fs::Permissions::from_mode(mode)).expect("a mode");
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.root.path().join(path)).expect("it was there");
    }

    fn set(mut self, name: &'static str, value: impl Into<OsString>) -> System {
        self.variables.push((name, value.into()));
        self
    }

    /// The diagnosis, whose exit code says whether something works.
    fn examine(&self) -> Value {
        let root = self.root.path().to_str().expect("a path");
        let arguments = ["doctor", "--root", root, "--no-self-test", "--format", "json"];
        let wavetap = command::wavetap().expect("the command");
        // What this machine has of it is no part of the made-up one.
        let mut environment: BTreeMap<&str, OsString> = [
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "ROCM_PATH",
            "HIP_CLANG_PATH",
            "VIRTUAL_ENV",
            "CONDA_PREFIX",
            "HSA_TOOLS_LIB",
        ]
        .map(|name| (name, OsString::new()))
        .into();
        environment.insert("PATH", "/usr/bin".into());
        environment.extend(self.variables.iter().map(|(name, value)| (*name, value.clone())));
        let environment: Vec<(&str, OsString)> = environment.into_iter().collect();
        let ended = command::run(&wavetap, &arguments, &environment, Path::new("/")).expect("it ends");
        let diagnosis: Value = serde_json::from_str(&ended.out()).unwrap_or_else(|_| panic!("{}", ended.err()));
        let works = diagnosis["emulator"] == true || diagnosis["gpu"] == true;
        ended.exited(i32::from(!works)).expect("the exit code says whether something works");
        diagnosis
    }

    /// Whether the emulator and the GPU work, and the checks that are not ok: name, found, advice.
    fn complaints(&self) -> ((bool, bool), Vec<String>) {
        let diagnosis = self.examine();
        let checks = diagnosis["checks"].as_array().expect("checks").iter();
        let text = |check: &Value, field: &str| check[field].as_str().unwrap_or_default().to_owned();
        let complaints = checks
            .filter(|check| check["level"] != "ok" && check["subject"] != "compiler" && check["name"] != "disk")
            .map(|check| ["level", "name", "found", "advice"].map(|field| text(check, field)).join(": "));
        let works = |field: &str| diagnosis[field].as_bool().expect("it says");
        ((works("emulator"), works("gpu")), complaints.collect())
    }

    /// The one complaint has these parts.
    fn complains(&self, works: (bool, bool), parts: &[&str]) {
        let (found, complaints) = self.complaints();
        assert_eq!(found, works, "{complaints:?}");
        let has_all = |complaint: &&String| parts.iter().all(|part| complaint.contains(part));
        assert_eq!(complaints.iter().filter(has_all).count(), 1, "{parts:?}: {complaints:?}");
        let problems = complaints.iter().filter(|complaint| complaint.starts_with("problem")).count();
        assert!(problems <= 1, "{complaints:?}");
    }
}

#[test]
fn a_machine_as_it_has_to_be_gets_no_complaint() {
    let system = System::with_gpu();
    assert_eq!(system.complaints(), ((true, true), Vec::new()));
    let found: Vec<String> = system.examine()["checks"]
        .as_array()
        .expect("checks")
        .iter()
        .map(|check| check["found"].as_str().expect("text").to_owned())
        .collect();
    for part in [
        "gfx90a, node 1",
        "driver amdgpu 6.8.5, Linux 6.1.0-test",
        "/dev/kfd: may be read and written",
        "/dev/dri/renderD128: may be read and written",
        "HIP 6.4.60403: /opt/rocm/lib/libamdhip64.so.6",
        "HSA runtime 1.15.0: ",
    ] {
        assert!(found.iter().any(|found| found.contains(part)), "{part}: {found:?}");
    }
    // The link to it is not another one.
    assert_eq!(found.iter().filter(|found| found.contains("ROCm 6.4.3-128")).count(), 1, "{found:?}");
}

#[test]
fn a_machine_without_a_gpu_has_the_emulator() {
    let system = System::empty();
    system.complains((true, false), &["note", "gpu", "no AMD GPU: /dev/kfd does not exist"]);
    system.complains((true, false), &["note", "hsa", "only --stack rocm and GPUs need it"]);
    // A board without its driver.
    system.write("sys/bus/pci/devices/0000:03:00.0/vendor", "0x1002\n");
    system.write("sys/bus/pci/devices/0000:03:00.0/class", "0x030000\n");
    system.complains((true, false), &["problem", "gpu", "on the PCI bus", "modprobe amdgpu"]);
    // Its sound is no GPU.
    system.write("sys/bus/pci/devices/0000:03:00.0/class", "0x040300\n");
    system.complains((true, false), &["note", "gpu", "no AMD GPU"]);
    system.write(KFD, "");
    system.complains((true, false), &["problem", "gpu", "lists no GPU"]);
}

#[test]
fn permissions_of_devices_are_those_of_the_user() {
    let system = System::with_gpu();
    let id = fs::metadata(system.root.path().join(KFD)).expect("it is there").gid();
    system.write("etc/group", &format!("root:x:99999:\nrender:x:{id}:\n"));
    system.mode(KFD, 0o660);
    let (works, complaints) = system.complaints();
    assert_eq!((works, complaints.len()), ((true, false), 1), "{complaints:?}");
    system
        .complains((true, false), &["problem: permission: /dev/kfd", "group render, mode 660", "usermod -a -G render"]);
    // In the group.
    system.write("proc/self/status", &format!("Uid:\t4242\t4242\t4242\t4242\nGid:\t7\t7\t7\t7\nGroups:\t4242 {id} \n"));
    assert_eq!(system.complaints(), ((true, true), Vec::new()));
    // The group may read only.
    system.mode(RENDER, 0o640);
    system.complains((true, false), &["problem: permission: /dev/dri/renderD128", "rules of udev"]);
    // Root may.
    system.write("proc/self/status", "Uid:\t1000\t0\t0\t0\nGid:\t7\t7\t7\t7\nGroups:\t\n");
    assert_eq!(system.complaints(), ((true, true), Vec::new()));
    system.remove(RENDER);
    system.complains((true, false), &["problem: permission: /dev/dri/renderD128", "--device=/dev/dri"]);
    let system = System::with_gpu();
    system.remove(KFD);
    system.complains((true, false), &["problem: device: /dev/kfd does not exist", "in a container"]);
}

#[test]
fn what_runs_on_the_gpu_is_there() {
    let system = System::with_gpu();
    system.write(PROPERTIES, "simd_count 416\ngfx_target_version 190001\ndrm_render_minor 128\n");
    system.complains((true, false), &["problem: gpu: gfx1901", "not a target of this version"]);
    let system = System::with_gpu();
    system.remove("opt/rocm-6.4.3/lib/libhsa-runtime64.so.1");
    system.remove("opt/rocm-6.4.3/lib/libhsa-runtime64.so.1.15.0");
    system.complains((true, false), &["problem: hsa", "LD_LIBRARY_PATH", "install ROCm"]);
    // Where the variable says.
    system.write("somewhere/libhsa-runtime64.so.1", "");
    assert_eq!(system.set("LD_LIBRARY_PATH", "/somewhere").complaints().0, (true, true));
    let system = System::with_gpu();
    system.remove("opt/rocm-6.4.3/lib/libamdhip64.so.6");
    system.write("usr/lib/x86_64-linux-gnu/libamdhip64.so.5.2.21153", "");
    system.complains((true, true), &["note: hip: HIP 5.2.21153", "-mcode-object-version=4"]);
}

#[test]
fn libraries_of_this_program_are_missed() {
    let system = System::with_gpu().set("WAVETAP_HSA_TOOL", "/nowhere/libwavetap_hsa.so");
    system.complains((true, false), &["problem: hsa_tool", "/nowhere/libwavetap_hsa.so"]);
    let system = System::empty().set("WAVETAP_HSA_TOOL", "/nowhere/libwavetap_hsa.so");
    system.complains((true, false), &["note: hsa_tool", "/nowhere/libwavetap_hsa.so"]);
    // Nothing is left.
    let system = System::empty().set("WAVETAP_HIP_RUNTIME", "/nowhere/libamdhip64.so");
    system.complains((false, false), &["problem: hip_runtime", "/nowhere/libamdhip64.so"]);
    let system = System::with_gpu().set("WAVETAP_HIP_RUNTIME", "/nowhere/libamdhip64.so");
    system.complains((false, true), &["problem: hip_runtime", "/nowhere/libamdhip64.so"]);
    let system = System::with_gpu().set("TMPDIR", "/nowhere");
    system.complains((false, false), &["problem: folder: /nowhere", "set TMPDIR"]);
}

#[test]
fn variables_limits_and_frameworks_are_mentioned() {
    for (name, value, says) in [
        ("LD_PRELOAD", "", None),
        ("HSA_TOOLS_LIB", "/opt/other.so", Some("loads these tools after Wavetap's")),
        ("ROCP_TOOL_LIBRARIES", "/opt/tool.so", Some("a rocprofiler tool is registered")),
        ("HSA_OVERRIDE_GFX_VERSION", "11.0.0", Some("another target")),
        ("HIP_VISIBLE_DEVICES", "-1", Some("programs see no GPU")),
        ("ROCR_VISIBLE_DEVICES", "", Some("programs see no GPU")),
        ("HIP_VISIBLE_DEVICES", "1", Some("programs see these GPUs only")),
        ("WAVETAP_SEED", "3", Some("the command itself ignores it")),
    ] {
        let system = System::with_gpu().set(name, value);
        match says {
            Some(says) => system.complains((true, true), &[&format!("note: variable: {name}={value}: "), says]),
            None => assert_eq!(system.complaints(), ((true, true), Vec::new())),
        }
    }
    let system = System::with_gpu();
    system.write("proc/self/limits", "Max address space         8388608000           unlimited            bytes\n");
    system.complains((true, true), &["note: address_space", "8000 MiB", "ulimit -v unlimited"]);
    let version = "usr/local/lib/python3.12/site-packages/torch/version.py";
    for (text, says) in [
        ("__version__ = '2.4.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\n", Some("for CPUs")),
        (
            "__version__ = '2.4.0+cu121'\ncuda: Optional[str] = '12.1'\nhip: Optional[str] = None\n",
            Some("for CUDA 12.1"),
        ),
        ("__version__ = '2.4.0+rocm6.1'\ncuda: Optional[str] = None\nhip: Optional[str] = '6.1.4'\n", None),
    ] {
        let system = System::with_gpu();
        system.write(version, text);
        match says {
            Some(says) => system.complains((true, true), &["note: pytorch: PyTorch 2.4.0+c", says, "a build for ROCm"]),
            None => assert_eq!(system.complaints(), ((true, true), Vec::new())),
        }
    }
}

#[test]
fn compilers_are_found() {
    let compiler = |files: &[&str]| {
        let system = System::empty();
        files.iter().for_each(|file| system.write(file, ""));
        let diagnosis = system.examine();
        let checks = diagnosis["checks"].as_array().expect("checks").iter();
        let check = checks.clone().find(|check| check["subject"] == "compiler").expect("one").clone();
        (check["level"].as_str().expect("a level").to_owned(), check["found"].as_str().expect("text").to_owned())
    };
    let is = |files: &[&str], level: &str, part: &str| {
        let (found, text) = compiler(files);
        assert!(found == level && text.contains(part), "{files:?}: {found}: {text}");
    };
    is(&[], "note", "no compiler");
    is(&["usr/bin/clang++-19"], "note", "clang-offload-bundler is not");
    is(&["usr/bin/clang++-19", "usr/bin/clang-offload-bundler-19"], "ok", "/usr/bin/clang++-19 compiles HIP");
    is(&["opt/rocm/bin/hipcc"], "ok", "/opt/rocm/bin/hipcc compiles HIP");
}

/// On this machine: the self-test counts, and a damaged runtime is found out.
#[test]
fn the_self_test_runs() {
    let doctor = |environment: &[(&str, OsString)]| {
        let wavetap = command::wavetap().expect("the command");
        let ended = command::run(&wavetap, &["doctor"], environment, Path::new("/")).expect("it ends");
        (ended.code, ended.out())
    };
    let (code, text) = doctor(&[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("ok       a program was rewritten, ran on the emulator, and was counted"), "{text}");
    // A library that is none.
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("libamdhip64.so"), "not a library").expect("a file");
    let (_, text) = doctor(&[("WAVETAP_HIP_RUNTIME", folder.path().into())]);
    assert!(text.contains("problem  a small program could not be counted on the emulator"), "{text}");
}
