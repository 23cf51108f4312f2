//! `wavetap export lcov`: which lines, branches and functions were executed.

use std::process::ExitCode;

use wavetap::error::{Result, ResultExt};
use wavetap::explain::coverage::CoverageUnit;
use wavetap::pipeline::{self, CoverageInputs};
use wavetap::report::export::lcov::lcov;

use super::{Counted, Made, write};
use crate::args::{CountUnit, LcovArgs};
use crate::sources;

/// Writes the tracefile.
pub fn run(args: &LcovArgs) -> Result<ExitCode> {
    write(&args.out, || {
        let counted = Counted::of(&args.counted)?;
        let unit = match args.count {
            CountUnit::Lanes => CoverageUnit::Lanes,
            CountUnit::Waves => CoverageUnit::Waves,
        };
        let name = |file: &str| sources::place(file, &args.source_path);
        let inputs = CoverageInputs { profile: &counted.profile, unit, file: &name };
        let coverage = pipeline::coverage(&counted.data, &counted.selection, &inputs).within(|| counted.place())?;
        let text = lcov(&coverage, args.test_name.as_deref().unwrap_or_default())?;
        let unknown = coverage.missing.into_iter().chain(counted.other_builds()?).collect();
        Ok(Made { text, unread: coverage.unread, unknown })
    })
}
