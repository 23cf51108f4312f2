//! `wavetap merge`: one profile out of several.

use std::process::ExitCode;

use wavetap::error::{Error, Result, ResultExt};
use wavetap::run::read_profile;

use crate::args::MergeArgs;
use crate::files;

/// Adds the profiles up.
pub fn run(args: &MergeArgs) -> Result<ExitCode> {
    files::may_write(&args.output, args.force)?;
    let mut sum = None;
    for path in &args.profiles {
        files::not_the_same(path, &args.output)?;
        let profile = read_profile(path)?;
        match &mut sum {
            None => sum = Some(profile),
            Some(sum) => sum.merge(&profile).within(|| path.display().to_string())?,
        }
    }
    let sum = sum.ok_or_else(|| Error::internal("no profile was given"))?;
    files::write(&args.output, &sum.to_json()?, args.force, None)?;
    Ok(ExitCode::SUCCESS)
}
