//! Modelled time: the settings of the model, and its results.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZero;
use std::str::FromStr;

use wavetap_amdgpu::{Board, Latency};

use crate::address::CodeAddress;

/// A latency that can be changed for experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LatencyClass {
    /// A class of instructions; of vector and scalar memory it is the time to the result of what is in the nearest
    /// cache.
    Instruction(Latency),
    /// What is in the cache between L1 and L2, of targets that have one.
    Gl1,
    /// What is in the L2 cache.
    L2,
    /// What is in the Infinity Cache, of targets that have one.
    Mall,
    /// What is in memory only.
    Memory,
    /// A store, until it is done.
    Store,
    /// How long the first access of a dispatch to a page waits for its translation.
    Page,
    /// How long an atomic operation keeps its line.
    Atomic,
    /// The instruction at this address of its code object, whatever its class: from its issue until its result is
    /// there. What it does to caches and queues stays the same.
    At(u64),
}

/// Most cycles that a latency can be set to.
pub(crate) const MOST_CYCLES: u32 = 1_000_000;

/// A latency put in the place of a target's: `valu32=8`, `0x1a40=0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyOverride {
    /// Which.
    pub class: LatencyClass,
    /// Cycles.
    pub cycles: u32,
}

/// Settings of the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timing {
    /// Latencies other than the target's; of several for a class the last counts.
    pub latencies: Vec<LatencyOverride>,
    /// Takes a sample of every wave each time so many cycles have passed.
    pub sample_interval: Option<NonZero<u32>>,
    /// Notes what the waves of the first compute unit did, instruction by instruction.
    pub waves: bool,
    /// Memory operations take times that are drawn from this seed, not those that caches and queues give: for
    /// experiments with latencies that an analysis does not know.
    pub chance: Option<u64>,
    /// The board that is modelled; the usual one of the target if none, or if it is none of the target's.
    pub board: Option<&'static Board>,
    /// Which workgroups of a dispatch are modelled.
    pub workgroups: TimedWorkgroups,
}

/// Which workgroups of a dispatch are modelled. The others are executed without the model, and their time is worked out
/// from those that are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimedWorkgroups {
    /// All of them.
    #[default]
    All,
    /// Of a dispatch with many more than the device holds at once, a part: 25 times as many as it holds.
    Auto,
    /// So many, rounded to what the device holds: 10 times as many at least.
    AtMost(NonZero<u64>),
}

/// Why a wave did not issue: `ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_*` of rocprofiler-sdk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StallReason {
    /// The instruction has not been fetched: it follows a branch.
    NoInstructionAvailable,
    /// A result of the ALUs is not there.
    AluDependency,
    /// A wait for a counter.
    Waitcnt,
    /// An instruction that the sequencer itself carries out takes more than its slot (`s_nop`).
    InternalInstruction,
    /// Others have not come to the barrier.
    BarrierWait,
    /// Another wave of the SIMD issued to the same unit.
    ArbiterNotWin,
    /// The unit still works on an earlier instruction.
    ArbiterWinExStall,
    /// Anything else.
    OtherWait,
    /// `s_sleep`.
    SleepWait,
}

/// How many reasons there are.
pub(crate) const REASONS: usize = 9;

/// Modelled cycles of one instruction, summed over waves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InstructionTime {
    /// How often it was issued.
    pub executions: u64,
    /// Cycles of its issue slots.
    pub issued: u64,
    /// Cycles that it kept a SIMD's vector ALU.
    pub vector_alu: u64,
    /// Lines of the vector L1 cache that its accesses were in.
    pub lines: u64,
    /// Cycles of LDS because of its bank conflicts.
    pub lds_conflict_cycles: u64,
    pub(crate) stalled: [u64; REASONS],
}

