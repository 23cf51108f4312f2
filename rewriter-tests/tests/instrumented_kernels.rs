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
use std::process::ExitCode;

use libtest_mimic::Trial;
use rewriter_tests::instrumented::{Compared, Launch, Stopped, Subject};
use rewriter_tests::kernels::build::{self, Sources, Variant};
use rewriter_tests::kernels::compare::Rule;
use rewriter_tests::kernels::{Buffers, Test, launch};
use rewriter_tests::made_up::{self, Built, Compiled};
use rewriter_tests::tally::{self, Tallies};
use rewriter_tests::{Failure, chosen, full, some_processors};
use wavetap::isa::Target;

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

/// No kernel may be refused for this.
const UNVERIFIED: &str = "unverified";

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

static TALLIES: Tallies<Tally> = Tallies::new();

fn main() -> ExitCode {
    TALLIES.run(trials(), |tallies| tallies.values().try_for_each(Tally::judge))
}

impl tally::Tally for Tally {
    fn add(&mut self, other: Tally) {
        self.instrumented += other.instrumented;
        self.kernels += other.kernels;
        self.in_registers += other.in_registers;
        self.compared.add(other.compared);
        self.miscompiled += other.miscompiled;
        self.tolerant += other.tolerant;
        self.faults += other.faults;
        for (reason, (times, example)) in other.refused {
            self.refused.entry(reason).or_insert((0, example)).0 += times;
        }
    }
}

impl Tally {
    /// Prints what was compared, and says whether that is enough.
    fn judge(&self) -> Result<(), Failure> {
        let Tally { instrumented, kernels, in_registers, compared, miscompiled, tolerant, faults, refused } = self;
        println!("{kernels} kernels in a counter mode, {instrumented} instrumented; {compared:?}");
        println!("{in_registers} kernels count in registers");
        if *miscompiled > 0 {
            println!("{miscompiled} kernels are wrong as the compiler makes them ({faults} faults were compared)");
        }
        if *tolerant > 0 {
            println!("{tolerant} kernels have hazards that the compiler leaves in: nothing stops for those");
        }
        for (reason, (times, example)) in refused {
            println!("{times} refused, {reason}: {example}");
            if reason.ends_with(UNVERIFIED) {
                return Err(format!("the checker rejects {times} rewritten kernels: {example}"));
            }
        }
        tally::at_least(GOAL, *instrumented, *kernels)?;
        // Two modes other than registers.
        tally::at_least(GOAL_IN_REGISTERS, *in_registers, instrumented / 2).map_err(|e| format!("in registers: {e}"))
    }

    /// Counts a kernel by the modes in which it is instrumented, and why it is not in others.
    fn count(&mut self, subject: &Subject<'_>, test: &Test, variant: Variant) {
        let mut refuse = |reason: String, example: String| self.refused.entry(reason).or_insert((0, example)).0 += 1;
        let refusals = subject.refusals(&test.name);
        self.kernels += 2;
        self.instrumented += 2 - refusals.len() as u64;
        for (mode, refused) in refusals {
            let example = format!("{} {variant} --counters {mode}: {}", test.name, refused.detail);
            refuse(refused.reason.clone(), example);
        }
        match subject.refused_in_registers(&test.name) {
            None => self.in_registers += 1,
            Some(refused) => {
                let example = format!("{} {variant}: {}", test.name, refused.detail);
                refuse(format!("in registers: {}", refused.reason), example);
            }
        }
    }
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
                let variant = made_up::variant(target, LEVELS[level]);
                let (sources, file) = (sources.clone(), sources.files()[file].clone());
                let name = format!(
                    "{} {} wave{} {}",
                    file.file_stem().unwrap_or_default().to_string_lossy(),
                    target.name(),
                    target.wave_size(),
                    variant.level
                );
                trials.push(Compiled { name, sources, file, variant }.trial(run));
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

/// All kernels of a source, compiled in one way.
fn run(built: &Built) -> Result<(), Failure> {
    let variant = built.variant;
    let subject = Subject::of(&built.object, variant.target)?;
    let mut tally = Tally::default();
    let outcome = built.each_even_miscompiled(|test, buffers| {
        tally.count(&subject, test, variant);
        let checked = check(&subject, test, buffers, variant)?;
        tally.compared.add(checked.compared);
        tally.faults += checked.faults;
        tally.tolerant += u64::from(checked.tolerates);
        match (checked.faulty, made_up::miscompiled(&test.name, variant)) {
            (Some(what), None) => return Err(format!("it is wrong before anything is rewritten: {what}")),
            (Some(_), Some(_)) => tally.miscompiled += 1,
            (None, _) => {}
        }
        Ok(())
    });
    TALLIES.add("all", tally);
    outcome
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
    let undefined = made_up::miscompiled(&test.name, variant).is_some();
    let mut launch = Launch { undefined, ..launch::of_test(test, buffers, FUEL) };
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
