//! What a slice says, as data. Nothing of it is changed after it was made; words and JSON are made of it in `report`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::counts::CountSource;
use wavetap_code::{Class, Cycles, LaneAccess, Properties, StallReason, WaitCertainty};
use wavetap_profile::hex;
use wavetap_profile::map::Source;
use wavetap_profile::pc_samples::{Place, SampleKind};

/// What the waits of some kernels wait for. Cycles are static estimates, not measurements; samples say for themselves
/// what they are.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceResult {
    /// By which rule the chains divide the waits among their causes.
    pub blame: Blame,
    /// The samples that were given, the most trusted first.
    pub samples: Vec<GivenSamples>,
    /// The kernels.
    pub kernels: Vec<KernelSlice>,
}

/// A file of samples, and what of it is in no kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenSamples {
    /// What they are.
    pub kind: SampleKind,
    /// Samples outside of any code object.
    pub unattributed: u64,
    /// Samples of code that is not in this input.
    pub foreign_samples: u64,
    /// These by code object, or, in tables without addresses, by dispatch, with what does not fit.
    pub foreign: Vec<ForeignSamples>,
    /// Samples that can be of one of several instructions, and were given to none.
    pub ambiguous: Vec<Ambiguous>,
}

/// Samples of a code object, or of a dispatch, that is not of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignSamples {
    /// The number of the code object, or of the dispatch, in the file of samples.
    pub id: u64,
    /// Where it was loaded from, where the file of samples has it.
    pub uri: Option<String>,
    /// Samples; of a thread trace, cycles.
    pub samples: u64,
    /// What does not fit.
    pub mismatch: Mismatch,
}

/// Why samples are not of a code object of the input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mismatch {
    /// The input has no code object.
    NoCode,
    /// The file of samples does not list the code object that they name.
    Unlisted,
    /// They are of a code object with this MD5.
    Digest(String),
    /// They are of a code object of another size.
    Size {
        /// Bytes of the sampled one.
        sampled: u64,
        /// Bytes of the one in the input.
        here: u64,
    },
    /// They are of a code object that was loaded into memory of another size.
    LoadedSize {
        /// Bytes of the sampled one in memory.
        sampled: u64,
        /// Where the one in the input ends.
        here: u64,
    },
    /// They are of a code object with this kernel.
    Kernel(String),
    /// Nothing says of which of several code objects they are.
    NotIdentified,
    /// Another instruction was sampled than the code has.
    Instruction {
        /// Its address.
        address: u64,
        /// The sampled one as printed.
        sampled: String,
        /// The code's as printed.
        here: String,
    },
    /// An instruction was sampled where none begins.
    NoInstruction {
        /// Its address.
        address: u64,
    },
    /// No kernel has an instruction with this text.
    NoText {
        /// The line in the file of samples, from 1.
        line: u64,
        /// The instruction as printed.
        instruction: String,
        /// The source line that the samples name, as they write it; empty if none.
        comment: String,
    },
    /// No kernel has all instructions that were sampled in a dispatch.
    NoKernelWithAll {
        /// The first line of them in the file of samples, from 1.
        line: u64,
        /// The dispatch's number.
        dispatch: u64,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::NoCode => f.write_str("there is no code"),
            Mismatch::Unlisted => f.write_str("it is not among the code objects that the file of samples lists"),
            Mismatch::Digest(digest) => {
                write!(f, "they are of a code object with the MD5 {digest}, which is not in this file")
            }
            Mismatch::Size { sampled, here } => {
                write!(f, "they are of a code object of {sampled} bytes, and that of this file has {here}")
            }
            Mismatch::LoadedSize { sampled, here } => write!(
                f,
                "they are of a code object that was loaded into {sampled} bytes, and that of this file takes {here}"
            ),
            Mismatch::Kernel(kernel) => {
                write!(f, "they are of a code object with a kernel {kernel}, which is not in this file")
            }
            Mismatch::NotIdentified => {
                f.write_str("nothing says which of several code objects it is: no MD5, size, kernel or instruction")
            }
            Mismatch::Instruction { address, sampled, here } => {
                write!(f, "the samples saw `{sampled}` at {address:#x}, and the code has `{here}`")
            }
            Mismatch::NoInstruction { address } => {
                write!(f, "the samples saw an instruction at {address:#x}, where none begins")
            }
            Mismatch::NoText { line, instruction, comment } => {
                let of = if comment.is_empty() { String::new() } else { format!(" of {comment}") };
                write!(f, "the samples do not fit this file: line {line}: no kernel has `{instruction}`{of}")
            }
            Mismatch::NoKernelWithAll { line, dispatch } => write!(
                f,
                "the samples do not fit this file: line {line}: no kernel has all instructions that were sampled in \
                    dispatch {dispatch}"
            ),
        }
    }
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
#[derive(Debug, Clone, PartialEq)]
pub struct KernelSlice {
    /// Mangled name.
    pub name: String,
    /// Demangled name.
    pub demangled: String,
    /// Processor.
    pub target: String,
    /// Lanes of its waves.
    pub wave_size: u32,
    /// Whether executions of this processor's code can be counted. If not, and without samples, nothing is ranked by
    /// time.
    pub is_counted: bool,
    /// Its waits, by predicted cycles descending.
    pub waits: Vec<WaitSlice>,
    /// Why it waits, by predicted cycles descending.
    pub chains: Vec<Chain>,
    /// Of how many of its waits, and of what they wait for, one dependence is all there is.
    pub coverage: Coverage,
    /// Where waves were seen in it, if samples were given.
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
    pub(crate) fn of(waits: &[WaitSlice], chains: &[Chain]) -> Coverage {
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
    /// What kind of operation it is; none of what was outstanding at a function's entry and of what a call has left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// Static latency of the operation.
    pub latency: Cycles,
}

/// One cause of one wait.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// Address of the wait: the same as [`WaitSlice::address`].
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
    pub samples: Option<f64>,
    /// Of these, the ones that no other wave of the SIMD used: where samples tell that of every one.
    pub exposed_samples: Option<f64>,
    /// Of all chains of the kernel, this one's part: of samples if there are some; of predicted cycles else, among
    /// those whose executions are known, or are not, as this one's.
    pub kernel_share: f64,
    /// What is blamed.
    pub cause: Cause,
    /// What kind of operation it is; none of a stall that is its own, and of what a function called has left.
    pub class: Option<Class>,
    /// What it rests on.
    pub evidence: Evidence,
    /// From the wait to where it comes from.
    pub path: Vec<Step>,
    /// What left the operation blamed its lanes: the branch that formed the mask under which it runs, and the
    /// comparison that this took it from. Empty if that is no branch.
    pub mask: Vec<Step>,
    /// Whether a value on the path was loaded from LDS or scratch memory, and it is not known for certain by which
    /// store it was written: the path goes on with the load's address, or with the nearest of several stores.
    pub through_memory: bool,
}

