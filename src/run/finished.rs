//! What the processes of a run have collected: each left a journal, which are added up here.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use wavetap_base::error::{Error, Kind, Result, ResultExt};
use wavetap_collect::rank;
use wavetap_object::code_object::demangle;
use wavetap_profile::fidelity::FidelityProfile;
use wavetap_profile::file::{Origin, Profile};
use wavetap_profile::journal::Journal;
use wavetap_profile::time::TimeProfile;
use wavetap_report::RunInfo;

use super::check::Checked;
use super::findings::StrictFindings;
use super::options::Collect;
use super::output_name::OutputName;
use super::platform::Platform;
use crate::files::{self, Contents};

/// A process that goes on when the application has ended gets this long to end: a shell does not wait for all that it
/// starts.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// What a file of samples has before the samples of each process, and after the last.
const SAMPLES: [&str; 2] = ["{\"rocprofiler-sdk-tool\":[", "]}\n"];

/// What one process left, or one of several programs that ran in it after each other.
#[derive(Debug)]
struct Part {
    /// `123`, `123-1`.
    name: String,
    journal: Journal,
    samples: PathBuf,
    running: bool,
}

impl Part {
    /// Whether the process goes on, or could not write what it had collected.
    fn lacks_something(&self) -> bool {
        self.running || self.journal.failed || self.journal.uncollected
    }
}

/// A run that has ended, and what its processes collected.
#[derive(Debug)]
pub struct Finished {
    platform: Platform,
    collect: Collect,
    info: RunInfo,
    findings: StrictFindings,
    checked: Option<Checked>,
    warnings: Vec<String>,
    parts: Vec<Part>,
    /// Holds what is not read yet.
    _folder: TempDir,
    /// What the code was that counted, where it was rewritten for this run.
    code: Option<CodeOfRun>,
}

/// The code that counted in a run, as it was before.
#[derive(Debug)]
pub(crate) struct CodeOfRun {
    /// The application's file, if that was rewritten.
    pub(crate) file: Option<Contents>,
    /// Whether the application's own file has no device code.
    pub(crate) has_no_code: bool,
    /// The application.
    pub(crate) path: PathBuf,
    /// The folder with the code objects that were loaded, as `MD5.co`.
    pub(crate) originals: TempDir,
}

