//! The configuration of a run: what is collected and how kernels run, for whoever runs them.
//!
//! The command writes it to a file and names that in [`VARIABLE`]. A person may set single values by variables
//! ([`RunConfig::VARIABLES`]), which come after the file.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_base::glob;

use crate::check::CheckConfig;
use crate::selected::{DispatchNumbers, Selected};
use crate::session::{DispatchSample, Options, Overlap, Records};

/// Schema of the file.
pub const SCHEMA: &str = "wavetap.run/1";
/// The environment variable that names the file.
pub const VARIABLE: &str = "WAVETAP_CONFIG";

/// What a journal is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Collected {
    /// What instrumented kernels count.
    pub counters: bool,
    /// The emulator's trace.
    pub trace: bool,
    /// What is launched, and nothing of what it executes.
    pub launches: bool,
    /// Modelled time.
    pub time: bool,
    /// Its stall samples.
    pub samples: bool,
    /// How exact the emulator is.
    pub fidelity: bool,
}

/// How code that a program loads is made to count.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AtLoad {
    /// What is measured, by name; branches if there is nothing.
    pub probes: Vec<String>,
    /// Where its counters are: `auto`, `lds`, `global`, `register`.
    pub counters: String,
    /// Which of them are kept: `minimal`, as if not said, or `all`.
    pub placement: Option<String>,
    /// Whether each wave's counters are to be had by themselves.
    pub single_waves: bool,
    /// Patterns of kernels; empty for all.
    pub kernels: Vec<String>,
    /// Waves per SIMD that a kernel may lose.
    pub max_occupancy_loss: Option<u32>,
    /// The folder where the originals are kept, as `MD5.co`.
    pub originals: Option<PathBuf>,
}

/// Which dispatch is captured, and where captures go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CaptureConfig {
    /// Patterns of kernels; empty for all.
    pub kernels: Vec<String>,
    /// The number of the dispatch, from 1, among those of kernels that match.
    pub dispatch: u64,
    /// The folder for the capture of each process.
    pub folder: PathBuf,
    /// Bytes of memory that a capture may have.
    pub memory_limit: u64,
}

/// The configuration of a run. What is not set is as if the program ran by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunConfig {
    /// The emulated device, as a target id.
    pub target: Option<String>,
    /// How many GPUs are emulated; one if not said.
    pub gpus: Option<u32>,
    /// Whether the emulated kernel driver is below the real ROCm libraries: what they call a GPU is the emulator.
    pub emulated_driver: bool,
    /// File for the counters.
    pub profile: Option<PathBuf>,
    /// File for the emulator's own counts.
    pub trace: Option<PathBuf>,
    /// File for what waits waited for and where values came from.
    pub origins: Option<PathBuf>,
    /// The folder where each process keeps its journal.
    pub journal: Option<PathBuf>,
    /// What a journal is to have.
    pub collect: Collected,
    /// How code that the program loads is made to count, if it is.
    pub at_load: Option<AtLoad>,
    /// Which dispatch is captured, if one is.
    pub capture: Option<CaptureConfig>,
    /// The emulator's strict mode.
    pub strict: bool,
    /// It goes on after findings where it is defined how.
    pub strict_continue: bool,
    /// File of findings that it goes on after and does not report.
    pub suppressions: Option<PathBuf>,
    /// File that what it went on after is added to.
    pub findings: Option<PathBuf>,
    /// What is checked, if anything is. The strict mode is on, and goes on after all that it can.
    pub check: Option<CheckConfig>,
    /// Its seed.
    pub seed: u64,
    /// Wave-instructions that a dispatch may execute.
    pub fuel: Option<u64>,
    /// Threads that a long dispatch is divided among; 0 for one for each core.
    pub threads: usize,
    /// Records that hold the counters; none for one for each wave.
    pub records: Option<u32>,
    /// Whether waves that find so many records taken are dropped, and do not share them.
    pub drop_waves: bool,
    /// Whether every wave's counters are kept.
    pub per_wave: bool,
    /// Of which workgroups accesses to memory are recorded: `all`, a number, or `1/N`.
    pub workgroups: Option<String>,
    /// Numbers of the dispatches of each kernel that are counted: `N` for the first N, or `A-B`. None for all, and for
    /// records of accesses those of [`DispatchSample::Spread`].
    pub dispatches: Option<String>,
    /// Patterns of ranges of the program: what is dispatched outside of them is not counted; empty for all.
    pub regions: Vec<String>,
    /// Nothing is counted before the program has profilers go on.
    pub selected_regions: bool,
    /// Whether nodes of graphs are regions.
    pub graph_nodes: bool,
    /// Bytes of device memory that the records of one dispatch may take.
    pub memory_limit: Option<u64>,
    /// File for the modelled time.
    pub timing: Option<PathBuf>,
    /// Whether it has what the waves of a compute unit did.
    pub timing_waves: bool,
    /// Latencies for the model, as `CLASS=CYCLES`.
    pub latencies: Vec<String>,
    /// The board whose numbers programs and the model see.
    pub board: Option<String>,
    /// Which workgroups of a dispatch are modelled: `all`, `auto` or a number.
    pub timed_workgroups: Option<String>,
    /// File for its stall samples.
    pub samples: Option<PathBuf>,
    /// Modelled cycles between the samples of a wave.
    pub sample_interval: Option<u32>,
    /// Whether what the program prints is not shown: nothing is said of it.
    pub hidden_output: bool,
    /// Launches are checked and nothing runs.
    pub skip_kernels: bool,
    /// Fresh device memory holds zeros, and no pattern.
    pub no_poison: bool,
    /// Whether the file is gone: the run that it was for has ended, and this process goes on.
    #[serde(skip)]
    pub is_over: bool,
}

