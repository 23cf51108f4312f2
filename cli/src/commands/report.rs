//! `wavetap report`: a profile as text, JSON or one HTML page.

use std::process::ExitCode;

use wavetap::error::Result;
use wavetap::pipeline;
use wavetap::report::{Report, RunInfo, html, text};

use crate::args::{ColorChoice, ReportArgs};
use crate::{files, launch, map_file, output};

/// Renders the profile.
pub fn run(args: &ReportArgs, colour: ColorChoice) -> Result<ExitCode> {
    output::check(&args.output)?;
    let profile = launch::read_profile(&args.profile)?;
    let mut report = Report::new(&profile, RunInfo::default());
    if let Some(binary) = &args.binary {
        pipeline::explain(&mut report, &profile, &map_file::open(binary)?)?;
    }
    match &args.html {
        Some(path) => files::write(path, html::render(&report).as_bytes(), args.output.force, None)?,
        None => output::emit(&args.output, colour, &report, text::render)?,
    }
    Ok(ExitCode::SUCCESS)
}
