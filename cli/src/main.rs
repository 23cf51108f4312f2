//! The `wavetap` command: files, processes, exit codes, progress and colours around the library.
//!
//! [`args`] defines every flag once; each subcommand is one file in [`commands`]. Exit codes: 0 done; 1 it ran, but
//! something that was asked for was refused (said on stderr); 2 bad usage or bad input; `run` and `profile` pass the
//! application's own code on.
// One map of a file, in `map_file`, two numbers of the allocator's, in `memory`, one call of a library, in `runtime`.
#![deny(unsafe_code)]

mod args;
#[cfg(feature = "bundled")]
mod bundled;
mod commands;
mod differences;
mod disassembly;
mod files;
mod folder;
mod launch;
mod map_file;
mod memory;
mod mistakes;
mod output;
mod page;
mod profile_files;
mod progress;
mod runtime;
mod signals;
mod sources;
mod targets;
mod triton;
mod workgroup;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use wavetap::error::{Kind, Result};
use wavetap::stderr_line;

/// Exit code: bad usage or bad input.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let line: Vec<OsString> = std::env::args_os().collect();
    let cli = match args::Cli::try_parse_from(&line) {
        Ok(cli) => cli,
        Err(mut error) => {
            mistakes::add_tip(&mut error, &line);
            return usage(&error);
        }
    };
    wavetap::files::observe_temporaries(signals::remove_at_end);
    #[cfg(feature = "bundled")]
    wavetap::run::find_libraries_with(bundled::folder);
    // A file that grows beyond what this process may write is an error to be reported, not its end. (A signal that were
    // ignored would be ignored by the application, too.) Without the handler everything else works.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
    let note = mistakes::after_application(&line, &cli.command);
    let say_note = || note.iter().for_each(|note| stderr_line!("wavetap: {note}"));
    say_note();
    match run(cli) {
        Ok(code) => {
            // By now the note may have scrolled away.
            if code != ExitCode::SUCCESS {
                say_note();
            }
            code
        }
        // Whoever read our output had enough of it (`wavetap disasm … | head`).
        Err(error) if error.kind() == Kind::Io && error.message() == output::BROKEN_PIPE => ExitCode::SUCCESS,
        Err(error) => {
            stderr_line!("wavetap: error: {}", one_line(&error.to_string()));
            // What was taken for a file may be a value.
            if let (Kind::Io, Some(tip)) = (error.kind(), mistakes::list_without_commas(&line)) {
                stderr_line!("wavetap: {}", one_line(&tip));
            }
            ExitCode::from(BAD_INPUT)
        }
    }
}

fn run(cli: args::Cli) -> Result<ExitCode> {
    use args::Command;
    let look = cli.look;
    match cli.command {
        Command::Inspect(args) => commands::inspect::run(&args, look),
        Command::Disasm(args) => commands::disasm::run(&args, look),
        Command::Rewrite(args) => commands::rewrite::run(&args, look),
        Command::Run(args) => commands::run::run(&args, look),
        Command::Profile(args) => commands::profile::run(&args, look),
        Command::Check(args) => commands::check::run(&args, look),
        Command::Compare(args) => commands::compare::run(&args, look),
        Command::Capture(args) => commands::capture::run(&args),
        Command::Replay(args) => commands::replay::run(&args, look),
        Command::ReplayHere(args) => commands::replay::here(&args),
        Command::Mix(args) => commands::mix::run(&args, look),
        Command::Roofline(args) => commands::roofline::run(&args, look),
        Command::Memory(args) => commands::memory::run(&args, look),
        Command::Slice(args) => commands::slice::run(&args, look),
        Command::Report(args) => commands::report::run(&args, look),
        Command::Merge(args) => commands::merge::run(&args),
        Command::Diff(args) => commands::diff::run(&args, look),
        Command::Verify(args) => commands::verify::run(&args, look),
        Command::Export(args) => commands::export::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args, look),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args),
    }
}

/// Help and version go to stdout with code 0; a usage error to stderr with code 2.
fn usage(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Nothing can be done when stdout is closed.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        stderr_line!("{error}");
    } else {
        stderr_line!("wavetap: {}", error.to_string().trim_end());
    }
    ExitCode::from(BAD_INPUT)
}

/// An error is one line, whatever a file name or a symbol contains.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
