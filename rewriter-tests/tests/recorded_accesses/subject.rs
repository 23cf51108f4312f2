//! A kernel, run as compiled and rewritten with the memory probe.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use rewriter_tests::Failure;
use rewriter_tests::dispatch::{self, Collecting, FUEL_FACTOR, Launch, Stopped};
use rewriter_tests::kernels::compare::Rule;
use wavetap::collect::session::{self, Overlap, Records, WorkgroupSample};
use wavetap::emulator::{AccessRecord, AccessedMemory, Options, Visit};
use wavetap::isa::{Inst, Target};
use wavetap::kernel::Body;
use wavetap::memory::{ResolvedAccess, Space, resolve};
use wavetap::pipeline::{self, Selection, probe};
use wavetap::profile::accesses::{CURSOR, DispatchAccesses, slot_bytes};
use wavetap::profile::map::{KernelMap, ObjectMap};
use wavetap::verify;

use crate::Tally;

/// Accesses of a dispatch that the emulator keeps; dispatches with more are not compared.
const MOST_RECORDS: usize = 400_000;
/// Device memory for what is recorded.
const MEMORY_LIMIT: u64 = 1 << 30;
/// Slots of a wave where there are to be too few.
const FEW_SLOTS: u32 = 3;
/// Of so many workgroups one is sampled, where not all are.
const SAMPLED: u32 = 2;
/// Seeds that show whether the original's waves may be run in any order.
const OTHER_SEEDS: u64 = 200;

/// An object rewritten with the memory probe.
pub struct Rewritten {
    bytes: Vec<u8>,
    pub map: ObjectMap,
}

impl Rewritten {
    /// Rewrites and verifies an object: these kernels, or all.
    pub fn of(object: &[u8], kernels: &[String]) -> Result<Rewritten, Failure> {
        let selection = Selection { kernels: kernels.to_vec(), ..Selection::default() };
        let options = pipeline::Options { probes: vec![probe::MEMORY], selection, ..pipeline::Options::default() };
        let mut rewritten = pipeline::rewrite(object, &options).map_err(|e| format!("rewrite: {e}"))?;
        let report = verify::check_files(object, &rewritten.bytes).map_err(|e| format!("verify: {e}"))?;
        if let Some((place, finding)) = report.findings.first() {
            return Err(format!("verify: {place}: {finding}"));
        }
        Ok(Rewritten { map: rewritten.maps.pop().ok_or("no map")?, bytes: rewritten.bytes })
    }

    /// Where in the map a kernel is, if it is measured.
    pub fn kernel(&self, name: &str) -> Option<usize> {
        self.map.kernels.iter().position(|kernel| kernel.name == name)
    }
}

/// What the output must be.
pub enum Output<'a> {
    /// What the CPU made, in the last buffer.
    Expected(Rule, &'a [u8]),
    /// What the original leaves in all buffers.
    AsOriginal,
}

pub struct Subject<'a> {
    pub object: &'a [u8],
    pub rewritten: &'a Rewritten,
    /// The kernel, by its place in the map.
    pub index: usize,
    /// The functions of the object.
    pub bodies: &'a [Body],
    pub target: Target,
    pub launch: Launch<'a>,
    pub output: Output<'a>,
}

/// A wave, by its workgroup and its number there.
type WaveId = ([u32; 3], u32);
/// Where a wave went with an instruction: its original address, bytes, lanes and their addresses; of memory that lanes
/// have for themselves only which lanes.
type Seen = (u64, AccessedMemory, u32, u64, Vec<u64>);
/// An execution: the original address of the instruction, and the lanes.
type Execution = (u64, u64);

/// What came of a run.
struct Run {
    buffers: Vec<Vec<u8>>,
    trace: Vec<AccessRecord>,
    visits: Vec<Visit>,
    cut_off: bool,
    recorded: Option<DispatchAccesses>,
}

impl Run {
    fn is_cut_off(&self) -> bool {
        let mut waves = self.recorded.iter().flat_map(|recorded| &recorded.waves);
        self.cut_off || waves.any(|wave| wave.dropped > 0)
    }
}

