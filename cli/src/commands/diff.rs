//! `wavetap diff`: two profiles beside each other.

use std::process::ExitCode;

use wavetap::error::{Error, Result};
use wavetap::report::diff::{Condition, Diff, render};
use wavetap::report::html::render_diff;

use crate::args::{DiffArgs, LookArgs};
use crate::{files, output};

/// Exit code: a condition holds.
const FAILED: u8 = 1;

/// Compares the profiles.
pub fn run(args: &DiffArgs, look: LookArgs) -> Result<ExitCode> {
    output::check(&args.output)?;
    if let Some(page) = &args.html {
        files::may_write(page, args.output.force)?;
    }
    let conditions = args.fail_if.iter().map(|text| Condition::parse(text));
    let conditions = conditions.collect::<std::result::Result<Vec<_>, String>>().map_err(Error::malformed)?;
    let (old, new) = (args.region.read(&args.old)?, args.region.read(&args.new)?);
    let diff = Diff::new(&old, &new, &conditions);
    match &args.html {
        Some(path) => {
            let page = render_diff(&diff, &files::name(&args.old), &files::name(&args.new));
            files::write(path, page.as_bytes(), args.output.force, None)?;
        }
        None => output::emit(&args.output, look, &diff, render)?,
    }
    Ok(if diff.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}
