//! Joining a profile with the code it came from: what waits for what.

use super::object::{Object, objects};
use super::options::Selection;
use crate::code_object::demangle;
use crate::dataflow::{Summaries, WaitSummaries};
use crate::error::{Error, Result};
use crate::kernel::BodyKind;
use crate::offload_bundle::Input;
use crate::profile::file::{KernelTotals, Profile};
use crate::report::Report;
use crate::slice::{KernelSlice, Slice, slice_kernel};

/// Slices the selected kernels of an input; `profile` says how often their code ran.
///
/// # Errors
/// Malformed or unsupported if the input cannot be decoded; malformed if the profile is of another input.
pub fn slice(data: &[u8], selection: &Selection, profile: Option<&Profile>) -> Result<Slice> {
    let input = Input::parse(data)?;
    let objects = objects(&input, selection)?;
    if let Some(profile) = profile {
        let known = |kernel: &KernelTotals| objects.iter().any(|object| object.digest == kernel.object);
        if !profile.kernels.is_empty() && !profile.kernels.iter().any(known) {
            return Err(Error::malformed("the profile is of another file: none of its code objects is in this one"));
        }
    }
    let mut kernels = Vec::new();
    for object in &objects {
        let totals = |name: &str| profile?.kernels.iter().find(|kernel| kernel.object == object.digest && kernel.name == name);
        slice_object(object, |name| selection.has_kernel(name), totals, &mut kernels);
    }
    Ok(Slice::new(kernels))
}

fn slice_object<'p>(
    object: &Object<'_>,
    selected: impl Fn(&str) -> bool,
    totals: impl Fn(&str) -> Option<&'p KernelTotals>,
    out: &mut Vec<KernelSlice>,
) {
    let summaries = (&WaitSummaries::compute(&object.program), &Summaries::compute(&object.program));
    // Code without descriptors has functions only.
    let kind = if object.code.kernels().is_empty() { BodyKind::Function } else { BodyKind::Kernel };
    for body in object.program.bodies().iter().filter(|body| body.kind() == kind && selected(body.name())) {
        out.push(slice_kernel(body, &demangle(body.name()), summaries, totals(body.name()), |address| object.source(address)));
    }
}

/// Gives each kernel of a report its waits, from the original input.
///
/// # Errors
/// Malformed or unsupported if the input cannot be decoded.
pub fn explain(report: &mut Report, profile: &Profile, data: &[u8]) -> Result<()> {
    if profile.kernels.is_empty() {
        return Ok(());
    }
    let input = Input::parse(data)?;
    for object in objects(&input, &Selection::default())? {
        let totals = |name: &str| profile.kernels.iter().find(|kernel| kernel.object == object.digest && kernel.name == name);
        let mut slices = Vec::new();
        slice_object(&object, |name| totals(name).is_some(), totals, &mut slices);
        for slice in slices {
            if let Some(kernel) = report.kernels.iter_mut().find(|kernel| kernel.object == object.digest && kernel.name == slice.name) {
                kernel.waits = slice.waits;
            }
        }
    }
    Ok(())
}
