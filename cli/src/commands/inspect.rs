//! `wavetap inspect`: what is in a file.

use std::process::ExitCode;

use wavetap::error::{Result, ResultExt};
use wavetap::pipeline;

use crate::args::{ColorChoice, InspectArgs};
use crate::{files, output};

/// Looks into the file.
pub fn run(args: &InspectArgs, colour: ColorChoice) -> Result<ExitCode> {
    output::check(&args.output)?;
    let data = files::read(&args.file)?;
    let inspection = pipeline::inspect(&data, &args.select.selection()).within(|| args.file.display().to_string())?;
    output::emit(&args.output, colour, &inspection, |inspection, style| inspection.render(style))?;
    Ok(ExitCode::SUCCESS)
}
