//! Flags of `merge`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Add up profiles of any number of ranks, nodes or runs
///
/// A PATH is a profile, or a folder: then every profile in it and in its folders is added, and files that are something
/// else are not. The result does not depend on the order, and sums can be added up again. Memory grows with the kernels
/// and, with --by, with the ranks or hosts, not with the number of profiles.
///
/// Kernels of one name whose code objects differ between profiles are refused, as their counts are of other code;
/// --different-builds keeps both in the result. The same code that was counted in another way (counter mode, probes) is
/// refused always.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap merge rank0.profile rank1.profile -o all.profile
  wavetap merge job-42/ --by rank,host -o all.profile               one line for each rank in the report
  find . -name '*.profile' -print0 | wavetap merge --files-from - -0 -o all.profile")]
pub struct MergeArgs {
    /// The profiles, or folders of them
    #[arg(required_unless_present = "files_from", value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Also add the paths in this file, one a line (- for stdin)
    #[arg(long, value_name = "FILE")]
    pub files_from: Option<PathBuf>,
    /// Paths of --files-from end with a zero byte, not with the line
    #[arg(short = '0', long, requires = "files_from")]
    pub null: bool,
    /// Keep what each rank or host has, so that `report` shows how evenly work is spread [default: as in the profiles]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub by: Vec<KeptApart>,
    /// Keep kernels apart whose code differs between profiles
    #[arg(long)]
    pub different_builds: bool,
    /// Where to write the sum
    #[arg(short, long, value_name = "PROFILE")]
    pub output: PathBuf,
    /// Replace the output if it exists
    #[arg(long)]
    pub force: bool,
}

/// `--by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeptApart {
    /// Each rank of MPI or Slurm.
    Rank,
    /// Each host.
    Host,
    /// Nothing, also where the profiles keep something apart.
    None,
}
