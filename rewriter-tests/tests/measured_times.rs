//! What the time probe measures, compared with the emulator's own record of when waves executed the instructions that
//! read the clock: cycle for cycle, for each block and for each wave. What those readings mean is worked out here from
//! where they are in the code alone: between which original instructions.
//!
//! With the timing model the clock is the modelled cycle. In strict mode outputs are those of the original. Where
//! memory is made so slow that a clock of 20 bits wraps around, what is wrong is said to be. The kernels are those of
//! `rewriter-tests/kernels` and 200 that are made up from seeds.
//!
//! Quick: a target of each kind, one level of optimisation, some of the sources, two seeds. Full
//! (`WAVETAP_FULL_TESTS=1`): every target, three levels, ten seeds. `WAVETAP_KERNEL_TARGETS=gfx1030,gfx1100` takes
//! these targets alone, `WAVETAP_KERNEL=made_up_17` kernels with this in their name.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::Trial;
use rewriter_tests::Failure;
use rewriter_tests::clocked::{self, Rewritten, Rewrote, Subject, WRAP};
use rewriter_tests::kernels::build::Variant;
use rewriter_tests::kernels::{Buffers, Test};
use rewriter_tests::made_up::Built;
use rewriter_tests::tally::{self, Tallies};
use wavetap::emulator::{LatencyOverride, Options, Visit};
use wavetap::isa::Target;
use wavetap::pipeline::probe;
use wavetap::profile::map::KernelMap;
use wavetap::profile::probes::time::{BLOCK, EMPTY, WAVE};

/// Of a hundred kernels so many are measured, at least. Many are made to have no register left.
const GOAL: u64 = 85;
/// Shader cycles of a tick of the emulator's constant clock.
const TICK: u64 = 20;
/// Memory so slow that a block with two dependent loads takes longer than [`WRAP`].
const SLOW: [&str; 3] = ["l2=1000000", "memory=1000000", "vmem=1000000"];

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    /// Kernels, those that are measured, and why others are not.
    kernels: u64,
    measured: u64,
    refused: BTreeMap<String, u64>,
    /// Stamps of the emulator's record.
    stamps: u64,
    /// Executions of blocks that took longer than a clock of 20 bits can say.
    long: u64,
    strict: u64,
    /// Where inserted code gets its vector registers, of kernels.
    sources: BTreeMap<String, u64>,
}

static TALLIES: Tallies<Tally> = Tallies::new();

fn main() -> ExitCode {
    TALLIES.run(trials(), |tallies| {
        for (target, tally) in tallies {
            println!("{target}: {tally:?}");
            if tally.stamps == 0 {
                return Err(format!("{target}: nothing was compared"));
            }
        }
        let sum = |of: fn(&Tally) -> u64| tallies.values().map(of).sum();
        tally::at_least(GOAL, sum(|tally| tally.measured), sum(|tally| tally.kernels))
    })
}

fn trials() -> Result<Vec<Trial>, Failure> {
    Ok(clocked::compiled()?.into_iter().map(|compiled| compiled.trial(run)).collect())
}

/// All kernels of a source, compiled in one way.
fn run(built: &Built) -> Result<(), Failure> {
    let (object, variant) = (&built.object, built.variant);
    let rewritten = [Rewritten::of(object, probe::TIME, false)?, Rewritten::of(object, probe::TIME, true)?];
    let mut tally = Tally::default();
    let mut wrong = rewritten[0].refusals(&mut tally.refused);
    let outcome = built.each(|test, buffers| {
        tally.kernels += 1;
        let Some(kernel) = rewritten[0].map.kernels.iter().find(|kernel| kernel.name == test.name) else {
            return Ok(());
        };
        tally.measured += 1;
        tally::add_counts(&mut tally.sources, [(format!("{:?}", kernel.vector_registers), 1)]);
        compare(object, &rewritten, test, variant, buffers, &mut tally)
    });
    wrong.extend(outcome.err());
    TALLIES.add(variant.target.name(), tally);
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

impl tally::Tally for Tally {
    fn add(&mut self, other: Tally) {
        self.kernels += other.kernels;
        self.measured += other.measured;
        self.stamps += other.stamps;
        self.long += other.long;
        self.strict += other.strict;
        tally::add_counts(&mut self.refused, other.refused);
        tally::add_counts(&mut self.sources, other.sources);
    }
}

/// One kernel of an object, rewritten with few records and with one for each wave.
fn compare(
    object: &[u8],
    [shared, single]: &[Rewritten; 2],
    test: &Test,
    variant: Variant,
    buffers: &Buffers,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let slow = SLOW.iter().map(|text| text.parse::<LatencyOverride>()).collect::<Result<Vec<_>, _>>()?;
    let modelled =
        vec![("modelled", shared, Vec::new()), ("each wave", single, Vec::new()), ("slow memory", shared, slow)];
    let kernel = clocked::Kernel { object, test, variant, buffers };
    tally.strict +=
        kernel.compare(modelled, &[shared, single], |subject, options| compare_run(subject, options, tally))?;
    Ok(())
}

/// What a reading of a clock means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// The wave enters the block of this site.
    Entry(usize),
    /// Its instructions begin.
    Begin,
    /// The wave ends.
    End,
    /// The constant clock.
    Ticks,
}

