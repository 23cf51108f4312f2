//! A code object as compiled and as instrumented in each counter mode, run side by side on the strict emulator.
//!
//! The same dispatch must leave the same memory, and the profile must have the counts that the emulator saw in the
//! original, to the last wave. Where what a kernel does depends on the order of its waves, which is found out by
//! running the original with other seeds, the counts must be those that the emulator saw in the instrumented kernel
//! itself. Sites in functions that are called through unknown pointers may be missing or counted less often, if the
//! profile names such functions.

mod modes;

use std::cell::OnceCell;
use std::collections::BTreeMap;

use wavetap::cfg::Program;
use wavetap::code_object::CodeObject;
use wavetap::collect::session::{self, Overlap};
use wavetap::emulator::{Fault, FaultKind, ObjectId, Options, Trace};
use wavetap::isa::Target;
use wavetap::kernel::{Image, Reason};
use wavetap::pipeline::{self, Counters};
use wavetap::profile::file::KernelTotals;
use wavetap::profile::map::{KernelMap, ObjectMap, Refused, VectorSource};
use wavetap::profile::probes::blocks::BLOCK;
use wavetap::profile::probes::branches;
use wavetap::profile::schema::{Counts, KindSchema};
use wavetap::verify;

use crate::dispatch::{self, Collecting, FUEL_FACTOR};
use crate::{Failure, blocks};
use modes::{BRANCHES, Mode, REGISTER, modes};

/// Records where no wave is to share one: of usual ones, and bytes of unusually long ones.
const ENOUGH: u32 = 1024;
const ENOUGH_BYTES: u32 = 16 << 20;
/// Records where waves share them: a power of two.
const FEW: u32 = 4;
/// Seeds that show whether the original's waves may be run in any order.
const OTHER_SEEDS: u64 = 200;
/// Seeds that the original's faults are collected from.
const FAULT_SEEDS: usize = 200;

pub use crate::dispatch::{Launch, Stopped};

/// With how many of the seeds the last of them are run.
fn further_seeds() -> usize {
    if crate::full() { usize::MAX } else { 1 }
}

/// What an instrumented object is given to count into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Records {
    /// Nothing: it counts nothing.
    None,
    /// A record for each wave.
    Own,
    /// Few, which waves share.
    Shared,
}

impl Records {
    /// Mostly the usual one.
    fn of(seed: u64) -> Records {
        match seed % 5 {
            3 => Records::Shared,
            4 => Records::None,
            _ => Records::Own,
        }
    }
}

/// What a dispatch left.
#[derive(Debug)]
pub struct Outcome {
    /// The buffers.
    pub buffers: Vec<Vec<u8>>,
    /// What the emulator saw.
    pub trace: Trace,
    /// The object in the trace.
    pub object: ObjectId,
    /// Waves.
    pub waves: u64,
    /// What was counted.
    counted: Option<KernelTotals>,
}

/// An object rewritten in one counter mode.
struct Rewritten {
    mode: &'static str,
    bytes: Vec<u8>,
    map: ObjectMap,
    /// It measures other things as well, or something else: one seed is enough where time is short.
    is_further: bool,
}

/// An object and what became of it.
pub struct Subject<'a> {
    original: &'a [u8],
    target: Target,
    rewritten: Vec<Rewritten>,
}

/// What was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compared {
    /// Dispatches of instrumented kernels.
    pub dispatches: u64,
    /// Sites whose counts were compared.
    pub sites: u64,
    /// Executions that they counted.
    pub executions: u64,
    /// Dispatches whose counts depend on the order of the waves.
    pub unordered: u64,
}

impl Compared {
    /// Adds another.
    pub fn add(&mut self, other: Compared) {
        self.dispatches += other.dispatches;
        self.sites += other.sites;
        self.executions += other.executions;
        self.unordered += other.unordered;
    }
}

