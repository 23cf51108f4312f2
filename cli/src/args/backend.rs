//! What runs the kernels, and how.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use wavetap::collect::selected::DispatchNumbers;
use wavetap::collect::session::WorkgroupSample;

use super::region::pattern;

/// `--backend`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackendChoice {
    /// The GPU where there is one (/dev/kfd) and --stack is not given, otherwise the built-in emulator.
    Auto,
    /// This machine's GPU, with its own ROCm libraries.
    Gpu,
    /// The built-in emulator.
    Emulator,
}

/// `--stack`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StackChoice {
    /// The emulator's own HIP runtime instead of AMD's.
    Hip,
    /// AMD's own libraries, as they are installed, with the emulator in place of their kernel driver.
    Rocm,
}

/// How to run.
#[derive(Debug, Clone, Args)]
pub struct BackendArgs {
    /// What runs the kernels
    #[arg(long, value_enum, default_value_t = BackendChoice::Auto)]
    pub backend: BackendChoice,
    /// Emulator: what the application's calls of HIP reach [default: hip]
    #[arg(long, value_enum)]
    pub stack: Option<StackChoice>,
    /// Emulated GPUs, from 1 to 16, each with memory of its own (only with --stack rocm) [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub gpus: Option<u32>,
    /// Emulator: report what the hardware leaves undefined (missing waits and wait states, reads of undefined registers
    /// and LDS) as errors
    #[arg(long)]
    pub strict: bool,
    /// Emulator: continue after findings of the kinds uninitialised, lds-race, missing-wait, hazard, overread; report
    /// each place once, exit code 1. Other faults still end the run (implies --strict)
    #[arg(long)]
    pub strict_continue: bool,
    /// Emulator: continue after the findings that this file names, unreported. A line is KIND KERNEL, and ADDRESS if
    /// wanted: a kind as above or `*`; a name with `*` for any characters (implies --strict)
    #[arg(long, value_name = "FILE")]
    pub suppressions: Option<PathBuf>,
    /// Emulator: seed of everything that is random (order of waves, undefined contents)
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// Emulator: most wave-instructions that one dispatch may execute, after which the run ends (default: 50000000000)
    #[arg(long, value_name = "N")]
    pub fuel: Option<u64>,
    /// Emulator: threads that the workgroups of a long dispatch are divided among (default: one for each core; --strict
    /// uses one)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: Option<u32>,
    /// With --per-wave: give this many records to the waves of a dispatch; more waves than that share them. Totals need
    /// few records, whatever the number of waves
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub records: Option<u32>,
    /// With --probe memory: record the accesses of `all` workgroups, of at most N (the first, the middle, the last, and
    /// others that a hash chooses), or of each Nth (`1/N`) [default: 8]
    #[arg(long, value_name = "all|N|1/N")]
    pub workgroups: Option<WorkgroupSample>,
    /// Count the first N dispatches of each kernel, or those with the numbers A to B; with --probe memory record these
    /// [default: all; with --probe memory the first, second, fourth, eighth and so on, and those with more than twice
    /// the waves of all recorded before]
    #[arg(long, value_name = "N|A-B")]
    pub dispatches: Option<DispatchNumbers>,
    /// Count what is launched in ranges of the application (roctxRangePush, roctxRangeStart) whose name matches, and
    /// nothing else (`*`, `?`, /REGEX/; OUTER/INNER for one inside the other; may be given several times)
    #[arg(long, value_name = "NAME", value_parser = pattern)]
    pub region: Vec<String>,
    /// Count from where the application calls roctxProfilerResume or hipProfilerStart. Without it, until it calls
    /// roctxProfilerPause or hipProfilerStop
    #[arg(long)]
    pub selected_regions: bool,
    /// Emulator: what each node of a graph launches is in a range of its own, `graph 1/node 2` (only with --stack hip)
    #[arg(long)]
    pub graph_nodes: bool,
    /// Device memory that the records of one dispatch may take, in MiB [default: 256]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub memory_limit: Option<u64>,
    /// Keep every wave's counts in addition to the totals (of files that `rewrite --per-wave` wrote)
    #[arg(long)]
    pub per_wave: bool,
}