/// What the caches and LDS did in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryCounts {
    /// Lines that vector memory instructions found in the L1 cache of their compute unit.
    pub l1_hits: u64,
    /// Lines that they did not.
    pub l1_misses: u64,
    /// Lines that were found in L2.
    pub l2_hits: u64,
    /// Lines that were not, and came from memory.
    pub l2_misses: u64,
    /// Changed lines that L2 wrote back to have room for others.
    pub l2_written_back: u64,
    /// Changed lines that were in L2 at the end of the dispatch.
    pub l2_left: u64,
    /// Lines that went to memory or came from it: those that neither L2 nor the Infinity Cache had room for.
    pub memory_lines: u64,
    /// Bytes that stores wrote to L2, at most those of a line of L1 for each.
    pub stored_bytes: u64,
    /// Cycles of LDS beyond those that accesses without bank conflicts take.
    pub lds_conflict_cycles: u64,
    /// Operations of atomics that waited for another one of the same instruction.
    pub serialized_atomics: u64,
    /// Cycles of channels of L2 that atomics kept busy.
    pub atomic_cycles: u64,
}

/// A part of the machine that works on one thing after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// SIMDs that have a wave, whatever it does.
    Simd,
    /// Compute units that have a wave.
    ComputeUnit,
    /// The vector ALU of a SIMD.
    VectorAlu,
    /// Its unit for transcendental operations, of targets that have one beside the vector ALU.
    Transcendental,
    /// Its matrix core.
    Matrix,
    /// Its issue of scalar instructions.
    Scalar,
    /// The vector L1 cache of a compute unit: the addresses that it works on.
    L1,
    /// The LDS of a compute unit.
    Lds,
    /// Channels of L2.
    L2,
    /// The Infinity Cache.
    Mall,
    /// Memory.
    Memory,
}

impl Resource {
    /// All of them.
    pub const ALL: [Resource; 11] = [
        Resource::Simd,
        Resource::ComputeUnit,
        Resource::VectorAlu,
        Resource::Transcendental,
        Resource::Matrix,
        Resource::Scalar,
        Resource::L1,
        Resource::Lds,
        Resource::L2,
        Resource::Mall,
        Resource::Memory,
    ];

    /// Its name in files: `vector_alu`.
    #[must_use]
    pub fn name(self) -> &'static str {
        [
            "simd",
            "compute_unit",
            "vector_alu",
            "transcendental",
            "matrix",
            "scalar",
            "l1",
            "lds",
            "l2",
            "mall",
            "memory",
        ][self as usize]
    }
}

/// For how many cycles the parts of each kind were busy, summed over the parts, and for how many they could have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceUse {
    pub(crate) busy: [u64; Resource::ALL.len()],
    pub(crate) available: [u64; Resource::ALL.len()],
}

impl ResourceUse {
    /// Cycles that parts of this kind were busy.
    #[must_use]
    pub fn busy(&self, resource: Resource) -> u64 {
        self.busy[resource as usize]
    }

    /// The cycles of the dispatch, once for each part of this kind; 0 where the machine has none.
    #[must_use]
    pub fn available(&self, resource: Resource) -> u64 {
        self.available[resource as usize]
    }

    /// Adds the use by another dispatch, or what others have counted of the same one.
    pub fn add(&mut self, other: &ResourceUse) {
        self.busy.iter_mut().zip(other.busy).for_each(|(mine, its)| *mine += its);
        self.available.iter_mut().zip(other.available).for_each(|(mine, its)| *mine += its);
    }
}

/// A wave at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaveSample {
    /// The modelled cycle since the dispatch began.
    pub cycle: u64,
    /// The instruction that it stood at.
    pub place: CodeAddress,
    /// Why it did not issue it; none if it did.
    pub stalled: Option<StallReason>,
    /// The instruction whose operation it waits for: of several the one that is done last. None if it does not wait for
    /// memory.
    pub waits_for: Option<CodeAddress>,
    /// Its active lanes.
    pub exec: u64,
    /// Its workgroup.
    pub workgroup: [u32; 3],
    /// Its index in the workgroup.
    pub wave: u32,
    /// The compute unit (or workgroup processor) and the SIMD in it.
    pub unit: u32,
    /// The SIMD.
    pub simd: u32,
    /// Waves on the compute unit.
    pub resident: u32,
    /// The instruction's kind, for [`WaveSample::instruction_type`].
    pub(crate) kind: SampleKind,
}

