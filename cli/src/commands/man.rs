//! `wavetap man`.

use std::path::Path;
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use wavetap::error::{Error, Kind, Result};
use wavetap::files;

use crate::args::{Cli, ManArgs};

/// Writes the pages.
pub fn run(args: &ManArgs) -> Result<ExitCode> {
    let folder = &args.output;
    if !folder.is_dir() {
        return Err(Error::new(Kind::Io, format!("{}: a folder was expected", folder.display())));
    }
    let mut command = Cli::command();
    command.build();
    write_pages(&command, folder)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command and those of its subcommands.
fn write_pages(command: &Command, folder: &Path) -> Result<()> {
    let (name, text) = page_of(command)?;
    files::write(&folder.join(name), &text, true, None)?;
    let mut shown = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    shown.try_for_each(|subcommand| write_pages(subcommand, folder))
}

/// The name of a page's file, and the page.
fn page_of(command: &Command) -> Result<(String, Vec<u8>)> {
    // `wavetap-profile`, as clap calls what is started as `wavetap profile`.
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let mut text = Vec::new();
    let page = clap_mangen::Man::new(command.clone()).title(name.clone());
    page.render(&mut text).map_err(|error| Error::internal(format!("the page of {name}: {error}")))?;
    Ok((format!("{name}.1"), text))
}
