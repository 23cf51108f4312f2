//! The journal files of this process: what it has collected is there as soon as a dispatch has ended, however the
//! process ends.
//!
//! The command reads the journals of all processes when the run has ended, and adds them up. A journal is made at the
//! first record, so that a process that collects nothing leaves none, and under a name that no other process has, nor
//! another program in the same process (`exec`). After `fork` the child begins one of its own.
//!
//! A profile that was asked for by name is a journal, too, until the program ends and it is replaced by the finished
//! profile: it is only ever appended to, and what a killed program leaves can be read.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};
use wavetap_base::error::{Error, Result, ResultExt};
use wavetap_profile::fidelity::FidelityProfile;
use wavetap_profile::file::{Origin, Profile};
use wavetap_profile::journal::{self, Encoder, Process};
use wavetap_profile::time::TimeProfile;

use crate::rank;
use crate::stderr_line;

/// A journal that grows to more than this begins again with the totals.
const FIRST_LIMIT: u64 = 16 << 20;
/// And later one that is so many times as large as the totals, so that writing those takes a constant part of the time.
const GROWTH: u64 = 4;
/// Programs that one process may run after each other.
const MOST_PROGRAMS: u32 = 10_000;

/// What has changed, and where.
#[derive(Default)]
pub struct Changes<'a> {
    /// The counters, and the place of the kernel that was dispatched.
    pub counters: Option<(&'a mut Profile, Option<usize>)>,
    /// The trace, and the place of the kernel.
    pub trace: Option<(&'a mut Profile, Option<usize>)>,
    /// Modelled time of the dispatch, and of all dispatches.
    pub time: Option<(&'a TimeProfile, &'a TimeProfile)>,
    /// How exact the dispatch was, and all dispatches.
    pub fidelity: Option<(&'a FidelityProfile, &'a FidelityProfile)>,
}

/// The file.
struct Open {
    file: File,
    path: PathBuf,
    length: u64,
    /// The length at which it begins again.
    limit: u64,
    /// Whether it is marked as one that lacks something.
    marked: bool,
    /// Whether it says that counts are not written yet.
    uncollected: bool,
}

/// Where a journal is.
#[derive(Debug, Clone)]
enum Place {
    /// Under a name of this process's own in a folder.
    Folder(PathBuf),
    /// At this path, in place of what was there.
    File(PathBuf),
}

/// The journals of this process.
#[derive(Default)]
pub struct Journals {
    /// The one with everything.
    process: Option<Journal>,
    /// Those of single profiles.
    files: Vec<(Journal, Origin)>,
}

impl Journals {
    /// Journals in a folder and at the places of profiles, where these were asked for.
    pub fn new(folder: Option<&Path>, profile: Option<&Path>, trace: Option<&Path>) -> Journals {
        let file = |path: Option<&Path>, origin| path.map(|path| (Journal::new(Place::File(path.to_owned())), origin));
        let files = file(profile, Origin::Counters).into_iter().chain(file(trace, Origin::Trace));
        Journals {
            process: folder.map(|folder| Journal::new(Place::Folder(folder.to_owned()))),
            files: files.collect(),
        }
    }

    /// Writes what has changed to each that has it.
    pub fn add(&mut self, mut changes: Changes<'_>) {
        for (journal, origin) in &mut self.files {
            let part = match origin {
                Origin::Counters => &mut changes.counters,
                Origin::Trace | Origin::Launches => &mut changes.trace,
            };
            let part = part.as_mut().map(|(profile, place)| (&mut **profile, *place));
            journal.add(match origin {
                Origin::Counters => Changes { counters: part, ..Changes::default() },
                Origin::Trace | Origin::Launches => Changes { trace: part, ..Changes::default() },
            });
        }
        if let Some(journal) = &mut self.process {
            journal.add(changes);
        }
    }

    /// Makes the journals, so that they are there even if nothing is collected.
    pub fn begin(&mut self) {
        if let Some(journal) = &mut self.process
            && let Err(error) = journal.open()
        {
            journal.fail(&error);
        }
    }

    /// Says whether dispatches have begun whose counts are not written yet: a process may end before they are.
    pub fn set_uncollected(&mut self, uncollected: bool) {
        let files = self.files.iter_mut().map(|(journal, _)| journal);
        for journal in self.process.iter_mut().chain(files) {
            match journal.open() {
                Ok(open) => open.set_uncollected(uncollected),
                Err(error) => journal.fail(&error),
            }
        }
    }

    /// Says in the journal with everything that a kernel runs for long, or that it has ended.
    pub fn set_running(&mut self, kernel: &str, runs: bool) {
        if let Some(journal) = self.process.as_mut().filter(|journal| !journal.failed)
            && let Err(error) = journal.set_running(kernel, runs)
        {
            journal.fail(&error);
        }
    }

    /// Marks the journals as ones that lack something; what is collected is written all the same.
    pub fn mark_incomplete(&mut self) {
        let files = self.files.iter_mut().map(|(journal, _)| journal);
        for journal in self.process.iter_mut().chain(files) {
            match journal.open() {
                Ok(open) => open.mark(),
                Err(error) => journal.fail(&error),
            }
        }
    }

    /// The journal with everything, if there is one.
    pub fn of_process(&mut self) -> Option<&mut Journal> {
        self.process.as_mut()
    }
}

/// A journal of this process.
pub struct Journal {
    place: Place,
    open: Option<Open>,
    counters: Encoder,
    trace: Encoder,
    failed: bool,
    /// Kernels that run for long.
    running: Vec<String>,
    buffer: Vec<u8>,
}

impl Journal {
    /// A journal there, when there is something to write.
    fn new(place: Place) -> Self {
        Journal {
            place,
            open: None,
            counters: Encoder::new(Origin::Counters),
            trace: Encoder::new(Origin::Trace),
            failed: false,
            running: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Writes what has changed. Says so once if it cannot be written: the program goes on as without it.
    pub fn add(&mut self, mut changes: Changes<'_>) {
        if self.failed {
            return;
        }
        if let Err(error) = self.try_add(&mut changes) {
            self.fail(&error);
        }
    }

    fn try_add(&mut self, changes: &mut Changes<'_>) -> Result<()> {
        self.buffer.clear();
        if let Some((profile, place)) = &mut changes.counters {
            self.counters.update(profile, *place, &mut self.buffer)?;
        }
        if let Some((profile, place)) = &mut changes.trace {
            self.trace.update(profile, *place, &mut self.buffer)?;
        }
        if let Some((added, _)) = changes.time {
            journal::time(added, &mut self.buffer)?;
        }
        if let Some((added, _)) = changes.fidelity {
            journal::fidelity(added, &mut self.buffer)?;
        }
        if self.buffer.is_empty() {
            return Ok(());
        }
        if self.open.is_none() {
            self.open = Some(Open::create(&self.place)?);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.length + self.buffer.len() as u64 <= open.limit {
            return open.append(&self.buffer);
        }
        self.buffer.clear();
        if let Some((profile, _)) = &mut changes.counters {
            self.counters.whole(profile, &mut self.buffer)?;
        }
        if let Some((profile, _)) = &mut changes.trace {
            self.trace.whole(profile, &mut self.buffer)?;
        }
        if let Some((_, all)) = changes.time {
            journal::time(all, &mut self.buffer)?;
        }
        if let Some((_, all)) = changes.fidelity {
            journal::fidelity(all, &mut self.buffer)?;
        }
        self.running.iter().try_for_each(|kernel| journal::running(kernel, true, &mut self.buffer))?;
        open.begin_again(&self.buffer)
    }

    fn set_running(&mut self, kernel: &str, runs: bool) -> Result<()> {
        if runs {
            self.running.push(kernel.to_owned());
        } else if let Some(place) = self.running.iter().position(|running| running == kernel) {
            self.running.remove(place);
        }
        let mut frame = Vec::new();
        journal::running(kernel, runs, &mut frame)?;
        self.open()?.append(&frame)
    }

    /// Says that there will be no more.
    pub fn end(&mut self) {
        let mut frame = Vec::new();
        let result = journal::end(&mut frame).and_then(|()| match &mut self.open {
            Some(open) if !self.failed => open.append(&frame),
            _ => Ok(()),
        });
        if let Err(error) = result {
            self.fail(&error);
        }
    }

    /// Where a file beside the journal goes that has all of something else.
    pub fn beside(&mut self, extension: &str) -> Result<PathBuf> {
        Ok(self.open()?.path.with_extension(extension))
    }

    /// Marks the journal as one that lacks something.
    pub fn fail(&mut self, error: &Error) {
        self.failed = true;
        stderr_line!(
            "wavetap: the counts could not be written: {error}; the application goes on, and what it does from now on \
                is not counted"
        );
        if let Some(open) = &mut self.open {
            // What was written in part is cut off. Nothing helps where even that fails.
            let _ = open.file.set_len(open.length);
            open.mark();
        }
    }

    /// The file, made if it is not there yet.
    fn open(&mut self) -> Result<&mut Open> {
        let open = match self.open.take() {
            Some(open) => open,
            None => Open::create(&self.place)?,
        };
        Ok(self.open.insert(open))
    }
}

impl Open {
    fn create(place: &Place) -> Result<Open> {
        let folder = match place {
            Place::Folder(folder) => folder,
            Place::File(path) => {
                let mut temporary = path.as_os_str().to_owned();
                temporary.push(format!(".{}.new", std::process::id()));
                return Open::replacing(path, Path::new(&temporary), &[]);
            }
        };
        let pid = std::process::id();
        for number in 0..MOST_PROGRAMS {
            let name = if number == 0 { format!("{pid}.journal") } else { format!("{pid}-{number}.journal") };
            let path = folder.join(name);
            match File::options().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    let mut open =
                        Open { file, path, length: 0, limit: FIRST_LIMIT, marked: false, uncollected: false };
                    open.append(&first()?)?;
                    return Ok(open);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::from(error)).within(|| path.display().to_string()),
            }
        }
        Err(Error::limit(format!("process {pid} has {MOST_PROGRAMS} journals already")))
    }

    /// Marks it as one that lacks something. The mark lies in what the file has already.
    fn mark(&mut self) {
        self.marked = true;
        let _ = self.file.write_all_at(&[1], journal::FAILED);
    }

    fn set_uncollected(&mut self, uncollected: bool) {
        if self.uncollected != uncollected {
            self.uncollected = uncollected;
            let _ = self.file.write_all_at(&[uncollected.into()], journal::UNCOLLECTED);
        }
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let end = self.length + bytes.len() as u64;
        let place = || self.path.display().to_string();
        file_may_have(end)
            .and_then(|()| self.file.write_all_at(bytes, self.length))
            .map_err(Error::from)
            .within(place)?;
        self.length = end;
        Ok(())
    }

    /// Puts a journal that begins with these totals in the place of this one.
    fn begin_again(&mut self, totals: &[u8]) -> Result<()> {
        let (marked, uncollected) = (self.marked, self.uncollected);
        *self = Open::replacing(&self.path, &self.path.with_extension("new"), totals)?;
        if marked {
            self.mark();
        }
        self.set_uncollected(uncollected);
        Ok(())
    }

    /// Puts a journal that begins with these totals where another file may be.
    fn replacing(path: &Path, temporary: &Path, totals: &[u8]) -> Result<Open> {
        let file = File::create(temporary).map_err(Error::from).within(|| temporary.display().to_string())?;
        let mut open = Open { file, path: path.to_owned(), length: 0, limit: 0, marked: false, uncollected: false };
        let written = first().and_then(|mut bytes| {
            bytes.extend_from_slice(totals);
            open.append(&bytes)?;
            fs::rename(temporary, path).map_err(Error::from).within(|| path.display().to_string())
        });
        if let Err(error) = written {
            // The old one is still whole; without room for another it lacks only what comes now.
            let _ = fs::remove_file(temporary);
            return Err(error);
        }
        open.limit = FIRST_LIMIT.max(open.length * GROWTH);
        Ok(open)
    }
}

/// Writes a file under a temporary name beside its place and renames it, so that a reader never sees half of one.
///
/// # Errors
/// If it cannot be written; nothing is left of it then.
pub fn replace(path: &Path, contents: &[u8]) -> Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let place = || path.display().to_string();
    let written = file_may_have(contents.len() as u64)
        .and_then(|()| fs::write(&temporary, contents))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // Nothing that is left in part is of use; it may not be there at all.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(Error::from).within(place)
}

/// Whether a file of this process may have `length` bytes: writing more would send it a signal that ends it.
fn file_may_have(length: u64) -> io::Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(most) if length > most => Err(io::ErrorKind::FileTooLarge.into()),
        _ => Ok(()),
    }
}