impl Finished {
    /// Reads what the processes left in `folder`.
    pub(super) fn read(folder: TempDir, platform: Platform, collect: Collect, mut info: RunInfo) -> Result<Finished> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE
            && journals(folder.path())?.iter().any(|(path, pid)| exists(*pid) && is_open(path, *pid))
        {
            std::thread::sleep(LOOK);
        }
        let mut parts = Vec::new();
        for (path, pid) in journals(folder.path())? {
            let running = exists(pid) && is_open(&path, pid);
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            // What could not even be begun: the disk was full.
            let data = files::read(&path)?;
            let journal = if data.is_empty() {
                Journal { failed: true, ..Journal::default() }
            } else {
                Journal::read(&data).within(|| format!("what process {name} collected"))?
            };
            parts.push(Part { samples: path.with_extension("samples"), name, journal, running });
        }
        let order = |part: &Part| (part.journal.process.started, part.journal.process.pid, part.name.clone());
        parts.sort_by_key(order);
        let cut_short = parts.iter().filter(|part| !part.journal.ended && !part.running);
        info.running =
            cut_short.flat_map(|part| &part.journal.running).map(|name| demangle(name).into_owned()).collect();
        let (findings, warnings) = (StrictFindings::default(), Vec::new());
        Ok(Finished { platform, collect, info, findings, checked: None, warnings, parts, _folder: folder, code: None })
    }

    pub(super) fn set_findings(&mut self, findings: StrictFindings) {
        self.findings = findings;
    }

    pub(super) fn set_checked(&mut self, checked: Option<Checked>) {
        self.checked = checked;
    }

    /// What was found, where [`RunOptions::check`](super::RunOptions::check) says what to look for.
    #[must_use]
    pub fn checked(&self) -> Option<&Checked> {
        self.checked.as_ref()
    }

    pub(super) fn set_warnings(&mut self, warnings: Vec<String>) {
        self.warnings = warnings;
    }

    pub(crate) fn set_code(&mut self, code: CodeOfRun) {
        self.code = Some(code);
    }

    pub(crate) fn code(&self) -> Option<&CodeOfRun> {
        self.code.as_ref()
    }

    /// The exit code of the application's first process, 128 + n after signal n.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        self.info.exit_code.unwrap_or_default()
    }

    /// The signal that ended it, if one did: `SIGSEGV (signal 11)`.
    #[must_use]
    pub fn signal(&self) -> Option<&str> {
        self.info.signal.as_deref()
    }

    /// What a report says about the run.
    #[must_use]
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    /// What ran the kernels.
    #[must_use]
    pub fn platform(&self) -> Platform {
        self.platform
    }

    /// Whether strict mode went on after findings.
    #[must_use]
    pub fn has_findings(&self) -> bool {
        self.findings.any
    }

    /// What strict mode went on after, as lines of text.
    #[must_use]
    pub fn findings(&self) -> &[String] {
        &self.findings.lines
    }

    /// What a person had to know before the application ran.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether nothing is missing: the application ended by itself with exit code 0, all its processes ended and wrote
    /// what they had collected, and strict mode found nothing.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.exit_code() == 0 && !self.lacks_something() && !self.has_findings()
    }

    /// Whether a process goes on, or could not write what it had collected.
    #[must_use]
    pub fn lacks_something(&self) -> bool {
        self.parts.iter().any(Part::lacks_something)
    }

    /// What a person would not expect: that a signal ended the application, that processes are still running or could
    /// not write what they had collected.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let ended = |signal: &str| format!("the application was ended by {signal}{}", self.info.while_running());
        let mut remarks: Vec<String> = self.signal().map(ended).into_iter().collect();
        for Part { name, journal, running, .. } in &self.parts {
            let program: String = journal.process.name.chars().filter(|c| !c.is_control()).collect();
            let process = if program.is_empty() { name.clone() } else { format!("{name} ({program})") };
            if *running {
                remarks.push(format!("process {process} is still running: what it does from now on is not collected"));
            }
            if journal.failed {
                remarks.push(format!("process {process} could not write all that it collected"));
            }
            if journal.uncollected && !running {
                remarks.push(format!("process {process} ended before all was collected that its kernels had counted"));
            }
        }
        remarks
    }

    /// Whether all that a part collected is there.
    fn is_complete(&self, part: &Part) -> bool {
        self.info.signal.is_none() && !part.lacks_something()
    }

    /// What was counted, or traced, by these processes; none if none used the HIP runtime.
    fn sum(&self, parts: &[&Part], of: fn(&Journal) -> Option<&Profile>) -> Result<Option<Profile>> {
        let mut sum: Option<Profile> = None;
        let mut processes: Vec<u32> = Vec::new();
        for part in parts {
            let Some(profile) = of(&part.journal) else { continue };
            let mut profile = profile.clone();
            profile.set_ended(self.is_complete(part));
            if !profile.kernels.is_empty() && !processes.contains(&part.journal.process.pid) {
                processes.push(part.journal.process.pid);
            }
            match &mut sum {
                None => sum = Some(profile),
                Some(sum) => sum.merge(&profile).map_err(|error| {
                    let hint = "a name with %p gives each process a file of its own";
                    Error::new(
                        error.kind(),
                        format!("process {} does not add up with the others: {error}; {hint}", part.name),
                    )
                })?,
            }
        }
        if let Some(sum) = &mut sum {
            sum.processes = u32::try_from(processes.len().max(1)).unwrap_or(u32::MAX);
            sum.set_ended(sum.has_ended() && !parts.iter().any(|part| part.lacks_something()));
        }
        Ok(sum)
    }

    /// All processes.
    fn all(&self) -> Vec<&Part> {
        self.parts.iter().collect()
    }

    /// The processes that have each file of an output, in their order.
    fn by_file(&self, name: &OutputName) -> Vec<(PathBuf, Vec<&Part>)> {
        if let Some(path) = name.of_all() {
            return vec![(path, self.all())];
        }
        let mut files: Vec<(PathBuf, Vec<&Part>)> = Vec::new();
        for part in &self.parts {
            let path = name.of(&part.name, part.journal.process.rank);
            match files.iter_mut().find(|(other, _)| *other == path) {
                Some((_, parts)) => parts.push(part),
                None => files.push((path, vec![part])),
            }
        }
        files
    }

    /// What a person has to know where an output is to have a rank in its name, and a process has none.
    pub fn unranked<'n>(&self, names: impl IntoIterator<Item = &'n OutputName>) -> Option<String> {
        let unranked = self.parts.iter().find(|part| part.journal.process.rank.is_none());
        let part = unranked.filter(|_| names.into_iter().any(OutputName::has_rank))?;
        let variables = rank::VARIABLES.join(", ");
        Some(format!("process {} has no rank ({variables}): %r in names is 0 for it", part.name))
    }

    /// Changes what each process counted, before it is added up.
    pub(crate) fn each_counted(&mut self, change: impl Fn(&mut Profile)) {
        self.parts.iter_mut().filter_map(|part| part.journal.counters.as_mut()).for_each(change);
    }

    /// What was collected of all processes: counters, or else launches. It is empty where the application used no
    /// kernel.
    ///
    /// # Errors
    /// Unsupported if neither was to be collected, or if it is not known what code there was and no process used a
    /// runtime that collects; as [`Finished::counters`].
    pub fn profile(&self) -> Result<Profile> {
        let (origin, collected) = if self.collect.counters {
            (Origin::Counters, self.counters()?)
        } else if self.collect.launches {
            (Origin::Launches, self.trace()?)
        } else {
            return Err(Error::unsupported("neither counters nor launches were collected in this run"));
        };
        if let Some(profile) = collected {
            return Ok(profile);
        }
        if let Some(nothing) = self.nothing_loaded() {
            return Err(Error::unsupported(nothing));
        }
        // It used no kernel, and nothing is missing.
        let complete = self.info.signal.is_none() && !self.lacks_something();
        Ok(Profile { complete, ..rank::profile(origin, self.platform.backend()) })
    }

    /// Why nothing was collected, where the code was to be rewritten when it was loaded and no process has left
    /// anything: neither the application nor what it started used a runtime that collects.
    #[must_use]
    pub fn nothing_loaded(&self) -> Option<String> {
        let code = self.code.as_ref().filter(|code| code.file.is_none())?;
        let is_nothing = !self.parts.iter().any(|part| part.journal.counters.is_some()) && !self.lacks_something();
        let path = code.path.display();
        let what = if code.has_no_code { "it has no device code, and " } else { "" };
        is_nothing.then(|| match self.platform {
            Platform::EmulatorHip => {
                format!(
                    "{path}: {what}no process of it used the HIP runtime to load any: there is nothing to count (what \
                        uses OpenCL, OpenMP or HSA without HIP needs --stack rocm)"
                )
            }
            _ => format!("{path}: {what}{}: there is nothing to count", self.platform.nothing_collected()),
        })
    }

    /// What the instrumented kernels of all processes counted; none if no process used the HIP runtime.
    ///
    /// # Errors
    /// What profiles do not add up for: other sites of the same kernel; a sum of more than 64 bits.
    pub fn counters(&self) -> Result<Option<Profile>> {
        self.sum(&self.all(), |journal| journal.counters.as_ref())
    }

    /// The emulator's trace of all processes.
    ///
    /// # Errors
    /// What profiles do not add up for: other sites of the same kernel; a sum of more than 64 bits.
    pub fn trace(&self) -> Result<Option<Profile>> {
        self.sum(&self.all(), |journal| journal.trace.as_ref())
    }

    /// The modelled time of all processes.
    #[must_use]
    pub fn time(&self) -> Option<TimeProfile> {
        let (mut sum, processes, complete) = self.added_up(
            |journal| journal.time.as_ref(),
            |time| !time.kernels.is_empty(),
            |sum, time| sum.merge(time),
        )?;
        (sum.processes, sum.complete) = (processes, complete);
        Some(sum)
    }

    /// How exact the emulator was in all processes.
    #[must_use]
    pub fn fidelity(&self) -> Option<FidelityProfile> {
        let (mut sum, processes, complete) = self.added_up(
            |journal| journal.fidelity.as_ref(),
            |fidelity| !fidelity.kernels.is_empty(),
            |sum, fidelity| sum.merge(fidelity),
        )?;
        (sum.processes, sum.complete) = (processes, complete);
        Some(sum)
    }

    /// What the processes left of something, how many have any of it (at least one), and whether all is there.
    fn added_up<T: Clone>(
        &self,
        of: fn(&Journal) -> Option<&T>,
        has_any: fn(&T) -> bool,
        merge: fn(&mut T, &T),
    ) -> Option<(T, u32, bool)> {
        let mut sum: Option<T> = None;
        let mut processes: Vec<u32> = Vec::new();
        let mut complete = !self.lacks_something();
        for part in &self.parts {
            let Some(one) = of(&part.journal) else { continue };
            if has_any(one) && !processes.contains(&part.journal.process.pid) {
                processes.push(part.journal.process.pid);
            }
            complete &= self.is_complete(part);
            match &mut sum {
                None => sum = Some(one.clone()),
                Some(sum) => merge(sum, one),
            }
        }
        Some((sum?, u32::try_from(processes.len().max(1)).unwrap_or(u32::MAX), complete))
    }

    /// Writes what was counted to the files that `name` stands for. The sum of all processes, or of those of the first
    /// file that has some; none if there was nothing.
    ///
    /// # Errors
    /// As [`Finished::counters`]; Io if a file cannot be written, or exists and `force` is not set.
    pub fn write_counters(&self, name: &OutputName, force: bool) -> Result<Option<Profile>> {
        self.write(name, force, |journal| journal.counters.as_ref())
    }

    /// The same of the trace.
    ///
    /// # Errors
    /// As [`Finished::counters`]; Io if a file cannot be written, or exists and `force` is not set.
    pub fn write_trace(&self, name: &OutputName, force: bool) -> Result<Option<Profile>> {
        self.write(name, force, |journal| journal.trace.as_ref())
    }

    fn write(&self, name: &OutputName, force: bool, of: fn(&Journal) -> Option<&Profile>) -> Result<Option<Profile>> {
        let mut first = None;
        for (path, parts) in self.by_file(name) {
            let Some(sum) = self.sum(&parts, of)? else { continue };
            files::write(&path, &sum.to_json()?, force, None)?;
            if first.as_ref().is_none_or(|first: &Profile| first.kernels.is_empty()) {
                first = Some(sum);
            }
        }
        Ok(first)
    }

    /// Writes the samples of the processes of each file, one element of its list for each process. Whether there were
    /// any.
    ///
    /// # Errors
    /// Malformed if samples are cut off; Io if a file cannot be written, or exists and `force` is not set.
    pub fn write_samples(&self, name: &OutputName, force: bool) -> Result<bool> {
        let mut any = false;
        for (path, parts) in self.by_file(name) {
            let mut texts = Vec::new();
            for part in parts.into_iter().filter(|part| part.samples.exists()) {
                let text = String::from_utf8(files::read(&part.samples)?)
                    .map_err(|_| Error::malformed("samples that are no text"))?;
                let inside = text.strip_prefix(SAMPLES[0]).and_then(|text| text.strip_suffix(SAMPLES[1]));
                let cut = || Error::malformed(format!("the samples of process {} are cut off", part.name));
                texts.push(inside.ok_or_else(cut)?.to_owned());
            }
            if !texts.is_empty() {
                let whole = format!("{}{}{}", SAMPLES[0], texts.join(","), SAMPLES[1]);
                files::write(&path, whole.as_bytes(), force, None)?;
                any = true;
            }
        }
        Ok(any)
    }
}

