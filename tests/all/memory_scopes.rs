//! `docs/reference/memory-scopes.md`, row by row: what the compiler waits for at a release of each scope, that kernels
//! which rely on that give the right results on every seed, and that those from which a wait was taken away do not.

use std::path::Path;
use std::process::Command;

use crate::emulated::{Bench, compiler_is_there};

/// A target in a mode, and whether the waves of a workgroup share no first-level cache that keeps operations in order.
struct Row {
    target: &'static str,
    flags: &'static [&'static str],
    apart: bool,
    /// The compiler waits for everything before `s_barrier`, as a wave that waits there cannot take an exception
    /// (`FeatureBackOffBarrier` is missing).
    waits_at_barrier: bool,
    has_lds: bool,
}

const fn row(target: &'static str, flags: &'static [&'static str], apart: bool) -> Row {
    Row { target, flags, apart, waits_at_barrier: false, has_lds: true }
}

const fn waiting(row: Row) -> Row {
    Row { waits_at_barrier: true, ..row }
}

const fn split(target: &'static str) -> Row {
    Row { has_lds: false, ..row(target, &["-mtgsplit"], true) }
}

const ROWS: &[Row] = &[
    waiting(row("gfx803", &[], false)),
    waiting(row("gfx900", &[], false)),
    waiting(row("gfx906", &[], false)),
    waiting(row("gfx908", &[], false)),
    row("gfx90a", &[], false),
    split("gfx90a"),
    row("gfx942", &[], false),
    split("gfx942"),
    row("gfx1010", &["-mcumode"], false),
    row("gfx1030", &["-mcumode"], false),
    row("gfx1030", &["-mno-cumode"], true),
    waiting(row("gfx1100", &["-mcumode"], false)),
    row("gfx1100", &["-mno-cumode"], true),
    waiting(row("gfx1200", &["-mcumode"], false)),
    row("gfx1200", &["-mno-cumode"], true),
];

/// Most seeds that a kernel without its wait gets to show it.
const SEEDS: u64 = 60;

/// One source for HIP and OpenCL C. What is between the two comments is a release.
const SOURCE: &str = r#"
typedef unsigned u32;
#ifdef __HIP__
#define KERNEL extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 1024))) void
#define GLOBAL
#define SHARED __attribute__((shared))
#define DEVICE static inline __attribute__((device))
#else
#define KERNEL __kernel __attribute__((amdgpu_flat_work_group_size(1, 1024))) void
#define GLOBAL __global
#define SHARED __local
#define DEVICE static inline
#endif
#define RELEASE(scope) __asm__ volatile("; release" ::: "memory"); \
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, scope); __asm__ volatile("; released" ::: "memory")
#define ACQUIRE(scope) __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, scope)
#define SET(at, scope) __scoped_atomic_store_n(at, 1, __ATOMIC_RELAXED, scope)
#define ADD(at, scope) __scoped_atomic_fetch_add(at, 1, __ATOMIC_RELAXED, scope)
#define AWAIT(at, scope) while (!__scoped_atomic_load_n(at, __ATOMIC_RELAXED, scope)) {}
#define T __builtin_amdgcn_workitem_id_x()
#define G __builtin_amdgcn_workgroup_id_x()
#define WAVE __builtin_amdgcn_wavefrontsize()

