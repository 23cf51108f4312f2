//! What the environment asks for.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use wavetap::at_load::Rewriting;
use wavetap::collect::check::CheckConfig;
use wavetap::collect::config::{CaptureConfig, Collected, RunConfig};
use wavetap::collect::selected::Selected;
use wavetap::collect::session::{Options as SessionOptions, Overlap};
use wavetap::emulator::{Suppressions, Timing};
use wavetap::isa::Board;
use wavetap::offload_bundle::TargetId;
use wavetap::stderr_line;

use crate::choice::is_emulated;
use crate::findings::FindingSettings;
use crate::raw;

/// The configuration of the run and the variables that `lib.rs` lists.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) target: Option<TargetId>,
    pub(crate) profile: Option<PathBuf>,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) origins: Option<PathBuf>,
    /// The folder where each process keeps its journal, instead of `profile`, `trace`, `time` and `samples`.
    pub(crate) journal: Option<PathBuf>,
    /// What a journal is to have.
    pub(crate) collect: Collected,
    pub(crate) strict: bool,
    /// What is checked, if anything is.
    pub(crate) check: Option<CheckConfig>,
    /// What the strict mode goes on after.
    pub(crate) findings: FindingSettings,
    pub(crate) seed: u64,
    pub(crate) fuel: Option<u64>,
    /// 0: one for each core.
    pub(crate) threads: usize,
    /// How counters are collected.
    pub(crate) session: SessionOptions,
    pub(crate) per_wave: bool,
    /// Fresh device memory holds a pattern.
    pub(crate) poison: bool,
    /// Launches are checked and nothing runs.
    pub(crate) skip_kernels: bool,
    /// Where modelled time goes, if it is modelled.
    pub(crate) time: Option<PathBuf>,
    /// Where its stall samples go.
    pub(crate) samples: Option<PathBuf>,
    /// The board that programs see and that is modelled.
    pub(crate) board: Option<&'static Board>,
    pub(crate) timing: Option<Timing>,
    /// What the program prints is not shown.
    pub(crate) hidden_output: bool,
    /// How code that the program loads is made to count, if it is.
    pub(crate) rewriting: Option<Rewriting>,
    /// Which dispatch is captured, if one is.
    pub(crate) capture: Option<CaptureConfig>,
    /// Which dispatches are counted.
    pub(crate) selected: Selected,
    /// Whether nodes of graphs are regions.
    pub(crate) graph_nodes: bool,
}

impl Settings {
    /// Reads the configuration of the run and the environment; a value that makes no sense ends the program with exit
    /// code 2, because every count would be in doubt.
    pub(crate) fn read() -> Self {
        let config = RunConfig::read(|name| std::env::var(name).ok()).map_err(|error| error.to_string());
        if config.as_ref().is_ok_and(|config| config.is_over) {
            stderr_line!("wavetap: the run that this process belongs to has ended: it goes on, and is not counted");
        }
        config.and_then(Self::of).unwrap_or_else(|message| {
            stderr_line!("wavetap: {message}");
            raw::end_now(2)
        })
    }

    /// Whether counters are collected.
    pub(crate) fn wants_counters(&self) -> bool {
        self.profile.is_some() || self.collect.counters
    }

    /// Whether the emulator's trace is.
    pub(crate) fn wants_trace(&self) -> bool {
        self.trace.is_some() || self.collect.trace
    }

    /// Whether launches are collected, and no trace of what they execute.
    pub(crate) fn wants_launches(&self) -> bool {
        self.collect.launches && !self.wants_trace()
    }

