//! `wavetap verify`: a rewritten file against its original.

use std::process::ExitCode;

use wavetap::error::{Result, ResultExt};
use wavetap::report::verify::Verification;
use wavetap::verify::check_files;

use crate::args::{LookArgs, VerifyArgs};
use crate::{map_file, output};

/// Exit code: the rewritten file is not faithful.
const NOT_FAITHFUL: u8 = 1;

/// Checks the files.
pub fn run(args: &VerifyArgs, look: LookArgs) -> Result<ExitCode> {
    output::check(&args.output)?;
    let (original, rewritten) = (map_file::open(&args.original)?, map_file::open(&args.rewritten)?);
    let place = || format!("{} and {}", args.original.display(), args.rewritten.display());
    let verification = Verification::new(&check_files(&original, &rewritten).within(place)?);
    output::emit(&args.output, look, &verification, |verification, style| verification.render(style))?;
    Ok(if verification.faithful { ExitCode::SUCCESS } else { ExitCode::from(NOT_FAITHFUL) })
}
