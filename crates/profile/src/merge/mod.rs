//! Adds up profile files: of ranks, nodes, runs, and sums of those.
//!
//! The result is a function of the *set* of profiles that were collected: neither the order in which files are added,
//! nor sums of sums change a byte of it. Whatever a profile has is one of
//!
//! - a number of a kernel or site, which combines as its schema says (sum, minimum, maximum);
//! - a fact that all must agree on (origin, counter mode, sites), or else the file is refused;
//! - a fact that is dropped where two differ (rank, host), or that holds where it holds of all (complete);
//! - an entry of a set (refused kernels, single waves), in the order of its fields.
//!
//! Memory grows with what the result has, not with the number of files. A file like an earlier one but for its numbers,
//! as those of ranks are, is not parsed: a template of the earlier one reads the numbers where they were.

mod builds;
mod groups;
mod template;
mod total;

#[cfg(test)]
mod tests;

use template::Templates;
use total::Total;

use super::file::{Dimension, Profile};
use super::journal::read_profile;
use wavetap_base::error::{Error, Result, ResultExt};

/// How profiles are added up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MergeOptions {
    /// What to keep apart; none for what the profiles keep apart, which must be the same in all.
    pub by: Option<Vec<Dimension>>,
    /// Whether a kernel may be of code that differs between files: both stay apart in the result.
    pub different_builds: bool,
}

/// Adds up any number of profiles.
///
/// ```
/// use wavetap_profile::file::{Backend, Origin, Profile};
/// use wavetap_profile::merge::{MergeOptions, Merger};
///
/// let rank = Profile::new(Origin::Counters, Backend::Emulator).to_json()?;
/// let mut merger = Merger::new(MergeOptions::default());
/// merger.add(&rank, "rank0.profile")?;
/// merger.add(&rank, "rank1.profile")?;
/// assert_eq!(merger.finish()?.processes, 2);
/// # Ok::<(), wavetap_base::error::Error>(())
/// ```
#[derive(Debug)]
pub struct Merger {
    total: Total,
    templates: Templates,
    files: u64,
}

impl Merger {
    /// Nothing added yet.
    #[must_use]
    pub fn new(options: MergeOptions) -> Merger {
        let MergeOptions { mut by, different_builds } = options;
        if let Some(by) = &mut by {
            by.sort_unstable();
            by.dedup();
        }
        Merger { total: Total::new(by, different_builds), templates: Templates::default(), files: 0 }
    }

    /// Adds the contents of a file: a profile, or the journal that a killed run left. `name` is what the file is called
    /// in messages.
    ///
    /// # Errors
    /// Malformed if it is neither; Unsupported if it cannot be added to what was added before: another origin or
    /// backend, the same code with other counters, no rank where ranks are kept apart. Limit if a sum exceeds 64 bits.
    /// Nothing is left to be added to after an error.
    pub fn add(&mut self, data: &[u8], name: &str) -> Result<()> {
        self.files += 1;
        if self.templates.add(data, self.total.by()).within(|| name.to_owned())? {
            return Ok(());
        }
        let profile = read_profile(data).within(|| name.to_owned())?;
        self.total.add(&profile, name)?;
        if let Some(oldest) = self.templates.learn(profile, data) {
            oldest.add_to(&mut self.total)?;
        }
        Ok(())
    }

    /// The sum.
    ///
    /// # Errors
    /// Unsupported if no profile was added, or if kernels of one name are of different builds; Limit if a sum exceeds
    /// 64 bits.
    pub fn finish(self) -> Result<Profile> {
        let Merger { mut total, templates, files } = self;
        if files == 0 {
            return Err(Error::unsupported("there is no profile to add up"));
        }
        templates.into_iter().try_for_each(|template| template.add_to(&mut total))?;
        total.finish()
    }
}
