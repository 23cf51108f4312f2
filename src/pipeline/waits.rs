//! Joining a profile with the code it came from: what waits for what.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::object::{Object, objects};
use wavetap_analysis::dataflow::{Summaries, WaitSummaries};
use wavetap_analysis::kernel::{Body, BodyKind};
use wavetap_base::error::{Error, Result};
use wavetap_object::code_object::demangle;
use wavetap_object::elf::Segment;
use wavetap_object::offload_bundle::Input;
use wavetap_object::selection::Selection;
use wavetap_profile::file::{KernelTotals, Profile};
use wavetap_profile::pc_samples::{PcSamples, SampledObject};
use wavetap_report::Report;
use wavetap_report::counted::{self, CountedObject};
use wavetap_slice::access::Launched;
use wavetap_slice::blame::Blame;
use wavetap_slice::chains::Chain;
use wavetap_slice::counts::KernelCounts;
use wavetap_slice::text_samples::{self, Code};
use wavetap_slice::{ForeignSamples, GivenSamples, KernelSlice, Slice, evidence, slice_stalled};

/// What a slice rests on, and the rule of its chains.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given<'a> {
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
pub fn slice(data: &[u8], selection: &Selection, Given { profile, samples, blame }: Given<'_>) -> Result<Slice> {
    let input = Input::parse(data)?;
    let mut unread = Vec::new();
    let objects = objects(&input, selection, &mut unread)?;
    if let Some(profile) = profile {
        counted::check(profile, &CountedObject::all(&input, &[])?)?;
    }
    let mut given =
        samples.iter().map(|samples| Fitted::new(&objects, samples)).collect::<Result<Vec<Fitted<'_>>>>()?;
    given.sort_by_key(|fitted| fitted.given.kind);
    let mut kernels = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        let first = kernels.len();
        let totals =
            |name: &str| profile?.kernels.iter().find(|kernel| kernel.object == object.digest && kernel.name == name);
        let stood = |body: &Body| {
            let sampled = given.iter().find_map(|fitted| fitted.of(index, body));
            sampled.map(|sampled| evidence::stood_for_memory(body, &sampled)).unwrap_or_default()
        };
        slice_object(object, |name| selection.has_kernel(name), (totals, stood), &mut kernels);
        for kernel in &mut kernels[first..] {
            let Some(body) = object.program.by_name(&kernel.name).map(|id| object.program.body(id)) else { continue };
            let source = |address| object.source(address);
            let most_trusted = given.iter().find_map(|fitted| Some((fitted, fitted.of(index, body)?)));
            // A kernel that no samples saw has none.
            if let Some((fitted, sampled)) =
                most_trusted.or_else(|| Some((given.first()?, Cow::Owned(SampledObject::default()))))
            {
                kernel.add_samples(body, &sampled, (fitted.given.kind, fitted.modelled), source);
            }
            if blame == Blame::Leo {
                kernel.blame_as_leo(
                    body,
                    totals(&kernel.name).map(|totals| KernelCounts::of_kernel(&object.program, &object.code, totals)),
                    source,
                );
            }
            say_inlined(object, &mut kernel.chains);
        }
    }
    let mut slice = Slice::new(blame, kernels);
    slice.unread = unread;
    slice.samples = given.into_iter().map(|fitted| fitted.given).collect();
    Ok(slice)
}

/// Samples with the code objects that they are of.
struct Fitted<'s> {
    given: GivenSamples,
    modelled: bool,
    objects: Vec<(usize, Cow<'s, SampledObject>)>,
}