/// What a run recorded that was as the emulator saw it.
struct Checked {
    waves: BTreeMap<WaveId, Vec<Seen>>,
    /// Instructions with executions whose addresses do not follow from what was recorded.
    unresolved: BTreeSet<u64>,
}

impl Subject<'_> {
    /// Compares what is recorded with what the emulator sees, with these seeds in strict mode.
    pub fn compare(&self, seeds: Range<u64>, tally: &mut Tally) -> Result<(), Failure> {
        let tolerated = self.launch.tolerated;
        let plain = Options { strict: false, threads: 1, accesses: MOST_RECORDS, tolerated, ..Options::default() };
        let all = (MEMORY_LIMIT, WorkgroupSample::All);
        let original = self.original(&plain).map_err(|e| format!("the original: {e}"))?;
        let whole = self.record(&plain, all).map_err(|e| e.to_string())?;
        if original.is_cut_off() || whole.is_cut_off() {
            tally.cut_off += 1;
            return Ok(());
        }
        tally.executions +=
            whole.recorded.iter().flat_map(|all| &all.waves).map(|w| w.accesses.len() as u64).sum::<u64>();
        self.check(&whole, None, |_| true, tally)?;
        let few = self.record(&plain, (self.few_slots(), WorkgroupSample::All)).map_err(|e| e.to_string())?;
        let outcome = self.check(&few, Some(FEW_SLOTS), |_| true, tally);
        outcome.map_err(|e| format!("with {FEW_SLOTS} slots: {e}"))?;
        let sampled = self.record(&plain, (MEMORY_LIMIT, WorkgroupSample::EachNth(SAMPLED)));
        let [columns, rows, _] = self.launch.workgroups();
        let is_sampled = |[x, y, z]: [u32; 3]| ((z * rows + y) * columns + x).is_multiple_of(SAMPLED);
        let outcome = self.check(&sampled.map_err(|e| e.to_string())?, None, is_sampled, tally);
        outcome.map_err(|e| format!("each other workgroup: {e}"))?;
        for seed in seeds {
            let strict = Options { strict: true, seed, ..plain.clone() };
            self.compare_strict(&strict, &original, tally).map_err(|e| format!("strict, seed {seed}: {e}"))?;
        }
        Ok(())
    }

    /// Compares a strict run with its own trace and with the original.
    fn compare_strict(&self, strict: &Options, original: &Run, tally: &mut Tally) -> Result<(), Failure> {
        let run = match self.record(strict, (MEMORY_LIMIT, WorkgroupSample::All)) {
            Ok(run) => run,
            // Where the original does not run, either, nothing is to be compared.
            Err(_) if self.original(strict).is_err() => {
                tally.faulted += 1;
                return Ok(());
            }
            Err(stopped) => return Err(stopped.to_string()),
        };
        tally.strict += 1;
        if run.is_cut_off() {
            tally.cut_off += 1;
            return Ok(());
        }
        let Checked { waves, unresolved } = self.check(&run, None, |_| true, tally)?;
        let mut as_original = same(&self.seen(&original.trace, Some, &unresolved), &waves);
        match &self.output {
            Output::Expected(rule, expected) => {
                rule.check(run.buffers.last().ok_or("no output")?, expected)?;
            }
            Output::AsOriginal => {
                let differs = original.buffers.iter().zip(&run.buffers).position(|(a, b)| a != b);
                as_original = as_original.and(differs.map_or(Ok(()), |n| Err(format!("buffer {n} differs"))));
            }
        }
        if let Err(difference) = as_original {
            if !self.depends_on_order(strict, original) {
                return Err(format!("otherwise than the original, with whatever seed: {difference}"));
            }
            tally.unordered += 1;
        }
        Ok(())
    }

    /// Whether the original itself accesses something else, or leaves something else, in another order of its waves.
    fn depends_on_order(&self, strict: &Options, original: &Run) -> bool {
        let none = BTreeSet::new();
        let seen = self.seen(&original.trace, Some, &none);
        (1..=OTHER_SEEDS).any(|n| {
            let other = self.original(&Options { seed: strict.seed + 1000 * n, ..strict.clone() });
            // With output that a rule is for, what it must be is known.
            let leaves = |other: &Run| matches!(self.output, Output::AsOriginal) && other.buffers != original.buffers;
            other.is_ok_and(|other| leaves(&other) || same(&seen, &self.seen(&other.trace, Some, &none)).is_err())
        })
    }

    /// Whether what was recorded is what the emulator saw in the same run: where there is room for so many executions
    /// of each wave, the first ones, and the others are counted; of the workgroups that are sampled.
    fn check(
        &self,
        run: &Run,
        slots: Option<u32>,
        is_sampled: impl Fn([u32; 3]) -> bool,
        tally: &mut Tally,
    ) -> Result<Checked, Failure> {
        let recorded = run.recorded.as_ref().ok_or("nothing was recorded")?;
        let originals: BTreeMap<u64, u64> =
            self.kernel().addresses.iter().map(|pair| (pair.rewritten, pair.original)).collect();
        let mut executed: BTreeMap<WaveId, Vec<Execution>> = BTreeMap::new();
        for visit in run.visits.iter().filter(|visit| visit.exec != 0 && is_sampled(visit.workgroup)) {
            let address = originals.get(&visit.place.address).ok_or("a visit of no instruction")?;
            executed.entry((visit.workgroup, visit.wave)).or_default().push((*address, visit.exec));
        }
        let (mut waves, mut unresolved) = (BTreeMap::new(), BTreeSet::new());
        for wave in &recorded.waves {
            let id = (wave.workgroup, wave.wave);
            let executed = executed.remove(&id).unwrap_or_default();
            let room = slots.map_or(executed.len(), |slots| executed.len().min(slots as usize));
            let sites = wave.accesses.iter().map(|access| self.kernel().sites.get(access.site as usize));
            let sites = sites.collect::<Option<Vec<_>>>().ok_or("no such site")?;
            let found = sites.iter().zip(&wave.accesses).map(|(site, access)| (site.address, access.lanes));
            let found: Vec<Execution> = found.collect();
            if found != executed[..room] || wave.dropped != (executed.len() - room) as u64 {
                return Err(format!(
                    "{id:?}: executed were {executed:x?}, recorded {found:x?}, and {} dropped",
                    wave.dropped
                ));
            }
            let mut seen: Vec<Seen> = Vec::new();
            for (site, access) in sites.iter().zip(&wave.accesses) {
                let inst = self.inst(site.address).ok_or("no such instruction")?;
                match resolve(self.target, inst, access, recorded) {
                    Some(resolved) => seen.extend(resolved.into_iter().map(|access| as_seen(site.address, access))),
                    None => {
                        tally.unresolved += 1;
                        unresolved.insert(site.address);
                    }
                }
            }
            waves.insert(id, seen);
        }
        if let Some((wave, executed)) = executed.first_key_value() {
            return Err(format!("{wave:?} recorded nothing, executed were {executed:x?}"));
        }
        for seen in waves.values_mut() {
            seen.retain(|(address, _, _, lanes, _)| !unresolved.contains(address) && *lanes != 0);
        }
        waves.retain(|_, seen| !seen.is_empty());
        let mut expected = self.seen(&run.trace, |address| originals.get(&address).copied(), &unresolved);
        expected.retain(|(workgroup, _), _| is_sampled(*workgroup));
        if slots.is_some() {
            // How many there are was compared.
            for (wave, expected) in &mut expected {
                expected.truncate(waves.get(wave).map_or(0, Vec::len));
            }
            expected.retain(|_, seen| !seen.is_empty());
        }
        same(&expected, &waves)?;
        Ok(Checked { waves, unresolved })
    }

    /// Memory in which there is room for [`FEW_SLOTS`] of each wave.
    fn few_slots(&self) -> u64 {
        let lanes = self.kernel().after.wave_size;
        let items: u32 = self.launch.group.iter().map(|axis| u32::from(*axis)).product();
        let groups: u64 = self.launch.workgroups().into_iter().map(u64::from).product();
        let wave = u64::from(self.kernel().record_bytes() + CURSOR + FEW_SLOTS * slot_bytes(lanes));
        groups * (u64::from(items.div_ceil(lanes)) * wave + 4)
    }

    fn kernel(&self) -> &KernelMap {
        &self.rewritten.map.kernels[self.index]
    }

    fn original(&self, options: &Options) -> Result<Run, Stopped> {
        let options = Options { fuel: self.launch.fuel, ..options.clone() };
        let ran = dispatch::run(self.object, self.target, &self.launch, &options, None)?;
        let cut_off = ran.stats.accesses.dropped > 0;
        let (trace, visits) = (ran.stats.accesses.records, ran.stats.visits);
        Ok(Run { buffers: ran.buffers, trace, visits, cut_off, recorded: None })
    }

    /// Runs the rewritten kernel, with so much memory for records of these workgroups.
    fn record(&self, options: &Options, (memory_limit, sample): (u64, WorkgroupSample)) -> Result<Run, Stopped> {
        let is_measured = |address: u64| self.kernel().sites.iter().any(|site| site.address == address);
        let pairs = self.kernel().addresses.iter().filter(|pair| is_measured(pair.original));
        let watched = Arc::new(pairs.map(|pair| pair.rewritten).collect());
        let options = Options { fuel: self.launch.fuel * FUEL_FACTOR, watched, ..options.clone() };
        let of_session = session::Options::new(Overlap::Concurrent, Records::PerWave);
        let of_session = session::Options { sample, memory_limit, ..of_session };
        let collecting = Collecting { kernel: self.index as u32, options: of_session, per_wave: false };
        let mut ran = dispatch::run(&self.rewritten.bytes, self.target, &self.launch, &options, Some(collecting))?;
        let mut profile = ran.take_profile().ok_or("no profile".to_owned())?;
        let counted = profile.kernels.first().map_or(0, |kernel| kernel.waves);
        if counted != ran.stats.waves {
            return Err(format!("the profile has {counted} waves, {} ran", ran.stats.waves).into());
        }
        let cut_off = ran.stats.accesses.dropped > 0;
        let (trace, visits) = (ran.stats.accesses.records, ran.stats.visits);
        Ok(Run { buffers: ran.buffers, trace, visits, cut_off, recorded: profile.accesses.pop() })
    }

    fn inst(&self, address: u64) -> Option<&Inst> {
        self.bodies.iter().find_map(|body| Some(body.inst(body.at(address)?)))
    }

    /// What the emulator saw of measured accesses, but for some.
    fn seen(
        &self,
        trace: &[AccessRecord],
        original: impl Fn(u64) -> Option<u64>,
        without: &BTreeSet<u64>,
    ) -> BTreeMap<WaveId, Vec<Seen>> {
        let measured: BTreeSet<u64> = self.kernel().sites.iter().map(|site| site.address).collect();
        let mut waves: BTreeMap<WaveId, Vec<Seen>> = BTreeMap::new();
        for record in trace {
            let Some(address) = original(record.place.address).filter(|address| measured.contains(address)) else {
                continue;
            };
            if without.contains(&address) {
                continue;
            }
            let is_private = record.memory == AccessedMemory::Scratch;
            let addresses = if is_private { Vec::new() } else { record.addresses.clone() };
            let seen = (address, record.memory, record.bytes, record.lanes, addresses);
            waves.entry((record.workgroup, record.wave)).or_default().push(seen);
        }
        waves
    }
}

fn as_seen(address: u64, access: ResolvedAccess) -> Seen {
    let (memory, addresses) = match access.space {
        Space::Lds => (AccessedMemory::Lds, access.addresses),
        Space::Scratch => (AccessedMemory::Scratch, Vec::new()),
        _ => (AccessedMemory::Global, access.addresses),
    };
    (address, memory, access.bytes, access.lanes, addresses)
}

/// Whether the same was seen and recorded; says what differs first.
fn same(seen: &BTreeMap<WaveId, Vec<Seen>>, recorded: &BTreeMap<WaveId, Vec<Seen>>) -> Result<(), Failure> {
    let all: BTreeSet<_> = seen.keys().chain(recorded.keys()).collect();
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
