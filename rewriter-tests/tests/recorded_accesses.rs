//! What the memory probe records, compared with the addresses that the emulator sees while the same waves run: every
//! execution of every measured access, lane by lane and in order, also where there is room for a few alone and the
//! others are counted. In strict mode outputs are those of the original, and what is recorded is what the emulator saw
//! in the original. The kernels are those of `rewriter-tests/kernels` and 200 that are made up from seeds.
//!
//! Quick: a target of each kind, one level of optimisation, some of the sources, two seeds. Full
//! (`WAVETAP_FULL_TESTS=1`): every target, three levels, ten seeds. `WAVETAP_KERNEL_TARGETS=gfx1030,gfx1100` takes
//! these targets alone, `WAVETAP_KERNEL=made_up_17` kernels with this in their name.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;

use libtest_mimic::{Arguments, Failed, Trial};
use rewriter_tests::kernels::build::{self, Sources, Variant};
use rewriter_tests::kernels::compare::Rule;
use rewriter_tests::kernels::{Buffers, Test, launch};
use rewriter_tests::{Failure, full, made_up};
use wavetap::cfg::Program;
use wavetap::code_object::CodeObject;
use wavetap::collect::collector::Collector;
use wavetap::collect::session::{self, DispatchInfo, Overlap, Records, Session, WorkgroupSample};
use wavetap::emulated::EmulatedMemory;
use wavetap::emulator::{AccessRecord, AccessedMemory, Device, Dispatch, Options};
use wavetap::isa::Target;
use wavetap::kernel::{Body, Image};
use wavetap::memory::{ResolvedAccess, Space, resolve};
use wavetap::pipeline::{self, ProbeKind};
use wavetap::profile::accesses::{CURSOR, DispatchAccesses, RecordedAccess, slot_bytes};
use wavetap::profile::file::Backend;
use wavetap::profile::map::{KernelMap, ObjectMap};
use wavetap::verify;

/// A kernel that executes more than this many wave-instructions does not end by itself.
const FUEL: u64 = 30_000_000;
/// Accesses of a dispatch that the emulator keeps; dispatches with more are not compared.
const MOST_RECORDS: usize = 400_000;
/// Device memory for what is recorded.
const MEMORY_LIMIT: u64 = 1 << 30;
/// Slots of a wave where there are to be too few.
const FEW_SLOTS: u32 = 3;
/// The quick run takes every so manyth source.
const QUICK_SOURCES: usize = 3;
/// Of a hundred kernels so many have their accesses measured, at least.
const GOAL: u64 = 85;

/// Kernels whose waves or lanes go where the order lets them: a lock, retries, what finishes last, and what follows
/// from the old values that atomics return.
const UNORDERED: &[&str] = &[
    "breadth_first_search",
    "compare_and_swap_loop",
    "float_atomics",
    "last_workgroup",
    "lock",
    "old_values",
    "union_find",
];

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    /// Kernels, those that are measured, and why others are not.
    kernels: u64,
    measured: u64,
    refused: BTreeMap<String, u64>,
    /// Executions that were compared with what the emulator saw of the same waves.
    executions: u64,
    /// Strict runs, and those in which waves went elsewhere than in the original.
    strict: u64,
    unordered: u64,
    /// Dispatches of which the emulator or the probe did not keep all.
    cut_off: u64,
}

