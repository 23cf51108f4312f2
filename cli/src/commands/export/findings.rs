//! `wavetap export sarif` and `remarks`: all that was found in a run.

use std::process::ExitCode;

use wavetap::error::{Error, Result, ResultExt};
use wavetap::pipeline::{self, RunInputs};
use wavetap::profile::file::Profile;
use wavetap::report::findings::{self, FindingLog};

use super::{Made, write};
use crate::args::FoundArgs;
use crate::commands::report;
use crate::{files, launch, map_file, output};

/// Writes a SARIF log.
pub fn sarif(args: &FoundArgs) -> Result<ExitCode> {
    run(args, |log| output::json(&findings::sarif(log)))
}

/// Writes LLVM's remarks.
pub fn remarks(args: &FoundArgs) -> Result<ExitCode> {
    run(args, |log| Ok(findings::remarks(log)))
}

fn run(args: &FoundArgs, render: impl Fn(&FindingLog) -> Result<String>) -> Result<ExitCode> {
    write(&args.out, || {
        args.region.check_time(args.time.as_deref())?;
        let data = map_file::open(&args.file)?;
        let selection = args.select.selection();
        let place = || args.file.display().to_string();
        pipeline::check_selection(&data, &selection).within(place)?;
        let profiles = args.counters.iter().map(|path| args.region.read(path)).collect::<Result<Vec<Profile>>>()?;
        let (profile, recorded) = launch::counted_and_recorded(&profiles)?;
        let profile = profile.ok_or_else(|| Error::unsupported("no --counters has counts: one of them is needed"))?;
        let time = args.time.as_deref().map(|path| report::time_of(path, profile)).transpose()?;
        let (name, base) = (args.file.to_string_lossy(), files::current_folder());
        let inputs =
            RunInputs { profile, recorded, time: time.as_ref(), board: None, file: &name, base: base.as_deref() };
        let log = pipeline::findings(&data, &selection, inputs).within(place)?;
        Ok(Made { text: render(&log)?, unread: log.unread, ..Made::default() })
    })
}
