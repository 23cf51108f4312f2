//! Every flag of every subcommand, each defined once.

mod backend;
mod capture;
mod check;
mod compare;
mod doctor;
mod export;
mod findings;
mod instrument;
mod merge;
mod page;
mod region;
mod shell;
mod timing;
mod view;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use wavetap::pipeline::{Packing, Selection};
use wavetap::run::OutputName;
use wavetap::slice::blame::Blame;

use crate::targets;
use crate::workgroup;

pub use backend::{BackendArgs, BackendChoice, StackChoice};
pub use capture::{CaptureArgs, ReplayArgs, ReplayHereArgs};
pub use check::{CheckArgs, CheckFormat};
pub use compare::CompareArgs;
pub use doctor::DoctorArgs;
pub use export::{
    AccessesArgs, CountUnit, CountedArgs, CsvArgs, ExportArgs, ExportForm, FoldedArgs, FoundArgs, HeatMapArgs,
    LcovArgs, ParquetArgs, PartitionChoice, SitesArgs, ToFileArgs, TraceArgs, ViewerArgs,
};
pub use findings::{FailOn, FindingsFormat};
pub use instrument::{CounterChoice, InstrumentArgs, PlacementChoice};
pub use merge::{KeptApart, MergeArgs};
pub use page::{PageArgs, PageSourceArgs};
pub use region::RegionArgs;
use region::pattern;
pub use shell::{CompletionsArgs, ManArgs};
pub use timing::TimingArgs;
pub use view::{BoardArgs, DetailsChoice, RooflineArgs, ViewArgs};