/// The file.
#[derive(Serialize, Deserialize)]
struct File<Config> {
    schema: String,
    run: Config,
}

impl RunConfig {
    /// The variables of values that the command decides: one of its caller must not reach the run unasked.
    pub const VARIABLES: [&str; 26] = [
        "WAVETAP_TARGET",
        "WAVETAP_GPUS",
        "WAVETAP_PROFILE",
        "WAVETAP_TRACE",
        "WAVETAP_JOURNAL",
        "WAVETAP_COLLECT",
        "WAVETAP_REWRITE",
        "WAVETAP_REWRITE_KERNELS",
        "WAVETAP_REWRITE_MAX_LOSS",
        "WAVETAP_ORIGINALS",
        "WAVETAP_STRICT",
        "WAVETAP_STRICT_CONTINUE",
        "WAVETAP_SUPPRESSIONS",
        "WAVETAP_FINDINGS",
        "WAVETAP_SEED",
        "WAVETAP_FUEL",
        "WAVETAP_THREADS",
        "WAVETAP_RECORDS",
        "WAVETAP_PER_WAVE",
        "WAVETAP_TIMING",
        "WAVETAP_TIMING_WAVES",
        "WAVETAP_LATENCY",
        "WAVETAP_BOARD",
        "WAVETAP_TIMED_WORKGROUPS",
        "WAVETAP_SAMPLES",
        "WAVETAP_SAMPLE_INTERVAL",
    ];

