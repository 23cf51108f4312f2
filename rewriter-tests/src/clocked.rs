//! Kernels with a probe that reads clocks, and when the emulator saw which of their instructions executed: what the
//! tests of such probes have in common.

use std::collections::BTreeMap;

use wavetap::code_object::CodeObject;
use wavetap::collect::session::{self, Overlap, Records};
use wavetap::emulator::{LatencyOverride, Options, Timing, Trace, Visit};
use wavetap::isa::{self, Inst, Target};
use wavetap::pipeline::probe::ProbeRef;
use wavetap::pipeline::{self, Counters};
use wavetap::profile::file::Profile;
use wavetap::profile::map::{KernelMap, ObjectMap, Refused};
use wavetap::verify;

use crate::dispatch::{self, Collecting};
use crate::kernels::build::Variant;
use crate::kernels::compare::Rule;
use crate::kernels::{Buffers, Test, launch};
use crate::{Failure, chosen, full, made_up, tally};

/// A kernel that executes more than this many wave-instructions does not end by itself.
pub const FUEL: u64 = 30_000_000;
/// The quick run takes every so manyth source.
const QUICK_SOURCES: usize = 9;
/// Targets of the quick run beside those of every test: with other clocks, wave sizes or hazards.
const FURTHER: [(&str, u32); 5] = [("gfx950", 64), ("gfx1010", 32), ("gfx1030", 64), ("gfx1150", 64), ("gfx1200", 64)];
/// Cycles after which a clock of 20 bits shows the same again.
pub const WRAP: u64 = 1 << 20;
/// Why no kernel may be refused: what was written for it could not be, or the verifier does not accept it.
const WRONG_REASONS: [&str; 3] = ["malformed", "unverified", "unsupported_object"];

/// The sources that tests of clocks take: in the quick run some, one level of optimisation, a target of each kind.
///
/// # Errors
/// If there is no compiler, or there are no sources.
pub fn compiled() -> Result<Vec<made_up::Compiled>, Failure> {
    let mut variants = made_up::variants()?;
    if !full() {
        let further = FURTHER.iter().filter(|(name, _)| chosen(name));
        variants.extend(further.filter_map(|&(name, lanes)| {
            let target = Target::by_name(name)?.with_wave_size(lanes)?;
            Some(Variant { target, level: "O1", version: 5 })
        }));
    }
    let is_ours = |(n, compiled): &(usize, made_up::Compiled)| {
        full() || compiled.name.starts_with("made-up") || compiled.name.starts_with("buffers") || n % QUICK_SOURCES == 0
    };
    Ok(made_up::compiled(variants)?.into_iter().enumerate().filter(is_ours).map(|(_, compiled)| compiled).collect())
}

/// An object rewritten with a probe.
pub struct Rewritten {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What it says of itself.
    pub map: ObjectMap,
    /// Whether each wave has counters of its own.
    pub per_wave: bool,
}

/// An instruction of rewritten code.
pub struct Rewrote {
    /// The original one's address, if it is one.
    pub original: Option<u64>,
    /// What it is.
    pub inst: Inst,
    /// As it is printed.
    pub text: String,
}

impl Rewritten {
    /// Rewrites an object with a probe.
    ///
    /// # Errors
    /// If it cannot be, or the verifier finds something.
    pub fn of(object: &[u8], probe: ProbeRef, per_wave: bool) -> Result<Rewritten, Failure> {
        Rewritten::with(object, probe, Counters::default(), per_wave)
    }

    /// [`Rewritten::of`] with counters in a place.
    ///
    /// # Errors
    /// As of that.
    pub fn with(object: &[u8], probe: ProbeRef, counters: Counters, per_wave: bool) -> Result<Rewritten, Failure> {
        let probes = vec![probe];
        let options = pipeline::Options { probes, counters, single_waves: per_wave, ..pipeline::Options::default() };
        let mut rewritten = pipeline::rewrite(object, &options).map_err(|e| format!("rewrite: {e}"))?;
        let report = verify::check_files(object, &rewritten.bytes).map_err(|e| format!("verify: {e}"))?;
        if let Some((place, finding)) = report.findings.first() {
            return Err(format!("verify: {place}: {finding}"));
        }
        let map = rewritten.maps.pop().ok_or("no map")?;
        Ok(Rewritten { bytes: rewritten.bytes, map, per_wave })
    }

