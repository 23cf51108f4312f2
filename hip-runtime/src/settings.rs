//! What the environment asks for.

use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;

use wavetap::emulator::{Suppressions, Timing};
use wavetap::offload_bundle::TargetId;

use crate::findings::FindingSettings;
use crate::images::is_emulated;
use crate::raw;
use crate::rewriting::Rewriting;

/// Records that hold the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Records {
    /// As many as a dispatch has waves, within the memory limit.
    PerWave,
    /// This many, shared.
    Shared(u32),
    /// This many; waves that find them taken are dropped.
    Dropping(u32),
}

/// What is collected in a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Collect {
    pub(crate) counters: bool,
    pub(crate) trace: bool,
    pub(crate) time: bool,
    pub(crate) samples: bool,
}

impl Collect {
    fn from(text: &str) -> Result<Self, String> {
        let mut collect = Collect::default();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            *match word {
                "counters" => &mut collect.counters,
                "trace" => &mut collect.trace,
                "time" => &mut collect.time,
                "samples" => &mut collect.samples,
                other => return Err(format!("WAVETAP_COLLECT: {other}: counters, trace, time or samples expected")),
            } = true;
        }
        Ok(collect)
    }
}

/// The variables that `lib.rs` lists.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) target: Option<TargetId>,
    pub(crate) profile: Option<PathBuf>,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) origins: Option<PathBuf>,
    /// The folder where each process keeps its journal, instead of `profile`, `trace`, `time` and `samples`.
    pub(crate) journal: Option<PathBuf>,
    /// What a journal is to have.
    pub(crate) collect: Collect,
    pub(crate) strict: bool,
    /// What the strict mode goes on after.
    pub(crate) findings: FindingSettings,
    pub(crate) seed: u64,
    pub(crate) fuel: Option<u64>,
    /// 0: one for each core.
    pub(crate) threads: usize,
    pub(crate) records: Records,
    pub(crate) per_wave: bool,
    /// Fresh device memory holds a pattern.
    pub(crate) poison: bool,
    /// Launches are checked and nothing runs.
    pub(crate) skip_kernels: bool,
    /// Where modelled time goes, if it is modelled.
    pub(crate) time: Option<PathBuf>,
    /// Where its stall samples go.
    pub(crate) samples: Option<PathBuf>,
    pub(crate) timing: Option<Timing>,
    /// How code that the program loads is made to count, if it is.
    pub(crate) rewriting: Option<Rewriting>,
}

