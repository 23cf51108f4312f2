//! A report of one's own: the branches of each kernel, and how often the lanes of a wave disagreed on them.
//!
//!     cargo run --example own_report -- hip-samples/bin/divergence

use wavetap::profile::probes::branches::BranchCounts;
use wavetap::run::{BackendChoice, RunOptions, Stdout};
use wavetap::{ExplainOptions, Options, Program, probe};

fn main() -> wavetap::Result<()> {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: own_report FILE");
        std::process::exit(2);
    };
    let rewritten = Program::open(path)?.rewrite(&Options::new([probe::BRANCHES]))?;
    let run = RunOptions::new().backend(BackendChoice::Emulator).stdout(Stdout::Discarded);
    let finished = rewritten.run(&run)?;
    let report = finished.explain(&finished.profile()?, &ExplainOptions::new())?;
    for kernel in &report.kernels {
        println!("{}: {} waves", kernel.demangled, kernel.waves);
        for branch in &kernel.sections.branches {
            // Uniform branches take all lanes of a wave one way.
            let BranchCounts::Exec(counts) = branch.counts else { continue };
            let line = branch.source.as_ref().map_or(0, |source| source.line);
            println!("  line {line}: {} of {} executions diverged", counts.divergences(), counts.executions);
        }
    }
    Ok(())
}
