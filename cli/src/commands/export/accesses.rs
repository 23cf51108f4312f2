//! `wavetap export accesses`: recorded accesses.

use std::process::ExitCode;

use wavetap::error::Result;
use wavetap::report::export::records::accesses;

use super::{Counted, write};
use crate::args::AccessesArgs;

/// Writes the table.
pub fn run(args: &AccessesArgs) -> Result<ExitCode> {
    write(&args.out, || Ok(accesses(&Counted::of(&args.counted)?.recorded()?)?.into()))
}
