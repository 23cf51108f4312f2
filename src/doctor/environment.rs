//! Variables that change what programs run on, limits of this process, folders for files.

use std::path::Path;

use super::System;
use crate::files;
use wavetap_collect::config::RunConfig;
use wavetap_profile::file::Backend;
use wavetap_report::doctor::{Check, Subject};

/// Variables that change what is measured or whether it is, what they do, and what to do about them.
const VARIABLES: [(&str, &str, &str); 6] = [
    (
        "LD_PRELOAD",
        "its libraries are loaded into programs that Wavetap runs",
        "unset it if programs behave differently without Wavetap",
    ),
    (
        "HSA_TOOLS_LIB",
        "the HSA runtime loads these tools after Wavetap's",
        "unset it if another tool intercepts queues, too",
    ),
    (
        "ROCP_TOOL_LIBRARIES",
        "a rocprofiler tool is registered; Wavetap sets HSA_TOOLS_ROCPROFILER_V1_TOOLS=1 beside it",
        "unset it if both count at once and it disturbs the other",
    ),
    (
        "ROCPROFILER_REGISTER_LIBRARY",
        "a rocprofiler tool is registered; Wavetap sets HSA_TOOLS_ROCPROFILER_V1_TOOLS=1 beside it",
        "unset it if both count at once and it disturbs the other",
    ),
    (
        "HSA_TOOLS_DISABLE_REGISTER",
        "the HSA runtime registers with no profiler",
        "Wavetap's tool is loaded all the same; other profilers are not",
    ),
    (
        "HSA_OVERRIDE_GFX_VERSION",
        "the HSA runtime runs code for another target on the GPU",
        "counts are of that target's code; unset it to run code for the GPU itself",
    ),
];

/// Variables that select GPUs.
const VISIBLE: [&str; 2] = ["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"];

/// Free bytes of a disk from which on nothing is said.
const ENOUGH: u64 = 1 << 30;

const MIB: u64 = 1 << 20;

/// What there is to say of them.
pub(super) fn checks(system: &System) -> Vec<Check> {
    let mut checks = Vec::new();
    for (name, what, advice) in VARIABLES {
        if let Some(value) = system.variable(name) {
            checks.push(Check::note(Subject::System, "variable", format!("{name}={value}: {what}"), advice));
        }
    }
    for name in VISIBLE {
        let is_set = system.variables.contains_key(name);
        // To HIP an empty one is none; to the HSA runtime it is an empty list.
        let value = system.variable(name).or_else(|| (is_set && name == VISIBLE[0]).then(String::new));
        let Some(value) = value else { continue };
        let (what, advice) = if value.is_empty() || value.starts_with('-') {
            ("programs see no GPU", "unset it to use the GPUs; the emulator is not affected by it without --stack rocm")
        } else {
            ("programs see these GPUs only", "unset it to use all")
        };
        checks.push(Check::note(Subject::System, "variable", format!("{name}={value}: {what}"), advice));
    }
    for name in RunConfig::VARIABLES {
        if let Some(value) = system.variable(name) {
            let found =
                format!("{name}={value}: programs that run on the emulator's libraries without the command read it");
            let advice = "the command itself ignores it: use the command's options";
            checks.push(Check::note(Subject::System, "variable", found, advice));
        }
    }
    checks.extend(limits(system));
    checks.extend(folders());
    if checks.is_empty() {
        checks.push(Check::ok(
            Subject::System,
            "system",
            "no variable and no limit interferes; there is room for files",
        ));
    }
    checks
}

/// Limits of this process, which programs inherit.
fn limits(system: &System) -> Vec<Check> {
    let text = system.text("/proc/self/limits").unwrap_or_default();
    let limit = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    let address_space = limit("Max address space").map(|bytes| {
        let found = format!("the address space is limited to {} MiB (ulimit -v)", bytes / MIB);
        let advice = "the HSA runtime maps the memory of GPUs, and the emulator that of its own: ulimit -v unlimited";
        Check::note(Subject::System, "address_space", found, advice)
    });
    let file = limit("Max file size").map(|bytes| {
        let found = format!("files are limited to {} MiB (ulimit -f)", bytes / MIB);
        Check::note(
            Subject::System,
            "file_size",
            found,
            "profiles that grow larger are not written: ulimit -f unlimited",
        )
    });
    address_space.into_iter().chain(file).collect()
}

/// Folders that files are written to.
fn folders() -> Vec<Check> {
    const NAME: &str = "folder";
    let mut checks = Vec::new();
    let temporary = std::env::temp_dir();
    match files::temporary_folder() {
        Ok(folder) => checks.extend(room(folder.path(), &temporary)),
        Err(error) => {
            let advice = "rewritten programs and counts of processes are written there: set TMPDIR to another folder";
            let found = format!("{}: {}", temporary.display(), error.message());
            let stops = [Backend::Emulator, Backend::Gpu];
            checks.push(Check::problem(Subject::System, NAME, found, advice, &stops));
        }
    }
    if let Ok(current) = std::env::current_dir() {
        checks.extend(room(&current, &current));
    }
    checks
}

/// Says if a disk is nearly full.
fn room(folder: &Path, name: &Path) -> Option<Check> {
    let facts = rustix::fs::statvfs(folder).ok()?;
    let free = facts.f_bavail.saturating_mul(facts.f_frsize);
    let found = || format!("{}: {} MiB are free", name.display(), free / MIB);
    let advice = "profiles of --probe memory and --per-wave may need more";
    (free < ENOUGH).then(|| Check::note(Subject::System, "disk", found(), advice))
}