    /// The file's contents.
    ///
    /// # Errors
    /// Unsupported if a path is not UTF-8.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        let file = File { schema: SCHEMA.to_owned(), run: self };
        serde_json::to_vec_pretty(&file).map_err(|e| Error::unsupported(format!("run configuration: {e}")))
    }

    /// Reads the file's contents.
    ///
    /// # Errors
    /// Malformed if it is no configuration, Unsupported if it is of another version.
    pub fn from_json(json: &[u8]) -> Result<RunConfig> {
        let file: File<serde_json::Value> =
            serde_json::from_slice(json).map_err(|e| Error::malformed(format!("run configuration: {e}")))?;
        if file.schema != SCHEMA {
            return Err(Error::unsupported(format!(
                "run configuration {:?}, this program knows {SCHEMA:?}",
                file.schema
            )));
        }
        serde_json::from_value(file.run).map_err(|e| Error::malformed(format!("run configuration: {e}")))
    }

    /// The configuration of this process: the file that [`VARIABLE`] names, and what other variables say.
    ///
    /// # Errors
    /// If the file cannot be read, is none, or a variable has a value that makes no sense.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<RunConfig> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut config = match set(VARIABLE) {
            None => RunConfig::default(),
            Some(path) => match std::fs::read(&path) {
                Ok(json) => RunConfig::from_json(&json).within(|| format!("{VARIABLE}={path}"))?,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    RunConfig { is_over: true, ..RunConfig::default() }
                }
                Err(error) => return Err(Error::from(error).within(format!("{VARIABLE}={path}"))),
            },
        };
        config.set_from(set).map_err(Error::malformed)?;
        Ok(config)
    }

    /// Takes the values of variables that are set.
    fn set_from(&mut self, set: impl Fn(&str) -> Option<String>) -> Result<(), String> {
        let path = |name: &str, to: &mut Option<PathBuf>| {
            if let Some(value) = set(name) {
                *to = Some(PathBuf::from(value));
            }
        };
        path("WAVETAP_PROFILE", &mut self.profile);
        path("WAVETAP_TRACE", &mut self.trace);
        path("WAVETAP_ORIGINS", &mut self.origins);
        path("WAVETAP_JOURNAL", &mut self.journal);
        path("WAVETAP_SUPPRESSIONS", &mut self.suppressions);
        path("WAVETAP_FINDINGS", &mut self.findings);
        path("WAVETAP_TIMING", &mut self.timing);
        path("WAVETAP_SAMPLES", &mut self.samples);
        let flag = |name: &str, to: &mut bool| match set(name).as_deref() {
            None => Ok(()),
            Some(value @ ("0" | "1")) => {
                *to = value == "1";
                Ok(())
            }
            Some(other) => Err(format!("{name}={other}: 0 or 1 expected")),
        };
        flag("WAVETAP_STRICT", &mut self.strict)?;
        flag("WAVETAP_STRICT_CONTINUE", &mut self.strict_continue)?;
        flag("WAVETAP_PER_WAVE", &mut self.per_wave)?;
        flag("WAVETAP_TIMING_WAVES", &mut self.timing_waves)?;
        flag("WAVETAP_SKIP_KERNELS", &mut self.skip_kernels)?;
        let mut poison = !self.no_poison;
        flag("WAVETAP_POISON", &mut poison)?;
        self.no_poison = !poison;
        if let Some(text) = set("WAVETAP_TARGET") {
            self.target = Some(text);
        }
        if let Some(text) = set("WAVETAP_GPUS") {
            self.gpus = Some(number("WAVETAP_GPUS", &text)?);
        }
        if let Some(text) = set("WAVETAP_SEED") {
            self.seed = number("WAVETAP_SEED", &text)?;
        }
        if let Some(text) = set("WAVETAP_FUEL") {
            self.fuel = Some(number("WAVETAP_FUEL", &text)?);
        }
        if let Some(text) = set("WAVETAP_THREADS") {
            self.threads = number("WAVETAP_THREADS", &text)?;
        }
        if let Some(text) = set("WAVETAP_SAMPLE_INTERVAL") {
            self.sample_interval = Some(number("WAVETAP_SAMPLE_INTERVAL", &text)?);
        }
        if let Some(text) = set("WAVETAP_LATENCY") {
            self.latencies = text.split(',').map(str::to_owned).collect();
        }
        if let Some(text) = set("WAVETAP_BOARD") {
            self.board = Some(text);
        }
        if let Some(text) = set("WAVETAP_TIMED_WORKGROUPS") {
            self.timed_workgroups = Some(text);
        }
        if let Some(text) = set("WAVETAP_RECORDS") {
            let (count, drop) = text.strip_suffix(":drop").map_or((text.as_str(), false), |count| (count, true));
            (self.records, self.drop_waves) = (Some(number("WAVETAP_RECORDS", count)?), drop);
        }
        if let Some(text) = set("WAVETAP_WORKGROUPS") {
            self.workgroups = Some(text);
        }
        if let Some(text) = set("WAVETAP_DISPATCHES") {
            self.dispatches = Some(text);
        }
        if let Some(text) = set("WAVETAP_MEMORY_LIMIT") {
            self.memory_limit = Some(number("WAVETAP_MEMORY_LIMIT", &text)?);
        }
        if let Some(text) = set("WAVETAP_COLLECT") {
            self.collect = collected(&text)?;
        }
        self.set_at_load(set)
    }

    fn set_at_load(&mut self, set: impl Fn(&str) -> Option<String>) -> Result<(), String> {
        if let Some(counters) = set("WAVETAP_REWRITE") {
            self.at_load.get_or_insert_default().counters = counters;
        }
        let Some(at_load) = &mut self.at_load else { return Ok(()) };
        if let Some(kernels) = set("WAVETAP_REWRITE_KERNELS") {
            at_load.kernels = kernels.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
        }
        if let Some(placement) = set("WAVETAP_REWRITE_PLACEMENT") {
            at_load.placement = Some(placement);
        }
        if let Some(text) = set("WAVETAP_REWRITE_MAX_LOSS") {
            at_load.max_occupancy_loss = Some(number("WAVETAP_REWRITE_MAX_LOSS", &text)?);
        }
        if let Some(folder) = set("WAVETAP_ORIGINALS") {
            at_load.originals = Some(PathBuf::from(folder));
        }
        at_load.single_waves |= self.per_wave;
        Ok(())
    }

    /// How a session is to measure.
    ///
    /// # Errors
    /// Malformed if there is to be no record, or if the sampled workgroups are none.
    pub fn session_options(&self, overlap: Overlap) -> Result<Options> {
        let sample = self.workgroups.as_deref().map(|text| text.parse().within(|| "WAVETAP_WORKGROUPS".to_owned()));
        let usual = Options::new(overlap, self.session_records()?);
        Ok(Options {
            memory_limit: self.memory_limit.unwrap_or(usual.memory_limit),
            sample: sample.transpose()?.unwrap_or(usual.sample),
            sampled_dispatches: self.numbers()?.map_or(usual.sampled_dispatches, DispatchSample::Numbers),
            ..usual
        })
    }

    fn numbers(&self) -> Result<Option<DispatchNumbers>> {
        let numbers = self.dispatches.as_deref().map(str::parse);
        numbers.transpose().within(|| "WAVETAP_DISPATCHES".to_owned())
    }

    /// Which dispatches are counted.
    ///
    /// # Errors
    /// Malformed if the numbers of dispatches or a pattern of ranges are none.
    pub fn selected(&self) -> Result<Selected> {
        self.regions.iter().try_for_each(|pattern| glob::check(pattern))?;
        Ok(Selected::new(self.regions.clone(), self.selected_regions, self.numbers()?))
    }

    /// The records that a session is to have.
    fn session_records(&self) -> Result<Records> {
        match (self.records, self.drop_waves) {
            (None, _) => Ok(Records::PerWave),
            (Some(0), _) => Err(Error::malformed("WAVETAP_RECORDS=0: at least one record is needed")),
            (Some(count), true) => Ok(Records::Dropping(count)),
            (Some(count), false) => Ok(Records::Shared(count)),
        }
    }
}

