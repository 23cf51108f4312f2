//! Arguments of `wavetap compare`.

use clap::Args;

use super::{AppArgs, BackendArgs, BoardArgs, CounterChoice, OutputArgs, PlacementChoice, SelectArgs, TimingArgs};

/// Run an application in each counter mode: do the counts agree, and what does each mode cost?
///
/// The application runs once unmodified and once in each mode, each time with the emulator's trace, which the counts
/// must equal. Its output is shown once; in the later runs its stdin is empty. With --timing each run is modelled: what
/// a mode costs in cycles stands beside the original's.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  wavetap compare --modes auto,lds -- hip-samples/bin/nested_loops\n  wavetap \
        compare --timing -- hip-samples/bin/nested_loops")]
pub struct CompareArgs {
    /// The modes to compare
    #[arg(long, value_enum, value_delimiter = ',', value_name = "MODES", default_value = "lds,global,register")]
    pub modes: Vec<CounterChoice>,
    /// Which counters are kept
    #[arg(long, value_enum, default_value_t = PlacementChoice::Minimal, value_name = "PLACEMENT")]
    pub placement: PlacementChoice,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub timing: TimingArgs,
    #[command(flatten)]
    pub board: BoardArgs,
    #[command(flatten)]
    pub backend: BackendArgs,
    #[command(flatten)]
    pub report: OutputArgs,
    #[command(flatten)]
    pub app: AppArgs,
}
