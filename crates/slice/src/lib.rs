//! What the waits of a kernel wait for, ranked by what they may cost.
//!
//! Each `s_waitcnt` is linked over the control-flow graph to the memory operations it waits for
//! ([`wavetap_analysis::dataflow::Waits`]), with how often it was executed ([`counts`]) and how long such operations
//! take ([`latency`]). The product ranks the waits, and [`chains`] says which operation each really waits for and where
//! that comes from. It is a *prediction*: nothing here was timed, and the model says so in every output. Samples and
//! traces of a run say how long waves really stood ([`evidence`], and [`text_samples`] where they have no addresses);
//! [`mod@blame`] has the rules by which stalls are divided, ours and that of [`leo`].
#![forbid(unsafe_code)]

pub mod access;
pub mod blame;
pub mod chains;
pub mod counts;
pub mod evidence;
mod exposed;
pub mod latency;
pub mod leo;
mod memory;
mod path;
pub mod text_samples;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use self::access::Launched;
use self::blame::Blame;
use self::chains::Chain;
use self::counts::{BlockCounts, CountSource, KernelCounts};
use self::evidence::KernelSamples;
use self::exposed::Stalls;
use self::latency::Cycles;
use self::memory::Stores;
use self::text_samples::Ambiguous;
use wavetap_analysis::cfg::Cfg;
use wavetap_analysis::dataflow::{
    AffineAddresses, Certainty, Definitions, Operation, Summaries, Wait, WaitSummaries, Waits,
};
use wavetap_analysis::kernel::Body;
use wavetap_base::entity::InstId;
use wavetap_profile::hex;
use wavetap_profile::map::Source;
use wavetap_profile::pc_samples::SampleKind;

/// Schema of [`Slice`] as JSON.
pub const SCHEMA: &str = "wavetap.slice/1";

/// The waits of some kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slice {
    /// [`SCHEMA`].
    pub schema: String,
    /// Always true: cycles are static estimates, not measurements. Samples say for themselves what they are.
    pub predicted: bool,
    /// By which rule the chains divide the waits among their causes.
    #[serde(default)]
    pub blame: Blame,
    /// The samples that were given, the most trusted first.
    #[serde(default)]
    pub samples: Vec<GivenSamples>,
    /// The kernels.
    pub kernels: Vec<KernelSlice>,
    /// Kernels and code objects that contradict their format, each with what is wrong and where: they are not sliced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// A file of samples, and what of it is in no kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GivenSamples {
    /// What they are.
    pub kind: SampleKind,
    /// What has to be known to read them.
    pub caveat: String,
    /// Samples outside of any code object.
    pub nowhere: u64,
    /// Samples of code that is not in this input.
    pub elsewhere: u64,
    /// These by code object, or, in tables without addresses, by dispatch, with what does not fit.
    #[serde(default)]
    pub foreign: Vec<ForeignSamples>,
    /// Samples that can be of one of several instructions, and were given to none.
    pub ambiguous: Vec<Ambiguous>,
}

/// Samples of a code object, or of a dispatch, that is not of the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForeignSamples {
    /// The number of the code object, or of the dispatch, in the file of samples.
    pub id: u64,
    /// Where it was loaded from, where the file of samples has it.
    pub uri: Option<String>,
    /// Samples; of a thread trace, cycles.
    pub samples: u64,
    /// What does not fit.
    pub why: String,
}

impl Slice {
    /// A slice of these kernels, whose chains were made by this rule.
    #[must_use]
    pub fn new(blame: Blame, kernels: Vec<KernelSlice>) -> Slice {
        Slice { schema: SCHEMA.to_owned(), predicted: true, blame, samples: Vec::new(), kernels, unread: Vec::new() }
    }
}

/// The waits of one kernel, the costliest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelSlice {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Processor.
    pub target: String,
    /// Its waits, by predicted cycles descending.
    pub waits: Vec<WaitSlice>,
    /// Why it waits, by predicted cycles descending.
    #[serde(default)]
    pub chains: Vec<Chain>,
    /// Of how many of its waits, and of what they wait for, one dependence is all there is.
    #[serde(default)]
    pub coverage: Coverage,
    /// Where waves were seen in it, if samples were given.
    #[serde(default)]
    pub samples: Option<KernelSamples>,
}