/// What every journal begins with.
fn first() -> Result<Vec<u8>> {
    let mut bytes = journal::header().to_vec();
    let name = fs::read_to_string("/proc/self/comm").unwrap_or_default().trim_end().to_owned();
    let rank = rank::of_process();
    let process = Process { pid: std::process::id(), started: started().unwrap_or(0), name, rank };
    journal::process(&process, &mut bytes)?;
    Ok(bytes)
}

/// When this process started, in clock ticks since boot.
fn started() -> Option<u64> {
    /// Its place among the fields after the name, which is in parentheses and may hold anything (proc(5)).
    const START_TIME: usize = 19;
    let status = fs::read_to_string("/proc/self/stat").ok()?;
    status.rsplit_once(')')?.1.split_whitespace().nth(START_TIME)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wavetap_profile::file::{Backend, KernelTotals, WaveCounts};
    use wavetap_profile::journal::{Journal as Read, read_profile};

    #[test]
    fn a_profile_is_a_journal_until_it_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.profile");
        fs::write(&path, "of an earlier run").unwrap();
        let mut journals = Journals::new(None, Some(&path), None);
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        profile.kernels.push(KernelTotals { name: "k".to_owned(), ..KernelTotals::default() });
        let mut trace = Profile::new(Origin::Trace, Backend::Emulator);
        let mut lengths = Vec::new();
        for dispatches in 1..=100_u32 {
            profile.kernels[0].dispatches = dispatches.into();
            let (workgroup, counters) = ([0; 3], vec![1; 100]);
            profile.waves.push(WaveCounts {
                kernel: 0,
                dispatch: Some(dispatches),
                region: None,
                workgroup,
                wave: 0,
                counters,
            });
            let (counters, trace) = (Some((&mut profile, Some(0))), Some((&mut trace, None)));
            journals.add(Changes { counters, trace, ..Changes::default() });
            let data = fs::read(&path).unwrap();
            assert_eq!(read_profile(&data).unwrap(), profile);
            lengths.push(data.len());
        }
        // What a dispatch adds does not grow with the number of dispatches before it.
        assert!(lengths[99] - lengths[98] <= lengths[11] - lengths[10] + 16, "{lengths:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_long_journal_begins_again_and_says_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::new(Place::Folder(folder.path().to_owned()));
        let mut profile = Profile::new(Origin::Counters, Backend::Emulator);
        profile.kernels.push(KernelTotals { name: "k".to_owned(), ..KernelTotals::default() });
        let path = folder.path().join(format!("{}.journal", std::process::id()));
        assert!(!path.exists(), "nothing to write");
        for dispatches in 1..=1000 {
            profile.kernels[0].dispatches = dispatches;
            journal.add(Changes { counters: Some((&mut profile, Some(0))), ..Changes::default() });
            if let Some(open) = &mut journal.open
                && dispatches == 1
            {
                open.limit = 2000;
            }
            if let Some(open) = &mut journal.open {
                open.limit = open.limit.min(2000);
            }
            assert_eq!(Read::read(&fs::read(&path).unwrap()).unwrap().counters.as_ref(), Some(&profile));
        }
        assert!(fs::metadata(&path).unwrap().len() <= 2000);
        journal.end();
        let read = Read::read(&fs::read(&path).unwrap()).unwrap();
        assert!(read.ended && !read.failed && read.process.pid == std::process::id() && read.process.started > 0);
        // Marks stay when it begins again.
        let mut journals = Journals { process: Some(journal), files: Vec::new() };
        journals.set_uncollected(true);
        journals.mark_incomplete();
        for (changes, uncollected) in [(2000, true), (2001, false)] {
            journals.set_uncollected(uncollected);
            profile.kernels[0].dispatches = changes;
            journals.of_process().unwrap().open().unwrap().limit = 0;
            journals.add(Changes { counters: Some((&mut profile, Some(0))), ..Changes::default() });
            let read = Read::read(&fs::read(&path).unwrap()).unwrap();
            assert!(read.failed && read.uncollected == uncollected);
            assert_eq!(read.counters.unwrap().kernels[0].dispatches, changes);
        }
        // Another one of the same process does not take its place.
        let mut second = Journal::new(Place::Folder(folder.path().to_owned()));
        second.add(Changes { counters: Some((&mut profile, None)), ..Changes::default() });
        assert!(folder.path().join(format!("{}-1.journal", std::process::id())).exists());
        second.fail(&Error::limit("a test"));
        let read =
            Read::read(&fs::read(folder.path().join(format!("{}-1.journal", std::process::id()))).unwrap()).unwrap();
        assert!(read.failed);
    }
}
