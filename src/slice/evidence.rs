//! Samples of where waves were, joined with the code that they were in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::KernelSlice;
use crate::isa;
use crate::kernel::Body;
use crate::profile::hex;
use crate::profile::map::Source;
use crate::profile::pc_samples::{Place, SampledObject};

/// What samples say of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSamples {
    /// Whether a timing model made them; else they were measured.
    pub modelled: bool,
    /// Samples in its code.
    pub samples: u64,
    /// Where waves were seen, the most often first.
    pub places: Vec<SampledPlace>,
}

/// An instruction at which waves were seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledPlace {
    /// Its address.
    #[serde(with = "hex")]
    pub address: u64,
    /// As printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// Samples.
    pub samples: u64,
    /// Samples in which the wave issued it.
    pub issued: u64,
    /// Samples in which it did not, by reason as rocprofiler-sdk names them; none of host-trap samples.
    pub stalled: BTreeMap<String, u64>,
}

impl Place {
    /// Samples of waves that did not issue; of host-trap samples, which do not tell, all.
    fn waiting(&self) -> u64 {
        self.samples - self.issued
    }
}

/// Why samples are not of this code: at which offset, and what is wrong there. None if they are.
///
/// An instruction has to begin at every sampled offset, and it has to be the one that the samples name, if they do.
#[must_use]
pub fn misfit(bodies: &[Body], sampled: &SampledObject) -> Option<(u64, String)> {
    let mut unseen: BTreeMap<u64, &Place> = sampled.places.iter().map(|(offset, place)| (*offset, place)).collect();
    for body in bodies {
        for (&offset, place) in sampled.places.range(body.span()) {
            let Some(id) = body.at(offset) else { continue };
            let printed = isa::print(body.target(), body.inst(id));
            if let Some(text) = place.instruction.as_deref().filter(|text| operation(text) != operation(&printed)) {
                return Some((offset, format!("the samples saw `{text}` at {offset:#x}, and the code has `{printed}`")));
            }
            unseen.remove(&offset);
        }
    }
    unseen.first_key_value().map(|(offset, _)| (*offset, format!("the samples saw an instruction at {offset:#x}, where none begins")))
}

/// The operation of a printed instruction, without the suffix of its encoding.
fn operation(text: &str) -> &str {
    let name = text.split_whitespace().next().unwrap_or_default();
    ["_e32", "_e64", "_sdwa", "_dpp", "_e64_dpp"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

impl KernelSlice {
    /// Puts samples to the kernel of this body, and divides those at its waits among what they wait for: as the predicted cycles are.
    pub fn add_samples(&mut self, body: &Body, sampled: &SampledObject, modelled: bool, source: impl Fn(u64) -> Option<Source>) {
        let places = || sampled.places.range(body.span()).filter_map(|(&offset, place)| Some((body.at(offset)?, offset, place)));
        let mut seen: Vec<SampledPlace> = places()
            .map(|(id, address, place)| SampledPlace {
                address,
                instruction: isa::print(body.target(), body.inst(id)),
                source: source(address),
                samples: place.samples,
                issued: place.issued,
                stalled: place.stalled.clone(),
            })
            .collect();
        seen.sort_by(|a, b| b.samples.cmp(&a.samples).then(a.address.cmp(&b.address)));
        let waiting: BTreeMap<u64, u64> = places().map(|(_, address, place)| (address, place.waiting())).collect();
        let mut predicted: BTreeMap<u64, u64> = BTreeMap::new();
        for chain in &self.chains {
            *predicted.entry(chain.address).or_default() += chain.predicted_cycles;
        }
        for chain in &mut self.chains {
            let here = waiting.get(&chain.address).copied().unwrap_or(0) as f64;
            let all = predicted.get(&chain.address).copied().unwrap_or(0).max(1) as f64;
            chain.samples = Some(here * chain.predicted_cycles as f64 / all);
        }
        let all: f64 = self.chains.iter().filter_map(|chain| chain.samples).sum();
        if all > 0.0 {
            self.chains.iter_mut().for_each(|chain| chain.kernel_share = chain.samples.unwrap_or(0.0) / all);
            self.chains.sort_by(|a, b| b.kernel_share.total_cmp(&a.kernel_share).then(a.address.cmp(&b.address)));
        }
        self.samples = Some(KernelSamples { modelled, samples: seen.iter().map(|place| place.samples).sum(), places: seen });
    }
}
