//! What the configuration of the run and the environment ask for.

use std::path::PathBuf;

use wavetap::at_load::Rewriting;
use wavetap::collect::config::{CaptureConfig, Collected, RunConfig};
use wavetap::collect::selected::Selected;
use wavetap::collect::session::{Options as SessionOptions, Overlap};
use wavetap::profile::file::Backend;
use wavetap::stderr_line;

use crate::raw;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Settings {
    /// What runs the kernels.
    pub(crate) backend: Backend,
    /// The folder where each process keeps its journal.
    pub(crate) journal: Option<PathBuf>,
    /// File for the counters.
    pub(crate) profile: Option<PathBuf>,
    /// Whether launches are listed, and nothing is counted.
    pub(crate) launches: bool,
    /// How counters are collected.
    pub(crate) session: SessionOptions,
    /// How code that the program loads is made to count, if it is.
    pub(crate) rewriting: Option<Rewriting>,
    /// Which dispatch is captured, if one is.
    pub(crate) capture: Option<CaptureConfig>,
    /// Which dispatches are counted.
    pub(crate) selected: Selected,
}

impl Settings {
    /// Reads them; none if nothing is to be counted. A value that makes no sense, or asks for what cannot be had, ends
    /// the program with exit code 2: the run would not be the one that was asked for.
    pub(crate) fn read() -> Option<Settings> {
        let config = RunConfig::read(|name| std::env::var(name).ok()).map_err(|error| error.to_string());
        if config.as_ref().is_ok_and(|config| config.is_over) {
            stderr_line!("wavetap: the run that this process belongs to has ended: it goes on, and is not counted");
            return None;
        }
        config.and_then(Self::of).unwrap_or_else(|message| {
            stderr_line!("wavetap: {message}");
            raw::end_now(2)
        })
    }

    fn of(config: RunConfig) -> Result<Option<Settings>, String> {
        let refused = [
            ("WAVETAP_TRACE", config.trace.is_some() || config.collect.trace),
            ("WAVETAP_ORIGINS", config.origins.is_some()),
            ("WAVETAP_TIMING", config.timing.is_some() || config.collect.time),
            ("WAVETAP_SAMPLES", config.samples.is_some() || config.collect.samples),
            ("WAVETAP_PER_WAVE", config.per_wave),
            ("--graph-nodes", config.graph_nodes),
        ];
        if let Some((what, _)) = refused.iter().find(|(_, set)| *set) {
            return Err(format!("{what}: not available with the real ROCm libraries"));
        }
        let Collected { counters, launches, .. } = config.collect;
        if (counters || launches) && config.journal.is_none() {
            return Err("WAVETAP_COLLECT: WAVETAP_JOURNAL names no folder for it".to_owned());
        }
        if counters && launches {
            return Err("WAVETAP_COLLECT: what is counted lists launches, too: one of the two expected".to_owned());
        }
        if !counters && !launches && config.profile.is_none() && config.capture.is_none() {
            return Ok(None);
        }
        let session = config.session_options(Overlap::Concurrent).map_err(|error| error.to_string())?;
        let selected = config.selected().map_err(|error| error.to_string())?;
        Ok(Some(Settings {
            backend: if config.emulated_driver { Backend::Emulator } else { Backend::Gpu },
            journal: config.journal,
            profile: config.profile,
            launches,
            session,
            selected,
            capture: config.capture,
            rewriting: config.at_load.filter(|_| !launches).map(Rewriting::of).transpose()?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap::collect::config::AtLoad;

    #[test]
    fn nothing_is_counted_unless_it_is_asked_for() {
        assert!(Settings::of(RunConfig { seed: 3, ..RunConfig::default() }).unwrap().is_none());
        let config = RunConfig { profile: Some("p".into()), emulated_driver: true, ..RunConfig::default() };
        let settings = Settings::of(config).unwrap().unwrap();
        assert!(settings.backend == Backend::Emulator && settings.rewriting.is_none());
        let at_load = Some(AtLoad { counters: "lds".into(), ..AtLoad::default() });
        let config = RunConfig { profile: Some("p".into()), at_load, ..RunConfig::default() };
        let settings = Settings::of(config).unwrap().unwrap();
        assert!(settings.backend == Backend::Gpu && settings.rewriting.is_some());
    }

    #[test]
    fn what_cannot_be_had_is_refused_by_name() {
        let collect = Collected { counters: true, trace: true, ..Collected::default() };
        let both = Collected { counters: true, launches: true, ..Collected::default() };
        let launches = Collected { launches: true, ..Collected::default() };
        for (config, name) in [
            (RunConfig { collect, ..RunConfig::default() }, "WAVETAP_TRACE"),
            (RunConfig { per_wave: true, ..RunConfig::default() }, "WAVETAP_PER_WAVE"),
            (RunConfig { collect: launches, ..RunConfig::default() }, "WAVETAP_COLLECT"),
            (RunConfig { collect: both, journal: Some("j".into()), ..RunConfig::default() }, "WAVETAP_COLLECT"),
            (RunConfig { timing: Some("t".into()), ..RunConfig::default() }, "WAVETAP_TIMING"),
            (
                RunConfig { collect: Collected { counters: true, ..Collected::default() }, ..RunConfig::default() },
                "WAVETAP_COLLECT",
            ),
        ] {
            let message = Settings::of(config).unwrap_err();
            assert!(message.starts_with(name), "{message}");
        }
    }
}
