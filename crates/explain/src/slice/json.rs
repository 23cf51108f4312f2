//! The schema `wavetap.slice/1`: what a slice says, as JSON. These types are those of `wavetap_slice` whose JSON is
//! another one on purpose: it has words, units and what has to be known to read the numbers.

use serde::{Deserialize, Serialize};

use super::{Ambiguous, Blame, Class, Coverage, Evidence, SampledPlace, SelfBlame, Step, WaitSlice};
use wavetap_profile::hex;
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
    /// Whether nothing is ranked by time: executions of such code cannot be counted, and there are no samples of it.
    /// Cycles are of one execution, by static latencies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_ranked_by_time: bool,
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
    /// What kind of operation is blamed; none of a stall that is its own, and of what a function called has left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
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
