//! What the values probe measures, compared with what the emulator saw of each execution: EXEC and, in every lane, the
//! register that inserted code compares. From these the counters of every wave are worked out here, by the probe's
//! documentation. Which of the inserted comparisons is of which load follows from where they are in the code.
//!
//! In strict mode outputs are those of the original. The kernels are those of `rewriter-tests/kernels` and 200 that are
//! made up from seeds.
//!
//! Quick: a target of each kind, one level of optimisation, some of the sources, two seeds. Full
//! (`WAVETAP_FULL_TESTS=1`): every target, three levels, ten seeds. `WAVETAP_KERNEL_TARGETS=gfx1030,gfx1100` takes
//! these targets alone, `WAVETAP_KERNEL=made_up_17` kernels with this in their name.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::Trial;
use rewriter_tests::Failure;
use rewriter_tests::clocked::{self, Rewritten, Rewrote, Subject};
use rewriter_tests::kernels::build::Variant;
use rewriter_tests::kernels::{Buffers, Test};
use rewriter_tests::made_up::Built;
use rewriter_tests::tally::{self, Tallies};
use wavetap::emulator::{Options, Visit};
use wavetap::isa::Target;
use wavetap::pipeline::{Counters, probe};
use wavetap::profile::map::KernelMap;
use wavetap::profile::probes::values::{LOAD, TRACKED_LOAD};

/// Of a hundred kernels so many are measured, at least.
const GOAL: u64 = 95;

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    /// Kernels, those that are measured, and why others are not.
    kernels: u64,
    measured: u64,
    refused: BTreeMap<String, u64>,
    /// Executions that the emulator saw, of these with the same value in all lanes, and with that of the one before.
    executions: u64,
    uniform: u64,
    repeated: u64,
    strict: u64,
    /// Where inserted code gets its vector registers, and where counters are, of kernels.
    sources: BTreeMap<String, u64>,
}

static TALLIES: Tallies<Tally> = Tallies::new();

fn main() -> ExitCode {
    TALLIES.run(trials(), |tallies| {
        for (target, tally) in tallies {
            println!("{target}: {tally:?}");
            if tally.executions == 0 {
                return Err(format!("{target}: nothing was compared"));
            }
        }
        let sum = |of: fn(&Tally) -> u64| tallies.values().map(of).sum::<u64>();
        if sum(|tally| tally.uniform) == 0 || sum(|tally| tally.repeated) == 0 {
            return Err("no load had the same value twice".to_owned());
        }
        tally::at_least(GOAL, sum(|tally| tally.measured), sum(|tally| tally.kernels))
    })
}

fn trials() -> Result<Vec<Trial>, Failure> {
    Ok(clocked::compiled()?.into_iter().map(|compiled| compiled.trial(run)).collect())
}

