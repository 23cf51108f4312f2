//! Joining a profile with the code it came from: what waits for what.

use super::object::{Object, objects};
use super::options::Selection;
use crate::code_object::demangle;
use crate::dataflow::{Summaries, WaitSummaries};
use crate::error::{Error, Result};
use crate::kernel::BodyKind;
use crate::offload_bundle::Input;
use crate::profile::file::{KernelTotals, Profile};
use crate::profile::pc_samples::{PcSamples, SampledObject};
use crate::report::Report;
use crate::slice::{KernelSlice, Slice, evidence, slice_kernel};

/// Slices the selected kernels of an input; `profile` says how often their code ran, `samples` where waves were seen in it.
///
/// # Errors
/// Malformed or unsupported if the input cannot be decoded; malformed if the profile or the samples are of another input.
pub fn slice(data: &[u8], selection: &Selection, profile: Option<&Profile>, samples: Option<&PcSamples>) -> Result<Slice> {
    let input = Input::parse(data)?;
    let objects = objects(&input, selection)?;
    if let Some(profile) = profile {
        let known = |kernel: &KernelTotals| objects.iter().any(|object| object.digest == kernel.object);
        if !profile.kernels.is_empty() && !profile.kernels.iter().any(known) {
            return Err(Error::malformed("the profile is of another file: none of its code objects is in this one"));
        }
    }
    let fitting = samples.map(|samples| fit(&objects, samples)).transpose()?.unwrap_or_default();
    let mut kernels = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        let first = kernels.len();
        let totals = |name: &str| profile?.kernels.iter().find(|kernel| kernel.object == object.digest && kernel.name == name);
        slice_object(object, |name| selection.has_kernel(name), totals, &mut kernels);
        let modelled = samples.is_some_and(|samples| samples.modelled);
        for (_, sampled) in fitting.iter().filter(|(of, _)| *of == index) {
            for kernel in &mut kernels[first..] {
                let body = object.program.by_name(&kernel.name).map(|id| object.program.body(id));
                if let Some(body) = body {
                    kernel.add_samples(body, sampled, modelled, |address| object.source(address));
                }
            }
        }
    }
    Ok(Slice::new(kernels))
}

/// Which code object the samples of each are of. Those of other files, by the names of their kernels, are left out.
fn fit<'s>(objects: &[Object<'_>], samples: &'s PcSamples) -> Result<Vec<(usize, &'s SampledObject)>> {
    let mut fitting = Vec::new();
    let mut why = None;
    for sampled in &samples.objects {
        let fits = |object: &Object<'_>| match &sampled.md5 {
            Some(digest) if *digest != object.digest => {
                Some((0, format!("they are of a code object with the MD5 {digest}, which is not in this file")))
            }
            _ => evidence::misfit(object.program.bodies(), sampled),
        };
        let misfits: Vec<Option<(u64, String)>> = objects.iter().map(fits).collect();
        let matching: Vec<usize> = misfits.iter().enumerate().filter(|(_, misfit)| misfit.is_none()).map(|(index, _)| index).collect();
        match matching[..] {
            [index] => fitting.push((index, sampled)),
            [] => {
                let known = |name: &String| objects.iter().any(|object| object.code.kernel(name).is_some());
                // Which of several it should have been is not known: the one that fits longest says most.
                let detail = misfits.into_iter().flatten().max().map_or_else(String::new, |(_, detail)| format!(": {detail}"));
                let message = format!("the samples of code object {} do not fit this file{detail}", sampled.id);
                if sampled.kernels.iter().any(known) {
                    return Err(Error::malformed(message));
                }
                why.get_or_insert(message);
            }
            _ => {
                let targets: Vec<&str> = matching.iter().map(|index| objects[*index].target_id.as_str()).collect();
                let message =
                    format!("the samples of code object {} fit {} alike: --target says which was run", sampled.id, targets.join(", "));
                return Err(Error::malformed(message));
            }
        }
    }
    match why {
        Some(why) if fitting.is_empty() => Err(Error::malformed(why)),
        _ => Ok(fitting),
    }
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
                (kernel.waits, kernel.chains) = (slice.waits, slice.chains);
            }
        }
    }
    Ok(())
}
