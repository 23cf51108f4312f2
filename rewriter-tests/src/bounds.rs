//! Kernels whose accesses are compared with a table of allocations: what the tests of such probes have in common.

use std::cell::RefCell;
use std::collections::BTreeMap;

use wavetap::collect::session::{self, Overlap, Records};
use wavetap::emulator::{AccessRecord, AccessedMemory, Options};
use wavetap::isa::Target;
use wavetap::pipeline::Counters;
use wavetap::pipeline::probe::ProbeRef;
use wavetap::profile::accesses::AllocatedRange;
use wavetap::profile::bounds::OutOfBounds;
use wavetap::profile::map::KernelMap;

use crate::clocked::{FUEL, Rewritten};
use crate::dispatch::{self, Change, Collecting, FUEL_FACTOR, Launch, Stopped};
use crate::kernels::{Buffers, Test};
use crate::made_up::Built;
use crate::{Failure, tally};

/// Accesses of a dispatch that the emulator keeps.
pub const MOST_RECORDS: usize = 1_000_000;
/// Wave-instructions that a rewritten kernel may execute.
pub const REWRITTEN_FUEL: u64 = FUEL * FUEL_FACTOR;
/// How the names of kernels begin whose buffers are swizzled.
const SWIZZLED: &str = "swizzled_";

/// Which kernels were rewritten.
#[derive(Debug, Default)]
pub struct Kernels {
    /// All kernels.
    pub kernels: u64,
    /// Those that were rewritten.
    pub rewritten: u64,
    /// Why others were not.
    pub refused: BTreeMap<String, u64>,
    /// Where inserted code has its vector registers from.
    pub sources: BTreeMap<String, u64>,
}

impl Kernels {
    /// Adds others.
    pub fn add(&mut self, other: Kernels) {
        self.kernels += other.kernels;
        self.rewritten += other.rewritten;
        tally::add_counts(&mut self.refused, other.refused);
        tally::add_counts(&mut self.sources, other.sources);
    }
}

/// A kernel of an object.
pub struct Subject<'a> {
    /// The object.
    pub object: &'a [u8],
    /// The object with the probe.
    pub rewritten: &'a Rewritten,
    /// The kernel's place in its map.
    pub index: u32,
    /// What the map says of it.
    pub kernel: &'a KernelMap,
    /// The kernel.
    pub test: &'a Test,
    /// What it is compiled for.
    pub target: Target,
}

/// What came of a run of the rewritten kernel.
pub struct Run {
    /// What it wrote.
    pub output: Vec<u8>,
    /// Accesses of the original instructions, whose places are original addresses, as far as the emulator kept them.
    pub accesses: Vec<AccessRecord>,
    /// Whether there were more.
    pub is_cut_off: bool,
    /// What it was told to be allocated.
    pub table: Vec<AllocatedRange>,
    /// What was counted, by site.
    pub counts: Vec<Vec<u64>>,
    /// The first bad access of each site.
    pub found: Vec<OutOfBounds>,
}

/// Compares each kernel of a source that can be rewritten with a probe.
///
/// # Errors
/// What is wrong with one of them, or that one was refused for a reason that is none.
pub fn each(
    built: &Built,
    probe: ProbeRef,
    kernels: &mut Kernels,
    mut compare: impl FnMut(&Subject<'_>, &Buffers) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let rewritten = Rewritten::with(&built.object, probe, Counters::Global, false)?;
    let mut wrong = rewritten.refusals(&mut kernels.refused);
    let outcome = built.each(|test, buffers| {
        kernels.kernels += 1;
        let mut all = (0..).zip(&rewritten.map.kernels);
        let Some((index, kernel)) = all.find(|(_, kernel)| kernel.name == test.name) else { return Ok(()) };
        kernels.rewritten += 1;
        tally::add_counts(&mut kernels.sources, [(format!("{:?}", kernel.vector_registers), 1)]);
        let target = built.variant.target;
        compare(&Subject { object: &built.object, rewritten: &rewritten, index, kernel, test, target }, buffers)
    });
    wrong.extend(outcome.err());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

impl Subject<'_> {
    /// Runs the rewritten kernel with another table of what is allocated.
    ///
    /// # Errors
    /// What stopped it.
    pub fn run(&self, launch: &Launch<'_>, options: &Options, change: &Change<'_>) -> Result<Run, Stopped> {
        let options = Options { fuel: REWRITTEN_FUEL, ..options.clone() };
        let collecting = Collecting {
            kernel: self.index,
            options: session::Options::new(Overlap::Concurrent, Records::PerWave),
            per_wave: false,
        };
        let table = RefCell::new(Vec::new());
        let noted = |ranges| {
            let changed = change(ranges);
            table.borrow_mut().clone_from(&changed);
            changed
        };
        let bytes = &self.rewritten.bytes;
        let mut ran = dispatch::run_with_table(bytes, self.target, launch, &options, Some(collecting), &noted)?;
        let profile = ran.take_profile().ok_or("no profile".to_owned())?;
        let totals = profile.kernels.first().ok_or("nothing was counted".to_owned())?;
        let recorded = std::mem::take(&mut ran.stats.accesses);
        let originals: BTreeMap<u64, u64> =
            self.kernel.addresses.iter().map(|pair| (pair.rewritten, pair.original)).collect();
        let mut accesses = recorded.records;
        accesses.retain_mut(|access| match originals.get(&access.place.address) {
            Some(original) if access.place.object == ran.object => {
                access.place.address = *original;
                true
            }
            _ => false,
        });
        Ok(Run {
            output: ran.buffers.pop().ok_or("no output".to_owned())?,
            accesses,
            is_cut_off: recorded.dropped > 0,
            table: table.take(),
            counts: totals.sites.iter().map(|site| site.counts.values().to_vec()).collect(),
            found: profile.out_of_bounds,
        })
    }

    /// The site of an access of an original instruction to global memory.
    #[must_use]
    pub fn site(&self, access: &AccessRecord) -> Option<usize> {
        let is_its = || self.kernel.sites.iter().position(|site| site.address == access.place.address);
        (access.memory == AccessedMemory::Global).then(is_its).flatten()
    }

    /// Whether a site is a buffer instruction.
    #[must_use]
    pub fn is_of_buffer(&self, site: usize) -> bool {
        self.kernel.sites[site].instruction.starts_with("buffer_")
    }

    /// Whether executions of a site are counted as not checked.
    #[must_use]
    pub fn is_unchecked(&self, site: usize) -> bool {
        is_swizzled(self.test) && self.is_of_buffer(site)
    }
}

/// Whether the buffers of a kernel are not checked, because they are swizzled.
#[must_use]
pub fn is_swizzled(test: &Test) -> bool {
    test.name.starts_with(SWIZZLED)
}

/// The lanes of an access: each with its address, and the bytes that it accesses there.
pub fn lanes(access: &AccessRecord) -> impl Iterator<Item = (u32, u64, u32)> {
    let lanes = (0..u64::BITS).filter(|lane| access.lanes >> lane & 1 == 1);
    let bytes = |lane: u32| access.heads.iter().find(|head| head.0 == lane).map_or(access.bytes, |head| head.1);
    lanes.zip(&access.addresses).map(move |(lane, address)| (lane, *address, bytes(lane)))
}
