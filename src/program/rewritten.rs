//! A program that measures itself when it runs.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use wavetap_base::error::{Error, Kind, Result};
use wavetap_instrument::probe;
use wavetap_object::emit::Scratch;
use wavetap_profile::file::Profile;
use wavetap_profile::launches::NotCounted;
use wavetap_profile::map::{EVERY_KERNEL, ObjectMap, Refused};
use wavetap_report::inspect::Inspected;
use wavetap_report::rewrite::{InstrumentedKernel, Summary};

use super::Program;
use crate::files::{self, Pending};
use crate::pipeline::{self, Destination, Options, Progress};
use crate::run::{AtLoad, Finished, Launch, Observer, RunOptions, Silent};

/// A program whose selected kernels measure themselves when it is run.
#[derive(Debug)]
pub struct RewrittenProgram {
    program: Program,
    options: Options,
    file: Option<RewrittenFile>,
    summary: Summary,
    left: Vec<LeftOut>,
    /// Whether code that it loads stays as it is.
    only_file: bool,
}

/// The rewritten file.
#[derive(Debug)]
struct RewrittenFile {
    path: PathBuf,
    /// Has the file in it.
    _folder: TempDir,
}

impl RewrittenProgram {
    pub(super) fn of(
        program: &Program,
        options: &Options,
        progress: impl FnMut(Progress) + Send,
    ) -> Result<RewrittenProgram> {
        if !program.has_own_code() {
            return Ok(RewrittenProgram::at_load(program, options));
        }
        let folder = files::temporary_folder()?;
        let path = folder.path().join(program.app().file_name());
        let options = Options { keep_addresses: false, ..options.clone() };
        let mut pending = Pending::new(&path, false)?;
        let keep = |map: ObjectMap| (Summary::of(std::slice::from_ref(&map)), LeftOut::of(map));
        let kept = rewrite_into(program.bytes(), program.path(), &options, &mut pending, keep, progress)?;
        let metadata =
            std::fs::metadata(program.path()).map_err(|error| files::io(program.path(), "cannot read", &error))?;
        pending.finish(Some(metadata.permissions()))?;
        let (summaries, left) = kept.into_iter().unzip();
        Ok(RewrittenProgram {
            program: program.clone(),
            options,
            file: Some(RewrittenFile { path, _folder: folder }),
            summary: Summary::join(summaries),
            left,
            only_file: false,
        })
    }

    pub(super) fn at_load(program: &Program, options: &Options) -> RewrittenProgram {
        RewrittenProgram {
            program: program.clone(),
            options: options.clone(),
            file: None,
            summary: Summary::of(&[]),
            left: Vec::new(),
            only_file: false,
        }
    }

