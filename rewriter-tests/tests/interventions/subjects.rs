//! What is run: kernels in machine code, compiled kernels, samples.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use rewriter_tests::kernels::build::{self, Sources, Variant};
use rewriter_tests::kernels::launch;
use rewriter_tests::machine_code::{Frame, MachineKernel, Wish};
use rewriter_tests::{Failure, command, counts, made_up, place};
use wavetap::cfg::Program;
use wavetap::code_object::CodeObject;
use wavetap::emulator::{DispatchStats, LatencyOverride, Options, StallReason, Timing};
use wavetap::kernel::Image;
use wavetap::offload_bundle::Input;
use wavetap::profile::file::Profile;
use wavetap::profile::time::TimeProfile;
use wavetap::slice::blame::StallCycles;

use crate::truth::{Outcome, Timed, judge};

/// A compiled kernel that executes more wave-instructions is left out: it is run many times.
const LONG: u64 = 20_000;

/// What the emulator says of a dispatch.
fn timed(kernel: &str, stats: &DispatchStats) -> Timed {
    let mut timed = Timed::default();
    let time = stats.time.as_ref().expect("timing was on");
    for (place, cycles) in &time.instructions {
        let reasons = StallReason::ALL.into_iter().filter(|reason| cycles.stalled(*reason) > 0);
        let reasons: BTreeMap<String, u64> =
            reasons.map(|reason| (reason.name().to_owned(), cycles.stalled(reason))).collect();
        timed.stalls.insert(place.address, StallCycles { cycles: cycles.stalls(), reasons, ..StallCycles::default() });
    }
    for ((waiting, operation), cycles) in &time.waited {
        timed.stalls.entry(waiting.address).or_default().waits_for.insert(operation.address, *cycles);
    }
    let trace = stats.trace.as_ref().expect("tracing was on");
    timed.executions = trace.executed.iter().map(|(place, times)| (place.address, *times)).collect();
    let totals = counts::traced(kernel, "", stats.waves, trace);
    timed.totals.insert(kernel.to_owned(), totals);
    timed
}

fn options(latencies: &[LatencyOverride], chance: Option<u64>) -> Options {
    let timing = Timing { latencies: latencies.to_vec(), chance, ..Timing::default() };
    Options { trace: true, strict: false, threads: 1, timing: Some(timing), ..Options::default() }
}

/// The seed of the latencies of a draw; 0 is the first.
fn drawn(seed: u64, draw: u64) -> u64 {
    seed ^ draw << 32
}

/// A kernel in machine code, with latencies by chance.
pub fn machine(frame: &Frame, kernel: &MachineKernel) -> Result<Outcome, Failure> {
    let mut time = |latencies: &[LatencyOverride], draw: u64| {
        let stats = frame.run(kernel, options(latencies, Some(drawn(kernel.seed, draw))))?;
        Ok(timed(rewriter_tests::machine_code::NAME, &stats))
    };
    let base = time(&[], 0)?;
    judge(&format!("seed {} {}", kernel.seed, frame.target().name()), &frame.program(kernel), &base, true, &mut time)
}

/// What the kernels of a seed are made of: no calls, of which a wait says only that they have left something.
pub fn wish(seed: u64) -> Wish {
    let control = !seed.is_multiple_of(4);
    Wish { statements: 40, control, calls: false, mixed: !seed.is_multiple_of(3), careful: seed.is_multiple_of(2) }
}

/// The kernels of a source that clang compiles, with latencies by chance.
pub fn compiled(sources: &Sources, path: &Path, variant: Variant) -> Result<Vec<Outcome>, Failure> {
    let object = build::object_of(path, variant)?;
    let reference = sources.reference(variant.target.wave_size())?;
    let code = CodeObject::parse(&object).map_err(|e| e.to_string())?;
    let image = Image::of(&code).map_err(|e| e.to_string())?;
    let program = Program::of(code.target().ok_or("a target")?, &image);
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut outcomes = Vec::new();
    let tests = reference.tests.iter().filter(|test| test.file == file && test.runs_on(variant.target.name()));
    for (n, test) in tests.enumerate().filter(|(_, test)| made_up::miscompiled(&test.name, variant).is_none()) {
        let buffers = reference.buffers(test)?;
        let mut time = |latencies: &[LatencyOverride], draw: u64| {
            let options = options(latencies, Some(drawn(n as u64, draw)));
            let ran = launch::run(&object, variant.target, test, &buffers, &options);
            ran.map(|(_, stats)| timed(&test.name, &stats))
        };
        let base = time(&[], 0)?;
        if base.executions.values().sum::<u64>() > LONG {
            continue;
        }
        outcomes.push(judge(&format!("{} {variant}", test.name), &program, &base, true, &mut time)?);
    }
    Ok(outcomes)
}

/// The kernels of a sample, with the caches of the model.
pub fn sample(path: &Path, target: &str) -> Result<Vec<Outcome>, Failure> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let wavetap = command::wavetap()?;
    let mut runs = 0;
    let mut time = |latencies: &[LatencyOverride], _: u64| {
        runs += 1;
        let (times, trace) = (folder.path().join(format!("{runs}.time")), folder.path().join(format!("{runs}.trace")));
        let mut arguments: Vec<OsString> =
            ["run", "--backend", "emulator", "--target", target].map(OsString::from).to_vec();
        arguments.extend(["--timing", "--format", "json", "--report"].map(OsString::from));
        arguments.push(times.clone().into());
        arguments.extend(latencies.iter().flat_map(|latency| ["--latency".into(), latency.to_string().into()]));
        arguments.extend(["--trace".into(), trace.clone().into(), "--".into(), path.into()]);
        command::run(&wavetap, &arguments, &[], place::root())?.exited(0)?;
        let read = |path: &Path| fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
        let profile = TimeProfile::from_json(&read(&times)?).map_err(|e| e.to_string())?;
        let counts = Profile::from_json(&read(&trace)?).map_err(|e| e.to_string())?;
        let mut timed = Timed::default();
        for each in profile.kernels.iter().flat_map(|kernel| &kernel.instructions) {
            *timed.executions.entry(each.address).or_default() += each.executions;
            let stall = timed.stalls.entry(each.address).or_default();
            stall.cycles += each.modelled_stalled.values().sum::<u64>();
            for (reason, cycles) in &each.modelled_stalled {
                *stall.reasons.entry(reason.clone()).or_default() += cycles;
            }
            for wait in &each.modelled_waits_for {
                *stall.waits_for.entry(wait.address).or_default() += wait.modelled_cycles;
            }
        }
        timed.totals = counts.kernels.into_iter().map(|kernel| (kernel.name.clone(), kernel)).collect();
        Ok(timed)
    };
    let base = time(&[], 0)?;
    let data = fs::read(path).map_err(|e| e.to_string())?;
    let input = Input::parse(&data).map_err(|e| e.to_string())?;
    let mut outcomes = Vec::new();
    for found in input.code_objects() {
        let code = CodeObject::parse(found.bytes).map_err(|e| e.to_string())?;
        let Some(known) = code.target().filter(|known| known.name() == target) else { continue };
        let image = Image::of(&code).map_err(|e| e.to_string())?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        outcomes.push(judge(&format!("{name} {target}"), &Program::of(known, &image), &base, false, &mut time)?);
    }
    Ok(outcomes)
}
