//! Kernels whose bad accesses are dropped, against the emulator, which goes on after accesses out of bounds in the same
//! manner: a store does not happen, a load gives 0.
//!
//! Each kernel runs with buffers from whose ends parts were taken by a seed, so that what it accesses there is in no
//! allocation, and with a pointer to its input that leads nowhere: the original with an emulator that goes on after
//! that, and the one rewritten with the probe `bounds-drop`, in strict mode, which stops at any access out of bounds.
//! Outputs are the same to the byte, and at each site as many executions and lanes were bad as the emulator saw of the
//! original. With whole buffers the output is that of the CPU.
//!
//! Quick and full, and the variables that choose kernels and targets, are those of `checked_bounds`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use libtest_mimic::Trial;
use rewriter_tests::Failure;
use rewriter_tests::bounds::{self, Kernels, MOST_RECORDS, REWRITTEN_FUEL, Run};
use rewriter_tests::clocked::{self, FUEL};
use rewriter_tests::dispatch::{self, Launch, Stopped};
use rewriter_tests::kernels::compare::Rule;
use rewriter_tests::kernels::{Buffers, Test, launch};
use rewriter_tests::made_up::Built;
use rewriter_tests::random::Random;
use rewriter_tests::tally::{self, Tallies};
use wavetap::code_object::Kernel;
use wavetap::emulator::{AccessRecord, Fault, FaultKind, Options};
use wavetap::pipeline::probe;
use wavetap::profile::accesses::AllocatedRange;

/// Of a hundred kernels so many have an execution with dropped accesses, at least.
const GOAL: u64 = 30;
/// Runs with other buffers: of every so many one has a pointer to its input that leads to [`NOWHERE`].
const RUNS: u64 = 4;
const FULL_RUNS: u64 = 12;
/// Nothing is allocated there, nor 4 GiB before and after it.
const NOWHERE: u64 = 0x7000_0000_0000;
/// The emulator's pages, in bytes; and what is before a buffer in the first one.
const PAGE: usize = 4096;
const FILLED: u8 = 0xa5;
/// What is left of a buffer ends at a multiple of this: no access that is aligned is in part inside.
const GRANULE: usize = 64;

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    kernels: Kernels,
    /// Kernels of which accesses were dropped.
    dropping: u64,
    /// Accesses by lanes that were dropped, and of the kernels of buffers those of buffer instructions.
    lanes: u64,
    of_buffers: BTreeMap<String, u64>,
    /// Executions of instructions whose buffers are swizzled.
    unchecked: u64,
    /// Runs that were compared, and those that were not: why.
    runs: u64,
    skipped: BTreeMap<String, u64>,
}

static TALLIES: Tallies<Tally> = Tallies::new();

fn main() -> ExitCode {
    TALLIES.run(trials(), |tallies| {
        for (target, tally) in tallies {
            println!("{target}: {tally:?}");
            let none = tally.of_buffers.iter().find(|(_, lanes)| **lanes == 0);
            if let Some((name, _)) = none.filter(|_| tally.kernels.rewritten > 0) {
                return Err(format!("{target}: no access of a buffer was dropped in {name}"));
            }
        }
        let sum = |of: fn(&Tally) -> u64| tallies.values().map(of).sum::<u64>();
        tally::at_least(GOAL, sum(|tally| tally.dropping), sum(|tally| tally.kernels.kernels))
    })
}

fn trials() -> Result<Vec<Trial>, Failure> {
    Ok(clocked::compiled()?.into_iter().map(|compiled| compiled.trial(run)).collect())
}

/// All kernels of a source, compiled in one way.
fn run(built: &Built) -> Result<(), Failure> {
    let (mut kernels, mut tally) = (Kernels::default(), Tally::default());
    built.each(|test, _| {
        let is_noted = is_of_buffers(test).then(|| (test.name.clone(), 0));
        tally::add_counts(&mut tally.of_buffers, is_noted);
        Ok(())
    })?;
    let outcome = bounds::each(built, probe::BOUNDS_DROP, &mut kernels, |kernel, buffers| {
        let before = tally.lanes;
        let compared = Subject(kernel).compare(buffers, &mut tally);
        tally.dropping += u64::from(tally.lanes > before);
        compared
    });
    TALLIES.add(built.variant.target.name(), Tally { kernels, ..tally });
    outcome
}