/// Single-dependency coverage, as LEO defines it: of the nodes of the graph of dependences, the part that at most one
/// edge leads into, 0 to 1.
///
/// The nodes are the waits and the operations that they wait for; an operation is waited for, and no edge leads into
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coverage {
    /// Nodes.
    pub nodes: usize,
    /// With an edge from each operation that a wait may wait for.
    pub before: f64,
    /// With an edge from each that is blamed.
    pub after: f64,
}

impl Coverage {
    fn of(waits: &[WaitSlice], chains: &[Chain]) -> Coverage {
        let mut all: BTreeMap<u64, BTreeSet<Option<u64>>> = BTreeMap::new();
        for wait in waits {
            all.entry(wait.address).or_default().extend(wait.operations.iter().map(|operation| operation.address));
        }
        let mut blamed: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for chain in chains {
            blamed.entry(chain.address).or_default().extend(chain.path.get(1).map(|step| step.address));
        }
        let operations: BTreeSet<u64> =
            all.values().flatten().flatten().copied().filter(|address| !all.contains_key(address)).collect();
        let nodes = all.len() + operations.len();
        let many = [
            all.values().filter(|edges| edges.len() > 1).count(),
            blamed.values().filter(|edges| edges.len() > 1).count(),
        ];
        let [before, after] = many.map(|many| (nodes - many) as f64 / nodes.max(1) as f64);
        Coverage { nodes, before, after }
    }
}

/// One counter of one `s_waitcnt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitSlice {
    /// Address of the `s_waitcnt` in the original code object.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// The instruction as printed.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// `vmcnt`, `lgkmcnt` or `expcnt`.
    pub counter: String,
    /// How many operations may stay outstanding.
    pub count: u8,
    /// How often waves executed it; none where the counters do not tell.
    pub executions: Option<u64>,
    /// How the number of executions is known.
    pub executions_source: CountSource,
    /// The slowest operation's static latency.
    pub latency: Cycles,
    /// Executions × the typical latency of the slowest operation; with unknown executions, of one execution.
    pub predicted_cycles: u64,
    /// What it waits for, by address; operations from outside of the kernel's own code last.
    pub operations: Vec<OperationSlice>,
}

/// An operation that is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OperationSlice {
    /// Its address; of a call, where the operation was left outstanding by the callee; absent for what was outstanding
    /// at a function's entry.
    #[serde(with = "optional_hex", default)]
    #[cfg_attr(feature = "schema", schemars(with = "Option<wavetap_profile::HexText>"))]
    pub address: Option<u64>,
    /// The instruction as printed.
    pub instruction: Option<String>,
    /// Source line.
    pub source: Option<Source>,
    /// How sure it is that the wait waits for it.
    pub certainty: WaitCertainty,
    /// Static latency of the operation.
    pub latency: Cycles,
}

/// [`Certainty`] in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitCertainty {
    /// On every path.
    Must,
    /// On some path.
    May,
    /// One of several that complete out of order.
    Unordered,
}

impl From<Certainty> for WaitCertainty {
    fn from(certainty: Certainty) -> WaitCertainty {
        match certainty {
            Certainty::Must => WaitCertainty::Must,
            Certainty::May => WaitCertainty::May,
            Certainty::Unordered => WaitCertainty::Unordered,
        }
    }
}

/// Addresses that may be absent, as hex strings.
mod optional_hex {
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    struct Wrapped(#[serde(with = "wavetap_profile::hex")] u64);

    pub fn serialize<S: Serializer>(value: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => wavetap_profile::hex::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<Wrapped>::deserialize(deserializer)?.map(|wrapped| wrapped.0))
    }
}

/// Slices one kernel.
///
/// The summaries say what calls do to operations outstanding and to registers; `counted` are its counters, if it was
/// profiled; `source` gives the source line of an address.
#[must_use]
pub fn slice_kernel(
    body: &Body,
    demangled: &str,
    summaries: (&WaitSummaries, &Summaries),
    counted: Option<KernelCounts<'_>>,
    source: impl Fn(u64) -> Option<Source>,
) -> KernelSlice {
    let launched = Launched::of(None, counted.map(|counted| counted.totals));
    slice_stalled(body, demangled, summaries, (counted, &|_| false, launched), source)
}

