//! `wavetap export parquet`: profiles as tables in a folder of Parquet files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;
use wavetap::code_object::digest;

use wavetap::error::{Error, Kind, Result, ResultExt};
use wavetap::pipeline::{self, RunInputs};
use wavetap::profile::file::Profile;
use wavetap::profile::journal;
use wavetap::profile::{probes, schema::KindSchema};
use wavetap::report::export::records::NamedRecords;
use wavetap::report::findings::FindingLog;
use wavetap::stderr_line;
use wavetap_dataset::tables::{self, Source, Table};
use wavetap_dataset::{DESCRIPTION, Dataset, Part, Partition, SCHEMA};

use super::{ended, is_selected, say};
use crate::args::{ParquetArgs, PartitionChoice};
use crate::profile_files::{self, Inputs};
use crate::progress::FilesRead;
use crate::{files, map_file, output};

/// The run of profiles that are not said to be of one.
const RUN: &str = "run";

/// Adds the profiles to a dataset.
pub fn run(args: &ParquetArgs) -> Result<ExitCode> {
    let root = &args.output;
    let run = args.run.as_deref().unwrap_or(RUN);
    let old = described(root)?;
    let partition = match (args.partition, old["partition"].as_str().and_then(Partition::of_name)) {
        (None, known) => known.unwrap_or(Partition::RunAndRank),
        (Some(choice), known) => {
            let wanted = match choice {
                PartitionChoice::Rank => Partition::RunAndRank,
                PartitionChoice::Run => Partition::Run,
            };
            if known.is_some_and(|known| known != wanted) {
                let place = root.display();
                return Err(Error::unsupported(format!("--partition: {place} is a dataset of the other partition")));
            }
            wanted
        }
    };
    fs::create_dir_all(root).map_err(|error| files::io(root, "cannot be made", &error))?;
    // Files come to their places when all of them are complete: what cannot be read changes nothing.
    let staged = tempfile::Builder::new().prefix(".wavetap-").tempdir_in(root);
    let staged = staged.map_err(|error| files::io(root, "cannot be written", &error))?;
    let mut paths = Vec::new();
    let program = args.file.as_deref().map(map_file::open).transpose()?;
    let (mut seen, mut unread) = (Vec::new(), Vec::new());
    let mut write = |path: &str, bytes: Vec<u8>| {
        // Of a profile that was added before: it would be there once, whether it was to be twice or not.
        if partition == Partition::RunAndRank && root.join(path).exists() && !args.force {
            let file = root.join(path);
            let what = "the profile is there already (--force replaces it; another --run NAME adds it once more)";
            return Err(Error::new(Kind::Io, format!("{}: {what}", file.display())));
        }
        let place = staged.path().join(path);
        let folder = place.parent().unwrap_or(root);
        fs::create_dir_all(folder).map_err(|error| files::io(folder, "cannot be made", &error))?;
        paths.push(path.to_owned());
        files::write(&place, &bytes, true, None)
    };
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    let mut tables = Dataset::new(run, partition, &mut write)?;
    let inputs = Inputs { paths: &args.counters, list: None, null: false };
    let progress = FilesRead::new("exporting");
    let left_out = profile_files::each(&inputs, |path: &Path| {
        let data = files::read(path)?;
        let place = || path.display().to_string();
        let whole = journal::read_profile(&data).within(place)?;
        let whole = args.region.of(whole).within(place)?;
        let profile = selected(args, &whole).within(place)?;
        let beside = match &program {
            Some(program) => beside(args, program, &whole, &mut unread).within(place)?,
            None => (None, Vec::new()),
        };
        for kernel in &profile.kernels {
            let kinds = kernel.sites.iter().map(|site| &**site.counts.kind());
            kinds.for_each(|kind| add(&mut seen, kind));
        }
        let file = path.to_string_lossy();
        let source = Source { profile: &profile, file: &file, findings: beside.0.as_ref(), accesses: &beside.1 };
        let part = Part { profile: name(&data, &mut times), rank: profile.rank, host: profile.hostname.clone() };
        tables.add(part, &source).within(place)?;
        progress.add_one();
        Ok(())
    });
    progress.clear();
    if let Some(text) = left_out?.in_words() {
        stderr_line!("wavetap: {text}");
    }
    tables.finish()?;
    probes::kinds().into_iter().for_each(|kind| add(&mut seen, kind));
    let mut known = tables::fixed();
    seen.iter().try_for_each(|kind| tables::of_kind(kind).map(|table| known.push(table)))?;
    prepare(root, run, partition, args.force)?;
    describe(root, partition, &known, &old)?;
    for path in &paths {
        let to = root.join(path);
        let folder = to.parent().unwrap_or(root);
        fs::create_dir_all(folder).map_err(|error| files::io(folder, "cannot be made", &error))?;
        fs::rename(staged.path().join(path), &to).map_err(|error| files::io(&to, "cannot be written", &error))?;
    }
    unread.sort();
    unread.dedup();
    say(&unread, "not readable");
    Ok(ended(unread.is_empty()))
}