impl Settings {
    /// Reads the environment; a value that makes no sense ends the program with exit code 2, because every count would be in doubt.
    pub(crate) fn read() -> Self {
        Self::from(|name| std::env::var(name).ok()).unwrap_or_else(|message| {
            eprintln!("wavetap: {message}");
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

    fn from(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let flag = |name: &str| match set(name).as_deref() {
            None | Some("0") => Ok(false),
            Some("1") => Ok(true),
            Some(other) => Err(format!("{name}={other}: 0 or 1 expected")),
        };
        let target = match set("WAVETAP_TARGET") {
            None => None,
            Some(text) => {
                let id = TargetId::parse(&text).filter(is_emulated);
                Some(id.ok_or_else(|| format!("WAVETAP_TARGET={text}: not a target that can be emulated"))?)
            }
        };
        let records = match set("WAVETAP_RECORDS") {
            None => Records::PerWave,
            Some(text) => {
                let (count, drop) = text.strip_suffix(":drop").map_or((text.as_str(), false), |count| (count, true));
                let count = number("WAVETAP_RECORDS", count)?;
                match (count, drop) {
                    (0, _) => return Err("WAVETAP_RECORDS=0: at least one record is needed".into()),
                    (count, true) => Records::Dropping(count),
                    (count, false) => Records::Shared(count),
                }
            }
        };
        let collect = set("WAVETAP_COLLECT").map_or(Ok(Collect::default()), |text| Collect::from(&text))?;
        if collect != Collect::default() && set("WAVETAP_JOURNAL").is_none() {
            return Err("WAVETAP_COLLECT: WAVETAP_JOURNAL names no folder for it".into());
        }
        Ok(Settings {
            target,
            profile: set("WAVETAP_PROFILE").map(PathBuf::from),
            trace: set("WAVETAP_TRACE").map(PathBuf::from),
            origins: set("WAVETAP_ORIGINS").map(PathBuf::from),
            strict: flag("WAVETAP_STRICT")?,
            findings: FindingSettings {
                go_on: flag("WAVETAP_STRICT_CONTINUE")?,
                suppressed: set("WAVETAP_SUPPRESSIONS").map_or(Ok(Suppressions::default()), |path| suppressions(&path))?,
                file: set("WAVETAP_FINDINGS").map(PathBuf::from),
            },
            seed: set("WAVETAP_SEED").map_or(Ok(0), |text| number("WAVETAP_SEED", &text))?,
            fuel: set("WAVETAP_FUEL").map(|text| number("WAVETAP_FUEL", &text)).transpose()?,
            threads: set("WAVETAP_THREADS").map_or(Ok(0), |text| number("WAVETAP_THREADS", &text))?,
            records,
            per_wave: flag("WAVETAP_PER_WAVE")?,
            skip_kernels: flag("WAVETAP_SKIP_KERNELS")?,
            time: set("WAVETAP_TIMING").map(PathBuf::from),
            samples: set("WAVETAP_SAMPLES").map(PathBuf::from),
            timing: timing(set, collect)?,
            rewriting: Rewriting::from(set)?,
            journal: set("WAVETAP_JOURNAL").map(PathBuf::from),
            collect,
            poison: set("WAVETAP_POISON").is_none() || flag("WAVETAP_POISON")?,
        })
    }
}

/// The findings that a file names.
fn suppressions(path: &str) -> Result<Suppressions, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("WAVETAP_SUPPRESSIONS={path}: {error}"))?;
    Suppressions::parse(&text).map_err(|error| format!("WAVETAP_SUPPRESSIONS={path}: {error}"))
}

/// Modelled cycles between the samples of a wave, unless others are asked for.
const SAMPLE_INTERVAL: u32 = 1024;

/// What the timing model is asked for.
fn timing(set: impl Fn(&str) -> Option<String>, collect: Collect) -> Result<Option<Timing>, String> {
    let sampled = collect.samples || set("WAVETAP_SAMPLES").is_some();
    let wanted = sampled || collect.time || set("WAVETAP_TIMING").is_some();
    let latencies = set("WAVETAP_LATENCY");
    let latencies = latencies.iter().flat_map(|list| list.split(','));
    let latencies =
        latencies.map(|text| text.parse().map_err(|error| format!("WAVETAP_LATENCY: {error}"))).collect::<Result<Vec<_>, _>>()?;
    let interval = match set("WAVETAP_SAMPLE_INTERVAL") {
        None => SAMPLE_INTERVAL,
        Some(text) => number("WAVETAP_SAMPLE_INTERVAL", &text)?,
    };
    let interval = NonZero::new(interval).ok_or("WAVETAP_SAMPLE_INTERVAL=0: at least one cycle is needed")?;
    let sample_interval = sampled.then_some(interval);
    Ok(wanted.then_some(Timing { latencies, sample_interval, chance: None }))
}

fn number<N: FromStr>(name: &str, text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{name}={text}: not a number, or too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::from(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn reads_every_variable() {
        let none = parse(&[]).unwrap();
        assert!(none.target.is_none() && none.profile.is_none() && !none.strict && none.records == Records::PerWave && none.fuel.is_none());
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
            ("WAVETAP_SAMPLES", "s"),
            ("WAVETAP_SAMPLE_INTERVAL", "256"),
        ])
        .unwrap();
        assert_eq!(all.target.unwrap().to_string(), "gfx906:sramecc+");
        assert_eq!((all.seed, all.fuel, all.threads, all.records), (u64::MAX, Some(9), 3, Records::Dropping(8)));
        assert_eq!(none.threads, 0);
        let timing = all.timing.unwrap();
        assert_eq!(timing.latencies.iter().map(ToString::to_string).collect::<Vec<_>>(), ["valu32=8", "l2=500"]);
        assert_eq!(timing.sample_interval.map(NonZero::get), Some(256));
        assert!(
            none.timing.is_none()
                && parse(&[("WAVETAP_TIMING", "t")]).unwrap().timing.is_some_and(|timing| timing.sample_interval.is_none())
        );
        let kept = parse(&[("WAVETAP_JOURNAL", "j"), ("WAVETAP_COLLECT", "counters,samples")]).unwrap();
        assert!(kept.wants_counters() && !kept.wants_trace() && kept.timing.is_some_and(|timing| timing.sample_interval.is_some()));
        assert!(all.strict && all.per_wave && all.skip_kernels && !none.skip_kernels);
        assert_eq!(parse(&[("WAVETAP_RECORDS", "3")]).unwrap().records, Records::Shared(3));
    }

    #[test]
    fn refuses_nonsense() {
        for (name, value) in [
            ("WAVETAP_TARGET", "gfx1"),
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
