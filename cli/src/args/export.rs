//! The forms of `wavetap export`, each with its own flags.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{RegionArgs, SelectArgs};

/// Write what was measured in the form of another tool
///
/// Each form is a subcommand: `wavetap export FORM --help` shows what it is made of and its options.
#[derive(Debug, Args)]
#[command(
    disable_help_subcommand = true,
    subcommand_value_name = "FORM",
    subcommand_help_heading = "Forms",
    after_help = "Examples:
  wavetap run --timing --format json --report app.time -- ./app
  wavetap export trace --time app.time -o app.trace.json
  wavetap profile --probe branches,blocks -o app.profile -- ./app
  wavetap export lcov app --counters app.profile -o app.info
  wavetap export parquet app --counters night-1/ --run night-1 -o nights"
)]
pub struct ExportArgs {
    /// The form
    #[command(subcommand)]
    pub form: ExportForm,
}

/// The forms of `wavetap export`.
#[derive(Debug, Subcommand)]
pub enum ExportForm {
    Trace(TraceArgs),
    Folded(FoldedArgs),
    Csv(CsvArgs),
    Sites(SitesArgs),
    Accesses(AccessesArgs),
    HeatMap(HeatMapArgs),
    Sarif(SarifArgs),
    Remarks(RemarksArgs),
    Viewer(ViewerArgs),
    Parquet(ParquetArgs),
    Lcov(LcovArgs),
}

/// Where a form goes that is a text.
#[derive(Debug, Args)]
pub struct ToFileArgs {
    /// Write to this file instead of stdout
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
}

/// Counts of a run, and the program.
#[derive(Debug, Args)]
pub struct CountedArgs {
    /// The original file
    pub file: PathBuf,
    /// What was counted or recorded in a run of it
    #[arg(long, value_name = "PROFILE")]
    pub counters: PathBuf,
    #[command(flatten)]
    pub region: RegionArgs,
    #[command(flatten)]
    pub select: SelectArgs,
}

/// Modelled time of a run.
#[derive(Debug, Args)]
pub struct ModelledArgs {
    /// Modelled time of a run, of `wavetap run --timing --format json` (with --region NAME, that of a range)
    #[arg(long, value_name = "FILE")]
    pub time: PathBuf,
    #[command(flatten)]
    pub select: SelectArgs,
}

/// Dispatches in modelled time, as Chrome's trace format has it (Perfetto, chrome://tracing, speedscope)
#[derive(Debug, Args)]
#[command(after_help = "Example:
  wavetap run --timing --format json --report app.time -- ./app
  wavetap export trace --time app.time -o app.trace.json")]
pub struct TraceArgs {
    #[command(flatten)]
    pub modelled: ModelledArgs,
    #[command(flatten)]
    pub out: ToFileArgs,
}

/// Stacks of kernel and source line (speedscope, inferno)
///
/// With --time in modelled cycles, with FILE and --counters in issued instructions, from counts of basic blocks
/// (`wavetap profile --probe blocks`).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap run --timing --format json --report app.time -- ./app
  wavetap export folded --time app.time | inferno-flamegraph > app.svg
  wavetap profile --probe blocks -o app.profile -- ./app
  wavetap export folded app --counters app.profile")]
pub struct FoldedArgs {
    /// The original file, with --counters
    #[arg(requires = "counters")]
    pub file: Option<PathBuf>,
    /// What was counted in a run of it
    #[arg(long, value_name = "PROFILE", requires = "file", required_unless_present = "time", conflicts_with = "time")]
    pub counters: Option<PathBuf>,
    /// Modelled time of a run, of `wavetap run --timing --format json`
    #[arg(long, value_name = "FILE")]
    pub time: Option<PathBuf>,
    #[command(flatten)]
    pub region: RegionArgs,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub out: ToFileArgs,
}

/// A table of what each kernel executed, with rocprof-compute's numbers and names of metrics
///
/// From counts of basic blocks.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  wavetap profile --probe blocks -o app.profile -- ./app
  wavetap export csv app --counters app.profile -o app.csv")]
pub struct CsvArgs {
    #[command(flatten)]
    pub counted: CountedArgs,
    #[command(flatten)]
    pub out: ToFileArgs,
}

/// A CSV row for each counter of each site, of any probe
#[derive(Debug, Args)]
#[command(after_help = "Example:
  wavetap profile -o app.profile -- ./app
  wavetap export sites --counters app.profile -o app.sites.csv")]
pub struct SitesArgs {
    /// What was counted in a run
    #[arg(long, value_name = "PROFILE")]
    pub counters: PathBuf,
    #[command(flatten)]
    pub region: RegionArgs,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub out: ToFileArgs,
}

/// A CSV row for each recorded execution of an access, with the addresses of its lanes
#[derive(Debug, Args)]
#[command(after_help = "Example:
  wavetap profile --probe memory -o app.records -- ./app
  wavetap export accesses app --counters app.records -o app.accesses.csv")]
pub struct AccessesArgs {
    #[command(flatten)]
    pub counted: CountedArgs,
    #[command(flatten)]
    pub out: ToFileArgs,
}

