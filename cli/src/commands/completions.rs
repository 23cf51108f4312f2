//! `wavetap completions`.

use std::process::ExitCode;

use clap::CommandFactory;
use wavetap::error::Result;

use crate::args::{Cli, CompletionsArgs};
use crate::output;

/// Prints the script.
pub fn run(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "wavetap", &mut script);
    output::stdout(&script)?;
    Ok(ExitCode::SUCCESS)
}
