//! How an application is run.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use wavetap_amdgpu::Board;
use wavetap_base::error::Result;
use wavetap_base::glob;
use wavetap_collect::check::{CheckConfig, Outputs};
use wavetap_collect::config::{self, CaptureConfig, Collected, RunConfig};
use wavetap_collect::selected::DispatchNumbers;
use wavetap_collect::session::WorkgroupSample;
use wavetap_emulator::{LatencyOverride, TimedWorkgroups};
use wavetap_profile::check::Tool;

use super::libraries::Libraries;
use super::platform::{BackendChoice, Platform, Stack};
use crate::pipeline::Options;

/// What is collected of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collect {
    /// What instrumented kernels count.
    pub counters: bool,
    /// The emulator's own trace, which counts the same without the help of probes.
    pub trace: bool,
    /// What is launched, of kernels that do not count.
    pub launches: bool,
    /// How exact the emulator is for what is executed.
    pub fidelity: bool,
}

impl Collect {
    /// Nothing.
    pub const NOTHING: Collect = Collect { counters: false, trace: false, launches: false, fidelity: false };
    /// What instrumented kernels count.
    pub const COUNTERS: Collect = Collect { counters: true, ..Collect::NOTHING };
    /// What is launched, of kernels that do not count.
    pub const LAUNCHES: Collect = Collect { launches: true, ..Collect::NOTHING };

    /// The same with the emulator's trace.
    #[must_use]
    pub fn and_trace(self) -> Collect {
        Collect { trace: true, ..self }
    }
}

impl Default for Collect {
    /// What instrumented kernels count.
    fn default() -> Collect {
        Collect::COUNTERS
    }
}

/// What the emulator models of time. A model, not a measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TimingOptions {
    /// Other latencies than the model's own.
    pub latencies: Vec<LatencyOverride>,
    /// Which workgroups of a dispatch are modelled.
    pub workgroups: TimedWorkgroups,
    /// Whether stall samples are taken.
    pub samples: bool,
    /// Modelled cycles between the samples of a wave; the model's own choice if none.
    pub sample_interval: Option<u32>,
    /// Whether the time has what the waves of the first compute unit did in the first dispatch of each kernel.
    pub waves: bool,
}

impl TimingOptions {
    /// The model with these latencies in place of its own.
    #[must_use]
    pub fn with_latencies(latencies: &[LatencyOverride]) -> TimingOptions {
        TimingOptions { latencies: latencies.to_vec(), ..TimingOptions::default() }
    }
}

/// Where the application's stdout goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Stdout {
    /// Where this process's goes; its stdin is this process's, too.
    #[default]
    Inherited,
    /// Nowhere; its stdin is empty.
    Discarded,
    /// To a file, which is replaced; its stdin is empty.
    File(PathBuf),
}

