//! Rewrites an executable, runs it on the emulator and prints what matters most of its kernels.
//!
//!     cargo run --example profile_executable -- hip-samples/bin/divergence

use wavetap::run::{BackendChoice, RunOptions, Stdout};
use wavetap::{ExplainOptions, Options, Program, probe};

fn main() -> wavetap::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("usage: profile_executable FILE [ARGUMENTS]");
        std::process::exit(2);
    };
    let run = RunOptions::new().args(arguments).backend(BackendChoice::Emulator).stdout(Stdout::Discarded);
    let finished = Program::open(path)?.profile(&Options::new([probe::BRANCHES, probe::BLOCKS]), &run)?;
    finished.remarks().iter().for_each(|remark| eprintln!("{remark}"));

    let profile = finished.profile()?;
    let report = finished.explain(&profile, &ExplainOptions::new())?;
    for kernel in report.summary.iter().flat_map(|summary| &summary.kernels) {
        println!("{:.0} % {}", 100.0 * kernel.share, kernel.title);
        for finding in &kernel.findings {
            println!("  {}", finding.text);
        }
    }
    for refused in &report.refused {
        println!("not counted: {}: {}", refused.demangled, refused.detail);
    }
    Ok(())
}
