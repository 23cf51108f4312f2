//! `wavetap export`: what was measured, in the forms of other tools.

use std::path::Path;
use std::process::ExitCode;

use wavetap::error::{Error, Result, ResultExt};
use wavetap::pipeline;
use wavetap::profile::time::TimeProfile;
use wavetap::report::export::{folded, records, tables, trace};

use crate::args::{ExportArgs, ExportForm};
use crate::{files, launch, map_file, output};

/// Exit code: something could not be read.
const REFUSED: u8 = 1;

/// Writes it.
pub fn run(args: &ExportArgs) -> Result<ExitCode> {
    if let Some(path) = &args.output {
        files::may_write(path, args.force)?;
    }
    let mut unread = Vec::new();
    let text = match (&args.time, &args.file, &args.counters) {
        (Some(time), ..) => of_time(args.form, time)?,
        (None, Some(file), Some(counters)) => of_counters(args, file, counters, &mut unread)?,
        _ => return Err(Error::unsupported("export needs FILE and --counters, or --time")),
    };
    match &args.output {
        Some(path) => files::write(path, text.as_bytes(), args.force, None)?,
        None => output::stdout(text.as_bytes())?,
    }
    for part in &unread {
        eprintln!("wavetap: not readable: {}", part.replace(['\n', '\r'], " "));
    }
    Ok(if unread.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}

/// What modelled time has a form for.
fn of_time(form: ExportForm, path: &Path) -> Result<String> {
    let read = || TimeProfile::from_json(&files::read(path)?).within(|| path.display().to_string());
    match form {
        ExportForm::Trace => output::json(&trace::chrome_trace(&read()?)),
        ExportForm::Folded => Ok(folded::of_time(&read()?)),
        ExportForm::Csv => Err(Error::unsupported("csv is of counts of blocks: give FILE and --counters")),
        ExportForm::Accesses | ExportForm::HeatMap => {
            Err(Error::unsupported("accesses and heat-map are of recorded accesses: give FILE and --counters"))
        }
    }
}

/// What counts, or recorded accesses, have a form for.
fn of_counters(args: &ExportArgs, file: &Path, counters: &Path, unread: &mut Vec<String>) -> Result<String> {
    let data = map_file::open(file)?;
    let profile = launch::read_profile(counters)?;
    let selection = args.select.selection();
    let place = || file.display().to_string();
    match args.form {
        ExportForm::Trace => {
            let how = "give --time FILE, of `wavetap run --timing --format json --report FILE -- ./app`";
            Err(Error::unsupported(format!("trace is of modelled time: {how}")))
        }
        ExportForm::Folded | ExportForm::Csv => {
            let mix = pipeline::mix(&data, &selection, &profile).within(place)?;
            unread.clone_from(&mix.unread);
            if args.form == ExportForm::Csv { tables::tables(&mix) } else { Ok(folded::of_mix(&mix)) }
        }
        ExportForm::Accesses => records::accesses(&pipeline::recorded(&data, &selection, &profile).within(place)?),
        ExportForm::HeatMap => Ok(records::heat_maps(&pipeline::recorded(&data, &selection, &profile).within(place)?)),
    }
}