    fn of(config: RunConfig) -> Result<Self, String> {
        let target = match &config.target {
            None => None,
            Some(text) => {
                let id = TargetId::parse(text).filter(is_emulated);
                Some(id.ok_or_else(|| format!("WAVETAP_TARGET={text}: not a target that can be emulated"))?)
            }
        };
        if let Some(gpus @ (0 | 2..)) = config.gpus {
            return Err(format!("WAVETAP_GPUS={gpus}: the emulator's own HIP runtime has one GPU"));
        }
        if config.collect != Collected::default() && config.journal.is_none() {
            return Err("WAVETAP_COLLECT: WAVETAP_JOURNAL names no folder for it".into());
        }
        let session = config.session_options(Overlap::TimeSliced).map_err(|error| error.to_string())?;
        let board = board(&config)?;
        let timing = timing(&config, board)?;
        let selected = config.selected().map_err(|error| error.to_string())?;
        let suppressed = config.suppressions.as_deref().map_or(Ok(Suppressions::default()), suppressions)?;
        let rewriting = config.at_load.map(Rewriting::of).transpose()?;
        Ok(Settings {
            target,
            profile: config.profile,
            trace: config.trace,
            origins: config.origins,
            strict: config.strict || config.check.is_some(),
            findings: FindingSettings {
                go_on: config.strict_continue || config.check.is_some(),
                accesses: config.check.is_some(),
                suppressed,
                file: config.findings,
            },
            check: config.check,
            seed: config.seed,
            fuel: config.fuel,
            threads: config.threads,
            session,
            per_wave: config.per_wave,
            skip_kernels: config.skip_kernels,
            time: config.timing,
            samples: config.samples,
            board,
            timing,
            hidden_output: config.hidden_output,
            rewriting,
            capture: config.capture,
            selected,
            graph_nodes: config.graph_nodes,
            journal: config.journal,
            collect: config.collect,
            poison: !config.no_poison,
        })
    }
}

/// The findings that a file names.
fn suppressions(path: &Path) -> Result<Suppressions, String> {
    let fault = |error: &dyn std::fmt::Display| format!("WAVETAP_SUPPRESSIONS={}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| fault(&error))?;
    Suppressions::parse(&text).map_err(|error| fault(&error))
}

/// Modelled cycles between the samples of a wave, unless others are asked for.
const SAMPLE_INTERVAL: u32 = 1024;

/// The board that is named.
fn board(config: &RunConfig) -> Result<Option<&'static Board>, String> {
    let named =
        |name: &String| Board::by_name(name).ok_or_else(|| format!("WAVETAP_BOARD={name}: there is no such board"));
    config.board.as_ref().map(named).transpose()
}

