//! `wavetap export trace`: dispatches in modelled time.

use std::process::ExitCode;

use wavetap::error::Result;
use wavetap::report::export::trace::chrome_trace;

use super::{has_time, modelled, write};
use crate::args::TraceArgs;
use crate::output;

/// Writes the trace.
pub fn run(args: &TraceArgs) -> Result<ExitCode> {
    write(&args.out, || {
        let (time, selection) = modelled(&args.modelled.time, &args.modelled.select)?;
        Ok(output::json(&chrome_trace(&time, |kernel| has_time(&selection, kernel)))?.into())
    })
}