KERNEL by_barrier(GLOBAL u32 *data, GLOBAL u32 *flag, GLOBAL u32 *out) {
    data[T] = 1 + T;
    RELEASE("workgroup"); __builtin_amdgcn_s_barrier(); ACQUIRE("workgroup");
    out[T] = data[127 - T];
}
// What is stored again after the barrier must win.
KERNEL twice(GLOBAL u32 *data, GLOBAL u32 *flag, GLOBAL u32 *out) {
    data[T] = 7;
    RELEASE("workgroup"); __builtin_amdgcn_s_barrier(); ACQUIRE("workgroup");
    data[127 - T] = 1 + T;
    RELEASE("workgroup"); __builtin_amdgcn_s_barrier(); ACQUIRE("workgroup");
    out[T] = data[T];
}
KERNEL by_flag(GLOBAL u32 *data, GLOBAL u32 *flag, GLOBAL u32 *out) {
    if (T < WAVE) { data[T] = 1 + T; RELEASE("workgroup"); if (T == 0) SET(flag, __MEMORY_SCOPE_WRKGRP); }
    else if (T < 2 * WAVE) { AWAIT(flag, __MEMORY_SCOPE_WRKGRP) ACQUIRE("workgroup");
    out[T - WAVE] = data[2 * WAVE - 1 - T]; }
}
KERNEL by_atomic(GLOBAL u32 *data, GLOBAL u32 *flag, GLOBAL u32 *out) {
    if (T < WAVE) { data[T] = 1 + T; RELEASE("workgroup"); if (T == 0) ADD(flag, __MEMORY_SCOPE_WRKGRP); }
    else if (T < 2 * WAVE) { AWAIT(flag, __MEMORY_SCOPE_WRKGRP) ACQUIRE("workgroup");
    out[T - WAVE] = data[2 * WAVE - 1 - T]; }
}
#ifndef SPLIT
KERNEL by_lds(GLOBAL u32 *data, GLOBAL u32 *flag, GLOBAL u32 *out) {
    SHARED u32 here;
    if (T == 0) here = 0;
    RELEASE("workgroup"); __builtin_amdgcn_s_barrier(); ACQUIRE("workgroup");
    if (T < WAVE) { data[T] = 1 + T; RELEASE("workgroup"); if (T == 0) SET(&here, __MEMORY_SCOPE_WRKGRP); }
    else if (T < 2 * WAVE) { AWAIT(&here, __MEMORY_SCOPE_WRKGRP) ACQUIRE("workgroup");
    out[T - WAVE] = data[2 * WAVE - 1 - T]; }
}
// LDS is handed over by a flag in memory.
KERNEL lds_by_flag(GLOBAL u32 *data, GLOBAL u32 *flag, GLOBAL u32 *out) {
    SHARED u32 tile[64];
    if (T < WAVE) { tile[T] = 1 + T; RELEASE("workgroup"); if (T == 0) SET(flag, __MEMORY_SCOPE_WRKGRP); }
    else if (T < 2 * WAVE) { AWAIT(flag, __MEMORY_SCOPE_WRKGRP) ACQUIRE("workgroup");
    out[T - WAVE] = tile[2 * WAVE - 1 - T]; }
}
KERNEL lds_by_atomic(GLOBAL u32 *data, GLOBAL u32 *flag, GLOBAL u32 *out) {
    SHARED u32 tile[64];
    if (T < WAVE) { tile[T] = 1 + T; RELEASE("workgroup"); if (T == 0) ADD(flag, __MEMORY_SCOPE_WRKGRP); }
    else if (T < 2 * WAVE) { AWAIT(flag, __MEMORY_SCOPE_WRKGRP) ACQUIRE("workgroup");
    out[T - WAVE] = tile[2 * WAVE - 1 - T]; }
}
#endif
#define BETWEEN_GROUPS(name, scope, SIGNAL, memory_scope) \
    KERNEL name(GLOBAL u32 *data, GLOBAL u32 *flag, GLOBAL u32 *out) { \
    if (G == 0) { data[T] = 1 + T; RELEASE(scope); if (T == 0) SIGNAL(flag, memory_scope); } \
    else { AWAIT(flag, memory_scope) ACQUIRE(scope); out[T] = data[31 - T]; } \
}
BETWEEN_GROUPS(agent_flag, "agent", SET, __MEMORY_SCOPE_DEVICE)
BETWEEN_GROUPS(agent_atomic, "agent", ADD, __MEMORY_SCOPE_DEVICE)
BETWEEN_GROUPS(system_flag, "", SET, __MEMORY_SCOPE_SYSTEM)
BETWEEN_GROUPS(system_atomic, "", ADD, __MEMORY_SCOPE_SYSTEM)
// One thread releases to the device what its workgroup stored before the barrier.
KERNEL tickets(GLOBAL u32 *data, GLOBAL u32 *flag, GLOBAL u32 *out) {
    data[128 * G + T] = 1 + T;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); ACQUIRE("workgroup");
    if (T == 0) {
        RELEASE("agent");
        u32 before = ADD(flag, __MEMORY_SCOPE_DEVICE);
        ACQUIRE("agent");
        if (before == 2) { u32 sum = 0; for (u32 n = 0; n < 3 * 128; n++) sum += data[n]; out[0] = sum; }
    }
}
"#;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Hip,
    OpenCl,
}

