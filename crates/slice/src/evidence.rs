//! Samples of where waves were, joined with the code that they were in.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::chains::{Chain, Confidence, Edge, Evidence, Step};
use super::counts::CountSource;
use super::latency::Cycles;
use super::{KernelSlice, WaitCertainty};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;
use wavetap_profile::hex;
use wavetap_profile::map::Source;
use wavetap_profile::pc_samples::{Place, SampleKind, SampledObject};

/// What samples say of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelSamples {
    /// What they are.
    pub kind: SampleKind,
    /// What `samples`, `issued` and the others count: `samples`, or `cycles` of a thread trace.
    pub unit: String,
    /// Whether places are approximate: `caveat` says how.
    pub approximate: bool,
    /// What has to be known to read them.
    pub caveat: String,
    /// Whether a timing model made them; else they were measured.
    pub modelled: bool,
    /// Samples in its code.
    pub samples: u64,
    /// Where waves were seen, the most often first.
    pub places: Vec<SampledPlace>,
}

/// An instruction at which waves were seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampledPlace {
    /// Its address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// As printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// Samples; of a thread trace, cycles of latency.
    pub samples: u64,
    /// Samples in which the wave issued it.
    pub issued: u64,
    /// Samples in which it did not, by reason as rocprofiler-sdk names them; none of host-trap samples and thread
    /// traces.
    pub stalled: BTreeMap<String, u64>,
    /// Of those in which it did not, the ones in which an instruction of another wave of the SIMD went ahead, so that
    /// the waiting cost nothing. None where the samples do not tell.
    #[serde(default)]
    pub hidden: Option<u64>,
    /// Cycles between the instruction before and this one, where neither was outstanding: thread traces have them, and
    /// they are no part of `samples`.
    #[serde(default)]
    pub idle: Option<u64>,
    /// How often the traced waves executed it.
    #[serde(default)]
    pub executions: Option<u64>,
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
            let printed = wavetap_amdgpu::print(body.target(), body.inst(id));
            if let Some(text) = place.instruction.as_deref().filter(|text| operation(text) != operation(&printed)) {
                return Some((
                    offset,
                    format!("the samples saw `{text}` at {offset:#x}, and the code has `{printed}`"),
                ));
            }
            unseen.remove(&offset);
        }
    }
    unseen
        .first_key_value()
        .map(|(offset, _)| (*offset, format!("the samples saw an instruction at {offset:#x}, where none begins")))
}

/// The operation of a printed instruction, without the suffix of its encoding.
pub(super) fn operation(text: &str) -> &str {
    let name = text.split_whitespace().next().unwrap_or_default();
    ["_e32", "_e64", "_sdwa", "_dpp", "_e64_dpp"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Why a wave stands at an instruction if nothing before it is to blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SelfBlame {
    /// It waits for memory, and by prediction nothing should be left to wait for: latencies were longer, or the caller
    /// of the function had something outstanding.
    MemoryLatency,
    /// It waits for a result of the vector or scalar ALU.
    Dependency,
    /// It waits for other waves of its workgroup.
    Barrier,
    /// The next instruction was not there yet.
    InstructionFetch,
    /// Another wave was issued first.
    IssueContention,
    /// The unit that it needs was busy.
    BusyPipe,
    /// The program said so.
    Sleep,
    /// Something that has no name here.
    Other,
    /// The samples do not tell.
    Unknown,
}

impl SelfBlame {
    /// By the reason that most samples give.
    fn of(place: &Place, waits: bool) -> SelfBlame {
        let reason =
            place.stalled.iter().max_by(|a, b| a.1.cmp(b.1).then(b.0.cmp(a.0))).map(|(reason, _)| reason.as_str());
        match reason {
            Some("WAITCNT") => SelfBlame::MemoryLatency,
            Some("ALU_DEPENDENCY") => SelfBlame::Dependency,
            Some("BARRIER_WAIT") => SelfBlame::Barrier,
            Some("NO_INSTRUCTION_AVAILABLE") => SelfBlame::InstructionFetch,
            Some("ARBITER_NOT_WIN") => SelfBlame::IssueContention,
            Some("ARBITER_WIN_EX_STALL") => SelfBlame::BusyPipe,
            Some("SLEEP_WAIT") => SelfBlame::Sleep,
            Some(_) => SelfBlame::Other,
            None if waits => SelfBlame::MemoryLatency,
            None => SelfBlame::Unknown,
        }
    }

    /// In words, behind "for".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            SelfBlame::MemoryLatency => "memory that should have been there by prediction",
            SelfBlame::Dependency => "a result of the ALU",
            SelfBlame::Barrier => "other waves at the barrier",
            SelfBlame::InstructionFetch => "the next instruction to be fetched",
            SelfBlame::IssueContention => "its turn: other waves were issued first",
            SelfBlame::BusyPipe => "a unit that was busy",
            SelfBlame::Sleep => "as long as the program sleeps",
            SelfBlame::Other => "a reason that is not looked into",
            SelfBlame::Unknown => "a reason that the samples do not tell",
        }
    }
}

