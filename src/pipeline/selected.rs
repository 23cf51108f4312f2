//! Whether what a person names is in an input: kernels and targets, or what a profile is of.

use wavetap_base::error::Result;
use wavetap_object::offload_bundle::Input;
use wavetap_object::selection::Selection;
use wavetap_profile::file::Profile;
use wavetap_report::counted::{self, CountedObject};

/// Refuses a selection of which a pattern matches no kernel of an input, or a target none of its code.
///
/// ```
/// use wavetap::pipeline::{Selection, check_selection};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/hip-samples/bin/divergence");
/// # let data = std::fs::read(path).unwrap();
/// assert!(check_selection(&data, &Selection::of_kernel("diver*")).is_ok());
/// let error = check_selection(&data, &Selection::of_kernel("divergnt")).unwrap_err().to_string();
/// assert_eq!(error, "no kernel matches \"divergnt\" (there are divergent, non_divergent)");
/// ```
///
/// # Errors
/// Malformed if something selects nothing, or the input breaks its format.
pub fn check_selection(data: &[u8], selection: &Selection) -> Result<()> {
    if *selection == Selection::default() { Ok(()) } else { selection.check(&Input::parse(data)?, &[]) }
}

/// Refuses a profile of another input.
///
/// # Errors
/// Malformed if none of what the profile names is in the input, or the input breaks its format.
pub fn check_profile(data: &[u8], profile: &Profile) -> Result<()> {
    counted::check(profile, &CountedObject::all(&Input::parse(data)?, &[])?)
}

/// What a profile has of other builds of an input's selected kernels, a sentence for each: it is no count of the input.
///
/// # Errors
/// Malformed if the input breaks its format.
pub fn other_builds(data: &[u8], selection: &Selection, profile: &Profile) -> Result<Vec<String>> {
    let input = Input::parse(data)?;
    let objects = CountedObject::all(&input, &[])?;
    let mut selected = profile.clone();
    selected.kernels.retain(|kernel| selection.has_kernel(&kernel.name));
    Ok(counted::other_builds(&selected, &objects))
}
