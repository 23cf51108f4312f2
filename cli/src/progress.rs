//! A progress bar on a terminal, nothing in a pipe.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use wavetap::error::Result;
use wavetap::pipeline::{Options, Progress};
use wavetap::profile::map::ObjectMap;
use wavetap::{Program, RewrittenProgram};

use crate::files::Pending;

/// Fewer code objects than this are rewritten before anybody could read a bar.
const WORTH_A_BAR: usize = 8;

/// A bar on stderr that is told how far a rewrite is.
pub struct Bar {
    bar: ProgressBar,
    terminal: bool,
}

impl Bar {
    /// It is shown when there is much to be done, and stderr is a terminal.
    pub fn new() -> Bar {
        let bar = ProgressBar::hidden();
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} code objects") {
            bar.set_style(style);
        }
        Bar { bar, terminal: std::io::stderr().is_terminal() }
    }

    /// Shows how far it is.
    pub fn show(&self, progress: Progress) {
        if self.terminal && progress.total >= WORTH_A_BAR && progress.done == 0 {
            self.bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            self.bar.set_message("rewriting");
            self.bar.set_length(progress.total as u64);
        }
        self.bar.set_position(progress.done as u64);
    }

    /// Removes it.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// So long reading files goes without a word.
const PATIENCE: Duration = Duration::from_millis(500);

/// How many files were read so far, shown on stderr if that is a terminal and it takes long.
pub struct FilesRead {
    bar: ProgressBar,
    since: Option<Instant>,
}

impl FilesRead {
    /// None yet; `message` says what is done with them.
    pub fn new(message: &'static str) -> FilesRead {
        let bar = ProgressBar::hidden();
        if let Ok(style) = ProgressStyle::with_template("{msg} {human_pos} profiles") {
            bar.set_style(style);
        }
        bar.set_message(message);
        FilesRead { bar, since: std::io::stderr().is_terminal().then(Instant::now) }
    }

    /// One more.
    pub fn add_one(&self) {
        if self.bar.is_hidden() && self.since.is_some_and(|since| since.elapsed() > PATIENCE) {
            self.bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        }
        self.bar.inc(1);
    }

    /// Removes it.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Rewrites the contents of the file `path` and shows on stderr how far it is.
///
/// Of the map of each code object there is what `keep` makes of it.
pub fn rewrite<M: Send>(
    data: &[u8],
    path: &Path,
    options: &Options,
    output: &mut Pending,
    keep: impl Fn(ObjectMap) -> M + Sync,
) -> Result<Vec<M>> {
    let bar = Bar::new();
    let maps = wavetap::rewrite_into(data, path, options, output, keep, |progress| bar.show(progress));
    bar.clear();
    maps
}

/// The program, its file rewritten, with progress on stderr.
pub fn rewrite_program(program: &Program, options: &Options) -> Result<RewrittenProgram> {
    let bar = Bar::new();
    let rewritten = program.rewrite_with(options, |progress| bar.show(progress));
    bar.clear();
    rewritten
}
