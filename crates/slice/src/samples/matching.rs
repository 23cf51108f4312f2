//! Which code object of the input samples are of.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use super::texts::{self, Searched, normal, operation};
use crate::result::{ForeignSamples, GivenSamples, Mismatch};
use wavetap_base::error::{Error, Result};
use wavetap_code::{Code, Function, SourceLines};
use wavetap_profile::pc_samples::{PcSamples, Place, SampleKind, SampledObject};

/// A code object that is sliced.
pub struct CodeToSlice<'a> {
    /// The target id it was bundled under, or its own.
    pub target_id: &'a str,
    /// MD5 of its bytes, lower-case hex.
    pub digest: &'a str,
    /// Bytes of its file.
    pub size: u64,
    /// The addresses that are loaded.
    pub loaded: Range<u64>,
    /// The mangled names of its kernels, those that could not be decoded among them.
    pub kernels: Vec<&'a str>,
    /// Its kernels and functions, in order of their addresses.
    pub functions: Vec<Box<dyn Function + 'a>>,
    /// Its source lines.
    pub lines: &'a dyn SourceLines,
    /// Names as people write them.
    pub demangle: fn(&str) -> Cow<'_, str>,
}

/// A mismatch, and how far samples fitted: up to which offset of the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MismatchAt {
    pub(crate) offset: u64,
    pub(crate) mismatch: Mismatch,
}

/// Samples with the code objects that they are of.
#[derive(Debug)]
pub(crate) struct MatchedSamples<'s> {
    pub(crate) given: GivenSamples,
    pub(crate) modelled: bool,
    objects: Vec<(usize, Cow<'s, SampledObject>)>,
}