static TALLY: Mutex<BTreeMap<String, Tally>> = Mutex::new(BTreeMap::new());

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
    let tallies = TALLY.lock().map(|mut tally| std::mem::take(&mut *tally)).unwrap_or_default();
    let (mut kernels, mut measured) = (0, 0);
    for (target, tally) in &tallies {
        println!("{target}: {tally:?}");
        kernels += tally.kernels;
        measured += tally.measured;
        if tally.executions == 0 {
            println!("{target}: nothing was compared");
            return ExitCode::FAILURE;
        }
    }
    if measured * 100 < kernels * GOAL {
        println!("{measured} of {kernels} kernels are measured, fewer than {GOAL} of a hundred");
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

fn trials() -> Result<Vec<Trial>, Failure> {
    let variants = made_up::variants()?;
    // Others for each target, so that all of them together have many.
    let is_ours = |(n, compiled): &(usize, made_up::Compiled)| {
        let always = compiled.name.starts_with("memory") || compiled.name.starts_with("made-up");
        full() || always || n % QUICK_SOURCES == 0
    };
    let compiled = made_up::compiled(variants)?.into_iter().enumerate().filter(is_ours);
    let trials = compiled.map(|(_, compiled)| {
        let made_up::Compiled { name, sources, file, variant } = compiled;
        Trial::test(name, move || run(&sources, &file, variant).map_err(Failed::from))
    });
    Ok(trials.collect())
}

/// All kernels of a source, compiled in one way.
fn run(sources: &Sources, source: &Path, variant: Variant) -> Result<(), Failure> {
    let only = std::env::var("WAVETAP_KERNEL").unwrap_or_default();
    let object = build::object_of(source, variant)?;
    let options = pipeline::Options { probes: vec![ProbeKind::Memory], ..pipeline::Options::default() };
    let mut rewritten = pipeline::rewrite(&object, &options).map_err(|e| format!("rewrite: {e}"))?;
    let report = verify::check_files(&object, &rewritten.bytes).map_err(|e| format!("verify: {e}"))?;
    if let Some((place, finding)) = report.findings.first() {
        return Err(format!("verify: {place}: {finding}"));
    }
    let map = rewritten.maps.pop().ok_or("no map")?;
    let code = CodeObject::parse(&object).map_err(|e| e.to_string())?;
    let image = Image::of(&code).map_err(|e| e.to_string())?;
    let program = Program::of(code.target().ok_or("no target")?, &image);
    let reference = sources.reference(variant.target.wave_size())?;
    let file = source.file_name().unwrap_or_default().to_string_lossy();
    let (mut tally, mut wrong) = (Tally::default(), Vec::new());
    for refused in &map.refused {
        *tally.refused.entry(refused.reason.clone()).or_default() += 1;
    }
    for test in reference.tests.iter().filter(|test| test.file == file && test.runs_on(variant.target.name())) {
        if made_up::miscompiled(&test.name, variant).is_some() || !test.name.contains(&only) {
            continue;
        }
        tally.kernels += 1;
        let Some(index) = map.kernels.iter().position(|kernel| kernel.name == test.name) else { continue };
        tally.measured += 1;
        let subject = Subject {
            object: &object,
            rewritten: &rewritten.bytes,
            map: &map,
            index,
            bodies: program.bodies(),
            test,
            variant,
            buffers: reference.buffers(test)?,
        };
        wrong.extend(subject.compare(&mut tally).err().map(|failure| format!("{}: {failure}", test.name)));
    }
    if let Ok(mut all) = TALLY.lock() {
        all.entry(variant.target.name().to_owned()).or_default().add(tally);
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{variant}:\n{}", wrong.join("\n"))) }
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.kernels += other.kernels;
        self.measured += other.measured;
        self.executions += other.executions;
        self.strict += other.strict;
        self.unordered += other.unordered;
        self.cut_off += other.cut_off;
        for (reason, count) in other.refused {
            *self.refused.entry(reason).or_default() += count;
        }
    }
}

/// Where a wave went with an instruction: its original address, bytes, lanes and their addresses; of memory that lanes
/// have for themselves only which lanes.
type Seen = (u64, AccessedMemory, u32, u64, Vec<u64>);
/// By workgroup and wave.
type Waves = BTreeMap<([u32; 3], u32), Vec<Seen>>;

/// What came of a run.
struct Outcome {
    output: Vec<u8>,
    trace: Vec<AccessRecord>,
    cut_off: bool,
    recorded: Option<DispatchAccesses>,
}

struct Subject<'a> {
    object: &'a [u8],
    rewritten: &'a [u8],
    map: &'a ObjectMap,
    index: usize,
    bodies: &'a [Body],
    test: &'a Test,
    variant: Variant,
    buffers: Buffers,
}

