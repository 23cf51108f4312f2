//! The flags of `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use wavetap::profile::check::{Severity, Tool};

use super::{AppArgs, BackendChoice, BoardArgs, OutputArgs, StackChoice};
use crate::targets;

/// `--format` of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// For people.
    Text,
    /// For programs; the field `schema` names the version.
    Json,
    /// The same as YAML.
    Yaml,
    /// SARIF 2.1.0, for editors and code review.
    Sarif,
    /// JUnit's XML, for servers of tests.
    Junit,
}

/// `--fail-on` of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOnSeverity {
    /// Everything that is found.
    Note,
    /// Warnings and errors.
    Warning,
    /// Errors only.
    Error,
    /// Nothing.
    Never,
}

impl FailOnSeverity {
    /// The least severity that makes a run fail, if any does.
    pub fn least(self) -> Option<Severity> {
        match self {
            FailOnSeverity::Note => Some(Severity::Note),
            FailOnSeverity::Warning => Some(Severity::Warning),
            FailOnSeverity::Error => Some(Severity::Error),
            FailOnSeverity::Never => None,
        }
    }
}

/// Find what is wrong in the GPU code of an application: accesses out of bounds, races, uninitialised values, missing
/// waits, calls that fail
///
/// The application runs unmodified on the built-in emulator, in strict mode, and goes on after each finding where that
/// is possible: a store out of bounds is dropped, a load gives 0. Each place is reported once, with its source line if
/// the code was compiled with -gline-tables-only or -g. The exit code is 1 if anything was found (see --fail-on), else
/// that of the application.
///
/// Tools, with compute-sanitizer's names in brackets: memory (memcheck), races (racecheck), init (initcheck), sync
/// (synccheck), api. What each of them sees is in docs/guide/check.md. With --backend gpu there is a part of the tool
/// memory alone: inserted code checks accesses of global memory.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap check -- ./app input.txt                                  all tools
  wavetap check --tools memory,races -- python train.py
  wavetap check --target gfx1100 -- ./app                           the code for another GPU
  wavetap check --suppressions known.txt -- ./app                   lines like: lds-race *merge* merge.hpp:40
  wavetap check --format json --report check.json -- ./app
  wavetap check --baseline check.json -- ./app                      only what that report does not have
  wavetap check --schedules 20 -- ./app                             other orders of workgroups and waves
  wavetap check --schedule-seed 7 -- ./app                          one of these again
  wavetap check --backend gpu --drop -- ./app                       on the GPU; goes on after bad accesses
  wavetap check --format sarif --report check.sarif -- ./app        for code review
  wavetap check --format junit --report check.xml --fail-on error -- ./app")]
pub struct CheckArgs {
    /// What to look for: memory, races, init, sync, api [default: all]
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',', value_parser = str::parse::<Tool>)]
    pub tools: Vec<Tool>,
    /// Run the code for this target
    #[arg(long, visible_alias = "arch", value_name = "GFX", value_parser = targets::parse)]
    pub target: Option<String>,
    #[command(flatten)]
    pub board: BoardArgs,
    /// What runs the kernels
    #[arg(long, value_enum, default_value_t = BackendChoice::Emulator)]
    pub backend: BackendChoice,
    /// What the application's calls of HIP reach [default: hip]
    #[arg(long, value_enum)]
    pub stack: Option<StackChoice>,
    /// Check accesses of global memory by inserted code, as with --backend gpu, and nothing else
    #[arg(long)]
    pub instrument: bool,
    /// With --backend gpu or --instrument: accesses out of bounds are not executed, as on the emulator, and the
    /// application goes on
    #[arg(long)]
    pub drop: bool,
    /// Seed of everything that is random (order of waves, undefined contents)
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// Run the application so many times, each time with another order of workgroups and waves: findings of all runs
    /// are put together, and what kernels leave in memory, the standard output and the exit code are compared. Standard
    /// input is empty then
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub schedules: u64,
    /// The order of workgroups and waves, as findings of --schedules name it; 0 is the usual one. Together with
    /// --schedules: the first order that is tried besides the usual one
    #[arg(long, value_name = "S")]
    pub schedule_seed: Option<u64>,
    /// Most wave-instructions that one dispatch may execute, after which it is stopped [default: 50000000000]
    #[arg(long, value_name = "N")]
    pub fuel: Option<u64>,
    /// Do not report the findings that this file names. A line is CLASS KERNEL, and FILE:LINE or the address of an
    /// instruction if wanted: a class, a tool or `*`; a kernel or function of HIP, with `*` for any characters
    #[arg(long, value_name = "FILE")]
    pub suppressions: Option<PathBuf>,
    /// Do not report what this earlier report (--format json) has at the same line
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// The least severity of findings with which the exit code is 1
    #[arg(long, value_enum, default_value_t = FailOnSeverity::Warning, value_name = "SEVERITY")]
    pub fail_on: FailOnSeverity,
    #[command(flatten)]
    pub output: OutputArgs<CheckFormat>,
    #[command(flatten)]
    pub app: AppArgs,
}