/// All kernels of a source, compiled in one way.
fn run(built: &Built) -> Result<(), Failure> {
    let (object, variant) = (&built.object, built.variant);
    let rewritten = [
        Rewritten::with(object, probe::VALUES, Counters::Global, true)?,
        Rewritten::with(object, probe::VALUES, Counters::Lds, true)?,
    ];
    let mut tally = Tally::default();
    let mut wrong = rewritten[0].refusals(&mut tally.refused);
    let outcome = built.each(|test, buffers| {
        tally.kernels += 1;
        let is_there = |rewritten: &&Rewritten| rewritten.map.kernels.iter().any(|kernel| kernel.name == test.name);
        let there: Vec<&Rewritten> = rewritten.iter().filter(is_there).collect();
        if there.is_empty() {
            return Ok(());
        }
        tally.measured += 1;
        compare(object, &there, test, variant, buffers, &mut tally)
    });
    wrong.extend(outcome.err());
    TALLIES.add(variant.target.name(), tally);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

impl tally::Tally for Tally {
    fn add(&mut self, other: Tally) {
        self.kernels += other.kernels;
        self.measured += other.measured;
        self.executions += other.executions;
        self.uniform += other.uniform;
        self.repeated += other.repeated;
        self.strict += other.strict;
        tally::add_counts(&mut self.refused, other.refused);
        tally::add_counts(&mut self.sources, other.sources);
    }
}

/// One kernel of an object, with its counters in memory and in LDS.
fn compare(
    object: &[u8],
    rewritten: &[&Rewritten],
    test: &Test,
    variant: Variant,
    buffers: &Buffers,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let kernel = clocked::Kernel { object, test, variant, buffers };
    let strict = kernel.compare(Vec::new(), rewritten, |subject, options| compare_run(subject, options, tally))?;
    tally.strict += strict;
    Ok(())
}

/// The sites of a kernel by the address of the comparison that is inserted for them: those of one place of the code are
/// in the order of their sites.
fn comparisons(rewritten: &Rewritten, kernel: &KernelMap, target: Target) -> Result<BTreeMap<u64, usize>, Failure> {
    let code = rewritten.code(kernel, target)?;
    let mut found = BTreeMap::new();
    // Loads of which no comparison has come yet.
    let mut open: Vec<usize> = Vec::new();
    for (at, Rewrote { original, text, .. }) in code {
        if let Some(original) = original {
            let here = kernel.sites.iter().enumerate().filter(|(_, site)| site.address == original);
            open.extend(here.map(|(number, _)| number));
        } else if text.starts_with("v_cmp_ne_u32_e64 ") {
            if open.is_empty() {
                return Err(format!("{at:#x}: a comparison for no load"));
            }
            found.insert(at, open.remove(0));
        }
    }
    Ok(found)
}

/// Runs the kernel and compares; gives the output.
fn compare_run(subject: &Subject<'_>, options: &Options, tally: &mut Tally) -> Result<Vec<u8>, Failure> {
    let (_, kernel) = subject.kernel()?;
    let source = format!("{:?}, {:?}", kernel.vector_registers, kernel.mode);
    tally::add_counts(&mut tally.sources, [(source, 1)]);
    let comparisons = comparisons(subject.rewritten, kernel, subject.variant.target)?;
    let watched: BTreeSet<u64> = comparisons.keys().copied().collect();
    let outcome = subject.run(&Options { watched: Arc::new(watched), ..options.clone() })?;
    let mut by_wave: BTreeMap<clocked::Wave, Vec<&Visit>> = BTreeMap::new();
    for visit in &outcome.visits {
        by_wave.entry((visit.workgroup, visit.wave)).or_default().push(visit);
    }
    let mut all = clocked::nothing(kernel);
    for (wave, visits) in &by_wave {
        let of_wave = expected(kernel, visits, &comparisons)?;
        let found = outcome.of_wave(kernel, *wave)?;
        if of_wave != found {
            return Err(format!("{wave:?}: {found:?} measured, {of_wave:?} seen"));
        }
        clocked::add(kernel, &mut all, &of_wave)?;
    }
    for (site, counters) in kernel.sites.iter().zip(&all) {
        tally.executions += counters[0];
        tally.uniform += counters[1];
        tally.repeated += if site.kind == *TRACKED_LOAD { counters[2] } else { 0 };
    }
    let totals = outcome.profile.kernels.first().ok_or("nothing was counted")?;
    let found: Vec<Vec<u64>> = totals.sites.iter().map(|site| site.counts.values().to_vec()).collect();
    if found != all {
        return Err(format!("{found:?} measured in all, {all:?} seen"));
    }
    Ok(outcome.output)
}

/// The counters of one wave, by site.
fn expected(
    kernel: &KernelMap,
    visits: &[&Visit],
    comparisons: &BTreeMap<u64, usize>,
) -> Result<Vec<Vec<u64>>, Failure> {
    let mut counters = clocked::nothing(kernel);
    // What the execution before has loaded, if it was the same in all lanes.
    let mut before: Vec<Option<u32>> = vec![None; counters.len()];
    for visit in visits {
        let site = *comparisons.get(&visit.place.address).ok_or("a visit of something else")?;
        let lanes = (0..64).filter(|lane| visit.exec >> lane & 1 == 1);
        let mut values = lanes.map(|lane| visit.vector[lane]);
        let first = values.next().ok_or("a comparison with EXEC = 0")?;
        let now = values.all(|value| value == first).then_some(first);
        counters[site][0] += 1;
        counters[site][1] += u64::from(now.is_some());
        match &kernel.sites[site].kind {
            kind if **kind == **TRACKED_LOAD => {
                counters[site][2] += u64::from(now.is_some() && now == before[site]);
            }
            kind if **kind == **LOAD => {}
            kind => return Err(format!("a site of the kind {kind}")),
        }
        before[site] = now;
    }
    Ok(counters)
}
