//! `wavetap report`: a profile as text, JSON or one HTML page.

use std::path::Path;
use std::process::ExitCode;

use wavetap::error::{Error, Result, ResultExt};
use wavetap::pipeline;
use wavetap::profile::file::Profile;
use wavetap::profile::time::TimeProfile;
use wavetap::report::summary::SummaryInputs;
use wavetap::report::{Report, RunInfo, text};

use crate::args::{LookArgs, ReportArgs};
use crate::{files, map_file, output, page, triton};

/// Renders the profile.
pub fn run(args: &ReportArgs, look: LookArgs) -> Result<ExitCode> {
    output::check(&args.output)?;
    if let Some(page) = &args.html {
        files::may_write(page, args.output.force)?;
    }
    args.region.check_time(args.page.time.as_deref())?;
    let profile = args.region.read(&args.profile)?;
    let mut report = Report::new(&profile, RunInfo { region: args.region.region.clone(), ..RunInfo::default() });
    let binary = args.binary.as_deref().map(map_file::open).transpose()?;
    if let Some((path, code)) = args.binary.as_deref().zip(binary.as_deref()) {
        pipeline::check_profile(code, &profile).within(|| path.display().to_string())?;
    }
    let view = &args.view;
    if let Some(misfit) = view.board.misfit(profile.kernels.iter().map(|kernel| kernel.target.as_str())) {
        return Err(Error::unsupported(misfit));
    }
    if let Some(path) = &args.page.time {
        report.set_time(Some(time_of(path, &profile)?));
    }
    let code = match &binary {
        Some(binary) => pipeline::explain(&mut report, &profile, binary)?,
        None => Vec::new(),
    };
    report.set_builds(&triton::builds(&profile));
    report.summarise(&SummaryInputs { profile: &profile, board: view.board.board, code: &code });
    let details = view.details.into();
    let Some(out) = &args.html else {
        output::emit(&args.output, look, &report, |report, style| text::render_part(report, details, style))?;
        return Ok(ExitCode::SUCCESS);
    };
    let accesses = args.page.accesses.as_deref().map(|path| args.region.read(path)).transpose()?;
    page::write(out, args.output.force, &args.page.source, &report, |data| {
        let Some((path, code)) = args.binary.as_deref().zip(binary.as_deref()) else { return Ok(()) };
        pipeline::page(data, code, &profile, accesses.as_ref()).within(|| path.display().to_string())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Modelled time of the same kernels.
pub(super) fn time_of(path: &Path, profile: &Profile) -> Result<TimeProfile> {
    let time = TimeProfile::from_json(&files::read(path)?).within(|| path.display().to_string())?;
    let is_of = |object: &str, name: &str| time.kernels.iter().any(|time| time.object == object && time.name == name);
    if !profile.kernels.is_empty() && !profile.kernels.iter().any(|kernel| is_of(&kernel.object, &kernel.name)) {
        let why = "it has the modelled time of other kernels, and of none of the profile";
        return Err(Error::malformed(format!("{}: {why}", path.display())));
    }
    Ok(time)
}