/// What the readings of clocks in a kernel's new code mean, by their addresses.
fn readings(rewritten: &Rewritten, kernel: &KernelMap, target: Target) -> Result<BTreeMap<u64, Reading>, Failure> {
    let code = rewritten.code(kernel, target)?;
    let originals: BTreeMap<u64, u64> = kernel.addresses.iter().map(|pair| (pair.rewritten, pair.original)).collect();
    // By the original instruction that follows.
    let mut stamps: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut readings = BTreeMap::new();
    for (at, Rewrote { original, text, .. }) in code {
        if original.is_some() {
            // Original code may read clocks, too.
        } else if clocked::reads_clock(&text) {
            let next = originals.range(at..).next().ok_or("a stamp after all")?;
            stamps.entry(*next.0).or_default().push(at);
        } else if text.starts_with("s_memrealtime ") || text.starts_with("s_sendmsg_rtn_b64 ") {
            readings.insert(at, Reading::Ticks);
        }
    }
    for (next, stamps) in stamps {
        let original = originals[&next];
        let mut stamps = stamps.into_iter();
        // What is at no place comes before a block that begins there, and that before an end of the wave.
        for kind in [&EMPTY, &BLOCK] {
            let is_here = |site: &wavetap::profile::map::Site| site.address == original && site.kind == **kind;
            let Some(site) = kernel.sites.iter().position(is_here) else { continue };
            let (Some(entry), Some(begin)) = (stamps.next(), stamps.next()) else {
                return Err(format!("{original:#x}: too few stamps"));
            };
            readings.insert(entry, Reading::Entry(site));
            readings.insert(begin, Reading::Begin);
        }
        if let Some(end) = stamps.next() {
            readings.insert(end, Reading::End);
        }
        if stamps.next().is_some() {
            return Err(format!("{original:#x}: too many stamps"));
        }
    }
    Ok(readings)
}

/// The counters of all sites, by what the emulator saw.
type Expected = Vec<Vec<u64>>;

/// Runs the kernel and compares; gives the output.
fn compare_run(subject: &Subject<'_>, options: &Options, tally: &mut Tally) -> Result<Vec<u8>, Failure> {
    let (_, kernel) = subject.kernel()?;
    let target = subject.variant.target;
    let readings = readings(subject.rewritten, kernel, target)?;
    let watched: BTreeSet<u64> = readings.keys().copied().collect();
    let options = Options { watched: Arc::new(watched), ..options.clone() };
    let outcome = subject.run(&options)?;
    tally.stamps += outcome.visits.len() as u64;
    let by_wave = outcome.by_wave()?;
    let mut all = expected(kernel, &[], &readings)?;
    let mut long = vec![0; kernel.sites.len()];
    for (wave, visits) in &by_wave {
        let of_wave = expected(kernel, visits, &readings).map_err(|e| format!("{wave:?}: {e}"))?;
        for (long, these) in long.iter_mut().zip(long_executions(visits, &readings, kernel.sites.len())) {
            *long += these;
        }
        if subject.rewritten.per_wave {
            let found = outcome.of_wave(kernel, *wave)?;
            same(target, kernel, &of_wave, &found, None).map_err(|e| format!("{wave:?}: {e}"))?;
        }
        clocked::add(kernel, &mut all, &of_wave)?;
    }
    tally.long += long.iter().sum::<u64>();
    let totals = outcome.profile.kernels.first().ok_or("nothing was counted")?;
    let found: Expected = totals.sites.iter().map(|site| site.counts.values().to_vec()).collect();
    same(target, kernel, &all, &found, Some(&long))?;
    check_sums(kernel, &found)?;
    // How often a block was entered the emulator counts anyway.
    for (site, values) in kernel.sites.iter().zip(&found).filter(|(site, _)| site.kind == *BLOCK) {
        let places = kernel.addresses.iter().filter(|pair| pair.original == site.address);
        let executed = |pair: &wavetap::profile::map::AddressPair| {
            let of_pair = outcome.trace.executed.iter().find(|(place, _)| place.address == pair.rewritten);
            of_pair.map_or(0, |(_, count)| *count)
        };
        let executed: u64 = places.map(executed).sum();
        if executed != values[0] {
            return Err(format!("{:#x} was executed {executed} times, measured {} times", site.address, values[0]));
        }
    }
    Ok(outcome.output)
}

