//! What the latency probe measures, compared with the emulator's own record of when waves executed loads, waits and the
//! instructions that read the clock: cycle for cycle, for each load, with its distribution. Which wait completes a load
//! is worked out here, execution by execution, from what was issued and waited for; the probe does that beforehand,
//! from the code.
//!
//! It is also checked that each load of the original code has a site; that the wait is the original's own where the
//! probe says so, and inserted where it does not; and that between the two readings of the clock no vector memory
//! instruction of the probe's own is executed.
//!
//! With the timing model the clock is the modelled cycle. In strict mode outputs are those of the original. Where
//! memory is made so slow that a clock of 20 bits wraps around, what is wrong is said to be. Each kernel is rewritten
//! with loads at their own waits and with all of them drained.
//!
//! Quick and full runs and the variables are those of `measured_times`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use rewriter_tests::clocked::{self, Rewritten, Rewrote, Subject, WRAP};
use rewriter_tests::kernels::build::Variant;
use rewriter_tests::kernels::{Buffers, Test};
use rewriter_tests::made_up::Built;
use rewriter_tests::tally::{self, Tallies};
use rewriter_tests::{Failure, command, place};
use serde::Deserialize;
use wavetap::emulator::{LatencyOverride, Options, Visit};
use wavetap::isa::{Counter, Target};
use wavetap::pipeline::probe;
use wavetap::profile::map::KernelMap;
use wavetap::profile::probes::latency::EMPTY;

/// Of a hundred kernels so many are measured, at least. Many are made to have no register left, and registers are not
/// spilled for this probe.
const GOAL: u64 = 80;
/// Memory and scalar instructions so slow that each load takes longer than [`WRAP`], with the readings of the clock.
const SLOW: [&str; 4] = ["l2=1000000", "memory=1000000", "vmem=1000000", "salu=1000000"];
/// Targets of the sample that chases pointers.
const CHASED: [&str; 2] = ["gfx90a", "gfx1100"];
/// Fields of a site before its buckets.
const EXECUTIONS: usize = 0;
const CYCLES: usize = 1;
const WRAPPED: usize = 2;
const SHORTEST: usize = 3;
const IDLE: usize = 4;
const LONGEST: usize = 5;
const BUCKETS: usize = 6;

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    /// Kernels, those that are measured, and why others are not.
    kernels: u64,
    measured: u64,
    refused: BTreeMap<String, u64>,
    /// Executions of loads by the kind of their site; without an active lane; longer than a clock of 20 bits can say.
    loads: BTreeMap<String, u64>,
    idle: u64,
    long: u64,
    strict: u64,
}

static TALLIES: Tallies<Tally> = Tallies::new();

fn main() -> ExitCode {
    let all_run = Arguments::from_args().filter.is_none() && std::env::var_os("WAVETAP_KERNEL").is_none();
    TALLIES.run(trials(), |tallies| {
        for (target, tally) in tallies {
            println!("{target}: {tally:?}");
            if tally.loads.is_empty() {
                return Err(format!("{target}: nothing was compared"));
            }
        }
        let sum = |of: fn(&Tally) -> u64| tallies.values().map(of).sum();
        tally::at_least(GOAL, sum(|tally| tally.measured), sum(|tally| tally.kernels))?;
        if !all_run || rewriter_tests::some_processors() {
            return Ok(());
        }
        let kinds: BTreeSet<&str> = tallies.values().flat_map(|tally| tally.loads.keys().map(String::as_str)).collect();
        let mut wanted = ["at_its_wait", "drained", "clause_at_its_wait", "drained_clause"].into_iter();
        if let Some(kind) = wanted.find(|kind| !kinds.contains(kind)) {
            return Err(format!("no load of the kind {kind} was executed"));
        }
        let (idle, long): (u64, u64) = (sum(|tally| tally.idle), sum(|tally| tally.long));
        if idle == 0 || long == 0 {
            return Err(format!(
                "{idle} loads were executed without an active lane, {long} were too long for a clock of 20 bits"
            ));
        }
        Ok(())
    })
}

fn trials() -> Result<Vec<Trial>, Failure> {
    let trials = clocked::compiled()?.into_iter().map(|compiled| compiled.trial(run));
    let levels = CHASED.iter().filter(|target| rewriter_tests::chosen(target));
    let levels = levels.map(|target| Trial::test(format!("chase {target}"), || chase(target).map_err(Failed::from)));
    Ok(trials.chain(levels).collect())
}

