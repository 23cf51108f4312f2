//! From what the slicer says to what is written.

use super::json::{Chain, ForeignSamples, GivenSamples, KernelSamples, KernelSlice, SCHEMA, Slice};
use super::reading::reading;
use wavetap_slice as slice;

impl Slice {
    /// A slice; `unread` are the kernels and code objects of the input that contradict their format.
    #[must_use]
    pub fn new(result: slice::SliceResult, unread: Vec<String>) -> Slice {
        Slice {
            schema: SCHEMA.to_owned(),
            predicted: true,
            blame: result.blame,
            samples: all(result.samples),
            kernels: all(result.kernels),
            unread,
        }
    }
}

fn all<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(B::from).collect()
}

impl From<slice::GivenSamples> for GivenSamples {
    fn from(given: slice::GivenSamples) -> GivenSamples {
        GivenSamples {
            kind: given.kind,
            caveat: given.kind.caveat().to_owned(),
            nowhere: given.unattributed,
            elsewhere: given.foreign_samples,
            foreign: all(given.foreign),
            ambiguous: given.ambiguous,
        }
    }
}

impl From<slice::ForeignSamples> for ForeignSamples {
    fn from(foreign: slice::ForeignSamples) -> ForeignSamples {
        let slice::ForeignSamples { id, uri, samples, mismatch } = foreign;
        ForeignSamples { id, uri, samples, why: mismatch.to_string() }
    }
}

impl From<slice::KernelSlice> for KernelSlice {
    fn from(kernel: slice::KernelSlice) -> KernelSlice {
        KernelSlice {
            name: kernel.name,
            demangled: kernel.demangled,
            target: kernel.target,
            not_ranked_by_time: !kernel.is_counted
                && kernel.samples.as_ref().is_none_or(|samples| samples.samples == 0),
            waits: kernel.waits,
            chains: kernel.chains.into_iter().map(|chain| Chain::new(chain, kernel.wave_size)).collect(),
            coverage: kernel.coverage,
            samples: kernel.samples.map(KernelSamples::from),
        }
    }
}

impl Chain {
    /// A chain of a kernel whose waves have so many lanes.
    fn new(chain: slice::Chain, wave_size: u32) -> Chain {
        Chain {
            reading: reading(&chain, wave_size),
            address: chain.address,
            counter: chain.counter,
            share: chain.share,
            predicted_cycles: chain.predicted_cycles,
            samples: chain.samples,
            exposed_samples: chain.exposed_samples,
            kernel_share: chain.kernel_share,
            self_blame: match chain.cause {
                slice::Cause::Itself(why) => Some(why),
                _ => None,
            },
            class: chain.class,
            evidence: chain.evidence,
            path: chain.path,
            mask: chain.mask,
            through_memory: chain.through_memory,
        }
    }
}

impl From<slice::KernelSamples> for KernelSamples {
    fn from(samples: slice::KernelSamples) -> KernelSamples {
        let slice::KernelSamples { kind, modelled, samples, places } = samples;
        KernelSamples {
            kind,
            unit: kind.unit().to_owned(),
            approximate: kind.approximate(),
            caveat: kind.caveat_of(modelled).to_owned(),
            modelled,
            samples,
            places,
        }
    }
}