fn collected(text: &str) -> Result<Collected, String> {
    let mut collected = Collected::default();
    for word in text.split(',').filter(|word| !word.is_empty()) {
        *match word {
            "counters" => &mut collected.counters,
            "trace" => &mut collected.trace,
            "launches" => &mut collected.launches,
            "time" => &mut collected.time,
            "samples" => &mut collected.samples,
            "fidelity" => &mut collected.fidelity,
            other => {
                return Err(format!(
                    "WAVETAP_COLLECT: {other}: counters, trace, launches, time, samples or fidelity expected"
                ));
            }
        } = true;
    }
    Ok(collected)
}

fn number<N: FromStr>(name: &str, text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{name}={text}: not a number, or too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<RunConfig> {
        RunConfig::read(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn a_file_comes_back_and_another_one_does_not() {
        let config = RunConfig {
            target: Some("gfx90a".to_owned()),
            records: Some(3),
            seed: u64::MAX,
            at_load: Some(AtLoad { counters: "lds".to_owned(), ..AtLoad::default() }),
            ..RunConfig::default()
        };
        let json = config.to_json().unwrap();
        assert_eq!(RunConfig::from_json(&json).unwrap(), config);
        let text = String::from_utf8(json).unwrap();
        let fault =
            |from: &str, to: &str| RunConfig::from_json(text.replace(from, to).as_bytes()).unwrap_err().to_string();
        assert!(fault("wavetap.run/1", "wavetap.run/2").contains("this program knows \"wavetap.run/1\""));
        assert!(fault("\"seed\"", "\"sead\"").contains("unknown field `sead`"));
    }

    #[test]
    fn variables_come_after_the_file() {
        assert_eq!(
            read(&[("WAVETAP_SEED", "7"), ("WAVETAP_TARGET", "")]).unwrap(),
            RunConfig { seed: 7, ..RunConfig::default() }
        );
        let file = std::env::temp_dir().join(format!("wavetap-config-{}.json", std::process::id()));
        let config = RunConfig { seed: 7, strict: true, threads: 2, ..RunConfig::default() };
        std::fs::write(&file, config.to_json().unwrap()).unwrap();
        let path = file.to_str().unwrap();
        let found = read(&[(VARIABLE, path), ("WAVETAP_STRICT", "0"), ("WAVETAP_RECORDS", "8:drop")]);
        std::fs::remove_file(&file).unwrap();
        let found = found.unwrap();
        assert_eq!(found, RunConfig { strict: false, records: Some(8), drop_waves: true, ..config });
        assert_eq!(found.session_records().unwrap(), Records::Dropping(8));
        assert_eq!(read(&[(VARIABLE, path)]).unwrap(), RunConfig { is_over: true, ..RunConfig::default() });
        assert!(read(&[(VARIABLE, "/")]).unwrap_err().to_string().contains("in WAVETAP_CONFIG=/"));
    }
}
