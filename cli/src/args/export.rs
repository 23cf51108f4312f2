//! The flags of `wavetap export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{RegionArgs, SelectArgs};

/// Write what was measured in the form of another tool
///
/// trace: dispatches in modelled time, as Chrome's trace format has it (Perfetto, chrome://tracing, speedscope).
/// folded: stacks of kernel and source line (speedscope, inferno), in modelled cycles with --time, in issued
/// instructions with --counters. csv: a table of what each kernel executed, with rocprof-compute's numbers and names of
/// metrics. sites: a CSV row for each counter of each site, of any probe, without FILE. accesses: a CSV row for each
/// recorded execution of an access, with the addresses of its lanes. heat-map: which waves of a workgroup access which
/// words, as cuThermo's viewer reads it. sarif, remarks: all that a report finds, of every kernel, at its source line,
/// in SARIF 2.1.0 and as LLVM's optimisation remarks; a second --counters with recorded accesses adds what these show,
/// --time the model's stalls. parquet: any number of profiles, as tables in a folder of Parquet files, to which later
/// runs can be added (DuckDB, Polars, Spark); with FILE also what was found, and recorded accesses. viewer: a folder
/// for ROCprof Compute Viewer, AMD's viewer of thread traces, with the modelled cycles of each instruction, and of
/// `run --timing-waves` the waves of a compute unit. lcov: which source lines, branches and functions of the GPU code
/// were executed, as a tracefile of lcov, which genhtml and coverage services read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap run --timing --format json --report app.time -- ./app
  wavetap export trace --time app.time -o app.trace.json
  wavetap export folded --time app.time | inferno-flamegraph > app.svg
  wavetap run --timing-waves --format json --report app.time -- ./app
  wavetap export viewer --time app.time -o ui_output_app
  wavetap profile --probe blocks -o app.profile -- ./app
  wavetap export csv app --counters app.profile -o app.csv
  wavetap export sites --counters app.profile -o app.sites.csv
  wavetap profile --probe memory -o app.records -- ./app
  wavetap export accesses app --counters app.records -o app.accesses.csv
  wavetap export heat-map app --counters app.records --kernel 'gemm*' -o output_gemm.txt
  wavetap profile --probe branches,blocks -o app.profile -- ./app
  wavetap export lcov app --counters app.profile -o app.info && genhtml --branch-coverage app.info -o coverage
  wavetap export sarif app --counters app.profile --counters app.records -o app.sarif
  wavetap export parquet app --counters night-1/ --run night-1 -o nights")]
pub struct ExportArgs {
    /// The form
    #[arg(value_enum, value_name = "FORM")]
    pub form: ExportForm,
    /// The original file (all forms but those of --time, and sites; parquet: may be left out)
    #[arg(required_unless_present_any = ["time", "counters"], requires = "counters")]
    pub file: Option<PathBuf>,
    /// What was counted or recorded in a run of it (sarif, remarks: twice, if accesses were recorded in another run;
    /// parquet: any number, also folders of them)
    #[arg(long, value_name = "PROFILE", required_unless_present = "time")]
    pub counters: Vec<PathBuf>,
    #[command(flatten)]
    pub region: RegionArgs,
    /// Modelled time of a run, of `wavetap run --timing --format json` (trace, folded, viewer; sarif and remarks beside
    /// --counters)
    #[arg(long, value_name = "FILE")]
    pub time: Option<PathBuf>,
    /// heat-map: all recorded workgroups, in place of the first that accesses an array
    #[arg(long)]
    pub all_workgroups: bool,
    /// parquet: the name of the run that the profiles are of [default: run]
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// parquet: the folders of a table [default: rank]
    #[arg(long, value_enum, value_name = "BY")]
    pub partition: Option<PartitionChoice>,
    /// lcov: the name of the test, of letters, digits and `_`
    #[arg(long, value_name = "NAME", value_parser = test_name)]
    pub test_name: Option<String>,
    /// lcov: what executions of lines and functions are counted by
    #[arg(long, value_enum, value_name = "UNIT")]
    pub count: Option<CountUnit>,
    /// lcov: look for source files below this folder, too (may be given several times)
    #[arg(long, value_name = "DIR")]
    pub source_path: Vec<PathBuf>,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Write to this file instead of stdout; viewer, parquet: the folder
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Replace the file, the folder of viewer, or the run of parquet, if it exists
    #[arg(long)]
    pub force: bool,
}

/// `--count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CountUnit {
    /// Waves, whatever lanes are active; the default.
    Waves,
    /// Active lanes, summed.
    Lanes,
}

/// A name of a test that lcov does not change.
fn test_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if text.chars().all(is_plain) { Ok(text.to_owned()) } else { Err("lcov takes letters, digits and `_`".to_owned()) }
}

/// The forms of `wavetap export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportForm {
    /// Chrome's trace format.
    Trace,
    /// Folded stacks.
    Folded,
    /// A table of metrics.
    Csv,
    /// A table of the sites of all probes.
    Sites,
    /// A table of recorded accesses.
    Accesses,
    /// The heat map that cuThermo's viewer shows.
    HeatMap,
    /// All that was found, in SARIF 2.1.0.
    Sarif,
    /// All that was found, as LLVM's optimisation remarks in YAML.
    Remarks,
    /// A folder for ROCprof Compute Viewer.
    Viewer,
    /// A folder of Parquet files.
    Parquet,
    /// Coverage, as a tracefile of lcov.
    Lcov,
}

/// `--partition`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PartitionChoice {
    /// One for each rank of each run, with a file for each profile: profiles can be added one by one.
    Rank,
    /// One for each run, with few files, and the rank as a column: for thousands of ranks.
    Run,
}

impl ExportForm {
    /// Whether it is of what was found.
    pub fn is_of_findings(self) -> bool {
        matches!(self, ExportForm::Sarif | ExportForm::Remarks)
    }

    /// What it is of, and what has to be given.
    pub fn needs(self) -> &'static str {
        match self {
            ExportForm::Trace => {
                "trace is of modelled time: give --time FILE alone, of `wavetap run --timing --format json --report \
                    FILE -- ./app`"
            }
            ExportForm::Folded => {
                "folded is of modelled time or of counts: give --time alone, or FILE and one --counters"
            }
            ExportForm::Csv => "csv is of counts of blocks: give FILE and one --counters",
            ExportForm::Sites => "sites is of the counts of any probe: give one --counters, and no FILE",
            ExportForm::Accesses | ExportForm::HeatMap => {
                "accesses and heat-map are of recorded accesses: give FILE and one --counters"
            }
            ExportForm::Viewer => {
                "viewer is of modelled time, and a folder: give --time FILE alone, of `wavetap run --timing-waves \
                    --format json --report FILE -- ./app`, and -o FOLDER"
            }
            ExportForm::Parquet => {
                "parquet is of the counts of any number of runs, and a folder: give --counters, and -o FOLDER"
            }
            ExportForm::Lcov => "lcov is of counts of branches or blocks: give FILE and one --counters",
            ExportForm::Sarif | ExportForm::Remarks => {
                "sarif and remarks are of what was found in a run: give FILE and --counters"
            }
        }
    }
}