impl Subject<'_> {
    fn compare(&self, tally: &mut Tally) -> Result<(), Failure> {
        let plain = Options { strict: false, fuel: FUEL, threads: 1, accesses: MOST_RECORDS, ..Options::default() };
        let original = self.run(self.object, &plain, false).map_err(|e| format!("the original: {e}"))?;
        let rewritten = self.run(self.rewritten, &plain, true)?;
        if original.cut_off || rewritten.cut_off {
            tally.cut_off += 1;
            return Ok(());
        }
        let originals: HashMap<u64, u64> =
            self.kernel().addresses.iter().map(|pair| (pair.rewritten, pair.original)).collect();
        let of_same_run = self.seen(&rewritten.trace, |address| originals.get(&address).copied());
        let recorded = self.recorded(&rewritten)?;
        tally.executions += recorded.values().map(|wave| wave.len() as u64).sum::<u64>();
        same(&of_same_run, &recorded)?;
        if !UNORDERED.contains(&self.test.name.as_str()) {
            self.compare_cut_off(&plain, &rewritten, &recorded)?;
            self.compare_sampled(&plain, &recorded)?;
        }
        let of_original = self.seen(&original.trace, Some);
        let rule = Rule::parse(&self.test.compare)?;
        for seed in 0..seeds() {
            let strict = Options { strict: true, seed, accesses: 0, ..plain.clone() };
            let outcome = match self.run(self.rewritten, &strict, true) {
                Ok(outcome) => outcome,
                // Where the original does not run, either, nothing is to be compared.
                Err(_) if self.run(self.object, &strict, false).is_err() => continue,
                Err(failure) => return Err(format!("strict, seed {seed}: {failure}")),
            };
            tally.strict += 1;
            rule.check(&outcome.output, &self.buffers.expected).map_err(|e| format!("strict, seed {seed}: {e}"))?;
            if let Err(difference) = same(&of_original, &self.recorded(&outcome)?) {
                if !UNORDERED.contains(&self.test.name.as_str()) && of_original == of_same_run {
                    return Err(format!("strict, seed {seed}: {difference}"));
                }
                tally.unordered += 1;
            }
        }
        Ok(())
    }

    /// With room for a few executions of each wave: these are the first ones, and all others are counted.
    fn compare_cut_off(&self, options: &Options, whole: &Outcome, of_whole: &Waves) -> Result<(), Failure> {
        let lanes = self.kernel().after.wave_size;
        let items: u32 = self.test.group.iter().map(|axis| u32::from(*axis)).product();
        let groups: u64 =
            (0..3).map(|axis| u64::from(self.test.grid[axis].div_ceil(self.test.group[axis].into()))).product();
        let wave = u64::from(self.kernel().record_bytes() + CURSOR + FEW_SLOTS * slot_bytes(lanes));
        let limit = groups * (u64::from(items.div_ceil(lanes)) * wave + 4);
        let cut_off = self.run_within(self.rewritten, options, Some((limit, WorkgroupSample::All)))?;
        let recorded = self.recorded(&cut_off)?;
        for (wave, all) in of_whole {
            let some = recorded.get(wave).map_or(&[][..], Vec::as_slice);
            if !all.starts_with(some) {
                return Err(format!("with {FEW_SLOTS} slots, {wave:?} recorded others than the first: {some:x?}"));
            }
        }
        let count = |outcome: &Outcome| -> Vec<(u64, u64)> {
            let waves = outcome.recorded.iter().flat_map(|recorded| &recorded.waves);
            waves.map(|wave| (wave.accesses.len() as u64, wave.dropped)).collect()
        };
        let expected = |&(all, _): &(u64, u64)| (all.min(FEW_SLOTS.into()), all.saturating_sub(FEW_SLOTS.into()));
        let (found, expected) = (count(&cut_off), count(whole).iter().map(expected).collect::<Vec<_>>());
        if found == expected {
            Ok(())
        } else {
            Err(format!("with {FEW_SLOTS} slots, waves recorded and dropped {found:?}, not {expected:?}"))
        }
    }

    /// With each other workgroup sampled: its waves record what they do where all are.
    fn compare_sampled(&self, options: &Options, of_whole: &Waves) -> Result<(), Failure> {
        let sample = WorkgroupSample::EachNth(2);
        let sampled = self.run_within(self.rewritten, options, Some((MEMORY_LIMIT, sample)))?;
        let groups: [u32; 2] = std::array::from_fn(|axis| self.test.grid[axis].div_ceil(self.test.group[axis].into()));
        let is_sampled = |[x, y, z]: [u32; 3]| ((z * groups[1] + y) * groups[0] + x).is_multiple_of(2);
        let expected = of_whole.iter().filter(|((workgroup, _), _)| is_sampled(*workgroup));
        let expected: Waves = expected.map(|(wave, seen)| (*wave, seen.clone())).collect();
        same(&expected, &self.recorded(&sampled)?).map_err(|failure| format!("each other workgroup: {failure}"))
    }

    fn kernel(&self) -> &KernelMap {
        &self.map.kernels[self.index]
    }

    /// Runs the kernel; in a rewritten object all its workgroups record.
    fn run(&self, object: &[u8], options: &Options, records: bool) -> Result<Outcome, Failure> {
        self.run_within(object, options, records.then_some((MEMORY_LIMIT, WorkgroupSample::All)))
    }

    /// [`Subject::run`], with so much memory for records of these workgroups, if there are any.
    fn run_within(
        &self,
        object: &[u8],
        options: &Options,
        records: Option<(u64, WorkgroupSample)>,
    ) -> Result<Outcome, Failure> {
        let text = |e: wavetap::error::Error| e.to_string();
        let code = CodeObject::parse(object).map_err(text)?;
        let kernel = code.kernel(&self.test.name).ok_or("the kernel is not there")?;
        let metadata = kernel.metadata.as_ref().ok_or("no metadata")?;
        let target = Target::by_name(self.variant.target.name()).unwrap_or(self.variant.target);
        let mut device = Device::new(target, options.clone());
        let mut allocate = |bytes: &[u8]| -> Result<u64, Failure> {
            let address = device.malloc(bytes.len().max(4) as u64, 256).map_err(text)?;
            device.write(address, bytes).map_err(text)?;
            Ok(address)
        };
        let (input, output) = (allocate(&self.buffers.input)?, allocate(&self.buffers.start)?);
        let kernarg_address = allocate(&launch::kernarg(kernel, self.test, input, output)?)?;
        let loaded = device.load(object).map_err(text)?;
        let mut begun = None;
        if let Some((memory_limit, sample)) = records {
            let options = session::Options {
                sample,
                memory_limit,
                ..session::Options::new(Overlap::Concurrent, Records::PerWave)
            };
            let mut session = Session::new(Collector::new(Backend::Emulator, false), options);
            let memory = &mut EmulatedMemory(&mut device);
            let address_of = |name: &str| loaded.symbols.get(name).map(|symbol| symbol.address);
            let attached = session.attach(memory, &code, address_of).map_err(text)?.ok_or("no control block")?;
            let workgroup = self.test.group.map(u32::from);
            let info = DispatchInfo { kernel: self.index as u32, grid: self.test.grid, workgroup, ordinal: 7 };
            let ticket = session.begin_dispatch(memory, attached, &info).map_err(|e| e.to_string())?;
            begun = Some((session, ticket));
        }
        let dispatch = Dispatch {
            kernel_object: loaded.kernel(&self.test.name).ok_or("the descriptor is not loaded")?,
            grid: self.test.grid,
            workgroup: self.test.group,
            private_segment_size: launch::scratch_bytes(kernel),
            group_segment_size: metadata.group_segment_fixed_size as u32 + self.test.dynamic,
            kernarg_address,
            dispatch_id: 0,
        };
        let stats = device.dispatch(&dispatch).map_err(|fault| fault.to_string())?;
        let mut found = vec![0; self.buffers.start.len()];
        device.read(output, &mut found).map_err(text)?;
        let mut recorded = None;
        if let Some((mut session, ticket)) = begun {
            session.end_dispatch(&mut EmulatedMemory(&mut device), ticket, None).map_err(text)?;
            let mut profile = session.finish();
            let counted = profile.kernels.first().map_or(0, |kernel| kernel.waves);
            if counted != stats.waves {
                return Err(format!("the profile has {counted} waves, {} ran", stats.waves));
            }
            recorded = profile.accesses.pop();
        }
        let dropped = recorded.iter().flat_map(|recorded| &recorded.waves).any(|wave| wave.dropped > 0);
        let cut_off = stats.accesses.dropped > 0 || dropped;
        Ok(Outcome { output: found, trace: stats.accesses.records, cut_off, recorded })
    }

    /// Whether an access is measured.
    fn is_measured(&self, address: u64) -> bool {
        self.kernel().sites.iter().any(|site| site.address == address)
    }

    fn inst(&self, address: u64) -> Option<&wavetap::isa::Inst> {
        self.bodies.iter().find_map(|body| Some(body.inst(body.at(address)?)))
    }

    /// What the emulator saw of measured accesses.
    fn seen(&self, trace: &[AccessRecord], original: impl Fn(u64) -> Option<u64>) -> Waves {
        let mut waves = Waves::new();
        for record in trace {
            let Some(address) = original(record.place.address) else { continue };
            if !self.is_measured(address) {
                continue;
            }
            let mut addresses = record.addresses.clone();
            if record.memory == AccessedMemory::Scratch {
                addresses.clear();
            }
            let seen = (address, record.memory, record.bytes, record.lanes, addresses);
            waves.entry((record.workgroup, record.wave)).or_default().push(seen);
        }
        waves
    }

    /// What was recorded, in the same form.
    fn recorded(&self, outcome: &Outcome) -> Result<Waves, Failure> {
        let recorded = outcome.recorded.as_ref().ok_or("nothing was recorded")?;
        let mut waves = Waves::new();
        for wave in &recorded.waves {
            let mut found = Vec::new();
            for access in &wave.accesses {
                found.extend(self.resolved(access, recorded)?);
            }
            if !found.is_empty() {
                waves.insert((wave.workgroup, wave.wave), found);
            }
        }
        Ok(waves)
    }

    fn resolved(&self, access: &RecordedAccess, dispatch: &DispatchAccesses) -> Result<Vec<Seen>, Failure> {
        let site = self.kernel().sites.get(access.site as usize).ok_or("no such site")?;
        let inst = self.inst(site.address).ok_or("no such instruction")?;
        if !self.is_measured(site.address) {
            return Ok(Vec::new());
        }
        let resolved = resolve(self.variant.target, inst, access, dispatch);
        let resolved = resolved.ok_or_else(|| format!("{:#x} is not resolved", site.address))?;
        let seen = |access: ResolvedAccess| {
            let (memory, addresses) = match access.space {
                Space::Lds => (AccessedMemory::Lds, access.addresses),
                Space::Scratch => (AccessedMemory::Scratch, Vec::new()),
                _ => (AccessedMemory::Global, access.addresses),
            };
            (site.address, memory, access.bytes, access.lanes, addresses)
        };
        Ok(resolved.into_iter().map(seen).collect())
    }
}

/// Whether the same was seen and recorded; says what differs first.
fn same(seen: &Waves, recorded: &Waves) -> Result<(), Failure> {
    let all: std::collections::BTreeSet<_> = seen.keys().chain(recorded.keys()).collect();
    let none = Vec::new();
    for wave in all {
        let (seen, recorded) = (seen.get(wave).unwrap_or(&none), recorded.get(wave).unwrap_or(&none));
        let differs = (0..seen.len().max(recorded.len())).find(|at| seen.get(*at) != recorded.get(*at));
        if let Some(at) = differs {
            return Err(format!(
                "workgroup {:?} wave {}: access {at} of {} and {} was\n  {:x?}, recorded was\n  {:x?}",
                wave.0,
                wave.1,
                seen.len(),
                recorded.len(),
                seen.get(at),
                recorded.get(at)
            ));
        }
    }
    Ok(())
}

fn seeds() -> u64 {
    if full() { 10 } else { 2 }
}
