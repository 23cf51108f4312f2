//! All selected kernels of an input: samples are matched with its code, then each kernel is sliced.

use std::borrow::Cow;

use crate::counts::KernelCounts;
use crate::kernel::{KernelInputs, slice_kernel};
use crate::result::{Blame, KernelSlice, SliceResult};
use crate::samples::{CodeToSlice, KernelSampled, MatchedSamples, stalled_for_memory};
use wavetap_base::error::Result;
use wavetap_code::{Code, Function};
use wavetap_profile::file::{KernelTotals, Profile};
use wavetap_profile::pc_samples::{PcSamples, SampledObject};

/// What a slice is made from, and the rule of its chains.
#[derive(Clone, Copy)]
pub struct SliceInputs<'a> {
    /// The code objects.
    pub objects: &'a [CodeToSlice<'a>],
    /// Which kernels of them, by mangled name, in the object of this MD5.
    pub selected: &'a dyn Fn(&CodeToSlice<'_>, &str) -> bool,
    /// How often code ran.
    pub profile: Option<&'a Profile>,
    /// Where waves were seen in it. Of several the most trusted one that saw a kernel says how long its waits take.
    pub samples: &'a [PcSamples],
    /// Who is blamed.
    pub blame: Blame,
}

/// Slices the selected kernels.
///
/// # Errors
/// Malformed if the samples are of another input.
pub fn slice(inputs: &SliceInputs<'_>) -> Result<SliceResult> {
    let SliceInputs { objects, selected, profile, samples, blame } = *inputs;
    let mut matched = samples
        .iter()
        .map(|samples| MatchedSamples::new(objects, samples))
        .collect::<Result<Vec<MatchedSamples<'_>>>>()?;
    matched.sort_by_key(|matched| matched.given.kind);
    let mut kernels = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        // Code without descriptors has functions only.
        let has_kernels = !object.kernels.is_empty();
        let wanted = |function: &dyn Function| function.is_kernel() == has_kernels && selected(object, function.name());
        for function in object.functions.iter().filter(|function| wanted(&***function)) {
            let totals = profile.and_then(|profile| totals(profile, object, function.name()));
            let counted = totals.map(|totals| KernelCounts { totals, entries: function.entries() });
            let samples = Samples { matched: &matched, index };
            let demangled = (object.demangle)(function.name());
            function.with_code(&mut |code| {
                let inputs = KernelInputs::new(code).with_counts(counted);
                kernels.push(slice_with_samples(&inputs, &demangled, samples, blame));
            })?;
        }
    }
    let samples = matched.into_iter().map(|matched| matched.given).collect();
    Ok(SliceResult { blame, samples, kernels })
}

/// What was counted of a kernel.
fn totals<'p>(profile: &'p Profile, object: &CodeToSlice<'_>, name: &str) -> Option<&'p KernelTotals> {
    profile.kernels.iter().find(|kernel| kernel.object == object.digest && kernel.name == name)
}

/// The samples that may be of a code object, by its number.
#[derive(Clone, Copy)]
struct Samples<'a> {
    matched: &'a [MatchedSamples<'a>],
    index: usize,
}

impl<'a> Samples<'a> {
    /// The most trusted ones that saw a kernel; of one that none saw, the first ones, without a sample.
    fn of(self, code: &Code<'_>) -> Option<(&'a MatchedSamples<'a>, Cow<'a, SampledObject>)> {
        let seen = self.matched.iter().find_map(|matched| Some((matched, matched.of(self.index, code)?)));
        seen.or_else(|| Some((self.matched.first()?, Cow::Owned(SampledObject::default()))))
    }
}

fn slice_with_samples(inputs: &KernelInputs<'_>, demangled: &str, samples: Samples<'_>, blame: Blame) -> KernelSlice {
    let code = inputs.code;
    let sampled = samples.of(code);
    let stalls = sampled.as_ref().map(|(_, sampled)| stalled_for_memory(code, sampled)).unwrap_or_default();
    let mut kernel = slice_kernel(&KernelInputs { stalls: &stalls, ..*inputs }, demangled);
    if let Some((matched, sampled)) = &sampled {
        let sampled = KernelSampled { sampled, kind: matched.given.kind, modelled: matched.modelled };
        kernel = kernel.with_samples(code, &sampled);
    }
    match blame {
        Blame::Exposed => kernel,
        Blame::Leo => kernel.blamed_as_leo(code, inputs.counted),
    }
}