impl<'s> Fitted<'s> {
    fn new(objects: &[Object<'_>], samples: &'s PcSamples) -> Result<Fitted<'s>> {
        let (fitting, mut foreign) = fit(objects, samples)?;
        let mut fitted: Vec<(usize, Cow<'s, SampledObject>)> =
            fitting.into_iter().map(|(index, sampled)| (index, Cow::Borrowed(sampled))).collect();
        let sources: Vec<_> = objects.iter().map(|object| |address| object.source(address)).collect();
        let code: Vec<Code<'_>> = objects
            .iter()
            .zip(&sources)
            .map(|(object, source)| Code { bodies: object.program.bodies(), source })
            .collect();
        let found = text_samples::find(&code, &samples.dispatches)?;
        fitted.extend(found.placed.into_iter().map(|(index, sampled)| (index, Cow::Owned(sampled))));
        let here = fitted.iter().map(|(_, sampled)| sampled.samples()).fold(0, u64::saturating_add);
        let all = samples.objects.iter().map(SampledObject::samples).fold(0, u64::saturating_add);
        let with_addresses = if samples.objects.is_empty() { 0 } else { all.saturating_sub(here) };
        let without: u64 = found.foreign.iter().map(|each| each.samples).fold(0, u64::saturating_add);
        let elsewhere = without.saturating_add(with_addresses);
        foreign.extend(found.foreign.into_iter().map(|each| ForeignSamples {
            id: each.dispatch,
            uri: None,
            samples: each.samples,
            why: each.why,
        }));
        let given = GivenSamples {
            kind: samples.kind,
            caveat: samples.kind.caveat().to_owned(),
            nowhere: samples.nowhere,
            elsewhere,
            foreign,
            ambiguous: found.ambiguous,
        };
        Ok(Fitted { given, modelled: samples.modelled, objects: fitted })
    }

    /// What was seen in this body of the object of this number. Several numbers in a file can be the same object,
    /// loaded more than once.
    fn of(&self, index: usize, body: &Body) -> Option<Cow<'_, SampledObject>> {
        let in_body =
            |sampled: &SampledObject| sampled.places.range(body.span()).any(|(offset, _)| body.at(*offset).is_some());
        let mut seen =
            self.objects.iter().filter(|(of, sampled)| *of == index && in_body(sampled)).map(|(_, sampled)| &**sampled);
        let first = seen.next()?;
        Some(seen.fold(Cow::Borrowed(first), |all, more| {
            let mut all = all.into_owned();
            more.places.iter().for_each(|(offset, place)| all.places.entry(*offset).or_default().add(place));
            Cow::Owned(all)
        }))
    }
}

/// Which code object the samples of each are of, and those of code objects that are not in this file.
type Fits<'s> = (Vec<(usize, &'s SampledObject)>, Vec<ForeignSamples>);

/// Finds the code object that each one is of which samples were taken. What is known of it has to fit: MD5, sizes,
/// kernels and instructions.
fn fit<'s>(objects: &[Object<'_>], samples: &'s PcSamples) -> Result<Fits<'s>> {
    let (mut fitting, mut foreign) = (Vec::new(), Vec::new());
    for sampled in &samples.objects {
        // Of several, one of which nothing is known can be any.
        let unknown = samples.objects.len() > 1 && !sampled.is_identified();
        let misfits: Vec<Option<(u64, String)>> =
            objects.iter().map(|object| misfit(object, sampled, unknown)).collect();
        let matching: Vec<usize> =
            misfits.iter().enumerate().filter(|(_, misfit)| misfit.is_none()).map(|(index, _)| index).collect();
        match matching[..] {
            [index] => fitting.push((index, sampled)),
            [] => {
                // Which of several it should have been is not known: the one that fits longest says most.
                let why =
                    misfits.into_iter().flatten().max().map_or_else(|| "there is no code".to_owned(), |(_, why)| why);
                foreign.push(ForeignSamples {
                    id: sampled.id,
                    uri: sampled.uri.clone(),
                    samples: sampled.samples(),
                    why,
                });
            }
            _ => {
                let targets: Vec<&str> = matching.iter().map(|index| objects[*index].target_id.as_str()).collect();
                let message = format!(
                    "the samples of code object {} fit {} alike: --target says which was run",
                    sampled.id,
                    targets.join(", ")
                );
                return Err(Error::malformed(message));
            }
        }
    }
    match foreign.first() {
        Some(ForeignSamples { id, why, .. }) if fitting.is_empty() => {
            Err(Error::malformed(format!("the samples of code object {id} do not fit this file: {why}")))
        }
        _ => Ok((fitting, foreign)),
    }
}

