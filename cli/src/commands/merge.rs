//! `wavetap merge`: one profile out of any number.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

use wavetap::error::{Error, Result};
use wavetap::profile::file::{Dimension, Profile};
use wavetap::profile::merge::{MergeOptions, Merger};
use wavetap::stderr_line;

use crate::args::{KeptApart, MergeArgs};
use crate::files;
use crate::profile_files::{self, Inputs};
use crate::progress::FilesRead;

/// So many files or ranks are named.
const NAMED: usize = 3;

/// Adds the profiles up.
pub fn run(args: &MergeArgs) -> Result<ExitCode> {
    files::may_write(&args.output, args.force)?;
    let options = MergeOptions { by: by(&args.by)?, different_builds: args.different_builds };
    let mut merger = Merger::new(options);
    let progress = FilesRead::new("adding up");
    let inputs = Inputs { paths: &args.paths, list: args.files_from.as_deref(), null: args.null };
    let (mut seen, mut again) = (HashSet::new(), Vec::new());
    let left_out = profile_files::each(&inputs, |path: &Path| {
        files::not_the_same(path, &args.output)?;
        if let Ok(file) = fs::metadata(path)
            && file.is_file()
            && !seen.insert((file.dev(), file.ino()))
        {
            again.push(files::name(path));
        }
        merger.add(&files::read(path)?, &files::name(path))?;
        progress.add_one();
        Ok(())
    });
    progress.clear();
    if let Some(text) = left_out?.in_words() {
        stderr_line!("wavetap: {text}");
    }
    if !again.is_empty() {
        stderr_line!("wavetap: added more than once: {}", first_of(&again));
    }
    let sum = merger.finish()?;
    remarks(&sum).iter().for_each(|remark| stderr_line!("wavetap: {remark}"));
    files::write(&args.output, &sum.to_json()?, args.force, None)?;
    Ok(ExitCode::SUCCESS)
}

/// What is odd about the ranks that a sum keeps apart: some are not there, or are there more often than others.
fn remarks(sum: &Profile) -> Vec<String> {
    let mut processes: BTreeMap<u32, u64> = BTreeMap::new();
    for group in &sum.groups {
        if let Some(rank) = group.rank {
            *processes.entry(rank).or_default() += u64::from(group.processes);
        }
    }
    let mut remarks = Vec::new();
    let Some((&last, _)) = processes.last_key_value() else { return remarks };
    let missing = u64::from(last) + 1 - processes.len() as u64;
    if missing > 0 {
        let absent = (0..last).filter(|rank| !processes.contains_key(rank)).take(NAMED);
        let ranks = absent.map(|rank| rank.to_string()).collect::<Vec<_>>().join(", ");
        let more = match missing.saturating_sub(NAMED as u64) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        remarks.push(format!("no profile of rank {ranks}{more}, of ranks 0 to {last}"));
    }
    let fewest = processes.values().min().copied().unwrap_or_default();
    let often: Vec<String> =
        processes.iter().filter(|(_, count)| **count > fewest).map(|(rank, _)| rank.to_string()).collect();
    if !often.is_empty() {
        remarks.push(format!("of rank {} more profiles were added than of others", first_of(&often)));
    }
    remarks
}

/// The first of some names, and how many more there are.
fn first_of(names: &[String]) -> String {
    let first = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
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
