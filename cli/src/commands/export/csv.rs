//! `wavetap export csv`: a table of what each kernel executed.

use std::process::ExitCode;

use wavetap::error::Result;
use wavetap::report::export::tables::tables;

use super::{Counted, Made, write};
use crate::args::CsvArgs;

/// Writes the table.
pub fn run(args: &CsvArgs) -> Result<ExitCode> {
    write(&args.out, || {
        let counted = Counted::of(&args.counted)?;
        let mix = counted.mix()?;
        Ok(Made { text: tables(&mix, &counted.profile)?, unread: mix.unread, unknown: counted.other_builds()? })
    })
}
