//! `wavetap doctor`: what is there, what does not work, and why.

use std::process::ExitCode;

use wavetap::doctor::{System, examine};
use wavetap::error::Result;

use crate::args::{DoctorArgs, LookArgs};
use crate::output;

/// Exit code: programs can run on nothing.
const NOTHING_WORKS: u8 = 1;

/// Looks at the system.
pub fn run(args: &DoctorArgs, look: LookArgs) -> Result<ExitCode> {
    output::check(&args.output)?;
    let system = match &args.root {
        Some(root) => System::new().at(root),
        None => System::new(),
    };
    let diagnosis = examine(&system, !args.no_self_test);
    output::emit(&args.output, look, &diagnosis, |diagnosis, style| diagnosis.render(style))?;
    Ok(if diagnosis.emulator || diagnosis.gpu { ExitCode::SUCCESS } else { ExitCode::from(NOTHING_WORKS) })
}
