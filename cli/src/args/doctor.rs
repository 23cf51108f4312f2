//! The flags of `wavetap doctor`.

use std::path::PathBuf;

use clap::Args;

use super::OutputArgs;

/// Show what is there for programs to run on, what does not work, and why
///
/// Looks at GPUs, their driver and the permissions of its devices, AMD's libraries, this program's own libraries,
/// variables and limits, compilers and frameworks; changes nothing. Then a small program, whose counts are known, is
/// counted on the emulator. A line is ok, a note (worth knowing, or needed by some uses only) or a problem.
///
/// The exit code is 0 if programs run on the emulator or on a GPU, and 1 if a problem stops both.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wavetap doctor
  wavetap doctor --format json | jq '.checks[] | select(.level == \"problem\")'")]
pub struct DoctorArgs {
    /// Run no program: what is said of the emulator is only that its library is there
    #[arg(long)]
    pub no_self_test: bool,
    /// Look at the files below this folder in place of the system's
    #[arg(long, value_name = "DIR", hide = true)]
    pub root: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}
