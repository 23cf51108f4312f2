//! Whole programs: what instrumented kernels counted, and what follows from it, against the totals that the emulator
//! has of the original, and against operations and bytes that were worked out by hand from the source.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use rewriter_tests::{Failure, command, counts, full, place};
use wavetap::pipeline::{self, Selection};
use wavetap::report::mix::{KernelMix, MixReport, Traffic};

/// Side of the matrices of `gemm_rows` and `gemm_columns`.
const GEMM: u64 = 64;
/// Work-items of the kernels on vectors, and what each of them adds up in `lane_rows`.
const COUNT: u64 = 4096;
const ROW: u64 = 16;

/// The programs' trials.
pub fn trials() -> Vec<Trial> {
    let targets: &[&'static str] = if full() { &["gfx906", "gfx90a", "gfx942"] } else { &["gfx90a"] };
    let mut trials: Vec<Trial> = ["gfx90a", "gfx942", "gfx1030", "gfx1100"]
        .into_iter()
        .map(|target| Trial::test(format!("by hand on {target}"), move || by_hand(target).map_err(Failed::from)))
        .collect();
    for sample in place::sample_names() {
        for target in targets {
            let sample = sample.clone();
            let name = format!("sample {sample} {target}");
            trials.push(Trial::test(name, move || totals(&sample, target).map_err(Failed::from)));
        }
    }
    trials
}

/// Runs a program, instrumented; gives what it executed.
fn mix(file: &Path, target: &str, folder: &Path) -> Result<MixReport, Failure> {
    let profile = folder.join("counts.profile");
    let args = ["profile", "--backend", "emulator", "--probe", "branches,blocks", "--target", target, "--report"];
    let mut args: Vec<OsString> = args.map(OsString::from).to_vec();
    let rest: [PathBuf; 5] = [folder.join("report"), "-o".into(), profile.clone(), "--".into(), file.to_path_buf()];
    args.extend(rest.map(OsString::from));
    command::run(&command::wavetap()?, &args, &[], place::root())?.exited(0)?;
    let data = std::fs::read(file).map_err(|e| e.to_string())?;
    let selection = Selection { targets: vec![target.to_owned()], ..Selection::default() };
    pipeline::mix(&data, &selection, &counts::read_profile(&profile)?).map_err(|e| e.to_string())
}

/// Instructions and bytes are those that the emulator counted in the original.
fn totals(sample: &str, target: &str) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let file = place::samples().join(sample);
    let trace = folder.path().join("trace.profile");
    let args = ["run", "--backend", "emulator", "--target", target, "--trace"].map(OsString::from);
    let rest = [trace.clone().into_os_string(), "--".into(), file.clone().into_os_string()];
    let args: Vec<OsString> = args.into_iter().chain(rest).collect();
    command::run(&command::wavetap()?, &args, &[], place::root())?.exited(0)?;
    let report = mix(&file, target, folder.path())?;
    let mut compared = 0;
    for seen in counts::read_profile(&trace)?.kernels.iter().filter(|kernel| kernel.dispatches > 0) {
        let said = report.kernels.iter().find(|kernel| kernel.name == seen.name);
        let said = said.ok_or_else(|| format!("{}: no mix", seen.name))?;
        let work = seen.work.ok_or("the trace has no work")?;
        if said.total.uncounted > 0 || !said.uncounted_callees.is_empty() {
            if said.total.instructions > work.instructions {
                return Err(format!("{}: more instructions than were executed", seen.name));
            }
            continue;
        }
        compared += 1;
        if said.total.instructions != work.instructions {
            let (said, seen_of) = (said.total.instructions, work.instructions);
            return Err(format!("{}: {said} instructions, {seen_of} were executed", seen.name));
        }
        if said.total.bytes.iter().any(|row| row.unknown > 0) {
            continue;
        }
        // The emulator has all but LDS in one number, and what atomics read and write in it twice: 4 bytes of a lane in
        // all samples.
        let atomics = |memory: &str| -> u64 {
            let rows = said.total.classes.iter();
            let ours = rows.filter(|row| row.class.starts_with(memory) && row.class.ends_with(".atomic"));
            4 * ours.map(|row| row.lanes).sum::<u64>()
        };
        let bytes = |memory: Traffic| said.total.bytes_of(memory);
        let global = bytes(Traffic::Global) + bytes(Traffic::Scalar) + bytes(Traffic::Scratch) + atomics("vmem.");
        let lds = bytes(Traffic::Lds) + atomics("lds.");
        if (global, lds) != (work.global_bytes, work.lds_bytes) {
            let (memory, of_lds) = (work.global_bytes, work.lds_bytes);
            let name = &seen.name;
            return Err(format!("{name}: {global} bytes of memory, {lds} of LDS; {memory} and {of_lds} were moved"));
        }
    }
    if compared == 0 && sample != "calls" { Err("nothing was compared".to_owned()) } else { Ok(()) }
}

/// Operations and bytes that follow from the source.
fn by_hand(target: &str) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let report = mix(&place::root().join("hip-samples/memory/bin/accesses"), target, folder.path())?;
    let kernel = |name: &str| -> Result<&KernelMix, Failure> {
        let mut found = report.kernels.iter().filter(|kernel| kernel.demangled.contains(name) && kernel.waves > 0);
        found.next().ok_or_else(|| format!("no {name}"))
    };
    // Name, floating-point operations, bytes of global memory by vector instructions, if these follow from the source.
    let gemm = 2 * GEMM * GEMM * GEMM;
    for (name, flops, bytes) in [
        ("gemm_rows(", gemm, Some(4 * (2 * GEMM * GEMM * GEMM + GEMM * GEMM))),
        ("gemm_columns(", gemm, Some(4 * (2 * GEMM * GEMM * GEMM + GEMM * GEMM))),
        ("lane_rows(", COUNT * ROW, Some(4 * COUNT * (ROW + 1))),
        ("lane_columns(", COUNT * ROW, Some(4 * COUNT * (ROW + 1))),
        ("structure_of_arrays(", COUNT, Some(8 * COUNT)),
        ("array_of_structures(", COUNT, Some(8 * COUNT)),
        ("backward(", 0, Some(8 * COUNT)),
        ("gather(", 0, Some(12 * COUNT)),
    ] {
        let total = &kernel(name)?.total;
        if (total.flops.effective, total.flops.lanes_unknown) != (flops, 0) {
            return Err(format!("{name}: {:?}, worked out by hand: {flops}", total.flops));
        }
        // All lanes are active and nothing is packed: the hardware would count the same.
        let packed = total.classes.iter().any(|row| row.class.contains("dot"));
        if !packed && total.flops.convention > flops {
            return Err(format!("{name}: {:?}, worked out by hand: {flops}", total.flops));
        }
        if bytes.is_some_and(|bytes| bytes != total.bytes_of(Traffic::Global)) {
            return Err(format!("{name}: {:?}, worked out by hand: {bytes:?}", total.bytes));
        }
    }
    Ok(())
}
