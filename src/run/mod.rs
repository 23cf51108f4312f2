//! Running executables: on the emulator, under its own HIP runtime or AMD's libraries, or on a GPU.
//!
//! [`App`] is what is run, [`RunOptions`] says how, [`Finished`] is what it left. [`crate::Program`] puts rewriting
//! before it and explaining after it.
//!
//! Nothing here prints, and nothing handles signals. A caller that does either implements [`Observer`], and learns of
//! temporary files from [`crate::files::observe_temporaries`].

mod app;
mod check;
mod default_target;
mod findings;
mod finished;
mod hip_version;
mod host_frames;
mod launch;
mod libraries;
pub mod mistaken;
mod options;
mod output_name;
mod platform;

use std::path::Path;

use wavetap_base::error::{Result, ResultExt};
use wavetap_profile::file::Profile;
use wavetap_profile::journal;

use crate::files;

pub use app::{App, has_no_code_of_its_own, is_script};
pub use check::Checked;
pub(crate) use finished::CodeOfRun;
pub use finished::Finished;
pub use launch::{Launch, Observer, Silent};
pub use libraries::{Libraries, find_libraries_with};
pub use options::{AtLoad, Collect, RunOptions, Stdout, TimingOptions};
pub use output_name::OutputName;
pub use platform::{BackendChoice, Platform, Stack};

/// Reads a profile, or the journal that a process has left whose counts nothing has added up.
///
/// # Errors
/// Io if the file cannot be read; malformed if it is neither; unsupported if it is of an unknown version.
pub fn read_profile(path: &Path) -> Result<Profile> {
    let data = files::read(path)?;
    journal::read_profile(&data).within(|| path.display().to_string())
}
