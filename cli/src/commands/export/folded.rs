//! `wavetap export folded`: stacks of kernel and source line.

use std::process::ExitCode;

use wavetap::error::{Error, Result};
use wavetap::report::export::folded;

use super::{Counted, Made, has_time, modelled, write};
use crate::args::FoldedArgs;

/// Writes the stacks.
pub fn run(args: &FoldedArgs) -> Result<ExitCode> {
    write(&args.out, || {
        args.region.check_time(args.time.as_deref())?;
        match (&args.file, &args.counters, &args.time) {
            (Some(file), Some(counters), None) => {
                let counted = Counted::open(file, counters, &args.region, &args.select)?;
                let mix = counted.mix()?;
                Ok(Made { text: folded::of_mix(&mix), unread: mix.unread, unknown: counted.other_builds()? })
            }
            (None, None, Some(time)) => {
                let (time, selection) = modelled(time, &args.select)?;
                Ok(folded::of_time(&time, |kernel| has_time(&selection, kernel)).into())
            }
            _ => Err(Error::unsupported(
                "folded is of modelled time or of counts: give --time alone, or FILE and one --counters",
            )),
        }
    })
}
