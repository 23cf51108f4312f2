//! Samples of where waves were, joined with the kernel that they were in.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::counts::CountSource;
use crate::lines;
use crate::result::{
    Cause, Chain, Confidence, Edge, Evidence, KernelSamples, KernelSlice, SampledPlace, SelfBlame, Step,
};
use crate::stall::StallCycles;
use wavetap_base::entity::InstId;
use wavetap_code::{Code, Cycles, Values, WaitCertainty};
use wavetap_profile::pc_samples::{Place, SampleKind, SampledObject};

/// The waits at which samples saw waves stall for memory, or do not say why they stalled.
pub(crate) fn stalled_for_memory(code: &Code<'_>, sampled: &SampledObject) -> BTreeMap<u64, StallCycles> {
    let stalled = sampled.places.range(code.span()).filter(|(_, place)| place.waiting() > 0);
    let stall = |place: &Place| StallCycles {
        cycles: place.waiting(),
        reasons: place.stalled.clone(),
        waits_for: place.waits_for.clone(),
    };
    stalled
        .filter(|(_, place)| SelfBlame::of(code.properties(), place, true) == SelfBlame::MemoryLatency)
        .map(|(address, place)| (*address, stall(place)))
        .collect()
}

/// A stall of which no cause is known.
fn self_blame(code: &Code<'_>, id: InstId, place: &Place) -> Chain {
    let counters = code.waited_counters(id);
    let class = SelfBlame::of(code.properties(), place, !counters.is_empty());
    Chain {
        address: code.address(id),
        counter: counters.join("+"),
        share: 1.0,
        predicted_cycles: 0,
        samples: None,
        exposed_samples: None,
        kernel_share: 0.0,
        cause: Cause::Itself(class),
        class: None,
        evidence: Evidence {
            certainty: WaitCertainty::Must,
            executions: CountSource::Unknown,
            latency: Cycles::default(),
            hidden_cycles: 0,
            stable: true,
            active_lanes: None,
            access: None,
            address_loaded_by: None,
            observed: None,
            confidence: Some(if place.stalled.is_empty() { Confidence::Low } else { Confidence::Medium }),
        },
        path: std::iter::once(lines::step(code, id, Edge::Stall))
            .chain(if class == SelfBlame::Dependency { computed_by(code, id) } else { Vec::new() })
            .collect(),
        mask: Vec::new(),
        through_memory: false,
    }
}

/// Instructions of a chain of results that an instruction waits for.
const LONGEST: usize = 4;

/// What computed the result that an instruction waits for, and what that was computed from: of several values the one
/// that takes longest, of these the nearest.
fn computed_by(code: &Code<'_>, stalled: InstId) -> Vec<Step> {
    let mut seen = BTreeSet::from([stalled]);
    let mut steps = Vec::new();
    let mut at = stalled;
    while steps.len() < LONGEST {
        let producers = code.producers(at, Values::All).into_iter().filter(|id| !seen.contains(id));
        let time = |id: InstId| code.inst(id).latency.typical;
        // Results of memory are what counters and scoreboards are waited for, not results of the ALU.
        let computed = producers.filter(|id| !code.inst(*id).class.is_memory());
        let Some(next) = computed.max_by_key(|id| (time(*id), Reverse(at.0.abs_diff(id.0)), *id)) else { break };
        seen.insert(next);
        steps.push(lines::step(code, next, Edge::Register));
        at = next;
    }
    steps
}

/// Samples of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelSampled<'a> {
    pub(crate) sampled: &'a SampledObject,
    pub(crate) kind: SampleKind,
    pub(crate) modelled: bool,
}

impl KernelSlice {
    /// Adds the samples of the kernel of this code, and divides those at its waits among what they wait for, by the
    /// chains' shares; where waves stood without a chain, one is added that says why they did. Where it is known of all
    /// of them whether they were hidden behind the work of other waves, those that were not say how the chains rank.
    pub(crate) fn with_samples(mut self, code: &Code<'_>, samples: &KernelSampled<'_>) -> KernelSlice {
        let KernelSampled { sampled, kind, modelled } = *samples;
        let here: BTreeMap<u64, (InstId, &Place)> = sampled
            .places
            .range(code.span())
            .filter_map(|(&offset, place)| Some((offset, (code.at(offset)?, place))))
            .collect();
        let mut seen: Vec<SampledPlace> = here
            .iter()
            .map(|(&address, (id, place))| SampledPlace {
                address,
                instruction: code.inst(*id).text.to_string(),
                source: lines::line(code, address),
                samples: place.samples,
                issued: place.issued,
                stalled: place.stalled.clone(),
                hidden: place.hidden,
                idle: place.idle,
                executions: place.executions,
            })
            .collect();
        seen.sort_by(|a, b| b.samples.cmp(&a.samples).then(a.address.cmp(&b.address)));
        self.samples = Some(KernelSamples {
            kind,
            modelled,
            samples: seen.iter().map(|place| place.samples).fold(0, u64::saturating_add),
            places: seen,
        });

        let blamed: BTreeSet<u64> = self.chains.iter().map(|chain| chain.address).collect();
        let alone = here.iter().filter(|(address, (id, place))| {
            // Samples that do not tell why a wave was there say something of waits only.
            let waits = code.inst(*id).can_wait();
            !blamed.contains(address) && place.waiting() > 0 && (waits || !place.stalled.is_empty())
        });
        let alone: Vec<Chain> = alone.map(|(_, (id, place))| self_blame(code, *id, place)).collect();
        self.chains.extend(alone);
        let stalled: BTreeSet<u64> = self.chains.iter().map(|chain| chain.address).collect();
        // Whether it is known of all samples that matter if they were hidden.
        let mut waiting =
            stalled.iter().filter_map(|address| here.get(address)).filter(|(_, place)| place.waiting() > 0).peekable();
        let told = waiting.peek().is_some() && waiting.all(|(_, place)| place.hidden.is_some());
        for chain in &mut self.chains {
            let place = here.get(&chain.address).map(|(_, place)| *place);
            let waiting = place.map_or(0, Place::waiting);
            let exposed = waiting.saturating_sub(place.and_then(|place| place.hidden).unwrap_or(0));
            chain.samples = Some(waiting as f64 * chain.share);
            chain.exposed_samples = told.then_some(exposed as f64 * chain.share);
        }
        let weights = |of: fn(&Chain) -> Option<f64>| {
            self.chains.iter().map(|chain| of(chain).unwrap_or(0.0)).collect::<Vec<f64>>()
        };
        let exposed = weights(|chain| chain.exposed_samples);
        let weights = if exposed.iter().any(|weight| *weight > 0.0) { exposed } else { weights(|chain| chain.samples) };
        let all: f64 = weights.iter().sum();
        if all > 0.0 {
            self.chains.iter_mut().zip(weights).for_each(|(chain, weight)| chain.kernel_share = weight / all);
            self.chains.sort_by(|a, b| b.kernel_share.total_cmp(&a.kernel_share).then(a.address.cmp(&b.address)));
        }
        self
    }
}
