//! From what the slicer says to what is written.

use super::json::{
    Ambiguous, Candidate, Chain, Coverage, Cycles, Evidence, ForeignSamples, GivenSamples, Inlined, KernelSamples,
    KernelSlice, LaneAccess, OperationSlice, SCHEMA, SampledPlace, Slice, Step, WaitSlice,
};
use super::reading::reading;
use wavetap_slice as slice;

impl Slice {
    /// A slice; `unread` are the kernels and code objects of the input that contradict their format.
    #[must_use]
    pub fn new(result: slice::SliceResult, unread: Vec<String>) -> Slice {
        Slice {
            schema: SCHEMA.to_owned(),
            predicted: true,
            blame: result.blame.into(),
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
            ambiguous: all(given.ambiguous),
        }
    }
}

impl From<slice::ForeignSamples> for ForeignSamples {
    fn from(foreign: slice::ForeignSamples) -> ForeignSamples {
        let slice::ForeignSamples { id, uri, samples, mismatch } = foreign;
        ForeignSamples { id, uri, samples, why: mismatch.to_string() }
    }
}

impl From<slice::Ambiguous> for Ambiguous {
    fn from(ambiguous: slice::Ambiguous) -> Ambiguous {
        let slice::Ambiguous { instruction, comment, samples, issued, stalled, candidates } = ambiguous;
        Ambiguous { instruction, comment, samples, issued, stalled, candidates: all(candidates) }
    }
}

impl From<slice::Candidate> for Candidate {
    fn from(candidate: slice::Candidate) -> Candidate {
        let slice::Candidate { kernel, target, address } = candidate;
        Candidate { kernel, target, address }
    }
}

impl From<slice::KernelSlice> for KernelSlice {
    fn from(kernel: slice::KernelSlice) -> KernelSlice {
        KernelSlice {
            name: kernel.name,
            demangled: kernel.demangled,
            target: kernel.target,
            waits: all(kernel.waits),
            chains: kernel.chains.into_iter().map(|chain| Chain::new(chain, kernel.wave_size)).collect(),
            coverage: kernel.coverage.into(),
            samples: kernel.samples.map(KernelSamples::from),
        }
    }
}

impl From<slice::Coverage> for Coverage {
    fn from(coverage: slice::Coverage) -> Coverage {
        let slice::Coverage { nodes, before, after } = coverage;
        Coverage { nodes, before, after }
    }
}

impl From<slice::WaitSlice> for WaitSlice {
    fn from(wait: slice::WaitSlice) -> WaitSlice {
        WaitSlice {
            address: wait.address,
            instruction: wait.instruction,
            source: wait.source,
            counter: wait.counter,
            count: wait.count,
            executions: wait.executions,
            executions_source: wait.executions_source.into(),
            latency: wait.latency.into(),
            predicted_cycles: wait.predicted_cycles,
            operations: all(wait.operations),
        }
    }
}

impl From<slice::OperationSlice> for OperationSlice {
    fn from(operation: slice::OperationSlice) -> OperationSlice {
        let slice::OperationSlice { address, instruction, source, certainty, latency } = operation;
        OperationSlice { address, instruction, source, certainty: certainty.into(), latency: latency.into() }
    }
}

impl From<slice::latency::Cycles> for Cycles {
    fn from(cycles: slice::latency::Cycles) -> Cycles {
        let slice::latency::Cycles { min, typical, max } = cycles;
        Cycles { min, typical, max }
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
                slice::Cause::Itself(why) => Some(why.into()),
                _ => None,
            },
            evidence: chain.evidence.into(),
            path: all(chain.path),
            mask: all(chain.mask),
            through_memory: chain.through_memory,
        }
    }
}

impl From<slice::Evidence> for Evidence {
    fn from(evidence: slice::Evidence) -> Evidence {
        Evidence {
            certainty: evidence.certainty.into(),
            executions: evidence.executions.into(),
            latency: evidence.latency.into(),
            hidden_cycles: evidence.hidden_cycles,
            stable: evidence.stable,
            active_lanes: evidence.active_lanes,
            access: evidence.access.map(LaneAccess::from),
            confidence: evidence.confidence.map(Into::into),
        }
    }
}

impl From<slice::access::LaneAccess> for LaneAccess {
    fn from(access: slice::access::LaneAccess) -> LaneAccess {
        LaneAccess {
            bytes: access.bytes,
            stride: access.stride,
            strides: access.strides,
            workgroup: access.workgroup,
            workgroup_source: access.workgroup_source.into(),
            line: access.line,
            used: access.used,
            lines: access.lines,
            least_lines: access.least_lines,
        }
    }
}

impl From<slice::Step> for Step {
    fn from(step: slice::Step) -> Step {
        Step {
            address: step.address,
            instruction: step.instruction,
            source: step.source,
            inlined: all(step.inlined),
            edge: step.edge.into(),
        }
    }
}

impl From<slice::Inlined> for Inlined {
    fn from(inlined: slice::Inlined) -> Inlined {
        let slice::Inlined { function, called_at } = inlined;
        Inlined { function, called_at }
    }
}

impl From<slice::KernelSamples> for KernelSamples {
    fn from(samples: slice::KernelSamples) -> KernelSamples {
        let slice::KernelSamples { kind, modelled, samples, places } = samples;
        KernelSamples {
            kind,
            unit: kind.unit().to_owned(),
            approximate: kind.approximate(),
            caveat: kind.caveat().to_owned(),
            modelled,
            samples,
            places: all(places),
        }
    }
}

impl From<slice::SampledPlace> for SampledPlace {
    fn from(place: slice::SampledPlace) -> SampledPlace {
        SampledPlace {
            address: place.address,
            instruction: place.instruction,
            source: place.source,
            samples: place.samples,
            issued: place.issued,
            stalled: place.stalled,
            hidden: place.hidden,
            idle: place.idle,
            executions: place.executions,
        }
    }
}
