//! Joining a profile with the code it came from: what waits for what.

use super::object::objects;
use super::summary::code_of_kernels;
use wavetap_amd_code::Decoded;
use wavetap_base::error::Result;
use wavetap_explain::Report;
use wavetap_explain::launches::CodeOfKernel;
use wavetap_explain::slice::Slice;
use wavetap_explain::summary;
use wavetap_object::offload_bundle::Input;
use wavetap_object::selection::Selection;
use wavetap_profile::file::{KernelTotals, Profile};
use wavetap_profile::pc_samples::PcSamples;
use wavetap_report::counted::{self, CountedObject};
use wavetap_slice::{Blame, CodeToSlice, SliceInputs};

/// What a slice rests on besides the code, and the rule of its chains.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// How often code ran.
    pub profile: Option<&'a Profile>,
    /// Where waves were seen in it. Of several the most trusted one that saw a kernel says how long its waits take.
    pub samples: &'a [PcSamples],
    /// Who is blamed.
    pub blame: Blame,
}

/// Slices the selected kernels of an input.
///
/// # Errors
/// Malformed or unsupported if the input cannot be decoded; malformed if the profile or the samples are of another
/// input.
pub fn slice(data: &[u8], selection: &Selection, evidence: Evidence<'_>) -> Result<Slice> {
    let Evidence { profile, samples, blame } = evidence;
    let input = Input::parse(data)?;
    let mut unread = Vec::new();
    let objects = objects(&input, selection, &mut unread)?;
    if let Some(profile) = profile {
        counted::check(profile, &CountedObject::all(&input, &[])?)?;
    }
    let decoded: Vec<Decoded<'_>> = objects.iter().map(|object| object.decoded(profile)).collect();
    let objects: Vec<CodeToSlice<'_>> =
        objects.iter().zip(&decoded).map(|(object, decoded)| object.to_slice(decoded)).collect();
    let selected = |_: &CodeToSlice<'_>, name: &str| selection.has_kernel(name);
    let inputs = SliceInputs { objects: &objects, selected: &selected, profile, samples, blame };
    Ok(Slice::new(wavetap_slice::slice(&inputs)?, unread))
}

/// Gives each kernel of a report its waits, from the original input. Returns what its summary needs of the code, for
/// the most expensive kernels, so modelled time has to be in the report before.
///
/// # Errors
/// Malformed or unsupported if the input cannot be decoded.
pub fn explain(report: &mut Report, profile: &Profile, data: &[u8]) -> Result<Vec<CodeOfKernel>> {
    // How lanes access memory only of the largest kernels: a library has many kernels, and a summary shows a few.
    let largest: Vec<&KernelTotals> =
        summary::largest(profile, report.time.as_ref()).into_iter().map(|place| &profile.kernels[place]).collect();
    explain_with(report, profile, data, &largest)
}

/// The same with how lanes access memory in all kernels.
pub(super) fn explain_all(report: &mut Report, profile: &Profile, data: &[u8]) -> Result<Vec<CodeOfKernel>> {
    let all: Vec<&KernelTotals> = profile.kernels.iter().collect();
    explain_with(report, profile, data, &all)
}

fn explain_with(
    report: &mut Report,
    profile: &Profile,
    data: &[u8],
    with_accesses: &[&KernelTotals],
) -> Result<Vec<CodeOfKernel>> {
    let mut code = Vec::new();
    if profile.kernels.is_empty() {
        return Ok(code);
    }
    let input = Input::parse(data)?;
    // What cannot be read was not instrumented either: the report says so where it lists what was refused.
    for object in objects(&input, &Selection::default(), &mut Vec::new())? {
        let selected = |object: &CodeToSlice<'_>, name: &str| {
            profile.kernels.iter().any(|kernel| kernel.object == object.digest && kernel.name == name)
        };
        let decoded = object.decoded(Some(profile));
        let inputs = SliceInputs {
            objects: &[object.to_slice(&decoded)],
            selected: &selected,
            profile: Some(profile),
            samples: &[],
            blame: Blame::Exposed,
        };
        for kernel in wavetap_slice::slice(&inputs)?.kernels {
            report.explain(&object.digest, kernel.into());
        }
        code.extend(code_of_kernels(&object, profile, with_accesses)?);
    }
    Ok(code)
}