/// Loaders round the size of what they load up, to pages of at most this size.
const LARGEST_PAGE: u64 = 64 << 10;

/// Why samples are not of a code object, and how far they fitted; none if all that is known of what was sampled fits.
fn misfit(object: &Object<'_>, sampled: &SampledObject, unknown: bool) -> Option<(u64, String)> {
    if sampled.unlisted {
        return Some((0, "it is not among the code objects that the file of samples lists".to_owned()));
    }
    if let Some(digest) = sampled.md5.as_ref().filter(|digest| **digest != object.digest) {
        return Some((0, format!("they are of a code object with the MD5 {digest}, which is not in this file")));
    }
    if let Some(size) = sampled.file_size().filter(|size| *size != object.size) {
        return Some((
            0,
            format!("they are of a code object of {size} bytes, and that of this file has {}", object.size),
        ));
    }
    let end = object.code.elf().loads().map(Segment::end).max().unwrap_or(0);
    let first = object.code.elf().loads().map(|load| load.address).min().unwrap_or(0);
    if let Some(size) = sampled.load_size.filter(|size| !(end - first..end + LARGEST_PAGE).contains(size)) {
        return Some((
            0,
            format!("they are of a code object that was loaded into {size} bytes, and that of this file takes {end}"),
        ));
    }
    let known =
        |name: &str| object.code.kernels().iter().any(|kernel| kernel.name == name || demangle(&kernel.name) == name);
    if let Some(kernel) = sampled.kernels.iter().find(|name| !known(name)) {
        return Some((0, format!("they are of a code object with a kernel {kernel}, which is not in this file")));
    }
    if unknown {
        return Some((
            0,
            "nothing says which of several code objects it is: no MD5, size, kernel or instruction".to_owned(),
        ));
    }
    evidence::misfit(object.program.bodies(), sampled)
}

fn slice_object<'p>(
    object: &Object<'_>,
    selected: impl Fn(&str) -> bool,
    (totals, stood): (impl Fn(&str) -> Option<&'p KernelTotals>, impl Fn(&Body) -> BTreeSet<u64>),
    out: &mut Vec<KernelSlice>,
) {
    let summaries = (&WaitSummaries::compute(&object.program), &Summaries::compute(&object.program));
    // Code without descriptors has functions only.
    let kind = if object.code.kernels().is_empty() { BodyKind::Function } else { BodyKind::Kernel };
    for body in object.program.bodies().iter().filter(|body| body.kind() == kind && selected(body.name())) {
        let launched = Launched::of(object.code.kernel(body.name()), totals(body.name()));
        let counted = totals(body.name()).map(|totals| KernelCounts::of_kernel(&object.program, &object.code, totals));
        let stood = stood(body);
        let stood_at = |address| stood.contains(&address);
        out.push(slice_stalled(body, &demangle(body.name()), summaries, (counted, &stood_at, launched), |address| {
            object.source(address)
        }));
    }
}

/// Says of each step by which inlined calls it came there.
fn say_inlined(object: &Object<'_>, chains: &mut [Chain]) {
    for step in chains.iter_mut().flat_map(|chain| chain.path.iter_mut().chain(&mut chain.mask)) {
        step.inlined = object.inlined(step.address);
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
    // What cannot be read was not instrumented either: the report says so where it lists what was refused.
    for object in objects(&input, &Selection::default(), &mut Vec::new())? {
        let totals =
            |name: &str| profile.kernels.iter().find(|kernel| kernel.object == object.digest && kernel.name == name);
        let mut slices = Vec::new();
        slice_object(&object, |name| totals(name).is_some(), (totals, |_| BTreeSet::new()), &mut slices);
        for mut slice in slices {
            say_inlined(&object, &mut slice.chains);
            if let Some(kernel) =
                report.kernels.iter_mut().find(|kernel| kernel.object == object.digest && kernel.name == slice.name)
            {
                (kernel.waits, kernel.chains) = (slice.waits, slice.chains);
            }
        }
    }
    Ok(())
}
