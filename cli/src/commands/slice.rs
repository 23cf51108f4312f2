//! `wavetap slice`: what each wait waits for, and why.

use std::path::Path;
use std::process::ExitCode;

use wavetap::error::{Result, ResultExt};
use wavetap::pipeline;
use wavetap::profile::pc_samples::{self, PcSamples};
use wavetap::profile::viewer;
use wavetap::report::slice::render;
use wavetap::stderr_line;

use crate::args::{LookArgs, SliceArgs};
use crate::{files, map_file, output};

/// Exit code: something that was asked for could not be read.
const REFUSED: u8 = 1;

/// Slices the file.
pub fn run(args: &SliceArgs, look: LookArgs) -> Result<ExitCode> {
    output::check(&args.output)?;
    let data = map_file::open(&args.file)?;
    pipeline::check_selection(&data, &args.select.selection()).within(|| args.file.display().to_string())?;
    let profile = args.counters.as_deref().map(|path| args.region.read(path)).transpose()?;
    let samples = args.samples.iter().map(|path| read_samples(path)).collect::<Result<Vec<PcSamples>>>()?;
    let given = pipeline::Evidence { profile: profile.as_ref(), samples: &samples, blame: args.blame.into() };
    let slice = pipeline::slice(&data, &args.select.selection(), given).within(|| args.file.display().to_string())?;
    output::emit(&args.output, look, &slice, render)?;
    for part in &slice.unread {
        stderr_line!("wavetap: not readable: {}", part.replace(['\n', '\r'], " "));
    }
    Ok(if slice.unread.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}

/// Reads a file of samples; of a folder for AMD's viewer, the file with the instructions.
fn read_samples(path: &Path) -> Result<PcSamples> {
    let file = if path.is_dir() { &path.join(viewer::CODE_FILE) } else { path };
    pc_samples::read(&files::read(file)?).within(|| file.display().to_string())
}