/// How an application is run: what runs its kernels, what is collected, where its output goes.
///
/// Every field has a default; the methods set single ones.
///
/// ```
/// use wavetap::run::{BackendChoice, RunOptions, Stdout};
///
/// let options = RunOptions::new()
///     .args(["--size", "64"])
///     .backend(BackendChoice::Emulator)
///     .target("gfx90a")
///     .strict(true)
///     .stdout(Stdout::Discarded);
/// assert_eq!(options.arguments.len(), 2);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// The application's arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Variables that are set in the application's environment, which is otherwise this process's.
    pub environment: Vec<(OsString, OsString)>,
    /// Where its stdout goes.
    pub stdout: Stdout,
    /// What runs its kernels.
    pub backend: BackendChoice,
    /// Emulator: what its calls of HIP reach; [`Stack::Hip`] if none.
    pub stack: Option<Stack>,
    /// Emulator: the GPU, as a target id (`gfx90a`, `gfx942:xnack-`); one that the application has code for if none.
    pub target: Option<String>,
    /// Emulator: GPUs, from 1 to 16, each with memory of its own; only with [`Stack::Rocm`].
    pub gpus: Option<u32>,
    /// Emulator: whether what the hardware leaves undefined is an error.
    pub strict: bool,
    /// Emulator: whether strict mode goes on after findings of the kinds for which it is defined how. Implies `strict`.
    pub strict_continue: bool,
    /// Emulator: a file of findings that strict mode goes on after unreported. Implies `strict`.
    pub suppressions: Option<PathBuf>,
    /// Emulator: what is checked ([`Finished::checked`](super::Finished::checked)); nothing if none. Implies `strict`,
    /// and goes on after whatever it can.
    pub check: Option<Vec<Tool>>,
    /// Emulator: the order of workgroups and waves while it is checked; left to the seed if none, 0 is the usual one.
    pub schedule: Option<u64>,
    /// Emulator: what is written of the memory that kernels leave while it is checked
    /// ([`Checked::outputs`](super::Checked::outputs)).
    pub outputs: Option<Outputs>,
    /// Emulator: seed of everything that is random.
    pub seed: u64,
    /// Emulator: most wave-instructions that one dispatch may execute; 50,000,000,000 if none.
    pub fuel: Option<u64>,
    /// Emulator: threads that the workgroups of a long dispatch are divided among; one for each core if none.
    pub threads: Option<u32>,
    /// What is collected.
    pub collect: Collect,
    /// Whether each wave's counts are collected beside the totals.
    pub per_wave: bool,
    /// Records that the waves of a dispatch have with `per_wave`; one for each wave if none.
    pub records: Option<u32>,
    /// Of which workgroups accesses are recorded; the session's own choice if none.
    pub workgroups: Option<WorkgroupSample>,
    /// Numbers of the dispatches of each kernel that are counted, of those in [`RunOptions::regions`]; all if none.
    /// Where accesses are recorded, those of the others are not, and if none those of the first, second, fourth and so
    /// on are, and of those with more than twice the waves of all recorded before.
    pub dispatches: Option<DispatchNumbers>,
    /// Patterns of ranges that the application marks (roctx): what is dispatched outside of them is not counted; all is
    /// counted if there are none. See [`is_inside`](wavetap_profile::regions::is_inside).
    pub regions: Vec<String>,
    /// Nothing is counted before the application has profilers go on (`roctxProfilerResume`, `hipProfilerStart`).
    pub selected_regions: bool,
    /// Emulator: whether each node of a graph that is launched is a region of its own.
    pub graph_nodes: bool,
    /// Bytes of device memory that the records of one dispatch may take; 256 MiB if none.
    pub memory_limit: Option<u64>,
    /// Emulator: the board that the application sees and that is modelled; the usual one of the target if none.
    pub board: Option<&'static Board>,
    /// Emulator: what is modelled of time; nothing if none.
    pub timing: Option<TimingOptions>,
    /// Which dispatch is captured, and the folder for the capture of each process.
    pub capture: Option<CaptureConfig>,
    /// Where the shared libraries are that the application is run with.
    pub libraries: Libraries,
}

impl RunOptions {
    /// The application without arguments, its counters collected.
    #[must_use]
    pub fn new() -> RunOptions {
        RunOptions::default()
    }