/// Which waves of a workgroup access which words, as cuThermo's viewer reads it
#[derive(Debug, Args)]
#[command(after_help = "Example:
  wavetap profile --probe memory -o app.records -- ./app
  wavetap export heat-map app --counters app.records --kernel 'gemm*' -o output_gemm.txt")]
pub struct HeatMapArgs {
    #[command(flatten)]
    pub counted: CountedArgs,
    /// All recorded workgroups, in place of the first that accesses an array
    #[arg(long)]
    pub all_workgroups: bool,
    #[command(flatten)]
    pub out: ToFileArgs,
}

/// What findings are of.
#[derive(Debug, Args)]
pub struct FoundArgs {
    /// The original file
    pub file: PathBuf,
    /// What was counted in a run of it; a second one with recorded accesses adds what these show
    #[arg(long, value_name = "PROFILE", required = true)]
    pub counters: Vec<PathBuf>,
    #[command(flatten)]
    pub region: RegionArgs,
    /// Modelled time of the same run, of `wavetap run --timing --format json`: adds the model's stalls
    #[arg(long, value_name = "FILE")]
    pub time: Option<PathBuf>,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub out: ToFileArgs,
}

/// All that a report finds, of every kernel, at its source line, in SARIF 2.1.0
#[derive(Debug, Args)]
#[command(after_help = "Example:
  wavetap profile --probe branches,blocks -o app.profile -- ./app
  wavetap profile --probe memory -o app.records -- ./app
  wavetap export sarif app --counters app.profile --counters app.records -o app.sarif")]
pub struct SarifArgs {
    #[command(flatten)]
    pub found: FoundArgs,
}

/// All that a report finds, of every kernel, at its source line, as LLVM's optimisation remarks in YAML
#[derive(Debug, Args)]
#[command(after_help = "Example:
  wavetap profile --probe branches,blocks -o app.profile -- ./app
  wavetap export remarks app --counters app.profile -o app.opt.yaml")]
pub struct RemarksArgs {
    #[command(flatten)]
    pub found: FoundArgs,
}

/// A folder for ROCprof Compute Viewer, AMD's viewer of thread traces
///
/// With the modelled cycles of each instruction, and of `run --timing-waves` the waves of a compute unit.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  wavetap run --timing-waves --format json --report app.time -- ./app
  wavetap export viewer --time app.time -o ui_output_app")]
pub struct ViewerArgs {
    #[command(flatten)]
    pub modelled: ModelledArgs,
    /// The folder
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
    /// Replace the folder if it exists
    #[arg(long)]
    pub force: bool,
}

/// Any number of profiles, as tables in a folder of Parquet files (DuckDB, Polars, Spark)
///
/// Later runs can be added to the folder. With FILE it also has what was found, and recorded accesses.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap export parquet --counters app.profile -o tables
  wavetap export parquet app --counters night-1/ --run night-1 -o nights")]
pub struct ParquetArgs {
    /// The original file: adds what was found in it, and recorded accesses
    pub file: Option<PathBuf>,
    /// Profiles, or folders of them (may be given several times)
    #[arg(long, value_name = "PROFILE", required = true)]
    pub counters: Vec<PathBuf>,
    /// The name of the run that the profiles are of [default: run]
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// The folders of a table [default: rank]
    #[arg(long, value_enum, value_name = "BY")]
    pub partition: Option<PartitionChoice>,
    #[command(flatten)]
    pub region: RegionArgs,
    #[command(flatten)]
    pub select: SelectArgs,
    /// The folder of the tables
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
    /// Replace the run if it exists
    #[arg(long)]
    pub force: bool,
}

/// Which source lines, branches and functions of the GPU code were executed, as a tracefile of lcov
///
/// genhtml and coverage services read it. From counts of branches or basic blocks.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  wavetap profile --probe branches,blocks -o app.profile -- ./app
  wavetap export lcov app --counters app.profile -o app.info && genhtml --branch-coverage app.info -o coverage")]
pub struct LcovArgs {
    #[command(flatten)]
    pub counted: CountedArgs,
    /// The name of the test, of letters, digits and `_`
    #[arg(long, value_name = "NAME", value_parser = test_name)]
    pub test_name: Option<String>,
    /// What executions of lines and functions are counted by
    #[arg(long, value_enum, value_name = "UNIT", default_value_t = CountUnit::Waves)]
    pub count: CountUnit,
    /// Look for source files below this folder, too (may be given several times)
    #[arg(long, value_name = "DIR")]
    pub source_path: Vec<PathBuf>,
    #[command(flatten)]
    pub out: ToFileArgs,
}

/// `--count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CountUnit {
    /// Waves, whatever lanes are active.
    Waves,
    /// Active lanes, summed.
    Lanes,
}

/// A name of a test that lcov does not change.
fn test_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.chars().all(is_plain) { Ok(text.to_owned()) } else { Err("lcov takes letters, digits and `_`".to_owned()) }
}

/// `--partition`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PartitionChoice {
    /// One for each rank of each run, with a file for each profile: profiles can be added one by one.
    Rank,
    /// One for each run, with few files, and the rank as a column: for thousands of ranks.
    Run,
}
