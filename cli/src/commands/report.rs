//! `wavetap report`: a profile as text, JSON or one HTML page.

use std::process::ExitCode;

use wavetap::error::{Error, Result};
use wavetap::pipeline;
use wavetap::report::summary::SummaryInputs;
use wavetap::report::{Report, RunInfo, html, text};

use crate::args::{ColorChoice, ReportArgs};
use crate::{files, launch, map_file, output};

/// Renders the profile.
pub fn run(args: &ReportArgs, colour: ColorChoice) -> Result<ExitCode> {
    output::check(&args.output)?;
    let profile = launch::read_profile(&args.profile)?;
    let mut report = Report::new(&profile, RunInfo::default());
    let code = match &args.binary {
        Some(binary) => pipeline::explain(&mut report, &profile, &map_file::open(binary)?)?,
        None => Vec::new(),
    };
    let view = &args.view;
    if let Some(misfit) = view.board.misfit(profile.kernels.iter().map(|kernel| kernel.target.as_str())) {
        return Err(Error::unsupported(misfit));
    }
    report.summarise(&SummaryInputs { profile: &profile, board: view.board.board, code: &code });
    let details = view.details.into();
    match &args.html {
        Some(path) => files::write(path, html::render(&report).as_bytes(), args.output.force, None)?,
        None => {
            output::emit(&args.output, colour, &report, |report, style| text::render_part(report, details, style))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