/// See which branches of a GPU program diverge, which accesses waste bandwidth, and what its waves wait for, from its
/// binary alone.
///
/// Wavetap rewrites the AMD GPU code inside a HIP executable so that it counts what its branches and lanes do, runs it,
/// and explains the counts. The program runs on the built-in emulator: no GPU is needed.
#[derive(Debug, Parser)]
#[command(name = "wavetap", version, max_term_width = 120, disable_help_subcommand = true)]
pub struct Cli {
    #[command(flatten)]
    pub look: LookArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// How text looks, whatever the subcommand.
#[derive(Debug, Clone, Copy, Args)]
pub struct LookArgs {
    /// When to use colours
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub color: ColorChoice,
    /// Text: lines as long as they are. Without it, they fit the terminal (or COLUMNS; 120 columns if stdout is none)
    #[arg(long, global = true)]
    pub wide: bool,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    Inspect(InspectArgs),
    Disasm(DisasmArgs),
    Rewrite(RewriteArgs),
    Run(RunArgs),
    Profile(ProfileArgs),
    Check(CheckArgs),
    Compare(CompareArgs),
    Capture(CaptureArgs),
    Replay(ReplayArgs),
    Slice(SliceArgs),
    Memory(MemoryArgs),
    Mix(MixArgs),
    Roofline(RooflineArgs),
    Report(ReportArgs),
    Merge(MergeArgs),
    Diff(DiffArgs),
    Verify(VerifyArgs),
    Export(ExportArgs),
    Doctor(DoctorArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    /// Replays in this process, in which the emulator's HIP runtime is
    #[command(hide = true)]
    ReplayHere(ReplayHereArgs),
}

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs; the field `schema` names the version.
    Json,
    /// The same as YAML.
    Yaml,
}

/// Show bundles, code objects, kernels and functions: registers, LDS, occupancy and what limits it
///
/// FILE is a HIP executable or shared library, an offload bundle or a code object. Every entry of every bundle has an
/// id (bundle.entry), which --entry takes. With --extract the code objects are written to files.
///
/// "VGPRs 41 of 48" means that the kernel uses 41 vector registers of a lane and is given 48. Occupancy is the number
/// of waves that a SIMD holds at once; "next step" says what the kernel would have to get by with for more.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap inspect hip-samples/bin/divergence
  wavetap inspect app --target gfx90a,gfx942 --kernel 'reduce*'
  wavetap inspect app --format json
  wavetap inspect libfoo.so --extract objects          every code object as objects/libfoo.so.0.1.gfx90a.co …
  wavetap inspect libfoo.so --entry 0.3 --extract .    one of them
  wavetap inspect app --workgroup 256                  occupancy of launches with workgroups of 256")]
pub struct InspectArgs {
    /// The file to look into; `-` is stdin
    pub file: PathBuf,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub entry: EntryArgs,
    /// Write the selected code objects to files in this folder, which is made if it is not there
    #[arg(short = 'o', long, value_name = "DIR")]
    pub extract: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Print annotated disassembly: functions, blocks, loops, branches, waits, live registers, source lines
///
/// Without --kernel or --function every byte of every executable section is listed: what is no instruction as `.long`,
/// what control does not reach as such, padding once with the number of its words.
///
/// The columns V, A and S are the VGPRs, AGPRs and SGPRs that are live after the instruction. A note "waits for 1e08"
/// names the operations that a wait waits for, "waited for at 1e14" where an operation is waited for.
///
/// With --counters each counted branch shows what `wavetap report` says of it: executions, how often all active lanes
/// agreed, active lanes before and after; of a uniform branch how often it was taken. A function's counts are those of
/// all kernels that its heading names, added up. Blocks of which it is certain say how often they were executed, or
/// "not executed in this run".
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap disasm hip-samples/bin/divergence --target gfx90a
  wavetap disasm app --kernel 'reduce*' --target gfx90a --source
  wavetap disasm app --function 'helper*' --bytes
  wavetap profile -o app.profile -- ./app && wavetap disasm app --counters app.profile
  wavetap disasm app --format json | jq '.objects[].code[] | {name, pressure}'
  diff <(llvm-objdump -d k.co) <(wavetap disasm --plain k.co)")]
pub struct DisasmArgs {
    /// The file to look into; `-` is stdin
    pub file: PathBuf,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Only functions or kernels whose name matches, without those that they call (besides --kernel, which lists those
    /// too; may be given several times)
    #[arg(long, value_name = "GLOB", value_parser = pattern)]
    pub function: Vec<String>,
    #[command(flatten)]
    pub entry: EntryArgs,
    /// Counts of a run of this file: shown beside the branches that they are of
    #[arg(long, value_name = "PROFILE")]
    pub counters: Option<PathBuf>,
    #[command(flatten)]
    pub region: RegionArgs,
    /// Show the words of each instruction
    #[arg(long)]
    pub bytes: bool,
    /// Show the text of source lines, where the files are there
    #[arg(long)]
    pub source: bool,
    /// Look for source files below this folder, too (implies --source; may be given several times)
    #[arg(long, value_name = "DIR")]
    pub source_path: Vec<PathBuf>,
    /// Leave these out of the text
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub hide: Vec<Hidden>,
    /// Only addresses, instructions and words, in the form of `llvm-objdump -d`
    #[arg(long, conflicts_with_all = ["bytes", "source", "source_path", "hide", "counters"])]
    pub plain: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `--hide`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Hidden {
    /// The arrows of branches.
    Arrows,
    /// Live registers.
    Registers,
    /// Source lines.
    Source,
    /// What waits wait for.
    Waits,
}

/// Which entries, and for which launches.
#[derive(Debug, Clone, Default, Args)]
pub struct EntryArgs {
    /// Only this entry of a bundle, as `inspect` numbers them (`0.2`: bundle 0, entry 2; may be given several times)
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub entry: Vec<String>,
    /// Occupancy of launches with workgroups of this many work-items: N, or X,Y,Z [default: what the kernel requires or
    /// allows]
    #[arg(long, value_name = "N", value_parser = workgroup::size)]
    pub workgroup: Option<u32>,
    /// Occupancy of launches that add this many bytes of LDS to the kernel's own
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub dynamic_lds: u32,
}

/// Write an executable whose kernels count
///
/// IN is a linked HIP executable or shared library, an offload bundle or a code object (.co, .hsaco); object files and
/// static archives are refused. OUT is of the same kind and behaves as IN does; it counts when `wavetap run` gives it a
/// place to put the counts. A kernel that cannot be instrumented correctly is refused: it stays unchanged, and is
/// listed with the reason.
///
/// OUT appears when it is complete, with IN's permissions; IN is never changed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  wavetap rewrite app -o app.counting && wavetap run -o app.profile -- ./app.counting\n  \
        wavetap rewrite app -o app.counting --kernel 'reduce*' --counters global --map app.map\n  wavetap rewrite \
        libfoo.so -o counting/libfoo.so --target gfx90a,gfx942 --bundles plain"
)]
pub struct RewriteArgs {
    /// The file to rewrite; it is not changed
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// Where to write the result
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// How bundles of changed code are written: keep (compressed as they were, or plain), plain, compressed
    #[arg(long, value_enum, default_value_t = BundleChoice::Keep, value_name = "HOW")]
    pub bundles: BundleChoice,
    /// Also write which original address is where, as JSON (it is inside OUT, too)
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// Give each wave its own counters, for `run --per-wave`; without, waves add to a few totals, which costs less
    #[arg(long)]
    pub per_wave: bool,
    #[command(flatten)]
    pub instrument: InstrumentArgs,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub report: OutputArgs,
}

/// Run an application on the built-in emulator and collect what rewritten kernels count
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap run -- ./app input.txt
  wavetap run -o app.profile -- ./app.counting
  wavetap run -o rank%r.profile -- mpirun -n 4 ./app.counting        one profile for each rank
  wavetap run --timing -- ./app                                     modelled cycles and stalls, after what ./app prints
  wavetap run --timing --latency vmem=400 --latency l2=600 -- ./app
  wavetap run --timing --format json --report time.json -- ./app
  wavetap run --samples samples.json --sample-interval 256 -- ./app  stall samples as rocprofv3 writes them
  wavetap run --fidelity -- ./app                                   how exact the emulator is for what ./app executes")]
pub struct RunArgs {
    /// Write the collected counts to this file: the sum of all processes. In its name %p stands for the process's id,
    /// %r for its rank (of Open MPI, PMIx, PMI, MVAPICH2 or Slurm; 0 without one), %h for the host, %% for a percent
    /// sign: each name that results is a file, the sum of the processes that have it
    #[arg(short, long, value_name = "PROFILE", value_parser = output_name())]
    pub output: Option<OutputName>,
    /// Write the emulator's own trace of the same branches to this file (%p, %r, %h as with -o)
    #[arg(long, value_name = "PROFILE", value_parser = output_name())]
    pub trace: Option<OutputName>,
    /// Run the code for this target
    #[arg(long, visible_alias = "arch", value_name = "GFX", value_parser = targets::parse)]
    pub target: Option<String>,
    /// Write stall samples of the timing model to this file, in the form of rocprofv3's stochastic PC samples (%p, %r,
    /// %h as with -o; implies --timing)
    #[arg(long, value_name = "FILE", value_parser = output_name())]
    pub samples: Option<OutputName>,
    /// Modelled cycles between two samples of a wave [default: 1024]
    #[arg(long, value_name = "CYCLES", requires = "samples", value_parser = clap::value_parser!(u32).range(1..))]
    pub sample_interval: Option<u32>,
    /// Keep what the waves of one compute unit did, instruction by instruction, in the first dispatch of each kernel:
    /// in the report as JSON, for `wavetap export viewer` (implies --timing)
    #[arg(long)]
    pub timing_waves: bool,
    /// Report how exact the emulator was: for each kernel and line what is as documented, within so many units in the
    /// last place, or a choice of the emulator where manuals say less
    #[arg(long, conflicts_with_all = ["timing", "samples", "timing_waves"])]
    pub fidelity: bool,
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

/// Rewrite an application, run it, and explain what it counted: launches, branches, waits, memory, time
///
/// The report begins with a summary: the most expensive kernels, what bounds each, and what matters most of it.
/// With `--probe none` nothing is rewritten, and only launches and copies are reported.
///
/// Code that the application, or a process it starts, loads is rewritten when it is loaded: libraries, modules, the
/// output of a just-in-time compiler.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  wavetap profile ./app input.txt\n  wavetap profile --report app.json --format json -- \
        ./app --its-own-flag\n  wavetap profile --target gfx942 --counters global hip-samples/bin/divergence\n  \
        wavetap profile --timing --latency memory=1000 ./app\n  wavetap profile --probe branches,blocks \
        --timing --html app.html ./app\n  \
        wavetap profile --probe memory ./app                                which accesses waste bandwidth\n  \
        wavetap profile --probe time hip-samples/bin/divergence             cycles of waves and basic blocks\n  \
        wavetap profile --probe memory-latency ./app                        cycles of loads, with distribution\n  \
        wavetap profile --probe none ./app                                  launches alone\n  \
        wavetap profile --target gfx942 -- python app.py                             kernels that Triton compiles"
)]
pub struct ProfileArgs {
    /// Also write the collected counts to this file. In its name %p stands for the process's id, %r for its rank (of
    /// Open MPI, PMIx, PMI, MVAPICH2 or Slurm; 0 without one), %h for the host, %% for a percent sign: each name that
    /// results is a file, the sum of the processes that have it
    #[arg(short, long, value_name = "PROFILE", value_parser = output_name())]
    pub output: Option<OutputName>,
    /// Also write the report as one HTML page, with code, source and, with --timing, modelled time
    #[arg(long, value_name = "OUT")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub source: PageSourceArgs,
    #[command(flatten)]
    pub instrument: InstrumentArgs,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub timing: TimingArgs,
    #[command(flatten)]
    pub view: ViewArgs,
    #[command(flatten)]
    pub backend: BackendArgs,
    #[command(flatten)]
    pub report: OutputArgs,
    #[command(flatten)]
    pub app: AppArgs,
}

/// Show which operations each wait waits for and where these come from, the costliest first (predicted from code and
/// counts)
///
/// Code of NVIDIA GPUs (cubins, fat binaries, host files with these) and of Intel's Ponte Vecchio (zebins) is sliced,
/// too: without counters, so by static latencies unless there are samples.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wavetap slice app --counters app.profile\n  wavetap slice app --samples \
        out_results.json --target gfx90a\n  wavetap slice hip-samples/bin/divergence --target gfx90a\n  \
        wavetap slice kernel.cubin --samples page.csv      of ncu --page source --print-source sass --csv\n  \
        wavetap slice a.co b.cubin c.zebin --compare       a kernel on several GPUs side by side")]
pub struct SliceArgs {
    /// The original file; with --compare several
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Compare the kernels that several files, or code for several targets in one, have by the same name: of which
    /// lines and kinds of operations each waits, where they differ, and why
    #[arg(long, conflicts_with_all = ["counters", "samples"])]
    pub compare: bool,
    /// Counts of a run: they say how often each wait was executed
    #[arg(long, value_name = "PROFILE")]
    pub counters: Option<PathBuf>,
    #[command(flatten)]
    pub region: RegionArgs,
    /// Where waves of the original were seen: PC samples of rocprofv3 as JSON or CSV (host trap or stochastic), of
    /// wavetap run --samples, or a thread trace: its stats_*.csv, its folder ui_output_agent_* for AMD's viewer, or
    /// code.json of that. If it is given more than once, the most trusted that saw a kernel counts: thread trace,
    /// stochastic, host trap, CSV. NVIDIA: a source page of ncu as CSV, the text of CUPTI's PC sampling; Intel: the
    /// text of unitrace --stall-sampling
    #[arg(long, value_name = "FILE")]
    pub samples: Vec<PathBuf>,
    /// The rule by which a stall is divided among its causes
    #[arg(long, value_enum, default_value_t = BlameChoice::Exposed, value_name = "RULE")]
    pub blame: BlameChoice,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Show how the lanes of each wave access memory: coalescing, bank conflicts of LDS
///
/// From the code alone: for each access, where the lanes of a wave go, how many cache lines that takes, and how many
/// cycles of LDS. Nothing runs. The workgroup decides how lanes lie to each other: it is what the source requires, what
/// a profile has seen, or what --workgroup says; otherwise one dimension is assumed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  wavetap memory app\n  wavetap memory app --workgroup 16,16 --kernel 'gemm*'\n  \
        wavetap memory app --counters app.profile            ranked by what was executed\n  \
        wavetap memory app --counters app.records --counters app.profile\n  \
        wavetap memory hip-samples/bin/transpose --target gfx90a --workgroup 32,8\n  \
        wavetap memory app --format sarif --report app.sarif --fail-on high")]
pub struct MemoryArgs {
    /// The original file
    pub file: PathBuf,
    /// Counts of a run: they say how often each access was executed, and the size of the workgroups. Given twice, one
    /// with recorded accesses (--probe memory) and one with counts of blocks (--probe blocks): what was recorded, at as
    /// many executions as there were
    #[arg(long, value_name = "PROFILE")]
    pub counters: Vec<PathBuf>,
    #[command(flatten)]
    pub region: RegionArgs,
    /// Work-items of a workgroup, in place of what the file and the profile say
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = workgroup::sizes)]
    pub workgroup: Option<[u32; 3]>,
    /// JSON, YAML: heat maps of all recorded workgroups, in place of the first that accesses an array
    #[arg(long, requires = "counters")]
    pub all_workgroups: bool,
    /// End with exit code 1 if an access is as bad as this or worse, or no kernel is selected. With --counters, what is
    /// less than 5 % of all that is too much is a note and does not count
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub fail_on: Option<FailOn>,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub output: OutputArgs<FindingsFormat>,
}

