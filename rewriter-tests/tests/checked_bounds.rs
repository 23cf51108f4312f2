//! What the bounds probe finds, compared with what the emulator saw of each access.
//!
//! Each kernel runs with the table of all that is allocated, in which nothing is to be found, and with tables of which
//! parts were taken out by a seed: before, after and inside of what the kernel accesses, down to single bytes. To some
//! of these tables ranges were added that no kernel accesses, so that they have more entries than a wave has lanes.
//! What is outside of such a table is worked out here from the addresses that the emulator recorded. Counts have to be
//! the same at each site, and what is told of its first bad access has to be one of them.
//!
//! In strict mode outputs are those of the original. The kernels are those of `rewriter-tests/kernels` and 200 that are
//! made up from seeds.
//!
//! Quick: a target of each kind, one level of optimisation, some of the sources, two seeds. Full
//! (`WAVETAP_FULL_TESTS=1`): every target, three levels, ten seeds. `WAVETAP_KERNEL_TARGETS=gfx1030,gfx1100` takes
//! these targets alone, `WAVETAP_KERNEL=made_up_17` kernels with this in their name.

use std::collections::BTreeMap;
use std::process::ExitCode;

use libtest_mimic::Trial;
use rewriter_tests::Failure;
use rewriter_tests::bounds::{self, Kernels, MOST_RECORDS, REWRITTEN_FUEL, Run};
use rewriter_tests::clocked;
use rewriter_tests::dispatch::Change;
use rewriter_tests::kernels::compare::Rule;
use rewriter_tests::kernels::{Buffers, launch};
use rewriter_tests::made_up::Built;
use rewriter_tests::tally::{self, Tallies};
use wavetap::emulator::{AccessRecord, Options};
use wavetap::pipeline::probe;
use wavetap::profile::accesses::AllocatedRange;

/// Of a hundred kernels so many are checked, at least.
const GOAL: u64 = 50;
/// Tables of which parts were taken out, for each kernel: how many ranges were added to each.
const TABLES: [u64; 4] = [0, 0, 100, 2000];
/// Where these are: every other one is below, and every other one after all memory of the emulator.
const ADDED: [u64; 2] = [1 << 12, 1 << 56];
/// Ranges of a table are in the end of at most so many pieces.
const PIECES: usize = 40;

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    kernels: Kernels,
    /// Accesses by lanes that were checked, those that were outside of a table, and sites with such.
    lanes: u64,
    outside: u64,
    /// Executions of instructions whose buffers are swizzled.
    unchecked: u64,
    sites: u64,
    /// Dispatches with more accesses than the emulator keeps, which are compared with the whole table alone.
    cut_off: u64,
    strict: u64,
}

static TALLIES: Tallies<Tally> = Tallies::new();

fn main() -> ExitCode {
    TALLIES.run(trials(), |tallies| {
        for (target, tally) in tallies {
            println!("{target}: {tally:?}");
            if tally.kernels.rewritten > 0 && (tally.outside == 0 || tally.outside == tally.lanes) {
                return Err(format!("{target}: {} of {} accesses were outside", tally.outside, tally.lanes));
            }
        }
        let sum = |of: fn(&Tally) -> u64| tallies.values().map(of).sum::<u64>();
        tally::at_least(GOAL, sum(|tally| tally.kernels.rewritten), sum(|tally| tally.kernels.kernels))
    })
}

fn trials() -> Result<Vec<Trial>, Failure> {
    Ok(clocked::compiled()?.into_iter().map(|compiled| compiled.trial(run)).collect())
}

/// All kernels of a source, compiled in one way.
fn run(built: &Built) -> Result<(), Failure> {
    let (mut kernels, mut tally) = (Kernels::default(), Tally::default());
    let outcome = bounds::each(built, probe::BOUNDS, &mut kernels, |kernel, buffers| {
        Subject { kernel, buffers }.compare(&mut tally)
    });
    TALLIES.add(built.variant.target.name(), Tally { kernels, ..tally });
    outcome
}

impl tally::Tally for Tally {
    fn add(&mut self, other: Tally) {
        self.kernels.add(other.kernels);
        self.lanes += other.lanes;
        self.outside += other.outside;
        self.unchecked += other.unchecked;
        self.sites += other.sites;
        self.cut_off += other.cut_off;
        self.strict += other.strict;
    }
}

/// A kernel, and what it is given.
struct Subject<'a> {
    kernel: &'a bounds::Subject<'a>,
    buffers: &'a Buffers,
}