impl tally::Tally for Tally {
    fn add(&mut self, other: Tally) {
        self.kernels.add(other.kernels);
        self.dropping += other.dropping;
        self.lanes += other.lanes;
        self.unchecked += other.unchecked;
        tally::add_counts(&mut self.of_buffers, other.of_buffers);
        self.runs += other.runs;
        tally::add_counts(&mut self.skipped, other.skipped);
    }
}

/// A kernel of an object.
struct Subject<'a>(&'a bounds::Subject<'a>);

/// What a kernel is given.
struct Given {
    /// Each ends with a page, as the emulator goes on to there if it is not strict.
    buffers: Buffers,
    /// Bytes of the input and of the output before what the kernel has pointers to.
    before: [u64; 2],
    /// The pointer to the input leads to [`NOWHERE`].
    is_wild: bool,
}

impl Given {
    fn new(mut buffers: Buffers, is_wild: bool) -> Given {
        let before = [&mut buffers.input, &mut buffers.start].map(|bytes| {
            let before = bytes.len().next_multiple_of(PAGE) - bytes.len();
            bytes.splice(..0, std::iter::repeat_n(FILLED, before));
            before as u64
        });
        Given { buffers, before, is_wild }
    }

    fn launch<'a>(&self, test: &'a Test, fuel: u64) -> Launch<'a> {
        let launch = launch::of_test(test, &self.buffers, fuel);
        let (before, is_wild) = (self.before, self.is_wild);
        let arguments = move |kernel: &Kernel, at: &[u64]| {
            let input = if is_wild { NOWHERE } else { at[0] + before[0] };
            launch::kernarg(kernel, test, input, at[1] + before[1])
        };
        Launch { arguments: Box::new(arguments), ..launch }
    }
}

/// Counts of bad executions and lanes, by site.
type Counts = Vec<Vec<u64>>;

