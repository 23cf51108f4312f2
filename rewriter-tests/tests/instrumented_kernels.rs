//! Kernels as compiled and as instrumented: the same output, byte for byte, nothing that the strict mode finds, and the
//! counts that the emulator saw. The kernels are those of `rewriter-tests/kernels` and 200 that are made up from seeds
//! (`rewriter_tests::made_up`), on every target that is rewritten, that the emulator runs and that the compiler knows,
//! with each of its wave sizes.
//!
//! Quick: for a target of each instruction set one source, one level of optimisation and two seeds of the strict mode.
//! Full (`WAVETAP_FULL_TESTS=1`): every source at three levels with 20 seeds (`WAVETAP_SEEDS` of them).
//! `WAVETAP_KERNEL_TARGETS=gfx1030,gfx1100` takes these targets alone, `WAVETAP_KERNEL=made_up_17` kernels with this in
//! their name.
//!
//! What one source does is one test; its name is that of the source, the target, the wave size and the compiler's
//! level. To look at it alone:
//!
//!     WAVETAP_FULL_TESTS=1 WAVETAP_KERNEL=made_up_17 \
//!         cargo test -p rewriter-tests --test instrumented_kernels -- 'made-up-2 gfx90a wave64 O1'
//!
//! The source and the code object are then in `target/debug/kernels`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

use libtest_mimic::{Arguments, Failed, Trial};
use rewriter_tests::instrumented::{Compared, Launch, Stopped, Subject};
use rewriter_tests::kernels::build::{self, Sources, Variant};
use rewriter_tests::kernels::compare::Rule;
use rewriter_tests::kernels::{Buffers, Test, launch};
use rewriter_tests::{Failure, chosen, full, made_up, some_processors};
use wavetap::isa::{EventHazards, Target};

/// A kernel that executes more than this many wave-instructions does not end by itself.
const FUEL: u64 = 3_000_000;
/// The quick run takes a source of the written kernels for every so manyth target.
const QUICK_WRITTEN: usize = 4;
const LEVELS: [&str; 3] = ["O1", "O0", "O3"];
/// Of a hundred kernels, so many are instrumented at least. Many are made to have no register left, and so leave none
/// to those that share functions with them.
const GOAL: u64 = 85;
/// Of a hundred that are instrumented, so many count in registers, too, at least. The same kernels have the fewest.
const GOAL_IN_REGISTERS: u64 = 75;

/// What happened in all tests.
#[derive(Default)]
struct Tally {
    /// Kernels in a mode: instrumented and all.
    instrumented: u64,
    kernels: u64,
    /// Kernels that count in registers.
    in_registers: u64,
    compared: Compared,
    /// Kernels that the compiler is known to make wrong code of, and that the strict mode stops or that give another
    /// output than on the CPU.
    miscompiled: u64,
    /// Kernels with hazards that the compiler is known to leave in.
    tolerant: u64,
    faults: u64,
    /// Refusals by reason, with an example.
    refused: BTreeMap<String, (u64, String)>,
}

