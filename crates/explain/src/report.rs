//! The report as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bad_access::{self, BadAccess, UncheckedAccess};
use crate::imbalance::{self, Imbalance};
use crate::launches::{self, Launch, LaunchOccupancy, LaunchTable};
use crate::regions::{self, RegionRow};
use crate::sections::Sections;
use crate::slice::{Chain, KernelSlice, WaitSlice};
use crate::summary::Summary;
use crate::variants::{self, Build, Key};
use wavetap_amdgpu::Target;
use wavetap_profile::file::{Backend, KernelTotals, Origin, Profile, Work};
use wavetap_profile::launches::UncountedDispatches;
use wavetap_profile::map::{CounterMode, Refused, Resources};
use wavetap_profile::time::TimeProfile;

/// Lanes that a wave may have: many targets have both kinds.
const WAVE_SIZES: [u32; 2] = [32, 64];

/// Schema of a report.
pub const REPORT_SCHEMA: &str = "wavetap.report/1";

/// How the run was made, where the profile does not say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunInfo {
    /// Whether the emulator ran in strict mode; none on a GPU or where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    /// The emulator's seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The application's exit code (128 + n after signal n).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the application: `SIGKILL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The pattern of the ranges that alone are reported on, where not all is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Demangled names of kernels that ran for long and had not ended when their process ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<String>,
}

impl RunInfo {
    /// ` while NAME ran`, if kernels were running at the end.
    #[must_use]
    pub fn while_running(&self) -> String {
        if self.running.is_empty() { String::new() } else { format!(" while {} ran", self.running.join(", ")) }
    }
}

/// A report on one profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// [`REPORT_SCHEMA`].
    pub schema: String,
    /// What ran the kernels.
    pub backend: Backend,
    /// Who counted.
    pub origin: Origin,
    /// How the run was made.
    #[serde(flatten)]
    pub run: RunInfo,
    /// The kernels that most went to, and what matters most of each; see [`Report::summarise`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Every way in which kernels were launched; see [`Report::summarise`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_table: Option<LaunchTable>,
    /// Whether the run ended and every dispatch was counted that was to be.
    pub complete: bool,
    /// Whether the run ended.
    #[serde(default)]
    pub ended: bool,
    /// Processes whose counts these are.
    #[serde(default = "wavetap_profile::file::one", skip_serializing_if = "wavetap_profile::file::is_one")]
    pub processes: u32,
    /// Kernels in order of first dispatch.
    pub kernels: Vec<Kernel>,
    /// What was dispatched in which range of the program; empty where it has marked none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<RegionRow>,
    /// How evenly ranks and hosts share what kernels did; empty where the profile keeps neither apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imbalance: Vec<Imbalance>,
    /// Kernels that were left uncounted, and why.
    pub refused: Vec<Refused>,
    /// Dispatches that were not counted, and why.
    #[serde(default)]
    pub uncounted: Vec<UncountedDispatches>,
    /// Modelled time of the same program, uninstrumented, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeProfile>,
}

/// One kernel of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kernel {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Target id.
    pub target: String,
    /// MD5 of the original code object.
    pub object: String,
    /// What tells it from other kernels of its name; null where it is the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// What the just-in-time compiler says that made its code object, where its cache was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// Where the counters lived; null for a trace.
    pub mode: Option<CounterMode>,
    /// Dispatches.
    pub dispatches: u64,
    /// How they were launched; empty where the profile does not say.
    #[serde(default)]
    pub launches: Vec<Launch>,
    /// Waves that ran.
    pub waves: u64,
    /// Waves whose counters are missing.
    pub dropped: u64,
    /// Waves that never reached an epilogue.
    pub unfinished: u64,
    /// Whether waves shared records (nothing is lost; single waves cannot be told apart).
    pub shared_records: bool,
    /// Resources before the rewrite.
    pub before: Option<Resources>,
    /// Resources after it.
    pub after: Option<Resources>,
    /// Functions it may call whose branches are not counted.
    pub uncounted_callees: Vec<String>,
    /// Dynamic work as the emulator saw it.
    pub work: Option<Work>,
    /// What probes measured.
    #[serde(flatten)]
    pub sections: Sections,
    /// Instructions that accessed global memory outside of what was allocated, where that was checked, by address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out_of_bounds: Vec<BadAccess>,
    /// Buffer instructions of which executions were not checked, because of their descriptors, by address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchecked_accesses: Vec<UncheckedAccess>,
    /// Waits and what they wait for, the costliest first; empty where the original code was not at hand. *Predicted*,
    /// never measured.
    #[serde(default)]
    pub waits: Vec<WaitSlice>,
    /// Why it waits, the costliest cause first. *Predicted*, like the waits.
    #[serde(default)]
    pub chains: Vec<Chain>,
}

