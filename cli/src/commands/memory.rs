//! `wavetap memory`: how the lanes of each wave access memory.

use std::process::ExitCode;

use wavetap::error::{Result, ResultExt};
use wavetap::pipeline::{self, MemoryInputs};
use wavetap::report::memory::render;

use crate::args::{ColorChoice, MemoryArgs};
use crate::{launch, map_file, output};

/// Exit code: something that was asked for could not be read.
const REFUSED: u8 = 1;

/// Analyses the file.
pub fn run(args: &MemoryArgs, colour: ColorChoice) -> Result<ExitCode> {
    output::check(&args.output)?;
    let data = map_file::open(&args.file)?;
    let profile = args.counters.as_deref().map(launch::read_profile).transpose()?;
    let inputs = MemoryInputs { profile: profile.as_ref(), workgroup: args.workgroup, records: &[] };
    let report =
        pipeline::memory(&data, &args.select.selection(), inputs).within(|| args.file.display().to_string())?;
    output::emit(&args.output, colour, &report, render)?;
    for part in &report.unread {
        eprintln!("wavetap: not readable: {}", part.replace(['\n', '\r'], " "));
    }
    Ok(if report.unread.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}