/// What a chain blames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The operation of the second step of the path.
    Operation {
        /// Its name, without operands.
        name: Cow<'static, str>,
        /// Whether something is predicted to be left of its latency. Otherwise waves are known to have stood there, and
        /// latencies were longer.
        likely: bool,
    },
    /// What the function called in the second step of the path left outstanding.
    Callee {
        /// As of an operation.
        likely: bool,
    },
    /// No cause is known: only samples tell of such stalls.
    Itself(SelfBlame),
    /// The operation of the second step of the path, by LEO's rule.
    Leo {
        /// Its name, without operands.
        name: Cow<'static, str>,
    },
    /// The stalled instruction itself, by LEO's rule.
    LeoItself(StallClass),
}

/// LEO's classes of stalls that no other instruction is to blame for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StallClass {
    /// It chooses its registers at run time.
    IndirectAccess,
    /// Memory.
    MemoryLatency,
    /// The units that compute.
    SaturatedComputation,
    /// Other waves.
    Synchronisation,
    /// The unit that it needs was busy.
    BusyPipe,
    /// Instructions that were not there yet.
    InstructionFetch,
    /// No reason is known.
    Scheduler,
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
    /// The load that gave the operation's address: it cannot start before that is done. In a loop one of the same
    /// round; none where the address is known earlier, so that the operation could be issued earlier.
    #[serde(with = "optional_hex", default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<wavetap_profile::HexText>"))]
    pub address_loaded_by: Option<u64>,
    /// Samples (cycles of a timing model) that tell for which operation waves waited there: where there are some, the
    /// share is theirs. None if it is predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<u64>,
    /// All of this in a word; none by a rule that does not say.
    #[serde(default)]
    pub confidence: Option<Confidence>,
}

/// How much a blame is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The operation is waited for on every path, executions were counted or follow from counts, and other latencies
    /// would not change who is blamed.
    High,
    /// One of these does not hold.
    Medium,
    /// Several do not hold.
    Low,
}

impl Confidence {
    pub(crate) fn of(certainty: WaitCertainty, executions: CountSource, stable: bool) -> Confidence {
        let doubts = [certainty != WaitCertainty::Must, executions == CountSource::Unknown, !stable];
        match doubts.into_iter().filter(|doubt| *doubt).count() {
            0 => Confidence::High,
            1 => Confidence::Medium,
            _ => Confidence::Low,
        }
    }
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

/// How a step follows from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// It is the wait.
    Stall,
    /// The wait waits for it.
    Wait,
    /// It may have written a register that the step before reads.
    Register,
    /// It wrote what the step before loads: to the same place of LDS or scratch memory.
    Memory,
    /// It is the one instruction that writes the LDS that the step before loads.
    ThroughMemory,
    /// It formed the mask of lanes under which the operation runs.
    Mask,
}

/// What samples say of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSamples {
    /// What they are.
    pub kind: SampleKind,
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
    /// By the reason that most samples give, as the processor's samples name it.
    pub(crate) fn of(properties: &Properties, place: &Place, waits: bool) -> SelfBlame {
        let reason = place.stalled.iter().max_by(|a, b| a.1.cmp(b.1).then(b.0.cmp(a.0)));
        match reason.map(|(reason, _)| properties.stall_reason(reason)) {
            Some(Some(StallReason::InFlight)) => SelfBlame::MemoryLatency,
            Some(Some(StallReason::Dependency)) => SelfBlame::Dependency,
            Some(Some(StallReason::Barrier)) => SelfBlame::Barrier,
            Some(Some(StallReason::InstructionFetch)) => SelfBlame::InstructionFetch,
            Some(Some(StallReason::IssueContention)) => SelfBlame::IssueContention,
            Some(Some(StallReason::BusyPipe)) => SelfBlame::BusyPipe,
            Some(Some(StallReason::Sleep)) => SelfBlame::Sleep,
            Some(_) => SelfBlame::Other,
            None if waits => SelfBlame::MemoryLatency,
            None => SelfBlame::Unknown,
        }
    }
}

/// The rule by which a stall is divided among what it may be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// By what is left of each operation's latency when the wait begins: [`crate::slice_kernel`].
    #[default]
    Exposed,
    /// As LEO (arXiv 2604.20032) is published, to compare with: [`mod@crate::leo`].
    Leo,
}

impl Blame {
    /// The name in options and output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Blame::Exposed => "exposed",
            Blame::Leo => "leo",
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