/// What `hip-samples/latency/expected.yaml` says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectations {
    schema: String,
    within: f64,
    kernels: Vec<ExpectedKernel>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedKernel {
    name: String,
    executions: u64,
    at_least: u64,
    cycles: BTreeMap<String, f64>,
}

/// The levels of memory that a pointer chase shows, as they are in the report.
fn chase(target: &str) -> Result<(), Failure> {
    let sample = place::root().join("hip-samples/latency");
    let text = std::fs::read_to_string(sample.join("expected.yaml")).map_err(|e| e.to_string())?;
    let expected: Expectations = serde_yaml::from_str(&text).map_err(|e| e.to_string())?;
    if expected.schema != "wavetap.latency-expectations/1" || expected.kernels.len() < 3 {
        return Err(format!("{expected:?}"));
    }
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let program = sample.join("bin/chase").display().to_string();
    for (probe, kinds) in [("memory-latency", ["at_its_wait", "drained"]), ("drained-latency", ["drained"; 2])] {
        let arguments = [
            "profile", "--probe", probe, "--target", target, "--format", "json", "--report", "chase", "--force", "--",
            &program,
        ];
        command::run(&command::wavetap()?, &arguments, &[], folder.path())?.exited(0)?;
        let report = std::fs::read(folder.path().join("chase")).map_err(|e| e.to_string())?;
        let report: wavetap::report::Report = serde_json::from_slice(&report).map_err(|e| e.to_string())?;
        for kernel in &expected.kernels {
            let wrong = |what: String| format!("{probe}: {}: {what}", kernel.name);
            let is_it = |found: &&wavetap::report::Kernel| found.demangled.starts_with(&format!("{}(", kernel.name));
            let found = report.kernels.iter().find(is_it).ok_or_else(|| wrong("it is not there".to_owned()))?;
            let measured = found.sections.measured_latency.as_ref();
            let measured = measured.ok_or_else(|| wrong("nothing was measured".to_owned()))?;
            let empty = measured.empty.mean().unwrap_or_default();
            let loads = measured.loads.iter();
            let executed: u64 = loads.clone().map(|load| load.counts.executions).sum();
            let kind = |load: &wavetap::report::MeasuredLoad| {
                *load.kind.schema().name == *kinds[0] || *load.kind.schema().name == *kinds[1]
            };
            if executed != kernel.executions || !loads.clone().all(kind) {
                return Err(wrong(format!("{executed} loads: {:?}", measured.loads)));
            }
            let cycles = kernel.cycles[target];
            let net = cycles..=cycles + expected.within;
            let (mut at_level, mut shortest) = (0, u64::MAX);
            for load in loads {
                let buckets = load.counts.buckets.iter().filter(|bucket| {
                    let below = bucket.below.map_or(f64::MAX, |below| below as f64);
                    below > net.start() + empty && (bucket.from as f64) <= net.end() + empty
                });
                at_level += buckets.map(|bucket| bucket.executions).sum::<u64>();
                shortest = shortest.min(load.counts.shortest.unwrap_or(u64::MAX));
            }
            let shortest = shortest as f64 - empty;
            if !net.contains(&shortest) || at_level < kernel.at_least {
                return Err(wrong(format!("{shortest} of {net:?} cycles, {at_level} loads: {:?}", measured.loads)));
            }
        }
    }
    Ok(())
}