/// What the timing model is asked for.
fn timing(config: &RunConfig, board: Option<&'static Board>) -> Result<Option<Timing>, String> {
    let sampled = config.collect.samples || config.samples.is_some();
    let wanted = sampled || config.collect.time || config.timing.is_some();
    let latencies =
        config.latencies.iter().map(|text| text.parse().map_err(|error| format!("WAVETAP_LATENCY: {error}")));
    let latencies = latencies.collect::<Result<Vec<_>, _>>()?;
    let interval = NonZero::new(config.sample_interval.unwrap_or(SAMPLE_INTERVAL));
    let interval = interval.ok_or("WAVETAP_SAMPLE_INTERVAL=0: at least one cycle is needed")?;
    let sample_interval = sampled.then_some(interval);
    let workgroups = config.timed_workgroups.as_deref().map(str::parse).transpose();
    let workgroups = workgroups.map_err(|error| format!("WAVETAP_TIMED_WORKGROUPS: {error}"))?.unwrap_or_default();
    let waves = config.timing_waves;
    Ok(wanted.then_some(Timing { latencies, sample_interval, waves, chance: None, board, workgroups }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap::collect::session::Records;
    use wavetap::emulator::TimedWorkgroups;

    fn parse(pairs: &[(&str, &str)]) -> Result<Settings, String> {
        let variable = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Settings::of(RunConfig::read(variable).map_err(|error| error.to_string())?)
    }

    #[test]
    fn reads_every_variable() {
        let none = parse(&[]).unwrap();
        assert!(
            none.target.is_none()
                && none.profile.is_none()
                && !none.strict
                && none.session.records == Records::PerWave
                && none.fuel.is_none()
        );
        assert!(none.poison && !parse(&[("WAVETAP_POISON", "0")]).unwrap().poison);
        let all = parse(&[
            ("WAVETAP_TARGET", "gfx906:sramecc+"),
            ("WAVETAP_PROFILE", "a"),
            ("WAVETAP_TRACE", "b"),
            ("WAVETAP_STRICT", "1"),
            ("WAVETAP_SEED", "18446744073709551615"),
            ("WAVETAP_FUEL", "9"),
            ("WAVETAP_THREADS", "3"),
            ("WAVETAP_RECORDS", "8:drop"),
            ("WAVETAP_PER_WAVE", "1"),
            ("WAVETAP_SKIP_KERNELS", "1"),
            ("WAVETAP_TIMING", "t"),
            ("WAVETAP_LATENCY", "valu32=8,l2=500"),
            ("WAVETAP_BOARD", "mi300a"),
            ("WAVETAP_TIMED_WORKGROUPS", "auto"),
            ("WAVETAP_SAMPLES", "s"),
            ("WAVETAP_SAMPLE_INTERVAL", "256"),
        ])
        .unwrap();
        assert_eq!(all.target.unwrap().to_string(), "gfx906:sramecc+");
        assert_eq!(
            (all.seed, all.fuel, all.threads, all.session.records),
            (u64::MAX, Some(9), 3, Records::Dropping(8))
        );
        assert_eq!(none.threads, 0);
        let timing = all.timing.unwrap();
        assert_eq!(timing.latencies.iter().map(ToString::to_string).collect::<Vec<_>>(), ["valu32=8", "l2=500"]);
        assert_eq!(timing.sample_interval.map(NonZero::get), Some(256));
        assert_eq!(timing.board.map(|board| board.name), Some("mi300a"));
        assert_eq!(timing.workgroups, TimedWorkgroups::Auto);
        for (name, value) in [("WAVETAP_BOARD", "mi300"), ("WAVETAP_TIMED_WORKGROUPS", "0")] {
            assert!(parse(&[(name, value)]).is_err_and(|error| error.contains(name)));
        }
        assert!(
            none.timing.is_none()
                && parse(&[("WAVETAP_TIMING", "t")])
                    .unwrap()
                    .timing
                    .is_some_and(|timing| timing.sample_interval.is_none())
        );
        let kept = parse(&[("WAVETAP_JOURNAL", "j"), ("WAVETAP_COLLECT", "counters,samples")]).unwrap();
        assert!(
            kept.wants_counters()
                && !kept.wants_trace()
                && kept.timing.is_some_and(|timing| timing.sample_interval.is_some())
        );
        assert!(all.strict && all.per_wave && all.skip_kernels && !none.skip_kernels);
        assert_eq!(parse(&[("WAVETAP_RECORDS", "3")]).unwrap().session.records, Records::Shared(3));
    }

    #[test]
    fn refuses_nonsense() {
        for (name, value) in [
            ("WAVETAP_TARGET", "gfx1"),
            ("WAVETAP_GPUS", "2"),
            ("WAVETAP_STRICT", "yes"),
            ("WAVETAP_SEED", "-1"),
            ("WAVETAP_FUEL", "many"),
            ("WAVETAP_THREADS", "all"),
            ("WAVETAP_RECORDS", "0"),
            ("WAVETAP_RECORDS", "4294967296"),
            ("WAVETAP_PER_WAVE", "2"),
            ("WAVETAP_POISON", "cd"),
            ("WAVETAP_LATENCY", "valu33=1"),
            ("WAVETAP_LATENCY", "valu32"),
            ("WAVETAP_SAMPLE_INTERVAL", "0"),
            ("WAVETAP_COLLECT", "everything"),
            ("WAVETAP_COLLECT", "counters"),
        ] {
            let error = parse(&[(name, value)]).unwrap_err();
            assert!(error.starts_with(name), "{error}");
        }
    }
}
