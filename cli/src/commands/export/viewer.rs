//! `wavetap export viewer`: a folder for AMD's viewer of thread traces.

use std::path::Path;
use std::process::ExitCode;

use wavetap::error::{Result, ResultExt};
use wavetap::report::export::viewer;

use super::{has_time, modelled};
use crate::args::ViewerArgs;
use crate::{folder, sources};

/// Writes the folder.
pub fn run(args: &ViewerArgs) -> Result<ExitCode> {
    folder::may_write(&args.output, args.force, viewer::is_of_folder)?;
    let (time, selection) = modelled(&args.modelled.time, &args.modelled.select)?;
    let place = || args.modelled.time.display().to_string();
    let source = |path: &str| sources::read(Path::new(path));
    let written = viewer::folder(&time, |kernel| has_time(&selection, kernel), source).within(place)?;
    folder::write(&args.output, &written, args.force, viewer::is_of_folder)?;
    Ok(ExitCode::SUCCESS)
}