/// All kernels of a source, compiled in one way.
fn run(built: &Built) -> Result<(), Failure> {
    let (object, variant) = (&built.object, built.variant);
    let shared = Rewritten::of(object, probe::MEMORY_LATENCY, false)?;
    let single = Rewritten::of(object, probe::MEMORY_LATENCY, true)?;
    let drained = Rewritten::of(object, probe::DRAINED_LATENCY, false)?;
    let mut tally = Tally::default();
    let mut wrong = shared.refusals(&mut tally.refused);
    let outcome = built.each(|test, buffers| {
        tally.kernels += 1;
        if !shared.map.kernels.iter().any(|kernel| kernel.name == test.name) {
            return Ok(());
        }
        tally.measured += 1;
        compare(object, [&shared, &single, &drained], test, variant, buffers, &mut tally)
    });
    wrong.extend(outcome.err());
    TALLIES.add(variant.target.name(), tally);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

impl tally::Tally for Tally {
    fn add(&mut self, other: Tally) {
        self.kernels += other.kernels;
        self.measured += other.measured;
        self.idle += other.idle;
        self.long += other.long;
        self.strict += other.strict;
        tally::add_counts(&mut self.refused, other.refused);
        tally::add_counts(&mut self.loads, other.loads);
    }
}

/// One kernel of an object, rewritten with few records, with one for each wave, and with all loads drained.
fn compare(
    object: &[u8],
    [shared, single, drained]: [&Rewritten; 3],
    test: &Test,
    variant: Variant,
    buffers: &Buffers,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let slow = SLOW.iter().map(|text| text.parse::<LatencyOverride>()).collect::<Result<Vec<_>, _>>()?;
    let wraps = variant.target.shader_clock().is_some_and(|clock| clock.bits() < 64);
    let mut modelled =
        vec![("modelled", shared, Vec::new()), ("each wave", single, Vec::new()), ("drained", drained, Vec::new())];
    modelled.extend(wraps.then_some(("slow memory", shared, slow)));
    let kernel = clocked::Kernel { object, test, variant, buffers };
    let strict = [shared, single, drained];
    tally.strict += kernel.compare(modelled, &strict, |subject, options| compare_run(subject, options, tally))?;
    Ok(())
}

/// What an instruction of rewritten code does here.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    /// Inserted code reads the shader's clock.
    Stamp,
    /// A vector memory instruction.
    Memory {
        /// That of the site, if it is measured.
        site: Option<usize>,
        /// Whether it counts among loads, and among LDS operations.
        counts: bool,
        is_flat: bool,
        inserted: bool,
    },
    /// It waits.
    Wait { left: Left, inserted: bool },
}

/// How many operations a wait leaves outstanding: among loads, and among LDS operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Left {
    loads: Option<u64>,
    others: Option<u64>,
}

/// What the instructions of a kernel's new code do, by their addresses. Fails if a load has no site.
fn actions(rewritten: &Rewritten, kernel: &KernelMap, target: Target) -> Result<BTreeMap<u64, Action>, Failure> {
    let mut actions = BTreeMap::new();
    for (at, Rewrote { original, text, .. }) in rewritten.code(kernel, target)? {
        let inserted = original.is_none();
        let name = text.split_whitespace().next().unwrap_or_default();
        let action = if inserted && clocked::reads_clock(&text) {
            Action::Stamp
        } else if name.starts_with("s_wait") {
            let Some(left) = waits(name, &text)? else { continue };
            Action::Wait { left, inserted }
        } else if ["flat_", "global_", "buffer_", "scratch_", "tbuffer_", "image_"]
            .iter()
            .any(|of| name.starts_with(of))
        {
            let is_load = ["flat_load", "global_load", "buffer_load", "scratch_load", "tbuffer_load"]
                .iter()
                .any(|of| name.starts_with(of));
            let returns = name.contains("atomic") && returns(target, &text);
            let is_its = |site: &wavetap::profile::map::Site| Some(site.address) == original && site.kind != *EMPTY;
            let site = kernel.sites.iter().position(is_its);
            if original.is_some() && (is_load || returns) && site.is_none() {
                return Err(format!("{at:#x} {text}: it is not measured"));
            }
            if name.contains("inv") || name.contains("wb") {
                continue;
            }
            let among_stores =
                target.largest_wait(Counter::Vs).is_some() || target.largest_wait(Counter::Store).is_some();
            let counts = is_load || returns || !among_stores || name.starts_with("image_load");
            Action::Memory { site, counts, is_flat: name.starts_with("flat_"), inserted }
        } else {
            continue;
        };
        actions.insert(at, action);
    }
    Ok(actions)
}

/// Whether an atomic returns what was there.
fn returns(target: Target, text: &str) -> bool {
    let modifiers = |wanted: &str| text.split_whitespace().any(|word| word == wanted);
    if target.generation() >= 12 {
        return text.split_whitespace().any(|word| word.starts_with("th:TH_ATOMIC") && word.contains("RETURN"));
    }
    modifiers("glc") || modifiers("sc0")
}

/// What a wait leaves; nothing if it is for neither.
fn waits(name: &str, text: &str) -> Result<Option<Left>, Failure> {
    let unknown = || format!("{text}: not understood");
    let number = |text: &str| {
        let digits = text.trim_start_matches("0x");
        u64::from_str_radix(digits, if digits.len() < text.len() { 16 } else { 10 }).map_err(|_| unknown())
    };
    let field = |field: &str| -> Result<Option<u64>, Failure> {
        let Some((_, rest)) = text.split_once(&format!("{field}(")) else { return Ok(None) };
        Ok(Some(number(rest.split(')').next().unwrap_or_default())?))
    };
    let only = || number(text.split_whitespace().nth(1).unwrap_or_default());
    Ok(match name {
        "s_waitcnt" if text.contains('(') => Some(Left { loads: field("vmcnt")?, others: field("lgkmcnt")? }),
        "s_wait_loadcnt" => Some(Left { loads: Some(only()?), others: None }),
        "s_wait_dscnt" => Some(Left { loads: None, others: Some(only()?) }),
        // Of LDS in the low bits, of loads above.
        "s_wait_loadcnt_dscnt" => {
            let both = only()?;
            Some(Left { loads: Some(both >> 8 & 63), others: Some(both & 63) })
        }
        "s_wait_idle" | "s_waitcnt" => return Err(unknown()),
        _ => None,
    })
}

