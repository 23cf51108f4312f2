//! The flags of what sets up a shell: `wavetap completions`, `wavetap man`.

use std::path::PathBuf;

use clap::Args;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  wavetap completions bash > ~/.local/share/bash-completion/completions/wavetap")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Write the man pages: of the command and of each subcommand
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  wavetap man -o ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The folder, which must exist; pages of the same names are replaced
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
}