/// [`slice_kernel`] with what is known of its launches, and with the instructions where waves are known to have
/// `stood`, by address: their waits have causes although nothing is predicted to be left to wait for.
#[must_use]
pub fn slice_stalled(
    body: &Body,
    demangled: &str,
    (summaries, values): (&WaitSummaries, &Summaries),
    (counted, stood, launched): (Option<KernelCounts<'_>>, &dyn Fn(u64) -> bool, Launched),
    source: impl Fn(u64) -> Option<Source>,
) -> KernelSlice {
    let cfg = Cfg::build(body);
    let counts = BlockCounts::derive(body, &cfg, counted);
    let totals = counted.map(|counted| counted.totals);
    let print = |id: InstId| wavetap_amdgpu::print(body.target(), body.inst(id));
    let (mut waits, mut chains) = (Vec::new(), Vec::new());
    let definitions = Definitions::new(body, &cfg, values);
    let stores = Stores::of(body, &definitions);
    let (loops, stalls) = (cfg.loops(), Stalls::default());
    let (paths, strides) = (RefCell::default(), RefCell::new((AffineAddresses::new(launched.ids), Default::default())));
    let mut context = chains::Context {
        body,
        cfg: &cfg,
        definitions,
        stores,
        loops,
        stalls,
        paths,
        strides,
        launched,
        counts: &counts,
        totals,
    };
    let all = Waits::compute(body, &cfg, summaries);
    let by_instruction: Vec<&[Wait]> = all.all().chunk_by(|a, b| a.inst == b.inst).collect();
    context.predict(&by_instruction);
    chains.extend(
        by_instruction.iter().flat_map(|waits| context.of_waits(waits, stood(body.address(waits[0].inst)), &source)),
    );
    for wait in all.all() {
        let mut operations: Vec<OperationSlice> = wait
            .operations
            .iter()
            .map(|each| {
                let id = match each.operation {
                    Operation::Inst(id) | Operation::Callee(id) => Some(id),
                    Operation::Caller => None,
                };
                let latency = match each.operation {
                    Operation::Inst(id) => latency::of(body.target(), body.inst(id)),
                    // Whatever it was.
                    Operation::Callee(_) | Operation::Caller => latency::unknown_memory(body.target()),
                };
                OperationSlice {
                    address: id.map(|id| body.address(id)),
                    instruction: id.map(print),
                    source: id.and_then(|id| source(body.address(id))),
                    certainty: each.certainty.into(),
                    latency,
                }
            })
            .collect();
        operations.sort_by_key(|operation| (operation.address.is_none(), operation.address));
        let latency = operations.iter().map(|operation| operation.latency).fold(Cycles::default(), Cycles::slower);
        let (executions, executions_source) = counts.of(cfg.block_of(wait.inst));
        let address = body.address(wait.inst);
        waits.push(WaitSlice {
            address,
            instruction: print(wait.inst),
            source: source(address),
            counter: wait.counter.name().to_owned(),
            count: wait.count,
            executions,
            executions_source,
            latency,
            predicted_cycles: executions.unwrap_or(1).saturating_mul(u64::from(latency.typical)),
            operations,
        });
    }
    waits.sort_by(|a, b| b.predicted_cycles.cmp(&a.predicted_cycles).then(a.address.cmp(&b.address)));
    for known in [true, false] {
        let alike = |chain: &&mut Chain| (chain.evidence.executions != CountSource::Unknown) == known;
        let all: u64 = chains.iter_mut().filter(alike).map(|chain| chain.predicted_cycles).fold(0, u64::saturating_add);
        chains
            .iter_mut()
            .filter(alike)
            .for_each(|chain| chain.kernel_share = chain.predicted_cycles as f64 / all.max(1) as f64);
    }
    chains.sort_by(|a, b| {
        b.predicted_cycles.cmp(&a.predicted_cycles).then(a.address.cmp(&b.address)).then(b.share.total_cmp(&a.share))
    });
    let coverage = Coverage::of(&waits, &chains);
    KernelSlice {
        coverage,
        name: body.name().to_owned(),
        demangled: demangled.to_owned(),
        target: body.target().name().to_owned(),
        waits,
        chains,
        samples: None,
    }
}

#[cfg(test)]
mod tests;
