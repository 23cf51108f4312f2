//! What the memory probe records, compared with the addresses that the emulator sees while the same waves run: every
//! execution of every measured access, lane by lane and in order, also where there is room for a few alone and the
//! others are counted, or some workgroups alone are sampled. In strict mode outputs are those of the original, and what
//! is recorded is what the emulator saw in the original, too; unless the original itself does something else with
//! another seed. The kernels are those of `rewriter-tests/kernels`, 200 that are made up from seeds, and 100 of
//! libraries of third parties (`rewriter-tests/fetch-corpora.sh` fetches them), with arguments made up from their
//! metadata.
//!
//! Quick: a target of each kind, one level of optimisation, some of the sources, two seeds, three kernels of libraries.
//! Full (`WAVETAP_FULL_TESTS=1`): every target, three levels, ten seeds; five kernels of libraries of each target.
//! `WAVETAP_KERNEL_TARGETS=gfx1030,gfx1100` takes these targets alone, `WAVETAP_KERNEL=made_up_17` kernels with this in
//! their name. The kernels of libraries alone:
//!
//!     WAVETAP_FULL_TESTS=1 cargo test --workspace --test recorded_accesses corpora

mod corpora;
mod subject;

use std::collections::BTreeMap;
use std::process::ExitCode;

use libtest_mimic::Trial;
use rewriter_tests::kernels::compare::Rule;
use rewriter_tests::kernels::launch;
use rewriter_tests::made_up::{self, Built};
use rewriter_tests::tally::{self, Tallies};
use rewriter_tests::{Failure, full};
use wavetap::cfg::Program;
use wavetap::code_object::CodeObject;
use wavetap::kernel::Image;

use subject::{Output, Rewritten, Subject};

/// What the original of a test kernel may execute, in wave-instructions.
const FUEL: u64 = 3_000_000;
/// The quick run takes every so manyth source.
const QUICK_SOURCES: usize = 3;
/// Of a hundred kernels so many have their accesses measured, at least.
const GOAL: u64 = 85;

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    /// Kernels, those that are measured, and why others are not.
    kernels: u64,
    measured: u64,
    refused: BTreeMap<String, u64>,
    /// Of libraries: why kernels were left out.
    left_out: BTreeMap<String, u64>,
    /// Executions that were compared with what the emulator saw of the same waves, and those of them whose addresses do
    /// not follow from what was recorded.
    executions: u64,
    unresolved: u64,
    /// Strict runs, those in which waves went elsewhere than in the original, which does so itself, and those that
    /// ended with a fault, as the original's did.
    strict: u64,
    unordered: u64,
    faulted: u64,
    /// Dispatches of which the emulator or the probe did not keep all.
    cut_off: u64,
}

static TALLIES: Tallies<Tally> = Tallies::new();

fn main() -> ExitCode {
    let mut of_libraries = 0;
    let trials = made_up_trials().map(|mut trials| {
        let others = corpora::trials();
        of_libraries = others.len();
        trials.extend(others);
        trials
    });
    TALLIES.run(trials, |tallies| {
        for (name, tally) in tallies {
            println!("{name}: {tally:?}");
            if tally.kernels > 0 && tally.executions == 0 {
                return Err(format!("{name}: nothing was compared"));
            }
        }
        let (libraries, tests): (Vec<_>, Vec<_>) = tallies.iter().partition(|(name, _)| corpora::is_name(name));
        let sum = |of: &[(&String, &Tally)]| of.iter().fold((0, 0), |(a, b), (_, t)| (a + t.measured, b + t.kernels));
        let (measured, kernels) = sum(&tests);
        tally::at_least(GOAL, measured, kernels)?;
        let (measured, kernels) = sum(&libraries);
        if kernels > 0 {
            println!("{measured} of {kernels} kernels of libraries");
        }
        tally::at_least(GOAL, measured, kernels)?;
        if libraries.len() == of_libraries { corpora::are_enough(measured) } else { Ok(()) }
    })
}

fn made_up_trials() -> Result<Vec<Trial>, Failure> {
    let variants = made_up::variants()?;
    // Others for each target, so that all of them together have many.
    let is_ours = |(n, compiled): &(usize, made_up::Compiled)| {
        let always = compiled.name.starts_with("memory") || compiled.name.starts_with("made-up");
        full() || always || n % QUICK_SOURCES == 0
    };
    let compiled = made_up::compiled(variants)?.into_iter().enumerate().filter(is_ours);
    Ok(compiled.map(|(_, compiled)| compiled.trial(run)).collect())
}

/// All kernels of a source, compiled in one way.
fn run(built: &Built) -> Result<(), Failure> {
    let rewritten = Rewritten::of(&built.object, &[])?;
    let code = CodeObject::parse(&built.object).map_err(|e| e.to_string())?;
    let image = Image::of(&code).map_err(|e| e.to_string())?;
    let program = Program::of(code.target().ok_or("no target")?, &image);
    let reasons = rewritten.map.refused.iter().map(|refused| (refused.reason.clone(), 1));
    let mut tally = Tally::default();
    tally::add_counts(&mut tally.refused, reasons);
    let outcome = built.each(|test, buffers| {
        tally.kernels += 1;
        let Some(index) = rewritten.kernel(&test.name) else { return Ok(()) };
        tally.measured += 1;
        let subject = Subject {
            object: &built.object,
            rewritten: &rewritten,
            index,
            bodies: program.bodies(),
            target: built.variant.target,
            launch: launch::of_test(test, buffers, FUEL),
            output: Output::Expected(Rule::parse(&test.compare)?, &buffers.expected),
        };
        subject.compare(if full() { 0..10 } else { 0..2 }, &mut tally)
    });
    TALLIES.add(built.variant.target.name(), tally);
    outcome
}

impl tally::Tally for Tally {
    fn add(&mut self, other: Tally) {
        self.kernels += other.kernels;
        self.measured += other.measured;
        self.executions += other.executions;
        self.unresolved += other.unresolved;
        self.strict += other.strict;
        self.unordered += other.unordered;
        self.faulted += other.faulted;
        self.cut_off += other.cut_off;
        tally::add_counts(&mut self.refused, other.refused);
        tally::add_counts(&mut self.left_out, other.left_out);
    }
}
