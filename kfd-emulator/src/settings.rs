//! What the configuration of the run and the environment ask for.

use wavetap_amdgpu::{Board, MachineFact, Target};
use wavetap_collect::check::CheckConfig;
use wavetap_collect::config::{Collected, RunConfig};
use wavetap_emulator::{Options, Passes};
use wavetap_profile::check::Tool;

use crate::topology::CLOCK_MHZ;
use crate::{gpu, raw, topology};
use wavetap_collect::stderr_line;

/// The device that is emulated where none is named.
const DEFAULT_TARGET: &str = "gfx90a";

/// What is asked for.
pub(crate) struct Settings {
    pub(crate) target: Target,
    /// How many GPUs.
    pub(crate) gpus: u32,
    /// Of each.
    pub(crate) compute_units: u32,
    pub(crate) options: Options,
    /// What is checked, if anything is.
    pub(crate) check: Option<CheckConfig>,
}

impl Settings {
    /// Reads them; what makes no sense or is not possible here ends the program with exit code 2, since the run would
    /// not be the one that was asked for.
    pub(crate) fn read() -> Self {
        let config = RunConfig::read(|name| std::env::var(name).ok()).map_err(|error| error.to_string());
        config.and_then(|config| Self::of(&config)).unwrap_or_else(|message| {
            stderr_line!("wavetap: {message}");
            raw::end_now(2)
        })
    }

    fn of(config: &RunConfig) -> Result<Self, String> {
        let name = config.target.as_deref().unwrap_or(DEFAULT_TARGET);
        let target = target(name).ok_or_else(|| {
            format!(
                "WAVETAP_TARGET={name}: the emulated kernel driver has no such device; a gfx9 to gfx12 processor \
                    was expected, with XNACK off"
            )
        })?;
        let gpus = config.gpus.unwrap_or(1);
        if !(1..=gpu::MOST).contains(&gpus) {
            return Err(format!("WAVETAP_GPUS={gpus}: 1 to {} were expected", gpu::MOST));
        }
        let board = config.board.as_ref().map(|name| {
            let fits = |board: &&Board| board.target == target.name();
            Board::by_name(name)
                .filter(fits)
                .ok_or_else(|| format!("WAVETAP_BOARD={name}: there is no such board of a {}", target.name()))
        });
        let compute_units = match board.transpose()? {
            Some(board) => board.compute_units,
            None => target.machine(MachineFact::ComputeUnits).typical,
        };
        // What these collect is the HSA tool's.
        let Collected { counters, launches, .. } = config.collect;
        let refused = [
            ("traces and times", config.collect != Collected { counters, launches, ..Collected::default() }),
            ("WAVETAP_TRACE", config.trace.is_some()),
            ("WAVETAP_ORIGINS", config.origins.is_some()),
            ("WAVETAP_TIMING", config.timing.is_some()),
            ("WAVETAP_SAMPLES", config.samples.is_some()),
            ("WAVETAP_STRICT_CONTINUE", config.strict_continue),
            ("WAVETAP_SUPPRESSIONS", config.suppressions.is_some()),
            ("WAVETAP_SKIP_KERNELS", config.skip_kernels),
        ];
        if let Some((what, _)) = refused.iter().find(|(_, set)| *set) {
            return Err(format!("{what}: not available with the real ROCm libraries"));
        }
        let check = config.check.clone();
        let wants = |tool| check.as_ref().is_some_and(|check| check.tools.contains(&tool));
        let checks = check.is_some();
        let mut options = Options {
            strict: config.strict || checks,
            passes: Passes { all: checks, accesses: checks, ..Passes::default() },
            barriers: checks,
            races: wants(Tool::Races),
            schedule: check.as_ref().and_then(|check| check.schedule),
            seed: config.seed,
            threads: config.threads,
            clock_mhz: CLOCK_MHZ,
            ..Options::default()
        };
        if let Some(fuel) = config.fuel {
            options.fuel = fuel;
        }
        Ok(Settings { target, gpus, compute_units, options, check })
    }
}

/// The processor of a target id: XNACK is off, and error correction on where the processor has it.
fn target(id: &str) -> Option<Target> {
    let mut parts = id.split(':');
    let target = Target::by_name(parts.next()?).filter(|target| topology::family(*target).is_some())?;
    let has = |feature: &str| match feature {
        "xnack-" => true,
        "sramecc+" => target.supports_sramecc(),
        _ => false,
    };
    parts.all(has).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(config: RunConfig) -> Result<Settings, String> {
        Settings::of(&config)
    }

    #[test]
    fn targets_are_those_that_a_driver_can_have() {
        assert_eq!(of(RunConfig::default()).expect("defaults").target.name(), "gfx90a");
        for (target, has) in [
            ("gfx1100", true),
            ("gfx90a:sramecc+:xnack-", true),
            ("gfx90a:xnack+", false),
            ("gfx803", false),
            ("gfx9-generic", false),
            ("gfx1", false),
        ] {
            let result = of(RunConfig { target: Some(target.into()), ..RunConfig::default() });
            assert_eq!(result.is_ok(), has, "{target}");
        }
    }

    #[test]
    fn there_are_as_many_gpus_as_are_asked_for() {
        for (asked, has) in
            [(None, Some(1)), (Some(1), Some(1)), (Some(16), Some(16)), (Some(0), None), (Some(17), None)]
        {
            let result = of(RunConfig { gpus: asked, ..RunConfig::default() });
            assert_eq!(result.ok().map(|settings| settings.gpus), has, "{asked:?}");
        }
    }

    #[test]
    fn what_is_not_done_is_refused() {
        let message = of(RunConfig { trace: Some("t".into()), ..RunConfig::default() }).err().expect("an error");
        assert!(message.starts_with("WAVETAP_TRACE"), "{message}");
        let board = |name: &str| of(RunConfig { board: Some(name.into()), ..RunConfig::default() });
        assert_eq!(board("mi250x").expect("one of the default target").compute_units, 110);
        assert!(board("mi300a").is_err_and(|message| message.starts_with("WAVETAP_BOARD")));
        let collected = |collect| of(RunConfig { collect, ..RunConfig::default() });
        assert!(collected(Collected { counters: true, ..Collected::default() }).is_ok(), "the HSA tool counts");
        assert!(collected(Collected { launches: true, ..Collected::default() }).is_ok(), "and lists launches");
        assert!(collected(Collected { trace: true, ..Collected::default() }).is_err());
        assert!(of(RunConfig { strict: true, seed: 3, ..RunConfig::default() }).expect("strict").options.strict);
    }
}