impl<'a> Subject<'a> {
    /// Rewrites a bare code object in both modes, and checks both results.
    ///
    /// # Errors
    /// If it cannot be rewritten, or `verify` finds fault with a result.
    pub fn of(original: &'a [u8], target: Target) -> Result<Subject<'a>, Failure> {
        Self::selected(original, target, &[])
    }

    /// [`Subject::of`] with one kernel alone instrumented.
    ///
    /// # Errors
    /// As there.
    pub fn of_kernel(original: &'a [u8], target: Target, kernel: &str) -> Result<Subject<'a>, Failure> {
        Self::selected(original, target, &[kernel.to_owned()])
    }

    fn selected(original: &'a [u8], target: Target, kernels: &[String]) -> Result<Subject<'a>, Failure> {
        let selection = pipeline::Selection { kernels: kernels.to_vec(), ..pipeline::Selection::default() };
        let rewrite = |(mode, counters, placement, probes, per_wave): Mode| {
            let options = pipeline::Options {
                probes: probes.to_vec(),
                counters,
                placement,
                single_waves: per_wave,
                selection: selection.clone(),
                ..pipeline::Options::default()
            };
            let mut rewritten =
                pipeline::rewrite(original, &options).map_err(|e| format!("rewrite --counters {mode}: {e}"))?;
            let report = verify::check_files(original, &rewritten.bytes).map_err(|e| format!("verify, {mode}: {e}"))?;
            if let Some((place, finding)) = report.findings.first() {
                return Err(format!("verify, {mode}: {place}: {finding}"));
            }
            let map = rewritten.maps.pop().ok_or("no map")?;
            Ok(Rewritten {
                mode,
                bytes: rewritten.bytes,
                map,
                is_further: probes != BRANCHES || counters == Counters::Register || per_wave,
            })
        };
        let rewritten = modes(original).map(rewrite).collect::<Result<_, Failure>>()?;
        Ok(Subject { original, target, rewritten })
    }

    /// Why the branches of the kernel are not instrumented, by mode.
    #[must_use]
    pub fn refusals(&self, kernel: &str) -> Vec<(&'static str, &Refused)> {
        let of = |rewritten: &'_ Rewritten| rewritten.map.refused.iter().position(|refused| refused.name == kernel);
        let of_branches = self.rewritten.iter().filter(|rewritten| !rewritten.is_further);
        of_branches.filter_map(|rewritten| Some((rewritten.mode, &rewritten.map.refused[of(rewritten)?]))).collect()
    }

    /// Why the branches of the kernel are not counted in registers, which not every kernel has room for.
    #[must_use]
    pub fn refused_in_registers(&self, kernel: &str) -> Option<&Refused> {
        let registers = self.rewritten.iter().find(|rewritten| rewritten.mode == REGISTER)?;
        registers.map.refused.iter().find(|refused| refused.name == kernel)
    }

    /// How many dispatches [`Subject::compare`] compares with so many seeds, if none ends otherwise.
    #[must_use]
    pub fn dispatches(&self, kernel: &str, seeds: u64) -> u64 {
        let further = seeds.min(further_seeds() as u64);
        let counted =
            self.rewritten.iter().filter(|rewritten| rewritten.map.kernels.iter().any(|map| map.name == kernel));
        counted.map(|rewritten| if rewritten.is_further { further } else { seeds }).sum()
    }

    /// The functions that the profile of a kernel names because their branches may be missing in it, by mode.
    #[must_use]
    pub fn uncounted(&self, kernel: &str) -> Vec<(&'static str, &[String])> {
        let of = |rewritten: &'_ Rewritten| rewritten.map.kernels.iter().position(|map| map.name == kernel);
        self.rewritten
            .iter()
            .filter_map(|rewritten| Some((rewritten.mode, &*rewritten.map.kernels[of(rewritten)?].uncounted_callees)))
            .collect()
    }

    /// Where the vector registers of inserted code come from in a kernel, for each mode that it is instrumented in.
    #[must_use]
    pub fn vector_sources(&self, kernel: &str) -> Vec<VectorSource> {
        // Counters in registers need none but at the end, where all are free.
        let rewritten = self.rewritten.iter().filter(|rewritten| !rewritten.mode.starts_with("register"));
        let kernels = rewritten.flat_map(|rewritten| &rewritten.map.kernels);
        kernels.filter(|map| map.name == kernel).map(|map| map.vector_registers).collect()
    }

    /// Runs the original.
    ///
    /// # Errors
    /// What stopped it.
    pub fn original(&self, launch: &Launch<'_>, seed: u64) -> Result<Outcome, Stopped> {
        run(self.original, self.target, launch, &options(launch, seed, 1), None)
    }

    /// Runs the kernel in each mode that it is instrumented in, with each of the seeds, beside the original.
    ///
    /// # Errors
    /// What differed, or did not run.
    pub fn compare(&self, launch: &Launch<'_>, seeds: std::ops::Range<u64>) -> Result<Compared, Failure> {
        let first = seeds.start;
        let original = self.original(launch, first).map_err(|e| format!("the original, seed {first}: {e}"))?;
        let mut compared = Compared::default();
        for rewritten in &self.rewritten {
            let Some(index) = rewritten.map.kernels.iter().position(|kernel| kernel.name == launch.kernel) else {
                self.check_refused(launch.kernel, rewritten)?;
                continue;
            };
            for seed in seeds.clone().take(if rewritten.is_further { further_seeds() } else { usize::MAX }) {
                let at = |e: Failure| format!("--counters {}, seed {seed}: {e}", rewritten.mode);
                let side = Side { rewritten, index, seed };
                compared.add(self.beside(launch, &original, &side).map_err(at)?);
            }
        }
        Ok(compared)
    }

    /// A kernel whose branches can be measured is not to be refused for measuring more of it.
    fn check_refused(&self, kernel: &str, further: &Rewritten) -> Result<(), Failure> {
        if !further.is_further
            || self.refusals(kernel).len() == self.rewritten.iter().filter(|rewritten| !rewritten.is_further).count()
        {
            return Ok(());
        }
        let refused = further.map.refused.iter().find(|refused| refused.name == kernel);
        // Blocks begin in more places than branches are, also where the mode depends on the path.
        if refused.is_some_and(|refused| refused.reason == Reason::ModeWrite.name()) {
            return Ok(());
        }
        // Not every kernel has room for counters in registers, or a flow that is known.
        let may_be = [Reason::ScalarRegisters, Reason::CounterMode, Reason::CalleeEndsWave].map(|reason| reason.name());
        if further.mode.starts_with("register")
            && refused.is_some_and(|refused| may_be.contains(&refused.reason.as_str()))
        {
            return Ok(());
        }
        Err(format!("--counters {}: refused, but for its branches it is not: {refused:?}", further.mode))
    }

    /// Runs the kernel in each mode that it is instrumented in, where the original faults: it must do so, too, at an
    /// instruction and in a way in which the original does with some seed. Tells how many faults were compared. An
    /// original that reaches beyond its LDS is excused: counters may be there, and which wave is the first to do so, or
    /// to race with another, is a matter of time. So is [`Launch::undefined`].
    ///
    /// # Errors
    /// What differed.
    pub fn compare_faults(&self, launch: &Launch<'_>, seeds: std::ops::Range<u64>) -> Result<u64, Failure> {
        let mut faults =
            Faults { subject: self, launch, next: seeds.start, known: Vec::new(), beyond_lds: false, undefined: false };
        let mut compared = 0;
        for rewritten in &self.rewritten {
            let Some(index) = rewritten.map.kernels.iter().position(|kernel| kernel.name == launch.kernel) else {
                continue;
            };
            for seed in seeds.clone().take(if rewritten.is_further { further_seeds() } else { usize::MAX }) {
                let counting = Some(Counting { map: &rewritten.map, index: index as u32, records: Records::Own });
                let (place, text) =
                    match run(&rewritten.bytes, self.target, launch, &options(launch, seed, FUEL_FACTOR), counting) {
                        Err(Stopped::Failure(failure)) => return Err(failure),
                        Ok(_) => (None, "no fault".to_owned()),
                        Err(Stopped::Fault(fault)) => (rewritten.place_in_original(index, &fault), fault.to_string()),
                    };
                let known = faults.have(place);
                if !known && (faults.beyond_lds || (launch.undefined && faults.undefined && text == "no fault")) {
                    continue;
                }
                if !known || (place.is_none() && text != "no fault") {
                    let mut elsewhere: Vec<String> = faults.known.iter().map(|known| format!("{known:x?}")).collect();
                    elsewhere.sort_unstable();
                    elsewhere.dedup();
                    let (mode, elsewhere) = (rewritten.mode, elsewhere.join(", "));
                    return Err(format!(
                        "--counters {mode}, seed {seed}: {text} ({place:x?} of the original, which faults at \
                            {elsewhere})"
                    ));
                }
                compared += 1;
            }
        }
        Ok(compared)
    }

    fn beside(&self, launch: &Launch<'_>, original: &Outcome, side: &Side<'_>) -> Result<Compared, Failure> {
        let Side { rewritten, index, seed } = *side;
        let records = Records::of(seed);
        let options = options(launch, seed, FUEL_FACTOR);
        let counting = Some(Counting { map: &rewritten.map, index: index as u32, records });
        let outcome = match run(&rewritten.bytes, self.target, launch, &options, counting) {
            Ok(outcome) => outcome,
            Err(Stopped::Failure(failure)) => return Err(failure),
            Err(Stopped::Fault(fault)) => {
                // The original may do so in another order of its waves.
                let mut faults = Faults {
                    subject: self,
                    launch,
                    next: seed,
                    known: Vec::new(),
                    beyond_lds: false,
                    undefined: false,
                };
                let place = rewritten.place_in_original(index, &fault);
                // One that does not end has no place of its own.
                let endless = fault.kind == FaultKind::OutOfFuel && self.depends_on_order(launch, original, seed);
                if endless || place.is_some() && faults.have(place) {
                    return Ok(Compared { dispatches: 1, unordered: 1, ..Compared::default() });
                }
                let moved = &rewritten.map.kernels[index].addresses;
                let last =
                    moved.iter().filter(|pair| pair.rewritten <= fault.address).max_by_key(|pair| pair.rewritten);
                return Err(format!("{fault} (original code at or behind {:x?})", last.map(|pair| pair.original)));
            }
        };
        let mut compared = Compared { dispatches: 1, ..Compared::default() };
        if outcome.waves != original.waves {
            return Err(format!("{} waves, {} of the original", outcome.waves, original.waves));
        }
        let mut unordered = None;
        let mut is_unordered = || *unordered.get_or_insert_with(|| self.depends_on_order(launch, original, seed));
        for (n, (a, b)) in original.buffers.iter().zip(&outcome.buffers).enumerate() {
            if let Some(at) = (0..a.len()).find(|&at| a[at] != b[at])
                && !is_unordered()
            {
                return Err(format!("buffer {n} differs at byte {at:#x}: {:#x}, in the original {:#x}", b[at], a[at]));
            }
        }
        if let Some(counted) = &outcome.counted {
            self.counts(
                launch,
                original,
                &outcome,
                counted,
                &rewritten.map.kernels[index],
                &mut compared,
                &mut is_unordered,
            )?;
        }
        compared.unordered = u64::from(unordered == Some(true));
        Ok(compared)
    }

    /// Whether what the original does is another thing in another order of its waves.
    fn depends_on_order(&self, launch: &Launch<'_>, original: &Outcome, seed: u64) -> bool {
        (1..=OTHER_SEEDS).any(|n| match self.original(launch, seed + 1000 * n) {
            Ok(other) => other.buffers != original.buffers || other.trace != original.trace,
            Err(_) => true,
        })
    }

    #[allow(clippy::too_many_arguments)] // Two runs, and what is to be known of each.
    fn counts(
        &self,
        launch: &Launch<'_>,
        original: &Outcome,
        outcome: &Outcome,
        counted: &KernelTotals,
        map: &KernelMap,
        compared: &mut Compared,
        is_unordered: &mut dyn FnMut() -> bool,
    ) -> Result<(), Failure> {
        if (counted.waves, counted.dropped, counted.unfinished) != (outcome.waves, 0, 0) {
            let KernelTotals { waves, dropped, unfinished, .. } = counted;
            return Err(format!(
                "{waves} waves counted of {}, {dropped} dropped, {unfinished} not finished",
                outcome.waves
            ));
        }
        let code = CodeObject::parse(self.original).map_err(|e| e.to_string())?;
        let kernel = code.kernel(launch.kernel).ok_or("the kernel is gone")?;
        let own = kernel.code.clone();
        // Functions that share code by a jump are copied each with its own.
        let mut moved: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        map.addresses.iter().for_each(|pair| moved.entry(pair.original).or_default().push(pair.rewritten));
        let whole = counted.uncounted_callees.is_empty();
        let mut is_as_original = true;
        for site in &counted.sites {
            let seen = seen(original, &[site.address], site.counts.kind());
            compared.sites += 1;
            compared.executions += site.counts.executions().unwrap_or_default();
            // What is called through a pointer runs the original function, which a direct call does not.
            let elsewhere = !whole && !own.contains(&site.address) && site.counts.executions() <= seen.executions();
            if site.counts == seen {
                continue;
            }
            is_as_original = false;
            let itself = moved.get(&site.address).map(|new| self::seen(outcome, new, site.counts.kind()));
            if itself.as_ref() != Some(&site.counts) || !(elsewhere || is_unordered()) {
                let (address, name) = (site.address, &site.instruction);
                return Err(format!(
                    "{address:#x} {name}: counted {:?}, the emulator saw {seen:?}, and in the instrumented kernel \
                        {itself:?}",
                    site.counts
                ));
            }
        }
        if whole && is_as_original && counted.sites.iter().any(|site| *site.counts.kind() == *BLOCK) {
            let image = Image::of(&code).map_err(|e| e.to_string())?;
            let program = OnceCell::new();
            let program = || program.get_or_init(|| Program::of(self.target, &image));
            let is_skipped = |address| {
                program().bodies().iter().any(|body| body.at(address).is_some_and(|id| body.may_be_skipped(id)))
            };
            blocks::are_whole(original, counted, &is_skipped)?;
        }
        let counts_branches = map.sites.iter().any(|site| site.kind.probe == branches::PROBE);
        let sites = original.trace.exec_sites.keys().chain(original.trace.branches.keys());
        for place in sites.filter(|place| counts_branches && place.object == original.object) {
            let known = counted
                .sites
                .iter()
                .any(|site| site.address == place.address && site.counts.kind().probe == branches::PROBE);
            // A function without a symbol may lie in the middle of the kernel.
            if !known && (whole || (own.contains(&place.address) && moved.contains_key(&place.address))) {
                return Err(format!("the emulator saw a site at {:#x} that is not counted", place.address));
            }
        }
        Ok(())
    }
}

/// Where the original faults, and how.
type FaultPlace = (u64, std::mem::Discriminant<FaultKind>);

impl Rewritten {
    /// The place in the original of a fault; none where there is none.
    fn place_in_original(&self, index: usize, fault: &Fault) -> Option<FaultPlace> {
        let pairs = &self.map.kernels[index].addresses;
        let original = pairs.iter().find(|pair| pair.rewritten == fault.address)?.original;
        Some(fault_place(original, fault))
    }
}

/// The place of a fault that has an original address. A race has none: which two of the accesses that race are the
/// first to meet is a matter of the order.
fn fault_place(original: u64, fault: &Fault) -> FaultPlace {
    let address = if matches!(fault.kind, FaultKind::LdsRace { .. }) { 0 } else { original };
    (address, std::mem::discriminant(&fault.kind))
}

/// Where an original faults with some seeds: which wave is the first to do so is a matter of their order.
struct Faults<'s, 'a> {
    subject: &'s Subject<'a>,
    launch: &'s Launch<'s>,
    /// The next seed.
    next: u64,
    /// By seed; none where it ends well.
    known: Vec<Option<FaultPlace>>,
    /// It accessed what is beyond its LDS with one of them.
    beyond_lds: bool,
    /// It used bits that nothing wrote with one of them, or lacks a wait.
    undefined: bool,
}

impl Faults<'_, '_> {
    /// Whether the original faults at this place with one of the seeds (or, without a place, ends well).
    fn have(&mut self, place: Option<FaultPlace>) -> bool {
        while self.known.is_empty() || (!self.known.contains(&place) && self.known.len() < FAULT_SEEDS) {
            self.known.push(match self.subject.original(self.launch, self.next) {
                Err(Stopped::Fault(fault)) => {
                    self.beyond_lds |= matches!(fault.kind, FaultKind::LdsBounds { .. });
                    self.undefined |=
                        matches!(fault.kind, FaultKind::Uninitialised { .. } | FaultKind::MissingWait { .. });
                    Some(fault_place(fault.address, &fault))
                }
                _ => None,
            });
            self.next += 1;
        }
        self.known.contains(&place)
    }
}

/// An instrumented kernel and how it is run.
struct Side<'r> {
    rewritten: &'r Rewritten,
    index: usize,
    seed: u64,
}

/// What an instrumented kernel counts with.
struct Counting<'m> {
    map: &'m ObjectMap,
    index: u32,
    records: Records,
}

fn options(launch: &Launch<'_>, seed: u64, factor: u64) -> Options {
    Options {
        strict: true,
        seed,
        fuel: launch.fuel * factor,
        trace: true,
        trace_lanes: true,
        tolerated: launch.tolerated,
        ..Options::default()
    }
}

/// What a trace has of a site that is at these addresses.
fn seen(outcome: &Outcome, addresses: &[u64], kind: &KindSchema) -> Counts {
    outcome.trace.counts(kind, outcome.object, addresses).expect("all that is counted is traced")
}

/// Runs a kernel of a bare code object.
fn run(
    object: &[u8],
    target: Target,
    launch: &Launch<'_>,
    options: &Options,
    counting: Option<Counting<'_>>,
) -> Result<Outcome, Stopped> {
    let collecting = counting.as_ref().and_then(|Counting { map, index, records }| {
        let records = match records {
            Records::None => return None,
            Records::Own => session::Records::Dropping(ENOUGH.min(ENOUGH_BYTES / map.stride).max(FEW)),
            Records::Shared => session::Records::Shared(FEW),
        };
        let options = session::Options::new(Overlap::Concurrent, records);
        Some(Collecting { kernel: *index, options, per_wave: false })
    });
    let ran = dispatch::run(object, target, launch, options, collecting)?;
    let mut counted = None;
    if let (Some(mut session), Some(Counting { map, index, .. })) = (ran.session, &counting) {
        counted = Some(session.collector_mut().kernel(map, *index).map_err(|e| e.to_string())?.clone());
    }
    let trace = ran.stats.trace.ok_or("nothing was traced".to_owned())?;
    Ok(Outcome { buffers: ran.buffers, trace, object: ran.object, waves: ran.stats.waves, counted })
}
