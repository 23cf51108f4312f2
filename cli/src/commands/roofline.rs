//! `wavetap roofline`: the least time of what kernels executed, by resource of a board.

use std::path::Path;
use std::process::ExitCode;

use wavetap::error::{Error, Result, ResultExt};
use wavetap::pipeline::{self, RooflineInputs};
use wavetap::profile::time::TimeProfile;
use wavetap::report::roofline::{MeasuredRoofs, render};
use wavetap::stderr_line;

use crate::args::{LookArgs, RooflineArgs};
use crate::{files, map_file, output};

/// Exit code: something that was asked for was not counted, or could not be read.
const REFUSED: u8 = 1;

/// Joins the profile with the file and the board.
pub fn run(args: &RooflineArgs, look: LookArgs) -> Result<ExitCode> {
    output::check(&args.output)?;
    let data = map_file::open(&args.file)?;
    pipeline::check_selection(&data, &args.select.selection()).within(|| args.file.display().to_string())?;
    args.region.check_time(args.time.as_deref())?;
    let profile = args.region.read(&args.counters)?;
    let time = args.time.as_deref().map(read_time).transpose()?;
    let measured = args.roofline.as_deref().map(read_roofs).transpose()?;
    let inputs = RooflineInputs { profile: &profile, time: time.as_ref(), board: args.board.board, measured };
    let report =
        pipeline::roofline(&data, &args.select.selection(), &inputs).within(|| args.file.display().to_string())?;
    if let Some(misfit) = args.board.misfit(report.kernels.iter().map(|kernel| kernel.target.as_str())) {
        return Err(Error::unsupported(misfit));
    }
    output::emit(&args.output, look, &report, render)?;
    for part in &report.unread {
        stderr_line!("wavetap: not readable: {}", part.replace(['\n', '\r'], " "));
    }
    Ok(if report.unread.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}

fn read_time(path: &Path) -> Result<TimeProfile> {
    TimeProfile::from_json(&files::read(path)?).within(|| path.display().to_string())
}

fn read_roofs(path: &Path) -> Result<MeasuredRoofs> {
    let data = files::read(path)?;
    let text = std::str::from_utf8(&data).map_err(|_| Error::malformed("no text, expected roofline.csv"));
    text.and_then(MeasuredRoofs::parse).within(|| path.display().to_string())
}
