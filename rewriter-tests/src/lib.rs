//! What the file tests need: finding and running the command and the samples, reading case files, comparing profiles.
//!
//! - [`accept`]: whether other readers of ELF files take what we wrote;
//! - [`access`]: which registers an instruction reads and writes, by our tables and by LLVM's;
//! - [`case`]: case files and what their lines mean;
//! - [`clocked`]: kernels with a probe that reads clocks, and when the emulator saw their instructions;
//! - [`command`]: the `wavetap` command as a child process;
//! - [`contradictions`]: the summary of a report against its own tables;
//! - [`corpora`]: the libraries that are fetched for the long tests;
//! - [`counts`]: a profile beside the emulator's trace and beside the counts worked out by hand;
//! - [`dispatch`]: one dispatch on the emulator, with what it counts;
//! - [`fillings`]: random words for rows of the instruction tables;
//! - [`finding_forms`]: the forms in which findings are written, as their specifications have them;
//! - [`hip5`]: executables that HIP 5.2 can run although a newer compiler made them;
//! - [`instrumented`]: a code object as compiled and as instrumented, side by side;
//! - [`kernels`]: kernels that run on the CPU and in the emulator;
//! - [`machine_code`]: kernels made up from seeds directly in machine code;
//! - [`made_up`]: kernels made up from seeds;
//! - [`sample`]: a sample on one target in one counter mode, original and instrumented;
//! - [`place`]: folders and files of the project;
//! - [`random`]: random numbers that are the same everywhere;
//! - [`real_code`]: the code of real objects;
//! - [`tally`]: tests whose trials add to sums;
//! - [`words`]: words that the documentation does not use.

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

pub mod accept;
pub mod access;
pub mod blocks;
pub mod bounds;
pub mod case;
pub mod clocked;
pub mod command;
pub mod contradictions;
pub mod cores;
pub mod corpora;
pub mod counts;
pub mod dispatch;
pub mod fillings;
pub mod finding_forms;
pub mod hip;
pub mod hip5;
pub mod instrumented;
pub mod kernels;
pub mod machine_code;
pub mod made_up;
pub mod place;
pub mod random;
pub mod real_code;
pub mod sample;
pub mod tally;
pub mod words;

/// Why a test failed: what a person reads.
pub type Failure = String;

/// The end of a test binary whose tests are made while it runs: runs those that its arguments choose.
pub fn run_trials(trials: Result<Vec<Trial>, Failure>) -> ExitCode {
    let arguments = Arguments::from_args();
    match trials {
        Ok(trials) => libtest_mimic::run(&arguments, trials).exit_code(),
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the long tests were asked for (`./test.sh --full`).
#[must_use]
pub fn full() -> bool {
    std::env::var_os("WAVETAP_FULL_TESTS").is_some()
}

/// The day, counted from 1970: by which quick selections rotate.
#[must_use]
pub fn day() -> u64 {
    /// Seconds of a day.
    const DAY: u64 = 24 * 60 * 60;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs() / DAY)
}

/// Names the processors that a run is limited to: `WAVETAP_KERNEL_TARGETS=gfx1030,gfx1100`.
const TARGETS: &str = "WAVETAP_KERNEL_TARGETS";

/// Whether the run is limited to some processors.
#[must_use]
pub fn some_processors() -> bool {
    std::env::var_os(TARGETS).is_some()
}

/// Whether a processor is tested: all are, if the run is not limited to some.
#[must_use]
pub fn chosen(processor: &str) -> bool {
    std::env::var(TARGETS).map_or(true, |names| names.split(',').any(|name| name == processor))
}
