//! Whether what a person names is in an input: kernels and targets, or what a profile is of.

use wavetap_amdgpu::Target;
use wavetap_base::error::Result;
use wavetap_object::code_object::CodeObject;
use wavetap_object::offload_bundle::{Input, TargetId};
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

/// Refuses a target on which none of an input's code runs: it is neither for that processor nor for its generic one.
/// Where the target has no features, code with any of them is for it.
///
/// ```
/// use wavetap::pipeline::check_runs_on;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/hip-samples/bin/divergence");
/// # let data = std::fs::read(path).unwrap();
/// assert!(check_runs_on(&data, "gfx90a").is_ok());
/// let error = check_runs_on(&data, "gfx803").unwrap_err().to_string();
/// assert!(error.starts_with("no code for \"gfx803\"; there is code for gfx"), "{error}");
/// ```
///
/// # Errors
/// Malformed if none does, with what there is code for.
pub fn check_runs_on(data: &[u8], target: &str) -> Result<()> {
    // What is not read (device code of OpenMP) may be for any target.
    let Ok(input) = Input::parse(data) else { return Ok(()) };
    if let Some(wanted) = TargetId::parse(target) {
        let generic = Target::by_name(&wanted.processor).and_then(Target::generic).map(Target::name);
        let agrees = |wanted: Option<bool>, code: Option<bool>| wanted.is_none() || code.is_none() || wanted == code;
        for found in input.code_objects() {
            let own = match found.target {
                Some(_) => None,
                None => TargetId::parse(&CodeObject::parse(found.bytes)?.target_id()),
            };
            let Some(code) = found.target.or(own.as_ref()) else { continue };
            let is_processor = code.processor == wanted.processor || Some(code.processor.as_str()) == generic;
            if is_processor && agrees(wanted.xnack, code.xnack) && agrees(wanted.sramecc, code.sramecc) {
                return Ok(());
            }
        }
    }
    // It names what there is.
    Selection { targets: vec![target.to_owned()], ..Selection::default() }.check(&input, &[])
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