/// An execution of a load, or of something that counts with it.
#[derive(Debug, Clone)]
struct InFlight {
    site: Option<usize>,
    start: Option<u64>,
    is_active: bool,
    is_flat: bool,
    /// Not known to be complete among loads; among LDS operations.
    loads: bool,
    others: bool,
}

/// The counters of one wave, and how many executions took longer than a clock of 20 bits can say, by site.
fn expected(
    kernel: &KernelMap,
    target: Target,
    visits: &[Visit],
    actions: &BTreeMap<u64, Action>,
) -> Result<(Vec<Vec<u64>>, Vec<u64>), Failure> {
    let mut counters = clocked::nothing(kernel);
    let mut long = vec![0; kernel.sites.len()];
    let mut stamps = visits.iter().filter(|visit| actions[&visit.place.address] == Action::Stamp);
    let (Some(first), Some(second)) = (stamps.next(), stamps.next()) else { return Err("no stamps".to_owned()) };
    let empty = kernel.sites.iter().position(|site| site.kind == *EMPTY).ok_or("nothing empty")?;
    count(kernel, &mut counters, &mut long, empty, first.exec != 0, second.cycle - first.cycle);
    let mut stamp = None;
    // In the order of issue; and complete ones without their second stamp.
    let (mut queue, mut complete): (Vec<InFlight>, Vec<InFlight>) = (Vec::new(), Vec::new());
    for visit in visits {
        match &actions[&visit.place.address] {
            Action::Stamp => {
                for load in complete.drain(..) {
                    let (Some(site), Some(start)) = (load.site, load.start) else { continue };
                    count(kernel, &mut counters, &mut long, site, load.is_active, visit.cycle - start);
                }
                stamp = Some(visit.cycle);
            }
            Action::Memory { site, counts, is_flat, inserted } => {
                let measured = queue.iter().chain(&complete).any(|load| load.site.is_some());
                if *inserted && measured {
                    return Err(format!("{:#x}: inserted while a load is measured", visit.place.address));
                }
                if *counts {
                    let is_active = visit.exec != 0;
                    queue.push(InFlight {
                        site: *site,
                        start: stamp,
                        is_active,
                        is_flat: *is_flat,
                        loads: true,
                        others: *is_flat,
                    });
                }
            }
            Action::Wait { left: Left { loads, others }, inserted } => {
                let in_order = target.flat_in_order() || !queue.iter().any(|load| load.is_flat && load.loads);
                if let Some(left) = loads.filter(|left| *left == 0 || in_order) {
                    let open: Vec<usize> = (0..queue.len()).filter(|at| queue[*at].loads).collect();
                    for at in open.iter().rev().skip(left as usize) {
                        queue[*at].loads = false;
                    }
                }
                if *others == Some(0) {
                    queue.iter_mut().for_each(|load| load.others = false);
                }
                let (done, open): (Vec<InFlight>, _) = queue.into_iter().partition(|load| !load.loads && !load.others);
                queue = open;
                for load in done {
                    let is_drained = load.site.is_some_and(|site| kernel.sites[site].kind.name.contains("drained"));
                    if load.site.is_some() && is_drained != *inserted {
                        let (what, by) = (is_drained, visit.place.address);
                        return Err(format!("{load:?} is said to be drained: {what}, and completes at {by:#x}"));
                    }
                    complete.push(load);
                }
            }
        }
    }
    if let Some(load) = queue.iter().chain(&complete).find(|load| load.site.is_some()) {
        return Err(format!("{load:?} has no end"));
    }
    Ok((counters, long))
}

