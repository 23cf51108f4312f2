//! The schema `wavetap.slice/1`: what a slice says, as JSON. The types mirror those of `wavetap_slice`, with what other
//! programs get besides: words, units, what has to be known to read the numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use super::names::{Blame, Confidence, CountSource, Edge, SelfBlame, WaitCertainty, WorkgroupSource};
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

/// Samples that belong to one of several instructions: to which is not known, and none is given them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ambiguous {
    /// The instruction's text.
    pub instruction: String,
    /// The source line that the samples name, as they write it.
    pub comment: String,
    /// Samples.
    pub samples: u64,
    /// Samples in which the wave issued it.
    pub issued: u64,
    /// Samples in which it did not, by reason.
    pub stalled: BTreeMap<String, u64>,
    /// What they may belong to.
    pub candidates: Vec<Candidate>,
}

/// An instruction that ambiguous samples may belong to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Candidate {
    /// Mangled name of the kernel or function.
    pub kernel: String,
    /// Its processor.
    pub target: String,
    /// The instruction's address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
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

/// A range of cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cycles {
    /// At least, when all goes well.
    pub min: u32,
    /// Usually.
    pub typical: u32,
    /// At most, without contention.
    pub max: u32,
}

/// One cause of one wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chain {
    /// Address of the wait: the same as [`WaitSlice::address`].
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// By which of its counters it waits for this; with a `+` between them if by several.
    pub counter: String,
    /// Of what the wait costs, how much this cause is blamed for, 0 to 1: those of an address sum to 1.
    pub share: f64,
    /// Predicted cycles of all waves, of one execution if it is not known how many there were: executions × what is
    /// left of the latency × share.
    pub predicted_cycles: u64,
    /// Samples of waves at the wait that had not issued it (of a thread trace, cycles of stall), those of this cause:
    /// divided among the causes of the instruction as the predicted cycles are.
    #[serde(default)]
    pub samples: Option<f64>,
    /// Of these, the ones that no other wave of the SIMD used: where samples tell that of every one.
    #[serde(default)]
    pub exposed_samples: Option<f64>,
    /// Of all chains of the kernel, this one's part: of samples if there are some; of predicted cycles else, among
    /// those whose executions are known, or are not, as this one's.
    pub kernel_share: f64,
    /// Why waves stand there, if no cause is known: only samples tell of such stalls.
    #[serde(default)]
    pub self_blame: Option<SelfBlame>,
    /// What it rests on.
    pub evidence: Evidence,
    /// In words.
    pub reading: String,
    /// From the wait to where it comes from.
    pub path: Vec<Step>,
    /// What left the operation blamed its lanes: the branch that formed the mask under which it runs, and the
    /// comparison that this took it from. Empty if that is no branch.
    #[serde(default)]
    pub mask: Vec<Step>,
    /// Whether a value on the path was loaded from LDS or scratch memory, and it is not known for certain by which
    /// store it was written: the path goes on with the load's address, or with the nearest of several stores.
    #[serde(default)]
    pub through_memory: bool,
}

/// What a blame rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Whether the operation is outstanding at the wait.
    pub certainty: WaitCertainty,
    /// How the number of the wait's executions is known.
    pub executions: CountSource,
    /// The operation's latency, in cycles.
    pub latency: Cycles,
    /// Cycles that pass between the operation and the wait, at least: in which other instructions are issued, and in
    /// which the wave is predicted to stand at other waits.
    pub hidden_cycles: u64,
    /// Whether the same operation is blamed most if all latencies are halved, and if they are doubled.
    pub stable: bool,
    /// Lanes that are active on average where the operation is executed, if a site that counts lanes formed its mask.
    pub active_lanes: Option<f64>,
    /// How the lanes of an access to global memory lie to each other, where that follows from the code.
    #[serde(default)]
    pub access: Option<LaneAccess>,
    /// All of this in a word; none by a rule that does not say.
    #[serde(default)]
    pub confidence: Option<Confidence>,
}

/// The places that the lanes of a wave access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneAccess {
    /// Bytes that each lane accesses.
    pub bytes: u32,
    /// Bytes from the place of a lane to that of the next one in direction x of the workgroup: 0 where all access the
    /// same, negative where they go downward, none where it is not one number that is in the code.
    pub stride: Option<i64>,
    /// The same in directions y and z: 0 where lanes of a wave do not differ in it.
    #[serde(default)]
    pub strides: [Option<i64>; 2],
    /// The workgroup that the lanes are those of: x, y, z.
    #[serde(default)]
    pub workgroup: [u32; 3],
    /// How that is known.
    #[serde(default = "assumed")]
    pub workgroup_source: WorkgroupSource,
    /// Bytes of a line of the vector L1 cache: so much is fetched for a lane at least.
    pub line: u32,
    /// How many of these, on average, some lane accesses.
    pub used: u32,
    /// Lines that a wave accesses, on average.
    #[serde(default)]
    pub lines: u32,
    /// How many it would be if the bytes were next to each other.
    #[serde(default)]
    pub least_lines: u32,
}

fn assumed() -> WorkgroupSource {
    WorkgroupSource::Assumed
}

/// A call that was inlined: where the function that the instruction is from was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inlined {
    /// The function that was inlined, if the debug information has its name.
    pub function: Option<String>,
    /// The line that calls it.
    pub called_at: Source,
}

/// One place on a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step {
    /// Its address.
    #[serde(with = "hex")]
    #[cfg_attr(feature = "schema", schemars(with = "wavetap_profile::HexText"))]
    pub address: u64,
    /// The instruction as printed; a call stands for what the function called has left outstanding.
    pub instruction: String,
    /// Source line.
    pub source: Option<Source>,
    /// By which calls that were inlined it came there, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<Inlined>,
    /// Why it is here.
    pub edge: Edge,
}

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