fn clang(arguments: &[&str]) {
    let output = Command::new("clang-19").args(arguments).output().expect("it starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The assembly of all kernels.
fn assembly(dir: &Path, row: &Row, language: Language) -> String {
    let (source, out) = (dir.join("scopes"), dir.join("scopes.s"));
    let mut text = String::from(if row.has_lds { "" } else { "#define SPLIT\n" });
    text += SOURCE;
    std::fs::write(&source, text).expect("written");
    let (cpu, offload) = (format!("-mcpu={}", row.target), format!("--offload-arch={}", row.target));
    let mut arguments = vec!["-w", "-O2", "-S", "-nogpulib"];
    match language {
        Language::Hip => {
            arguments.extend(["-x", "hip", &offload, "--offload-device-only", "--no-gpu-bundle-output", "-nogpuinc"])
        }
        Language::OpenCl => arguments.extend(["-x", "cl", "-cl-std=CL2.0", "--target=amdgcn-amd-amdhsa", &cpu]),
    }
    arguments.extend(row.flags);
    arguments.extend([source.to_str().expect("path"), "-o", out.to_str().expect("path")]);
    clang(&arguments);
    std::fs::read_to_string(out).expect("assembly")
}

fn assemble(dir: &Path, row: &Row, text: &str) -> Vec<u8> {
    let [source, object, image] = ["k.s", "k.o", "k.co"].map(|name| dir.join(name));
    std::fs::write(&source, text).expect("written");
    let cpu = format!("-mcpu={}", row.target);
    clang(&[
        "-target",
        "amdgcn-amd-amdhsa",
        &cpu,
        "-c",
        source.to_str().expect("path"),
        "-o",
        object.to_str().expect("path"),
    ]);
    let linked =
        Command::new("ld.lld-19").arg("-shared").arg(&object).arg("-o").arg(&image).status().expect("it starts");
    assert!(linked.success());
    std::fs::read(image).expect("code object")
}

/// The waits of a kernel's releases that are for stores, and the whole text without these.
fn releases(row: &Row, text: &str, kernel: &str) -> (Vec<String>, String) {
    let (mut inside, mut released, mut found, mut rest) = (false, false, Vec::new(), String::new());
    let label = format!("{kernel}:");
    for line in text.lines() {
        if !line.starts_with(['\t', ' ', '.', ';']) && line.contains(':') {
            inside = line.starts_with(&label);
        }
        released = (released || line.trim() == "; release" && inside) && line.trim() != "; released";
        let counter = ["vscnt", "storecnt", "vmcnt(0)"].into_iter().find(|counter| line.contains(counter));
        // From gfx10 on, loads have a counter of their own.
        let is_for_stores = counter.is_some_and(|counter| counter != "vmcnt(0)" || !row.target.starts_with("gfx1"));
        if released && is_for_stores {
            found.push(line.trim().to_owned());
            if line.contains("lgkmcnt(0)") {
                rest += "\ts_waitcnt lgkmcnt(0)\n";
            }
            continue;
        }
        rest += line;
        rest.push('\n');
    }
    (found, rest)
}

/// The text without the waits for LDS of its releases.
fn without_lds_waits(text: &str) -> String {
    let mut released = false;
    let kept = text.lines().filter(|line| {
        released = (released || line.trim() == "; release") && line.trim() != "; released";
        !released || !["lgkmcnt", "dscnt"].iter().any(|counter| line.contains(counter))
    });
    kept.flat_map(|line| [line, "\n"]).collect()
}

struct Kernel {
    name: &'static str,
    groups: u32,
    group: u16,
    /// What it gives, by the lanes of a wave.
    expected: fn(usize) -> Vec<u32>,
    /// Its scope is the workgroup.
    within: bool,
}

const KERNELS: &[Kernel] = &[
    Kernel {
        name: "by_barrier",
        groups: 1,
        group: 128,
        expected: |_| (0..128).map(|n| 128 - n).collect(),
        within: true,
    },
    Kernel { name: "twice", groups: 1, group: 128, expected: |_| (0..128).map(|n| 128 - n).collect(), within: true },
    Kernel {
        name: "by_flag",
        groups: 1,
        group: 128,
        expected: |wave| (0..wave as u32).map(|n| wave as u32 - n).collect(),
        within: true,
    },
    Kernel {
        name: "by_atomic",
        groups: 1,
        group: 128,
        expected: |wave| (0..wave as u32).map(|n| wave as u32 - n).collect(),
        within: true,
    },
    Kernel {
        name: "by_lds",
        groups: 1,
        group: 128,
        expected: |wave| (0..wave as u32).map(|n| wave as u32 - n).collect(),
        within: true,
    },
    Kernel {
        name: "lds_by_flag",
        groups: 1,
        group: 128,
        expected: |wave| (0..wave as u32).map(|n| wave as u32 - n).collect(),
        within: true,
    },
    Kernel {
        name: "lds_by_atomic",
        groups: 1,
        group: 128,
        expected: |wave| (0..wave as u32).map(|n| wave as u32 - n).collect(),
        within: true,
    },
    Kernel { name: "agent_flag", groups: 2, group: 32, expected: |_| (0..32).map(|n| 32 - n).collect(), within: false },
    Kernel {
        name: "agent_atomic",
        groups: 2,
        group: 32,
        expected: |_| (0..32).map(|n| 32 - n).collect(),
        within: false,
    },
    Kernel {
        name: "system_flag",
        groups: 2,
        group: 32,
        expected: |_| (0..32).map(|n| 32 - n).collect(),
        within: false,
    },
    Kernel {
        name: "system_atomic",
        groups: 2,
        group: 32,
        expected: |_| (0..32).map(|n| 32 - n).collect(),
        within: false,
    },
    Kernel { name: "tickets", groups: 3, group: 128, expected: |_| vec![3 * 128 * 129 / 2], within: false },
];

/// Why a run is wrong.
fn run(row: &Row, image: &[u8], kernel: &Kernel, seed: u64) -> Result<(), String> {
    let mut bench = Bench::new(row.target, seed, image);
    let (data, flag, out) = (bench.buffer(&[0; 3 * 128]), bench.buffer(&[0; 64]), bench.buffer(&[0; 128]));
    bench.run(kernel.name, kernel.groups, kernel.group, 0, &[data, flag, out]).map_err(|fault| fault.to_string())?;
    let wave = if row.target.starts_with("gfx1") { 32 } else { 64 };
    let expected = (kernel.expected)(wave);
    let found = bench.read(out, expected.len());
    if found == expected { Ok(()) } else { Err(format!("{found:?}, not {expected:?}")) }
}

fn check(row: &Row, language: Language) {
    let dir = tempfile::tempdir().expect("directory");
    let text = assembly(dir.path(), row, language);
    let image = assemble(dir.path(), row, &text);
    let name = format!("{} {:?}", row.target, row.flags);
    for kernel in KERNELS.iter().filter(|kernel| row.has_lds || !kernel.name.contains("lds")) {
        for seed in 0..12 {
            run(row, &image, kernel, seed).unwrap_or_else(|why| panic!("{name} {} seed {seed}: {why}", kernel.name));
        }
        let (waits, without) = releases(row, &text, kernel.name);
        let needs = match kernel.name {
            // Elsewhere all has been waited for at the barrier.
            "tickets" => !row.apart && !row.waits_at_barrier,
            // Nothing has been stored to memory; the wait is for LDS.
            "lds_by_flag" | "lds_by_atomic" => {
                let without = assemble(dir.path(), row, &without_lds_waits(&text));
                let found = (0..SEEDS).find_map(|seed| run(row, &without, kernel, seed).err());
                // Elsewhere a wait for the address of the flag may cover LDS.
                assert!(
                    row.target != "gfx90a" || found.is_some_and(|why| why.contains("race in LDS")),
                    "{name} {}: no race",
                    kernel.name
                );
                continue;
            }
            _ => !kernel.within || row.apart,
        };
        assert_eq!(!waits.is_empty(), needs, "{name} {}: {waits:?}", kernel.name);
        // Flags that are FLAT stores of gfx8, and those in LDS, seldom overtake: `docs/reference/memory-scopes.md`.
        let seldom = kernel.name == "by_lds" || row.target == "gfx803" && !kernel.name.ends_with("_atomic");
        if language == Language::OpenCl || !needs || seldom {
            continue;
        }
        let image = assemble(dir.path(), row, &without);
        let caught = (0..SEEDS).find_map(|seed| run(row, &image, kernel, seed).err());
        let caught =
            caught.unwrap_or_else(|| panic!("{name} {}: nothing shows that {waits:?} is missing", kernel.name));
        println!("{name} {}: without {waits:?}: {}", kernel.name, caught.chars().take(150).collect::<String>());
    }
}

#[test]
fn every_row_in_hip() {
    if compiler_is_there() {
        ROWS.iter().for_each(|row| check(row, Language::Hip));
    }
}

#[test]
fn every_row_in_opencl() {
    if compiler_is_there() {
        ROWS.iter().for_each(|row| check(row, Language::OpenCl));
    }
}