/// Adds an execution to the counters of a site.
fn count(kernel: &KernelMap, counters: &mut [Vec<u64>], long: &mut [u64], site: usize, is_active: bool, cycles: u64) {
    let values = &mut counters[site];
    if !is_active {
        values[IDLE] += 1;
        return;
    }
    values[EXECUTIONS] += 1;
    values[CYCLES] += cycles;
    values[SHORTEST] = values[SHORTEST].min(cycles);
    values[LONGEST] = values[LONGEST].max(cycles);
    // By the names of the buckets.
    let from = |name: &str| name.trim_start_matches("from_").parse().unwrap_or(u64::MAX);
    let buckets = kernel.sites[site].kind.fields.iter().skip(BUCKETS);
    let below = buckets.filter(|field| from(&field.name) <= cycles).count();
    values[BUCKETS + below - 1] += 1;
    long[site] += u64::from(cycles >= WRAP);
}

/// Runs the kernel and compares; gives the output.
fn compare_run(subject: &Subject<'_>, options: &Options, tally: &mut Tally) -> Result<Vec<u8>, Failure> {
    let (_, kernel) = subject.kernel()?;
    let target = subject.variant.target;
    let actions = actions(subject.rewritten, kernel, target)?;
    let watched: BTreeSet<u64> = actions.keys().copied().collect();
    let options = Options { watched: Arc::new(watched), ..options.clone() };
    let outcome = subject.run(&options)?;
    let mut all = clocked::nothing(kernel);
    let mut long = vec![0; kernel.sites.len()];
    for (wave, visits) in &outcome.by_wave()? {
        let (of_wave, these) =
            expected(kernel, target, visits, &actions).map_err(|failure| format!("{wave:?}: {failure}"))?;
        if subject.rewritten.per_wave {
            let found = outcome.of_wave(kernel, *wave)?;
            same(target, kernel, &of_wave, &found, &these).map_err(|e| format!("{wave:?}: {e}"))?;
        }
        long.iter_mut().zip(&these).for_each(|(long, these)| *long += these);
        clocked::add(kernel, &mut all, &of_wave)?;
    }
    let totals = outcome.profile.kernels.first().ok_or("nothing was counted")?;
    let found: Vec<Vec<u64>> = totals.sites.iter().map(|site| site.counts.values().to_vec()).collect();
    same(target, kernel, &all, &found, &long)?;
    tally.long += long.iter().sum::<u64>();
    for (site, values) in kernel.sites.iter().zip(&found).filter(|(site, _)| site.kind != *EMPTY) {
        tally.idle += values[IDLE];
        if values[EXECUTIONS] > 0 {
            tally::add_counts(&mut tally.loads, [(site.kind.name.to_string(), values[EXECUTIONS])]);
        }
    }
    Ok(outcome.output)
}

/// Whether what was measured is what the emulator saw; where the clock wraps around and is said to have, of some
/// executions of a load, the times alone may differ, by whole wraps.
fn same(
    target: Target,
    kernel: &KernelMap,
    expected: &[Vec<u64>],
    found: &[Vec<u64>],
    long: &[u64],
) -> Result<(), Failure> {
    let wraps = target.shader_clock().is_some_and(|clock| clock.bits() < 64);
    for (number, (site, (expected, found))) in kernel.sites.iter().zip(expected.iter().zip(found)).enumerate() {
        let wrong = |what: &str| {
            let names: Vec<String> = site.kind.fields.iter().map(|field| field.name.to_string()).collect();
            let of = |values: &[u64]| -> Vec<String> {
                let set = names.iter().zip(values).filter(|(_, value)| **value != 0);
                set.map(|(name, value)| format!("{name} {value}")).collect()
            };
            let (address, kind, text) = (site.address, &site.kind, &site.instruction);
            let (expected, found) = (of(expected), of(found));
            Err(format!("{address:#x} {text} {kind}: {what}: should be {expected:?}, is {found:?}"))
        };
        if found[WRAPPED] > 0 && !wraps {
            return wrong("a clock of 64 bits is said to have wrapped around");
        }
        if wraps && found[WRAPPED] < long[number] {
            return wrong(&format!("{} executions were too long", long[number]));
        }
        if found[WRAPPED] == 0 {
            if expected != found {
                return wrong("what is not said to have wrapped around is exact");
            }
            continue;
        }
        if expected[EXECUTIONS] != found[EXECUTIONS] || expected[IDLE] != found[IDLE] {
            return wrong("executions");
        }
        let buckets: u64 = found[BUCKETS..].iter().sum();
        let misses = expected[CYCLES].checked_sub(found[CYCLES]);
        if buckets != found[EXECUTIONS] || misses.is_none_or(|misses| misses % WRAP != 0) {
            return wrong("cycles differ by other than wraps");
        }
    }
    Ok(())
}