/// Whether what was measured is what the emulator saw; where the clock wraps around and is said to have, of some
/// executions, the times alone may differ, by whole wraps.
fn same(
    target: Target,
    kernel: &KernelMap,
    expected: &Expected,
    found: &Expected,
    long: Option<&[u64]>,
) -> Result<(), Failure> {
    let wraps = target.shader_clock().is_some_and(|clock| clock.bits() < 64);
    let has_wrapped = kernel.sites.iter().zip(found).any(|(site, values)| site.kind != *WAVE && values[3] > 0);
    if has_wrapped && !wraps {
        return Err("a clock of 64 bits is said to have wrapped around".to_owned());
    }
    for (number, (site, (expected, found))) in kernel.sites.iter().zip(expected.iter().zip(found)).enumerate() {
        let differs = |field: usize| {
            let (a, b) = (expected[field], found[field]);
            let may = has_wrapped && site.kind.fields[field].unit == wavetap::profile::schema::Unit::Cycles;
            let by_wraps = a >= b && (a - b) % WRAP == 0;
            // Of a maximum or minimum nothing is known then.
            let is_sum = site.kind.fields[field].merge == wavetap::profile::schema::Merge::Sum;
            a != b && !(may && (by_wraps || !is_sum))
        };
        let fields = if site.kind == *WAVE { 0..7 } else { 0..3 };
        if let Some(field) = fields.into_iter().find(|field| differs(*field)) {
            let (address, kind, name) = (site.address, &site.kind, &site.kind.fields[field].name);
            return Err(format!("{address:#x} {kind}: {name} should be {expected:?}, is {found:?}"));
        }
        if site.kind == *WAVE {
            continue;
        }
        // What takes longer is always said to; and what is not said to is exact.
        if let Some(long) = long.filter(|long| wraps && found[3] < long[number]) {
            let (address, said) = (site.address, found[3]);
            return Err(format!("{address:#x}: {} executions were too long, said were {said}", long[number]));
        }
        if found[3] == 0 && site.kind == *BLOCK && expected[1] != found[1] {
            return Err(format!("{:#x}: {} cycles, and measured {}", site.address, expected[1], found[1]));
        }
    }
    Ok(())
}

/// The counters of one wave, or of none.
fn expected(kernel: &KernelMap, visits: &[Visit], readings: &BTreeMap<u64, Reading>) -> Result<Expected, Failure> {
    let mut counters: Expected = clocked::nothing(kernel);
    let mut stamps = Vec::new();
    let mut ticks = Vec::new();
    for visit in visits {
        match readings[&visit.place.address] {
            Reading::Ticks => ticks.push(visit.cycle / TICK),
            reading => stamps.push((reading, visit.cycle)),
        }
    }
    let (Some(&(_, begin)), Some(&(last, end))) = (stamps.first(), stamps.last()) else { return Ok(counters) };
    if last != Reading::End {
        return Err(format!("the last stamp is {last:?}"));
    }
    for stamps in stamps.windows(3) {
        let &[(Reading::Entry(site), entry), (Reading::Begin, first), (Reading::Entry(_) | Reading::End, next)] =
            stamps
        else {
            continue;
        };
        counters[site][0] += 1;
        counters[site][1] += next - entry;
        counters[site][2] += first - entry;
    }
    let (Some(&first), Some(&last)) = (ticks.first(), ticks.last()) else { return Err("no ticks".to_owned()) };
    let wave = kernel.sites.iter().position(|site| site.kind == *WAVE).ok_or("no counters of waves")?;
    counters[wave] = vec![1, end - begin, end - begin, end - begin, first, first, last];
    Ok(counters)
}

/// Executions of each block that took longer than a clock of 20 bits can say.
fn long_executions(visits: &[Visit], readings: &BTreeMap<u64, Reading>, sites: usize) -> Vec<u64> {
    let mut long = vec![0; sites];
    let mut entered: Option<(usize, u64)> = None;
    for visit in visits {
        let next = match readings[&visit.place.address] {
            Reading::Entry(site) => Some((site, visit.cycle)),
            Reading::End => None,
            Reading::Begin | Reading::Ticks => continue,
        };
        if let Some((site, cycle)) = entered
            && visit.cycle - cycle >= WRAP
        {
            long[site] += 1;
        }
        entered = next;
    }
    long
}

/// The times of all blocks are those of the waves.
fn check_sums(kernel: &KernelMap, found: &Expected) -> Result<(), Failure> {
    let (mut blocks, mut waves) = (0, 0);
    for (site, values) in kernel.sites.iter().zip(found) {
        *if site.kind == *WAVE { &mut waves } else { &mut blocks } += values[1];
    }
    if blocks == waves { Ok(()) } else { Err(format!("blocks took {blocks} cycles, waves {waves}")) }
}
