//! Of which range of the application a profile is read.

use std::path::Path;

use clap::Args;
use wavetap::Profile;
use wavetap::error::{Error, Result, ResultExt};
use wavetap::run::read_profile;

/// A pattern of names, which is refused if it is no regular expression between slashes.
pub(super) fn pattern(text: &str) -> std::result::Result<String, String> {
    wavetap::glob::check(text).map(|()| text.to_owned()).map_err(|error| error.to_string())
}

/// `--region` of what reads profiles.
#[derive(Debug, Clone, Default, Args)]
pub struct RegionArgs {
    /// Only what was launched in ranges of the application (roctx) whose name matches (`*`, `?`, /REGEX/; OUTER/INNER
    /// for one inside the other)
    #[arg(long, value_name = "NAME", value_parser = pattern)]
    pub region: Option<String>,
}

impl RegionArgs {
    /// Reads a profile, of the region if one is named.
    ///
    /// # Errors
    /// If it cannot be read or has no such region.
    pub fn read(&self, path: &Path) -> Result<Profile> {
        self.of(read_profile(path)?).within(|| path.display().to_string())
    }

    /// The part of a profile that is of the region if one is named, else the profile.
    ///
    /// # Errors
    /// If it has no such region.
    pub fn of(&self, profile: Profile) -> Result<Profile> {
        match &self.region {
            None => Ok(profile),
            Some(region) => profile.of_region(region),
        }
    }

    /// Refuses modelled time beside a region: that of instructions is known of all dispatches together.
    ///
    /// # Errors
    /// Unsupported if both are given.
    pub fn check_time(&self, time: Option<&Path>) -> Result<()> {
        match (&self.region, time) {
            (Some(region), Some(_)) => Err(Error::unsupported(format!(
                "--time: the modelled time of instructions is not known by range; `wavetap run --timing --region \
                    {region}` models what is launched in that one"
            ))),
            _ => Ok(()),
        }
    }
}
