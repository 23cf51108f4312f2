//! `wavetap export`: what was measured, in the forms of other tools, one file each.

mod accesses;
mod csv;
mod findings;
mod folded;
mod heat_map;
mod lcov;
mod parquet;
mod sites;
mod trace;
mod viewer;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use wavetap::error::{Error, Result, ResultExt};
use wavetap::files::Contents;
use wavetap::pipeline::{self, Selection};
use wavetap::profile::file::Profile;
use wavetap::profile::time::{KernelTime, TimeProfile};
use wavetap::report::export::records::NamedRecords;
use wavetap::report::mix::MixReport;
use wavetap::stderr_line;

use crate::args::{CountedArgs, ExportArgs, ExportForm, RegionArgs, SelectArgs, ToFileArgs};
use crate::map_file;
use crate::{files, output};

/// Exit code: something could not be read.
const REFUSED: u8 = 1;

/// Writes the form.
pub fn run(args: &ExportArgs) -> Result<ExitCode> {
    match &args.form {
        ExportForm::Trace(args) => trace::run(args),
        ExportForm::Folded(args) => folded::run(args),
        ExportForm::Csv(args) => csv::run(args),
        ExportForm::Sites(args) => sites::run(args),
        ExportForm::Accesses(args) => accesses::run(args),
        ExportForm::HeatMap(args) => heat_map::run(args),
        ExportForm::Sarif(args) => findings::sarif(&args.found),
        ExportForm::Remarks(args) => findings::remarks(&args.found),
        ExportForm::Viewer(args) => viewer::run(args),
        ExportForm::Parquet(args) => parquet::run(args),
        ExportForm::Lcov(args) => lcov::run(args),
    }
}

/// A form that is a text, and what is missing from it.
#[derive(Default)]
struct Made {
    text: String,
    /// Parts of the program that could not be read.
    unread: Vec<String>,
    /// What was not counted.
    unknown: Vec<String>,
}

impl From<String> for Made {
    fn from(text: String) -> Self {
        Made { text, ..Made::default() }
    }
}

/// Makes a form and writes it; before that, whether it may be written is checked.
fn write(out: &ToFileArgs, make: impl FnOnce() -> Result<Made>) -> Result<ExitCode> {
    if let Some(path) = &out.output {
        files::may_write(path, out.force)?;
    }
    let made = make()?;
    match &out.output {
        Some(path) => files::write(path, made.text.as_bytes(), out.force, None)?,
        None => output::stdout(made.text.as_bytes())?,
    }
    say(&made.unread, "not readable");
    say(&made.unknown, "not known");
    Ok(ended(made.unread.is_empty() && made.unknown.is_empty()))
}

/// Names what is missing on standard error.
fn say(parts: &[String], what: &str) {
    for part in parts {
        stderr_line!("wavetap: {what}: {}", part.replace(['\n', '\r'], " "));
    }
}

/// The exit code of what has all, or not.
fn ended(is_all: bool) -> ExitCode {
    if is_all { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) }
}

/// A program and what was counted in a run of it.
struct Counted<'a> {
    data: Contents,
    profile: Profile,
    selection: Selection,
    file: &'a Path,
}

impl<'a> Counted<'a> {
    /// Opens both.
    ///
    /// # Errors
    /// If one cannot be read, or nothing is selected.
    fn open(file: &'a Path, counters: &Path, region: &RegionArgs, select: &SelectArgs) -> Result<Counted<'a>> {
        let data = map_file::open(file)?;
        let profile = region.read(counters)?;
        let counted = Counted { data, profile, selection: select.selection(), file };
        pipeline::check_selection(&counted.data, &counted.selection).within(|| counted.place())?;
        Ok(counted)
    }

    /// The same of a form that needs both.
    fn of(args: &'a CountedArgs) -> Result<Counted<'a>> {
        Counted::open(&args.file, &args.counters, &args.region, &args.select)
    }

    /// Where errors are.
    fn place(&self) -> String {
        self.file.display().to_string()
    }

    /// What kernels executed.
    fn mix(&self) -> Result<MixReport> {
        pipeline::mix(&self.data, &self.selection, &self.profile).within(|| self.place())
    }

    /// Counts of other builds.
    fn other_builds(&self) -> Result<Vec<String>> {
        pipeline::other_builds(&self.data, &self.selection, &self.profile).within(|| self.place())
    }

    /// Recorded accesses.
    fn recorded(&self) -> Result<Vec<NamedRecords>> {
        pipeline::recorded(&self.data, &self.selection, &self.profile).within(|| self.place())
    }
}

/// Refuses a selection that has none of these kernels, of which name and target are given.
fn check(selection: &Selection, kernels: impl Iterator<Item = (String, String)>, place: &str) -> Result<()> {
    let (names, ran): (Vec<String>, BTreeSet<String>) = kernels.unzip();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    selection.check_kernels(&names).within(|| place.to_owned())?;
    if !ran.is_empty() && !ran.iter().any(|target| selection.has_target(target)) {
        let ran: Vec<String> = ran.into_iter().collect();
        return Err(Error::malformed(format!("--target: {place} has no kernel of it, only of {}", ran.join(", "))));
    }
    Ok(())
}

/// Whether a kernel of this name and target is selected.
fn is_selected(selection: &Selection, name: &str, target: &str) -> bool {
    selection.has_kernel(name) && selection.has_target(target)
}

/// Reads modelled time.
///
/// # Errors
/// If it cannot be read, or nothing is selected.
fn modelled(path: &Path, select: &SelectArgs) -> Result<(TimeProfile, Selection)> {
    let time = TimeProfile::from_json(&files::read(path)?).within(|| path.display().to_string())?;
    let selection = select.selection();
    let kernels = time.kernels.iter().map(|kernel| (kernel.name.clone(), kernel.target.clone()));
    check(&selection, kernels, &path.display().to_string())?;
    Ok((time, selection))
}

/// Whether the modelled time of a kernel is selected.
fn has_time(selection: &Selection, kernel: &KernelTime) -> bool {
    is_selected(selection, &kernel.name, &kernel.target)
}
