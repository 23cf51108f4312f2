//! `wavetap slice`: what each wait waits for, and why.

use std::path::Path;
use std::process::ExitCode;

use wavetap::error::{Result, ResultExt};
use wavetap::pipeline::waits;
use wavetap::profile::pc_samples::PcSamples;
use wavetap::report::slice::render;

use crate::args::{ColorChoice, SliceArgs};
use crate::{files, launch, output};

/// Slices the file.
pub fn run(args: &SliceArgs, colour: ColorChoice) -> Result<ExitCode> {
    output::check(&args.output)?;
    let data = files::read(&args.file)?;
    let profile = args.counters.as_deref().map(launch::read_profile).transpose()?;
    let samples = args.samples.as_deref().map(read_samples).transpose()?;
    let slice =
        waits::slice(&data, &args.select.selection(), profile.as_ref(), samples.as_ref()).within(|| args.file.display().to_string())?;
    output::emit(&args.output, colour, &slice, render)?;
    Ok(ExitCode::SUCCESS)
}

fn read_samples(path: &Path) -> Result<PcSamples> {
    PcSamples::from_json(&files::read(path)?).within(|| path.display().to_string())
}
