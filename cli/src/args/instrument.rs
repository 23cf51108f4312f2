//! The flags that say how code is instrumented.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use wavetap::pipeline::{CounterPlacement, Counters, Options, probe};

use super::SelectArgs;

/// How to instrument.
#[derive(Debug, Clone, Args)]
pub struct InstrumentArgs {
    /// What to count
    #[arg(long, value_delimiter = ',', value_parser = probes(), default_value = probe::BRANCHES.name(),
        value_name = "PROBES")]
    pub probe: Vec<ProbeChoice>,
    /// With --probe bounds: lanes do not execute accesses that are out of bounds, and loads give them 0
    #[arg(long)]
    pub drop: bool,
    /// Refuse kernels that would lose more than N waves per SIMD to their counters
    #[arg(long, value_name = "N")]
    pub max_occupancy_loss: Option<u32>,

    /// Where the counters live while a kernel runs
    #[arg(long, value_enum, default_value_t = CounterChoice::Auto, value_name = "MODE")]
    pub counters: CounterChoice,
    /// Which counters are kept
    #[arg(long, value_enum, default_value_t = PlacementChoice::Minimal, value_name = "PLACEMENT")]
    pub placement: PlacementChoice,
}

/// One of `--probe`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeChoice {
    /// Nothing: launches are recorded and no kernel is rewritten.
    Nothing,
    /// What a probe measures.
    Kind(probe::ProbeRef),
}

/// The name of [`ProbeChoice::Nothing`].
const NOTHING: &str = "none";

impl InstrumentArgs {
    /// What is measured in kernels.
    pub fn probes(&self) -> impl Iterator<Item = probe::ProbeRef> + use<'_> {
        self.probe.iter().filter_map(|probe| match probe {
            ProbeChoice::Nothing => None,
            ProbeChoice::Kind(kind) if self.drop && *kind == probe::BOUNDS => Some(probe::BOUNDS_DROP),
            ProbeChoice::Kind(kind) => Some(*kind),
        })
    }

    /// Whether a probe is asked for that needs this.
    pub fn need(&self, what: impl Fn(&probe::Needs) -> bool) -> bool {
        self.probes().any(|probe| what(&probe.needs()))
    }

    /// Whether nothing is to be measured in kernels.
    pub fn counts_nothing(&self) -> bool {
        self.probe.contains(&ProbeChoice::Nothing)
    }

    /// The pipeline's options.
    pub fn options(&self, select: &SelectArgs) -> Options {
        let probes = self.probes().collect();
        let max_occupancy_loss = self.max_occupancy_loss;
        let (counters, placement, selection) = (self.counters.into(), self.placement.into(), select.selection());
        Options {
            probes,
            counters,
            placement,
            selection,
            keep_addresses: false,
            max_occupancy_loss,
            ..Options::default()
        }
    }
}

/// `--probe`: all that there are, by name.
pub(super) fn probes() -> impl TypedValueParser<Value = ProbeChoice> {
    let nothing =
        PossibleValue::new(NOTHING).help("Nothing in kernels, which stay as they are: only how they are launched");
    let kinds = probe::ALL.iter().map(|probe| PossibleValue::new(probe.name()).help(probe.summary()));
    PossibleValuesParser::new(kinds.chain([nothing])).try_map(|name| match name.as_str() {
        NOTHING => Ok(ProbeChoice::Nothing),
        _ => probe::by_name(&name).map(ProbeChoice::Kind).ok_or_else(|| format!("no probe {name:?}")),
    })
}

/// `--counters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CounterChoice {
    /// For each kernel where it is predicted to take fewest cycles, of those where most waves run.
    Auto,
    /// In the workgroup's LDS, flushed when a wave ends.
    Lds,
    /// In memory, with atomics.
    Global,
    /// In registers that the kernel leaves free, added to memory when a wave ends.
    Register,
}

impl From<CounterChoice> for Counters {
    fn from(choice: CounterChoice) -> Counters {
        match choice {
            CounterChoice::Auto => Counters::Auto,
            CounterChoice::Lds => Counters::Lds,
            CounterChoice::Global => Counters::Global,
            CounterChoice::Register => Counters::Register,
        }
    }
}

/// `--placement`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PlacementChoice {
    /// The fewest from which the others follow by the flow of control; where that is not known, all of a kernel's.
    Minimal,
    /// All, each at its own instruction: more code, and each count measured where it is.
    All,
}

impl From<PlacementChoice> for CounterPlacement {
    fn from(choice: PlacementChoice) -> CounterPlacement {
        match choice {
            PlacementChoice::Minimal => CounterPlacement::Minimal,
            PlacementChoice::All => CounterPlacement::All,
        }
    }
}