    /// Appends arguments of the application.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> RunOptions {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable in the application's environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> RunOptions {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Whether the strict mode is on.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.strict || self.strict_continue || self.suppressions.is_some() || self.check.is_some()
    }

    /// What runs the kernels on this machine.
    ///
    /// # Errors
    /// Unsupported if a GPU is wanted and there is none, or beside a stack.
    pub fn platform(&self) -> Result<Platform> {
        Platform::choose(self.backend, self.stack)
    }

    /// A variable of the application's environment.
    pub(super) fn variable(&self, name: &str) -> Option<OsString> {
        let set = self.environment.iter().rev().find(|(known, _)| known.as_os_str() == OsStr::new(name));
        set.map_or_else(|| std::env::var_os(name), |(_, value)| Some(value.clone()))
    }

    /// Sets [`RunOptions::stdout`].
    #[must_use]
    pub fn stdout(mut self, value: Stdout) -> RunOptions {
        self.stdout = value;
        self
    }

    /// Sets [`RunOptions::backend`].
    #[must_use]
    pub fn backend(mut self, value: BackendChoice) -> RunOptions {
        self.backend = value;
        self
    }

    /// Sets [`RunOptions::stack`].
    #[must_use]
    pub fn stack(mut self, value: Stack) -> RunOptions {
        self.stack = Some(value);
        self
    }

    /// Sets [`RunOptions::target`].
    #[must_use]
    pub fn target(mut self, value: impl Into<String>) -> RunOptions {
        self.target = Some(value.into());
        self
    }

    /// Sets [`RunOptions::gpus`].
    #[must_use]
    pub fn gpus(mut self, value: u32) -> RunOptions {
        self.gpus = Some(value);
        self
    }

    /// Sets [`RunOptions::strict`].
    #[must_use]
    pub fn strict(mut self, value: bool) -> RunOptions {
        self.strict = value;
        self
    }

    /// Sets [`RunOptions::strict_continue`].
    #[must_use]
    pub fn strict_continue(mut self, value: bool) -> RunOptions {
        self.strict_continue = value;
        self
    }

    /// Sets [`RunOptions::suppressions`].
    #[must_use]
    pub fn suppressions(mut self, value: impl Into<PathBuf>) -> RunOptions {
        self.suppressions = Some(value.into());
        self
    }

    /// Sets [`RunOptions::check`].
    #[must_use]
    pub fn check(mut self, tools: impl IntoIterator<Item = Tool>) -> RunOptions {
        self.check = Some(tools.into_iter().collect());
        self
    }

    /// Sets [`RunOptions::seed`].
    #[must_use]
    pub fn seed(mut self, value: u64) -> RunOptions {
        self.seed = value;
        self
    }

    /// Sets [`RunOptions::fuel`].
    #[must_use]
    pub fn fuel(mut self, value: u64) -> RunOptions {
        self.fuel = Some(value);
        self
    }

    /// Sets [`RunOptions::threads`].
    #[must_use]
    pub fn threads(mut self, value: u32) -> RunOptions {
        self.threads = Some(value);
        self
    }

    /// Sets [`RunOptions::collect`].
    #[must_use]
    pub fn collect(mut self, value: Collect) -> RunOptions {
        self.collect = value;
        self
    }

    /// Sets [`RunOptions::per_wave`].
    #[must_use]
    pub fn per_wave(mut self, value: bool) -> RunOptions {
        self.per_wave = value;
        self
    }

    /// Sets [`RunOptions::board`].
    #[must_use]
    pub fn board(mut self, value: Option<&'static Board>) -> RunOptions {
        self.board = value;
        self
    }

    /// Sets [`RunOptions::timing`].
    #[must_use]
    pub fn timing(mut self, value: TimingOptions) -> RunOptions {
        self.timing = Some(value);
        self
    }

    /// Sets [`RunOptions::libraries`].
    #[must_use]
    pub fn libraries(mut self, value: Libraries) -> RunOptions {
        self.libraries = value;
        self
    }

    /// Refuses what a platform does not have.
    pub(super) fn refuse_lacking(&self, platform: Platform) -> Result<()> {
        let RunOptions { strict_continue, suppressions, per_wave, fuel, threads, gpus, graph_nodes, .. } = self;
        self.regions.iter().try_for_each(|pattern| glob::check(pattern))?;
        let no_emulator = platform == Platform::Gpu;
        let refused = [
            ("the emulator's trace", self.collect.trace, platform.has_tool()),
            ("--fidelity", self.collect.fidelity, platform.has_tool()),
            ("--board", self.board.is_some(), no_emulator),
            ("--timing and --samples", self.timing.is_some(), platform.has_tool()),
            ("--per-wave", *per_wave, platform.has_tool()),
            ("--strict-continue", *strict_continue, platform.has_tool()),
            ("--suppressions", suppressions.is_some(), platform.has_tool()),
            ("--graph-nodes", *graph_nodes, platform.has_tool()),
            ("wavetap check", self.check.is_some(), no_emulator),
            ("--gpus", gpus.is_some(), platform != Platform::EmulatorRocm),
            ("--strict", self.is_strict(), no_emulator),
            ("--fuel", fuel.is_some(), no_emulator),
            ("--threads", threads.is_some(), no_emulator),
            ("--target", self.target.is_some(), no_emulator),
        ];
        let Some((what, ..)) = refused.iter().find(|(_, wanted, lacks)| *wanted && *lacks) else { return Ok(()) };
        Err(platform.lacks(what))
    }

    /// What whoever runs the kernels is to do. `device` is the GPU that is emulated, where that is decided here.
    pub(super) fn config(
        &self,
        platform: Platform,
        device: Option<String>,
        at_load: Option<config::AtLoad>,
        files: RunFiles<'_>,
    ) -> RunConfig {
        let timing = self.timing.as_ref();
        let collect = Collected {
            counters: self.collect.counters,
            trace: self.collect.trace,
            launches: self.collect.launches,
            time: timing.is_some(),
            samples: timing.is_some_and(|timing| timing.samples),
            fidelity: self.collect.fidelity,
        };
        RunConfig {
            target: device,
            gpus: self.gpus,
            emulated_driver: platform == Platform::EmulatorRocm,
            journal: (collect != Collected::default()).then(|| files.journals.to_owned()),
            collect,
            at_load,
            capture: self.capture.clone(),
            strict: self.is_strict(),
            strict_continue: self.strict_continue,
            suppressions: files.suppressions.map(Path::to_owned),
            findings: Some(files.findings.to_owned()),
            check: self.check.as_ref().map(|tools| CheckConfig {
                tools: tools.clone(),
                folder: files.journals.to_owned(),
                schedule: self.schedule,
                outputs: self.outputs,
            }),
            seed: self.seed,
            fuel: self.fuel,
            threads: self.threads.unwrap_or_default() as usize,
            records: self.records,
            per_wave: self.per_wave,
            workgroups: self.workgroups.map(|sample| sample.to_string()),
            dispatches: self.dispatches.map(|numbers| numbers.to_string()),
            regions: self.regions.clone(),
            selected_regions: self.selected_regions,
            graph_nodes: self.graph_nodes,
            memory_limit: self.memory_limit,
            latencies: timing
                .map_or_else(Vec::new, |timing| timing.latencies.iter().map(ToString::to_string).collect()),
            board: self.board.map(|board| board.name.to_owned()),
            timed_workgroups: timing.map(|timing| timing.workgroups.to_string()),
            sample_interval: timing.and_then(|timing| timing.sample_interval),
            timing_waves: timing.is_some_and(|timing| timing.waves),
            hidden_output: self.stdout != Stdout::Inherited,
            ..RunConfig::default()
        }
    }
}

/// Files and folders of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunFiles<'a> {
    /// The folder where processes keep what they collect.
    pub(super) journals: &'a Path,
    /// The file that findings of strict mode are added to.
    pub(super) findings: &'a Path,
    /// The file of findings that are not reported.
    pub(super) suppressions: Option<&'a Path>,
}

/// How code that an application loads is made to count: what is not in the executable itself, or is and was not
/// rewritten.
#[derive(Debug, Clone, Copy)]
pub struct AtLoad<'a> {
    /// As the executable is rewritten.
    pub options: &'a Options,
    /// The folder where the originals of such code are kept, for the report.
    pub originals: &'a Path,
}

impl AtLoad<'_> {
    /// The same for the configuration of the run.
    pub(super) fn config(&self) -> config::AtLoad {
        let Options { probes, counters, placement, selection, max_occupancy_loss, single_waves, .. } = self.options;
        config::AtLoad {
            probes: probes.iter().map(|probe| probe.name().to_owned()).collect(),
            single_waves: *single_waves,
            counters: counters.name().to_owned(),
            placement: Some(placement.name().to_owned()),
            kernels: selection.kernels.clone(),
            max_occupancy_loss: *max_occupancy_loss,
            originals: Some(self.originals.to_owned()),
        }
    }
}