    /// Counts why kernels were refused. Gives what is wrong: that one was refused for a reason that is none.
    #[must_use]
    pub fn refusals(&self, counts: &mut BTreeMap<String, u64>) -> Vec<Failure> {
        tally::add_counts(counts, self.map.refused.iter().map(|refused| (refused.reason.clone(), 1)));
        let is_wrong = |refused: &&Refused| WRONG_REASONS.contains(&refused.reason.as_str());
        let wrong = self.map.refused.iter().filter(is_wrong);
        wrong.map(|refused| format!("{}: refused: {}", refused.name, refused.detail)).collect()
    }

    /// The instructions of a kernel's new code before the last original one, by address.
    ///
    /// # Errors
    /// If they cannot be decoded.
    pub fn code(&self, kernel: &KernelMap, target: Target) -> Result<BTreeMap<u64, Rewrote>, Failure> {
        let code = CodeObject::parse(&self.bytes).map_err(|e| e.to_string())?;
        let originals: BTreeMap<u64, u64> =
            kernel.addresses.iter().map(|pair| (pair.rewritten, pair.original)).collect();
        let (first, last) = (originals.keys().next(), originals.keys().next_back());
        let (Some(entry), Some(&last)) = (code.kernel(&kernel.name).map(|kernel| kernel.entry), last) else {
            return Err("the kernel has no code".to_owned());
        };
        let mut at = entry.min(*first.unwrap_or(&entry));
        let mut found = BTreeMap::new();
        while at < last {
            let bytes =
                code.file_offset(at, 4).and_then(|offset| self.bytes.get(offset as usize..)).ok_or("no code")?;
            let inst = isa::decode(target, bytes).map_err(|e| format!("{at:#x}: {e}"))?;
            let (text, size) = (isa::print(target, &inst), u64::from(inst.size));
            found.insert(at, Rewrote { original: originals.get(&at).copied(), inst, text });
            at += size;
        }
        Ok(found)
    }
}

/// Whether an instruction, as it is printed, reads the shader's clock: of two halves the low one.
#[must_use]
pub fn reads_clock(text: &str) -> bool {
    ["s_memtime ", "s_get_shader_cycles_u64 "].iter().any(|name| text.starts_with(name))
        || text.contains("SHADER_CYCLES)")
        || text.contains("SHADER_CYCLES_LO)")
        || text.contains("HW_REG_SHADER_CYCLES,")
        || text.contains("HW_REG_SHADER_CYCLES_LO,")
}

/// A kernel of a rewritten object that is run.
pub struct Subject<'a> {
    /// The object.
    pub rewritten: &'a Rewritten,
    /// The kernel.
    pub test: &'a Test,
    /// How it was compiled.
    pub variant: Variant,
    /// Its input, and what it should write.
    pub buffers: &'a Buffers,
}

/// A wave: its workgroup, and its index in it.
pub type Wave = ([u32; 3], u32);

/// What came of a run.
pub struct Outcome {
    /// What the kernel wrote.
    pub output: Vec<u8>,
    /// When waves executed the instructions that were watched.
    pub visits: Vec<Visit>,
    /// The emulator's own counts.
    pub trace: Trace,
    /// Waves that ran.
    pub waves: u64,
    /// What was counted.
    pub profile: Profile,
}

impl Outcome {
    /// The visits of each wave, in their order.
    ///
    /// # Errors
    /// If a wave has none.
    pub fn by_wave(&self) -> Result<BTreeMap<Wave, Vec<Visit>>, Failure> {
        let mut by_wave: BTreeMap<Wave, Vec<Visit>> = BTreeMap::new();
        for visit in &self.visits {
            by_wave.entry((visit.workgroup, visit.wave)).or_default().push(visit.clone());
        }
        if by_wave.len() as u64 != self.waves {
            return Err(format!("{} waves have stamps, {} ran", by_wave.len(), self.waves));
        }
        Ok(by_wave)
    }

    /// The counters of one wave, by site.
    ///
    /// # Errors
    /// If it has none.
    pub fn of_wave(&self, kernel: &KernelMap, wave: Wave) -> Result<Vec<Vec<u64>>, Failure> {
        let found = self.profile.waves.iter().find(|found| (found.workgroup, found.wave) == wave);
        let mut counters = &found.ok_or_else(|| format!("{wave:?} has no counters of its own"))?.counters[..];
        let mut sites = Vec::new();
        for site in &kernel.sites {
            let (these, rest) = counters.split_at(site.kind.fields.len());
            sites.push(these.to_vec());
            counters = rest;
        }
        Ok(sites)
    }
}

/// Counters by site before anything is counted.
#[must_use]
pub fn nothing(kernel: &KernelMap) -> Vec<Vec<u64>> {
    let nothing = |site: &wavetap::profile::map::Site| -> Vec<u64> {
        site.kind.fields.iter().map(|field| field.merge.identity()).collect()
    };
    kernel.sites.iter().map(nothing).collect()
}

