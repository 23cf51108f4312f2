//! What a run says, joined with the code that ran.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use wavetap_amdgpu::Board;
use wavetap_base::error::{Result, ResultExt};
use wavetap_object::selection::Selection;
use wavetap_profile::file::{KernelTotals, Profile};
use wavetap_profile::time::TimeProfile;
use wavetap_report::html::PageData;
use wavetap_report::memory::{self, MemoryReport};
use wavetap_report::summary::SummaryInputs;
use wavetap_report::{Build, Report, RunInfo};

use super::Program;
use crate::files;
use crate::pipeline::{self, MemoryInputs};
use crate::run::Finished;

/// What an explanation rests on besides the profile and the code.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ExplainOptions {
    /// The board that launches are about; the usual one of each target if none.
    pub board: Option<&'static Board>,
    /// Modelled time of the same program as it was before ([`Finished::time`]).
    pub time: Option<TimeProfile>,
    /// What just-in-time compilers say of code objects, by MD5.
    pub builds: BTreeMap<String, Build>,
}

impl ExplainOptions {
    /// The profile and the code alone.
    #[must_use]
    pub fn new() -> ExplainOptions {
        ExplainOptions::default()
    }

    /// Sets [`ExplainOptions::board`].
    #[must_use]
    pub fn board(mut self, board: Option<&'static Board>) -> ExplainOptions {
        self.board = board;
        self
    }

    /// Sets [`ExplainOptions::time`].
    #[must_use]
    pub fn time(mut self, time: Option<TimeProfile>) -> ExplainOptions {
        self.time = time;
        self
    }

    /// Sets [`ExplainOptions::builds`].
    #[must_use]
    pub fn builds(mut self, builds: BTreeMap<String, Build>) -> ExplainOptions {
        self.builds = builds;
        self
    }
}

impl Program {
    /// Explains a profile of this program: the report with waits, launches and the summary of what matters most.
    ///
    /// # Errors
    /// Malformed if the profile is of another program; malformed or unsupported if the code cannot be decoded.
    pub fn explain(&self, profile: &Profile, options: &ExplainOptions) -> Result<Report> {
        let explained = || {
            pipeline::check_profile(self.bytes(), profile)?;
            let mut report = Report::new(profile, RunInfo::default());
            report.set_time(options.time.clone());
            let code = pipeline::explain(&mut report, profile, self.bytes())?;
            report.set_builds(&options.builds);
            report.summarise(&SummaryInputs { profile, board: options.board, code: &code });
            Ok(report)
        };
        explained().within(|| self.path().display().to_string())
    }
}

impl Finished {
    /// Explains what was collected, with the code that ran, of the application's file and of what it loaded: the report
    /// with waits, launches and the summary of what matters most. `profile` is [`Finished::profile`], or a selection of
    /// its kernels.
    ///
    /// # Errors
    /// Malformed or unsupported if the code cannot be decoded; Io if code that was loaded cannot be read.
    pub fn explain(&self, profile: &Profile, options: &ExplainOptions) -> Result<Report> {
        let mut report = Report::new(profile, self.info().clone());
        report.set_time(options.time.clone());
        let mut code = Vec::new();
        self.each_code(profile, true, |data| {
            code.extend(pipeline::explain(&mut report, profile, data)?);
            Ok(())
        })?;
        report.set_builds(&options.builds);
        report.summarise(&SummaryInputs { profile, board: options.board, code: &code });
        Ok(report)
    }

    /// What the memory probe has recorded of the kernels that ran, beside how they access memory by their code.
    ///
    /// # Errors
    /// As [`Finished::explain`].
    pub fn memory(&self, profile: &Profile, selection: &Selection) -> Result<MemoryReport> {
        let inputs = MemoryInputs { profile: Some(profile), ..MemoryInputs::default() };
        let mut report =
            MemoryReport { schema: memory::SCHEMA.into(), predicted: true, kernels: Vec::new(), unread: Vec::new() };
        self.each_code(profile, true, |data| {
            let MemoryReport { predicted, kernels, unread, .. } = pipeline::memory(data, selection, inputs)?;
            report.predicted &= predicted;
            report.kernels.extend(kernels);
            report.unread.extend(unread);
            Ok(())
        })?;
        report.kernels.retain(|kernel| kernel.recorded.is_some());
        Ok(report)
    }

    /// Gives an HTML page of the report the code of the kernels that ran.
    ///
    /// # Errors
    /// As [`Finished::explain`].
    pub fn fill_page(&self, page: &mut PageData<'_>, profile: &Profile) -> Result<()> {
        let is_loaded = |kernel: &KernelTotals| self.original_of(&kernel.object).is_some_and(|path| path.exists());
        let with_file = !profile.kernels.iter().all(is_loaded);
        self.each_code(profile, with_file, |data| pipeline::page(page, data, profile, None))
    }

    /// Does something with the application's file, and with each code object that was loaded and has counted, as they
    /// were before.
    pub(super) fn each_code(
        &self,
        profile: &Profile,
        with_file: bool,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(code) = self.code() else { return Ok(()) };
        if let Some(file) = code.file.as_ref().filter(|_| with_file) {
            each(file).within(|| code.path.display().to_string())?;
        }
        let counted: BTreeSet<&str> = profile.kernels.iter().map(|kernel| kernel.object.as_str()).collect();
        for object in counted {
            let Some(path) = self.original_of(object).filter(|path| path.exists()) else { continue };
            each(&files::read(&path)?).within(|| format!("the code object {object}, which was loaded"))?;
        }
        Ok(())
    }

    /// Where the original of a code object is that was loaded.
    fn original_of(&self, object: &str) -> Option<PathBuf> {
        Some(self.code()?.originals.path().join(format!("{object}.co")))
    }
}