/// Show what kernels executed: instructions by class, FLOPs, bytes, per kernel, loop and source line
///
/// From the counts of basic blocks (`wavetap profile --probe blocks`): executions are exact. Active lanes are, too,
/// where they follow from the counts; of how many instructions they do not is said. With `--probe branches,blocks` more
/// of them do. FLOPs are shown in rocprof-compute's convention and as what active lanes did.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap profile --probe blocks -o app.profile -- ./app && wavetap mix app --counters app.profile
  wavetap mix app --counters app.profile --kernel 'gemm*' --format json")]
pub struct MixArgs {
    /// The original file
    pub file: PathBuf,
    /// Counts of blocks of a run of it
    #[arg(long, value_name = "PROFILE")]
    pub counters: PathBuf,
    #[command(flatten)]
    pub region: RegionArgs,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `--blame`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BlameChoice {
    /// What is left of each operation's latency when the wait begins.
    Exposed,
    /// As LEO (arXiv 2604.20032) is published, to compare with.
    Leo,
}

impl From<BlameChoice> for Blame {
    fn from(choice: BlameChoice) -> Blame {
        match choice {
            BlameChoice::Exposed => Blame::Exposed,
            BlameChoice::Leo => Blame::Leo,
        }
    }
}

/// Show a profile as a report, or write it as one HTML page
///
/// The page needs no other file and no network: kernels by share, code and source side by side with what was counted of
/// them, predicted waits, accesses of memory with heat maps, instruction mix, modelled time; each as far as the files
/// that are given have it. It has the text of the source lines around the kernels' code, where the files are found.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap report app.profile
  wavetap report app.profile --html app.html --binary app
  wavetap report app.profile --html app.html --binary app --accesses memory.profile --time time.json")]
pub struct ReportArgs {
    /// The profile
    pub profile: PathBuf,
    #[command(flatten)]
    pub region: RegionArgs,
    /// Write an HTML page instead of the text
    #[arg(long, value_name = "OUT")]
    pub html: Option<PathBuf>,
    /// The original file, to explain the waits from, and for the page's code, accesses and instruction mix
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
    #[command(flatten)]
    pub view: ViewArgs,
    #[command(flatten)]
    pub page: PageArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Show what differs between two profiles, of one build or of two
///
/// Kernels are partners by demangled name and target, branches and blocks by source line, which may have moved with
/// others, operation and order. A condition of --fail-if is METRIC>NUMBER or METRIC<NUMBER, for each kernel that both
/// profiles have: without a sign the number is compared with the new value, with a sign with the change, with a sign
/// and % with the change in percent of the old value. Metrics: divergence (percent of branches), divergences, branches,
/// blocks, lanes, instructions, waves, dispatches, global_bytes; and PROBE/KIND/FIELD, a field of any probe's sites.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap diff old.profile new.profile
  wavetap diff old.profile new.profile --html diff.html
  wavetap diff old.profile new.profile --fail-if 'divergence>+5%' --fail-if 'lanes<48'")]
pub struct DiffArgs {
    /// The profile before
    pub old: PathBuf,
    /// The profile after
    pub new: PathBuf,
    #[command(flatten)]
    pub region: RegionArgs,
    /// End with code 1 if this holds for a kernel (may be given several times)
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<String>,
    /// Write an HTML page instead of the text
    #[arg(long, value_name = "OUT")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Check a rewritten file against its original, independently of the rewriter
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  wavetap verify app app.counting")]
pub struct VerifyArgs {
    /// The file before it was rewritten
    pub original: PathBuf,
    /// The output of `wavetap rewrite`
    pub rewritten: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Which kernels.
#[derive(Debug, Clone, Default, Args)]
pub struct SelectArgs {
    /// Only kernels whose mangled or demangled name matches (`*` and `?`, or /REGEX/; parameters may be left out; may
    /// be given several times)
    #[arg(long, value_name = "GLOB", value_parser = pattern)]
    pub kernel: Vec<String>,
    /// Only code for this target (`gfx90a`, `gfx90a:xnack-`, `sm_80`, `pvc`; may be given several times)
    #[arg(long, visible_alias = "arch", value_name = "GFX", value_delimiter = ',', value_parser = targets::parse)]
    pub target: Vec<String>,
}

impl SelectArgs {
    /// The selection.
    pub fn selection(&self) -> Selection {
        Selection { kernels: self.kernel.clone(), targets: self.target.clone() }
    }
}

/// `--bundles`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BundleChoice {
    /// Compressed if they were (same version and method), plain if they were.
    Keep,
    /// Plain, which every version of ROCm reads.
    Plain,
    /// Compressed.
    Compressed,
}

impl From<BundleChoice> for Packing {
    fn from(choice: BundleChoice) -> Packing {
        match choice {
            BundleChoice::Keep => Packing::AsFound,
            BundleChoice::Plain => Packing::Plain,
            BundleChoice::Compressed => Packing::Compressed,
        }
    }
}

/// How to report, in one of these forms.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs<F: ValueEnum + Send + Sync + 'static = Format> {
    /// Form of the report
    #[arg(long, value_enum, default_value = "text")]
    pub format: F,
    /// Write the report to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Text: full names of kernels and functions, however long (JSON and YAML always have them)
    #[arg(long)]
    pub long_names: bool,
    /// Replace files that exist
    #[arg(long)]
    pub force: bool,
}

/// What to run.
#[derive(Debug, Clone, Args)]
pub struct AppArgs {
    /// The application and its arguments; options of wavetap come before it
    #[arg(required = true, trailing_var_arg = true, value_name = "APP [ARGS]")]
    pub command: Vec<OsString>,
}

/// A path with placeholders for what differs between processes.
fn output_name() -> impl TypedValueParser<Value = OutputName> {
    PathBufValueParser::new().try_map(OutputName::parse)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_follows_the_application_is_its_own() {
        for line in [
            &["wavetap", "profile", "--seed", "7", "app", "--seed", "8", "-o", "x"][..],
            &["wavetap", "profile", "--seed", "7", "--", "app", "--seed", "8", "-o", "x"],
        ] {
            let Ok(Cli { command: Command::Profile(profile), .. }) = Cli::try_parse_from(line) else {
                panic!("{line:?}")
            };
            assert_eq!(profile.backend.seed, 7);
            assert_eq!(profile.app.command, ["app", "--seed", "8", "-o", "x"]);
            assert!(profile.output.is_none());
        }
        assert!(
            Cli::try_parse_from(["wavetap", "profile", "--no-such-flag", "app"]).is_err(),
            "a misspelt flag is no application"
        );
    }

    #[test]
    fn latencies_are_checked() {
        let parse = |value: &str| Cli::try_parse_from(["wavetap", "run", "--latency", value, "app"]);
        let Ok(Cli { command: Command::Run(run), .. }) = parse("l2=500") else { panic!() };
        assert!(run.timing.wanted() && run.timing.latency[0].to_string() == "l2=500");
        for wrong in ["l3=500", "l2", "l2=", "l2=-1", "l2=99999999999"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("l3=500").unwrap_err().to_string().contains("valu_f64"), "it says which there are");
        assert!(
            Cli::try_parse_from(["wavetap", "run", "--sample-interval", "5", "app"]).is_err(),
            "samples go nowhere"
        );
    }

    #[test]
    fn arch_is_another_name_for_target() {
        let Ok(Cli { command: Command::Rewrite(rewrite), .. }) =
            Cli::try_parse_from(["wavetap", "rewrite", "in", "-o", "out", "--arch", "gfx90a,gfx906"])
        else {
            panic!()
        };
        assert_eq!(rewrite.select.target, ["gfx90a", "gfx906"]);
    }
}