/// Adds counters by site to others.
///
/// # Errors
/// If a sum has more than 64 bits.
pub fn add(kernel: &KernelMap, all: &mut [Vec<u64>], these: &[Vec<u64>]) -> Result<(), Failure> {
    for ((all, these), site) in all.iter_mut().zip(these).zip(&kernel.sites) {
        for ((sum, value), field) in all.iter_mut().zip(these).zip(&*site.kind.fields) {
            *sum = field.merge.combine(*sum, *value).ok_or("a sum of more than 64 bits")?;
        }
    }
    Ok(())
}

/// A run with modelled time: what it is called, of which object, with which latencies.
pub type Modelled<'a> = (&'static str, &'a Rewritten, Vec<LatencyOverride>);

/// A kernel that is run in several ways.
#[derive(Clone, Copy)]
pub struct Kernel<'a> {
    /// The original object.
    pub object: &'a [u8],
    /// The kernel.
    pub test: &'a Test,
    /// How it was compiled.
    pub variant: Variant,
    /// Its input, and what it should write.
    pub buffers: &'a Buffers,
}

impl Kernel<'_> {
    /// Compares runs with modelled time, then runs in strict mode with one seed after the other, each with the next of
    /// these objects; in the quick run each object has a seed. `compare` gives a run's output, which is to be right.
    /// Gives how many strict runs were compared: those that the original does not end well in, either, are not.
    ///
    /// # Errors
    /// What `compare` finds, or a wrong output.
    pub fn compare<'r>(
        &self,
        modelled: Vec<Modelled<'r>>,
        strict: &[&'r Rewritten],
        mut compare: impl FnMut(&Subject<'_>, &Options) -> Result<Vec<u8>, Failure>,
    ) -> Result<u64, Failure> {
        let Kernel { object, test, variant, buffers } = *self;
        let plain = Options { strict: false, fuel: FUEL, threads: 1, trace: true, ..Options::default() };
        for (what, rewritten, latencies) in modelled {
            let timing = Some(Timing { latencies, ..Timing::default() });
            let options = Options { timing, ..plain.clone() };
            let subject = Subject { rewritten, test, variant, buffers };
            compare(&subject, &options).map_err(|failure| format!("{what}: {failure}"))?;
        }
        let rule = Rule::parse(&test.compare)?;
        let seeds = if full() { 10 } else { strict.len() };
        let mut compared = 0;
        for (seed, rewritten) in (0..).zip(strict.iter().copied().cycle().take(seeds)) {
            let options = Options { strict: true, seed, ..plain.clone() };
            let found = match compare(&Subject { rewritten, test, variant, buffers }, &options) {
                Ok(found) => found,
                Err(_) if launch::run(object, variant.target, test, buffers, &options).is_err() => continue,
                Err(failure) => return Err(format!("strict, seed {seed}: {failure}")),
            };
            compared += 1;
            rule.check(&found, &buffers.expected).map_err(|e| format!("strict, seed {seed}: {e}"))?;
        }
        Ok(compared)
    }
}

impl Subject<'_> {
    /// The kernel's index and what is said of it.
    ///
    /// # Errors
    /// If it was not rewritten.
    pub fn kernel(&self) -> Result<(u32, &KernelMap), Failure> {
        let mut kernels = (0..).zip(&self.rewritten.map.kernels);
        kernels.find(|(_, kernel)| kernel.name == self.test.name).ok_or_else(|| "it is not measured".to_owned())
    }

    /// Runs it.
    ///
    /// # Errors
    /// If it cannot be, or does not end well.
    pub fn run(&self, options: &Options) -> Result<Outcome, Failure> {
        let Rewritten { bytes, per_wave, .. } = self.rewritten;
        let launch = launch::of_test(self.test, self.buffers, options.fuel);
        let collecting = Collecting {
            kernel: self.kernel()?.0,
            options: session::Options::new(Overlap::Concurrent, Records::PerWave),
            per_wave: *per_wave,
        };
        let ran = dispatch::run(bytes, self.variant.target, &launch, options, Some(collecting));
        let mut ran = ran.map_err(|stopped| stopped.to_string())?;
        let profile = ran.take_profile().ok_or("no profile")?;
        let output = ran.buffers.pop().ok_or("no output")?;
        let trace = ran.stats.trace.ok_or("no trace")?;
        Ok(Outcome { output, visits: ran.stats.visits, trace, waves: ran.stats.waves, profile })
    }
}
