//! A progress bar on a terminal, nothing in a pipe.

use std::io::IsTerminal;
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use wavetap::error::{Kind, Result};
use wavetap::pipeline::{self, Destination, Options, Scratch};
use wavetap::profile::map::ObjectMap;

use crate::files::Pending;

/// Fewer code objects than this are rewritten before anybody could read a bar.
const WORTH_A_BAR: usize = 8;

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
    let scratch = Some(Scratch::new(output.scratch()?));
    let terminal = std::io::stderr().is_terminal();
    let bar = ProgressBar::hidden();
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} code objects") {
        bar.set_style(style);
    }
    let destination = Destination { output: output.output(), scratch };
    let maps = pipeline::rewrite_to(data, options, destination, keep, |progress| {
        if terminal && progress.total >= WORTH_A_BAR && progress.done == 0 {
            bar.set_draw_target(indicatif::ProgressDrawTarget::stderr());
            bar.set_message("rewriting");
            bar.set_length(progress.total as u64);
        }
        bar.set_position(progress.done as u64);
    });
    bar.finish_and_clear();
    maps.map_err(|error| {
        if error.kind() == Kind::Io { output.failed(&error) } else { error.within(path.display().to_string()) }
    })
}
