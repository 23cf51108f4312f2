//! An executable, library or code object as one value: what is in it, rewriting it, running it, explaining what it did.
//!
//! ```text
//! Program::open ─► rewrite ─► run ─► Finished::profile ─► Finished::explain ─► Report
//!         │                    ▲
//!         └─ kernels, objects  └ RunOptions
//! ```

mod checked;
mod explain;
mod kernels;
mod rewritten;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use wavetap_base::error::{Result, ResultExt};
use wavetap_object::code_object::CodeObject;
use wavetap_object::offload_bundle::Input;
use wavetap_object::selection::Selection;
use wavetap_report::inspect::{Inspected, Inspection};

use crate::files::{self, Contents};
use crate::pipeline::{self, Object, Options};
use crate::run::{App, CodeOfRun, Finished, Launch, Observer, RunOptions, Silent, has_no_code_of_its_own};

pub use explain::ExplainOptions;
pub use kernels::{KernelVersion, ProgramKernel};
pub use rewritten::{RewrittenProgram, rewrite_into};

/// An executable, library, offload bundle or code object, with its contents.
///
/// ```
/// use wavetap::{Options, probe, Program};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/hip-samples/bin/divergence");
/// let program = Program::open(path)?;
/// let names: Vec<String> = program.kernels()?.into_iter().map(|kernel| kernel.name).collect();
/// assert_eq!(names, ["_Z9divergentPjS_", "_Z13non_divergentPjS_"]);
///
/// let rewritten = program.rewrite(&Options::new([probe::BRANCHES]).target("gfx90a").kernel("divergent"))?;
/// assert_eq!(rewritten.kernels()[0].name, "_Z9divergentPjS_");
/// assert!(rewritten.refused().is_empty());
/// # Ok::<(), wavetap::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Program {
    app: App,
    contents: Contents,
}

impl Program {
    /// Reads the file at a path.
    ///
    /// # Errors
    /// Io if it cannot be read, limit if it is too large. What is in it is not looked at yet.
    pub fn open(path: impl Into<PathBuf>) -> Result<Program> {
        let path = path.into();
        Ok(Program { contents: Contents::new(files::read(&path)?), app: App::at(path) })
    }

    /// Finds an executable as a shell does, along `PATH`, and reads it.
    ///
    /// # Errors
    /// Io if there is none of that name or it cannot be read.
    pub fn find(name: impl AsRef<OsStr>) -> Result<Program> {
        let app = App::find(name)?;
        Ok(Program { contents: Contents::new(files::read(app.path())?), app })
    }

    /// An application whose contents are in memory already, read or mapped.
    #[must_use]
    pub fn new(app: App, contents: Contents) -> Program {
        Program { app, contents }
    }

    /// The application that it is.
    #[must_use]
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.app.path()
    }

    /// Its contents: what the functions of [`pipeline`] take.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.contents
    }

    /// Whether it has device code itself. A script or an interpreter has none, and starts or loads what has some.
    #[must_use]
    pub fn has_own_code(&self) -> bool {
        !has_no_code_of_its_own(&self.contents)
    }

    /// Whether code of it was rewritten before, so that it counts when it runs.
    #[must_use]
    pub fn is_rewritten(&self) -> bool {
        let is_rewritten = |bytes: &[u8]| CodeObject::parse(bytes).is_ok_and(|code| code.is_rewritten());
        Input::parse(self.bytes()).is_ok_and(|input| input.code_objects().any(|found| is_rewritten(found.bytes)))
    }

    /// Bundles, code objects, kernels and what they need of the machine.
    ///
    /// # Errors
    /// Malformed if it breaks its format.
    pub fn inspect(&self, inspected: &Inspected) -> Result<Inspection> {
        pipeline::inspect(&self.contents, inspected, None).within(|| self.path().display().to_string())
    }

    /// Calls `each` with every selected code object, decoded. Returns what could not be read, with its place: code
    /// objects and kernels that contradict their format.
    ///
    /// # Errors
    /// Malformed or unsupported if none of the code objects can be decoded; what `each` reports.
    pub fn each_object(
        &self,
        selection: &Selection,
        each: impl FnMut(&Object<'_>) -> Result<()>,
    ) -> Result<Vec<String>> {
        let all = || {
            let input = Input::parse(&self.contents)?;
            let mut unread = Vec::new();
            pipeline::objects(&input, selection, &mut unread)?.iter().try_for_each(each)?;
            Ok(unread)
        };
        all().within(|| self.path().display().to_string())
    }

    /// Rewrites the selected kernels so that they measure themselves. The file is not changed: the rewritten one is a
    /// temporary file that is removed with the value ([`RewrittenProgram::save`] keeps it). A program without device
    /// code of its own stays as it is, and what it loads is rewritten when it is loaded.
    ///
    /// # Errors
    /// Malformed if the file breaks its format; unsupported if it was rewritten before, or a counter mode is not
    /// available; Io. A kernel that cannot be instrumented is no error: see [`RewrittenProgram::refused`].
    pub fn rewrite(&self, options: &Options) -> Result<RewrittenProgram> {
        self.rewrite_with(options, |_| {})
    }

    /// [`Program::rewrite`] that tells `progress` how far it is: at the start and after each code object.
    ///
    /// # Errors
    /// As [`Program::rewrite`].
    pub fn rewrite_with(
        &self,
        options: &Options,
        progress: impl FnMut(pipeline::Progress) + Send,
    ) -> Result<RewrittenProgram> {
        RewrittenProgram::of(self, options, progress)
    }

    /// All code that the program loads, its own included, is to be rewritten when it is loaded.
    #[must_use]
    pub fn rewrite_at_load(&self, options: &Options) -> RewrittenProgram {
        RewrittenProgram::at_load(self, options)
    }

    /// Rewrites the program and runs it, as `wavetap profile` does: where the HSA tool counts (on a GPU, and under
    /// AMD's libraries), code is rewritten when it is loaded, otherwise before.
    ///
    /// # Errors
    /// As [`Program::rewrite`] and [`RewrittenProgram::run`].
    pub fn profile(&self, options: &Options, run: &RunOptions) -> Result<Finished> {
        let rewritten = if run.platform()?.has_tool() { self.rewrite_at_load(options) } else { self.rewrite(options)? };
        rewritten.run(run)
    }

    /// Runs the program as it is. A program that was rewritten before counts.
    ///
    /// # Errors
    /// As [`Launch::execute`]. That the application fails is no error: see [`Finished::is_success`].
    pub fn run(&self, options: &RunOptions) -> Result<Finished> {
        self.run_observed(options, &Silent)
    }

    /// [`Program::run`] with an observer.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_observed(&self, options: &RunOptions, observer: &dyn Observer) -> Result<Finished> {
        let launch = Launch { app: &self.app, executable: None, options, at_load: None };
        let mut finished = launch.execute(observer)?;
        finished.set_code(self.code_of_run(self.has_own_code(), files::temporary_folder()?));
        Ok(finished)
    }

    /// What a run is explained from.
    fn code_of_run(&self, has_file: bool, originals: tempfile::TempDir) -> CodeOfRun {
        CodeOfRun {
            file: has_file.then(|| self.contents.clone()),
            has_no_code: !self.has_own_code(),
            path: self.path().to_owned(),
            originals,
        }
    }
}
