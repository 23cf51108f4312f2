//! `wavetap merge`: one profile out of any number.

use std::path::Path;
use std::process::ExitCode;

use wavetap::error::{Error, Result};
use wavetap::profile::file::Dimension;
use wavetap::profile::merge::{MergeOptions, Merger};
use wavetap::stderr_line;

use crate::args::{KeptApart, MergeArgs};
use crate::files;
use crate::profile_files::{self, Inputs};
use crate::progress::FilesRead;

/// Adds the profiles up.
pub fn run(args: &MergeArgs) -> Result<ExitCode> {
    files::may_write(&args.output, args.force)?;
    let options = MergeOptions { by: by(&args.by)?, different_builds: args.different_builds };
    let mut merger = Merger::new(options);
    let progress = FilesRead::new("adding up");
    let inputs = Inputs { paths: &args.paths, list: args.files_from.as_deref(), null: args.null };
    let left_out = profile_files::each(&inputs, |path: &Path| {
        files::not_the_same(path, &args.output)?;
        merger.add(&files::read(path)?, &files::name(path))?;
        progress.add_one();
        Ok(())
    });
    progress.clear();
    if let Some(text) = left_out?.in_words() {
        stderr_line!("wavetap: {text}");
    }
    files::write(&args.output, &merger.finish()?.to_json()?, args.force, None)?;
    Ok(ExitCode::SUCCESS)
}

/// What is kept apart; none if that is not given.
fn by(choices: &[KeptApart]) -> Result<Option<Vec<Dimension>>> {
    let dimension = |choice: &KeptApart| match choice {
        KeptApart::Rank => Some(Dimension::Rank),
        KeptApart::Host => Some(Dimension::Host),
        KeptApart::None => None,
    };
    match choices {
        [] => Ok(None),
        [KeptApart::None] => Ok(Some(Vec::new())),
        _ => {
            let dimensions: Option<Vec<Dimension>> = choices.iter().map(dimension).collect();
            let both = || Error::malformed("--by: none does not go with others (rank, host)");
            dimensions.map(Some).ok_or_else(both)
        }
    }
}