impl Subject<'_> {
    fn compare(&self, buffers: &Buffers, tally: &mut Tally) -> Result<(), Failure> {
        let &bounds::Subject { object, target, test, .. } = self.0;
        let rule = Rule::parse(&test.compare)?;
        let seeds = if rewriter_tests::full() { 10 } else { 3 };
        let whole = Given::new(buffers.clone(), false);
        for seed in 0..seeds {
            let strict = Options { strict: true, seed, threads: 1, ..Options::default() };
            let run = match self.dropping(&whole, &strict) {
                Ok(run) => run,
                Err(_) if launch::run(object, target, test, buffers, &strict).is_err() => continue,
                Err(stopped) => return Err(format!("whole, seed {seed}: {stopped}")),
            };
            let output = &run.output[whole.before[1] as usize..];
            rule.check(output, &buffers.expected).map_err(|e| format!("whole, seed {seed}: {e}"))?;
            if run.counts.iter().flat_map(|counts| &counts[..2]).any(|count| *count > 0) {
                return Err(format!("whole, seed {seed}: counts {:?}", run.counts));
            }
            let unchecked: u64 = run.counts.iter().map(|counts| counts[2]).sum();
            if bounds::is_swizzled(test) != (unchecked > 0) {
                return Err(format!("whole, seed {seed}: {unchecked} executions are not checked"));
            }
            tally.unchecked += unchecked;
        }
        for seed in 0..if rewriter_tests::full() { FULL_RUNS } else { RUNS } {
            let given = Given::new(cut(buffers, seed), seed % RUNS == RUNS - 1);
            let outcome = self.compare_cut(&given, seed, tally).map_err(|e| format!("cut {seed}: {e}"))?;
            tally::add_counts(&mut tally.skipped, outcome.map(|why| (why.to_owned(), 1)));
        }
        Ok(())
    }

    /// Compares what the rewritten kernel does with such buffers; or why it is not compared.
    fn compare_cut(&self, given: &Given, seed: u64, tally: &mut Tally) -> Result<Option<&'static str>, Failure> {
        let goes_on = |strict| {
            let mut options = Options { strict, seed, threads: 1, accesses: MOST_RECORDS, ..Options::default() };
            options.passes.accesses = true;
            options
        };
        let Ok((output, accesses, is_cut_off)) = self.original(given, &goes_on(false)) else {
            return Ok(Some("the original does not end"));
        };
        let strict = Options { strict: true, seed, threads: 1, ..Options::default() };
        let Run { output: dropped, counts, table, .. } = match self.dropping(given, &strict) {
            Ok(run) => run,
            Err(Stopped::Fault(fault)) if is_memory_fault(&fault, "s_") => {
                return Ok(Some("scalar load out of bounds"));
            }
            Err(Stopped::Fault(fault)) if bounds::is_swizzled(self.0.test) && is_memory_fault(&fault, "buffer_") => {
                return Ok(Some("a swizzled buffer out of bounds"));
            }
            Err(_) if self.original(given, &goes_on(true)).is_err() => return Ok(Some("the original is undefined")),
            Err(stopped) => return Err(stopped.to_string()),
        };
        let Some(expected) = self.expected(&accesses, &table) else {
            return Ok(Some("an access in part inside"));
        };
        if !is_cut_off && counts != expected {
            // How often lanes that compete try again depends on the order of waves: here it is the original's.
            let ordered = self.dropping(given, &Options { strict: false, ..strict }).map_err(|e| e.to_string())?;
            if ordered.counts != expected {
                return Err(format!("counts {:?}, seen {expected:?}", ordered.counts));
            }
            tally::add_counts(&mut tally.skipped, [("counts in strict mode: another order".to_owned(), 1)]);
        }
        if dropped != output {
            let at = dropped.iter().zip(&output).position(|(a, b)| a != b);
            return Err(format!("byte {at:?} of {} is not what dropping gives ({expected:?})", output.len()));
        }
        tally.runs += 1;
        for (site, counts) in counts.iter().enumerate() {
            tally.lanes += counts[1];
            if is_of_buffers(self.0.test) && self.0.is_of_buffer(site) {
                tally::add_counts(&mut tally.of_buffers, [(self.0.test.name.clone(), counts[1])]);
            }
        }
        Ok(None)
    }

    /// Runs the original: its output and its accesses, and whether there were more.
    fn original(&self, given: &Given, options: &Options) -> Result<(Vec<u8>, Vec<AccessRecord>, bool), Stopped> {
        let launch = given.launch(self.0.test, FUEL);
        let options = Options { fuel: FUEL, ..options.clone() };
        let mut ran = dispatch::run(self.0.object, self.0.target, &launch, &options, None)?;
        let recorded = std::mem::take(&mut ran.stats.accesses);
        let mut accesses = recorded.records;
        accesses.retain(|access| access.place.object == ran.object);
        Ok((ran.buffers.pop().ok_or("no output".to_owned())?, accesses, recorded.dropped > 0))
    }

    /// Runs the rewritten kernel.
    fn dropping(&self, given: &Given, options: &Options) -> Result<Run, Stopped> {
        self.0.run(&given.launch(self.0.test, REWRITTEN_FUEL), options, &|ranges| ranges)
    }

    /// What has to be counted of these accesses; none if bytes of one are inside and outside.
    fn expected(&self, accesses: &[AccessRecord], table: &[AllocatedRange]) -> Option<Counts> {
        let mut expected = vec![vec![0; 3]; self.0.kernel.sites.len()];
        for access in accesses {
            let Some(site) = self.0.site(access) else { continue };
            if self.0.is_unchecked(site) {
                expected[site][2] += 1;
                continue;
            }
            let mut bad = 0;
            for (_, address, bytes) in bounds::lanes(access) {
                let each = (0..u64::from(bytes)).map(|byte| address.wrapping_add(byte));
                let inside = each.filter(|byte| is_allocated(table, *byte)).count();
                if inside > 0 && inside < bytes as usize {
                    return None;
                }
                bad += u64::from(inside == 0);
            }
            expected[site][0] += u64::from(bad > 0);
            expected[site][1] += bad;
        }
        Some(expected)
    }
}

/// Whether a kernel is one of those that access memory through descriptors that are checked.
fn is_of_buffers(test: &Test) -> bool {
    test.name.contains("buffer") && !bounds::is_swizzled(test)
}

/// Whether a byte is in a range.
fn is_allocated(table: &[AllocatedRange], byte: u64) -> bool {
    table.iter().any(|range| byte >= range.address && byte - range.address < range.size)
}

/// Whether a fault is that of an access to memory by an instruction with such a name.
fn is_memory_fault(fault: &Fault, name: &str) -> bool {
    matches!(fault.kind, FaultKind::Memory { .. }) && fault.instruction.starts_with(name)
}

/// Buffers of which parts at the end were taken away.
fn cut(buffers: &Buffers, seed: u64) -> Buffers {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x0dd5);
    let mut shorter = |bytes: &[u8]| {
        let granules = bytes.len() / GRANULE;
        // Now and then nothing is taken away of one.
        let kept = if granules == 0 || random.chance(25) { bytes.len() } else { GRANULE * random.below(granules) };
        bytes[..kept].to_vec()
    };
    Buffers { input: shorter(&buffers.input), start: shorter(&buffers.start), expected: Vec::new() }
}
