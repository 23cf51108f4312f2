//! `wavetap mix`: what kernels executed, from the counts of their blocks.

use std::process::ExitCode;

use wavetap::error::{Result, ResultExt};
use wavetap::pipeline;
use wavetap::report::mix::render;
use wavetap::stderr_line;

use crate::args::{LookArgs, MixArgs};
use crate::{map_file, output};

/// Exit code: something that was asked for was not counted, or could not be read.
const REFUSED: u8 = 1;

/// Joins the profile with the file.
pub fn run(args: &MixArgs, look: LookArgs) -> Result<ExitCode> {
    output::check(&args.output)?;
    let data = map_file::open(&args.file)?;
    pipeline::check_selection(&data, &args.select.selection()).within(|| args.file.display().to_string())?;
    let profile = args.region.read(&args.counters)?;
    let report = pipeline::mix(&data, &args.select.selection(), &profile).within(|| args.file.display().to_string())?;
    output::emit(&args.output, look, &report, render)?;
    for part in &report.unread {
        stderr_line!("wavetap: not readable: {}", part.replace(['\n', '\r'], " "));
    }
    Ok(if report.unread.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}