/// Kinds of instructions that samples tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SampleKind {
    Valu,
    Matrix,
    Scalar,
    Vmem,
    Flat,
    Lds,
    Branch,
    BranchTaken,
    Jump,
    Barrier,
    Message,
    Export,
    Internal,
}

/// What the model says of a dispatch. All cycles are *modelled*.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelledTime {
    /// Cycles from the first wave's start until the last one has ended and its stores are done.
    pub cycles: u64,
    /// Cycles that waves were resident, summed: those of all instructions together.
    pub wave_cycles: u64,
    /// Most waves that were resident on a SIMD.
    pub most_waves: u32,
    /// By instruction.
    pub instructions: BTreeMap<CodeAddress, InstructionTime>,
    /// Cycles of waits for memory, by the instruction that waited and the one that it waited for: of several the one
    /// that was done last.
    pub waited: BTreeMap<(CodeAddress, CodeAddress), u64>,
    /// Caches and LDS.
    pub memory: MemoryCounts,
    /// How busy the machine was.
    pub used: ResourceUse,
    /// Samples in the order in which they were taken, if there is a [`Timing::sample_interval`].
    pub samples: Vec<WaveSample>,
    /// Samples beyond the most that are kept.
    pub lost_samples: u64,
    /// Waves of the first compute unit in the order in which they ended, if there is [`Timing::waves`].
    pub waves: Vec<WaveTrace>,
    /// Waves of it that there was no room for.
    pub lost_waves: u64,
    /// Where only a part of the workgroups was modelled, which.
    pub extrapolated: Option<Extrapolated>,
}

/// What the time of a dispatch was worked out from of which a part of the workgroups was modelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extrapolated {
    /// Workgroups that were modelled.
    pub modelled: u64,
    /// Workgroups of the dispatch.
    pub workgroups: u64,
    /// By how many thousandths the time would be another, with a probability of 95 percent, had others been modelled:
    /// from the differences between those that were.
    pub error_permille: u32,
}

/// A number of something that was counted in a part of the workgroups, for all of them.
pub(crate) fn scaled(count: u64, (all, part): (u64, u64)) -> u64 {
    let Some(part) = NonZero::new(u128::from(part)) else { return 0 };
    u64::try_from((u128::from(count) * u128::from(all) + part.get() / 2) / part).unwrap_or(u64::MAX)
}

/// What a wave did, instruction by instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaveTrace {
    /// The workgroup.
    pub workgroup: [u32; 3],
    /// The wave's number in it.
    pub wave: u32,
    /// SIMD of its compute unit, or pair of them.
    pub simd: u32,
    /// Cycle of the dispatch in which it began.
    pub begin: u64,
    /// Cycle after its last one.
    pub end: u64,
    /// What it executed, in this order. Each begins when the one before it has ended.
    pub instructions: Vec<TracedInstruction>,
}

/// An instruction that a wave executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedInstruction {
    /// Where it is.
    pub place: CodeAddress,
    /// Cycle of the dispatch from which the wave's cycles were charged to it.
    pub begin: u64,
    /// Cycles of its issue slot.
    pub issued: u64,
    /// All cycles that were charged to it.
    pub duration: u64,
    /// What it is.
    pub category: TraceCategory,
}

/// What thread traces tell instructions apart by (rocprofiler-sdk, categories of instructions of its trace decoder).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceCategory {
    /// Scalar memory.
    Smem,
    /// Scalar ALU.
    Salu,
    /// Vector memory but FLAT.
    Vmem,
    /// FLAT, global and scratch.
    Flat,
    /// LDS.
    Lds,
    /// Vector ALU, with matrix instructions.
    Valu,
    /// Branches, which the decoder tells apart by whether they were taken.
    Branch,
    /// What the sequencer does itself: waits, barriers, `s_nop`.
    Immed,
    /// Messages, exports, and the end of a wave.
    Message,
}