static TALLY: Mutex<Option<Tally>> = Mutex::new(None);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = match trials() {
        Ok(trials) => trials,
        Err(failure) => {
            eprintln!("{failure}");
            return ExitCode::FAILURE;
        }
    };
    let conclusion = libtest_mimic::run(&arguments, trials);
    let Some(Tally { instrumented, kernels, in_registers, compared, miscompiled, tolerant, faults, refused }) =
        TALLY.lock().ok().and_then(|mut tally| tally.take())
    else {
        return conclusion.exit_code();
    };
    println!("{kernels} kernels in a counter mode, {instrumented} instrumented; {compared:?}");
    println!("{in_registers} kernels count in registers");
    if miscompiled > 0 {
        println!("{miscompiled} kernels are wrong as the compiler makes them ({faults} faults were compared)");
    }
    if tolerant > 0 {
        println!("{tolerant} kernels have hazards that the compiler leaves in: nothing stops for those");
    }
    for (reason, (times, example)) in &refused {
        println!("{times} refused, {reason}: {example}");
    }
    if instrumented * 100 < kernels * GOAL {
        println!("fewer than {GOAL} of a hundred are instrumented");
        return ExitCode::FAILURE;
    }
    // Two modes other than registers.
    if in_registers * 100 < instrumented / 2 * GOAL_IN_REGISTERS {
        println!("fewer than {GOAL_IN_REGISTERS} of a hundred count in registers");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

/// How the sources are compiled, and which.
fn trials() -> Result<Vec<Trial>, Failure> {
    let known = build::known_processors()?;
    let targets: Vec<Target> = Target::all()
        .filter(|target| {
            target.rewritable() && target.emulated() && known.contains(target.name()) && chosen(target.name())
        })
        .flat_map(|target| [64, 32].into_iter().filter_map(move |lanes| target.with_wave_size(lanes)))
        .collect();
    let targets = if full() || some_processors() { targets } else { quick(targets) };
    let mut trials = Vec::new();
    for (n, &target) in targets.iter().enumerate() {
        for (sources, offset) in [(made_up::sources()?, 0), (Sources::written()?, 1)] {
            let count = sources.files().len();
            let pairs: Vec<(usize, usize)> = if full() {
                (0..count).flat_map(|file| (0..LEVELS.len()).map(move |level| (file, level))).collect()
            } else if offset == 0 || n % QUICK_WRITTEN == 1 {
                // Others for each target, so that all of them together have many.
                vec![(n * 7 % count, (n + offset) % LEVELS.len())]
            } else {
                Vec::new()
            };
            for (file, level) in pairs {
                let variant = variant(target, LEVELS[level]);
                let (sources, path) = (sources.clone(), sources.files()[file].clone());
                let name = format!(
                    "{} {} wave{} {}",
                    path.file_stem().unwrap_or_default().to_string_lossy(),
                    target.name(),
                    target.wave_size(),
                    variant.level
                );
                trials.push(Trial::test(name, move || run(&sources, &path, variant).map_err(Failed::from)));
            }
        }
    }
    Ok(trials)
}

/// A target of each instruction set, in one wave size or the other.
fn quick(targets: Vec<Target>) -> Vec<Target> {
    let mut sets: BTreeMap<&str, Vec<Target>> = BTreeMap::new();
    targets.into_iter().for_each(|target| sets.entry(target.instruction_set()).or_default().push(target));
    sets.into_values().enumerate().map(|(n, targets)| targets[n % targets.len()]).collect()
}

fn variant(target: Target, level: &'static str) -> Variant {
    let version = match target.name() {
        // They came with the sixth version.
        name if name.ends_with("-generic") => 6,
        // Without optimisation, clang 19's functions have no pointer to the hidden arguments there that the fifth
        // version would read.
        name if name.starts_with("gfx8") && level == "O0" => 4,
        _ => 5,
    };
    Variant { target, level, version }
}

/// All kernels of a source, compiled in one way.
fn run(sources: &Sources, path: &Path, variant: Variant) -> Result<(), Failure> {
    let object = build::object_of(path, variant)?;
    let subject = Subject::of(&object, variant.target)?;
    let reference = sources.reference(variant.target.wave_size())?;
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let only = std::env::var("WAVETAP_KERNEL").unwrap_or_default();
    let tests = reference
        .tests
        .iter()
        .filter(|test| test.file == file && test.runs_on(variant.target.name()) && test.name.contains(&only));
    let mut wrong = Vec::new();
    for test in tests {
        let checked = check(&subject, test, &reference.buffers(test)?, variant).unwrap_or_else(|failure| {
            let processor = variant.target.name();
            wrong.push(format!(
                "{} ({variant}; alone: WAVETAP_KERNEL={} WAVETAP_KERNEL_TARGETS={processor}): {failure}",
                test.name, test.name
            ));
            Checked::default()
        });
        let mut tally = TALLY.lock().map_err(|e| e.to_string())?;
        let tally = tally.get_or_insert_default();
        tally.compared.add(checked.compared);
        tally.faults += checked.faults;
        tally.tolerant += u64::from(checked.tolerates);
        if let Some(what) = checked.faulty {
            match made_up::miscompiled(&test.name, variant) {
                Some(_) => tally.miscompiled += 1,
                None => wrong.push(format!("{} ({variant}) is wrong before anything is rewritten: {what}", test.name)),
            }
        }
        let refusals = subject.refusals(&test.name);
        tally.kernels += 2;
        match subject.refused_in_registers(&test.name) {
            None => tally.in_registers += 1,
            Some(refused) => {
                let example = format!("{} {variant}: {}", test.name, refused.detail);
                tally.refused.entry(format!("in registers: {}", refused.reason)).or_insert((0, example)).0 += 1;
            }
        }
        tally.instrumented += 2 - refusals.len() as u64;
        for (mode, refused) in refusals {
            let example = format!("{} {variant} --counters {mode}: {}", test.name, refused.detail);
            tally.refused.entry(refused.reason.clone()).or_insert((0, example)).0 += 1;
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{}: {}", path.display(), wrong.join("\n"))) }
}

/// What came of a kernel.
#[derive(Default)]
struct Checked {
    compared: Compared,
    faults: u64,
    /// It has a hazard that the compiler leaves in.
    tolerates: bool,
    /// What is wrong with it as it is compiled.
    faulty: Option<String>,
}

fn check(subject: &Subject<'_>, test: &Test, buffers: &Buffers, variant: Variant) -> Result<Checked, Failure> {
    let mut launch = Launch {
        kernel: &test.name,
        grid: test.grid,
        group: test.group,
        dynamic: test.dynamic,
        buffers: vec![buffers.input.clone(), buffers.start.clone()],
        arguments: Box::new(|kernel, at| launch::kernarg(kernel, test, at[0], at[1])),
        fuel: FUEL,
        tolerated: EventHazards::empty(),
        undefined: made_up::miscompiled(&test.name, variant).is_some(),
    };
    let mut original = subject.original(&launch, 0);
    if matches!(original, Err(Stopped::Fault(_))) {
        launch.tolerated = made_up::left_in(&test.name, variant);
        original = subject.original(&launch, 0);
    }
    let original = match original {
        Ok(original) => original,
        Err(Stopped::Fault(fault)) => {
            let faults = subject.compare_faults(&launch, seeds())?;
            return Ok(Checked { faults, faulty: Some(fault.to_string()), ..Checked::default() });
        }
        Err(Stopped::Failure(failure)) => return Err(failure),
    };
    let faulty = Rule::parse(&test.compare)?.check(&original.buffers[1], &buffers.expected).err();
    Ok(Checked {
        compared: subject.compare(&launch, seeds())?,
        faults: 0,
        tolerates: !launch.tolerated.is_empty(),
        faulty,
    })
}

fn seeds() -> std::ops::Range<u64> {
    let named = std::env::var("WAVETAP_SEEDS").ok().and_then(|n| n.parse().ok());
    0..named.unwrap_or(if full() { 20 } else { 2 })
}
