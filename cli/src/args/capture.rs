//! The flags of `capture` and `replay`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use wavetap::run::OutputName;

use super::instrument::{ProbeChoice, probes};
use super::{
    AppArgs, BackendArgs, CounterChoice, InstrumentArgs, OutputArgs, PageSourceArgs, PlacementChoice, ProfileArgs,
    SelectArgs, TimingArgs, ViewArgs, output_name,
};
use crate::targets;

/// Memory that a capture may have unless told otherwise, in MiB.
const MAX_MEMORY: u64 = 4096;

/// Save one dispatch of an application: code, arguments and memory, for `wavetap replay`
///
/// The application runs to its end, uninstrumented. When the chosen dispatch is launched, the memory that its arguments
/// reach is saved, and again when it has ended: pointers are followed from the arguments and the variables of the code
/// into allocations, and from there into others.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap capture -o first.capture -- ./app                                     the first dispatch of any kernel
  wavetap capture --kernel 'mul_mat*' --dispatch 3 -o gemm.capture -- ./app input
  wavetap capture --stack rocm --kernel 'Cijk_*' -o gemm.capture -- python app.py
  wavetap replay gemm.capture                                                   runs it again, and compares")]
pub struct CaptureArgs {
    /// Write the capture to this file
    #[arg(short, long, value_name = "CAPTURE")]
    pub output: PathBuf,
    /// Only dispatches of kernels whose mangled or demangled name matches (`*` and `?`, or /REGEX/; parameters may be
    /// left out; may be given several times)
    #[arg(long, value_name = "GLOB", value_parser = super::region::pattern)]
    pub kernel: Vec<String>,
    /// Which of these dispatches, from 1, in each process
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub dispatch: u64,
    /// Refuse a dispatch that reaches more memory than this, in MiB
    #[arg(long, value_name = "MIB", default_value_t = MAX_MEMORY,
        value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub max_memory: u64,
    /// Run the code for this target
    #[arg(long, visible_alias = "arch", value_name = "GFX", value_parser = targets::parse)]
    pub target: Option<String>,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub backend: BackendArgs,
    #[command(flatten)]
    pub app: AppArgs,
}

/// Run a captured dispatch again, on the built-in emulator, and compare the memory that it leaves
///
/// Without its application, in milliseconds: memory, code and arguments are where they were. Exit code 1 if the kernel
/// leaves other bytes than when it was captured. With --probe it counts, and the report is that of `wavetap profile`;
/// with --strict, --seed and --timing it runs as with `wavetap run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap replay gemm.capture                                   do the outputs equal those of the application?
  wavetap replay gemm.capture --probe memory                    which accesses waste bandwidth
  wavetap replay gemm.capture --strict --seed 7
  wavetap replay gemm.capture --timing
  wavetap replay gemm.capture --trace gemm.trace                what it executes, without counters
  wavetap replay gemm.capture --code tuned.co --timing          another build of the kernel on the same memory
  wavetap replay gemm.capture --code app --target gfx1100       another target")]
pub struct ReplayArgs {
    /// What `wavetap capture` wrote
    #[arg(value_name = "CAPTURE")]
    pub capture: PathBuf,
    /// Run the kernel of this file in place of the captured one: an executable, library, bundle or code object whose
    /// kernel of the same mangled name takes the same arguments
    #[arg(long, value_name = "FILE")]
    pub code: Option<PathBuf>,
    /// With --code: run its code for this target [default: that of the capture]
    #[arg(long, visible_alias = "arch", value_name = "GFX", value_parser = targets::parse, requires = "code")]
    pub target: Option<String>,
    /// Refuse a capture with more memory than this, in MiB
    #[arg(long, value_name = "MIB", default_value_t = MAX_MEMORY,
        value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub max_memory: u64,
    /// What to count [default: nothing]
    #[arg(long, value_delimiter = ',', value_parser = probes(), value_name = "PROBES")]
    pub probe: Vec<ProbeChoice>,
    /// With --probe: where the counters live while the kernel runs
    #[arg(long, value_enum, default_value_t = CounterChoice::Auto, value_name = "MODE")]
    pub counters: CounterChoice,
    /// With --probe: also write the collected counts to this file
    #[arg(short, long, value_name = "PROFILE", value_parser = output_name(), requires = "probe")]
    pub output: Option<OutputName>,
    /// Write the emulator's own trace of the dispatch to this file: what it executed, without counters
    #[arg(long, value_name = "PROFILE", value_parser = output_name(), conflicts_with = "probe")]
    pub trace: Option<OutputName>,
    /// With --probe: also write the report as one HTML page
    #[arg(long, value_name = "OUT", requires = "probe")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub source: PageSourceArgs,
    #[command(flatten)]
    pub timing: TimingArgs,
    #[command(flatten)]
    pub view: ViewArgs,
    #[command(flatten)]
    pub backend: BackendArgs,
    #[command(flatten)]
    pub report: OutputArgs,
}

impl ReplayArgs {
    /// The same as a profile of an application that replays.
    pub fn profile(&self, application: Vec<OsString>, kernel: &str, target: &str) -> ProfileArgs {
        ProfileArgs {
            output: self.output.clone(),
            html: self.html.clone(),
            source: self.source.clone(),
            instrument: InstrumentArgs {
                probe: self.probe.clone(),
                drop: false,
                max_occupancy_loss: None,
                counters: self.counters,
                placement: PlacementChoice::Minimal,
            },
            select: SelectArgs { kernel: vec![kernel.to_owned()], target: vec![target.to_owned()] },
            timing: self.timing.clone(),
            view: self.view.clone(),
            backend: self.backend.clone(),
            report: self.report.clone(),
            app: AppArgs { command: application },
        }
    }
}

/// What the process of a replay is started with.
#[derive(Debug, Args)]
pub struct ReplayHereArgs {
    /// The capture.
    pub capture: PathBuf,
    /// The file for what it finds.
    pub outcome: PathBuf,
    /// Bytes of memory that the capture may have.
    pub memory_limit: u64,
    /// A code object.
    pub code: Option<PathBuf>,
}