/// The journals in a folder and the processes that they are of.
fn journals(folder: &Path) -> Result<Vec<(PathBuf, u32)>> {
    let list = fs::read_dir(folder).map_err(|error| files::io(folder, "cannot read", &error))?;
    let mut found = Vec::new();
    for entry in list {
        let path = entry.map_err(|error| files::io(folder, "cannot read", &error))?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "journal") {
            let pid = stem.split('-').next().and_then(|pid| pid.parse().ok());
            found.push((
                path,
                pid.ok_or_else(|| Error::new(Kind::Internal, format!("a journal of no process: {stem}")))?,
            ));
        }
    }
    Ok(found)
}

/// The fields of a process after its name (proc(5)).
fn fields(pid: u32) -> Option<Vec<String>> {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(status.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

/// Whether a process is there and has not ended.
fn exists(pid: u32) -> bool {
    fields(pid).is_some_and(|fields| fields.first().is_some_and(|state| state != "Z" && state != "X"))
}

/// Whether a journal is one of this very process and more may come.
fn is_open(path: &Path, pid: u32) -> bool {
    /// The place of the time of its start among the fields.
    const START_TIME: usize = 19;
    let Ok(journal) = files::read(path).and_then(|data| Journal::read(&data)) else { return false };
    let started = fields(pid).and_then(|fields| fields.get(START_TIME)?.parse().ok());
    !journal.ended && started == Some(journal.process.started)
}

/// The names of signals on Linux, from 1 (signal(7)).
const SIGNALS: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// The name and the number of a signal.
pub(super) fn signal_name(signal: i32) -> String {
    let name = usize::try_from(signal).ok().and_then(|signal| SIGNALS.get(signal.checked_sub(1)?));
    name.map_or_else(|| format!("signal {signal}"), |name| format!("{name} (signal {signal})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_the_names_of_the_manual_page() {
        let names = [1, 9, 11, 15, 31, 32, 0, -1].map(signal_name);
        let expected = [
            "SIGHUP (signal 1)",
            "SIGKILL (signal 9)",
            "SIGSEGV (signal 11)",
            "SIGTERM (signal 15)",
            "SIGSYS (signal 31)",
            "signal 32",
            "signal 0",
            "signal -1",
        ];
        assert_eq!(names, expected);
    }
}