impl Report {
    /// A report on `profile`, without waits: see [`Kernel::waits`].
    #[must_use]
    pub fn new(profile: &Profile, run: RunInfo) -> Report {
        let mut report = Report {
            schema: REPORT_SCHEMA.to_owned(),
            backend: profile.backend,
            origin: profile.origin,
            run,
            summary: None,
            launch_table: None,
            complete: profile.complete,
            ended: profile.has_ended(),
            processes: profile.processes,
            kernels: profile
                .kernels
                .iter()
                .enumerate()
                .map(|(place, totals)| Kernel::new(profile, place, totals))
                .collect(),
            regions: regions::rows(profile),
            imbalance: imbalance::of(profile),
            refused: profile.refused.clone(),
            uncounted: profile.uncounted.clone(),
            time: None,
        };
        report.set_builds(&BTreeMap::new());
        report
    }

    /// Gives it the modelled time of the same program, uninstrumented: before the summary is made.
    pub fn set_time(&mut self, time: Option<TimeProfile>) {
        regions::set_time(&mut self.regions, time.as_ref());
        self.time = time;
    }

    /// Gives kernels what a just-in-time compiler says of their code objects, by MD5: before the summary is made.
    pub fn set_builds(&mut self, builds: &BTreeMap<String, Build>) {
        for kernel in &mut self.kernels {
            kernel.build = builds.get(&kernel.object).cloned();
        }
        let kernels: Vec<(Key<'_>, Option<&Build>)> =
            self.kernels.iter().map(|kernel| (kernel.key(), kernel.build.as_ref())).collect();
        let labels = variants::labels(&kernels);
        self.kernels.iter_mut().zip(labels).for_each(|(kernel, label)| kernel.variant = label);
    }

    /// Gives the kernel of this name, in the code object with this MD5, its waits.
    pub fn explain(&mut self, object: &str, slice: KernelSlice) {
        let is_of = |kernel: &&mut Kernel| kernel.object == object && kernel.name == slice.name;
        if let Some(kernel) = self.kernels.iter_mut().find(is_of) {
            (kernel.waits, kernel.chains) = (slice.waits, slice.chains);
        }
    }

    /// Whether something that was asked for is missing: a refused kernel, a dispatch that could not be counted, dropped
    /// or unfinished waves.
    #[must_use]
    pub fn has_gaps(&self) -> bool {
        let uncounted = self.uncounted.iter().any(|uncounted| uncounted.why.is_gap());
        !self.refused.is_empty()
            || uncounted
            || self.kernels.iter().any(|kernel| kernel.dropped > 0 || kernel.unfinished > 0)
    }
}

impl Report {
    /// Which code object what was not counted is of, where there are several with a kernel of its name.
    #[must_use]
    pub fn variant_object<'r>(&'r self, uncounted: &'r UncountedDispatches) -> Option<&'r str> {
        let others =
            self.uncounted.iter().map(|other| Key { name: &other.name, target: &other.target, object: &other.object });
        variants::object_of(uncounted, self.kernels.iter().map(Kernel::key).chain(others))
    }
}

impl Kernel {
    /// What it is known by.
    #[must_use]
    pub fn key(&self) -> Key<'_> {
        Key { name: &self.name, target: &self.target, object: &self.object }
    }

    /// Whether clocks were read in it.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.sections.measured_time.is_some() || self.sections.measured_latency.is_some()
    }

    /// Its processor, if that is known.
    #[must_use]
    pub fn processor(&self) -> Option<Target> {
        Target::by_name(self.target.split(':').next().unwrap_or_default())
    }

    /// Lanes of its waves; nothing where neither its resources nor its target say.
    #[must_use]
    pub fn wave_size(&self) -> Option<u32> {
        let known = self.before.map(|resources| resources.wave_size).filter(|lanes| *lanes > 0);
        let target = self.processor();
        let possible = |lanes: &u32| target.is_some_and(|target| target.with_wave_size(*lanes).is_some());
        let [wave32, wave64] = WAVE_SIZES.map(|lanes| Some(lanes).filter(possible));
        known.or_else(|| wave32.xor(wave64))
    }

    /// The occupancy of its launches in a few words; nothing where nothing is known of it.
    #[must_use]
    pub fn occupancy(&self) -> Option<String> {
        let at_best = self.before.zip(self.after);
        let at_best = at_best
            .map(|(before, after)| LaunchOccupancy { before: before.waves_per_simd, after: after.waves_per_simd });
        launches::occupancy(&self.launches, at_best)
    }

    fn new(profile: &Profile, place: usize, totals: &KernelTotals) -> Kernel {
        Kernel {
            name: totals.name.clone(),
            demangled: totals.demangled.clone(),
            target: totals.target.clone(),
            object: totals.object.clone(),
            variant: None,
            build: None,
            mode: totals.mode,
            dispatches: totals.dispatches,
            launches: launches::of(totals),
            waves: totals.waves,
            dropped: totals.dropped,
            unfinished: totals.unfinished,
            shared_records: totals.shared_records,
            before: totals.before,
            after: totals.after,
            uncounted_callees: totals.uncounted_callees.clone(),
            work: totals.work,
            sections: Sections::of(&totals.sites),
            out_of_bounds: bad_access::of_kernel(profile, place, totals),
            unchecked_accesses: bad_access::unchecked_of_kernel(totals),
            waits: Vec::new(),
            chains: Vec::new(),
        }
    }
}