impl<'s> MatchedSamples<'s> {
    pub(crate) fn new(objects: &[CodeToSlice<'_>], samples: &'s PcSamples) -> Result<MatchedSamples<'s>> {
        let Matches { matching, mut foreign } = matches(objects, samples)?;
        let mut fitted: Vec<(usize, Cow<'s, SampledObject>)> =
            matching.into_iter().map(|(index, sampled)| (index, Cow::Borrowed(sampled))).collect();
        let code: Vec<Searched<'_>> =
            objects.iter().map(|object| Searched { functions: &object.functions, lines: object.lines }).collect();
        let found = texts::find(&code, &samples.dispatches)?;
        fitted.extend(found.placed.into_iter().map(|(index, sampled)| (index, Cow::Owned(sampled))));
        let here = fitted.iter().map(|(_, sampled)| sampled.samples()).fold(0, u64::saturating_add);
        let all = samples.objects.iter().map(SampledObject::samples).fold(0, u64::saturating_add);
        let with_addresses = if samples.objects.is_empty() { 0 } else { all.saturating_sub(here) };
        let without: u64 = found.foreign.iter().map(|each| each.samples).fold(0, u64::saturating_add);
        let foreign_samples = without.saturating_add(with_addresses);
        foreign.extend(found.foreign.into_iter().map(|each| ForeignSamples {
            id: each.dispatch,
            uri: None,
            samples: each.samples,
            mismatch: each.mismatch,
        }));
        let given = GivenSamples {
            kind: samples.kind,
            unattributed: samples.nowhere,
            foreign_samples,
            foreign,
            ambiguous: found.ambiguous,
        };
        Ok(MatchedSamples { given, modelled: samples.modelled, objects: fitted })
    }

    /// What was seen in this code of the object of this number. Several numbers in a file can be the same object,
    /// loaded more than once.
    pub(crate) fn of(&self, index: usize, code: &Code<'_>) -> Option<Cow<'_, SampledObject>> {
        let in_body =
            |sampled: &SampledObject| sampled.places.range(code.span()).any(|(offset, _)| code.at(*offset).is_some());
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

/// Which code object, by its number, the samples of each are of, and those of code objects that are not in this file.
struct Matches<'s> {
    matching: Vec<(usize, &'s SampledObject)>,
    foreign: Vec<ForeignSamples>,
}

/// Finds the code object that each one is of which samples were taken. What is known of it has to fit: MD5, sizes,
/// kernels and instructions.
fn matches<'s>(objects: &[CodeToSlice<'_>], samples: &'s PcSamples) -> Result<Matches<'s>> {
    let (mut fitting, mut foreign) = (Vec::new(), Vec::new());
    for sampled in &samples.objects {
        // Of several, one of which nothing is known can be any.
        let unknown = samples.objects.len() > 1 && !sampled.is_identified();
        let mismatches: Vec<Option<MismatchAt>> =
            objects.iter().map(|object| mismatch(object, sampled, samples.kind, unknown)).collect();
        let matching: Vec<usize> =
            mismatches.iter().enumerate().filter(|(_, mismatch)| mismatch.is_none()).map(|(index, _)| index).collect();
        match matching[..] {
            [index] => fitting.push((index, sampled)),
            [] => {
                // Which of several it should have been is not known: the one that fits longest says most.
                let farthest = mismatches.into_iter().flatten().max_by_key(|at| (at.offset, at.mismatch.to_string()));
                let mismatch = farthest.map_or(Mismatch::NoCode, |at| at.mismatch);
                foreign.push(ForeignSamples {
                    id: sampled.id,
                    uri: sampled.uri.clone(),
                    samples: sampled.samples(),
                    mismatch,
                });
            }
            _ => {
                let targets: Vec<&str> = matching.iter().map(|index| objects[*index].target_id).collect();
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
        Some(ForeignSamples { id, mismatch, .. }) if fitting.is_empty() => {
            Err(Error::malformed(format!("the samples of code object {id} do not fit this file: {mismatch}")))
        }
        _ => Ok(Matches { matching: fitting, foreign }),
    }
}

/// Loaders round the size of what they load up, to pages of at most this size.
const LARGEST_PAGE: u64 = 64 << 10;

/// What does not fit between samples and a code object; none if all that is known of what was sampled fits. `unknown`
/// says that nothing is known of it, and that it is one of several.
fn mismatch(object: &CodeToSlice<'_>, sampled: &SampledObject, kind: SampleKind, unknown: bool) -> Option<MismatchAt> {
    mismatch_of_object(object, sampled, unknown)
        .map(|mismatch| MismatchAt { offset: 0, mismatch })
        .or_else(|| mismatch_of_code(object.functions.iter().map(|function| &**function), sampled, kind))
}

fn mismatch_of_object(object: &CodeToSlice<'_>, sampled: &SampledObject, unknown: bool) -> Option<Mismatch> {
    if sampled.unlisted {
        return Some(Mismatch::Unlisted);
    }
    if let Some(digest) = sampled.md5.as_ref().filter(|digest| **digest != object.digest) {
        return Some(Mismatch::Digest(digest.clone()));
    }
    if let Some(size) = sampled.file_size().filter(|size| *size != object.size) {
        return Some(Mismatch::Size { sampled: size, here: object.size });
    }
    let Range { start: first, end } = object.loaded;
    if let Some(size) = sampled.load_size.filter(|size| !(end - first..end + LARGEST_PAGE).contains(size)) {
        return Some(Mismatch::LoadedSize { sampled: size, here: end });
    }
    // Thread traces name functions beside kernels.
    let functions = object.functions.iter().map(|function| function.name());
    let names: Vec<&str> = object.kernels.iter().copied().chain(functions).collect();
    let known = |name: &str| names.iter().any(|each| *each == name || (object.demangle)(each) == name);
    if let Some(kernel) = sampled.kernels.iter().find(|name| !known(name)) {
        return Some(Mismatch::Kernel(kernel.clone()));
    }
    unknown.then_some(Mismatch::NotIdentified)
}

/// What does not fit between samples and code. None if they are of this code.
///
/// An instruction has to begin at every sampled offset, and it has to be the one that the samples name, if they do. Of
/// thread traces, which have all instructions of a kernel, operands are compared, too: builds often differ in these
/// only.
pub(crate) fn mismatch_of_code<'f>(
    functions: impl Iterator<Item = &'f (dyn Function + 'f)>,
    sampled: &SampledObject,
    kind: SampleKind,
) -> Option<MismatchAt> {
    let same = |text: &str, printed: &str| {
        operation(text) == operation(printed) && (kind != SampleKind::ThreadTrace || normal(text) == normal(printed))
    };
    let mut unseen: BTreeMap<u64, &Place> = sampled.places.iter().map(|(offset, place)| (*offset, place)).collect();
    for function in functions {
        for (&offset, place) in sampled.places.range(function.span()) {
            let Some(printed) = function.text(offset) else { continue };
            if let Some(text) = place.instruction.as_deref().filter(|text| !same(text, &printed)) {
                return Some(MismatchAt {
                    offset,
                    mismatch: Mismatch::Instruction { address: offset, sampled: text.to_owned(), here: printed },
                });
            }
            unseen.remove(&offset);
        }
    }
    unseen
        .first_key_value()
        .map(|(&offset, _)| MismatchAt { offset, mismatch: Mismatch::NoInstruction { address: offset } })
}