    /// The program as it was.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The rewritten file, a temporary one; none where all code is rewritten when it is loaded.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| file.path.as_path())
    }

    /// The same of which only the file measures itself: code that it loads stays as it is.
    #[must_use]
    pub fn only_file(mut self) -> RewrittenProgram {
        self.only_file = self.file.is_some();
        self
    }

    /// Kernels that measure themselves. Those of code that is rewritten when it is loaded are not known yet.
    #[must_use]
    pub fn kernels(&self) -> &[InstrumentedKernel] {
        &self.summary.kernels
    }

    /// Kernels that cannot be rewritten correctly and stay as they were, and why.
    #[must_use]
    pub fn refused(&self) -> &[Refused] {
        &self.summary.refused
    }

    /// What the rewrite did, for a report.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Why no kernel of the file was selected, where some should have been.
    #[must_use]
    pub fn nothing_selected(&self) -> Option<String> {
        self.file.as_ref()?;
        let selection = &self.options.selection;
        let is_selected = !self.summary.kernels.is_empty() || !self.summary.refused.is_empty();
        if is_selected || (selection.kernels.is_empty() && selection.targets.is_empty()) {
            return None;
        }
        let inspected = Inspected { selection: selection.clone(), ..Inspected::default() };
        let said = pipeline::inspect(self.program.bytes(), &inspected, None).err().map(|error| error.to_string());
        Some(said.unwrap_or_else(|| "nothing that --kernel and --target select is there to be counted".to_owned()))
    }

    /// Keeps the rewritten file under a name, with the permissions of the original. `force` replaces what is there.
    ///
    /// # Errors
    /// Unsupported if there is none; Io if it cannot be written, is there and `force` is not set, or is the original.
    pub fn save(&self, path: &Path, force: bool) -> Result<()> {
        let file = self.file.as_ref().ok_or_else(|| {
            let path = self.program.path().display();
            Error::unsupported(format!("{path}: no file was rewritten: its code is rewritten when it is loaded"))
        })?;
        files::not_the_same(self.program.path(), path)?;
        let metadata = std::fs::metadata(&file.path).map_err(|error| files::io(&file.path, "cannot read", &error))?;
        files::write(path, &files::read(&file.path)?, force, Some(metadata.permissions()))
    }

    /// Runs it. Code that it loads and that was not rewritten before is rewritten when it is loaded; where the HSA tool
    /// counts, that is all code.
    ///
    /// A probe of another crate measures the code in the file alone: code that is loaded is not rewritten, and the
    /// profile lists what was dispatched of it as not counted.
    ///
    /// [`RunOptions::per_wave`] needs a program that was rewritten with [`Options::single_waves`]. Of kernels whose
    /// waves share records the profile says so.
    ///
    /// # Errors
    /// As [`Launch::execute`]; unsupported with a probe of another crate where code is rewritten when it is loaded.
    /// That the application fails is no error: see [`Finished::is_success`].
    pub fn run(&self, options: &RunOptions) -> Result<Finished> {
        self.run_observed(options, &Silent)
    }

    /// [`RewrittenProgram::run`] with an observer.
    ///
    /// # Errors
    /// As [`RewrittenProgram::run`].
    pub fn run_observed(&self, options: &RunOptions, observer: &dyn Observer) -> Result<Finished> {
        let originals = files::temporary_folder()?;
        // A file that was rewritten would tell HIP what kernels need with counters: the HSA tool rewrites what is
        // loaded.
        let file = self.file().filter(|_| !options.platform().is_ok_and(|platform| platform.has_tool()));
        // The libraries that rewrite what is loaded know the probes of this package alone.
        let foreign = self.options.probes.iter().find(|probe| probe::by_name(probe.name()).is_none());
        if let (Some(probe), None) = (foreign, file) {
            let message = format!(
                "probe {} is of another crate: it measures code in files, and here code is rewritten when it is loaded",
                probe.name()
            );
            return Err(Error::unsupported(message));
        }
        // Without a probe, code that is loaded stays as it is.
        let at_load = (!self.only_file && !self.options.probes.is_empty() && foreign.is_none())
            .then_some(AtLoad { options: &self.options, originals: originals.path() });
        let launch = Launch { app: self.program.app(), executable: file, options, at_load };
        let mut finished = launch.execute(observer)?;
        finished.each_counted(|profile| self.left.iter().for_each(|left| left.explain(profile)));
        finished.set_code(self.program.code_of_run(file.is_some(), originals));
        Ok(finished)
    }
}

/// Rewrites the contents of the file `path` into `output`, which the caller finishes. Of the map of each code object
/// there is what `keep` makes of it; `progress` is told at the start and after each code object.
///
/// # Errors
/// As [`pipeline::rewrite_to`], with the file that it is about.
pub fn rewrite_into<M: Send>(
    data: &[u8],
    path: &Path,
    options: &Options,
    output: &mut Pending,
    keep: impl Fn(ObjectMap) -> M + Sync,
    progress: impl FnMut(Progress) + Send,
) -> Result<Vec<M>> {
    let scratch = Some(Scratch::new(output.scratch()?));
    let destination = Destination { output: output.output(), scratch };
    pipeline::rewrite_to(data, options, destination, keep, progress).map_err(|error| {
        if error.kind() == Kind::Io { output.failed(&error) } else { error.within(path.display().to_string()) }
    })
}

/// What a code object has that was skipped: its kernels, none of which was instrumented. Then it is the
/// original, and has no site table that says so.
#[derive(Debug)]
struct LeftOut {
    object: String,
    refused: Vec<Refused>,
}

impl LeftOut {
    fn of(map: ObjectMap) -> LeftOut {
        LeftOut { object: map.original, refused: if map.kernels.is_empty() { map.refused } else { Vec::new() } }
    }

    /// Says of its kernels that were dispatched why they were not counted.
    fn explain(&self, profile: &mut Profile) {
        let mut dispatched = false;
        for uncounted in profile.uncounted.iter_mut().filter(|uncounted| uncounted.object == self.object) {
            let refused =
                self.refused.iter().find(|refused| refused.name == uncounted.name || refused.name == EVERY_KERNEL);
            if let (NotCounted::NotRewritten, Some(refused)) = (uncounted.why, refused) {
                (uncounted.why, uncounted.detail) =
                    (NotCounted::Refused, format!("{}: {}", refused.reason, refused.detail));
                dispatched = true;
            } else if uncounted.why == NotCounted::NotRewritten {
                (uncounted.why, uncounted.detail) = (NotCounted::NotSelected, "it was not selected".to_owned());
            }
        }
        if dispatched {
            for refused in &self.refused {
                if !profile.refused.contains(refused) {
                    profile.refused.push(refused.clone());
                }
            }
        }
        profile.check_complete();
    }
}