impl Subject<'_> {
    fn compare(&self, tally: &mut Tally) -> Result<(), Failure> {
        let &bounds::Subject { object, target, test, .. } = self.kernel;
        let plain = Options { strict: false, threads: 1, accesses: MOST_RECORDS, ..Options::default() };
        let rule = Rule::parse(&test.compare)?;
        let whole = self.run(&plain, &|ranges| ranges)?;
        let bad: u64 = whole.counts.iter().flat_map(|counts| &counts[..2]).sum();
        if bad > 0 || !whole.found.is_empty() {
            return Err(format!("all of memory: found {:?}, {:?}", whole.counts, whole.found));
        }
        rule.check(&whole.output, &self.buffers.expected)?;
        if whole.is_cut_off {
            tally.cut_off += 1;
        }
        for (seed, added) in (0..).zip(TABLES) {
            let accessed: Vec<u64> = whole.accesses.iter().flat_map(|access| access.addresses.clone()).collect();
            let ends: Vec<u64> = whole.accesses.iter().flat_map(ends).collect();
            let cut = |ranges| {
                let more = (0..added).map(|number| AllocatedRange {
                    address: ADDED[number as usize % 2] + (number << 5),
                    size: number % 32 + 1,
                });
                cut(ranges, &accessed, &ends, seed).into_iter().chain(more).collect()
            };
            let run = self.run(&plain, &cut)?;
            rule.check(&run.output, &self.buffers.expected).map_err(|e| format!("table {seed}: {e}"))?;
            if !run.is_cut_off {
                self.check(&run, tally).map_err(|e| format!("table {seed}: {e}"))?;
            }
        }
        for seed in 0..if rewriter_tests::full() { 10 } else { 2 } {
            let strict = Options { strict: true, seed, ..plain.clone() };
            let run = match self.run(&strict, &|ranges| ranges) {
                Ok(run) => run,
                Err(_) if launch::run(object, target, test, self.buffers, &strict).is_err() => continue,
                Err(failure) => return Err(format!("strict, seed {seed}: {failure}")),
            };
            tally.strict += 1;
            rule.check(&run.output, &self.buffers.expected).map_err(|e| format!("strict, seed {seed}: {e}"))?;
            if !run.found.is_empty() {
                return Err(format!("strict, seed {seed}: found {:?}", run.found));
            }
        }
        Ok(())
    }

    fn run(&self, options: &Options, change: &Change<'_>) -> Result<Run, Failure> {
        let launch = launch::of_test(self.kernel.test, self.buffers, REWRITTEN_FUEL);
        self.kernel.run(&launch, options, change).map_err(|stopped| stopped.to_string())
    }

    /// Compares what was found with what is outside of the table.
    fn check(&self, run: &Run, tally: &mut Tally) -> Result<(), Failure> {
        let mut expected = vec![vec![0, 0, 0]; self.kernel.kernel.sites.len()];
        let mut outside: BTreeMap<usize, Vec<(&AccessRecord, u64)>> = BTreeMap::new();
        for access in &run.accesses {
            let Some(site) = self.kernel.site(access) else { continue };
            if self.kernel.is_unchecked(site) {
                expected[site][2] += 1;
                tally.unchecked += 1;
                continue;
            }
            tally.lanes += access.addresses.len() as u64;
            let bad = bounds::lanes(access).filter(|(_, address, bytes)| !is_inside(&run.table, *address, *bytes));
            let bad: u64 = bad.map(|(lane, ..)| 1 << lane).sum();
            if bad != 0 {
                expected[site][0] += 1;
                expected[site][1] += u64::from(bad.count_ones());
                outside.entry(site).or_default().push((access, bad));
            }
        }
        tally.outside += expected.iter().map(|counts| counts[1]).sum::<u64>();
        tally.sites += outside.len() as u64;
        if run.counts != expected {
            return Err(format!("counts {:?}, seen {expected:?}", run.counts));
        }
        let sites: Vec<usize> = run.found.iter().map(|bad| bad.site as usize).collect();
        if sites != outside.keys().copied().collect::<Vec<_>>() {
            return Err(format!("first accesses of the sites {sites:?}, outside were {:?}", outside.keys()));
        }
        for bad in &run.found {
            let is_it = |(access, lanes): &(&AccessRecord, u64)| {
                let place = (access.lanes & ((1 << bad.lane) - 1)).count_ones() as usize;
                (access.workgroup, access.wave, *lanes) == (bad.workgroup, bad.wave, bad.lanes)
                    && access.addresses[place] == bad.address
            };
            if !outside[&(bad.site as usize)].iter().any(is_it) {
                return Err(format!("no access was {bad:?}"));
            }
        }
        Ok(())
    }
}

/// Whether all bytes of an access are in one range.
fn is_inside(table: &[AllocatedRange], address: u64, bytes: u32) -> bool {
    table.iter().any(|range| {
        range.address <= address && u128::from(address) + u128::from(bytes) <= u128::from(range.address + range.size)
    })
}

/// The addresses after what is executed of each lane that is in range of its buffer in part.
fn ends(access: &AccessRecord) -> Vec<u64> {
    let lanes = (0..u64::BITS).filter(|lane| access.lanes >> lane & 1 == 1);
    let end = |(lane, address): (u32, &u64)| {
        access.heads.iter().find(|head| head.0 == lane).map(|head| address + u64::from(head.1))
    };
    lanes.zip(&access.addresses).filter_map(end).collect()
}

/// Ranges with parts taken out where something is accessed, and, in every other table, small parts from where accesses
/// end that are executed in part.
fn cut(mut ranges: Vec<AllocatedRange>, accessed: &[u64], ends: &[u64], seed: u64) -> Vec<AllocatedRange> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below.max(1)
    };
    let holes = if accessed.is_empty() { 0 } else { 1 + random(PIECES as u64) };
    for _ in 0..holes {
        let (at, size) = match ends {
            [_, ..] if seed % 2 == 1 => (ends[random(ends.len() as u64) as usize], 1 << random(4)),
            _ => {
                let near = accessed[random(accessed.len() as u64) as usize];
                (near.wrapping_add(random(9)).wrapping_sub(4), 1 << random(12))
            }
        };
        let end = at.saturating_add(size);
        ranges = ranges
            .into_iter()
            .flat_map(|range| {
                let last = range.address + range.size;
                let before = AllocatedRange { size: at.clamp(range.address, last) - range.address, ..range };
                let after = end.clamp(range.address, last);
                [before, AllocatedRange { address: after, size: last - after }]
            })
            .filter(|range| range.size > 0)
            .collect();
    }
    ranges
}
