//! A program of the project, whose counts are known, is rewritten, run on the emulator and counted.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::System;
use crate::files;
use crate::pipeline::Options;
use crate::program::Program;
use crate::run::{BackendChoice, RunOptions, Stdout};
use wavetap_base::error::{Error, Result};
use wavetap_instrument::probe;
use wavetap_profile::file::{Backend, KernelTotals, Profile};
use wavetap_profile::probes::branches::{BranchCounts, ExecCounts};
use wavetap_report::doctor::{Check, Subject};

/// `hip-samples/src/divergence.hip`.
const PROGRAM: &[u8] = include_bytes!("../../hip-samples/bin/divergence");
const TARGET: &str = "gfx90a";

/// Its kernels, with their waves and the counts of their only divergent branch, worked out from the source: 16
/// workgroups of 128 work-items; `threadIdx.x < 32`, which the compiler inverts, and `threadIdx.x > 63`.
const EXPECTED: [(&str, u64, ExecCounts); 2] = [
    (
        "_Z9divergentPjS_",
        32,
        ExecCounts { executions: 32, agreements: 16, lanes_before: 2048, lanes_after: 1536, empty: 0 },
    ),
    (
        "_Z13non_divergentPjS_",
        32,
        ExecCounts { executions: 32, agreements: 32, lanes_before: 2048, lanes_after: 1024, empty: 0 },
    ),
];

/// Whether the emulator works here.
pub(super) fn check(system: &System) -> Check {
    const NAME: &str = "self_test";
    match profile(system).and_then(|profile| compare(&profile)) {
        Ok(()) => {
            let found = "a program was rewritten, ran on the emulator, and was counted: the counts are right";
            Check::ok(Subject::SelfTest, NAME, found)
        }
        Err(error) => Check::problem(
            Subject::SelfTest,
            NAME,
            format!("a small program could not be counted on the emulator: {error}"),
            "it needs libstdc++, and a folder for temporary files (TMPDIR) from which programs may be started",
            &[Backend::Emulator],
        ),
    }
}

fn profile(system: &System) -> Result<Profile> {
    let folder = files::temporary_folder()?;
    let path = folder.path().join("self-test");
    fs::write(&path, PROGRAM)
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
        .map_err(|error| files::io(&path, "cannot write", &error))?;
    let program = Program::open(path)?;
    let options = Options::new([probe::BRANCHES]).target(TARGET);
    let mut run = RunOptions::new().backend(BackendChoice::Emulator).target(TARGET).stdout(Stdout::Discarded);
    run.libraries = system.libraries.clone();
    let finished = program.rewrite(&options)?.run(&run)?;
    if finished.exit_code() != 0 {
        return Err(Error::internal(format!("it ended with exit code {}", finished.exit_code())));
    }
    finished.profile()
}

fn compare(profile: &Profile) -> Result<()> {
    for (name, waves, branch) in EXPECTED {
        let kernel = profile.kernels.iter().find(|kernel| kernel.name == name);
        let kernel = kernel.ok_or_else(|| Error::internal(format!("{name} was not counted")))?;
        let found = (kernel.waves, divergent(kernel));
        if found != (waves, vec![branch]) {
            return Err(Error::internal(format!("{name}: expected {waves} waves and {branch:?}, found {found:?}")));
        }
    }
    Ok(())
}

/// What was counted of instructions that narrow EXEC.
fn divergent(kernel: &KernelTotals) -> Vec<ExecCounts> {
    let counts = |counts| match BranchCounts::of(counts) {
        Some(BranchCounts::Exec(exec)) => Some(exec),
        _ => None,
    };
    kernel.sites.iter().filter_map(|site| counts(&site.counts)).collect()
}