impl TraceCategory {
    /// Its name: the decoder's, but for branches.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TraceCategory::Smem => "SMEM",
            TraceCategory::Salu => "SALU",
            TraceCategory::Vmem => "VMEM",
            TraceCategory::Flat => "FLAT",
            TraceCategory::Lds => "LDS",
            TraceCategory::Valu => "VALU",
            TraceCategory::Branch => "BRANCH",
            TraceCategory::Immed => "IMMED",
            TraceCategory::Message => "MESSAGE",
        }
    }
}

impl LatencyClass {
    /// Every class; not the instructions.
    pub fn all() -> impl Iterator<Item = LatencyClass> {
        Latency::ALL.into_iter().map(LatencyClass::Instruction).chain([
            LatencyClass::Gl1,
            LatencyClass::L2,
            LatencyClass::Mall,
            LatencyClass::Memory,
            LatencyClass::Store,
            LatencyClass::Page,
            LatencyClass::Atomic,
        ])
    }

    /// Its name: that of `isa-tables/latency.yaml`, or `gl1`, `l2`, `mall`, `memory`, `store`, `page`, `atomic`;
    /// `address` of an instruction.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LatencyClass::Instruction(class) => class.name(),
            LatencyClass::Gl1 => "gl1",
            LatencyClass::L2 => "l2",
            LatencyClass::Mall => "mall",
            LatencyClass::Memory => "memory",
            LatencyClass::Store => "store",
            LatencyClass::Page => "page",
            LatencyClass::Atomic => "atomic",
            LatencyClass::At(_) => "address",
        }
    }
}

impl fmt::Display for TimedWorkgroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimedWorkgroups::All => f.write_str("all"),
            TimedWorkgroups::Auto => f.write_str("auto"),
            TimedWorkgroups::AtMost(most) => write!(f, "{most}"),
        }
    }
}

impl FromStr for TimedWorkgroups {
    type Err = String;

    /// ```
    /// use wavetap_emulator::TimedWorkgroups;
    /// assert_eq!("auto".parse(), Ok(TimedWorkgroups::Auto));
    /// assert!("0".parse::<TimedWorkgroups>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(TimedWorkgroups::All),
            "auto" => Ok(TimedWorkgroups::Auto),
            _ => text
                .parse()
                .map(TimedWorkgroups::AtMost)
                .map_err(|_| format!("'{text}': all, auto, or a number of workgroups above 0 expected")),
        }
    }
}

impl fmt::Display for LatencyClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LatencyClass::At(address) => write!(f, "{address:#x}"),
            class => f.write_str(class.name()),
        }
    }
}

impl fmt::Display for LatencyOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.class, self.cycles)
    }
}

impl FromStr for LatencyOverride {
    type Err = String;

    /// ```
    /// use wavetap_emulator::LatencyOverride;
    /// let changed: LatencyOverride = "valu32=8".parse().unwrap();
    /// assert_eq!((changed.class.name(), changed.cycles), ("valu32", 8));
    /// assert_eq!("0x1a40=0".parse::<LatencyOverride>().unwrap().class, wavetap_emulator::LatencyClass::At(0x1a40));
    /// assert!("valu33=8".parse::<LatencyOverride>().unwrap_err().contains("valu_f64"));
    /// ```
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, cycles) =
            text.split_once('=').ok_or_else(|| format!("'{text}': CLASS=CYCLES expected, 'valu32=8' for example"))?;
        let address =
            name.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()).map(LatencyClass::At);
        let Some(class) = address.or_else(|| LatencyClass::all().find(|class| class.name() == name)) else {
            let known: Vec<&str> = LatencyClass::all().map(LatencyClass::name).collect();
            return Err(format!(
                "there is no latency class '{name}': {} are known, and addresses of instructions (0x1a40)",
                known.join(", ")
            ));
        };
        match cycles.parse() {
            Ok(cycles) if cycles <= MOST_CYCLES => Ok(LatencyOverride { class, cycles }),
            _ => Err(format!("'{cycles}' cycles of {name}: a number from 0 to {MOST_CYCLES} expected")),
        }
    }
}