/// What tells a profile from others: runs that did the same have files that are the same, and count all the same.
fn name(data: &[u8], times: &mut BTreeMap<String, u32>) -> String {
    let digest = digest(data);
    let before = times.entry(digest.clone()).or_default();
    *before += 1;
    if *before == 1 { digest } else { format!("{digest}-{before}") }
}

/// Keeps a kind that is not known.
fn add(seen: &mut Vec<KindSchema>, kind: &KindSchema) {
    if !seen.contains(kind) {
        seen.push(kind.clone());
    }
}

/// The profile with the selected kernels alone.
fn selected(args: &ParquetArgs, profile: &Profile) -> Result<Profile> {
    let selection = args.select.selection();
    let names: Vec<&str> = profile.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    selection.check_kernels(&names)?;
    let mut selected = profile.clone();
    selected.kernels.retain(|kernel| is_selected(&selection, &kernel.name, &kernel.target));
    Ok(selected)
}

/// What the program says beside a profile of it: findings and recorded accesses.
fn beside(
    args: &ParquetArgs,
    program: &[u8],
    profile: &Profile,
    unread: &mut Vec<String>,
) -> Result<(Option<FindingLog>, Vec<NamedRecords>)> {
    if profile.kernels.is_empty() {
        return Ok((None, Vec::new()));
    }
    let selection = args.select.selection();
    let name = args.file.as_deref().map(Path::to_string_lossy).unwrap_or_default();
    let inputs = RunInputs { profile, recorded: None, time: None, board: None, file: &name, base: None };
    let log = pipeline::findings(program, &selection, inputs)?;
    unread.extend(log.unread.iter().cloned());
    let records =
        if profile.accesses.is_empty() { Vec::new() } else { pipeline::recorded(program, &selection, profile)? };
    Ok((Some(log), records))
}

/// What an existing dataset says of itself; null where there is none.
///
/// # Errors
/// I/O if the folder is something else; Unsupported if the dataset is of another version.
fn described(root: &Path) -> Result<Value> {
    let refused = |what: &str| Err(Error::new(Kind::Io, format!("{}: {what}", root.display())));
    let is_empty = match fs::read_dir(root) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Value::Null),
        Err(error) => return Err(files::io(root, "a folder was expected, or nothing", &error)),
    };
    let path = root.join(DESCRIPTION);
    if !path.is_file() {
        let else_what = "the folder is neither empty nor a dataset (it has no _wavetap.json), and nothing is added";
        return if is_empty { Ok(Value::Null) } else { refused(else_what) };
    }
    let place = || path.display().to_string();
    let text = files::read(&path)?;
    let value: Value =
        serde_json::from_slice(&text).map_err(|error| Error::malformed(error.to_string())).within(place)?;
    if value["schema"] != SCHEMA {
        return Err(Error::unsupported(format!("schema {}, expected {SCHEMA:?}", value["schema"]))).within(place);
    }
    Ok(value)
}

/// Writes what the columns mean. Tables that are not known here stay as they are described.
fn describe(root: &Path, partition: Partition, known: &[Table], old: &Value) -> Result<()> {
    let mut description = wavetap_dataset::description(partition, known);
    let is_known = |table: &Value| known.iter().any(|known| table["name"] == known.name.as_str());
    if let (Some(tables), Some(old)) = (description["tables"].as_array_mut(), old["tables"].as_array()) {
        tables.extend(old.iter().filter(|table| !is_known(table)).cloned());
    }
    files::write(&root.join(DESCRIPTION), output::json(&description)?.as_bytes(), true, None)
}

/// Where runs are written whole, one that is there already is removed with `force`, else refused.
fn prepare(root: &Path, run: &str, partition: Partition, force: bool) -> Result<()> {
    let failed = |path: &Path, error: &io::Error| files::io(path, "cannot be read", error);
    if partition != Partition::Run {
        return Ok(());
    }
    for table in fs::read_dir(root).map_err(|error| failed(root, &error))? {
        let folder = table.map_err(|error| failed(root, &error))?.path().join(format!("run={run}"));
        if !folder.is_dir() {
            continue;
        }
        if !force {
            let what = "the run is there already (--force replaces it; another --run NAME adds one)";
            return Err(Error::new(Kind::Io, format!("{}: {what}", folder.display())));
        }
        fs::remove_dir_all(&folder).map_err(|error| files::io(&folder, "cannot be removed", &error))?;
    }
    Ok(())
}