/// The waits at which samples saw waves stand for memory, or do not say why they stood.
#[must_use]
pub fn stood_for_memory(body: &Body, sampled: &SampledObject) -> BTreeSet<u64> {
    let stood = sampled.places.range(body.span()).filter(|(_, place)| place.waiting() > 0);
    stood
        .filter(|(_, place)| SelfBlame::of(place, true) == SelfBlame::MemoryLatency)
        .map(|(address, _)| *address)
        .collect()
}

/// A stall of which no cause is known.
fn self_blame(body: &Body, address: u64, id: InstId, place: &Place, source: &dyn Fn(u64) -> Option<Source>) -> Chain {
    let counters = wavetap_amdgpu::wait_count(body.target(), body.inst(id)).unwrap_or_default();
    let counters: Vec<&str> = counters.iter().map(|(counter, _)| counter.name()).collect();
    let class = SelfBlame::of(place, !counters.is_empty());
    let instruction = wavetap_amdgpu::print(body.target(), body.inst(id));
    Chain {
        address,
        counter: counters.join("+"),
        share: 1.0,
        predicted_cycles: 0,
        samples: None,
        exposed_samples: None,
        kernel_share: 0.0,
        self_blame: Some(class),
        evidence: Evidence {
            certainty: WaitCertainty::Must,
            executions: CountSource::Unknown,
            latency: Cycles::default(),
            hidden_cycles: 0,
            stable: true,
            active_lanes: None,
            access: None,
            confidence: Some(if place.stalled.is_empty() { Confidence::Low } else { Confidence::Medium }),
        },
        reading: format!("waves wait here for {}", class.words()),
        path: vec![Step { address, instruction, source: source(address), inlined: Vec::new(), edge: Edge::Stall }],
        mask: Vec::new(),
        through_memory: false,
    }
}

impl KernelSlice {
    /// Puts samples to the kernel of this body, and divides those at its waits among what they wait for, by the chains'
    /// shares; where waves stood without a chain, one is added that says why they did. Where it is known of all of them
    /// whether they were hidden behind the work of other waves, those that were not say how the chains rank.
    pub fn add_samples(
        &mut self,
        body: &Body,
        sampled: &SampledObject,
        (kind, modelled): (SampleKind, bool),
        source: impl Fn(u64) -> Option<Source>,
    ) {
        let here: BTreeMap<u64, (InstId, &Place)> = sampled
            .places
            .range(body.span())
            .filter_map(|(&offset, place)| Some((offset, (body.at(offset)?, place))))
            .collect();
        let mut seen: Vec<SampledPlace> = here
            .iter()
            .map(|(&address, (id, place))| SampledPlace {
                address,
                instruction: wavetap_amdgpu::print(body.target(), body.inst(*id)),
                source: source(address),
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
            unit: kind.unit().to_owned(),
            approximate: kind.approximate(),
            caveat: kind.caveat().to_owned(),
            modelled,
            samples: seen.iter().map(|place| place.samples).fold(0, u64::saturating_add),
            places: seen,
        });

        let blamed: BTreeSet<u64> = self.chains.iter().map(|chain| chain.address).collect();
        let alone = here.iter().filter(|(address, (id, place))| {
            // Samples that do not tell why a wave was there say something of waits only.
            let waits = wavetap_amdgpu::wait_count(body.target(), body.inst(*id)).is_some();
            !blamed.contains(address) && place.waiting() > 0 && (waits || !place.stalled.is_empty())
        });
        let alone: Vec<Chain> =
            alone.map(|(&address, (id, place))| self_blame(body, address, *id, place, &source)).collect();
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
    }
}