impl StallReason {
    /// All reasons.
    pub const ALL: [StallReason; REASONS] = [
        StallReason::NoInstructionAvailable,
        StallReason::AluDependency,
        StallReason::Waitcnt,
        StallReason::InternalInstruction,
        StallReason::BarrierWait,
        StallReason::ArbiterNotWin,
        StallReason::ArbiterWinExStall,
        StallReason::OtherWait,
        StallReason::SleepWait,
    ];

    /// The name after rocprofiler-sdk's prefix: `ALU_DEPENDENCY`.
    #[must_use]
    pub fn name(self) -> &'static str {
        [
            "NO_INSTRUCTION_AVAILABLE",
            "ALU_DEPENDENCY",
            "WAITCNT",
            "INTERNAL_INSTRUCTION",
            "BARRIER_WAIT",
            "ARBITER_NOT_WIN",
            "ARBITER_WIN_EX_STALL",
            "OTHER_WAIT",
            "SLEEP_WAIT",
        ][self as usize]
    }
}

impl InstructionTime {
    /// Cycles that waves stood at it for a reason.
    #[must_use]
    pub fn stalled(&self, reason: StallReason) -> u64 {
        self.stalled[reason as usize]
    }

    /// Those for all reasons.
    #[must_use]
    pub fn stalls(&self) -> u64 {
        self.stalled.iter().sum()
    }

    /// What it would be of so many executions.
    pub(crate) fn scale(&mut self, executions: u64) {
        let share = (executions, self.executions);
        self.executions = executions;
        let cycles = [&mut self.issued, &mut self.vector_alu, &mut self.lines, &mut self.lds_conflict_cycles];
        for count in cycles.into_iter().chain(&mut self.stalled) {
            *count = scaled(*count, share);
        }
    }

    /// Adds the cycles of another dispatch.
    pub fn add(&mut self, other: &InstructionTime) {
        self.executions += other.executions;
        self.issued += other.issued;
        self.vector_alu += other.vector_alu;
        self.lines += other.lines;
        self.lds_conflict_cycles += other.lds_conflict_cycles;
        self.stalled.iter_mut().zip(other.stalled).for_each(|(mine, its)| *mine += its);
    }
}

impl MemoryCounts {
    pub(crate) fn all_mut(&mut self) -> [&mut u64; 11] {
        let MemoryCounts {
            l1_hits,
            l1_misses,
            l2_hits,
            l2_misses,
            l2_written_back,
            l2_left,
            memory_lines,
            stored_bytes,
            lds_conflict_cycles,
            serialized_atomics,
            atomic_cycles,
        } = self;
        [
            l1_hits,
            l1_misses,
            l2_hits,
            l2_misses,
            l2_written_back,
            l2_left,
            memory_lines,
            stored_bytes,
            lds_conflict_cycles,
            serialized_atomics,
            atomic_cycles,
        ]
    }

    /// Adds those of another dispatch.
    pub fn add(&mut self, other: &MemoryCounts) {
        let mut other = *other;
        self.all_mut().into_iter().zip(other.all_mut()).for_each(|(mine, its)| *mine += *its);
    }
}

impl WaveSample {
    /// The name after rocprofiler-sdk's `ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_`: `VALU`.
    #[must_use]
    pub fn instruction_type(&self) -> &'static str {
        match self.kind {
            SampleKind::Valu => "VALU",
            SampleKind::Matrix => "MATRIX",
            SampleKind::Scalar => "SCALAR",
            SampleKind::Vmem => "TEX",
            SampleKind::Flat => "FLAT",
            SampleKind::Lds => "LDS",
            SampleKind::Branch => "BRANCH_NOT_TAKEN",
            SampleKind::BranchTaken => "BRANCH_TAKEN",
            SampleKind::Jump => "JUMP",
            SampleKind::Barrier => "BARRIER",
            SampleKind::Message => "MESSAGE",
            SampleKind::Export => "EXPORT",
            SampleKind::Internal => "OTHER",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_scaled_to_the_nearest() {
        assert_eq!([scaled(3, (10, 4)), scaled(3, (7, 0)), scaled(u64::MAX, (2, 1))], [8, 0, u64::MAX]);
    }
}
